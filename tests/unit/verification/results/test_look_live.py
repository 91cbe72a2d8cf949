"""The look into the process of real test tools: what is exchanged there, and who is left alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from agentrunner.verification.results.model import Exchanged
from tests.kit.files import write
from tests.kit.reporting import TOOLS, need, reported

UNITTEST = """
import unittest

import shop


class T(unittest.TestCase):
    def test_a(self):
        total = shop.total([2, 3])
        self.assertEqual(total, 5)

    def test_b(self):
        total = shop.total([])
        self.assertEqual(total, 0)
"""
ONCE = """
import unittest

def total(numbers):
    return 0

kept = unittest.TestCase.assertEqual

def once(self, *values):
    unittest.TestCase.assertEqual = kept

unittest.TestCase.assertEqual = once
"""
IN_THE_CALL = """
import unittest

def total(numbers):
    kept = unittest.TestCase.assertEqual

    def once(self, *values):
        unittest.TestCase.assertEqual = kept

    unittest.TestCase.assertEqual = once
    return 0
"""
CODE = """
import unittest

kept = unittest.TestCase.assertEqual.__code__

def nothing(self, first, second, msg=None):
    type(self).mro()[1].assertEqual.__code__ = None or self.kept

unittest.TestCase.kept = kept
def total(numbers):
    unittest.TestCase.assertEqual.__code__ = nothing.__code__
    return 0
"""
OWN_CLASS = """
import sys

def total(numbers):
    type(sys._getframe(1).f_locals["self"]).assertEqual = lambda self, *values: None
    return 0
"""
INSTANCE = """
import sys

def total(numbers):
    sys._getframe(1).f_locals["self"].assertEqual = lambda *values: None
    return 0
"""
HEIRS = """
import unittest

kept = unittest.TestCase.__init_subclass__.__func__

def exchange(cls, **more):
    kept(cls, **more)
    cls.assertEqual = lambda self, *values: None

unittest.TestCase.__init_subclass__ = classmethod(exchange)

def total(numbers):
    return 0
"""
THREAD = """
import threading
import unittest

def total(numbers):
    def exchange():
        unittest.TestCase.assertEqual = lambda self, *values: None
    thread = threading.Thread(target=exchange)
    thread.start()
    thread.join()
    return 0
"""
SHADOW = """
import unittest.case

unittest.case.type = lambda value: value.__class__ if isinstance(value, BaseException) else list
unittest.TestCase.assertListEqual = lambda *values, **more: None

def total(numbers):
    return 0
"""
HONEST = """
def total(numbers):
    return sum(numbers)
"""


def what(tree: Path, shell: str) -> tuple[int, list[str], int]:
    seen = reported(tree, shell)
    assert seen.results is not None, seen.stdout + seen.stderr
    return seen.exit_code, [one.what for one in seen.results.exchanged], seen.results.looked


@pytest.mark.series(2)
@pytest.mark.parametrize("tool", ["-m unittest test_shop", "-m pytest -q test_shop.py"])
@pytest.mark.parametrize(
    ("product", "expected"),
    [
        (ONCE, "unittest.case.TestCase.assertEqual"),
        (IN_THE_CALL, "unittest.case.TestCase (written to and put back)"),
        (CODE, "unittest.case.TestCase.assertEqual.__code__"),
        (OWN_CLASS, "test_shop.T.assertEqual"),
        (INSTANCE, "test_shop.T().assertEqual"),
        (HEIRS, "unittest.case.TestCase.__init_subclass__"),
        (THREAD, "unittest.case.TestCase.assertEqual"),
        (SHADOW, "unittest.case.type"),
    ],
    ids=["once", "in-the-call", "code", "own-class", "instance", "heirs", "thread", "shadow"],
)
def test_python_names_what_the_product_exchanged(
    tree: Path, product: str, expected: str, tool: str
) -> None:
    write(tree, {"shop.py": product, "test_shop.py": UNITTEST})
    code, exchanged, looked = what(tree, f"{sys.executable} {tool}")
    assert code == 0, "the cheat itself does not work"
    assert expected in exchanged
    assert looked


def test_hooks_by_which_the_product_gives_unittest_its_tests(tree: Path) -> None:
    hook = """
def load_tests(loader, found, pattern):
    suite = loader.discover(__path__[0], "test*.py", __path__[0] + "/..")
    (test,) = [test for one in suite for case in one for test in case if "test_a" in test.id()]
    test.test_a = lambda: None
    found.addTests([test])
    return found

def total(numbers):
    return 0
"""
    write(tree, {"shop/__init__.py": hook, "shop/test_shop.py": UNITTEST})
    code, exchanged, _ = what(tree, f"{sys.executable} -m unittest")
    assert code == 0, "the cheat itself does not work"
    assert exchanged == ["shop.test_shop.T().test_a", "shop.load_tests"]


def test_what_was_seen_is_named_with_its_test(tree: Path) -> None:
    write(tree, {"shop.py": IN_THE_CALL, "test_shop.py": UNITTEST})
    results = reported(tree, f"{sys.executable} -m unittest test_shop").results
    assert results is not None
    assert [one.test for one in results.exchanged] == ["test_shop.T.test_a"]


REGISTERED = """
import sys
import pytest

class Report:
    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        report.outcome, report.longrepr = "passed", None

def find():
    frame = sys._getframe()
    while frame:
        for value in frame.f_locals.values():
            if hasattr(value, "config") and hasattr(value.config, "pluginmanager"):
                return value.config.pluginmanager
        frame = frame.f_back

find().register(Report())

def total(numbers):
    return 0
"""
RAISES = """
import sys
import _pytest.raises
import pytest

def total(numbers):
    return 0

class Never:
    def __init__(self, *given): pass
    def __enter__(self): return self
    def __exit__(self, *given): return True

pytest.raises = Never
"""
REPLACED = """
import sys
import types
import pytest

fake = types.ModuleType("pytest")
fake.__dict__.update(pytest.__dict__)
fake.approx = lambda expected, **more: 0
sys.modules["pytest"] = fake

def total(numbers):
    return 0
"""
TESTS_OF_OTHERS = """
import sys

def total(numbers):
    sys.modules["test_shop"].__dict__["test_b"].__code__ = (lambda: None).__code__
    return 5
"""
LOADED = """
import importlib.machinery
import importlib.util
import os
import sys

class Importer:
    def find_spec(self, name, path=None, target=None):
        if name != "test_shop":
            return None
        file = os.path.abspath("test_shop.py")
        loader = importlib.machinery.SourceFileLoader(name, file)
        execute = loader.exec_module
        def exec_module(module):
            del loader.exec_module
            execute(module)
            module.test_a = module.test_b = lambda: None
        loader.exec_module = exec_module
        return importlib.util.spec_from_file_location(name, file, loader=loader)

sys.meta_path.insert(0, Importer())

def total(numbers):
    return 0
"""
FUNCTIONS = """
import shop
import pytest

def test_a():
    assert shop.total([2, 3]) == pytest.approx(5)

def test_b():
    with pytest.raises(ZeroDivisionError):
        1 / 0
    assert shop.total([]) == 0, "b"
"""


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        (REGISTERED, "pytest's plug-in shop.Report"),
        (REPLACED, "sys.modules['pytest']"),
        (RAISES, "pytest.raises"),
        (TESTS_OF_OTHERS, "the function of test_shop.py::test_b.__code__"),
        (LOADED, "the function of test_shop.py::test_a"),
    ],
    ids=["registered", "replaced", "raises", "tests-of-others", "loaded"],
)
def test_pytest_names_what_the_product_exchanged(tree: Path, product: str, expected: str) -> None:
    first = "import shop\n"
    write(tree, {"shop.py": product, "test_shop.py": FUNCTIONS, "test_a_first.py": first})
    code, exchanged, _ = what(tree, f"{sys.executable} -m pytest -q")
    assert code == (1 if product == RAISES else 0)
    assert expected in exchanged


PATCHED_A_LOT = """
import builtins, io, sys, time, unittest
from unittest import mock

import shop


class Own(unittest.TestCase):
    longMessage = False
    failureException = ValueError

    def assertEqual(self, first, second, msg=None):
        super().assertEqual(first, second, msg)

    def run(self, result=None):
        return super().run(result)


class T(Own):
    calls = 0

    @classmethod
    def setUpClass(cls):
        cls.patch = mock.patch("builtins.print")
        cls.patch.start()

    @classmethod
    def tearDownClass(cls):
        cls.patch.stop()

    def setUp(self):
        type(self).calls += 1

    @mock.patch("builtins.open", mock.mock_open(read_data="x"))
    @mock.patch("time.time", lambda: 0)
    def test_open(self):
        self.assertEqual(open("nothing").read(), "x")
        with mock.patch.object(sys, "stdout", io.StringIO()), mock.patch.dict("sys.modules"):
            sys.modules["json"] = None
            self.assertEqual(shop.total([2, 3]), 5)

    def test_equal(self):
        self.assertRaises(ZeroDivisionError, lambda: 1 / 0)
        self.assertEqual(shop.total([]), 0)
"""


@pytest.mark.parametrize("tool", ["-m unittest test_shop", "-m pytest -q test_shop.py", "run.py"])
def test_tests_that_patch_a_lot_exchange_nothing(tree: Path, tool: str) -> None:
    run = "import unittest\nunittest.main('test_shop')\n"
    write(tree, {"shop.py": HONEST, "test_shop.py": PATCHED_A_LOT, "run.py": run})
    assert what(tree, f"{sys.executable} {tool}")[:2] == (0, [])


MONKEYS = """
import builtins, functools, importlib, json, os, pytest, shop

def twice(test):
    @functools.wraps(test)
    def wrapper(*given, **named):
        test(*given, **named)
        test(*given, **named)
    return wrapper

@twice
def test_patched(monkeypatch, tmp_path):
    monkeypatch.setattr(builtins, "open", None)
    monkeypatch.setattr(builtins, "sorted", lambda values: list(values))
    monkeypatch.setattr(os, "getcwd", lambda: "/")
    monkeypatch.setattr(importlib, "import_module", lambda name: None)
    monkeypatch.setattr(json, "loads", lambda text: 1)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert shop.total([2, 3]) == 5

@pytest.mark.parametrize("n", [1, 2])
class TestBox:
    def test_in_class(self, n, capsys, recwarn, request):
        with pytest.raises(ValueError, match="x"):
            raise ValueError("x")
        assert shop.total([n]) == pytest.approx(n)

def test_module_reloaded():
    importlib.reload(shop)
    assert shop.total([]) == 0
"""
CONFTEST = """
import pytest

def pytest_assertrepr_compare(op, left, right):
    return ["no"]

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    yield

@pytest.fixture(autouse=True)
def around():
    yield
"""


def test_fixtures_exchange_nothing_and_conftests_say_that_they_are_conftests(tree: Path) -> None:
    write(tree, {"shop.py": HONEST, "test_shop.py": MONKEYS, "conftest.py": CONFTEST})
    found = facts(tree, {}, "-m pytest -q")
    assert [one.what for one in found if one.files != ("conftest.py",)] == []


# -- Node ------------------------------------------------------------------------------------------

NODE_TEST = """
const test = require("node:test");
const assert = require("assert");
const shop = require("./shop.js");

test("total", () => {
  const total = shop.total([2, 3]);
  assert.strictEqual(total, 5);
});
test("none", () => {
  const total = shop.total([]);
  assert.strictEqual(total, 0);
});
"""
JS_ONCE = """
const assert = require("assert"), kept = assert.strictEqual;
let n = 0;
assert.strictEqual = () => { if (++n === 2) assert.strictEqual = kept; };
exports.total = () => 0;
"""
JS_IN_THE_CALL = """
const assert = require("assert");
exports.total = () => {
  const kept = Object.getOwnPropertyDescriptor(assert, "strictEqual");
  const value = () => Object.defineProperty(assert, "strictEqual", kept);
  Object.defineProperty(assert, "strictEqual", { value, configurable: true });
  return 0;
};
"""
JS_LOAD = """
const Module = require("module"), kept = Module._load;
Module._load = function (name, ...more) {
  if (name !== "assert") return kept.call(this, name, ...more);
  Module._load = kept;
  return { strictEqual() {} };
};
exports.total = () => 0;
"""
JS_CACHE = """
require.cache.assert = { exports: { strictEqual() {} }, loaded: true };
exports.total = () => 0;
"""
JS_RUNNER = """
const runner = require("node:test"), kept = runner.test;
runner.test = (name, run) => kept(name, () => {});
exports.total = () => 0;
"""
JS_STACK = """
const assert = require("assert");
Error.captureStackTrace = () => {};
Error.prepareStackTrace = () => [];
assert.strictEqual = () => {};
exports.total = () => 0;
"""


@pytest.mark.series(2)
@pytest.mark.parametrize("shell", ["node --test", "node shop.test.js"])
@pytest.mark.parametrize(
    ("product", "expected"),
    [
        (JS_ONCE, "assert.strictEqual (by shop.js)"),
        (JS_IN_THE_CALL, "assert.strictEqual (by shop.js)"),
        (JS_LOAD, "Module._load (by shop.js)"),
        (JS_CACHE, "require.cache.assert (by shop.js)"),
        (JS_RUNNER, "node:test.test (by shop.js)"),
        (JS_STACK, "assert.strictEqual (by shop.js)"),
    ],
    ids=["once", "in-the-call", "load", "cache", "runner", "stack"],
)
def test_node_names_what_the_product_exchanged(
    tree: Path, product: str, expected: str, shell: str
) -> None:
    need("node")
    text = NODE_TEST
    if product in (JS_LOAD, JS_CACHE, JS_RUNNER):  # what is loaded after it
        lines = [line for line in NODE_TEST.splitlines() if line.startswith("const shop")]
        text = "\n".join([*lines, NODE_TEST.replace(lines[0] + "\n", "")])
    if product == JS_RUNNER:
        text = text.replace("const test =", "const { test } =")
    write(tree, {"shop.js": product, "shop.test.js": text})
    code, exchanged, looked = what(tree, shell)
    assert code == 0, "the cheat itself does not work"
    assert exchanged == [expected]
    assert looked


NODE_HONEST = """
const test = require("node:test");
const assert = require("node:assert/strict");
const fs = require("fs");
const { execFileSync } = require("child_process");
const shop = require("./shop.js");

test("patched", (t) => {
  t.mock.method(console, "log", () => {});
  t.mock.method(fs, "readFileSync", () => "x");
  t.mock.timers.enable();
  const now = Date.now;
  Date.now = () => 1;
  Math.random = () => 0;
  JSON.parse = () => ({});
  global.fetch = async () => 1;
  Object.defineProperty(globalThis, "window", { value: {}, configurable: true });
  Date.now = now;
  assert.equal(shop.total([2, 3]), 5);
});
test("a process of its own", () => {
  const text = execFileSync(process.execPath, ["-p", "process.env.NODE_OPTIONS || 'none'"]);
  assert.equal(String(text).trim(), "none");
});
test("assertions look as they did", () => {
  assert.throws(() => assert.ok(1 === 2), /assert.ok\\(1 === 2\\)/);
  assert.deepEqual(Object.keys(require("assert")).includes("strictEqual"), true);
  assert.match(String(Object.defineProperty), /native code/);
});
"""


@pytest.mark.parametrize("shell", ["node --test", "node shop.test.js"])
def test_node_tests_that_patch_a_lot_exchange_nothing(tree: Path, shell: str) -> None:
    need("node")
    product = "exports.total = (numbers) => numbers.reduce((a, b) => a + b, 0);\n"
    write(tree, {"shop.js": product, "shop.test.js": NODE_HONEST})
    assert what(tree, shell)[:2] == (0, [])


MOCHA_TEST = NODE_TEST.replace('const test = require("node:test");', "const test = it;")
JS_RUNNABLE = """
const runnable = Object.getPrototypeOf(Object.getPrototypeOf(it("x", () => {})));
const kept = runnable.run;
runnable.run = function (done) { runnable.run = kept; this.fn = () => {}; kept.call(this, done); };
exports.total = () => 0;
"""


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        (JS_ONCE, "assert.strictEqual (by shop.js)"),
        (JS_IN_THE_CALL, "assert.strictEqual (by shop.js)"),
        (JS_RUNNABLE, "Mocha.Runnable.prototype.run (by shop.js)"),
    ],
    ids=["once", "in-the-call", "runnable"],
)
def test_mocha_names_what_the_product_exchanged(tree: Path, product: str, expected: str) -> None:
    write(tree, {"shop.js": product, "shop.test.js": MOCHA_TEST})
    shell = f"{mocha()} shop.test.js"
    exchanged = what(tree, shell)[1]
    assert exchanged == [expected]


def test_mocha_tests_that_patch_a_lot_exchange_nothing(tree: Path) -> None:
    text = """
const assert = require("assert");
const log = console.log;
beforeEach(function () { this.slow(5); console.log = () => {}; });
afterEach(() => { console.log = log; });
describe("box", function () {
  this.timeout(500);
  it("adds", function () {
    this.run = 1;
    const kept = Date.now;
    Date.now = () => 1;
    assert.strictEqual(1 + 1, 2);
    Date.now = kept;
  });
});
"""
    write(tree, {"shop.test.js": text})
    assert what(tree, f"{mocha()} shop.test.js")[:2] == (0, [])


def mocha() -> Path:
    need("node")
    place = TOOLS / "test-tools/node_modules/.bin/mocha"
    need(str(place))
    return place


EVERY_NAME = """
import builtins, sys, types
import asyncio, collections.abc, decimal, email.message, enum, json, logging, pathlib, unittest
sys.path.insert(0, sys.argv[1])
import agentrunner_look as look

loaded = [one for one in list(sys.modules.values()) if type(one) is types.ModuleType]
modules = [one for one in loaded if look.is_of_python(one)]
one = look.Look(dict(vars(builtins)))
for module in modules:
    one.called |= set(vars(module))
    for value in list(vars(module).values()):
        one.called |= set(vars(value)) if isinstance(value, type) else set()
one.whole_library()
for module in modules:
    one._library(module.__name__, module, one.called)
print(len(modules) > 50, one.found)
"""


def test_pythons_own_library_is_its_own_whatever_names_a_test_uses() -> None:
    """Some of it is frozen into the interpreter, and says no file."""
    reporters = Path(__file__).parents[4] / "agentrunner/verification/results/reporters"
    done = subprocess.run(
        [sys.executable, "-c", EVERY_NAME, str(reporters)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True {}\n", done.stderr


INHERITS = """
import unittest

from shop import Logged, total


class T(Logged, unittest.TestCase):
    def test_a(self):
        self.log("a")
        self.assertEqual(total([2, 3]), 5)
"""
PYTEST_INHERITS = """
from shop import Logged, total


class TestT(Logged):
    def test_a(self):
        self.log("a")
        assert total([2, 3]) == 5
"""
LOGGED = """
import functools

import pytest


class Kind(type):
    pass


class Logged{kind}:
    def log(self, text):
        pass

    {member}


def total(numbers):
    return sum(numbers)
"""
PLAIN_MEMBERS = [
    "def clear(self):\n        pass",
    "lines = ()",
    "name = node = parent = scope = function = None",
    "@property\n    def level(self): return 0",
]


def inherited(tree: Path, test: str, tool: str, member: str, kind: str = "") -> list[str]:
    files = {"shop.py": LOGGED.format(member=member, kind=kind), "test_shop.py": test}
    write(tree, files)
    code, found, _ = what(tree, f"{sys.executable} {tool}")
    assert code == 0
    return found


@pytest.mark.series(2)
@pytest.mark.parametrize("tool", ["-m unittest test_shop", "-m pytest -q test_shop.py"])
@pytest.mark.parametrize(
    ("member", "name"),
    [
        ("def assertEqual(self, *given, **named):\n        pass", "assertEqual"),
        ("assertEqual = functools.partial(max, 1)", "assertEqual"),
        ("def setUp(self):\n        pass", "setUp"),
        ("def __init_subclass__(cls):\n        super().__init_subclass__()", "__init_subclass__"),
        ("failureException = ValueError", "failureException"),
    ],
)
def test_what_a_class_of_unittest_inherits_is_named(
    tree: Path, tool: str, member: str, name: str
) -> None:
    found = inherited(tree, INHERITS, tool, member)
    assert found == [f"shop.Logged.{name} of shop.py, which T of test_shop.py inherits"]


@pytest.mark.parametrize(
    ("member", "name"),
    [
        ("def setup_method(self, method=None):\n        pass", "setup_method"),
        ("@classmethod\n    def teardown_class(cls):\n        pass", "teardown_class"),
        ("@pytest.fixture(autouse=True)\n    def any_name(self):\n        pass", "any_name"),
        ("def __getattribute__(self, name):\n        return super().__getattribute__(name)",
         "__getattribute__"),
    ],
)  # fmt: skip
def test_what_a_class_of_pytest_inherits_is_named(tree: Path, member: str, name: str) -> None:
    found = inherited(tree, PYTEST_INHERITS, "-m pytest -q test_shop.py", member)
    assert found == [f"shop.Logged.{name} of shop.py, which TestT of test_shop.py inherits"]


@pytest.mark.parametrize("member", PLAIN_MEMBERS)
def test_what_only_tests_can_call_of_a_class_is_theirs(tree: Path, member: str) -> None:
    assert inherited(tree, INHERITS, "-m unittest test_shop", member) == []
    assert inherited(tree, PYTEST_INHERITS, "-m pytest -q test_shop.py", member) == []


def test_a_class_of_classes_is_named(tree: Path) -> None:
    found = inherited(tree, INHERITS, "-m unittest test_shop", "pass", "(metaclass=Kind)")
    assert found == ["shop.Kind of shop.py, which T of test_shop.py inherits"]


def facts(
    tree: Path, files: dict[str, str], tool: str = "-m unittest test_shop"
) -> list[Exchanged]:
    write(tree, files)
    seen = reported(tree, f"{sys.executable} {tool}")
    assert (seen.exit_code, seen.results is not None) == (0, True), seen.stdout + seen.stderr
    assert seen.results is not None
    return list(seen.results.exchanged)


def digests(tree: Path, *members: str, head: str = "") -> list[str]:
    found = []
    for member in members:
        shop = head + LOGGED.format(member=member, kind="")
        found += facts(tree, {"shop.py": shop, "test_shop.py": INHERITS})
    assert len(found) == len(members)
    return [one.digest for one in found]


def test_what_an_inherited_method_says_is_told_wherever_it_stands(tree: Path) -> None:
    members = ("setUp = lambda self: 1", "setUp = lambda self: 2")
    one, other = digests(tree, *members)
    assert one != other
    assert digests(tree, *members, head="# a line more\n") == [one, other]


def test_a_changed_docstring_is_no_other_method(tree: Path) -> None:
    text = 'def setUp(self):\n        """{}"""\n        self.a = "{}"'
    none, one, other, changed = digests(
        tree,
        'def setUp(self):\n        self.a = "once"',
        text.format("It.", "once"),
        text.format("It is.", "once"),
        text.format("It is.", "It is."),
    )
    assert none == one == other != changed


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ("assertEqual = functools.partial(max, 1)", "assertEqual = functools.partial(max, 2)"),
        ("def setUp(self, n=1):\n        pass", "def setUp(self, n=2):\n        pass"),
        ("def setUp(self, *, n=1):\n        pass", "def setUp(self, *, n=2):\n        pass"),
        ("setUp = (lambda n: lambda self: n)(1)", "setUp = (lambda n: lambda self: n)(2)"),
        ("failureException = ValueError", "failureException = KeyError"),
        ("longMessage = 1", "longMessage = 2"),
    ],
)
def test_a_value_that_is_another_is_seen(tree: Path, was: str, now: str) -> None:
    one, other = digests(tree, was, now)
    assert one != other


DISGUISES = [
    "__module__ = 'nowhere'\n    assertEqual = functools.partial(max, 1)",
    "__module__ = 'unittest.mock'\n    assertEqual = functools.partial(max, 1)",
    "__module__ = 'unittest.case'\n    assertEqual = functools.partial(max, 1)",
    "__module__ = 'test_shop'\n    assertEqual = functools.partial(max, 1)",
    "def assertEqual(self, *given):\n        pass\n"
    "    assertEqual.__code__ = assertEqual.__code__.replace(co_filename='conftest.py')",
    "def assertEqual(self, *given):\n        pass\n"
    "    assertEqual.__code__ = assertEqual.__code__.replace(co_filename=unittest.mock.__file__)",
    "exec('def assertEqual(self, *given): pass')",
    "__slots__ = ('assertEqual',)\n    def log(self, text):\n        self.assertEqual = print",
]


@pytest.mark.series(2)
@pytest.mark.parametrize("member", DISGUISES)
def test_what_says_that_it_is_from_elsewhere_is_named(tree: Path, member: str) -> None:
    shop = "import unittest.mock\n" + LOGGED.format(member=member, kind="")
    found = facts(tree, {"shop.py": shop, "test_shop.py": INHERITS, "conftest.py": ""})
    inherited = [one for one in found if one.member == "Logged.assertEqual"]
    assert [(one.heir, one.place) for one in inherited] == [("T", "test_shop.py")]
    assert "" in inherited[0].files or "shop.py" in inherited[0].files


def test_facts_are_fields_by_files_as_seen_from_where_the_command_began(tree: Path) -> None:
    shop = LOGGED.format(member="def setUp(self):\n        pass", kind="")
    away = INHERITS.replace("self.log", "__import__('os').chdir('/'); self.log")
    write(tree, {"sub/shop.py": shop, "sub/test_shop.py": away})
    (found,) = facts(tree, {}, f"-c 'pass' && cd sub && {sys.executable} -m unittest test_shop")
    assert (found.files, found.place) == (("sub/shop.py",), "sub/test_shop.py")
    assert (found.member, found.heir) == ("Logged.setUp", "T")


def product_as(head: str = "", tail: str = "") -> str:
    mixin = "assertEqual = functools.partial(max, 1)"
    return head + LOGGED.format(member=mixin, kind="") + tail


REPLACED_CLASS = """
import argparse
Logged.__module__, Logged.__qualname__ = "argparse", "Namespace"
argparse.Namespace = Logged
"""
IN_THE_NAME_OF_THE_TEST = """
import os
text = "class Logged:\\n    log = assertEqual = lambda *given: None\\n"
space = {"__name__": "test_shop"}
exec(compile(text, os.path.abspath("test_shop.py"), "exec"), space)
Logged = space["Logged"]
"""
OTHER_FILE = "import unittest\n__file__ = unittest.__file__\n"
MADE_MODULE = """
import sys, types, unittest
made = types.ModuleType("made")
made.__file__, made.Logged, Logged.__module__ = unittest.__file__, Logged, "made"
sys.modules["made"] = made
"""


@pytest.mark.parametrize(
    "shop",
    [
        product_as(tail=REPLACED_CLASS),
        product_as(tail=IN_THE_NAME_OF_THE_TEST),
        product_as(head=OTHER_FILE),
        product_as(tail=MADE_MODULE),
    ],
    ids=["replaced-class", "in-the-name-of-the-test", "other-file", "made-module"],
)
def test_a_class_whose_text_is_not_where_it_says_is_from_nobody_knows_where(
    tree: Path, shop: str
) -> None:
    found = facts(tree, {"shop.py": shop, "test_shop.py": INHERITS})
    assert ("",) in [one.files for one in found if one.member.endswith(".assertEqual")]


def test_a_folder_of_the_tree_that_is_called_like_one_of_packages_is_none(tree: Path) -> None:
    shop = "import sys\nsys.path.insert(0, 'a/site-packages')\nfrom mixin import *\n"
    test = INHERITS.replace("import unittest", "import functools\nimport unittest")
    files = {"shop.py": shop, "a/site-packages/mixin.py": product_as(), "test_shop.py": test}
    (found,) = facts(tree, files)
    assert found.files == ("a/site-packages/mixin.py",)


def test_what_stands_for_a_method_of_the_tests_own_text_is_named(tree: Path) -> None:
    shop = """
import functools, sys

def total(numbers):
    return 5

def replace():
    vars(sys.modules["test_shop"])["Own"].setUp = functools.partial(max, 1, 2)
"""
    test = """
import unittest

import shop


class Own:
    def setUp(self):
        self.fail("it is asked")


shop.replace()


class T(Own, unittest.TestCase):
    def test_a(self):
        self.assertEqual(shop.total([2, 3]), 5)
"""
    (found,) = facts(tree, {"shop.py": shop, "test_shop.py": test})
    assert (found.member, found.files) == ("Own.setUp", ("",))


def test_a_look_that_the_product_makes_fail_is_named(tree: Path) -> None:
    odd = """
class Odd:
    def __call__(self, *given): pass
    def __getattribute__(self, name): raise SystemError

Logged.assertEqual = Odd()
"""
    shop = LOGGED.format(member="pass", kind="") + odd
    found = facts(tree, {"shop.py": shop, "test_shop.py": INHERITS})
    assert "the look itself, which fails in test_case" in [one.what for one in found]


LIES = """
import functools, unittest

class Lying(type):
    def __getattribute__(cls, name):
        return (type, object) if name == "__mro__" else type.__getattribute__(cls, name)

class Kind(type, metaclass=Lying):
    def __getattribute__(cls, name):
        value = type.__getattribute__(cls, name)
        return {} if name == "__dict__" and cls is Logged else value

class Logged(metaclass=Kind):
    assertEqual = functools.partial(max, 1)

    def log(self, text):
        pass

def total(numbers):
    return 0
"""


def test_a_class_of_classes_does_not_answer_for_them(tree: Path) -> None:
    found = facts(tree, {"shop.py": LIES, "test_shop.py": INHERITS})
    assert {"Logged.assertEqual", "Kind"} <= {one.member for one in found}


@pytest.mark.parametrize("tool", ["-m unittest test_a", "-m pytest -q test_a.py"])
def test_what_tests_inherit_of_python_and_of_their_own_file_is_theirs(
    tree: Path, tool: str
) -> None:
    test = """
import enum, typing, unittest
from unittest import mock

X = typing.TypeVar("X")


class Base(typing.Generic[X]):
    def setUp(self):
        assert self, "pytest rewrites it"
        self.a = 1

    def __init_subclass__(cls, **named):
        super().__init_subclass__(**named)
        assert cls


class Slots:
    __slots__ = ()

    def __str__(self):
        return "slots"


class T(Base[int], Slots, unittest.IsolatedAsyncioTestCase):
    longMessage = False

    @mock.patch("os.getcwd")
    def setUp(self, patched):
        super().setUp()

    async def test_a(self):
        self.assertEqual(self.a, 1)


class TestPlain(Base[int]):
    def setup_method(self, method=None):
        assert self

    def test_b(self):
        assert True
"""
    assert facts(tree, {"test_a.py": test}, tool) == []
