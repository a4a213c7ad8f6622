"""Figures of judges of reviewers: on common ratings, with gains and losses of reviewers."""

import re
from typing import Any

import numpy as np
import pytest
import scipy.stats

from jurygraph.aggregation.agreement import krippendorff_alpha
from jurygraph.cli.render.report import format_report_lines
from jurygraph.display import format_interval
from jurygraph.inference.clusters import mean_with_cluster_interval
from jurygraph.inference.sign_flips import holm
from jurygraph.studies.agreement import DimensionRatings, read_parts
from jurygraph.studies.conclusions import conclude_reviewers
from jurygraph.studies.report import IntervalCell, Report
from jurygraph.studies.reviewer_states import tell_states
from jurygraph.studies.reviewers import Predictions, absolute_errors, predict, report
from jurygraph.viewer.documents import render_study
from tests.studies.figures import figures_of
from tests.studies.reviewers.test_baselines import random_rows, to_ratings

GAP = np.nan


PERSON = dict.fromkeys(("gain", "gain_p", "bias", "rank_correlation", "error"))
PERSONS = {"all": [{**PERSON, "judge": "personalized", "n": 0, "gain_n": 0}] * 3}


def two_reviewers(domains: tuple[str, ...] = ("",)) -> DimensionRatings:
    """Ann and Bob each rate four items, of which the first two are of the first domain."""
    rows = np.arange(8)
    scores = np.array([1.0, 2.0, 3.0, 4.0, 2.0, 2.0, 4.0, 4.0])
    item, domain = rows % 4, rows % 4 // 2 if len(domains) > 1 else rows * 0
    return DimensionRatings(
        "taste", ("ann", "bob"), tuple("ijkl"), domains, rows // 4, item, item, domain, scores
    )


def made_up() -> Report:
    """One judge is right for Ann alone, and lacks a prediction; the other is always one too high."""
    part = two_reviewers(("drinks", "food"))
    for_ann = Predictions("own-history", None, np.array([[1.0, 2.0, 3.0, 4.0, 4.0, 4.0, 2.0, GAP]]))
    higher = Predictions("item-mean", None, part.score[None] + 1.0)
    return report([(part, [for_ann, higher])])


def test_all_judges_are_measured_on_the_ratings_that_all_predict() -> None:
    found = figures_of(made_up())
    own, peers, *domains = found.judges
    assert (own.answered, own.coverage, own.n, peers.answered, peers.n) == (7, 7 / 8, 7, 8, 7)
    assert (own.mae.value, peers.mae.value) == pytest.approx((6 / 7, 1.0))
    assert (own.rmse, peers.rmse) == pytest.approx((np.sqrt(12 / 7), 1.0))
    assert [(one.domain, one.judge, one.n) for one in domains] == [
        ("drinks", "own-history", 4),
        ("drinks", "item-mean", 4),
        ("food", "own-history", 3),
        ("food", "item-mean", 3),
    ]


def test_ratings_without_a_domain_count_in_all_alone() -> None:
    part = two_reviewers(("", "food"))
    found = report([(part, [Predictions("item-mean", None, part.score[None])])])
    assert [(row.domain, row.n) for row in figures_of(found).judges] == [(None, 8), ("food", 4)]


def test_a_judge_without_any_prediction_is_named_and_the_others_are_compared() -> None:
    part = two_reviewers()
    unsure = Predictions("zero-shot", 0, part.score[None] * GAP, {"confidence below 80": 8})
    higher = Predictions("own-history", None, part.score[None] + 1.0)
    found = report([(part, [unsure, higher, Predictions("item-mean", None, part.score[None])])])
    silent, answering, _ = figures_of(found).judges
    assert (silent.n, silent.mae, answering.n, answering.mae.value) == (0, None, 8, 1.0)
    assert [(row["first"], row["second"]) for row in found.figures["differences"]] == [
        ("own-history", "item-mean")
    ]
    problem = (
        "predicts none of 8 ratings: 8 confidence below 80 (`--min-confidence 0` counts these)"
    )
    assert f"taste, zero-shot: {problem}" in found.notes


def test_it_is_said_when_few_ratings_are_predicted_by_all_judges_and_what_helps() -> None:
    part = two_reviewers()
    few = np.where(np.arange(8) < 2, part.score, GAP)
    most = np.where(np.arange(8) > 0, part.score, GAP)
    columns = [
        Predictions("personalized", 10, most[None]),
        Predictions("aggregate", 5, part.score[None]),
        Predictions("aggregate", 10, few[None], {"failed": 2, "unsupported": 4}),
        Predictions("item-mean", None, part.score[None]),
    ]
    found = report([(part, columns)])
    words = "only 1 of 8 ratings are predicted by both personalized (7) and aggregate (2): no conclusion"
    planned, nearest, *_ = found.conclusion
    assert planned.startswith(f"taste: {words}")
    causes = "4 unsupported (by a valid quotation; new runs with `safety: {evidence: preferred}` count these), 2 failed"
    assert f"on 1 of 8, those that all predict. aggregate leaves out most: {causes}." in nearest
    left_out = {"no majority": 2, "confidence below 80": 4}
    of_one = report([(part, [Predictions("aggregate", 10, few[None], left_out)])])
    (alone,) = figures_of(of_one).judges
    assert alone.n == 2
    assert (
        "aggregate leaves out most: 4 confidence below 80 (`--min-confidence 0` counts these), "
        "2 no majority (`rescore --set panel.reduce=mean` counts the mean of the samples)."
        in of_one.conclusion[1]
    )


def test_a_judge_of_own_scores_has_no_number_of_examples_and_alone_is_compared_with_nobody() -> (
    None
):
    part = two_reviewers()
    silent = [Predictions("own-history", shots, part.score[None] * GAP) for shots in (1, None)]
    assert report([(part, silent)]).notes[-2:] == [
        f"taste, {name}: predicts none of 8 ratings: it has no others to go by"
        for name in ("own-history with 1 example", "own-history")
    ]


def test_the_report_says_who_gains_and_who_loses() -> None:
    result = made_up()
    found = figures_of(result)
    (difference,) = found.differences
    assert (difference.first, difference.second) == ("own-history", "item-mean")
    assert (difference.nearer, difference.farther) == (1, 1)  # for Ann, and for Bob
    assert difference.absolute.value == pytest.approx(6 / 7 - 1.0)
    assert [(one.reviewer, one.n, one.mae) for one in found.reviewers] == [
        ("ann", 4, {"own-history": 0.0, "item-mean": 1.0}),
        ("bob", 3, {"own-history": 2.0, "item-mean": 1.0}),
    ]
    mae = found.judges[0].mae
    assert (mae.low, mae.high) == (None, None), "else it would be wider than the scale"
    assert "taste: reviewers: 2; with fewer than 20, intervals are rough" in result.notes
    few = "with fewer than 20, differences of judges are rough"
    assert f"taste: items, or groups of them: 4; {few}" in result.notes
    lines = list(format_report_lines(result.sections))
    assert lines[0].split()[-5:] == ["n", "own", "mean", "mean", "of", "others"][-5:]
    assert any(
        "(leave-one-out), never from one of the same item or group." in line for line in lines
    )


@pytest.mark.parametrize("shift", [0.0, 1e-15, 0.5])
def test_two_judges_that_predict_the_same_have_a_sentence_and_no_difference(shift: float) -> None:
    part = two_reviewers()
    own = Predictions("own-history", None, part.score[None] + 0.1)
    near = Predictions("neighbours", 10, own.values + shift)
    result = report([(part, [own, near])])
    is_told = "own-history and neighbours make the same predictions of 8 ratings, as " in " ".join(
        result.conclusion
    )
    has_row = any("error of" in line for line in format_report_lines(result.sections))
    assert (is_told, has_row) == (shift < 0.1, shift > 0.1)


def test_alpha_counts_a_prediction_as_the_nearest_score() -> None:
    part = two_reviewers()
    drawn = np.array([[1.4, 2.4, 2.6, 9.0, 0.0, 1.9, 3.0, 3.6], part.score])
    (found,) = figures_of(report([(part, [Predictions("neighbours", 2, drawn)])])).judges
    nearest = [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]
    expected = krippendorff_alpha([nearest, part.score])
    # the mean of both seeds
    assert found.alpha.value == pytest.approx((expected + 1.0) / 2.0, abs=1e-12)
    assert found.alpha.low < found.alpha.value < found.alpha.high


def test_the_curve_has_each_number_of_examples_and_few_codes_are_questioned() -> None:
    rows = [row | {"score": float(row["score"] > 2)} for row in random_rows(1)]
    (part,) = read_parts([to_ratings(rows)])
    result = report([(part, list(predict(part, ["own-history", "item-mean"], (2, 0, 1), 2, {})))])
    curve = figures_of(result).curve
    shots = [(one.judge, one.shots) for one in curve]
    assert shots == [
        ("own-history", 1),
        ("own-history", 2),
        ("own-history", None),
        ("item-mean", None),
    ]
    assert len({one.n for one in curve}) == 1
    assert [one.judge for one in figures_of(result).judges if one.domain is None] == [
        "own-history",
        "item-mean",
    ]
    assert any(
        "0, 1 are taken as an order; if they are codes of classes, recode" in note
        for note in result.notes
    )
    (plot,) = result.plots
    assert [(one.label, one.x) for one in plot.series] == [("own-history", [1, 2])]


def test_the_conclusion_tells_whether_a_judge_for_each_reviewer_is_worth_it() -> None:
    """`personalized` is nearly exact and silent on a third; `aggregate` guesses; people agree by chance alone."""
    draw = np.random.default_rng(2)
    rows = [row | {"score": float(draw.integers(1, 6))} for row in random_rows(2, 6, 120)]
    (part,) = read_parts([to_ratings(rows)])
    exact = np.clip(part.score + (draw.random(len(part.score)) < 0.05), 1, 5)
    own = np.where(draw.random(len(part.score)) < 1 / 3, np.nan, exact)
    guess = draw.integers(1, 6, len(part.score)).astype(float)
    near = part.score + 0.5 * draw.choice([-1.0, 1.0], len(part.score))
    columns = [Predictions("aggregate", 8, guess[None]), Predictions("zero-shot", 0, near[None])]
    result = report([(part, [*columns, Predictions("personalized", 8, own[None])])])
    people = [text for text in result.conclusion if re.match(r"all: r\d: ", text)]
    answer, coverage, agreement, *_, next_judge = result.conclusion[len(people) :]
    sentence = r"no ratings for an own mean: personalized with 8 examples off by 0\.0\d \(.*\) on average over \d+ .*"
    assert re.fullmatch(rf"all: r\d: {sentence}", people[0])
    assert answer.startswith("all: for these reviewers the error of aggregate is 1.")
    assert (
        " above that of personalized. personalized is surely nearer than aggregate for r0 ("
        in answer
    )
    pair = "personalized (a judge for each reviewer) is nearer than aggregate (one judge for all, with examples)"
    assert f". For other reviewers like these: {pair}: mean difference of errors" in answer
    assert agreement.startswith(
        "all: personalized with 8 examples agrees with people well: alpha 0.9"
    )
    assert coverage.startswith("all: personalized with 8 examples predicts 6")
    assert "and judges are compared on " in coverage
    assert (
        "nearer than zero-shot (one judge for all, without examples): mean difference of errors 0.4"
        in next_judge
    )
    assert max(paragraph.count(". ") for paragraph in result.conclusion) < 4
    guessing, *_ = figures_of(result).judges
    assert guessing.mae_of_answered.value == pytest.approx(np.abs(guess - part.score).mean())
    table = next(line for line in format_report_lines(result.sections) if "coverage" in line)
    header = ["MAE (95 %)", "n of its own", "MAE on these (95 %)", "calls", "cost"]
    assert re.split(r"\s\s+", table.strip())[-5:] == header


@pytest.mark.parametrize("noise", [0.3, 5.0])
def test_whom_a_judge_of_their_own_certainly_helps_or_hurts_is_named(noise: float) -> None:
    """It is an own scale off for Ann, the common one for Bob, and of no matter to Cy."""
    draw = np.random.default_rng(1)
    rows = []
    for item in range(40):
        for name in ("ann", "bob", "cy"):
            rows.append({"item": f"i{item}", "reviewer": name, "score": float(draw.integers(1, 6))})
    (part,) = read_parts([to_ratings(rows)])
    errors = noise * np.abs(draw.normal(size=(2, len(rows))))
    own = errors[0] + 1.0 * (part.reviewer == 0)
    common = errors[1] + 1.0 * (part.reviewer == 1)
    columns = [
        Predictions("aggregate", 8, (part.score + common)[None]),
        Predictions("personalized", 8, (part.score + own)[None]),
    ]
    found = report([(part, columns)])
    gaps = (common - own)[part.reviewer == 1]
    half_width = scipy.stats.t.ppf(0.975, 39) * gaps.std(ddof=1) / np.sqrt(40)
    bob = found.figures["reviewers"][1]
    expected = (gaps.mean(), gaps.mean() - half_width, gaps.mean() + half_width)
    assert bob["gain"] == pytest.approx(expected)
    assert bob["gain_p"] >= scipy.stats.ttest_1samp(gaps, 0.0).pvalue
    _, table, *_ = found.tables
    assert table.header[-7:-4] == [
        "aggregate - personalized (95 %, this reviewer alone)",
        "n of both",
        "p of that (Holm, all reviewers)",
    ]
    words = found.conclusion[3]
    cell = format_interval(*expected, 2)
    sentences = {
        0.3: f"personalized is surely nearer than aggregate for bob (40 ratings) {cell}. "
        "personalized is surely farther than aggregate for ann ",
        5.0: "For no single reviewer is personalized surely nearer or farther than aggregate.",
    }
    assert sentences[noise] in words


def test_what_to_do_next_is_for_the_terminal_alone() -> None:
    (part,) = read_parts([to_ratings(random_rows(1))])
    columns = list(predict(part, ["own-history"], (), 1, {}))
    brief = report([(part, columns)], next_steps=["next: X"], all_tables=False)
    assert [hint.partition(" (")[0] for hint in brief.hints] == ["more tables", "next: X"]
    page = render_study(brief, "Judges", "")
    assert "next: X" not in page
    assert "--all" not in page


def test_judges_that_all_use_the_others_scores_of_an_item_leave_none_for_new_items() -> None:
    (words,) = conclude_reviewers([], [], PERSONS)
    assert words.endswith("each judge uses others' scores of the item, which a new item has not.")


def test_a_table_and_a_sentence_for_each_reviewer_say_first_whom_the_judge_may_replace() -> None:
    """Ann's is too low in her order, Bob's often the other way round, Cy's nearly right, and Dee rated five items."""
    draw = np.random.default_rng(4)
    rows = [
        {"item": f"i{item}", "reviewer": name, "score": float(draw.integers(1, 6))}
        for item in range(40)
        for name in ("ann", "bob", "cy", "dee")
        if name != "dee" or item < 5
    ]
    (part,) = read_parts([to_ratings(rows)])
    noise = draw.normal(scale=0.3, size=len(rows))
    guesses = np.where(draw.random(len(part.score)) < 0.6, part.score, 6.0 - part.score)
    own = np.choose(part.reviewer, [part.score - 2.5, guesses, part.score, part.score])
    columns = [*predict(part, ("own-history", "item-mean"), [], 1, {})]
    columns += [Predictions("aggregate", 5, part.score[None] + 2.0, fold="mean of 3 answers")]
    columns += [Predictions("personalized", 5, (own + noise)[None], fold="mean of 3 answers")]
    found = report([(part, columns)])
    ann, bob, cy, dee = found.figures["reviewers"]
    shifts = noise[part.reviewer == 0] - 2.5
    low_high = scipy.stats.ttest_1samp(shifts, 0.0).confidence_interval()
    assert ann["bias"] == pytest.approx((shifts.mean(), *low_high))
    of_bob = part.reviewer == 1
    correlation, _ = scipy.stats.spearmanr(part.score[of_bob], (own + noise)[of_bob])
    assert bob["rank_correlation"].value == pytest.approx(correlation)
    assert [row["state"] for row in (ann, bob, cy, dee)] == [
        "worse",
        "so far worse",
        "better",
        "too few",
    ]
    errors = absolute_errors(part, columns)
    gains = errors["own-history"] - errors["personalized"]
    tests = [scipy.stats.ttest_1samp(gains[part.reviewer == index], 0.0) for index in range(3)]
    people_p = holm([test.pvalue for test in tests])
    assert [row["own_mean_p"] for row in (ann, bob, cy)] == pytest.approx(people_p)
    interval = tests[1].confidence_interval(1.0 - 0.05 / 3)
    assert bob["own_mean_gain"] == pytest.approx((gains[part.reviewer == 1].mean(), *interval))
    assert cy["mae"]["item-mean"] == pytest.approx(errors["item-mean"][part.reviewer == 2].mean())
    expected = [
        r"cy: better than own mean, may replace a first look: personalized with 5 examples off by 0\.\d\d \(0",
        r"ann: worse than own mean, do not replace this person: .* off by 2\.",
        r"bob: cannot be told yet, so far .* than own mean: .*\. Its order of the items is not surely better than "
        r"chance: rank correlation -0\.\d\d \(-0.* to 0.*\)\. About .* more ratings? ",
        r"dee: too few ratings to tell: .* off by \d\.\d\d on average over 5 ratings, own mean by \d\.\d\d\.$",
    ]
    for sentence, pattern in zip(found.conclusion, expected, strict=False):
        assert re.search(f"^all: {pattern}", sentence)
    assert "order of the items" not in "".join(found.conclusion[:2] + found.conclusion[3:])
    # what nobody asks to compare changes nothing of that
    few = np.where(np.arange(len(part.score)) % 10, np.nan, part.score + 2.0)
    for others in ([], [Predictions("aggregate", 5, few[None])]):
        compared = report([(part, [columns[0], *others, columns[-1]])])
        assert compared.conclusion[:4] == found.conclusion[:4]
    words = next(text for text in found.conclusion if "nearer than item-mean" in text)
    assert "personalized (a judge for each reviewer)" in words
    table, other = report([(part, columns)], all_tables=False).tables
    assert [*table.header] == [
        "all, reviewer",
        "judge beside own mean",
        "n",
        "personalized with 5 examples off by (95 %)",
        "own mean off by",
        "mean of others off by, where all predict",
    ]
    assert table.rows[2][-1] == cy["mae"]["item-mean"]
    assert [text.partition(" ")[0] for _, text, *_ in table.rows] == [
        "worse",
        "cannot",
        "better",
        "too",
    ]
    assert other.header[1] == "judge"
    rule = next(line for line in format_report_lines(found.sections) if line.startswith("Each"))
    assert " A model's is the mean of 3 answers (`panel`), without those that lack a quo" in rule
    assert found.tables[1].header[-1] == "rank correlation of personalized (95 %)"
    yardsticks = report([(part, columns[:2])], all_tables=False)
    assert all(
        "what a judge has to beat: own mean off by" in line for line in yardsticks.conclusion[:4]
    )


def test_a_judge_whose_order_may_be_chance_replaces_nobody_however_near_it_is() -> None:
    gain = mean_with_cluster_interval(np.linspace(0.4, 0.6, 20), np.arange(20))
    person = {"own_mean_p": 0.001, "own_mean_gain": gain, "error": gain}
    for correlation, state in ((None, "nearer"), (gain, "better")):
        (row,) = tell_states([person | {"rank_correlation": correlation}], 4.0)
        assert row["state"] == state


def test_two_judges_are_compared_in_one_sentence_whichever_is_nearer() -> None:
    row = {
        "dimension": None,
        "shots": 0,
        "coverage": 1.0,
        "answered": 9,
        "n": 9,
    }
    judges = []
    for name, error in (("aggregate", 0.5), ("personalized", 0.9)):
        figures = {"mae": IntervalCell(error, 0.4, 1.0), "alpha": IntervalCell(0.8, 0.7, 0.9)}
        judges.append({**row, **figures, "judge": name})
    absolute = IntervalCell(0.4, 0.2, 0.6)
    pair: dict[str, Any] = {"first": "personalized", "second": "aggregate", "absolute": absolute}
    pair |= {"dimension": None, "absolute_p": 0.01, "n": 9, "ratings": 9}
    pair["of_these"] = IntervalCell(0.4, 0.3, 0.5)
    words = " ".join(conclude_reviewers(judges, [pair], PERSONS))
    assert words.count("mean difference of errors") == 1
    assert words.startswith(
        "all: for these reviewers the error of personalized is 0.40 (0.30 to 0.50) above that of aggregate."
    )
    assert "(a judge for each reviewer): mean difference of errors 0.40 (0.20" in words
    # an interval for itself may be clear where p over all pairs is not
    other = {**pair, "first": "item-mean", "absolute_p": 1.0}
    words, *_ = conclude_reviewers(judges, [{**pair, "absolute_p": 0.294}, other], PERSONS)
    assert "(a judge for each reviewer) cannot be told: mean" in words
    assert words.endswith("mean difference of errors 0.40 (0.20 to 0.60), p 0.294.")
    wide = {**pair, "absolute": IntervalCell(0.4, -0.2, 1.0), "absolute_p": 0.4}
    words, *_ = conclude_reviewers(judges, [wide], PERSONS)
    in_proportion = "more reviewers (and items in proportion) like these would tell with"
    assert f". About 3 {in_proportion}" in words
    (words, *_) = conclude_reviewers(
        [{**judges[0], "alpha": IntervalCell(0.4, -0.2, 1.0)}], [], PERSONS
    )
    assert words.endswith("would tell with a chance of 80%; more items of the same ones would not.")


def test_the_pair_that_the_study_is_for_has_a_p_of_its_own_and_others_share_theirs() -> None:
    (part,) = read_parts([to_ratings(random_rows(np.random.default_rng(3)))])
    noise = np.random.default_rng(4).normal(size=(5, len(part.score)))
    names = ("personalized", "aggregate", "zero-shot", "item-mean", "rater-offset")
    columns = [
        Predictions(name, None, part.score[None] + shift * row)
        for name, shift, row in zip(names, (0.5, 0.6, 0.7, 0.8, 0.9), noise, strict=True)
    ]
    pair = figures_of(report([(part, columns[:2])])).differences[0]
    several = report([(part, columns)])
    first, *others = figures_of(several).differences
    assert (first.first, first.second, first.absolute_p) == (
        "personalized",
        "aggregate",
        pair.absolute_p,
    )
    assert len(others) == 9
    conclusion = " ".join(several.conclusion)
    assert "item-mean" in conclusion
    assert "rater-offset" in conclusion


def test_the_pair_that_the_study_is_for_is_compared_on_all_ratings_that_both_predict() -> None:
    """A third judge that predicts six ratings takes none away; of the reviewers' own means there is a sentence."""
    (part,) = read_parts([to_ratings(random_rows(np.random.default_rng(3)))])
    count = len(part.score)
    columns = [
        Predictions("aggregate", 5, part.score[None] + 1.0),
        Predictions("own-history", None, part.score[None] + 0.5 + np.arange(count) % 2),
        Predictions("personalized", 5, part.score[None] + 0.1 * (np.arange(count) % 2)),
        Predictions("zero-shot", 0, np.where(np.arange(count) < 6, part.score, GAP)[None]),
    ]
    result = report([(part, columns)])
    assert (
        "personalized (a judge for each reviewer) is nearer than aggregate" in result.conclusion[1]
    )
    assert "the mean of each reviewer's own scores" in " ".join(result.conclusion)
    found = figures_of(result)
    compared = {(row.first, row.second): row.n for row in found.differences}
    assert compared.pop(("aggregate", "personalized")) == count
    assert set(compared.values()) == {6}
    assert sum(row.gain_n for row in found.reviewers) == count
    assert sum(row.n for row in found.reviewers) == 6
