"""aider: its command line, and what its lines tell where its exit code tells nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentrunner.workers.aider import facts_of
from agentrunner.workers.fact import FileChanged, Finished, Model, WorkerMessage
from tests.kit.readings import HOME, STREAMS, command, cut, read

KIND = "aider"


def test_the_command_line() -> None:
    made = command(KIND, prompt="--help, please")
    assert made.argv[1:3] == ("--model", "openai/some-model")
    assert made.argv[made.argv.index("--openai-api-base") + 1] == "http://127.0.0.1:8787"
    assert made.argv[-2:] == ("--message-file", str(HOME / "aider" / "prompt.md"))
    assert made.files[HOME / "aider" / "prompt.md"] == "--help, please"
    assert {"--no-auto-commits", "--no-gitignore", "--analytics-disable"} <= set(made.argv)
    for flag in ("--chat-history-file", "--input-history-file"):
        assert Path(made.argv[made.argv.index(flag) + 1]).is_relative_to(HOME)


def test_neither_the_index_nor_the_configuration_of_git_is_touched() -> None:
    made = command(KIND)
    assert "email" in made.files[HOME / "aider" / ".gitconfig"]
    assert Path(made.env["GIT_INDEX_FILE"]).is_relative_to(HOME)
    assert Path(made.env["GIT_OBJECT_DIRECTORY"]) in made.folders


def test_a_run_that_ends_well() -> None:
    reading, came = read(KIND, "aider-ok.txt", changed=1)
    assert reading.completed and came.outcome == "completed"
    assert reading.summary.startswith("I create the file.")
    assert reading.model == "openai/m"
    assert reading.actions == 1


def test_its_lines_as_facts() -> None:
    facts = list(facts_of((STREAMS / "aider-ok.txt").read_text().splitlines()))
    assert [type(fact) for fact in facts] == [Model, WorkerMessage, Finished, FileChanged]
    assert facts[-1] == FileChanged("hello.py")


@pytest.mark.parametrize(
    ("stream", "outcome"), [("aider-429.txt", "rate_limit"), ("aider-500.txt", "server")]
)
def test_a_storm_is_of_what_it_says(stream: str, outcome: str) -> None:
    watch = command(KIND).watch
    lines = (STREAMS / stream).read_text().splitlines()
    assert sum(bool(re.search(watch.retry, line)) for line in lines) >= 3
    assert read(KIND, stream, None, outcome="retry_storm")[1].outcome == outcome


def test_an_error_that_it_got_over_is_none(tmp_path: Path) -> None:
    stream = tmp_path / "stdout"
    error = "litellm.RateLimitError: RateLimitError: slow down\nRetrying in 0.2 seconds...\n"
    stream.write_text(error + (STREAMS / "aider-ok.txt").read_text())
    assert read(KIND, str(stream), changed=1)[1].outcome == "completed"


def test_without_an_answer_it_has_not_worked(tmp_path: Path) -> None:
    stream = cut(tmp_path, "aider-ok.txt", 4)
    assert not read(KIND, stream, 0)[0].completed


def test_an_answer_without_an_edit_is_no_work(tmp_path: Path) -> None:
    stream = tmp_path / "stdout"
    stream.write_text("All is well.\n\nTokens: 1.2k sent, 34 received.\n")
    assert read(KIND, str(stream))[1].outcome == "no_op"


def test_a_flag_that_is_gone_is_told_in_a_sentence(tmp_path: Path) -> None:
    said = tmp_path / "stderr"
    said.write_text("usage: aider\naider: error: unrecognized arguments: --no-fancy-input\n")
    reading, came = read(KIND, "none", 2, stderr=str(said))
    assert came.outcome == "protocol"
    assert "does not take --no-fancy-input" in reading.error
