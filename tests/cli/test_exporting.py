"""`jurygraph export`: each format goes where it is told, and a bundle verifies itself with Python alone.

What the formats contain is tested in `tests/runs/test_export.py`, `test_tables.py` and `integrity/test_bundle.py`;
what the verifier of a bundle finds in `tests/runs/integrity/test_offline_verifier.py`.
"""

import csv
import gzip
import io
import json
import os
import re
import shutil
import threading
import zipfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from jurygraph.sources.ratings import read_texts
from tests.cli.conftest import (
    SECRET,
    Command,
    change_ledger,
    folder_contents,
    write_project,
)
from tests.command import run_script
from tests.rows import all_rows

FORMS = [
    ("jsonl", "x.jsonl"),
    ("csv", "x.csv"),
    ("verdicts", "x.csv"),
    ("parquet", "x.parquet"),
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
    assert (tmp_path / name).read_bytes() == content, "the same run gives the same bytes"
    written.unlink()
    assert folder_contents(scored_folder) == before
    assert run("verify", scored_folder).code == 0


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
    assert {path.name: path.read_text() for path in changed.parent.iterdir() if path.is_file()} == {name: "old"}


def test_a_name_in_gz_gives_a_compressed_file(scored_once: Path, run: Command, tmp_path: Path):
    for form, name in (("jsonl", "x.jsonl.gz"), ("csv", "x.csv.gz"), ("verdicts", "x.csv.gz")):
        assert run("export", scored_once, "--to", form, "-o", tmp_path / name).code == 0
        content = gzip.decompress((tmp_path / name).read_bytes()).decode()
        assert content == run("export", scored_once, "--to", form).out


@all_rows(
    "options, message",
    [
        (["--to", "xml"], "audit-bundle"),
        (
            ["--to", "ratings", "-o", "votes.csv"],
            "votes.csv: --to ratings writes jsonl; name a file that ends in .jsonl",
        ),
        (["--to", "csv", "-o", "x.parquet"], "x.parquet: --to csv writes csv; name a file that ends in .csv"),
        (["--to", "parquet"], "--to parquet: needs an output file; name one with -o"),
        (["--to", "audit-bundle"], "--to audit-bundle: needs an output file; name one with -o"),
        *(
            (["--to", form, "--texts", "-o", "x"], f"--texts: --to {form} has no columns to add to; use csv, parquet")
            for form in ("jsonl", "audit-bundle")
        ),
        *((["--to", form, "-o", "pipe"], "pipe: is not a regular file") for form in ("parquet", "audit-bundle")),
        *(
            (["--to", form, "-o", "folder"], "folder: is a folder; name a file in it")
            for form in ("jsonl", "csv", "parquet")
        ),
        (["--to", "csv", "-o", "new/"], "new/: is a folder; name a file in it"),
        (["--to", "csv", "-o", ""], "error: the name of the output file is empty; name a file"),
        (["--to", "csv", "-o", "none/x.csv"], "none/x.csv: its folder does not exist"),
        (["--to", "csv", "-o", "file/x.csv"], "file/x.csv: its folder does not exist"),
        (["--to", "csv", "-o", "loop"], "loop: cannot be written"),
        (["--to", "jsonl", "--questions"], "--questions: --to jsonl has no rows of responses to add to"),
        (["--to", "verdicts", "--reasons"], "--reasons: --to verdicts has no rows of responses to add to"),
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


OWN_FILES = ["run.sqlite", "run.sqlite-wal", "run.sqlite-shm", "run.sqlite-journal", "config.yaml", "run.lock"]


def test_an_export_never_overwrites_a_file_of_the_run(scored_folder: Path, run: Command, tmp_path: Path):
    (tmp_path / "link").symlink_to(scored_folder / "run.sqlite")
    before = folder_contents(scored_folder)
    for output in (*(scored_folder / name for name in (*OWN_FILES, "seal.json")), tmp_path / "link"):
        for form in ("csv", "parquet"):
            ended = run("export", scored_folder, "--to", form, "-o", output)
            assert ended.code == 2
            assert "a file of the run;" in ended.err
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


ECHO = """\
import jurygraph as jg


def echo(task, response):
    evidence = (jg.Evidence(quote=response.text), jg.Evidence(quote="a second one"))
    return jg.Verdict(score=1.0, native=response.text, reason=response.text, evidence=evidence)
"""
FORMULA = '=HYPERLINK("http://x")\n- a list; +1'


def test_texts_are_added_on_request_and_no_cell_of_csv_is_a_formula(project: Path, run: Command, tmp_path: Path):
    response = {"id": f"{FORMULA}1", "agent": FORMULA, "text": FORMULA}
    about = {"labels": {FORMULA: FORMULA}, "metadata": {FORMULA: FORMULA, "nested": [FORMULA]}}
    task = {"id": FORMULA, "query": FORMULA, "metadata": {"source": FORMULA}, "responses": [{**response, **about}]}
    write_project(project, [task], "evaluators: [manners.echo]\n", ECHO)
    run("score", project / "tasks.jsonl", "--out", project / "run")
    columns = {"text": "response", "item": "response_id"}
    of_a_verdict = ["reason", "quote", "native"]
    texts = ["task_id", "agent", "prompt", "response", f"label.{FORMULA}", f"metadata.{FORMULA}", "metadata.source"]
    for form, names in (("csv", []), ("verdicts", of_a_verdict)):
        header = run("export", project / "run", "--to", form).out.partition("\n")[0].split(",")
        assert {"prompt", "response"}.isdisjoint(header)
        assert run("export", project / "run", "--to", form, "--texts", "-o", tmp_path / "x.csv").code == 0
        content = (tmp_path / "x.csv").read_text(encoding="utf-8")
        for separator in ",;\t":
            table = csv.reader(io.StringIO(content, newline=""), delimiter=separator)
            assert not [cell for row in table for cell in row if re.match(r"\s*[=+\-@](?!\d)", cell)]
        assert read_texts(tmp_path / "x.csv", columns) == {f"{FORMULA}1_{FORMULA}": FORMULA}, "our readers restore it"
        for name in names:
            found = read_texts(tmp_path / "x.csv", {**columns, "item": "question", "text": name})
            assert FORMULA in found.values()
        binary = "parquet" if form == "csv" else form
        assert run("export", project / "run", "--to", binary, "--texts", "-o", tmp_path / "x.parquet").code == 0
        (row,) = pq.read_table(tmp_path / "x.parquet").to_pylist()
        assert {name: row[name] for name in texts + names} == dict.fromkeys(texts + names, FORMULA)


class TestBundle:
    def unpack_bundle(self, run: Command, folder: Path | str, into: Path) -> Path:
        assert run("export", folder, "--to", "audit-bundle", "-o", into / "x.zip").code == 0
        with zipfile.ZipFile(into / "x.zip") as archive:
            archive.extractall(into / "unpacked")
        return into / "unpacked"

    def test_a_bundle_verifies_itself_from_any_folder(self, letters_folder: Path, run: Command, tmp_path: Path):
        elsewhere = tmp_path / "else where"
        elsewhere.mkdir()
        folder = self.unpack_bundle(run, letters_folder, tmp_path)
        assert (folder / "traces.jsonl").read_text() == run("show", letters_folder, "--json").out
        assert SECRET in (folder / "texts.jsonl").read_text()
        head = json.loads(run("verify", letters_folder, "--json").out)["head"]
        for arguments, cwd in (
            ((folder / "verify.py",), elsewhere),
            (("verify.py",), folder),
            ((folder / "verify.py", tmp_path / "x.zip"), elsewhere),
            ((folder / "verify.py", "--expect-head", head), elsewhere),
        ):
            ended = run_script(*arguments, cwd=cwd)
            assert (ended.code, ended.err) == (0, ""), ended
            assert head in ended.out
        assert list(elsewhere.iterdir()) == []
        changed = folder / "texts.jsonl"
        changed.write_bytes(changed.read_bytes().replace(b"Larch", b"Birch", 1))
        ended = run_script(folder / "verify.py", cwd=elsewhere)
        assert ended.code == 5
        assert "texts.jsonl" in ended.out + ended.err
