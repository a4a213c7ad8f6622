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
def test_the_package_has_few_of_the_words_and_none_of_the_beginnings(capsys: pytest.CaptureFixture[str]) -> None:
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
        ("class C:\n    async def judged(self): ...", "the function judged is called by a participle"),
        ("def kept(): ...", "the function kept is called by a participle"),
    ],
)
def test_a_planted_word_is_found(source: str, finding: str) -> None:
    (place,) = places(source)
    assert place.finding.startswith(finding)


@pytest.mark.parametrize(
    "source",
    [
        "def embed(): ...",
        "def _failed(): ...",
        "def judged_cells(): ...",
        "class C:\n    @property\n    def judged(self): ...",
        "uses_model = restated = 1",
        'def f():\n    """Return what was given."""',
        "text = 'as it was said'",
    ],
)
def test_plain_code_passes(source: str) -> None:
    assert places(source) == []


def test_a_rate_above_the_limit_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    often, seldom = tmp_path / "often.py", tmp_path / "seldom.py"
    often.write_text("x = said\n" * 4 + "\n" * 9_996)
    seldom.write_text("x = said\n" * 3 + "\n" * 9_997)
    assert (main([str(often)]), main([str(seldom)])) == (1, 0)
    assert "said 4.0" in capsys.readouterr().out


def test_the_places_are_printed_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "module.py").write_text("\nx = said\n")
    main(["-v", str(tmp_path)])
    assert f"{tmp_path / 'module.py'}:2: said in said" in capsys.readouterr().out
