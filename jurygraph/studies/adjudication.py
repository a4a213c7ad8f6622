"""A further round of labels: which items of a saved consensus are ambiguous, and what new labels of them changed.

A consensus is saved as `jurygraph consensus --json` prints it. `assign --ambiguous` makes sheets of its ambiguous
items, and `consensus --before` compares a consensus of all labels with it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from pydantic import ConfigDict

from jurygraph.aggregation.consensus import HIGH_AMBIGUITY, AgentScore
from jurygraph.aggregation.consensus.fitting import ConsensusMethod
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError
from jurygraph.messages import join_names, quote
from jurygraph.schema.frozen_model import FrozenModel, JsonFields, Number, UnitInterval
from jurygraph.schema.rating import Label, format_label
from jurygraph.sources.artifacts import read_json_object
from jurygraph.sources.files import validate_at_location
from jurygraph.sources.label_words import LABEL_FIELDS
from jurygraph.sources.sheets import SheetItem
from jurygraph.studies import consensus
from jurygraph.studies.consensus import key_of_doubt, name_likeliest_classes, rank_agents
from jurygraph.studies.fitted_consensus import FittedConsensus, StudyPreset, describe_fit
from jurygraph.studies.report import Report, ReportTable

_TIE_AMBIGUITY = 0.5
_SAVE_CONSENSUS_HINT = "save it with `jurygraph consensus RATINGS --json`"


class _ConsensusItem(FrozenModel):
    posterior: tuple[UnitInterval, ...]
    ambiguity: UnitInterval
    labels: int = 0
    spread: Number = 0.0
    mean: Number | None = None
    adjusted_mean: Number | None = None
    standard_error: Number = 0.0
    annotators: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class _ConsensusCounts(FrozenModel):
    model_config = ConfigDict(extra="ignore")

    rows: int
    abstained: int = 0

    @property
    def labels(self) -> int:
        return self.rows - self.abstained


class SavedConsensus(FrozenModel):
    """Some of the figures of `consensus.report`: what a further round needs of an earlier one."""

    model_config = ConfigDict(extra="ignore")

    classes: tuple[Label, ...]
    values: tuple[Number, ...]
    preset: StudyPreset
    method: ConsensusMethod
    doubt_above: Number = HIGH_AMBIGUITY
    settings: JsonFields
    dimension: str | None = None
    question: str | None = None
    command: str = "jurygraph consensus RATINGS"
    counts: _ConsensusCounts
    agents: Mapping[str, AgentScore]
    annotators: Mapping[str, JsonFields] = {}
    items: Mapping[str, _ConsensusItem]
    decided_by_one: tuple[str, ...] = ()

    @property
    def subject(self) -> str | None:
        """Return the dimension of the labels, or what else their column is called by; None if it says nothing."""
        return self.dimension or self.question

    @property
    def doubtful_items(self) -> frozenset[str]:
        """Return the items that one vote decides, of a majority, for which these are as doubtful as a tie."""
        return frozenset(self.decided_by_one if self.method == "majority" else ())

    @property
    def annotator_names(self) -> frozenset[str]:
        """Return who labelled any of the items."""
        return frozenset().union(*(item.annotators for item in self.items.values()))

    @property
    def doubts(self) -> dict[str, float]:
        """Return by item the ambiguity, or the standard error of its adjusted mean, the most doubtful item first.

        An item that one vote of a majority decides is as ambiguous as a tie.
        """
        items = sorted(
            self.items.items(), key=lambda entry: key_of_doubt(self.method, vars(entry[1]))
        )
        if self.method == "adjusted-mean":
            return {name: item.standard_error for name, item in items}
        ties = self.doubtful_items
        return {name: max(item.ambiguity, _TIE_AMBIGUITY * (name in ties)) for name, item in items}

    @property
    def items_in_doubt(self) -> list[str]:
        """Return the items in doubt, which are those that `select_ambiguous` selects by default."""
        return [name for name, doubt in self.doubts.items() if doubt > self.doubt_above]


class ItemChange(NamedTuple):
    """An item with another posterior: its likeliest label and its ambiguity, before and now."""

    item: str
    label_before: str
    label: str
    ambiguity_before: float
    ambiguity: float


class MeanChange(NamedTuple):
    """An item with another adjusted mean: the nearest class, the mean and its standard error, before and now."""

    item: str
    label_before: str
    label: str
    adjusted_mean_before: float | None
    adjusted_mean: float | None
    standard_error_before: float
    standard_error: float


class AgentChange(NamedTuple):
    """The score and the rank of an agent, before and now, each by the method of its consensus."""

    agent: str
    score_before: float
    score: float
    rank_before: float
    rank: float


class ConsensusChange(NamedTuple):
    """How many more `labels` there are, and what they moved.

    Items with another likeliest label come first, and then those whose ambiguity, or standard error, changed most;
    agents by their rank.
    """

    labels: int
    items: Sequence[ItemChange | MeanChange]
    agents: Sequence[AgentChange]


def read_rounds(path: Path) -> list[SavedConsensus]:
    """Read what `consensus --json` printed, of each question. Raises `InputError` with file and field otherwise."""
    content = read_json_object(path, "a saved consensus is", _SAVE_CONSENSUS_HINT)
    questions = content.pop("questions", None)
    if not isinstance(questions, dict):
        return [_read_round(path, content)]
    return [
        _read_round(path, {**content, **figures, "dimension": name})
        for name, figures in questions.items()
    ]


def select_round(
    rounds: Sequence[SavedConsensus], question: str | None, column: str, is_only_question: bool
) -> SavedConsensus | None:
    """Return the earlier consensus of a question; None without any.

    `column` is what the column of labels is called by. Labels that name no question, there or here, are of the only
    one. Raises `InputError` if others are there.
    """
    name = question or (None if column in LABEL_FIELDS else column)
    for earlier in rounds:
        is_nameless = None in (name, earlier.subject)
        if earlier.subject == name or (is_nameless and is_only_question and len(rounds) == 1):
            return earlier
    if rounds:
        names = join_names(earlier.subject or "labels" for earlier in rounds)
        raise InputError(f"--before: is of {names}, and has no consensus of {name or 'labels'}")
    return None


def _read_round(path: Path, content: JsonFields) -> SavedConsensus:
    if "items" not in content:
        raise InputError(f"{path}, field items: is missing; {_SAVE_CONSENSUS_HINT}")
    earlier_consensus = validate_at_location(str(path), SavedConsensus, content)
    lengths = {len(item.posterior) for item in earlier_consensus.items.values()}
    if lengths != {len(earlier_consensus.classes)}:
        raise InputError(
            f"{path}, field items: has other classes than `classes`; {_SAVE_CONSENSUS_HINT}"
        )
    return earlier_consensus


def list_raters(rounds: Sequence[SavedConsensus]) -> dict[str, frozenset[str]]:
    """Return who labelled an item, also if left out, by its key: in any of several consensuses."""
    raters: dict[str, frozenset[str]] = {}
    for earlier in rounds:
        for name, item in earlier.items.items():
            raters[name] = raters.get(name, frozenset()).union(item.annotators, item.left_out)
    return raters


def select_ambiguous(
    rounds: Sequence[SavedConsensus], min_doubt: float | None, items: Sequence[SheetItem]
) -> list[tuple[SheetItem, list[str | None]]]:
    """Return those of the items of which a consensus has a doubt above `min_doubt`, the most doubtful first.

    Each has the dimensions of which it is in doubt; of several, the first items of each dimension come before the
    second ones. The doubt is that of `SavedConsensus.doubts`, and None takes `doubt_above`.

    Raises `InputError` if there is none, if one is not among `items`, or for a `min_doubt` of several consensuses.
    """
    if min_doubt is not None and len(rounds) > 1:
        raise InputError("--above: is of one question; save its consensus alone, by --dimension")
    item_by_key = {item.key: item for item in items}
    for item in items:  # those of a run name the agent apart
        named_item = item.model_copy(update={"agent": item.agent or item.author})
        item_by_key.setdefault(named_item.key, named_item)
    dimensions_by_item: dict[str, list[str | None]] = {}
    rank_by_item: dict[str, int] = {}
    for earlier in rounds:
        bound = earlier.doubt_above if min_doubt is None else min_doubt
        names = [name for name, doubt in earlier.doubts.items() if doubt > bound]
        for rank, name in enumerate(names):
            if name not in item_by_key:
                if any(item.item == name for item in items):
                    raise InputError(
                        f"--ambiguous: ITEMS name the agent of {quote(name)}, and its labels do not; leave it out of "
                        "ITEMS (--column agent=C, or a column `agent`)"
                    )
                raise InputError(
                    f"--ambiguous: ITEMS have no text of {quote(name)} (the item, with _ and its agent where ratings "
                    f"name one), but of {join_names(item_by_key)}; add it, or name the column of agents with "
                    "--column agent=C"
                )
            dimensions_by_item.setdefault(name, []).append(earlier.subject)
            rank_by_item[name] = min(rank, rank_by_item.get(name, rank))
    if not dimensions_by_item:
        raise _no_doubt_error(rounds[0], min_doubt)
    return [
        (item_by_key[name], dimensions_by_item[name])
        for name in sorted(rank_by_item, key=rank_by_item.__getitem__)
    ]


def _no_doubt_error(earlier_consensus: SavedConsensus, min_doubt: float | None) -> InputError:
    bound = earlier_consensus.doubt_above if min_doubt is None else min_doubt
    problem = f"no item has an ambiguity, which is from 0 to 1, above {bound:g}"
    hint = f"here it is {max(earlier_consensus.doubts.values()):.3g} at most; write less"
    if earlier_consensus.method == "adjusted-mean":
        problem = f"no adjusted mean has a standard error above {bound:.3g}"
    elif earlier_consensus.method == "majority":
        problem += (
            " by majority vote, for which only ties and items decided by one vote are in doubt"
        )
        hint = (
            f"a tie of two is {_TIE_AMBIGUITY:g}, as are items that one vote decides; write less, or save the "
            "consensus again with --method stableval"
        )
    return InputError(f"--above: {problem}; {hint}")


def report(
    fitted_consensus: FittedConsensus,
    before: SavedConsensus,
    advance: ProgressCallback = ignore_progress,
) -> Report:
    """Return the report of a consensus, and as `moved` what changed since an earlier one of fewer labels.

    Raises `InputError` if `before` was fitted otherwise, or to other or no fewer labels.
    """
    scores = fitted_consensus.scores(fitted_consensus.method)
    new_consensus = SavedConsensus(
        agents=scores,
        decided_by_one=fitted_consensus.majority.items_decided_by_one_vote(),
        **describe_fit(fitted_consensus),
    )
    _refuse_unlike(before, new_consensus)
    change = compare(before, new_consensus)
    names_in_doubt = before.items_in_doubt
    # by the bound of before, since that of adjusted means moves with the labels
    doubtful_now = {
        name for name, doubt in new_consensus.doubts.items() if doubt > before.doubt_above
    }
    sureness = []
    if before.method == "adjusted-mean" and names_in_doubt:
        error_before, error = (
            fmean(saved.items[name].standard_error for name in names_in_doubt)
            for saved in (before, new_consensus)
        )
        sureness = [
            f"standard error of those that were in doubt: {error_before:.3f} before, {error:.3f} now"
        ]
    names = list(map(format_label, before.classes))  # of a tie, a label is several of them
    count_by_change = Counter(
        (item.label_before in names, item.label in names)
        for item in change.items
        if item.label != item.label_before
    )
    report = consensus.report(fitted_consensus, advance)
    return replace(
        report,
        figures={**report.figures, "moved": change},
        sections=[_table(change.items), _table(change.agents), *report.sections],
        conclusion=[
            f"labels more than before: {change.labels}; likeliest labels that changed: {count_by_change[True, True]}, "
            f"ties that are resolved: {count_by_change[False, True]}, new ties: {count_by_change[True, False]}",
            f"items in doubt: {len(names_in_doubt)} before, {len(doubtful_now)} now; of those before, "
            f"{len(doubtful_now.intersection(names_in_doubt))} still are",
            *sureness,
            *report.conclusion,
        ],
    )


def _refuse_unlike(before: SavedConsensus, new_consensus: SavedConsensus) -> None:
    """Raise `InputError` unless a consensus was fitted as an earlier one, to its labels and more."""
    for name in ("method", "classes", "values", "preset", "settings"):
        if getattr(before, name) != getattr(new_consensus, name):
            options = f"the options of that consensus: {before.command}"
            if name == "method":
                options = f"--method {before.method}"
            raise InputError(f"--before: has other {name}; give {options}")
    lost_annotators = sorted(before.annotator_names - new_consensus.annotator_names)
    if lost_annotators:
        raise InputError(
            f"--before: that consensus has labels of {join_names(lost_annotators)}, and this one has none; name the "
            "files of both, or leave the same people out of both (--without)"
        )
    # rows may be fewer: of who labelled an item again, --keep-last counts the last alone
    has_other_labels = any(
        name not in new_consensus.items
        or not set(item.annotators).issubset(new_consensus.items[name].annotators)
        for name, item in before.items.items()
    )
    has_no_more_rows = new_consensus.counts.rows <= before.counts.rows
    if has_other_labels or (has_no_more_rows and new_consensus.items == before.items):
        raise InputError(
            "--before: these ratings are not those of that consensus and new ones; name the files of both"
        )


def _table(rows: Sequence[ItemChange | MeanChange] | Sequence[AgentChange]) -> ReportTable:
    fields = rows[0]._fields if rows else ()
    header = [name.replace("_", " ") for name in fields]
    return ReportTable(header, rows, digits=3, most=10)


def compare(earlier_consensus: SavedConsensus, new_consensus: SavedConsensus) -> ConsensusChange:
    """Return what changed from a consensus to one of the same items and agents with more labels."""
    items: list[ItemChange | MeanChange] = []
    for name, old in earlier_consensus.items.items():
        new = new_consensus.items[name]
        labels = (
            name_likeliest_classes(earlier_consensus.classes, old.posterior),
            name_likeliest_classes(new_consensus.classes, new.posterior),
        )
        if new_consensus.method == "adjusted-mean":
            items.append(
                MeanChange(
                    name,
                    *labels,
                    old.adjusted_mean,
                    new.adjusted_mean,
                    old.standard_error,
                    new.standard_error,
                )
            )
        elif new.posterior != old.posterior:
            items.append(ItemChange(name, *labels, old.ambiguity, new.ambiguity))
    # Another label first, then the greatest change of ambiguity, or of the standard error.
    items.sort(key=lambda item: (item.label == item.label_before, -abs(item[-1] - item[-2])))
    previous_ranks = rank_agents(earlier_consensus.agents)
    ranks = rank_agents(new_consensus.agents)
    agents = []
    for name in sorted(earlier_consensus.agents, key=ranks.__getitem__):
        old_score = earlier_consensus.agents[name].score
        new_score = new_consensus.agents[name].score
        agents.append(AgentChange(name, old_score, new_score, previous_ranks[name], ranks[name]))
    label_count = new_consensus.counts.labels - earlier_consensus.counts.labels
    return ConsensusChange(label_count, items, agents)
