"""A judge that fails as it is told, and what TRL's trainers hand to a reward function, as recorded."""

from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import jurygraph as jg

QUESTIONS = ("2 + 2?", "2 + 3?")


@jg.evaluator(layer="check")
def graded(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
    """Return the number in the response as its score; one without a number fails, and so does a torn one."""
    if response.text.endswith("..."):
        return jg.Verdict.fail("torn", "it is torn")
    try:
        return jg.Verdict(score=float(str(response.text).split()[-1]))
    except (ValueError, IndexError):
        return jg.Verdict.fail("no-number", "there is no number")


@jg.evaluator(layer="check")
def stated(task: jg.TaskView, response: jg.Response) -> float:
    return float(response.text.startswith("it is"))


@jg.evaluator(audience="criterion")
def met(task: jg.TaskView, response: jg.Response) -> float:
    return 1.0


@jg.evaluator(scope="pair")
def longer(task: jg.TaskView, first: jg.Response, second: jg.Response) -> float:
    return 1.0 if len(first.text) > len(second.text) else 0.0


CONFIG: dict[str, Any] = {"evaluators": ["tests.integrations.trainers.graded"]}
PAIRS: dict[str, Any] = {
    "evaluators": ["tests.integrations.trainers.longer"],
    "safety": {"gates": []},
}


def of_trl(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method as one of TRL's GRPOTrainer, which leaves out rows without a reward."""
    method.__module__ = "trl.trainer.grpo_trainer"
    return method


class Trainer:
    """What hangs on the callbacks of trl 1.16's GRPOTrainer, and what they were called with."""

    def __init__(self, functions: Sequence[Any] = (None,), **settings: Any) -> None:
        self.reward_funcs = list(functions)
        self.num_generations = 4
        self.scale_rewards = "group"
        self.__dict__.update(settings)
        self.metrics: dict[str, float] = {}
        self.extra: dict[str, list[Any]] = {}

    def log_metric(self, name: str, value: float) -> None:
        self.metrics[name] = value

    def log_extra(self, column: str, values: list[Any]) -> None:
        self.extra[column] = values

    @of_trl
    def _calculate_rewards(self) -> None:
        """It is looked up only."""

    @of_trl
    def _generate_and_score_completions(self) -> None:
        """It is looked up only."""

    def columns(self, step: int = 312, **columns: Any) -> dict[str, Any]:
        """Return the keyword arguments of a call in a step, whose rewards are logged with it, without the samples."""
        return {
            "completion_ids": [],
            "trainer_state": SimpleNamespace(global_step=step - 1),
            "log_extra": self.log_extra,
            "log_metric": self.log_metric,
            **columns,
        }


def texts(rewards: Iterable[float | None]) -> list[str]:
    """Return a completion for each reward, None for one that the judge fails on."""
    return ["x" if reward is None else f"it is {reward}" for reward in rewards]


@jg.evaluator(layer="check")
def fixed(task: jg.TaskView, response: jg.Response) -> float:
    return 1.0
