"""Rows of a trainer become tasks: equal ones are one group in every process, and what is wrong is named."""

import math
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from jurygraph.errors import InputError
from jurygraph.integrations.samples import (
    describe_row,
    group_sample_indices,
    read_response,
    read_task,
    read_task_fields,
    read_tasks,
)
from jurygraph.schema import Task

CHAT = [{"role": "user", "content": "How far is the moon?"}]
ANSWER = [{"role": "assistant", "content": "384,400 km"}]


def _read_tasks(
    prompts: list[str], rows: list[dict[str, Any]], columns: Mapping[str, str | None]
) -> list[Task]:
    return read_tasks(prompts, rows, columns, lambda index: describe_row(index, prompts[index]))


def test_equal_rows_are_one_task_and_another_reference_is_another() -> None:
    columns = {"reference": "solution"}
    rows = [{"solution": "4"}, {"solution": "4"}, {"solution": "5"}]
    tasks = _read_tasks(["2 + 2?"] * 3, rows, columns)
    assert list(group_sample_indices(tasks).values()) == [[0, 1], [2]]
    assert tasks[0].reference == "4"
    numbers = [
        read_task_fields({"solution": number}, columns)["reference"]
        for number in (4, 0.5, -3, 10**400)
    ]
    assert numbers == ["4", "0.5", "-3", str(10**400)]
    empty = read_task_fields(
        {"solution": math.nan, "rubric": math.nan}, {**columns, "rubric": "rubric"}
    )
    assert empty == {}, "pandas has NaN where a row has no value"
    assert read_task(CHAT, {}).id == read_task([dict(CHAT[0])], {}).id == "prompt-d1800cc4586619da"
    langchain = [HumanMessage("How far?")]
    assert read_task(langchain, {}).id == "prompt-ae9904b7652dfc51"


def test_chats_become_messages_and_nested_columns_may_be_text() -> None:
    rubric = '{"criteria": [{"id": "far", "text": "It gives a distance", "weight": 1}]}'
    (task,) = _read_tasks(
        [CHAT], [{"rubric": rubric, "task_id": "moon"}], {"id": "task_id", "rubric": "rubric"}
    )
    assert task.id == "moon"
    assert task.rubric is not None
    assert task.rubric.criteria[0].id == "far"
    assert read_response(ANSWER).messages is not None
    assert read_response("384,400 km").text == "384,400 km"


@pytest.mark.parametrize(
    "rubric",
    [
        "It is far.\n\nIt is round.",
        ["It is far.", "It is round."],
        '["It is far.", "It is round."]',
    ],
)
def test_a_rubric_may_be_lines_or_a_list_as_in_a_table(rubric: Any) -> None:
    (task,) = _read_tasks(["How far?"], [{"rubric": rubric}], {"rubric": "rubric"})
    assert task.rubric is not None
    criteria = [(one.id, one.text, one.weight) for one in task.rubric.criteria]
    assert criteria == [("c1", "It is far.", 1.0), ("c2", "It is round.", 1.0)]


@pytest.mark.parametrize("rubric", ['{"criteria": [{"id": "far"', '["It is far.", '])
def test_a_rubric_of_broken_json_is_no_line_of_criteria(rubric: str) -> None:
    with pytest.raises(InputError, match=r"`rubric`: is the text .*; write an object"):
        _read_tasks(["How far?"], [{"rubric": rubric}], {"rubric": "rubric"})


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(InputError, match="has no column 'solution'; it has answer, task_id"):
        _read_tasks(["2 + 2?"], [{"answer": "4", "task_id": "a"}], {"reference": "solution"})
    number = r"the trainer's prompt '2 \+ 2\?', `reference`: is the number 4"
    with pytest.raises(InputError, match=number):
        read_task("2 + 2?", {"reference": 4})
    empty = r"row 1 of the call \('How far.'\), column 'points', `rubric.criteria`: has 0 entries; give it at"
    with pytest.raises(InputError, match=empty):
        _read_tasks(["How far?"], [{"points": ""}], {"rubric": "points"})
    with pytest.raises(InputError, match="a completion of the trainer, `messages`: "):
        read_response(7)
    same_id = [read_task(prompt, {"id": "a"}) for prompt in ("2 + 2?", "2 + 3?")]
    with pytest.raises(InputError, match="task 'a': rows 1 and 2 of the batch differ"):
        group_sample_indices(same_id)
