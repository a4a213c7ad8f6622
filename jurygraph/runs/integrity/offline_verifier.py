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


def read_lines(path: Path, exact: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield the place and content of every line; with `exact`, a line must have the bytes that jurygraph writes."""
    with at_place(path.name), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            with at_place(f"line {number}"):
                content = json.loads(line.decode())
                require(not exact or canonical_json(content) + b"\n" == line, "is not as jurygraph writes it")
            yield f"{path.name}: line {number}", content


class Ledger:
    """The records and texts of a run, checked while they are read, and the values that later checks need."""

    def __init__(self, folder: Path) -> None:
        self.run = ""
        self.config_file = ""
        self.erased = 0
        self.links = [bytes(32)]
        self.settled = 0  # the last record that is no close record and no erasure
        self.known: dict[tuple[str, str], Any] = {}  # by kind and key: the bodies of decisions and tasks
        self.figures: dict[str, list[Any]] = {}  # by response: its task, reward and scores, as traces.jsonl has them
        self.base: Ledger | None = None
        self.unsigned = 0  # erasures in the base after this run was made
        self._folder = folder
        self._group = ""
        self._group_end = 0
        self._responses: dict[int, str] = {}
        self._missing: set[int] = set()  # texts that are missing but not erased so far, or erased but present
        self._read()

    def heads(self) -> dict[int, str]:
        """Return the links that only a close record and erasures follow, by the numbers of their records."""
        return {number: self.links[number].hex() for number in range(self.settled, len(self.links))}

    def _read(self) -> None:
        end: Any = object()
        remaining = read_lines(self._folder / "texts.jsonl")
        place, text = next(remaining, ("texts.jsonl", end))
        for record_place, record in read_lines(self._folder / "records.jsonl"):
            with at_place(record_place):
                commitments = self._check_record(**record)
            for number, expected in enumerate(commitments, start=record["seq"] << 20):
                with at_place(place):
                    if text is end or text.get("id") != number:
                        self._missing.add(number)
                        continue
                    salt = bytes.fromhex(text["salt"])
                    is_intact = salt.hex() == text["salt"] and len(text) == 3
                    is_intact = is_intact and sha256(salt + text["content"].encode()) == expected
                    require(is_intact, "differs from what was written")
                place, text = next(remaining, ("texts.jsonl", end))
        require(text is end, f"{place}: no record speaks of it, or not there")
        require(len(self.links) > max(1, self._group_end), "records.jsonl: ends too early")
        problem = "is missing and was not erased, or was erased and is there"
        require(not self._missing, f"texts.jsonl: text {min(self._missing, default=0)} {problem}")

    def _check_record(self, seq: int, kind: str, key: str, at: int, body: str, link: str) -> list[str]:
        digest = sha256(self.links[-1] + canonical_json([seq, kind, key, at]) + b"\n" + body.encode())
        require(seq == len(self.links), "is not the next record: one is missing, or there twice")
        require(digest == link, "differs from what was written, or does not follow the record before it")
        require((kind == "run") == (seq == 1), "is not how a run begins")
        require((kind == "trace" and not self.base) == (seq <= self._group_end), "is not of the group before it")
        is_after_end = ("close", "") in self.known or (kind, key) in self.known
        require(kind == "erasure" or not is_after_end, "is after the end, or twice")
        parsed: dict[str, Any] = json.loads(body)
        self._apply_record(seq, kind, key, parsed)
        self.links.append(bytes.fromhex(link))
        self.settled = self.settled if kind in ("close", "erasure") else seq
        return list(parsed.get("texts", ()))

    def _apply_record(self, seq: int, kind: str, key: str, body: dict[str, Any]) -> None:
        self.known[kind, str(seq) if kind == "call" else key] = body if kind in ("decision", "task") else None
        if kind == "run":
            self.run = key
            self.config_file = body["config_file"]
            if body["base"]:
                self._read_base(body["base"])
        elif kind == "group":
            self._group = key
            self._group_end = seq + body["size"]
        elif kind == "trace":
            self._check_trace(seq, key, body)
        elif kind == "close":
            expected = {"traces": len(self._responses), "head": self.links[-1].hex()}
            require(key == "" and body == expected, "does not state the traces and the head before it")
        elif kind not in ("survey", "decision", "task", "call", "canary"):
            require(kind == "erasure", "is of no kind that there is")
            self._missing ^= set(body["ids"])
            self.erased += len(body["ids"])

    def _read_base(self, origin: dict[str, Any]) -> None:
        with at_place("base"):
            self.base = base = Ledger(self._folder / "base")
        is_same_run = (base.run, base.links[origin["records"]].hex()) == (origin["run"], origin["head"])
        require(is_same_run, "base/ does not hold the run that this one refers to")
        self.erased = base.erased
        self.unsigned = len(base.links) - 1 - origin["records"]

    def _check_trace(self, seq: int, key: str, body: dict[str, Any]) -> None:
        """Check the reward of a trace; a re-scored run has its task and scores from its base."""
        task = self._group
        scores = [[v.get("score"), v.get("met"), v.get("status", "ok")] for v in body.get("verdicts", [])]
        if self.base:
            response = self.base._responses[body["base"]]
            require(key == response, "is not of the response that the base has there")
            task = self.base.figures[response][0]
            scores = self.base.figures[response][-1]
        reward = check_reward(body["reward"], self.known["decision", self.known["task", task]["decision"]]["specs"])
        self._responses[seq] = key
        self.figures[key] = [task, *reward, scores]


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


def check_traces(path: Path, figures: dict[str, list[Any]]) -> None:
    """Check that traces.jsonl shows the rewards and scores of the records."""
    for place, trace in read_lines(path, exact=False):
        with at_place(place):
            reward = trace["reward"]
            terms = {term["name"]: term["contribution"] for term in reward["terms"]}
            verdicts = [v for v in trace["verdicts"] if v["about"] == trace["response_id"]]
            scores = [[v["score"], v["met"], v["status"]] for v in verdicts]
            shown = [trace["task_id"], reward["value"], reward["status"], reward["coverage"], terms, scores]
            require(figures.pop(trace["response_id"], None) == shown, "does not match its record")
    require(not figures, f"traces.jsonl: {len(figures)} traces are missing")


def check_seal(folder: Path, run: Ledger) -> Iterator[str]:
    """Check that a seal is of this run, and yield what its signature would prove."""
    with at_place("seal.txt"):
        first, _, text = (folder / "seal.txt").read_bytes().partition(b"\n")
        seal = json.loads(text)
        is_seal = first == b"jurygraph seal" and canonical_json(seal) == text and seal["version"] == 1
        require(is_seal, "is not in the form of a seal")
        require(seal["run"] == run.run, "is of another run")
        is_sealed = run.heads().get(seal["records"]) == seal["head"]
        require(is_sealed, "is of other records: some were changed, added or lost")
    after = len(run.links) - 1 - seal["records"] + run.unsigned
    later = f"; {after} later erasures are not signed" if after else ""
    yield f"holds: the seal of {seal['records']} records, by the key {seal['public_key']}{later}"
    yield f"not checked: its signature; with the signer's key, from elsewhere: {OPENSSL}"


def iter_proofs(folder: Path, head: str | None) -> Iterator[str]:
    run = Ledger(folder)
    state = "closed" if ("close", "") in run.known else "not closed, so more may be missing at the end"
    yield f"holds: {len(run.links) - 1} records, {state}, chained up to the head {run.links[-1].hex()}"
    yield f"holds: {len(run.figures)} rewards, by their terms; every text, but for {run.erased} that were erased"
    require(sha256((folder / "config.yaml").read_bytes()) == run.config_file, "config.yaml: is not that of this run")
    check_traces(folder / "traces.jsonl", run.figures)
    yield "holds: config.yaml, and in traces.jsonl rewards, terms and scores"
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
