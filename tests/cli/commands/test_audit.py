"""`jurygraph verify`, `seal` and `close`: a run as evidence."""

import json
import re
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from tests.cli.conftest import Command, change_ledger, folder_contents, read_calls, run_command, write_project

OTHER_TEXT = "UPDATE texts SET content = x'78' WHERE CAST(content AS TEXT) = 'salt, please'"
HEAD = re.compile(r"[0-9a-f]{64}")


def stop_before_the_first_reward(folder: Path) -> None:
    change_ledger(folder, "DELETE FROM texts WHERE id >= 6 << 20")
    change_ledger(folder, "DELETE FROM records WHERE seq > 5")


def head_of(run: Command, folder: Path) -> str:
    head: str = json.loads(run("verify", folder, "--json").out)["head"]
    return head


COMMANDS = ["verify", "seal", "close", "erase", "rescore", "compare", "score", "export", "show", "explain"]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_of_the_command(run: Command, name: str):
    ended = run(name, "--help")
    assert ended.code == 0
    assert re.search(rf"Example:\n +jurygraph {name} ", ended.out)


class TestVerify:
    def test_verify_prints_what_was_checked(self, scored_folder: Path, run: Command):
        ended = run("verify", scored_folder)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.splitlines() == [
            f"{scored_folder} is unchanged: 12 records, 13 texts, 0 erased",
            "4 rewards recomputed from their verdicts, bit for bit",
            f"head    {head_of(run, scored_folder)}",
            "sealed  no",
        ]

    def test_json_has_the_same_result(self, scored_folder: Path, run: Command):
        ended = run("verify", scored_folder, "--json")
        assert (ended.code, ended.err) == (0, "")
        found = json.loads(ended.out)
        assert HEAD.fullmatch(found.pop("head"))
        assert found == {
            "run": str(scored_folder),
            "records": 12,
            "traces": 4,
            "texts": 13,
            "erased": 0,
            "closed": True,
            "sealed": None,
            "base": None,
            "unsigned": 0,
            "deep": None,
        }

    def test_verify_writes_nothing(self, scored_folder: Path, run: Command):
        before = folder_contents(scored_folder)
        run("verify", scored_folder)
        assert folder_contents(scored_folder) == before

    def test_a_read_only_folder_can_be_verified(self, scored_folder: Path, run: Command):
        for path in (*scored_folder.iterdir(), scored_folder):
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            assert run("verify", scored_folder).code == 0
        finally:
            scored_folder.chmod(0o755)

    @pytest.mark.parametrize("form", [(), ("--json",), ("--deep",)])
    @pytest.mark.parametrize(
        ("statement", "message"),
        [
            ("UPDATE records SET body = replace(body, '0.5', '0.6') WHERE key = 'door/a'", "record 7 (trace 'door/a')"),
            ("UPDATE records SET at = at + 1 WHERE seq = 1", "record 1 (run '"),
            (OTHER_TEXT, "of record 10 (trace 'salt/a')"),
            ("UPDATE texts SET salt = x'00' WHERE id = (SELECT max(id) FROM texts)", "of record 11 (trace 'salt/b')"),
            ("DELETE FROM texts WHERE id = (SELECT max(id) FROM texts)", "is missing without an erasure"),
            ("DELETE FROM records WHERE seq = 11", "record 11 is missing"),
            ("DELETE FROM records WHERE seq IN (11, 12)", "belongs to no record"),
        ],
    )
    def test_the_first_change_is_named(
        self, scored_folder: Path, run: Command, statement: str, message: str, form: tuple[str, ...]
    ):
        change_ledger(scored_folder, statement)
        ended = run("verify", scored_folder, *form)
        assert (ended.code, ended.out) == (5, "")
        assert f"error: {scored_folder / 'run.sqlite'}" in ended.err
        assert message in ended.err
        assert ended.err.count("\n") == 1

    @pytest.mark.parametrize("line", ["  polite: 2.0\n", ""])
    def test_a_changed_config_is_named(self, scored_folder: Path, run: Command, line: str):
        config = scored_folder / "config.yaml"
        config.write_text(config.read_text().replace("  polite: 1.0\n", line))
        ended = run("verify", scored_folder)
        assert (ended.code, ended.out) == (5, "")
        assert f"error: {config}: is not the config that was written" in ended.err

    def test_an_additional_file_in_the_folder_is_ignored(self, scored_folder: Path, run: Command):
        (scored_folder / "notes.txt").write_text("mine")
        assert run("verify", scored_folder).code == 0

    def test_a_stopped_run_is_valid_and_not_closed(self, project: Path, run: Command):
        run("score", project / "tasks.jsonl", "--out", project / "run", "--limit", 1)
        ended = run("verify", project / "run")
        assert ended.code == 0
        assert "2 rewards recomputed" in ended.out
        assert "the run is not closed: more records may follow this head; if it was once" in ended.err
        assert ended.out.startswith(f"{project / 'run'}: what is there is unchanged: "), "its end may be lost"
        known = run("verify", project / "run", "--expect-head", head_of(run, project / "run"))
        assert known.out.startswith(f"{project / 'run'} is unchanged: ")

    def test_a_run_stopped_before_its_first_reward_is_valid(self, scored_folder: Path, run: Command):
        stop_before_the_first_reward(scored_folder)
        ended = run("verify", scored_folder)
        assert (ended.code, ended.out.splitlines()[1]) == (0, "0 rewards recomputed from their verdicts, bit for bit")


class TestExpectedHead:
    def test_the_expected_head_is_accepted(self, scored_folder: Path, run: Command):
        head = head_of(run, scored_folder)
        for written in (head, head.upper(), f" {head}\n"):
            assert run("verify", scored_folder, "--expect-head", written).code == 0

    def test_a_completely_rebuilt_run_is_detected(self, project: Path, scored_folder: Path, run: Command):
        head = head_of(run, scored_folder)
        shutil.rmtree(scored_folder)
        run("score", project / "tasks.jsonl", "--out", scored_folder)
        assert run("verify", scored_folder).code == 0
        ended = run("verify", scored_folder, "--expect-head", head)
        assert (ended.code, ended.out) == (5, "")
        assert (
            f"the head is {head_of(run, scored_folder)}, and no record has the link {head} that was expected"
            in ended.err
        )

    def test_records_scored_after_the_expected_head_are_named(self, project: Path, run: Command):
        run("score", project / "tasks.jsonl", "--out", project / "run", "--limit", 1)
        head = head_of(run, project / "run")
        run("score", project / "tasks.jsonl", "--out", project / "run")
        ended = run("verify", project / "run", "--expect-head", head)
        assert ended.code == 5
        assert "comes after the head that was expected" in ended.err

    def test_closing_and_erasures_may_follow_the_expected_head(self, project: Path, run: Command):
        run("score", project / "tasks.jsonl", "--out", project / "run", "--limit", 1)
        head = head_of(run, project / "run")
        for command in (("close", project / "run"), ("erase", project / "run", "--response", "door/a")):
            assert run(*command).code == 0
            assert run("verify", project / "run", "--expect-head", head).code == 0

    @pytest.mark.parametrize("given", ["", "9f2c", "not hexadecimal", "0" * 65])
    def test_an_invalid_head_is_refused(self, scored_folder: Path, run: Command, given: str):
        ended = run("verify", scored_folder, "--expect-head", given)
        assert (ended.code, ended.out) == (2, "")
        assert "64 hexadecimal digits" in ended.err


class TestDeep:
    def test_deep_verification_repeats_every_verdict_and_checks_every_quotation(
        self, letters_folder: Path, run: Command
    ):
        calls_before = read_calls(letters_folder.parent)
        ended = run("verify", letters_folder, "--deep")
        assert ended.code == 0, ended.err
        assert "repeated: 9 verdicts are the same, 4 quotations are where they were recorded" in ended.out.splitlines()
        assert read_calls(letters_folder.parent) == calls_before
        assert json.loads(run("verify", letters_folder, "--deep", "--json").out)["deep"] == {
            "recomputed": 9,
            "quotations": 4,
            "needing_model": 0,
            "reused_from_missing_run": 0,
            "transient_failures": 0,
            "erased": 0,
        }

    def test_verification_calls_no_evaluator_unless_deep(self, letters_folder: Path, run: Command):
        read_calls(letters_folder.parent)
        (letters_folder.parent / "manners.py").unlink()
        assert run("verify", letters_folder).code == 0
        assert read_calls(letters_folder.parent) == []

    def test_a_different_verdict_is_named(self, letters_folder: Path, run: Command):
        source = letters_folder.parent / "manners.py"
        source.write_text(source.read_text().replace("score=1 / 3, reason", "score=0.34, reason"))
        ended = run("verify", letters_folder, "--deep")
        assert (ended.code, ended.out) == (5, "")
        message = (
            "trace 'letter/a', verdict 'manners.echo': score is 0.3333333333333333 in the run and 0.34 when recomputed"
        )
        assert message in ended.err

    def test_an_evaluator_of_another_version_is_refused(self, letters_folder: Path, run: Command):
        source = letters_folder.parent / "manners.py"
        source.write_text(source.read_text().replace('version="1"', 'version="2"'))
        ended = run("verify", letters_folder, "--deep")
        assert (ended.code, ended.out) == (2, "")
        assert "evaluator 'manners.better' of version '1'; this jury has 2" in ended.err

    def test_transient_failures_are_skipped(self, project: Path, run: Command):
        responses = [{"id": f"r{i}", "text": "crash" if i == 5 else "please"} for i in range(10)]
        write_project(project, [{"id": "t", "query": "?", "responses": responses}])
        assert run("score", project / "tasks.jsonl", "--out", project / "run").code == 1
        found = json.loads(run("verify", project / "run", "--deep", "--json").out)["deep"]
        assert (found["recomputed"], found["transient_failures"]) == (19, 1)

    def test_modules_are_imported_from_their_folder_at_scoring(
        self, letters_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "manners.py").write_text("raise SystemExit('this is another module')\n")
        monkeypatch.chdir(tmp_path)
        assert run_command("verify", letters_folder, "--deep").code == 0

    def test_a_run_moved_without_its_modules_names_their_folder(self, letters_folder: Path, tmp_path: Path):
        letters_folder.rename(tmp_path / "alone")
        ended = run_command("verify", tmp_path / "alone", "--deep")
        assert (ended.code, ended.out) == (2, "")
        assert "'manners.echo'" in ended.err
        assert f"modules are imported from {tmp_path}, where they were when" in ended.err

    def test_a_missing_folder_of_modules_is_named(self, project: Path, tmp_path: Path):
        assert run_command("score", project / "tasks.jsonl", "--out", tmp_path / "runs" / "one").code == 0
        project.rename(tmp_path / "gone")
        ended = run_command("verify", tmp_path / "runs" / "one", "--deep")
        assert (ended.code, ended.out) == (2, "")
        lay = f"evaluators[0] names 'manners', which this run looks for in {project}; that folder is missing"
        assert lay in ended.err
        ended = run_command("verify", tmp_path / "runs" / "one")
        assert (ended.code, ended.err) == (0, ""), "only own combiners are needed to recompute rewards"


class TestClose:
    @pytest.fixture
    def stopped_run(self, project: Path, run: Command) -> Path:
        run("score", project / "tasks.jsonl", "--out", project / "run", "--limit", 1)
        return project / "run"

    def test_close_prints_the_head(self, stopped_run: Path, run: Command):
        ended = run("close", stopped_run)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out.splitlines() == [
            f"{stopped_run} is closed: 2 traces, 8 records",
            f"head {head_of(run, stopped_run)}",
        ]

    def test_json_has_the_same_result(self, stopped_run: Path, run: Command):
        found = json.loads(run("close", stopped_run, "--json").out)
        assert found == {"run": str(stopped_run), "traces": 2, "records": 8, "head": head_of(run, stopped_run)}

    def test_closing_twice_changes_nothing(self, stopped_run: Path, run: Command):
        first = run("close", stopped_run)
        before = folder_contents(stopped_run)
        assert run("close", stopped_run) == first
        assert folder_contents(stopped_run) == before

    def test_a_complete_run_is_closed_already(self, scored_folder: Path, run: Command):
        before = folder_contents(scored_folder)
        assert run("close", scored_folder).out.startswith(f"{scored_folder} is closed: 4 traces, 12 records\n")
        assert folder_contents(scored_folder) == before

    def test_score_refuses_to_add_to_a_closed_run(self, stopped_run: Path, project: Path, run: Command):
        run("close", stopped_run)
        before = folder_contents(stopped_run)
        ended = run("score", project / "tasks.jsonl", "--out", stopped_run)
        assert (ended.code, ended.out) == (2, "")
        assert "was closed when 1 of 2 tasks were scored" in ended.err
        assert f"--branch {stopped_run}" in ended.err
        assert folder_contents(stopped_run) == before

    def test_show_does_not_report_a_closed_run_as_stopped(self, stopped_run: Path, run: Command):
        run("close", stopped_run)
        assert run("show", stopped_run).err == ""

    def test_a_run_without_any_reward_can_be_closed(self, scored_folder: Path, run: Command):
        stop_before_the_first_reward(scored_folder)
        assert "0 traces, 6 records" in run("close", scored_folder).out
        assert run("verify", scored_folder).code == 0

    def test_a_rescored_run_is_closed_already(self, scored_folder: Path, run: Command):
        run("rescore", scored_folder, "--out", scored_folder.parent / "again")
        assert "is closed: 4 traces" in run("close", scored_folder.parent / "again").out


class TestSeal:
    @pytest.fixture
    def keys(self, tmp_path: Path) -> Path:
        """Two keys in a folder away from the run, each as a private and a public file."""
        folder = tmp_path / "keys"
        folder.mkdir()
        for name in ("mine", "other"):
            self.write(folder / name, Ed25519PrivateKey.generate())
        return folder

    @staticmethod
    def write(path: Path, key: Ed25519PrivateKey) -> None:
        for encoding, form, public, suffix in (
            (Encoding.PEM, PrivateFormat.PKCS8, PublicFormat.SubjectPublicKeyInfo, "pem"),
            (Encoding.PEM, PrivateFormat.OpenSSH, PublicFormat.OpenSSH, "ssh"),
        ):
            path.with_suffix(f".{suffix}").write_bytes(key.private_bytes(encoding, form, NoEncryption()))
            encoded = Encoding.OpenSSH if public is PublicFormat.OpenSSH else encoding
            path.with_suffix(f".{suffix}.pub").write_bytes(key.public_key().public_bytes(encoded, public))
        path.with_suffix(".hex").write_text(key.public_key().public_bytes_raw().hex() + "\n")

    @pytest.mark.landing
    def test_seal_writes_the_signed_head_into_the_folder_of_the_run(
        self, scored_folder: Path, run: Command, keys: Path
    ):
        ended = run("seal", scored_folder, "--key", keys / "mine.pem")
        assert (ended.code, ended.err) == (0, "")
        key = (keys / "mine.hex").read_text().strip()
        first, second = ended.out.splitlines()
        assert re.fullmatch(
            rf"{scored_folder} was sealed at \S+: 12 records, head {head_of(run, scored_folder)}", first
        )
        assert second == f"by {key}"
        assert f"sealed  by {key}" in run("verify", scored_folder).out
        assert json.loads(run("verify", scored_folder, "--json").out)["sealed"] == key

    def test_json_is_the_content_of_the_seal(self, scored_folder: Path, run: Command, keys: Path):
        given = json.loads(run("seal", scored_folder, "--key", keys / "mine.pem", "--json").out)
        assert given == json.loads((scored_folder / "seal.json").read_text())
        assert (given["records"], given["head"]) == (12, head_of(run, scored_folder))

    @pytest.mark.parametrize("private", ["mine.pem", "mine.ssh"])
    @pytest.mark.parametrize("signer", ["mine.pem.pub", "mine.ssh.pub", "mine.hex", "mine.pem", "mine.ssh"])
    def test_every_supported_format_of_a_key_is_accepted(
        self, scored_folder: Path, run: Command, keys: Path, private: str, signer: str
    ):
        assert run("seal", scored_folder, "--key", keys / private).code == 0
        ended = run("verify", scored_folder, "--signer", keys / signer)
        assert ended.code == 0, ended.err
        assert run("verify", scored_folder, "--signer", (keys / "mine.hex").read_text().strip()).code == 0

    def test_sealing_again_with_the_same_key_changes_nothing(self, scored_folder: Path, run: Command, keys: Path):
        first = run("seal", scored_folder, "--key", keys / "mine.pem")
        before = folder_contents(scored_folder)
        assert run("seal", scored_folder, "--key", keys / "mine.pem") == first
        assert folder_contents(scored_folder) == before

    def test_another_key_does_not_replace_the_seal(self, scored_folder: Path, run: Command, keys: Path):
        run("seal", scored_folder, "--key", keys / "mine.pem")
        before = folder_contents(scored_folder)
        ended = run("seal", scored_folder, "--key", keys / "other.pem")
        assert (ended.code, ended.out) == (2, "")
        assert f"is sealed by another key, {(keys / 'mine.hex').read_text().strip()}" in ended.err
        assert folder_contents(scored_folder) == before

    def test_an_open_run_cannot_be_sealed(self, project: Path, run: Command, keys: Path):
        run("score", project / "tasks.jsonl", "--out", project / "run", "--limit", 1)
        ended = run("seal", project / "run", "--key", keys / "mine.pem")
        assert (ended.code, ended.out) == (2, "")
        assert f"end it with `jurygraph close {project / 'run'}`" in ended.err
        assert not (project / "run" / "seal.json").exists()

    def test_a_changed_run_cannot_be_sealed(self, scored_folder: Path, run: Command, keys: Path):
        change_ledger(scored_folder, "UPDATE records SET body = replace(body, '0.5', '0.6') WHERE key = 'door/a'")
        ended = run("seal", scored_folder, "--key", keys / "mine.pem")
        assert (ended.code, ended.out) == (5, "")
        assert "record 7 (trace 'door/a')" in ended.err
        assert not (scored_folder / "seal.json").exists()

    def test_a_run_with_changed_texts_or_config_cannot_be_sealed(self, scored_folder: Path, run: Command, keys: Path):
        change_ledger(scored_folder, OTHER_TEXT)
        ended = run("seal", scored_folder, "--key", keys / "mine.pem")
        assert (ended.code, ended.out) == (5, "")
        assert not (scored_folder / "seal.json").exists()

    @pytest.mark.landing
    def test_an_erasure_keeps_the_seal_valid_but_is_unsigned_until_the_next_seal(
        self, scored_folder: Path, run: Command, keys: Path
    ):
        run("seal", scored_folder, "--key", keys / "mine.pem")
        first = json.loads((scored_folder / "seal.json").read_text())
        assert run("erase", scored_folder, "--response", "door/a").code == 0
        unsigned = run("verify", scored_folder)
        assert (unsigned.code, "1 erasures after the seal are unsigned" in unsigned.err) == (0, True)
        refused = run("verify", scored_folder, "--signer", keys / "mine.pem.pub")
        assert (refused.code, "1 erasures after the sealed records" in refused.err) == (5, True)
        assert run("seal", scored_folder, "--key", keys / "mine.pem").code == 0
        again = json.loads((scored_folder / "seal.json").read_text())
        assert (first["records"], again["records"]) == (12, 13)
        assert run("verify", scored_folder, "--signer", keys / "mine.pem.pub").code == 0

    def test_a_rescored_run_has_its_own_seal(self, scored_folder: Path, run: Command, keys: Path):
        again = scored_folder.parent / "again"
        run("rescore", scored_folder, "--out", again, "--set", "scale=2")
        assert run("seal", again, "--key", keys / "mine.pem").code == 0
        assert run("verify", again, "--signer", keys / "mine.hex").code == 0
        assert not (scored_folder / "seal.json").exists()

    def test_another_signer_is_refused(self, scored_folder: Path, run: Command, keys: Path):
        run("seal", scored_folder, "--key", keys / "mine.pem")
        ended = run("verify", scored_folder, "--signer", keys / "other.pem.pub")
        assert (ended.code, ended.out) == (5, "")
        assert (
            f"{scored_folder / 'seal.json'}: is by the key {(keys / 'mine.hex').read_text().strip()}, not by"
            in ended.err
        )

    def test_a_missing_seal_is_reported_if_a_signer_is_expected(self, scored_folder: Path, run: Command, keys: Path):
        ended = run("verify", scored_folder, "--signer", keys / "mine.hex")
        assert (ended.code, ended.out) == (5, "")
        assert f"{scored_folder / 'seal.json'}: is missing" in ended.err

    @pytest.mark.landing
    def test_every_byte_of_the_seal_counts(self, scored_folder: Path, run: Command, keys: Path):
        run("seal", scored_folder, "--key", keys / "mine.pem")
        sealed = (scored_folder / "seal.json").read_bytes()
        for place in range(0, len(sealed), 17):
            changed = bytearray(sealed)
            changed[place] ^= 1
            (scored_folder / "seal.json").write_bytes(changed)
            ended = run("verify", scored_folder)
            assert (ended.code, ended.out) == (5, ""), place
            assert f"error: {scored_folder / 'seal.json'}: " in ended.err

    def test_the_seal_of_another_run_is_refused(self, scored_folder: Path, project: Path, run: Command, keys: Path):
        run("score", project / "tasks.jsonl", "--out", project / "other")
        run("seal", project / "other", "--key", keys / "mine.pem")
        shutil.copy(project / "other" / "seal.json", scored_folder)
        ended = run("verify", scored_folder)
        assert ended.code == 5
        assert "is the seal of another run" in ended.err

    @pytest.mark.parametrize("command", [("seal", "--key"), ("verify", "--signer")])
    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("nothing", None, "cannot be read (No such file or directory)"),
            ("folder", None, "cannot be read (Is a directory)"),
            ("empty", b"", "contains no"),
            ("text", b"my key", "contains no"),
            ("rsa", generate_private_key(65537, 2048), "a key that is not Ed25519"),
        ],
    )
    def test_an_invalid_key_is_named(
        self,
        scored_folder: Path,
        run: Command,
        tmp_path: Path,
        name: str,
        content: object,
        message: str,
        command: tuple[str, str],
    ):
        path = tmp_path / name
        if name == "folder":
            path.mkdir()
        elif content is not None:
            written = content if isinstance(content, bytes) else self.pem(content)
            path.write_bytes(written)
        run("seal", scored_folder, "--key", path)
        ended = run(command[0], scored_folder, command[1], path)
        assert (ended.code, ended.out) == (2, "")
        assert f"error: {path}: " in ended.err
        assert message in ended.err
        assert not (scored_folder / "seal.json").exists()

    @staticmethod
    def pem(key: object, password: bytes | None = None) -> bytes:
        locked = NoEncryption() if password is None else BestAvailableEncryption(password)
        written: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, locked)  # type: ignore[attr-defined]
        return written

    def test_an_encrypted_key_is_refused_without_a_prompt(self, scored_folder: Path, run: Command, tmp_path: Path):
        (tmp_path / "locked.pem").write_bytes(self.pem(Ed25519PrivateKey.generate(), b"secret"))
        ended = run("seal", scored_folder, "--key", tmp_path / "locked.pem")
        assert (ended.code, ended.out) == (2, "")
        assert "locked.pem: is encrypted, and passphrases are not supported" in ended.err


NO_RUN = [
    ("verify",),
    ("verify", "--deep"),
    ("close",),
    ("seal", "--key", "key.pem"),
    ("erase", "--response", "door/a"),
    ("rescore", "--out", "again"),
    ("export", "--to", "parquet", "-o", "x.parquet"),
    ("export", "--to", "audit-bundle", "-o", "x.zip"),
]


@pytest.mark.parametrize("command", NO_RUN, ids=" ".join)
@pytest.mark.parametrize(
    ("name", "state"), [("nothing", "does not exist"), ("empty", "contains no run"), ("file", "is not a folder")]
)
def test_a_folder_that_is_not_a_run_is_refused(
    tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], name: str, state: str
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("mine")
    (tmp_path / "key.pem").write_bytes(TestSeal.pem(Ed25519PrivateKey.generate()))
    before = sorted(tmp_path.rglob("*"))
    ended = run(command[0], name, *command[1:])
    assert (ended.code, ended.out) == (2, "")
    assert f"error: {name}: {state}; name the folder that `jurygraph score --out` made" in ended.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("command", NO_RUN, ids=" ".join)
def test_a_run_stopped_while_planning_is_refused(
    scored_folder: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key.pem").write_bytes(TestSeal.pem(Ed25519PrivateKey.generate()))
    for table in ("records", "texts"):
        change_ledger(scored_folder, f"DELETE FROM {table}")
    ended = run(command[0], scored_folder, *command[1:])
    assert (ended.code, ended.out) == (2, "")
    assert "contains no run yet" in ended.err
    assert not (tmp_path / "again").exists()


NAMES = ["-run", "run\n\x1b[31m\x07\u202ered", "%41?mode=rwc#x"]
OTHER_NAMES = ["my run", "rün", "a'b\"c", "$HOME"]


@pytest.mark.landing
@pytest.mark.parametrize("name", [*NAMES, *(pytest.param(name, marks=pytest.mark.exhaustive) for name in OTHER_NAMES)])
def test_a_run_can_have_any_name(project: Path, run: Command, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.chdir(project)
    (project / "key.pem").write_bytes(TestSeal.pem(Ed25519PrivateKey.generate()))
    assert run("score", "tasks.jsonl", f"--out={name}").code == 0
    again = f"{name} again"
    commands = [
        ("show", "--", name),
        ("verify", "--deep", "--", name),
        ("rescore", f"--out={again}", "--", name),
        ("verify", "--deep", "--", again),
        ("compare", "--", name, again),
        ("seal", "--key", "key.pem", "--", name),
        ("close", "--", name),
        ("erase", "--response", "door/a", "--", name),
        ("export", "--to", "csv", "-o", "x.csv", "--", again),
        ("export", "--to", "parquet", "-o", "x.parquet", "--", name),
        ("erase", "--response", "door/x", "--", name),
    ]
    for command in commands:
        ended = run(*command)
        assert ended.code == (2 if "door/x" in command else 0), ended.err
        assert not set("\x1b\x07\u202e") & set(ended.out + ended.err), command
    assert sorted(path.name for path in project.iterdir() if path.is_dir() and path.name != "__pycache__") == sorted(
        [name, again]
    )


@pytest.mark.parametrize("name", ["my run", "-run", "$HOME"])
def test_the_printed_next_command_can_be_typed(project: Path, run: Command, monkeypatch: pytest.MonkeyPatch, name: str):
    monkeypatch.chdir(project)
    hints = run("score", "tasks.jsonl", f"--out={name}").err.splitlines()
    hints += run("rescore", f"--out={name} again", "--", name).err.splitlines()
    commands = [shlex.split(hint.partition("jurygraph ")[2]) for hint in hints if "jurygraph " in hint]
    assert [command[0] for command in commands] == ["show", "show", "explain", "compare"]
    for command in commands:
        ended = run(*command)
        assert ended.code == 0, (command, ended.err)


HOSTILE = "\x1b[2J\x1b]0;owned\x07[bold red]x[/]\r\n\u202e\x9b31m"


@pytest.mark.landing
def test_hostile_ids_are_escaped_on_a_terminal(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch):
    task, response = f"t{HOSTILE}", f"r{HOSTILE}"
    project = write_project(
        tmp_path / "project",
        [{"id": task, "query": "?", "responses": [{"id": response, "text": "crash"}, {"id": "other", "text": "x"}]}],
    )
    monkeypatch.chdir(project)
    run("score", "tasks.jsonl", "--out", "run")
    commands = [
        ("verify", "run", "--deep"),
        ("rescore", "run", "--out", "again"),
        ("compare", "run", "again"),
        ("erase", "run", "--response", f"{response}x"),
        ("erase", "run", "--task", f"{task}x"),
        ("export", "run", "--to", "jsonl"),
        ("erase", "run", "--response", response, "--reason", HOSTILE),
        ("erase", "run", "--task", task),
        ("erase", "run", "--task", task, "--json"),
        ("rescore", "run", "--out", "third", "--set", "scale=2"),
        ("verify", "run", "--expect-head", HOSTILE),
        ("verify", "run", "--signer", HOSTILE),
        ("rescore", "run", "--out", "third", "--set", f"reward.{HOSTILE}=1"),
        ("rescore", "run", "--out", "third", "--set", HOSTILE),
        ("score", "tasks.jsonl", "--out", "fourth", "--branch", HOSTILE),
    ]
    ended = [run(*command) for command in commands]
    change_ledger(project / "run", "UPDATE records SET at = at + 1 WHERE key = ?", response)
    ended.append(run("verify", "run"))
    assert ended[-1].code == 5
    for one in ended:
        assert one.code in (0, 1, 2, 3, 5)
        assert not set("\x1b\x07\r\u202e\x9b") & set(one.out + one.err)
        assert one.err.count("\n") <= 2
    (project / "tasks.jsonl").write_text((project / "tasks.jsonl").read_text().replace('"crash"', '"crash again"'))
    refused = run("score", "tasks.jsonl", "--out", "run")
    assert refused.code == 5, "it was changed above"
    assert not set("\x1b\x07\r\u202e\x9b") & set(refused.err)


def test_commands_work_from_another_folder(
    project: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(project)
    run("score", "tasks.jsonl", "--out", "run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run("rescore", "../project/run", "--out", "again").code == 0
    monkeypatch.chdir(tmp_path)
    assert run("verify", "elsewhere/again").code == 0
    monkeypatch.chdir(tmp_path / "elsewhere" / "again")
    for command in (("verify", "."), ("show", "."), ("compare", ".", "../../project/run")):
        assert run(*command).code == 0


OWN_COMBINER = """\
from jurygraph.decision.combiners import Mean
from jurygraph.decision.combiner import Component


class Half(Mean):
    name = "half"

    def combine(self, cells, params):
        whole = super().combine(cells, params)
        return Component(whole.value * 0.5, whole.present, whole.parts)
"""


WITH_COMBINERS = [
    ("verify",),
    ("rescore", "--out", "again", "--set", "scale=2"),
    ("explain", "--response", "salt/a", "--what-if"),
]


@pytest.fixture
def run_with_own_combiner(project: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose rewards were computed by a custom combiner in the folder of the config."""
    (project / "own.py").write_text(OWN_COMBINER)
    component = "{combiner: own.Half, inputs: {polite: manners.polite}}"
    (project / "jury.yaml").write_text(
        f"evaluators: [manners.polite]\ncomponents: {{half: {component}}}\nreward: {{half: 1.0}}\n"
    )
    monkeypatch.chdir(project)
    assert run("score", "tasks.jsonl", "--out", "run").code == 0
    return project / "run"


@pytest.mark.parametrize("command", WITH_COMBINERS)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_custom_combiner_is_imported_from_its_folder_at_scoring(
    run_with_own_combiner: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    elsewhere: bool,
):
    if elsewhere:
        (tmp_path / "own.py").write_text("raise SystemExit('this is another module')\n")
        monkeypatch.chdir(tmp_path)
    assert run_command(command[0], run_with_own_combiner, *command[1:]).code == 0


@pytest.mark.parametrize("command", WITH_COMBINERS)
def test_a_missing_combiner_is_refused(run_with_own_combiner: Path, tmp_path: Path, command: tuple[str, ...]):
    (run_with_own_combiner.parent / "own.py").unlink()
    ended = run_command(command[0], run_with_own_combiner, *command[1:])
    assert (ended.code, ended.out) == (2, "")
    assert "unknown combiner 'own.Half'" in ended.err
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("command", [("verify",), ("rescore", "--out", "again"), WITH_COMBINERS[-1]])
def test_a_combiner_of_another_version_is_refused(run_with_own_combiner: Path, command: tuple[str, ...]):
    (run_with_own_combiner.parent / "own.py").write_text(OWN_COMBINER.replace("* 0.5", "* 0.25"))
    ended = run_command(command[0], "run", *command[1:])
    assert (ended.code, ended.out) == (2, "")
    assert "was decided with combiner own.Half of version" in ended.err


def test_an_open_reader_blocks_no_command(scored_folder: Path, run: Command):
    with closing(sqlite3.connect(f"file:{scored_folder / 'run.sqlite'}?mode=ro", uri=True)) as reader:
        reader.execute("SELECT count(*) FROM records").fetchone()
        assert run("verify", scored_folder).code == 0
        assert run("close", scored_folder).code == 0
        assert run("erase", scored_folder, "--response", "door/a").code == 0


def test_a_bundle_is_distinguished_from_a_run(scored_folder: Path, run: Command, tmp_path: Path):
    run("export", scored_folder, "--to", "audit-bundle", "-o", tmp_path / "b.zip")
    for command in ("verify", "show"):
        ended = run(command, tmp_path / "b.zip")
        assert (ended.code, ended.out) == (2, "")
        assert (
            "b.zip: is a zip file and no run; if it is an audit bundle, unpack it and run `python3 verify.py"
            in ended.err
        )
