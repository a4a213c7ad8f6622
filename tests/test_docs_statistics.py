"""The figures on the page of statistics are those of the package."""

import re
from pathlib import Path

import pytest

from jurygraph.inference.clusters import Estimate, detectable_difference, wilson

PAGE = (Path(__file__).parent.parent / "docs" / "statistics.md").read_text(encoding="utf-8")


def row(name: str) -> list[float]:
    """Return the numbers of the table row that begins with this name."""
    (cells,) = re.findall(rf"^\| {name} \|(.*)\|$", PAGE, flags=re.MULTILINE)
    return [float(cell) for cell in cells.split("|")]


def test_detectable_differences_are_in_standard_deviations_of_tasks() -> None:
    for tasks, difference in zip(row("tasks"), row("detectable difference"), strict=True):
        error = tasks**-0.5
        assert detectable_difference(Estimate(0.0, -1.0, 1.0, error, int(tasks))) == pytest.approx(
            difference, abs=0.005
        )


def test_240_responses_are_worth_what_the_page_says() -> None:
    assert "worth 77 at an ICC of .3, and 41 at .7" in PAGE
    assert [round(240 / (1 + 7 * icc)) for icc in (0.3, 0.7)] == [77, 41]


def test_0_of_300_has_the_interval_of_the_page() -> None:
    assert "0 of 300 gives 0 to 1.3 %" in PAGE
    assert round(100 * wilson(0, 300)[1], 1) == 1.3
