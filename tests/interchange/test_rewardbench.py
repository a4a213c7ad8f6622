"""RewardBench and RewardBench 2: responses of which some are preferred."""

from pathlib import Path

import pytest

from jurygraph.interchange.rewardbench import NO_MODEL_IMPORT_NOTE, UNPAIRED_ROWS_IMPORT_NOTE
from tests.interchange.published import REWARDBENCH, import_rows, notes_of, tasks, write_rows

FIRST, UNKNOWN, SECOND, MISCOUNTED, ONE_SIDE, BARE = REWARDBENCH


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rewardbench.jsonl"


def test_a_pair_is_two_responses_of_which_one_is_preferred(file: Path) -> None:
    (task,) = tasks("rewardbench", file, FIRST)
    assert (task.id, task.query, task.rubric) == ("alpacaeval-easy/30", "Name a colour.", None)
    assert {one.text: (one.agent, one.labels) for one in task.responses} == {
        "Red.": ("good-7b", {"preferred": True}),
        "Seven.": ("bad-7b", {"preferred": False}),
    }
    assert task.metadata == {"subset": "alpacaeval-easy"}


def test_the_second_has_lists_and_a_model_for_each_the_chosen_first(file: Path) -> None:
    (task,) = tasks("rewardbench", file, SECOND)
    assert {one.text: (one.agent, one.labels["preferred"]) for one in task.responses} == {
        "May": ("m1", True),
        "June": ("m2", True),
        "Monday": ("m3", False),
        "Noon": ("m4", False),
        "Nine": ("m5", False),
    }
    assert task.metadata == {
        "subset": "Ties",
        "additional_metadata": SECOND["additional_metadata"],
        "models": ["m1", "m2", "m3", "m4", "m5"],
    }


def test_neither_ids_nor_order_tell_which_is_preferred(file: Path) -> None:
    swapped = {**FIRST, "chosen": FIRST["rejected"], "rejected": FIRST["chosen"]}
    (one,), (other,) = tasks("rewardbench", file, FIRST), tasks("rewardbench", file, swapped)
    assert [(r.id, r.text) for r in one.responses] == [(r.id, r.text) for r in other.responses]
    assert [r.labels["preferred"] for r in one.responses] == [
        not r.labels["preferred"] for r in other.responses
    ]
    assert [r.id for r in one.responses] == ["alpacaeval-easy/30/1", "alpacaeval-easy/30/2"]


def test_the_order_of_equal_texts_tells_nothing_either(file: Path) -> None:
    rows = [{**BARE, "id": name} for name in range(40)]
    first = [task.responses[0].labels["preferred"] for task in tasks("rewardbench", file, *rows)]
    assert 8 < sum(map(bool, first)) < 32
    assert first == [
        task.responses[0].labels["preferred"] for task in tasks("rewardbench", file, *rows)
    ]


def test_ids_must_be_unique_only_within_a_subset(file: Path) -> None:
    made = tasks("rewardbench", file, FIRST, UNKNOWN, BARE)
    assert [task.id for task in made] == ["alpacaeval-easy/30", "donotanswer/30", "7"]


def test_odd_rows_are_reported_and_one_sided_ones_omitted(file: Path) -> None:
    assert notes_of("rewardbench", file, *REWARDBENCH) == [
        (NO_MODEL_IMPORT_NOTE, "Math/5"),
        (UNPAIRED_ROWS_IMPORT_NOTE, "Ties/6"),
    ]
    (odd,) = tasks("rewardbench", file, MISCOUNTED)
    assert {one.agent for one in odd.responses} == {None}
    assert odd.metadata == {"subset": "Math", "models": ["m1"]}
    assert [one.task for one in import_rows("rewardbench", write_rows(file, FIRST, ONE_SIDE))][
        1
    ] is None
