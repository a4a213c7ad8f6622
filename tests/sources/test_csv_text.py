"""No cell is run as a formula, however a reader cuts it, and every text comes back as it was."""

import csv
import io
import re

from hypothesis import example, given
from hypothesis import strategies as st

from jurygraph.sources.csv_text import CSV_QUOTED_CHARACTERS, escape_formulas, unescape_formulas
from tests.rows import all_rows

SIGNS = "=+-@＝＋－＠﹦﹢﹣﹫"
BLANKS = " \0\u00a0\ufeff\u3000"
texts = st.text(alphabet=f"=+-@＝﹦'a \"{BLANKS},;\t\r\n\v\x85\u2028")


@given(texts)
@example("'=1")
@example("''=1")
def test_neutralised_text_is_restored(text: str) -> None:
    assert unescape_formulas(escape_formulas(text)) == text


@given(texts)
def test_no_part_between_breaks_begins_like_a_formula(text: str) -> None:
    parts = re.split(f"[{CSV_QUOTED_CHARACTERS}]", escape_formulas(text))
    assert not [part for part in parts if part.lstrip(BLANKS).startswith(tuple(SIGNS))]


@all_rows("text", ["", "plain", "a=b", "1-1", "it's", "me@home", "a\nb", "'quoted'"])
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert escape_formulas(text) == unescape_formulas(text) == text


@all_rows("sign", SIGNS)
def test_an_apostrophe_is_written_before_the_sign(sign: str) -> None:
    assert escape_formulas(f"{sign}1\n {sign}2\ta{sign}3") == f"'{sign}1\n '{sign}2\ta{sign}3"
    assert escape_formulas(f"\t{sign}1") == f"'\t'{sign}1"


@given(st.lists(texts, min_size=2, max_size=4))
def test_a_row_can_be_read_again_by_pythons_reader(cells: list[str]) -> None:
    written = io.StringIO()
    csv.writer(written, lineterminator=CSV_QUOTED_CHARACTERS).writerow(map(escape_formulas, cells))
    (row,) = csv.reader(
        io.StringIO(written.getvalue().removesuffix(CSV_QUOTED_CHARACTERS) + "\n", newline="")
    )
    assert [unescape_formulas(cell) for cell in row] == cells
