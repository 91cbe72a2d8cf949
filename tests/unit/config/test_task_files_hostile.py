"""Files that are no text files, ids that are no names, and texts nobody would write."""

from __future__ import annotations

import contextlib
import os
import string
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentrunner.config.load import TaskSource, load_task
from agentrunner.config.markdown import mask
from agentrunner.config.naming import is_safe_id, slug, task_id_from
from agentrunner.config.prd import read_criteria
from agentrunner.config.spec import TaskSpec
from agentrunner.config.text_files import MAX_BYTES, decode, read_text
from agentrunner.config.yaml_text import read_yaml
from agentrunner.errors import UsageError
from tests.kit.examples import examples
from tests.kit.task_files import Load

BAD_IDS = [
    "../x",
    "../../x",
    "..",
    ".",
    "/etc/x",
    "a/b",
    "a\\b",
    ".hidden",
    "-rf",
    "_x",
    "a..b",
    "a b",
    " a",
    "a ",
    "a\n",
    "a\tb",
    "a\0b",
    "a" * 129,
    "a" * 300,
    "CON",
    "nul",
    "com1",
    "LPT9.txt",
    "а",  # a Cyrillic letter that looks like ours
    "ａ",
    "é",
    "登録",
    "a:b",
    "a;b",
    "a$b",
    "a`b",
    "a*",
    "~a",
    "%2e%2e",
    "a\u202eb",
    "１",
]
SAFE = set(string.ascii_letters + string.digits + "._-")


@pytest.mark.parametrize("id_", BAD_IDS)
def test_a_bad_id_is_refused(load: Load, repo: Path, id_: str) -> None:
    quoted = "".join(f"\\u{ord(char):04x}" for char in id_)
    before = sorted(repo.rglob("*"))
    with pytest.raises(UsageError) as caught:
        load(f'version: 1\ntask:\n  id: "{quoted}"\n  prd: {{text: x}}\n')
    assert caught.value.path == "task.yaml:3"
    assert sorted(repo.rglob("*")) == sorted([*before, repo / "task.yaml"])


@given(st.text())
def test_an_accepted_id_stays_in_its_folder(id_: str) -> None:
    if is_safe_id(id_):
        assert set(id_) <= SAFE
        assert os.path.normpath(f"/notes/task-{id_}.md") == f"/notes/task-{id_}.md"
        assert id_[0] not in ".-_"


@given(st.text(), st.text())
def test_made_ids_are_safe(stem: str, title: str) -> None:
    assert is_safe_id(task_id_from(stem, title, None))
    assert slug(title) == "" or is_safe_id(slug(title))


NOT_FILES = ["fifo", "folder", "missing", "socket-like", "/dev/zero", "/dev/null", "huge", "bin"]


@pytest.fixture
def hostile(repo: Path) -> Path:
    os.mkfifo(repo / "fifo")
    (repo / "folder").mkdir()
    (repo / "socket-like").symlink_to(repo / "socket-like")
    with (repo / "huge").open("wb") as file:
        file.truncate(2 << 30)
    (repo / "bin").write_bytes(b"a\0b")
    return repo


@pytest.mark.parametrize("name", NOT_FILES)
@pytest.mark.parametrize("kind", ["file", "prd", "task.prd.path"])
def test_what_is_no_text_file_is_refused_at_once(hostile: Path, name: str, kind: str) -> None:
    source = TaskSource("prd" if kind == "prd" else "file", name)
    if kind == "task.prd.path":
        (hostile / "task.yaml").write_text(f"version: 1\ntask: {{prd: {{path: {name}}}}}\n")
        source = TaskSource("file", "task.yaml")
    started = time.monotonic()
    with pytest.raises(UsageError) as caught:
        load_task(source, environ={}, cwd=hostile)
    assert time.monotonic() - started < 1
    assert caught.value.code in ("unreadable", "too-large", "encoding", "outside")
    assert caught.value.path == name


@pytest.mark.parametrize("path", ["../secret.md", "link.md", "folder-link/secret.md"])
def test_a_prd_outside_is_refused(load: Load, repo: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (repo / "link.md").symlink_to(tmp_path / "secret.md")
    (repo / "folder-link").symlink_to(tmp_path)
    with pytest.raises(UsageError) as caught:
        load(f"version: 1\ntask: {{prd: {{path: {path}}}}}\n")
    assert caught.value.code == "outside" and "--prd" in caught.value.remedy


def test_what_else_a_setting_names_is_no_prd(load: Load, tmp_path: Path) -> None:
    (tmp_path / "replies.yaml").write_text("- reply: x\n")
    with pytest.raises(UsageError) as caught:
        load(
            "version: 1\ntask: {prd: {text: x}}\n"
            "runner: {meta: {kind: script, script: ../replies.yaml}}\n"
        )
    assert caught.value.code == "outside"
    assert caught.value.remedy == "copy it into the repository"


def test_a_prd_beside_the_task_file_may_be_outside_the_repository(
    repo: Path, tmp_path: Path
) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "p.md").write_text("x")
    (papers / "t.yaml").write_text("version: 1\ntask: {prd: {path: p.md}, repo: ../shop}\n")
    spec = load_task(TaskSource("file", "../papers/t.yaml"), environ={}, cwd=repo)
    assert (spec.repo, spec.prd_text) == (str(repo), "x")


def test_a_link_within_the_repository_is_followed(load: Load, repo: Path) -> None:
    (repo / "real.md").write_text("x")
    (repo / "link.md").symlink_to("real.md")
    assert load("version: 1\ntask: {prd: {path: link.md}}\n").prd_text == "x"


def test_a_file_without_permission(load: Load, repo: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    (repo / "p.md").write_text("x")
    (repo / "p.md").chmod(0)
    with pytest.raises(UsageError, match="Permission denied"):
        load("version: 1\ntask: {prd: {path: p.md}}\n")


def test_a_missing_file_is_answered_with_the_nearest(load: Load, repo: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_task(TaskSource("file", "docs/users-ap.md"), environ={}, cwd=repo)
    assert caught.value.remedy.startswith("look at the path; in words: agentrunner run -g")
    load("x", "docs/users-api.md")
    with pytest.raises(UsageError) as caught:
        load_task(TaskSource("file", "docs/users-ap.md"), environ={}, cwd=repo)
    assert caught.value.remedy == "did you mean docs/users-api.md?"


TEXT = "# ユーザー登録\n\n利用者がメールアドレスで登録できるようにする。\n"


@pytest.mark.parametrize(
    ("codec", "said", "iconv"),
    [
        ("cp932", "CP932 (Shift_JIS)", "-f CP932"),
        ("euc_jp", "EUC-JP", "-f EUC-JP"),
        ("iso2022_jp", "ISO-2022-JP", "-f ISO-2022-JP"),
        ("utf-16", "UTF-16", "-f UTF-16 "),
        ("utf-32", "UTF-32", "-f UTF-32"),
    ],
)
def test_another_encoding_is_named_with_a_remedy(codec: str, said: str, iconv: str) -> None:
    with pytest.raises(UsageError) as caught:
        decode(TEXT.encode(codec), "docs/登録.md")
    error = caught.value
    assert error.code == "encoding"
    assert error.message == f"docs/登録.md is not UTF-8; it looks like {said}."
    assert error.remedy.startswith("iconv ")
    assert iconv in error.remedy
    assert error.remedy.endswith("> docs/登録.utf8.md")


def test_utf16_without_a_mark_and_plain_rubbish() -> None:
    with pytest.raises(UsageError, match="UTF-16LE"):
        decode("version: 1\n".encode("utf-16-le"), "t")
    with pytest.raises(UsageError, match="byte 0xff in line 2"):
        decode(b"caf\n\xff\xe9", "t")


def test_bom_and_line_ends_are_accepted(load: Load) -> None:
    spec = load(b"\xef\xbb\xbfversion: 1\r\ntask:\r\n  prd: {text: x}\r\n")
    assert spec.prd_text == "x"
    prd = load(b"\xef\xbb\xbf---\r\ntitle: T\r\n---\r\n## Done when\r\n- a\r\n", "p.md")
    assert (prd.title, prd.criteria[0].description) == ("T", "a")


def test_the_largest_file_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * MAX_BYTES)
    assert len(read_text(tmp_path / "a", name="a")) == MAX_BYTES
    (tmp_path / "a").write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        read_text(tmp_path / "a", name="a")


def test_surrogates_and_nul_in_scalars_are_refused() -> None:
    for text in (r'a: "\ud800"', r'a: "x\0y"'):
        with pytest.raises(UsageError):
            read_yaml(text, "t")


@pytest.mark.parametrize(
    "text",
    [
        "## Done when\n- " + "`" * 3900,
        "## Done when\n- " + "(optional) " * 350,
        "## Done when\n- " + "(check: " * 480,
        "## Done when\n- " + "".join("`" * n + " " for n in range(1, 85)),
        "## Done when\n" + "- a\n" * 200_000,
        "#" * MAX_BYTES,
        "- " * (MAX_BYTES // 2),
        "<!--\n" * 200_000,
        "## " + "1." * 400_000,
        "## Done when " + "(" * 900_000,
    ],
    ids=str.__len__,
)
def test_hostile_prds_are_read_quickly(text: str) -> None:
    started = time.monotonic()
    with contextlib.suppress(UsageError):
        read_criteria(text, "prd.md")
    assert time.monotonic() - started < 5


@given(st.text())
def test_a_mask_is_as_long_as_its_text(text: str) -> None:
    assert len(mask(text)) == len(text)


HEADINGS = ["## Done when\n", "# 受け入れ条件\n", "---\n", "```\n", "~~~\n", "<!--", "-->\n"]
ITEMS = [
    "- ",
    "- [ ] ",
    "  - ",
    "1. ",
    "AC-1: ",
    "AC-2：",
    "(optional)",
    "（任意）",
    "**",
    "x",
    ")",
]
CHECKS = ["(check: `a`)", "（確認：｀", "check: ", 'file a contains "b"', "test `", "`", "``", "｀"]
YAML = ["a: b\n", "test: x\n", "!", "&a ", "*a", "{", "[", '"', "#", "? "]
CONTROLS = ["\n", "\n\n", "\t", "\u3000", "\r", "\ufeff", "\u2028", "\0", "\x1b", "\x85"]
PIECES = st.sampled_from(HEADINGS + ITEMS + CHECKS + YAML + CONTROLS)


@given(st.lists(PIECES, max_size=40).map("".join) | st.text())
@settings(max_examples=examples(300))
def test_no_prd_raises_anything_but_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        criteria = read_criteria(text, "prd.md")
        ids = [criterion.id for criterion in criteria]
        assert len(set(ids)) == len(ids)
        assert all(criterion.description for criterion in criteria)


@given(st.lists(PIECES, max_size=30).map("".join) | st.text())
@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", ["t.yaml", "p.md"])
def test_no_file_raises_anything_but_a_usage_error(load: Load, name: str, text: str) -> None:
    with contextlib.suppress(UsageError):
        spec = load(text.encode("utf-8", "surrogatepass"), name)
        assert TaskSpec.model_validate_json(spec.model_dump_json()) == spec


@given(st.binary())
@settings(max_examples=examples(150))
def test_no_bytes_raise_anything_but_a_usage_error(data: bytes) -> None:
    with contextlib.suppress(UsageError):
        assert "\0" not in decode(data, "t")
