"""Votes of several files become columns on one scale; errors name the invalid line."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.sources.ratings import LabelWithPlace, VotesFile
from jurygraph.studies.votes import VoteColumns, collect_votes
from tests.rows import all_rows
from tests.studies.consensus.made import NAMES, votes_file

TWO = [("a", "x", 0.0), ("a", "y", 1.0)]


def gold_label(item: str, label: Any) -> Mapping[str, LabelWithPlace]:
    return {item: LabelWithPlace("gold.csv, line 2", NAMES, label)}


# Valid votes


def test_votes_of_all_files_are_combined() -> None:
    found = collect_votes([votes_file(*TWO), votes_file(("b", "x", 2.0), path="w.csv")])
    assert found == VoteColumns(
        ["a", "a", "b"],
        ["a", "a", "b"],
        ["x", "y", "x"],
        [0, 1, 2],
        (0, 1, 2),
        None,
        None,
        {},
        [0.0, 0.5, 1.0],
        location=["line 2 of v.csv", "line 3 of v.csv", "line 2 of w.csv"],
        details=[{"group": None}] * 3,
    )


def test_without_a_scale_the_classes_are_the_sorted_numbers() -> None:
    assert collect_votes(
        [votes_file(("a", "x", 10.0), ("a", "y", 2.5), ("b", "x", -1.0), ("b", "y", None))]
    ).classes == (
        -1,
        2.5,
        10,
    )


def test_the_key_of_an_item_includes_its_agent() -> None:
    found = collect_votes([votes_file(*TWO, agent=["m", "n"])])
    assert (found.item, found.agent) == (["a_m", "a_n"], ["m", "n"])


def test_groups_become_prompts() -> None:
    assert collect_votes([votes_file(*TWO, group=["p", "p"])]).prompt == ["p", "p"]


@pytest.mark.parametrize(
    ("classes", "labels", "expected"),
    [
        (["bad", "ok", "good"], ["good", "bad", None], ["good", "bad", None]),
        (["0", "1", "2"], [2.0, "2", 0.0], [2, 2, 0]),
        (["0", "1.5", "n/a"], ["n/a", 1.5, "0.0"], ["n/a", 1.5, 0]),
    ],
)
def test_a_given_scale_accepts_numbers_and_words(
    classes: Sequence[str], labels: list[Any], expected: list[Any]
) -> None:
    found = collect_votes(
        [votes_file(*(("a", f"x{place}", one) for place, one in enumerate(labels)))],
        classes=classes,
    )
    assert found.label == expected
    assert len(found.classes) == 3


@all_rows(
    "classes, label, expected",
    [
        (["1", "2", "3", "4", "5"], 3.5, 4),
        (["1", "2", "3", "4", "5"], 2.5, 2),
        (["1", "2", "3", "4", "5"], 1.5, 1),
        (["1", "2", "3", "4", "5"], "4.4", 4),
        (["5", "3", "1"], 4.5, 5),
        (["0", "0.5", "1"], 0.7, 0.5),
    ],
)
def test_a_fraction_within_a_named_scale_is_the_nearest_class_and_that_is_counted(
    classes: Sequence[str], label: Any, expected: float
) -> None:
    """Half way the one farther from the middle, so that nobody becomes more lenient."""
    ballots = collect_votes([votes_file(("a", "x", label))], classes=classes)
    assert ballots.label == [expected]
    assert ballots.spelling_change_counts == {f"'{label}' as {expected}": 1}
    for outside in (5.5, 0.5 - 1, 1e9):
        with pytest.raises(InputError, match="which is off the scale"):
            collect_votes([votes_file(("a", "x", outside))], classes=classes)
    with pytest.raises(InputError, match="is the number 4, which is off the scale 1, 2, 5; "):
        collect_votes([votes_file(("a", "x", 4))], classes=["1", "2", "5"])


def test_words_without_agents_are_sorted_classes_without_an_order_in_their_commonest_spelling() -> (
    None
):
    labels = ["bug", "question", "Bug", "bug", "feature", None]
    rows = [("a", f"x{place}", label) for place, label in enumerate(labels)]
    found = collect_votes([votes_file(*rows)])
    assert (found.classes, found.has_order) == (("bug", "feature", "question"), False)
    assert found.label == ["bug", "question", "bug", "bug", "feature", None]
    assert found.spelling_change_counts == {"'Bug' as bug": 1}
    ordered = collect_votes([votes_file(*rows)], classes=["question", "feature", "bug"])
    assert (ordered.has_order, ordered.spelling_change_counts) == (True, {"'Bug' as bug": 1})


@all_rows(
    "labels, classes, respelt",
    [
        (
            ["yes", "no", "TRUE", "FALSE", "yes"],
            ["no", "yes"],
            {"'TRUE' as yes": 1, "'FALSE' as no": 1},
        ),
        (
            ["Pass", "fail", "yes", "fail"],
            ["fail", "pass"],
            {"'Pass' as pass": 1, "'yes' as pass": 1},
        ),
        (["not met", "met", 1.0, 0.0], ["not met", "met"], {"'1' as met": 1, "'0' as not met": 1}),
        (["yes", "0"], ["no", "yes"], {"'0' as no": 1}),
        # with one spelling of each, classes are what people write
        (["failed", "Pass", "pass", "pass"], ["failed", "pass"], {"'Pass' as pass": 1}),
        ([0.0, 1.0], [0, 1], {}),
        (["yes", "TRUE", "unclear"], ["TRUE", "unclear", "yes"], {}),
    ],
)
def test_words_and_numbers_that_say_the_same_decision_are_one_pair_of_classes_and_that_is_counted(
    labels: Sequence[Any], classes: Sequence[Any], respelt: Mapping[str, int]
) -> None:
    file = votes_file(*(("a", f"x{place}", label) for place, label in enumerate(labels)))
    ballots = collect_votes([file], gold=gold_label("a", labels[0]))
    assert (list(ballots.classes), ballots.spelling_change_counts) == (classes, respelt)
    assert set(ballots.label) <= set(classes)
    assert ballots.gold == {"a": ballots.label[0]}


def test_a_named_pair_of_classes_takes_other_words_for_a_decision_and_a_longer_scale_does_not() -> (
    None
):
    file = votes_file(("a", "x", "TRUE"), ("a", "y", 0.0), ("b", "x", "pass"))
    for classes in (["no", "yes"], ["0", "1"], ["fail", "pass"]):
        ballots = collect_votes([file], classes=classes, gold=gold_label("a", "y"))
        low, high = ballots.classes
        assert (ballots.label, ballots.gold) == ([high, low, high], {"a": high})
    for longer in (["no", "unclear", "yes"], ["1", "2", "3"]):
        with pytest.raises(InputError, match="is the text 'TRUE', which is off the scale"):
            collect_votes([file], classes=longer)
    with pytest.raises(InputError, match="every label is yes, and there is nothing to tell apart"):
        collect_votes([votes_file(("a", "x", "yes"), ("a", "y", "TRUE"))])


def test_the_requested_dimension_is_selected() -> None:
    found = collect_votes(
        [votes_file(*TWO, ("b", "x", 1.0), dimension=["tone", "tone", "form"])], dimension="tone"
    )
    assert found.item == ["a", "a"]
    assert collect_votes([votes_file(*TWO, dimension=["tone", "tone"])]).item == ["a", "a"]


def test_rows_without_a_dimension_are_of_the_one_that_their_column_is_called_by_and_others_are_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tones = votes_file(("b", "x", 2.0), ("b", "y", 1.0), path="w.csv", dimension=["tone", "form"])
    plain = votes_file(*TWO)
    named = replace(plain, columns={**NAMES, "label": "tone"})
    assert collect_votes([named, tones], "tone").item == ["a", "a", "b"]
    assert collect_votes([named], "tone").dimension == "tone"
    assert caplog.text == ""
    message = r"v.csv, w.csv: has the dimensions tone, form, and 2 rows without one; call "
    with pytest.raises(InputError, match=message):
        collect_votes([plain, tones])
    assert collect_votes([plain, tones, votes_file(("b", "z", 1.0), dimension=["tone"])], "tone")
    assert (
        "v.csv: rows without a `dimension` beside others, left out by --dimension: 2; "
        in caplog.text
    )


def test_gold_labels_are_converted_to_classes() -> None:
    assert collect_votes([votes_file(*TWO)], gold=gold_label("a", "1")).gold == {"a": 1}


# Invalid votes


@all_rows(
    ("file", "options", "message"),
    [
        (
            votes_file(("a", "x", 0.0), ("b", "x", 7.0)),
            {"classes": ["0", "1"]},
            "v.csv, line 3 (b, x), field label: is the number 7, which is off the scale 0, 1; write one of these",
        ),
        (
            votes_file(("a", "x", "goood")),
            {"classes": ["bad", "good"]},
            "v.csv, line 2 (a, x), field label: is the text 'goood', which is off the scale bad, good; did you",
        ),
        (
            votes_file(("a", "x", "good"), ("b", "x", "bad"), agent=["m", "m"]),
            {},
            "v.csv, line 2 (a_m, x), field label: is 'good', and only numbers have an order by themselves; ",
        ),
        (
            votes_file(("a", "x", "1"), ("b", "x", "nan"), ("c", "x", "2")),
            {},
            "v.csv, line 3 (b, x), field label: is 'nan', and only numbers have an order by themselves; ",
        ),
        (
            votes_file(
                *(("a", name, "yes") for name in "xyz"), ("b", "x", 3.0), dimension=["ok"] * 4
            ),
            {},
            "v.csv, line 5 (b, x), field label: is '3', where most labels are words; write one, or name all labels "
            "from low to high with --classes ok=LOWEST,…,HIGHEST",
        ),
        (
            votes_file(("a", "x", "yes"), ("a", "x", "Harm"), dimension=["ok", "safety"]),
            {"dimension": "ok", "classes": ["safe", "harm"]},
            "v.csv, line 2 (a, x), field label: is the text 'yes', which is off the scale safe, harm; write one of "
            "these, or have --classes name it, by QUESTION=A,B if they are another question's",
        ),
        (
            votes_file(*((f"i{n}", "x", float(n * n)) for n in range(12))),
            {},
            "v.csv: 12 labels have 12 different values, which are no classes; `jurygraph study agreement "
            "--level interval` compares them as numbers; or write classes",
        ),
        (
            votes_file(*((f"i{n}", "x", f"text {n}") for n in range(12))),
            {},
            "v.csv: 12 labels have 12 different values, which are no classes; name the column of the labels, or ",
        ),
        (
            votes_file(("a", "x", "bug"), ("b", "x", "Bug")),
            {},
            "v.csv: every label is bug, and there is nothing to tell apart; name the whole scale with ",
        ),
        (
            votes_file(("a", "x", 1.0), ("b", "x", None)),
            {},
            "v.csv: every label is 1, and there is nothing to tell apart; ",
        ),
        (votes_file(("a", "x", None)), {}, "v.csv: nothing but abstentions; "),
        (votes_file(("a", "x", None)), {"classes": ["0", "1"]}, "v.csv: nothing but abstentions; "),
        (votes_file(*TWO), {"classes": ["1"]}, "--classes: is 1; name 2 classes or more"),
        (votes_file(*TWO), {"classes": ["0", "1", "1.0"]}, "--classes: is 0,1,1.0; name 2 classes"),
        (votes_file(*TWO), {"classes": ["0", ""]}, "--classes: is 0,; name 2 classes or more"),
        (
            votes_file(*TWO, dimension=["tone", "form"]),
            {},
            "v.csv: has the dimensions tone, form; pick one with --dimension",
        ),
        (
            votes_file(*TWO, dimension=["tone", None]),
            {},
            "v.csv: has the dimensions tone, and 1 rows without one; call",
        ),
        (
            votes_file(*TWO, dimension=["tone", "form"]),
            {"dimension": "ton"},
            "--dimension: no rating is of 'ton'; did you",
        ),
        (
            votes_file(*TWO),
            {"dimension": "tone"},
            "--dimension: no rating is of 'tone'; there are none",
        ),
        (
            votes_file(*TWO, agent=["m", None]),
            {},
            "v.csv, line 3, field agent: is empty, and other rows have one; give every row one",
        ),
        (
            votes_file(*TWO, group=[None, "p"]),
            {},
            "v.csv, line 2, field group: is empty, and other rows have one; ",
        ),
        (
            votes_file(*TWO, group=["p", "q"]),
            {},
            "v.csv, line 3, field group: is not the group of item 'a' in v.csv, line 2; give each item one",
        ),
        (
            votes_file(("a_b", "x", 0.0), ("a", "x", 1.0), agent=["c", "b_c"]),
            {},
            "v.csv, line 3, field item: is not the item of item 'a_b_c' in v.csv, line 2; give each",
        ),
        (
            votes_file(*TWO),
            {"gold": gold_label("b", 1.0)},
            "gold.csv, line 2, field item: nobody labelled item 'b'; ",
        ),
        (
            votes_file(("q012", "x", 0.0), ("q012", "y", 1.0), agent=["gpt-5-mini"] * 2),
            {"gold": gold_label("q12", 1.0)},
            "gold.csv, line 2, field item: nobody labelled item 'q12'; did you mean q012?",
        ),
        (
            votes_file(*TWO),
            {"gold": gold_label("a", 3.0)},
            "gold.csv, line 2, field label: is the number 3, which is off the scale",
        ),
    ],
)
def test_errors_name_the_invalid_line(
    file: VotesFile, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError) as raised:
        collect_votes([file], **options)
    assert str(raised.value).startswith(message)
