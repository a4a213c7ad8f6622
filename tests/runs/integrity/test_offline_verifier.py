"""verify.py of a bundle finds and names every change with Python only."""

import ast
import json
import math
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, given, settings

from jurygraph.decision.decide import RewardRow
from jurygraph.runs.integrity import offline_verifier
from jurygraph.runs.integrity.offline_verifier import (
    TEXT_BITS,
    VerificationError,
    check_reward,
    digest_statement,
    locate_texts,
)
from jurygraph.runs.store.ledger import compute_record_link
from jurygraph.runs.store.packing import pack_reward
from jurygraph.runs.workflows.erasure import erase
from jurygraph.schema import canonical_json
from tests.examples import at_most
from tests.graphs.scenes import Scene, scenes
from tests.runs.integrity.test_bundle import bundle
from tests.runs.sample_runs import (
    SIMPLE_CONFIG,
    make_tasks,
    rescore_run,
    score,
    seal_run,
    write_tasks,
)

SOURCE = Path(offline_verifier.__file__)
COVERED = ("records.jsonl", "texts.jsonl", "config.yaml", "traces.jsonl")
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()
Records = list[dict[str, Any]]


class Outcome(NamedTuple):
    """The exit code and the output of the verifier."""

    code: object
    out: str
    err: str


Verify = Callable[..., Outcome]


@pytest.fixture
def verify(capsys: pytest.CaptureFixture[str]) -> Verify:
    def run(path: Path, *options: str) -> Outcome:
        code: object = 0
        try:
            offline_verifier.main([str(path), *options])
        except SystemExit as left:
            code = left.code
        return Outcome(code, *capsys.readouterr())

    return run


def unpack_bundle(folder: Path, at: Path) -> Path:
    """Export the bundle of a run and unpack it."""
    with zipfile.ZipFile(bundle(folder, at.with_suffix(".zip"))) as archive:
        archive.extractall(at)
    return at


def export_sealed_bundle(folder: Path, key_file: Path) -> Path:
    form = (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    key_file.write_bytes(KEY.private_bytes(*form))
    seal_run(folder, key_file)
    return folder


@pytest.fixture
def unpacked_bundle(plain: Path, tmp_path: Path) -> Path:
    return unpack_bundle(plain, tmp_path / "opened")


@pytest.fixture
def unpacked_sealed_bundle(plain: Path, tmp_path: Path) -> Path:
    return unpack_bundle(export_sealed_bundle(plain, tmp_path / "key"), tmp_path / "opened")


@pytest.fixture(params=["plain", "rich", "erased", "rescored", "rescored and erased", "open"])
def any_run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Every kind of run, as the folder of an unpacked bundle."""
    if request.param == "open":
        score(
            tmp_path / "run", write_tasks(tmp_path / "given", make_tasks()), SIMPLE_CONFIG, limit=2
        )
        return unpack_bundle(tmp_path / "run", tmp_path / "opened")
    folder: Path = request.getfixturevalue("plain" if request.param == "plain" else "rich")
    made = (
        rescore_run(folder, tmp_path / "other", "reward.tone=0.7")
        if "rescored" in request.param
        else folder
    )
    if "erased" in request.param:
        erase(folder, "response", "t1/r0", "asked for")
    return unpack_bundle(made, tmp_path / "opened")


class TestIntactBundle:
    def test_an_unchanged_bundle_passes(self, any_run: Path, verify: Verify) -> None:
        output = verify(any_run)
        assert (output.code, output.err) == (0, "")
        assert output.out.splitlines()[-3].startswith("not proved: that verdicts lead to the terms")

    def test_the_zip_file_can_be_checked_directly(
        self, plain: Path, tmp_path: Path, verify: Verify
    ) -> None:
        assert verify(bundle(plain, tmp_path / "bundle.zip")).code == 0

    @pytest.mark.landing
    def test_the_included_copy_needs_only_python(
        self, unpacked_sealed_bundle: Path, tmp_path: Path
    ) -> None:
        shutil.move(unpacked_sealed_bundle, tmp_path / "far away")
        command = [sys.executable, "-I", "-S", "verify.py"]
        done = subprocess.run(
            command, cwd=tmp_path / "far away", capture_output=True, text=True, check=True
        )
        assert f"by the key {PUBLIC.hex()}" in done.stdout

    @pytest.mark.landing
    def test_no_file_beside_it_is_run(self, unpacked_bundle: Path) -> None:
        for name in ("__future__", "json", "argparse", "pathlib", "os"):
            (unpacked_bundle / f"{name}.py").write_text(
                "print('holds: everything')\nraise SystemExit(0)\n"
            )
        command = [sys.executable, "verify.py"]
        done = subprocess.run(
            command, cwd=unpacked_bundle, capture_output=True, text=True, check=True
        )
        assert "everything" not in done.stdout

    def test_a_key_twice_in_a_trace_is_refused(self, unpacked_bundle: Path, verify: Verify) -> None:
        traces = unpacked_bundle / "traces.jsonl"
        traces.write_text(traces.read_text().replace('{"', '{"task_id": "other", "', 1))
        output = verify(unpacked_bundle)
        assert (output.code, output.err) == (
            5,
            "differs: opened: traces.jsonl: line 1: has a key twice\n",
        )

    @pytest.mark.parametrize("end", ["NaN}", "[" * 100_000])
    def test_a_response_may_begin_as_a_reason(self, end: str) -> None:
        assert digest_statement('{"reason":' + end) is None

    def test_its_syntax_is_that_of_python_3_8(self) -> None:
        ast.parse(SOURCE.read_text(), feature_version=(3, 8))


def test_a_missing_bundle_is_a_usage_error(tmp_path: Path, verify: Verify) -> None:
    output = verify(tmp_path / "nowhere.zip")
    assert (output.code, "nowhere.zip: does not exist" in output.err) == (2, True)
    (tmp_path / "bundle.zip").write_bytes(b"PK no zip")
    output = verify(tmp_path / "bundle.zip")
    assert (output.code, output.err[:37]) == (5, "differs: bundle.zip: cannot be read (")


@pytest.mark.parametrize("name", COVERED)
def test_a_missing_file_is_named(unpacked_bundle: Path, verify: Verify, name: str) -> None:
    (unpacked_bundle / name).unlink()
    output = verify(unpacked_bundle)
    assert (output.code, name in output.err) == (5, True)


BYTES_OF = pytest.mark.parametrize(
    "any_run",
    [
        "rescored and erased",
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in ("plain", "rich", "erased", "rescored", "open")
        ),
    ],
    indirect=True,
)
"""Bytes are changed in the kind of run with records of most kinds; in every other kind by `make test-exhaustive`."""


def changed_positions(line: bytes, step: int) -> Iterator[int]:
    """Yield positions within every value in a line of JSON; in long values every `step` bytes."""
    for value in json.loads(line).values():
        written = canonical_json(value)
        start = line.index(b":" + written) + 1
        yield from range(start, start + len(written), max(1, min(step, len(written) // 2)))


def assert_found(verify: Verify, folder: Path, path: Path, at: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    output = verify(folder)
    path.write_bytes(whole)
    assert output.code == 5, (path, at, output.out)
    assert path.name in output.err, (path, at, output.err)


class TestChangedBytes:
    @pytest.mark.landing
    @BYTES_OF
    def test_a_changed_record_field_is_found(self, any_run: Path, verify: Verify) -> None:
        for path in sorted(any_run.rglob("records.jsonl")):
            start, seen = 0, set()
            for line in path.read_bytes().splitlines(keepends=True):
                if json.loads(line)["kind"] not in seen:
                    seen.add(json.loads(line)["kind"])
                    for at in changed_positions(line, 97):
                        assert_found(verify, any_run, path, start + at)
                start += len(line)

    @BYTES_OF
    def test_a_changed_text_field_is_found(self, any_run: Path, verify: Verify) -> None:
        for path in sorted(any_run.rglob("texts.jsonl")):
            start = 0
            for number, line in enumerate(path.read_bytes().splitlines(keepends=True)):
                if number % 17 == 0:
                    for at in changed_positions(line, 97):
                        assert_found(verify, any_run, path, start + at)
                start += len(line)

    def test_a_changed_config_is_found(self, unpacked_bundle: Path, verify: Verify) -> None:
        for at in range(0, (unpacked_bundle / "config.yaml").stat().st_size, 41):
            assert_found(verify, unpacked_bundle, unpacked_bundle / "config.yaml", at)


def rewrite_records(folder: Path, change: Callable[[Records], object]) -> None:
    """Change records and recompute the chain, as a forger with write access would."""
    records = [json.loads(line) for line in (folder / "records.jsonl").read_bytes().splitlines()]
    for record in records:
        record["body"] = json.loads(record["body"])
    change(records)
    link, written = bytes(32), []
    for seq, record in enumerate(records, start=1):
        if record["kind"] == "close" and record["body"]["head"]:
            record["body"]["head"] = link.hex()
        body = json.dumps(record["body"], separators=(",", ":"))
        link = compute_record_link(link, seq, record["kind"], record["key"], record["at"], body)
        written.append(
            canonical_json({**record, "seq": seq, "body": body, "link": link.hex()}) + b"\n"
        )
    (folder / "records.jsonl").write_bytes(b"".join(written))


def last_record(records: Records, kind: str) -> dict[str, Any]:
    """Return the last record of a kind."""
    return [record for record in records if record["kind"] == kind][-1]


def reward(records: Records) -> dict[str, Any]:
    found: dict[str, Any] = last_record(records, "trace")["body"]["reward"]
    return found


def change_reward_by_one_ulp(records: Records) -> None:
    reward(records)["value"] = math.nextafter(reward(records)["value"], 9.0)


def change_term(records: Records) -> None:
    reward(records)["terms"][0] = math.nextafter(reward(records)["terms"][0], 9.0) + 0.125


def change_weight(records: Records) -> None:
    last_record(records, "decision")["body"]["specs"][0]["weight"] += 1.0


def append_record(kind: str, **body: Any) -> Callable[[Records], None]:
    return lambda records: records.append({"kind": kind, "key": "new", "at": 0, "body": body})


def repeat_record(kind: str) -> Callable[[Records], None]:
    def change(records: Records) -> None:
        records.insert(records.index(last_record(records, kind)), last_record(records, kind))

    return change


class TestForgedRecords:
    """Forgeries with a valid chain that jurygraph cannot have written."""

    @pytest.mark.parametrize(
        ("change", "wrong"),
        [
            (change_reward_by_one_ulp, "reward is .*; its terms give"),
            (change_term, "reward is .*; its terms give"),
            (change_weight, "reward is .*; its terms give"),
            (lambda r: reward(r).update(status="failed"), "the failed reward is"),
            (lambda r: reward(r).update(value=None), "the ok reward is None"),
            (
                lambda r: reward(r).update(adjustments=[["clip", 9.0, reward(r)["value"]]]),
                "the reward before the clip",
            ),
            (
                lambda r: reward(r)["terms"].append([0.5, 0.25]),
                "has not one term for each component",
            ),
            (lambda r: reward(r)["terms"].__setitem__(0, [0.5, 0.25]), "cannot be read"),
            (
                lambda r: last_record(r, "close")["body"].update(traces=0),
                "does not state the traces and the head",
            ),
            (
                lambda r: last_record(r, "group")["body"].update(size=2),
                "is not of the group before it",
            ),
            (lambda r: last_record(r, "run").update(kind="survey"), "has no business there"),
            (lambda r: last_record(r, "survey").update(kind="comment"), "has no business there"),
            (lambda r: last_record(r, "task")["body"].update(decision="none"), "cannot be read"),
            (lambda r: r.clear(), r"end too early, or texts were added: after record 0 "),
            (repeat_record("task"), "is after the end, or twice"),
            (append_record("task"), "is after the end, or twice"),
            (append_record("erasure", ids=[5 << 20]), "was erased and is there"),
            (
                lambda r: last_record(r, "run")["body"].update(base={"run": "x"}),
                "base: .*records.jsonl",
            ),
        ],
    )
    def test_forged_records_are_found(
        self, unpacked_bundle: Path, verify: Verify, change: Any, wrong: str
    ) -> None:
        rewrite_records(unpacked_bundle, change)
        assert re.search(wrong, verify(unpacked_bundle).err)

    def test_a_run_without_records_fails(self, unpacked_bundle: Path, verify: Verify) -> None:
        for name in ("records.jsonl", "texts.jsonl", "traces.jsonl"):
            (unpacked_bundle / name).write_bytes(b"")
        assert "the records end too early" in verify(unpacked_bundle).err

    def test_a_forged_run_has_another_head(self, unpacked_bundle: Path, verify: Verify) -> None:
        head = json.loads((unpacked_bundle / "records.jsonl").read_text().splitlines()[-1])["link"]
        assert verify(unpacked_bundle, "--expect-head", head.upper()).code == 0
        mistyped = verify(unpacked_bundle, "--expect-head", head[:-1])
        assert (mistyped.code, "give its 64 hexadecimal digits" in mistyped.err) == (2, True)
        rewrite_records(unpacked_bundle, lambda records: last_record(records, "group").update(at=0))
        assert verify(unpacked_bundle).code == 0
        output = verify(unpacked_bundle, "--expect-head", head)
        assert (output.code, f"do not have the head {head}" in output.err) == (5, True)


class TestForgedTraces:
    """Forged lines that do not match the records."""

    @pytest.mark.parametrize(
        "change",
        [
            lambda trace: trace.update(response_id="t0/r1"),
            lambda trace: trace.update(task_id="t1"),
            lambda trace: trace["reward"].update(value=0.123),
            lambda trace: trace["reward"].update(status="degraded"),
            lambda trace: trace["reward"].update(coverage=0.5),
            lambda trace: trace["reward"]["terms"][0].update(contribution=0.123),
            lambda trace: trace["reward"]["terms"][0].update(name="other"),
            lambda trace: trace["reward"]["terms"].pop(),
        ],
    )
    def test_a_changed_reward_is_found(
        self, unpacked_bundle: Path, verify: Verify, change: Any
    ) -> None:
        path = unpacked_bundle / "traces.jsonl"
        every = [json.loads(line) for line in path.read_bytes().splitlines()]
        change(every[0])
        path.write_text("".join(json.dumps(trace) + "\n" for trace in every))
        assert "traces.jsonl: line 1: does not match its record" in verify(unpacked_bundle).err

    @pytest.mark.parametrize(
        ("changed", "change"),
        [
            ("another agent", lambda trace: trace.update(agent="the better one")),
            ("other labels, reasons", lambda trace: trace["labels"].update(step=7)),
            ("other scores", lambda trace: trace["verdicts"][0].update(score=0.123)),
            ("other scores", lambda trace: trace["verdicts"].pop(0)),
            (
                "other labels, reasons",
                lambda trace: trace["verdicts"][0].update(reason="It is good."),
            ),
        ],
    )
    def test_a_trace_that_shows_something_else_is_found(
        self, unpacked_bundle: Path, verify: Verify, changed: str, change: Any
    ) -> None:
        path = unpacked_bundle / "traces.jsonl"
        every = [json.loads(line) for line in path.read_bytes().splitlines()]
        change(every[0])
        path.write_text("".join(json.dumps(trace) + "\n" for trace in every))
        said = verify(unpacked_bundle).err
        assert f"traces.jsonl: line 1: has {changed}" in said

    def test_missing_and_repeated_lines_are_found(
        self, unpacked_bundle: Path, verify: Verify
    ) -> None:
        first, *others = (unpacked_bundle / "traces.jsonl").read_bytes().splitlines(keepends=True)
        (unpacked_bundle / "traces.jsonl").write_bytes(b"".join(others))
        assert "traces.jsonl: 1 traces are missing" in verify(unpacked_bundle).err
        (unpacked_bundle / "traces.jsonl").write_bytes(b"".join([first, first, *others]))
        assert "traces.jsonl: line 2: does not match its record" in verify(unpacked_bundle).err


def test_missing_and_added_texts_are_found(unpacked_bundle: Path, verify: Verify) -> None:
    path = unpacked_bundle / "texts.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3] + lines[4:]))
    assert "record 6: task 't2': is missing and was not erased" in verify(unpacked_bundle).err
    path.write_bytes(b"".join(lines) + canonical_json({"id": 7, "salt": "", "content": ""}) + b"\n")
    assert "texts were added: after record 24 some are left" in verify(unpacked_bundle).err
    # each changed record is named, and a line that cannot be read is the last
    records_path = unpacked_bundle / "records.jsonl"
    record_lines = records_path.read_bytes().splitlines(keepends=True)
    for index in (3, 6):
        record_lines[index] = record_lines[index].replace(b'"at":1', b'"at":2')
    records_path.write_bytes(b"".join([*record_lines[:9], b"{}\n", *record_lines[9:]]))
    said = verify(unpacked_bundle).err
    found = re.findall(r"record (\d+) \(\w+ '\S+'\): differs|line (\d+): is not as", said)
    assert found == [("4", ""), ("7", ""), ("", "10")]
    assert "changed records: 3; not checked: texts after the first of them" in said
    # not of the response whose record happens to hold the words of the task's id
    bodies = {
        "survey": {"questions": []},
        "task": {"survey": "s"},
        "group": {},
        "trace": {"x": "1"},
    }
    records = [
        (number, kind, "1s"[kind == "survey"], 0, json.dumps(body), b"")
        for number, (kind, body) in enumerate(bodies.items())
    ]
    task, group = locate_texts(records, [1 << TEXT_BITS, 2 << TEXT_BITS])
    assert (task["task"], task["response"], group["task"]) == ("1", None, "1")


class TestBase:
    def test_the_base_must_be_the_run_that_is_referred_to(
        self, plain: Path, rich: Path, tmp_path: Path, verify: Verify
    ) -> None:
        made = unpack_bundle(rescore_run(plain, tmp_path / "other"), tmp_path / "opened")
        shutil.rmtree(made / "base")
        shutil.copytree(unpack_bundle(rich, tmp_path / "another"), made / "base")
        assert "base: is not the run that this one refers to" in verify(made).err


def sign_records(folder: Path, **changed: Any) -> None:
    """Sign other content of the seal with the key of the run."""
    first, _, text = (folder / "seal.txt").read_bytes().partition(b"\n")
    signed = first + b"\n" + canonical_json({**json.loads(text), **changed})
    (folder / "seal.txt").write_bytes(signed)
    (folder / "seal.sig").write_bytes(KEY.sign(signed))


class TestSeal:
    @pytest.mark.landing
    def test_the_named_command_checks_the_signature(
        self, unpacked_sealed_bundle: Path, verify: Verify, tmp_path: Path
    ) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("there is no openssl here")
        (line,) = (
            line for line in verify(unpacked_sealed_bundle).out.splitlines() if "openssl" in line
        )
        command = "openssl" + line.partition("openssl")[2]
        for key, is_valid in ((KEY, True), (Ed25519PrivateKey.generate(), False)):
            form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
            (unpacked_sealed_bundle / "PUBLIC.pem").write_bytes(
                key.public_key().public_bytes(*form)
            )
            done = subprocess.run(
                command.split(), cwd=unpacked_sealed_bundle, capture_output=True, check=False
            )
            assert (done.returncode == 0) == is_valid, done.stderr

    def test_later_erasures_are_counted(self, plain: Path, tmp_path: Path, verify: Verify) -> None:
        other = export_sealed_bundle(rescore_run(plain, tmp_path / "other"), tmp_path / "key")
        head = json.loads(
            (export_sealed_bundle(plain, tmp_path / "key") / "seal.json").read_bytes()
        )["head"]
        erase(plain, "response", "t1/r0", "asked for")
        for number, folder in enumerate((plain, other)):
            made = unpack_bundle(folder, tmp_path / f"opened-{number}")
            assert "; 1 later erasures are not signed" in verify(made).out
        assert verify(tmp_path / "opened-0", "--expect-head", head).code == 0
        export_sealed_bundle(plain, tmp_path / "key")
        assert "not signed" not in verify(unpack_bundle(plain, tmp_path / "again")).out

    def test_the_seal_must_be_of_these_records(self, tmp_path: Path, verify: Verify) -> None:
        folder, tasks = tmp_path / "run", write_tasks(tmp_path / "given", make_tasks())
        score(folder, tasks, SIMPLE_CONFIG, limit=2)
        early = json.loads(
            (unpack_bundle(folder, tmp_path / "early") / "records.jsonl")
            .read_text()
            .splitlines()[-1]
        )
        score(folder, tasks, SIMPLE_CONFIG)
        made = unpack_bundle(export_sealed_bundle(folder, tmp_path / "key"), tmp_path / "opened")
        assert verify(made, "--expect-head", early["link"]).code == 5
        kept = (made / "seal.txt").read_bytes()
        for changed, wrong in (
            ({"records": early["seq"], "head": early["link"]}, "is of other records"),
            ({"run": "another"}, "is of another run"),
            ({"version": 2}, "is not in the form of a seal"),
        ):
            sign_records(made, **changed)
            assert f"seal.txt: {wrong}" in verify(made).err
            (made / "seal.txt").write_bytes(kept)


class TestArithmetic:
    @settings(max_examples=at_most(80), deadline=None, suppress_health_check=list(HealthCheck))
    @given(scenes())
    def test_every_reward_follows_from_its_terms(self, scene: Scene) -> None:
        decision = json.loads(scene.plan.decision.model_dump_json())
        for made in scene.rewards().values():
            stored = json.loads(json.dumps(pack_reward(RewardRow.from_reward(made))))
            value, status, _, terms = check_reward(stored, decision["specs"])
            assert (value, status) == (made.value, made.status)
            assert terms == {term.name: term.contribution for term in made.terms}

    def test_terms_are_added_in_the_order_of_their_names(self) -> None:
        specs = [{"name": name, "weight": 1.0} for name in ("c", "b", "a")]
        assert (0.1 + 0.2) + 0.3 != (0.3 + 0.2) + 0.1 == 0.6
        assert check_reward({"value": 0.6, "terms": [0.1, 0.2, 0.3]}, specs)[0] == 0.6
        with pytest.raises(
            VerificationError, match=r"the ok reward is 0\.6000000000000001; its terms give 0\.6$"
        ):
            check_reward({"value": 0.1 + 0.2 + 0.3, "terms": [0.1, 0.2, 0.3]}, specs)
