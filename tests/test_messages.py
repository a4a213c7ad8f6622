"""Words of messages."""

import unicodedata
from pathlib import Path
from typing import Self

from pydantic import model_validator

from jurygraph.messages import (
    Problem,
    did_you_mean,
    fold_id,
    notes_on_similar_names,
    plural_of,
    shell_quote,
    validate,
)
from jurygraph.schema import Config, Criterion, Response, Task, TaskLine
from jurygraph.schema.frozen_model import FrozenModel
from tests.rows import all_rows


@all_rows(
    ("value", "word"),
    [
        (Path("my run"), "'my run'"),
        (Path("-run"), "./-run"),
        (Path("a/-run"), "a/-run"),
        ("-1", "-1"),
        (0.5, "0.5"),
    ],
)
def test_a_value_is_quoted_for_the_shell_and_a_path_is_never_an_option(
    value: object, word: str
) -> None:
    assert shell_quote(value) == word


def test_names_of_other_projects_lead_to_the_fields_that_they_mean() -> None:
    for model, wrong, right in (
        (Task, "prompt", "query"),
        (Task, "ground_truth", "reference"),
        (Task, "answer", "reference"),
        (Response, "completion", "text"),
        (Response, "answer", "text"),
        (Response, "model", "agent"),
    ):
        needed = {"id": "a", "query": "?"} if model is Task else {"text": "!"}
        problem = validate(model, {**needed, wrong: "x"})
        assert str(problem) == f"unknown; did you mean {right}?"


def test_a_penalty_has_a_negative_weight() -> None:
    problem = validate(Criterion, {"id": "a", "text": "!", "penalty": True})
    assert str(problem) == "unknown; a penalty has a negative weight: `weight: -1`"


def test_a_name_is_meant_where_it_stands() -> None:
    weighted = {"q": {"inputs": {"a": {"verdicts_of": "x", "weight": 2}}}}
    problem = validate(Config, {"evaluators": [], "components": weighted})
    assert str(problem) == "unknown; did you mean input_weight?"
    problem = validate(Config, {"evaluators": [], "calls": {"weight": 2}})
    assert str(problem).startswith("unknown; known here: parameters, ")
    row = {"id": "a", "query": "?", "rubric": {"criteria": [{"id": "b", "question": "!"}]}}
    assert str(validate(TaskLine, row)) == "unknown; did you mean text?"


def test_names_that_differ_in_case_or_spaces_alone_are_noted() -> None:
    (note,) = notes_on_similar_names(["ann b", "Ann  B", "bo", "ann b"])
    assert note.startswith(
        "'Ann  B' and 'ann b' differ only in case, spaces or Unicode form, and count as two"
    )


@all_rows(
    ("first", "second", "is_alike"),
    [
        ("R-001", "r 1", True),
        ("07", "7", True),
        ("0.5", "0.05", False),
        ("temp 0.5", "temp 0.05", False),
        ("-1", "1", False),
    ],
)
def test_ids_are_alike_without_signs_and_zeros_in_front_and_numbers_where_they_are_the_same(
    first: str, second: str, is_alike: bool
) -> None:
    assert (fold_id(first) == fold_id(second)) is is_alike


def test_names_that_look_alike_are_told_apart_by_their_unicode_form() -> None:
    composed, decomposed = (unicodedata.normalize(form, "José") for form in ("NFC", "NFD"))
    assert (
        did_you_mean(decomposed, [composed]) == f"did you mean {composed}, in another Unicode form?"
    )
    assert did_you_mean("Jose", [composed]) == f"did you mean {composed}?"
    assert len(list(notes_on_similar_names([composed, decomposed]))) == 1


def test_a_number_without_its_zeros_is_the_name_that_is_meant() -> None:
    names = [f"R{number:03}" for number in range(1, 61)]
    assert did_you_mean("R05", names) == "did you mean R005?"
    people = ["Strict Petra", "Bo Mild", "Bo Strict"]
    assert did_you_mean("petra", people) == "did you mean Strict Petra?"
    assert did_you_mean("Bo", people) is None, "it may be either"
    assert did_you_mean("Petra", people, 0.8) is None, "no slip, but another person"


def test_all_names_that_differ_in_case_alone_are_one_note() -> None:
    assert list(notes_on_similar_names(["bo", "Bo", "ann", "Ann"], ", or add --x")) == [
        "'Ann' and 'ann', 'Bo' and 'bo' differ only in case, spaces or Unicode form, and count as two; write one name "
        "if they are one, or add --x"
    ]


def test_a_decimal_comma_is_named_with_the_number_that_is_meant() -> None:
    problem = validate(Criterion, {"id": "a", "text": "It is kind", "weight": "2,5"})
    assert str(problem) == "is '2,5', with a decimal comma; write 2.5"


def test_only_decimal_digits_in_the_name_of_a_field_are_a_place_in_a_list() -> None:
    class Scale(FrozenModel):
        @model_validator(mode="after")
        def _check(self) -> Self:
            raise ValueError("`levels[1].x.²` is no level")

    problem = validate(Scale, {})
    assert isinstance(problem, Problem)
    assert problem.path == ("levels", 1, "x", "²")


@all_rows(
    ("noun", "plural"),
    [
        ("query", "queries"),
        ("day", "days"),
        ("match", "matches"),
        ("class", "classes"),
        ("cases", "cases"),
    ],
)
def test_the_plural_of_a_users_word(noun: str, plural: str) -> None:
    assert plural_of(noun) == plural
