"""The report of a consensus: the choice of the method, and what is measured or not."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jurygraph.aggregation import consensus
from jurygraph.errors import InputError
from jurygraph.inference.clusters import t_quantile
from jurygraph.sources.ratings import read_votes
from jurygraph.studies import consensus as consensus_study
from jurygraph.studies.conclusions import describe_raters
from jurygraph.studies.fitted_consensus import ConsensusSettings, FittedConsensus, fit_consensus
from jurygraph.studies.report import IntervalCell, Report, ReportTable
from jurygraph.studies.votes import collect_votes
from tests.studies.consensus.made import AGENTS, PANEL, votes_file
from tests.studies.figures import Figures, figures_of

RATERS = ("ann", "bo", "fay", "dee")
EXAMPLE = Path(__file__).parents[3] / "examples" / "consensus"


def report(reached: FittedConsensus) -> Figures:
    return figures_of(consensus_study.report(reached))


def fit_panel(settings: ConsensusSettings, **fields: Any) -> FittedConsensus:
    return fit_consensus(collect_votes([votes_file(*PANEL, **fields)]), settings)


# Choice of the method


def test_a_panel_that_is_too_small_is_scored_by_majority_with_a_warning() -> None:
    found = fit_panel(ConsensusSettings())
    assert consensus.too_small(found.model.votes) is not None
    assert found.method == "majority"
    assert "agents and items are by majority vote, ties shared" in found.warnings[-1]
    assert report(found).method == "majority"


@pytest.mark.parametrize(
    "settings",
    [
        ConsensusSettings(preset="converged"),
        ConsensusSettings(preset="paper"),
        ConsensusSettings(method="stableval"),
    ],
)
def test_a_requested_model_is_used_with_a_warning(settings: ConsensusSettings) -> None:
    found = fit_panel(settings)
    assert found.method == "stableval"
    assert consensus.too_small(found.model.votes) in found.warnings
    assert not any("stands in" in one for one in found.warnings)


def test_items_and_agents_are_scored_by_the_selected_method() -> None:
    annotators = None
    for method in ("stableval", "dawid-skene", "majority"):
        found = fit_panel(ConsensusSettings(method=method, subsets=2), agent=AGENTS)
        result = report(found)
        posterior = np.array([one.posterior for one in result["items"].values()])
        assert (posterior == found.get_item_posteriors(method).posterior).all()
        scores = {
            name: getattr(one, method.replace("-", "_")) for name, one in result.comparison.items()
        }
        assert {name: one.score for name, one in result.agents.items()} == scores
        annotators = annotators or result.annotators
        assert result.annotators == annotators


def test_ties_go_to_the_first_label_with_preset_paper_and_are_shared_otherwise() -> None:
    votes = collect_votes(
        [votes_file(("a", "x", 1.0), ("a", "y", 0.0), ("b", "x", 0.0), ("b", "y", 0.0))]
    )
    first = report(fit_consensus(votes, ConsensusSettings(preset="paper", method="majority")))
    shared = report(fit_consensus(votes, ConsensusSettings(method="majority")))
    assert (first.ties, first["items"]["a"].posterior) == (
        {"rule": "first", "items": ["a"]},
        [0.0, 1.0],
    )
    assert (shared.ties, shared["items"]["a"].posterior) == (
        {"rule": "shared", "items": ["a"]},
        [0.5, 0.5],
    )


# Credit and intervals


def test_intervals_contain_the_score_and_are_reproducible() -> None:
    settings = ConsensusSettings(preset="paper", seed=3)
    found = report(fit_panel(settings, agent=AGENTS))
    assert found == report(fit_panel(settings, agent=AGENTS))
    for one in found.agents.values():
        assert one.low <= one.score <= one.high


@pytest.mark.landing
def test_refits_and_draws_of_items_are_made_and_counted() -> None:
    found = fit_panel(ConsensusSettings(preset="converged", subsets=6), agent=AGENTS)
    counted: list[int] = []
    result = figures_of(consensus_study.report(found, counted.append))
    assert sum(counted) == found.estimates == 206
    assert result.intervals == "t, with refits"
    columns = found.ballots
    refits = consensus.refit_intervals(found.model, columns.agent, values=found.values)
    assert {name: one.low for name, one in result.agents.items()} == {
        n: one.low for n, one in refits.agents.items()
    }
    for name, each in result.annotators.items():
        accuracy_interval = list(refits.annotators[name][0])
        is_alike = math.isnan(accuracy_interval[0])  # all refits of someone without an error
        assert each.accuracy_interval == (None if is_alike else accuracy_interval)
    rows = (columns.item, columns.annotator, columns.label, columns.agent)
    settings: Any = {
        "subsets": 6,
        "seed": 0,
        "with_items": True,
        "prompt": columns.item_id_in_file,
        "classes": (0, 1),
    }
    drawn = consensus.ranking_stability(*rows, **settings)
    assert result.stability["stableval"].score_shift == drawn["stableval"].score_shift


def test_the_papers_parameters_replace_those_of_a_preset_and_are_recorded() -> None:
    changes = {"prior_mu": 2.0, "prior_confusion": 1.5, "diagonal": 0.7, "tol": 1e-3}
    settings = ConsensusSettings(preset="paper", subsets=4, fit=changes, bootstrap=50)
    found = fit_panel(settings, agent=AGENTS)
    result = report(found)
    columns = found.ballots
    rows: Any = (columns.item, columns.annotator, columns.label)
    fitted = consensus.fit(*rows, "paper", classes=(0, 1), **changes)
    assert result.settings == figures_of(Report(fitted.settings._asdict()))
    assert result.settings.items() >= changes.items()
    posterior = [item.posterior for item in result["items"].values()]
    assert posterior == fitted.posterior.tolist()
    drawn = fitted.agent_scores(columns.agent, bootstrap=50, interval="bootstrap")
    assert result.bootstrap == 50
    for name, agent in result.agents.items():
        assert (agent.low, agent.high) == (drawn[name].low, drawn[name].high)
    stability = consensus.ranking_stability(
        *rows,
        columns.agent,
        subsets=4,
        preset="paper",
        settings=fitted.settings,
        classes=(0, 1),
    )
    assert result.stability["stableval"].score_shift == stability["stableval"].score_shift


@pytest.mark.parametrize(
    ("name", "table"), [("mtbench", "12"), ("convabuse", "17"), ("mslr", "29")]
)
def test_the_key_findings_are_those_that_the_paper_prints(name: str, table: str) -> None:
    votes = read_votes(EXAMPLE / f"{name}.csv.gz")
    settings = ConsensusSettings(preset="paper", subsets=0, bootstrap=0)
    result = report(fit_consensus(collect_votes([votes]), settings))
    found = result.findings
    assert {
        "Score correlation (MV vs PEC)": f"{found.pearson_correlation:.3f}",
        "Maximum score change": f"{found.largest_change:.3f}",
        "Agents with rank changes": f"{found.rank_changes} / {len(result.agents)}",
        "Average item ambiguity": f"{found.mean_ambiguity:.3f}",
        "Highly ambiguous items (> 0.3)": f"{found.ambiguous_items} ({found.ambiguous_share:.2%})",
    } == json.loads((EXAMPLE / "published.json").read_text("utf-8"))[name][table]


def test_without_two_agents_there_is_no_correlation() -> None:
    for agents in ({}, {"agent": ["one"] * 48}):
        result = report(
            fit_panel(ConsensusSettings(preset="converged", subsets=0, bootstrap=0), **agents)
        )
        assert (result.findings.pearson_correlation, result.findings.rank_changes) == (None, 0)


# What cannot be measured


TWO = [row for row in PANEL if row[1] in ("ada", "bo")]
UNKNOWN = (
    "2 annotators are not identifiable: 3 free cells for 5 unknowns; "
    "the estimate depends on its start or its prior"
)


@pytest.mark.parametrize(
    ("settings", "rows", "columns", "limits"),
    [
        (
            ConsensusSettings(subsets=2, compare=True),
            TWO,
            {},
            ["no row has an agent, and --compare needs agents, too", UNKNOWN],
        ),
        (
            ConsensusSettings(),
            TWO,
            {"agent": ["one"] * 24},
            ["there is one agent, and a ranking needs two", UNKNOWN],
        ),
        (
            ConsensusSettings(),
            PANEL[::4],
            {"agent": AGENTS[::4]},
            ["there is one annotator", "one annotator is"],
        ),
        (
            ConsensusSettings(preset="paper", subsets=0),
            PANEL,
            {"agent": AGENTS},
            ["--subsets is 0", "preset paper"],
        ),
        (
            ConsensusSettings(),
            PANEL,
            {"agent": AGENTS, "group": ["one"] * 48},
            ["there is one item or group"] * 2,
        ),
        (
            ConsensusSettings(preset="converged", subsets=0, bootstrap=0),
            PANEL,
            {"agent": AGENTS},
            ["--subsets is 0", "--bootstrap is 0"],
        ),
    ],
)
def test_what_is_not_measured_has_a_reason(
    settings: ConsensusSettings,
    rows: list[tuple[str, str, Any]],
    columns: dict[str, list[str]],
    limits: list[str],
) -> None:
    found = fit_consensus(collect_votes([votes_file(*rows, **columns)]), settings)
    result = report(found)
    assert (found.estimates, result.stability) == (0, None)
    for limit, reason in zip(result.limits, limits, strict=True):
        assert reason in limit


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ConsensusSettings(values=(0.0, 0.5, 1.0)),
            r"--values: gives 3 credits to 2 classes \(0, 1\); give each one",
        ),
        (ConsensusSettings(subsets=1), "--subsets: one draw tells no spread; "),
        (ConsensusSettings(bootstrap=1), "--bootstrap: one resample tells no spread; "),
    ],
)
def test_settings_that_do_not_match_the_votes_are_refused(
    settings: ConsensusSettings, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fit_panel(settings, agent=AGENTS)


def test_a_report_by_majority_has_the_ambiguity_of_its_items() -> None:
    figures = report(fit_panel(ConsensusSettings()))
    ambiguity = [item["ambiguity"] for item in figures["items"].values()]
    assert figures["method"] == "majority"
    assert figures["findings"]["mean_ambiguity"] == pytest.approx(np.mean(ambiguity))


def test_items_in_doubt_by_majority_are_ties_and_those_that_one_vote_decides() -> None:
    """Of three items one is unanimous, which is in no table; its name comes first."""
    votes: list[Any] = []
    for item, labels in {"a": (1, 1, 1), "b": (1, 1, 0), "c": (1, 0)}.items():
        votes += [(item, f"p{index}", label) for index, label in enumerate(labels)]
    for method in ("majority", "stableval"):
        settings = ConsensusSettings(method=method)
        found = consensus_study.report(fit_consensus(collect_votes([votes_file(*votes)]), settings))
        tables = {
            table.header[0]: table for table in found.sections if isinstance(table, ReportTable)
        }
        assert "posterior (PEC) against majority (MV)" not in tables  # there is no agent to compare
        assert found.conclusion[-1].startswith(
            "1 of 3 items with two labels or more are unanimous (33.3%), "
        )
        bar = {
            "majority": "2 of 3 (by majority: one vote decides, it is a tie, or there is no label).",
            "stableval": "0 of 3 (by stableval: no class has a probability of 0.7).",
        }[method]
        assert found.conclusion[-1].endswith(f"vote: 1, ties: 1; items in doubt: {bar}")
        if method == "stableval":
            assert "most ambiguous items" in tables
            continue
        tie, one_vote = tables["items in doubt"].rows
        assert (tie[:2], one_vote[:2]) == (["c", "tie"], ["b", "one vote decides"])
        assert [tie[2], one_vote[2]] == [0.5, pytest.approx(2**0.5 / 3)]  # the widest labels first
        assert [tie[3], one_vote[3]] == ["0 or 1", "1"]


@pytest.mark.parametrize("has_groups", [True, False])
def test_which_agent_people_like_more_is_told_over_the_questions_of_both(has_groups: bool) -> None:
    """Answers to a question are alike, and one agent's a star better: its lead is surer than both scores."""
    votes, agents, groups = [], [], []
    for question in range(24):
        for agent in ("heron", "falcon"):
            for person in ("ann", "bo", "cy"):
                is_spared = question % 4 == 0  # some questions show no difference
                stars = 1.0 + question % 4 + (agent == "falcon" and not is_spared)
                votes.append((f"{agent} {question}", person, stars))
                agents.append(agent)
                groups.append(f"q{question}")
    columns = {"agent": agents, "group": groups} if has_groups else {"agent": agents}
    fitted = fit_consensus(
        collect_votes([votes_file(*votes, **columns)]),
        ConsensusSettings(subsets=0, bootstrap=0, method="majority"),
    )
    found = consensus_study.report(fitted)
    words = found.conclusion[0]
    falcon, heron = (found.figures["agents"][name] for name in ("falcon", "heron"))
    assert falcon.low < heron.high
    design = "unpaired over 24 answers or more of each"
    certainty = "which may be chance"
    if has_groups:
        design = "paired over 24 groups"
        certainty = "by more than chance"
    assert words.startswith(f"falcon is ahead of heron, {certainty}: the difference is 0.1875 (")
    assert falcon.score - heron.score == pytest.approx(0.1875)
    assert words.endswith(" The difference is in credit, as the scores are.")
    uneven = fitted.ballots._replace(classes=(1, 2, 3, 4, 5, 9), values=None)
    by_rank = consensus_study.report(fit_consensus(uneven, fitted.settings)).conclusion[0]
    assert "in the numbers" not in str(by_rank)  # the credit of 9 is one step above that of 5
    assert design in words
    assert ("more answers of each like these would tell with a chance of 80%" in words) == (
        not has_groups
    )


def test_all_pairs_of_more_than_two_agents_are_compared_with_intervals_that_hold_together() -> None:
    """The best is surely ahead of the last alone; the next one's questions differ too much to tell."""
    votes, agents, groups = [], [], []
    for question in range(12):
        stars_by_agent = {
            "alpha": 4 + question % 2,
            "bravo": 1 + 4 * (question % 3 > 0),
            "cedar": 3,
        }
        for agent, stars in stars_by_agent.items():
            votes += [(f"{agent} {question}", person, stars) for person in ("ann", "bo")]
            agents += [agent] * 2
            groups += [f"q{question}"] * 2
    file = votes_file(*votes, agent=agents, group=groups)
    settings = ConsensusSettings(subsets=0, bootstrap=10)
    found = consensus_study.report(fit_consensus(collect_votes([file]), settings))
    pairs = found.figures["pairs"]
    assert [(pair.first, pair.second, pair.certainty) for pair in pairs] == [
        ("alpha", "bravo", "which may be chance"),
        ("alpha", "cedar", "by more than chance"),
        ("bravo", "cedar", "which may be chance"),
    ]
    differences = [4 + question % 2 - 3 for question in range(12)]
    half_width = t_quantile(11, 1 - 0.025 / 3) * np.std(differences, ddof=1) / 12**0.5
    sure = pairs[1]
    assert (sure.value, sure.low, sure.high) == pytest.approx(
        (1.5, 1.5 - half_width, 1.5 + half_width)
    )
    assert (
        "pairs of agents that differ by more than chance, of 3 whose intervals hold together with 95 % (Bonferroni): "
        f"alpha - cedar {sure.value:.3f} ({sure.low:.3f} to {sure.high:.3f})"
    ) == found.conclusion[1]
    tables = {table.header[2]: table for table in found.sections if isinstance(table, ReportTable)}
    assert tables["ahead by (95 %, Bonferroni)"].rows[1] == [
        "alpha",
        "cedar",
        sure,
        "by more than chance",
    ]


# Ordered labels


def _stars_by(annotator: str, item: int) -> float:
    """Ann and Bo are a star apart now and then; fay gives half stars, and dee clicks without looking."""
    if annotator == "dee":
        return 1.0 + (2 * item + item // 2) % 5
    star = 1.0 + item % 10 // 2
    if annotator == "fay" and item % 3 == 0:
        return min(5.0, star + 0.5)
    return min(5.0, star + (annotator == "bo" and item % 4 == 0))


STARS = [(f"i{item}", one, _stars_by(one, item)) for item in range(40) for one in RATERS]


def test_of_ordered_labels_who_guesses_is_told_by_the_order_and_half_stars_do_not_bend_the_scale() -> (
    None
):
    reached = fit_consensus(
        collect_votes([votes_file(*STARS)]), ConsensusSettings(method="majority")
    )
    assert reached.values == (0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0)
    found = consensus_study.report(reached)
    people = found.figures["annotators"]
    assert people["dee"]["correlation"].high < 0.5 < people["fay"]["correlation"].low
    assert people["fay"]["accuracy"] < people["bo"]["accuracy"]
    (advice,) = [text for text in found.conclusion if "guessing" in text]
    assert str(advice).startswith(
        "Warning: may be guessing, or of another taste (correlation near 0, surely below 0.5): dee "
    )
    assert not any(name in str(advice) for name in ("ann", "fay"))
    half_steps = (
        "labels have half steps and are 9 classes, of which votes often tie: better `--classes 1,2,3,4,5`, which takes "
        "each as the nearest, or --method adjusted-mean"
    )
    assert half_steps in found.notes
    by_mean = fit_consensus(collect_votes([votes_file(*STARS)]), ConsensusSettings())
    assert half_steps not in by_mean.warnings


@pytest.mark.parametrize("slips", [{("i7", "bo")}, {("i7", "bo"), ("i9", "dee"), ("i30", "bo")}])
def test_slips_far_off_the_scale_come_before_the_headline_and_are_in_no_suggested_scale(
    slips: set[tuple[str, str]],
) -> None:
    votes = [(item, name, 44 if (item, name) in slips else star) for item, name, star in STARS]
    slip = fit_consensus(collect_votes([votes_file(*votes)]), ConsensusSettings())
    found = consensus_study.report(slip)
    lines = [row + 2 for row, (_, _, label) in enumerate(votes) if label == 44]
    assert found.conclusion[0] == (
        "Warning: far from all other labels, and moving every figure: 44 "
        f"({', '.join(f'line {line} of v.csv' for line in lines)}); correct them (`--classes 1,2,3,4,5` names each)."
    )
    clean = consensus_study.report(
        fit_consensus(collect_votes([votes_file(*STARS)]), ConsensusSettings())
    )
    assert not any("far from" in str(text) for text in clean.conclusion)


def test_each_two_people_are_compared_and_words_also_beyond_chance() -> None:
    words = [("bad", "bad", "ok"), ("ok", "bad", "ok"), ("ok", "ok", None), ("bad", "bad", "ok")]
    votes = [
        (f"i{item}", name, label)
        for item, labels in enumerate(words)
        for name, label in zip(RATERS, labels, strict=False)
    ]
    found = consensus_study.report(
        fit_consensus(collect_votes([votes_file(*votes)]), ConsensusSettings(bootstrap=0))
    )
    pairs = [[*row.values()] for row in found.to_json()["annotator_pairs"]]
    assert pairs == [
        ["ann", "bo", 4, 75.0, 0.5],
        ["ann", "fay", 3, pytest.approx(100 / 3), 0.0],
        ["bo", "fay", 3, 0.0, 0.0],
    ]
    (shown,) = (table for table in found.sections if "alike, %" in getattr(table, "header", ()))
    assert shown.cells()[0] == ["ann", "bo", "4", "75.00", "0.50"]
    stars = fit_consensus(
        collect_votes([votes_file(("a", "x", 1), ("a", "y", 3), ("b", "x", 2), ("b", "y", 2))]),
        ConsensusSettings(bootstrap=0),
    )
    (pair,) = report(stars)["annotator_pairs"]
    assert pair == {"annotator": "x", "other": "y", "items": 2, "percent_alike": 50, "kappa": None}


def test_two_who_are_alike_far_beyond_what_either_is_with_others_are_named_but_not_who_is_constant() -> (
    None
):
    rows = [(f"i{item}", "ann", item % 3) for item in range(30)]
    rows += [(f"i{item}", "bo", item % 3 if item % 2 else item % 4 % 3) for item in range(30)]
    rows += [(f"i{item}", name, 1) for item in range(30) for name in ("dan", "eve")]
    copied = [(item, "cy", label) for item, name, label in rows if name == "bo"]
    settings = ConsensusSettings(bootstrap=0)
    for more, names in (([], []), (copied, ["bo and cy"])):
        found = consensus_study.report(
            fit_consensus(collect_votes([votes_file(*rows, *more)]), settings)
        )
        warnings = [text for text in found.conclusion if "same label" in text]
        assert [text.split(" gave ")[0].removeprefix("Warning: ") for text in warnings] == names
    assert warnings[0].startswith("Warning: bo and cy gave 30 of 30 items the same label, and")


def test_items_with_one_label_neither_agree_nor_disagree() -> None:
    single = [("a", "x", 1), ("b", "x", 2), ("c", "x", 3)]
    for votes, words in (
        (
            [*single, ("d", "x", 1), ("d", "y", 2)],
            "0 of 1 items with two labels or more are unanimous (0.0%), and of the pairs of labels of such an item "
            "0.0% agree; items with one label: 3; items decided by one vote: 3, ties: 1; items in doubt: 4 of 4 (by",
        ),
        (
            single,
            "no item has two labels; items with one label: 3; items decided by one vote: 3, ties: 0;",
        ),
    ):
        ballots = collect_votes([votes_file(*votes)])
        settings = ConsensusSettings(bootstrap=0, method="majority")
        found = consensus_study.report(fit_consensus(ballots, settings))
        assert found.conclusion[-1].startswith(words)


def test_the_accuracy_of_someone_who_never_errs_has_the_exact_interval_of_as_many_items() -> None:
    rows = [(f"i{item}", name, item % 2) for item in range(30) for name in ("ann", "bo", "cy")]
    rows += [(f"i{item}", "dee", item % 2 ^ (item % 5 == 0)) for item in range(30)]
    rows += [(f"i{item}", "eve", 1) for item in range(30)]
    ballots = collect_votes([votes_file(*rows)])
    found = consensus_study.report(fit_consensus(ballots, ConsensusSettings(subsets=0)))
    people = found.figures["annotators"]
    assert people["ann"]["accuracy"] > 0.99
    assert people["ann"]["accuracy_interval"] == pytest.approx((0.025 ** (1 / 30), 1.0))
    assert people["dee"]["accuracy_interval"][1] < 1.0
    assert people["eve"]["accuracy_interval"] is None, "each class is always labelled alike"
    # Of groups of the same class, which are one draw each, there are three in either.
    grouped = ballots._replace(prompt=[f"g{int(item[1:]) % 6}" for item in ballots.item])
    people = consensus_study.report(fit_consensus(grouped, ConsensusSettings(subsets=0))).figures[
        "annotators"
    ]
    assert people["ann"]["accuracy_interval"][0] == pytest.approx(0.025 ** (1 / 6))


@pytest.mark.parametrize("words", [(), ("one", "two", "three", "four", "five", "six")])
def test_who_is_surely_lenient_is_named_and_nobody_is_strict_for_that(
    words: tuple[str, ...],
) -> None:
    draw = np.random.default_rng(5)
    rows = []
    for item in range(60):
        star = draw.integers(1, 5)
        for name in ("ann", "bo", "cy", "dee", "len"):
            label = star + (draw.random() < (0.8 if name == "len" else 0.2))
            rows.append((f"i{item}", name, words[label] if words else float(label)))
    rows += [("i0", "abe", None), ("i0", "zoe", None)]  # who abstain, and change nothing
    ballots = collect_votes([votes_file(*rows)], classes=words)
    found = consensus_study.report(fit_consensus(ballots, ConsensusSettings(bootstrap=0)))
    shifts = {name: row["shift"] for name, row in found.figures["annotators"].items()}
    step = 0.2 if words else 1.0
    assert shifts.pop("len").value == pytest.approx(0.6 * step, abs=0.15 * step)
    assert found.figures["annotators"]["len"]["accuracy"] < 0.4
    assert set(shifts.values()) == {None}
    others = "labels surely higher than in the middle of all people, were all items the same, by"
    if words:
        others = "credit surely higher than the others' of the same items, on average by"
    (sentence,) = [text for text in found.conclusion if "surely higher" in text]
    assert str(sentence).startswith(f"{others}: len (says ")
    assert " that others call " in str(sentence).partition(") 0.")[0]
    assert not any("surely lower" in text for text in found.conclusion)


def test_who_may_guess_by_too_few_labels_is_named_apart_from_who_surely_does() -> None:
    cells = {
        "dee": IntervalCell(0.1, -0.2, 0.4),
        "eve": IntervalCell(0.2, -0.18, 0.59),
        "fay": IntervalCell(0.8, 0.6, 0.9),
        "gus": IntervalCell(-0.7, -0.9, -0.5),
        "hal": IntervalCell(0.2, 0.01, 0.39),
        **dict.fromkeys(("ivy", "jo"), IntervalCell(0.8, 0.6, 0.9)),
    }
    shifts = dict.fromkeys(cells)
    assert list(describe_raters(cells, "correlation", 0.0, shifts, "labels", "than others by")) == [
        "Warning: judges the other way round (correlation surely below the 0 of guessing): gus -0.700 "
        "(-0.900 to -0.500); to leave out: --without gus",
        "Warning: may be guessing, or of another taste (correlation near 0, surely below 0.5): dee 0.100 "
        "(-0.200 to 0.400); to leave out: --without dee",
        "Warning: agrees little, or of another taste (correlation surely below 0.5, though not guessing): hal "
        "0.200 (0.010 to 0.390); to leave out: --without hal",
        "guessing is not ruled out, and more labels would tell: eve 0.200 (-0.180 to 0.590)",
    ]
    del cells["ivy"]
    few = describe_raters(cells, "correlation", 0.0, shifts, "labels", "than others by")
    assert "leave out" not in " ".join(few), "one may spoil the means of half of them"


@pytest.mark.parametrize(("label_count", "is_named"), [(9, False), (10, True)])
def test_nobody_may_guess_by_a_handful_of_labels(label_count: int, is_named: bool) -> None:
    rows = [(f"i{item}", name, float(item % 2)) for item in range(24) for name in ("ann", "bo")]
    rows += [(f"i{item}", "new", float(item // 2 % 2)) for item in range(label_count)]
    found = fit_consensus(collect_votes([votes_file(*rows)]), ConsensusSettings(bootstrap=0))
    conclusion = consensus_study.report(found).conclusion
    assert any("guessing is not ruled out" in text for text in conclusion) == is_named


@pytest.mark.parametrize(
    ("odd", "rare"),
    [
        ([6.0], "classes with very few labels: 6 (p0's of i30): their"),
        ([6.0, 6.0], "classes with very few labels: 6 (p0's of i30 and p1's of i30): their"),
        ([6.0, 6.0, 6.0], None),
    ],
)
def test_a_class_of_two_labels_among_more_than_a_hundred_may_be_two_slips(
    odd: list[float], rare: str | None
) -> None:
    labels = [float(star) for star in [1, 2, 3, 4, 5] * 24] + odd
    rows = [(f"i{row // 4}", f"p{row % 4}", label) for row, label in enumerate(labels)]
    settings = ConsensusSettings(method="majority")
    notes = fit_consensus(collect_votes([votes_file(*rows)]), settings).warnings
    found = [text for text in notes if text.startswith("classes with very few")]
    assert len(found) == (rare is not None)
    assert rare is None or found[0].startswith(rare)


def test_credit_follows_numbers_and_is_even_for_classes_that_are_named() -> None:
    rows = (("a", "x", 1.0), ("a", "y", 1.5), ("b", "x", 5.0))
    names = ("1", "1.5", "5")
    by_number = fit_consensus(
        collect_votes([votes_file(*rows)]), ConsensusSettings(method="majority")
    )
    named = fit_consensus(
        collect_votes([votes_file(*rows)], classes=names), ConsensusSettings(method="majority")
    )
    assert (by_number.values, named.values) == ((0.0, 0.125, 1.0), (0.0, 0.5, 1.0))
