"""Combine a panel of judges: by their mean, or by the posterior of the response's true level (STABLEVAL).

The `panel` section of the config decides beforehand which verdicts are effective: those below the confidence threshold
are discarded, and more than half of the seeds that are left must agree. A question without a majority counts as
abstained.

STABLEVAL's annotators label one truth. So judges who predict different reviewers form a panel for each reviewer, and
the component is the mean over reviewers. With `pool`, all are taken to label one truth that all reviewers share.

The confusion matrices are frozen in the plan, so that the reward is arithmetic: γ_c ∝ μ_c Π_j π_j[c, level of j]. They
are learned from a whole run in a second pass (`jurygraph rescore --learn`), or elsewhere (`jurygraph consensus
--artifact`). Until then, the level with the most votes counts, and levels with equally many votes share the
probability.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement
from math import comb
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, Field, ValidatorFunctionWrapHandler, WrapValidator

from jurygraph import aggregation
from jurygraph.aggregation.consensus import Consensus
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.decision.combiners import (
    Combiner,
    Component,
    Mean,
    ScoreMatrix,
    input_means,
    weighted_mean,
)
from jurygraph.errors import PlanError
from jurygraph.messages import did_you_mean, format_plain, join_names, quote
from jurygraph.schema import ComponentInput
from jurygraph.schema.frozen_model import Flag, ParamsModel, Unit
from jurygraph.schema.rating import Confusions, Label


class Panel(Mean):
    """Mean of the judges, each judge a part; the diagnostics report their disagreement.

    `disagreement` is the mean of |r_i - r_j| over pairs of judges with an effective verdict, 0 if there is no pair (the
    paper finds that disagreement is structure, not noise). `lowest` and `highest` are the lowest and the highest score
    of a judge.
    """

    name = "panel"
    fuses_judges = True

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        mean = super().combine(matrices, params)
        value, has_score = input_means(
            {
                name: replace(matrix, applicable=matrix.applicable & matrix.judged)
                for name, matrix in matrices.items()
            }
        )
        distance = np.abs(value[:, :, None] - value[:, None, :])
        is_pair = (
            has_score[:, :, None] & has_score[:, None, :] & ~np.eye(len(matrices), dtype=np.bool_)
        )
        pairs = np.asarray(aggregation.total(aggregation.total(np.where(is_pair, 1.0, 0.0))))
        diagnostics = {
            "disagreement": aggregation.total(aggregation.total(np.where(is_pair, distance, 0.0)))
            / np.maximum(pairs, 1.0),
            "lowest": np.where(
                has_score.any(axis=1), np.where(has_score, value, 1.0).min(axis=1), 0.0
            ),
            "highest": np.where(has_score, value, 0.0).max(axis=1),
        }
        parts = {name: matrix.mean()[0] for name, matrix in matrices.items()}
        return Component(mean.value, mean.present, parts, diagnostics)


MAX_CASES = 1000  # most combinations of missing votes that are enumerated; beyond it, the worst level counts


class PanelVotes:
    """The score matrices of all judges joined column by column, [R,J]; each column holds one judge's votes.

    `cast` [R,J] marks effective votes. `missing` [R,J] marks votes that were requested but have no effective verdict,
    because it failed or because a gate excluded the response. A missing vote is filled with 0 where less is worse, and
    with 1 where more is worse.
    """

    def __init__(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> None:
        self.levels = level_values(params)
        size = len(self.levels)
        judges = params.get("judges")
        self._counts_votes = judges is None
        self._combine = np.add if judges is None else np.multiply
        """Joins the evidence of two votes: numbers of votes without confusion matrices, else probabilities, [...,K]."""
        self._prior = np.array(params.get("prior", np.zeros(size)), dtype=np.float64)
        self._evidence_of_vote = {
            name: np.eye(size) if judges is None else np.array(judges[name], dtype=np.float64).T
            for name in matrices
        }
        """The evidence of a judge's vote for each level, [K,K], a row per vote."""
        self.live: Bools = np.hstack([matrix.applicable for matrix in matrices.values()])
        self.cast: Bools = self.live & np.hstack([matrix.judged for matrix in matrices.values()])
        self.missing: Bools = self.live & ~self.cast
        filled = np.hstack([matrix.value for matrix in matrices.values()])
        self._level = nearest_level(filled, self.levels)
        self._high: Bools = self.missing & (filled >= 0.5)
        self._low: Bools = self.missing & ~self._high
        self._judge_names = [
            name for name, matrix in matrices.items() for _ in range(matrix.value.shape[1])
        ]
        self._cases: dict[tuple[str, ...], Floats] = {}

    def posterior(self) -> Floats:
        """Return the probability of each level, [R,K], given the votes that were cast."""
        return self._probabilities(self._evidence())

    def expected_level(self, posterior: Floats) -> Floats:
        """Return the mean level, [...], of a posterior [...,K]."""
        return np.asarray(aggregation.total(posterior * self.levels))

    def worst_case(self, posterior: Floats) -> Floats:
        """Return the value of each response, [R], if its missing votes were as bad as they could be.

        Missing votes that are filled with 0 minimize the value that those filled with 1 maximize. `posterior` [R,K] is
        that of the votes that were cast; if a response has none and all its missing votes are filled alike, the fill is
        its value. Each row depends on itself alone.
        """
        low = self._low.any(axis=1)
        high = self._high.any(axis=1)
        worst = np.where(low, 0.0, 1.0)
        evidence = self._evidence() if self._counts_votes else posterior
        for row in np.flatnonzero((low | high) & (self.cast.any(axis=1) | (low & high))):
            low_votes = self._judges_at(self._low[row])
            high_votes = self._judges_at(self._high[row])
            if self._count_cases(low_votes) * self._count_cases(high_votes) > MAX_CASES:
                worst[row] = self.levels[0] if low_votes else self.levels[-1]
                continue
            with_low = self._combine(evidence[row], self._evidence_of_cases(low_votes))
            combined = self._combine(with_low[:, None], self._evidence_of_cases(high_votes))
            worst[row] = self.expected_level(self._probabilities(combined)).max(axis=1).min()
        return worst

    def _judges_at(self, columns: Bools) -> tuple[str, ...]:
        return tuple(
            judge for judge, is_there in zip(self._judge_names, columns, strict=True) if is_there
        )

    def _count_cases(self, judges: Sequence[str]) -> int:
        """Count the combinations of votes of these judges; votes of the same judge have no order."""
        ways = 1
        for votes in Counter(judges).values():
            ways *= comb(votes + len(self.levels) - 1, votes)
        return ways

    def _evidence_of_cases(self, judges: tuple[str, ...]) -> Floats:
        """Return the evidence of each combination of votes of these judges, [C,K]."""
        if judges not in self._cases:
            cases = none = np.full((1, len(self.levels)), 0.0 if self._counts_votes else 1.0)
            for judge, votes in Counter(judges).items():
                combinations = list(combinations_with_replacement(range(len(self.levels)), votes))
                evidence = none
                for levels in np.array(combinations).T:
                    evidence = self._combine(evidence, self._evidence_of_vote[judge][levels])
                cases = self._combine(cases[:, None], evidence[None]).reshape(-1, len(self.levels))
            self._cases[judges] = cases
        return self._cases[judges]

    def _evidence(self) -> Floats:
        """Return the evidence of the votes cast, [R,K]: probabilities with confusion matrices, else vote counts."""
        evidence = np.tile(self._prior, (len(self.cast), 1))
        for column, judge in enumerate(self._judge_names):
            updated = self._combine(evidence, self._evidence_of_vote[judge][self._level[:, column]])
            updated = updated if self._counts_votes else _normalize(updated)
            evidence = np.where(self.cast[:, column, None], updated, evidence)
        return evidence

    def _probabilities(self, evidence: Floats) -> Floats:
        """Return the levels' probabilities, [...,K]; without confusion matrices, uniform over those with most votes."""
        if self._counts_votes:
            evidence = np.where(evidence == evidence.max(axis=-1, keepdims=True), 1.0, 0.0)
        return _normalize(evidence)


def level_values(params: Mapping[str, Any]) -> Floats:
    """Return the values of the classes, increasing, [K], from the params of a plan."""
    return np.array(params["levels"], dtype=np.float64)


def nearest_level(value: Floats, levels: Floats) -> Ints:
    """Return the index of the level nearest to each value; the lower one of two at equal distance."""
    middles = (levels[1:] + levels[:-1]) / 2.0
    return np.searchsorted(middles, value, side="left")


def _normalize(shares: Floats) -> Floats:
    """Normalize [...,K] to sum to 1; a sum of 0 becomes the uniform distribution."""
    size = np.asarray(aggregation.total(shares))[..., None]
    return np.where(size > 0.0, shares / np.where(size > 0.0, size, 1.0), 1.0 / shares.shape[-1])


def _require_rising(levels: tuple[float, ...]) -> tuple[float, ...]:
    if sorted(set(levels)) != list(levels):
        raise ValueError("do not rise; write them from low to high, each once")
    return levels


def _check_digest(value: Any, build: ValidatorFunctionWrapHandler) -> Confusions:
    """Return confusions whose digest, if it is given, is that of the rest."""
    if isinstance(value, str):
        raise ValueError(f"names {quote(value)}, which was not read; write the content of the file")
    if not isinstance(value, Mapping):
        return build(value)  # type: ignore[no-any-return]  # it raises
    confusions: Confusions = build(
        {key: content for key, content in value.items() if key != "digest"}
    )
    if value.get("digest", confusions.digest) != confusions.digest:
        raise ValueError("the digest is not that of the rest, which was changed; leave it out")
    return confusions


class ConsensusOfJudges(Combiner):
    """The mean level of a response under its posterior; each input is a judge, and each of its samples a vote.

    An input whose evaluator has several `judges` is replaced by one for each of them, by the name of its model.

    A verdict counts as the nearest level (the lower of two at equal distance). A verdict that is missing counts as the
    worst vote that the judge could have cast; if no judge has a verdict, the component has the value of an unjudged
    one. So a failure is never credit, and a judge whose votes oppose the truth gains nothing by failing. The
    diagnostics are the posterior by the votes that were cast, and its ambiguity, 1 - max.

    If judges predict reviewers, the frozen inputs are called JUDGE@REVIEWER, and each reviewer has a panel of their own
    (`panels`): the judges' predictions of this reviewer, and the judges of nobody in particular, who vote in every
    panel. The value is the mean over the reviewers, who are the parts, with equal weights. A judge has the same
    confusions in every panel. With `pool` there is one panel of all votes.
    """

    class Params(ParamsModel):
        levels: Annotated[tuple[Unit, ...], AfterValidator(_require_rising)] | None = Field(
            None, min_length=2
        )
        """The values of the classes, rising in [0, 1]; 0 and 1 unless the confusions have other classes."""
        confusions: Annotated[Confusions, WrapValidator(_check_digest)] | None = None
        """The judges' learned confusions: a file, or its content. Without, the majority counts."""
        pool: Flag = False
        """One panel of all votes, instead of one for each reviewer."""

    name = "consensus"
    version = "2"
    batched = True
    needs_all_columns = True
    fuses_judges = True
    if_skipped = "left-out"

    def has_direction(self, name: str) -> bool:
        """Return false: the effect of a vote depends on how its judge errs."""
        return False

    def part_inputs(self, params: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
        panels: Mapping[str, Sequence[str]] = params.get("panels", {})
        return panels

    def describe_inputs(self, params: Mapping[str, Any]) -> Sequence[str]:
        if params.get("pool"):
            return [
                "pooled (pool: true); all votes are taken to be on one truth that all reviewers share"
            ]
        reviewers: dict[tuple[str, ...], list[str]] = {}
        for reviewer, inputs in self.part_inputs(params).items():
            reviewers.setdefault(tuple(judge_name(name, reviewer) for name in inputs), []).append(
                reviewer
            )
        return [
            f"a panel for each of {join_names(names)}, with the judges {join_names(judges)}; the reviewers count alike"
            for judges, names in reviewers.items()
        ]

    def describe_value(
        self, params: Mapping[str, Any], diagnostics: Mapping[str, float], is_filled_in: bool
    ) -> Sequence[str]:
        fused = ["the mean over reviewers, who count alike"] if self.part_inputs(params) else []
        votes = f"each vote rounded to the nearest of {' and '.join(map(format_plain, params['levels']))}"
        if is_filled_in:  # by one missing sample, too: then the probabilities do not give the value
            return [f"{votes}; missing votes count as the worst level", *fused]
        confusions = params.get("confusions")
        learned = f"given how often each judge errs (confusions {str(confusions)[:12]} in the run's config.yaml)"
        rule = "by majority" if confusions is None else learned
        if fused:
            return [f"{votes}; of each reviewer the sum of level × probability {rule}", *fused]
        shares = [(level, diagnostics.get(f"p({level:g})", 0.0)) for level in params["levels"]]
        summands = (f"{format_plain(level)} × {format_plain(share)}" for level, share in shares)
        return [f"{votes}; {' + '.join(summands)}, level × probability {rule}"]

    def arrange_inputs(
        self,
        inputs: Mapping[str, ComponentInput],
        reviewers: Mapping[str, str | None],
        params: Mapping[str, Any],
    ) -> dict[str, ComponentInput]:
        arranged = dict[str, ComponentInput]()
        for key, judge in inputs.items():
            weights = dict(zip(judge.questions, judge.weights, strict=True))
            for reviewer, question in _question_by_reviewer(key, judge, reviewers).items():
                name = key if reviewer is None else f"{key}@{reviewer}"
                if name in arranged or name in reviewers.values():
                    raise PlanError(
                        f"input {name!r} has the name of a reviewer, or of a judge of one; rename it"
                    )
                split = {
                    "questions": (question,),
                    "weights": (weights[question],),
                    "reviewer": reviewer,
                }
                arranged[name] = judge.model_copy(update=split)
        return dict(inputs) if self.read_params(params).pool else arranged

    def freeze(
        self, inputs: Mapping[str, ComponentInput], params: Mapping[str, Any]
    ) -> dict[str, Any]:
        settings: ConsensusOfJudges.Params = self.read_params(params)
        confusions = settings.confusions
        for key, frozen_input in inputs.items():
            if frozen_input.if_skipped == "zero":
                raise PlanError(
                    f"input {key!r}: a judge that was left out has no vote; write `if_skipped: left-out`"
                )
            if frozen_input.input_weight != 1.0 or any(
                weight != 1.0 for weight in frozen_input.weights
            ):
                raise PlanError(
                    f"input {key!r} has a weight, and judges weigh by their confusions here; leave it out"
                )
        frozen: dict[str, Any] = {"levels": _resolve_levels(settings.levels, confusions)}
        if settings.pool:
            frozen["pool"] = True
        reviewers = sorted({use.reviewer for use in inputs.values() if use.reviewer is not None})
        if reviewers:
            frozen["panels"] = {
                reviewer: [key for key, use in inputs.items() if use.reviewer in (reviewer, None)]
                for reviewer in reviewers
            }
        if confusions is None:
            return frozen
        matrices = {}
        for key, use in inputs.items():
            judge = judge_name(key, use.reviewer)
            if judge not in confusions.annotators:
                names = sorted(confusions.annotators)
                hint = (
                    did_you_mean(judge, names)
                    or f"name inputs as the annotators: {', '.join(names[:20])}"
                )
                raise PlanError(f"params.confusions say nothing of input {judge!r}; {hint}")
            matrices[key] = [list(row) for row in confusions.annotators[judge]]
        return frozen | {
            "prior": list(confusions.prior),
            "judges": matrices,
            "confusions": confusions.digest,
        }

    def combine(self, matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
        panels = self.part_inputs(params)
        if not panels:
            fused = _fuse_votes(matrices, params)
            return replace(
                fused, parts={name: matrix.mean()[0] for name, matrix in matrices.items()}
            )
        by_reviewer = {
            reviewer: _fuse_votes({name: matrices[name] for name in names}, params)
            for reviewer, names in panels.items()
        }
        values, present = (
            np.stack([getattr(fused, name) for fused in by_reviewer.values()], axis=1)
            for name in ("value", "present")
        )
        parts = {
            name: np.where(fused.present, fused.value, np.nan)
            for name, fused in by_reviewer.items()
        }
        diagnostics = {
            f"{figure} of {name}": values
            for name, fused in by_reviewer.items()
            for figure, values in fused.diagnostics.items()
        }
        return Component(*weighted_mean(values, np.where(present, 1.0, 0.0)), parts, diagnostics)


def _question_by_reviewer(
    key: str, judge: ComponentInput, reviewers: Mapping[str, str | None]
) -> dict[str | None, str]:
    """Return the question of an input by the reviewer whom it predicts. Raises PlanError for two about the same one."""
    by_reviewer: dict[str | None, str] = {}
    for question in judge.questions:
        reviewer = reviewers[question]
        other = by_reviewer.setdefault(reviewer, question)
        if other != question:
            whom = "the same response" if reviewer is None else f"what {reviewer!r} would say"
            raise PlanError(
                f"input {key!r} asks {other!r} and {question!r} about {whom}, and the votes of a consensus are on one "
                "question; name one of them by its id"
            )
    return by_reviewer


def judge_name(key: str, reviewer: str | None) -> str:
    """Return the judge whose input has this name in a plan: without the reviewer whom it predicts."""
    return key if reviewer is None else key.removesuffix(f"@{reviewer}")


def _fuse_votes(matrices: Mapping[str, ScoreMatrix], params: Mapping[str, Any]) -> Component:
    """Return the mean level under the posterior of one panel's votes, with that posterior as diagnostics."""
    votes = PanelVotes(matrices, params)
    posterior = votes.posterior()
    has_vote = votes.cast.any(axis=1)
    value = np.where(
        votes.missing.any(axis=1), votes.worst_case(posterior), votes.expected_level(posterior)
    )
    shares = {f"p({level:g})": posterior[:, index] for index, level in enumerate(params["levels"])}
    diagnostics = {name: np.where(has_vote, share, np.nan) for name, share in shares.items()}
    diagnostics["ambiguity"] = np.where(has_vote, 1.0 - posterior.max(axis=1), np.nan)
    return Component(value, np.asarray(votes.live.any(axis=1)), {}, diagnostics)


def _resolve_levels(given: Sequence[float] | None, confusions: Confusions | None) -> list[float]:
    """Return the value of each class: its own if all are numbers in [0, 1], else evenly spaced."""
    classes: Sequence[Any] = (0, 1) if confusions is None else confusions.classes
    are_units = all(type(value) in (int, float) and 0 <= value <= 1 for value in classes)
    class_values = [float(label) for label in classes] if are_units else None
    if class_values is not None and class_values != sorted(class_values):
        raise PlanError(
            f"params.confusions: the classes {list(classes)} do not rise; name them from low to high"
        )
    if given is None:
        return class_values or [index / (len(classes) - 1) for index in range(len(classes))]
    levels = list(given)
    if confusions is not None and len(levels) != len(classes):
        raise PlanError(
            f"params.levels has {len(levels)} levels for {len(classes)} classes; give each one"
        )
    if confusions is not None and class_values not in (None, levels):
        raise PlanError(
            f"params.levels is {levels}, and the confusions are of {class_values}; learn them of these levels"
        )
    return levels


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
