"""The independent judge of contrasts, on hand-made cases and on real solutions."""

import ast
import gzip
import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from tests.agents.data_synthesizer import truth
from tests.agents.data_synthesizer.truth import changes_truth
from tests.rows import all_rows

QUERY = (
    "Janet’s ducks lay 16 eggs per day. She eats three for breakfast every morning and bakes muffins for her friends "
    "every day with four. She sells the remainder at the market daily for $2 per egg, to Tom. How much does she make?"
)
REFERENCE = "16 - 3 - 4 = <<16-3-4=9>>9 eggs a day.\nShe makes 9 * 2 = $<<9*2=18>>18 every day.\nA: 18"
ORIGINAL = (
    "Janet uses 3 + 4 = <<3+4=7>>7 eggs a day\n"
    "She has 16 - 7 = <<16-7=9>>9 eggs for sale\n"
    "Tom is paying 9 * 2 = $<<9*2=18>>18 a day\n"
    "A: 18"
)
SOLUTIONS = Path(__file__).parents[2] / "data" / "gsm8k_solutions.jsonl.gz"


def is_changed(kind: str, old: str, new: str, count: int = 1) -> bool:
    """Return true if, for the judge, the solution is no longer true once `old` is replaced by `new`."""
    assert old in ORIGINAL
    return changes_truth(QUERY, REFERENCE, ORIGINAL, ORIGINAL.replace(old, new, count), kind)


def is_changed_text(kind: str, original: str, variant: str, query: str = "How many?", answer: str = "6") -> bool:
    return changes_truth(query, f"A: {answer}", f"{original}\nA: {answer}", f"{variant}\nA: {answer}", kind)


class TestNumber:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("=7>>7", "=8>>8"),
            ("=9>>9", "=12>>9"),
            ("16 - 7 = <<16-7", "15 - 7 = <<15-7"),
            ("9 * 2", "9 * 3"),
        ],
    )
    def test_a_changed_equation_is_no_longer_true(self, old: str, new: str) -> None:
        assert is_changed("number", old, new)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("=7>>7", "=8>>9"),  # two numbers
            ("<<16-7=9>>9", "<<15-7=8>>8"),  # another true equation
            ("=7>>7", "=7.0>>7.0"),  # the same value
            ("Janet uses", "Janet eats"),  # no number
            ("7 eggs a day\nShe has 16 - 7", "8 eggs a day\nShe has 16 - 8"),  # two places that repeat nothing
            ("A: 18", "A: 19"),  # no equation
            ("=7>>7 eggs", "=8>>8 ducks"),  # something else as well
        ],
    )
    def test_other_changes_do_not_count(self, old: str, new: str) -> None:
        assert not is_changed("number", old, new)

    def test_what_rounding_explains_is_still_true(self) -> None:
        assert not is_changed_text("number", "20 / 3 = <<20/3=6.67>>6.67", "20 / 3 = <<20/3=6.7>>6.7")
        assert is_changed_text("number", "20 / 3 = <<20/3=6.67>>6.67", "20 / 3 = <<20/3=6.76>>6.76")
        assert not is_changed_text("number", "20 / 3 = 7", "21 / 3 = 7")

    def test_a_false_equation_cannot_become_false(self) -> None:
        assert not is_changed_text("number", "3 + 4 = 8", "3 + 4 = 9")

    def test_a_wrong_solution_is_no_original(self) -> None:
        assert not changes_truth("", "A: 8", "3 + 4 = 7\nA: 7", "3 + 4 = 8\nA: 7", "number")


class TestEquations:
    @all_rows(
        "line",
        [
            "so 16-3=13 eggs",
            "<<2*1/2=1.0>>1",
            "$1,000 x 2 = $2,000",
            "20% * 50 = 10",
            "100% - 20% = 80%",
            "50*.2=<<50*.2=10>>",
            "5 × (2 + 1) = 15.",
            "2(3+4)=14",
            "5 - 8 = -3",
            "- 3 + 4 = 7",
            "2 + 3 = 5, 5 * 2 = 10",
            "60 / 4 = 15/hour",
            "3 / 6 = 50%",
            "<<4.2+9.45+1.35=14.999999999999998>>15",
        ],
    )
    def test_a_true_equation_is_recognised(self, line: str) -> None:
        assert set(truth.equation_truths(line)) == {True}

    @pytest.mark.parametrize("line", ["3 + 4 = 8", "<<16-3=14>>", "20% * 50 = 11", "5 / 0 = 5 and 1 + 1 = 3"])
    def test_a_false_equation_is_recognised(self, line: str) -> None:
        assert False in truth.equation_truths(line)
        assert True not in truth.equation_truths(line)

    @pytest.mark.parametrize("line", ["x = 5", "16 eggs - 3 eggs = 13 eggs", "3 + 4", "half of 3 = 1.5", "A: 18"])
    def test_text_that_is_no_equation_is_not_read(self, line: str) -> None:
        assert truth.equation_truths(line) == []


class TestStep:
    def test_a_line_whose_result_is_needed_is_missing(self) -> None:
        assert is_changed("step", "Janet uses 3 + 4 = <<3+4=7>>7 eggs a day\n", "")
        assert is_changed("step", "She has 16 - 7 = <<16-7=9>>9 eggs for sale\n", "")
        assert is_changed("step", "Tom is paying 9 * 2 = $<<9*2=18>>18 a day\n", "")  # the answer comes from nowhere

    def test_a_result_that_the_question_gives_was_not_needed(self) -> None:
        query = "She has seven eggs, and then eight."
        assert not is_changed_text("step", "3 + 4 = 7\n7 - 1 = 6", "7 - 1 = 6", query)
        assert is_changed_text("step", "3 + 4 = 7\n7 - 1 = 6", "7 - 1 = 6", "She has eggs.")

    def test_a_result_that_occurs_elsewhere_or_nowhere_was_not_needed(self) -> None:
        assert not is_changed_text("step", "it is 7\n3 + 4 = 7\n7 - 1 = 6", "it is 7\n7 - 1 = 6")
        assert not is_changed_text("step", "3 + 4 = 7\n5 + 1 = 6", "5 + 1 = 6")
        assert not is_changed_text("step", "6 + 1 = 7\n5 + 1 = 6\n5 + 2 = <<5+2=7>>7", "5 + 1 = 6\n5 + 2 = <<5+2=7>>7")

    def test_a_line_without_a_result_is_no_step(self) -> None:
        assert not is_changed_text("step", "Let us see about 7.\n7 - 1 = 6", "7 - 1 = 6")

    def test_nothing_else_may_change(self) -> None:
        assert not is_changed("step", "Janet uses 3 + 4 = <<3+4=7>>7 eggs a day\nShe has", "Janet has")
        assert not is_changed("step", "\nA: 18", "")

    @all_rows(
        ("words", "value"),
        [
            ("twenty-five eggs", 25),
            ("two hundred and five", 205),
            ("three thousand", 3000),
            ("a dozen", 12),
            ("half of it", Fraction(1, 2)),
            ("two thirds", Fraction(2, 3)),
            ("1,200 of them", 1200),
            ("5 hundred", 500),
            ("3/4 of it", Fraction(3, 4)),
            ("15% off", Fraction(15, 100)),
            ("twice", 2),
        ],
    )
    def test_numbers_are_read_in_words_too(self, words: str, value: Fraction) -> None:
        assert value in truth.known_numbers(words)


class TestAnswer:
    @pytest.mark.parametrize("new", ["A: 19", "A: 18.5", "A: 180"])
    def test_another_number_is_no_longer_the_answer(self, new: str) -> None:
        assert is_changed("answer", "A: 18", new)

    @pytest.mark.parametrize("new", ["A: 18.0", "A: 19 eggs", "A: none", "A: "])
    def test_the_same_value_or_other_words_do_not_count(self, new: str) -> None:
        assert not is_changed("answer", "A: 18", new)

    def test_only_the_answer_line_counts(self) -> None:
        assert not is_changed("answer", ">>18 a day", ">>19 a day")
        assert not is_changed("answer", ">>18 a day\nA: 18", ">>19 a day\nA: 19")


class TestNegation:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("She has", "She has not"),
            ("She has", "She hasn't"),
            ("She has", "She hasn’t"),
            ("She has 16", "She has no 16"),
            ("Tom is paying", "Tom is not paying"),
        ],
    )
    def test_a_true_result_is_denied(self, old: str, new: str) -> None:
        assert is_changed("negation", old, new)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("Janet uses", "Janet not uses"),  # beside no auxiliary
            ("Janet uses", "Janet does not use"),  # more than one word
            ("She has", "She never has"),
            ("She has", "He has not"),
            ("A: 18", "A: not 18"),
        ],
    )
    def test_other_changes_do_not_count(self, old: str, new: str) -> None:
        assert not is_changed("negation", old, new)

    def test_two_negations_cancel_out(self) -> None:
        assert not is_changed_text("negation", "It is not 3 + 3 = 6", "It is not not 3 + 3 = 6")
        assert not is_changed_text("negation", "It can't be 3 + 3 = 6", "It can not't be 3 + 3 = 6")

    def test_a_supposition_is_not_negated(self) -> None:
        assert not is_changed_text("negation", "If she has 3, it is 3 + 3 = 6", "If she has not 3, it is 3 + 3 = 6")
        assert is_changed_text("negation", "If she has 3, it is 3 + 3 = 6", "If she has 3, it is not 3 + 3 = 6")

    def test_the_line_has_to_state_a_true_result(self) -> None:
        assert not is_changed_text("negation", "It is 3 + 4 = 8", "It is not 3 + 4 = 8")
        assert not is_changed_text("negation", "It is late\n3 + 3 = 6", "It is not late\n3 + 3 = 6")
        assert not is_changed_text("negation", "Is it 3 + 3 = 6?", "Is not it 3 + 3 = 6?")
        assert is_changed_text("negation", "3 + 3 = 6\nThere are 6 eggs", "3 + 3 = 6\nThere are not 6 eggs")
        assert is_changed_text("negation", "They will get 3 + 3 = 6", "They won't get 3 + 3 = 6")


class TestUnit:
    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("9 eggs", "9 muffins"),
            ("18 a day", "18 a week"),
            ("$<<9*2=18>>18", "€<<9*2=18>>18"),
            ("$<<9*2=18>>18", "<<9*2=18>>18 cents"),
        ],
    )
    def test_another_unit_or_thing_is_counted(self, old: str, new: str) -> None:
        assert is_changed("unit", old, new)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("9 eggs", "9 egg"),
            ("$<<9*2=18>>18", "<<9*2=18>>18 dollars"),
            ("9 eggs for sale", "9 ducks for free"),
            ("for sale", "for keeps"),
            ("9 eggs", "8 ducks"),
        ],
    )
    def test_the_same_unit_or_other_words_do_not_count(self, old: str, new: str) -> None:
        assert not is_changed("unit", old, new)

    @all_rows(
        ("old", "new", "differs"),
        [
            ("6 hours", "6 minutes", True),
            ("6 feet", "6 inches", True),
            ("6 pounds", "6 ounces", True),
            ("6 dollars", "6 cents", True),
            ("6%", "6 dollars", True),
            ("6 dollars", "6 bucks", False),
            ("6 hours", "6 hrs", False),
            ("6%", "6 percent", False),
            ("6 more", "6 fewer", False),
            ("hours", "minutes", False),
            ("the second of 6", "the minute of 6", False),
        ],
    )
    def test_sizes_and_dimensions_decide(self, old: str, new: str, differs: bool) -> None:
        assert is_changed_text("unit", f"It takes {old}", f"It takes {new}") is differs


class TestEntity:
    @pytest.mark.parametrize(
        ("old", "new"), [("Janet uses", "Tom uses"), ("Tom is", "Alice is"), ("Tom is", "Mary Ann is")]
    )
    def test_somebody_else_is_named(self, old: str, new: str) -> None:
        assert is_changed("entity", old, new)

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("She has", "Tom has"),  # no name is exchanged
            ("Janet uses", "She uses"),
            ("Janet uses", "janet uses"),
            ("Janet uses", "Muffins uses"),  # a common word of the question
            ("Janet uses", "Tom has"),
            ("A: 18", "B: 18"),
        ],
    )
    def test_other_changes_do_not_count(self, old: str, new: str) -> None:
        assert not is_changed("entity", old, new)

    def test_a_name_may_be_exchanged_anywhere(self) -> None:
        query = "Ann has eggs. Bob has 6."
        assert is_changed_text("entity", "Ann has 1\nAnn has 6", "Bob has 1\nBob has 6", query)
        assert not is_changed_text("entity", "Ann has 1\nBob has 6", "Bob has 1\nAnn has 6", query)
        assert not is_changed_text("entity", "Eve has 6", "Bob has 6", query)  # of Eve nothing is said


@pytest.mark.parametrize("kind", truth.KINDS)
def test_an_unchanged_statement_stays_true(kind: str) -> None:
    assert not changes_truth(QUERY, REFERENCE, ORIGINAL, ORIGINAL, kind)


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="no kind 'order'; the kinds are number, step"):
        changes_truth(QUERY, REFERENCE, ORIGINAL, ORIGINAL, "order")


def test_it_shares_no_code_with_the_package() -> None:
    tree = ast.parse(Path(truth.__file__).read_text(encoding="utf-8"))
    named = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    named |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {str(name).split(".")[0] for name in named} <= sys.stdlib_module_names


def test_it_reads_the_answers_and_equations_of_real_solutions() -> None:
    """The data set's own labels say which solutions are right, and no reference calculates wrongly."""
    with gzip.open(SOLUTIONS, "rt", encoding="utf-8") as lines:
        tasks = [json.loads(line) for line in lines]
    held = []
    for task in tasks:
        right = truth.answer_of(task["reference"])
        assert right is not None
        held += [one for line in task["reference"].split("\n") for one in truth.equation_truths(line)]
        for response in task["responses"]:
            assert (truth.answer_of(response["text"]) == right) is response["metadata"]["is_correct"]
    assert len(held) > 2000
    assert False not in held
    assert held.count(None) < 0.02 * len(held)
