"""Words that control the execution of a plan without asking a model."""

from __future__ import annotations

import unicodedata
from typing import Literal

ControlWord = Literal["stop", "pause", "continue", "status"]

MOST_CHARS = 40
"""A longer message is not a control word."""

_WORDS: dict[ControlWord, str] = {
    "stop": "stop halt abort cancel ストップ 止めて とめて 止めろ やめて 止まって 停止 中止 終了",
    "pause": "pause hold wait ポーズ 一時停止 一旦停止 いったん停止 待って ちょっと待って 中断",
    "continue": "continue resume proceed goon 再開 続けて つづけて 続行 続ける 進めて",
    "status": "status progress 状況 状態 進捗 進捗状況 ステータス 今どう どうなってる",
}
_MEANS = {word: meaning for meaning, words in _WORDS.items() for word in words.split()}
_POLITE = ("please", "now", "plz", "してください", "して下さい", "してくれ", "して", "する",
           "ください", "下さい", "を見せて", "を教えて", "を表示", "は", "の確認")  # fmt: skip


def control_word(text: str) -> ControlWord | None:
    """Return the meaning of a message that is just a control word; None for any other.

    Case, width, blanks and punctuation do not matter, nor does a "please". A message that says what
    to stop ("stop the login task") is for the planner.
    """
    if len(text) > MOST_CHARS:
        return None
    folded = unicodedata.normalize("NFKC", text).casefold()
    word = "".join(char for char in folded if char.isalnum() or char == "ー")
    while word not in _MEANS:
        shorter = next((cut for end in _POLITE if (cut := _without(word, end)) != word), word)
        if shorter == word:
            return None
        word = shorter
    return _MEANS[word]


def _without(word: str, polite: str) -> str:
    """Return the word without a polite ending, or an English polite word at the beginning."""
    if polite.isascii() and word.startswith(polite):
        return word.removeprefix(polite)
    return word.removesuffix(polite)
