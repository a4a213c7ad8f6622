"""Votes of one or several files as columns, with their labels on one scale."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from jurygraph.errors import InputError
from jurygraph.messages import describe_value, did_you_mean, quote
from jurygraph.schema.rating import Label, Vote
from jurygraph.sources.ratings import NUMERAL, PlacedLabel, VotesFile

_MAX_LISTED = 20


@dataclass(frozen=True)
class VoteColumns:
    """Votes row by row, in the order of the files.

    Attributes:
        item: the key of the labelled item, [rows]: the item, with "_" and the agent if there is one.
        file_item: the item as the files name it, [rows]: the same for all agents that answered it.
        annotator: [rows].
        label: [rows], each one of `classes`, or None for an abstention.
        classes: from low to high, [K], K ≥ 2.
        agent, prompt: the agent, and the group that items share, [rows]; None if no vote names one.
        gold: the class of items for which it is known, by key.
    """

    item: Sequence[str]
    file_item: Sequence[str]
    annotator: Sequence[str]
    label: Sequence[Label | None]
    classes: tuple[Label, ...]
    agent: Sequence[str] | None
    prompt: Sequence[str] | None
    gold: Mapping[str, Label]


class _PlacedVote(NamedTuple):
    file: VotesFile
    place: str
    vote: Vote

    @property
    def where(self) -> str:
        return f"{self.file.path}, {self.place}"

    def where_field(self, name: str) -> str:
        return f"{self.where}, field {self.file.columns.get(name, name)}"


def collect_votes(
    files: Iterable[VotesFile],
    dimension: str | None = None,
    classes: Sequence[str] = (),
    gold: Mapping[str, PlacedLabel] = {},
) -> VoteColumns:
    """Return the votes of all files on one scale.

    Args:
        files: read as one.
        dimension: the dimension to select if there are several.
        classes: all labels, from low to high; text that writes a number is that number. Without them labels must be
            numbers, and the classes are those that occur.
        gold: known classes of items, by their keys.

    Raises:
        InputError: names file, line and field: a label off the scale, words without a scale, one class alone, several
            dimensions, an agent or group in only some rows, a key that two agents share, an item in two groups, or gold
            of an item without votes.
    """
    votes = _select_dimension([_PlacedVote(file, *row) for file in files for row in file.rows], dimension)
    scale = _parse_scale(classes) if classes else _scale_of_numbers(votes)
    label = [None if vote.label is None else _class_of(vote.label) for _, _, vote in votes]
    known = set(scale)
    for one, label_class in zip(votes, label, strict=True):
        if label_class is not None and label_class not in known:
            raise _off_scale_error(one.where_field("label"), label_class, scale)
    if all(one is None for one in label):
        raise InputError(f"{_join_paths(votes)}: nothing but abstentions; write labels")
    agent = _complete_column(votes, "agent")
    prompt = _complete_column(votes, "group")
    _refuse_shared_keys(votes)
    item = [vote.key for _, _, vote in votes]
    return VoteColumns(
        item=item,
        file_item=[vote.item for _, _, vote in votes],
        annotator=[vote.annotator for _, _, vote in votes],
        label=label,
        classes=scale,
        agent=agent,
        prompt=prompt,
        gold=_check_gold(gold, set(item), scale),
    )


def format_label(label: Label) -> str:
    """Format a label; whole numbers have no decimal point."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _select_dimension(votes: list[_PlacedVote], dimension: str | None) -> list[_PlacedVote]:
    present = dict.fromkeys(vote.dimension for _, _, vote in votes)
    names = [one for one in present if one is not None]
    listed = ", ".join(names[:_MAX_LISTED])
    if dimension is None and len(present) > 1:
        without = " and rows without any" if None in present else ""
        problem = f"the ratings have several dimensions: {listed}{without}"
        raise InputError(f"{_join_paths(votes)}: {problem}; pick one with --dimension")
    if dimension is None:
        return votes
    if dimension not in names:
        hint = did_you_mean(dimension, names) or f"known here: {listed or 'none'}"
        raise InputError(f"--dimension: no rating is of {quote(dimension)}; {hint}")
    return [one for one in votes if one.vote.dimension == dimension]


def _join_paths(votes: Iterable[_PlacedVote]) -> str:
    return ", ".join(dict.fromkeys(one.file.path for one in votes))


def _class_of(label: Label) -> Label:
    """Return the class that a label names: a number, also if written as text, or a word."""
    if isinstance(label, str) and not NUMERAL.fullmatch(label):
        return label
    number = float(label)
    if not math.isfinite(number):
        return label
    return int(number) if number.is_integer() else number


def _parse_scale(classes: Sequence[str]) -> tuple[Label, ...]:
    scale = tuple(map(_class_of, classes))
    if len(scale) < 2:
        raise InputError(f"--classes: {quote(classes[0])} alone is no scale; name 2 classes or more, from low to high")
    for index, one in enumerate(scale):
        if one == "" or one in scale[:index]:
            problem = "one has no name" if one == "" else f"{quote(classes[index])} is there twice"
            raise InputError(f"--classes: {problem}; name each class once, from low to high")
    return scale


def _scale_of_numbers(votes: Sequence[_PlacedVote]) -> tuple[Label, ...]:
    texts = [one for one in votes if isinstance(one.vote.label, str)]
    if texts:
        first = next((one for one in texts if isinstance(_class_of(str(one.vote.label)), str)), texts[0])
        problem = f"is {describe_value(first.vote.label)}, and only numbers have an order by themselves"
        remedy = "write a number, or name all labels from low to high with --classes"
        raise InputError(f"{first.where_field('label')}: {problem}; {remedy}")
    classes = sorted({_class_of(one.vote.label) for one in votes if one.vote.label is not None})
    if len(classes) == 1:
        problem = f"every label is {format_label(classes[0])}, and there is nothing to tell apart"
        raise InputError(f"{_join_paths(votes)}: {problem}; name the whole scale with --classes")
    return tuple(classes)


def _off_scale_error(where: str, label: Label, scale: Sequence[Label]) -> InputError:
    label_class = _class_of(label)
    listed = ", ".join(map(format_label, scale[:_MAX_LISTED])) + ", …" * (len(scale) > _MAX_LISTED)
    suggestion = did_you_mean(label_class, map(format_label, scale)) if isinstance(label_class, str) else None
    hint = suggestion or "write one of these, or have --classes name it"
    return InputError(f"{where}: is {describe_value(label_class)}, which is off the scale {listed}; {hint}")


def _complete_column(votes: Sequence[_PlacedVote], name: Literal["agent", "group"]) -> list[str] | None:
    """Return a column that every row has, or None if no row has it. Raises `InputError` otherwise."""
    values = [getattr(vote, name) for _, _, vote in votes]
    if all(value is None for value in values):
        return None
    if None in values:
        where = votes[values.index(None)].where_field(name)
        raise InputError(f"{where}: is empty, and other rows have one; give every row one")
    return values


def _refuse_shared_keys(votes: Iterable[_PlacedVote]) -> None:
    first: dict[str, _PlacedVote] = {}
    for one in votes:
        other = first.setdefault(one.vote.key, one)
        vote = one.vote
        if (vote.item, vote.agent) != (other.vote.item, other.vote.agent):
            item, other_item = (f"item {quote(v.item)} of agent {quote(str(v.agent))}" for v in (vote, other.vote))
            problem = f"{item} has the key of {other_item} in {other.where}"
            raise InputError(f"{one.where_field('item')}: {problem}; rename one of the two")
        if vote.group != other.vote.group:
            problem = f"is not the group that item {quote(vote.key)} has in {other.where}"
            raise InputError(f"{one.where_field('group')}: {problem}; give each item one group")


def _check_gold(gold: Mapping[str, PlacedLabel], items: set[str], scale: Sequence[Label]) -> dict[str, Label]:
    checked = {}
    for key, (where, columns, label) in gold.items():
        if key not in items:
            hint = did_you_mean(key, items) or "leave the row out"
            raise InputError(f"{where}, field {columns['item']}: nobody labelled item {quote(key)}; {hint}")
        checked[key] = _class_of(label)
        if checked[key] not in scale:
            raise _off_scale_error(f"{where}, field {columns['label']}", label, scale)
    return checked
