"""Conclusions of studies in words: may I trust this judge, how sure is that, and what would make it surer?

Every sentence is computed from the figures by the thresholds below, and claims no more than an interval does: what lies
on both sides of a threshold cannot be told, and the sentence says how much more would tell, if the value is true and
the width falls with the root of the number.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter

from jurygraph.aggregation.consensus import DOUBTFUL_ERROR_SHARE, HIGH_AMBIGUITY
from jurygraph.display import format_interval
from jurygraph.inference.clusters import (
    Estimate,
    needed_count_for_difference,
    needed_count_without_misses,
)
from jurygraph.messages import format_count, join_names, shell_quote
from jurygraph.studies.alternative_annotator import (
    MIN_PASSING_WIN_RATE,
    MIN_SHARED_ITEMS_BY_PERSON,
    SIGNIFICANCE_LEVEL,
    AlternativeAnnotator,
    may_be_guessing,
)
from jurygraph.studies.report import (
    FigureRows,
    Figures,
    IntervalCell,
    as_interval,
    format_cell,
    group_by,
    number_of_cell,
)
from jurygraph.views.agents import AgentDifference

GOOD_AGREEMENT_THRESHOLD = 0.6
"""κ or a rank correlation that counts as good; "substantial" for Landis & Koch (1977)."""
MIN_ALPHA_FOR_TENTATIVE_CONCLUSIONS = 0.667
"""Below this alpha, not even tentative conclusions are drawn (Krippendorff 2004, 11.4.2)."""
RELIABLE_CORRELATION = 0.8
"""Correlation of repeated values that counts as reliable."""
MAX_UNPREDICTED_SHARE = 0.1
"""Share of the ratings that a judge may leave unpredicted before it is said."""
_MAX_LOST_DISTANCE = 0.05
"""Mean distance from people that a part of a jury may lose: of a bad judge, few labels show nothing surely."""
_MIN_SHARED_RATINGS = 30
"""Fewer ratings that two judges predict, or less than half of all, show nothing of the others."""
SHIFT_FROM_MIDDLE = "than in the middle of all people, were all items the same, by"
SHIFT_FROM_OTHERS = "than the others' of the same items, on average by"
NO_INTERVAL_OF_EQUALS = "without an interval, as nothing varies"
MAX_SAMPLE_FACTOR = 100
"""How many times as much as there is may be proposed; beyond, more would hardly tell."""
_MAX_LABELLING_FACTOR = 10
"""Labels that nobody will give: an agreement for which it takes more is about at the bar."""


def side_of_bound(cell: object, bound: float) -> int | None:
    """Return 1 or -1 if an interval lies above or below the bound, 0 on both sides, None if there is none."""
    estimate = as_interval(cell)
    if estimate is None or estimate.low is None or estimate.high is None:
        return None
    return (estimate.low > bound) - (estimate.high < bound)


def describe_needed_count(cell: object, bound: float, count: int, noun: str, tests: int = 1) -> str:
    """Return how many more of `count` would move the bound out of an interval with power 0.8, as a sentence.

    The interval is one of as many as there are `tests`, which hold together. The sentence begins with a space, and is
    empty where the value is the bound, or the interval is on one side of it.
    """
    additional_count = _additional_count(cell, bound, count, tests)
    if additional_count is None:
        return ""
    if additional_count == math.inf:
        return (
            f" More {noun} would hardly tell: it would take over {MAX_SAMPLE_FACTOR} times as many."
        )
    estimate = as_interval(cell)
    if estimate and estimate.value == estimate.high:
        return f" About {additional_count:,.0f} more would tell, if all are like these {noun}."
    others = "; more items of the same ones would not" if noun == "reviewers" else ""
    return f" About {additional_count:,.0f} more {noun} like these would tell with a chance of 80%{others}."


def _additional_count(cell: object, bound: float, count: int, tests: int) -> float | None:
    """Return what `describe_needed_count` says, to two digits; None if nothing, infinity for too many to propose."""
    estimate = as_interval(cell)
    if estimate is None or side_of_bound(cell, bound) != 0:
        return None
    value, low, high = (end or 0.0 for end in estimate[:3])
    # at the bound, or cut off on both sides at all that is possible
    if bound in (value, (low + high) / 2.0):
        return None
    half_width = value - low if value > bound else high - value
    arguments = (abs(value - bound), half_width, count, MAX_SAMPLE_FACTOR * count)
    if value == high:  # of full agreement, whose interval narrows with the number, and not its root
        needed_count = needed_count_without_misses(*arguments)
    else:
        needed_count = needed_count_for_difference(*arguments, tests)
    return math.inf if needed_count is None else float(f"{needed_count - count:.2g}")


def _needed_count_clause(cell: object, bound: float, count: int, noun: str) -> str:
    """Return what `describe_needed_count` says as the end of a sentence, so that it is clear of what it is."""
    text = describe_needed_count(cell, bound, count, noun).strip(" .")
    return f"; {text[0].lower()}{text[1:]}" if text else ""


def describe_lead(lead: AgentDifference) -> str:
    """Return who is ahead, and if that may be chance, how many more tasks or items like these would tell."""
    if lead.is_widest:
        return lead.sentence
    units = lead.units if lead.is_paired else f"{lead.units} of each"
    return f"{lead.sentence}{describe_needed_count(lead, 0.0, lead.count, units, lead.pairs)}"


def describe_agreement(
    subject: str, measure_symbol: str, cell: object, good_threshold: float, count: int, noun: str
) -> str:
    """Return whether agreement is more than chance, and whether it is good."""
    side = side_of_bound(cell, 0.0)
    if side is None:
        relations = {1.0: "agrees with people fully", -1.0: "says the opposite of people"}
        if relation := relations.get(round(number_of_cell(cell) or 0.0, 9)):
            return (
                f"{subject} {relation}, as far as {count} {noun} show: {measure_symbol} {_cell_text(cell)}, "
                f"{NO_INTERVAL_OF_EQUALS}."
            )
        return f"{subject}: how far it agrees cannot be told, because {count} {noun} give {measure_symbol} no interval."
    detail = f"{measure_symbol} {_cell_text(cell)}, {count} {noun}"
    if side < 0:
        return f"{subject} is further from people than guessing would be: {detail}."
    if side == 0:
        return (
            f"{subject} may be guessing: {measure_symbol} {_cell_text(cell)} of {count} {noun}, whose interval "
            f"contains 0{_needed_count_clause(cell, 0.0, count, noun)}."
        )
    side_of_threshold = side_of_bound(cell, good_threshold)
    if side_of_threshold == 1:
        return f"{subject} agrees with people well: {detail}."
    better_than_chance_text = f"{subject} agrees with people more than guessing would"
    if side_of_threshold == -1:
        return f"{better_than_chance_text}, but not well, which takes {good_threshold:g}: {detail}."
    needed_count = _additional_count(cell, good_threshold, count, 1)
    clause = _needed_count_clause(cell, good_threshold, count, noun)
    if needed_count is None or needed_count > _MAX_LABELLING_FACTOR * count:
        clause = f"; it is about at this bar, and telling takes over {_MAX_LABELLING_FACTOR} times as many {noun}"
    return (
        f"{better_than_chance_text}: {detail}. "
        f"Whether it agrees well, {good_threshold:g} or more, cannot be told ({_cell_text(cell)}){clause}."
    )


def conclude_agreement(name: str, judge: Figures) -> str:
    """Return in a short sentence whether a judge agrees with people well enough, and then by how much."""
    measure_symbol, agreement = _choose_agreement(judge)
    verdicts = {1: "agrees", -1: "does not agree"}
    side = side_of_bound(agreement, GOOD_AGREEMENT_THRESHOLD)
    interval_text = _cell_text(agreement)
    if side is None:
        interval_text += ", without an interval,"
    return (
        f"{name} {verdicts.get(side or 0, 'is not shown to agree')} with people well enough: {measure_symbol} "
        f"{interval_text} where {GOOD_AGREEMENT_THRESHOLD:g} is enough, {judge['n']} labels."
    )


def _choose_agreement(judge: Figures) -> tuple[str, object]:
    """Return the symbol and the value of a judge's agreement: κ, or the rank correlation where it has none."""
    if judge["kappa"] is None:
        return "rank correlation", judge["rank_correlation"]
    return "κ", judge["kappa"]


def conclude_judge(judge: Figures, need: float | None) -> list[str]:
    """Return the conclusion on a judge."""
    name = judge["name"]
    count = judge["n"]
    if not count:
        ties = judge["left_out"].get("tied")
        others = f"{format_count(ties, 'label')} tied, and no other" if ties else "no"
        return [
            f"{name}: nothing can be said, because {others} labelled response has its judgement."
        ]
    measure_symbol, agreement = _choose_agreement(judge)
    counted = judge["as_counted"] or judge
    counted_symbol, counted_agreement = _choose_agreement(counted)
    subject = name
    sentences = []
    test = judge["alternative_annotator"]
    if test.winning_rate is not None:  # what most people want to know first
        sentences.append(_describe_test_against_people(test, counted_agreement, judge))
        subject = "It"
    if judge["answers"] == 1:
        sentences.append(
            f"{subject} gives all {count} labelled responses one answer: it tells none apart."
        )
    else:
        sentences.append(
            describe_agreement(
                subject, measure_symbol, agreement, GOOD_AGREEMENT_THRESHOLD, count, "labels"
            )
        )
    sentences += _describe_hits(judge)
    if counted is not judge:
        sentences.append(
            f"With {counted['n'] - count} more that are undecided or unsupported, as the reward counts "
            f"them: {counted_symbol} {_cell_text(counted_agreement)}, {counted['n']} labels."
        )
    bias_side = side_of_bound(judge["bias"], 0.0)
    if bias_side and judge["scale"] != "binary":  # more than two values
        direction = "high" if bias_side > 0 else "low"
        size = _format_interval_without_sign(judge["bias"])
        sentences.append(f"On average it is too {direction} by {size}.")
    sentences += _describe_gain_over_constant(judge)
    if need is not None and judge["labels_needed"] is not None:
        sentences.append(
            f"A mean label to ±{need:g} takes {judge['labels_needed']} labels of these responses."
        )
    return sentences


def judge_display_names(judges: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names of judges, each given with its run before it, without the runs if there is only one."""
    if len({run for run, _ in judges}) < 2:
        return [name for _, name in judges]
    return [f"{run}: {name}" for run, name in judges]


def conclude_shared_errors(pairs: FigureRows) -> Iterator[str]:
    """Yield the pairs of a jury's judges that are wrong together more than by chance."""
    names = judge_display_names(
        [(pair["run"], f"{pair['first']} and {pair['second']}") for pair in pairs]
    )
    for name, pair in zip(names, pairs, strict=True):
        if pair["p"] >= SIGNIFICANCE_LEVEL:
            continue
        yield (
            f"{name} are wrong in the same way on {pair['both_wrong']} of the {pair['first_wrong']} and "
            f"{pair['second_wrong']} labelled answers that they have wrong; by chance "
            f"{pair['by_chance']:.0f}: a jury gains little by both."
        )


def conclude_copies(pairs: FigureRows) -> Iterator[str]:
    """Yield the pairs of judges that are nearly copies, over all answers of both; none where chance may explain it."""
    copies = list(filter(_are_nearly_copies, pairs))
    firsts = judge_display_names([(pair.get("run", ""), pair["first"]) for pair in copies])
    for first, pair in zip(firsts, copies, strict=True):
        yield (
            f"{first} and {pair['second']} are nearly copies: they agree on what is met in "
            f"{pair['both'] - pair['differ']} of {pair['both']} answers, κ {_cell_text(pair['kappa'])}; one of them "
            "is paid twice, and a majority counts it twice."
        )


def _are_nearly_copies(pair: Figures) -> bool:
    kappa: IntervalCell = pair["kappa"]
    if side_of_bound(kappa, GOOD_AGREEMENT_THRESHOLD) != 1:
        return False
    return (kappa.value or 0.0) >= RELIABLE_CORRELATION


def conclude_smaller_juries(rows: FigureRows) -> Iterator[str]:
    """Yield for each jury with labels which judge is missed least, whether it is nearer to people than its nearest
    judge, what costs least of what is about as near, and how to count that without a request.

    All are over all questions of the evaluator. They are picked by these figures; the intervals allow for that. Without
    labels nothing is said: the best judge may be the one that the others outvote.
    """
    juries = group_by(rows, itemgetter("run", "evaluator", "jury"))
    names = judge_display_names([(run, f"{name} ({jury})") for run, name, jury in juries])
    for subject, parts in zip(names, juries.values(), strict=True):
        (jury,) = [row for row in parts if not (row["alone"] or row["without"])]
        run = jury["run"]
        choice = jury
        smaller_juries = [row for row in parts if row["without"] and row["farther"]]
        if smaller_juries:
            choice, dropped = _pick_best(smaller_juries, "without")
            yield _describe_least_missed_judge(subject, dropped, jury, choice)
        labelled_judges = [row for row in parts if row["alone"] and row["farther"]]
        if labelled_judges:
            best, best_name = _pick_best(labelled_judges, "alone")
            limit = min(row["farther"].value for row in parts if row["farther"])
            limit += _MAX_LOST_DISTANCE
            near = [row for row in parts if row is not jury and _is_about_as_near(row, limit)]
            choice = min(near, key=itemgetter("cost"), default=best)
            compared_parts = [(best, best_name, " Alone")]
            if choice is not best:
                cheapest = f" Cheapest within {_MAX_LOST_DISTANCE:g} of the nearest"
                choice_name = f"{' and '.join(choice['judges'])} alone"
                compared_parts.append((choice, choice_name, cheapest))
            for row, part_name, merit in compared_parts:
                nearer = _describe_nearer(
                    part_name, subject, row["farther"], row["labels"], row["alike"]
                )
                yield f"{nearer}{_describe_saving(jury, row, f'{merit}, {part_name}')}"
        if choice is not jury and side_of_bound(choice["farther"], 0.0) != 1:
            setting = f"evaluators.{choice['position']}.judges=[{','.join(choice['judges'])}]"
            yield (
                "To count that smaller jury without a request: the run's `jurygraph score` with "
                f"`--branch {shell_quote(run)} --set {shell_quote(setting)}` and another --out."
            )


def _pick_best(rows: FigureRows, name: str) -> tuple[Figures, str]:
    """Return the row that loses least, the first of equal ones, and its name with those of the equal ones."""
    best = min(rows, key=_loss_key)
    names = [row[name] for row in rows if _loss_key(row) == _loss_key(best)]
    equal_names = f" (or {join_names(names[1:])})" if names[1:] else ""
    return best, f"{names[0]}{equal_names}"


def _loss_key(row: Figures) -> tuple[float, ...]:
    """Return what a part of a jury loses: nearness to people, surely or by these labels; then what is undecided, and
    what it costs."""
    gap = row["farther"]
    is_not_surely_nearer = side_of_bound(gap, 0.0) != -1
    return is_not_surely_nearer, round(gap.value, 9), row["undecided"], row["cost"] or 0.0


def _is_about_as_near(row: Figures, limit: float) -> bool:
    gap = row["farther"]
    is_priced = row["cost_share"] is not None
    return is_priced and gap is not None and gap.value <= limit and side_of_bound(gap, 0.0) != 1


def _describe_least_missed_judge(subject: str, name: str, jury: Figures, row: Figures) -> str:
    labels = format_count(row["labels"], "label")
    ties = describe_ties(row)
    ties_sentence = f" The {ties}." if ties else ""
    verdicts = {
        -1: "is surely better left out",
        1: "is missed least of its judges, but surely missed",
    }
    verdict = verdicts.get(side_of_bound(row["farther"], 0.0) or 0, "is missed least")
    return (
        f"{subject}: {name} {verdict}; without it the undecided answers go from {jury['undecided']} to "
        f"{row['undecided']} of {row['answers']}, the share met changes by {row['change']:.3f}, the mean distance from "
        f"people by {_cell_text(row['farther'])}, {labels}."
        f"{_describe_saving(jury, row, ' That')}{ties_sentence}"
    )


def describe_ties(row: Figures) -> str:
    """Return that the judges of a part of a jury may tie, where they vote; empty where they cannot."""
    others = len(row["judges"])
    if "majority" not in row["jury"] or others % 2:
        return ""
    return f"{others} others may tie, the worst case"


def _describe_saving(jury: Figures, row: Figures, subject: str) -> str:
    """Return what a smaller jury saves, as a sentence; nothing where a price is not known."""
    if row["cost_share"] is None:
        return ""
    return (
        f"{subject} saves ${jury['cost'] - row['cost']:.4f} of ${jury['cost']:.4f} "
        f"({1.0 - row['cost_share']:.1%})."
    )


def conclude_differences(differences: FigureRows) -> Iterator[str]:
    """Yield which of two judges is nearer to people; nothing of more, whose pairs are a table."""
    if len(differences) == 1:
        (row,) = differences
        is_clear = row["p"] is not None and row["p"] < SIGNIFICANCE_LEVEL
        yield _describe_nearer(
            row["first"], row["second"], row["difference"], row["n"], row["alike"], is_clear
        )


def _describe_nearer(
    first: str,
    second: str,
    difference: IntervalCell,
    count: int,
    are_alike: bool,
    is_clear: bool = True,
) -> str:
    """Return who of two is nearer to people, from the first one's mean distance less the second's; `is_clear` is
    whether a test says so, too. Of two that are alike, more labels would tell nothing."""
    if are_alike:
        cases = format_count(count, "labelled case")
        return f"{first} and {second} decide alike: they are equally near to people in all {cases}."
    nearer, other, gap = second, first, difference
    if (difference.value or 0.0) <= 0.0:
        ends = (difference.value, difference.high, difference.low)
        nearer, other, gap = first, second, IntervalCell(*(end and -end for end in ends))
    side = side_of_bound(gap, 0.0)
    detail = f"its mean distance is less by {_cell_text(gap)}, {format_count(count, 'label')}"
    if side and is_clear:
        return f"{nearer} is nearer to people than {other}: {detail}."
    need = describe_needed_count(gap, 0.0, count, "labels") or " More labels may tell."
    return f"Whether {nearer} is nearer to people than {other} cannot be told: {detail}.{need}"


def _describe_hits(judge: Figures) -> Iterator[str]:
    """Yield of how many answers a judge that decides says what people say, of either kind."""
    confusion = judge["confusion"]
    if judge["scale"] != "binary" or confusion is None or confusion["levels"] != [0.0, 1.0]:
        return
    (no_no, no_yes), (yes_no, yes_yes) = confusion["counts"]
    yield (
        f"Of {yes_no + yes_yes} that people call 1 it calls {yes_yes} so, and of {no_no + no_yes} that they call 0 "
        f"{no_no}."
    )


def _describe_gain_over_constant(judge: Figures) -> Iterator[str]:
    cell = judge["above_constant"]
    constant = f"always saying {round(judge['constant'], 2):g}"
    unit = "in accuracy" if judge["scale"] == "binary" else "in mean distance"
    side = side_of_bound(cell, 0.0)
    if side:
        relation = "nearer to" if side > 0 else "farther from"
        yield f"It is {relation} them than {constant}, by {_format_interval_without_sign(cell)} {unit}."
    elif side == 0:
        yield (
            f"Whether it is nearer to them than {constant} cannot be told ({_cell_text(cell)} {unit})"
            f"{_needed_count_clause(cell, 0.0, judge['n'], 'labels')}."
        )


def _describe_test_against_people(
    test: AlternativeAnnotator, agreement: object, judge: Figures
) -> str:
    """Return whether a judge may stand in for a person; not if its agreement is not shown to be more than chance.

    Nor where a constant would pass the test, too, unless the judge is surely nearer to people than that.
    """
    assert test.winning_rate is not None
    subject = judge["name"]
    beaten_names = join_names(name for name, p in test.p.items() if p <= SIGNIFICANCE_LEVEL)
    detail = (
        f"ω {test.winning_rate:.2f} of {test.persons} persons ({beaten_names or 'none'}, for whom it is shown that "
        f"the judge is nearer to the others than they are, or farther by less than ε), ρ {_cell_text(test.advantage)}, "
        f"{test.items} items, ε {test.epsilon:g}"
    )
    if test.left_out:
        detail += (
            f"; not compared, with fewer than {MIN_SHARED_ITEMS_BY_PERSON} shared items: "
            f"{join_names(test.left_out)}"
        )
    if test.guessers:
        detail += f". {_describe_guessers(test)}"
    rate = test.winning_rate_without_guessers if test.guessers else test.winning_rate
    # what cannot be tested without guessers is not shown
    if rate is None or min(test.winning_rate, rate) < MIN_PASSING_WIN_RATE:
        beaten = sum(judge > person - test.epsilon for judge, person in test.rates.values())
        remedy = "More items would hardly help: most persons are nearer to the others than it is, by ε and more"
        if rate is None:
            remedy = "Labels of more persons may show it"
        elif beaten >= MIN_PASSING_WIN_RATE * test.persons:
            remedy = "More items that these persons all label may show it"
        return f"{subject} is not shown to be as near to people as a person is: {detail}. {remedy}."
    sentence_ending = "who are not near to each other"
    gain = judge["above_constant"]
    off_constant = test.labels_off_constant
    if off_constant is not None and side_of_bound(gain, 0.0) != 1:
        constant = f"{round(judge['constant'], 2):g}"
        return (
            f"{subject} is as near to people as a person is, but so is always saying {constant}: whether it may stand "
            f"in for one cannot be told, because only {off_constant} of {judge['n']} labels are another: {detail}"
            f"{_needed_count_clause(gain, 0.0, off_constant, f'labels other than {constant}')}."
        )
    if side_of_bound(agreement, 0.0) == 1:
        sentence_ending = "and may stand in for one"
    return f"{subject} is as near to people as a person is, {sentence_ending}: {detail}."


def _describe_guessers(test: AlternativeAnnotator) -> str:
    """Return who of the persons to beat may be guessing, as `consensus` does, and ω without them."""
    names = [f"{name} {format_cell(cell, 3)}" for name, cell in test.guessers.items()]
    result = "there are too few persons to test"
    if test.winning_rate_without_guessers is not None:
        result = f"ω is {test.winning_rate_without_guessers:.2f}"
    return (
        f"Warning: may be guessing (correlation near 0, surely below 0.5): {join_names(names)}; to leave out: "
        f"{without_option(test.guessers)}, by which {result}"
    )


def conclude_reviewers(
    judges: FigureRows,
    differences: FigureRows,
    reviewers: Mapping[str, FigureRows],
    all_pairs: bool = True,
) -> list[str]:
    """Return for whom the judge is better than their own mean, in each dimension, and for all whether a judge for each
    reviewer is worth it; with `all_pairs` also how the other judges compare."""
    conclusion = []
    for dimension, persons in reviewers.items():
        judges_of_dimension, differences_of_judges = (
            [row for row in rows if (row["dimension"] or "all") == dimension]
            for rows in (judges, differences)
        )
        paragraphs = _conclude_dimension(
            judges_of_dimension, differences_of_judges, persons, all_pairs
        )
        conclusion += [f"{dimension}: {paragraph}" for paragraph in paragraphs]
    return conclusion


def _conclude_dimension(
    judges: FigureRows, differences: FigureRows, persons: FigureRows, all_pairs: bool
) -> Iterator[str]:
    pairs = {frozenset((row["first"], row["second"])): row for row in differences}
    yield from _describe_states(persons)
    if PLANNED_PAIR in pairs:
        yield _describe_planned_pair(pairs.pop(PLANNED_PAIR), judges, persons)
    ranked_judges = sorted(
        (row for row in judges if row["mae"]), key=lambda row: float(row["mae"].value)
    )
    if not ranked_judges:
        yield (
            "no rating is predicted by every judge; see the coverage, and leave judges out."
            if judges
            else "each judge uses others' scores of the item, which a new item has not."
        )
        return
    best = ranked_judges[0]
    subject = name_with_examples(best["judge"], best["shots"])
    total = round(best["answered"] / best["coverage"])
    if best["n"] < (1.0 - MAX_UNPREDICTED_SHARE) * total:
        limiting = min(ranked_judges, key=itemgetter("coverage"))
        yield (
            f"{subject} predicts {best['coverage']:.0%} of the ratings, and judges are compared on {best['n']} of "
            f"{total}, those that all predict. {limiting['judge']} leaves out most: "
            f"{describe_omissions(limiting['left_out'])}."
        )
    if not all_pairs:
        return
    if _PERSONAL_AND_OTHERS_MEAN in pairs:
        yield _describe_nearer_judge(pairs.pop(_PERSONAL_AND_OTHERS_MEAN))
    alpha = best["alpha"]
    threshold = MIN_ALPHA_FOR_TENTATIVE_CONCLUSIONS
    yield describe_agreement(subject, "alpha", alpha, threshold, len(persons), "reviewers")
    described_pairs = [
        {row["judge"] for row in ranked_judges[:2]},
        {"item-mean", "rater-offset"},
        {"own-history", "personalized"},
    ]
    for pair, row in pairs.items():
        if pair in described_pairs:
            yield _describe_nearer_judge(row)


_OMISSION_REMEDIES = {
    "unsupported": "by a valid quotation; new runs with `safety: {evidence: preferred}` count these",
    "confidence": "`--min-confidence 0` counts these",
    "no majority": "`rescore --set panel.reduce=mean` counts the mean of the samples",
}
"""What counts the ratings that a judge leaves out, by the start of the reason."""


def describe_omissions(left_out: Mapping[str, int]) -> str:
    """Return why a judge leaves ratings out, and what counts them: the most frequent reason first."""
    reasons = []
    for reason, count in Counter(left_out).most_common():
        remedy = _OMISSION_REMEDIES.get(reason.partition(" below ")[0])
        reasons.append(f"{count} {reason} ({remedy})" if remedy else f"{count} {reason}")
    return join_names(reasons) or "it has no others to go by"


_MAX_PERSONS_DESCRIBED = 20
SHORT_JUDGE_NAMES = {"own-history": "own mean", "item-mean": "mean of others"}


STATE_TEXTS = {
    "better": "better than own mean, may replace a first look",
    "nearer": "nearer than own mean, in no surely better order than chance",
    "worse": "worse than own mean, do not replace this person",
    "so far better": "cannot be told yet, so far better than own mean",
    "so far worse": "cannot be told yet, so far no better than own mean",
    "too few": "too few ratings to tell",
    "alone": "no ratings for an own mean",
    "own mean": "what a judge has to beat",
}
"""How the judge of a reviewer compares with the reviewer's own mean: those first of whom that can be told."""


def _describe_states(persons: FigureRows) -> Iterator[str]:
    """Yield for each person how the judge compares with their own mean; without a judge, how far off that is."""
    described = sorted(
        filter(itemgetter("error"), persons), key=lambda row: [*STATE_TEXTS].index(row["state"])
    )
    for row in described[:_MAX_PERSONS_DESCRIBED]:
        state = row["state"]
        count = row["error_n"]
        own_mean = "" if row["own_mean"] is None else f", own mean by {row['own_mean']:.2f}"
        need = ""
        correlation = row["rank_correlation"]
        # who has few ratings has fewer examples than others
        subject = row["judge" if state == "too few" else "subject"]
        says_order = state in ("nearer", "worse")
        if state.startswith("so far"):
            says_order = correlation and correlation.value < GOOD_AGREEMENT_THRESHOLD / 2.0
            need = describe_needed_count(
                row["own_mean_gain"], 0.0, count, "ratings", row["own_mean_tests"]
            )
        if says_order and side_of_bound(correlation, 0.0) != 1:
            need = (
                " Its order of the items is not surely better than chance: rank correlation "
                f"{_cell_text(correlation)}.{need}"
            )
        yield (
            f"{row['reviewer']}: {STATE_TEXTS[state]}: {subject} off by {_cell_text(row['error'])} on average "
            f"over {format_count(count, 'rating')}{own_mean}.{need}"
        )
    if len(described) > _MAX_PERSONS_DESCRIBED:
        yield f"{len(described) - _MAX_PERSONS_DESCRIBED} more reviewers: see the table."


def name_with_examples(judge: str, shots: int | None) -> str:
    """Return the name of a judge of reviewers, with the number of examples that it is shown, if any."""
    return f"{judge} with {format_count(shots, 'example')}" if shots else judge


PLANNED_PAIR = frozenset({"personalized", "aggregate"})
"""The judges that the study of reviewers is for: their p allows for no other pair."""
_PERSONAL_AND_OTHERS_MEAN = frozenset({"personalized", "item-mean"})
PLANNED_PAIRS = (PLANNED_PAIR, _PERSONAL_AND_OTHERS_MEAN)
"""What the study is for; each is tested for itself, without an allowance for the other pairs."""
_JUDGE_KIND_DESCRIPTIONS = {
    "personalized": "personalized (a judge for each reviewer)",
    "aggregate": "aggregate (one judge for all, with examples)",
    "zero-shot": "zero-shot (one judge for all, without examples)",
    "own-history": "own-history (the mean of each reviewer's own scores)",
    "item-mean": "item-mean (the mean of the others' scores)",
}


def conclude_draws(judges: Iterable[str]) -> Iterator[str]:
    """Yield that the figures of judges are of one draw of examples, if there is such a judge."""
    names = join_names(dict.fromkeys(judges))
    if names:
        yield (
            f"{names}: all texts were judged with one draw of examples, and no interval holds what another draw "
            "would change; `samples: 3`, or a run with another `seed`, would show it."
        )


def _describe_planned_pair(row: Figures, judges: FigureRows, persons: FigureRows) -> str:
    """Return which of the two is nearer, and to whom; of few ratings that both predict, that these do not tell."""
    shared, total = row["n"], row["ratings"]
    is_partial = shared < (1.0 - MAX_UNPREDICTED_SHARE) * total
    if is_partial and shared < max(_MIN_SHARED_RATINGS, total / 2):
        answered = {judge["judge"]: judge["answered"] for judge in judges}
        first, second = (f"{name} ({answered[name]})" for name in (row["first"], row["second"]))
        return (
            f"only {shared} of {total} ratings are predicted by both {first} and {second}: no conclusion on which is "
            "nearer; what is left out most, and what counts it, follows."
        )
    of_these = (
        f"for these reviewers the error of {row['first']} is {_cell_text(row['of_these'])} above that of "
        f"{row['second']}."
    )
    outlook = f"For other reviewers like these: {_describe_nearer_judge(row)}"
    noun = "reviewers (and items in proportion)"
    outlook += describe_needed_count(row["absolute"], 0.0, len(persons), noun)
    return " ".join([of_these, *_describe_gains(persons), outlook])


def has_equal_predictions(row: Figures) -> bool:
    """Return whether two judges are equally near to every reviewer, and to every item: their predictions are one."""
    is_zero_difference = row["absolute"] == (0.0, None, None)
    return is_zero_difference and not row["nearer"] and not row["farther"]


def _describe_nearer_judge(row: Figures) -> str:
    """Return which of two judges is nearer to the reviewers, from the first one's error less the second's.

    It is one of several pairs: what is clear is p by Holm's method over those that nobody planned, and not an interval
    for itself.
    """
    if has_equal_predictions(row):
        sentence = (
            f"{row['first']} and {row['second']} make the same predictions of {row['n']} ratings"
        )
        if {row["first"], row["second"]} == {"own-history", "neighbours"}:
            sentence += (
                ", as both take all own ratings of each reviewer; a smaller --shots parts them"
            )
        return f"{sentence}."
    difference: IntervalCell | None = row["absolute"]
    names = (row["first"], row["second"])
    first, second = (_JUDGE_KIND_DESCRIPTIONS.get(name, name) for name in names)
    if difference and (difference.value or 0.0) > 0.0:
        first, second = second, first
    p = row["absolute_p"]
    side = side_of_bound(difference, 0.0)
    if side and p is not None and p < SIGNIFICANCE_LEVEL:
        return (
            f"{first} is nearer than {second}: mean difference of errors "
            f"{_format_interval_without_sign(difference)}."
        )
    detail = f"mean difference of errors {_cell_text(difference)}"
    if p is not None:
        if {*names} not in PLANNED_PAIRS:
            detail += " for this pair alone; for all pairs"
        detail += f", p {p:.3f}"
    return f"Whether {first} is nearer than {second} cannot be told: {detail}."


def _describe_gains(persons: FigureRows) -> Iterator[str]:
    """Yield for which persons a judge of their own is nearer than one for all, and for which it is not (Holm)."""
    clear_gains = {
        f"{row['reviewer']} ({row['gain_n']} ratings)": row["gain"]
        for row in persons
        if row["gain_p"] is not None and row["gain_p"] < SIGNIFICANCE_LEVEL
    }
    for relation, names in _join_names_by_side(clear_gains, "nearer", "farther"):
        yield f"personalized is surely {relation} than aggregate for {names}."
    if not clear_gains:
        yield "For no single reviewer is personalized surely nearer or farther than aggregate."


def _join_names_by_side(
    cells: Mapping[str, object], above: str, below: str
) -> Iterator[tuple[str, str]]:
    """Yield the word for each side of 0, and the names whose intervals lie there, with these; none without a name."""
    for side, word in {1: above, -1: below}.items():
        names = [
            f"{name} {_format_interval_without_sign(cell)}"
            for name, cell in cells.items()
            if side_of_bound(cell, 0.0) == side
        ]
        if names:
            yield word, join_names(names)


def _classify_rater(cell: object, chance: float, half_way: float) -> str | None:
    """Return what is wrong with a rater by the interval of a measure; None if nothing is."""
    side = side_of_bound(cell, chance)
    if side == -1:
        return "opposite"
    if may_be_guessing(as_interval(cell), chance):
        return "guessing"
    if side == 0:
        return "unsure"
    return "weak" if side_of_bound(cell, half_way) == -1 else None


def describe_raters(
    cells: Mapping[str, object],
    measure: str,
    chance: float,
    shifts: Mapping[str, object],
    unit: str,
    baseline: str,
    unsure_people: Collection[str] = (),
) -> Iterator[str]:
    """Yield who may guess, and who is lenient or strict, if the labels show it of some.

    A warning ends with the option that leaves its people out, unless half of all are warned of. Who may guess has an
    interval of the measure around chance; those agree little whose interval does not reach half way from there to full
    agreement. Who is surely below chance judges the other way round. `shifts` are by name, of labels or another `unit`,
    from a `baseline` in words. Of `unsure_people` too little is known to say that they may guess.
    """
    half_way = (1.0 + chance) / 2.0
    # scores on a scale, unlike classes, may be right and differ
    taste = ", or of another taste" if measure == "correlation" else ""
    text_by_finding = {
        "opposite": f"Warning: judges the other way round ({measure} surely below the {chance:.2g} of guessing)",
        "guessing": f"Warning: may be guessing{taste} ({measure} near {chance:.2g}, surely below {half_way:.2g})",
        "weak": f"Warning: agrees little{taste} ({measure} surely below {half_way:.2g}, though not guessing)",
        "unsure": "guessing is not ruled out, and more labels would tell",
    }
    names_by_finding = defaultdict(list)
    texts = {name: f"{name} {format_cell(cell, 3)}" for name, cell in cells.items()}
    for name, cell in cells.items():
        finding = _classify_rater(cell, chance, half_way)
        if finding in ("guessing", "weak") and name in unsure_people:
            finding = "unsure"
        if finding is not None:
            names_by_finding[finding].append(name)
    warned_count = sum(
        len(people) for finding, people in names_by_finding.items() if finding != "unsure"
    )
    # one person may spoil the means with which all others are compared
    can_leave_out = 2 * warned_count < len(cells)
    for finding, finding_text in text_by_finding.items():
        people = names_by_finding[finding]
        if not people:
            continue
        sentence = f"{finding_text}: {join_names(texts[name] for name in people)}"
        if finding != "unsure" and can_leave_out:
            sentence += f"; to leave out: {without_option(people)}"
        yield sentence
    for relation, names in _join_names_by_side(shifts, "higher", "lower"):
        yield f"{unit} surely {relation} {baseline}: {names}"


def without_option(names: Iterable[str]) -> str:
    return f"--without {shell_quote(','.join(names))}"


_DOUBT_BARS = {
    "majority": "one vote decides, it is a tie, or there is no label",
    "stableval": f"no class has a probability of {1.0 - HIGH_AMBIGUITY:g}",
    "dawid-skene": "none, as it takes labels as certain",
}


def conclude_items(figures: Figures, doubt_count: int) -> str:
    """Return how far the labels of items with several agree, how many have one, and how many are in doubt."""
    agreement = figures["agreement"]
    counts = figures["counts"]
    text = "no item has two labels"
    if agreement.items:
        text = (
            f"{agreement.unanimous * agreement.items:.0f} of {agreement.items} items with two labels or more are "
            f"unanimous ({agreement.unanimous:.1%}), and of the pairs of labels of such an item "
            f"{agreement.pairwise:.1%} agree"
        )
    single_count = counts["items"] - counts["unlabelled"] - agreement.items
    if single_count:
        text += f"; items with one label: {single_count}"
    method = figures["method"]
    bar = _DOUBT_BARS.get(method) or (
        f"the standard error of the mean is above {figures['doubt_above']:.3g}, {DOUBTFUL_ERROR_SHARE:g} of a single "
        "label's"
    )
    if method in _DOUBT_BARS:
        ties = len(figures["ties"]["items"])
        text += f"; items decided by one vote: {len(figures['decided_by_one'])}, ties: {ties}"
    return f"{text}; items in doubt: {doubt_count} of {counts['items']} (by {method}: {bar})."


def conclude_forecast(figures: Figures) -> Iterator[str]:
    """Yield what one more label of each item in doubt is expected to leave of the errors of adjusted means."""
    if figures["method"] == "adjusted-mean" and figures["further_labels"]:
        now, then = (row.standard_error for row in figures["further_labels"])
        yield (
            "one more label of each item in doubt is expected to bring the mean standard error of these from "
            f"{now:.3f} to {then:.3f}."
        )


def conclude_reliability(
    mean: Estimate,
    units: str,
    count: int,
    questions: FigureRows,
    pairs: FigureRows,
) -> list[str]:
    """Return which judges are nearly copies, how sure the mean reward is, and how far judges repeat their scores."""
    sentences = list(conclude_copies(pairs))
    if mean.low is None or mean.high is None:
        sentences.append(f"The mean reward {_cell_text(mean)} has no interval.")
    else:
        half_width = (mean.high - mean.low) / 2.0
        sentences.append(
            f"The mean reward is {_cell_text(mean)}, ± {half_width:.3f} over {count} {units}; "
            f"about {3 * count} more {units} would halve that."
        )
    questions_with_samples = [question for question in questions if question["within_response"]]
    sentences += map(_describe_repeats, questions_with_samples)
    if not questions_with_samples:
        sentences.append(
            "How far a judge would repeat its scores cannot be told from single samples; "
            "`samples: 3` beside `use` would tell."
        )
    return sentences


def _describe_repeats(question: Figures) -> str:
    repeat_correlation = question["within_response"]
    side = side_of_bound(repeat_correlation, RELIABLE_CORRELATION)
    if repeat_correlation["value"] == 1.0:
        return f"All samples of a response are alike on {question['name']}: ICC 1.00, {NO_INTERVAL_OF_EQUALS}."
    detail = f"two samples agree by ICC {_cell_text(repeat_correlation)}"
    if side == 1:
        return f"One sample of {question['name']} is reliable: {detail}."
    correlation = repeat_correlation["value"]
    remedy = "samples of one response differ as much as those of different ones"
    if correlation > 0.0:  # Spearman-Brown, solved for the number of samples
        needed_repeat_count = math.ceil(
            RELIABLE_CORRELATION
            * (1.0 - correlation)
            / (correlation * (1.0 - RELIABLE_CORRELATION))
        )
        remedy = f"a mean of about {needed_repeat_count} would have {RELIABLE_CORRELATION:g}"
    if side == -1:
        return f"One sample of {question['name']} is not reliable: {detail}; {remedy}."
    return (
        f"Whether one sample of {question['name']} is reliable, {RELIABLE_CORRELATION:g} or more, "
        f"cannot be told: {detail}."
    )


def conclude_credit(figures: Figures) -> Iterator[str]:
    """Yield whether the graph takes false credit away, and what that costs."""
    count = figures["census"]["graphs"]
    difference = figures["differences"]["flat"]
    for name, effect in (
        ("leakage", "takes away false credit"),
        ("preservation", "costs true credit"),
    ):
        cell = difference[name]
        side = side_of_bound(cell, 0.0)
        detail = f"{name} changes by {_cell_text(cell)}"
        if side is None:
            yield f"Whether the graph {effect} cannot be told: {name} has no interval."
        elif side == 0:
            yield (
                f"Whether the graph {effect} cannot be told: {detail}."
                f"{describe_needed_count(cell, 0.0, count, 'rubrics')}"
            )
        elif side == -1:
            yield f"The graph {effect}: {detail} from flat, {count} graphs."
        else:
            yield f"{name.capitalize()} is higher with the graph: {detail} from flat."


def conclude_stability(ratios: FigureRows, tasks: int) -> Iterator[str]:
    """Yield whether wording moves scores more than asking again does, by judge, of those with all units."""
    last = {ratio["protocol"]: ratio for ratio in ratios}
    for protocol, ratio in last.items():
        cell = ratio["semantic_to_repeat"]
        side = side_of_bound(cell, 1.0)
        detail = f"S/R {_cell_text(cell)}"
        subject = f"{protocol}: whether other words move the score more than asking again"
        if cell is None:
            yield f"{subject} cannot be told: more exact repeats would tell."
        elif side == 1:
            yield f"{protocol}: other words for the same move the score more than asking again, {detail}."
        elif not side:  # 0, or None without an interval
            yield f"{subject} cannot be told: {detail} over {tasks} tasks."
        else:
            yield f"{protocol}: asking again moves the score more than other words, {detail}."


def _cell_text(cell: object) -> str:
    estimate = as_interval(cell)
    if estimate is None:
        return "-"
    # so many that an end which is not 0 keeps its sign
    digits = 3 if any(0.0005 <= abs(end or 0.0) < 0.005 for end in estimate) else 2
    return format_interval(*estimate, digits)


def _format_interval_without_sign(cell: object) -> str:
    """Return an interval on one side of 0 without its sign."""
    estimate = as_interval(cell)
    assert estimate is not None
    value, *ends = (abs(end or 0.0) for end in estimate)
    return _cell_text(IntervalCell(value, *sorted(ends)))
