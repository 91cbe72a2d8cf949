"""Java: canaries fail under their own names, and everything made compiles."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from agentrunner.verification.syntax.emptied_functions import empty_functions
from agentrunner.verification.syntax.mutants import mutants
from tests.unit.verification.syntax.live import canaries, combined, halves, need, ran

PRODUCT = b"""import java.util.ArrayList;
import java.util.List;

public class Shop {
    static final int RATE = 2;
    private final List<Integer> items = new ArrayList<>();

    public Shop(int... given) {
        for (int one : given) { items.add(one); }
    }

    public int total(boolean twice) {
        int found = 0;
        for (int item : items) {
            if (item > 0 && item < 100) { found += item; }
        }
        return twice ? found * RATE : found;
    }

    public String name(String text) {
        if (text.isEmpty()) { throw new IllegalArgumentException("no name"); }
        return text.toUpperCase();
    }

    public boolean isOpen() { return !items.isEmpty(); }
    public char sign() { return 'x'; }
    public <T> T same(T given) { return given; }
    void clear() { items.clear(); }
}
"""

TESTS = b"""import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertTrue;

import org.junit.Before;
import org.junit.Test;

public class ShopTest {
    private Shop shop;

    @Before public void setUp() { shop = new Shop(1, 2); }

    @Test public void plain() { assertEquals(3, shop.total(false)); }
    @Test public void early() {
        if (shop.isOpen()) {
            assertEquals("the message", 6L, (long) shop.total(true));
            return;
        }
        throw new IllegalStateException();
    }
    @Test(expected = IllegalArgumentException.class) public void refuses() {
        assertTrue(shop.isOpen());
        shop.name("");
    }
    @Test public void names() { String want = "A"; assertEquals(want, shop.name("a")); }
    @Test public void signs() { assertTrue(shop.sign() == 'x'); }
}
"""
JAVAC = ("javac", "-J-XX:TieredStopAtLevel=1")
"""Without the compiler that programs of a second do not repay: half the time."""
JARS = ("/usr/share/java/junit4.jar", "/usr/share/java/hamcrest-core.jar")


@pytest.fixture(autouse=True)
def _tools() -> None:
    need("javac", "java", *(jar for jar in JARS if not Path(jar).exists()))


def results(folder: Path, product: bytes = PRODUCT, tests: bytes = TESTS) -> dict[str, str]:
    """Red ones by name, and how many ran; the key "build" where it did not compile."""
    (folder / "Shop.java").write_bytes(product)
    (folder / "ShopTest.java").write_bytes(tests)
    path = os.pathsep.join((".", *JARS))
    files = ("Shop.java", "ShopTest.java")
    built = ran(folder, *JAVAC, "-Werror", "-Xlint:all,-path", "-cp", path, *files)
    if built.returncode:
        return {"build": built.stdout + built.stderr}
    said = ran(folder, "java", "-ea", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-cp", path,
               "org.junit.runner.JUnitCore", "ShopTest")  # fmt: skip
    assert "JUnit version" in said.stdout, said.stdout + said.stderr
    return {f"ShopTest.{name}": "failed" for name in re.findall(r"(?m)^\d+\) (\w+)\(", said.stdout)}


def test_each_canary_fails_under_its_own_name(tmp_path: Path) -> None:
    assert results(tmp_path) == {}
    made = canaries(TESTS, "java")
    assert len(made) == 10
    for half in halves(made):
        after = results(tmp_path, tests=combined(TESTS, half))
        assert after.keys() == {one.name for one in half}, after


def test_emptied_functions_compile_and_turn_honest_tests_red(tmp_path: Path) -> None:
    emptied = empty_functions(None, PRODUCT, "java")
    assert emptied is not None
    after = results(tmp_path, product=emptied.source)
    assert {name.partition(".")[2] for name in after} == {
        "plain", "early", "refuses", "names", "signs",
    }  # fmt: skip


def test_mutants_compile_mostly(tmp_path: Path) -> None:
    made = mutants(None, PRODUCT, "java", 20)
    files = []
    for index, mutant in enumerate(made):
        name = f"Shop{index}"
        source = mutant.source.replace(b"class Shop", b"class " + name.encode())
        (tmp_path / f"{name}.java").write_bytes(source.replace(b"Shop(", name.encode() + b"("))
        files.append(f"{name}.java")
    said = ran(tmp_path, *JAVAC, *files)
    broken = set(re.findall(r"(?m)^(Shop\d+)\.java:\d+: error", said.stderr))
    assert len(broken) * 10 <= len(made), said.stderr
