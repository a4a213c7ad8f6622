"""Rewards and samples of a judge, read from a run: the components of their variance by hand."""

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.studies import reliability
from jurygraph.studies.judgements import read_judgements
from jurygraph.studies.reliability import read_scores
from tests.graphs.scripted import evaluator_use
from tests.runs.sample_runs import score, write_tasks
from tests.studies.figures import Figures, figures_of

CONFIG = {
    "evaluators": [evaluator_use("judge", samples=3), evaluator_use("check")],
    "reward": {"judge": 1.0, "check": 0.5},
}


def task(name: str, *responses: tuple[Any, Any]) -> dict[str, Any]:
    """Responses with three samples of the judge, or one for all, and the check's score."""
    scripts = [
        {
            "id": f"{name}/{n}",
            "text": "it is",
            "data": dict(zip(("judge", "check"), one, strict=True)),
        }
        for n, one in enumerate(responses)
    ]
    return {"id": name, "query": "What is right?", "responses": scripts}


TASKS = [
    task("rome", ([0.9, 0.8, 1.0], 1.0), ([0.5, 0.6, 0.4], 1.0)),
    task("oslo", ([0.2, 0.3, 0.1], 0.0), ([0.5, 0.5, 0.8], 0.0)),
    task("pisa", ([0.4, 0.1, 0.4], 1.0), ([0.3, 0.3, 0.0], 0.0)),
    task("bern", ([0.6, 0.6, 0.6], 0.0), ("response", "response")),
]
"""Four tasks; one response has no reward."""


def score_tasks(folder: Path, tasks: list[dict[str, Any]]) -> Path:
    score(folder / "run", write_tasks(folder, tasks), CONFIG)
    return folder / "run"


def report(folder: Path) -> Figures:
    with closing(Run.open(folder)) as run:
        return figures_of(reliability.report(read_scores(run)))


def test_the_variance_of_samples_is_their_mean_square(tmp_path: Path) -> None:
    """The mean squares of the judge's scores: three samples of seven responses of four tasks."""
    found = report(score_tasks(tmp_path, TASKS))
    _, judge = found.questions
    samples = [np.array(one["data"]["judge"]) for line in TASKS for one in line["responses"]]
    judged = [one for one in samples if one.ndim]
    within = sum(((one - one.mean()) ** 2).sum() for one in judged) / 14
    level = judge.levels[2]
    assert (level.name, level.units, level.variance) == ("sample", 21, pytest.approx(within))
    assert sum(one.share for one in judge.levels) == pytest.approx(1.0)
    rho = judge.within_response.value
    assert judge.within_response.of_means["4"] == pytest.approx(4 * rho / (1 + 3 * rho))
    assert found.rewards.within_response is None
    assert found.mean.value == pytest.approx(4.8 / 7)
    assert found.left_out == {
        "responses whose reward failed": 1,
        "verdicts without a score, or with that of a gate": 4,
    }


def test_samples_that_are_all_alike_are_said_to_be(tmp_path: Path) -> None:
    tasks = [task(f"t{n}", ([n % 5 / 4] * 3, 0.0)) for n in range(12)]
    with closing(Run.open(score_tasks(tmp_path, tasks))) as run:
        conclusion = reliability.report(read_scores(run)).conclusion
    assert (
        "All samples of a response are alike on judge: ICC 1.00, without an interval, as nothing varies."
        in conclusion
    )


UNSUPPORTED = {"score": 0.0, "met": False, "unsupported": "worst-case"}


@pytest.mark.parametrize(("weight", "worst"), [(1.0, 0.0), (-1.0, 1.0)])
def test_an_unsupported_sample_counts_as_in_the_reward_by_the_worst_case(
    tmp_path: Path, weight: float, worst: float
) -> None:
    """Without them a judge that invents every other quotation would seem to repeat its scores."""
    tasks = [task(name, ([0.8, 0.8, UNSUPPORTED], 1.0), ([0.2] * 3, 1.0)) for name in "abcd"]
    config = {**CONFIG, "reward": {"judge": weight, "check": 1.0}}
    score(tmp_path / "run", write_tasks(tmp_path, tasks), config)
    with closing(Run.open(tmp_path / "run")) as run:
        scores = read_scores(run)
        judged = read_judgements(run).judgements_by_judge
    judge = next(one for one in scores.questions if one.question == "judge")
    assert sorted(set(judge.values)) == sorted({0.8, 0.2, worst})
    assert len(judge.values) == 4 * 6
    printed = reliability.report(scores)
    assert not printed.figures["left_out"]
    assert (
        "unsupported verdicts: 4; they count as in the reward, by the worst case" in printed.notes
    )
    found = next(judgements for name, judgements in judged.items() if name.question == "judge")
    # `study judge` lists such a response apart, with what the reward counts of its three samples
    assert (found["a/0"].status, found["a/1"].status) == ("unsupported", "judged")
    assert found["a/0"].counted == pytest.approx((0.8 + 0.8 + worst) / 3)


def test_a_run_without_rewards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 0 rewards, of 0 tasks"):
        report(score_tasks(tmp_path, [task("t", ("response", "response"))]))
