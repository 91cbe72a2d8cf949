"""What is new in a green suite without test names."""

from agentrunner.verification.proof.new_checks import asks_for_stated


def test_one_of_the_texts_in_quotes_is_asked_for() -> None:
    wanted = 'The values with ", " between them: "1, 2" for 1 and 2, "" for none.'
    assert asks_for_stated(wanted, ['assert(strcmp(s, "1, 2") == 0);'])
    assert not asks_for_stated(wanted, ["assert(s != NULL);", 'strcmp(s, "")'])


def test_a_task_without_texts_in_quotes_asks_for_none() -> None:
    assert asks_for_stated("Empty lines are left out.", [])
