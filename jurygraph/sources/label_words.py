"""Labels that are words: decisions such as yes, and classes such as rude, neutral and kind, which become numbers."""

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
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
from jurygraph.schema.rating import format_label
from jurygraph.sources.table_rows import RowWithPlace, TableRow

_LOGGER = logging.getLogger(__name__)

LABEL_FIELDS = ("score", "target", "label")
TARGET_VALUE_HINT = "write a number, or true or false, yes or no"
DECISION_BY_WORD: Mapping[str, bool | None] = {
    **dict.fromkeys(("true", "yes", "y", "pass", "passed", "met", "correct"), True),
    **dict.fromkeys(("false", "no", "n", "fail", "failed", "not met", "unmet", "incorrect"), False),
    **dict.fromkeys(("", "n/a", "na", "#n/a", "unsure", "not sure", "?", "-", "–", "—")),
}
"""How people write a decision in a cell, and that they made none."""


def fold_word(word: str) -> str:
    """Return what a label has in common with others that differ from it in case and blanks alone."""
    return " ".join(word.casefold().split())


def is_negative(label: str) -> bool:
    """Return whether a label is a word for no, or begins with "not"."""
    word = fold_word(label)
    return word.startswith("not ") or DECISION_BY_WORD.get(word) is False


ClassesByQuestion = Mapping[str, Sequence[str]]
"""The labels of a question's scale, from low to high, by its name; by "" those of all others."""


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


class OpenClasses(list[Any]):
    """Classes without an order, to which other words and numbers are added."""


@dataclass(frozen=True)
class LabelChoice:
    """Which labels of files are read, and as what.

    Attributes:
        is_chosen: whether labels of the dimension, or question, of a name are read; the others become empty, so that a
            word is no fault where only another question has words.
        classes: the words that labels may be, in small letters, from low to high, by what `identify` returns of a
            question, and by "" those of all others; a label is the place of its word.
        open_classes: those of questions without an order, which each word, or number, is added to; None where labels
            that are words are refused.
        identify: returns what the names of one question have in common.
        questions: what `identify` returned of the questions, or columns, of the labels read so far.
    """

    is_chosen: Callable[[str], bool]
    classes: ClassesByQuestion
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

    def refuse_unread_questions(self) -> None:
        """Raise `InputError` for classes of a question that no label is of."""
        names = list(filter(None, self.classes))
        select_known_names("--classes: no label is of the question", names, sorted(self.questions))


def fold_classes(
    classes: ClassesByQuestion, identify: Callable[[str], str] = str.casefold
) -> ClassesByQuestion:
    """Return classes by question as a `LabelChoice` has them; warns as `warn_of_reversed_decisions` does."""
    folded_classes = {}
    for question, names in classes.items():
        words = [name.casefold() for name in names]
        folded_classes[identify(question)] = words
        warn_of_reversed_decisions(words)
    return folded_classes


def warn_of_reversed_decisions(classes: Sequence[str]) -> None:
    """Warn where, from low to high, a word for yes is lower than one for no, which without classes are 1 and 0."""
    words = [name.casefold() for name in classes]
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
    """Write 1 and 0 for pass and fail, or other decisions, as scores of a dimension that has nothing else.

    Where a decision is one of the classes of a dimension, its place is the score.
    """
    column = columns["score"]
    ratings_by_dimension = defaultdict(list)
    for _, values in rows:
        dimension = subject.get("dimension") or values.get(columns.get("dimension", ""))
        ratings_by_dimension[str(dimension or "")].append(values)
    for dimension, ratings in ratings_by_dimension.items():
        classes = choice.find_classes(dimension, column) if choice else ()
        cells = [values.get(column) for values in ratings]
        words = ["" if cell is None else fold_word(str(cell)) for cell in cells]
        known_words = DECISION_BY_WORD.keys()
        if set(words) <= known_words and known_words.isdisjoint(classes):
            for values, word in zip(ratings, words, strict=True):
                decision = DECISION_BY_WORD[word]
                if decision is not None:
                    values[column] = float(decision)


def place_word(
    choice: LabelChoice | None, fields: JsonFields, values: TableRow, columns: Mapping[str, str]
) -> None:
    """Replace the label of a row by the place of its word; by None if it is not chosen.

    Where words are spread over the scale of a judge, `target`, a number becomes a text, which no label is.
    """
    if choice is None:
        return
    name = "target" if "target" in fields else "score"
    label = fields[name]
    word: Any = fold_word(format_label(values.get(columns[name])))  # type: ignore[arg-type]
    question = fields.get("question") or fields.get("dimension")
    classes = choice.find_classes(question, columns[name])
    if label is None or (question and not choice.is_chosen(question)):
        fields[name] = None
        return
    if isinstance(classes, OpenClasses) and isinstance(label, str | float | int):
        # numbers, too, so that none is taken for a word's place; yes in CSV is true, and so 1
        if not isinstance(label, str):
            word = label
        if word not in classes:
            classes.append(word)
    if word in classes:
        fields[name] = float(classes.index(word))
    elif classes and name == "target":
        fields[name] = word


def describe_invalid_label(
    problem: Problem,
    text: str,
    fields: JsonFields,
    values: TableRow,
    column: str,
    choice: LabelChoice | None,
) -> Problem:
    """Return the problem of a text that is no label, with what to write, or what `--classes` may have meant."""
    if DECIMAL_COMMA_PATTERN.fullmatch(text):
        return describe_decimal_comma(problem.path, text)
    if choice is None:
        return replace(problem, remedy=f"{TARGET_VALUE_HINT}; leave it empty where there is none")
    question = fields.get("question") or fields.get("dimension")
    words = choice.find_classes(question, column)
    if words:
        # in a table with a column for each question, the words may be another's
        names = [name for name, cell in values.items() if str(cell).casefold() in words]
        option = shell_quote(f"{(*names, 'QUESTION')[0]}={','.join(words)}")
        return Problem(
            problem.path,
            f"is {quote(text)}, which is none of --classes",
            f"name all words, or those of each question: --classes {option}",
        )
    prefix = f"{question}=" if question else ""
    for words in choice.classes.values():
        if text.casefold() in words:
            option = shell_quote(prefix + ",".join(words))
            return replace(problem, remedy=f"did you mean --classes {option}?")
    remedy = f"{TARGET_VALUE_HINT}, or name all words by --classes {prefix}LOWEST,…,HIGHEST"
    return replace(problem, remedy=remedy)
