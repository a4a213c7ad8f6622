"""Labels that are words: decisions such as yes, and classes such as rude, neutral and kind, which become numbers."""

import logging
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jurygraph.errors import InputError
from jurygraph.messages import (
    DECIMAL_COMMA_PATTERN,
    Problem,
    describe_decimal_comma,
    quote,
    select_known_names,
    shell_quote,
    split_names,
)
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.schema.rating import Label, format_label
from jurygraph.sources.file_rows import FileRows
from jurygraph.sources.table_rows import RowWithPlace, TableRow

_LOGGER = logging.getLogger(__name__)

LABEL_FIELDS = ("score", "target", "label")
NUMERAL_PATTERN = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)
TARGET_VALUE_HINT = "write a number, or true or false, yes or no"
DECISION_PAIRS = (
    ("no", "yes"),
    ("false", "true"),
    ("fail", "pass"),
    ("not met", "met"),
    ("n", "y"),
    ("failed", "passed"),
    ("unmet", "met"),
    ("incorrect", "correct"),
)
"""How people write a decision in a cell, each time the word that declines first."""
DECISION_BY_WORD: Mapping[str, bool | None] = {
    **{word: bool(place) for pair in DECISION_PAIRS for place, word in enumerate(pair)},
    **dict.fromkeys(("", "n/a", "na", "#n/a", "unsure", "not sure", "?", "-", "–", "—")),
}
"""The decision that a word is for; None if people write by it that they made none."""
_DECISION_BY_LABEL = {**DECISION_BY_WORD, "0": False, "1": True}


def fold_word(word: str) -> str:
    """Return what a label has in common with others that differ from it in case and blanks alone."""
    return " ".join(word.casefold().split())


def _fold_label(label: Any) -> str:
    """Return the text of a number, or of a word as `fold_word` has it."""
    return str(to_class_value(fold_word(str(label))))


def read_decision(label: Label | None) -> bool | None:
    """Return the decision that a label is a word for, or 1 or 0; None of others."""
    return _DECISION_BY_LABEL.get(_fold_label(label))


def is_negative(label: str) -> bool:
    """Return whether a label is a word for no, or 0, or begins with "not"."""
    return fold_word(label).startswith("not ") or read_decision(label) is False


ClassesByQuestion = Mapping[str, Sequence[str]]
"""The labels of a question's scale, from low to high, by its name; by "" those of all others."""
ScalesByQuestion = Mapping[str, Sequence[Any]]
"""The same, with numbers for numerals (`parse_scale`)."""


def parse_classes(texts: Sequence[str] | None) -> ClassesByQuestion:
    """Return the classes that texts such as `A,B` or `QUESTION=A,B` name, joined by commas.

    Raises `InputError` for a question that has two scales.
    """
    classes: dict[str, list[str]] = {}
    for text in texts or ():
        question, is_of_question, names = text.partition("=")
        if not is_of_question or "," in question:  # then the sign is part of a label
            question, names = "", text
        question = question.strip()
        if question in classes:
            subject = f"names {quote(question)} twice" if question else "is of all questions twice"
            raise InputError(
                f"--classes: {subject}; write --classes QUESTION=LOWEST,…,HIGHEST once for each"
            )
        classes[question] = split_names(names)
    return classes


def select_classes(classes: ClassesByQuestion, question: str) -> Sequence[str]:
    """Return the classes of a question, in any case: its own, or those of all others."""
    by_folded_name = {name.casefold(): names for name, names in classes.items()}
    return by_folded_name.get(question.casefold(), classes.get("", ()))


def to_class_value(label: Label) -> Label:
    """Return the class that a label names: a number, also if written as text, or a word."""
    if isinstance(label, str) and not NUMERAL_PATTERN.fullmatch(label):
        return label
    number = float(label)
    if not math.isfinite(number):
        return label
    return int(number) if number.is_integer() else number


def read_class(label: Label, scale: Sequence[Any]) -> Any:
    """Return the class of a scale that a label names; None off the scale.

    A word may be in any case if one class alone is spelt like it, and a fraction is the nearest class. Where the
    classes are a decision and its opposite, it may be another word for one, or 1 or 0.
    """
    named_class = to_class_value(label)
    if isinstance(named_class, str):
        words = [name for name in scale if str(name).casefold() == named_class.casefold()]
        named_class = words[0] if named_class not in scale and len(words) == 1 else named_class
    elif named_class % 1.0 and not has_words(scale) and min(scale) < named_class < max(scale):
        named_class = _find_nearest_class(named_class, scale)
    if named_class in scale:
        return named_class
    return find_decision_class(read_decision(label), scale)


def find_decision_class(decision: float | None, scale: Sequence[Any]) -> Any:
    """Return the class that stands for a decision; None without one, or if classes are not one and its opposite."""
    decisions = list(map(read_decision, scale))
    is_pair = sorted(map(str, decisions)) == ["False", "True"]
    return scale[decisions.index(bool(decision))] if is_pair and decision is not None else None


def _find_nearest_class(fraction: float, scale: Sequence[float]) -> float:
    """Return the class nearest to a fraction: half way between two, the one farther from the middle of the scale."""
    middle = (min(scale) + max(scale)) / 2.0
    return min(scale, key=lambda value: (abs(value - fraction), -abs(value - middle)))


def parse_scale(classes: Sequence[str]) -> Sequence[Any]:
    """Return the classes of `--classes`; numerals are numbers. Raises `InputError` for fewer than two, or one twice."""
    scale = tuple(map(to_class_value, classes))
    if len(scale) < 2 or len(set(scale)) < len(scale) or "" in scale:
        raise InputError(
            f"--classes: is {','.join(classes)}; name 2 classes or more, each once, from low to high"
        )
    return scale


def has_words(classes: Sequence[Label]) -> bool:
    return any(isinstance(label, str) for label in classes)


def is_number_scale(classes: Sequence[Any]) -> bool:
    """Return whether classes are numbers from low to high."""
    return not has_words(classes) and list(classes) == sorted(classes)


class OpenClasses(list[Any]):
    """Classes without an order, to which other words and numbers are added."""


@dataclass(frozen=True)
class LabelChoice:
    """Which labels of files are read, and as what.

    Attributes:
        is_chosen: whether labels of the dimension, or question, of a name are read; the others become empty, so that a
            word is no fault where only another question has words.
        classes: the scale of a question, from low to high, by what `identify` returns of it, and by "" that of all
            others; a label is the place of its class, and a score that of words alone.
        open_classes: those of questions without an order, which each word, or number, is added to; None where labels
            that are words are refused.
        identify: returns what the names of one question have in common.
        questions: what `identify` returned of the questions, or columns, of the labels read so far.
    """

    is_chosen: Callable[[str], bool]
    classes: ScalesByQuestion
    open_classes: dict[str, OpenClasses] | None = None
    identify: Callable[[str], str] = str.casefold
    questions: set[str] = field(default_factory=set)

    def find_classes(self, question: Any, column: str) -> Sequence[Any]:
        """Return the classes of labels of a question, or of a column of labels that name none; empty without any."""
        key = self.identify(str(question or column))
        self.questions.add(key)
        classes = self.classes.get(key) or self.classes.get("", ())
        if classes or self.open_classes is None:
            return classes
        if not question and column.casefold() in LABEL_FIELDS:
            key = ""  # `score` of one file and `label` of another are one question
        return self.open_classes.setdefault(key, OpenClasses())

    def refuse_unread_questions(self, files: Iterable[FileRows[Any]]) -> None:
        """Raise `InputError` for classes of a question that no label is of, and no column that is not read."""
        names = list(filter(None, self.classes))
        columns = (name for file in files for name in file.unread_columns)
        questions = self.questions.union(map(self.identify, columns))
        select_known_names("--classes: no label is of the question", names, sorted(questions))


def fold_classes(
    classes: ClassesByQuestion, identify: Callable[[str], str] = str.casefold
) -> ScalesByQuestion:
    """Return classes by question as a `LabelChoice` has them; warns as `warn_of_reversed_decisions` does."""
    scales = {}
    for question, names in classes.items():
        scales[identify(question)] = parse_scale(names)
        warn_of_reversed_decisions(names)
    return scales


def warn_of_reversed_decisions(classes: Sequence[str]) -> None:
    """Warn where, from low to high, a word for yes is lower than one for no, which without classes are 1 and 0."""
    words = map(str.casefold, classes)
    decisions = [word for word in words if DECISION_BY_WORD.get(word) is not None]
    if decisions and DECISION_BY_WORD[decisions[0]] and not DECISION_BY_WORD[decisions[-1]]:
        ends = (decisions[0], decisions[-1])
        _LOGGER.warning(
            "--classes: %s is the lowest and %s the highest, the reverse of %s = 1, %s = 0",
            *ends,
            *ends,
        )


def read_decisions(
    rows: Sequence[RowWithPlace],
    columns: Mapping[str, str],
    subject: Mapping[str, str],
    choice: LabelChoice | None,
) -> None:
    """Write 1 and 0 for pass and fail, or other decisions, as scores of a dimension that has nothing but these.

    Where a decision is one of the classes of a dimension, its place is the score.
    """
    column = columns["score"]
    ratings_by_dimension = defaultdict(list)
    for _, values in rows:
        dimension = subject.get("dimension") or values.get(columns.get("dimension", ""))
        ratings_by_dimension[str(dimension or "")].append(values)
    for dimension, ratings in ratings_by_dimension.items():
        scale = choice.find_classes(dimension, column) if choice else ()
        cells = [values.get(column) for values in ratings]
        words = ["" if cell is None else _fold_label(cell) for cell in cells]
        known_words = DECISION_BY_WORD.keys()
        has_decisions = set(words) <= _DECISION_BY_LABEL.keys() and known_words & words
        if has_decisions and known_words.isdisjoint(map(_fold_label, scale)):
            for values, word in zip(ratings, words, strict=True):
                decision = _DECISION_BY_LABEL[word]
                if decision is not None:
                    values[column] = float(decision)


def place_word(
    choice: LabelChoice | None, fields: JsonFields, values: TableRow, columns: Mapping[str, str]
) -> None:
    """Replace the label of a row by the place of its class, a score on a scale of numbers by the class itself.

    It becomes None if it is not chosen, and what is off the scale a text, which no label is.
    """
    if choice is None:
        return
    name = "target" if "target" in fields else "score"
    label = fields[name]
    text = " ".join(format_label(values.get(columns[name])).split())  # type: ignore[arg-type]
    question = fields.get("question") or fields.get("dimension")
    scale = choice.find_classes(question, columns[name])
    if question and not choice.is_chosen(question):
        fields[name] = None
        return
    if isinstance(scale, OpenClasses):
        if isinstance(label, str | float | int):
            # numbers, too, so that none is taken for a word's place; yes in CSV is true, and so 1
            word = text.casefold() if isinstance(label, str) else label
            if word not in scale:
                scale.append(word)
            fields[name] = float(scale.index(word))
        return
    label_class = read_class(text, scale) if scale else None
    if label_class is not None:
        keeps_number = name == "score" and is_number_scale(scale)
        fields[name] = float(label_class if keeps_number else scale.index(label_class))
        return
    if scale and label is not None:
        fields[name] = text


def describe_invalid_label(
    problem: Problem,
    text: str,
    fields: JsonFields,
    column: str,
    choice: LabelChoice | None,
) -> Problem:
    """Return the problem of a text that is no label, with what to write, or what `--classes` may have meant."""
    if DECIMAL_COMMA_PATTERN.fullmatch(text):
        return describe_decimal_comma(problem.path, text)
    if choice is None:
        return replace(problem, remedy=f"{TARGET_VALUE_HINT}; leave it empty where there is none")
    question = fields.get("question") or fields.get("dimension")
    scale = choice.find_classes(question, column)
    if scale:
        option = shell_quote(f"QUESTION={','.join(map(str, scale))}")
        return Problem(
            problem.path,
            f"is {quote(text)}, which is none of --classes",
            f"name all words, or those of each question: --classes {option}",
        )
    prefix = f"{question}=" if question else ""
    remedy = f"{TARGET_VALUE_HINT}, or name all words by --classes {prefix}LOWEST,…,HIGHEST"
    return replace(problem, remedy=remedy)
