"""Golden files with one of their changes alone."""

from agentrunner.verification.rewritten_data import single_changes

OLD = "rows 2\ntotal 22\n"


def test_a_line_that_was_replaced_is_told_from_one_that_is_new() -> None:
    made = single_changes(OLD, "rows 2\ntotal 12\nend\n")
    assert "rows 2\ntotal 12\n" in made


def test_a_single_change_is_no_other_than_the_whole() -> None:
    assert single_changes(OLD, OLD + "end\n") == []
    assert single_changes(OLD, OLD) == []


def test_several_changes_are_tried_one_at_a_time() -> None:
    made = single_changes("1\n2\n3\n", "0\n2\n4\n")
    assert sorted(made) == ["0\n2\n3\n", "1\n2\n4\n"]


def test_a_word_is_tried_without_what_every_line_gets() -> None:
    made = single_changes("rows 2\ntotal 22\n", "rows 2 EUR\ntotal 12 EUR\n")
    assert "rows 2\ntotal 12\n" in made


def test_the_same_replacement_is_tried_once() -> None:
    old = "".join(f"page {number}\n" for number in range(30))
    made = single_changes(old + "total 22\n", old.replace("page", "sheet") + "total 12\n")
    assert old + "total 12\n" in made


def test_what_was_changed_beside_a_new_column_is_a_part_by_itself() -> None:
    before = '{"tea": 500}\n{"cup": 1080}\n{"pot": 1800}\n'
    after = '{"tea": 500, "eur": 1}\n{"cup": 1200, "eur": 1}\n{"pot": 2000, "eur": 1}\n'
    wrong = '{"tea": 500}\n{"cup": 1200}\n{"pot": 2000}\n'
    assert wrong in single_changes(before, after)


def test_lines_that_carry_the_old_output_are_a_part_whatever_is_changed_above() -> None:
    before = "Report\ntea: 1500\ncup: 1800\n"
    after = "Sales\ntea: 500\ncup: 900\n"
    assert "Report\ntea: 500\ncup: 900\n" in single_changes(before, after)


def test_of_many_kinds_all_but_one_are_tried_and_no_more() -> None:
    before = "".join(f"line {n}\n" for n in range(40))
    found = single_changes(before, before.replace("line", "row").replace("3", "three"))
    assert len(found) < 40
