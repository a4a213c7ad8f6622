"""The way of a judged question through the package is short enough to be read."""

import pytest

from benchmarks.entered import score_one

pytestmark = pytest.mark.landing


def test_a_judged_question_enters_52_modules_and_the_jury_once() -> None:
    modules = score_one()
    assert len(modules) <= 52, sorted(modules)
    assert "Jury.ascore_as_finished" in modules["jury.py"]
