"""Parameters that no function reads are found in Ruby and PHP, too."""

import pytest

from agentrunner.verification.proof.named_work import unread_parameters

RUBY = """
class Pad
  def frame(text, sign = "*", *rest, key: 1)
    # sign
    "#{text}-#{rest}"
  end

  def plain(text)
    text
  end
end
"""
PHP = """<?php
class Pad {
    public function frame(string $text, $sign = '*', int ...$rest): string {
        return "$text" . count($rest); // $sign
    }
}
"""


@pytest.mark.parametrize(
    ("path", "before", "after", "found"),
    [
        ("lib/pad.rb", "", RUBY, {("frame", "sign"), ("frame", "key")}),
        ("lib/pad.rb", RUBY, RUBY, set()),
        ("src/Pad.php", "", PHP, {("frame", "sign")}),
        ("src/Pad.php", PHP, PHP.replace("// $sign", ". $sign"), set()),
        ("src/pad.lua", "", "function frame(text, sign) end", set()),
    ],
)
def test_what_is_not_read(path: str, before: str, after: str, found: set[tuple[str, str]]) -> None:
    assert unread_parameters(before.encode(), after.encode(), path) == found
