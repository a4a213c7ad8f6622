"""What judges say together, by the confusions that were learned of them: the posterior of the response's true level.

The confusions are frozen in the plan, so the reward is arithmetic: γ_c ∝ μ_c Π_j π_j[c, level of j]. They are learned
from a whole run in a second pass (`jurygraph rescore --learn`), or elsewhere (`jurygraph consensus --artifact`). Until
then the level that most judges give counts, and a tie is shared.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import ValidationError

from jurygraph.agents.functions import describe
from jurygraph.agents.roles import Cells, Combiner, Component
from jurygraph.errors import PlanError
from jurygraph.judges.consensus.votes import Votes
from jurygraph.schema import Input
from jurygraph.schema.confusions import Confusions

_PARAMS = ("confusions", "levels")


class ConsensusOfJudges(Combiner):
    """The mean level of a response under its posterior, each input a judge and each of its samples a vote.

    A verdict counts as the level that it is nearest to (the lower of two). Params: `levels`, what the classes are
    worth, rising in [0, 1] (0 and 1 unless the confusions say otherwise), and `confusions`. A judge that was not heard
    is taken to have said whatever is worst, and where none was heard the component is what an unjudged one counts. So
    no failure is credit, and one that says the opposite of the truth gains nothing by failing. The figures are the
    posterior of the judges that were heard, and its ambiguity, 1 - max.
    """

    name = "consensus"
    keeps_columns = True

    def freeze(self, inputs: Mapping[str, Input], params: Mapping[str, Any]) -> dict[str, Any]:
        unknown = sorted(set(params) - set(_PARAMS))
        if unknown:
            raise PlanError(f"combiner 'consensus' takes no parameter {unknown[0]!r}; there are {', '.join(_PARAMS)}")
        for key, one in inputs.items():
            if one.gated == "zero":
                raise PlanError(f"input {key!r}: a judge that was left out has no vote; write `gated: missing`")
            if one.mass != 1.0 or any(weight != 1.0 for weight in one.weights):
                raise PlanError(f"input {key!r} has a weight, and judges weigh by their confusions here; leave it out")
        known = None if params.get("confusions") is None else _read(params["confusions"])
        levels = _levels(params.get("levels"), known)
        if known is None:
            return {"levels": levels}
        own = {key: _of(known, key) for key in inputs}
        return {"levels": levels, "prior": list(known.prior), "judges": own, "confusions": known.digest}

    def combine(self, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> Component:
        votes = Votes(cells, params)
        heard = votes.posterior()
        some = votes.cast.any(axis=1)
        value = np.where(votes.missing.any(axis=1), votes.at_worst(heard), votes.worth(heard))
        named = {f"p({level:g})": heard[:, place] for place, level in enumerate(params["levels"])}
        figures = {name: np.where(some, one, np.nan) for name, one in named.items()}
        figures["ambiguity"] = np.where(some, 1.0 - heard.max(axis=1), np.nan)
        parts = {name: one.mean()[0] for name, one in cells.items()}
        return Component(value, np.asarray(votes.live.any(axis=1)), parts, figures)


def _read(stated: Any) -> Confusions:
    if isinstance(stated, str):
        raise PlanError(f"params.confusions names {stated!r}, which was not read; write what stands in the file")
    try:
        known = Confusions.model_validate({key: one for key, one in stated.items() if key != "digest"})
    except ValidationError as error:
        raise PlanError(f"params.confusions: {describe(error)}") from None
    except AttributeError:
        raise PlanError(f"params.confusions is {stated!r}; name a file, or write what stands in it") from None
    if stated.get("digest", known.digest) != known.digest:
        raise PlanError("params.confusions: the digest is not that of the rest, which was changed; leave it out")
    return known


def _of(known: Confusions, judge: str) -> list[list[float]]:
    if judge not in known.annotators:
        there = ", ".join(sorted(known.annotators)[:20])
        raise PlanError(f"params.confusions say nothing of input {judge!r}; name inputs as the annotators: {there}")
    return [list(row) for row in known.annotators[judge]]


def _levels(stated: Any, known: Confusions | None) -> list[float]:
    """What each class is worth. Classes that are numbers in [0, 1] are worth themselves, others are spread evenly."""
    own = None if known is None else _own_worth(known.classes)
    if stated is None:
        if known is None:
            return [0.0, 1.0]
        return own or [place / (len(known.classes) - 1) for place in range(len(known.classes))]
    levels = _stated(stated)
    if known is not None and len(levels) != len(known.classes):
        raise PlanError(f"params.levels has {len(levels)} levels for {len(known.classes)} classes; give each one")
    if own is not None and own != levels:
        raise PlanError(f"params.levels is {levels}, and the confusions are of {own}; learn them of these levels")
    return levels


def _stated(stated: Any) -> list[float]:
    numbers = isinstance(stated, list | tuple) and all(type(one) in (int, float) and 0 <= one <= 1 for one in stated)
    if not numbers or len(stated) < 2 or sorted(set(stated)) != list(stated):
        raise PlanError(f"params.levels is {stated!r}; write two numbers or more in [0, 1] that rise")
    return [float(one) for one in stated]


def _own_worth(classes: Sequence[Any]) -> list[float] | None:
    """Classes that are numbers in [0, 1], None for others. Raises PlanError where these do not rise."""
    if not all(type(one) in (int, float) and 0 <= one <= 1 for one in classes):
        return None
    if list(classes) != sorted(classes):
        raise PlanError(f"params.confusions: the classes {list(classes)} do not rise; name them from low to high")
    return [float(one) for one in classes]
