"""What a PRD says of expected data by its kind (V7)."""

import pytest

from agentrunner.verification.inputs.wanted_tests import (
    asked_by_kind,
    differs_by_snapshots,
    wants_snapshots,
)

SNAP = "test/__snapshots__/table.test.js.snap"
OTHER = "test/__snapshots__/list.test.js.snap"
GOLDEN = "tests/golden/report.txt"


@pytest.mark.parametrize(
    ("text", "changed", "wanted"),
    [
        ("The snapshot of the table has the wrong format and is updated with it.", [SNAP], [SNAP]),
        ("Fix `formatTime` and update the snapshots.", [SNAP, OTHER], [SNAP, OTHER]),
        ("A third column. Update the snapshots, the inline one too.", [SNAP], [SNAP]),
        ("Update the snapshot.", [SNAP, OTHER], []),
        ("The golden file is updated accordingly.", [GOLDEN], [GOLDEN]),
        ("The golden files change accordingly.", [GOLDEN, SNAP], [GOLDEN]),
        ("The expected output must be regenerated.", ["tests/report.out"], ["tests/report.out"]),
        ("スナップショットを更新する。", [SNAP], [SNAP]),
        ("スナップショットは更新しない。", [SNAP], []),
        ("Do not update the snapshots.", [SNAP], []),
        ("Don’t update the snapshots.", [SNAP], []),
        ("Don't forget to update the golden file.", [GOLDEN], [GOLDEN]),
        ("Never forget to update the snapshots.", [SNAP, OTHER], [SNAP, OTHER]),
        ("Be sure to update the golden file.", [GOLDEN], [GOLDEN]),
        ("Do not forget to not update the golden file.", [GOLDEN], []),
        ("ゴールデンファイルの更新も忘れずにお願いします。", [GOLDEN], [GOLDEN]),
        ("ゴールデンファイルの更新を忘れないでください。", [GOLDEN], [GOLDEN]),
        ("ゴールデンファイルの更新は行わない。", [GOLDEN], []),
        ("ゴールデンファイルの更新を行わないこと。", [GOLDEN], []),
        ("The snapshots must not be updated.", [SNAP], []),
        ("The snapshot tests are updated nightly.", [SNAP], []),
        ("Update the code so that the snapshots match.", [SNAP], []),
        ("Fix it; the snapshots pass.", [SNAP], []),
        ("`--update` says that the snapshots were updated.", [SNAP], []),
        ("When the snapshot is updated, a line is printed.", [SNAP], []),
        ("Change how snapshots of a volume are made.", [SNAP], []),
        ("The result is as expected. Update the README.", [SNAP], []),
        ("Rename the snapshot serializer.", [SNAP], []),
    ],
)
def test_expected_data_that_is_spoken_of_by_its_kind(
    text: str, changed: list[str], wanted: list[str]
) -> None:
    assert sorted(asked_by_kind(text, changed)) == sorted(wanted)


def test_snapshots_in_a_file_of_tests() -> None:
    before = b"test('a', () => {\n  expect(table([])).toMatchInlineSnapshot(`\"from  to\"`);\n});\n"
    assert differs_by_snapshots(before, before.replace(b'to"`', b'to    min"`'))
    assert not differs_by_snapshots(before, before.replace(b"[]", b"[1]"))
    assert wants_snapshots("Update the snapshots, the inline one too.")
    assert not wants_snapshots("Update the snapshot of the table.")
