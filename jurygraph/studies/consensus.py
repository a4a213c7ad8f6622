"""Consensus of annotators, from their votes (STABLEVAL): the fitted model, and its report."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import (
    AdjustedMeans,
    AgentScore,
    ExpectedAmbiguity,
    ExpectedError,
    ItemPosteriors,
    RefitIntervals,
)
from jurygraph.aggregation.consensus.fitting import (
    CONSENSUS_METHODS,
    PUBLISHED_SEED,
    ConsensusMethod,
)
from jurygraph.aggregation.consensus.model import Votes
from jurygraph.arrays import Ints
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.inference.agreement import (
    correlations_with_others,
    is_surely_nonzero,
    kappa,
    label_table,
    shifts_from_others,
)
from jurygraph.inference.clusters import (
    Estimate,
    cluster_numbers,
    jackknife_interval,
    jackknife_masks,
)
from jurygraph.messages import (
    join_names,
    shorten,
)
from jurygraph.schema.rating import Label, format_label
from jurygraph.sources.label_words import has_words
from jurygraph.studies import symbols
from jurygraph.studies.conclusions import (
    SHIFT_FROM_MIDDLE,
    SHIFT_FROM_OTHERS,
    conclude_forecast,
    conclude_items,
    describe_lead,
    describe_raters,
    side_of_bound,
    without_option,
)
from jurygraph.studies.fitted_consensus import (
    BOOTSTRAP_RESAMPLES,
    FittedConsensus,
    describe_fit,
    tie_rule,
)
from jurygraph.studies.gold_items import compare_on_gold, conclude_gold, hold_out_gold
from jurygraph.studies.report import (
    Columns,
    FigureRows,
    Figures,
    IntervalCell,
    Plot,
    PlotSeries,
    Report,
    ReportSections,
    ReportTable,
    as_interval,
    describe_range,
    format_cell,
    group_by,
    name_rows,
)
from jurygraph.studies.votes import (
    VoteColumns,
    describe_repeats,
    describe_slips,
)
from jurygraph.views.agents import AgentDifference, UnitRewards
from jurygraph.views.agents import rank_agents as rank_agents_by_reward

_TABLE_DIGITS = 3  # as in the tables of the paper
_MAX_ROWS_LISTED = 10
_MAX_ANNOTATORS_LISTED = 30
_MAX_ANNOTATORS_PAIRED = 6
"""The pairs of more are too many to read."""
_MIN_RARE_LABELS = 5
"""Fewer labels of items that are not of the commonest class tell nothing of who guesses: all could be slips."""
_MIN_LABELS = 10
"""Fewer labels tell nothing of who guesses, or is unlike the others."""
_MIN_COPY_PERCENT = 90.0
_COPY_LEVEL = 0.01
"""Two people may have copied who label so many items alike, if that is less likely than this without."""
_MAX_AGENTS_PLOTTED = 25
_MAX_SCALE_CHARACTERS = 400
_CONSENSUS_METHOD_LABELS = {
    "majority": "majority vote",
    "dawid-skene": "Dawid–Skene (hard)",
    "stableval": "posterior expected credit",
    "adjusted-mean": "adjusted mean, without each annotator's leniency",
}
_DOUBT_MEASURES = {"majority": "spread", "adjusted-mean": "standard_error"}
_ANNOTATOR_RATE_NAMES = ("accuracy", "leniency", "strictness")

RowsByName = Mapping[str, Figures]
"""Figures of each item, agent or annotator, by its name."""


class AnnotatorPair(NamedTuple):
    """How many items two annotators both labelled, of how many of these the labels are the same, and Cohen's κ.

    κ is NaN for numbers, which may be near, and where all labels are the same.
    """

    annotator: str
    other: str
    items: int
    percent_alike: float
    kappa: float


def report(
    fitted_consensus: FittedConsensus, advance: ProgressCallback = ignore_progress
) -> Report:
    """Return every figure of a consensus.

    `agents` and `items` are scored by `method`; `annotators`, `prior` [K], `log_likelihood` and `converged` belong to
    the fitted model, whatever the method. `annotator_pairs` are of up to 30 people, who share items (`AnnotatorPair`).
    `intervals` names the source of the agents' intervals: t over items or prompts, without or with the variance of
    refits (if the model scores them); by preset `paper`, percentiles of resamples. `pairs` are the differences of
    agents, whose intervals hold together. `findings` are what the posterior changes against the majority, and
    `further_labels` what more labels of the items in doubt would leave of it (`expected_ambiguity`, `expected_errors`;
    empty without any), and `held_out` how often methods are right on known items that they are not told
    (`hold_out_gold`). `decided_by_one` are the items whose majority depends on a single vote (Proposition 1), and
    `ties` those for which several classes lead. `stability` is under subsets of the annotators, each on a resample of
    the items or prompts, which is left out by preset `paper`. `limits` say what was not measured, and why.

    `advance` is called with 1 after each of the `estimates`.
    """
    ballots = fitted_consensus.ballots
    settings = fitted_consensus.settings
    model = fitted_consensus.model
    seed = settings.seed or 0
    stability = _measure_stability(fitted_consensus, advance)
    refits = None
    if fitted_consensus.no_refits_reason is None:
        refits = consensus.refit_intervals(
            model,
            ballots.agent or ["everybody"] * len(ballots.item),
            values=fitted_consensus.values,
            resamples=settings.resamples,
            seed=seed,
            prompt=ballots.prompt,
            report=advance,
        )
    unit = "items" if ballots.prompt is None else "prompts"
    intervals = f"t over {unit}"
    resample_count = BOOTSTRAP_RESAMPLES  # by t, nothing is drawn
    if settings.uses_paper_preset:
        intervals = f"resampled {unit}"
        resample_count = settings.resamples
    scores: Mapping[Any, AgentScore] = fitted_consensus.scores(
        fitted_consensus.method, resample_count
    )
    if fitted_consensus.method == "stableval" and refits is not None and scores:
        intervals = "t, with refits"
        scores = refits.agents
    pairs = compare_agents(fitted_consensus)
    agent_comparison_rows = _compare_methods(fitted_consensus)
    ambiguity_source = fitted_consensus.item_posteriors
    if fitted_consensus.method == "adjusted-mean":  # whose posterior is not of how sure a class is
        ambiguity_source = model
    annotators = _annotator_figures(fitted_consensus, refits)
    limits = list(_list_limits(fitted_consensus))
    held_out = hold_out_gold(fitted_consensus)
    figures = describe_fit(fitted_consensus) | {
        "bootstrap": settings.resamples,
        "prior": model.prior.tolist(),
        "agents": scores,
        "pairs": pairs,
        "intervals": intervals,
        "annotators": annotators,
        "annotator_pairs": _compare_annotators(fitted_consensus),
        "stability": stability,
        "comparison": agent_comparison_rows,
        "findings": _find_changes(ambiguity_source, agent_comparison_rows),
        "further_labels": _forecast_doubts(fitted_consensus),
        "decided_by_one": fitted_consensus.majority.items_decided_by_one_vote(),
        "ties": {"rule": tie_rule(settings), "items": fitted_consensus.majority.tied_items()},
        "log_likelihood": model.log_likelihood,
        "converged": model.converged,
        "iterations": model.iterations,
        "warnings": fitted_consensus.warnings,
        "limits": limits,
        "held_out": held_out,
    }
    return Report(
        figures,
        _sections(figures, fitted_consensus),
        [*fitted_consensus.warnings, *limits],
        _plots(figures),
        [
            *describe_repeats(ballots),
            *describe_slips(ballots),
            *_conclude_agents(figures, ballots),
            *conclude_annotators(figures),
            *_conclude_copies(figures),
            *([held_out.describe()] if held_out else []),
            *_conclude_sureness(figures, fitted_consensus),
            conclude_items(figures, len(fitted_consensus.doubts)),
            *conclude_forecast(figures),
        ],
        symbol_meanings=symbols.CONSENSUS_SYMBOL_MEANINGS,
    )


def _list_limits(fitted_consensus: FittedConsensus) -> Iterator[str]:
    """Yield what was not measured, and why."""
    no_refits_reason = fitted_consensus.no_refits_reason
    no_stability_reason = fitted_consensus.no_stability_reason
    has_agents = fitted_consensus.ballots.agent is not None
    if no_stability_reason is not None and (has_agents or fitted_consensus.settings.compare):
        yield f"no stability of a ranking: {no_stability_reason}"
    # of adjusted means there is nothing to fit again
    if no_refits_reason is not None and fitted_consensus.method != "adjusted-mean":
        yield f"annotators have no intervals: {no_refits_reason}"
    if fitted_consensus.is_refitting_slow and fitted_consensus.ballots.gold:
        yield "known items are not held out, as fits would take long; --bootstrap 200 makes them"


def _forecast_doubts(
    fitted_consensus: FittedConsensus,
) -> Sequence[ExpectedAmbiguity | ExpectedError]:
    """Return what further labels of the items of high ambiguity, or of those in doubt, are expected to leave of it."""
    if fitted_consensus.method == "adjusted-mean" and fitted_consensus.adjusted is not None:
        return fitted_consensus.adjusted.expected_errors()
    if fitted_consensus.method != "stableval":
        return []
    model = fitted_consensus.model
    ambiguous_items = np.flatnonzero(model.ambiguity() > consensus.HIGH_AMBIGUITY)
    seed = fitted_consensus.settings.seed or 0
    return consensus.expected_ambiguity(model, ambiguous_items, seed=seed)


def _measure_stability(
    fitted_consensus: FittedConsensus, advance: ProgressCallback
) -> dict[ConsensusMethod, Figures] | None:
    ballots = fitted_consensus.ballots
    settings = fitted_consensus.settings
    if fitted_consensus.no_stability_reason is not None or ballots.agent is None:
        return None
    seed = settings.seed
    if seed is None:
        seed = PUBLISHED_SEED if settings.uses_paper_preset else 0
    stability_by_method = consensus.ranking_stability(
        ballots.item,
        ballots.annotator,
        ballots.label,
        ballots.agent,
        subsets=settings.subsets,
        seed=seed,
        with_items=not settings.uses_paper_preset,
        prompt=ballots.prompt or ballots.item_id_in_file,
        preset=settings.preset or "converged",
        settings=fitted_consensus.model.settings,
        classes=ballots.classes,
        values=fitted_consensus.values,
        gold=ballots.gold,
        report=advance,
    )
    return {method: stability._asdict() for method, stability in stability_by_method.items()}


def compare_agents(
    fitted_consensus: FittedConsensus, judged: Mapping[str, float] | None = None
) -> list[AgentDifference]:
    """Return the difference of each two agents' credit, over what both were labelled for, the best first.

    With `judged`, credit is by item what a judge gave instead; other items are left out.
    """
    ballots = fitted_consensus.ballots
    if ballots.agent is None:
        return []
    item_posteriors = fitted_consensus.item_posteriors
    votes = item_posteriors.votes
    scale = fitted_consensus.values
    # equal credit can differ in its last bits
    credit = np.round(item_posteriors.posterior @ np.array(scale), 12).tolist()
    if judged is not None:
        credit = [judged.get(str(item)) for item in votes.items]
    units = ballots.prompt or ballots.item_id_in_file
    rewards = []
    for item, row in zip(*np.unique(votes.item_code_by_row, return_index=True), strict=True):
        if votes.has_label[item] and credit[item] is not None:
            agent = ballots.agent[row]
            rewards.append(UnitRewards(agent, units[row], 1, 1, *[credit[item]] * 3))
    limits = (min(scale), max(scale))
    unit_names = "items answered by both" if len(set(units)) < len(votes.items) else "answers"
    if ballots.prompt is not None:
        unit_names = "groups"
    agents = [row.agent for row in rank_agents_by_reward(rewards, limits)]
    pairs = list(combinations(agents, 2))
    leads = []
    rewards_by_agent = group_by(rewards, attrgetter("agent"))
    for first, second in pairs:
        pair = rewards_by_agent[first] + rewards_by_agent[second]
        leads += [rank_agents_by_reward(pair, limits, unit_names, len(pairs))[0].lead]
    return list(filter(None, leads))


def _conclude_sureness(figures: Figures, fitted_consensus: FittedConsensus) -> Iterator[str]:
    """Yield a warning of probabilities by a model that has too few labels."""
    is_by_model = fitted_consensus.method not in ("majority", "adjusted-mean")
    if is_by_model and consensus.too_small(fitted_consensus.model.votes) is not None:
        mean_probability = 1.0 - figures["findings"]["mean_ambiguity"]
        yield f"probabilities, {mean_probability:.3f} on average, are too sure: the model has too few labels"


def _conclude_agents(figures: Figures, ballots: VoteColumns) -> Iterator[str]:
    """Yield whether the best agent is ahead of the next, and of more than two which pairs surely differ."""
    differences: Sequence[AgentDifference] = figures["pairs"]
    unit = "credit, as the scores are"
    if figures["values"] and has_words(figures["classes"]):
        lowest, *_, highest = zip(figures["classes"], figures["values"], strict=True)
        unit += ": {} is {:g} and {} {:g}".format(*lowest, *highest)
    if figures["values"] == figures["classes"]:
        unit = "units of the labels, such as stars"
    for lead in differences[:1]:
        yield f"{describe_lead(lead)}{_describe_units(lead, ballots)} The difference is in {unit}."
    sure_pairs = [
        f"{pair.first} - {pair.second} {format_cell(pair, _TABLE_DIGITS)}"
        for pair in differences
        if pair.is_better_agent_known
    ]
    if len(differences) > 1:
        yield (
            f"pairs of agents that differ by more than chance, of {len(differences)} whose intervals hold together "
            f"with 95 % (Bonferroni): {join_names(sure_pairs) or 'none'}"
        )


def _describe_units(lead: AgentDifference, ballots: VoteColumns) -> str:
    """Return how many labels a unit has, which more of them would take, and for how many pairs an interval allows."""
    if lead.is_widest or side_of_bound(lead, 0.0) != 0:
        return ""
    label_count = len(ballots.label) - ballots.label.count(None)
    units = set(ballots.prompt or ballots.item_id_in_file)
    text = f" Each has {label_count / len(units):.3g} labels here"
    if lead.pairs > 1:
        text += f", and interval and number allow for all {lead.pairs} pairs"
    return f"{text}."


def _accuracy_cell(person: Figures) -> IntervalCell:
    return IntervalCell(person["accuracy"], *(person["accuracy_interval"] or (None, None)))


_HABIT_WORDS = " (says {label} for {count} of {all} that others call {others})"


def conclude_annotators(figures: Figures) -> Iterator[str]:
    """Yield whom not to trust, and who is lenient or strict, if the labels show it.

    `figures` have the `annotators`, `values` and `classes` of a report.
    """
    people = figures["annotators"]
    yield from conclude_gold(people)
    constant_people = {name: row for name, row in people.items() if row.get("always") is not None}
    if constant_people:
        labels = [
            f"{name} ({format_label(person['always']['label'])}: {person['always']['labels']} of {person['labels']})"
            for name, person in constant_people.items()
        ]
        yield (
            f"Warning: gives nearly every item one label, where others differ: {join_names(labels)}; to leave out: "
            f"{without_option(constant_people)}"
        )
    people = {name: row for name, row in people.items() if name not in constant_people}
    unsure_people = {
        name for name, row in people.items() if row.get("rare", _MIN_RARE_LABELS) < _MIN_RARE_LABELS
    }
    measure, chance = "correlation", 0.0
    if not figures["values"]:
        measure, chance = "accuracy", 1.0 / len(figures["classes"])
    cells = {}
    people_with_few_labels = []
    for name, person in people.items():
        if person["labels"] < _MIN_LABELS:
            people_with_few_labels.append(name)
        # no warning of people who differ from the others, and are right on gold more often
        elif person.get("gold", {}).get("side") != 1:
            cells[name] = person["correlation"] if figures["values"] else _accuracy_cell(person)
    if people_with_few_labels:
        yield (
            f"Of {join_names(people_with_few_labels)} fewer than {_MIN_LABELS} labels tell too little to say who "
            "guesses."
        )
    shifts = {}
    for name, person in people.items():
        subject = name
        if person.get("habit") is not None:
            subject += _HABIT_WORDS.format_map(person["habit"])
        shifts[subject] = person["shift"]
    unit, baseline = "labels", SHIFT_FROM_MIDDLE
    if has_words(figures["classes"]):
        unit, baseline = "credit", SHIFT_FROM_OTHERS
    yield from describe_raters(
        cells, measure, chance, shifts, unit, baseline, unsure_people=unsure_people
    )


def _conclude_copies(figures: Figures) -> Iterator[str]:
    """Yield which two people label nearly all items alike, surely more than either does with anybody else.

    The highest share of either with another person is taken as the chance of a label alike (exact test, Bonferroni over
    the pairs). Who gives hardly another label is left out: neither a copy nor what careful people have in common.
    """
    from scipy import special  # imported lazily: every `study` command would wait for it

    constant_people = {name for name, row in figures["annotators"].items() if row["always"]}
    pairs = [
        pair
        for pair in figures["annotator_pairs"]
        if pair.items >= _MIN_LABELS and constant_people.isdisjoint(pair[:2])
    ]
    for pair in pairs:
        others = [other for other in pairs if other != pair and {*other[:2]} & {*pair[:2]}]
        percent = max((other.percent_alike for other in others), default=100.0)
        count = round(pair.percent_alike * pair.items / 100.0)
        chance = special.bdtrc(count - 1, pair.items, percent / 100.0) * len(pairs)
        if pair.percent_alike >= _MIN_COPY_PERCENT and chance < _COPY_LEVEL:
            yield (
                f"Warning: {pair.annotator} and {pair.other} gave {count} of {pair.items} items the same label, and "
                f"either is like others in {percent:.0f} % at most: a copy, or work in common, unless both are surely "
                f"right (--gold tells); ask them, and leave one out: {without_option([pair.other])}"
            )


def _annotator_figures(
    fitted_consensus: FittedConsensus, refits: RefitIntervals | None
) -> RowsByName:
    """Return the error rates of the annotators, with the 95 % intervals of refits; None without refits.

    Only classes in an order have a highest and a lowest one, which leniency and strictness are about. With one, the
    rank `correlation` with the others' mean tells near labels from far ones, which accuracy does not, and `shift` is
    how much higher the labels surely are: numbers than in the middle of all annotators, were all items the same,
    and the credit of words than the others' (`shifts_from_others`); `habit` shows it (`_find_habit`). Adjusted means
    take out the `offset` of each annotator. `agreement` is the mean share of the others' labels of an item that are the
    same, `confusion` that of `_count_confusions`, `rare` how many labels are of items whose majority is not the
    commonest class, `always` the label of who gives hardly another one, and how often (`Votes.constant_labels`), else
    None, and `gold` how many labels of gold items are right, and whether surely more or less often than the others'
    (`side`, by `compare_on_gold`).
    """
    ballots = fitted_consensus.ballots
    model = fitted_consensus.model
    votes = model.votes
    constant_labels = votes.constant_labels()
    agreements = votes.agreement_by_annotator().tolist()
    majority = fitted_consensus.majority.likeliest_labels()
    is_rare = majority != np.bincount(majority).argmax()
    rare_counts = np.bincount(votes.annotator, is_rare[votes.item], len(votes.annotators))
    gold_counts = model.gold_labels_by_annotator()
    gold_sides = compare_on_gold(gold_counts)
    code_by_name = {str(name): code for code, name in enumerate(model.votes.annotators)}
    annotator = np.array([code_by_name[name] for name in ballots.annotator])
    correlations: list[Estimate | None] = [None] * len(code_by_name)
    shifts = correlations
    if ballots.has_order:
        item = cluster_numbers(ballots.item)
        clusters = cluster_numbers(ballots.prompt or ballots.item_id_in_file)
        credit_by_class = dict(zip(ballots.classes, fitted_consensus.values, strict=True))
        credit = np.array([credit_by_class.get(label, np.nan) for label in ballots.label])
        correlations = correlations_with_others(annotator, item, credit, clusters)
        if fitted_consensus.adjusted is None:
            shifts = shifts_from_others(annotator, item, credit, clusters)
        else:
            clusters_of_labels = clusters[~np.isnan(credit)]
            shifts = _shifts_from_middle(fitted_consensus.adjusted, clusters_of_labels)
    confusions = _count_confusions(votes)
    rows = {}
    for code, (name, quality) in enumerate(model.annotators().items()):
        row = quality._asdict()
        for index, rate in enumerate(_ANNOTATOR_RATE_NAMES):
            interval = refits.annotators[name][index] if refits else (np.nan,)
            row[f"{rate}_interval"] = interval if np.isfinite(interval).all() else None
            if rate != "accuracy" and not ballots.has_order:
                row[rate] = row[f"{rate}_interval"] = None
        row["correlation"] = as_interval(correlations[code])
        row["shift"] = as_interval(shifts[code])
        if fitted_consensus.method == "adjusted-mean" and fitted_consensus.adjusted is not None:
            row["offset"] = round(float(fitted_consensus.adjusted.leniency[code]), 9)
        label, count = constant_labels.get(code, (None, 0))
        row |= {
            "habit": _find_habit(confusions[code], votes.classes, shifts[code]),
            "confusion": confusions[code].tolist(),
            "agreement": agreements[code],
            "rare": int(rare_counts[code]),
        }
        row["always"] = None if label is None else {"label": label, "labels": count}
        if ballots.gold:
            right_count, label_count = gold_counts[code].tolist()
            row["gold"] = {"right": right_count, "labels": label_count, "side": gold_sides[code]}
        rows[str(name)] = row
    return rows


def _compare_annotators(fitted_consensus: FittedConsensus) -> list[AnnotatorPair]:
    """Return each two annotators who share items, of up to 30; the last label counts of who gave an item several."""
    votes = fitted_consensus.model.votes
    ballots = fitted_consensus.ballots
    item_count, annotator_count, class_count = votes.shape
    if annotator_count > _MAX_ANNOTATORS_LISTED:
        return []
    labels = np.zeros((annotator_count, item_count), int)
    labels[votes.annotator, votes.item] = votes.label + 1  # 0 is for none
    labels_by_name = zip(map(str, votes.annotators), labels, strict=True)
    distances = 1.0 - np.eye(class_count)
    pairs = []
    for (name, first), (other, second) in combinations(labels_by_name, 2):
        table = label_table(first, second, class_count + 1)[1:, 1:]
        count = int(table.sum())
        if count:
            percent = 100.0 * np.trace(table) / count
            beyond_chance = math.nan if ballots.is_number_scale else kappa(table, distances)
            pairs.append(AnnotatorPair(name, other, count, percent, beyond_chance))
    return pairs


def _count_confusions(votes: Votes) -> Ints:
    """Return how often each person gives each class to items of which most of the others' labels are each, [A, K, K].

    Items without a majority of the others are left out.
    """
    others_counts = votes.counts[votes.item]
    others_counts[np.arange(len(votes.label)), votes.label] -= 1
    is_commonest = others_counts == others_counts.max(axis=1, keepdims=True)
    is_untied = is_commonest.sum(axis=1) == 1
    codes = np.stack([votes.annotator, others_counts.argmax(axis=1), votes.label])
    class_count = len(votes.classes)
    confusions = np.zeros((len(votes.annotators), class_count, class_count), dtype=np.int64)
    np.add.at(confusions, tuple(codes[:, is_untied]), 1)
    return confusions


def _find_habit(confusion: Ints, classes: Sequence[Any], shift: Estimate | None) -> Figures | None:
    """Return the commonest way in which a person's labels differ from the others', in the direction of a shift.

    The person gives the `label` to `count` items of which most of the others' labels are `others`; `all` is how many of
    these items the person labels. None without any, or without a shift.
    """
    if shift is None:
        return None
    shifted_labels = np.triu(confusion, 1) if shift.value > 0.0 else np.tril(confusion, -1)
    if not shifted_labels.any():
        return None
    majority_code, label_code = divmod(int(shifted_labels.argmax()), len(classes))
    return {
        "others": classes[majority_code],
        "label": classes[label_code],
        "count": int(confusion[majority_code, label_code]),
        "all": int(confusion[majority_code].sum()),
    }


def _shifts_from_middle(adjusted: AdjustedMeans, clusters: Ints) -> list[Estimate | None]:
    """Return how much higher each annotator's labels surely are than in the middle of all annotators, all else equal.

    Leniency is fitted again without each cluster of items; `clusters` [L] are those of the labels. P-values allow for
    the number of annotators.
    """
    votes = adjusted.votes
    panels = map(votes.select_labels, filter(np.any, jackknife_masks(cluster_numbers(clusters))))
    fits = [consensus.fit_leniency(panel).leniency for panel in panels]
    leniencies = np.array([adjusted.leniency, *fits])
    middle = np.median(leniencies[:, votes.labels_by_annotator > 0], axis=1, keepdims=True)
    distances = leniencies - middle
    annotator_clusters = np.unique(np.stack([votes.annotator, clusters]), axis=1)
    # one without labels is taken as with one, of whom nothing is sure either
    cluster_counts = np.bincount(annotator_clusters[0], minlength=len(leniencies[0])).clip(1)
    shifts = map(jackknife_interval, distances[0].tolist(), distances[1:].T, cluster_counts)
    return [shift if is_surely_nonzero(shift, len(distances[0])) else None for shift in shifts]


def _compare_methods(fitted_consensus: FittedConsensus) -> RowsByName:
    """Return each agent's score by each method, the change by the posterior, and its rank by each method."""
    scores = {method: fitted_consensus.scores(method) for method in CONSENSUS_METHODS}
    ranks = {method: rank_agents(scores_by_agent) for method, scores_by_agent in scores.items()}
    rows = {}
    for name, agent in scores["stableval"].items():
        majority = scores["majority"][name].score
        rows[name] = {
            "majority": majority,
            "dawid_skene": scores["dawid-skene"][name].score,
            "stableval": agent.score,
            "change": agent.score - majority,
            "items": agent.items,
            "ranks": {method: scores_by_agent[name] for method, scores_by_agent in ranks.items()},
        }
    return rows


def rank_agents(scores: Mapping[str, AgentScore]) -> dict[str, float]:
    """Return the rank of each agent, 1 for the greatest score; ties share the mean of their ranks."""
    from scipy.stats import rankdata

    # ties can differ in their last bits
    ranks = rankdata([round(-agent.score, 12) for agent in scores.values()])
    return dict(zip(scores, ranks.tolist(), strict=True))


def _find_changes(item_posteriors: ItemPosteriors, comparison: RowsByName) -> Figures:
    """Return what the posterior changes against the majority, and the ambiguity of items (Tables 12, 17 and 29).

    The ambiguity is by the method that scores items, as in the table of items. The correlation is of the agents' scores
    by the two; None unless each has two different ones.
    """
    agents = comparison.values()
    scores = np.array([[row["majority"], row["stableval"]] for row in agents])
    # equal scores can differ in their last bits
    has_differing_scores = len(agents) > 1 and np.ptp(scores, axis=0).min() > 1e-12
    is_rank_changed = [row["ranks"]["majority"] != row["ranks"]["stableval"] for row in agents]
    ambiguity = item_posteriors.ambiguity()
    is_highly_ambiguous = ambiguity > consensus.HIGH_AMBIGUITY
    return {
        "pearson_correlation": np.corrcoef(scores.T)[0, 1] if has_differing_scores else None,
        "largest_change": max((abs(row["change"]) for row in agents), default=None),
        "rank_changes": sum(is_rank_changed),
        "mean_ambiguity": ambiguity.mean(),
        "ambiguous_items": is_highly_ambiguous.sum(),
        "ambiguous_share": is_highly_ambiguous.mean(),
    }


def _sections(figures: Figures, fitted_consensus: FittedConsensus) -> ReportSections:
    """Yield the sizes of the data, the scale, and the tables, those that compare methods only if they are wanted."""
    settings = fitted_consensus.settings
    counts = figures["counts"]
    sizes = {
        "labels": counts["rows"] - counts["abstained"],
        "items": counts["items"],
        "annotators": counts["annotators"],
        "gold items": counts["gold"],
    }
    yield ", ".join(f"{name}: {count}" for name, count in sizes.items() if count)
    yield from _class_and_credit_lines(figures)
    method = figures["method"]
    fit_text = f"method {method}"
    if method != "adjusted-mean":  # which has nothing to fit by a preset
        fit_text += f", preset {figures['preset']}"
        for name, value in settings.fit.items():
            fit_text += "" if value is None else f", {name} {value:g}"
    yield f"scores by {_CONSENSUS_METHOD_LABELS[method]} ({fit_text})"
    rows = [[name, _score_cell(agent), agent.items] for name, agent in _rank_by_score(figures)]
    score_title = f"score (95 %, {figures['intervals']})"
    yield ReportTable(("agent", score_title, "items"), rows, digits=_TABLE_DIGITS)
    pairs = [[pair.first, pair.second, pair, pair.certainty] for pair in figures["pairs"]]
    if len(pairs) > 1:
        yield ReportTable(
            ("agent", "other", "ahead by (95 %, Bonferroni)", "certainty"),
            pairs,
            left=2,
            digits=_TABLE_DIGITS,
            most=_MAX_ROWS_LISTED,
        )
    if settings.compare:
        yield _comparison_table(figures["comparison"])
        if figures["agents"]:
            findings = [
                [name.replace("_", " "), value] for name, value in figures["findings"].items()
            ]
            yield ReportTable(("posterior (PEC) against majority (MV)", ""), findings)
        if figures["stability"] is not None:
            yield _stability_table(figures)
    yield from _annotator_sections(figures, fitted_consensus.shows_rates)
    if method in ("majority", "adjusted-mean"):
        yield from _doubtful_item_sections(figures, fitted_consensus)
    else:
        yield _ambiguity_table(figures)
    forecasts = figures["further_labels"]
    header: tuple[str, ...] = (
        "further labels of each ambiguous item",
        "expected ambiguity",
        "expected such items",
    )
    if method == "adjusted-mean":
        header = ("further labels of each item in doubt", "expected standard error")
    yield ReportTable(header, forecasts, digits=_TABLE_DIGITS)


def _class_and_credit_lines(figures: Figures) -> Iterator[str]:
    """Yield the classes, with the credit of each if they have an order."""
    subject, classes = "classes", list(map(format_label, figures["classes"]))
    if figures["values"]:
        subject = "classes and credit"
        named_credits = zip(classes, figures["values"], strict=True)
        classes = [f"{name} ({value:g})" for name, value in named_credits]
    yield shorten(f"{subject}: {', '.join(classes)}", _MAX_SCALE_CHARACTERS)
    if not figures["values"]:
        yield (
            "order does not matter for labels, accuracy and doubt; --classes LOWEST,…,HIGHEST says which is higher, "
            "for credit, leniency and strictness"
        )


def _rank_by_score(figures: Figures) -> list[tuple[str, AgentScore]]:
    return sorted(figures["agents"].items(), key=lambda item: (-item[1].score, item[0]))


def _score_cell(agent: AgentScore) -> IntervalCell:
    return IntervalCell(agent.score, agent.low, agent.high)


def _sort_descending(rows: RowsByName, column: str) -> list[Figures]:
    """Return the rows, each with its name, with the greatest value of a column first; equal ones by name."""
    return sorted(name_rows(rows), key=lambda row: (-row[column], row["name"]))


def _comparison_table(comparison: RowsByName) -> ReportTable:
    rows = []
    for row in _sort_descending(comparison, "stableval"):
        change = round(row["change"], _TABLE_DIGITS) + 0.0  # which makes -0.0 0.0
        ranks = ", ".join(f"{rank:g}" for rank in row["ranks"].values())
        change_text = f"{change:+.{_TABLE_DIGITS}f}"
        rows.append({**row, "change_text": change_text, "ranks_text": ranks})
    columns: Columns = {
        "agent": "name",
        "MV": "majority",
        "DS": "dawid_skene",
        "PEC": "stableval",
        "Δ(PEC-MV)": "change_text",
        "items": "items",
        "ranks MV, DS, PEC": "ranks_text",
    }
    return ReportTable.of(columns, rows, digits=_TABLE_DIGITS)


def _annotator_sections(figures: Figures, shows_rates: bool) -> ReportSections:
    """Yield the annotators, who is least like the others first, and what their rates by the model are, if shown."""
    rows = [
        {**person, "name": name, "accuracy": _accuracy_cell(person)}
        for name, person in figures["annotators"].items()
    ]
    is_by_mean = figures["method"] == "adjusted-mean"
    measure = "accuracy"
    columns: dict[str, Any] = {"annotator": "name"}
    if shows_rates:
        columns["accuracy (95 %, refits)"] = measure
    if figures["values"]:
        measure = "correlation"
        columns["rank correlation with the others (95 %)"] = measure
        columns |= {rate: rate for rate in _ANNOTATOR_RATE_NAMES[1:] if shows_rates}
    if is_by_mean:
        columns["offset"] = "offset"
    elif not shows_rates:
        columns["share of the others' labels that are the same"] = "agreement"
    if figures["counts"]["gold"]:
        columns["right on gold"] = lambda row: "{right} of {labels}".format_map(row["gold"])
    columns["labels"] = "labels"
    # who is least like the others is what a reader looks for
    rows.sort(key=lambda row: (row[measure].value if row[measure] else -math.inf, row["name"]))
    yield ReportTable.of(columns, rows, digits=_TABLE_DIGITS, most=_MAX_ANNOTATORS_LISTED)
    if is_by_mean:
        yield "offset: how much higher the labels are, all else equal; adjusted means leave it out"
    if shows_rates:
        lowest, *_, highest = map(format_label, figures["classes"])
        yield "accuracy: share of right labels by the model, the mean over the classes"
        if figures["values"]:
            yield f"leniency, strictness: share of {highest}, of {lowest} given, were all classes as frequent"
    if len(rows) <= _MAX_ANNOTATORS_PAIRED:
        yield _pair_table(figures["annotator_pairs"])
        confusions = list_confusions(figures)
        yield ReportTable(
            [*confusions[0]],
            [[*row.values()] for row in confusions],
            left=2,
            most=_MAX_ANNOTATORS_LISTED,
        )


def _pair_table(pairs: Sequence[AnnotatorPair]) -> ReportTable:
    """Return how often each two annotators agree; without κ where no pair has it, as on a scale of numbers."""
    header = ["annotator", "other", "both labelled", "alike, %", "Cohen's κ"]
    if all(math.isnan(pair.kappa) for pair in pairs):
        header.pop()
    return ReportTable(header, [pair[: len(header)] for pair in pairs], left=2, digits=2)


def list_confusions(figures: Figures) -> list[dict[str, str | int]]:
    """Return how often each annotator says each class where most others say the same one."""
    classes = list(map(format_label, figures["classes"]))
    rows = []
    for name, person in figures["annotators"].items():
        for label, counts in zip(classes, person["confusion"], strict=True):
            said = {f"says {says}": count for says, count in zip(classes, counts, strict=True)}
            rows.append({"annotator": name, "most others say": label, **said})
    return rows


def name_likeliest_classes(classes: Sequence[Label], posterior: Sequence[float]) -> str:
    """Return the likeliest class of an item, or all of equal probability."""
    greatest = max(posterior)
    shares = zip(classes, posterior, strict=True)
    return " or ".join(format_label(label) for label, share in shares if share == greatest)


def _item_table(columns: Columns, items: FigureRows, classes: Sequence[Label]) -> ReportTable:
    """Return the table of some items, also with the likeliest classes, and the means if classes are numbers."""
    means = {} if has_words(classes) else {"adjusted mean": "adjusted_mean"}
    columns = {
        **columns,
        "class": lambda item: name_likeliest_classes(classes, item["posterior"]),
        **means,
    }
    return ReportTable.of(columns, items, digits=_TABLE_DIGITS, most=_MAX_ROWS_LISTED)


def _doubtful_item_sections(figures: Figures, fitted_consensus: FittedConsensus) -> ReportSections:
    """Yield the items in doubt, in the order in which `assign --ambiguous` selects them, and why they are."""
    method = figures["method"]
    items = figures["items"]
    doubts = fitted_consensus.doubts.items()
    rows = [{"name": name, "doubt": doubt, **items[name]} for name, doubt in doubts]
    rows.sort(key=lambda row: key_of_doubt(method, row))
    columns: Columns = {"items in doubt": "name", "doubt": "doubt", "spread of labels": "spread"}
    if method == "adjusted-mean":
        columns = {"items in doubt": "name", "labels": "labels", "standard error": "standard_error"}
    yield _item_table(columns, rows, figures["classes"])


def key_of_doubt(method: ConsensusMethod, item: Figures) -> tuple[float, ...]:
    """Return the key by which items with the most doubt by a method are first; of a majority, of equal ones ties."""
    measure = _DOUBT_MEASURES.get(method, "ambiguity")
    return -item[measure], -item["ambiguity"], item["labels"]


def _ambiguity_table(figures: Figures) -> ReportTable:
    columns: Columns = {
        "most ambiguous items": "name",
        "ambiguity": "ambiguity",
        "posterior": lambda item: max(item["posterior"]),
    }
    items = _sort_descending(figures["items"], "ambiguity")
    return _item_table(columns, [item for item in items if item["ambiguity"]], figures["classes"])


def _stability_table(figures: Figures) -> ReportTable:
    stability = figures["stability"]
    rows = [{**row, "name": _CONSENSUS_METHOD_LABELS[method]} for method, row in stability.items()]
    draws_text = f"{stability['stableval']['subsets']} subsets"
    if figures["preset"] != "paper":
        draws_text += ", items drawn too"
    columns = {
        f"stability ({draws_text})": "name",
        "mean τ_b": "tau_b",
        "mean rank sd": "rank_sd",
        "mean rank range": "rank_range",
        "mean score shift": "score_shift",
    }
    return ReportTable.of(columns, rows, digits=_TABLE_DIGITS)


def _plots(figures: Figures) -> Iterator[Plot]:
    """Return the agents with their intervals."""
    ranked_agents = _rank_by_score(figures)
    best = ranked_agents[:_MAX_AGENTS_PLOTTED]
    if best:
        scores = {name: _score_cell(agent) for name, agent in best}
        title = describe_range(f"The mean credit of agents, by {figures['method']},", scores)
        if len(best) < len(ranked_agents):
            title += f" (the first {len(best)} of {len(ranked_agents)})"
        series = PlotSeries.from_estimates_with_intervals("score", scores)
        y_label = f"mean credit; 95 %, {figures['intervals']}"
        yield Plot(title, "points", [series], y_label=y_label)
