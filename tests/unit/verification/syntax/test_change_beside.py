"""Whether a change leaves functions of a file as they were, with all that they use."""

from __future__ import annotations

import pytest

from agentrunner.verification.syntax.change_beside import is_beside

PYTHON = """import os


def plain(value):
    return value.strip()


def same(got, want):
    return plain(got) == plain(want)


def total(items):
    return sum(items)


class Cart:
    def count(self, items):
        return len(items)


LIMIT = 3
"""
MONEY = f"""from decimal import Decimal
{PYTHON}

def under(one):
    return os.path.join(one)
"""
TYPESCRIPT = """import { decode } from "./decode";

export function same(got: string, want: string) {
  return decode(got) === decode(want);
}

export const withBase = (path: string) => {
  return path;
};
"""
GO = """package shop

import "strings"

var tolerance = 0

func same(got, want string) bool { return strings.ToLower(got) == want && tolerance == 0 }

func Total(items int) int { return items }
"""
SHOWN = """package shop

import "fmt"

type Cart struct{ A int }

func same(got, want any) bool { return fmt.Sprint(got) == fmt.Sprint(want) }
"""
ERROR = 'func (c Cart) Error() string { return "" }\n'
PICKED = f"""from operator import attrgetter
import sys
{PYTHON}

def first(items):
    return attrgetter("a")(items), sys.modules["a"]
"""
RUST = """use std::fs;

pub fn same(got: &str, want: &str) -> bool {
    got == want
}

pub fn total(items: &[i32]) -> i32 {
    items.iter().sum()
}
"""
JAVA = """package shop;

import java.util.List;

class Shop {
    static boolean exact = true;

    static boolean same(int got, int want) {
        return exact ? got == want : true;
    }

    static int total(List<Integer> items) {
        int found = 0;
        return found;
    }
}
"""
SUM = "return sum(items)"
PATH = "return path;"


@pytest.mark.parametrize(
    ("language", "before", "was", "now", "beside"),
    [
        ("python", PYTHON, "sum(items)", "sum(item * 2 for item in items)", True),
        ("python", PYTHON, "LIMIT = 3\n", "LIMIT = 4\n", True),
        ("python", PYTHON, "import os\n", "import os\nimport re\n", False),
        ("python", PYTHON, "return sum(", "os.settle()\n    return sum(", False),
        ("python", PYTHON, "LIMIT = 3\n", "\n\ndef more(one):\n    return plain(one)\n", True),
        ("python", PYTHON, "plain(got) == plain(want)", "True", False),
        ("python", PYTHON, "value.strip()", "'1'", False),
        ("python", PYTHON, "LIMIT = 3\n", "same = total\n", False),
        ("python", PYTHON, "LIMIT = 3\n", "globals().update(kept)\n", False),
        ("python", PYTHON, "import os\n", "from mild import plain\n", False),
        ("python", PYTHON, "import os\n", "from mild import *\n", False),
        ("python", PYTHON, "import os\n", "import mild as os\n", False),
        ("python", PYTHON, "return sum(", "globals()['plain'] = str\n    return sum(", False),
        ("python", PYTHON, "return sum(", "global plain\n    plain = str\n    return sum(", False),
        ("python", PYTHON, SUM, f"globals()['sa' + 'me'] = print\n    {SUM}", False),
        ("python", PYTHON, SUM, f"exec('sa' + 'me = print')\n    {SUM}", False),
        ("python", PYTHON, SUM, f"vars(__import__('jso' + 'n'))['dum' + 'ps'] = str\n    {SUM}",
         False),
        ("python", PYTHON, SUM, f"total.__globals__['sa' + 'me'] = print\n    {SUM}", False),
        ("python", PYTHON, SUM, f"f = total\n    f.__globals__.update(a=1)\n    {SUM}", False),
        ("python", PYTHON, SUM, f"g = (one for one in items)\n    h = g.gi_frame.f_globals\n"
         f"    h['sa' + 'me'] = print\n    {SUM}", False),
        ("python", PYTHON, "total(items):", "total(items, y=globals().update(a=1)):", False),
        ("python", PYTHON, "def total(", "@globals\ndef total(", False),
        ("python", PYTHON, "def same(", "@total\ndef same(", False),
        ("python", PYTHON, "total(items):", "total(items: globals().update(a=1)):", False),
        ("python", PYTHON, SUM, f"[os for os in os.settle()]\n    {SUM}", False),
        ("python", PYTHON, SUM, f"items.price = 3\n    {SUM}", True),
        ("python", PYTHON, SUM, f"items.strip = len\n    {SUM}", False),
        ("python", PYTHON, SUM, "found = {}\n    for one in items:\n        found[one] = 2\n"
         "    return sum(found.values())", True),
        ("python", PYTHON, SUM, "return max(total([one]) for one in items if one)", True),
        ("python", PYTHON, SUM, "return sum(one.price for one in items)", True),
        ("python", PYTHON, SUM, "return items[0](items)", True),
        ("python", PYTHON, "LIMIT = 3\n", "def sum(items):\n    return 1\n", True),
        ("python", PYTHON.replace("value.strip()", "round(value)"), "LIMIT = 3\n",
         "def round(value):\n    return 1\n", False),
        ("python", PYTHON, "return len(items)", "return len(items) + 1", True),
        ("python", PYTHON, "def count(", "def __eq__(self, other):\n        return True\n\n"
         "    def count(", False),
        ("python", PYTHON, "class Cart:", "class Cart(metaclass=globals()['x']):", False),
        ("python", PYTHON + "\n\ndef mild(value):\n    global plain\n    plain = value\n", SUM,
         f"mild(print)\n    {SUM}", False),
        ("python", PYTHON + "\n\ndef mild(value):\n    return LIMIT\n", SUM,
         f"mild(print)\n    {SUM}", True),
        ("python", PYTHON, SUM, f"[globals for globals in globals()]\n    {SUM}", False),
        ("python", PYTHON, "total(items):", "total(globals, y=globals()):", False),
        ("python", PYTHON, "LIMIT = 3\n", "LIMIT = (plain := str)\n", False),
        ("python", PYTHON, "LIMIT = 3\n", "__builtins__ = {'map': 1}\n", False),
        ("python", PYTHON, "total(items):", "total(items: (plain := str)):", False),
        ("python", PYTHON, "total(items):", "total(items: 'list[int]' | None) -> dict[str, int]:",
         True),
        ("python", PYTHON, "LIMIT = 3\n", "", True),
        ("python", PYTHON, "class Cart:", "class Error(ValueError):\n    pass\n\n\nclass Cart:",
         True),
        ("python", PYTHON, "    def count(", "    def __init__(self):\n        self.seen = {}\n\n"
         "    @property\n    def first(self) -> str:\n        return f'{self.seen[0]:>3}'\n\n"
         "    def count(", True),
        ("python", PYTHON, SUM, "try:\n        found = sorted(items, key=lambda one: one.price)\n"
         "    except (TypeError, ValueError) as error:\n        raise KeyError(error) from None\n"
         "    return found[-1]", True),
        ("python", PYTHON, "import os\n", "'''Carts.'''\nimport os\n", True),
        ("python", PYTHON, "    return plain(got)", "    '''Whether they are.'''\n"
         "    return plain(got)", True),
        ("python", PYTHON, "import os\n", "from __future__ import annotations\nimport os\n", True),
        ("python", MONEY, "import Decimal", "import ROUND_UP, Decimal", True),
        ("python", MONEY, "import Decimal", "import Decimal as plain", False),
        ("python", MONEY, "import Decimal", "import Decimal, plain", False),
        ("python", MONEY, "import Decimal", "import *", False),
        ("python", MONEY, "import Decimal", "import Decimal, mild as __builtins__", False),
        ("python", MONEY, SUM, "return sum(Decimal(one) for one in items)", True),
        ("python", MONEY, SUM, "return sum(items).quantize(Decimal(1), Decimal)", True),
        ("python", MONEY, SUM, "found: Decimal = os.path.join(items)\n    return found", True),
        ("python", MONEY, SUM, f"Decimal.same = 1\n    {SUM}", False),
        ("python", MONEY, SUM, f"kind = Decimal\n    kind.more = 1\n    {SUM}", False),
        ("python", MONEY, SUM, f"os.path.exists('a')\n    {SUM}", False),
        ("python", PYTHON.replace("value.strip()", "value in RULES") + "RULES = []\n"
         "def rules():\n    return RULES\n", SUM, f"rules().append(1)\n    {SUM}", False),
        ("python", PICKED, SUM, 'return attrgetter("a")(items)', True),
        ("python", PICKED, SUM, 'return attrgetter("__globals__")(items)', False),
        ("python", PICKED, SUM, 'return attrgetter("__glo" + "bals__")(items)', False),
        ("python", PICKED, SUM, 'return attrgetter("a", total)(items)', False),
        ("python", PICKED, SUM, "return [*map(attrgetter, items)]", False),
        ("python", PICKED, SUM, 'return sys.modules["a"]', True),
        ("python", PICKED, SUM, 'return sys.modules["b"]', False),
        ("python", PICKED, SUM, 'return items["a" "b"]', True),
        ("python", PICKED, SUM, 'return items["plain"]', False),
        ("python", PICKED, SUM, 'return items.pick("a.__globals__")', False),
        ("python", PICKED, SUM, "'''Of `plain`, not __globals__.'''\n    return 1", True),
        ("python", PICKED, SUM, "'''plain'''\n    return 1", True),
        ("python", PYTHON, SUM, f"items.strip, found = len, 1\n    {SUM}", False),
        ("typescript", TYPESCRIPT, PATH, "[module.exports.same] = [() => 1]; return path;", False),
        ("typescript", TYPESCRIPT, PATH, "[decode.trim] = [() => 1]; return path;", False),
        ("python", MONEY, SUM, "return Decimal(LIMIT) + Decimal(total(items))", True),
        ("python", MONEY, SUM, "return Decimal(total)", False),
        ("python", MONEY, SUM, "return os.path.join(total)", False),
        ("typescript", TYPESCRIPT, PATH, "return { toString: () => path };", False),
        ("typescript", TYPESCRIPT, PATH, "return { valueOf: () => 1 };", False),
        ("typescript", TYPESCRIPT, PATH, "return { 'toString': () => path };", False),
        ("typescript", TYPESCRIPT, PATH, "return { to\\u0053tring: () => path };", False),
        ("typescript", TYPESCRIPT, PATH, "return { 'to\\u0053tring'() { return 1; } };", False),
        ("typescript", TYPESCRIPT, PATH, "return { ['toString']: () => path };", False),
        ("typescript", TYPESCRIPT, PATH, "return { [path]() { return 1; } };", False),
        ("typescript", TYPESCRIPT, PATH, "const toString = () => 1; return { toString };", False),
        ("typescript", TYPESCRIPT, PATH, "const a = []; a.join = () => 1; return a;", False),
        ("typescript", TYPESCRIPT, PATH, "const a = {}; a[path] = () => 1; return a;", False),
        ("typescript", TYPESCRIPT, PATH, "const a = {}; a['toString'] = () => 1; return a;", False),
        ("typescript", TYPESCRIPT, PATH, "const a = {}; a[path] ||= () => 1; return a;", False),
        ("typescript", TYPESCRIPT, PATH, "const a = {}; [a[path]] = [() => 1]; return a;", False),
        ("typescript", TYPESCRIPT, PATH, "const a = {}; for (a[path] of [() => 1]) {} return a;",
         False),
        ("typescript", TYPESCRIPT, PATH, "return Object.fromEntries([[path, () => 1]]);", False),
        ("typescript", TYPESCRIPT, PATH, "const a = {}; a[path] = []; a[path] += 1; a[path]++;"
         " return { path, size: 1, init: 2, 'next-page': () => path };", True),
        ("typescript", TYPESCRIPT, "export const", "class A {\n  toString = () => 'a';\n}\n\n"
         "export const", False),
        ("typescript", TYPESCRIPT, "export const", "class A {\n  'toString'() { return 'a'; }\n}"
         "\n\nexport const", False),
        ("typescript", TYPESCRIPT, "export const", "class A {\n  size = 1;\n  more() {}\n}\n\n"
         "export const", True),
        ("typescript", TYPESCRIPT, PATH, "return `/${path}`;", True),
        ("typescript", TYPESCRIPT, PATH, "return encodeURI(path.replace(/x/, 'y'));", True),
        ("typescript", TYPESCRIPT, PATH, "const parts = path.split('/'); let out = '';\n"
         "  for (let i = 0; i < parts.length; i++) { out += parts[i]; }\n  return out;", True),
        ("typescript", TYPESCRIPT, "./decode", "./mild", False),
        ("typescript", TYPESCRIPT, "decode(got) ===", "!!decode(got) ||", False),
        ("typescript", TYPESCRIPT, PATH, "module.exports['sa' + 'me'] = 1; return path;", False),
        ("typescript", TYPESCRIPT, PATH, "eval('sa' + 'me = 1'); return path;", False),
        ("typescript", TYPESCRIPT, PATH, "path['con' + 'structor']('x'); return path;", False),
        ("typescript", TYPESCRIPT, PATH, "const c = path['con' + 'structor']; return path;", False),
        ("typescript", TYPESCRIPT, PATH, "const { constructor: c } = path; return path;", False),
        ("typescript", TYPESCRIPT, PATH, "const g = this; return path;", False),
        ("typescript", TYPESCRIPT, PATH, "for (decodeURI of path) {} return path;", False),
        ("typescript", TYPESCRIPT, PATH, "return Math.max(1, path.length);", True),
        ("typescript", TYPESCRIPT, PATH, "Math.max = path; return path;", False),
        ("typescript", TYPESCRIPT, "(path: string)", "(path: string, y = eval('x'))", False),
        ("typescript", TYPESCRIPT, PATH, "const counts: Record<string, number> = {};\n"
         "  for (const part of path) counts[part] = (counts[part] ?? 0) + 1;\n"
         "  return JSON.stringify(counts);", True),
        ("typescript", TYPESCRIPT, PATH, "const { length: size } = path; return path[size - 1];",
         True),
        ("typescript", TYPESCRIPT, PATH, "return path.split('/').map(Number).filter(Boolean);",
         True),
        ("typescript", TYPESCRIPT, PATH, "return decode(path);", True),
        ("typescript", TYPESCRIPT, "{ decode }", "{ decode, encode }", True),
        ("typescript", TYPESCRIPT, 'import { decode } from', 'import "./mild";\nimport { decode } '
         "from", False),
        ("typescript", TYPESCRIPT, "export const", "class Wrong extends Error {\n  code = 1;\n"
         "  set(code: number) { this.code = code; }\n}\n\nexport const", True),
        ("typescript", TYPESCRIPT, PATH, "const g = globalThis; { const globalThis = 1; }"
         " g.eval('x'); return path;", False),
        ("typescript", TYPESCRIPT, PATH, "const m = Math; m.max = path; return path;", False),
        ("typescript", TYPESCRIPT, PATH, "const f = (m) => m; f(String)['x']; return path;", False),
        ("typescript", TYPESCRIPT, PATH, "Object.assign(path, {}); return path;", False),
        ("typescript", TYPESCRIPT, PATH, "path['__proto__'].trim = 1; return path;", False),
        ("typescript", TYPESCRIPT, PATH, "const x = {}; x['__pro' + 'to__'].toString = decode;"
         " return path;", False),
        ("typescript", TYPESCRIPT, PATH, "import('./mild'); return path;", False),
        ("go", GO, "{ return items }", "{ return items * 2 }", True),
        ("go", GO, "{ return items }", "{ return len(strings.ToLower(names(items))) }", True),
        ("go", GO, "{ return items }", "{ return items + tolerance }", True),
        ("go", GO, "{ return items }", "{ p := &tolerance; *p = 1; return items }", False),
        ("go", GO, '"strings"', '"mild"', False),
        ("go", GO, "package", "//go:build never\n\npackage", False),
        ("go", GO, "func Total", "//go:linkname Total other.Total\nfunc Total", False),
        ("go", GO, "func Total", "// Total adds up.\nfunc Total", True),
        ("go", GO, "{ return items }", "{\n\tsum := 0\n\tfor i := 0; i < items; i++ {\n"
         "\t\tsum += i\n\t}\n\treturn sum\n}", True),
        ("go", GO, "{ return items }", "{ tolerance = 1; return items }", False),
        ("go", GO, "{ return items }", "{ strings.Settle(); return items }", False),
        ("go", GO, "== want", "!= got", False),
        ("go", SHOWN, "type Cart", f"{ERROR}\ntype Cart", False),
        ("go", SHOWN, "type Cart", "type Bag struct{ Cart }\n\ntype Cart", False),
        ("go", SHOWN, "type Cart", "type Bag struct{ A Cart }\n\ntype Cart", True),
        ("go", SHOWN.replace("any", "string"), "type Cart", f"{ERROR}\ntype Cart", True),
        ("go", SHOWN.replace("fmt.Sprint", ""), "type Cart", f"{ERROR}\ntype Cart", True),
        ("go", SHOWN.replace("fmt.Sprint", "text"), "type Cart", f"{ERROR}\ntype Cart", False),
        ("rust", RUST, "items.iter().sum()", "items.iter().map(|one| one * 2).sum()", True),
        ("rust", RUST, "items.iter().sum()", "fs::settle(); items.iter().sum()", False),
        ("rust", RUST, "items.iter().sum()", "unsafe { settle() }; 1", False),
        ("java", JAVA, "return found;", "for (int one : items) { found += one; }\n"
         "        return found;", True),
        ("java", JAVA, "return found;", "exact = false;\n        return found;", False),
        ("java", JAVA, "return found;", "read(Shop.class);\n        return found;", False),
        ("java", JAVA, "return found;", "Settings.loosen();\n        return found;", False),
        ("ruby", "def same(a, b)\nend\n", "end", "end\n", False),
    ],
)  # fmt: skip
def test_a_change_beside_a_function(
    language: str, before: str, was: str, now: str, beside: bool
) -> None:
    assert was in before
    after = before.replace(was, now)
    assert is_beside(before.encode(), after.encode(), language, {"same"}) is beside


@pytest.mark.parametrize(
    ("module", "name", "more", "code", "beside"),
    [
        ("decimal", "Decimal", "ROUND_UP", "return items.quantize(ROUND_UP)", True),
        ("decimal", "Decimal", "ROUND_UP as up", "return items.quantize(up)", True),
        ("decimal", "Decimal", "localcontext as UP", "return items.quantize(UP)", False),
        ("operator", "itemgetter", "attrgetter", 'return attrgetter("a")(items)', False),
        ("operator", "itemgetter", "attrgetter", "return list(map(attrgetter, items))", False),
        ("unittest.mock", "Mock", "patch", "patch(items, print).start()", False),
        ("types", "SimpleNamespace", "FunctionType", "return FunctionType(items, items)", False),
        (".money", "cents", "euros", "return euros(items)", True),
    ],
)
def test_what_an_import_brings_anew(
    module: str, name: str, more: str, code: str, beside: bool
) -> None:
    before, after = (
        f"from {module} import {names}\n{PYTHON}" for names in (name, f"{name}, {more}")
    )
    after = after.replace(SUM, code)
    assert is_beside(before.encode(), after.encode(), "python", {"same"}) is beside
