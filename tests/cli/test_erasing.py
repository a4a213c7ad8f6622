"""`jurygraph erase`: texts are erased for good, and the run still verifies.

What is erased where is tested in `tests/runs/workflows/test_erasure.py` and `test_erasing_elsewhere.py`.
"""

import json
import zipfile
from pathlib import Path

import pytest

from jurygraph.runs.run import Run
from tests.cli.conftest import SECRET, Command, folder_contents
from tests.rows import all_rows

PHONE, NAME = "0171 555 0100", "by Mrs Hollis"
OF_THE_RESPONSE = (SECRET, PHONE, NAME)
QUERY = "Write to the landlord of 12 Larch Lane."
OF_THE_TASK = (QUERY, *OF_THE_RESPONSE, "it is cold in here")

RESPONSE, TASK = ("--response", "letter/a"), ("--task", "letter")


def files_with(folder: Path, *texts: str) -> list[tuple[str, str]]:
    """Return the files of a folder that contain a text, as bytes or as JSON, also within an archive."""
    found = []
    for name, content in folder_contents(folder).items():
        unpacked = [content]
        if name.endswith(".zip"):
            with zipfile.ZipFile(folder / name) as archive:
                unpacked += [archive.read(member) for member in archive.namelist()]
        forms = {
            form: text
            for text in texts
            for form in (text.encode(), json.dumps(text)[1:-1].encode())
        }
        found += [
            (name, text) for form, text in forms.items() if any(form in one for one in unpacked)
        ]
    return sorted(set(found))


OUTPUT = """\
erased 7 texts, and 7 others that contained it
erased text or words of verdicts of other responses: letter/b, letter/c, note/a
"""


def test_the_counts_are_printed_and_the_reason_is_recorded(letters_folder: Path, run: Command):
    ended = run("erase", letters_folder, *RESPONSE, "--reason", "asked for by its author")
    assert ended == (0, OUTPUT, "")
    with Run.open(letters_folder) as erased:
        (record,) = erased.ledger.records("erasure")
    assert (record.content["what"], record.content["reason"]) == (
        "response",
        "asked for by its author",
    )


def test_a_dry_run_says_what_would_be_erased_and_erases_nothing(letters_folder: Path, run: Command):
    before = folder_contents(letters_folder)
    out = OUTPUT.replace("erased ", "would erase ")
    dry = run("erase", letters_folder, *RESPONSE, "--dry-run")
    assert (dry.code, dry.out) == (0, out)
    assert dry.err == "dry run: nothing was erased; cache and recordings were not searched\n"
    labelled = run("erase", letters_folder, "--label", f"gold={NAME}", "--dry-run")
    assert labelled == (0, out, f"with the label: letter/a\n{dry.err}")
    assert folder_contents(letters_folder) == before


def test_json_has_the_same_counts(letters_folder: Path, run: Command):
    ended = run("erase", letters_folder, *RESPONSE, "--json")
    counts = {
        "erased": 7,
        "erased_in_others": 7,
        "responses": ["letter/b", "letter/c", "note/a"],
        "tasks": [],
        "replies": 0,
        "calls": 0,
        "unreached": [],
    }
    assert json.loads(ended.out) == {
        "run": str(letters_folder),
        "requested": ["letter/a"],
        **counts,
    }


def test_a_task_is_erased_with_its_responses(letters_folder: Path, run: Command):
    assert run("erase", letters_folder, *TASK) == (
        0,
        "erased 13 texts, and 4 others that contained it\n"
        "erased text or words of verdicts of other responses: note/a\n",
        "",
    )
    assert files_with(letters_folder, *OF_THE_TASK) == []


@pytest.mark.parametrize("what", [RESPONSE, TASK], ids=["a response", "a task"])
def test_every_command_works_after_an_erasure_without_showing_erased_text(
    letters_folder: Path, run: Command, what: tuple[str, str], tmp_path: Path
):
    assert run("erase", letters_folder, *what).code == 0
    written = tmp_path / "written"
    written.mkdir()
    again = written / "again"
    commands: list[tuple[object, ...]] = [
        ("show", letters_folder),
        ("show", letters_folder, "--json"),
        *(
            ("show", letters_folder, "--response", name)
            for name in ("letter/a", "letter/b", "note/a")
        ),
        *(
            ("explain", letters_folder, "--response", name)
            for name in ("letter/a", "letter/c", "note/a")
        ),
        ("explain", letters_folder, "--response", "letter/a", "--json"),
        ("verify", letters_folder, "--deep"),
        ("close", letters_folder),
        ("export", letters_folder, "--to", "csv", "--texts"),
        ("export", letters_folder, "--to", "verdicts", "--texts"),
        ("export", letters_folder, "--to", "parquet", "-o", written / "x.parquet"),
        ("export", letters_folder, "--to", "audit-bundle", "-o", written / "x.zip"),
        ("export", letters_folder, "--to", "xlsx", "-o", written / "x.xlsx"),
        ("report", letters_folder, "-o", written / "x.html"),
        ("report", letters_folder, "--response", "letter/a", "-o", written / "a.html"),
        ("rescore", letters_folder, "--out", again),
        ("show", again, "--json"),
        ("explain", again, "--response", "letter/a"),
        ("export", again, "--to", "jsonl"),
        ("verify", again, "--deep"),
        ("compare", letters_folder, again),
        ("rescore", again, "--out", written / "third"),
        ("score", "tasks.jsonl", "--out", letters_folder),
        ("score", "tasks.jsonl", "--out", tmp_path / "branched", "--branch", letters_folder),
    ]
    gone = OF_THE_RESPONSE if what == RESPONSE else OF_THE_TASK[:1] + OF_THE_TASK[2:]
    for command in commands:
        ended = run(*command)
        assert ended.code == 0, (command, ended.err)
        assert not [text for text in gone if text in ended.out + ended.err], command
    assert [
        text for folder in (letters_folder, written) for _, text in files_with(folder, *gone)
    ] == []


@all_rows(
    "arguments, message",
    [
        ((), "expected one of --response ID, --task ID and --label NAME=VALUE"),
        ((*RESPONSE, *TASK), "expected one of --response ID, --task ID and --label NAME=VALUE"),
        (("--label", "by=nobody"), "no response has the label by=nobody"),
        (("--response", "letter/aa"), "there is no response 'letter/aa'; did you mean letter/a?"),
        (("--task", "%"), "there is no task '%'; name the id of a task of this run"),
    ],
)
def test_an_unknown_id_is_refused_with_the_nearest(
    letters_folder: Path, run: Command, arguments: tuple[str, ...], message: str
):
    before = folder_contents(letters_folder)
    ended = run("erase", letters_folder, *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert folder_contents(letters_folder) == before
