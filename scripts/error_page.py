"""Write docs/reference/errors.md from the classes of errors."""

from __future__ import annotations

from pathlib import Path

from agentrunner.errors.reference import whole_page

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"

if __name__ == "__main__":
    PAGE.write_text(whole_page(), encoding="utf-8")
