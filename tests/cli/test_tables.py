"""Tables: their columns fit into the lines of a terminal."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurygraph.cli.render.text import format_table
from jurygraph.display import format_number


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
