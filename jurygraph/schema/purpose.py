"""The purpose of rewards: training, or evaluating a trained model with another judge (GEAR, D.6)."""

import re
from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from jurygraph.schema.frozen_model import Flag, FrozenModel, Id
from jurygraph.schema.task import Audience, NonNegative

Kind = Literal["reward", "evaluation"]

_VENDOR = re.compile(
    r"^(?:(?:us|eu|apac|global|[a-z]{2})\.)?(?:ai21|amazon|anthropic|cohere|deepseek|meta|mistral|openai|qwen)\."
    r"|^(?:anthropic|google|openai|xai):"
)
_DAY = r"(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])"
_DATE = rf"{_DAY}|2[3-9](?:0[1-9]|1[0-2])|2\d{{5}}|20\d{{6}}|20\d\d-\d\d(?:-\d\d)?"
_EDITION = re.compile(rf"[-@:](?:{_DATE}|0\d\d|preview|latest|free|v\d+(?::\d+)?)$")
"""The suffix of a model's name that gives its date, revision or edition."""


class PurposeConfig(FrozenModel):
    """The purpose of the rewards. Rewards of an `evaluation` are not for training.

    `reward_judges` names the models that gave the rewards in training; empty if no model did. A judge that is one of
    them is refused, unless `same_judge` is `allow`; the traces then record it.
    """

    kind: Kind = "reward"
    reward_judges: tuple[Id, ...] | None = Field(default=None, exclude_if=lambda judges: judges is None)
    same_judge: Literal["refuse", "allow"] = "refuse"

    @field_validator("reward_judges")
    @classmethod
    def _sort_unique(cls, judges: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if judges is None else tuple(sorted(set(judges)))

    @model_validator(mode="after")
    def _require_judges_exactly_for_evaluation(self) -> Self:
        if self.kind == "evaluation" and self.reward_judges is None:
            how = "name the models that gave the rewards in training, or write [] where no model did"
            raise ValueError(f"an evaluation lacks `reward_judges`; {how}")
        if self.kind == "reward" and self.reward_judges is not None:
            raise ValueError("`reward_judges` belongs to an evaluation; set `kind` to evaluation, or leave it out")
        return self


class Purpose(FrozenModel):
    """The purpose of a trace's reward, if not training.

    `judge` is the model used, `reward_judges` gave the rewards in training; `same_judge` is true if it is one of them.
    """

    kind: Kind
    judge: str | None
    reward_judges: tuple[str, ...]
    same_judge: Flag

    @property
    def description(self) -> str:
        """Return a description of the purpose."""
        trained = f"rewards of {', '.join(self.reward_judges)}" if self.reward_judges else "rewards of no model"
        same = ", which is one of them (allowed by the config)" if self.same_judge else ""
        return f"{self.kind} of what was trained on {trained}, by {self.judge or 'no model'}{same}"


def purpose_of(config: PurposeConfig, judge: str | None, served: Iterable[str] = ()) -> Purpose | None:
    """Return the purpose of rewards by a judge (None: no model) whose replies named `served`; None for training."""
    if config.kind == "reward":
        return None
    reward_judges, judge_names = config.reward_judges or (), {judge, *served} - {None}
    same = any(is_same_model(str(name), reward_judge) for name in judge_names for reward_judge in reward_judges)
    return Purpose(kind=config.kind, judge=judge, reward_judges=reward_judges, same_judge=same)


def is_same_model(name: str, other_name: str) -> bool:
    """Return whether two names mean the same model, regardless of vendor, date and edition."""
    return _base_name(name) == _base_name(other_name)


def _base_name(name: str) -> str:
    last = re.split(r"[/#]", name.strip().rstrip("/").casefold())[-1]
    bare = _VENDOR.sub("", last.removesuffix(".gguf"))
    while (shorter := _EDITION.sub("", bare)) != bare:
        bare = shorter
    return bare


class EvaluatorRecord(FrozenModel):
    """An evaluator's version and audience, and how its questions form a component of their own.

    `combiner` is the combiner of that component. `shares` are the weights of its questions by the first part of their
    subject, up to a slash; when empty, all questions weigh the same. Questions about a stakeholder with a share of 0
    count in no utility, and 1 in a component of the config that names the evaluator. `depends_on` is the digest of
    further inputs of its questions, such as a history that it read; empty without any.
    """

    version: str
    audience: Audience
    combiner: Id = Field(default="mean", exclude_if=lambda combiner: combiner == "mean")
    shares: dict[Id, NonNegative] = Field(default_factory=dict, exclude_if=lambda shares: not shares)
    depends_on: str = Field(default="", exclude_if=lambda depends_on: not depends_on)
