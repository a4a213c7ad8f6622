"""Combine a panel of judges: by their mean, or by the posterior of the response's true level (STABLEVAL).

The `panel` section of the config decides beforehand which verdicts are effective: those below the confidence threshold
are discarded, and more than half of the seeds that are left must agree. A question without a majority counts as
abstained.

STABLEVAL's annotators label one truth. So judges who predict different reviewers form a panel for each reviewer, and
the component is the mean over reviewers.

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
from pydantic import AfterValidator, BeforeValidator, Field

from jurygraph import aggregation
from jurygraph.aggregation.consensus import Consensus
from jurygraph.arrays import Bools, Floats, Ints
from jurygraph.decision.combiners import (
    Combiner,
    Component,
    ComponentInputs,
    InputMatrices,
    Mean,
    input_means,
    totals,
    weighted_mean,
)
from jurygraph.errors import PlanError
from jurygraph.messages import did_you_mean, format_number_for_sentence, join_names, quote
from jurygraph.schema import ComponentInput
from jurygraph.schema.frozen_model import JsonFields, ParamsModel, RawParams, UnitInterval
from jurygraph.schema.rating import Confusions, Label


class Panel(Mean):
    """Mean of the judges, each judge a part; the diagnostics report their disagreement.

    `disagreement` is the mean of |r_i - r_j| over pairs of judges with an effective verdict, 0 if there is no pair (the
    paper finds that disagreement is structure, not noise). `lowest` and `highest` are the lowest and the highest score
    of a judge.
    """

    name = "panel"
    fuses_judges = True

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        mean = super().combine(matrices, params)
        judged = {
            name: replace(matrix, applicable=matrix.applicable & matrix.judged)
            for name, matrix in matrices.items()
        }
        value, has_score = input_means(judged)
        score_distances = np.abs(value[:, :, None] - value[:, None, :])
        is_other_judge = ~np.eye(len(matrices), dtype=np.bool_)
        is_pair = has_score[:, :, None] & has_score[:, None, :] & is_other_judge
        # Each pair is there twice, [i,j] and [j,i], among the pairs and among their distances alike.
        pairs = totals(aggregation.total(np.where(is_pair, 1.0, 0.0)))
        distances = aggregation.total(aggregation.total(np.where(is_pair, score_distances, 0.0)))
        lowest = np.where(has_score, value, 1.0).min(axis=1)
        diagnostics = {
            "disagreement": distances / np.maximum(pairs, 1.0),
            "lowest": np.where(has_score.any(axis=1), lowest, 0.0),
            "highest": np.where(has_score, value, 0.0).max(axis=1),
        }
        parts = {name: matrix.mean()[0] for name, matrix in matrices.items()}
        return Component(mean.value, mean.present, parts, diagnostics)


# most combinations of missing votes that are enumerated; beyond it, the worst level counts
MAX_VOTE_COMBINATIONS = 1000


class PanelVotes:
    """The score matrices of all judges joined column by column, [R,J]; each column holds one judge's votes.

    `cast` [R,J] marks effective votes. `missing` [R,J] marks votes that were requested but have no effective verdict,
    because it failed or because a gate excluded the response. A missing vote is filled with 0 where less is worse, and
    with 1 where more is worse.
    """

    def __init__(self, matrices: InputMatrices, params: RawParams) -> None:
        self.levels = read_level_values(params)
        size = len(self.levels)
        judges = params.get("judges")
        self._counts_votes = judges is None
        self._combine = np.add if judges is None else np.multiply
        """Joins the evidence of two votes: numbers of votes without confusion matrices, else probabilities, [...,K]."""
        self._prior = np.array(params.get("prior", np.zeros(size)), dtype=np.float64)
        self._evidence_of_vote: dict[str, Floats] = {}
        """The evidence of a judge's vote for each level, [K,K], a row per vote."""
        self._judge_names: list[str] = []
        for name, matrix in matrices.items():
            votes = np.eye(size) if judges is None else np.array(judges[name], dtype=np.float64).T
            self._evidence_of_vote[name] = votes
            self._judge_names += [name] * matrix.value.shape[1]
        judged: Bools = np.hstack([matrix.judged for matrix in matrices.values()])
        self.live: Bools = np.hstack([matrix.applicable for matrix in matrices.values()])
        self.cast: Bools = self.live & judged
        self.missing: Bools = self.live & ~self.cast
        filled_values = np.hstack([matrix.value for matrix in matrices.values()])
        self._level = nearest_level_index(filled_values, self.levels)
        self._high: Bools = self.missing & (filled_values >= 0.5)
        self._low: Bools = self.missing & ~self._high
        self._cases: dict[tuple[str, ...], Floats] = {}

    def posterior(self) -> Floats:
        """Return the probability of each level, [R,K], given the votes that were cast."""
        return self._to_probabilities(self._vote_evidence())

    def expected_level(self, posterior: Floats) -> Floats:
        """Return the mean level, [...], of a posterior [...,K]."""
        return totals(posterior * self.levels)

    def worst_case_values(self, posterior: Floats) -> Floats:
        """Return the value of each response, [R], if its missing votes were as bad as they could be.

        Missing votes that are filled with 0 minimize the value that those filled with 1 maximize. `posterior` [R,K] is
        that of the votes that were cast; if a response has none and all its missing votes are filled alike, the fill is
        its value. Each row depends on itself alone.
        """
        low = self._low.any(axis=1)
        high = self._high.any(axis=1)
        worst_value = np.where(low, 0.0, 1.0)
        # Further votes multiply into a posterior; those that a majority is counted from are no longer in it.
        evidence = self._vote_evidence() if self._counts_votes else posterior
        # a row without a vote cast, whose missing votes are all filled alike, has that fill already
        is_undetermined = (low | high) & (self.cast.any(axis=1) | (low & high))
        for row in np.flatnonzero(is_undetermined):
            judges_filled_low = self._judges_of_columns(self._low[row])
            judges_filled_high = self._judges_of_columns(self._high[row])
            if (
                self._count_vote_combinations(judges_filled_low)
                * self._count_vote_combinations(judges_filled_high)
                > MAX_VOTE_COMBINATIONS
            ):
                worst_value[row] = self.levels[0] if judges_filled_low else self.levels[-1]
                continue
            evidence_with_low_votes = self._combine(
                evidence[row], self._evidence_of_combinations(judges_filled_low)
            )
            combined_evidence = self._combine(
                evidence_with_low_votes[:, None], self._evidence_of_combinations(judges_filled_high)
            )
            levels = self.expected_level(self._to_probabilities(combined_evidence))
            worst_value[row] = levels.max(axis=1).min()
        return worst_value

    def _judges_of_columns(self, columns: Bools) -> tuple[str, ...]:
        return tuple(self._judge_names[column] for column in np.flatnonzero(columns))

    def _count_vote_combinations(self, judges: Sequence[str]) -> int:
        """Count the combinations of votes of these judges; votes of the same judge have no order."""
        ways = 1
        for votes in Counter(judges).values():
            ways *= comb(votes + len(self.levels) - 1, votes)
        return ways

    def _evidence_of_combinations(self, judges: tuple[str, ...]) -> Floats:
        """Return the evidence of each combination of votes of these judges, [C,K]."""
        if judges in self._cases:
            return self._cases[judges]
        size = len(self.levels)
        no_evidence = np.full((1, size), 0.0 if self._counts_votes else 1.0)
        cases = no_evidence
        for judge, votes in Counter(judges).items():
            vote_combinations = list(combinations_with_replacement(range(size), votes))
            evidence = no_evidence
            for levels in np.array(vote_combinations).T:
                evidence = self._combine(evidence, self._evidence_of_vote[judge][levels])
            # every case so far with every combination of this judge's votes
            cases = self._combine(cases[:, None], evidence[None]).reshape(-1, size)
        self._cases[judges] = cases
        return cases

    def _vote_evidence(self) -> Floats:
        """Return the evidence of the votes cast, [R,K]: probabilities with confusion matrices, else vote counts."""
        evidence = np.tile(self._prior, (len(self.cast), 1))
        for column, judge in enumerate(self._judge_names):
            votes = self._level[:, column]
            updated_evidence = self._combine(evidence, self._evidence_of_vote[judge][votes])
            # After each vote: the product of many small probabilities would underflow, and no level would be left.
            if not self._counts_votes:
                updated_evidence = _normalize_shares(updated_evidence)
            evidence = np.where(self.cast[:, column, None], updated_evidence, evidence)
        return evidence

    def _to_probabilities(self, evidence: Floats) -> Floats:
        """Return the levels' probabilities, [...,K]; without confusion matrices, uniform over those with most votes."""
        if self._counts_votes:
            evidence = np.where(evidence == evidence.max(axis=-1, keepdims=True), 1.0, 0.0)
        return _normalize_shares(evidence)


def read_level_values(params: RawParams) -> Floats:
    """Return the values of the classes, increasing, [K], from the params of a plan."""
    return np.array(params["levels"], dtype=np.float64)


def nearest_level_index(value: Floats, levels: Floats) -> Ints:
    """Return the index of the level nearest to each value; the lower one of two at equal distance."""
    level_midpoints = (levels[1:] + levels[:-1]) / 2.0
    return np.searchsorted(level_midpoints, value, side="left")


def _normalize_shares(shares: Floats) -> Floats:
    """Normalize [...,K] to sum to 1; a sum of 0 becomes the uniform distribution."""
    size = totals(shares)[..., None]
    normalized_shares = shares / np.where(size > 0.0, size, 1.0)
    return np.where(size > 0.0, normalized_shares, 1.0 / shares.shape[-1])


def _require_rising_levels(levels: tuple[float, ...]) -> tuple[float, ...]:
    if sorted(set(levels)) != list(levels):
        raise ValueError("do not rise; write them from low to high, each once")
    return levels


def _refuse_file_name(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError(f"names {quote(value)}, which was not read; write the content of the file")
    return value


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
    confusions in every panel.
    """

    class Params(ParamsModel):
        levels: (
            Annotated[tuple[UnitInterval, ...], AfterValidator(_require_rising_levels)] | None
        ) = Field(None, min_length=2)
        """The values of the classes, rising in [0, 1]; 0 and 1 unless the confusions have other classes."""
        confusions: Annotated[Confusions, BeforeValidator(_refuse_file_name)] | None = None
        """The judges' learned confusions: a file, or its content. Without, the majority counts."""

    name = "consensus"
    version = "2"
    batched = True
    needs_all_columns = True
    fuses_judges = True
    if_skipped = "left-out"

    def is_monotone_input(self, name: str) -> bool:
        """Return false: the effect of a vote depends on how its judge errs."""
        return False

    def input_names_by_part(self, params: RawParams) -> Mapping[str, Sequence[str]]:
        panels: Mapping[str, Sequence[str]] = params.get("panels", {})
        return panels

    def describe_inputs(self, params: RawParams) -> Sequence[str]:
        reviewers: dict[tuple[str, ...], list[str]] = {}
        for reviewer, inputs in self.input_names_by_part(params).items():
            judges = tuple(judge_name(name, reviewer) for name in inputs)
            reviewers.setdefault(judges, []).append(reviewer)
        return [
            f"a panel for each of {join_names(names)}, with the judges {join_names(judges)}; the reviewers count alike"
            for judges, names in reviewers.items()
        ]

    def describe_value(
        self, params: RawParams, diagnostics: Mapping[str, float], is_filled_in: bool
    ) -> Sequence[str]:
        fusion_sentences = (
            ["the mean over reviewers, who count alike"] if self.input_names_by_part(params) else []
        )
        levels = " and ".join(map(format_number_for_sentence, params["levels"]))
        votes = f"each vote rounded to the nearest of {levels}"
        if is_filled_in:  # by one missing sample, too: then the probabilities do not give the value
            return [f"{votes}; missing votes count as the worst level", *fusion_sentences]
        rule = "by majority"
        confusions = params.get("confusions")
        if confusions is not None:
            rule = f"given how often each judge errs (confusions {str(confusions)[:12]} in the run's config.yaml)"
        if fusion_sentences:
            return [
                f"{votes}; of each reviewer the sum of level × probability {rule}",
                *fusion_sentences,
            ]
        summand_texts = []
        for level in params["levels"]:
            probability = diagnostics.get(f"p({level:g})", 0.0)
            summand_texts.append(
                f"{format_number_for_sentence(level)} × {format_number_for_sentence(probability)}"
            )
        return [f"{votes}; {' + '.join(summand_texts)}, level × probability {rule}"]

    def arrange_inputs(
        self,
        inputs: ComponentInputs,
        reviewers: Mapping[str, str | None],
        params: RawParams,
    ) -> dict[str, ComponentInput]:
        arranged_inputs = dict[str, ComponentInput]()
        for key, judge in inputs.items():
            question_by_reviewer = dict[str | None, str]()
            for question, weight in judge.weighted_questions:
                reviewer = reviewers[question]
                other = question_by_reviewer.setdefault(reviewer, question)
                if other != question:
                    prediction = "the same response"
                    if reviewer is not None:
                        prediction = f"what {reviewer!r} would say"
                    raise PlanError(
                        f"input {key!r} asks {other!r} and {question!r} about {prediction}, and the votes of a "
                        "consensus are on one question; name one of them by its id"
                    )
                name = key if reviewer is None else f"{key}@{reviewer}"
                if name in arranged_inputs or name in reviewers.values():
                    raise PlanError(
                        f"input {name!r} has the name of a reviewer, or of a judge of one; rename it"
                    )
                split = {"questions": (question,), "weights": (weight,), "reviewer": reviewer}
                arranged_inputs[name] = judge.model_copy(update=split)
        return arranged_inputs

    def freeze(self, inputs: ComponentInputs, params: RawParams) -> JsonFields:
        settings: ConsensusOfJudges.Params = self.read_params(params)
        confusions = settings.confusions
        for key, component_input in inputs.items():
            if component_input.if_skipped == "zero":
                raise PlanError(
                    f"input {key!r}: a judge that was left out has no vote; write `if_skipped: left-out`"
                )
            weights = (component_input.input_weight, *component_input.weights)
            if any(weight != 1.0 for weight in weights):
                raise PlanError(
                    f"input {key!r} has a weight, and judges weigh by their confusions here; leave it out"
                )
        frozen_params: JsonFields = {"levels": _resolve_class_values(settings.levels, confusions)}
        reviewers = {use.reviewer for use in inputs.values()}
        panels = {}
        for reviewer in sorted(filter(None, reviewers)):
            # Whoever predicts nobody in particular votes in every panel.
            voters = (reviewer, None)
            panels[reviewer] = [key for key, use in inputs.items() if use.reviewer in voters]
        if panels:
            frozen_params["panels"] = panels
        if confusions is not None:
            matrices = {}
            for key, use in inputs.items():
                judge = judge_name(key, use.reviewer)
                if judge not in confusions.annotators:
                    names = sorted(confusions.annotators)
                    all_names_hint = f"name inputs as the annotators: {', '.join(names[:20])}"
                    hint = did_you_mean(judge, names) or all_names_hint
                    raise PlanError(f"params.confusions say nothing of input {judge!r}; {hint}")
                matrices[key] = [list(row) for row in confusions.annotators[judge]]
            frozen_params["prior"] = list(confusions.prior)
            frozen_params["judges"] = matrices
            frozen_params["confusions"] = confusions.digest
        return frozen_params

    def combine(self, matrices: InputMatrices, params: RawParams) -> Component:
        panels = self.input_names_by_part(params)
        if not panels:
            panel_component = _fuse_votes(matrices, params)
            means = {name: matrix.mean()[0] for name, matrix in matrices.items()}
            return replace(panel_component, parts=means)
        reviewer_components = []
        parts = {}
        diagnostics = {}
        for reviewer, names in panels.items():
            panel_component = _fuse_votes({name: matrices[name] for name in names}, params)
            reviewer_components.append(panel_component)
            parts[reviewer] = np.where(panel_component.present, panel_component.value, np.nan)
            for figure, numbers in panel_component.diagnostics.items():
                diagnostics[f"{figure} of {reviewer}"] = numbers
        values = np.stack(
            [panel_component.value for panel_component in reviewer_components], axis=1
        )
        present = np.stack(
            [panel_component.present for panel_component in reviewer_components], axis=1
        )
        weights = np.where(present, 1.0, 0.0)
        return Component(*weighted_mean(values, weights), parts, diagnostics)


def judge_name(key: str, reviewer: str | None) -> str:
    """Return the judge whose input has this name in a plan: without the reviewer whom it predicts."""
    return key if reviewer is None else key.removesuffix(f"@{reviewer}")


def _fuse_votes(matrices: InputMatrices, params: RawParams) -> Component:
    """Return the mean level under the posterior of one panel's votes, with that posterior as diagnostics."""
    votes = PanelVotes(matrices, params)
    posterior = votes.posterior()
    has_vote = votes.cast.any(axis=1)
    has_missing_vote = votes.missing.any(axis=1)
    value = np.where(
        has_missing_vote, votes.worst_case_values(posterior), votes.expected_level(posterior)
    )
    diagnostics = {
        f"p({level:g})": np.where(has_vote, posterior[:, index], np.nan)
        for index, level in enumerate(params["levels"])
    }
    diagnostics["ambiguity"] = np.where(has_vote, 1.0 - posterior.max(axis=1), np.nan)
    return Component(value, np.asarray(votes.live.any(axis=1)), {}, diagnostics)


def _resolve_class_values(
    param_levels: Sequence[float] | None, confusions: Confusions | None
) -> list[float]:
    """Return the value of each class: its own if all are numbers in [0, 1], else evenly spaced."""
    classes: Sequence[Any] = (0, 1) if confusions is None else confusions.classes
    are_in_unit_interval = all(type(value) in (int, float) and 0 <= value <= 1 for value in classes)
    class_values = [float(label) for label in classes] if are_in_unit_interval else None
    if class_values is not None and class_values != sorted(class_values):
        raise PlanError(
            f"params.confusions: the classes {list(classes)} do not rise; name them from low to high"
        )
    if param_levels is None:
        return class_values or [index / (len(classes) - 1) for index in range(len(classes))]
    levels = list(param_levels)
    if confusions is None:
        return levels
    if len(levels) != len(classes):
        raise PlanError(
            f"params.levels has {len(levels)} levels for {len(classes)} classes; give each one"
        )
    if class_values not in (None, levels):
        raise PlanError(
            f"params.levels is {levels}, and the confusions are of {class_values}; learn them of these levels"
        )
    return levels


def to_confusions(fitted_consensus: Consensus, classes: Sequence[Label]) -> Confusions:
    """Return the class shares and confusion matrices of a fit, for `classes` [K] and its annotators' names as text."""
    matrices = fitted_consensus.confusion.tolist()
    annotators = {
        str(name): tuple(tuple(row) for row in matrix)
        for name, matrix in zip(fitted_consensus.votes.annotators, matrices, strict=True)
    }
    prior = tuple(fitted_consensus.prior.tolist())
    return Confusions(classes=tuple(classes), prior=prior, annotators=annotators)
