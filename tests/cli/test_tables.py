"""Tables of any length: rows in a temporary file have the layout of rows in memory."""

import tracemalloc
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from jurygraph.cli.render.text import fit_widths, format_table, spooled_table
from jurygraph.display import format_number

cells = st.text(max_size=12) | st.sampled_from(["-", "0.2500", "漢字", "a\nb", "x" * 200])
HEADER = ["name", "agent", "value"]


@given(st.lists(st.lists(cells, min_size=3, max_size=3), max_size=8), st.integers(0, 3))
def test_a_spooled_table_has_the_layout_of_a_table(rows: list[list[str]], left: int) -> None:
    with spooled_table(HEADER, left) as spooled:
        for row in rows:
            spooled.add(row)
        assert list(spooled.lines()) == format_table(HEADER, rows, left)


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


@given(st.lists(cells, min_size=3, max_size=3), st.integers(18, 60))
def test_a_spooled_table_is_cut_to_the_terminal(row: list[str], available: int) -> None:
    with spooled_table(HEADER, 2) as spooled:
        spooled.add([*row[:2], "0.2500"])
        assert spooled.fit(available) == 3
        assert all(cell_len(line) <= available for line in spooled.lines())


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


def test_rows_of_many_batches_keep_their_order() -> None:
    rows = [[f"r{row}", "a" if row % 700 else "漢字", f"{row}.0"] for row in range(2_000)]
    with spooled_table(HEADER, 2) as spooled:
        for row in rows:
            spooled.add(row)
        assert list(spooled.lines()) == format_table(HEADER, rows, left=2)


@given(st.floats() | st.integers(-(10**9), 10**9) | st.floats(-1e-3, 1e-3))
def test_numbers_have_four_decimals_and_are_never_minus_zero(value: float) -> None:
    assert format_number(value) == (f"{value:.4e}" if 1e15 <= abs(value) < inf else f"{round(value, 4) + 0.0:.4f}")


def test_huge_numbers_have_an_exponent() -> None:
    assert [format_number(value) for value in (-1e300, 1e15, 9e14)] == [
        "-1.0000e+300",
        "1.0000e+15",
        f"{9 * 10**14}.0000",
    ]


def test_ten_times_as_many_rows_need_no_more_memory() -> None:
    def peak(rows: int) -> int:
        tracemalloc.start()
        with spooled_table(HEADER, 1) as spooled:
            for row in range(rows):
                spooled.add([f"response {row}", "agent", f"{row}.25"])
            for _ in spooled.lines():
                pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(10_000) < 2 * peak(1_000)
