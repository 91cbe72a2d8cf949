"""The pictures of the README and the tutorial show what their commands print today."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.bwrap import require_bwrap

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
VARYING = (
    r"\d\d:\d\d:\d\d|(?:\d+ min )?\b\d+(?:\.\d+)? s\b"  # times
    r"|\bcart(?:-totals)?-[0-9a-z]{4}\b"  # ids
    r"|sandbox +bwrap .*?(?= reaches)"  # the machine's version and limits
)
NUMBERS = {1: "one", 2: "two", 3: "three", 4: "four"}


def shown(picture: Path) -> str:
    """What stands in the terminal, without what differs from run to run."""
    rows = re.findall(r"<text[^>]*>(.*?)</text>", picture.read_text("utf-8"))
    text = " ".join(html.unescape(row) for row in rows)
    return re.sub(VARYING, "_", " ".join(text.split()))


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_bwrap()
    folder = tmp_path_factory.mktemp("pictures")
    script = [sys.executable, str(ROOT / "scripts" / "picture.py"), str(folder)]
    subprocess.run(script, env={"PATH": os.environ["PATH"]}, check=True, timeout=400)
    return folder


@pytest.mark.whole
def test_the_pictures_show_what_is_printed(drawn: Path) -> None:
    names = sorted(path.name for path in IMAGES.glob("*.svg"))
    assert names == sorted(path.name for path in drawn.iterdir())
    for name in names:
        assert shown(IMAGES / name) == shown(drawn / name), f"{name}: make pictures"


@pytest.mark.parametrize(
    ("page", "name"), [("README.md", "demo.svg"), ("docs/tutorial.md", "tutorial.svg")]
)
def test_what_a_page_says_of_its_picture_is_to_be_seen_in_it(page: str, name: str) -> None:
    [alt] = re.findall(rf"!\[([^\]]*)\]\([a-z/]*{name}\)", (ROOT / page).read_text("utf-8"))
    text = shown(IMAGES / name)
    for grade in ("proven", "kept", "judged"):
        number = len(re.findall(rf"AC-\d (?:passed|open) {grade}\b", text))
        assert (f"{NUMBERS.get(number)} {grade}" in alt) == bool(number), (grade, alt)
    assert all(word in text for word in re.findall(r"[A-Z]{4,}(?: [A-Z]{4,})*", alt))
