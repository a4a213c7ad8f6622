"""`jurygraph verify`, `seal` and `close`: a run as evidence.

What counts as a change of a run, of its seal or of its head is tested in `tests/runs/integrity`.
"""

import json
import re
import shlex
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.cli.conftest import Command, change_ledger, folder_contents, read_calls, run_command
from tests.rows import all_rows

HEAD = re.compile(r"[0-9a-f]{64}")


def head_of(run: Command, folder: Path) -> str:
    head: str = json.loads(run("verify", folder, "--json").out)["head"]
    return head


def write_key(path: Path) -> str:
    """Write a private key and return the public one in hexadecimal."""
    key = Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return key.public_key().public_bytes_raw().hex()


@pytest.fixture
def stopped_run(project: Path, run: Command) -> Path:
    """A run that scored one of its two tasks."""
    run("score", project / "tasks.jsonl", "--out", project / "run", "--limit", 1)
    return project / "run"


EXAMPLES = "verify seal close erase rescore compare score export show explain init doctor graph schema".split()


@all_rows("name", EXAMPLES)
def test_help_has_an_example_of_the_command(run: Command, name: str):
    ended = run(name, "--help")
    assert ended.code == 0
    assert re.search(rf"Example:\n +jurygraph {name} ", ended.out)


class TestVerify:
    def test_verify_prints_what_was_checked_and_writes_nothing(self, scored_folder: Path, run: Command):
        (scored_folder / "notes.txt").write_text("mine")
        before = folder_contents(scored_folder)
        ended = run("verify", scored_folder)
        assert (ended.code, ended.err) == (0, "")
        result = json.loads(run("verify", scored_folder, "--json").out)
        head = result.pop("head")
        assert HEAD.fullmatch(head)
        assert ended.out.splitlines() == [
            f"{scored_folder} is unchanged: 12 records, 13 texts, 0 erased",
            "4 rewards recomputed from their verdicts, bit for bit",
            f"head    {head}",
            "sealed  no",
        ]
        assert result == {
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
        assert folder_contents(scored_folder) == before

    def test_a_change_is_named_in_one_line_with_exit_code_5(self, scored_folder: Path, run: Command):
        change_ledger(scored_folder, "UPDATE records SET body = replace(body, '0.5', '0.6') WHERE key = 'door/a'")
        for form in ((), ("--json",), ("--deep",)):
            ended = run("verify", scored_folder, *form)
            assert (ended.code, ended.out) == (5, "")
            assert ended.err.startswith(f"error: {scored_folder / 'run.sqlite'}")
            assert "record 7 (trace 'door/a')" in ended.err
            assert ended.err.count("\n") == 1

    def test_an_invalid_head_is_refused(self, scored_once: Path, run: Command):
        ended = run("verify", scored_once, "--expect-head", "9f2c")
        assert (ended.code, ended.out) == (2, "")
        assert "64 hexadecimal digits" in ended.err


class TestDeep:
    def test_deep_verification_repeats_every_verdict_and_checks_every_quotation(
        self, letters_folder: Path, run: Command
    ):
        read_calls(letters_folder.parent)
        ended = run("verify", letters_folder, "--deep")
        assert ended.code == 0, ended.err
        assert "repeated: 9 verdicts are the same, 4 quotations are where they were recorded" in ended.out.splitlines()
        assert len(read_calls(letters_folder.parent)) == 9
        assert json.loads(run("verify", letters_folder, "--deep", "--json").out)["deep"] == {
            "recomputed": 9,
            "quotations": 4,
            "needing_model": 0,
            "transient_failures": 0,
            "erased": 0,
        }

    def test_modules_are_imported_from_their_folder_at_scoring(
        self, letters_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "manners.py").write_text("raise SystemExit('this is another module')\n")
        monkeypatch.chdir(tmp_path)
        assert run_command("verify", letters_folder, "--deep").code == 0
        (tmp_path / "manners.py").unlink()
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


def test_close_prints_the_head_and_the_run_is_open_no_more(stopped_run: Path, project: Path, run: Command):
    ended = run("close", stopped_run)
    assert (ended.code, ended.err) == (0, "")
    head = head_of(run, stopped_run)
    assert ended.out.splitlines() == [f"{stopped_run} is closed: 2 traces, 8 records", f"head {head}"]
    before = folder_contents(stopped_run)
    assert run("close", stopped_run) == ended, "closing twice changes nothing"
    assert json.loads(run("close", stopped_run, "--json").out) == {
        "run": str(stopped_run),
        "traces": 2,
        "records": 8,
        "head": head,
    }
    assert "scored so far" not in run("show", stopped_run).err, "a closed run is not reported as stopped"
    assert folder_contents(stopped_run) == before


class TestSeal:
    def test_seal_signs_the_head_and_verify_checks_the_signer(self, scored_folder: Path, run: Command, tmp_path: Path):
        signer = write_key(tmp_path / "mine.pem")
        other = write_key(tmp_path / "other.pem")
        ended = run("seal", scored_folder, "--key", tmp_path / "mine.pem")
        assert (ended.code, ended.err) == (0, "")
        first, second = ended.out.splitlines()
        head = head_of(run, scored_folder)
        assert re.fullmatch(rf"{scored_folder} was sealed at \S+: 12 records, head {head}", first)
        assert second == f"by {signer}"
        given = json.loads(run("seal", scored_folder, "--key", tmp_path / "mine.pem", "--json").out)
        assert given == json.loads((scored_folder / "seal.json").read_text())
        assert f"sealed  by {signer}" in run("verify", scored_folder).out
        assert run("verify", scored_folder, "--signer", tmp_path / "mine.pem").code == 0
        refused = run("verify", scored_folder, "--signer", other)
        assert (refused.code, refused.out) == (5, "")
        assert f"{scored_folder / 'seal.json'}: is by the key {signer}, not by" in refused.err

    def test_an_erasure_after_the_seal_says_that_it_is_not_signed(
        self, scored_folder: Path, run: Command, tmp_path: Path
    ):
        write_key(tmp_path / "mine.pem")
        assert run("seal", scored_folder, "--key", tmp_path / "mine.pem").code == 0
        ended = run("erase", scored_folder, "--response", "door/a")
        assert ended.code == 0, ended.err
        assert f"the seal does not cover this erasure; `jurygraph seal {scored_folder} --key F` signs it" in ended.err
        assert run("seal", scored_folder, "--key", tmp_path / "mine.pem").code == 0
        assert run("verify", scored_folder, "--signer", tmp_path / "mine.pem").code == 0

    def test_an_open_run_is_not_sealed(self, stopped_run: Path, run: Command, tmp_path: Path):
        write_key(tmp_path / "mine.pem")
        ended = run("seal", stopped_run, "--key", tmp_path / "mine.pem")
        assert (ended.code, ended.out) == (2, "")
        assert f"end it with `jurygraph close {stopped_run}`" in ended.err
        assert not (stopped_run / "seal.json").exists()


NO_RUN = [
    ("verify",),
    ("verify", "--deep"),
    ("close",),
    ("show",),
    ("explain", "--response", "x"),
    ("seal", "--key", "key.pem"),
    ("erase", "--response", "door/a"),
    ("rescore", "--out", "again"),
    ("export", "--to", "parquet", "-o", "x.parquet"),
    ("export", "--to", "audit-bundle", "-o", "x.zip"),
]


@all_rows("command", NO_RUN)
def test_a_folder_that_is_not_a_run_is_refused(
    scored_once: Path, tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir(exist_ok=True)
    Path("file").write_text("mine")
    write_key(Path("key.pem"))
    run("export", scored_once, "--to", "audit-bundle", "-o", "b.zip")
    before = sorted(tmp_path.rglob("*"))
    for name, state in (
        ("nothing", "does not exist; name the folder that `jurygraph score --out` made"),
        ("empty", "contains no run; name the folder that `jurygraph score --out` made"),
        ("file", "is not a folder; name the folder that `jurygraph score --out` made"),
        ("b.zip", "is a zip file and no run; if it is an audit bundle, unpack it and run `python3 verify.py"),
    ):
        ended = run(command[0], name, *command[1:])
        assert (ended.code, ended.out) == (2, "")
        assert f"error: {name}: {state}" in ended.err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_stopped_while_planning_is_refused(
    scored_folder: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    write_key(Path("key.pem"))
    for table in ("records", "texts"):
        change_ledger(scored_folder, f"DELETE FROM {table}")
    for command in NO_RUN:
        ended = run(command[0], scored_folder, *command[1:])
        assert (ended.code, ended.out) == (2, "")
        assert "contains no run yet" in ended.err
    assert not Path("again").exists()


@pytest.mark.landing
def test_a_run_can_have_any_name(project: Path, run: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(project)
    write_key(project / "key.pem")
    name = "-run\n\x1b[31m\x07\u202ered %41?mode=rwc#x 'rün\"$HOME"
    again = f"{name} again"
    assert run("score", "tasks.jsonl", f"--out={name}").code == 0
    commands = [
        ("show", "--", name),
        ("verify", "--deep", "--", name),
        ("rescore", f"--out={again}", "--", name),
        ("verify", "--deep", "--", again),
        ("compare", "--", name, again),
        ("seal", "--key", "key.pem", "--", name),
        ("close", "--", name),
        ("score", "tasks.jsonl", f"--out={name} branch", f"--branch={name}"),
        ("erase", "--response", "door/a", "--", name),
        ("export", "--to", "csv", "-o", "x.csv", "--", again),
        ("export", "--to", "parquet", "-o", "x.parquet", "--", name),
        ("erase", "--response", "door/x", "--", name),
    ]
    for command in commands:
        ended = run(*command)
        assert ended.code == (2 if "door/x" in command else 0), ended.err
        assert not set("\x1b\x07\u202e") & set(ended.out + ended.err), command
    folders = {path.name for path in project.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert folders == {name, again, f"{name} branch"}


def test_the_printed_next_command_can_be_typed(project: Path, run: Command, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(project)
    name = "-my $HOME run"
    hints = run("score", "tasks.jsonl", f"--out={name}").err.splitlines()
    hints += run("rescore", f"--out={name} again", "--", name).err.splitlines()
    commands = [shlex.split(hint.partition("jurygraph ")[2]) for hint in hints if "jurygraph " in hint]
    assert [command[0] for command in commands] == ["show", "show", "explain", "compare"]
    for command in commands:
        ended = run(*command)
        assert ended.code == 0, (command, ended.err)


OWN_COMBINER = """\
from jurygraph.decision.combiners import Mean
from jurygraph.decision.combiners import Component


class Half(Mean):
    name = "half"

    def combine(self, cells, params):
        whole = super().combine(cells, params)
        return Component(whole.value * 0.5, whole.present, whole.parts)
"""


class TestCustomCombiner:
    @pytest.fixture
    def run_with_own_combiner(self, project: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A run whose rewards were computed by a custom combiner in the folder of the config."""
        (project / "own.py").write_text(OWN_COMBINER)
        component = "{combiner: own.Half, inputs: {polite: manners.polite}}"
        config = f"evaluators: [manners.polite]\ncomponents: {{half: {component}}}\nreward: {{half: 1.0}}\n"
        (project / "jury.yaml").write_text(config)
        monkeypatch.chdir(project)
        assert run("score", "tasks.jsonl", "--out", "run").code == 0
        return project / "run"

    COMMANDS = (
        ("verify",),
        ("rescore", "--out", "again"),
        ("explain", "--response", "salt/a", "--what-if"),
    )

    def test_it_is_imported_from_its_folder_at_scoring(
        self, run_with_own_combiner: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        (tmp_path / "own.py").write_text("raise SystemExit('this is another module')\n")
        monkeypatch.chdir(tmp_path)
        for command in self.COMMANDS:
            ended = run_command(command[0], run_with_own_combiner, *command[1:])
            assert ended.code == 0, ended.err

    def test_a_missing_or_changed_one_is_refused(self, run_with_own_combiner: Path):
        source = run_with_own_combiner.parent / "own.py"
        source.unlink()
        for command in self.COMMANDS:
            ended = run_command(command[0], run_with_own_combiner, *command[1:])
            assert (ended.code, ended.out) == (2, "")
            assert "unknown combiner 'own.Half'" in ended.err
        source.write_text(OWN_COMBINER.replace("* 0.5", "* 0.25"))
        for command in self.COMMANDS:
            ended = run_command(command[0], run_with_own_combiner, *command[1:])
            assert (ended.code, ended.out) == (2, "")
            assert "was decided with combiner own.Half of version" in ended.err
        assert not Path("again").exists()
