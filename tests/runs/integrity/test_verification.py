"""Whatever is changed in a run is found, and named."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError, JurygraphError, TraceMismatch
from jurygraph.runs.run import Run
from jurygraph.runs.store import folder as place
from jurygraph.runs.store.chain import FIRST_LINK, Draft, link_of
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.rescoring import apply_settings, rescore
from jurygraph.runs.writable_run import close_run
from tests.runs.made import PLAIN, checked, lines, sat, score, write_tasks
from tests.runs.store.test_ledger import changed


def cells(path: Path) -> list[tuple[str, str, int, Any]]:
    """Every value of every table: table, column, rowid, value; of long tables a sample that has every kind."""
    found = []
    with closing(sqlite3.connect(path)) as connection:
        for (table,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for row in connection.execute(f"SELECT rowid, * FROM {table}").fetchall():
                found += [(table, column, row[0], value) for column, value in zip(columns, row[1:], strict=True)]
    return found


def with_one_byte_changed(value: Any, at: int) -> Any:
    if isinstance(value, int):
        return value ^ 1 << 40 + at % 8  # so far away that no other row has the number
    content = bytearray(value.encode() if isinstance(value, str) else value)
    at %= len(content)
    content[at] ^= 1
    return content.decode() if isinstance(value, str) else bytes(content)


@pytest.mark.parametrize("name", ["plain", "rich", "rescored"])
@pytest.mark.slow
def test_one_byte_changed_in_any_cell_of_any_table_is_found_and_named(request, tmp_path: Path, name: str) -> None:
    folder = (
        again(request.getfixturevalue("plain"), tmp_path / "rescored")
        if name == "rescored"
        else request.getfixturevalue(name)
    )
    path = folder / place.LEDGER
    kept = path.read_bytes()
    seen = set()
    every = cells(path)
    step = max(1, len(every) // 400)
    for number, (table, column, rowid, value) in enumerate(every):
        if number % step and (table, column) in seen:
            continue
        seen.add((table, column))
        if value in ("", b""):
            continue
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(
                f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (with_one_byte_changed(value, number), rowid)
            )
        with pytest.raises(
            TraceMismatch, match=r"run\.sqlite.* (record|text) \d+|record 1: is not the beginning|run.sqlite: row"
        ):
            checked(folder)
        path.write_bytes(kept)
    expected = {"seq", "kind", "key", "at", "body", "link"} | (
        set() if name == "rescored" else {"id", "salt", "content"}
    )
    assert {column for _, column in seen} == expected
    checked(folder)


def test_one_byte_changed_anywhere_in_the_file_is_found_or_changes_nothing(plain: Path) -> None:
    path = plain / place.LEDGER
    kept, before = path.read_bytes(), cells(path)
    for at in range(0, len(kept), 577):
        content = bytearray(kept)
        content[at] ^= 0x41
        path.write_bytes(content)
        try:
            checked(plain)
        except (TraceMismatch, InputError):  # the latter: a newer version, or a file that cannot be opened
            continue
        assert cells(path) == before, at
    path.write_bytes(kept)


@pytest.mark.slow
def test_every_byte_of_the_config_counts(plain: Path) -> None:
    path = plain / place.CONFIG
    kept = path.read_bytes()
    for at in range(len(kept)):
        path.write_bytes(kept[:at] + bytes([kept[at] ^ 1]) + kept[at + 1 :])
        with pytest.raises(TraceMismatch, match=r"config\.yaml: is not the config that was written"):
            checked(plain)
    path.unlink()
    with pytest.raises(TraceMismatch, match=r"config\.yaml: is missing"):
        checked(plain)


@pytest.mark.parametrize("kind", ["survey", "decision", "task", "group", "trace", "close"])
def test_a_record_that_was_taken_out_is_missed(plain: Path, kind: str) -> None:
    changed(
        plain / place.LEDGER, f"DELETE FROM records WHERE seq = (SELECT min(seq) FROM records WHERE kind = '{kind}')"
    )
    if kind == "close":
        assert not checked(plain).closed, "a shorter chain is whole in itself: --expect-head and a seal find that"
        return
    with pytest.raises(TraceMismatch, match=r"record \d+"):
        checked(plain)


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "DELETE FROM texts WHERE id = (SELECT max(id) FROM texts)",
            r"text \d+ of record \d+ \(trace 't3/r2'\): is missing without an erasure",
        ),
        ("INSERT INTO texts VALUES (5, x'00', x'00')", r"text 5: belongs to no record"),
        ("INSERT INTO texts VALUES (99999999999, x'00', x'00')", r"text 99999999999: belongs to no record"),
        ("CREATE VIEW spy AS SELECT * FROM texts", "'spy' is not as jurygraph made it"),
    ],
)
def test_texts_are_just_those_that_records_commit_to(plain: Path, statement: str, said: str) -> None:
    changed(plain / place.LEDGER, statement)
    with pytest.raises(TraceMismatch, match=said):
        checked(plain)


def rewritten(folder: Path, change: Any) -> str:
    """Rewrite the whole chain, as somebody would who knows how; the new head."""
    with closing(sqlite3.connect(folder / place.LEDGER)) as connection, connection:
        previous = FIRST_LINK
        for seq, kind, key, at, body in connection.execute(
            "SELECT seq, kind, key, at, body FROM records ORDER BY seq"
        ).fetchall():
            content = json.loads(body)
            change(kind, key, content)
            if kind == "close":
                content["head"] = previous.hex()
            body = json.dumps(content, separators=(",", ":"))
            previous = link_of(previous, seq, kind, key, at, body)
            connection.execute("UPDATE records SET body = ?, link = ? WHERE seq = ?", (body, previous, seq))
    return previous.hex()


class TestWholeChainRewritten:
    def test_a_reward_that_its_verdicts_do_not_give_is_found(self, plain: Path) -> None:
        def change(kind: str, key: str, content: Any) -> None:
            if key == "t1/r1":
                content["reward"]["value"] += 0.25

        rewritten(plain, change)
        said = r"record \d+ \(trace 't1/r1'\): the verdicts give another reward: value is .* in the run and .* when"
        with pytest.raises(TraceMismatch, match=said):
            checked(plain)

    def test_a_statistic_that_its_verdicts_do_not_give_is_found(self, plain: Path) -> None:
        def change(kind: str, key: str, content: Any) -> None:
            if kind == "group":
                content["statistics"]["questions"]["same"]["mean"] += 1e-9

        rewritten(plain, change)
        with pytest.raises(TraceMismatch, match="its verdicts give other statistics"):
            checked(plain)

    def test_what_is_consistent_is_found_by_the_head_that_was_written_down(self, plain: Path) -> None:
        def change(kind: str, key: str, content: Any) -> None:
            if kind == "trace":
                content["agent"] = "somebody else"

        before = checked(plain).head
        checked(plain, expect_head=before)
        after = rewritten(plain, change)
        assert checked(plain).head == after
        with pytest.raises(TraceMismatch, match=f"the head is {after}, and no record has the link {before}"):
            checked(plain, expect_head=before)


def without(name: str) -> Any:
    def change(kind: str, key: str, content: Any) -> None:
        content.pop(name, None)

    return change


class TestMalformed:
    @pytest.mark.parametrize(
        "name", ["size", "survey", "questions", "specs", "reward", "group", "verdicts", "statistics", "config"]
    )
    def test_a_record_that_nobody_wrote_like_that_is_damage_and_no_crash(self, rich: Path, name: str) -> None:
        rewritten(rich, without(name))
        with pytest.raises(TraceMismatch):
            checked(rich)

    def test_a_run_that_refers_to_itself_is_damage(self, plain: Path, tmp_path: Path) -> None:
        other = again(plain, tmp_path / "other")
        run_id = Run.open(other).id

        def change(kind: str, key: str, content: Any) -> None:
            if kind == "run":
                content["base"] |= {"folder": ".", "run": run_id}

        rewritten(other, change)
        with pytest.raises(TraceMismatch):
            checked(other)


class TestAfterTheEnd:
    def test_nothing_but_an_erasure_may_follow(self, plain: Path) -> None:
        erase(plain, "response", "t0/r0", "")
        checked(plain)
        with closing(Ledger.open(plain / place.LEDGER, write=True)) as ledger:
            ledger.append(Draft("survey", "late", {}))
            ledger.commit()
        with pytest.raises(TraceMismatch, match=r"record \d+ \(survey 'late'\): has no business there"):
            checked(plain)

    def test_a_text_that_was_erased_may_not_be_there_again(self, plain: Path) -> None:
        with closing(Run.open(plain)) as run:
            kept = list(run.ledger.all_texts())
        erase(plain, "response", "t0/r0", "")
        with closing(Run.open(plain)) as run:
            left = {text.id for text in run.ledger.all_texts()}
        back = next(text for text in kept if text.id not in left)
        changed(plain / place.LEDGER, "INSERT INTO texts VALUES (?, ?, ?)", *back)
        with pytest.raises(TraceMismatch, match=f"text {back.id}: was erased, and is there again"):
            checked(plain)


class TestHead:
    def test_a_tail_that_was_cut_is_found(self, plain: Path) -> None:
        head = checked(plain).head
        for statement in (
            "DELETE FROM texts WHERE id >= 1048576 * (SELECT max(seq) - 4 FROM records)",
            "DELETE FROM records WHERE seq >= (SELECT max(seq) - 4 FROM records)",
        ):
            changed(plain / place.LEDGER, statement)
        assert checked(plain).traces == 9, "it is whole in itself"
        with pytest.raises(TraceMismatch, match="no record has the link"):
            checked(plain, expect_head=head)

    def test_an_erasure_may_follow_it_and_a_trace_may_not(self, tmp_path: Path, tasks: Path) -> None:
        score(tmp_path / "run", tasks, limit=2)
        head = checked(tmp_path / "run").head
        erase(tmp_path / "run", "response", "t0/r0", "asked for")
        checked(tmp_path / "run", expect_head=head)
        score(tmp_path / "run", tasks)
        with pytest.raises(TraceMismatch, match=r"record \d+ \(task 't2'\): comes after the head that was expected"):
            checked(tmp_path / "run", expect_head=head)

    def test_a_head_is_taken_as_one_writes_it(self, plain: Path) -> None:
        checked(plain, expect_head=f" {checked(plain).head.upper()}\n")


def again(folder: Path, other: Path) -> Path:
    with closing(Run.open(folder)) as run:
        rescore(run, other, apply_settings(run.config, ["reward.same=0.25"]), lambda count: None)
    return other


class TestRescored:
    def test_a_change_in_the_base_is_found_from_the_run_that_refers_to_it(self, plain: Path, tmp_path: Path) -> None:
        other = again(plain, tmp_path / "other")
        assert checked(other).base is not None
        changed(plain / place.LEDGER, "UPDATE texts SET content = x'00' WHERE id = (SELECT max(id) FROM texts)")
        with pytest.raises(TraceMismatch, match=r"plain.* differs from what was written"):
            checked(other)

    def test_another_base_in_its_place_is_found(self, plain: Path, tmp_path: Path, tasks: Path) -> None:
        other = again(plain, tmp_path / "other")
        shutil.rmtree(plain)
        with pytest.raises(InputError, match=r"refers to the verdicts of .*, which is not there"):
            checked(other)
        score(plain, tasks)
        with pytest.raises(TraceMismatch, match="is another run than the one"):
            checked(other)

    def test_a_base_that_was_cut_is_found(self, plain: Path, tmp_path: Path) -> None:
        other = again(plain, tmp_path / "other")
        changed(plain / place.LEDGER, "DELETE FROM records WHERE kind = 'close'")
        with pytest.raises(TraceMismatch, match="is not the one that"):
            checked(other)


class TestAppended:
    @pytest.mark.parametrize("extra", [b"!", b"hidden" * 999, bytes(4096)], ids=["a byte", "some", "a page"])
    def test_bytes_behind_the_database_are_found(self, plain: Path, extra: bytes) -> None:
        with (plain / "run.sqlite").open("ab") as file:
            file.write(extra)
        with pytest.raises(TraceMismatch, match=f"{len(extra)} bytes follow the end of the database"):
            checked(plain)

    def test_a_run_that_is_being_written_has_none(self, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path, lines())
        with sat(tmp_path / "run", tasks, PLAIN, limit=2):
            assert (tmp_path / "run" / "run.sqlite-wal").exists()
            assert checked(tmp_path / "run").traces == 6


class TestStatement:
    def test_it_says_what_was_found_right(self, plain: Path) -> None:
        found = checked(plain)
        assert (found.traces, found.erased, found.closed, found.sealed, found.base) == (12, 0, True, None, None)
        with closing(Run.open(plain)) as run:
            assert (found.records, found.head) == (run.ledger.count, run.ledger.head.hex())
            assert found.texts == len(list(run.ledger.stored_texts(0, run.ledger.count)))

    def test_a_run_that_is_still_open_verifies_too(self, tmp_path: Path) -> None:
        tasks = write_tasks(tmp_path, lines())
        score(tmp_path / "run", tasks, PLAIN, limit=2)
        assert not checked(tmp_path / "run").closed
        close_run(tmp_path / "run")
        assert checked(tmp_path / "run").closed
        with pytest.raises(JurygraphError, match="closed"):
            score(tmp_path / "run", tasks, PLAIN)
