"""Small repositories of different ecosystems: what counts, what is product, what is unsure."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentrunner.verification.inputs.finder import find_inputs
from agentrunner.verification.inputs.model import Inputs
from agentrunner.verification.inputs.tools_other import only_declares
from tests.kit.examples import examples


@dataclass
class Repo:
    """Files, commands, and what has to come out; paths may also be new ones."""

    files: dict[str, str]
    commands: list[str]
    counts: list[str] = field(default_factory=list)
    product: list[str] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)
    cwd: str = "."


REPOS = {
    "a package with its tests inside, named by the command": Repo(
        {
            "pyproject.toml": "[project]\nname = 'shop'\n",
            "shop/__init__.py": "",
            "shop/core.py": "def near(a, b): return a == b\n",
            "shop/cart/__init__.py": "",
            "shop/cart/prices.py": "def total(): return 1\n",
            "shop/cart/tests/__init__.py": "",
            "shop/cart/tests/test_prices.py": (
                "from shop.core import near\nfrom shop.cart.prices import total\n"
                "def test_a():\n    assert near(total(), 1)\n"
            ),
        },
        ["python -m pytest -q shop/cart"],
        counts=["shop/cart/tests/test_prices.py", "shop/cart/tests/__init__.py"],
        product=["shop/cart/prices.py", "shop/core.py", "shop/cart/new.py"],
    ),
    "a helper of tests with a test of its own": Repo(
        {
            "shop.py": "def total(): return 1\n",
            "tests/helper.py": "def same(a, b): return a == b\n",
            "tests/unit/test_helper.py": "from tests.helper import same\n",
            "tests/unit/test_shop.py": "from shop import total\nfrom tests.helper import same\n",
        },
        ["pytest tests"],
        counts=["tests/helper.py", "tests/unit/test_helper.py", "tests/test_new.py"],
        product=["shop.py", "new.py"],
    ),
    "routes that are called by their parameters": Repo(
        {
            "package.json": "{}",
            "app/[slug]/title.js": "exports.title = slug => slug;\n",
            "app/[slug]/rows.json": "[1]",
            "app/[slug]/title.test.js": (
                "const {title} = require('./title');\n"
                "const rows = require('./rows.json');\n"
                "require('node:test')('t', () => require('assert').equal(title('a'), rows[0]));\n"
            ),
        },
        ["node --test 'app/[slug]/title.test.js'"],
        counts=["app/[slug]/title.test.js", "app/[slug]/rows.json"],
        product=["app/[slug]/title.js", "app/s/title.test.js"],
    ),
    "a file that is called like the pattern of a tool": Repo(
        {"tests/test_*.py": "", "**/conftest.py": "", "tests/test_a.py": "import shop\n",
         "shop.py": ""},
        ["pytest tests/test_*.py"],
        counts=["tests/test_a.py", "tests/conftest.py"],
        product=["shop.py"],
    ),
    "a check that asks where files are": Repo(
        {"shop.py": "def total(): return 1\n", "tests/cart/test_shop.py": "import shop\n"},
        ["test -f tests/cart/test_shop.py && ! test -e tests/test_shop.py"],
        product=["tests/cart/test_shop.py", "tests/test_shop.py", "shop.py"],
    ),
    "workspaces whose folder the command names": Repo(
        {
            "package.json": (
                '{"workspaces": ["packages/*"], "scripts": {"test": "node --test packages/"}}'
            ),
            "packages/a/package.json": '{"name": "@m/a", "main": "index.js"}',
            "packages/a/index.js": "exports.add = (a, b) => a - b;\n",
            "packages/a/a.test.js": (
                "const test = require('node:test');\nconst { add } = require('./index');\n"
                "const { near } = require('./near');\ntest('add', () => near(add(1, 2), 3));\n"
            ),
            "packages/a/near.js": (
                "const assert = require('node:assert');\n"
                "exports.near = (a, b) => assert.strictEqual(a, b);\n"
            ),
            "packages/b/package.json": '{"name": "@m/b", "main": "index.js"}',
            "packages/b/index.js": "const { add } = require('@m/a');\n",
            "packages/b/test/whole.js": "const { sum } = require('@m/b');\n",
            "packages/b/test/cases.json": "[]",
        },
        ["npm test"],
        counts=[
            "package.json", "packages/a/a.test.js", "packages/b/test/whole.js",
            "packages/b/test/new.js", "packages/c/new.test.mjs", "packages/b/test/cases.json",
            "packages/a/near.js",
        ],
        product=["packages/a/index.js", "packages/b/index.js", "packages/a/new.js"],
    ),
    "a folder of tests that node is given": Repo(
        {
            "src/slug.js": "exports.slug = (text) => text;\n",
            "tests/slug.test.js": (
                "const { slug } = require('../src/slug');\nrequire('./near');\n"
            ),
            "tests/near.js": "exports.near = (a, b) => a === b;\n",
        },
        ["node --test tests"],
        counts=["tests/slug.test.js", "tests/near.js", "tests/new.test.js"],
        product=["src/slug.js"],
    ),
    "modules beside tests, one used by the test of another": Repo(
        {
            "lib/total.py": "def total(): return 1\n",
            "lib/test_total.py": "from lib.total import total\n",
            "lib/invoice.py": "def invoice(): return 1\n",
            "lib/test_invoice.py": "from lib.total import total\nfrom lib.invoice import invoice\n",
        },
        ["pytest"],
        counts=["lib/test_total.py", "lib/test_invoice.py"],
        product=["lib/total.py", "lib/invoice.py"],
    ),
    "pytest": Repo(
        {
            "pyproject.toml": "[project]\nname = 'shop'\n",
            "shop/__init__.py": "from shop import prices\n",
            "shop/prices.py": "TABLE = open('shop/table.csv')\n",
            "shop/table.csv": "",
            "tests/test_shop.py": (
                "import shop\nfrom helpers import near\n"
                "def test_a():\n    assert near(open('golden/a.txt').read(), shop.a())\n"
            ),
            "tests/helpers.py": "def near(a, b): return a == b\n",
            "tests/data/rates.json": "",
            "golden/a.txt": "",
            "README.md": "",
            "ci/release.sh": "",
        },
        ["pytest -q"],
        counts=[
            "tests/test_shop.py", "tests/helpers.py", "tests/data/rates.json", "golden/a.txt",
            "tests/test_new.py", "conftest.py", "tests/conftest.py", "pytest.ini", "tox.ini",
            "pyproject.toml", "tests/json.py", "tests/unittest/__init__.py", "sitecustomize.py",
        ],
        product=[
            "shop/prices.py", "shop/table.csv", "README.md", "ci/release.sh", "profile.py",
            "shop/new.py", "shop/profile.py", "http/greet.js", "Makefile",
        ],
    ),
    "product code in a folder called testing": Repo(
        {
            "click/__init__.py": "from .core import Command\n",
            "click/core.py": "class Command: pass\n",
            "click/testing.py": "from .core import Command\nclass CliRunner: pass\n",
            "click/testing/fake.py": "from click import core\n",
            "app/main.py": "from click.testing import fake\n",
            "tests/test_core.py": "from click.core import Command\nimport click.testing.fake\n",
        },
        ["python -m pytest tests"],
        counts=["tests/test_core.py", "pytest.py", "_pytest/__init__.py", "inspect.py"],
        product=["profile.py", "click/testing.py", "click/testing/fake.py", "click/testing/new.py"],
    ),
    "tests beside the code": Repo(
        {
            "package.json": '{"scripts": {"test": "node --test", "build": "node build.js"}}',
            "http/greet.js": "module.exports = n => n\n",
            "http/greet.test.js": "const greet = require('./greet.js');\n",
            "http/other.js": "",
            "build.js": "",
        },
        ["npm test"],
        counts=["http/greet.test.js", "http/new.test.js", "package.json", "test/x.js", ".npmrc"],
        product=["http/greet.js", "http/other.js", "build.js", "http/new.js"],
    ),
    "a program that checks itself": Repo(
        {
            "server.js": "if (process.argv.includes('--check')) process.exit(run() ? 0 : 1);\n",
            "package.json": '{"main": "server.js"}',
        },
        ["node server.js --check"],
        product=["server.js"],
        unsure=["server.js"],
    ),
    "output that is compared": Repo(
        {"main.py": "import calc\nprint(calc.f())\n", "calc.py": "", "expected.txt": "1\n",
         "input.txt": ""},
        ["python main.py < input.txt | diff - expected.txt"],
        counts=["expected.txt"],
        product=["main.py", "calc.py", "new.py"],
        unsure=["input.txt"],
    ),
    "output that is written, then compared": Repo(
        {"gen.py": "import calc\nraise SystemExit(1)\n", "calc.py": "", "want/report.txt": ""},
        ["python gen.py > out.txt && cmp out.txt want/report.txt"],
        counts=["want/report.txt"],
        product=["gen.py", "calc.py", "out.txt"],
    ),
    "a script that checks": Repo(
        {
            "verify.py": "import greet\nassert greet.hello() == 'hi'\n",
            "greet.py": "",
            "table.csv": "",
        },
        ["python verify.py"],
        counts=["verify.py", "json.py"],
        product=["greet.py", "table.csv"],
    ),
    "C with a Makefile that includes": Repo(
        {
            "Makefile": (
                "OBJ = calc.o\ncalc: main.c $(OBJ)\n\tcc -o $@ $^\ninclude mk/test.mk\n"
                "lint:\n\tsh lint.sh\n"
            ),
            "mk/test.mk": (
                "CHECKS := $(patsubst %.c,%,$(wildcard check_*.c))\n"
                "check_%: check_%.c $(OBJ)\n\tcc -o $@ $^\n"
                "test: $(CHECKS)\n\t@for t in $(CHECKS); do ./$$t || exit 1; done\n"
                "\t./calc 2 | diff - golden/two.txt\n"
            ),
            "calc.c": "int twice(int x) { return 2 * x; }\n",
            "calc.h": "",
            "main.c": '#include "calc.h"\nint main(void) { return 0; }\n',
            "check_calc.c": '#include "calc.h"\nint main(void) { return twice(2) != 4; }\n',
            "golden/two.txt": "4\n",
            "lint.sh": "",
        },
        ["make test"],
        counts=["Makefile", "mk/test.mk", "check_calc.c", "golden/two.txt", "GNUmakefile"],
        product=["calc.c", "calc.h", "main.c", "lint.sh", "other.c"],
    ),
    "a script behind make": Repo(
        {
            "Makefile": "test: lint\n\tsh ci/check.sh\nlint:\n\truff check .\n",
            "ci/check.sh": '. "$(dirname "$0")/lib.sh"\n./app --version\ncmp out "$WANT"\n',
            "ci/lib.sh": "fail() { exit 1; }\n",
            "app": "#!/usr/bin/env python3\nimport core\nprint(core.VERSION)\n",
            "core.py": "",
            "pyproject.toml": "",
        },
        ["make test"],
        counts=["Makefile", "ci/check.sh", "ci/lib.sh", "ruff.toml", ".ruff.toml"],
        product=["app", "core.py", "ci/deploy.sh"],
        unsure=["app"],
    ),
    "jest": Repo(
        {
            "package.json": (
                '{"scripts": {"pretest": "node ci/prepare.js", "test": "jest", "start":'
                ' "node src/index.js"}, "jest": {"testMatch": ["<rootDir>/checks/**/*.js"],'
                ' "setupFiles": ["<rootDir>/support/setup.js"]}}'
            ),
            "ci/prepare.js": "if (!require('fs').existsSync('src/index.js')) throw 1;",
            "support/setup.js": "",
            "src/index.js": "require('./names')",
            "src/names.js": "",
            "src/__mocks__/names.js": "",
            "checks/names.js": (
                "const names = require('../src/names');\n"
                "test('a', () => expect(names).toEqual(require('../fixtures/names.json')));\n"
            ),
            "fixtures/names.json": "[]",
            "yarn.lock": "",
        },
        ["yarn test"],
        counts=[
            "package.json", "ci/prepare.js", "support/setup.js", "checks/names.js",
            "checks/new.js", "fixtures/names.json", "src/__mocks__/names.js", "jest.config.js",
            "babel.config.js", "yarn.lock", "node_modules/jest/index.js",
        ],
        product=["src/index.js", "src/names.js", "src/names.test.js"],
    ),
    "a tool by its file": Repo(
        {
            "package.json": '{"type": "module"}',
            "support/first.cjs": "",
            "src/index.js": "",
            "unit/a.test.js": "",
        },
        ["node -r ./support/first.cjs --no-warnings node_modules/jest/bin/jest.js --ci"],
        counts=["package.json", "support/first.cjs", "unit/a.test.js", "unit/b.test.js",
                "unit/__snapshots__/a.test.js.snap", "jest.config.js",
                "node_modules/jest/bin/jest.js"],
        product=["src/index.js", "unit/a.js"],
    ),
    "vitest with mocha's folder name": Repo(
        {
            "package.json": '{"scripts": {"test": "vitest run"}}',
            "vitest.config.ts": "export default { test: { include: ['unit/**/*.check.ts'] } }",
            "unit/a.check.ts": "import { a } from '../test/a'",
            "test/a.ts": "export const a = 1",
            "src/b.ts": "import '../test/a'",
        },
        ["npm run test"],
        counts=["unit/a.check.ts", "unit/b.check.ts", "vitest.config.ts", "vite.config.ts"],
        product=["test/a.ts", "src/b.ts", "test/new.ts"],
    ),
    "go": Repo(
        {
            "go.mod": "module x\n",
            "cobra.go": "package cobra\n",
            "cobra_test.go": "package cobra\n",
            "testing/kit.go": "package testing\n",
            "doc/testdata/a.golden": "",
            "doc/doc.go": "",
        },
        ["go test ./..."],
        counts=["cobra_test.go", "new_test.go", "doc/testdata/a.golden", "go.mod", "doc/go.mod"],
        product=["cobra.go", "testing/kit.go", "doc/doc.go", "doc/new.go"],
    ),
    "rust": Repo(
        {
            "Cargo.toml": "[package]\nname = 'x'\n",
            "src/lib.rs": "pub fn f() {}\n#[cfg(test)]\nmod tests {}\n",
            "src/plain.rs": "pub fn g() {}\n",
            "tests/api.rs": "use x::f;\n",
            "build.rs": "",
        },
        ["cargo test --workspace"],
        counts=["Cargo.toml", "src/lib.rs", "tests/api.rs", "build.rs", ".cargo/config.toml"],
        product=["src/plain.rs", "src/new.rs", "examples/a.rs"],
    ),
    "ctest": Repo(
        {
            "CMakeLists.txt": (
                "add_library(calc src/calc.c)\nadd_executable(app src/main.c src/calc.c)\n"
                "install(TARGETS app)\nadd_executable(unit quality/unit.c src/calc.c)\n"
                "add_test(NAME unit COMMAND unit)\n"
            ),
            "src/calc.c": "int f;\n",
            "src/main.c": "int main() { return 0; }\n",
            "quality/unit.c": '#include "../src/calc.h"\nint main() { if (f != 2) abort(); }\n',
            "src/calc.h": "",
            "set.cmake.in": "",
            "CMakePresets.json": "{}",
        },
        ["cmake -B build && cmake --build build && ctest --test-dir build"],
        counts=["CMakeLists.txt", "quality/unit.c", "set.cmake.in", "CMakePresets.json"],
        product=["src/calc.c", "src/main.c", "src/new.c"],
    ),
    "ctest in a loop and a function, with a kit that brings main": Repo(
        {
            "CMakeLists.txt": (
                "add_library(calc src/calc.c src/os.cc)\nset(units add)\n"
                "list(APPEND units take)\nadd_subdirectory(quality)\n"
            ),
            "quality/CMakeLists.txt": (
                "foreach(unit ${units})\n  add_executable(\"${unit}\" \"${unit}.c\")\n"
                "  if(MEMORY)\n    add_test(NAME \"${unit}\" COMMAND valgrind ./${unit})\n"
                "  else()\n    add_test(NAME \"${unit}\" COMMAND \"./${unit}\")\n  endif()\n"
                "endforeach()\n"
                "function(kit_test name)\n"
                "  cmake_parse_arguments(GIVEN \"WHOLE\" \"\" \"\" ${ARGN})\n"
                "  set(sources ${name}.cc ${GIVEN_UNPARSED_ARGUMENTS})\n  if (GIVEN_WHOLE)\n"
                "    set(sources ${sources} ../src/whole.cc)\n  endif ()\n"
                "  add_executable(${name} ${sources})\n"
                "  add_test(NAME ${name} COMMAND ${name})\nendfunction()\n"
                "kit_test(format-test more.cc ../src/os.cc)\n"
            ),
            "src/calc.c": "int f;\n",
            "src/os.cc": "int g;\n",
            "src/whole.cc": "int h;\n",
            "quality/add.c": '#include "../src/calc.h"\nint main() { if (f != 2) abort(); }\n',
            "quality/take.c": '#include "../src/calc.h"\nint main() { if (f != 2) abort(); }\n',
            "quality/format-test.cc": '#include "calc.h"\nTEST(A, b) { EXPECT_EQ(f, 2); }\n',
            "quality/more.cc": '#include "calc.h"\nTEST(A, c) { EXPECT_EQ(f, 2); }\n',
            "src/calc.h": "",
        },
        ["cmake -B build && cmake --build build && ctest --test-dir build"],
        counts=["quality/add.c", "quality/take.c", "quality/format-test.cc", "quality/more.cc"],
        product=["src/calc.c", "src/os.cc", "src/whole.cc", "src/calc.h"],
    ),
    "maven": Repo(
        {
            "pom.xml": "<project/>",
            "src/main/java/A.java": "",
            "src/test/java/ATest.java": "",
            "src/test/resources/a.json": "",
        },
        ["mvn -q test"],
        counts=["pom.xml", "src/test/java/ATest.java", "src/test/resources/a.json",
                "src/test/java/B.java", ".mvn/jvm.config"],
        product=["src/main/java/A.java", "src/main/java/TestKit.java"],
    ),
    "a script that starts unittest": Repo(
        {
            "shop.py": "",
            "test_shop.py": "import shop\n",
            "tools/run.py": (
                "import sys\nimport unittest\n\nsys.path.insert(0, '.')\n"
                "unittest.main(module=None, argv=['x', 'discover'])\n"
            ),
        },
        ["python3 tools/run.py"],
        counts=["test_shop.py", "test_new.py", "tools/run.py"],
        product=["shop.py", "new.py"],
    ),
    "a module that starts unittest": Repo(
        {
            "shop.py": "",
            "test_shop.py": "import shop\n",
            "tools/run.py": (
                "import unittest\n\n\ndef main():\n"
                "    suite = unittest.defaultTestLoader.discover('.')\n"
                "    unittest.TextTestRunner().run(suite)\n\n\nmain()\n"
            ),
        },
        ["python3 -m tools.run"],
        counts=["test_shop.py", "test_new.py", "tools/run.py"],
        product=["shop.py", "new.py"],
    ),
    "a script that hands pytest what it is given": Repo(
        {
            "shop.py": "",
            "checks/a_check.py": "import shop\n",
            "run.py": "import sys\nimport pytest\nsys.exit(pytest.main(sys.argv[1:]))\n",
        },
        ["python3 run.py checks/a_check.py"],
        counts=["checks/a_check.py", "run.py"],
        product=["shop.py"],
    ),
    "a program that has a command for its tests": Repo(
        {
            "manage.py": (
                "import sys\nimport unittest\nimport shop\n\n\ndef price():\n"
                "    print(shop.price)\n\n\ndef test():\n"
                "    unittest.TestLoader().discover('tests')\n\n\n"
                "{'price': price, 'test': test}[sys.argv[1]]()\n"
            ),
            "shop.py": "price = 1350\n",
        },
        ['test "$(python3 manage.py price)" = 1350'],
        product=["manage.py", "shop.py"],
    ),
    "a tool beside Java tests writes data between the product's classes": Repo(
        {
            "pom.xml": "<project/>",
            "src/main/java/shop/Till.java": "package shop;\npublic class Till { int is; }\n",
            "src/main/java/shop/coins.properties": "cent=1\n",
            "src/test/java/shop/TillTest.java": "class TillTest { int is = new Till().is; }\n",
            "src/test/java/shop/MakeCoins.java": (
                "package shop;\nimport java.io.File;\nclass MakeCoins {\n"
                '    File file = new File(root + "/src/main/java/shop", "coins.properties");\n}\n'
            ),
        },
        ["mvn -q test"],
        counts=["src/test/java/shop/TillTest.java", "src/test/java/shop/MakeCoins.java"],
        product=["src/main/java/shop/Till.java", "src/main/java/shop/New.java"],
    ),
    "Java sources that a test reads as data": Repo(
        {
            "pom.xml": "<project/>",
            "src/main/java/shop/Till.java": "class Till { /* Coin */ String of = \"Coin\"; }\n",
            "src/test/java/shop/FormatTest.java": (
                "class FormatTest {\n    // Coin\n    Till till = new Till();\n"
                '    Path wanted = Path.of("golden/Coin.java"), all = Path.of("golden");\n}\n'
            ),
            "golden/Coin.java": "public class Coin {}\n",
            "golden/Till.java": "public class Till {}\n",
            "golden/list.txt": "Coin Till\n",
        },
        ["mvn -q test"],
        counts=["golden/Coin.java", "golden/Till.java", "golden/list.txt"],
        product=["src/main/java/shop/Till.java"],
    ),
    "rspec": Repo(
        {"lib/shop.rb": "", "spec/shop_spec.rb": "require 'shop'\nrequire 'spec_helper'\n",
         "spec/spec_helper.rb": "", ".rspec": "", "Gemfile": ""},
        ["bundle exec rspec"],
        counts=["spec/shop_spec.rb", "spec/spec_helper.rb", ".rspec", "Gemfile", "spec/a_spec.rb"],
        product=["lib/shop.rb", "lib/spec.rb"],
    ),
    "phpunit": Repo(
        {
            "phpunit.xml": (
                '<phpunit bootstrap="quality/boot.php"><testsuites><testsuite name="a">'
                "<directory>quality</directory></testsuite></testsuites></phpunit>"
            ),
            "quality/boot.php": "",
            "quality/CartTest.php": "<?php use Shop\\Cart;",
            "src/Cart.php": "",
            "tests/Tool.php": "",
        },
        ["vendor/bin/phpunit"],
        counts=["phpunit.xml", "quality/boot.php", "quality/CartTest.php", "quality/NewTest.php"],
        product=["src/Cart.php", "tests/Tool.php"],
    ),
    "behave": Repo(
        {
            "features/a.feature": "Feature: a\n",
            "features/steps/a.py": "from behave import given\nimport shop\n",
            "shop.py": "",
        },
        ["behave"],
        counts=["features/a.feature", "features/steps/a.py", "features/steps/new.py",
                "features/environment.py", "behave.ini"],
        product=["shop.py", "steps/a.py"],
    ),
    "prove": Repo(
        {"t/a.t": "use Shop;\n", "lib/Shop.pm": "", "t/lib/Near.pm": ""},
        ["prove -l t"],
        counts=["t/a.t", "t/b.t", ".proverc", "lib/Test/More.pm"],
        product=["lib/Shop.pm", "lib/New.pm"],
    ),
    "unittest in a folder of another name": Repo(
        {"checks/test_a.py": "import shop\n", "shop.py": "", "checks/rates.json": ""},
        ["python -m unittest discover -s checks"],
        counts=["checks/test_a.py", "checks/test_b.py", "checks/rates.json", "checks/re.py"],
        product=["shop.py", "new.py"],
    ),
    "a helper outside of test folders": Repo(
        {
            "test_shop.py": (
                "import shop\nfrom compare import same\ndef test_a():\n    same(shop.a(), 1)\n"
            ),
            "compare.py": "def same(a, b):\n    assert a == b\n",
            "shop.py": "def a(): return 1\n",
        },
        ["pytest -q test_shop.py"],
        counts=["test_shop.py", "compare.py"],
        product=["shop.py"],
    ),
    "a check of one test in a subfolder": Repo(
        {"web/tests/test_users.py": "import users\n", "web/users.py": "", "api/test_x.py": ""},
        ["pytest -q tests/test_users.py::test_create"],
        counts=["web/tests/test_users.py", "web/conftest.py", "conftest.py", "web/pytest.ini"],
        product=["web/users.py", "api/test_x.py"],
        cwd="web",
    ),
    "a file that a check looks at": Repo(
        {"README.md": "", "src/a.py": "", "words.txt": ""},
        ["grep -q hello README.md && ! grep -rf words.txt src"],
        counts=["words.txt"],
        product=["README.md", "src/a.py"],
    ),
    "tests of documents": Repo(
        {"docs/test_docs.py": "def test_a(): assert 'x' in open('guide.md').read()\n",
         "guide.md": ""},
        ["pytest docs"],
        counts=["docs/test_docs.py"],
        product=["guide.md"],
        unsure=["guide.md"],
    ),
    "cases that a script reads": Repo(
        {
            "check.sh": (
                "while read a b; do [ \"$(./calc $a)\" = \"$b\" ] || exit 1; done < cases.tsv\n"
                "cat more.txt | while read a; do ./calc $a; done\n"
            ),
            "cases.tsv": "1 2\n", "more.txt": "", "calc": "#!/bin/sh\n", "other.txt": "",
        },
        ["sh check.sh"],
        counts=["check.sh", "cases.tsv", "more.txt"],
        product=["other.txt", "calc"],
        unsure=["calc"],
    ),
    "a shell product beside its check": Repo(
        {
            "check.sh": ". ./lib.sh\nsame \"$(./greet.sh x)\" hi\n./other.sh > out || exit 1\n",
            "lib.sh": "same() { [ \"$1\" = \"$2\" ] || exit 1; }\n",
            "greet.sh": "#!/bin/sh\necho hi\n",
            "other.sh": "#!/bin/sh\necho $1\n",
        },
        ["sh check.sh"],
        counts=["check.sh", "other.sh"],
        product=["greet.sh", "lib.sh"],
        unsure=["lib.sh"],
    ),
    "a class that is run": Repo(
        {
            "src/Till.java": "class Till {}\n",
            "checks/CheckTill.java": "class CheckTill { void f() { assert new Till() != null; } }",
        },
        ["javac -d out src/*.java checks/*.java && java -ea -cp out CheckTill"],
        counts=["checks/CheckTill.java"],
        product=["src/Till.java", "src/New.java"],
    ),
    "functions that a recipe sources": Repo(
        {"Makefile": "test:\n\t. ./greet.sh && test \"$$(greet)\" = hi\n",
         "greet.sh": "greet() { echo hi; }\n"},
        ["make test"],
        counts=["Makefile"],
        product=["greet.sh"],
    ),
    "a product in the folder of the tests": Repo(
        {"t/a.t": "use Test::More;\nuse lib 't/lib';\nuse Letters;\n", "t/lib/Letters.pm": ""},
        ["prove -Ilib t"],
        counts=["t/a.t"],
        product=["t/lib/Letters.pm"],
    ),
    "product that holds data alone": Repo(
        {
            "http/greet.js": "exports.greet = (name) => name;\n",
            "spec/format.js": 'exports.mark = "";\n',
            "test/a.test.js": "const { greet } = require('../http/greet.js');\n"
            "const { mark } = require('../spec/format.js');\n"
            "assert.equal(greet('Ann') + mark, 'Ann!');\n",
        },
        ["node --test test/"],
        counts=["test/a.test.js"],
        product=["http/greet.js", "spec/format.js"],
    ),
    "tolerances in a module": Repo(
        {
            "test_shop.py": "from shop import a\nfrom limits import NEAR\n\n"
            "def test_a():\n    assert abs(a() - 1) < NEAR\n",
            "limits.py": "NEAR = 0.001\n",
            "shop.py": "def a(): return 1\n",
            "test_version.py": "from version import V\nassert V == '2'\n",
            "version.py": "V = '1'\n",
        },
        ["pytest"],
        counts=["limits.py", "test_shop.py"],
        product=["shop.py", "version.py"],
    ),
    "what the environment names": Repo(
        {"tools/near.py": "", "first.js": "", "test/a.js": "require('../a')", "a.js": "",
         "test_a.py": "import a\n", "a.py": ""},
        ["NODE_OPTIONS='--require ./first.js' mocha && PYTHONPATH=tools pytest"],
        counts=["first.js", "tools/json.py", "tools/pytest.py", "test/a.js", "test_a.py"],
        product=["a.js", "a.py", "tools/new.py"],
    ),
    "a test that is named and not there yet": Repo(
        {"tests/__init__.py": "", "users.py": ""},
        ["pytest tests/test_users.py::test_a && python -m unittest tests.test_more.Case.test_b",
         "npx jest web/b.spec.js && python new.py"],
        counts=["tests/test_users.py", "tests/test_more.py", "web/b.spec.js"],
        product=["users.py", "new.py", "tests/data.py"],
    ),
    "workspaces": Repo(
        {
            "package.json": '{"workspaces": ["packages/*"], "scripts": {"test": "turbo run unit"}}',
            "packages/a/package.json": '{"scripts": {"unit": "vitest run"}}',
            "packages/a/src/x.test.ts": "import './x'",
            "packages/a/src/x.ts": "",
            "packages/b/package.json": '{"scripts": {"unit": "node check.mjs"}}',
            "packages/b/check.mjs": "import './lib.mjs'; throw 1",
            "packages/b/lib.mjs": "",
        },
        ["npm test"],
        counts=["packages/a/src/x.test.ts", "packages/b/check.mjs", "turbo.json",
                "packages/b/package.json"],
        product=["packages/a/src/x.ts", "packages/b/lib.mjs"],
    ),
    "Django": Repo(
        {
            "manage.py": "#!/usr/bin/env python\nfrom django.core.management import "
            "execute_from_command_line\n",
            "shop/tests.py": "from shop import models\n",
            "shop/models.py": "",
            "shop/__init__.py": "",
        },
        ["./manage.py test"],
        counts=["shop/tests.py", "manage.py", "shop/test_b.py"],
        product=["shop/models.py"],
    ),
    "tox": Repo(
        {"tox.ini": "[testenv]\ncommands =\n    python ci/run.py {posargs}\n",
         "ci/run.py": "import subprocess, sys\nsys.exit(subprocess.call(['pytest', 'src']))\n",
         "src/a.py": "", "src/test_b.py": "from src import a\n"},
        ["tox -q"],
        counts=["tox.ini", "ci/run.py", "setup.cfg", "src/test_b.py", "src/test_new.py"],
        product=["src/a.py"],
    ),
    "pre-commit": Repo(
        {".pre-commit-config.yaml": "repos:\n- repo: local\n  hooks:\n"
         "  - {id: tests, entry: sh, args: [ci/run.sh]}\n",
         "ci/run.sh": "pytest src\n", "src/a.py": "", "src/test_b.py": "from src import a\n"},
        ["python3 -m pre_commit run -a"],
        counts=[".pre-commit-config.yaml", "ci/run.sh", "src/test_b.py", "src/test_new.py"],
        product=["src/a.py"],
    ),
    "npm scripts that run each other": Repo(
        {
            "package.json": '{"scripts": {"test": "npm run unit -- -R dot && node ci/last.js",'
            ' "unit": "mocha", "posttest": "sh ci/after.sh", "docs": "node docs.js"}}',
            ".mocharc.yml": "spec: unit/*.js\nrequire: ./support/first.js\n",
            "unit/a.js": "require('../lib/a')",
            "support/first.js": "",
            "lib/a.js": "",
            "ci/last.js": "require('../lib/a'); process.exit(1)",
            "ci/after.sh": "",
            "docs.js": "",
        },
        ["npm test"],
        counts=["package.json", ".mocharc.yml", "unit/a.js", "unit/b.js", "support/first.js",
                "ci/last.js", "ci/after.sh"],
        product=["lib/a.js", "docs.js"],
    ),
    "scripts that a loop finds and reads are tests": Repo(
        {
            "lib/names.sh": "archive_name() { echo \"$1.tgz\"; }\n",
            "bin/backup": "#!/bin/sh\n. lib/names.sh\narchive_name \"$1\"\n",
            "tests/run.sh": (
                "for f in tests/t-*.sh; do\n"
                "  for t in $(sed -n 's/().*//p' \"$f\"); do (. \"./$f\"; $t) || exit 1; done\n"
                "done\n"
            ),
            "tests/t-names.sh": "test_name() {\n  [ \"$(bin/backup a)\" = a.tgz ]\n}\n",
        },
        ["sh tests/run.sh"],
        counts=["tests/t-names.sh", "tests/t-new.sh"],
        product=["lib/names.sh", "bin/backup", "lib/new.sh"],
    ),
    "scripts that a shell script under prove finds": Repo(
        {
            "bin/backup": "#!/bin/sh\necho \"$1.tgz\"\n",
            "tests/run.sh": (
                "#!/bin/sh\nfor f in tests/t-*.sh; do . \"./$f\"; done\necho 1..1\n"
            ),
            "tests/t-names.sh": "test_name() {\n  [ \"$(bin/backup a)\" = a.tgz ]\n}\n",
        },
        ["prove tests/run.sh"],
        counts=["tests/run.sh", "tests/t-names.sh"],
        product=["bin/backup"],
    ),
    "a function library that a loop reads": Repo(
        {
            "lib/greet.sh": "greet() { echo \"Hello $1\"; }\n",
            "check.sh": "for f in lib/*.sh; do . \"./$f\"; done\n[ \"$(greet A)\" = 'Hello A' ]\n",
        },
        ["sh check.sh"],
        counts=["check.sh"],
        product=["lib/greet.sh", "lib/new.sh"],
    ),
    "folders of cases that a loop goes through": Repo(
        {
            "render.sh": "cat \"$1\"\n",
            "check.sh": (
                "set -e\nfor c in cases/*; do\n"
                "  sh render.sh \"$c/in.txt\" | diff \"$c/out.txt\" -\ndone\n"
            ),
            "cases/one/in.txt": "a\n",
            "cases/one/out.txt": "a\n",
        },
        ["sh check.sh"],
        counts=["cases/one/out.txt", "cases/new/out.txt"],
        product=["render.sh"],
    ),
    "headers that make lists as sources": Repo(
        {
            "Makefile": (
                "test: t\n\t./t\nt: tests/t.c tests/check.h src/a.c src/a.h\n\tcc -o t $^\n"
            ),
            "tests/t.c": (
                "#include \"check.h\"\n#include \"../src/a.h\"\n"
                "int main(void) { return DONE(); }\n"
            ),
            "tests/check.h": "static int failures;\n#define DONE() (failures ? 1 : 0)\n",
            "src/a.c": "#include \"a.h\"\nint a(void) { return 1; }\n",
            "src/a.h": "int a(void);\n",
        },
        ["make test"],
        counts=["tests/t.c", "tests/check.h"],
        product=["src/a.c", "src/a.h"],
    ),
    "configuration in each of the folders that a glob names": Repo(
        {f"services/{one}/tests/test_a.py": "def test_a(): assert True\n" for one in "ab"}
        | {"services/a/pyproject.toml": "", "services/b/setup.cfg": "", "services/a/code.py": ""},
        ["pytest services/*/tests"],
        counts=["services/a/pyproject.toml", "services/b/setup.cfg", "services/a/pytest.ini"],
        product=["services/a/code.py"],
    ),
    "configuration in each of the folders that a loop goes through": Repo(
        {"services/a/go.mod": "module a\n", "services/a/a_test.go": "package a\n"},
        ["for d in services/*; do (cd $d && go test ./...); done"],
        counts=["services/a/go.mod"],
        product=[],
    ),
}  # fmt: skip


def inputs_of(repo: Repo) -> Inputs:
    files = {path: text.encode() for path, text in repo.files.items()}
    return find_inputs([(shell, repo.cwd) for shell in repo.commands], files, files.get)


@pytest.mark.parametrize("name", REPOS)
def test_what_counts_in_a_repository(name: str) -> None:
    repo = REPOS[name]
    inputs = inputs_of(repo)
    assert [path for path in repo.counts if not inputs.input_at(path)] == []
    assert [(path, inputs.input_at(path)) for path in repo.product if inputs.input_at(path)] == []
    assert [one.path for one in inputs.unsure] == repo.unsure


@pytest.mark.parametrize("name", REPOS)
def test_every_input_says_why(name: str) -> None:
    inputs = inputs_of(REPOS[name])
    assert all(one.why and "\n" not in one.why for one in [*inputs.deciding, *inputs.unsure])


def test_what_a_report_named_is_a_test_whatever_it_is_called() -> None:
    files = {"quality/shop.py": b"", "shop.py": b""}
    inputs = find_inputs([("./run", ".")], files, files.get, results_files=["quality/shop.py"])
    found = inputs.input_at("quality/shop.py")
    assert found and found.why == "tests of it were run before"
    assert not inputs.input_at("shop.py")


@pytest.mark.parametrize(
    ("command", "counts"),
    [
        ("ruby -Itest -e 'Dir[\"./test/test_*.rb\"].each { |f| require f }'", True),
        ("cd test && ruby -e 'Dir[\"test_*.rb\"].each { |f| load f }'", True),
        ("ruby -e 'Dir[\"lib/*.rb\"].each { |f| load f }'", False),
    ],
)
def test_what_a_command_finds_as_it_finds_its_tests_is_a_test(command: str, counts: bool) -> None:
    files = {"lib/shop.rb": b"", "test/test_shop.rb": b""}
    reported = ["test/test_shop.rb"]
    inputs = find_inputs([(command, ".")], files, files.get, results_files=reported)
    assert bool(inputs.input_at("test/test_new.rb")) == counts
    assert not inputs.input_at("lib/shop.rb")


def test_a_shell_script_is_one_by_its_first_line_whatever_its_ending_says() -> None:
    script = b'#!/bin/sh\n. "$(dirname "$0")/../lib/a.sh"\n[ "$(f)" = 1 ] || exit 1\n'
    files = {"test/a.t": script, "lib/a.sh": b"f() {\n  echo 1\n}\n"}
    found = find_inputs([("sh test/a.t", ".")], files, files.get).input_at("test/a.t")
    assert found and found.kind == "test"


def test_what_a_person_declares_wins() -> None:
    files = {
        "tests/test_a.py": b"import shop",
        "tests/kit/big.py": b"",
        "shop.py": b"",
        "x/y.c": b"",
    }
    inputs = find_inputs(
        [("pytest tests", ".")],
        files,
        files.get,
        declared_tests=["x/**"],
        declared_product=["tests/kit"],
    )
    assert inputs.input_at("x/y.c") and inputs.input_at("x/new.c")
    assert inputs.input_at("tests/test_a.py") and not inputs.input_at("tests/kit/big.py")
    assert not inputs.input_at("tests/kit/test_new.py")


def test_a_script_in_an_ignored_folder_counts() -> None:
    hidden = {"target/check.sh": b"cmp a b"}
    inputs = find_inputs([("sh target/check.sh", ".")], ["a.py"], hidden.get)
    assert inputs.input_at("target/check.sh")


WORDS = st.text(alphabet="ab.*/${}()[]|&;<>\"'\\ \n\t=-@!:%`#0", max_size=80)
NAMES = ["Makefile", "package.json", "pyproject.toml", "tests/test_a.py", "tox.ini", "a.sh", "b.js",
         "CMakeLists.txt", "justfile", "phpunit.xml", "src/lib.rs", "conftest.py", "x/check.c",
         "jest.config.js", "Rakefile", "Cargo.toml"]  # fmt: skip
COMMANDS = ["make", "npm test", "pytest", "tox", "sh a.sh", "node b.js", "cargo test", "ctest",
            "just", "phpunit", "jest", "rake", "python tests/test_a.py", "prove", "mocha",
            "vitest"]  # fmt: skip


@given(
    st.dictionaries(
        st.sampled_from(NAMES), st.one_of(st.binary(max_size=100), WORDS.map(str.encode))
    ),
    st.one_of(st.sampled_from(COMMANDS), WORDS),
    st.sampled_from([".", "x", "../y", ""]),
)
@settings(max_examples=examples(300), deadline=None)
def test_it_never_raises(files: dict[str, bytes], command: str, cwd: str) -> None:
    inputs = find_inputs([(command, cwd)], files, files.get)
    for path in [*files, "new.py", "tests/test_new.py"]:
        inputs.input_at(path)


@pytest.mark.parametrize(
    ("command", "size", "seconds"),
    [("pytest -q", 10_000, 1.0), ("node --test", 10_000, 1.0), ("pytest tests", 100_000, 6.0)],
)
def test_large_trees_are_read_within_bounds(command: str, size: int, seconds: float) -> None:
    files = {
        f"pkg/m{i % 100}/f{i}.py": b"import os\nfrom pkg import m1\nx = 'a/b'\n"
        for i in range(size)
    }
    files |= {f"tests/u{i % 20}/test_{i}.py": b"from pkg.m1 import f1\n" for i in range(size // 10)}
    files |= {f"web/c{i}.js": b"require('./x')" for i in range(size // 10)}
    files |= {f"web/c{i}.test.js": b"require('./c1')" for i in range(size // 10)}
    reads = 0

    def read(path: str) -> bytes | None:
        nonlocal reads
        reads += 1
        return files.get(path)

    started = time.process_time()
    inputs = find_inputs([(command, ".")], files, read)
    spent = time.process_time() - started
    assert inputs.deciding
    assert reads < 5_000
    assert spent < seconds


def test_a_reader_of_many_files_saves_single_reads() -> None:
    files = {f"tests/test_{i}.py": b"import shop\n" for i in range(50)} | {"shop.py": b""}
    single: list[str] = []

    def read(path: str) -> bytes | None:
        single.append(path)
        return files.get(path)

    inputs = find_inputs(
        [("pytest", ".")],
        files,
        read,
        read_many=lambda paths: {path: files[path] for path in paths},
    )
    assert inputs.input_at("tests/test_1.py")
    assert not [path for path in single if path.startswith("tests/test_")]


def test_lists_of_cmake_that_grow_or_call_themselves_end() -> None:
    text = (
        'set(FLAGS "${FLAGS} -a ${FLAGS}")\n' * 60
        + "list(APPEND L ${L} x)\nset(M ${L} ${L})\n" * 40
        + "function(f)\n  f(${ARGN} ${ARGN})\n  f(${ARGN})\nendfunction()\nf(a b)\n"
        + "foreach(i ${L})\nforeach(j ${L})\nforeach(k ${L})\n  add_test(NAME t COMMAND t)\n"
    )
    files = {"CMakeLists.txt": text.encode(), "t.c": b"int main() { return 1; }\n"}
    begun = time.monotonic()
    find_inputs([("ctest", ".")], files, files.get)
    assert time.monotonic() - begun < 10


@pytest.mark.parametrize(
    ("source", "declares"),
    [
        (
            "<?php\nnamespace Shop;\n\nclass A\n{\n    function a() { if (1) { b(); } }\n}\n",
            True,
        ),
        (
            "<?php\ndeclare(strict_types=1);\nuse A\\B;\n// runs()\nfunction f(?int $a): int { }\n",
            True,
        ),
        ("<?php\nclass A { }\nf();\n", False),
        ("<?php\nif (1) { function f() { } }\n", False),
        ("<?php\nrequire 'a.php';\nclass A { }\n", False),
        ("<?php\n", False),
    ],
)
def test_a_file_of_php_that_only_declares(source: str, declares: bool) -> None:
    assert only_declares(source) == declares
