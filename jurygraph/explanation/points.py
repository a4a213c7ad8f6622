"""Points of a reward: what every term and each of its parts gained, and lost against its best value.

A penalty is best at 0.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import fsum, isclose, prod
from typing import NamedTuple

from jurygraph.display import format_line
from jurygraph.explanation.terms import ExplainedTerm, ExplainedVerdict, Leaf, Share
from jurygraph.messages import format_plain, shorten
from jurygraph.schema import FrozenModel
from jurygraph.schema.frozen_model import Number

_LEAST = 0.5e-4
"""Points below this are printed as 0."""
_P_MET = "P(met)"
"""How `native` begins where the score is the probability that a criterion is met."""
_MAX_REASON = 300
_MAX_QUOTE = 120
_MOST_REASONS = 3


class PointsLine(FrozenModel):
    """A summand of a reward or of a component: points = weight × shares × value, once for each of `names`.

    A share is a weight and the total that it is divided by. `lost` are the points up to the best value: 1, or 0 for a
    penalty, whose signed weight is negative, or the value itself if it is better than that. `native` is the judge's own
    value on its scale; if `met` is set, it is the judge's answer, and the value its P(met). `note` says how the value
    was computed, and `reason` why it is not the best.
    """

    component: str
    names: tuple[str, ...]
    points: Number
    lost: Number
    value: Number
    weight: Number
    shares: tuple[Share, ...] = ()
    native: str | None = None
    met: bool | None = None
    note: str = ""
    reason: str = ""
    parts: tuple["PointsLine", ...] = ()

    @property
    def is_penalty(self) -> bool:
        """Return True if a higher value means less reward."""
        return self.weight * prod(weight for weight, _ in self.shares) < 0

    @property
    def has_loss(self) -> bool:
        """Return True if the points that were lost are printed as more than 0."""
        return self.lost >= _LEAST


class Points(NamedTuple):
    """The lines of a reward, those that lost most first, and their totals: best - lost = total."""

    lines: tuple[PointsLine, ...]
    best: float
    total: float

    def __repr__(self) -> str:
        return format_line("Points", self._asdict().items())


def count_points(terms: Iterable[ExplainedTerm], kappas: Mapping[str, float]) -> Points:
    """Return a line for every term that counts; `kappas` are the κ of rubrics, by component, as far as known."""
    counted = [one for one in terms if one.term.contribution is not None and one.term.weight]
    lines = [_term_line(one, kappas.get(one.term.name)) for one in counted]
    total = sum(line.points for line in lines)  # in the order of the decision, as the reward itself
    best = sum(line.points + line.lost for line in lines)
    return Points(tuple(sorted(lines, key=_by_cost)), best, total)


def _by_cost(line: PointsLine) -> tuple[float, float, Sequence[str]]:
    """Return the sort key of a line; what is printed alike is ordered by name."""
    return -round(line.lost, 4), -round(line.points, 4), line.names


def _term_line(one: ExplainedTerm, kappa: float | None) -> PointsLine:
    term = one.term
    leaves = one.leaves
    gained = term.contribution or 0.0
    lost = max(term.weight, 0.0, gained) - gained
    has_loss = lost >= _LEAST
    only = leaves[0] if len(leaves) == 1 else None
    verdicts = one.verdicts if only is None else only.verdicts
    notes = [] if one.is_judged else ["not judged"]
    notes += [] if leaves else list(_rule_notes(one))
    notes += [note for note in [only and _leaf_note(only)] if note]
    rule = one.combiner.describe_rule(one.params) if one.combiner.counts_criteria else ""
    if rule:
        notes.append(rule if kappa is None else f"κ {format_plain(kappa)}, {rule}")
    return PointsLine(
        component=term.name,
        names=(term.name,),
        points=gained,
        lost=lost,
        value=term.value or 0.0,
        weight=term.weight,
        shares=() if only is None else tuple(share for share in only.shares if share != (1.0, 1.0)),
        native=_native(only),
        met=_met(only) if has_loss else None,
        note="; ".join(notes),
        reason=describe_losses(verdicts) if has_loss and one.is_judged and (only or not leaves) else "",
        parts=() if only else tuple(_part_lines(one, leaves)),
    )


def _part_lines(one: ExplainedTerm, leaves: Sequence[Leaf]) -> list[PointsLine]:
    """Return a line for each part of a component; parts that are alike in everything but their names share one."""
    weight = one.term.weight
    groups: dict[tuple[object, ...], list[PointsLine]] = {}
    for leaf, name in zip(leaves, _leaf_names(leaves), strict=True):
        own = weight * leaf.share * leaf.value
        missed = max(weight * leaf.share, 0.0) - own
        is_judged = all(one.effect not in ("unjudged", "discarded") for one in leaf.verdicts)
        is_best = is_judged and missed < 1e-9  # alike, whatever their scales and reasons are
        line = PointsLine(
            component=one.term.name,
            names=(name,),
            points=own,
            lost=missed,
            value=leaf.value,
            weight=weight,
            shares=leaf.shares,
            native=None if is_best else _native(leaf),
            met=None if is_best else _met(leaf),
            note=leaf.kind and f"{leaf.kind} constraint" if is_best else _leaf_note(leaf),
            reason="" if is_best else describe_losses(leaf.verdicts),
        )
        groups.setdefault((line.value, line.shares, line.native, line.met, line.note, line.reason), []).append(line)
    return sorted(map(_merge, groups.values()), key=_by_cost)


def _merge(lines: Sequence[PointsLine]) -> PointsLine:
    """Return lines that are alike as one."""
    names = tuple(sorted(line.names[0] for line in lines))
    sums = {"points": fsum(line.points for line in lines), "lost": fsum(line.lost for line in lines)}
    return lines[0].model_copy(update={"names": names, **sums})


def _leaf_names(leaves: Sequence[Leaf]) -> list[str]:
    """Return the name of each leaf's only question, with its evaluator if another has the same; or of its input."""
    labels = [{one.label for one in leaf.verdicts} for leaf in leaves]
    names = [leaf.name if len(found) != 1 else min(found) for leaf, found in zip(leaves, labels, strict=True)]
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name} ({leaf.verdicts[0].verdict.evaluator})"
        for name, leaf in zip(names, leaves, strict=True)
    ]


def _native(leaf: Leaf | None) -> str | None:
    """Return the judge's own value on its scale, if there is one and it is the value of the leaf."""
    return None if leaf is None or not _has_own_value(leaf) else leaf.verdicts[0].native


def _has_own_value(leaf: Leaf) -> bool:
    """Return whether a leaf has the value of its only verdict; a discarded one has no part in it, even if equal."""
    one = leaf.verdicts[0] if len(leaf.verdicts) == 1 else None
    return one is not None and one.effect != "discarded" and leaf.value == one.score


def _met(leaf: Leaf | None) -> bool | None:
    """Return the judge's answer if the value of the leaf is its probability."""
    if leaf is None or not _has_own_value(leaf):
        return None
    verdict = leaf.verdicts[0].verdict
    return verdict.met if str(verdict.native).startswith(_P_MET) else None


def _leaf_note(leaf: Leaf) -> str:
    """Describe what limits a part's value: the prerequisites of a criterion, or the cap of a utility."""
    if leaf.cap is not None:
        scores = [one.score or 0.0 for one in leaf.verdicts]
        hard = (
            f"{one.verdict.subject} {format_plain(score)}" for one, score in zip(leaf.verdicts, scores, strict=True)
        )
        mean = format_plain(sum(scores) / len(scores))
        rest = [f"{one.label} {format_plain(one.score)}" for one in leaf.others if one.effect == "deduction"]
        also = f"; also below its best: {', '.join(rest)}" if rest else ""
        return f"at most {format_plain(leaf.cap)} × {mean}, the mean of its hard constraints: {', '.join(hard)}{also}"
    if leaf.own_value is None:
        return f"{leaf.kind} constraint" if leaf.kind else ""
    return _describe_prerequisites(leaf, leaf.own_value)


def _describe_prerequisites(leaf: Leaf, own_value: float) -> str:
    """Describe how prerequisites reduced the own value of a criterion: by a factor each, or by one together."""
    value = format_plain(leaf.value)
    own = format_plain(own_value)
    is_gain = leaf.share > 0  # a prerequisite without a value counts as unmet for a gain, and as met for a penalty
    shown = []
    factors = []
    for name, (parent, kept) in leaf.prerequisites.items():
        shown.append(f"{name}, {parent}" if isinstance(parent, str) else f"{name} at {format_plain(parent)}")
        held = (0.0 if is_gain else 1.0) if isinstance(parent, str) else parent
        factors.append(held + (1.0 - held) * (kept or 0.0))
    is_product = isclose(own_value * prod(factors), leaf.value, abs_tol=1e-9)
    retention = [kept for _, kept in leaf.prerequisites.values() if kept is not None]
    if len(retention) < len(shown) or (len(shown) == 1 and not is_product):
        return f"counts {value} of its {own}, because it depends on {' and '.join(shown)}"
    shown = [f"{one}, λ {format_plain(kept)}" for one, kept in zip(shown, retention, strict=True)]
    product = " × ".join(f"{format_plain(factor)} ({one})" for factor, one in zip(factors, shown, strict=True))
    if not is_product:  # prerequisites of their own that they share make them hold together
        product = f"{format_plain(leaf.value / own_value)} (together: {'; '.join(shown)})"
    native = leaf.verdicts[0].native if len(leaf.verdicts) == 1 else None
    return f"{value} = {own}{f' ({native})' if native else ''} × {product}"


def _rule_notes(one: ExplainedTerm) -> Iterator[str]:
    """Describe how a component that is no weighted mean follows from its parts."""
    spec = one.spec
    combiner = one.combiner
    if spec is None or not one.parts:
        return
    weights = {name: one.diagnostics.get(f"weight of {name}") for name in one.parts}
    has_weights = combiner.aggregates_utilities and not combiner.is_product
    if has_weights:
        own = {name: spec.inputs[name].input_weight for name in one.parts}
        total = sum(own.values())
        weights = {name: weight / total for name, weight in own.items()}
    shown = []
    for name, value in one.parts.items():
        remarks = [f"weight {format_plain(weights[name])}"] if weights[name] is not None else []
        remarks += ["not judged"] if one.is_unjudged_part(name) else []
        shown.append(f"{name} {format_plain(value)}" + (f" ({', '.join(remarks)})" if remarks else ""))
    yield f"{' × ' if combiner.is_product else ', '}".join(shown)
    if one.inapplicable:
        yield f"{', '.join(one.inapplicable)} not applicable"
    if has_weights:
        yield combiner.describe_rule(one.params)
    if one.is_judged:
        yield from combiner.describe_value(one.params, one.diagnostics, one.is_filled_in)


def describe_losses(verdicts: Sequence[ExplainedVerdict]) -> str:
    """Return why these verdicts are not at their best, each different reason once, with its count if there are more."""
    several = len({one.label for one in verdicts}) > 1
    labels: dict[str, list[str]] = {}
    for one in verdicts:
        if text := _describe_loss(one):
            labels.setdefault(text, []).append(one.label)
    shown = []
    for text, found in labels.items():
        names = dict.fromkeys(found)
        owners = f"{', '.join(names)}: " if several else ""
        times = f", {len(found)} times" if len(found) > len(names) else ""
        shown.append(f"{owners}{text}{times}")
    more = [f"and {len(shown) - _MOST_REASONS} more"] if len(shown) > _MOST_REASONS else []
    return "; ".join([*shown[:_MOST_REASONS], *more])


def _describe_loss(one: ExplainedVerdict) -> str:
    if one.effect == "gated":
        return f"stopped by {one.verdict.gated_by}"
    if one.effect in ("unjudged", "discarded"):
        return "not judged" if one.effect == "unjudged" else "discarded"
    if one.effect != "deduction":
        return ""
    reason = shorten(one.verdict.reason.rstrip(" ."), _MAX_REASON)
    true = [shorten(e.quote, _MAX_QUOTE) for e in one.verdict.evidence if e.verified or e.source != "response"]
    new = [quote for quote in true[:3] if quote not in reason]
    link = ", as in " if len(new) == len(true[:3]) else "; also: "  # a reason that quotes is about its own quotation
    return link.join(filter(None, (reason, ", ".join(f"“{quote}”" for quote in new))))
