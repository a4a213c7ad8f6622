"""Combine judges by their learned confusion matrices: the posterior of the response's true level.

The confusion matrices are frozen in the plan, so that the reward is arithmetic: γ_c ∝ μ_c Π_j π_j[c, level of j]. They
are learned from a whole run in a second pass (`jurygraph rescore --learn`), or elsewhere (`jurygraph consensus
--artifact`). Until then, the level with the most votes counts, and levels with equally many votes share the
probability.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import ValidationError

from jurygraph.aggregation.consensus import Consensus
from jurygraph.decision.combiner import Combiner, Component, ScoreMatrix
from jurygraph.errors import PlanError
from jurygraph.judges.consensus.votes import Votes
from jurygraph.messages import first_validation_error
from jurygraph.schema import ComponentInput
from jurygraph.schema.rating import Confusions, Label

_PARAMS = ("confusions", "levels")


class ConsensusOfJudges(Combiner):
    """The mean level of a response under its posterior; each input is a judge, and each of its samples a vote.

    A verdict counts as the nearest level (the lower of two at equal distance). Params: `levels`, the values of the
    classes, increasing in [0, 1] (0 and 1 unless the confusions have other classes), and `confusions`. A verdict that
    is missing counts as the worst vote that the judge could have cast; if no judge has a verdict, the component has the
    value of an unjudged one. So a failure is never credit, and a judge whose votes oppose the truth gains nothing by
    failing. The diagnostics are the posterior by the votes that were cast, and its ambiguity, 1 - max.
    """

    name = "consensus"
    needs_all_columns = True

    def freeze(self, inputs: Mapping[str, ComponentInput], params: Mapping[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(params) - set(_PARAMS))
        if unknown:
            raise PlanError(f"combiner 'consensus' takes no parameter {unknown[0]!r}; there are {', '.join(_PARAMS)}")
        for key, frozen_input in inputs.items():
            if frozen_input.gated == "zero":
                raise PlanError(f"input {key!r}: a judge that was left out has no vote; write `gated: missing`")
            if frozen_input.input_weight != 1.0 or any(weight != 1.0 for weight in frozen_input.weights):
                raise PlanError(f"input {key!r} has a weight, and judges weigh by their confusions here; leave it out")
        confusions = None if params.get("confusions") is None else _parse_confusions(params["confusions"])
        levels = _resolve_levels(params.get("levels"), confusions)
        if confusions is None:
            return {"levels": levels}
        matrices = {key: _confusion_matrix(confusions, key) for key in inputs}
        return {"levels": levels, "prior": list(confusions.prior), "judges": matrices, "confusions": confusions.digest}

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        votes = Votes(matrices, params)
        posterior = votes.posterior()
        has_vote = votes.cast.any(axis=1)
        value = np.where(votes.missing.any(axis=1), votes.worst_case(posterior), votes.expected_level(posterior))
        shares = {f"p({level:g})": posterior[:, index] for index, level in enumerate(params["levels"])}
        diagnostics = {name: np.where(has_vote, share, np.nan) for name, share in shares.items()}
        diagnostics["ambiguity"] = np.where(has_vote, 1.0 - posterior.max(axis=1), np.nan)
        parts = {name: matrix.mean()[0] for name, matrix in matrices.items()}
        return Component(value, np.asarray(votes.live.any(axis=1)), parts, diagnostics)


def _parse_confusions(value: Any) -> Confusions:
    if isinstance(value, str):
        raise PlanError(f"params.confusions names {value!r}, which was not read; write the content of the file")
    try:
        confusions = Confusions.model_validate(
            {key: field_value for key, field_value in value.items() if key != "digest"}
        )
    except ValidationError as error:
        raise PlanError(f"params.confusions: {first_validation_error(error)}") from None
    except AttributeError:
        raise PlanError(f"params.confusions is {value!r}; name a file, or write its content") from None
    if value.get("digest", confusions.digest) != confusions.digest:
        raise PlanError("params.confusions: the digest is not that of the rest, which was changed; leave it out")
    return confusions


def _confusion_matrix(confusions: Confusions, judge: str) -> list[list[float]]:
    if judge not in confusions.annotators:
        names = ", ".join(sorted(confusions.annotators)[:20])
        raise PlanError(f"params.confusions say nothing of input {judge!r}; name inputs as the annotators: {names}")
    return [list(row) for row in confusions.annotators[judge]]


def _resolve_levels(param: Any, confusions: Confusions | None) -> list[float]:
    """Return the value of each class.

    Classes that are numbers in [0, 1] are their own values, others are spaced evenly.
    """
    class_values = None if confusions is None else _numeric_classes(confusions.classes)
    if param is None:
        if confusions is None:
            return [0.0, 1.0]
        return class_values or [index / (len(confusions.classes) - 1) for index in range(len(confusions.classes))]
    levels = _parse_levels(param)
    if confusions is not None and len(levels) != len(confusions.classes):
        raise PlanError(f"params.levels has {len(levels)} levels for {len(confusions.classes)} classes; give each one")
    if class_values is not None and class_values != levels:
        raise PlanError(
            f"params.levels is {levels}, and the confusions are of {class_values}; learn them of these levels"
        )
    return levels


def _parse_levels(param: Any) -> list[float]:
    has_valid_numbers = isinstance(param, list | tuple) and all(
        type(number) in (int, float) and 0 <= number <= 1 for number in param
    )
    if not has_valid_numbers or len(param) < 2 or sorted(set(param)) != list(param):
        raise PlanError(f"params.levels is {param!r}; write two numbers or more in [0, 1] that rise")
    return [float(number) for number in param]


def _numeric_classes(classes: Sequence[Any]) -> list[float] | None:
    """Return the classes if all are numbers in [0, 1], else None. Raises PlanError if such classes do not increase."""
    if not all(type(label) in (int, float) and 0 <= label <= 1 for label in classes):
        return None
    if list(classes) != sorted(classes):
        raise PlanError(f"params.confusions: the classes {list(classes)} do not rise; name them from low to high")
    return [float(label) for label in classes]


def to_confusions(fitted: Consensus, classes: Sequence[Label]) -> Confusions:
    """Return the class shares and confusion matrices of a fit, for `classes` [K] and its annotators' names as text."""
    return Confusions(
        classes=tuple(classes),
        prior=tuple(fitted.prior.tolist()),
        annotators={
            str(name): tuple(tuple(row) for row in matrix)
            for name, matrix in zip(fitted.votes.annotators, fitted.confusion.tolist(), strict=True)
        },
    )
