"""Programs in the text of a command, and what they are as files."""

import pytest

from agentrunner.verification.inputs.inline_programs import written_out


@pytest.mark.parametrize(
    ("shell", "made", "files"),
    [
        (
            'python3 -c "import shop; assert shop.total() == 1"',
            "python3 ./x0.py",
            {"src/x0.py": "import shop\nassert shop.total() == 1"},
        ),
        (
            "cd sub && /usr/bin/python3.11 -Bc 'import shop' && ls",
            "cd sub && /usr/bin/python3.11 -B ./x0.py && ls",
            {"src/sub/x0.py": "import shop"},
        ),
        (
            'node -e "if (require(\\"./a\\") !== 1) process.exit(1)"; php -r \'exit(1);\'',
            "node ./x0.cjs; php ./x1.php",
            {
                "src/x0.cjs": 'if (require("./a") !== 1) process.exit(1)',
                "src/x1.php": "<?php exit(1);",
            },
        ),
        (
            'PY=python3; "$PY" -c "import shop"; ${P:-perl} -e "exit 1"',
            'PY=python3; "$PY" ./x0.py; ${P:-perl} ./x1.pl',
            {"src/x0.py": "import shop", "src/x1.pl": "exit 1"},
        ),
        (
            "node --input-type=module -e 'import {a} from \"./a.js\"'",
            "node ./x0.mjs",
            {"src/x0.mjs": 'import {a} from "./a.js"'},
        ),
        (
            "env A=b python3 -X dev -c 'import shop'; node -r ./x.js -p 'a === 1'",
            "env A=b python3 -X dev ./x0.py; node -r ./x.js ./x1.cjs",
            {"src/x0.py": "import shop", "src/x1.cjs": "a === 1"},
        ),
        (
            "bash -ec 'a; b \"c; d\"; case x in y) z;; esac'",
            "bash -e ./x0.sh",
            {"src/x0.sh": 'a\n b "c; d"\n case x in y) z;; esac'},
        ),
        (
            "python3 - <<'END'\nimport shop\nEND\nruby -Ilib -e 'exit 1'\n",
            "python3 ./x0.py\nruby -Ilib ./x1.rb\n",
            {"src/x0.py": "import shop", "src/x1.rb": "exit 1"},
        ),
    ],
)
def test_a_program_becomes_a_file(shell: str, made: str, files: dict[str, str]) -> None:
    found = written_out(shell, "src", "x")
    assert found is not None and found.shell == made
    assert {path: text.decode() for path, text in found.files.items()} == files
    again = written_out(found.put_back(found.files), "src", "x")
    assert again is not None and (again.shell, again.files) == (found.shell, found.files)


@pytest.mark.parametrize(
    "shell",
    [
        "python3 -m pytest -q",
        "node -r './setup.js' app.js",
        "grep -r x -e 'foo'",
        'python3 -c "print($HOME)"',
        "python3 -c 'assert'\"$X\"",
        "test \"$(python3 -c 'print(1)')\" = 1",
        "python3 -c 'print(1)' | grep 1",
        "python3 -c 'assert 1",
        "python3 - <<END\nimport shop\n",
    ],
)
def test_what_the_shell_changes_or_only_reads_is_left_alone(shell: str) -> None:
    found = written_out(shell, ".", "x")
    assert found is None or found.unread
