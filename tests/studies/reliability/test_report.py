"""What a run's size can tell: the interval of the mean, and how far judges agree."""

import math

import numpy as np
import pytest
from scipy import stats

from jurygraph.studies import reliability
from jurygraph.studies.reliability import (
    QuestionScores,
    RunScores,
    agreement_of_judges,
)
from tests.studies.figures import Figures, figures_of


def rewards(table: np.ndarray) -> RunScores:
    """Rewards of tasks (rows) and responses (columns)."""
    scores = QuestionScores("reward")
    for (task, response), value in np.ndenumerate(table):
        scores.values.append(float(value))
        scores.units.append(f"task t{task}")
        scores.tasks.append(f"t{task}")
        scores.responses.append(f"t{task}/{response}")
    return RunScores("run", scores, (), {})


def report(scores: RunScores) -> Figures:
    return figures_of(reliability.report(scores))


def drawn(tasks: int, responses: int, between: float, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    own = math.sqrt(between) * rng.normal(size=(tasks, 1))
    return own + math.sqrt(1.0 - between) * rng.normal(size=(tasks, responses))


def test_the_mean_and_its_interval_are_those_of_the_task_means() -> None:
    table = drawn(12, 4, 0.4)
    found = report(rewards(table)).mean
    expected = stats.ttest_1samp(table.mean(axis=1), 0.0).confidence_interval()
    assert (found.low, found.high) == pytest.approx(tuple(expected), abs=1e-12)


def test_the_plot_has_a_panel_for_each_correlation_of_the_questions() -> None:
    scores = rewards(drawn(12, 4, 0.4))
    plots = reliability.report(RunScores("run", scores.rewards, (scores.rewards,), {})).plots
    assert [plot.title for plot in plots] == [
        "The correlation of two responses to a task is 0.34 for reward"
    ]
    assert plots[0].series[0].x == ["reward"]


def test_variants_of_one_prompt_are_one_unit_and_a_level() -> None:
    table = drawn(48, 3, 0.4)
    scores = rewards(table)
    scores.rewards.units[:] = [f"group {int(task[1:]) // 4}" for task in scores.rewards.tasks]
    found = report(scores)
    expected = stats.ttest_1samp(table.reshape(12, 12).mean(axis=1), 0.0).confidence_interval()
    assert (found.mean.low, found.mean.high) == pytest.approx(tuple(expected), abs=1e-12)
    assert [(level.name, level.units) for level in found.rewards.levels] == [
        ("group", 12),
        ("task", 48),
        ("response", 144),
    ]
    assert "95 % interval over groups of tasks" in str(reliability.report(scores))


def test_rewards_that_are_all_equal_have_no_split_to_show() -> None:
    found = report(rewards(np.full((8, 3), 0.7)))
    assert (found.rewards.within_task, [level.share for level in found.rewards.levels]) == (
        None,
        [None, None],
    )
    assert (found.mean.low, found.mean.high) == (None, None)


def add_score(scores: QuestionScores, value: float, response: str) -> None:
    """Add the score of a response that is alone in its task."""
    scores.values.append(value)
    for ids in (scores.units, scores.tasks, scores.responses):
        ids.append(response)


def test_judges_agree_as_krippendorff_computes_it() -> None:
    """The figures of Krippendorff's own example with missing values, as interval data (2011, section E): α = .849."""
    ratings = {
        "A": [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        "B": [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        "C": [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        "D": [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    }
    scores = {name: QuestionScores("q", name) for name in ratings}
    for name, row in ratings.items():
        for number, rating in enumerate(row):
            if rating is not None:
                add_score(scores[name], rating, f"r{number}")
    found = agreement_of_judges("q", scores)
    assert found["alpha"].value == pytest.approx(0.849, abs=5e-4)
    assert found["alpha"].low < 0.849 < found["alpha"].high
    assert (found["responses"], found["judges"]["A"]) == (
        11,
        {"responses": 9, "mean": pytest.approx(19 / 9)},
    )
    single = {name: QuestionScores("q", name) for name in "ab"}
    for judge_scores in single.values():
        add_score(judge_scores, 0.5, "r")
    assert agreement_of_judges("q", single)["alpha"] is None


def test_each_two_judges_are_compared_over_all_that_both_answered() -> None:
    answers = {
        "q": {"mild": [0.9, 0.9, 0.9, 0.4], "strict": [0.1, 0.9, 0.1]},
        "other": {"mild": [0.1], "strict": [0.6], "last": [0.9]},
    }
    questions = []
    for question, judges in answers.items():
        for judge, values in judges.items():
            questions.append(QuestionScores(question, judge))
            for number, value in enumerate(values):
                add_score(questions[-1], value, f"r{number}")
    scores = rewards(drawn(4, 2, 1.0)).rewards
    run_scores = RunScores("run", scores, tuple(questions), {}, {"other": "last"})
    (found,) = reliability.report(run_scores).figures["pairs"]
    assert found.pop("kappa").value == pytest.approx(-0.5)
    names = ("first", "second", "both", "differ", "first_alone", "second_alone")
    assert found == dict(zip(names, ("mild", "strict", 4, 3, 2, 1), strict=True))


def test_copies_are_named_over_all_questions_without_a_label() -> None:
    met = np.arange(20) % 2 == 0
    questions = []
    for judge, values in {"a": met, "b": met, "c": np.arange(20) % 3 == 0}.items():
        for name in ("q", "other"):
            questions.append(QuestionScores(name, judge))
            for number, value in enumerate(values):
                add_score(questions[-1], float(value), f"r{number}")
    scores = rewards(drawn(4, 2, 1.0)).rewards
    found = reliability.report(RunScores("run", scores, tuple(questions), {}))
    assert found.conclusion[0].startswith(
        "a and b are nearly copies: they agree on what is met in 40 of 40 answers, κ 1.00"
    )
    assert "copies" not in " ".join(found.conclusion[1:])
