"""Every change of a run is found and named."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.run import Run
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.ledger import FIRST_CHAIN_LINK, compute_record_link
from jurygraph.runs.workflows.erasure import erase
from tests.models.server import run_server
from tests.runs.sample_runs import rescore_run, score, verify_run, write_tasks
from tests.runs.store.test_ledger import execute_sql
from tests.runs.test_calls import judge_config, run_session, tasks_with_rubrics
from tests.runs.test_unsupported import misquoting_judge

CHANGED = "reward.same=0.25"


def cells(path: Path) -> list[tuple[str, str, int, Any]]:
    """Return the values of all tables as table, column, rowid and value; a sample with every kind for long tables."""
    found = []
    with closing(sqlite3.connect(path)) as connection:
        for (table,) in connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table'"
        ).fetchall():
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for row in connection.execute(f"SELECT rowid, * FROM {table}").fetchall():
                found += [
                    (table, column, row[0], value)
                    for column, value in zip(columns, row[1:], strict=True)
                ]
    return found


def with_one_byte_changed(value: Any, at: int) -> Any:
    if isinstance(value, int):
        return value ^ 1 << 40 + at % 8  # so far away that no other row has the number
    content = bytearray(value.encode() if isinstance(value, str) else value)
    at %= len(content)
    content[at] ^= 1
    return content.decode() if isinstance(value, str) else bytes(content)


@pytest.mark.parametrize("name", ["plain", "rich", "rescored"])
@pytest.mark.exhaustive
def test_a_changed_byte_in_any_cell_is_found(request, tmp_path: Path, name: str) -> None:
    folder = (
        rescore_run(request.getfixturevalue("plain"), tmp_path / "rescored", CHANGED)
        if name == "rescored"
        else request.getfixturevalue(name)
    )
    path = folder / run_folder.LEDGER_FILE
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
                f"UPDATE {table} SET {column} = ? WHERE rowid = ?",
                (with_one_byte_changed(value, number), rowid),
            )
        with pytest.raises(
            TraceMismatch,
            match=r"run\.sqlite.* (record|text) \d+|record 1: is not the beginning|run.sqlite: row",
        ):
            verify_run(folder)
        path.write_bytes(kept)
    expected = {"seq", "kind", "key", "at", "body", "link"} | (
        set() if name == "rescored" else {"id", "salt", "content"}
    )
    assert {column for _, column in seen} == expected
    verify_run(folder)


def test_a_changed_byte_in_the_file_is_found_or_harmless(plain: Path) -> None:
    path = plain / run_folder.LEDGER_FILE
    kept, before = path.read_bytes(), cells(path)
    for at in range(0, len(kept), 577):
        content = bytearray(kept)
        content[at] ^= 0x41
        path.write_bytes(content)
        try:
            verify_run(plain)
        # the latter: a newer version, or a file that cannot be opened
        except (
            TraceMismatch,
            InputError,
        ):
            continue
        assert cells(path) == before, at
    path.write_bytes(kept)


LAST_TEXT = "WHERE id = (SELECT max(id) FROM texts)"
CHANGES = {
    f"DELETE FROM texts {LAST_TEXT}": r"record \d+: reason of .*: is missing and was not erased",
    "INSERT INTO texts VALUES (5, x'00', x'00')": r"record 0: text: belongs to no record",
    "CREATE VIEW spy AS SELECT * FROM texts": "'spy' is not as jurygraph made it",
    "UPDATE records SET body = replace(body, '0.', '1.') WHERE key = 't1/r1'": r"record \d+ \(trace 't1/r1'\): differs",
    f"UPDATE texts SET salt = x'00' {LAST_TEXT}": r"record \d+: reason of response 't\d/r2', .*: differs from",
}
"""One change of each kind; `test_offline_verifier` has all that the same walk over the records finds."""


def test_removed_added_and_changed_rows_are_named(plain: Path) -> None:
    path = plain / run_folder.LEDGER_FILE
    kept = path.read_bytes()
    for statement, message in CHANGES.items():
        execute_sql(path, statement)
        with pytest.raises(TraceMismatch, match=message):
            verify_run(plain)
        path.write_bytes(kept)


def test_each_changed_prompt_reply_and_reason_is_named_with_its_response(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path, tasks_with_rubrics(1))
    folder = tmp_path / "run"
    with run_server(misquoting_judge) as server:
        run_session(folder, tasks, judge_config(server))
    with closing(Run.open(folder)) as run:
        verdict = next(run.traces()).verdicts[-1]
        record = run.ledger.require("trace", "t0/r0")
        call = run.ledger.require("call", verdict.calls[0].id)
    for text in ((call.seq << 20) + 1, call.seq << 20, (record.seq << 20) + 2):
        execute_sql(
            folder / run_folder.LEDGER_FILE, "UPDATE texts SET content = x'00' WHERE id = ?", text
        )
    with pytest.raises(TraceMismatch) as raised:
        verify_run(folder)
    assert raised.value.differences is not None
    places = [
        (text["kind"], text["record"], text["response"], text["sample"])
        for text in raised.value.differences["listed"]
    ]
    assert places == [
        ("prompt", call.seq, "t0/r0", 0),
        ("reply", call.seq, "t0/r0", 0),
        ("reason", record.seq, "t0/r0", 0),
    ]
    *_, reply, reason = raised.value.differences["listed"]
    assert verdict.question in reply["questions"]
    assert len(reason["questions"]) == 1
    # the walk goes on after a changed record, and tells nothing that only this one could tell
    config = folder / run_folder.CONFIG_FILE
    config.write_text(f"{config.read_text()}# changed")
    for change in ("key = 'x' WHERE kind = 'survey'", "at = 0 WHERE kind = 'close'"):
        execute_sql(folder / run_folder.LEDGER_FILE, f"UPDATE records SET {change}")
    with pytest.raises(TraceMismatch) as raised:
        verify_run(folder, signer="absent.pem")
    changed = raised.value.differences
    assert changed is not None
    assert changed["changed_records"] == len(changed["listed_records"]) == 2
    assert changed["broken"].startswith("record 2 (survey")
    count, config_note, key_note = raised.value.__notes__[-3:]
    assert count.startswith("changed records: 2; not checked: ")
    assert "config.yaml: is not the config that was written" in config_note
    assert key_note.startswith("absent.pem: cannot be read"), "it hides no change"


def test_a_lost_close_record_is_found_by_an_expected_head_alone(plain: Path) -> None:
    path = plain / run_folder.LEDGER_FILE
    execute_sql(path, "DELETE FROM records WHERE kind = 'close'")
    assert not verify_run(plain).closed
    # what was cut off with texts that are still there is one finding, not one for each of them
    execute_sql(path, "DELETE FROM records WHERE seq > 4")
    with pytest.raises(
        TraceMismatch, match="end too early, or texts were added: after record 4 "
    ) as raised:
        verify_run(plain)
    assert len(raised.value.__notes__) == 1


def test_a_changed_or_missing_config_is_found(plain: Path) -> None:
    path = plain / run_folder.CONFIG_FILE
    kept = path.read_text()
    for changed, difference in (
        (kept.replace("tone: 1.0", "tone: 2.0"), "config reward.tone is 1.0 in the run and 2.0 "),
        (kept.replace("  tone: 1.0\n", "  tune: 1.0\n"), ".tone is 1.0 in .*; .*tune is none in "),
        (kept[:-1], "its settings are the same"),
        ("", r"config version is 1 in the run and none here; .*; and \d+ more"),
        ("- a", "config as a whole is .* in the run and "),
        ("a: [", "is not valid YAML"),
    ):
        assert changed != kept
        path.write_text(changed)
        with pytest.raises(
            TraceMismatch,
            match=rf"config\.yaml: is not the config that was written.*: .*{difference}",
        ):
            verify_run(plain)
    path.unlink()
    with pytest.raises(TraceMismatch, match=r"config\.yaml: is missing; put it back from a copy"):
        verify_run(plain)


def rewrite_chain(folder: Path, change: Any) -> str:
    """Change records and recompute the whole chain, as a skilled forger would; return the new head."""
    with closing(sqlite3.connect(folder / run_folder.LEDGER_FILE)) as connection, connection:
        previous = FIRST_CHAIN_LINK
        for seq, kind, key, at, body in connection.execute(
            "SELECT seq, kind, key, at, body FROM records ORDER BY seq"
        ).fetchall():
            content = json.loads(body)
            change(kind, key, content)
            if kind == "close":
                content["head"] = previous.hex()
            body = json.dumps(content, separators=(",", ":"))
            previous = compute_record_link(previous, seq, kind, key, at, body)
            connection.execute(
                "UPDATE records SET body = ?, link = ? WHERE seq = ?", (body, previous, seq)
            )
    return previous.hex()


def test_other_settings_in_a_rebuilt_chain_are_told_from_those_of_the_file(plain: Path) -> None:
    def change(kind: str, key: str, content: Any) -> None:
        if kind == "run":
            content["config"]["reward"]["tone"] = 3.0

    rewrite_chain(plain, change)
    with pytest.raises(
        TraceMismatch,
        match=r"config\.yaml: is as .* record 1 has other .*: config reward\.tone is 3\.0 in .* and 1\.0 here$",
    ):
        verify_run(plain)


def change_reward(kind: str, key: str, content: Any) -> None:
    if kind == "trace" and content["reward"]["value"] is not None:
        content["reward"]["value"] += 0.25


def change_statistic(kind: str, key: str, content: Any) -> None:
    if kind == "group":
        content["statistics"]["questions"]["same"]["mean"] += 1e-9


class TestWholeChainRewritten:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (
                change_reward,
                r"\(trace 't0/r0'\): the verdicts give another reward: value is .* in the run and .* when",
            ),
            (change_statistic, "its verdicts give other statistics"),
        ],
    )
    def test_what_does_not_follow_from_the_verdicts_is_found(
        self, plain: Path, change: Any, message: str
    ) -> None:
        rewrite_chain(plain, change)
        with pytest.raises(TraceMismatch, match=message) as raised:
            verify_run(plain)
        assert len(raised.value.__notes__) > 2

    def test_a_consistent_forgery_is_found_by_the_expected_head(self, plain: Path) -> None:
        def change(kind: str, key: str, content: Any) -> None:
            if kind == "trace":
                content["agent"] = "somebody else"

        before = verify_run(plain).head
        verify_run(plain, expect_head=before)
        after = rewrite_chain(plain, change)
        assert verify_run(plain).head == after
        with pytest.raises(
            TraceMismatch, match=f"the head is {after}, not {before}: no record has it"
        ):
            verify_run(plain, expect_head=before)


class TestMalformed:
    @pytest.mark.parametrize(
        "name", ["size", "survey", "questions", "specs", "reward", "group", "verdicts", "config"]
    )
    def test_an_invalid_record_is_reported_as_damage(self, rich: Path, name: str) -> None:
        rewrite_chain(rich, lambda kind, key, content: content.pop(name, None))
        with pytest.raises(TraceMismatch) as raised:
            verify_run(rich, expect_head="0" * 64)
        if name == "reward":
            (note,) = raised.value.__notes__
            assert ("the head is" in str(raised.value), "cannot be read" in note) == (True, True)

    @pytest.mark.landing
    def test_a_run_that_refers_to_itself_is_damage(self, plain: Path, tmp_path: Path) -> None:
        other = rescore_run(plain, tmp_path / "other", CHANGED)
        run_id = Run.open(other).id

        def change(kind: str, key: str, content: Any) -> None:
            if kind == "run":
                content["base"] |= {"folder": ".", "run": run_id}

        rewrite_chain(other, change)
        with pytest.raises(TraceMismatch):
            verify_run(other)


class TestHead:
    def test_a_cut_tail_is_found_by_the_expected_head(self, plain: Path) -> None:
        head = verify_run(plain).head
        for statement in (
            "DELETE FROM texts WHERE id >= 1048576 * (SELECT max(seq) - 4 FROM records)",
            "DELETE FROM records WHERE seq >= (SELECT max(seq) - 4 FROM records)",
        ):
            execute_sql(plain / run_folder.LEDGER_FILE, statement)
        assert verify_run(plain).traces == 9, "it is whole in itself"
        with pytest.raises(TraceMismatch, match="no record has it"):
            verify_run(plain, expect_head=head)

    def test_an_erasure_may_follow_the_expected_head_and_a_trace_may_not(
        self, tmp_path: Path, tasks: Path
    ) -> None:
        score(tmp_path / "run", tasks, limit=2)
        head = verify_run(tmp_path / "run").head
        erase(tmp_path / "run", "response", "t0/r0", "asked for")
        verify_run(tmp_path / "run", expect_head=head)
        score(tmp_path / "run", tasks)
        with pytest.raises(TraceMismatch, match="or more than a close record and erasures follow"):
            verify_run(tmp_path / "run", expect_head=head)


class TestRescoredRun:
    def test_a_change_in_the_base_is_found(self, plain: Path, tmp_path: Path) -> None:
        other = rescore_run(plain, tmp_path / "other", CHANGED)
        assert verify_run(other).base is not None
        execute_sql(
            plain / run_folder.LEDGER_FILE,
            "UPDATE texts SET content = x'00' WHERE id = (SELECT max(id) FROM texts)",
        )
        with pytest.raises(TraceMismatch, match=r"plain.* differs from what was written"):
            verify_run(other)

    def test_an_exchanged_base_is_found(self, plain: Path, tmp_path: Path, tasks: Path) -> None:
        other = rescore_run(plain, tmp_path / "other", CHANGED)
        shutil.rmtree(plain)
        with pytest.raises(InputError, match=r"refers to the verdicts of .*, which is not there"):
            verify_run(other)
        score(plain, tasks)
        with pytest.raises(TraceMismatch, match="is another run than the one"):
            verify_run(other)

    def test_a_cut_base_is_found(self, plain: Path, tmp_path: Path) -> None:
        other = rescore_run(plain, tmp_path / "other", CHANGED)
        execute_sql(plain / run_folder.LEDGER_FILE, "DELETE FROM records WHERE kind = 'close'")
        with pytest.raises(TraceMismatch, match="is not the one that"):
            verify_run(other)


@pytest.mark.parametrize("extra", [b"!", bytes(4096)], ids=["a byte", "a page"])
def test_bytes_after_the_database_are_found(plain: Path, extra: bytes) -> None:
    with (plain / "run.sqlite").open("ab") as file:
        file.write(extra)
    with pytest.raises(TraceMismatch, match=f"{len(extra)} bytes follow the end of the database"):
        verify_run(plain)


class TestResult:
    def test_the_result_has_the_verified_numbers(self, plain: Path) -> None:
        found = verify_run(plain)
        assert (found.traces, found.erased, found.closed, found.sealed, found.base) == (
            12,
            0,
            True,
            None,
            None,
        )
        with closing(Run.open(plain)) as run:
            assert (found.records, found.head) == (run.ledger.count, run.ledger.head.hex())
            assert found.texts == len(list(run.ledger.stored_texts(0, run.ledger.count)))
