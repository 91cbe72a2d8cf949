"""go test, cargo test, CTest, GoogleTest, Maven and Gradle, through instrument, run and read."""

import subprocess
from pathlib import Path

from agentrunner.verification.results.registry import select
from tests.kit.files import write
from tests.kit.missing import missing
from tests.kit.reporting import narrowed, need, plain, reading, reported

BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For a Java program that ends soon: half of its CPU is spent on compiling well."""


GO = {
    "go.mod": "module example.com/shop\n\ngo 1.19\n",
    "shop.go": "package shop\n",
    "shop_test.go": """package shop

import "testing"

func TestGood(t *testing.T) {}
func TestBad(t *testing.T) { t.Errorf("sums \\"differ\\" <a>") }
func TestSkipped(t *testing.T) { t.Skip("later") }
func TestMany(t *testing.T) {
\tfor _, name := range []string{"one", "two words"} {
\t\tt.Run(name, func(t *testing.T) {})
\t}
}
func Example() {
\tprintln("x")
\t// Output:
}
""",
    "cart/cart.go": "package cart\n",
    "cart/cart_test.go": 'package cart\n\nimport "testing"\n\nfunc TestGood(t *testing.T) {}\n',
    "Makefile": "test:\n\t@go vet . && go test ./...\n",
}
S = "example.com/shop"


def test_go(tree: Path) -> None:
    need("go", "make")
    write(tree, GO)
    env = {"GOFLAGS": "-mod=mod", "GOPROXY": "off"}
    expected = {
        (f"{S}.TestGood", "passed"),
        (f"{S}.TestBad", "failed"),
        (f"{S}.TestSkipped", "skipped"),
        (f"{S}.TestMany", "passed"),
        (f"{S}.TestMany/one", "passed"),
        (f"{S}.TestMany/two_words", "passed"),
        (f"{S}/cart.TestGood", "passed"),
    }
    seen = reported(tree, "make test", env=env)
    assert seen.exit_code == plain(tree, "make test", env).returncode == 2
    assert {each for each in seen.outcomes if "Example" not in each[0]} == expected
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    assert 'sums "differ" <a>' in seen.results.red[0].message
    assert '    shop_test.go:6: sums "differ" <a>\n' in seen.stdout
    text = reported(tree, "make test", means=1)
    assert text.results is not None and text.results.weak
    assert expected <= set(text.outcomes)
    assert narrowed(tree, "go test ./...", f"{S}/cart.TestGood", env=env).passing == [
        f"{S}/cart.TestGood"
    ]


def test_a_fuzz_test_of_go_has_its_file_and_a_package_is_no_test(tree: Path) -> None:
    need("go")
    fuzz = (
        'package shop\n\nimport "testing"\n\nfunc FuzzSum(f *testing.F) {\n\tf.Add(1)\n'
        "\tf.Fuzz(func(t *testing.T, n int) {})\n}\n"
    )
    write(tree, {**GO, "fuzz_test.go": fuzz})
    seen = reported(tree, "go test .", env={"GOPROXY": "off"})
    assert seen.results is not None
    files = {test.name: test.file for test in seen.results.tests}
    assert files[f"{S}.FuzzSum"] == files[f"{S}.FuzzSum/seed#0"] == "fuzz_test.go"
    assert select("go test ./...", ["example.com/shop"], ".", reading(tree)) is None


def test_go_packages_that_break(tree: Path) -> None:
    need("go")
    write(tree, GO)
    write(
        tree,
        {
            "shop_test.go": 'package shop\nimport ("os"; "testing")\n'
            "func TestEnds(t *testing.T) { os.Exit(3) }\nfunc TestNever(t *testing.T) {}\n",
            "cart/cart_test.go": "package cart\nfunc broken(\n",
        },
    )
    seen = reported(tree, "go test ./...")
    assert seen.exit_code == plain(tree, "go test ./...").returncode == 1
    assert seen.results is not None and not seen.results.all_named
    (cart,) = seen.results.named(f"{S}/cart")
    assert cart.red and cart.unloaded and "cart_test.go:2" in cart.message
    assert {name for name, _ in seen.outcomes} >= {f"{S}.TestEnds"}
    assert not seen.results.passed(f"{S}.TestEnds")
    panics = (
        'package shop\nimport "testing"\nfunc TestA(t *testing.T) {}\n'
        'func TestEnds(t *testing.T) { panic("no") }\nfunc TestNever(t *testing.T) {}\n'
    )
    write(tree, {"shop_test.go": panics})
    seen = reported(tree, "go test .")
    assert seen.results is not None and not seen.results.all_named
    assert seen.results.passed(f"{S}.TestA")
    assert seen.results.named(f"{S}.TestEnds")[0].red


RUST = {
    "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": """/// Adds.
/// ```
/// assert_eq!(shop::add(1, 2), 3);
/// ```
pub fn add(a: i32, b: i32) -> i32 { a + b }

#[cfg(test)]
mod tests {
    use super::*;
    #[test] fn good() { assert_eq!(add(1, 2), 3); println!("test forged ... ok"); }
    #[test] fn bad() { assert_eq!(add(1, 2), 4, "sums differ"); }
    #[test] #[ignore = "later"] fn ignored() {}
    #[test] #[should_panic] fn panics() { panic!() }
}
""",
    "src/main.rs": "fn main() {}\n#[cfg(test)]\nmod tests { #[test] fn good() {} }\n",
    "tests/api.rs": "#[test] fn good() { assert_eq!(shop::add(1, 1), 2); }\n",
}


def test_cargo(tree: Path) -> None:
    need("cargo")
    write(tree, RUST)
    shell = "cargo test --no-fail-fast"
    expected = {
        ("shop src/lib.rs tests::good", "passed"),
        ("shop src/lib.rs tests::bad", "failed"),
        ("shop src/lib.rs tests::ignored", "skipped"),
        ("shop src/lib.rs tests::panics", "passed"),
        ("shop src/main.rs tests::good", "passed"),
        ("shop tests/api.rs good", "passed"),
    }
    seen = reported(tree, "cargo test -- --nocapture")  # goes on behind the program that fails
    assert seen.exit_code == plain(tree, shell).returncode == 101
    docs = {each for each in seen.outcomes if " add (line " in each[0]}
    assert set(seen.outcomes) - docs == expected, seen.stderr
    assert [outcome for _, outcome in docs] == ["passed"]
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    text = reported(tree, shell, means=1)
    assert text.results is not None and text.results.weak and text.results.complete
    # The text does not say which package a program is of.
    weak = {(name.replace("shop tests/", "api tests/"), outcome) for name, outcome in expected}
    assert weak <= set(text.outcomes)
    assert "sums differ" in text.results.red[0].message
    quiet = reported(tree, "cargo test -q")  # names no target; the compiler's list of files does
    assert quiet.results is not None and quiet.results.complete
    assert set(expected) <= set(quiet.outcomes)
    files = {test.name: test.file for test in quiet.results.tests}
    assert files["shop tests/api.rs good"] == "tests/api.rs"
    assert files["shop src/lib.rs tests::bad"] == "src/lib.rs"
    ran = narrowed(tree, "cargo test", "shop src/main.rs tests::good")
    assert ran.exit_code == 0 and ("shop src/main.rs tests::good", "passed") in ran.outcomes


def test_cargo_where_a_test_ends_the_program(tree: Path) -> None:
    need("cargo")
    write(tree, RUST)
    write(tree, {"src/lib.rs": "#[test] fn a() {}\n#[test] fn b() { std::process::exit(0) }\n"})
    seen = reported(tree, "cargo test --lib -- --test-threads=1")
    assert seen.exit_code == 0
    assert seen.results is not None and not seen.results.complete
    assert not seen.results.passed("shop src/lib.rs b")
    write(tree, {"Cargo.toml": RUST["Cargo.toml"] + '[[test]]\nname = "api"\nharness = false\n'})
    write(
        tree,
        {
            "src/lib.rs": "",
            "tests/api.rs": "fn main() { assert!(std::env::args().nth(1).is_none()) }",
        },
    )
    seen = reported(tree, "cargo test --test api")
    assert seen.exit_code == 0, "a harness of the project's own is left alone"


CMAKE = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.19)
project(shop NONE)
enable_testing()
add_test(NAME good COMMAND ${CMAKE_COMMAND} -E true)
add_test(NAME bad COMMAND ${CMAKE_COMMAND} -E cat nothing.txt)
add_test(NAME "two words" COMMAND ${CMAKE_COMMAND} -E true)
add_test(NAME skipped COMMAND sh -c "exit 77")
set_tests_properties(skipped PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME off COMMAND ${CMAKE_COMMAND} -E true)
set_tests_properties(off PROPERTIES DISABLED TRUE)
add_test(NAME gone COMMAND no-such-program)
""",
    "Makefile": "check:\n\t@ctest --test-dir build\n",
}


def test_ctest(tree: Path) -> None:
    need("ctest", "make")
    write(tree, CMAKE)
    assert plain(tree, "cmake -B build").returncode == 0
    expected = {
        ("good", "passed"),
        ("bad", "failed"),
        ("two words", "passed"),
        ("skipped", "skipped"),
        ("off", "skipped"),
        ("gone", "error"),
    }
    seen = reported(tree, "make check")
    assert seen.exit_code == plain(tree, "make check").returncode != 0
    assert set(seen.outcomes) == expected
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    for shell, means in (("make check", 1), ("cmake --build build --target test", 0)):
        text = reported(tree, shell, means=means)
        assert text.results is not None and text.results.weak
        assert set(text.outcomes) == expected
    assert narrowed(tree, "ctest --test-dir build", "two words").passing == ["two words"]


GTEST = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.19)
project(shop CXX)
set(CMAKE_CXX_STANDARD 14)
find_package(GTest REQUIRED)
add_subdirectory(tests)
""",
    "tests/CMakeLists.txt": """add_executable(cart-test cart_test.cc)
target_link_libraries(cart-test GTest::gtest GTest::gtest_main)
""",
    "tests/cart_test.cc": """#include <gtest/gtest.h>
#include <cstdlib>

TEST(CartTest, Sums) { EXPECT_EQ(3, 1 + 2); }
TEST(CartTest, Differs) { EXPECT_EQ(4, 1 + 2) << "sums differ"; }
TEST(CartTest, Later) { GTEST_SKIP() << "later"; }
TEST(CartTest, DISABLED_Off) {}
TEST(CartTest, Dies) { EXPECT_DEATH(std::abort(), ""); }
class Many : public testing::TestWithParam<int> {};
TEST_P(Many, IsPositive) { EXPECT_GT(GetParam(), 0); }
INSTANTIATE_TEST_SUITE_P(Few, Many, testing::Values(1, 2));
TEST(LastTest, Ends) { if (std::getenv("ENDS")) std::_Exit(3); }
""",
    "Makefile": "check:\n\tcmake --build build >make.log\n\tbuild/tests/cart-test\n",
}


def test_gtest(tree: Path) -> None:
    need("cmake", "c++", "make")
    write(tree, GTEST)
    if plain(tree, "cmake -S . -B build").returncode:
        missing("GoogleTest is not installed: libgtest-dev")
    expected = {
        ("CartTest.Sums", "passed"),
        ("CartTest.Differs", "failed"),
        ("CartTest.Later", "skipped"),
        ("CartTest.DISABLED_Off", "skipped"),
        ("CartTest.Dies", "passed"),
        ("Few/Many.IsPositive/0", "passed"),
        ("Few/Many.IsPositive/1", "passed"),
        ("LastTest.Ends", "passed"),
    }
    seen = reported(tree, "make check")
    assert seen.exit_code == plain(tree, "make check").returncode == 2
    assert set(seen.outcomes) == expected
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    assert "sums differ" in seen.results.red[0].message
    assert {test.file for test in seen.results.tests} == {"tests/cart_test.cc"}
    text = reported(tree, "make check", means=1)
    assert text.results is not None and text.results.weak and text.results.complete
    assert set(text.outcomes) == expected - {("CartTest.DISABLED_Off", "skipped")}
    shell = "cmake --build build >make.log && build/tests/cart-test"
    assert narrowed(tree, shell, "CartTest.Sums", "Few/Many.IsPositive/1").outcomes == [
        ("CartTest.Sums", "passed"), ("Few/Many.IsPositive/1", "passed"),
    ]  # fmt: skip
    died = reported(tree, shell, env={"ENDS": "1"})
    assert died.exit_code == 3 and died.results is not None and not died.results.complete
    assert died.results.named("LastTest.Ends")[0].outcome == "error"


POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>shop</artifactId><version>1</version>
<properties><maven.compiler.source>17</maven.compiler.source>
<maven.compiler.target>17</maven.compiler.target></properties>
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId>
<version>4.x</version><scope>test</scope></dependency></dependencies></project>
"""
JAVA = """package shop;
import org.junit.*;
import static org.junit.Assert.*;
public class CartTest {
  @Test public void good() {}
  @Test public void bad() { assertEquals("sums differ", 1, 2); }
  @Test public void breaks() { throw new IllegalStateException("no"); }
  @Test @Ignore("later") public void skipped() {}
}
"""


def test_maven(tree: Path) -> None:
    need("mvn")
    write(tree, {"core/pom.xml": POM, "core/src/test/java/shop/CartTest.java": JAVA})
    write(tree, {"core/target/surefire-reports/TEST-shop.OldTest.xml": "<testsuite>"
                 "<testcase classname='shop.OldTest' name='old'/></testsuite>"})  # fmt: skip
    shell = "mvn -q -o -Dmaven.repo.local=/usr/share/maven-repo -f core/pom.xml surefire:help"
    if subprocess.run(["sh", "-c", shell], cwd=tree, capture_output=True, check=False).returncode:
        missing("Maven has no surefire plug-in here without a network: libsurefire-java")
    goals = "resources:testResources compiler:compile compiler:testCompile surefire:test"
    seen = reported(tree, shell.replace("surefire:help", goals), env={"MAVEN_OPTS": BRIEF})
    assert set(seen.outcomes) == {
        ("core: shop.CartTest#good", "passed"),
        ("core: shop.CartTest#bad", "failed"),
        ("core: shop.CartTest#breaks", "error"),
        ("core: shop.CartTest#skipped", "skipped"),
    }, seen.stdout
    assert seen.results is not None and seen.results.complete


BUILD = """apply plugin: 'java'
repositories { flatDir { dirs '/usr/share/java' } }
dependencies {
  JUNIT name: 'junit4'
  JUNIT name: 'hamcrest-core'
}
"""


def test_gradle(tree: Path) -> None:
    need("gradle")
    version = subprocess.run(["gradle", "--version"], capture_output=True, text=True, check=False)
    old = "\nGradle 4." in version.stdout
    build = BUILD.replace("JUNIT", "testCompile" if old else "testImplementation")
    write(tree, {"build.gradle": build, "src/test/java/shop/CartTest.java": JAVA})
    env = {"GRADLE_OPTS": BRIEF, "JAVA_OPTS": BRIEF}
    seen = reported(tree, "gradle --offline --no-daemon -q test", env=env)
    assert seen.exit_code == 1
    if seen.results is None and "CartTest" not in seen.stdout + seen.stderr:
        missing("Gradle has no JUnit here without a network: junit4")
    assert set(seen.outcomes) == {
        ("shop.CartTest#good", "passed"),
        ("shop.CartTest#bad", "failed"),
        ("shop.CartTest#breaks", "failed"),  # Gradle tells no errors apart
        ("shop.CartTest#skipped", "skipped"),
    }, seen.stdout
    assert seen.results is not None and seen.results.complete


JUPITER = """package shop;
import org.junit.jupiter.api.*;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import static org.junit.jupiter.api.Assertions.*;
class CartTest {
  @Test void good() {}
  @Test void bad() { assertEquals(1, 2, "sums differ"); }
  @Test void breaks() { throw new IllegalStateException("no"); }
  @Test @Disabled("later") void skipped() {}
  @ParameterizedTest @ValueSource(ints = {1, 2}) void many(int one) { assertTrue(one > 0); }
}
"""
JARS = Path("/usr/share/java")
NEEDED = ("junit-jupiter-api", "junit-jupiter-engine", "junit-jupiter-params", "opentest4j",
          "junit-platform-commons", "junit-platform-console", "junit-platform-engine", "picocli",
          "junit-platform-launcher", "junit-platform-reporting", "apiguardian-api",
          "univocity-parsers")  # fmt: skip
PATH = ":".join(f"{JARS}/{name}.jar" for name in NEEDED)
CONSOLE = (
    f"javac -J-XX:TieredStopAtLevel=1 -cp {PATH} -d out src/shop/*.java"
    f" && java -XX:TieredStopAtLevel=1 -cp {PATH}:out"
    " org.junit.platform.console.ConsoleLauncher --scan-class-path out --disable-banner"
)


def test_the_launcher_of_junit(tree: Path) -> None:
    need("java", "javac", "make")
    if gone := [name for name in NEEDED if not (JARS / f"{name}.jar").exists()]:
        missing(f"JUnit 5 lacks {gone[0]} here: junit5")
    recipe = f"PATHS = {PATH}\ncheck:\n\t@{CONSOLE.replace(PATH, '$(PATHS)')}\n"
    write(tree, {"src/shop/CartTest.java": JUPITER, "Makefile": recipe})
    seen = reported(tree, "make check")
    assert seen.exit_code == plain(tree, "make check").returncode == 2
    assert set(seen.outcomes) == {
        ("shop.CartTest#good()", "passed"),
        ("shop.CartTest#bad()", "failed"),
        ("shop.CartTest#breaks()", "error"),
        ("shop.CartTest#skipped()", "skipped"),
        ("shop.CartTest#many(int)[1]", "passed"),
        ("shop.CartTest#many(int)[2]", "passed"),
    }, seen.stdout
    assert seen.results is not None and seen.results.complete and not seen.results.weak
    listed = reported(tree, f"{CONSOLE} --list-engines")
    assert listed.exit_code == 0 and listed.results is None, "nothing is added where none run"
