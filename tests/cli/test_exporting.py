"""`jurygraph export`: each format goes where -o says, completely or not at all.

What they contain is tested in `tests/runs/test_export.py`, `test_table_reader.py` and `integrity/test_bundle.py`.
"""

import csv
import gzip
import os
import shutil
import threading
import zipfile
from pathlib import Path

import pytest

from tests.cli.conftest import Command, change_ledger, folder_contents
from tests.rows import all_rows

FORMS = [
    ("jsonl", "x.jsonl"),
    ("csv", "x.csv"),
    ("verdicts", "x.csv"),
    ("parquet", "x.parquet"),
    ("xlsx", "x.xlsx"),
    ("verdicts", "x.parquet"),
    ("verdicts", "X.PARQUET"),
    ("audit-bundle", "x.zip"),
]


@all_rows("form, name", FORMS)
def test_an_export_replaces_a_file_completely_and_prints_its_name_only(
    scored_folder: Path, run: Command, tmp_path: Path, form: str, name: str
):
    before = folder_contents(scored_folder)
    written = scored_folder / name
    written.write_bytes(b"ancient" * 100_000)
    ended = run("export", scored_folder, "--to", form, "-o", written)
    assert (ended.code, ended.out, ended.err) == (0, "", f"wrote {written}\n")
    content = written.read_bytes()
    assert b"ancient" not in content
    assert run("export", scored_folder, "--to", form, "-o", tmp_path / name).code == 0
    if form != "xlsx":  # which has the time at which it was written
        assert (tmp_path / name).read_bytes() == content, "the same run gives the same bytes"
    written.unlink()
    assert folder_contents(scored_folder) == before
    assert run("verify", scored_folder).code == 0


ENDINGS = [
    ("X.CSV", "csv"),
    ("x.csv.gz", "csv"),
    ("x.jsonl", "jsonl"),
    ("x.parquet", "parquet"),
    ("x.xlsx", "xlsx"),
    ("x.zip", "audit-bundle"),
]


@all_rows("name, form", ENDINGS)
def test_the_ending_of_a_file_names_its_format(
    scored_once: Path, run: Command, tmp_path: Path, name: str, form: str
):
    (tmp_path / form).mkdir(exist_ok=True)
    assert run("export", scored_once, "-o", tmp_path / name).code == 0
    assert run("export", scored_once, "--to", form, "-o", tmp_path / form / name).code == 0
    assert read_content(tmp_path / name) == read_content(tmp_path / form / name)


def read_content(path: Path) -> bytes | dict[str, bytes]:
    """Return the bytes of a file; of a workbook those of its parts, but for the times of writing."""
    if path.suffix != ".xlsx":
        return path.read_bytes()
    with zipfile.ZipFile(path) as book:
        return {name: book.read(name) for name in book.namelist() if name != "docProps/core.xml"}


@all_rows("form, name", FORMS)
def test_a_failed_export_leaves_the_old_file_and_no_draft(
    scored_once: Path, run: Command, tmp_path: Path, form: str, name: str
):
    changed = tmp_path / f"{form} {name}" / "run"
    shutil.copytree(scored_once, changed)
    change_ledger(changed, "UPDATE records SET key = 'salt/c' WHERE key = 'salt/b'")
    (changed.parent / name).write_text("old")
    ended = run("export", changed, "--to", form, "-o", changed.parent / name)
    assert (ended.code, ended.out) == (5, "")
    assert {path.name: path.read_text() for path in changed.parent.iterdir() if path.is_file()} == {
        name: "old"
    }


def test_a_name_in_gz_gives_a_compressed_file(scored_once: Path, run: Command, tmp_path: Path):
    for form, name in (("jsonl", "x.jsonl.gz"), ("csv", "x.csv.gz"), ("verdicts", "x.csv.gz")):
        assert run("export", scored_once, "--to", form, "-o", tmp_path / name).code == 0
        content = gzip.decompress((tmp_path / name).read_bytes()).decode()
        assert content == run("export", scored_once, "--to", form).out


@all_rows(
    "options, message",
    [
        (["--to", "xml"], "audit-bundle"),
        ([], "--to: is missing; name one of jsonl, csv, parquet, xlsx, verdicts, ratings"),
        (["-o", "x.txt"], "x.txt: its ending names no format; end it in .jsonl, .csv, .parquet"),
        (["-o", "x"], "x: its ending names no format"),
        (
            ["--to", "ratings", "-o", "x.csv"],
            "x.csv: --to ratings writes jsonl; name a file that ends in .jsonl",
        ),
        (
            ["--to", "csv", "-o", "x.parquet"],
            "x.parquet: --to csv writes csv; name a file that ends in .csv",
        ),
        (
            ["--to", "csv", "-o", "x.json"],
            "x.json: --to csv writes csv; name a file that ends in .csv",
        ),
        (["--to", "jsonl", "-o", "x.json.gz"], "x.json.gz: --to jsonl writes jsonl"),
        (["--to", "parquet"], "--to parquet: needs an output file; name one with -o"),
        (["--to", "xlsx"], "--to xlsx: needs an output file; name one with -o"),
        (["--to", "xlsx", "-o", "x.csv"], "x.csv: --to xlsx writes xlsx"),
        (["--to", "audit-bundle"], "--to audit-bundle: needs an output file; name one with -o"),
        (
            ["--to", "jsonl", "--texts"],
            "--texts: is not for --to jsonl; use csv, parquet, xlsx, verdicts",
        ),
        (
            ["--to", "jsonl", "--questions"],
            "--questions: is not for --to jsonl; use csv, parquet, xlsx",
        ),
        (
            ["--to", "verdicts", "--reasons"],
            "--reasons: is not for --to verdicts; use csv, parquet, xlsx",
        ),
        (["--to", "parquet", "-o", "pipe"], "pipe: is not a regular file"),
        (["--to", "audit-bundle", "-o", "pipe"], "pipe: is not a regular file"),
        (["--to", "jsonl", "-o", "folder"], "folder: is a folder; name a file in it"),
        (["--to", "parquet", "-o", "folder"], "folder: is a folder; name a file in it"),
        (["--to", "csv", "-o", "new/"], "new/: is a folder; name a file in it"),
        (["--to", "csv", "-o", ""], "error: the name of the output file is empty; name a file"),
        (["--to", "csv", "-o", "none/x.csv"], "none/x.csv: its folder does not exist"),
        (["--to", "csv", "-o", "file/x.csv"], "file/x.csv: its folder does not exist"),
        (["--to", "csv", "-o", "loop"], "loop: cannot be written"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    scored_once: Path,
    run: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: list[str],
    message: str,
):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir(exist_ok=True)
    if not Path("pipe").exists():
        os.mkfifo("pipe")
        Path("file").touch()
        Path("loop").symlink_to("loop")
    before = sorted(tmp_path.rglob("*"))
    ended = run("export", scored_once, *options)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert "xml" in options or ended.err.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before
    assert Path("pipe").is_fifo()


def test_an_export_never_overwrites_a_file_of_the_run(
    scored_folder: Path, run: Command, tmp_path: Path
):
    (tmp_path / "link").symlink_to(scored_folder / "run.sqlite")
    before = folder_contents(scored_folder)
    own = [
        "run.sqlite",
        "run.sqlite-wal",
        "run.sqlite-shm",
        "run.sqlite-journal",
        "config.yaml",
        "run.lock",
        "seal.json",
    ]
    for output in (*(scored_folder / name for name in own), tmp_path / "link"):
        ended = run("export", scored_folder, "--to", "csv", "-o", output)
        refusal = (
            "--to csv writes csv" if output.suffix in (".json", ".yaml") else "a file of the run;"
        )
        assert (ended.code, refusal in ended.err) == (2, True)
    assert folder_contents(scored_folder) == before


def test_an_export_can_be_written_to_a_pipe(scored_once: Path, run: Command, tmp_path: Path):
    pipe = tmp_path / "pipe"
    read = []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    assert run("export", scored_once, "--to", "jsonl", "-o", pipe).code == 0
    reader.join(timeout=30)
    assert read == [run("show", scored_once, "--json").out.encode()]
    assert pipe.is_fifo()


@all_rows(
    "option, columns",
    [
        ("--texts", ["prompt", "text"]),
        ("--questions", ["question.manners.polite", "question.manners.shaky"]),
        ("--reasons", ["reason.manners.polite", "reason.manners.shaky"]),
    ],
)
def test_an_option_adds_columns_to_a_table(
    scored_once: Path, run: Command, option: str, columns: list[str]
):
    with_option, without = (
        run("export", scored_once, "--to", "csv", *more).out.splitlines()[0].split(",")
        for more in ([option], [])
    )
    assert [name for name in with_option if name not in without] == columns


def test_what_people_say_is_beside_the_scores(
    scored_once: Path, run: Command, tmp_path: Path
) -> None:
    """The mean of several people's labels, by question, in one row with the judge's."""
    polite = tmp_path / "polite.csv"
    polite.write_text("id,who,polite\ndoor/a,ann,1\ndoor/a,bo,0\nsalt/b,ann,1\n")
    stars = tmp_path / "stars.csv"
    stars.write_text("id,target\ndoor/a,4\n")
    columns = ["--labels", polite, "--labels", stars, "--target-column", "polite=polite"]
    written = tmp_path / "table.csv"
    ended = run("export", scored_once, *columns, "-o", written)
    assert (
        f"line 3 of {polite}, field id: 'door/a' has a label in line 2 of {polite} already"
        in ended.err
    )
    columns += ["--reviewer-column", "who"]
    stars.write_text("id,who,target\ndoor/a,ann,4\n")
    assert run("export", scored_once, *columns, "--questions", "-o", written).code == 0
    with written.open(newline="") as file:
        rows = {row["response"]: row for row in csv.DictReader(file)}
    assert rows["door/a"]["judge.polite"] == rows["door/a"]["question.manners.polite"]
    found = {name: (row["people.polite"], row["people.label"]) for name, row in rows.items()}
    assert found.pop("door/a") == ("0.5", "4.0")
    assert found.pop("salt/b") == ("1.0", "")
    assert set(found.values()) == {("", "")}
    assert "question.manners.polite" in rows["door/a"]
    polite.write_text("id,target\ndoor/a,kind\nsalt/b,rude\n")
    words = ["--labels", polite, "--classes", "rude,plain,kind", "-o", written]
    assert run("export", scored_once, *words).code == 0
    with written.open(newline="") as file:
        worth = {row["response"]: row["people.target"] for row in csv.DictReader(file)}
    assert (worth["door/a"], worth["salt/b"]) == ("2.0", "0.0")
    of_question = (*words, "--target-column", "polite=target")
    assert run("export", scored_once, *of_question).code == 0
    with written.open(newline="") as file:
        worth = {row["response"]: row["people.polite"] for row in csv.DictReader(file)}
    assert (worth["door/a"], worth["salt/b"]) == ("1.0", "0.0"), "on the scale of the judge"
    polite.write_text("id,who,target\ndoor/a,ann,kind\ndoor/a,ann,plain\n")
    words = ["--labels", polite, "--classes", "target=rude,plain,kind", "-o", written]
    assert "and --keep-last keeps the last" in run("export", scored_once, *words).err
    assert run("export", scored_once, *words, "--keep-last").code == 0
    assert ",1.0" in written.read_text().partition("door/a")[2].partition("\n")[0]
    refused = run("export", scored_once, *words, "--where", "people.target<1")
    assert "it selects by the run's own columns, and not by people's labels; " in refused.err
    refused = run("export", scored_once, "--to", "verdicts", *columns)
    assert "--labels: is not for --to verdicts; use csv, parquet, xlsx" in refused.err
    assert run("export", scored_once, *columns, "-o", polite).code == 2, "labels are not replaced"
