"""Judges of reviewers that need no model, against their definitions; none sees the judged item or its group."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jurygraph.errors import InputError
from jurygraph.schema.rating import Rating
from jurygraph.sources.ratings import RatingsFile, read_ratings
from jurygraph.studies.agreement import read_parts
from jurygraph.studies.reasons import tf_idf
from jurygraph.studies.reviewers import Predictions, predict, report
from tests.rows import all_rows
from tests.studies.figures import figures_of

ROOT = Path(__file__).parents[3]
Row = dict[str, Any]


def to_ratings(rows: list[Row]) -> RatingsFile:
    placed = tuple(
        (f"line {place}", Rating.model_validate(row)) for place, row in enumerate(rows, start=2)
    )
    return RatingsFile("ratings.csv", placed, {name: name for name in Rating.model_fields})


def random_rows(seed: int, reviewers: int = 5, items: int = 24) -> list[Row]:
    """Ratings of items in groups of up to two, in two domains; nobody rates all items."""
    rng = np.random.default_rng(seed)
    rows = []
    for item in range(items):
        fixed = {
            "item": f"i{item}",
            "domain": f"d{item // 2 % 2}",
            "group": f"g{item // 2}" if item % 5 else None,
        }
        for who in rng.permutation(reviewers)[: rng.integers(1, reviewers)]:
            rows.append({**fixed, "reviewer": f"r{who}", "score": float(rng.integers(1, 6))})
    return rows


def predictions(
    rows: list[Row],
    *judges: str,
    texts: dict[str, str] | None = None,
    shots: tuple[int, ...] = (1, 3),
) -> list[Predictions]:
    (part,) = read_parts([to_ratings(rows)])
    return list(predict(part, judges, shots, 2, texts or {}))


def sorted_rows(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda one: (one["reviewer"], one["item"]))


def own_scores(rows: list[Row], row: Row) -> list[float]:
    """The scores that may be used: of the same reviewer and domain, and of no item of the judged item's group."""
    return [
        one["score"]
        for one in rows
        if (one["reviewer"], one["domain"]) == (row["reviewer"], row["domain"])
        and one["item"] != row["item"]
        and (row["group"] is None or one["group"] != row["group"])
    ]


def peers(rows: list[Row], row: Row) -> list[float]:
    return [
        one["score"]
        for one in rows
        if one["item"] == row["item"] and one["reviewer"] != row["reviewer"]
    ]


def mean(values: list[float]) -> float:
    return float(np.mean(values)) if values else np.nan


@pytest.mark.parametrize("seed", range(5))
def test_each_baseline_is_its_definition(seed: int) -> None:
    rows = sorted_rows(random_rows(seed))
    one, three, history, item_mean, offset = predictions(
        rows[::-1], "own-history", "item-mean", "rater-offset"
    )
    assert [each.shots for each in (one, three, history, item_mean, offset)] == [
        1,
        3,
        None,
        None,
        None,
    ]
    away = [row | {"score": row["score"] - mean(peers(rows, row))} for row in rows]
    for place, row in enumerate(rows):
        own = own_scores(rows, row)
        np.testing.assert_allclose(history.values[0, place], mean(own), rtol=1e-12)
        np.testing.assert_allclose(item_mean.values[0, place], mean(peers(rows, row)), rtol=1e-12)
        usual = mean([one for one in own_scores(away, row) if not np.isnan(one)])
        np.testing.assert_allclose(
            offset.values[0, place], mean(peers(rows, row)) + usual, rtol=1e-12
        )
        for drawn in one.values[:, place]:
            assert drawn in own if own else np.isnan(drawn)
        if 0 < len(own) <= 3:
            np.testing.assert_allclose(three.values[:, place], mean(own), rtol=1e-12)
    assert (one.values[0] != one.values[1]).any()


def test_no_judge_sees_the_group_of_the_judged_item() -> None:
    """All items of a group have a score of their own, and nearly the same text: whoever uses one of them is right."""
    rows = [
        {
            "item": f"i{item}",
            "reviewer": who,
            "score": float(item // 2),
            "group": f"g{item // 2}",
            "domain": None,
        }
        for item in range(12)
        for who in ("ann", "bob")
    ]
    texts = {f"i{item}": f"a story of word{item // 2} and of other{item}" for item in range(12)}
    scores = np.array([row["score"] for row in sorted_rows(rows)])
    for each in predictions(rows, "own-history", "neighbours", texts=texts, shots=(1,)):
        assert not (each.values == scores).any() or each.shots is None


def test_neighbours_are_the_own_items_with_the_most_similar_texts() -> None:
    texts = {
        "a": "red apples and pears",
        "b": "red apples",
        "c": "blue trains",
        "d": "blue trains and cars",
    }
    rows = [
        {"item": item, "reviewer": "ann", "score": score}
        for item, score in zip("abcde", range(5), strict=True)
    ]
    rows.append({"item": "f", "reviewer": "ann", "score": 9.0})
    (one, two) = predictions(rows, "neighbours", texts={**texts, "f": "Red apples!"}, shots=(1, 2))
    # b and f are nearly the same text, so that neither is used for the other; e has none.
    np.testing.assert_array_equal(one.values[0], [1.0, 0.0, 3.0, 2.0, np.nan, 0.0])
    np.testing.assert_array_equal(two.values[0][:2], [(1.0 + 9.0) / 2.0, (0.0 + 2.0) / 2.0])


def test_words_count_by_how_rare_they_are() -> None:
    vectors = tf_idf(["one two two", "two three", ""]).toarray()
    rare, common = 1.0 + np.log(4.0 / 2.0), 1.0 + np.log(4.0 / 3.0)
    length = np.hypot(rare, 2.0 * common)
    np.testing.assert_allclose(vectors[0], [rare / length, 2.0 * common / length, 0.0])
    np.testing.assert_array_equal(vectors[2], 0.0)


def test_the_baselines_of_convabuse_are_as_published_even_where_the_personal_one_is_worse(
    tmp_path: Path,
) -> None:
    """Raw severity from -3 to 1: an offset for each rater lowers the RMSE and raises the MAE."""
    with gzip.open(ROOT / "examples/consensus/convabuse.csv.gz", "rt", encoding="utf-8") as file:
        rated = [line.rstrip("\n").split(",") for line in file][1:]
    severity = (
        gzip.decompress((ROOT / "tests/data/convabuse/severity.txt.gz").read_bytes())
        .decode()
        .split()
    )
    lines = [f"{row[0]},{row[2]},{score}\n" for row, score in zip(rated, severity, strict=True)]
    (tmp_path / "ratings.csv").write_text(
        "item,reviewer,score\n" + "".join(lines), encoding="utf-8"
    )
    (part,) = read_parts([read_ratings(tmp_path / "ratings.csv")])
    found = figures_of(
        report([(part, list(predict(part, ("item-mean", "rater-offset"), (), 1, {})))])
    )
    assert [(one.judge, one.n) for one in found.judges] == [
        ("item-mean", 9571),
        ("rater-offset", 9571),
    ]
    assert [one.rmse for one in found.judges] == pytest.approx([0.739, 0.697], abs=5e-4)
    assert [one.mae.value for one in found.judges] == pytest.approx([0.3586, 0.4171], abs=5e-5)
    (difference,) = found.differences
    assert (difference.nearer, difference.farther) == (8, 0)


@all_rows(
    "second, message",
    [
        (
            {"item": "i", "reviewer": "ann"},
            "ratings.csv, line 3: reviewer 'ann' has scored item 'i' in .*line 2",
        ),
        (
            {"item": "i", "reviewer": "bob", "group": None},
            "line 3: item 'i' has the group \\(none\\), and g in ratings.csv, line 2; give each",
        ),
        (
            {"item": "i", "reviewer": "bob", "group": "h"},
            "line 3: item 'i' has the group h, and g in ratings.csv, line 2; give each",
        ),
    ],
)
def test_contradictory_ratings_are_refused(second: Row, message: str) -> None:
    first = {"item": "i", "reviewer": "ann", "score": 1.0, "group": "g"}
    with pytest.raises(InputError, match=message):
        read_parts([to_ratings([first, {"score": 2.0, "group": "g"} | second])])


def test_another_agent_s_answer_to_the_judged_item_predicts_nothing() -> None:
    rows = [
        {"item": item, "agent": agent, "reviewer": "ann", "score": score}
        for item, agent, score in (("q1", "a", 5.0), ("q1", "b", 5.0), ("q2", "a", 1.0))
    ]
    (drawn, everything) = predictions(rows, "own-history", shots=(2,))
    assert drawn.values.tolist() == [[1.0, 1.0, 5.0]] * 2
    assert everything.values.tolist() == [[1.0, 1.0, 5.0]]
