"""Exports of annotation tools and surveys, and tables with a column for each rater, as votes."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.interchange.exports import ExportColumns, read_export
from jurygraph.interchange.readers import EXPORT_READERS
from tests.rows import all_rows

RATING = {"from_name": "rating", "type": "rating", "value": {"rating": 4}}
TONE = {"from_name": "tone", "type": "choices", "value": {"choices": ["kind"]}}
BOTH = {"from_name": "tone", "type": "choices", "value": {"choices": ["kind", "odd"]}}
LABEL_STUDIO = [
    {
        "id": 7,
        "data": {"text": "Yes.", "response_id": "door/a"},
        "annotations": [
            {"completed_by": {"id": 3, "email": "ann@x.org"}, "result": [RATING, TONE]},
            {"completed_by": 5, "result": [{**RATING, "value": {"rating": 2}}, BOTH]},
            {"completed_by": 6, "was_cancelled": True, "result": [RATING]},
        ],
    }
]
ARGILLA = [
    {
        "id": "r1",
        "fields": {"response": "x"},
        "metadata": {"response_id": "door/a"},
        "suggestions": {"quality": {"value": 3, "score": 0.5, "agent": "m"}},
        "responses": {
            "quality": [{"value": 4, "user_id": "u1"}, {"value": 5, "user_id": "u2"}],
            "ok": [
                {"value": "yes", "user_id": "u1", "status": "submitted"},
                {"value": "no", "user_id": "u2", "status": "draft"},
            ],
        },
    }
]
IMPORT_IDS = ["status", "_recordId", "QID1", "QID2_1", "QID3_TEXT"]
QUALTRICS = [
    ["Status", "ResponseId", "Q1", "Q2_1", "Q3"],
    ["Response Type", "Response ID", "How good is A?", "And B?", "Why?"],
    [json.dumps({"ImportId": name}, separators=(",", ":")) for name in IMPORT_IDS],
    ["Survey Preview", "R_0", "5", "5", "x"],
    ["IP Address", "R_1", "4", "good", "because"],
    ["IP Address", "R_2", "5", "", "so"],
]
WIDE = [["answer", "text", "ann", "bo"], ["a1", "Yes.", "4", "yes"], ["a2", "No.", "2", ""]]

Row = tuple[str, str, object, str | None]


def votes(form: str, folder: Path, content: Any, **columns: Any) -> list[Row]:
    path = folder / ("export.json" if isinstance(content[0], dict) else "export.csv")
    text = json.dumps(content)
    if path.suffix == ".csv":
        quoted = [[cell.replace('"', '""') for cell in row] for row in content]
        text = "\n".join(",".join(f'"{cell}"' for cell in row) for row in quoted)
    path.write_text(text)
    found = read_export(EXPORT_READERS[form], path, ExportColumns(**columns))
    return [(one.item, one.annotator, one.label, one.dimension) for one in found]


@all_rows(
    ("form", "content", "columns", "expected"),
    [
        (
            "label-studio",
            LABEL_STUDIO,
            {},
            [
                ("7", "ann@x.org", 4.0, "rating"),
                ("7", "ann@x.org", "kind", "tone"),
                ("7", "5", 2.0, "rating"),
                ("7", "5", None, "tone"),
            ],
        ),
        (
            "label-studio",
            LABEL_STUDIO,
            {"item": "response_id", "label": "rating"},
            [("door/a", "ann@x.org", 4.0, "rating"), ("door/a", "5", 2.0, "rating")],
        ),
        (
            "argilla",
            ARGILLA,
            {},
            [("r1", "u1", 4.0, "quality"), ("r1", "u2", 5.0, "quality"), ("r1", "u1", "yes", "ok")],
        ),
        (
            "argilla",
            ARGILLA,
            {"item": "response_id", "label": "ok"},
            [("door/a", "u1", "yes", "ok")],
        ),
        (
            "qualtrics",
            QUALTRICS,
            {},
            [
                ("Q1", "R_1", 4.0, None),
                ("Q2_1", "R_1", "good", None),
                ("Q1", "R_2", 5.0, None),
                ("Q2_1", "R_2", None, None),
            ],
        ),
        (
            "wide",
            WIDE,
            {"item": "answer", "raters": ["ann", "bo"]},
            [
                ("a1", "ann", 4.0, None),
                ("a1", "bo", "yes", None),
                ("a2", "ann", 2.0, None),
                ("a2", "bo", None, None),
            ],
        ),
    ],
)
def test_an_answer_of_a_person_is_a_vote(
    form: str, content: Any, columns: dict[str, Any], expected: list[Row], tmp_path: Path
) -> None:
    assert votes(form, tmp_path, content, **columns) == expected


@pytest.mark.parametrize("field", ["agent", "domain", "group"])
def test_what_a_wide_table_says_of_an_item_is_in_each_vote(tmp_path: Path, field: str) -> None:
    """Without an agent the scores of a consensus are by nobody, and without groups intervals are over items."""
    path = tmp_path / "wide.csv"
    for name, others in ((field, {}), ("named", {field: "named"})):
        path.write_text(f"id,{name},ann\na,x,4\n")
        columns = ExportColumns(raters=["ann"], others=others)
        (vote,) = read_export(EXPORT_READERS["wide"], path, columns)
        assert (vote.item, getattr(vote, field), vote.label) == ("a", "x", 4.0)


@all_rows(
    ("form", "content", "columns", "message"),
    [
        (
            "label-studio",
            LABEL_STUDIO,
            {"label": "ratng"},
            "export.json: has no answers to 'ratng'; --target-column may name rating, tone",
        ),
        (
            "label-studio",
            LABEL_STUDIO,
            {"item": "response"},
            "[0]: has no column 'response'; did you mean response_id? If not, name one that is "
            "there with --id-column",
        ),
        (
            "label-studio",
            [{"id": 1, "annotations": [{"result": [RATING]}]}],
            {},
            "[0], field annotations[0]: `annotator` is null; write text",
        ),
        (
            "label-studio",
            [{"id": 1, "annotations": [{"result": {}}]}],
            {},
            "[0], field annotations[0].result: is an object; write a list",
        ),
        ("label-studio", [{"id": 1, "rating": 4}], {}, "[0], field annotations: is missing"),
        ("argilla", LABEL_STUDIO, {}, "[0], field responses: is missing"),
        ("argilla", [{**ARGILLA[0], "responses": {}}], {}, "is empty, or nobody answered"),
        ("qualtrics", WIDE, {}, "line 3: has no ImportId of a question (QID1); export as CSV"),
        ("wide", WIDE, {}, "--rater-columns: is missing; name the columns of the raters"),
        (
            "wide",
            WIDE,
            {"item": "answer", "raters": ["bob"]},
            "line 1: has no column 'bob'; did you mean bo?",
        ),
        (
            "wide",
            [["item", "ann"], ["a", "3,5"]],
            {"raters": ["ann"]},
            "line 2, field ann: is '3,5', with a decimal comma; write 3.5",
        ),
        (
            "wide",
            [["name", "ann", "note"], ["a", "3", ""], ["", "", "1 to 5"], ["", "4", ""]],
            {"item": "name", "raters": ["ann"]},
            "line 4, field name: `item` is",
        ),
    ],
)
def test_what_is_no_such_export_is_named_with_its_place(
    form: str, content: Any, columns: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as refused:
        votes(form, tmp_path, content, **columns)
    assert message in str(refused.value)
