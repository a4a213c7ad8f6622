"""The package is written in plain words, and the check of `make lint` finds where it is not."""

import ast
from pathlib import Path

import pytest

from tests.plain_words import Place, find_refused, find_words, main
from tests.rows import all_rows

PACKAGE = Path(__file__).parent.parent / "jurygraph"


def places(source: str) -> list[Place]:
    tree = ast.parse(source)
    return [*(place for _, place in find_words(tree)), *find_refused(tree)]


@pytest.mark.exhaustive  # `make lint` checks the same
def test_the_package_has_few_of_the_words_and_none_of_the_beginnings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([str(PACKAGE)]) == 0, capsys.readouterr().out


@all_rows(
    ("source", "finding"),
    [
        ("class FaultStated: ...", "stated in FaultStated"),
        ("def f(asked_for): ...", "asked in asked_for"),
        ("x = y.heard", "heard in heard"),
        ("f(beside=1)", "beside in beside"),
        ('def f():\n    """Return it as told."""', "told in a docstring"),
        ('"""Where it stands."""', "stands in a docstring"),
        ('class C:\n    """What was given."""', "a docstring begins with What"),
        ('def f():\n    """Whether it is so."""', "a docstring begins with Whether"),
        (
            "class C:\n    async def judged(self): ...",
            "the function judged is called by a participle",
        ),
        ("def kept(): ...", "the function kept is called by a participle"),
    ],
)
def test_a_planted_word_is_found(source: str, finding: str) -> None:
    (place,) = places(source)
    assert place.finding.startswith(finding)
