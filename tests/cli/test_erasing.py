"""`jurygraph erase`: what was written is gone for good, and the run still proves itself."""

import gzip
import json
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import (
    LETTERS,
    LETTERS_CONFIG,
    SECRET,
    WATCHED,
    Command,
    called,
    contents,
    traces,
    write_project,
)

PHONE, NAME = "0171 555 0100", "by Mrs Hollis"
OF_THE_RESPONSE = (SECRET, PHONE, NAME)
QUERY = "Write to the landlord of 12 Larch Lane."
OF_THE_TASK = (QUERY, *OF_THE_RESPONSE, "it is cold in here")
NOT_ERASED = "Write a note to the neighbours."

RESPONSE, TASK = ("--response", "letter/a"), ("--task", "letter")


def erased(run: Command, folder: Path, *what: str) -> dict[str, Any]:
    ended = run("erase", folder, *what, "--json")
    assert (ended.code, ended.err) == (0, ""), ended
    found: dict[str, Any] = json.loads(ended.out)
    return found


def files_with(folder: Path, *texts: str) -> list[tuple[str, str]]:
    """The files of a folder in which a text lies, as bytes or as JSON, packed or not."""
    found = []
    for name, content in contents(folder).items():
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
    def test_it_says_how_many_texts_are_gone(self, letters: Path, run: Command):
        ended = run("erase", letters, *RESPONSE)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out == "erased 7 texts, and 7 others that contained it\n"

    def test_json_gives_the_same(self, letters: Path, run: Command):
        told = {"erased": 7, "erased_in_others": 7, "exports": [], "tasks": [], "files": []}
        told |= {"replies": 0, "calls": 0, "unreached": []}
        assert erased(run, letters, *RESPONSE) == {"run": str(letters), **told}

    def test_nothing_of_it_is_left_in_any_file(self, letters: Path, run: Command):
        assert files_with(letters, *OF_THE_RESPONSE) == [("run.sqlite", text) for text in sorted(OF_THE_RESPONSE)]
        erased(run, letters, *RESPONSE)
        assert files_with(letters, *OF_THE_RESPONSE) == []

    def test_what_others_wrote_stays(self, letters: Path, run: Command):
        erased(run, letters, *RESPONSE)
        assert files_with(letters, QUERY, "please, it is cold in here", NOT_ERASED)

    def test_rewards_scores_and_ids_stay(self, letters: Path, run: Command):
        before = traces(run, letters)
        erased(run, letters, *RESPONSE)
        after = traces(run, letters)
        assert [trace["reward"] for trace in after] == [trace["reward"] for trace in before]
        for one, other in zip(before, after, strict=True):
            kept = ("question", "about", "responses", "score", "met", "status", "version")
            assert [[v[k] for k in kept] for v in one["verdicts"]] == [[v[k] for k in kept] for v in other["verdicts"]]

    def test_what_is_gone_says_so(self, letters: Path, run: Command):
        erased(run, letters, *RESPONSE)
        trace = json.loads(run("show", letters, "--response", "letter/a", "--json").out)
        assert {verdict["reason"] for verdict in trace["verdicts"]} == {"erased"}
        assert (trace["labels"], trace["group"]) == ({}, "erased")

    def test_a_quotation_in_a_verdict_on_a_pair_goes_too(self, letters: Path, run: Command):
        erased(run, letters, *RESPONSE)
        trace = json.loads(run("show", letters, "--response", "letter/b", "--json").out)
        reasons = {v["responses"][-1]: v["reason"] for v in trace["verdicts"] if len(v["responses"]) == 2}
        assert set(reasons.values()) == {"erased"}

    def test_another_response_of_the_same_words_loses_them_too(self, letters: Path, run: Command):
        erased(run, letters, *RESPONSE)
        assert "said" not in run("explain", letters, "--response", "letter/c").out
        assert json.loads(run("verify", letters, "--json").out)["erased"] == 14

    def test_a_short_text_is_sought_nowhere_else(self, tmp_path: Path, run: Command):
        responses = [{"id": name, "text": "forty-two"} for name in "ab"]
        project = write_project(tmp_path / "p", [{"id": "t", "query": "?", "responses": responses}])
        run("score", project / "tasks.jsonl", "--out", project / "run")
        found = erased(run, project / "run", "--response", "a")
        assert found["erased_in_others"] == 0
        assert files_with(project / "run", "forty-two") == [("run.sqlite", "forty-two")]

    def test_an_empty_response_can_be_erased(self, letters: Path, run: Command):
        erased(run, letters, "--response", "note/b")
        assert run("verify", letters).code == 0

    def test_what_is_left_can_be_re_scored_under_other_settings(self, letters: Path, run: Command):
        erased(run, letters, *RESPONSE)
        assert run("rescore", letters, "--out", "again", "--set", "scale=2").code == 0
        assert run("verify", "again").code == 0

    def test_where_its_task_holds_it_too_that_is_said(self, tmp_path: Path, run: Command):
        tasks = [{"id": "the task", "query": f"Answer this: {SECRET}", "responses": [{"id": "a", "text": SECRET}]}]
        project = write_project(tmp_path / "p", tasks)
        run("score", project / "tasks.jsonl", "--out", project / "run")
        ended = run("erase", project / "run", "--response", "a")
        assert ended.code == 1
        assert "task 'the task'" in ended.err
        assert files_with(project / "run", SECRET)
        assert run("erase", project / "run", "--task", "the task").code == 0
        assert files_with(project / "run", SECRET) == []

    def test_what_was_said_of_the_missing_other_goes_too(self, tmp_path: Path, run: Command):
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
        erased(run, project / "run", *RESPONSE)
        assert files_with(project / "run", "Dear Mr Quill") == []


class TestAWholeTask:
    def test_it_says_how_many_texts_are_gone(self, letters: Path, run: Command):
        ended = run("erase", letters, *TASK)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out == "erased 13 texts, and 4 others that contained it\n"

    def test_nothing_of_it_is_left_but_where_others_wrote_it(self, letters: Path, run: Command):
        erased(run, letters, *TASK)
        assert files_with(letters, *OF_THE_TASK) == []
        erased(run, letters, "--response", "note/a")
        assert files_with(letters, *OF_THE_TASK) == []

    def test_it_cannot_be_weighed_anew_and_is_named(self, letters: Path, run: Command):
        erased(run, letters, *TASK)
        ended = run("rescore", letters, "--out", "again", "--set", "scale=2")
        assert (ended.code, ended.out) == (2, "")
        assert "the texts of task 'letter' were erased, so its weights cannot be computed again" in ended.err
        assert not Path("again").exists()

    def test_a_task_that_is_planned_and_not_scored_yet_can_be_erased(self, tmp_path: Path, run: Command):
        project = write_project(tmp_path / "p", LETTERS, LETTERS_CONFIG, WATCHED)
        tasks = project / "tasks.jsonl"
        run("score", tasks, "--out", project / "run")
        for statement in ("DELETE FROM texts WHERE id >= 6 << 20", "DELETE FROM records WHERE seq > 5"):
            with closing(sqlite3.connect(project / "run" / "run.sqlite")) as ledger, ledger:
                ledger.execute(statement)
        erased(run, project / "run", *TASK)
        assert files_with(project / "run", *OF_THE_TASK) == []
        ended = run("score", tasks, "--out", project / "run")
        assert (ended.code, ended.out) == (2, "")
        assert "the texts of task 'letter' were erased, its plan with them" in ended.err
        assert run("verify", project / "run").code == 0


class TestEitherWay:
    @pytest.fixture(params=[RESPONSE, TASK], ids=["a response", "a task"])
    def what(self, request: pytest.FixtureRequest) -> tuple[str, str]:
        asked: tuple[str, str] = request.param
        return asked

    def test_the_run_verifies_and_says_how_much_is_gone(self, letters: Path, run: Command, what: tuple[str, str]):
        gone = erased(run, letters, *what)
        found = json.loads(run("verify", letters, "--deep", "--json").out)
        assert found["erased"] == gone["erased"] + gone["erased_in_others"]
        deep = found["deep"]
        assert (deep["recomputed"], deep["erased"]) in [(0, 9), (3, 6)]

    def test_a_second_time_there_is_nothing_left_to_erase(self, letters: Path, run: Command, what: tuple[str, str]):
        erased(run, letters, *what)
        assert erased(run, letters, *what)["erased"] == 0
        assert run("verify", letters).code == 0

    def test_no_command_breaks_on_what_is_left_nor_shows_what_is_gone(
        self, letters: Path, run: Command, what: tuple[str, str], tmp_path: Path
    ):
        erased(run, letters, *what)
        again, third = tmp_path / "again", tmp_path / "third"
        commands: list[tuple[object, ...]] = [
            *((command, letters, *form) for command in ("show", "verify", "close") for form in ((), ("--json",))),
            *(
                (command, letters, "--response", f"{task['id']}/{name}", *form)
                for command in ("show", "explain")
                for task, names in zip(LETTERS, ("abc", "ab"), strict=True)
                for name in names
                for form in ((), ("--json",))
            ),
            ("export", letters, "--to", "jsonl"),
            ("export", letters, "--to", "csv"),
            ("export", letters, "--to", "parquet", "-o", tmp_path / "x.parquet"),
            ("rescore", letters, "--out", again),
            ("show", again, "--json"),
            ("explain", again, "--response", "letter/a"),
            ("export", again, "--to", "jsonl"),
            ("verify", again),
            ("verify", again, "--deep"),
            ("compare", letters, again, "--json"),
            ("compare", letters, again),
            ("rescore", again, "--out", third),
            ("score", "tasks.jsonl", "--out", letters),
            ("score", "tasks.jsonl", "--out", tmp_path / "branched", "--branch", letters),
        ]
        gone = OF_THE_RESPONSE if what == RESPONSE else OF_THE_TASK[:1] + OF_THE_TASK[2:]
        for command in commands:
            ended = run(*command)
            assert ended.code == 0, (command, ended.err)
            assert not [text for text in gone if text in ended.out + ended.err], command
        assert not [text for folder in (letters, again, third) for _, text in files_with(folder, *gone, SECRET)]

    def test_rewards_can_be_re_scored_as_they_were(self, letters: Path, run: Command, what: tuple[str, str]):
        before = rewards(run, letters)
        erased(run, letters, *what)
        assert json.loads(run("rescore", letters, "--out", "again", "--json").out)["changed"] == 0
        assert rewards(run, Path("again")) == before

    def test_a_run_that_was_re_scored_before_stays_right(self, letters: Path, run: Command, what: tuple[str, str]):
        run("rescore", letters, "--out", "again", "--set", "scale=3")
        before = rewards(run, Path("again"))
        erased(run, letters, *what)
        assert rewards(run, Path("again")) == before
        assert run("verify", "again").code == 0

    def test_a_run_that_goes_on_afterwards_is_right(self, letters: Path, run: Command, what: tuple[str, str]):
        run("score", "tasks.jsonl", "--out", "part", "--limit", 1)
        erased(run, Path("part"), *what)
        assert run("score", "tasks.jsonl", "--out", "part").code == 0
        assert rewards(run, Path("part")) == rewards(run, letters)
        assert run("verify", "part").code == 0

    def test_the_record_says_what_and_why(self, letters: Path, run: Command, what: tuple[str, str]):
        erased(run, letters, *what, "--reason", "asked for by its author")
        with closing(sqlite3.connect(letters / "run.sqlite")) as ledger:
            key, body = ledger.execute("SELECT key, body FROM records WHERE kind = 'erasure'").fetchone()
        assert key == what[1]
        assert json.loads(body)["what"] == what[0].removeprefix("--")
        assert json.loads(body)["reason"] == "asked for by its author"

    def test_an_erasure_that_was_made_up_or_taken_back_is_found(
        self, letters: Path, run: Command, what: tuple[str, str]
    ):
        erased(run, letters, *what)
        with closing(sqlite3.connect(letters / "run.sqlite")) as ledger, ledger:
            ledger.execute("DELETE FROM records WHERE kind = 'erasure'")
        ended = run("verify", letters)
        assert (ended.code, ended.out) == (5, "")
        assert "is missing without an erasure" in ended.err


class TestExports:
    @pytest.fixture
    def exported(self, letters: Path, run: Command) -> Path:
        """A run's folder with exports in it."""
        (letters / "more").mkdir()
        for name in ("x.jsonl", "more/x.jsonl", "x.csv"):
            form = name.rpartition(".")[2]
            assert run("export", letters, "--to", form, "-o", letters / name).code == 0
        (letters / "x.jsonl.gz").write_bytes(gzip.compress((letters / "x.jsonl").read_bytes()))
        assert run("export", letters, "--to", "parquet", "-o", letters / "x.parquet").code == 0
        return letters

    def test_those_that_hold_the_text_are_removed_and_named(self, exported: Path, run: Command):
        ended = run("erase", exported, *RESPONSE)
        assert ended.out.splitlines()[1:] == [
            f"removed {exported / name}" for name in ("more/x.jsonl", "x.jsonl", "x.jsonl.gz")
        ]
        assert files_with(exported, *OF_THE_RESPONSE) == []
        assert (exported / "x.csv").exists()
        assert (exported / "x.parquet").exists()

    def test_json_names_them_too(self, exported: Path, run: Command):
        names = ["more/x.jsonl", "x.jsonl", "x.jsonl.gz"]
        (exported / "x.parquet").unlink()
        assert erased(run, exported, *RESPONSE)["exports"] == [str(exported / name) for name in names]

    def test_what_cannot_be_searched_is_named_with_exit_1(self, exported: Path, run: Command):
        ended = run("erase", exported, *RESPONSE)
        why = "is not UTF-8 text, so it cannot be searched"
        assert (ended.code, ended.err) == (1, f"it may still be in {exported / 'x.parquet'}: {why}\n")

    def test_another_run_in_the_folder_is_named_and_not_destroyed(self, letters: Path, run: Command):
        inner = letters / "next"
        assert run("score", "tasks.jsonl", "--out", inner, "--branch", letters).code == 0
        ended = run("erase", letters, *RESPONSE)
        assert str(inner) in ended.out + ended.err
        assert run("verify", inner).code == 0

    def test_what_is_no_export_is_named_and_not_removed(self, letters: Path, run: Command):
        tasks = letters / "tasks.jsonl"
        tasks.write_bytes((letters.parent / "tasks.jsonl").read_bytes())
        ended = run("erase", letters, *RESPONSE)
        assert tasks.exists()
        assert str(tasks) in ended.out + ended.err

    def test_an_export_that_could_not_be_removed_is_found_the_next_time(
        self, exported: Path, run: Command, monkeypatch: pytest.MonkeyPatch
    ):
        def full(path: Path, missing_ok: bool = False) -> None:
            raise OSError(5, "Input/output error", str(path))

        with monkeypatch.context() as patched:
            patched.setattr(Path, "unlink", full)
            assert run("erase", exported, *RESPONSE).code != 0
        run("erase", exported, *RESPONSE)
        assert files_with(exported, *OF_THE_RESPONSE) == []

    def test_a_file_that_cannot_be_read_as_what_it_seems_is_no_crash_and_named(self, letters: Path, run: Command):
        (letters / "broken.gz").write_bytes(b"\x1f\x8bbroken")
        (letters / "broken.zip").write_bytes(b"PK\x05\x06" + bytes(18))
        (letters / "link").symlink_to("nowhere")
        ended = run("erase", letters, *RESPONSE)
        assert (ended.code, ended.err.count("\n")) == (1, 2)
        assert SECRET.encode() not in (letters / "run.sqlite").read_bytes()


@pytest.mark.parametrize("name", [".", "./", "../run", "../link"])
def test_the_run_s_own_files_stay_however_it_is_named(
    letters: Path, run: Command, monkeypatch: pytest.MonkeyPatch, name: str
):
    Path("link").symlink_to("run")
    monkeypatch.chdir(letters)
    assert erased(run, Path(name), *RESPONSE)["exports"] == []
    assert run("verify", name).code == 0


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "said"),
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
    def test_what_is_not_there_names_the_nearest(
        self, letters: Path, run: Command, arguments: tuple[str, ...], said: str
    ):
        before = contents(letters)
        ended = run("erase", letters, *arguments)
        assert (ended.code, ended.out) == (2, "")
        assert said in ended.err
        assert contents(letters) == before

    def test_a_rescored_run_has_no_texts_and_names_the_run_that_has(self, letters: Path, run: Command):
        run("rescore", letters, "--out", "again")
        before = contents(Path("again"))
        ended = run("erase", "again", *RESPONSE)
        assert (ended.code, ended.out) == (2, "")
        assert "again: contains no texts; erase " in ended.err
        assert contents(Path("again")) == before

    def test_a_changed_run_is_not_changed_further(self, letters: Path, run: Command):
        with closing(sqlite3.connect(letters / "run.sqlite")) as ledger, ledger:
            ledger.execute("UPDATE records SET at = at + 1 WHERE key = 'letter/a'")
        assert called("erase", letters, *RESPONSE).code in (0, 5)
        assert called("verify", letters).code == 5

    def test_one_who_reads_an_old_run_holds_it_up_and_nothing_is_erased(
        self, letters: Path, run: Command, monkeypatch: pytest.MonkeyPatch
    ):
        impatient(monkeypatch)
        before = contents(letters)
        with closing(sqlite3.connect(letters / "run.sqlite", isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM records").fetchone()
            ended = run("erase", letters, *RESPONSE)
        assert (ended.code, ended.out) == (2, "")
        assert "another program reads the run just now" in ended.err
        assert contents(letters) == before

    def test_one_who_reads_a_killed_run_does_not_make_it_say_that_a_text_is_gone_which_is_there(
        self, letters: Path, run: Command, monkeypatch: pytest.MonkeyPatch
    ):
        impatient(monkeypatch)
        with closing(sqlite3.connect(letters / "run.sqlite", isolation_level=None)) as reader:
            reader.execute("PRAGMA journal_mode = WAL")
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM records").fetchone()
            ended = run("erase", letters, *RESPONSE)
            left = files_with(letters, *OF_THE_RESPONSE)
        assert ended.code != 0 or left == []


def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for no lock."""
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **{**k, "timeout": 0.05}))
