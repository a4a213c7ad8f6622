"""Limits on one file: files of next to no content are refused, and real data are read."""

import gzip
import json
import subprocess
import sys
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
def test_a_file_of_blank_lines_is_refused(name: str, text: str, read: Reader, tmp_path: Path) -> None:
    message = refusal(read, write_gzip(tmp_path / name, text.encode() + b"\n", b"\n" * 300_000))
    assert f"{name}.gz, line 100" in message
    assert "is blank, as are more than 100,000 lines beyond the number of lines with text" in message


@pytest.mark.parametrize(("name", "text", "read"), READERS)
def test_a_file_may_have_blank_lines_between_its_lines(name: str, text: str, read: Reader, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text.replace("\n", "\n" * 50_000) + "\n" * 40_000)
    read(path)


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


@pytest.mark.parametrize(("name", "text", "read"), READERS)
def test_a_gzip_file_that_unpacks_to_far_more_than_data_do_is_refused(
    name: str, text: str, read: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "UNPACKED_FREELY", MEGABYTE)
    monkeypatch.setattr(files, "MORE_BLANK_LINES", 10 * MEGABYTE)
    path = write_gzip(tmp_path / name, text.encode() + b"\n", b"\n" * (MEGABYTE + 300_000))
    message = refusal(read, path)
    assert f"{path.name}, line " in message
    assert "unpacks to more than 300 times its size and 1 MB" in message
    assert "unpack it with `gunzip` first" in message


def test_data_that_pack_well_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "UNPACKED_FREELY", MEGABYTE)
    lines = (
        json.dumps({"id": f"t{n}", "query": "The same words.", "responses": [{"id": f"r{n}", "text": "same " * 200}]})
        for n in range(2_000)
    )
    path = write_gzip(tmp_path / "tasks.jsonl", *(line.encode() + b"\n" for line in lines))
    assert path.stat().st_size * 20 < 2_000_000
    assert len(read_tasks(path)) == 2_000


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_json_that_is_blank_for_long_is_refused(suffix: str, tmp_path: Path) -> None:
    content = b"[\n" + b" " * (3 * MEGABYTE) + b"]"
    path = tmp_path / f"rows{suffix}"
    path.write_bytes(gzip.compress(content) if suffix == ".json.gz" else content)
    assert refusal(read_table, path).endswith(
        f"rows{suffix}, line 2: holds 1 MB of white space in a row; write it without"
    )


def test_confusions_have_a_limit_too(tmp_path: Path) -> None:
    path = tmp_path / "confusions.json"
    path.write_bytes(b" " * (3 * MEGABYTE))
    assert "holds 1 MB of white space in a row" in refusal(read_confusions, path)
    with path.open("wb") as file:
        for _ in range(65):
            file.write(b"[" + b"0" * (MEGABYTE - 1))
    assert "has over 64 MB, which no confusions have" in refusal(read_confusions, path)


PEAK = """
import sys
from pathlib import Path
from jurygraph import InputError
from jurygraph.sources import read_tasks
from jurygraph.sources.table_rows import read_rows
try:
    list(read_tasks(sys.argv[1]) if "tasks" in sys.argv[1] else read_rows(Path(sys.argv[1])))
except InputError as error:
    print(error)
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["tasks.jsonl", "rows.jsonl", "rows.csv", "rows.json"])
def test_a_file_of_blanks_takes_less_than_300_mb(name: str, tmp_path: Path) -> None:
    path = write_gzip(tmp_path / name, *[b" " * MEGABYTE] * 400)
    ended = subprocess.run([sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True)
    message, peak = ended.stdout.splitlines()
    assert f"{name}.gz" in message
    assert int(peak) / 1024 < 300


def test_a_table_of_50_000_columns_is_read_in_the_time_of_its_length(tmp_path: Path) -> None:
    """Comparing each name with all others took 26 s, more than `make check` allows a test."""
    columns = [f"c{number}" for number in range(50_000)]
    table = tmp_path / "wide.csv"
    table.write_text(",".join(columns) + "\n" + ",".join(columns) + "\n")
    assert list(read_rows(table)) == [("line 2", dict(zip(columns, columns, strict=True)))]
