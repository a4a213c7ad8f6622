"""Views of the terms of a reward: their parts, the weights of stakeholders, the rubric graph and votes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jurygraph.decision.decide import NO_MAJORITY_DIAGNOSTIC, SAMPLE_SPREAD_DIAGNOSTIC
from jurygraph.display import format_number, is_filled_in
from jurygraph.explanation.terms import Ballot, ExplainedTerm, ExplainedTrace
from jurygraph.messages import join_names
from jurygraph.schema import ComponentSpec, Trace
from jurygraph.schema.frozen_model import JsonFields, JsonMapping


class StakeholderView(NamedTuple):
    """A stakeholder's terms of the difficulty d, weight w, utility, and share of the full utility that is given up.

    Terms of d are None where the weights do not come from constraints, and `utility`, in [0, 1], where it does not
    apply.
    """

    name: str
    hard: float | None
    soft: float | None
    conflict: float | None
    difficulty: float | None
    weight: float
    utility: float | None

    @property
    def forgone_utility(self) -> float | None:
        return None if self.utility is None else 1.0 - self.utility


class StakeholderWeightsView(NamedTuple):
    """The frozen weights of a term that aggregates utilities (DecompR Eq. 3 to 5).

    `rule` says how utilities become one number, and difficulties weights; `tensions` are sentences.
    """

    rule: str
    stakeholders: Sequence[StakeholderView]
    tensions: Sequence[str]


class CriterionNodeView(NamedTuple):
    """A criterion in a rubric graph: p as judged, and q, what its prerequisites leave of it; None if not applicable.

    The `remark` says why it never helps what depends on it, if it was not judged in all its verdicts.
    """

    name: str
    weight: float
    p: float | None
    q: float | None
    remark: str


class EdgeView(NamedTuple):
    """A prerequisite; `retention` λ is None where an unmet parent leaves nothing."""

    parent: str
    child: str
    retention: float | None


class RubricGraphView(NamedTuple):
    """The rubric graph of a term (GEAR), and how q was inferred."""

    rule: str
    nodes: Sequence[CriterionNodeView]
    edges: Sequence[EdgeView]


class TermView(NamedTuple):
    """A term of a reward: contribution = weight × value.

    `judged` is the value of the judged part alone; the term `is_filled_in` if the failure rule gave it another one.
    `composition`, `remarks` and `votes` are sentences. `diagnostics` are the stored ones, but those on votes and judges
    are of the votes and scores that are shown.
    """

    name: str
    weight: float
    value: float | None
    contribution: float | None
    judged: float | None
    composition: str
    remarks: Sequence[str]
    weights: StakeholderWeightsView | None
    graph: RubricGraphView | None
    votes: Sequence[str]
    diagnostics: Mapping[str, float]

    @property
    def is_filled_in(self) -> bool:
        return is_filled_in(self.judged, self.value)


def build_term_view(explained_trace: ExplainedTrace, term: ExplainedTerm) -> TermView:
    trace = explained_trace.trace
    reward_term = term.term
    remarks = list(term.combiner.describe_inputs(term.params))
    if term.combiner.ranks_contrasts:
        remarks += _describe_contrasts(trace, term)
    return TermView(
        name=reward_term.name,
        weight=reward_term.weight,
        value=reward_term.value,
        contribution=reward_term.contribution,
        judged=trace.reward.components.get(reward_term.name, reward_term.value),
        composition=_describe_term_parts(term),
        remarks=remarks,
        weights=_view_weights(term),
        graph=_build_rubric_graph_view(term) if term.combiner.counts_criteria else None,
        votes=list(_describe_votes(term.majority_votes)),
        diagnostics=_view_diagnostics(term),
    )


def _describe_term_parts(term: ExplainedTerm) -> str:
    """Return the parts of a term, with a dash for one that does not apply and a star at one that was not judged.

    Criteria of unlike weights have them beside their values. It is empty where the combiner computes none.
    """
    if not term.parts:
        return ""
    values = dict.fromkeys(term.inapplicable)
    values.update(term.parts)
    parts = []
    weights = {}
    if term.combiner.counts_criteria:
        weights = {name: use.signed_weight for name, use in term.inputs.items()}
    has_unlike_weights = len({*weights.values()}) > 1
    for name, value in sorted(values.items()):
        mark = "*" if term.is_unjudged_part(name) else ""
        weight = f" (weight {weights[name]:g})" if has_unlike_weights and name in weights else ""
        parts.append(f"{name} {mark}{format_number(value)}{weight}")
    rule = term.combiner.describe_rule(term.params) if term.combiner.counts_criteria else ""
    return f"{term.term.name} consists of {'; '.join(filter(None, (', '.join(parts), rule)))}"


def _view_weights(term: ExplainedTerm) -> StakeholderWeightsView | None:
    spec = term.spec
    if spec is None or not term.combiner.aggregates_utilities:
        return None
    difficulties: Any = spec.params.get("difficulty", {})
    rule = term.combiner.describe_rule(spec.params)
    calibration: Any = spec.params.get("calibration")
    if calibration is not None:
        names = ("gamma", "beta", "temperature")
        gamma, beta, temperature = (f"{calibration[name]:g}" for name in names)
        rule += f"; d = hard + {gamma} soft + {beta} conflict, w = softmax(d / {temperature})"
        rule += "; hard and soft are sums of the restrictiveness of the constraints in the task"
    return StakeholderWeightsView(
        rule=rule,
        stakeholders=list(_view_stakeholders(term, spec, difficulties)),
        tensions=list(_describe_tensions(difficulties)),
    )


def _view_stakeholders(
    term: ExplainedTerm, spec: ComponentSpec, difficulties: JsonMapping
) -> Iterator[StakeholderView]:
    for name, use in spec.inputs.items():
        difficulty = difficulties.get(name, {})
        yield StakeholderView(
            name=name,
            **{term: difficulty.get(term) for term in ("hard", "soft", "conflict", "difficulty")},
            weight=use.input_weight,
            utility=term.parts.get(name),
        )


def _describe_tensions(difficulties: JsonMapping) -> Iterator[str]:
    for name, difficulty in difficulties.items():
        for other, tension in difficulty.get("tensions", {}).items():
            if name < other:  # a tension is stored with both
                why = "; ".join(tension["why"]) or "given by the task"
                strength = format_number(tension["strength"])
                yield f"tension between {name} and {other}: {strength}, {why}"


def _build_rubric_graph_view(term: ExplainedTerm) -> RubricGraphView:
    names = list(term.inputs)
    nodes = [
        CriterionNodeView(
            name=name,
            weight=use.signed_weight,
            p=term.input_mean(name),
            q=term.parts.get(name),
            remark=term.describe_missing_judgement(name),
        )
        for name, use in term.inputs.items()
    ]
    edges = [
        EdgeView(parent=names[parent], child=names[child], retention=retention)
        for parent, child, retention in term.combiner.prerequisites(term.params)
    ]
    return RubricGraphView(rule=term.combiner.describe_rule(term.params), nodes=nodes, edges=edges)


def _describe_contrasts(trace: Trace, term: ExplainedTerm) -> Iterator[str]:
    """Yield how many edited variants of the response score less than it, and a remark on each of the others."""
    edits: JsonFields = {}
    for material in trace.material:
        for variant in material.variants:
            edits[variant.response.id] = variant.edit
    contrasted_response_names = {
        name for verdict in term.verdicts for name in verdict.verdict.responses
    }
    names = sorted(contrasted_response_names & edits.keys())
    misranked_texts = []
    for number, name in enumerate(names, start=1):
        margin = term.diagnostics.get(f"pair {number}")
        if margin is not None and margin <= 0.0:
            edit = edits[name] if isinstance(edits[name], Mapping) else {}
            edit_description = edit.get("says", edit.get("kind", "an edit"))
            misranked_texts.append(f"ranked incorrectly: {name} ({edit_description})")
    if names:
        correct_contrast_count = len(names) - len(misranked_texts)
        yield f"{correct_contrast_count} of {len(names)} contrasts score less than the response"
    yield from misranked_texts


def _describe_votes(ballots: Iterable[Ballot]) -> Iterator[str]:
    """Yield the majority votes of a judge's samples; those that are alike are one."""
    labels = defaultdict(list)
    for ballot in ballots:
        if not ballot.has_judges:
            result = "; no majority" if ballot.is_undecided else ""
            labels[f"{ballot.votes}{result}"].append(ballot.voting_verdicts[0].label)
    for votes, names in labels.items():
        yield f"vote on {join_names(names)}: {votes}"


def _view_diagnostics(term: ExplainedTerm) -> dict[str, float]:
    """Return the diagnostics of a term; what judges differ on is told by judge, and is no spread of samples."""
    diagnostics = dict(term.diagnostics)
    if any(answer.verdict.judge is not None for answer in term.verdicts):
        diagnostics.pop(NO_MAJORITY_DIAGNOSTIC, None)
        diagnostics.pop(SAMPLE_SPREAD_DIAGNOSTIC, None)
    return diagnostics
