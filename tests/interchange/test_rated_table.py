"""Tables of rated texts: tasks and votes that join."""

from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.interchange.rated_table import read_rated_table
from jurygraph.schema import Response, Task
from tests.rows import all_rows

RATED = """item,who,stars,text,agent,question
q1,ann,4,"It is, so",gpt,What?
q1,bo,3,"It is, so",gpt,What?
q1,ann,1,No,qwen,What?
q2,bo,,Because,gpt,Why?
"""
RENAMED = {"label": "stars", "annotator": "who", "prompt": "question"}


def test_a_table_of_ratings_makes_tasks_and_votes_that_join(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(RATED)
    table = read_rated_table([tmp_path / "people.csv"], RENAMED)
    assert [task.split() for task in table.tasks] == [
        (
            Task(id="q1", query="What?", reviewers=("ann", "bo")),
            (
                Response(id="q1_gpt", text="It is, so", agent="gpt"),
                Response(id="q1_qwen", text="No", agent="qwen"),
            ),
        ),
        (
            Task(id="q2", query="Why?", reviewers=("bo",)),
            (Response(id="q2_gpt", text="Because", agent="gpt"),),
        ),
    ]
    assert [(vote.key, vote.annotator, vote.label) for vote in table.votes] == [
        ("q1_gpt", "ann", 4.0),
        ("q1_gpt", "bo", 3.0),
        ("q1_qwen", "ann", 1.0),
        ("q2_gpt", "bo", None),
    ]
    assert [vote.prompt for vote in table.votes] == ["What?", "What?", "What?", "Why?"]


def test_a_name_with_blanks_around_it_is_the_same_person(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(RATED.replace("q1,ann,1", "q1, ann ,1"))
    table = read_rated_table([tmp_path / "people.csv"], RENAMED)
    assert table.tasks[0].split()[0].reviewers == ("ann", "bo")
    assert {vote.annotator for vote in table.votes} == {"ann", "bo"}


def test_a_blank_prompt_is_none_where_another_agent_has_that_of_the_item(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(RATED.replace('It is, so",gpt,What?', 'It is, so",gpt, '))
    table = read_rated_table([tmp_path / "people.csv"], RENAMED)
    assert [task.query for task in table.tasks] == ["What?", "Why?"]


def test_a_row_that_differs_in_a_column_that_is_not_read_is_no_copy(tmp_path: Path) -> None:
    rows = ("a,A,ann,1,fluency", "a,A,ann,1,accuracy", "a,A,ann,1,accuracy", "a,A,bo,0,fluency")
    (tmp_path / "aspects.csv").write_text(
        "\n".join(("item,text,annotator,label,aspect", *rows)), encoding="utf-8"
    )
    table = read_rated_table([tmp_path / "aspects.csv"], {})
    assert [vote.label for vote in table.votes] == [1.0, 1.0, 0.0]


@all_rows(
    "columns, change, message",
    [
        ({"lable": "stars"}, ("", ""), "--column lable: is not a column of ratings; did you"),
        (
            {"stars": "label"},
            ("", ""),
            "--column stars: is not a column of ratings; did you mean label=stars?",
        ),
        ({}, ("", ""), "people.csv, line 1: has no column "),
        (RENAMED, ("so", "no"), "people.csv, line 3, field text: is not the text that item 'q1_g"),
        (RENAMED, ("qwen,What", "qwen,Who"), "people.csv: item 'q1' has two prom"),
    ],
)
def test_a_table_that_makes_no_ratings_is_refused(
    columns: dict[str, str], change: tuple[str, str], message: str, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text(RATED.replace(*change, 1) if change[0] else RATED)
    with pytest.raises(InputError) as refused:
        read_rated_table([tmp_path / "people.csv"], columns)
    assert message in str(refused.value)
