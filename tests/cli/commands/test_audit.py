"""`jurygraph verify`, `seal` and `close`: a run as evidence.

What counts as a change of a run, of its seal or of its head is tested in `tests/runs/integrity`, and from where the
modules of a config are imported in `tests/runs/test_own_modules.py`.
"""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

import jurygraph as jg
from tests.cli.conftest import Command, change_ledger, folder_contents
from tests.rows import all_rows
from tests.runs.sample_runs import Outage

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


def test_a_group_that_was_judged_again_is_counted_once(tmp_path: Path, run: Command):
    line = Outage()

    task = jg.Task(id="eggs", query="How far?")
    with jg.Jury(evaluators=[line.evaluator()], record=tmp_path / "run") as jury:
        jury.score(task, ["near", "far"], step=1)
        line.is_down = False
        jury.score(task, ["near", "far"], step=1)
        jury.score(task, ["near"], step=2)
    lines = run("verify", tmp_path / "run").out.splitlines()
    assert lines[1:3] == [
        "3 rewards recomputed from their verdicts, bit for bit",
        "2 earlier ones, of groups judged again since, are as they were written",
    ]
    for command in (["show"], ["export", "--to", "csv"]):
        name, *options = command
        ended = run(name, tmp_path / "run", *options)
        assert "2 groups of 1 tasks are in the whole run so far" in ended.err


def test_verify_prints_what_was_checked_and_writes_nothing(scored_folder: Path, run: Command):
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
        "sealed  no: a rewritten run would pass, unless its head is compared with one kept elsewhere",
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
        "replaced": 0,
        "deep": None,
    }
    assert folder_contents(scored_folder) == before


def test_deep_verification_prints_what_was_repeated(letters_folder: Path, run: Command):
    ended = run("verify", letters_folder, "--deep")
    assert ended.code == 0, ended.err
    assert (
        "repeated: 9 verdicts are the same, and the 4 verified quotations are in place"
        in ended.out.splitlines()
    )
    assert json.loads(run("verify", letters_folder, "--deep", "--json").out)["deep"] == {
        "recomputed": 9,
        "quotations": 4,
        "needing_model": 0,
        "transient_failures": 0,
        "tool_results": 0,
        "erased": 0,
        "depending_on_erased": 0,
    }


def test_deep_verification_says_where_it_looked_for_modules(
    letters_folder: Path, tmp_path: Path, run: Command
):
    letters_folder.rename(tmp_path / "alone")
    ended = run("verify", tmp_path / "alone", "--deep")
    assert (ended.code, ended.out) == (2, "")
    assert "'manners.echo'" in ended.err
    assert f"modules are imported from {tmp_path}, where they were when" in ended.err

    own = jg.evaluator(layer="check", name="own")(lambda task, response: 1.0)
    with jg.Jury(evaluators=[own]) as jury, jury.record(tmp_path / "objects"):
        jury.score(jg.Task(id="t", query="Write."), ["Dear Ann"])
    ended = run("verify", tmp_path / "objects", "--deep")
    assert (ended.code, ended.out) == (2, "")
    assert (
        "what a script gave as an object cannot be repeated here, and `verify` without" in ended.err
    )
    assert run("verify", tmp_path / "objects").code == 0


def test_close_prints_the_head_and_the_run_is_open_no_more(stopped_run: Path, run: Command):
    ended = run("close", stopped_run)
    assert (ended.code, ended.err) == (0, "")
    head = head_of(run, stopped_run)
    assert ended.out.splitlines() == [
        f"{stopped_run} is closed: 2 traces, 8 records",
        f"head {head}",
    ]
    assert json.loads(run("close", stopped_run, "--json").out) == {
        "run": str(stopped_run),
        "traces": 2,
        "records": 8,
        "head": head,
    }
    assert "scored so far" not in run("show", stopped_run).err, (
        "a closed run is not reported as stopped"
    )


def test_seal_signs_the_head_and_verify_checks_the_signer(
    scored_folder: Path, run: Command, tmp_path: Path
):
    signer = write_key(tmp_path / "mine.pem")
    seal = ("seal", scored_folder, "--key", tmp_path / "mine.pem")
    unsealed = run("verify", scored_folder, "--signer", signer)
    assert "it was never sealed (`jurygraph seal` does that), or lost its seal" in unsealed.err
    ended = run(*seal)
    assert (ended.code, ended.err) == (0, "")
    first, second = ended.out.splitlines()
    head = head_of(run, scored_folder)
    assert re.fullmatch(rf"{scored_folder} was sealed at \S+: 12 records, head {head}", first)
    assert second == f"by {signer}"
    assert json.loads(run(*seal, "--json").out) == json.loads(
        (scored_folder / "seal.json").read_text()
    )
    assert f"sealed  by {signer}" in run("verify", scored_folder).out
    assert run("verify", scored_folder, "--signer", signer).code == 0


def test_an_erasure_after_the_seal_says_that_it_is_not_signed(
    scored_folder: Path, run: Command, tmp_path: Path
):
    write_key(tmp_path / "mine.pem")
    assert run("seal", scored_folder, "--key", tmp_path / "mine.pem").code == 0
    ended = run("erase", scored_folder, "--response", "door/a")
    assert ended.code == 0, ended.err
    assert (
        f"the seal does not cover this erasure; `jurygraph seal {scored_folder} --key F` signs it"
        in ended.err
    )
    assert (
        "1 erasures after the seal are unsigned; run `seal` to sign"
        in run("verify", scored_folder).err
    )


CHANGED = "changed/run.sqlite: record 7 (trace 'door/a')"


@all_rows(
    "command, code, message",
    [
        (("verify", "changed"), 5, CHANGED),
        (("verify", "changed", "--deep"), 5, CHANGED),
        (("seal", "changed", "--key", "key.pem"), 5, CHANGED),
        (
            ("verify", "run", "--signer", "key.pem"),
            2,
            "key.pem: contains a private key, which only who signs should have",
        ),
        (("verify", "run", "--expect-head", "9f2c"), 2, "64 hexadecimal digits"),
        (("seal", "stopped", "--key", "key.pem"), 2, "end it with `jurygraph close stopped`"),
    ],
)
def test_what_cannot_be_verified_or_signed_is_one_line(
    scored_folder: Path,
    run: Command,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
    code: int,
    message: str,
):
    monkeypatch.chdir(scored_folder.parent)
    if not Path("changed").exists():
        write_key(Path("key.pem"))
        run("score", "tasks.jsonl", "--out", "stopped", "--limit", 1)
        shutil.copytree("run", "changed")
        change_ledger(
            Path("changed"),
            "UPDATE records SET body = replace(body, '0.5', '0.6') WHERE key = 'door/a'",
        )
    before = folder_contents(Path())
    ended = run(*command)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith("error: ")
    assert message in ended.err
    # of a changed record a second line says what was not checked after it
    assert ended.err.count("\n") == 1 + (code == 5)
    assert folder_contents(Path()) == before


@all_rows(
    "command",
    [
        ("report", "retold", "-o", "page.html"),
        ("report", "retold", "--brief", "-o", "page.html"),
        ("study", "certify", "retold"),
        ("export", "retold", "--to", "audit-bundle", "-o", "run.zip"),
        ("compare", "run", "retold"),
    ],
)
def test_nothing_is_handed_on_of_a_run_with_a_changed_text(
    scored_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
):
    """The texts are not in the chain itself: each record has their digests."""
    monkeypatch.chdir(scored_folder.parent)
    if not Path("retold").exists():
        shutil.copytree("run", "retold")
        change_ledger(
            Path("retold"),
            "UPDATE texts SET content = x'7b7d' WHERE id = (SELECT max(id) FROM texts)",
        )
    before = folder_contents(Path())
    ended = run(*command)
    assert (ended.code, ended.out) == (5, "")
    assert "differs from what was written" in ended.err
    assert folder_contents(Path()) == before
    verified = run("verify", "retold", "--json")
    assert (verified.code, "differs from what was written" in verified.err) == (5, True)
    found = json.loads(verified.out)
    assert found["differences"]["listed"][0]["kind"] == "reason"


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
    tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "planned").mkdir(exist_ok=True)
    for name in ("run.sqlite", "run.lock"):
        (tmp_path / "planned" / name).touch()
    write_key(tmp_path / "key.pem")
    before = sorted(tmp_path.rglob("*"))
    for name, state in (
        ("nothing", "does not exist; name the folder that `jurygraph score --out` made"),
        ("planned", "contains no run yet: planning was interrupted (run `jurygraph score` again)"),
    ):
        ended = run(command[0], name, *command[1:])
        assert (ended.code, ended.out) == (2, "")
        assert f"error: {name}: {state}" in ended.err
    assert sorted(tmp_path.rglob("*")) == before


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
    folders = {
        path.name for path in project.iterdir() if path.is_dir() and path.name != "__pycache__"
    }
    assert folders == {name, again, f"{name} branch"}


def test_the_printed_next_command_can_be_typed(
    project: Path, run: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(project)
    name = "-my $HOME run"
    hints = run("score", "tasks.jsonl", f"--out={name}").err.splitlines()
    hints += run("rescore", f"--out={name} again", "--", name).err.splitlines()
    commands = [
        shlex.split(hint.partition("jurygraph ")[2], comments=True)
        for hint in hints
        if "jurygraph " in hint
    ]
    assert [command[0] for command in commands] == [
        "show",
        "show",
        "explain",
        "study",
        "compare",
    ]
    for command in commands:
        ended = run(*command)
        assert ended.code == 0, (command, ended.err)
