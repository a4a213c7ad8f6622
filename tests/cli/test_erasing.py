"""`jurygraph erase`: texts are erased for good, and the run still verifies."""

import gzip
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import (
    CALL_LOGGING_EVALUATORS,
    LETTERS,
    LETTERS_CONFIG,
    SECRET,
    Command,
    folder_contents,
    traces,
    write_project,
)

PHONE, NAME = "0171 555 0100", "by Mrs Hollis"
OF_THE_RESPONSE = (SECRET, PHONE, NAME)
QUERY = "Write to the landlord of 12 Larch Lane."
OF_THE_TASK = (QUERY, *OF_THE_RESPONSE, "it is cold in here")
NOT_ERASED = "Write a note to the neighbours."

RESPONSE, TASK = ("--response", "letter/a"), ("--task", "letter")


def erase(run: Command, folder: Path, *what: str) -> dict[str, Any]:
    ended = run("erase", folder, *what, "--json")
    assert (ended.code, ended.err) == (0, ""), ended
    found: dict[str, Any] = json.loads(ended.out)
    return found


def files_with(folder: Path, *texts: str) -> list[tuple[str, str]]:
    """Return the files of a folder that contain a text, as bytes or as JSON, compressed or not."""
    found = []
    for name, content in folder_contents(folder).items():
        unpacked = [content]
        if name.endswith(".gz"):
            unpacked.append(gzip.decompress(content))
        if name.endswith(".zip"):
            with zipfile.ZipFile(folder / name) as archive:
                unpacked += [archive.read(member) for member in archive.namelist()]
        forms = {form: text for text in texts for form in (text.encode(), json.dumps(text)[1:-1].encode())}
        found += [(name, text) for form, text in forms.items() if any(form in one for one in unpacked)]
    return sorted(set(found))


def rewards(run: Command, folder: Path) -> list[Any]:
    return [(trace["response_id"], trace["reward"]) for trace in traces(run, folder)]


class TestOneResponse:
    def test_erase_prints_the_number_of_erased_texts(self, letters_folder: Path, run: Command):
        ended = run("erase", letters_folder, *RESPONSE)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out == "erased 7 texts, and 7 others that contained it\n"

    def test_json_has_the_same_counts(self, letters_folder: Path, run: Command):
        expected = {"erased": 7, "erased_in_others": 7, "exports": [], "tasks": [], "files": []}
        expected |= {"replies": 0, "calls": 0, "unreached": []}
        assert erase(run, letters_folder, *RESPONSE) == {"run": str(letters_folder), **expected}

    def test_no_file_contains_an_erased_text(self, letters_folder: Path, run: Command):
        assert files_with(letters_folder, *OF_THE_RESPONSE) == [
            ("run.sqlite", text) for text in sorted(OF_THE_RESPONSE)
        ]
        erase(run, letters_folder, *RESPONSE)
        assert files_with(letters_folder, *OF_THE_RESPONSE) == []

    def test_other_texts_stay(self, letters_folder: Path, run: Command):
        erase(run, letters_folder, *RESPONSE)
        assert files_with(letters_folder, QUERY, "please, it is cold in here", NOT_ERASED)

    def test_rewards_scores_and_ids_stay(self, letters_folder: Path, run: Command):
        before = traces(run, letters_folder)
        erase(run, letters_folder, *RESPONSE)
        after = traces(run, letters_folder)
        assert [trace["reward"] for trace in after] == [trace["reward"] for trace in before]
        for one, other in zip(before, after, strict=True):
            kept = ("question", "about", "responses", "score", "met", "status", "version")
            assert [[v[k] for k in kept] for v in one["verdicts"]] == [[v[k] for k in kept] for v in other["verdicts"]]

    def test_an_erased_text_is_shown_as_erased(self, letters_folder: Path, run: Command):
        erase(run, letters_folder, *RESPONSE)
        trace = json.loads(run("show", letters_folder, "--response", "letter/a", "--json").out)
        assert {verdict["reason"] for verdict in trace["verdicts"]} == {"erased"}
        assert (trace["labels"], trace["group"]) == ({}, "erased")

    def test_a_quotation_in_a_verdict_on_a_pair_is_erased(self, letters_folder: Path, run: Command):
        erase(run, letters_folder, *RESPONSE)
        trace = json.loads(run("show", letters_folder, "--response", "letter/b", "--json").out)
        reasons = {v["responses"][-1]: v["reason"] for v in trace["verdicts"] if len(v["responses"]) == 2}
        assert set(reasons.values()) == {"erased"}

    def test_another_response_with_the_same_text_loses_it(self, letters_folder: Path, run: Command):
        erase(run, letters_folder, *RESPONSE)
        assert "said" not in run("explain", letters_folder, "--response", "letter/c").out
        assert json.loads(run("verify", letters_folder, "--json").out)["erased"] == 14

    def test_a_short_text_is_not_searched_elsewhere(self, tmp_path: Path, run: Command):
        responses = [{"id": name, "text": "forty-two"} for name in "ab"]
        project = write_project(tmp_path / "p", [{"id": "t", "query": "?", "responses": responses}])
        run("score", project / "tasks.jsonl", "--out", project / "run")
        found = erase(run, project / "run", "--response", "a")
        assert found["erased_in_others"] == 0
        assert files_with(project / "run", "forty-two") == [("run.sqlite", "forty-two")]

    def test_an_empty_response_can_be_erased(self, letters_folder: Path, run: Command):
        erase(run, letters_folder, "--response", "note/b")
        assert run("verify", letters_folder).code == 0

    def test_the_remaining_run_can_be_rescored_under_other_settings(self, letters_folder: Path, run: Command):
        erase(run, letters_folder, *RESPONSE)
        assert run("rescore", letters_folder, "--out", "again", "--set", "scale=2").code == 0
        assert run("verify", "again").code == 0

    def test_a_task_that_contains_the_text_is_named(self, tmp_path: Path, run: Command):
        tasks = [{"id": "the task", "query": f"Answer this: {SECRET}", "responses": [{"id": "a", "text": SECRET}]}]
        project = write_project(tmp_path / "p", tasks)
        run("score", project / "tasks.jsonl", "--out", project / "run")
        ended = run("erase", project / "run", "--response", "a")
        assert ended.code == 1
        assert "task 'the task'" in ended.err
        assert files_with(project / "run", SECRET)
        assert run("erase", project / "run", "--task", "the task").code == 0
        assert files_with(project / "run", SECRET) == []

    def test_a_reason_about_the_erased_opponent_is_erased(self, tmp_path: Path, run: Command):
        source = """\
import jurygraph as jg


class Read(jg.Deriver):
    gives = "reading"

    def derive(self, ask):
        if "Quill" in ask.response.text:
            raise ValueError("cannot read " + ask.response.text[:14])
        return jg.Material(name="reading", response=ask.response.id, data="read")


@jg.evaluator(scope="pair", pairs="unordered", needs=["reading"])
def paired(task, first, second, reading):
    return 0.5
"""
        tasks = [{**LETTERS[0], "responses": LETTERS[0]["responses"][:2]}]
        config = "evaluators: [manners.paired]\nderivers: [manners.Read]\n"
        project = write_project(tmp_path / "p", tasks, config, source)
        run("score", project / "tasks.jsonl", "--out", project / "run")
        assert files_with(project / "run", "Dear Mr Quill")
        erase(run, project / "run", *RESPONSE)
        assert files_with(project / "run", "Dear Mr Quill") == []


class TestAWholeTask:
    def test_erase_prints_the_number_of_erased_texts(self, letters_folder: Path, run: Command):
        ended = run("erase", letters_folder, *TASK)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out == "erased 13 texts, and 4 others that contained it\n"

    def test_no_text_of_an_erased_task_is_left(self, letters_folder: Path, run: Command):
        erase(run, letters_folder, *TASK)
        assert files_with(letters_folder, *OF_THE_TASK) == []
        erase(run, letters_folder, "--response", "note/a")
        assert files_with(letters_folder, *OF_THE_TASK) == []

    def test_an_erased_task_cannot_be_rescored_and_is_named(self, letters_folder: Path, run: Command):
        erase(run, letters_folder, *TASK)
        ended = run("rescore", letters_folder, "--out", "again", "--set", "scale=2")
        assert (ended.code, ended.out) == (2, "")
        assert "the texts of task 'letter' were erased, so its weights cannot be computed again" in ended.err
        assert not Path("again").exists()

    def test_a_planned_task_can_be_erased_before_it_is_scored(self, tmp_path: Path, run: Command):
        project = write_project(tmp_path / "p", LETTERS, LETTERS_CONFIG, CALL_LOGGING_EVALUATORS)
        tasks = project / "tasks.jsonl"
        run("score", tasks, "--out", project / "run")
        for statement in ("DELETE FROM texts WHERE id >= 6 << 20", "DELETE FROM records WHERE seq > 5"):
            with closing(sqlite3.connect(project / "run" / "run.sqlite")) as ledger, ledger:
                ledger.execute(statement)
        erase(run, project / "run", *TASK)
        assert files_with(project / "run", *OF_THE_TASK) == []
        ended = run("score", tasks, "--out", project / "run")
        assert (ended.code, ended.out) == (2, "")
        assert "the texts of task 'letter' were erased, its plan with them" in ended.err
        assert run("verify", project / "run").code == 0


class TestEitherWay:
    @pytest.fixture(params=[RESPONSE, TASK], ids=["a response", "a task"])
    def what(self, request: pytest.FixtureRequest) -> tuple[str, str]:
        arguments: tuple[str, str] = request.param
        return arguments

    def test_the_run_verifies_and_counts_the_erased_texts(
        self, letters_folder: Path, run: Command, what: tuple[str, str]
    ):
        gone = erase(run, letters_folder, *what)
        found = json.loads(run("verify", letters_folder, "--deep", "--json").out)
        assert found["erased"] == gone["erased"] + gone["erased_in_others"]
        deep = found["deep"]
        assert (deep["recomputed"], deep["erased"]) in [(0, 9), (3, 6)]

    def test_erasing_twice_erases_nothing_more(self, letters_folder: Path, run: Command, what: tuple[str, str]):
        erase(run, letters_folder, *what)
        assert erase(run, letters_folder, *what)["erased"] == 0
        assert run("verify", letters_folder).code == 0

    def test_every_command_works_after_an_erasure_without_showing_erased_text(
        self, letters_folder: Path, run: Command, what: tuple[str, str], tmp_path: Path
    ):
        erase(run, letters_folder, *what)
        again, third = tmp_path / "again", tmp_path / "third"
        commands: list[tuple[object, ...]] = [
            *(
                (command, letters_folder, *form)
                for command in ("show", "verify", "close")
                for form in ((), ("--json",))
            ),
            *(
                (command, letters_folder, "--response", f"{task['id']}/{name}", *form)
                for command in ("show", "explain")
                for task, names in zip(LETTERS, ("abc", "ab"), strict=True)
                for name in names
                for form in ((), ("--json",))
            ),
            ("export", letters_folder, "--to", "jsonl"),
            ("export", letters_folder, "--to", "csv"),
            ("export", letters_folder, "--to", "parquet", "-o", tmp_path / "x.parquet"),
            ("rescore", letters_folder, "--out", again),
            ("show", again, "--json"),
            ("explain", again, "--response", "letter/a"),
            ("export", again, "--to", "jsonl"),
            ("verify", again),
            ("verify", again, "--deep"),
            ("compare", letters_folder, again, "--json"),
            ("compare", letters_folder, again),
            ("rescore", again, "--out", third),
            ("score", "tasks.jsonl", "--out", letters_folder),
            ("score", "tasks.jsonl", "--out", tmp_path / "branched", "--branch", letters_folder),
        ]
        gone = OF_THE_RESPONSE if what == RESPONSE else OF_THE_TASK[:1] + OF_THE_TASK[2:]
        for command in commands:
            ended = run(*command)
            assert ended.code == 0, (command, ended.err)
            assert not [text for text in gone if text in ended.out + ended.err], command
        assert not [text for folder in (letters_folder, again, third) for _, text in files_with(folder, *gone, SECRET)]

    def test_rescoring_after_an_erasure_gives_the_same_rewards(
        self, letters_folder: Path, run: Command, what: tuple[str, str]
    ):
        before = rewards(run, letters_folder)
        erase(run, letters_folder, *what)
        assert json.loads(run("rescore", letters_folder, "--out", "again", "--json").out)["changed"] == 0
        assert rewards(run, Path("again")) == before

    def test_an_erasure_keeps_an_earlier_rescored_run_valid(
        self, letters_folder: Path, run: Command, what: tuple[str, str]
    ):
        run("rescore", letters_folder, "--out", "again", "--set", "scale=3")
        before = rewards(run, Path("again"))
        erase(run, letters_folder, *what)
        assert rewards(run, Path("again")) == before
        assert run("verify", "again").code == 0

    def test_a_run_can_continue_after_an_erasure(self, letters_folder: Path, run: Command, what: tuple[str, str]):
        run("score", "tasks.jsonl", "--out", "part", "--limit", 1)
        erase(run, Path("part"), *what)
        assert run("score", "tasks.jsonl", "--out", "part").code == 0
        assert rewards(run, Path("part")) == rewards(run, letters_folder)
        assert run("verify", "part").code == 0

    def test_the_record_has_what_was_erased_and_the_reason(
        self, letters_folder: Path, run: Command, what: tuple[str, str]
    ):
        erase(run, letters_folder, *what, "--reason", "asked for by its author")
        with closing(sqlite3.connect(letters_folder / "run.sqlite")) as ledger:
            key, body = ledger.execute("SELECT key, body FROM records WHERE kind = 'erasure'").fetchone()
        assert key == what[1]
        assert json.loads(body)["what"] == what[0].removeprefix("--")
        assert json.loads(body)["reason"] == "asked for by its author"

    def test_a_forged_or_reverted_erasure_is_detected(self, letters_folder: Path, run: Command, what: tuple[str, str]):
        erase(run, letters_folder, *what)
        with closing(sqlite3.connect(letters_folder / "run.sqlite")) as ledger, ledger:
            ledger.execute("DELETE FROM records WHERE kind = 'erasure'")
        ended = run("verify", letters_folder)
        assert (ended.code, ended.out) == (5, "")
        assert "is missing without an erasure" in ended.err


class TestExports:
    @pytest.fixture
    def run_with_exports(self, letters_folder: Path, run: Command) -> Path:
        """The folder of a run with exports in it."""
        (letters_folder / "more").mkdir()
        for name in ("x.jsonl", "more/x.jsonl", "x.csv"):
            form = name.rpartition(".")[2]
            assert run("export", letters_folder, "--to", form, "-o", letters_folder / name).code == 0
        (letters_folder / "x.jsonl.gz").write_bytes(gzip.compress((letters_folder / "x.jsonl").read_bytes()))
        assert run("export", letters_folder, "--to", "parquet", "-o", letters_folder / "x.parquet").code == 0
        return letters_folder

    def test_exports_with_the_text_are_removed_and_named(self, run_with_exports: Path, run: Command):
        ended = run("erase", run_with_exports, *RESPONSE)
        assert ended.out.splitlines()[1:] == [
            f"removed {run_with_exports / name}" for name in ("more/x.jsonl", "x.csv", "x.jsonl", "x.jsonl.gz")
        ]
        assert {name for name, _ in files_with(run_with_exports, *OF_THE_RESPONSE)} == {"x.parquet"}
        assert f"it may still be in {run_with_exports / 'x.parquet'}" in ended.err

    def test_json_names_the_removed_exports(self, run_with_exports: Path, run: Command):
        names = ["more/x.jsonl", "x.csv", "x.jsonl", "x.jsonl.gz"]
        (run_with_exports / "x.parquet").unlink()
        assert erase(run, run_with_exports, *RESPONSE)["exports"] == [str(run_with_exports / name) for name in names]

    def test_files_that_cannot_be_searched_are_named_with_exit_code_1(self, run_with_exports: Path, run: Command):
        ended = run("erase", run_with_exports, *RESPONSE)
        why = "is not UTF-8 text, so it cannot be searched"
        assert (ended.code, ended.err) == (1, f"it may still be in {run_with_exports / 'x.parquet'}: {why}\n")

    def test_another_run_in_the_folder_is_named_and_kept(self, letters_folder: Path, run: Command):
        inner = letters_folder / "next"
        assert run("score", "tasks.jsonl", "--out", inner, "--branch", letters_folder).code == 0
        ended = run("erase", letters_folder, *RESPONSE)
        assert str(inner) in ended.out + ended.err
        assert run("verify", inner).code == 0

    def test_a_file_that_is_not_an_export_is_named_and_kept(self, letters_folder: Path, run: Command):
        tasks = letters_folder / "tasks.jsonl"
        tasks.write_bytes((letters_folder.parent / "tasks.jsonl").read_bytes())
        ended = run("erase", letters_folder, *RESPONSE)
        assert tasks.exists()
        assert str(tasks) in ended.out + ended.err

    def test_an_export_that_could_not_be_removed_is_removed_the_next_time(
        self, run_with_exports: Path, run: Command, monkeypatch: pytest.MonkeyPatch
    ):
        def fail_to_remove(path: Path, missing_ok: bool = False) -> None:
            raise OSError(5, "Input/output error", str(path))

        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", fail_to_remove)
            assert run("erase", run_with_exports, *RESPONSE).code != 0
        run("erase", run_with_exports, *RESPONSE)
        assert {name for name, _ in files_with(run_with_exports, *OF_THE_RESPONSE)} == {"x.parquet"}

    def test_a_malformed_file_is_named_without_a_crash(self, letters_folder: Path, run: Command):
        (letters_folder / "broken.gz").write_bytes(b"\x1f\x8bbroken")
        (letters_folder / "broken.zip").write_bytes(b"PK\x05\x06" + bytes(18))
        (letters_folder / "link").symlink_to("nowhere")
        ended = run("erase", letters_folder, *RESPONSE)
        assert (ended.code, ended.err.count("\n")) == (1, 2)
        assert SECRET.encode() not in (letters_folder / "run.sqlite").read_bytes()


@pytest.mark.parametrize("name", [".", "./", "../run", "../link"])
def test_the_files_of_the_run_stay_under_any_path(
    letters_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch, name: str
):
    Path("link").symlink_to("run")
    monkeypatch.chdir(letters_folder)
    assert erase(run, Path(name), *RESPONSE)["exports"] == []
    assert run("verify", name).code == 0


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((), "expected one of --response ID and --task ID"),
            ((*RESPONSE, *TASK), "expected one of --response ID and --task ID"),
            (("--response", "letter/aa"), "there is no response 'letter/aa'; did you mean letter/a?"),
            (("--task", "lettre"), "there is no task 'lettre'; did you mean letter?"),
            (("--task", "letter/a"), "there is no task 'letter/a'; did you mean letter?"),
            (("--response", "letter"), "there is no response 'letter'; did you mean letter/"),
            (("--response", ""), "there is no response ''; name the id of a response of this run"),
            (("--task", "%"), "there is no task '%'; name the id of a task of this run"),
        ],
    )
    def test_an_unknown_id_is_refused_with_the_nearest(
        self, letters_folder: Path, run: Command, arguments: tuple[str, ...], message: str
    ):
        before = folder_contents(letters_folder)
        ended = run("erase", letters_folder, *arguments)
        assert (ended.code, ended.out) == (2, "")
        assert message in ended.err
        assert folder_contents(letters_folder) == before

    def test_a_rescored_run_has_no_texts_and_names_the_run_that_has(self, letters_folder: Path, run: Command):
        run("rescore", letters_folder, "--out", "again")
        before = folder_contents(Path("again"))
        ended = run("erase", "again", *RESPONSE)
        assert (ended.code, ended.out) == (2, "")
        assert "again: contains no texts; erase " in ended.err
        assert folder_contents(Path("again")) == before

    def test_a_changed_run_is_not_changed_further(self, letters_folder: Path, run: Command):
        with closing(sqlite3.connect(letters_folder / "run.sqlite")) as ledger, ledger:
            ledger.execute("UPDATE records SET at = at + 1 WHERE key = 'letter/a'")
        assert run("erase", letters_folder, *RESPONSE).code in (0, 5)
        assert run("verify", letters_folder).code == 5

    def test_an_erasure_is_refused_while_a_reader_keeps_the_run_open(
        self, letters_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch
    ):
        disable_lock_timeout(monkeypatch)
        before = folder_contents(letters_folder)
        with closing(sqlite3.connect(letters_folder / "run.sqlite", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM records").fetchone()
            ended = run("erase", letters_folder, *RESPONSE)
        assert (ended.code, ended.out) == (2, "")
        assert "another program reads the run just now" in ended.err
        assert folder_contents(letters_folder) == before

    def test_an_erasure_never_succeeds_while_a_reader_of_a_killed_run_keeps_the_text(
        self, letters_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch
    ):
        disable_lock_timeout(monkeypatch)
        with closing(sqlite3.connect(letters_folder / "run.sqlite", isolation_level=None)) as reader:
            reader.execute("PRAGMA journal_mode = WAL")
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM records").fetchone()
            ended = run("erase", letters_folder, *RESPONSE)
            left = files_with(letters_folder, *OF_THE_RESPONSE)
        assert ended.code != 0 or left == []


def disable_lock_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let SQLite give up on a lock at once."""
    monkeypatch.setattr("jurygraph.runs.store.ledger.BUSY_TIMEOUT", 0.0)
