"""The consensus of votes on one question: settings, the fitted model, and what it says of each item."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import (
    AdjustedMeans,
    AgentScore,
    Consensus,
    ItemPosteriors,
    MajorityVote,
)
from jurygraph.aggregation.consensus.fitting import (
    ConsensusMethod,
)
from jurygraph.aggregation.consensus.model import class_credit_values
from jurygraph.errors import InputError
from jurygraph.messages import (
    notes_on_similar_names,
)
from jurygraph.schema.rating import format_label
from jurygraph.sources.label_words import has_words
from jurygraph.studies.report import (
    Figures,
)
from jurygraph.studies.votes import (
    MAX_LISTED_NAMES,
    VoteColumns,
    notes_on_half_steps,
    notes_on_labels,
)

REFIT_COUNT = 200
BOOTSTRAP_RESAMPLES = 1000
"""Resamples for the agents' intervals by preset `paper`."""
MAX_LABEL_STEPS_FOR_REFITS = 5_000_000
"""Labels × steps of the fit up to which the refits take seconds: MT-Bench has 1.6 million, ConvAbuse .7."""

StudyPreset = Literal["converged", "paper"]


class ConsensusSettings(NamedTuple):
    """Settings for fitting and measuring a consensus.

    Attributes:
        preset, method: if neither is set, `converged` and `stableval`, or for a panel that is too small the adjusted
            mean, where labels are numbers of a scale, and else the majority.
        values: credit of each class, [K]; None: from 0 to 1, by the numbers of the data, or else evenly; the numbers
            themselves by the adjusted mean.
        subsets: stability is measured with this number of subsets of the annotators; 0 for none.
        seed: seed of all draws; None: 0, but 42 for the stability of preset `paper`.
        compare: whether the tables compare all methods.
        fit: settings of the fit by their names in `consensus.fit`, instead of those of the preset; None: the preset's.
        bootstrap: number of resamples for intervals, 0 for none; None: 200 refits, or by preset `paper` 1,000.
    """

    preset: StudyPreset | None = None
    method: ConsensusMethod | None = None
    values: Sequence[float] | None = None
    subsets: int = 50
    seed: int | None = None
    compare: bool = False
    fit: Mapping[str, float | None] = {}
    bootstrap: int | None = None

    @property
    def uses_paper_preset(self) -> bool:
        return self.preset == "paper"

    @property
    def resamples(self) -> int:
        """The number of resamples for intervals."""
        if self.bootstrap is not None:
            return self.bootstrap
        return BOOTSTRAP_RESAMPLES if self.uses_paper_preset else REFIT_COUNT


@dataclass(frozen=True)
class FittedConsensus:
    """A consensus: the fitted `model`, the `majority` vote, and the `method` that scores agents and items.

    `values` are the credits of the classes, [K]; `warnings` the reasons for caution, and the reason if another method
    replaces the model.
    """

    ballots: VoteColumns
    settings: ConsensusSettings
    model: Consensus
    majority: MajorityVote
    method: ConsensusMethod
    values: tuple[float, ...]
    warnings: tuple[str, ...]

    @property
    def question(self) -> str:
        """Return the dimension of the labels, or what their column is called by."""
        return self.ballots.question or "label"

    def get_item_posteriors(self, method: ConsensusMethod) -> ItemPosteriors:
        if method == "majority":
            return self.majority
        if method == "adjusted-mean":
            assert self.adjusted is not None, "the method is refused for words"
            return self.adjusted
        return self.model.hard_labels() if method == "dawid-skene" else self.model

    @property
    def item_posteriors(self) -> ItemPosteriors:
        """Return the posteriors of the items by the method that scores them."""
        return self.get_item_posteriors(self.method)

    def scores(self, method: ConsensusMethod, bootstrap: int = 0) -> dict[str, AgentScore]:
        """Return the score of each agent by a method; empty if no vote names an agent."""
        ballots = self.ballots
        if ballots.agent is None:
            return {}
        scores = self.get_item_posteriors(method).agent_scores(
            ballots.agent,
            self.values,
            bootstrap,
            self.settings.seed or 0,
            ballots.prompt,
            "bootstrap" if self.settings.uses_paper_preset else "t",
        )
        return {str(agent): score for agent, score in scores.items()}

    @cached_property
    def adjusted(self) -> AdjustedMeans | None:
        """The mean label of each item without its annotators' leniency; None for words. By this method gold counts."""
        if has_words(self.ballots.classes):
            return None
        gold = self.model.gold
        if self.method != "adjusted-mean":
            gold = np.full_like(gold, -1)
        return consensus.adjusted_means(self.model.votes, gold)

    @property
    def shows_rates(self) -> bool:
        """Return whether a reader is shown the annotators' rates by the model: not where it has too few labels.

        Without an order of classes, there is nothing else that tells them apart.
        """
        has_too_few_labels = consensus.too_small(self.model.votes) is not None
        if self.method == "majority" and has_too_few_labels:
            return not self.ballots.has_order
        return self.method != "adjusted-mean"

    @cached_property
    def spreads(self) -> dict[Any, float]:
        """The spread of each item's labels: the standard deviation of their credit, and 0 without labels.

        Where classes have no order, it is the share of labels that are not the commonest.
        """
        counts = self.model.votes.counts
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        spread = shares.sum(axis=1) - shares.max(axis=1)
        if self.ballots.has_order:
            credit = np.array(self.values)
            variance = shares @ credit**2 - (shares @ credit) ** 2
            spread = np.sqrt(np.maximum(variance, 0.0))
        return dict(zip(self.model.votes.items, spread.tolist(), strict=True))

    @cached_property
    def doubts(self) -> dict[Any, str]:
        """Why items are in doubt, which are those that `assign --ambiguous` selects."""
        return self.item_posteriors.doubts()

    @property
    def has_one_resampling_unit(self) -> bool:
        """Return whether there is one prompt, or without groups one item as the files name them: what is drawn."""
        return len(set(self.ballots.prompt or self.ballots.item_id_in_file)) == 1

    @cached_property
    def no_stability_reason(self) -> str | None:
        """The reason why stability cannot be, or should not be, measured; None if it can."""
        agents = set(self.ballots.agent or ())
        annotators = len(self.model.votes.annotators)
        if not agents:
            return "no row has an agent, and --compare needs agents, too; without, --gold tells methods apart"
        if self.settings.subsets == 0:
            return "--subsets is 0"
        if len(agents) == 1:
            return "there is one agent, and a ranking needs two"
        if annotators == 1:
            return "there is one annotator, and 70 % of one is nobody"
        if self.has_one_resampling_unit and not self.settings.uses_paper_preset:
            return "there is one item or group, and resamples of it are all alike"
        return None

    @property
    def is_refitting_slow(self) -> bool:
        """Return whether further fits would take long, and nobody asks for them."""
        label_steps = len(self.model.votes.item) * self.model.iterations
        return self.settings.bootstrap is None and label_steps > MAX_LABEL_STEPS_FOR_REFITS

    @cached_property
    def no_refits_reason(self) -> str | None:
        """The reason why nothing is fitted again; None if it is."""
        votes = self.model.votes
        if self.method == "adjusted-mean":
            return "refits are of the model's rates (--method stableval)"
        if self.settings.uses_paper_preset:
            return "preset paper takes the resamples of Algorithm 1"
        if self.settings.resamples == 0:
            return "--bootstrap is 0"
        if self.is_refitting_slow:
            return f"{REFIT_COUNT} refits would take long; --bootstrap {REFIT_COUNT} makes them"
        if self.has_one_resampling_unit:
            return "there is one item or group, and resamples of it are all alike"
        return consensus.not_identifiable(votes)

    @property
    def estimates(self) -> int:
        """The number of further fits that a report makes."""
        subsets = 0 if self.no_stability_reason is not None else self.settings.subsets
        refits = 0 if self.no_refits_reason is not None else self.settings.resamples
        return subsets + refits


def fit_consensus(ballots: VoteColumns, settings: ConsensusSettings) -> FittedConsensus:
    """Fit a consensus to votes. Raises `InputError` if the settings do not fit the votes."""
    classes = ballots.classes
    if settings.values is not None and len(settings.values) != len(classes):
        scale = ", ".join(map(format_label, classes[:MAX_LISTED_NAMES]))
        raise InputError(
            f"--values: gives {len(settings.values)} credits to {len(classes)} classes ({scale}); give each one"
        )
    for option, number in (
        ("--subsets: one draw", settings.subsets),
        ("--bootstrap: one resample", settings.bootstrap),
    ):
        if number == 1:
            raise InputError(f"{option} tells no spread; give 2 or more, or 0 for none")
    columns = (ballots.item, ballots.annotator, ballots.label)
    gold = ballots.gold
    changes: Any = {"preset": settings.preset or "converged", **settings.fit}
    model = consensus.fit(*columns, classes=classes, gold=gold, **changes)
    majority = consensus.majority_vote(*columns, tie_rule(settings), classes=classes, gold=gold)
    method, warnings = _choose_method(ballots, settings, model)
    warnings += notes_on_similar_names(ballots.annotator, ", or add --same-names")
    warnings += notes_on_similar_names(ballots.agent or ())
    warnings += notes_on_labels(ballots)
    credit_by_class: Sequence[Any] | None = settings.values or ballots.values or None
    if method == "adjusted-mean" and settings.values is None:
        credit_by_class = ballots.classes  # so that a score is a mean of labels
    values = tuple(class_credit_values(model.votes, credit_by_class).tolist())
    return FittedConsensus(ballots, settings, model, majority, method, values, tuple(warnings))


def _choose_method(
    ballots: VoteColumns, settings: ConsensusSettings, model: Consensus
) -> tuple[ConsensusMethod, list[str]]:
    """Return the method that scores agents and items, and the warnings; the last one says if a panel is too small."""
    method = settings.method or "stableval"
    if method == "adjusted-mean" and not ballots.is_number_scale:
        raise InputError(
            "--method: adjusted-mean needs more than two classes, all numbers from low to high; take majority"
        )
    small_panel_reason = consensus.too_small(model.votes)
    if settings.method == "adjusted-mean":  # which needs no such panel
        small_panel_reason = None
    warnings = [warning for warning in model.warnings if warning != small_panel_reason]
    if small_panel_reason is not None and settings.preset is None and settings.method is None:
        method = "majority"
        small_panel_reason += "; agents and items are by majority vote, ties shared"
        if ballots.is_number_scale:
            method = "adjusted-mean"
            small_panel_reason = (
                f"{len(model.votes.label)} labels are too few to learn which labels each person takes for which, but "
                "enough for how lenient each is: agents and items are by the adjusted mean, for which no more labels "
                "are needed"
            )
        small_panel_reason += "; --method stableval takes the model"
    if method == "adjusted-mean":  # what the model warns of is of no use then
        warnings = list(
            consensus.list_vote_warnings(model.votes, "all are taken as equally lenient on average")
        )
    else:
        warnings += notes_on_half_steps(ballots)
    return method, [*warnings, *filter(None, [small_panel_reason])]


def tie_rule(settings: ConsensusSettings) -> Literal["first", "shared"]:
    return "first" if settings.uses_paper_preset else "shared"


def describe_fit(fitted_consensus: FittedConsensus) -> Figures:
    """Return how the model was fitted, the scale, the sizes of the data, and what is known of the items.

    In `counts`, `rows` include the `abstained`, and `repeated` rows count like any other; `unlabelled` items have only
    abstentions. By the adjusted mean, items are in doubt whose `standard_error` is greater than `doubt_above`. `values`
    are empty if the classes have no order.
    """
    item_posteriors = fitted_consensus.item_posteriors
    votes = item_posteriors.votes
    ballots = fitted_consensus.ballots
    counts = {
        "rows": len(votes.item_code_by_row),
        "repeated": votes.repeated_rows,
        "abstained": votes.abstention_count,
        "items": len(votes.items),
        "unlabelled": np.count_nonzero(~votes.has_label),
        "annotators": len(votes.annotators),
        "agents": len(set(ballots.agent or ())),
        "gold": len(ballots.gold),
    }
    threshold = {}
    if isinstance(item_posteriors, AdjustedMeans):
        threshold = {"doubt_above": item_posteriors.doubt_above}
    return {
        "method": fitted_consensus.method,
        **threshold,
        "preset": fitted_consensus.settings.preset or "converged",
        "dimension": ballots.dimension,
        "question": ballots.question,
        "settings": fitted_consensus.model.settings._asdict(),
        "classes": ballots.classes,
        "values": fitted_consensus.values if ballots.has_order else (),
        "counts": counts,
        "agreement": consensus.agreement(votes, min_labels=2),
        "items": describe_items(fitted_consensus),
    }


def describe_items(fitted_consensus: FittedConsensus) -> dict[Any, dict[str, Any]]:
    """Return the figures of each item, by its name.

    Items have the posterior probability of each class, [K], the ambiguity, 1 minus the greatest, and the names of the
    annotators who labelled them, of those `left_out` if any are, and the `spread` of the labels (`spreads`); of classes
    that are numbers also the `mean` of their `labels`, and the `adjusted_mean`, else None. By the adjusted mean, there
    is its `standard_error`, and the posterior has the shares of the two classes around the mean.
    """
    ballots = fitted_consensus.ballots
    item_posteriors = fitted_consensus.item_posteriors
    adjusted = fitted_consensus.adjusted
    votes = item_posteriors.votes
    ambiguity = item_posteriors.ambiguity()
    labels_by_item = votes.counts.sum(axis=1).tolist()
    items: dict[Any, dict[str, Any]] = {}
    for code, (name, labels) in enumerate(zip(votes.items, labels_by_item, strict=True)):
        item = items[name] = {
            "posterior": item_posteriors.posterior[code].tolist(),
            "ambiguity": ambiguity[code],
            "labels": labels,
            "spread": fitted_consensus.spreads[name],
            "mean": None,
            "adjusted_mean": None,
            "annotators": [],
        }
        if labels and adjusted is not None:
            item["mean"] = float(votes.counts[code] @ np.array(ballots.classes)) / labels
            item["adjusted_mean"] = float(adjusted.means[code])
        if str(name) in ballots.left_out:
            item["left_out"] = ballots.left_out[str(name)]
        if adjusted is item_posteriors:
            item["standard_error"] = float(adjusted.standard_errors[code])
    pairs = np.unique(np.stack([votes.item, votes.annotator], axis=1), axis=0)
    for code, annotator in pairs.tolist():
        items[votes.items[code]]["annotators"].append(votes.annotators[annotator])
    return items
