"""verify.py of a bundle: Python alone finds whatever was changed, and names it."""

import ast
import hashlib
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import HealthCheck, given, settings

from jurygraph.decision.group_result import RewardRow
from jurygraph.runs.integrity import offline_verifier
from jurygraph.runs.integrity.offline_verifier import ORDER, VerificationError, check_reward, is_valid_signature
from jurygraph.runs.store.chain import link_of
from jurygraph.runs.store.packing import pack_reward
from jurygraph.runs.workflows.erasure import erase
from jurygraph.schema import canonical_json, digest_of
from tests.examples import at_most
from tests.graphs.scenes import Scene, scenes
from tests.runs.integrity.test_bundle import bundle, rescored
from tests.runs.made import PLAIN, lines, score, seal, write_tasks

SOURCE = Path(offline_verifier.__file__)
COVERED = ("records.jsonl", "texts.jsonl", "config.yaml", "traces.jsonl")
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw()
Records = list[dict[str, Any]]


class Outcome:
    """What the verifier said, and its exit code."""

    def __init__(self, capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> None:
        self.code = 0
        try:
            offline_verifier.main([str(path), *options])
        except SystemExit as left:
            self.code = left.code
        self.out, self.err = capsys.readouterr()


Verify = Callable[..., Outcome]


@pytest.fixture
def verify(capsys: pytest.CaptureFixture[str]) -> Verify:
    return lambda path, *options: Outcome(capsys, path, *options)


def unpacked(folder: Path, at: Path) -> Path:
    """The bundle of a run, unpacked."""
    with zipfile.ZipFile(bundle(folder, at.with_suffix(".zip"))) as archive:
        archive.extractall(at)
    return at


def sealed(folder: Path, key_file: Path) -> Path:
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key_file.write_bytes(KEY.private_bytes(*form))
    seal(folder, key_file)
    return folder


@pytest.fixture
def opened(plain: Path, tmp_path: Path) -> Path:
    return unpacked(plain, tmp_path / "opened")


@pytest.fixture
def opened_sealed(plain: Path, tmp_path: Path) -> Path:
    return unpacked(sealed(plain, tmp_path / "key"), tmp_path / "opened")


@pytest.fixture(params=["plain", "rich", "erased", "rescored", "rescored and erased", "open"])
def any_run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Every kind of run, as a bundle's folder."""
    if request.param == "open":
        score(tmp_path / "run", write_tasks(tmp_path / "given", lines()), PLAIN, limit=2)
        return unpacked(tmp_path / "run", tmp_path / "opened")
    folder: Path = request.getfixturevalue("plain" if request.param == "plain" else "rich")
    made = rescored(folder, tmp_path / "other", "reward.tone=0.7") if "rescored" in request.param else folder
    if "erased" in request.param:
        erase(folder, "response", "t1/r0", "asked for")
    return unpacked(made, tmp_path / "opened")


class TestWhatHolds:
    def test_a_bundle_as_it_was_made(self, any_run: Path, verify: Verify) -> None:
        said = verify(any_run)
        assert (said.code, said.err) == (0, "")
        assert said.out.splitlines()[-2].startswith("not proved: that verdicts lead to the terms")

    def test_it_says_what_there_is(self, any_run: Path, verify: Verify, request: pytest.FixtureRequest) -> None:
        said = verify(any_run).out
        records = (any_run / "records.jsonl").read_text().splitlines()
        assert f"{len(records)} records, " in said
        assert json.loads(records[-1])["link"] in said
        assert ("not closed, so more may be missing" in said) == ('"kind":"close"' not in "".join(records[-2:]))
        kept = [(any_run / name) for name in ("records.jsonl", "base/records.jsonl") if (any_run / name).exists()]
        erased = [json.loads(line) for path in kept for line in path.read_text().splitlines() if '"erasure"' in line]
        ids = [one for record in erased for one in json.loads(record["body"])["ids"]]
        assert f"every text, but for {len(ids)} that were erased" in said

    def test_the_zip_file_serves_as_it_is(self, plain: Path, tmp_path: Path, verify: Verify) -> None:
        assert verify(bundle(plain, tmp_path / "bundle.zip")).code == 0

    def test_its_own_copy_needs_nothing_but_python(self, opened_sealed: Path, tmp_path: Path) -> None:
        shutil.move(opened_sealed, tmp_path / "far away")
        command = [sys.executable, "-I", "-S", "verify.py", "--signer", PUBLIC.hex()]
        done = subprocess.run(command, cwd=tmp_path / "far away", capture_output=True, text=True, check=True)
        assert f"the seal, by {PUBLIC.hex()}" in done.stdout

    def test_an_old_python_serves(self, opened_sealed: Path) -> None:
        environment = {**os.environ, "PYENV_VERSION": "3.8"}
        with suppress(FileNotFoundError):
            if not subprocess.run(["python3.8", "--version"], env=environment, capture_output=True).returncode:
                subprocess.run(["python3.8", "verify.py"], cwd=opened_sealed, env=environment, check=True)
                return
        pytest.skip("there is no Python 3.8 here")


class TestTheFileItself:
    def test_it_is_small_and_python_3_8_can_read_it(self) -> None:
        assert len(SOURCE.read_text().splitlines()) <= 360
        ast.parse(SOURCE.read_text(), feature_version=(3, 8))

    def test_it_imports_the_standard_library_alone(self) -> None:
        found = [
            node for node in ast.walk(ast.parse(SOURCE.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        named = {
            name.split(".")[0]
            for node in found
            for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
        }
        assert named <= sys.stdlib_module_names


class TestUse:
    def test_a_bundle_that_is_not_there_is_a_wrong_command(self, tmp_path: Path, verify: Verify) -> None:
        said = verify(tmp_path / "nowhere.zip")
        assert (said.code, "nowhere.zip: does not exist" in said.err) == (2, True)

    def test_so_is_an_option_that_there_is_none_of(self, opened: Path, verify: Verify) -> None:
        assert verify(opened, "--quick").code == 2

    @pytest.mark.parametrize("name", COVERED)
    def test_a_missing_file_is_named(self, opened: Path, verify: Verify, name: str) -> None:
        (opened / name).unlink()
        said = verify(opened)
        assert said.code == 5
        assert name in said.err

    def test_what_is_no_zip_file_differs(self, tmp_path: Path, verify: Verify) -> None:
        (tmp_path / "bundle.zip").write_bytes(b"PK no zip")
        said = verify(tmp_path / "bundle.zip")
        assert (said.code, said.err[:37]) == (5, "differs: bundle.zip: cannot be read (")


class TestArchive:
    @pytest.mark.parametrize("change", [lambda whole: whole + b"!", lambda whole: b"!" + whole], ids=["end", "start"])
    def test_bytes_behind_or_before_it_are_found(
        self, plain: Path, tmp_path: Path, verify: Verify, change: Callable[[bytes], bytes]
    ) -> None:
        path = bundle(plain, tmp_path / "bundle.zip")
        path.write_bytes(change(path.read_bytes()))
        assert verify(path).err == "differs: bundle.zip: has bytes before the archive or behind it\n"

    def test_so_is_a_comment(self, plain: Path, tmp_path: Path, verify: Verify) -> None:
        path = bundle(plain, tmp_path / "bundle.zip")
        with zipfile.ZipFile(path, "a") as archive:
            archive.comment = b"hidden in here"
        assert "has bytes before the archive or behind it" in verify(path).err

    @pytest.mark.parametrize("name", ["more.txt", "base/more.txt", "records.jsonl", "../up.txt", "base/base/seal.json"])
    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_so_is_a_file_that_is_not_of_a_bundle_or_there_twice(
        self, plain: Path, tmp_path: Path, verify: Verify, name: str
    ) -> None:
        path = bundle(plain, tmp_path / "bundle.zip")
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr(name, b"hidden in here")
        assert verify(path).err == "differs: bundle.zip: contains a foreign file, or a file twice\n"


@pytest.mark.parametrize("line", [{}, None, 0, [], {"id": 1}])
def test_a_line_behind_the_texts_is_found(opened: Path, verify: Verify, line: object) -> None:
    with (opened / "texts.jsonl").open("ab") as file:
        file.write(canonical_json(line) + b"\nhidden in here\n")
    assert verify(opened).code == 5


def spots(line: bytes, step: int) -> Iterator[int]:
    """Places in a line of JSON that lie in every value of it, in long ones every so many bytes."""
    for value in json.loads(line).values():
        written = canonical_json(value)
        start = line.index(b":" + written) + 1
        yield from range(start, start + len(written), max(1, min(step, len(written) // 2)))


def assert_found(verify: Verify, folder: Path, path: Path, at: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    said = verify(folder)
    path.write_bytes(whole)
    assert said.code == 5, (path, at, said.out)
    assert path.name in said.err, (path, at, said.err)


class TestChangedBytes:
    def test_in_every_field_of_every_kind_of_record(self, any_run: Path, verify: Verify) -> None:
        for path in sorted(any_run.rglob("records.jsonl")):
            start, seen = 0, set()
            for line in path.read_bytes().splitlines(keepends=True):
                if json.loads(line)["kind"] not in seen:
                    seen.add(json.loads(line)["kind"])
                    for at in spots(line, 97):
                        assert_found(verify, any_run, path, start + at)
                start += len(line)

    def test_in_every_field_of_a_text(self, any_run: Path, verify: Verify) -> None:
        for path in sorted(any_run.rglob("texts.jsonl")):
            start = 0
            for number, line in enumerate(path.read_bytes().splitlines(keepends=True)):
                if number % 17 == 0:
                    for at in spots(line, 97):
                        assert_found(verify, any_run, path, start + at)
                start += len(line)

    def test_in_config_yaml(self, opened: Path, verify: Verify) -> None:
        for at in range(0, (opened / "config.yaml").stat().st_size, 41):
            assert_found(verify, opened, opened / "config.yaml", at)

    def test_in_traces_jsonl_wherever_they_mean_something(self, opened: Path, verify: Verify) -> None:
        path = opened / "traces.jsonl"
        whole = path.read_bytes()
        before = [json.loads(line) for line in whole.splitlines()]
        for at in range(0, len(whole), 211):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            said = verify(opened)
            if said.code == 0:  # such as the seventeenth digit of a number
                assert [json.loads(line) for line in path.read_bytes().splitlines()] == before
            else:
                assert re.match("differs: opened: traces.jsonl: line ", said.err)

    def test_in_every_field_of_the_seal(self, opened_sealed: Path, verify: Verify) -> None:
        line = (opened_sealed / "seal.json").read_bytes()
        for at in spots(line, 60):
            assert_found(verify, opened_sealed, opened_sealed / "seal.json", at)

    @pytest.mark.parametrize("change", [str.upper, lambda signature: f" {signature}"])
    def test_a_signature_is_written_in_one_way(self, opened_sealed: Path, verify: Verify, change: Any) -> None:
        path = opened_sealed / "seal.json"
        content = json.loads(path.read_bytes())
        path.write_bytes(canonical_json({**content, "signature": change(content["signature"])}) + b"\n")
        assert "is not in the form of a seal" in verify(opened_sealed).err

    def test_in_the_zip_file(self, plain: Path, tmp_path: Path, verify: Verify) -> None:
        path = bundle(plain, tmp_path / "bundle.zip")
        whole = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            before = {name: archive.read(name) for name in COVERED}
        for at in range(0, len(whole), 151):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            said = verify(path)
            assert said.code in (0, 5)
            if said.code == 0:
                with zipfile.ZipFile(path) as archive:
                    assert {name: archive.read(name) for name in COVERED} == before


def forged(folder: Path, change: Callable[[Records], object]) -> None:
    """Change records as somebody would who can write them all anew: the chain holds again afterwards."""
    records = [json.loads(line) for line in (folder / "records.jsonl").read_bytes().splitlines()]
    for record in records:
        record["body"] = json.loads(record["body"])
    change(records)
    link, written = bytes(32), []
    for seq, record in enumerate(records, start=1):
        if record["kind"] == "close" and record["body"]["head"]:
            record["body"]["head"] = link.hex()
        body = json.dumps(record["body"], separators=(",", ":"))
        link = link_of(link, seq, record["kind"], record["key"], record["at"], body)
        written.append(canonical_json({**record, "seq": seq, "body": body, "link": link.hex()}) + b"\n")
    (folder / "records.jsonl").write_bytes(b"".join(written))


def of_kind(records: Records, kind: str) -> dict[str, Any]:
    """The last record of a kind."""
    return [record for record in records if record["kind"] == kind][-1]


def reward(records: Records) -> dict[str, Any]:
    found: dict[str, Any] = of_kind(records, "trace")["body"]["reward"]
    return found


def next_float(records: Records) -> None:
    reward(records)["value"] = math.nextafter(reward(records)["value"], 9.0)


def other_term(records: Records) -> None:
    reward(records)["terms"][0] = math.nextafter(reward(records)["terms"][0], 9.0) + 0.125


def other_weight(records: Records) -> None:
    of_kind(records, "decision")["body"]["specs"][0]["weight"] += 1.0


def added_at_the_end(kind: str, **body: Any) -> Callable[[Records], None]:
    return lambda records: records.append({"kind": kind, "key": "new", "at": 0, "body": body})


def twice(kind: str) -> Callable[[Records], None]:
    def change(records: Records) -> None:
        records.insert(records.index(of_kind(records, kind)), of_kind(records, kind))

    return change


class TestForgedRecords:
    """The chain holds, and yet they cannot be what jurygraph wrote."""

    @pytest.mark.parametrize(
        ("change", "wrong"),
        [
            (next_float, "reward is .*; its terms give"),
            (other_term, "reward is .*; its terms give"),
            (other_weight, "reward is .*; its terms give"),
            (lambda r: reward(r).update(status="failed"), "the failed reward is"),
            (lambda r: reward(r).update(value=None), "the ok reward is None"),
            (lambda r: reward(r).update(adjustments=[["clip", 9.0, reward(r)["value"]]]), "the reward before the clip"),
            (lambda r: reward(r)["terms"].pop(), "has not one term for each component"),
            (lambda r: reward(r)["terms"].append([0.5, 0.25]), "has not one term for each component"),
            (lambda r: reward(r)["terms"].__setitem__(0, [0.5, 0.25]), "cannot be read"),
            (lambda r: of_kind(r, "close")["body"].update(traces=0), "does not state the traces and the head"),
            (lambda r: of_kind(r, "close")["body"].update(head=""), "does not state the traces and the head"),
            (lambda r: of_kind(r, "close").update(key="x"), "does not state the traces and the head"),
            (lambda r: of_kind(r, "group")["body"].update(size=9), "is not of the group before it"),
            (lambda r: of_kind(r, "group")["body"].update(size=2), "is not of the group before it"),
            (lambda r: of_kind(r, "run").update(kind="survey"), "is not how a run begins"),
            (lambda r: of_kind(r, "survey").update(kind="comment"), "is of no kind that there is"),
            (lambda r: of_kind(r, "task")["body"].update(decision="none"), "cannot be read"),
            (lambda r: r.clear(), "texts.jsonl: line 1: no record speaks of it"),
            (twice("task"), "is after the end, or twice"),
            (twice("survey"), "is after the end, or twice"),
            (added_at_the_end("task"), "is after the end, or twice"),
            (added_at_the_end("erasure", ids=[5 << 20]), "was erased and is there"),
            (added_at_the_end("erasure", ids=[0]), "was erased and is there"),
            (lambda r: of_kind(r, "run")["body"].update(base={"run": "x"}), "base: .*texts.jsonl"),
        ],
    )
    def test_they_are_found(self, opened: Path, verify: Verify, change: Any, wrong: str) -> None:
        forged(opened, change)
        assert re.search(wrong, verify(opened).err)

    def test_a_run_without_an_end_is_right_as_far_as_it_goes(self, opened: Path, verify: Verify) -> None:
        forged(opened, lambda records: records.pop())
        assert "not closed, so more may be missing at the end" in verify(opened).out

    def test_a_run_of_nothing_is_none(self, opened: Path, verify: Verify) -> None:
        for name in ("records.jsonl", "texts.jsonl", "traces.jsonl"):
            (opened / name).write_bytes(b"")
        assert "records.jsonl: ends too early" in verify(opened).err

    def test_half_a_group_is_none(self, opened: Path, verify: Verify) -> None:
        texts = (opened / "texts.jsonl").read_bytes().splitlines(keepends=True)
        last = json.loads(texts[-1])["id"] >> 20
        (opened / "texts.jsonl").write_bytes(b"".join(one for one in texts if json.loads(one)["id"] >> 20 < last))
        forged(opened, lambda records: [records.pop() for _ in range(2)])
        assert "records.jsonl: ends too early" in verify(opened).err

    def test_whatever_was_forged_has_another_head(self, opened: Path, verify: Verify) -> None:
        head = json.loads((opened / "records.jsonl").read_text().splitlines()[-1])["link"]
        assert verify(opened, "--expect-head", head.upper()).code == 0
        forged(opened, lambda records: of_kind(records, "group").update(at=0))
        (opened / "traces.jsonl").write_bytes(b"".join(chained_again(opened)))
        assert verify(opened).code == 0
        said = verify(opened, "--expect-head", head)
        assert (said.code, f"do not have the head {head}" in said.err) == (5, True)


def with_digest(trace: dict[str, Any]) -> bytes:
    trace["digest"] = digest_of({k: v for k, v in trace.items() if k not in ("digest", "previous")})
    return json.dumps(trace).encode() + b"\n"


def traces(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "traces.jsonl").read_bytes().splitlines()]


def chained_again(folder: Path) -> Iterator[bytes]:
    """The traces with the links of a forged chain."""
    records = [json.loads(line) for line in (folder / "records.jsonl").read_bytes().splitlines()]
    previous = {after["key"]: before["link"] for before, after in pairwise(records)}
    return (with_digest({**trace, "previous": previous[trace["response_id"]]}) for trace in traces(folder))


class TestForgedTraces:
    """Every line has its own digest, and yet it does not show what the records say."""

    @pytest.mark.parametrize(
        "change",
        [
            lambda trace: trace.update(response_id="t0/r1"),
            lambda trace: trace.update(task_id="t1"),
            lambda trace: trace.update(previous="0" * 64),
            lambda trace: trace["reward"].update(value=0.123),
            lambda trace: trace["reward"].update(status="degraded"),
            lambda trace: trace["reward"]["terms"][0].update(contribution=0.123),
            lambda trace: trace["reward"]["terms"][0].update(name="other"),
            lambda trace: trace["reward"]["terms"].pop(),
            lambda trace: trace["reward"].update(adjustments=[{"name": "clip", "before": 1.0, "after": 0.5}]),
        ],
    )
    def test_another_reward_is_found(self, opened: Path, verify: Verify, change: Any) -> None:
        every = traces(opened)
        change(every[0])
        (opened / "traces.jsonl").write_bytes(b"".join(map(with_digest, every)))
        assert "traces.jsonl: line 1: does not match its record" in verify(opened).err

    @pytest.mark.parametrize(
        "change",
        [
            lambda trace: trace["verdicts"][0].update(score=0.123, met=True),
            lambda trace: trace["verdicts"][0].update(reason="I liked it."),
            lambda trace: trace["verdicts"][0].update(evaluator="somebody"),
            lambda trace: trace["verdicts"][0].update(about="t0/r1"),
            lambda trace: trace["verdicts"][0]["evidence"][0].update(quote="never written"),
            lambda trace: trace["verdicts"][0].update(evidence=[]),
            lambda trace: trace["verdicts"].pop(),
            lambda trace: trace["verdicts"].append(trace["verdicts"][0]),
            lambda trace: trace["calls"].append({"id": "made up", "latency": None}),
        ],
    )
    def test_so_is_another_verdict_or_call(self, opened_sealed: Path, verify: Verify, change: Any) -> None:
        every = traces(opened_sealed)
        change(every[0])
        (opened_sealed / "traces.jsonl").write_bytes(b"".join(map(with_digest, every)))
        said = verify(opened_sealed, "--signer", PUBLIC.hex())
        wrong = "traces.jsonl: line 1: has verdicts or calls that are not those of its record"
        assert (said.code, wrong in said.err) == (5, True), said.err

    def test_so_are_lines_that_are_missing_or_there_twice(self, opened: Path, verify: Verify) -> None:
        first, *others = (opened / "traces.jsonl").read_bytes().splitlines(keepends=True)
        (opened / "traces.jsonl").write_bytes(b"".join(others))
        assert "traces.jsonl: 1 traces are missing" in verify(opened).err
        (opened / "traces.jsonl").write_bytes(b"".join([first, first, *others]))
        assert "traces.jsonl: line 2: does not match its record" in verify(opened).err


class TestTexts:
    def test_a_missing_one_is_found(self, opened: Path, verify: Verify) -> None:
        kept = (opened / "texts.jsonl").read_bytes().splitlines(keepends=True)
        (opened / "texts.jsonl").write_bytes(b"".join(kept[:3] + kept[4:]))
        assert f"text {json.loads(kept[3])['id']} is missing and was not erased" in verify(opened).err

    def test_so_is_one_that_no_record_speaks_of(self, opened: Path, verify: Verify) -> None:
        for number in (7, 10**12):
            path = opened / "texts.jsonl"
            whole = path.read_bytes()
            extra = canonical_json({"id": number, "salt": "", "content": ""}) + b"\n"
            path.write_bytes(extra + whole if number == 7 else whole + extra)
            assert re.search("texts.jsonl: line [0-9]+: no record speaks of it", verify(opened).err)
            path.write_bytes(whole)

    def test_a_line_in_another_form_is_found(self, opened: Path, verify: Verify) -> None:
        for name in ("texts.jsonl", "records.jsonl"):
            whole = (opened / name).read_bytes()
            (opened / name).write_bytes(whole.replace(b'":', b'": ', 1))
            assert f"{name}: line 1: is not as jurygraph writes it" in verify(opened).err
            (opened / name).write_bytes(whole)


class TestBase:
    def test_it_must_be_the_run_that_is_referred_to(
        self, plain: Path, rich: Path, tmp_path: Path, verify: Verify
    ) -> None:
        made = unpacked(rescored(plain, tmp_path / "other"), tmp_path / "opened")
        shutil.rmtree(made / "base")
        shutil.copytree(unpacked(rich, tmp_path / "another"), made / "base")
        assert "base/ does not hold the run that this one refers to" in verify(made).err

    def test_it_must_be_there(self, plain: Path, tmp_path: Path, verify: Verify) -> None:
        made = unpacked(rescored(plain, tmp_path / "other"), tmp_path / "opened")
        shutil.rmtree(made / "base")
        assert "records.jsonl: line 1: base: texts.jsonl: cannot be read" in verify(made).err


class TestSeal:
    def test_the_signer_must_be_the_one_that_is_known(self, opened_sealed: Path, verify: Verify) -> None:
        assert verify(opened_sealed, "--signer", PUBLIC.hex().upper()).code == 0
        assert "seal.json: is by another key" in verify(opened_sealed, "--signer", "0" * 64).err
        (opened_sealed / "seal.json").unlink()
        assert "seal.json" in verify(opened_sealed, "--signer", PUBLIC.hex()).err
        assert verify(opened_sealed).code == 0, "without a signer nobody knows that there was one"

    def test_erasures_afterwards_break_neither_seal_nor_head(self, plain: Path, tmp_path: Path, verify: Verify) -> None:
        head = json.loads((sealed(plain, tmp_path / "key") / "seal.json").read_bytes())["head"]
        erase(plain, "response", "t1/r0", "asked for")
        made = unpacked(plain, tmp_path / "opened")
        assert verify(made, "--expect-head", head).code == 0

    def test_but_where_the_signer_is_known_they_must_be_signed(
        self, plain: Path, tmp_path: Path, verify: Verify
    ) -> None:
        sealed(plain, tmp_path / "key")
        erase(plain, "response", "t1/r0", "asked for")
        said = verify(unpacked(plain, tmp_path / "opened"), "--signer", PUBLIC.hex())
        assert (said.code, "does not cover the last 1 records, which are erasures" in said.err) == (5, True)
        sealed(plain, tmp_path / "key")
        assert verify(unpacked(plain, tmp_path / "again"), "--signer", PUBLIC.hex()).code == 0

    def test_so_must_those_of_the_run_that_is_referred_to(self, plain: Path, tmp_path: Path, verify: Verify) -> None:
        other = sealed(rescored(plain, tmp_path / "other"), tmp_path / "key")
        assert verify(unpacked(other, tmp_path / "first"), "--signer", PUBLIC.hex()).code == 0
        erase(plain, "response", "t1/r0", "asked for")
        said = verify(unpacked(other, tmp_path / "second"), "--signer", PUBLIC.hex())
        assert (said.code, "base/seal.json: cannot be read" in said.err) == (5, True)
        sealed(plain, tmp_path / "key")
        assert verify(unpacked(other, tmp_path / "third"), "--signer", PUBLIC.hex()).code == 0

    def test_anything_else_does(self, tmp_path: Path, verify: Verify) -> None:
        folder, tasks = tmp_path / "run", write_tasks(tmp_path / "given", lines())
        score(folder, tasks, PLAIN, limit=2)
        early = json.loads((unpacked(folder, tmp_path / "early") / "records.jsonl").read_text().splitlines()[-1])
        score(folder, tasks, PLAIN)
        made = unpacked(sealed(folder, tmp_path / "key"), tmp_path / "opened")
        assert verify(made, "--expect-head", early["link"]).code == 5
        content = {**json.loads((made / "seal.json").read_bytes()), "records": early["seq"], "head": early["link"]}
        del content["signature"]
        signature = KEY.sign(b"jurygraph seal\n" + canonical_json(content)).hex()
        (made / "seal.json").write_bytes(canonical_json({**content, "signature": signature}) + b"\n")
        assert "seal.json: is of other records" in verify(made).err


class TestArithmetic:
    @settings(max_examples=at_most(80), deadline=None, suppress_health_check=list(HealthCheck))
    @given(scenes())
    def test_every_reward_that_is_decided_is_what_its_terms_give(self, scene: Scene) -> None:
        decision = json.loads(scene.plan.decision.model_dump_json())
        for made in scene.rewards().values():
            stored = json.loads(json.dumps(pack_reward(RewardRow.from_reward(made))))
            value, status, terms, _ = check_reward(stored, decision["specs"])
            assert (value, status) == (made.value, made.status)
            assert terms == {term.name: term.contribution for term in made.terms}

    def test_the_order_is_that_of_the_names(self) -> None:
        specs = [{"name": name, "weight": 1.0} for name in ("c", "b", "a")]
        assert (0.1 + 0.2) + 0.3 != (0.3 + 0.2) + 0.1 == 0.6
        assert check_reward({"value": 0.6, "terms": [0.1, 0.2, 0.3]}, specs)[0] == 0.6
        with pytest.raises(VerificationError, match=r"the ok reward is 0\.6000000000000001; its terms give 0\.6$"):
            check_reward({"value": 0.1 + 0.2 + 0.3, "terms": [0.1, 0.2, 0.3]}, specs)


RFC_8032 = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]


LOW_ORDER = [
    bytes.fromhex(text)
    for text in (
        "0100000000000000000000000000000000000000000000000000000000000000",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0000000000000000000000000000000000000000000000000000000000000080",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    )
]
"""The eight points of order 1, 2, 4 and 8."""


def point_of(key: bytes) -> tuple[int, int]:
    found = offline_verifier.decode_point(key)
    assert found is not None
    return found


def encoded(point: tuple[int, int]) -> bytes:
    x, y = point
    return (y | (x & 1) << 255).to_bytes(32, "little")


def hashed(signature: bytes, key: bytes, message: bytes) -> int:
    return int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little")


def accepted(key: bytes, message: bytes, signature: bytes) -> bool:
    """What `cryptography` says."""
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


class TestSignatures:
    @pytest.mark.parametrize(("key", "message", "signature"), RFC_8032)
    def test_the_vectors_of_rfc_8032(self, key: str, message: str, signature: str) -> None:
        given = bytes.fromhex(key), bytes.fromhex(message), bytes.fromhex(signature)
        assert is_valid_signature(*given)
        assert not is_valid_signature(given[0], given[1] + b"!", given[2])

    def test_it_says_what_another_implementation_says(self) -> None:
        draw = random.Random(0)
        for _ in range(8):
            key, message = Ed25519PrivateKey.from_private_bytes(draw.randbytes(32)), draw.randbytes(draw.randrange(200))
            public, signature = key.public_key().public_bytes_raw(), bytearray(key.sign(message))
            assert is_valid_signature(public, message, bytes(signature))
            signature[draw.randrange(64)] ^= 1 << draw.randrange(8)
            assert not is_valid_signature(public, message, bytes(signature))
            assert not accepted(public, message, bytes(signature))

    def test_no_signature_is_written_in_two_ways(self) -> None:
        signature = KEY.sign(b"message")
        factor = int.from_bytes(signature[32:], "little") + ORDER
        again = signature[:32] + factor.to_bytes(32, "little")
        assert is_valid_signature(PUBLIC, b"message", signature)
        assert not is_valid_signature(PUBLIC, b"message", again)
        assert not accepted(PUBLIC, b"message", again)

    @pytest.mark.parametrize("cut", [0, 32, 63])
    def test_one_of_another_length_does_not_hold(self, cut: int) -> None:
        signature = KEY.sign(b"message")
        assert not is_valid_signature(PUBLIC, b"message", signature[:cut])
        assert not is_valid_signature(PUBLIC, b"message", signature + bytes(1))
        assert not is_valid_signature(PUBLIC[: cut // 2], b"message", signature)

    def test_a_key_or_a_start_of_low_order_is_none(self) -> None:
        """Of each key, signatures that hold by the equation alone were made without any secret."""
        for key in LOW_ORDER:
            public = offline_verifier.decode_point(key)
            assert public is not None
            forged = (b"\x58" + 31 * b"\x66") + (1).to_bytes(32, "little")  # R = B, S = 1: right where k A is neutral
            messages = (str(number).encode() for number in range(200))
            lucky = next(
                one for one in messages if offline_verifier.multiply_point(hashed(forged, key, one), public) == (0, 1)
            )
            assert not is_valid_signature(key, lucky, forged)
        assert accepted(LOW_ORDER[0], b"whatever", (b"\x58" + 31 * b"\x66") + (1).to_bytes(32, "little"))

    def test_a_key_with_a_part_of_low_order_is_none(self) -> None:
        mixed = offline_verifier.add_points(point_of(PUBLIC), point_of(LOW_ORDER[1]))
        signature = KEY.sign(b"message")
        assert not is_valid_signature(encoded(mixed), b"message", signature)

    @pytest.mark.parametrize("y", [2**255 - 19, 2**255 - 1, 2, 1 + 2**255], ids=["p", "more than p", "no point", "-0"])
    def test_what_encodes_no_point_is_no_key(self, y: int) -> None:
        assert not is_valid_signature(y.to_bytes(32, "little"), b"message", KEY.sign(b"message"))
