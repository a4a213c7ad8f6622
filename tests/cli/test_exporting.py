"""`jurygraph export` to CSV and Parquet, and to a bundle that verifies itself with Python alone."""

import csv
import gzip
import io
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from jurygraph.sources.ratings import read_texts, unescape_formulas
from tests.cli.conftest import (
    CALL_LOGGING_EVALUATORS,
    LETTERS,
    LETTERS_CONFIG,
    SECRET,
    Command,
    change_ledger,
    folder_contents,
    traces,
    write_project,
)
from tests.command import run_script

FORMS = [
    ("jsonl", "x.jsonl"),
    ("csv", "x.csv"),
    ("verdicts", "x.csv"),
    ("parquet", "x.parquet"),
    ("verdicts", "x.parquet"),
    ("audit-bundle", "x.zip"),
]


def format_as_csv(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


class TestParquet:
    @pytest.fixture
    def mixed_run(self, project: Path, run: Command) -> Path:
        """A run with failed rewards, missing components, no agents, and ids beyond ASCII."""
        responses = [{"id": "=1+1", "text": "please"}, {"id": "ü\n,", "agent": "@bob", "text": "crash"}]
        tasks = [
            {"id": f"-t{i}", "query": "?", "responses": [{**r, "id": f"{r['id']}{i}"} for r in responses]} for i in "ab"
        ]
        write_project(project, tasks)
        run("score", project / "tasks.jsonl", "--out", project / "run")
        return project / "run"

    def test_parquet_has_the_content_of_csv(self, mixed_run: Path, run: Command, tmp_path: Path):
        assert run("export", mixed_run, "--to", "parquet", "-o", tmp_path / "x.parquet").code == 0
        table = pq.read_table(tmp_path / "x.parquet")
        rows = list(csv.reader(io.StringIO(run("export", mixed_run, "--to", "csv").out)))
        assert table.column_names == rows[0]
        given = [[format_as_csv(value) for value in row.values()] for row in table.to_pylist()]
        spared = [[cell.removeprefix("'") if i < 3 else cell for i, cell in enumerate(row)] for row in rows[1:]]
        assert given == spared
        assert {row[4] for row in given} == {"ok", "failed"}

    def test_parquet_numbers_are_exact_and_missing_ones_are_null(self, mixed_run: Path, run: Command, tmp_path: Path):
        run("export", mixed_run, "--to", "parquet", "-o", tmp_path / "x.parquet")
        rows = pq.read_table(tmp_path / "x.parquet").to_pylist()
        rewards = [trace["reward"] for trace in traces(run, mixed_run)]
        assert [(row["value"], row["coverage"], row["judged"]) for row in rows] == [
            (reward["value"], reward["coverage"], reward["counts"]["judged"]) for reward in rewards
        ]
        assert [row["component.shaky"] for row in rows] == [reward["components"]["shaky"] for reward in rewards]
        assert {type(row["agent"]) for row in rows} == {type(None), str}

    def test_a_rescored_run_gives_its_own_rewards(self, scored_folder: Path, run: Command, tmp_path: Path):
        run("rescore", scored_folder, "--out", tmp_path / "again", "--set", "scale=2")
        run("export", tmp_path / "again", "--to", "parquet", "-o", tmp_path / "x.parquet")
        assert pq.read_table(tmp_path / "x.parquet")["value"].to_pylist() == [1.0, 0.0, -0.5, -1.0]

    def test_a_run_without_any_reward_gives_a_table_without_rows(
        self, scored_folder: Path, run: Command, tmp_path: Path
    ):
        change_ledger(scored_folder, "DELETE FROM texts WHERE id >= 6 << 20")
        change_ledger(scored_folder, "DELETE FROM records WHERE seq > 5")
        assert run("export", scored_folder, "--to", "parquet", "-o", tmp_path / "x.parquet").code == 0
        table = pq.read_table(tmp_path / "x.parquet")
        assert (table.num_rows, "component.polite" in table.column_names) == (0, True)


ECHO = """\
import jurygraph as jg


def echo(task, response):
    evidence = (jg.Evidence(quote=response.text), jg.Evidence(quote="a second one"))
    return jg.Verdict(score=1.0, native=response.text, reason=response.text, evidence=evidence)


def crash(task, response):
    raise RuntimeError(response.text)
"""
ECHO_CONFIG = "evaluators: [manners.echo, manners.crash]\nreward: {echo: 1, crash: 1}\n"
FORMULA = '=HYPERLINK("http://x")\n- a list; +1'


class TestTextsInTables:
    @pytest.fixture
    def hostile_run(self, project: Path, run: Command) -> Path:
        """A run in which every text begins with a formula, and has others in it."""
        response = {"id": f"{FORMULA}1", "agent": FORMULA, "text": FORMULA}
        about = {"labels": {FORMULA: FORMULA}, "metadata": {FORMULA: FORMULA, "nested": [FORMULA]}}
        task = {"id": FORMULA, "query": FORMULA, "metadata": {"source": FORMULA}, "responses": [{**response, **about}]}
        write_project(project, [task], ECHO_CONFIG, ECHO)
        run("score", project / "tasks.jsonl", "--out", project / "run")
        return project / "run"

    @pytest.mark.parametrize("form", ["csv", "verdicts"])
    def test_no_cell_of_csv_is_a_formula_and_our_readers_restore_it(
        self, hostile_run: Path, run: Command, tmp_path: Path, form: str
    ):
        assert run("export", hostile_run, "--to", form, "--texts", "-o", tmp_path / "x.csv").code == 0
        content = (tmp_path / "x.csv").read_text(encoding="utf-8")
        for separator in ",;\t":
            table = csv.reader(io.StringIO(content, newline=""), delimiter=separator)
            assert not [cell for row in table for cell in row if re.match(r"\s*[=+\-@](?!\d)", cell)]
        assert "\n-" not in content
        columns = {"text": "response", "item": "response_id"}
        assert read_texts(tmp_path / "x.csv", columns) == {f"{FORMULA}1_{FORMULA}": FORMULA}
        for name in {"verdicts": ["reason", "quote", "native"]}.get(form, []):
            assert FORMULA in read_texts(tmp_path / "x.csv", {**columns, "item": "question", "text": name}).values()

    @pytest.mark.parametrize("form", ["parquet", "verdicts"])
    def test_parquet_has_the_texts_unchanged(self, hostile_run: Path, run: Command, tmp_path: Path, form: str):
        run("export", hostile_run, "--to", form, "--texts", "-o", tmp_path / "x.parquet")
        row = pq.read_table(tmp_path / "x.parquet").to_pylist()[-1]
        texts = ["task_id", "agent", "prompt", "response", f"label.{FORMULA}", f"metadata.{FORMULA}", "metadata.source"]
        texts += ["reason", "quote", "native"] if form == "verdicts" else []
        assert {name: row[name] for name in texts} == dict.fromkeys(texts, FORMULA)
        assert row["metadata.nested"] == json.dumps([FORMULA])

    def test_verdicts_as_csv_and_as_parquet_are_equal(self, hostile_run: Path, run: Command, tmp_path: Path):
        run("export", hostile_run, "--to", "verdicts", "-o", tmp_path / "x.parquet")
        rows = list(csv.DictReader(io.StringIO(run("export", hostile_run, "--to", "verdicts").out, newline="")))
        found = pq.read_table(tmp_path / "x.parquet").to_pylist()
        assert [unescape_formulas(name) for name in rows[0]] == list(found[0])
        assert [[unescape_formulas(cell) for cell in row.values()] for row in rows] == [
            [format_as_csv(value) for value in row.values()] for row in found
        ]
        failed, judged = found
        assert (failed["question"], failed["status"], failed["failure"]) == ("manners.crash", "failed", "RuntimeError")
        assert (judged["question"], judged["score"], judged["quotes"]) == ("manners.echo", 1.0, 2)

    def test_texts_are_left_out_unless_requested(self, hostile_run: Path, run: Command):
        for form in ("csv", "verdicts"):
            header = run("export", hostile_run, "--to", form).out.partition("\n")[0].split(",")
            assert {"prompt", "response"}.isdisjoint(header)

    @pytest.mark.parametrize("form", ["jsonl", "audit-bundle"])
    def test_other_formats_have_no_columns_for_texts(
        self, scored_folder: Path, run: Command, tmp_path: Path, form: str
    ):
        ended = run("export", scored_folder, "--to", form, "--texts", "-o", tmp_path / "x")
        assert (ended.code, ended.out) == (2, "")
        assert f"--texts: --to {form} has no columns to add to; use csv, parquet or verdicts" in ended.err
        assert not (tmp_path / "x").exists()

    @pytest.mark.parametrize("name", ["x.txt", "x", "x.parquet.gz", "csv"])
    def test_verdicts_need_a_name_with_a_known_format(
        self, scored_folder: Path, run: Command, tmp_path: Path, name: str
    ):
        ended = run("export", scored_folder, "--to", "verdicts", "-o", tmp_path / name)
        assert (ended.code, ended.out) == (2, "")
        assert f"{name}: verdicts are written as CSV or Parquet; name a file that ends in .csv or .parquet" in ended.err
        assert not (tmp_path / name).exists()

    @pytest.mark.parametrize("form", ["jsonl", "csv", "verdicts"])
    def test_a_name_in_gz_gives_a_compressed_file(self, scored_folder: Path, run: Command, tmp_path: Path, form: str):
        name = "x.jsonl.gz" if form == "jsonl" else "x.csv.gz"
        assert run("export", scored_folder, "--to", form, "-o", tmp_path / name).code == 0
        assert (
            gzip.decompress((tmp_path / name).read_bytes()).decode() == run("export", scored_folder, "--to", form).out
        )

    def test_verdicts_of_erased_texts_are_rows_without_them(self, scored_folder: Path, run: Command):
        run("erase", scored_folder, "--task", "door")
        out = run("export", scored_folder, "--to", "verdicts", "--texts").out
        rows = list(csv.DictReader(io.StringIO(out, newline="")))
        erased = [row for row in rows if row["task_id"] == "door"]
        assert [(row["prompt"], row["response"]) for row in erased] == [("", "")] * 4
        assert [row["score"] for row in erased] == ["1.0", "1.0", "0.0", "0.0"]
        assert "the door" not in out


class TestWhereItGoes:
    @pytest.mark.parametrize(("form", "name"), FORMS)
    def test_export_to_a_file_prints_its_name_only(
        self, scored_folder: Path, run: Command, tmp_path: Path, form: str, name: str
    ):
        ended = run("export", scored_folder, "--to", form, "-o", tmp_path / name)
        assert (ended.code, ended.out, ended.err) == (0, "", f"wrote {tmp_path / name}\n")
        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [name]

    @pytest.mark.parametrize("form", ["parquet", "audit-bundle"])
    def test_binary_formats_need_a_file(self, scored_folder: Path, run: Command, form: str):
        ended = run("export", scored_folder, "--to", form)
        assert (ended.code, ended.out) == (2, "")
        assert f"--to {form}: needs an output file; name one with -o" in ended.err

    @pytest.mark.parametrize(("form", "name"), FORMS)
    def test_an_existing_file_is_replaced_completely(
        self, scored_folder: Path, run: Command, tmp_path: Path, form: str, name: str
    ):
        (tmp_path / name).write_bytes(b"ancient" * 100_000)
        run("export", scored_folder, "--to", form, "-o", tmp_path / name)
        first = (tmp_path / name).read_bytes()
        run("export", scored_folder, "--to", form, "-o", tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
        assert b"ancient" not in first

    @pytest.mark.parametrize(("form", "name"), FORMS)
    def test_a_failed_export_leaves_the_old_file_and_no_draft(
        self, scored_folder: Path, run: Command, tmp_path: Path, form: str, name: str
    ):
        (tmp_path / name).write_text("old")
        change_ledger(scored_folder, "UPDATE records SET key = 'salt/c' WHERE key = 'salt/b'")
        ended = run("export", scored_folder, "--to", form, "-o", tmp_path / name)
        assert (ended.code, ended.out) == (5, "")
        assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()} == {name: "old"}

    @pytest.mark.parametrize(("form", "name"), FORMS)
    @pytest.mark.parametrize("there", ["none/x", "folder", "folder/", ""])
    def test_an_impossible_path_is_refused(
        self,
        scored_folder: Path,
        run: Command,
        monkeypatch: pytest.MonkeyPatch,
        tmp_path: Path,
        form: str,
        name: str,
        there: str,
    ):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "folder").mkdir()
        before = sorted(tmp_path.rglob("*"))
        ended = run("export", scored_folder, "--to", form, "-o", there)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.count("\n") == 1
        assert sorted(tmp_path.rglob("*")) == before

    @pytest.mark.parametrize(("form", "name"), FORMS[3:])
    def test_binary_formats_refuse_a_pipe(
        self, scored_folder: Path, run: Command, tmp_path: Path, form: str, name: str
    ):
        os.mkfifo(tmp_path / name)
        ended = run("export", scored_folder, "--to", form, "-o", tmp_path / name)
        assert (ended.code, ended.out) == (2, "")
        assert f"{tmp_path / name}: is not a regular file, which this format needs; name another file" in ended.err
        assert (tmp_path / name).is_fifo()

    @pytest.mark.parametrize(("form", "name"), FORMS)
    def test_an_export_can_be_written_into_the_folder_of_the_run(
        self, scored_folder: Path, run: Command, form: str, name: str
    ):
        before = folder_contents(scored_folder)
        assert run("export", scored_folder, "--to", form, "-o", scored_folder / name).code == 0
        after = folder_contents(scored_folder)
        assert after.pop(name)
        assert after == before
        assert run("verify", scored_folder).code == 0

    def test_an_unknown_format_is_refused_with_the_known_ones(self, scored_folder: Path, run: Command):
        ended = run("export", scored_folder, "--to", "xml")
        assert (ended.code, ended.out) == (2, "")
        for form, _ in FORMS:
            assert form in ended.err


class TestBundle:
    @pytest.fixture
    def elsewhere(self, tmp_path: Path) -> Path:
        folder = tmp_path / "else where"
        folder.mkdir()
        return folder

    def unpack_bundle(self, run: Command, folder: Path | str, into: Path) -> Path:
        assert run("export", folder, "--to", "audit-bundle", "-o", into / "x.zip").code == 0
        with zipfile.ZipFile(into / "x.zip") as archive:
            archive.extractall(into / "unpacked")
        return into / "unpacked"

    def test_a_bundle_verifies_itself_from_any_folder(
        self, letters_folder: Path, run: Command, tmp_path: Path, elsewhere: Path
    ):
        folder = self.unpack_bundle(run, letters_folder, tmp_path)
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

    def test_a_bundle_has_every_trace_text_and_setting(self, letters_folder: Path, run: Command, tmp_path: Path):
        folder = self.unpack_bundle(run, letters_folder, tmp_path)
        assert (folder / "traces.jsonl").read_text() == run("show", letters_folder, "--json").out
        assert (folder / "config.yaml").read_bytes() == (letters_folder / "config.yaml").read_bytes()
        assert SECRET in (folder / "texts.jsonl").read_text()
        assert "python3 verify.py" in (folder / "README.txt").read_text()

    def test_a_changed_byte_in_any_file_is_detected(
        self, letters_folder: Path, run: Command, tmp_path: Path, elsewhere: Path
    ):
        folder = self.unpack_bundle(run, letters_folder, tmp_path)
        for path in (folder / name for name in ("records.jsonl", "texts.jsonl", "traces.jsonl", "config.yaml")):
            kept = path.read_bytes()
            for place in (0, len(kept) // 3, len(kept) // 2, len(kept) - 2):
                path.write_bytes(kept[:place] + bytes([kept[place] ^ 1]) + kept[place + 1 :])
                ended = run_script(folder / "verify.py", cwd=elsewhere)
                assert ended.code == 5, (path.name, place, ended)
                assert path.name in ended.out + ended.err
                assert "Traceback" not in ended.err
            path.write_bytes(kept)
        assert run_script(folder / "verify.py", cwd=elsewhere).code == 0

    @pytest.mark.parametrize("name", ["records.jsonl", "texts.jsonl", "traces.jsonl", "config.yaml"])
    @pytest.mark.parametrize(
        "how",
        [
            pytest.param("lost", marks=pytest.mark.exhaustive),
            pytest.param("empty", marks=pytest.mark.exhaustive),
            "without its last line",
            "with its last line twice",
        ],
    )
    def test_missing_and_additional_files_are_detected(
        self, scored_folder: Path, run: Command, tmp_path: Path, elsewhere: Path, name: str, how: str
    ):
        folder = self.unpack_bundle(run, scored_folder, tmp_path)
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        if how == "lost":
            (folder / name).unlink()
        else:
            kept = {"empty": [], "without its last line": lines[:-1], "with its last line twice": [*lines, lines[-1]]}
            (folder / name).write_bytes(b"".join(kept[how]))
        ended = run_script(folder / "verify.py", cwd=elsewhere)
        if (name, how) == ("records.jsonl", "without its last line"):
            assert ended.code == 0, "a run that was not closed is whole in itself"
            return
        assert ended.code == 5, ended
        assert "Traceback" not in ended.err

    @pytest.mark.parametrize("what", [("--response", "letter/a"), ("--task", "letter")])
    def test_a_bundle_has_no_erased_text_and_still_verifies(
        self, letters_folder: Path, run: Command, tmp_path: Path, elsewhere: Path, what: tuple[str, str]
    ):
        run("erase", letters_folder, *what)
        folder = self.unpack_bundle(run, letters_folder, tmp_path)
        gone = [SECRET, "0171 555 0100", "by Mrs Hollis"] if what[0] == "--response" else ["0171 555 0100", "landlord"]
        content = b"".join(folder_contents(folder).values()).decode()
        assert [text for text in gone if text in content] == []
        ended = run_script(folder / "verify.py", cwd=elsewhere)
        assert ended.code == 0, ended

    def test_the_bundle_of_a_rescored_run_includes_the_verdicts(
        self, letters_folder: Path, run: Command, tmp_path: Path, elsewhere: Path
    ):
        run("rescore", letters_folder, "--out", "again", "--set", "scale=3")
        folder = self.unpack_bundle(run, "again", tmp_path)
        assert run_script(folder / "verify.py", cwd=elsewhere).code == 0
        for name in ("records.jsonl", "texts.jsonl"):
            path = folder / "base" / name
            kept = path.read_bytes()
            path.write_bytes(kept.replace(b"letter", b"better", 1))
            assert run_script(folder / "verify.py", cwd=elsewhere).code == 5
            path.write_bytes(kept)

    def test_the_bundle_of_a_rescored_run_verifies_after_an_erasure(
        self, letters_folder: Path, run: Command, tmp_path: Path, elsewhere: Path
    ):
        run("rescore", letters_folder, "--out", "again", "--set", "scale=3")
        run("erase", letters_folder, "--response", "letter/a")
        folder = self.unpack_bundle(run, "again", tmp_path)
        ended = run_script(folder / "verify.py", cwd=elsewhere)
        assert ended.code == 0, ended
        assert SECRET not in b"".join(folder_contents(folder).values()).decode()

    def test_the_bundle_checks_the_seal(self, scored_folder: Path, run: Command, tmp_path: Path, elsewhere: Path):
        key = Ed25519PrivateKey.generate()
        (tmp_path / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        run("seal", scored_folder, "--key", tmp_path / "key.pem")
        folder = self.unpack_bundle(run, scored_folder, tmp_path)
        public = key.public_key().public_bytes_raw().hex()
        other = Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex()
        for encoding, form in (
            (Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            (Encoding.OpenSSH, PublicFormat.OpenSSH),
        ):
            (elsewhere / "key.pub").write_bytes(key.public_key().public_bytes(encoding, form))
            assert run_script(folder / "verify.py", "--signer", "key.pub", cwd=elsewhere).code == 0
        missing = run_script(folder / "verify.py", "--signer", "no.pub", cwd=elsewhere)
        assert (missing.code, "no.pub: is no Ed25519 public key" in missing.err) == (2, True)
        assert run_script(folder / "verify.py", "--signer", public, cwd=elsewhere).code == 0
        assert run_script(folder / "verify.py", "--signer", other, cwd=elsewhere).code == 5
        sealed = (folder / "seal.json").read_text()
        (folder / "seal.json").write_text(sealed.replace("12", "11"))
        assert run_script(folder / "verify.py", cwd=elsewhere).code == 5
        (folder / "seal.json").unlink()
        assert run_script(folder / "verify.py", "--signer", public, cwd=elsewhere).code == 5

    def test_another_head_is_refused(self, scored_folder: Path, run: Command, tmp_path: Path, elsewhere: Path):
        folder = self.unpack_bundle(run, scored_folder, tmp_path)
        assert run_script(folder / "verify.py", "--expect-head", "0" * 64, cwd=elsewhere).code == 5

    def test_the_same_run_gives_the_same_bundle(self, scored_folder: Path, run: Command, tmp_path: Path):
        for name in ("a.zip", "b.zip"):
            run("export", scored_folder, "--to", "audit-bundle", "-o", tmp_path / name)
        assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()

    def test_a_stopped_run_is_bundled_up_to_its_last_record(
        self, project: Path, run: Command, tmp_path: Path, elsewhere: Path
    ):
        run("score", project / "tasks.jsonl", "--out", project / "run", "--limit", 1)
        folder = self.unpack_bundle(run, project / "run", tmp_path)
        assert len((folder / "traces.jsonl").read_text().splitlines()) == 2
        assert run_script(folder / "verify.py", cwd=elsewhere).code == 0

    def test_a_changed_run_cannot_be_bundled(self, scored_folder: Path, run: Command, tmp_path: Path):
        change_ledger(scored_folder, "UPDATE records SET at = at + 1 WHERE key = 'door/a'")
        ended = run("export", scored_folder, "--to", "audit-bundle", "-o", tmp_path / "x.zip")
        assert (ended.code, ended.out) == (5, "")
        assert not (tmp_path / "x.zip").exists()

    def test_hostile_ids_are_harmless_in_a_bundle(self, tmp_path: Path, run: Command, elsewhere: Path):
        hostile = "../../x\x1b[2J\n\u202e\"'"
        tasks = [{**LETTERS[0], "id": hostile, "responses": [{"id": f"{hostile}a", "text": hostile}]}]
        project = write_project(tmp_path / "p", tasks, LETTERS_CONFIG, CALL_LOGGING_EVALUATORS)
        run("score", project / "tasks.jsonl", "--out", project / "run")
        folder = self.unpack_bundle(run, project / "run", tmp_path)
        ended = run_script(folder / "verify.py", cwd=elsewhere)
        assert ended.code == 0
        records = folder / "records.jsonl"
        records.write_bytes(records.read_bytes().replace(b'\\"reward\\"', b'\\"rewerd\\"'))
        ended = run_script(folder / "verify.py", cwd=elsewhere)
        assert ended.code == 5
        assert not set("\x1b\u202e") & set(ended.out + ended.err)
