"""Sheets are balanced and blinded, and say after they were filled in what was rated."""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import InputError
from jurygraph.sources.sheets import (
    SheetItem,
    SheetQuestion,
    assign_reviewers,
    make_sheets,
    read_gold_for_sheets,
    read_items_for_sheets,
    read_sheet_votes,
    sheet_rows_to_csv,
)
from tests.rows import all_rows

Strata = list[tuple[str, str]]
STRATA = st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("de")), min_size=1, max_size=40)


@given(STRATA, st.integers(1, 6), st.data(), st.integers(0, 99))
def test_items_and_reviewers_of_all_and_of_every_stratum_are_balanced(
    strata: Strata, reviewers: int, data: st.DataObject, seed: int
) -> None:
    per_item = data.draw(st.integers(1, reviewers))
    assigned = assign_reviewers(strata, reviewers, per_item, np.random.default_rng(seed))
    assert (assigned.sum(axis=1) == per_item).all()
    parts = [[True] * len(strata)]
    parts += [[one == stratum for one in strata] for stratum in set(strata)]
    parts += [[agent == other for other, _ in strata] for agent, _ in strata]
    for part in parts:
        loads = assigned[np.array(part)].sum(axis=0)
        assert loads.max() - loads.min() <= 1


def test_any_two_reviewers_share_items_though_they_are_dealt_round_the_table() -> None:
    assigned = assign_reviewers([("", "")] * 300, 6, 2, np.random.default_rng(0)).astype(int)
    shared = (assigned.T @ assigned)[np.triu_indices(6, 1)]
    assert shared.sum() == 300
    assert 8 <= shared.min() < shared.max() <= 32  # 20 on average, with the spread of chance


def items_of(number: int) -> list[SheetItem]:
    texts = {"text": "The text"}
    return [
        SheetItem(item=f"q{place}", agent=agent, **texts)
        for place in range(number)
        for agent in ("m1", "m2")
    ]


def write(folder: Path, made: dict[str, list[dict[str, str]]], key: list[str]) -> list[Path]:
    paths = [folder / "key.jsonl", *(folder / f"{name}.csv" for name in made)]
    paths[0].write_text("\n".join(key), encoding="utf-8")
    for path, rows in zip(paths[1:], made.values(), strict=True):
        path.write_bytes(b"".join(sheet_rows_to_csv(rows)))
    return paths


def test_sheets_say_nothing_of_agents_and_can_be_made_again() -> None:
    items = items_of(9)
    gold = [SheetItem(item="g", text="Known")]
    asked = [SheetQuestion(dimension=name) for name in ("taste", "length")]
    made = make_sheets(items, gold, ["bob", "ann", "cy"], 2, asked, seed=4)
    again = make_sheets(items[::-1], gold, ["ann", "bob", "cy"], 2, asked, seed=4)
    other = make_sheets(items, gold, ["ann", "bob", "cy"], 2, asked, seed=5)
    assert (made.sheets, made.key) == (again.sheets, again.key)
    assert made.sheets != other.sheets
    assert [len(rows) for rows in made.sheets.values()] == [26, 26, 26]
    for rows in made.sheets.values():
        assert {name for row in rows for name in row} == {
            "item",
            "dimension",
            "text",
            "score",
            "reason",
        }
        assert not any("m1" in value or "q" in value for row in rows for value in row.values())
    assert Counter(row.reviewer for row in made.key if row.item == "g") == {
        "ann": 2,
        "bob": 2,
        "cy": 2,
    }
    assert len({row.id for row in made.key}) == len(made.key)
    orders = {
        name: [row.item for row in made.key if row.reviewer == name and row.item != "g"]
        for name in made.sheets
    }
    assert len({tuple(order) for order in orders.values()}) == 3


def test_an_item_goes_to_who_has_not_rated_it_as_far_as_there_are_any() -> None:
    raters = {"q0": ["ann"], "q1": ["ann", "bob"], "q2": ["ann", "bob", "cy"]}
    items = [SheetItem(item=f"q{number}", text="A") for number in range(9)]
    made = make_sheets(items, (), ["ann", "bob", "cy"], 1, raters=raters)
    reviewers = {row.item: row.reviewer for row in made.key}
    again = [name for name in raters if reviewers[name] in raters[name]]
    assert (again, made.repeated) == (["q2"], 1)
    assert sorted(Counter(reviewers.values()).values()) == [3, 3, 3]


def test_a_pair_is_read_back_as_it_was_whatever_side_was_shown_first(tmp_path: Path) -> None:
    """Everybody prefers the longer text; one word, one number and one gap."""
    items = [
        SheetItem(item=f"q{place}", first="long " * 3, second="short", group="g")
        for place in range(8)
    ]
    made = make_sheets(items, (), ["ann", "bob"], 2)
    sheets = {name: [dict(row) for row in rows] for name, rows in made.sheets.items()}
    for rows in sheets.values():
        is_first = [row["first"].startswith("long") for row in rows]
        assert sum(is_first) == 4
        for row, first in zip(rows, is_first, strict=True):
            row |= {"score": "First" if first else "1", "reason": "=longer"}
    sheets["bob"][0]["score"] = ""
    sheets["bob"][1]["score"] = "tie"
    read = list(
        read_sheet_votes(write(tmp_path, sheets, [row.model_dump_json() for row in made.key]))
    )
    assert Counter((vote.annotator, vote.label) for vote in read) == {
        ("ann", -1.0): 8,
        ("bob", -1.0): 6,
        ("bob", None): 1,
        ("bob", 0.0): 1,
    }
    assert {(vote.reason, vote.group) for vote in read} == {("=longer", "g")}
    with (tmp_path / "ann.csv").open(encoding="utf-8") as file:
        assert {row["reason"] for row in csv.DictReader(file)} == {"'=longer"}


@all_rows(
    "change, message",
    [
        (
            {"item": "other"},
            "ann.csv, line 2, field item: 'other' is not in .*key.jsonl; name the key of these sheets",
        ),
        (
            {"score": "good"},
            "ann.csv, line 2, field score: is 'good'; write a number, or leave it empty",
        ),
        ({"score": "first"}, "field score: is 'first'; write a number"),
        ({"score": "1e999"}, "ann.csv, line 2, field score: is .1e999.; write a number"),
    ],
)
def test_a_row_that_cannot_be_read_is_refused(
    tmp_path: Path, change: dict[str, str], message: str
) -> None:
    made = make_sheets(items_of(1), (), ["ann"], 1)
    rows = [dict(row) for row in made.sheets["ann"]]
    rows[0] |= change
    paths = write(tmp_path, {"ann": rows}, [row.model_dump_json() for row in made.key])
    with pytest.raises(InputError, match=message):
        list(read_sheet_votes(paths))


def test_scores_on_a_scale_are_its_classes_be_they_numbers_or_words(tmp_path: Path) -> None:
    for classes, scores in (((0.0, 1.0), ("1.0", "0")), (("bad", "good"), ("bad", "good"))):
        made = make_sheets(items_of(1), (), ["ann"], 1, [SheetQuestion(classes=classes)])
        key = [row.model_dump_json() for row in made.key]
        rows = [dict(row) for row in made.sheets["ann"]]
        for row, score in zip(rows, scores, strict=True):
            row["score"] = score
        labels = [vote.label for vote in read_sheet_votes(write(tmp_path, {"ann": rows}, key))]
        assert sorted(labels, key=str) == list(classes)
        rows[0]["score"] = "n/a"
        written = write(tmp_path, {"ann": rows}, key)
        assert [vote.label for vote in read_sheet_votes(written)].count(None) == 1
        rows[1]["score"] = "2"
        with pytest.raises(InputError, match=r"score: is '2'; write one of (0, 1|bad, good), or"):
            list(read_sheet_votes(write(tmp_path, {"ann": rows}, key)))


def test_an_item_has_one_text_or_two() -> None:
    for texts in ({}, {"text": "a", "first": "b", "second": "c"}, {"first": "b"}):
        with pytest.raises(ValueError, match="`text` is needed, or else `first` and `second`"):
            SheetItem.model_validate({"item": "q", **texts})


def test_a_file_of_items_without_a_column_of_texts_is_refused_by_line_and_field(
    tmp_path: Path,
) -> None:
    path = tmp_path / "items.csv"
    path.write_text("item,txt\na,b\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"items.csv, line 2, field text: is needed, or else"):
        read_items_for_sheets(path)


def test_an_item_of_several_ratings_is_one_and_has_one_text(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    rows = "item,agent,annotator,label,text\na,x,ann,1,A\na,x,bo,2,A\na,y,ann,1,Y\n"
    path.write_text(rows, encoding="utf-8")
    assert [row.key for _, row in read_items_for_sheets(path).rows] == ["a_x", "a_y"]
    path.write_text("item,text,prompt\na,Hi.,Greet.\na,Hi.,\n", encoding="utf-8")
    assert [row.prompt for _, row in read_items_for_sheets(path).rows] == ["Greet."]
    path.write_text(f"{rows}a,x,cy,1,B\n", encoding="utf-8")
    problem = (
        "line 5, field text: is not the text that item 'a_x' has in line 2; give each item one text"
    )
    with pytest.raises(InputError, match=problem):
        read_items_for_sheets(path)


def test_gold_items_without_texts_are_looked_up_in_the_items(tmp_path: Path) -> None:
    items = [
        SheetItem(item="a", agent="x", text="A"),
        SheetItem(item="a", agent="y", text="B"),
        SheetItem(item="r1", text="C"),
    ]
    gold = tmp_path / "gold.csv"
    gold.write_text("ID,agent,tone,label\na,y,kind,1\na,y,kind,2\nr1,,,\n", encoding="utf-8")
    assert read_gold_for_sheets(gold, items, {"item": "ID", "text": "reply"}) == items[1:]
    gold.write_text("item,text\nnew,Own text.\n", encoding="utf-8")
    assert [item.key for item in read_gold_for_sheets(gold, items)] == ["new"]
    gold.write_text("item,label\nr1,1\nr2,1\n", encoding="utf-8")
    problem = "line 3: 'r2' is none of the items; name it as they do"
    with pytest.raises(InputError, match=problem):
        read_gold_for_sheets(gold, items)


def test_rows_of_the_key_that_no_sheet_has_are_told_from_empty_ones(tmp_path: Path) -> None:
    made = make_sheets(items_of(3), (), ["ann", "bob"], 2)
    key = [row.model_dump_json() for row in made.key]
    sheets = {"ann": [{**row, "score": "1"} for row in made.sheets["ann"][2:]]}
    sheets["ann"][0]["score"] = ""
    votes = list(read_sheet_votes(write(tmp_path, sheets, key)))
    found = Counter((vote.annotator, vote.is_returned, vote.label) for vote in votes)
    assert found == {
        ("ann", True, 1.0): 3,
        ("ann", True, None): 1,
        ("ann", False, None): 2,
        ("bob", False, None): 6,
    }
