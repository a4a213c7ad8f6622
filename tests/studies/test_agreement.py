"""`study agreement`: alpha, Jaccard and strictness of reviewers by dimension and domain."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from jurygraph.cli.render.report import draw_plots
from jurygraph.errors import InputError
from jurygraph.sources.ratings import read_ratings
from jurygraph.studies.agreement import notes_on_scores, report
from jurygraph.studies.report import Report
from jurygraph.studies.votes import split_far_labels
from tests.rows import all_rows

HEADER = ["item", "reviewer", "score", "dimension", "domain"]


def write(folder: Path, rows: list[list[Any]]) -> Path:
    file = folder / "ratings.csv"
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([HEADER, *rows])
    return file


def measure(folder: Path, rows: list[list[Any]], level: Any = "ordinal") -> Report:
    return report([read_ratings(write(folder, rows))], level)


def test_each_dimension_and_domain_has_its_figures(tmp_path: Path) -> None:
    """Ann is one point stricter than Bob on every item; both order the items alike. Cid rates nothing in common."""
    rows = [
        [f"i{n}", who, n % 5 + extra, "taste", "food"]
        for n in range(12)
        for who, extra in (("ann", 0), ("bob", 1))
    ]
    rows += [
        ["j", "ann", 3, "taste", "drinks"],
        ["j", "bob", 3, "taste", "drinks"],
        ["k", "cid", 1, "taste", "drinks"],
    ]
    found = measure(tmp_path, [*rows, ["i0", "cid", "", "taste", "food"]], "interval")
    whole, drinks, food = found.figures["parts"]
    assert (whole["domain"], whole["items"], whole["ratings"]) == (None, 13, 27)
    assert (drinks["domain"], drinks["items"], drinks["ratings"], drinks["alpha"]) == (
        "drinks",
        1,
        3,
        None,
    )
    assert (food["items"], food["ratings"], food["pairs"], food["jaccard"]) == (12, 24, 1, 1.0)
    values = np.array([n % 5 for n in range(12)], dtype=np.float64)
    every = np.concatenate([values, values + 1.0])
    # D_o = 1, D_e = 2 s²
    alpha = food["alpha"]
    assert alpha.value == pytest.approx(1.0 - 1.0 / (2.0 * every.var(ddof=1)), abs=1e-12)
    assert alpha.low < alpha.value < alpha.high <= 1.0
    (_, heat_map) = found.plots
    (row,) = heat_map.series
    assert (row.label, row.x, row.y) == (
        "taste",
        ["all", "drinks", "food"],
        [whole["alpha"].value, None, alpha.value],
    )
    draw_plots(found.plots, tmp_path / "alpha.svg", ".svg")
    assert f"<!-- {alpha.value:.2f} -->" in (tmp_path / "alpha.svg").read_text(encoding="utf-8")
    strict = {one["reviewer"]: one["strictness"] for one in food["reviewers"]}
    assert strict == {"ann": 1.0, "bob": -1.0}
    assert [one["correlation"].value for one in food["reviewers"]] == pytest.approx([1.0, 1.0])
    assert found.notes == [
        "no alpha, as no item has two scores, or all scores of such items are equal: taste · drinks",
        "fewer than 30 items, so that the interval of alpha is too narrow: taste, taste · food",
        "no Jaccard, as no two reviewers have 10 common items, some of them above their medians: taste · drinks",
    ]


def test_whoever_rates_surely_lower_or_guesses_is_named(tmp_path: Path) -> None:
    """The shift is Student's over the items, where p allows for the number of reviewers."""
    draw = np.random.default_rng(4)
    quality = draw.integers(2, 5, 40)
    stars = {name: quality + draw.choice([-0.5, 0.0, 0.5], 40) for name in ("ann", "bo", "cy")}
    stars["sam"] = quality - 1.0 + draw.choice([-0.5, 0.0, 0.5], 40)
    stars["zoe"] = draw.permutation(quality.astype(float))
    rows = []
    for name, scores in stars.items():
        rows += [[f"i{item}", name, score, "", ""] for item, score in enumerate(scores)]
    found = measure(tmp_path, rows, "interval")
    (part,) = found.figures["parts"]
    shifts = {row["reviewer"]: row["shift"] for row in part["reviewers"]}
    others = np.mean([scores for name, scores in stars.items() if name != "sam"], axis=0)
    gaps = stars["sam"] - others
    half_width = 2.0227 * gaps.std(ddof=1) / np.sqrt(40)  # t with 39 degrees of freedom
    expected = (gaps.mean(), gaps.mean() - half_width, gaps.mean() + half_width)
    assert shifts.pop("sam") == pytest.approx(expected, abs=1e-4)
    assert set(shifts.values()) == {None}
    texts = [text for text in found.sections if isinstance(text, str)]
    (warning,) = [text for text in texts if text.startswith("Warning: may be guessing, or ")]
    assert warning.startswith("Warning: may be guessing, or of another taste (correlation near 0, ")
    assert "; to leave out: --without " in warning
    assert texts[-1].startswith("least like the others: zoe, rank correlation ")
    pairs = part["rank_correlations"]
    expected = scipy.stats.spearmanr(stars["ann"], stars["zoe"])[0]
    assert pairs["ann"][4] == pairs["zoe"][0] == pytest.approx(expected)
    assert texts[-2].startswith(
        "scores surely lower than the others' of the same items, on average by: sam 1.0"
    )
    alike = measure(tmp_path, [row for row in rows if row[1] != "zoe"], "interval")
    nobody = "nobody is surely less like the others than these are on average (rank correlation)"
    assert nobody in alike.sections


@pytest.mark.parametrize(
    ("items", "noise", "verdict"),
    [
        (
            200,
            1.2,
            "all: reviewers do not agree well enough for tentative conclusions: alpha 0.42 (0.33 to 0.50), which takes "
            "0.667. More than by chance they rate the same items high.",
        ),
        (
            200,
            0.1,
            "all: reviewers agree well enough for tentative conclusions: alpha 0.99 (0.98 to 0.99), which takes 0.667.",
        ),
        (
            30,
            9.0,
            "all: reviewers do not agree well enough for tentative conclusions: alpha 0.01 (-0.18 to 0.20), which "
            "takes 0.667.",
        ),
    ],
)
def test_the_papers_pattern_is_low_alpha_and_more_agreement_in_what_is_rated_high(
    items: int, noise: float, verdict: str, tmp_path: Path
) -> None:
    draw = np.random.default_rng(0)
    good = draw.normal(0.0, 1.0, items)
    rows = [
        [f"i{item}", f"r{who}", round(float(good[item] + noise * draw.normal()), 3), "", ""]
        for item in range(items)
        for who in range(3)
    ]
    assert measure(tmp_path, rows).conclusion == [verdict]


def test_a_different_use_of_the_scale_is_a_sure_shift_and_full_agreement_is_agreement(
    tmp_path: Path,
) -> None:
    draw = np.random.default_rng(0)
    scores = draw.normal(0.0, 1.0, 200)
    rows = []
    for who, (lift, noise) in enumerate([(0.0, 1.0), (0.0, 1.0), (1.5, 1.0)]):
        for item, score in enumerate(scores + lift + noise * draw.normal(size=200)):
            rows.append([f"i{item}", f"r{who}", round(float(score), 3), "", ""])
    (conclusion,) = measure(tmp_path, rows).conclusion
    assert conclusion.endswith(
        " More than by chance they rate the same items high, and differ in how high they rate."
    )
    alike = [[f"i{item}", who, item % 5, "", ""] for item in range(40) for who in "abcd"]
    assert measure(tmp_path, alike).conclusion == [
        "all: reviewers agree fully, in every score of an item that several scored: alpha 1.00, without an interval, "
        "as nothing varies."
    ]


def test_few_classes_in_an_order_are_questioned(tmp_path: Path) -> None:
    """PandaLM's codes: 0 is a tie, 1 the first text, 2 the second."""
    rows = [
        [f"i{item}", who, (item + shift) % 3, "", ""]
        for item in range(40)
        for who, shift in (("a", 0), ("b", 1))
    ]
    question = (
        "all: 0, 1, 2 are taken as an order; if they are codes of classes, use --level nominal"
    )
    assert question in measure(tmp_path, rows).notes
    nominal = measure(tmp_path, rows, "nominal")
    assert question not in nominal.notes
    (part,) = nominal.figures["parts"]
    assert (part["jaccard"], part["reviewers"]) == (None, []), "classes have no order"


def test_a_single_score_far_from_all_others_is_warned_of() -> None:
    """A slip such as 40 for 4 moves every figure, and so does one below the scale."""
    labels = [float(1 + number % 7) for number in range(38)]
    for outlier, text in ((40.0, "40"), (-30.0, "-30")):
        (note,) = notes_on_scores("all", np.array([*labels, outlier]), "recode")
        assert note.startswith(
            f"Warning: all: far from all other scores, and moving every figure: {text};"
        )
    assert not list(notes_on_scores("all", np.array([*labels, 8.0]), "recode"))
    mild = [*[4.0, 5.0] * 19, 3.0, 1.0]
    assert not list(notes_on_scores("all", np.array(mild), "recode")), "a 1 is an opinion"
    assert not list(notes_on_scores("all", np.array([*labels, *[40.0] * 5]), "recode"))
    scale = [*range(1, 8), 40]
    assert split_far_labels(scale, labels) == (scale, ()), "nobody gave 40"


@all_rows(
    "rows, message",
    [
        (
            [["i", "a", 1, "", ""], ["j", "b", 2, "", ""]],
            "ratings.csv: no item has scores of two reviewers",
        ),
        (
            [["i", "a", 1, "", ""], ["i", "a", 2, "", ""]],
            "line 3: reviewer 'a' has scored item 'i' in .*line 2; keep",
        ),
        (
            [["i", "a", "good", "", ""]],
            r"line 2 \(i, a\), field score: is the text 'good'; write a number",
        ),
    ],
)
def test_ratings_without_an_agreement_are_refused(
    rows: list[list[Any]], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        measure(tmp_path, rows)
