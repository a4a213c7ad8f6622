"""Runs of preference sets, in which the responses state how they are judged."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from jurygraph.agents.roles import Evaluator, EvaluatorInput
from jurygraph.runs.run import Run
from jurygraph.studies.preference import RunPreferenceOutcomes, read_comparisons
from tests.graphs.scripted import evaluator_use, scripted_verdict
from tests.runs.sample_runs import score, write_tasks

REWARDS: dict[str, Any] = {"evaluators": [evaluator_use("good")], "reward": {"good": 1.0}}
PAIRS: dict[str, Any] = {
    "evaluators": [{"use": "tests.studies.preference.made:Pairs", "name": "pairs"}],
    "reward": {"pairs": 1.0},
}


class Pairs(Evaluator):
    """Compares a pair as its first response says: a score, or the name of a missing judgement."""

    name, version, scope, combiner = "pairs", "1", "pair", "win-share"

    def answer(self, inputs: EvaluatorInput) -> Any:
        data = inputs.responses[0].data
        assert isinstance(data, dict)
        return scripted_verdict(data["pairs"])


def preference(
    name: str, chosen: Any, *rejected: Any, about: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a task of one preferred response and others; each is judged by the scripts given."""
    return {
        "id": name,
        "query": "What is right?",
        "metadata": dict(about or {}),
        "responses": [
            {
                "id": f"{name}/{place}",
                "text": f"text {place}",
                "data": script,
                "labels": {"preferred": place == 0},
            }
            for place, script in enumerate((chosen, *rejected))
        ],
    }


def by_rewards(name: str, chosen: Any, *rejected: Any, **about: Any) -> dict[str, Any]:
    """Return a task whose responses have these rewards."""
    return preference(name, {"good": chosen}, *({"good": one} for one in rejected), about=about)


def by_pairs(name: str, chosen_first: Any, rejected_first: Any, **about: Any) -> dict[str, Any]:
    """Return a task of two responses, with the verdict of each order from the side of the response shown first."""
    return preference(name, {"pairs": chosen_first}, {"pairs": rejected_first}, about=about)


def score_tasks(folder: Path, tasks: Sequence[Any], config: Mapping[str, Any] = REWARDS) -> Path:
    score(folder / "run", write_tasks(folder, tasks), config)
    return folder / "run"


def compared(
    folder: Path, tasks: Sequence[Any], config: Mapping[str, Any] = REWARDS
) -> RunPreferenceOutcomes:
    """Return the outcomes of tasks that are scored into a folder."""
    with closing(Run.open(score_tasks(folder, tasks, config))) as run:
        return read_comparisons(run)
