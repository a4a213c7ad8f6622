"""Limits on one file: files of next to no content are refused, and real data are read."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from jurygraph import InputError
from jurygraph.sources import files, read_tasks
from jurygraph.sources.ratings import read_confusions
from jurygraph.sources.table_rows import read_rows

TASK = json.dumps({"id": "t", "query": "?", "responses": [{"id": "a", "text": "x"}]})
ROW = '{"a": 1}'
MEGABYTE = 1 << 20


def read_table(path: Path) -> None:
    list(read_rows(path))


Reader = Callable[[Path], object]
READERS = [
    pytest.param("tasks.jsonl", TASK, read_tasks, id="tasks"),
    pytest.param("rows.jsonl", ROW, read_table, id="json lines"),
    pytest.param("rows.csv", "a\n1", read_table, id="csv"),
]


def write_gzip(path: Path, *parts: bytes) -> Path:
    path = path.with_name(path.name + ".gz")
    with gzip.open(path, "wb", compresslevel=9) as file:
        file.writelines(parts)
    return path


def refusal(read: Reader, path: Path) -> str:
    with pytest.raises(InputError) as refused:
        read(path)
    return str(refused.value)


@pytest.mark.parametrize(("name", "text", "read"), READERS)
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_line_that_is_too_long_is_refused(
    name: str, text: str, read: Reader, is_packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LONGEST_LINE", MEGABYTE)
    content = text.encode() + b"\n" + b" " * (2 * MEGABYTE)
    path = write_gzip(tmp_path / name, content) if is_packed else tmp_path / name
    if not is_packed:
        path.write_bytes(content)
    line = content.count(b"\n") + 1
    assert f"{path.name}, line {line}: is longer than 1 MB; write one object a line, ended with LF" in refusal(
        read, path
    )


def test_a_file_that_is_read_whole_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "confusions.json"
    with path.open("wb") as file:
        for _ in range(65):
            file.write(b"[" + b"0" * (MEGABYTE - 1))
    assert "has over 64 MB, which no confusions have" in refusal(read_confusions, path)


def test_a_table_of_50_000_columns_is_read_in_the_time_of_its_length(tmp_path: Path) -> None:
    """Comparing each name with all others took 26 s, more than `make check` allows a test."""
    columns = [f"c{number}" for number in range(50_000)]
    table = tmp_path / "wide.csv"
    table.write_text(",".join(columns) + "\n" + ",".join(columns) + "\n")
    assert list(read_rows(table)) == [("line 2", dict(zip(columns, columns, strict=True)))]
