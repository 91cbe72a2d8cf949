"""prove, through instrument, run and read."""

from pathlib import Path

import pytest

from tests.kit.files import write
from tests.kit.reporting import narrowed, need, plain, reported

SUITE = {
    "t/good.t": "use Test::More tests => 4;\nok(1, 'adds');\nok(1);\nsubtest 'inner' => sub {\n"
    "  plan tests => 2; ok(1, 'one'); ok(1, 'two');\n};\n"
    "SKIP: { skip 'later', 1; ok(1) };\n",
    "t/bad.t": "use Test::More;\nis(1, 2, 'sums');\nTODO: { local $TODO = 'known'; ok(0, 'old') }\n"
    "ok(1, 'same'); ok(1, 'same');\ndone_testing;\n",
    "t/cut.t": "use Test::More tests => 3;\nok(1, 'first');\nexit 0;\n",
    "t/shell.t": "#!/bin/sh\necho 1..2\necho ok 1 - 'a # b'\necho not ok 2\n",
}
EXPECTED = {
    ("t/good.t > adds", "passed"),
    ("t/good.t > 2", "passed"),
    ("t/good.t > inner > one", "passed"),
    ("t/good.t > inner > two", "passed"),
    ("t/good.t > 4", "skipped"),
    ("t/bad.t > sums", "failed"),
    ("t/bad.t > old", "xfailed"),
    ("t/bad.t > same", "passed"),
    ("t/cut.t > first", "passed"),
    ("t/cut.t", "error"),
    ("t/shell.t > a # b", "passed"),
    ("t/shell.t > 2", "failed"),
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    need("prove")
    (tmp_path / "tree").mkdir()
    return tmp_path / "tree"


def test_every_outcome_by_name(tree: Path) -> None:
    write(tree, SUITE)
    seen = reported(tree, "prove t/")
    assert seen.exit_code == plain(tree, "prove t/").returncode == 1
    assert set(seen.outcomes) == EXPECTED
    assert seen.results is not None and not seen.results.complete and not seen.results.weak
    assert seen.results.names["t/bad.t > same"] == 2
    seen = reported(tree, "prove t/good.t")
    assert seen.results is not None and seen.results.complete
    weak = reported(tree, "prove t/", means=1)
    assert weak.results is not None and weak.results.weak
    assert set(weak.outcomes) >= EXPECTED - {("t/cut.t", "error")}


def test_it_can_be_narrowed_to_a_program(tree: Path) -> None:
    write(tree, SUITE)
    assert {
        name.split(" > ")[0]
        for name, _ in narrowed(tree, "prove -j2 t/", "t/good.t > adds").outcomes
    } == {"t/good.t"}


def test_a_failure_below_a_title_makes_its_program_red(tree: Path) -> None:
    """Somebody may have printed the title: the failure may be that of the test before."""
    text = "#!/bin/sh\necho TAP version 13\necho '# adds'\necho ok 1\necho '# {}'\necho {} 2\n"
    write(tree, {"t/a.t": text.format("noise", "not ok") + "echo 1..2\n"})
    write(tree, {"t/b.t": text.format("divides", "ok") + "echo 1..2\n"})
    seen = reported(tree, "prove t/")
    assert set(seen.outcomes) == {
        ("t/a.t > adds", "passed"),
        ("t/a.t > noise", "failed"),
        ("t/a.t", "error"),
        ("t/b.t > adds", "passed"),
        ("t/b.t > divides", "passed"),
    }
    assert seen.results is not None and not seen.results.complete
