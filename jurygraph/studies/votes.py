"""Votes of files on one scale: their classes, and the class of each label, for a consensus of annotators."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple

import numpy as np

from jurygraph.errors import InputError
from jurygraph.messages import (
    describe_value,
    did_you_mean,
    find_meant_field,
    join_names,
    list_first,
    quote,
)
from jurygraph.schema.rating import Label, Vote, format_label
from jurygraph.sources.label_words import (
    DECISION_PAIRS,
    LABEL_FIELDS,
    fold_word,
    has_words,
    is_number_scale,
    parse_scale,
    read_class,
    read_decision,
    to_class_value,
)
from jurygraph.sources.ratings import (
    LabelWithPlace,
    VotesFile,
    parse_target_cell,
    select_dimension,
)

MAX_LISTED_NAMES = 20
_MAX_CLASSES = 25
"""More different numbers than this are values of a slider: a confusion of each with each cannot be learned."""
_CONTINUOUS_SCALE_HINT = (
    "`jurygraph study agreement --level interval` compares them as numbers; or write classes, such as low, middle and "
    "high, or name all values with --classes if they are classes"
)
_LABEL_COLUMN_HINT = (
    "name the column of the labels, or all values with --classes if they are classes"
)
_MIN_LABELS_PER_SLIP = 10
_FEW_CLASSES_THRESHOLD = 10
"""Up to this, numbers are classes even where most labels differ."""


class VoteColumns(NamedTuple):
    """Votes row by row, in the order of the files.

    Attributes:
        item: the key of the labelled item, [rows]: the item, with "_" and the agent if there is one.
        item_id_in_file: the item as the files name it, [rows]: the same for all agents that answered it.
        annotator: [rows].
        label: [rows], each one of `classes`, or None for an abstention.
        classes: from low to high, [K], K ≥ 2.
        agent, prompt: the agent, and the group that items share, [rows]; None if no vote names one.
        gold: the class of items for which it is known, by key.
        values: credit of each class, [K], where all are numbers of the data: linear from the lowest to the highest.
        has_order: False if `classes` are words that nobody has put in an order, which are sorted.
        dimension: that of all votes; None if they name none.
        label_column: what the column of labels is called.
        location: the line of each row, and its file, [rows].
        details: the `group`, `prompt` and `text` of the item in each row, as far as the file has them, [rows].
        spelling_change_counts: the number of labels unlike their class, by both: "'Bug' as bug", "3.5 as 4".
        unread_columns: the columns of the files that nothing is read from.
        left_out: by the key of an item, who labelled it and is left out of the rows.
    """

    item: Sequence[str]
    item_id_in_file: Sequence[str]
    annotator: Sequence[str]
    label: Sequence[Any]
    classes: Sequence[Label]
    agent: Sequence[str] | None
    prompt: Sequence[str] | None
    gold: Mapping[str, Label]
    values: Sequence[float] | None = None
    has_order: bool = True
    dimension: str | None = None
    label_column: str = "label"
    location: Sequence[str] = ()
    details: Sequence[Mapping[str, str | None]] = ()
    spelling_change_counts: Mapping[str, int] = {}
    unread_columns: Sequence[str] = ()
    left_out: Mapping[str, Sequence[str]] = {}

    @property
    def question(self) -> str | None:
        """Return the dimension, or the name of the column of labels if it says something."""
        column = None if self.label_column in LABEL_FIELDS else self.label_column
        return self.dimension or column

    @property
    def is_number_scale(self) -> bool:
        """Return whether classes are numbers from low to high, and more than two: a mean tells more than a vote."""
        return len(self.classes) > 2 and is_number_scale(self.classes)


class _LocatedVote(NamedTuple):
    file: VotesFile
    location: str
    vote: Vote

    @property
    def where(self) -> str:
        return f"{self.file.path}, {self.location}"

    def field_location(self, name: str) -> str:
        return f"{self.where}, field {self.file.columns.get(name, name)}"

    @property
    def label_location(self) -> str:
        row = f"{self.location} ({self.vote.key}, {self.vote.annotator})"
        column = self.file.columns.get("label", "label")
        if "," in column:  # of several, the one of this question
            column = self.vote.dimension or column
        return f"{self.file.path}, {row}, field {column}"


def collect_votes(
    files: Sequence[VotesFile],
    dimension: str | None = None,
    classes: Sequence[str] = (),
    gold: Mapping[str, LabelWithPlace] = {},
) -> VoteColumns:
    """Return the votes of all files on one scale.

    Args:
        files: read as one; a file without groups has those that its items have in the others.
        dimension: the dimension to select if there are several.
        classes: all labels, from low to high; text that writes a number is that number. Without them labels must be
            numbers, or, where no vote names an agent, words, and the classes are those that occur; decisions, such as
            yes and TRUE, are one pair of classes (`_order_decisions`).
        gold: known classes of items, by their keys.

    Raises:
        InputError: names file, line and field: a label off the scale, words without a scale, one class alone, several
            dimensions, an agent or group in only some rows, a key that two agents share, an item in two groups, or gold
            of an item without votes.
    """
    votes: list[_LocatedVote] = []
    for file in select_dimension(files, dimension):
        votes += [_LocatedVote(file, *row) for row in file.rows]
    votes = list(_name_groups(votes))
    _refuse_several_dimensions(votes)
    found = [vote.label for _, _, vote in votes if vote.label is not None]
    if not found:
        raise InputError(f"{_subject_text(votes)}: nothing but abstentions; write labels")
    agent = _require_complete_column(votes, "agent")
    # Only agents get credit, for which classes need an order.
    has_class_order = (
        bool(classes)
        or agent is not None
        or bool(_order_decisions(found))
        or not all(isinstance(to_class_value(label), str) for label in found)
    )
    scale = parse_scale(classes) if classes else _classes_in_votes(votes, has_class_order)
    values = None
    if not classes and has_class_order:
        values = [0.0, 1.0]
        if not has_words(scale):
            values = np.interp(scale, (scale[0], scale[-1]), values).tolist()
    labels = []
    spelling_change_counts = Counter[str]()
    for located_vote in votes:
        label = located_vote.vote.label
        if label is not None:
            spelling_in_file = label
            label = _label_to_scale_class(label, scale, located_vote.label_location)
            if to_class_value(spelling_in_file) != label:
                spelling_change_counts[f"{quote(format_label(spelling_in_file))} as {label}"] += 1
        labels.append(label)
    prompt = _require_complete_column(votes, "group")
    _refuse_ambiguous_item_keys(votes)
    return VoteColumns(
        item=[vote.key for _, _, vote in votes],
        item_id_in_file=[vote.item for _, _, vote in votes],
        annotator=[vote.annotator for _, _, vote in votes],
        label=labels,
        classes=scale,
        agent=agent,
        prompt=prompt,
        gold=_find_gold_classes(gold, votes, scale),
        values=values,
        has_order=has_class_order,
        dimension=votes[0].vote.dimension,
        label_column=votes[0].file.columns.get("label", "label"),
        location=[f"{vote.location} of {vote.file.path}" for vote in votes],
        details=[vote.model_dump(include={"group", "prompt", "text"}) for _, _, vote in votes],
        spelling_change_counts=spelling_change_counts,
        unread_columns=tuple(
            dict.fromkeys(chain.from_iterable(file.unread_columns for file in files))
        ),
    )


def _find_gold_classes(
    gold: Mapping[str, LabelWithPlace], votes: Sequence[_LocatedVote], scale: Sequence[Any]
) -> dict[str, Label]:
    """Return the class of each item that gold names: by its key, or without its agent if one alone answered it."""
    keys = {vote.key for _, _, vote in votes}
    keys_by_name = defaultdict(set)
    for _, _, vote in votes:
        keys_by_name[vote.item].add(vote.key)
    keys_by_name |= {key: {key} for key in keys}
    classes: dict[str, Label] = {}
    for name, (where, columns, label) in gold.items():
        answers = keys_by_name.get(name, set())
        if len(answers) != 1:
            dimension = votes[0].vote.dimension
            problem = f"nobody labelled {f'{dimension} of ' if dimension else ''}item {quote(name)}"
            hint = did_you_mean(name, sorted(keys_by_name)) or "leave the row out"
            if answers:
                problem = f"several agents answered item {quote(name)}"
                hint = "name the agent of each row in the column that the ratings have for it"
            raise InputError(f"{where}, field {columns['item']}: {problem}; {hint}")
        (key,) = answers
        gold_class = _label_to_scale_class(label, scale, f"{where}, field {columns['label']}")
        if classes.setdefault(key, gold_class) != gold_class:
            raise InputError(
                f"{where}: {quote(key)} has another gold label, under its name with or without the agent; keep one"
            )
    return classes


def list_questions(files: Sequence[VotesFile], dimension: str | None) -> list[str | None]:
    """Return the questions that votes are of, in their order, or the one `dimension` that is chosen.

    None is for votes that name none; such together with others are refused later (`collect_votes`).
    """
    names = dict.fromkeys(
        vote.dimension for file in select_dimension(files, None) for _, vote in file.rows
    )
    if dimension is not None or None in names:
        return [dimension]
    return [*names]


def _refuse_several_dimensions(votes: Sequence[_LocatedVote]) -> None:
    dimensions = Counter(located_vote.vote.dimension or "" for located_vote in votes)
    if len(dimensions) > 1:
        unnamed_count = dimensions.pop("", 0)
        problem = f"has the dimensions {', '.join(list_first(list(dimensions), MAX_LISTED_NAMES))}"
        hint = "pick one with --dimension (`jurygraph study agreement` takes each)"
        if unnamed_count:
            problem += f", and {unnamed_count} rows without one"
            hint = "call their column of labels by it, or name it in a column `dimension`: --dimension leaves them out"
        raise InputError(f"{_vote_file_paths_text(votes)}: {problem}; {hint}")


def _name_question(votes: Sequence[_LocatedVote]) -> str:
    """Return the beginning of classes that are of the question of votes; empty where they name none."""
    dimension = votes[0].vote.dimension
    return f"{dimension}=" if dimension else ""


def _subject_text(votes: Sequence[_LocatedVote]) -> str:
    """Return the files of votes, and their question if they name one."""
    dimension = votes[0].vote.dimension
    question = f", labels of {dimension}" if dimension else ""
    return f"{_vote_file_paths_text(votes)}{question}"


def _vote_file_paths_text(votes: Iterable[_LocatedVote]) -> str:
    return ", ".join(dict.fromkeys(located_vote.file.path for located_vote in votes))


def _label_to_scale_class(label: Label, scale: Sequence[Any], where: str) -> Label:
    """Return the class of the scale that a label names. Raises `InputError` with its place if there is none."""
    label_class: Label | None = read_class(label, scale)
    if label_class is not None:
        return label_class
    names = list(map(format_label, scale))
    scale_text = ", ".join(list_first(names, MAX_LISTED_NAMES))
    hint = "write one of these, or have --classes name it, by QUESTION=A,B if they are another question's"
    if isinstance(label, str):
        hint = did_you_mean(label, names) or hint
    raise InputError(
        f"{where}: is {describe_value(to_class_value(label))}, which is off the scale {scale_text}; {hint}"
    )


def _classes_in_votes(votes: Sequence[_LocatedVote], has_class_order: bool) -> Sequence[Any]:
    """Return the classes that occur, sorted: words, which have no order, in their commonest spelling."""
    texts = [located_vote for located_vote in votes if isinstance(located_vote.vote.label, str)]
    labels = [to_class_value(vote.label) for _, _, vote in votes if vote.label is not None]
    decisions = _order_decisions(labels)
    if len(decisions) > 1:
        return decisions
    if has_class_order and texts and not decisions:
        # a slip rather than a number that is written as text, or a decision such as yes
        odd = max(texts, key=lambda text: isinstance(parse_target_cell(str(text.vote.label)), str))
        problem = "and only numbers have an order by themselves; write a number"
        numbers = [vote for vote in votes if isinstance(vote.vote.label, float)]
        if 0 < len(numbers) < len(texts):
            odd = numbers[0]
            problem = "where most labels are words; write one"
        label: Any = odd.vote.label
        raise InputError(
            f"{odd.label_location}: is {quote(format_label(label))}, {problem}, or name all labels from low to high "
            f"with --classes {_name_question(votes)}LOWEST,…,HIGHEST"
        )
    classes = decisions or sorted(list_spellings(labels))
    class_count = len(classes)
    if class_count == 1:
        raise InputError(
            f"{_subject_text(votes)}: every label is {format_label(classes[0])}, and there is nothing to tell apart; "
            f"name the whole scale with --classes {_name_question(votes)}LOWEST,…,HIGHEST"
        )
    label_count = len(labels)
    if class_count > _MAX_CLASSES or (
        class_count > _FEW_CLASSES_THRESHOLD and 2 * class_count > label_count
    ):
        hint = _CONTINUOUS_SCALE_HINT if has_class_order else _LABEL_COLUMN_HINT
        raise InputError(
            f"{_vote_file_paths_text(votes)}: {label_count} labels have {class_count} different values, which are no "
            f"classes; {hint}"
        )
    return tuple(classes)


def list_spellings(labels: Iterable[Label]) -> list[Any]:
    """Return the labels that occur, those that differ in case alone in their commonest spelling."""
    spelling_by_class: dict[str, Any] = {}
    for label, _ in Counter(labels).most_common():
        spelling_by_class.setdefault(str(label).casefold(), label)
    return list(spelling_by_class.values())


def _order_decisions(labels: Sequence[Label]) -> Sequence[Any]:
    """Return labels that are words of a decision, such as no and yes, as classes, the one that declines first; else
    none.

    In several spellings, or with 1 and 0 among them, they are the commonest pair, or the one of it that all mean.
    """
    words = list_spellings(map(to_class_value, labels))
    word_by_decision = {read_decision(word): word for word in words}
    if len(words) < 2 or None in word_by_decision or not has_words(words):
        return ()
    if len(words) == len(word_by_decision) and {0, 1}.isdisjoint(words):
        return word_by_decision[False], word_by_decision[True]
    counts = Counter(fold_word(str(label)) for label in labels)
    pair = max(DECISION_PAIRS, key=lambda names: sum(counts[name] for name in names))
    return [name for name in pair if read_decision(name) in word_by_decision]


def _name_groups(votes: Sequence[_LocatedVote]) -> Iterator[_LocatedVote]:
    """Yield the votes, those of a file without groups with the group that their item has in the other files."""
    group_by_item = {vote.key: vote.group for _, _, vote in votes if vote.group is not None}
    for file, location, vote in votes:
        if "group" not in file.columns:
            vote = vote.model_copy(update={"group": group_by_item.get(vote.key)})
        yield _LocatedVote(file, location, vote)


def _require_complete_column(
    votes: Sequence[_LocatedVote], name: Literal["agent", "group"]
) -> list[str] | None:
    """Return a column that every row has, or None if no row has it. Raises `InputError` otherwise."""
    values = [getattr(vote, name) for _, _, vote in votes]
    if all(value is None for value in values):
        return None
    if None in values:
        row = votes[values.index(None)]
        raise InputError(
            f"{row.field_location(name)}: is empty, and other rows have one; give every row one"
        )
    return values


def _refuse_ambiguous_item_keys(votes: Iterable[_LocatedVote]) -> None:
    first: dict[str, _LocatedVote] = {}
    for located_vote in votes:
        other = first.setdefault(located_vote.vote.key, located_vote)
        # item "a_b" of agent "c" has the key of item "a" of agent "b_c"
        for name in ("item", "agent", "group"):
            if getattr(located_vote.vote, name) != getattr(other.vote, name):
                raise InputError(
                    f"{located_vote.field_location(name)}: is not the {name} of item {quote(located_vote.vote.key)} "
                    f"in {other.where}; give each item one, and a name of its own"
                )


def notes_on_labels(ballots: VoteColumns) -> Iterator[str]:
    """Yield which labels are in another spelling than their class."""
    if ballots.spelling_change_counts:
        spelling_change_texts = [
            f"{pair} ({count})" for pair, count in sorted(ballots.spelling_change_counts.items())
        ]
        yield (
            "labels read as the nearest class (half way as the one farther from the middle), or as one in another "
            f"spelling: {join_names(spelling_change_texts)}"
        )


def notes_on_half_steps(ballots: VoteColumns) -> Iterator[str]:
    """Yield how to take fewer classes than a scale with half steps has, such as 1, 1.5, …, 5."""
    classes, _ = _split_slips(ballots)
    if (
        ballots.values
        and ballots.is_number_scale
        and {value % 1.0 for value in classes} == {0, 0.5}
    ):
        scale = range(math.floor(classes[0]), math.ceil(classes[-1]) + 1)
        yield (
            f"labels have half steps and are {len(classes)} classes, of which votes often tie: better `--classes "
            f"{','.join(map(str, scale))}`, which takes each as the nearest, or --method adjusted-mean"
        )


def describe_repeats(ballots: VoteColumns) -> Iterator[str]:
    """Yield a warning where people label an item again, and which column may name the agents whose answers they
    labelled."""
    first_labels: dict[tuple[str, str], Label] = {}
    repeats = []
    change_count = 0
    rows = zip(ballots.item, ballots.annotator, ballots.label, ballots.location, strict=True)
    for item, annotator, label, location in rows:
        if label is None:
            continue
        if (item, annotator) in first_labels:
            repeats.append(location)
        change_count += first_labels.setdefault((item, annotator), label) != label
    if repeats:
        remedy = "".join(
            f"; if {quote(column)} names whose answer it is, add --agent-column {column}"
            for column in ballots.unread_columns
            if find_meant_field(column, ("agent",))
        )
        yield (
            f"Warning: labelled again by the same annotator: {len(repeats)}, with another label: {change_count}; each "
            f"counts (--keep-last keeps the last): {join_names(repeats)}{remedy}"
        )


def _split_slips(ballots: VoteColumns) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return the classes, and apart from them the few numbers that are far from all others."""
    if not ballots.values or has_words(ballots.classes):
        return ballots.classes, ()
    labels = [label for label in ballots.label if label is not None]
    return split_far_labels(ballots.classes, labels)


def _locate_labels(ballots: VoteColumns, labels: Sequence[Any]) -> str:
    """Return numbers, and where they are written."""
    rows = zip(ballots.label, ballots.location, strict=True)
    locations = join_names(location for label, location in rows if label in labels)
    return f"{', '.join(map(format_label, labels))} ({locations})"


def describe_slips(ballots: VoteColumns) -> list[str]:
    """Return a warning of the few labels that are far from all others."""
    others, slips = _split_slips(ballots)
    if not slips:
        return []
    scale = [value for value in others if not value % 1.0] or others
    return [
        f"Warning: far from all other labels, and moving every figure: {_locate_labels(ballots, slips)}; correct them "
        f"(`--classes {','.join(map(format_label, scale))}` names each)."
    ]


def split_far_labels(
    scale: Sequence[Any], labels: Sequence[Any]
) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return a scale of numbers, and apart from it the rare ones that are far from all others.

    They are farther than three times what these are from each other: where people say 4 or 5, a 1 is an opinion.
    """
    if len(scale) < 3:
        return scale, ()
    cut = int(np.diff(scale).argmax()) + 1
    is_above = [label >= scale[cut] for label in labels]
    far, others = scale[cut:], scale[:cut]
    count = sum(is_above)
    if 2 * count > len(is_above):
        far, others = others, far
        count = len(is_above) - count
    is_far = scale[cut] - scale[cut - 1] > 3 * (others[-1] - others[0])
    is_rare = 0 < _MIN_LABELS_PER_SLIP * count <= len(is_above)  # a class may have no label
    return (others, far) if is_far and is_rare else (scale, ())
