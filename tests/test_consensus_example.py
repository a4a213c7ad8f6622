"""The example of consensus: STABLEVAL's tables of real votes come out of it to the last digit."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from examples.consensus import mappings, tables, with_gpt4
from examples.consensus.votes import GPT4, Pairwise, Ratings, pairwise, ratings
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import Consensus

DATA = Path(__file__).parent / "data"
PUBLISHED: dict[str, dict[str, Any]] = json.loads(
    (DATA / "stableval" / "expected.json").read_text("utf-8")
)["real"]
NAMES = ("mtbench", "convabuse", "mslr")
EXACTLY = {"rel": 0.0, "abs": 1e-9}


class Fitted(NamedTuple):
    """A set of votes, its consensus by the preset `paper`, and what was published of it."""

    rows: Ratings
    paper: Consensus
    published: dict[str, Any]


@pytest.fixture(scope="module", params=NAMES)
def found(request: pytest.FixtureRequest) -> Fitted:
    rows = ratings(request.param)
    fitted = consensus.fit(rows.item, rows.annotator, rows.label, preset="paper")
    return Fitted(rows, fitted, PUBLISHED[request.param])


def published(found: Fitted, table: str, figure: str) -> dict[str, float]:
    """A column of a published table."""
    return {one: row[figure] for one, row in found.published[table].items()}


def test_every_vote_is_two_ratings_of_one_judge_whose_labels_make_two() -> None:
    rows = ratings("mtbench")
    votes = list(zip(rows.agent, rows.annotator, rows.label, strict=True))
    people = pairwise("mtbench_human")
    assert (len(votes), len(people), len(pairwise("mtbench_gpt4"))) == (6710, 3355, 2400)
    for vote, first, second in zip(people, votes[::2], votes[1::2], strict=True):
        assert (first[:2], second[:2]) == ((vote.model_a, vote.judge), (vote.model_b, vote.judge))
        assert first[2] + second[2] == 2


@pytest.mark.parametrize(
    ("winner", "better", "labels"),
    [
        ("model_a", "x", [2, 0]),
        ("model_b", "w", [0, 2]),
        ("tie", None, [1, 1]),
        ("tie (inconsistent)", None, [1, 1]),
    ],
)
def test_a_win_is_2_a_tie_1_and_a_loss_0(
    winner: str, better: str | None, labels: list[int]
) -> None:
    vote = Pairwise("81", "2", "x", "w", "expert_1", winner)
    assert (vote.better, vote.key) == (better, ("81", "w", "x"))
    assert list(vote.ratings()) == [
        ("mtbench_81_turn2", model, "expert_1", label)
        for model, label in zip("xw", labels, strict=True)
    ]


# STABLEVAL's tables 1, 2, 8 to 17 and 24 to 29


def test_the_consensus_by_the_preset_is_the_published_one(found: Fitted) -> None:
    """Counts, shares of the classes, annotators, and how ambiguous the items are (tables 1, 9 to 12)."""
    paper, expected = found.paper, found.published
    n, a, k = paper.votes.shape
    agreeing = consensus.agreement(paper.votes)
    assert {
        "n_annotations": len(found.rows.label),
        "n_items": n,
        "n_agents": len(set(found.rows.agent)),
        "n_annotators": a,
        "n_classes": k,
        "unanimous": pytest.approx(agreeing.unanimous, **EXACTLY),
        "pairwise_item_mean": pytest.approx(agreeing.pairwise, **EXACTLY),
        "duplicate_item_annotator_rows": paper.votes.repeated_rows,
    } == expected["summary"]
    assert paper.prior == pytest.approx(expected["mu_after_100_iters"], **EXACTLY)
    for figure in ("accuracy", "leniency", "strictness"):
        values = {one: getattr(quality, figure) for one, quality in paper.annotators().items()}
        assert values == pytest.approx(published(found, "annotators", figure), **EXACTLY)
    ambiguity, labels = paper.ambiguity(), paper.likeliest_labels()
    assert ambiguity.mean() == pytest.approx(expected["mean_ambiguity"], **EXACTLY)
    assert (ambiguity > consensus.HIGH_AMBIGUITY).sum() == expected["n_ambiguity_gt_0.3"]
    # where several items are equally ambiguous, any of them may be the last
    top = expected["top_ambiguous"]
    assert np.sort(ambiguity)[::-1][: len(top)] == pytest.approx(
        [one["ambiguity"] for one in top], **EXACTLY
    )
    for one in top:
        own = list(paper.items).index(one["item_id"])
        assert (ambiguity[own], paper.posterior[own].max()) == pytest.approx(
            (one["ambiguity"], one["confidence"]), **EXACTLY
        )
        assert labels[own] == one["predicted_class"]


def test_the_agents_scores_are_the_published_ones_by_all_three_methods(found: Fitted) -> None:
    rows = found.rows
    methods = {
        "score_mv": consensus.majority_vote(rows.item, rows.annotator, rows.label, ties="first"),
        "score_ds": consensus.dawid_skene(rows.item, rows.annotator, rows.label, preset="paper"),
        "score_pec": found.paper,
    }
    for figure, method in methods.items():
        scores = method.agent_scores(rows.agent, bootstrap=0)
        own = {agent: one.score for agent, one in scores.items()}
        assert own == pytest.approx(published(found, "agent_scores", figure), **EXACTLY)
        assert {agent: one.items for agent, one in scores.items()} == published(
            found, "agent_scores", "n_items"
        )


@pytest.mark.exhaustive
def test_ranks_vary_with_the_annotators_as_published(found: Fitted) -> None:
    rows = found.rows
    own = consensus.ranking_stability(
        rows.item, rows.annotator, rows.label, rows.agent, preset="paper", subsets=50, seed=42
    )
    names = {
        "Majority Vote": "majority",
        "Dawid-Skene (Hard)": "dawid-skene",
        "Posterior Expected Credit": "stableval",
    }
    for name, row in found.published["stability_rank_std_seed42_50x70pct"].items():
        assert (own[names[name]].rank_sd, own[names[name]].rank_range) == pytest.approx(
            (row["mean_rank_std"], row["mean_rank_range"]), **EXACTLY
        )


@pytest.mark.landing
def test_the_published_intervals_are_ten_refits_of_items_that_count_once(found: Fitted) -> None:
    own = consensus.refit_intervals(found.paper, found.rows.agent, as_published=True).agents
    table = "official_ci_B10_seed42_dedup_refit"
    for name, figure in (("score", "score"), ("low", "ci_lower"), ("high", "ci_upper")):
        values = {agent: getattr(one, name) for agent, one in own.items()}
        assert values == pytest.approx(published(found, table, figure), **EXACTLY)


@pytest.mark.landing
def test_run_to_the_end_the_scores_are_those_to_which_the_truncated_estimate_was_going(
    found: Fitted,
) -> None:
    rows = found.rows
    fitted = consensus.fit(rows.item, rows.annotator, rows.label)
    own = {agent: one.score for agent, one in fitted.agent_scores(rows.agent, bootstrap=0).items()}
    assert fitted.converged
    assert own == pytest.approx(found.published["pec_converged_tol1e-9"], rel=0.0, abs=1e-6)


@pytest.mark.landing
def test_it_says_that_two_annotators_cannot_be_told_apart() -> None:
    warnings_by_name = {
        name: consensus.fit(rows.item, rows.annotator, rows.label).warnings
        for name, rows in ((name, ratings(name)) for name in NAMES)
    }
    problem = "2 annotators are not identifiable: 8 free cells for 14 unknowns"
    texts = {name: "\n".join(warnings) for name, warnings in warnings_by_name.items()}
    assert [name for name, text in texts.items() if problem in text] == ["mslr"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_beside_every_printed_figure_of_the_paper_stands_the_same_one(name: str) -> None:
    found = tables.tables(name)
    assert [len(lines) for lines in found.values()] == [
        len(rows) for rows in tables.PUBLISHED[name].values()
    ]
    assert [line for lines in found.values() for line in lines if line.ours != line.printed] == []


# Table 3


@pytest.mark.landing
def test_the_six_readings_of_a_tie_give_table_3_to_its_three_digits_and_its_ranks() -> None:
    own = {name: mappings.scores(rule) for name, rule in mappings.RULES.items()}
    for place, (name, scores) in enumerate(own.items()):
        printed = {agent: row[place] for agent, row in mappings.PUBLISHED.items()}
        assert {agent: round(score, 3) for agent, score in scores.items()} == printed
        first, second = (
            ("gpt-3.5-turbo", "gpt-4") if name == "Tie->Win" else ("gpt-4", "gpt-3.5-turbo")
        )
        order = [first, second, "claude-v1", "vicuna-13b-v1.2", "alpaca-13b", "llama-13b"]
        assert mappings.ranks(scores) == {agent: rank for rank, agent in enumerate(order, start=1)}


# GPT-4 among the people


def test_gpt4_is_one_more_annotator_in_one_consensus() -> None:
    people, together = (
        with_gpt4.panel("mtbench_human"),
        with_gpt4.panel("mtbench_human", "mtbench_gpt4"),
    )
    assert set(together.annotators) - set(people.annotators) == {GPT4}
    assert (people.labels, together.labels, together.annotators[GPT4].labels) == (6710, 11510, 4800)
    assert {agent: one.items for agent, one in together.agents.items()} == dict.fromkeys(
        mappings.PUBLISHED, 160
    )
    expected = PUBLISHED["mtbench"]["pec_converged_tol1e-9"]
    assert {agent: one.score for agent, one in people.agents.items()} == pytest.approx(
        expected, rel=0.0, abs=1e-6
    )
