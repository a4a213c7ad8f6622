"""Every importer reads row by row, checks the whole file, and names the place of an error."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.interchange.readers import READERS
from jurygraph.sources import read_tasks
from tests.interchange.published import ROWS, import_rows, write_rows
from tests.rows import all_rows

KEYS = {
    "healthbench": "prompt_id",
    "writingbench": "index",
    "rewardbench": "id",
    "judgebench": "pair_id",
    "grouptravelbench": "task_id",
    "chats": "id",
}
every_format = pytest.mark.parametrize("form", READERS)


def refusal(form: str, path: Path) -> str:
    with pytest.raises(InputError) as raised:
        import_rows(form, path)
    return str(raised.value)


@every_format
def test_its_output_is_read_as_tasks_with_unique_ids(form: str, tmp_path: Path) -> None:
    made = [
        one.task
        for one in import_rows(form, write_rows(tmp_path / "in.jsonl", *ROWS[form]))
        if one.task is not None
    ]
    lines = [json.loads(task.model_dump_json(exclude_defaults=True)) for task in made]
    answered = [
        {**line, "responses": line.get("responses") or [{"id": f"{n}", "text": ""}]}
        for n, line in enumerate(lines)
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
    assert one.task.metadata.items() >= {"added": [1, {"by": None}], "later": "too"}.items()


@every_format
def test_a_duplicate_row_is_refused(form: str, tmp_path: Path) -> None:
    again = write_rows(tmp_path / "in.jsonl", *ROWS[form][:2], ROWS[form][0])
    first = next(READERS[form](again)).task
    assert first is not None
    field = f", field {KEYS[form]}" if form in KEYS else ""
    remedy = "keep one of them" + (", or give it an `id`" if form == "chats" else "")
    assert refusal(form, again) == (
        f"in.jsonl, line 3{field}: makes the task '{first.id}', which is already in line 1; {remedy}"
    )


@every_format
def test_an_array_is_read_as_its_lines_are(form: str, tmp_path: Path) -> None:
    lines = import_rows(form, write_rows(tmp_path / "in.jsonl", *ROWS[form]))
    array = tmp_path / "in.json"
    array.write_text(f"\n {json.dumps(ROWS[form], indent=1)}")
    assert import_rows(form, array) == lines
    array.write_text(json.dumps([ROWS[form][0], 3]))
    assert "in.json, [1]: is the number 3; a row is an object" in refusal(form, array)
    array.write_text(json.dumps([ROWS[form][0]] * 2))
    assert "which is already in [0]" in refusal(form, array)


@every_format
def test_a_file_without_rows_is_refused(form: str, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("\n \n")
    assert refusal(form, tmp_path / "in.jsonl").startswith(
        "in.jsonl: holds no rows; name a file of "
    )


@all_rows(
    ("form", "change", "words"),
    [
        ("healthbench", {"prompt": []}, "prompt: has 0 entries; give it at least 1"),
        (
            "healthbench",
            {"prompt": [{"role": "patient", "content": ""}]},
            "prompt[0].role: is the text 'patient'; did",
        ),
        ("healthbench", {"prompt_id": True}, "prompt_id: is true; write text"),
        (
            "healthbench",
            {"prompt_id": "x" * 510},
            "prompt_id: has 510 characters; write at most 240",
        ),
        (
            "healthbench",
            {"rubrics": [{"criterion": "a"}]},
            "rubrics[0].points: is missing; every scored item needs",
        ),
        (
            "healthbench",
            {"rubrics": [{"criterion": "a", "points": True}]},
            "rubrics[0].points: is true; write a num",
        ),
        (
            "plawbench",
            {"rubrics": [{"criterion": "a", "points": "1e3"}]},
            "rubrics[0].points: is the text '1e3'; wr",
        ),
        ("writingbench", {"index": 1.5}, "index: is the number 1.5; write text"),
        ("rewardbench", {"rejected": ["a", None]}, "rejected[1]: is null; write text"),
        ("rewardbench", {"prompt": []}, "prompt: is a list; write text, in quotes"),
        ("judgebench", {"label": "A=B"}, "label: is the text 'A=B'; did you mean "),
        ("grouptravelbench", {"query": ""}, "query: is empty"),
        ("chats", {"messages": []}, "messages: has 0 entries; give it at least 1"),
        (
            "chats",
            {"messages": [{"role": "user", "content": "Hi."}], "system": "gpt-4o"},
            "system: is 'gpt-4o', and a single word is no system message for the prompt; rename it, to",
        ),
        ("chats", {"messages": [{"role": "boss"}]}, "messages[0].role: is the text 'boss'; write "),
        (
            "chats",
            {"messages": [{"role": "tool", "content": "3", "tool_call_id": "c"}]},
            "messages[0].tool_call_id: names 'c', which no message before it calls; correct the id",
        ),
    ],
)
def test_an_error_in_a_row_is_reported_with_its_field(
    form: str, change: Any, words: str, tmp_path: Path
) -> None:
    path = write_rows(tmp_path / "in.jsonl", ROWS[form][1], {**ROWS[form][0], **change})
    assert refusal(form, path).startswith(f"in.jsonl, line 2, field {words}")


def test_a_row_that_is_left_out_takes_no_id(tmp_path: Path) -> None:
    row = ROWS["healthbench"][0]
    worthless = {**row, "rubrics": [{"criterion": "Nil.", "points": 0}]}
    left_out, made = import_rows("healthbench", write_rows(tmp_path / "in.jsonl", worthless, row))
    assert left_out.task is None
    assert made.task is not None
    assert made.task.id == row["prompt_id"]
