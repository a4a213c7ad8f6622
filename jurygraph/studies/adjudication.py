"""A further round of labels: which items of a saved consensus are ambiguous, and what new labels of them changed.

A consensus is saved as `jurygraph consensus --json` prints it. `assign --ambiguous` makes sheets of its ambiguous
items, and `consensus --before` compares a consensus of all labels with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from pydantic import ConfigDict

from jurygraph.aggregation.consensus import HIGH_AMBIGUITY, AgentScore
from jurygraph.aggregation.consensus.fitting import ConsensusMethod
from jurygraph.display import ProgressCallback, ignore_progress
from jurygraph.errors import InputError
from jurygraph.messages import join_names, quote
from jurygraph.schema.frozen_model import FrozenModel, JsonFields, Number, UnitInterval
from jurygraph.schema.rating import Label
from jurygraph.sources.files import validate_at_location
from jurygraph.sources.ratings import read_json_object
from jurygraph.sources.sheets import SheetItem
from jurygraph.studies import consensus
from jurygraph.studies.consensus import (
    FittedConsensus,
    StudyPreset,
    name_likeliest_classes,
    rank_agents,
)
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
    annotators: tuple[str, ...] = ()


class _ConsensusCounts(FrozenModel):
    model_config = ConfigDict(extra="ignore")

    rows: int


class SavedConsensus(FrozenModel):
    """Some of the figures of `consensus.report`: what a further round needs of an earlier one."""

    model_config = ConfigDict(extra="ignore")

    classes: tuple[Label, ...]
    values: tuple[Number, ...]
    preset: StudyPreset
    method: ConsensusMethod
    settings: JsonFields
    dimension: str | None = None
    command: str = "jurygraph consensus RATINGS"
    counts: _ConsensusCounts
    agents: Mapping[str, AgentScore]
    annotators: Mapping[str, JsonFields] = {}
    items: Mapping[str, _ConsensusItem]
    decided_by_one: tuple[str, ...] = ()

    @property
    def doubtful_items(self) -> frozenset[str]:
        """Return the items that one vote decides, of a majority, for which these are as doubtful as a tie."""
        return frozenset(self.decided_by_one if self.method == "majority" else ())

    @property
    def annotator_names(self) -> frozenset[str]:
        """Return who labelled any of the items."""
        return frozenset().union(*(item.annotators for item in self.items.values()))

    @property
    def doubt_count(self) -> int:
        """Return the number of items in doubt, which are those that `select_ambiguous` selects by default."""
        doubtful_items = self.doubtful_items
        return sum(
            item.ambiguity > HIGH_AMBIGUITY or name in doubtful_items
            for name, item in self.items.items()
        )


class ItemChange(NamedTuple):
    """An item with another posterior: its likeliest label and its ambiguity, before and now."""

    item: str
    label_before: str
    label: str
    ambiguity_before: float
    ambiguity: float


class AgentChange(NamedTuple):
    """The score and the rank of an agent, before and now, each by the method of its consensus."""

    agent: str
    score_before: float
    score: float
    rank_before: float
    rank: float


class ConsensusChange(NamedTuple):
    """The number of new `labels`, and what they moved.

    Items with another likeliest label come first, and then those whose ambiguity changed most; agents by their rank.
    """

    labels: int
    items: Sequence[ItemChange]
    agents: Sequence[AgentChange]


def read_consensus(path: Path) -> SavedConsensus:
    """Read what `consensus --json` printed. Raises `InputError` with file and field for anything else."""
    content = read_json_object(path, "a saved consensus is", _SAVE_CONSENSUS_HINT)
    if "items" not in content:
        raise InputError(f"{path}, field items: is missing; {_SAVE_CONSENSUS_HINT}")
    earlier_consensus = validate_at_location(str(path), SavedConsensus, content)
    lengths = {len(item.posterior) for item in earlier_consensus.items.values()}
    if lengths != {len(earlier_consensus.classes)}:
        raise InputError(
            f"{path}, field items: has other classes than `classes`; {_SAVE_CONSENSUS_HINT}"
        )
    return earlier_consensus


def select_ambiguous(
    earlier_consensus: SavedConsensus, min_ambiguity: float, items: Sequence[SheetItem]
) -> list[SheetItem]:
    """Return those of the items of which a consensus has a doubt above `min_ambiguity`, the most doubtful first.

    Of a majority these are items with the widest spread of labels, and of equal ones ties first; else those with the
    highest ambiguity. Raises `InputError` if there is none, or if one is not among `items`.
    """
    item_by_key = {item.key: item for item in items}
    earlier_items = sorted(
        earlier_consensus.items.items(),
        key=lambda entry: (
            -entry[1].spread * (earlier_consensus.method == "majority"),
            -entry[1].ambiguity,
            entry[1].labels,
        ),
    )
    decided_by_one = earlier_consensus.doubtful_items
    selected_items = []
    for name, item in earlier_items:
        if max(item.ambiguity, _TIE_AMBIGUITY * (name in decided_by_one)) > min_ambiguity:
            if name not in item_by_key:
                raise InputError(
                    f"--ambiguous: ITEMS have no text of {quote(name)} (the item, with _ and its agent where ratings "
                    f"name one), but of {join_names(item_by_key)}; add it, or name the column of agents with "
                    "--column agent=C"
                )
            selected_items.append(item_by_key[name])
    if not selected_items:
        highest = max(item.ambiguity for item in earlier_consensus.items.values())
        problem = f"no item is more ambiguous than {min_ambiguity:g}"
        hint = f"ambiguity is from 0 to 1, and here {highest:.3g} at most; write less"
        if earlier_consensus.method == "majority":
            problem += (
                " by majority vote, for which only ties and items decided by one vote are in doubt"
            )
            hint = (
                f"a tie of two is {_TIE_AMBIGUITY:g}, as are items that one vote decides; write less, or save the "
                "consensus again with --method stableval"
            )
        raise InputError(f"--above: {problem}; {hint}")
    return selected_items


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
        **consensus.describe_fit(fitted_consensus),
    )
    for name in ("classes", "values", "preset", "method", "settings"):
        if getattr(before, name) != getattr(new_consensus, name):
            raise InputError(
                f"--before: has other {name}; give the options of that consensus: {before.command}"
            )
    lost_annotators = sorted(before.annotator_names - new_consensus.annotator_names)
    if lost_annotators:
        raise InputError(
            f"--before: that consensus has labels of {join_names(lost_annotators)}, and this one has none; name the "
            "files of both, or leave the same people out of both (--without)"
        )
    has_other_items = before.items.keys() - new_consensus.items.keys()
    if has_other_items or new_consensus.counts.rows <= before.counts.rows:
        raise InputError(
            "--before: these ratings are not those of that consensus and new ones; name the files of both"
        )
    change = compare(before, new_consensus)
    items = _table(ItemChange._fields, change.items)
    agents = _table(AgentChange._fields, change.agents)
    changed_label_count = sum(item.label != item.label_before for item in change.items)
    report = consensus.report(fitted_consensus, advance)
    return replace(
        report,
        figures={**report.figures, "moved": change},
        sections=[items, agents, *report.sections],
        conclusion=[
            f"new labels: {change.labels}; items with another likeliest label: {changed_label_count}",
            f"items in doubt: {before.doubt_count} before, {new_consensus.doubt_count} now",
            *report.conclusion,
        ],
    )


def _table(fields: Sequence[str], rows: Sequence[Sequence[object]]) -> ReportTable:
    header = [name.replace("_", " ") for name in fields]
    return ReportTable(header, rows, digits=3, most=10)


def compare(earlier_consensus: SavedConsensus, new_consensus: SavedConsensus) -> ConsensusChange:
    """Return what changed from a consensus to one of the same items and agents with more labels."""
    items = []
    for name, old in earlier_consensus.items.items():
        new = new_consensus.items[name]
        if new.posterior != old.posterior:
            earlier_label = name_likeliest_classes(earlier_consensus.classes, old.posterior)
            label = name_likeliest_classes(new_consensus.classes, new.posterior)
            items.append(ItemChange(name, earlier_label, label, old.ambiguity, new.ambiguity))
    # Another label first, then the greatest change of ambiguity.
    items.sort(
        key=lambda item: (
            item.label == item.label_before,
            -abs(item.ambiguity - item.ambiguity_before),
        )
    )
    previous_ranks = rank_agents(earlier_consensus.agents)
    ranks = rank_agents(new_consensus.agents)
    agents = []
    for name in sorted(earlier_consensus.agents, key=ranks.__getitem__):
        old_score = earlier_consensus.agents[name].score
        new_score = new_consensus.agents[name].score
        agents.append(AgentChange(name, old_score, new_score, previous_ranks[name], ranks[name]))
    return ConsensusChange(new_consensus.counts.rows - earlier_consensus.counts.rows, items, agents)
