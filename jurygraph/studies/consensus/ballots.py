"""The votes of one or several files as columns, their labels on one scale."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from jurygraph.errors import InputError
from jurygraph.schema.rating import Label, Vote
from jurygraph.sources import nearest
from jurygraph.sources.complaint import described, quoted
from jurygraph.sources.ratings import NUMERAL, PlacedLabel, VotesFile

_SHOWN = 20


@dataclass(frozen=True)
class Ballots:
    """Votes row by row, in the order of the files.

    Attributes:
        item: the key of what was labelled, [rows]: the item, with "_" and the agent where there is one.
        annotator: [rows].
        label: [rows], each one of `classes`, or None, an abstention.
        classes: from low to high, [K], K ≥ 2.
        agent: [rows]; None where no vote names one.
        prompt: what items share, [rows]; None where no vote names a group.
        gold: the class of items for which it is known, by key.
    """

    item: Sequence[str]
    annotator: Sequence[str]
    label: Sequence[Label | None]
    classes: tuple[Label, ...]
    agent: Sequence[str] | None
    prompt: Sequence[str] | None
    gold: Mapping[str, Label]


class _Cast(NamedTuple):
    """A vote, where it was cast."""

    file: VotesFile
    place: str
    vote: Vote

    @property
    def where(self) -> str:
        return f"{self.file.path}, {self.place}"

    @property
    def label_field(self) -> str:
        return f"{self.where}, field {self.file.columns['label']}"


def gather(
    files: Iterable[VotesFile],
    dimension: str | None = None,
    classes: Sequence[str] = (),
    gold: Mapping[str, PlacedLabel] = {},
) -> Ballots:
    """The votes of all files together.

    Args:
        files: read as one.
        dimension: whose votes are meant, where there are several.
        classes: the labels that there are, from low to high; one that writes a number is one. Without them labels are
            numbers, and the classes those that occur.
        gold: what is known of items, by their keys.

    Raises:
        InputError: naming file, line and field: a label off the scale, words without a scale, one class alone, several
            dimensions, an agent or group in some rows alone, a key that two agents share, an item in two groups, or
            gold of an item without votes.
    """
    cast = _of_dimension([_Cast(file, place, vote) for file in files for place, vote in file.rows], dimension)
    scale = _stated(classes) if classes else _occurring(cast)
    label = list(_on_scale(cast, scale))
    if not any(one is not None for one in label):
        raise InputError(f"{_files(cast)}: nothing but abstentions; write labels")
    agent, prompt = _column(cast, "agent"), _column(cast, "group")
    _refuse_shared_keys(cast)
    item = [vote.key for _, _, vote in cast]
    return Ballots(
        item=item,
        annotator=[vote.annotator for _, _, vote in cast],
        label=label,
        classes=scale,
        agent=agent,
        prompt=prompt,
        gold=_known(gold, set(item), scale),
    )


def shown(label: Label) -> str:
    """A label as one writes it: whole numbers without a point."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _of_dimension(cast: list[_Cast], dimension: str | None) -> list[_Cast]:
    known = list(dict.fromkeys(vote.dimension for _, _, vote in cast))
    named = [one for one in known if one is not None]
    if dimension is None and len(known) > 1:
        without = " and rows without any" if None in known else ""
        listed = f"dimensions: {', '.join(named[:_SHOWN])}{without}"
        raise InputError(f"{_files(cast)}: the ratings have several {listed}; pick one with --dimension")
    if dimension is None:
        return cast
    if dimension not in named:
        hint = nearest(dimension, named) or f"known here: {', '.join(named[:_SHOWN]) or 'none'}"
        raise InputError(f"--dimension: no rating is of {quoted(dimension)}; {hint}")
    return [one for one in cast if one.vote.dimension == dimension]


def _files(cast: Iterable[_Cast]) -> str:
    return ", ".join(dict.fromkeys(one.file.path for one in cast))


def _class(label: Label) -> Label:
    """What a label names: a number, also where it is written as text, or a word."""
    if isinstance(label, str) and not NUMERAL.fullmatch(label):
        return label
    number = float(label)
    if not math.isfinite(number):
        return label
    return int(number) if number.is_integer() else number


def _stated(classes: Sequence[str]) -> tuple[Label, ...]:
    scale = tuple(map(_class, classes))
    if len(scale) < 2:
        raise InputError(f"--classes: {quoted(classes[0])} alone is no scale; name 2 classes or more, from low to high")
    for place, one in enumerate(scale):
        if one == "" or one in scale[:place]:
            wrong = "one has no name" if one == "" else f"{quoted(classes[place])} is there twice"
            raise InputError(f"--classes: {wrong}; name each class once, from low to high")
    return scale


def _occurring(cast: Sequence[_Cast]) -> tuple[Label, ...]:
    """The numbers that occur, from low to high."""
    word = next((one for one in cast if isinstance(one.vote.label, str)), None)
    if word is not None:
        raise _wordy(word, cast)
    found = sorted({_class(vote.label) for _, _, vote in cast if vote.label is not None})
    if len(found) == 1:
        told = f"every label is {shown(found[0])}, and there is nothing to tell apart"
        raise InputError(f"{_files(cast)}: {told}; name the whole scale with --classes")
    return tuple(found)


def _wordy(first: _Cast, cast: Iterable[_Cast]) -> InputError:
    """What to say of words without a scale; where most labels are numbers, of the one that is none."""
    labels = [vote.label for _, _, vote in cast if vote.label is not None]
    numbers = sum(not isinstance(_class(label), str) for label in labels)
    if numbers * 2 > len(labels):
        first = next((one for one in cast if isinstance(_class(one.vote.label or 0.0), str)), first)
        wrong = f"is {described(first.vote.label)}, where {numbers} other labels are numbers"
        return InputError(f"{first.label_field}: {wrong}; write a number, or nothing to abstain")
    wrong = f"is {described(first.vote.label)}, and words have no order"
    return InputError(f"{first.label_field}: {wrong}; name all labels from low to high with --classes")


def _on_scale(cast: Iterable[_Cast], scale: Sequence[Label]) -> Iterator[Label | None]:
    known = set(scale)
    for one in cast:
        label = one.vote.label
        if label is not None and _class(label) not in known:
            raise _off_scale(one.label_field, label, scale)
        yield None if label is None else _class(label)


def _off_scale(where: str, label: Label, scale: Sequence[Label]) -> InputError:
    meant = _class(label)
    listed = ", ".join(map(shown, scale[:_SHOWN])) + (", …" if len(scale) > _SHOWN else "")
    near = nearest(meant, map(shown, scale)) if isinstance(meant, str) else None
    hint = near or "write one of these, or have --classes name it"
    return InputError(f"{where}: is {described(meant)}, which is off the scale {listed}; {hint}")


def _column(cast: Sequence[_Cast], name: Literal["agent", "group"]) -> list[str] | None:
    """A column that every row has, or none."""
    values = [getattr(vote, name) for _, _, vote in cast]
    if all(value is None for value in values):
        return None
    without = next((one for one, value in zip(cast, values, strict=True) if value is None), None)
    if without is not None:
        field = without.file.columns.get(name, name)
        raise InputError(f"{without.where}, field {field}: is empty, and other rows have one; give every row one")
    return values


def _refuse_shared_keys(cast: Iterable[_Cast]) -> None:
    first: dict[str, _Cast] = {}
    for one in cast:
        other = first.setdefault(one.vote.key, one)
        vote = one.vote
        if (vote.item, vote.agent) != (other.vote.item, other.vote.agent):
            two = f"item {quoted(vote.item)} of agent {quoted(str(vote.agent))} has the key of"
            same = f"item {quoted(other.vote.item)} of agent {quoted(str(other.vote.agent))} in {other.where}"
            raise InputError(f"{one.where}, field {one.file.columns['item']}: {two} {same}; rename one of the two")
        if vote.group != other.vote.group:
            wrong = f"is not the group that item {quoted(vote.key)} has in {other.where}"
            raise InputError(f"{one.where}, field {one.file.columns['group']}: {wrong}; give each item one group")


def _known(gold: Mapping[str, PlacedLabel], items: set[str], scale: Sequence[Label]) -> dict[str, Label]:
    known = {}
    for key, (where, columns, label) in gold.items():
        if key not in items:
            hint = nearest(key, items) or "leave the row out"
            raise InputError(f"{where}, field {columns['item']}: nobody labelled item {quoted(key)}; {hint}")
        if _class(label) not in scale:
            raise _off_scale(f"{where}, field {columns['label']}", label, scale)
        known[key] = _class(label)
    return known
