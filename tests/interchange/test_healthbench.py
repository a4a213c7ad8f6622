"""HealthBench: conversations, rubrics with points, and what physicians wrote."""

from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.interchange.rows import EMPTY_CRITERIA_IMPORT_NOTE, NONPOSITIVE_WEIGHTS_IMPORT_NOTE
from jurygraph.schema import Criterion
from tests.interchange.published import HEALTHBENCH, import_rows, notes_of, tasks, write_rows

FULL, PLAIN, FIRST_GROUP = HEALTHBENCH


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "healthbench.jsonl"


def test_an_example_is_its_conversation_and_a_criterion_for_each_rubric_item(file: Path) -> None:
    (task,) = tasks("healthbench", file, FULL)
    assert task.id == "11111111-aaaa"
    assert [message.model_dump() for message in task.query] == FULL["prompt"]  # type: ignore[union-attr]
    assert task.rubric is not None
    assert task.rubric.criteria == (
        Criterion(id="criterion-1", text="Asks about a fall.", weight=7),
        Criterion(id="criterion-2", text="Names a drug and its dose.", weight=-5),
        Criterion(id="criterion-3", text="Is short.", weight=2.5),
    )
    assert task.reference is None, (
        "what physicians wrote is a response, not shown to a judge of others"
    )


def test_tags_and_the_canary_are_kept(file: Path) -> None:
    (task,) = tasks("healthbench", file, FULL)
    assert task.metadata == {
        "example_tags": ["theme:context_seeking"],
        "canary": "made for a test",
        "criteria": {
            "criterion-1": {"tags": ["level:example", "axis:context_awareness"]},
            "criterion-2": {"tags": ["axis:accuracy"]},
        },
    }


def test_ideal_and_reference_completions_are_responses(file: Path) -> None:
    (task,) = tasks("healthbench", file, FULL)
    assert [(one.id, one.agent, one.text) for one in task.responses] == [
        ("11111111-aaaa/ideal", "ideal", "Did you fall?"),
        ("11111111-aaaa/reference-1", "reference", "Rest it."),
        ("11111111-aaaa/reference-2", "reference", "See a doctor."),
    ]
    assert [one.metadata for one in task.responses] == [{"ideal_completions_group": "Group 2"}] * 3


def test_completions_without_text_are_omitted_and_reported(file: Path) -> None:
    blank = {"ideal_completion": None, "ideal_completions_ref_completions": ["", "Rest.", None]}
    row = {**PLAIN, "ideal_completions_data": blank}
    (task,) = tasks("healthbench", file, row)
    assert [one.id for one in task.responses] == ["22222222-bbbb/reference-2"]
    assert notes_of("healthbench", file, row) == [
        ("completions without text are left out", f"22222222-bbbb: {name}")
        for name in ("ideal", "reference-1", "reference-3")
    ]


def test_criteria_without_effect_are_omitted_and_reported_and_the_others_keep_their_ids(
    file: Path,
) -> None:
    items = [
        {"criterion": "Worthless.", "points": 0, "tags": ["x"]},
        {"criterion": "Counts.", "points": 1, "tags": ["y"]},
        {"criterion": " ", "points": 4, "tags": []},
        {"criterion": "Worthless, as text.", "points": "0", "tags": []},
    ]
    row = {**PLAIN, "rubrics": items}
    (task,) = tasks("healthbench", file, row)
    assert task.rubric is not None
    assert [one.id for one in task.rubric.criteria] == ["criterion-2"]
    assert task.metadata == {"criteria": {"criterion-2": {"tags": ["y"]}}}
    assert notes_of("healthbench", file, row) == [
        (EMPTY_CRITERIA_IMPORT_NOTE, "22222222-bbbb: criterion-1"),
        (EMPTY_CRITERIA_IMPORT_NOTE, "22222222-bbbb: criterion-3"),
        (EMPTY_CRITERIA_IMPORT_NOTE, "22222222-bbbb: criterion-4"),
    ]


@pytest.mark.parametrize(
    "items", [[], [{"criterion": "Rude.", "points": -3}], [{"criterion": "Nil.", "points": 0}]]
)
def test_a_task_whose_rubric_gives_no_credit_is_omitted_and_reported(
    file: Path, items: list[dict[str, object]]
) -> None:
    bare = {**PLAIN, "rubrics": items}
    kept, left = import_rows("healthbench", write_rows(file, FULL, bare))
    assert kept.task is not None
    assert left.task is None
    assert tuple(left.notes[-1]) == (NONPOSITIVE_WEIGHTS_IMPORT_NOTE, "22222222-bbbb")
    with pytest.raises(InputError) as raised:
        import_rows("healthbench", write_rows(file, bare))
    assert str(raised.value) == (
        f"healthbench.jsonl: has no row that makes a task ({NONPOSITIVE_WEIGHTS_IMPORT_NOTE}: 1 (22222222-bbbb)); "
        "name a file of HealthBench's examples"
    )
