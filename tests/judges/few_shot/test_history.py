"""The history of ratings: its examples by reviewer, dimension and domain, in any order of the file."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.errors import InputError
from jurygraph.judges.examples import Example, OmittedRatings, ReviewerHistory
from jurygraph.judges.reviewers import Personalized
from jurygraph.schema import digest_of
from jurygraph.schema.rating import Rating
from jurygraph.sources.ratings import RatingsFile
from tests.rows import all_rows

SCALES = {"clarity": (1.0, 5.0), "depth": (0.0, 3.0)}
ONE = {"clarity": (1.0, 5.0)}


def rating(
    reviewer: str = "ada", item: str = "a", score: float | None = 3, **fields: Any
) -> Rating:
    stated = {"dimension": "clarity", "text": f"text of {item}", **fields}
    return Rating(reviewer=reviewer, item=item, score=score, **stated)


def ratings_of(*rows: Rating) -> RatingsFile:
    return RatingsFile(
        "r.csv", tuple((f"line {place}", row) for place, row in enumerate(rows, start=2))
    )


def history(
    *rows: Rating, texts: Mapping[str, str] = {}, scales: Mapping[str, tuple[float, float]] = SCALES
) -> Any:
    return ReviewerHistory(ratings_of(*rows), texts, scales=scales)


def shown(examples: Iterable[Example]) -> list[tuple[str, str, float]]:
    return [(one.reviewer, one.key, one.score) for one in examples]


def omissions(found: ReviewerHistory) -> list[tuple[str, int, str]]:
    return [(left.kind, left.number, left.first) for left in found.left_out]


# Look-ups

BUSY = (
    rating("bo", "b", 2, domain="travel"),
    rating("ada", "c", 5, domain="food"),
    rating("ada", "a", 4, domain="travel", group="g", reason="short"),
    rating("cy", "a", 1, domain="travel"),
    rating("ada", "a", 3, domain="travel", dimension="depth"),
    rating("bo", "a", 2),
)


def test_a_reviewer_has_the_examples_of_a_dimension_and_domain_and_others_have_theirs() -> None:
    found = history(*BUSY)
    clarity = found.examples_by_pool("ada", "clarity")
    assert shown(clarity["own"]) == [("ada", "a", 4), ("ada", "c", 5)]
    assert shown(clarity["others"]) == [("bo", "a", 2), ("bo", "b", 2), ("cy", "a", 1)]
    travel = found.examples_by_pool("ada", "clarity", "travel")
    assert shown(travel["own"]) == [("ada", "a", 4)]
    assert shown(travel["others"]) == [("bo", "b", 2), ("cy", "a", 1)]
    assert shown(found.examples_by_pool("ada", "depth")["own"]) == [("ada", "a", 3)]
    assert found.reviewers == ("ada", "bo", "cy")


def test_an_example_is_a_rated_item_found_by_its_digest() -> None:
    found = history(*BUSY, rating("dee", "b", 3, agent="small"))
    (example,) = found.examples_by_pool("ada", "clarity", "travel")["own"]
    said = {
        "key": "a",
        "item": "a",
        "group": "g",
        "reviewer": "ada",
        "dimension": "clarity",
        "domain": "travel",
        "score": 4.0,
        "text": "text of a",
        "reason": "short",
    }
    assert example.model_dump() == said
    assert example.digest == digest_of(said)
    assert found.example_by_digest == {one.digest: one for one in found.examples}
    assert [(one.key, one.item) for one in found.examples_by_pool("dee", "clarity")["own"]] == [
        ("b_small", "b")
    ]


def test_groups_are_recognised_by_key_and_item_also_for_hidden_examples() -> None:
    found = history(
        rating(agent="x", group="g"), rating(agent="y", group="h", score=None), rating(item="b")
    )
    assert (
        found.groups_of_ratings(["a"]),
        found.groups_of_ratings({"a_x"}),
        found.groups_of_ratings(["a_y"]),
    ) == (
        {"g", "h"},
        {"g"},
        {"h"},
    )
    assert found.groups_of_ratings(["b", "nothing"]) == set()
    assert found.groups_of_ratings(["b", "a_x", "a_y"]) == {"g", "h"}


def test_an_item_of_two_groups_is_refused() -> None:
    said = "r.csv, line 4: item 'a' is of group 'h' here, and of 'g' in line 2; give each item one group"
    with pytest.raises(InputError, match=said):
        history(rating(group="g"), rating("bo", "b", group="h"), rating("cy", group="h"))


RELATED: Mapping[str, Rating] = {
    "a group": rating(score=None, group="g"),
    "an item": rating(item="b", score=None),
    "an agent": rating(agent="x", score=None, text=None),
    "a text": rating(score=None, text="another text of a"),
}


@pytest.mark.parametrize("more", RELATED.values(), ids=RELATED)
def test_the_digest_covers_the_relations_that_drop_examples(more: Rating) -> None:
    few, many = history(rating("bo"), scales=ONE), history(rating("bo"), more, scales=ONE)
    if more.group is None:
        assert few.examples == many.examples
    assert few.digest != many.digest
    assert few.leak_relations_digest != many.leak_relations_digest
    assert (
        many.leak_relations_digest == history(more, rating("bo"), scales=ONE).leak_relations_digest
    )


def test_texts_are_recognised_by_key_and_item_also_for_hidden_examples() -> None:
    rows = (
        rating(agent="x", text="one"),
        rating(agent="y", text=None, score=None),
        rating(item="b", text=" "),
    )
    found = history(*rows, texts={"a_y": "two"})
    assert (
        found.texts_of_ratings(["a"]),
        found.texts_of_ratings({"a_x"}),
        found.texts_of_ratings(["a_y"]),
    ) == (
        {"one", "two"},
        {"one"},
        {"two"},
    )
    assert found.texts_of_ratings(["nothing"]) == set()


# Texts and dimensions


def test_a_text_is_the_one_of_the_rating_or_else_of_the_item() -> None:
    rows = (
        rating("ada", "a"),
        rating("bo", "a", text=None),
        rating("cy", "a", text=" "),
        rating("bo", "b", text=None),
    )
    found = history(*rows, texts={"a": "the whole of a", "b_small": "of b"})
    assert [one.text for one in found.examples] == ["text of a", "the whole of a", "the whole of a"]
    assert omissions(found) == [("no_text", 1, "r.csv, line 5")]


def test_a_score_off_the_scale_is_refused_with_the_scale_that_all_scores_need() -> None:
    found = history(rating(score=1), rating("bo", score=7), rating("cy", score=0.5))
    assert omissions(found) == [("off_scale", 2, "r.csv, line 3")], "a stored plan left them out"
    with pytest.raises(InputError) as raised:
        found.require_scores_on_scale()
    assert str(raised.value) == (
        "r.csv, line 3: score 7 of 'clarity' is off the scale [1, 5] of the config; write `scale: [0.5, 7]`, or "
        "correct the score"
    )
    slip = history(rating(score=55), *(rating("bo", f"i{number}") for number in range(19)))
    with pytest.raises(InputError, match=r"; correct it, as only 1 of 20 scores are$"):
        slip.require_scores_on_scale()


def test_ratings_without_a_dimension_are_refused_if_several_are_scored() -> None:
    with pytest.raises(InputError) as raised:
        history(rating(dimension=None))
    assert str(raised.value) == (
        "r.csv: names no `dimension`, and 2 are scored: 'clarity', 'depth'; give each rating its own, or ask about one"
    )


def test_ratings_without_a_dimension_are_of_the_only_one_that_is_scored_or_named() -> None:
    found = history(rating(), rating("bo", dimension=None))
    assert [(one.reviewer, one.dimension) for one in found.examples] == [
        ("ada", "clarity"),
        ("bo", "clarity"),
    ]
    found = history(rating(dimension="cost"), rating("bo", dimension=None), scales=ONE)
    assert [one.dimension for one in found.examples] == ["clarity"]
    off_scale = history(rating(), rating("bo", dimension=None, score=7))
    with pytest.raises(InputError, match=r"line 3: score 7 of 'clarity' is off the scale"):
        off_scale.require_scores_on_scale()


# What is left out

LEFT_OUT: Mapping[
    str, tuple[Sequence[Rating], list[tuple[str, int, str]], list[tuple[str, str, float]]]
] = {
    "scores between the steps are as good as others": (
        [rating(score=3.5), rating("bo", score=5), rating("dee", score=1)],
        [],
        [("ada", "a", 3.5), ("bo", "a", 5), ("dee", "a", 1)],
    ),
    "another dimension, and none where others name several": (
        [
            rating(),
            rating(dimension="cost"),
            rating(dimension=None),
            rating("bo", dimension="cost"),
        ],
        [("no_dimension", 1, "r.csv, line 4"), ("other_dimension", 2, "r.csv, line 3")],
        [("ada", "a", 3)],
    ),
    "the same again": (
        [rating(), rating("bo"), rating(), rating(time="later")],
        [("duplicate", 2, "r.csv, line 4")],
        [("ada", "a", 3), ("bo", "a", 3)],
    ),
    "another score for the same": (
        [
            rating(),
            rating("bo"),
            rating(),
            rating(score=4),
            rating(agent="x", score=5),
            rating(dimension="depth"),
        ],
        [("contradictory", 3, "r.csv, line 2")],
        [("ada", "a", 3), ("ada", "a_x", 5), ("bo", "a", 3)],
    ),
    "without a score, and one that another row has": (
        [rating(score=None), rating(), rating("bo", score=None)],
        [("no_score", 2, "r.csv, line 2")],
        [("ada", "a", 3)],
    ),
    "no text and a blank one": (
        [rating(text=None), rating("bo", text=" \n"), rating("cy", text=None), rating("dee")],
        [("no_text", 2, "r.csv, line 2"), ("blank_text", 1, "r.csv, line 3")],
        [("dee", "a", 3)],
    ),
}


@all_rows(("rows", "left", "kept"), LEFT_OUT.values())
def test_examples_that_cannot_be_shown_are_omitted_and_counted(
    rows: Sequence[Rating], left: list[tuple[str, int, str]], kept: list[tuple[str, str, float]]
) -> None:
    found = history(*rows)
    assert omissions(found) == left
    assert shown(found.examples) == kept


# The order of the file

WIDE_SCALES = dict.fromkeys(SCALES, (0.0, 9.0))
names, items = st.sampled_from(["ada", "bo", "cy"]), st.sampled_from("ab")
rows = st.lists(
    st.builds(
        rating,
        names,
        items,
        st.sampled_from([-0.0, 0.0, 1.0, 3.0, 9.0]),
        dimension=st.sampled_from(["clarity", "depth", "cost", None]),
        domain=st.sampled_from(["x", "y", None]),
        agent=st.sampled_from(["small", None]),
        text=st.sampled_from(["one", "two", " ", None]),
        reason=st.sampled_from(["why", "", None]),
    ),
    max_size=40,
)


@given(rows, st.randoms(use_true_random=False))
def test_the_order_of_the_file_changes_nothing(drawn: list[Rating], random: Any) -> None:
    named = [*drawn, rating("zoe")]
    shuffled = random.sample(named, len(named))
    one, other = history(*named, scales=WIDE_SCALES), history(*shuffled, scales=WIDE_SCALES)
    assert [example.digest for example in one.examples] == [
        example.digest for example in other.examples
    ]
    assert [left[:2] for left in one.left_out] == [left[:2] for left in other.left_out]
    assert one.reviewers == other.reviewers
    for reviewer in one.reviewers:
        for domain in ("x", None):
            assert one.examples_by_pool(reviewer, "clarity", domain) == other.examples_by_pool(
                reviewer, "clarity", domain
            )


@given(rows)
def test_shown_examples_are_real_and_distinct(drawn: list[Rating]) -> None:
    found = history(*drawn, rating("zoe"), scales=WIDE_SCALES)
    said = {(one.reviewer, one.key, one.dimension, one.score) for one in [*drawn, rating("zoe")]}
    cells = Counter((one.reviewer, one.key, one.dimension) for one in found.examples)
    assert max(cells.values()) == 1
    for one in found.examples:
        assert (one.reviewer, one.key, one.dimension, one.score) in said
        assert one.text.strip()
        assert not any(
            (one.reviewer, one.key, one.dimension) == other[:3] and one.score != other[3]
            for other in said
        )


# Notes


def test_notes_name_columns_that_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("item,reviewer,score,text,product,wave,prompt\na,ada,4,one,kettle,2,Why?\n")
    assert list(ReviewerHistory.read(path, scales=ONE).notes())[1:] == [
        "Past scores are shown without column 'prompt' of r.csv; if the texts answer it, `show_prompts: true` shows it "
        "with them.",
        "Columns of r.csv that examples do not show: 'product', 'wave'; if one is item, agent, reviewer, score, "
        "dimension, domain, group, text, reason, time, say so in `columns`, as in {text: answer}.",
    ]


def test_a_note_names_reviewers_with_fewer_ratings_than_shots() -> None:
    ratings = [rating("bo", item) for item in "abc"] + [rating(), rating("cy", score=None)]
    params = {"dimensions": {"clarity": {"text": "How clear.", "scale": [1, 5]}}, "shots": 3}
    judge = Personalized(history=[one.model_dump(mode="json") for one in ratings], **params)
    assert judge.notes[-1] == "Fewer ratings than `shots`, 3, can be shown of ada (1), cy (0)."


def test_notes_name_a_dimension_without_ratings() -> None:
    found = history(rating(dimension="clarty"), rating(score=None, dimension="depth"))
    assert found.examples == ()
    assert tuple(found.notes()) == (
        "Of 2 ratings in r.csv, 0 can be shown, by 0 reviewers.",
        "Left out: 1 rating of a dimension that is not asked about; the first is r.csv, line 2.",
        "Left out: 1 rating without a score; the first is r.csv, line 3.",
        "No rating for 'clarity' can be shown; did you mean clarty?",
        "No rating for 'depth' can be shown.",
    )


# From files


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_history_is_read_from_ratings_and_texts(suffix: str, tmp_path: Path) -> None:
    ratings, texts = tmp_path / f"ratings{suffix}", tmp_path / "texts.jsonl"
    if suffix == ".csv":
        ratings.write_text("idx,annotator,label\n1,ada,4\n2,ada,\n3,bo,2\n")
    else:
        marks = [(1, "ada", 4), (2, "ada", None), (3, "bo", 2)]
        lines = [
            json.dumps({"idx": idx, "annotator": whose, "label": mark})
            for idx, whose, mark in marks
        ]
        ratings.write_text("\n".join(lines))
    texts.write_text('{"item": 1, "text": "one"}\n{"item": 2, "text": "two"}\n')
    found = ReviewerHistory.read(ratings, texts, {"item": "idx"}, scales=ONE)
    assert shown(found.examples) == [("ada", "1", 4)]
    lines_of = ("line 3", "line 4") if suffix == ".csv" else ("line 2", "line 3")
    assert found.left_out == (
        OmittedRatings("no_score", 1, f"{ratings.name}, {lines_of[0]}"),
        OmittedRatings("no_text", 1, f"{ratings.name}, {lines_of[1]}"),
    )
