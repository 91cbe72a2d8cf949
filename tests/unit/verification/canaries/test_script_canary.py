"""Programs that were made to fail: each fails wherever it ends, and nowhere before."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agentrunner.verification.canaries.script_canary import (
    FAIL,
    changed_texts,
)
from tests.kit.missing import missing

PROGRAMS = {
    "check.sh": "set -e\necho ran\nif true; then exit 0; fi\necho more\n",
    "end.bash": "echo ran\n",
    "own_trap.sh": "trap 'true' EXIT\necho ran\nif true\nthen\n  exit 0\nfi\n",
    "in_middle": "#!/bin/sh\necho ran\n[ -n x ] && exit 0\n",
    "check.py": "import sys\nprint('ran')\nif True:\n    sys.exit(0)\n",
    "end.py": "print('ran')",
    "raises.py": "print('ran')\nraise SystemExit\n",
    "tool": "#!/usr/bin/env python3\nprint('ran')\nexit()\n",
    "check.js": "console.log('ran');\nprocess.exit(0);\n",
    "end.cjs": "console.log('ran');\n",
    "node_tool": "#!/usr/bin/env node\nconsole.log('ran');\n",
    "check.pl": "print 'ran';\nexit 0 if 1;\n__END__\nexit\n",
    "end.pl": "print 'ran';\n",
    "check.rb": "at_exit { print '' }\nprint 'ran'\nexit(1 == 1)\n",
    "end.rb": "print 'ran'\nexit 1 unless true\n",
    "check.php": "<?php echo 'ran';\n$bad = 0;\nexit($bad > 0 ? 1 : 0);\n",
    "end.php": "<?php\necho 'ran';\n",
    "check.c": (
        "#include <stdio.h>\n#include <stdlib.h>\n"
        'int zero(void) { return 0; }\nint main(void) {\n  printf("ran } \\n");\n'
        "  if (zero() == 0) return 0;\n  exit(0);\n}\n"
    ),
    "end.cpp": '#include <cstdio>\nint main(int n, char **v) {\n  if (n) { puts("ran"); }\n}\n',
}
ALSO = {".pl": "perl", ".rb": "ruby", ".php": "php"}
RUNS = ALSO | {".sh": "sh", ".bash": "bash", ".py": "python3", ".js": "node", ".cjs": "node"}


def run(path: Path) -> "subprocess.CompletedProcess[str]":
    """Run a program by its first line or its suffix; C is compiled first."""
    command = [str(path)]
    if path.suffix in (".c", ".cpp"):
        compiler = {".c": "cc", ".cpp": "c++"}[path.suffix]
        if shutil.which(compiler) is None:
            missing(f"no {compiler}")
        made = path.with_suffix(".out")
        subprocess.run([compiler, "-o", str(made), str(path)], check=True, capture_output=True)
        command = [str(made)]
    elif path.suffix in RUNS:
        command = [RUNS[path.suffix], str(path)]
    path.chmod(0o700)
    program = command[0] if path.suffix else path.read_text().split("\n")[0].split()[-1]
    if shutil.which(program.removeprefix("#!")) is None:
        missing(f"no {program}")
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_runs_as_it_did_and_fails_at_its_end(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(PROGRAMS[name])
    assert run(path).returncode == 0
    made = changed_texts([name], {name: path.read_bytes()}.get)
    path.write_bytes(made[name])
    ran = run(path)
    assert ran.returncode == FAIL
    assert ran.stdout.startswith("ran")


def test_what_is_not_known_or_not_there_is_left_out() -> None:
    files = {"a.awk": b"exit 0\n", "lib.c": b"int f(void) { return 0; }\n", "data": b"exit 0\n"}
    assert changed_texts([*files, "gone.sh"], files.get) == {}


def test_c_that_does_not_end_is_left_as_it_is() -> None:
    assert changed_texts(["a.c"], {"a.c": b"int main(void) { return 0;"}.get) == {}


def test_bytes_that_are_no_text_survive() -> None:
    content = b"# \xff\xfe\necho ran\n"
    made = changed_texts(["a.sh"], {"a.sh": content}.get)
    assert made["a.sh"].count(content) == 1


def test_tests_of_a_kit_die_as_their_program_starts(tmp_path: Path) -> None:
    if shutil.which("cc") is None or shutil.which("c++") is None:
        missing("no cc or c++")
    kit = tmp_path / "kit.c"
    kit.write_text("extern int all(void);\nint main(void) { return all(); }\n")
    source = b"#define TEST(x) int x(void)\nTEST(all)\n{ return 0; }\n"
    made = changed_texts(["a.c"], {"a.c": source}.get)["a.c"]
    for text, passes in ((source, True), (made, False)):
        (tmp_path / "a.c").write_bytes(text)
        subprocess.run(["cc", "-o", "a", "a.c", "kit.c"], cwd=tmp_path, check=True)
        done = subprocess.run(["./a"], cwd=tmp_path, check=False, capture_output=True)
        assert (done.returncode == 0) is passes
    in_cc = changed_texts(["b.cc"], {"b.cc": b"TEST(A, b) {}"}.get)
    assert in_cc["b.cc"].startswith(b"TEST")
