"""What a repository's Dockerfile or devcontainer.json may say, and what of it is sent."""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest

from agentrunner.errors import UsageError
from agentrunner.sandboxes.docker import sources
from agentrunner.sandboxes.docker.sources import OWN_DOCKERFILE, Build, pack, read_source


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    (folder / ".devcontainer").mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
    (folder / "a.txt").write_text("a")
    (tmp_path / "secret.txt").write_text("secret")
    return folder


def devcontainer(repo: Path, text: str) -> str | Build:
    (repo / ".devcontainer/devcontainer.json").write_text(text)
    return read_source(Path(".devcontainer/devcontainer.json"), repo)


def refused(repo: Path, text: str) -> UsageError:
    with pytest.raises(UsageError) as caught:
        devcontainer(repo, text)
    assert caught.value.code == "image-source"
    return caught.value


def packed(repo: Path, build: Build | None = None) -> tuple[dict[str, tarfile.TarInfo], str]:
    context, name = pack(build or Build(repo, repo / "Dockerfile"), repo)
    with context, tarfile.open(fileobj=context) as archive:
        return {entry.name: entry for entry in archive}, name


# -- reading ------------------------------------------------------------------------------------


def test_a_dockerfile_is_built_with_the_folder_it_is_in(repo: Path) -> None:
    assert read_source(Path("Dockerfile"), repo) == Build(repo, repo / "Dockerfile")


def test_a_devcontainer_names_an_image_with_comments_and_commas(repo: Path) -> None:
    text = '{ // one\n "image": "a//b:1", /* two\n lines */ "extensions": ["x,]",], }'
    assert devcontainer(repo, text) == "a//b:1"


def test_a_devcontainer_names_a_build(repo: Path) -> None:
    build = {"dockerfile": "../Dockerfile", "context": "..", "args": {"A": "1"}, "target": "dev"}
    told = devcontainer(repo, json.dumps({"build": build}))
    assert told == Build(repo, repo / "Dockerfile", {"A": "1"}, "dev")
    (repo / ".devcontainer/Dockerfile").write_text("FROM scratch\n")
    assert devcontainer(repo, '{"dockerFile": "Dockerfile"}') == Build(
        repo / ".devcontainer", repo / ".devcontainer/Dockerfile"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{}", "neither an image nor a Dockerfile"),
        ("[]", "no JSON object"),
        ('{"image": ', "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"image": "a", "features": {"x": {}}}', "features"),
        ('{"dockerComposeFile": "compose.yaml"}', "neither"),
        ('{"dockerFile": "x", "dockerComposeFile": "c"}', "dockerComposeFile"),
        ('{"dockerFile": "../../secret.txt"}', "outside of the repository"),
        ('{"dockerFile": "../Dockerfile", "context": "../.."}', "outside of the repository"),
        ('{"dockerFile": "absent"}', "does not exist"),
        ('{"dockerFile": ".."}', "no file"),
        ('{"dockerFile": "a\\u0000b"}', "cannot be read"),
        ('{"build": {"dockerfile": "../Dockerfile", "args": {"A": 1}}}', "no plain texts"),
        ('{"build": {"dockerfile": "../Dockerfile", "args": {"K": "${localEnv:KEY}"}}}', "plain"),
        ('{"build": {"dockerfile": "../Dockerfile", "args": ["A"]}}', "no plain texts"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(repo: Path, text: str, told: str) -> None:
    assert told in refused(repo, text).message


def test_a_link_out_of_the_repository_is_not_followed(repo: Path) -> None:
    (repo / "Dockerfile").unlink()
    (repo / "Dockerfile").symlink_to("../secret.txt")
    with pytest.raises(UsageError, match="outside of the repository"):
        read_source(Path("Dockerfile"), repo)
    with pytest.raises(UsageError, match="outside of the repository"):
        read_source(repo.parent / "secret.txt", repo)


def test_what_is_no_file_or_no_text_is_refused(repo: Path) -> None:
    os.mkfifo(repo / "pipe.json")
    with pytest.raises(UsageError, match="no file"):
        read_source(Path("pipe.json"), repo)
    (repo / "Dockerfile").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not UTF-8"):
        packed(repo)
    (repo / "big.json").write_bytes(b" " * (sources.MOST_TEXT + 1))
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        read_source(Path("big.json"), repo)


# -- packing ------------------------------------------------------------------------------------


def test_files_are_sent_as_they_are_and_nothing_else(repo: Path) -> None:
    (repo / ".git").mkdir()
    (repo / ".git/config").write_text("[remote]")
    (repo / ".agent-runner").mkdir()
    (repo / OWN_DOCKERFILE).write_text("FROM evil\n")
    (repo / "link").symlink_to("../secret.txt")
    (repo / "folder").symlink_to(repo.parent)
    os.mkfifo(repo / "pipe")
    (repo / "run.sh").write_text("true")
    (repo / "run.sh").chmod(0o4755)
    entries, _ = packed(repo)
    assert sorted(entries) == [
        OWN_DOCKERFILE, ".devcontainer", "Dockerfile", "a.txt", "folder", "link", "run.sh",
    ]  # fmt: skip
    assert entries["link"].issym() and entries["link"].linkname == "../secret.txt"
    assert entries["folder"].issym()
    assert entries["run.sh"].mode == 0o755
    assert entries[OWN_DOCKERFILE].size == (repo / "Dockerfile").stat().st_size
    assert {entry.uid for entry in entries.values()} == {0}


def test_a_dockerignore_leaves_out_and_cannot_ask_for_git(repo: Path) -> None:
    (repo / ".git").mkdir()
    (repo / ".git/config").write_text("x")
    (repo / "b.txt").write_text("b")
    (repo / ".dockerignore").write_text("# all\n*\n!a.txt\n!.git\n!.git/config\n")
    assert sorted(packed(repo)[0]) == [OWN_DOCKERFILE, ".dockerignore", "Dockerfile", "a.txt"]


def test_the_name_is_that_of_the_contents(repo: Path) -> None:
    _, name = packed(repo)
    assert name.startswith("agentrunner/repository:")
    os.utime(repo / "a.txt", (0, 0))
    assert packed(repo)[1] == name
    build = Build(repo, repo / "Dockerfile")
    others = {
        packed(repo, Build(repo, build.dockerfile, {"A": "1"}))[1],
        packed(repo, Build(repo, build.dockerfile, target="x"))[1],
    }
    (repo / "a.txt").chmod(0o755)
    others.add(packed(repo)[1])
    (repo / "a.txt").write_text("b")
    others.add(packed(repo)[1])
    (repo / "Dockerfile").write_text("FROM scratch\n")
    others.add(packed(repo)[1])
    assert len(others | {name}) == 6


def test_a_context_that_is_too_large_is_refused(repo: Path) -> None:
    with (repo / "sparse").open("wb") as file:
        file.truncate(sources.MOST_CONTEXT + 1)
    with pytest.raises(UsageError, match="more than 1 GiB") as caught:
        packed(repo)
    assert ".dockerignore" in caught.value.remedy


def test_names_that_are_no_text_are_sent(repo: Path) -> None:
    (repo / os.fsdecode(b"\xff.txt")).write_text("x")
    assert os.fsdecode(b"\xff.txt") in packed(repo)[0]
