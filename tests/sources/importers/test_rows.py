"""Every importer reads row by row, checks the whole file, and names the place of an error."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.sources import read_tasks
from jurygraph.sources.importers import READERS
from tests.sources.importers.published import ROWS, import_rows, write_rows

KEYS = {
    "healthbench": "prompt_id",
    "writingbench": "index",
    "rewardbench": "id",
    "judgebench": "pair_id",
    "grouptravelbench": "task_id",
}
every_format = pytest.mark.parametrize("form", READERS)


def refusal(form: str, path: Path) -> str:
    with pytest.raises(InputError) as raised:
        import_rows(form, path)
    return str(raised.value)


@every_format
def test_its_output_is_read_as_tasks_with_unique_ids(form: str, tmp_path: Path) -> None:
    made = [
        one.task for one in import_rows(form, write_rows(tmp_path / "in.jsonl", *ROWS[form])) if one.task is not None
    ]
    lines = [json.loads(task.model_dump_json(exclude_defaults=True)) for task in made]
    answered = [
        {**line, "responses": line.get("responses") or [{"id": f"{n}", "text": ""}]} for n, line in enumerate(lines)
    ]
    found = read_tasks(write_rows(tmp_path / "out.jsonl", *answered))
    assert [task.id for task, _ in found] == [task.id for task in made]
    ids = [response.id for _, group in found for response in group]
    assert len(set(ids)) == len(ids)


@every_format
def test_the_result_of_a_row_does_not_depend_on_other_rows(form: str, tmp_path: Path) -> None:
    forth = import_rows(form, write_rows(tmp_path / "forth.jsonl", *ROWS[form]))
    back = import_rows(form, write_rows(tmp_path / "back.jsonl", *reversed(ROWS[form])))
    assert forth == back[::-1]


@every_format
def test_fields_that_upstream_adds_are_kept(form: str, tmp_path: Path) -> None:
    row = {**ROWS[form][0], "added": [1, {"by": None}], "later": "too"}
    (one,) = import_rows(form, write_rows(tmp_path / "in.jsonl", row))
    assert one.task is not None
    assert one.task.metadata["other"] == {"added": [1, {"by": None}], "later": "too"}


@every_format
def test_a_duplicate_row_is_refused(form: str, tmp_path: Path) -> None:
    again = write_rows(tmp_path / "in.jsonl", *ROWS[form][:2], ROWS[form][0])
    first = next(READERS[form](again)).task
    assert first is not None
    wrong = f", field {KEYS.get(form)}: makes the task '{first.id}', which is already in line 1; give each row"
    if form not in KEYS:
        wrong = ": is the same row as line 1; keep one of them"
    assert refusal(form, again).startswith(f"in.jsonl, line 3{wrong}")


@every_format
@pytest.mark.parametrize("content", ["", "\n \n"])
def test_a_file_without_rows_is_refused(form: str, content: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(content)
    assert refusal(form, tmp_path / "in.jsonl").startswith("in.jsonl: holds no rows; name a file of ")


@every_format
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_rows_is_refused_with_how_to_make_lines_of_it(
    form: str, indent: int | None, tmp_path: Path
) -> None:
    (tmp_path / "in.json").write_text(json.dumps(ROWS[form], indent=indent))
    assert refusal(form, tmp_path / "in.json") == (
        "in.json, line 1: begins a JSON array; write one object a line, as `jq -c '.[]' FILE` does"
    )


@pytest.mark.parametrize(
    ("form", "change", "words"),
    [
        ("healthbench", {"prompt": "My knee hurts."}, "prompt: is the text 'My knee hurts.'; write a list"),
        ("healthbench", {"prompt": []}, "prompt: has 0 entries; give it at least 1"),
        (
            "healthbench",
            {"prompt": [{"role": "patient", "content": ""}]},
            "prompt[0].role: is the text 'patient'; did you mean assistant? write ",
        ),
        ("healthbench", {"prompt": [{"role": "user", "content": ["a"]}]}, "prompt[0].content: is a list; write text"),
        ("healthbench", {"prompt": [{"role": "user", "content": None}]}, "prompt[0].content: is null; write text"),
        ("healthbench", {"prompt_id": True}, "prompt_id: is true; write text"),
        ("healthbench", {"prompt_id": ""}, "prompt_id: is empty; write at least one character"),
        ("healthbench", {"rubrics": None}, "rubrics: is null; write a list"),
        (
            "healthbench",
            {"rubrics": [{"criterion": "Greets."}]},
            "rubrics[0].points: is missing; every rubric item needs it",
        ),
        (
            "healthbench",
            {"rubrics": [{"criterion": "a", "points": "five"}]},
            "rubrics[0].points: is the text 'five'; write a n",
        ),
        (
            "healthbench",
            {"rubrics": [{"criterion": "a", "points": True}]},
            "rubrics[0].points: is true; write a number",
        ),
        ("healthbench", {"rubrics": [{"criterion": None, "points": 1}]}, "rubrics[0].criterion: is null; write text"),
        (
            "healthbench",
            {"rubrics": [{"criterion": "a", "points": 1, "tags": "b"}]},
            "rubrics[0].tags: is the text 'b'; write",
        ),
        (
            "healthbench",
            {"ideal_completions_data": "Rest."},
            "ideal_completions_data: is the text 'Rest.'; write an object",
        ),
        ("plawbench", {"rubrics": "1.(+3 分)"}, "rubrics: is the text '1.(+3 分)'; write a list"),
        ("plawbench", {"question": ""}, "question: is empty; write at least one character"),
        (
            "plawbench",
            {"rubrics": [{"criterion": "a", "points": "1e3"}]},
            "rubrics[0].points: is the text '1e3'; write a n",
        ),
        ("writingbench", {"query": ["Write."]}, "query: is a list; write text"),
        ("writingbench", {"index": 1.5}, "index: is the number 1.5; write text"),
        ("rewardbench", {"chosen": 3}, "chosen: is the number 3; write text, in quotes or a list"),
        ("rewardbench", {"rejected": ["a", None]}, "rejected[1]: is null; write text"),
        ("rewardbench", {"prompt": []}, "prompt: is an empty list; give it one message at least"),
        ("judgebench", {"label": "A=B"}, "label: is the text 'A=B'; did you mean "),
        ("judgebench", {"response_B": None}, "response_B: is null; write text"),
    ],
)
def test_an_error_in_a_row_is_reported_with_its_field(form: str, change: Any, words: str, tmp_path: Path) -> None:
    path = write_rows(tmp_path / "in.jsonl", ROWS[form][1], {**ROWS[form][0], **change})
    assert refusal(form, path).startswith(f"in.jsonl, line 2, field {words}")


@pytest.mark.parametrize(("form", "key"), [*KEYS.items(), ("rewardbench", "subset")])
def test_an_id_that_is_too_long_for_its_responses_is_refused_by_its_own_name(
    form: str, key: str, tmp_path: Path
) -> None:
    path = write_rows(tmp_path / "in.jsonl", {**ROWS[form][0], key: "x" * 510})
    assert refusal(form, path) == f"in.jsonl, line 1, field {key}: has 510 characters; write at most 240"


def test_a_row_that_is_left_out_takes_no_id(tmp_path: Path) -> None:
    row = ROWS["healthbench"][0]
    worthless = {**row, "rubrics": [{"criterion": "Nil.", "points": 0}]}
    left_out, made = import_rows("healthbench", write_rows(tmp_path / "in.jsonl", worthless, row))
    assert left_out.task is None
    assert made.task is not None
    assert made.task.id == row["prompt_id"]
