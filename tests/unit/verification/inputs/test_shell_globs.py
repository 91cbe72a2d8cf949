"""Globs in words of which a part is in quotes, and what a loop over one reads elsewhere."""

import pytest

from agentrunner.verification.inputs.shell import steps_of

FILES = {"test/*.sh": ["test/a.sh", "test/b.sh"]}


@pytest.mark.parametrize("word", ['"$here"/*.sh', '"$here/"*.sh', "$here/*.sh"])
@pytest.mark.parametrize(
    "reads", ['. "$one"', 'cd "$scratch" && . "$one"', 'cd "$(mktemp -d)" || exit; . "$one"']
)
def test_a_glob_is_one_beside_quotes(word: str, reads: str) -> None:
    text = f'here=$(cd "$(dirname "$0")" && pwd)\nfor one in {word}; do\n  ({reads})\ndone\n'
    steps = steps_of(text, script_folder="test", expand=lambda _, glob: FILES.get(glob, [glob]))
    read = [(step.words[1], step.folder) for step in steps if step.words[0] == "."]
    assert read == [("test/a.sh", ""), ("test/b.sh", "")]


def test_a_glob_in_quotes_is_none() -> None:
    steps = steps_of(
        'for one in "test/*.sh"; do . "$one"; done', expand=lambda _, glob: FILES[glob]
    )
    assert [step.words[1] for step in steps] == ["test/*.sh"]
