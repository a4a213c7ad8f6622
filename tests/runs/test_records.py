"""The file of traces: a chain that can be cut off cleanly and not be changed unseen."""

import hashlib
import json
from pathlib import Path

import pytest

from jurygraph import TraceMismatch
from jurygraph.runs.records import RecordWriter, Recovered, TornLine, line_of, read_records, recover
from tests.runs.made import reward, trace

GROUPS = [("t0", frozenset({"a", "b"})), ("t1", frozenset({"c"})), ("t2", frozenset({"d", "e"}))]
TRACES = [[trace("t0", "a"), trace("t0", "b")], [trace("t1", "c", None)], [trace("t2", "d"), trace("t2", "e")]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "traces.jsonl"
    writer = RecordWriter(path, Recovered())
    for group in TRACES:
        writer.append(group)
    writer.close()
    return path


def test_what_was_written_is_read(path: Path):
    found = [record.trace.model_copy(update={"previous": None}) for record in read_records(path)]
    assert found == [one for group in TRACES for one in group]


def test_each_record_names_the_sha_256_of_the_line_before_it(path: Path):
    lines = path.read_bytes().splitlines()
    assert [json.loads(line)["previous"] for line in lines] == [
        None,
        *(hashlib.sha256(line).hexdigest() for line in lines[:-1]),
    ]


def test_a_group_is_on_disk_when_append_returns(tmp_path: Path):
    writer = RecordWriter(tmp_path / "traces.jsonl", Recovered())
    writer.append(TRACES[0])
    assert len((tmp_path / "traces.jsonl").read_bytes().splitlines()) == 2
    writer.close()


def test_characters_that_nobody_sees_stand_as_escapes_and_are_read_as_they_were():
    hostile = "a\u202eb\x9bc\u2028d\U000e0041e\x1b[2J"
    line = line_of(trace("t", hostile))
    assert json.loads(line)["response_id"] == hostile
    assert not any(ord(c) < 32 or c in hostile[1::2] for c in line.decode() if not c.isascii() or ord(c) < 32)


def test_whole_groups_are_recovered(path: Path):
    found = recover(path, GROUPS)
    assert (found.groups, found.size) == (3, path.stat().st_size)
    assert (found.summary.responses, found.summary.failed) == (5, 1)


@pytest.mark.parametrize("cut", range(1, 400, 7))
def test_a_torn_line_and_the_group_it_belongs_to_are_written_again(path: Path, cut: int):
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    found = recover(path, GROUPS)
    assert found.groups == 2
    writer = RecordWriter(path, found)
    writer.append(TRACES[2])
    writer.close()
    assert path.read_bytes() == whole


def test_a_last_line_of_nothing_but_zeros_is_torn(path: Path):
    with path.open("ab") as file:
        file.write(b"\0" * 512 + b"\n")
    assert recover(path, GROUPS).groups == 3
    with pytest.raises(TornLine):
        list(read_records(path))


def test_an_empty_file_holds_nothing(tmp_path: Path):
    (tmp_path / "traces.jsonl").touch()
    assert recover(tmp_path / "traces.jsonl", GROUPS) == Recovered()


def change(path: Path, line: int, old: bytes, new: bytes) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    assert old in lines[line]
    lines[line] = lines[line].replace(old, new, 1)
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize(
    ("line", "old", "new", "message"),
    [
        (1, b'"value":0.5', b'"value":0.9', "has digest"),
        (4, b'"value":0.5', b'"value":0.9', "has digest"),
        (2, b'"previous":"', b'"previous":"0', "line 3: does not follow the line before it"),
        (1, b'"judged":1,"abstained":0', b'"judged":1,"abstained":-1', "line 2: is no trace"),
    ],
    ids=["a value", "a value in the last line", "the chain", "no trace any more"],
)
def test_a_changed_record_is_refused(path: Path, line: int, old: bytes, new: bytes, message: str):
    change(path, line, old, new)
    with pytest.raises(TraceMismatch, match=message):
        list(read_records(path))


def test_a_lost_record_is_refused(path: Path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(TraceMismatch, match="line 2: does not follow"):
        list(read_records(path))


def test_traces_of_other_responses_are_refused(path: Path):
    with pytest.raises(TraceMismatch, match="the traces of task 't0' are not those of its responses"):
        recover(path, [("t0", frozenset({"a", "z"})), *GROUPS[1:]])


def test_the_digest_of_a_trace_does_not_depend_on_its_place(path: Path):
    digests = [json.loads(line)["digest"] for line in path.read_bytes().splitlines()]
    assert digests == [one.digest for group in TRACES for one in group]


def test_rewards_are_read_back_bit_for_bit(tmp_path: Path):
    odd = trace("t", "r", reward=reward(0.1 + 0.2, coverage=1 / 3))
    writer = RecordWriter(tmp_path / "traces.jsonl", Recovered())
    writer.append([odd])
    writer.close()
    assert next(read_records(tmp_path / "traces.jsonl")).trace.reward == odd.reward
