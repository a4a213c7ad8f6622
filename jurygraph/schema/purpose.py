"""The purpose of rewards: training, or evaluating a trained model with another judge (GEAR, D.6)."""

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from jurygraph.errors import ConfigError
from jurygraph.schema.frozen_model import Flag, FrozenModel, Id
from jurygraph.schema.task import Audience, NonNegative

Kind = Literal["reward", "evaluation"]


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

    `judge` is the model used, or several by commas; `reward_judges` gave the rewards in training; `same_judge` is true
    if it is one of them.
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


def purpose_of(config: PurposeConfig, judges: Iterable[str], served: Iterable[str] = ()) -> Purpose | None:
    """Return the purpose of rewards by these models (none at all: no model), whose replies named `served`.

    None for training.
    """
    if config.kind == "reward":
        return None
    reward_judges = config.reward_judges or ()
    names = list(dict.fromkeys(judges))
    same = not {_model_name(name) for name in (*names, *served)}.isdisjoint(map(_model_name, reward_judges))
    judge = ", ".join(names) or None
    return Purpose(kind=config.kind, judge=judge, reward_judges=reward_judges, same_judge=same)


def permitted_purpose(config: PurposeConfig, judges: Iterable[str], served: Iterable[str] = ()) -> Purpose | None:
    """Return the purpose of rewards as `purpose_of` does.

    Raises ConfigError where the judge is one of those that gave the rewards in training, and that is refused.
    """
    purpose = purpose_of(config, judges, served)
    if purpose is not None and purpose.same_judge and config.same_judge == "refuse":
        problem = f"{purpose.judge!r} (or who answers for it) would evaluate what was trained on its own rewards"
        how = "name another model, or set same_judge: allow, which every trace then tells"
        raise ConfigError(f"purpose.reward_judges: {problem}; {how}")
    return purpose


def _model_name(name: str) -> str:
    """Return the last part of a model's name, such as `qwen3-8b` of `hosted/Qwen3-8B`."""
    return name.casefold().rpartition("#")[2].rpartition("/")[2]


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
