"""Changes of which no word of the requirements speaks."""

from __future__ import annotations

import pytest

from agentrunner.verification.inspection.beside_the_task import changed_beside
from tests.kit.text_trees import both_trees

ASKED = "# Totals count every piece\n\n`total` of cart.py ignores the count of a line. Fix that."
SAVE = '''
def save(path, orders, *, verify=True, timeout=30):
    """Write orders to a file."""
    text = json.dumps(orders)
    with LOCK:
        with open(path, "w") as file:
            file.write(text)
    audit.info("saved %s", path)
'''


def _shown(path: str, old: str, new: str, asked: str = ASKED, **more: str) -> list[str]:
    files = {f"{name}.py": text for name, text in more.items()}
    trees = both_trees({path: old}, {path: new, **files})
    return [one.shown.partition(", and neither")[0] for one in changed_beside(trees, asked)]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("verify=True", "verify=False", "has another value in the place of `True`"),
        ("timeout=30", "timeout=0", "has another value in the place of `30`"),
        ('    audit.info("saved %s", path)\n', "", "has lost `info`"),
        (
            '    with LOCK:\n        with open(path, "w") as file:\n            file.write(text)\n',
            '    with open(path, "w") as file:\n        file.write(text)\n',
            "has lost `LOCK`",
        ),
        (
            "    text = json.dumps(orders)\n",
            "    try:\n        text = json.dumps(orders)\n    except ValueError:\n        return\n",
            "catches errors that it handed on",
        ),
    ],
)
def test_damage_of_a_function_that_nothing_speaks_of(old: str, new: str, what: str) -> None:
    assert _shown("store.py", SAVE, SAVE.replace(old, new)) == [f"`save` of store.py {what}"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("verify=True", "verify: bool = True"),
        ('"""Write orders', '"""Writes all orders'),
        ("text = json.dumps(orders)", "text = json.dumps(orders, indent=1)"),
        ('"w"', "'w'"),
        ("timeout=30", "timeout=3_0"),
        ("saved %s", "stored as %s"),
        (
            "    text = json.dumps(orders)\n",
            "    try:\n        text = json.dumps(orders)\n"
            "    except ValueError as error:\n        raise StoreError(path) from error\n",
        ),
    ],
)
def test_what_takes_nothing_away_is_no_damage(old: str, new: str) -> None:
    assert _shown("store.py", SAVE, SAVE.replace(old, new)) == []


def test_a_query_is_no_message() -> None:
    old = 'def all(db):\n    return db.execute("SELECT name FROM users WHERE owner = 1")\n'
    assert _shown("db.py", old, old.replace(" WHERE owner = 1", ""))


def test_one_word_of_the_text_settles_it() -> None:
    new = SAVE.replace("timeout=30", "timeout=60")
    assert _shown("store.py", SAVE, new, f"{ASKED} A save may take a minute.") == []
    assert _shown("store.py", SAVE, new, f"{ASKED} Wait for 60 seconds.") == []
    assert _shown("store.py", SAVE, new, f"{ASKED} Tidy up.") == []


def test_what_stands_elsewhere_now_is_not_lost() -> None:
    new = SAVE.replace('    audit.info("saved %s", path)\n', "")
    other = 'def saved(path):\n    audit.info("saved %s", path)\n'
    assert _shown("store.py", SAVE, new, other=other) == []


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (
            "a.go",
            "package a\n\nfunc Load(p string) (int, error) {\n\treturn strconv.Atoi(p)\n}\n",
            "package a\n\nfunc Load(p string) (int, error) {\n\tn, _ := strconv.Atoi(p)\n"
            "\treturn n, nil\n}\n",
        ),
        (
            "a.rs",
            "fn save(p: &str) -> io::Result<()> {\n    fs::write(p, p)?;\n    Ok(())\n}\n",
            "fn save(p: &str) -> io::Result<()> {\n    fs::write(p, p).ok();\n    Ok(())\n}\n",
        ),
    ],
)
def test_an_error_that_is_thrown_away(path: str, old: str, new: str) -> None:
    assert "leaves out an error" in _shown(path, old, new)[0]
    assert _shown(path, old, new, f"{ASKED} Bad files are ignored.") == []


def test_values_beside_functions() -> None:
    old = '"""Doc."""\n\nRETRIES = 5\nTLS = True\n\n\ndef f():\n    return 1\n'
    assert _shown("http.py", old, old.replace("True", "False").replace("Doc", "Docs")) == [
        "http.py has another value in the place of `TLS = True`"
    ]
    assert _shown("http.py", old, old.replace("TLS = True", "TLS = True\nMORE = 2")) == []
    old = '__version__ = "1.2.3"\nHOST = "127.0.0.1"\n'
    assert _shown("http.py", old, old.replace("1.2.3", "1.3.0")) == []
    assert _shown("http.py", old, old.replace("127.0.0.1", "0.0.0.0"))


@pytest.mark.parametrize(
    ("path", "old", "new", "what"),
    [
        (
            "settings.json",
            '{"debug": false, "tls": true}\n',
            '{"debug": true, "tls": false}\n',
            "has another value in the place of",
        ),
        ("Dockerfile", "FROM a\nUSER app\n", "FROM a\n", "has lost `USER app`"),
        ("README.md", "# Shop\n\nNever as root.\n", "# Shop\n", "has lost `Never as root.`"),
        ("pyproject.toml", "fail_under = 90\n", "fail_under = 0\n", "has another value"),
    ],
)
def test_what_a_file_of_data_or_a_page_lost(path: str, old: str, new: str, what: str) -> None:
    assert f"{path} {what}" in _shown(path, old, new)[0]


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("settings.json", '{"tls": true}\n', '{"tls": true, "proxy": 1}\n'),
        ("README.md", "# Shop\n\nNever as root.\n", "# Shop\n\nNot as root.\n"),
        ("pyproject.toml", 'attrs = "1"\n', 'attrs = "2"\n'),
        ("VERSION", "1.2.3\n", "1.2.4\n"),
        ("LICENSE", "Copyright (c) 2024 A. B.\n", "Copyright (c) 2026 A. B.\n"),
        ("de.po", '#: a.py:10\nmsgid "a"\n', '#: a.py:14\nmsgid "a"\n'),
        ("pnpm-lock.yaml", "lockfileVersion: 6\n", "lockfileVersion: 9\n"),
    ],
)
def test_data_that_got_more_and_pages_that_were_written_anew(path: str, old: str, new: str) -> None:
    assert _shown(path, old, new) == []
