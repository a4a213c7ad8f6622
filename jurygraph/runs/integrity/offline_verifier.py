"""Check a bundle of a jurygraph run with Python 3.8 or newer, without jurygraph.

Without bundle.zip, the unpacked files next to this one are checked. Prints which checks hold, what they do not prove,
and the command that checks the signature of a seal. Exit codes: 0, all checks hold; 5, a check failed, and the first
failure is printed; 2, the command was wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OPENSSL = "openssl pkeyutl -verify -pubin -inkey PUBLIC.pem -rawin -in seal.txt -sigfile seal.sig"
KINDS = ("run", "survey", "decision", "task", "group", "trace", "call", "close", "erasure")


class VerificationError(Exception):
    """Raised where the content of a bundle is not what was written."""


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise VerificationError(otherwise)


@contextmanager
def at_place(place: str) -> Iterator[None]:
    """Add the place to a failure raised inside; turn content that cannot be read into a failure."""
    try:
        yield
    except VerificationError as difference:
        raise VerificationError(f"{place}: {difference}") from None
    except Exception as error:  # noqa: BLE001 - whatever a changed byte leads to
        raise VerificationError(f"{place}: cannot be read ({type(error).__name__}: {error})") from None


def canonical_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_lines(path: Path) -> Iterator[tuple[str, bytes, Any]]:
    """Yield the place, the bytes and the content of every line."""
    with at_place(path.name), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            with at_place(f"line {number}"):
                content = json.loads(line.decode())
            yield f"{path.name}: line {number}", line, content


class Ledger:
    """The records and texts in a folder, checked while they are read, and the values that later checks need."""

    def __init__(self, folder: Path) -> None:
        self.run: dict[str, Any] = {}
        self.links = [bytes(32)]
        self.settled = 0  # the last record that is no close record and no erasure
        self.erased: set[int] = set()
        self.known: dict[tuple[str, str], Any] = {}  # by kind and key: the bodies of decisions and tasks
        self.tasks: dict[str, str] = {}  # by response
        self.rewards: dict[str, list[Any]] = {}  # by response: its task, and its reward as traces.jsonl has it
        self.base: Ledger | None = None
        self._group = ""
        self._group_end = 0
        texts: dict[int, str] = {}
        for place, line, text in read_lines(folder / "texts.jsonl"):
            with at_place(place):
                require(canonical_json(text) + b"\n" == line, "is not as jurygraph writes it")
                require(len(text) == 3 and text["id"] not in texts, "is no text, or there twice")
                texts[text["id"]] = sha256(bytes.fromhex(text["salt"]) + text["content"].encode())
        missing: set[int] = set()
        for place, line, record in read_lines(folder / "records.jsonl"):
            with at_place(place):
                require(canonical_json(record) + b"\n" == line, "is not as jurygraph writes it")
                body = json.loads(record["body"])
                self._check_record(folder, record, body)
                for number, commitment in enumerate(body.get("texts", ()), start=record["seq"] << 20):
                    if number not in texts:
                        missing.add(number)
                    problem = f"texts.jsonl: text {number}: differs from what was written"
                    require(texts.pop(number, commitment) == commitment, problem)
        require(not texts, f"texts.jsonl: no record speaks of text {min(texts, default=0)}")
        require(len(self.links) > max(1, self._group_end), "records.jsonl: ends too early")
        problem = "is missing and was not erased, or was erased and is there"
        require(missing == self.erased, f"texts.jsonl: text {min(missing ^ self.erased, default=0)} {problem}")

    def heads(self) -> dict[int, str]:
        """Return the links that only a close record and erasures follow, by the numbers of their records."""
        return {number: self.links[number].hex() for number in range(self.settled, len(self.links))}

    def _check_record(self, folder: Path, record: dict[str, Any], body: Any) -> None:
        seq, kind, key = record["seq"], record["kind"], record["key"]
        chained = self.links[-1] + canonical_json([seq, kind, key, record["at"]]) + b"\n" + record["body"].encode()
        require(seq == len(self.links), "is not the next record: one is missing, or there twice")
        require(sha256(chained) == record["link"], "differs from what was written, or from the record before it")
        require(kind in KINDS and (kind == "run") == (seq == 1), "has no business there")
        require((kind == "trace" and not self.base) == (seq <= self._group_end), "is not of the group before it")
        is_again = kind != "call" and (kind, key) in self.known
        require(kind == "erasure" or not (is_again or ("close", "") in self.known), "is after the end, or twice")
        self.known[kind, key] = body if kind in ("decision", "task") else None
        if kind == "run":
            self.run = {**body, "key": key}
            if body["base"]:
                self.base = read_base(folder / "base", body["base"])
                self.tasks = self.base.tasks
        elif kind == "group":
            self._group = key
            self._group_end = seq + body["size"]
        elif kind == "trace":
            self.tasks.setdefault(key, self._group)
            task = self.tasks[key]
            specs = self.known["decision", self.known["task", task]["decision"]]["specs"]
            self.rewards[key] = [task, *check_reward(body["reward"], specs)]
        elif kind == "close":
            expected = {"traces": len(self.rewards), "head": self.links[-1].hex()}
            require(key == "" and body == expected, "does not state the traces and the head before it")
        elif kind == "erasure":
            self.erased.update(body["ids"])
        self.links.append(bytes.fromhex(record["link"]))
        self.settled = self.settled if kind in ("close", "erasure") else seq


def read_base(folder: Path, origin: dict[str, Any]) -> Ledger:
    """Return the run whose verdicts a re-scored run refers to."""
    with at_place("base"):
        base = Ledger(folder)
        is_same_run = (base.run["key"], base.links[origin["records"]].hex()) == (origin["run"], origin["head"])
        require(is_same_run, "is not the run that this one refers to")
    return base


def check_reward(reward: dict[str, Any], specs: list[dict[str, Any]]) -> list[Any]:
    """Check that a reward follows from its terms and adjustments, to the last bit; return it with its terms."""
    require(len(reward["terms"]) == len(specs), "the reward has not one term for each component")
    pairs = zip(specs, reward["terms"])  # noqa: B905 - Python 3.8 knows no `strict`
    terms = {spec["name"]: None if value is None else spec["weight"] * value for spec, value in pairs}
    total = 0.0
    value = reward["value"]
    status = reward.get("status", "ok")
    for name in sorted(terms):
        total += terms[name] or 0.0  # not sum(), which adds differently since Python 3.12
    for name, before, after in reward.get("adjustments", ()):
        require(before == total, f"the reward before the {name} is {before}, and {total} comes to it")
        total = after
    require(value == (None if status == "failed" else total), f"the {status} reward is {value}; its terms give {total}")
    return [value, status, reward.get("coverage", 1.0), terms]


def check_traces(path: Path, rewards: dict[str, list[Any]]) -> None:
    """Check that traces.jsonl shows the rewards of the records."""
    for place, _, trace in read_lines(path):
        with at_place(place):
            reward = trace["reward"]
            terms = {term["name"]: term["contribution"] for term in reward["terms"]}
            shown = [trace["task_id"], reward["value"], reward["status"], reward["coverage"], terms]
            require(rewards.pop(trace["response_id"], None) == shown, "does not match its record")
    require(not rewards, f"traces.jsonl: {len(rewards)} traces are missing")


def check_seal(folder: Path, run: Ledger) -> Iterator[str]:
    """Check that a seal is of this run, and yield what its signature would prove."""
    with at_place("seal.txt"):
        first, _, text = (folder / "seal.txt").read_bytes().partition(b"\n")
        seal = json.loads(text)
        require(first == b"jurygraph seal" and seal["version"] == 1, "is not in the form of a seal")
        require(seal["run"] == run.run["key"], "is of another run")
        is_sealed = run.heads().get(seal["records"]) == seal["head"]
        require(is_sealed, "is of other records: some were changed, added or lost")
    after = len(run.links) - 1 - seal["records"]
    if run.base is not None:
        after += len(run.base.links) - 1 - run.run["base"]["records"]
    later = f"; {after} later erasures are not signed" if after else ""
    yield f"holds: the seal of {seal['records']} records, by the key {seal['public_key']}{later}"
    yield f"not checked: its signature; with the signer's key, from elsewhere: {OPENSSL}"


def iter_proofs(folder: Path, head: str | None) -> Iterator[str]:
    run = Ledger(folder)
    state = "closed" if ("close", "") in run.known else "not closed, so more may be missing at the end"
    yield f"holds: {len(run.links) - 1} records, {state}, chained up to the head {run.links[-1].hex()}"
    erased = len((run.base or run).erased)
    yield f"holds: {len(run.rewards)} rewards, by their terms; every text, but for {erased} that were erased"
    config = sha256((folder / "config.yaml").read_bytes())
    require(config == run.run["config_file"], "config.yaml: is not that of this run")
    check_traces(folder / "traces.jsonl", run.rewards)
    yield "holds: config.yaml, and the rewards and terms in traces.jsonl"
    require(head is None or head in run.heads().values(), f"records.jsonl: do not have the head {head}")
    if (folder / "seal.txt").exists():
        yield from check_seal(folder, run)
    yield "not proved: that verdicts lead to the terms (`jurygraph verify` does); the rest of traces.jsonl; that texts"
    yield "are true; and, without a head or key that you know from elsewhere, that nothing was rebuilt"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", nargs="?", type=Path, default=Path(__file__).parent, help="zip, or unpacked folder")
    parser.add_argument("--expect-head", type=str.lower, help="head that the run must have: 64 hexadecimal digits")
    options = parser.parse_args(arguments)
    if not options.bundle.exists():
        parser.error(f"{options.bundle}: does not exist")
    try:
        with at_place(options.bundle.name), tempfile.TemporaryDirectory() as unpacked:
            folder = options.bundle
            if options.bundle.is_file():
                folder = Path(unpacked)
                with zipfile.ZipFile(options.bundle) as archive:
                    archive.extractall(folder)
            sys.stdout.writelines(f"{proof}\n" for proof in iter_proofs(folder, options.expect_head))
    except VerificationError as difference:
        parser.exit(5, f"differs: {difference}\n")


if __name__ == "__main__":
    main()
