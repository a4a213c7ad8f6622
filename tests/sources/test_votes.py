"""Votes and gold labels in every file format; a label is a number, a word or an abstention."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import ConfigError, InputError
from jurygraph.schema.rating import Rating, Vote
from jurygraph.sources.ratings import VotesFile, read_gold, read_ratings, read_votes
from tests.sources.test_ratings import FORMS, refusal, table

every_form = pytest.mark.parametrize("suffix", FORMS)


def row(**fields: Any) -> dict[str, Any]:
    return {"item": "a", "annotator": "ada", "label": 3, **fields}


def labels(read: VotesFile) -> list[Any]:
    return [vote.label for _, vote in read.rows]


# Votes


@every_form
def test_every_form_gives_the_same_votes(suffix: str, tmp_path: Path) -> None:
    full = row(agent="small", dimension="tone", domain="travel", group="trips")
    bare = row(item="b", label=None, agent=None, dimension=None, domain=None, group=None)
    read = read_votes(table(tmp_path / f"votes{suffix}", full, bare))
    assert read.path == str(tmp_path / f"votes{suffix}")
    assert [vote for _, vote in read.rows] == [
        Vote(
            item="a",
            annotator="ada",
            label=3.0,
            agent="small",
            dimension="tone",
            domain="travel",
            group="trips",
        ),
        Vote(item="b", annotator="ada", label=None),
    ]


# Numbers, words, and nothing


@given(numbers=st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_csv_labels_are_numbers_if_all_are_numerals(
    numbers: list[float | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    rows = [
        row(item=place, label="" if one is None else repr(one)) for place, one in enumerate(numbers)
    ]
    assert labels(read_votes(table(tmp_path_factory.mktemp("v") / "v.csv", *rows))) == numbers


def test_numerals_among_words_are_numbers_in_csv_and_where_excel_stores_text(
    tmp_path: Path,
) -> None:
    rows = [row(label=" 1 "), row(label="not  good "), row(label="  ")]
    assert labels(read_votes(table(tmp_path / "v.csv", *rows))) == [1.0, "not good", None]
    rows = [row(item="07", label="4"), row(item="8", label=5), row(item="9", label="ok")]
    file = read_votes(table(tmp_path / "v.xlsx", *rows))
    assert labels(file) == [4.0, 5.0, "ok"]
    assert [vote.item for _, vote in file.rows] == ["07", "8", "9"]
    scores = read_ratings(table(tmp_path / "r.xlsx", *rows[:2]))
    assert [rating.score for _, rating in scores.rows] == [4.0, 5.0]


@every_form
def test_a_word_for_no_label_is_none_unless_it_is_a_class(suffix: str, tmp_path: Path) -> None:
    path = table(tmp_path / f"v{suffix}", row(label="no"), row(label="N/A"), row(label="unsure"))
    read = read_votes(path)
    assert (labels(read), read.empty) == (["no", None, None], 2)
    read = read_votes(path, scales={"": ["no", "Unsure", "yes"]})
    assert (labels(read), read.empty) == (["no", None, "unsure"], 1)
    mixed = table(tmp_path / "mixed.csv", row(label="1"), row(label="?"))
    assert labels(read_votes(mixed)) == [1.0, None]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_labels_in_json_keep_their_type(suffix: str, tmp_path: Path) -> None:
    rows = [row(label=2), row(label="2"), row(label=2.5), row(label=None), row(label=" ")]
    assert labels(read_votes(table(tmp_path / f"v{suffix}", *rows))) == [2.0, "2", 2.5, None, None]


def test_a_value_that_is_not_finite_is_never_a_label(tmp_path: Path) -> None:
    assert labels(read_votes(table(tmp_path / "v.csv", row(label="nan"), row(label="inf")))) == [
        "nan",
        "inf",
    ]
    assert "line 1, field label: NaN is not JSON; write a number" in refusal(
        table(tmp_path / "v.jsonl", row(label=math.nan)), {}, read_votes
    )
    error_text = refusal(table(tmp_path / "w.csv", row(label="1e999")), {}, read_votes)
    assert error_text == "w.csv, line 2, field label: is '1e999'; write a finite number"
    parquet = table(
        tmp_path / "v.parquet", row(label=math.nan), row(label=math.inf), row(label=1.0)
    )
    assert labels(read_votes(parquet)) == [None, None, 1.0]


def test_true_and_false_as_excel_has_them_are_the_words(tmp_path: Path) -> None:
    rows = [row(label=True), row(label=False), row(label="true")]
    assert labels(read_votes(table(tmp_path / "v.jsonl", *rows))) == ["true", "false", "true"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(), row(label=[1])], "v.jsonl, line 2 (a, ada), field label: is a list; "),
        ([row(item="")], "v.jsonl, line 1, field item: is empty; "),
        ([row(annotator=None)], "v.jsonl, line 1, field annotator: is null; "),
        ([{"item": "a", "annotator": "x"}], "v.jsonl: has no column 'score' or 'label'; "),
        (
            [row(score=1)],
            "v.jsonl: has the columns 'score' and 'label', which say the same; ",
        ),
        ([], "v.jsonl: has no rows; "),
    ],
)
def test_an_error_is_reported_with_its_line(
    rows: list[dict[str, Any]], message: str, tmp_path: Path
) -> None:
    assert refusal(table(tmp_path / "v.jsonl", *rows), {}, read_votes).startswith(message)


def test_a_column_may_be_mapped_by_either_of_its_two_names(tmp_path: Path) -> None:
    path = table(tmp_path / "v.csv", {"item": "a", "who": "ada", "stars": 3})
    (_, vote), (_, rating) = (
        read(path, {"reviewer": "who", name: "stars"}).rows[0]
        for read, name in ((read_votes, "score"), (read_ratings, "label"))
    )
    assert (vote, rating) == (
        Vote(item="a", annotator="ada", label=3.0),
        Rating(item="a", reviewer="ada", score=3.0),
    )
    with pytest.raises(ConfigError, match="'score' is not a column of such a file"):
        read_votes(path, {"score": "stars", "label": "stars"})


# Gold


@every_form
def test_gold_labels_are_by_item_key_with_their_line(suffix: str, tmp_path: Path) -> None:
    rows = [{"item": "a", "agent": "m", "label": 1}, {"item": "b", "agent": None, "label": None}]
    known = read_gold(table(tmp_path / f"gold{suffix}", *rows))["label"]
    assert list(known) == ["a_m"]
    assert float(known["a_m"].label) == 1.0
    assert known["a_m"].location.startswith(f"{tmp_path}/gold{suffix}, ")


def test_an_item_has_one_gold_label(tmp_path: Path) -> None:
    same, other = {"item": "a", "label": 1}, {"item": "a", "label": 2}
    assert list(read_gold(table(tmp_path / "g.jsonl", same, same))["label"]) == ["a"]
    path = table(tmp_path / "h.jsonl", same, other)
    with pytest.raises(
        InputError, match=r"h.jsonl, line 2, field label: is not the label that item 'a' has in"
    ):
        read_gold(path)
