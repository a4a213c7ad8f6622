"""Tables: their columns fit into the lines of a terminal."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.cli.render.text import fit_widths, format_table
from jurygraph.display import format_number


@given(st.lists(st.integers(1, 60), min_size=1, max_size=9), st.integers(0, 3), st.integers(40, 200))
def test_columns_fit_into_a_line(widths: list[int], left: int, available: int) -> None:
    left = min(left, len(widths))
    fitted = fit_widths(widths, left, available)
    numbers = widths[left : len(fitted)]
    assert fitted[left:] == numbers, "numbers are never shortened"
    assert all(fit == width or 4 <= fit < width for fit, width in zip(fitted, widths, strict=False))
    if sum(widths) + 2 * (len(widths) - 1) <= available:
        assert fitted == widths
    elif 6 * left + sum(numbers[:1]) <= available:
        assert sum(fitted) + 2 * (len(fitted) - 1) <= available
    assert fit_widths(widths, left, None) == widths, "a pipe gets a table whole"


def test_what_does_not_fit_on_a_terminal_follows_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurygraph.cli.render.text.terminal_width", lambda: 30)
    assert format_table(["agent", "first number", "second number"], [["alice", 0.25, 1.0], ["bob", None, 0.5]]) == [
        "agent  first number",
        "─────  ────────────",
        "alice        0.2500",
        "bob               -",
        "",
        "agent  second number",
        "─────  ─────────────",
        "alice         1.0000",
        "bob           0.5000",
    ]


@given(st.floats() | st.integers(-(10**9), 10**9) | st.floats(-1e-3, 1e-3))
def test_numbers_have_four_decimals_and_are_never_minus_zero(value: float) -> None:
    assert format_number(value) == (f"{value:.4e}" if 1e15 <= abs(value) < inf else f"{round(value, 4) + 0.0:.4f}")


def test_huge_numbers_have_an_exponent() -> None:
    assert [format_number(value) for value in (-1e300, 1e15, 9e14)] == [
        "-1.0000e+300",
        "1.0000e+15",
        f"{9 * 10**14}.0000",
    ]
