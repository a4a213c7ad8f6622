"""Tables of any length: rows in a temporary file have the layout of rows in memory."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from jurygraph.cli.render.text import format_number, format_table, spooled_table

cells = st.text(max_size=12) | st.sampled_from(["-", "0.2500", "漢字", "a\nb", "x" * 200])
HEADER = ["name", "agent", "value"]


@given(st.lists(st.lists(cells, min_size=3, max_size=3), max_size=8), st.integers(0, 3))
def test_a_spooled_table_has_the_layout_of_a_table(rows: list[list[str]], left: int) -> None:
    with spooled_table(left) as spooled:
        for row in rows:
            spooled.add(row)
        assert list(spooled.lines(HEADER, missing="-")) == format_table(HEADER, rows, left)


def test_a_row_with_fewer_columns_is_filled() -> None:
    with spooled_table(1) as spooled:
        spooled.add(["a", "b"])
        spooled.add(["a", "b", "0.5"])
        assert list(spooled.lines(HEADER, missing="-")) == format_table(HEADER, [["a", "b", "-"], ["a", "b", "0.5"]])


def test_rows_of_many_batches_keep_their_order() -> None:
    rows = [[f"r{row}", "a" if row % 700 else "漢字", f"{row}.0"] for row in range(2_000)]
    with spooled_table(2) as spooled:
        for row in rows:
            spooled.add(row)
        assert list(spooled.lines(HEADER, missing="-")) == format_table(HEADER, rows, left=2)


@given(st.floats() | st.integers(-(10**9), 10**9) | st.floats(-1e-3, 1e-3))
def test_numbers_have_four_decimals_and_are_never_minus_zero(value: float) -> None:
    assert format_number(value) == f"{round(value, 4) + 0.0:.4f}"


def test_ten_times_as_many_rows_need_no_more_memory() -> None:
    def peak(rows: int) -> int:
        tracemalloc.start()
        with spooled_table(1) as spooled:
            for row in range(rows):
                spooled.add([f"response {row}", "agent", f"{row}.25"])
            for _ in spooled.lines(HEADER, missing="-"):
                pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(10_000) < 2 * peak(1_000)
