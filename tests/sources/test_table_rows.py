"""Rows of a table in every file format."""

import gzip
import hashlib
import json
import os
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jurygraph.errors import InputError
from jurygraph.sources.table_rows import read_csv_layout, read_rows
from tests.agents.facts.examples import SUFFIXES, Rows, write_table
from tests.rows import all_rows

ROWS: Rows = [
    {"name": "Café, the", "note": 'said "yes"\ntwice', "seats": "12"},
    {"name": "解 Inn", "note": "", "seats": "7"},
]


def rows(path: Path) -> list[dict[str, Any]]:
    return [values for _, values in read_rows(path)]


def refusal(path: Path) -> str:
    """Why, after the path."""
    with pytest.raises(InputError) as raised:
        rows(path)
    assert str(raised.value).startswith(str(path))
    return str(raised.value).removeprefix(str(path))


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_form_gives_the_same_rows(suffix: str, tmp_path: Path) -> None:
    assert rows(write_table(tmp_path / f"t{suffix}", ROWS)) == ROWS


@pytest.mark.parametrize("name", ["t.CSV", "my.places.csv", "t.csv.GZ", "t.gz.csv"])
def test_the_suffix_selects_the_format(name: str, tmp_path: Path) -> None:
    assert rows(write(tmp_path / name, "name\na\n")) == [{"name": "a"}]


# What cannot be read


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.csv")
    assert refusal(tmp_path / "t.csv") == ": is not a regular file; name a file"


@pytest.mark.parametrize("name", ["t.txt", "t", "t.gz", "t.xls", "csv", "t.csv.bak"])
def test_an_unknown_format_is_refused(name: str, tmp_path: Path) -> None:
    message = refusal(write(tmp_path / name, "name\na\n"))
    assert (
        message
        == ": has no table format in its name; give .csv, .tsv, .json or .jsonl (.gz too), .parquet or .xlsx"
    )


def test_a_folder_and_a_name_without_a_file_have_no_format_to_ask_for(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert refusal(tmp_path / "run") == ": is a folder; name a file"
    assert refusal(tmp_path / "rum").startswith(": there is no such file")


def test_files_that_were_joined_with_their_headers_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,b\n1,2\n\na,b\n3,4\n")
    assert refusal(path) == ", line 4: is the header once more; remove the line"


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl"])
@pytest.mark.parametrize("cut", ["short", "damaged"])
def test_a_gzip_file_that_is_cut_short_or_damaged_is_refused(
    suffix: str, cut: str, tmp_path: Path
) -> None:
    many = [{"name": hashlib.sha256(bytes([n % 256, n // 256])).hexdigest()} for n in range(2000)]
    path = write_table(tmp_path / f"t{suffix}.gz", many)
    content = path.read_bytes()
    wrong_sum = content[:-8] + bytes(byte ^ 255 for byte in content[-8:-4]) + content[-4:]
    path.write_bytes(content[: len(content) // 2] if cut == "short" else wrong_sum)
    with pytest.raises(
        InputError, match=rf"t{suffix}\.gz: the gzip file is cut short or damaged \(.*copy it again"
    ):
        rows(path)


# CSV


@all_rows(
    "content",
    [
        b"\xef\xbb\xbfname,seats\r\na,1\r\n",
        b"name,seats\n\na,1\n\n",
        b'"name","seats"\n"a","1"',
        b"name\tseats\na\t1\n",
        b'"name";seats\r\n"a";1\r\n',
    ],
)
def test_programs_write_csv_in_different_ways(content: bytes, tmp_path: Path) -> None:
    assert rows(write(tmp_path / "t.csv", content)) == [{"name": "a", "seats": "1"}]


def test_missing_cells_at_the_end_of_a_line_are_empty_and_excels_line_says_what_separates(
    tmp_path: Path,
) -> None:
    mturk = '"HITId","score","Approve","Reject"\n"h1","4"\n"h2"\n'
    assert rows(write(tmp_path / "t.csv", mturk)) == [
        {"HITId": "h1", "score": "4", "Approve": None, "Reject": None},
        {"HITId": "h2", "score": None, "Approve": None, "Reject": None},
    ]
    assert rows(write(tmp_path / "t.csv", "sep=;\r\nn;m\r\na,b;2\r\n")) == [{"n": "a,b", "m": "2"}]


def test_rows_of_empty_cells_are_no_rows_and_names_of_columns_are_where_they_stand(
    tmp_path: Path,
) -> None:
    """As the last rows of a sheet are, in Excel's export with its line about the separator."""
    file = write(tmp_path / "sheet.csv", "sep=;\nid;note\na;1\n;\nb;2\n;;;\n \n")
    assert list(read_rows(file)) == [
        ("line 3", {"id": "a", "note": "1"}),
        ("line 5", {"id": "b", "note": "2"}),
    ]
    assert read_csv_layout(file) == (";", 2)
    twice = write(tmp_path / "twice.csv", "sep=;\nid;id\n")
    assert "line 2: names column 'id' twice" in refusal(twice)


def test_files_of_another_form_are_named_as_what_they_are(tmp_path: Path) -> None:
    for content, problem in (
        ("n,m\n1,2\n".encode("utf-16"), "is UTF-16; save the file as UTF-8"),
        (b"PK\x03\x04", "is a zip archive, as Excel's files are; name an Excel file .xlsx"),
        (b"PAR1", "is Parquet; name it .parquet"),
        (b"\xef\xbb\xbf<!doctype html>\n<p>", "begins with <, as HTML does; export it as CSV"),
    ):
        with pytest.raises(InputError, match=problem):
            rows(write(tmp_path / "t.csv", content))


def test_a_comma_in_the_header_line_goes_before_other_separators(tmp_path: Path) -> None:
    assert rows(write(tmp_path / "t.csv", "n;m,o\na;b,c\n")) == [{"n;m": "a;b", "o": "c"}]
    assert rows(write(tmp_path / "t.csv", '"n,m";o\n"a,b";c,d\n')) == [{"n,m": "a,b", "o": "c,d"}]


BAD_CSV = [
    (
        "Round 1\nn,m\na,b\n",
        2,
        "does not have the 1 columns of the first line, but 2; quote a value ",
    ),
    (
        '"May, 1",,\nn,m,o\na,b,c\n',
        1,
        "leaves a column without a name; if the line is a title, d",
    ),
    ("n,m\n1,2\n1,2,3\n", 3, "does not have the 2 columns of the first line, but 3; quote a value"),
    ("sep=;\nn;m\n1;2;3\n", 3, "does not have the 2 columns of the first line, but 3; quote"),
    ('n,m\n"a\nb\nc",2\n1,2,3\n', 5, "does not have the 2 columns"),
    ("n,m,n\n1,2,3\n", 1, "names column 'n' twice; the first line names each column once"),
    (",n\n0,1\n", 1, "leaves a column without a name"),
    ('n,m\n1,2\n"1,2\n3,4\n', 3, "a quote that opens in this row is never closed"),
    ('n,"m\n1,2\n', 1, "a quote that opens in this row is never closed"),
    (
        'n,m\n1,"2\n3,4\n5,"6"\n',
        2,
        "a quote that opens in this row ends in line 4, with text after",
    ),
    ("n,m\r1,2\r", 1, "is not CSV (new-line character seen in unquoted field); quote values"),
    (b"n\n" + b"x\n" * 20_000 + b"\xe9\n", 20_002, "byte 1 (0xe9) is not UTF-8"),
]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
@all_rows(("content", "line", "message"), BAD_CSV)
def test_bad_csv_is_refused_with_its_line(
    content: bytes | str, line: int, message: str, packed: bool, tmp_path: Path
) -> None:
    path = write(tmp_path / "t.csv", content)
    if packed:
        path = write(tmp_path / "t.csv.gz", gzip.compress(path.read_bytes()))
    assert refusal(path).startswith(f", line {line}: {message}")


# JSON and JSON lines


@pytest.mark.parametrize("name", ["t.json", "t.jsonl"])
def test_a_byte_order_mark_before_json_does_no_harm(name: str, tmp_path: Path) -> None:
    text = '{"name": "a"}'
    content = b"\xef\xbb\xbf" + (text if name == "t.jsonl" else f"[{text}]").encode()
    assert rows(write(tmp_path / name, content)) == [{"name": "a"}]


@all_rows(
    ("name", "content", "message"),
    [
        (
            "t.jsonl",
            '{"name": "b"}\n\n{"name": "a"\n',
            ", line 3: ends within its JSON: the file was cut off, or a brac",
        ),
        ("t.jsonl", "[1]", ", line 1: is a list, or begins one; name the file .json"),
        (
            "t.jsonl",
            '{"a": 1}\n[{"role": "user", "content": "Salt!"}]',
            ', line 2: is a list, or begins one; a chat is {"messages": […]}',
        ),
        (
            "t.jsonl",
            '{"name": ' + "[" * 5000 + "]" * 5000 + "}",
            ", line 1: is not valid JSON (recursion limit exceede",
        ),
        (
            "t.json",
            '[{"a": {"b": 1, "b": 2}}]',
            ", field [0].a.b: occurs twice in one object; keep one of them",
        ),
        ("t.jsonl", '{"a": 1, "a": 1}', ", line 1, field a: occurs twice in one object; keep"),
        ("t.jsonl", '{"a": 1, "a ": 2}', ", line 1: two columns differ in blanks around"),
        ("t.json", '{"rows": []}', ": is an object; a table is a list of rows"),
        (
            "t.json",
            '[{"name": "a"}, "b"]',
            ", [1]: is the text 'b'; a row is an object, with a value for each column",
        ),
        ("t.json", b'["\xe9"]', ", line 1: byte 3 (0xe9) is not UTF-8; save"),
    ],
)
def test_bad_json_is_refused_with_its_place(
    name: str, content: bytes | str, message: str, tmp_path: Path
) -> None:
    assert refusal(write(tmp_path / name, content)).startswith(message)


# Parquet


def test_values_of_parquet_are_as_json_has_them(tmp_path: Path) -> None:
    row = {
        "day": date(2022, 3, 1),
        "price": Decimal("2.50"),
        "nothing": float("nan"),
        "list": [1.5, float("inf")],
        "inside": {"day": date(2022, 3, 2)},
        "bytes": "é".encode(),
        "flag": True,
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "t.parquet")
    (given,) = rows(tmp_path / "t.parquet")
    assert given == {
        "day": "2022-03-01",
        "price": "2.50",
        "nothing": None,
        "list": [1.5, None],
        "inside": {"day": "2022-03-02"},
        "bytes": "é",
        "flag": True,
    }
    assert json.loads(json.dumps(given, allow_nan=False)) == given


def test_parquet_that_is_cut_short_is_refused(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.parquet", ROWS)
    for content in (
        path.read_bytes()[:-20],
        path.read_bytes()[:4],
        b"PAR1 and so on",
        b"name\na\n",
        b"",
    ):
        assert refusal(write(path, content)).startswith(": cannot be read as Parquet (")


# Rows from elsewhere
