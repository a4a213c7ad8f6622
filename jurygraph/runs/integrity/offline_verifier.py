"""Check a bundle of a jurygraph run with Python 3.8 or newer alone: neither jurygraph nor anything else is needed.

    python3 verify.py [bundle.zip] [--expect-head HEAD] [--signer PUBLIC_KEY]

Without bundle.zip, the unpacked files beside this one are checked. Prints what holds, and what that does not prove.
Exit code 0: all holds; 5: the first thing that does not is named; 2: the command was wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

UNREADABLE = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
P, ORDER = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


class Difference(Exception):
    """Something is not as it was written."""


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Difference(otherwise)


@contextmanager
def within(place: str) -> Iterator[None]:
    """Names the place of what is wrong; what cannot be read is wrong as well."""
    try:
        yield
    except Difference as difference:
        raise Difference(f"{place}: {difference}") from None
    except (*UNREADABLE, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise Difference(f"{place}: cannot be read ({type(error).__name__}: {error})") from None


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def lines(path: Path, exact: bool = True) -> Iterator[tuple[str, Any]]:
    """The place and content of every line; an exact one has just the bytes that jurygraph writes."""
    with within(path.name), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            with within(f"line {number}"):
                content = json.loads(line)
                require(not exact or canonical(content) + b"\n" == line, "is not in the form that jurygraph writes")
            yield f"{path.name}: line {number}", content


class Ledger:
    """The records and texts of a run, checked as they are read, and what later checks need of them."""

    def __init__(self, folder: Path) -> None:
        self.run, self.config_file, self.erased = "", "", 0
        self.links, self.settled = [bytes(32)], 0  # settled: after it there are but the end and erasures
        self.known: dict[tuple[str, str], Any] = {}  # by kind and key: the bodies of decisions and tasks
        self.shown: dict[str, str] = {}  # by response: a digest of what traces.jsonl must say
        self._folder, self._group, self._group_end = folder, "", 0
        self._base: Ledger | None = None
        self._traces: dict[int, tuple[str, str]] = {}
        self._missing: set[int] = set()  # texts that are not there and not erased yet, or erased and there
        self._read()

    def _read(self) -> None:
        nothing: tuple[str, dict[str, Any]] = ("texts.jsonl", {})
        unread = lines(self._folder / "texts.jsonl")
        place, text = next(unread, nothing)
        for where, record in lines(self._folder / "records.jsonl"):
            with within(where):
                commitments = self._chained(**record)
            for number, stated in enumerate(commitments, start=record["seq"] << 20):
                with within(place):
                    if text.get("id") != number:
                        self._missing.add(number)
                        continue
                    salt, content = bytes.fromhex(text["salt"]), text["content"].encode()
                    require(salt.hex() == text["salt"] and sha256(salt + content) == stated, "is not what was written")
                place, text = next(unread, nothing)
        require(not text, f"{place}: no record speaks of it, or not there")
        require(len(self.links) > max(1, self._group_end), "records.jsonl: ends too early")
        wrong = "is missing and was not erased, or was erased and is there"
        require(not self._missing, f"texts.jsonl: text {min(self._missing, default=0)} {wrong}")

    def _chained(self, seq: int, kind: str, key: str, at: int, body: str, link: str) -> list[str]:
        found = sha256(self.links[-1] + canonical([seq, kind, key, at]) + b"\n" + body.encode())
        require(seq == len(self.links), "is not the next record: one is missing, or there twice")
        require(found == link, "is not what was written, or does not follow the record before it")
        require((kind == "run") == (seq == 1), "is not how a run begins")
        require((kind == "trace" and not self._base) == (seq <= self._group_end), "is not of the group before it")
        require(kind == "erasure" or not {("close", ""), (kind, key)} & self.known.keys(), "is after the end, or twice")
        parsed: dict[str, Any] = json.loads(body)
        self._take(seq, kind, key, parsed)
        self.links.append(bytes.fromhex(link))
        self.settled = self.settled if kind in ("close", "erasure") else seq
        return list(parsed.get("texts", ()))

    def _take(self, seq: int, kind: str, key: str, body: dict[str, Any]) -> None:
        self.known[kind, str(seq) if kind == "call" else key] = body if kind in ("decision", "task") else None
        if kind == "run":
            self.run, self.config_file, origin = key, body["config_file"], body["base"]
            with within("base"):
                self._base = base = Ledger(self._folder / "base") if origin else None
            self.erased = base.erased if base else 0
            same = not base or (base.run, base.links[origin["records"]].hex()) == (origin["run"], origin["head"])
            require(same, "base/ does not hold the run that this one refers to")
        elif kind == "group":
            self._group, self._group_end = key, seq + body["size"]
        elif kind == "trace":
            self._trace(seq, key, body)
        elif kind == "close":
            stated = {"traces": len(self._traces), "head": self.links[-1].hex()}
            require(key == "" and body == stated, "does not state the traces and the head before it")
        elif kind not in ("survey", "decision", "task", "call", "canary"):
            require(kind == "erasure", "is of no kind that there is")
            self._missing ^= set(body["ids"])
            self.erased += len(body["ids"])

    def _trace(self, seq: int, key: str, body: dict[str, Any]) -> None:
        response, task = self._base._traces[body["base"]] if self._base else (key, self._group)
        require(key == response, "is not of the response that the base has there")
        reward = checked(body["reward"], self.known["decision", self.known["task", task]["decision"]]["specs"])
        self._traces[seq] = key, task
        self.shown[key] = sha256(canonical([task, *reward, self.links[-1].hex()]))


def checked(reward: dict[str, Any], specs: list[dict[str, Any]]) -> list[Any]:
    """Value, status, contributions and adjustments of a reward that is what these give: in order, to the last bit."""
    require(len(reward["terms"]) == len(specs), "the reward has not one term for each component")
    found = zip(specs, reward["terms"])  # noqa: B905 - Python 3.8 knows no `strict`
    terms = {spec["name"]: None if value is None else spec["weight"] * value for spec, value in found}
    total, value, status = 0.0, reward["value"], reward.get("status", "ok")
    for name in sorted(terms):
        total += terms[name] or 0.0  # not sum(), which adds otherwise since Python 3.12
    for name, before, after in reward.get("adjustments", ()):
        require(before == total, f"the reward before the {name} is {before}, and {total} comes to it")
        total = after
    require(value == (None if status == "failed" else total), f"the {status} reward is {value}; its terms give {total}")
    return [value, status, terms, reward.get("adjustments", [])]


def check_traces(path: Path, shown: dict[str, str]) -> None:
    for place, trace in lines(path, exact=False):
        with within(place):
            reward = trace["reward"]
            terms = {term["name"]: term["contribution"] for term in reward["terms"]}
            steps = [[step["name"], step["before"], step["after"]] for step in reward["adjustments"]]
            said = [trace["task_id"], reward["value"], reward["status"], terms, steps, trace.pop("previous")]
            require(shown.pop(trace["response_id"], "") == sha256(canonical(said)), "is not what its record says")
            for call in trace["calls"]:
                del call["latency"]
            require(trace.pop("digest") == sha256(canonical(trace)), "is not what its digest says")
    require(not shown, f"traces.jsonl: {len(shown)} traces are missing")


def check_seal(written: bytes, run: str, heads: dict[int, str], signer: str | None) -> str:
    seal = json.loads(written)
    key, signature = str(seal["public_key"]), bytes.fromhex(seal.pop("signature"))
    require(canonical({**seal, "signature": signature.hex()}) + b"\n" == written, "is not in the form of a seal")
    require(verifies(bytes.fromhex(key), b"jurygraph seal\n" + canonical(seal), signature), "has a wrong signature")
    require(signer in (None, key), f"is by another key, {key}")
    require(seal["version"] == 1 and seal["run"] == run, "is of another version, or another run")
    require(heads.get(seal["records"]) == seal["head"], "is of other records: some were changed, added or lost")
    return key


def verifies(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether an Ed25519 signature holds (RFC 8032, 5.1.7)."""
    public, start, base = point(key), point(signature[:32]), point(b"\x58" + 31 * b"\x66")
    factor = int.from_bytes(signature[32:], "little")
    if len(key) != 32 or len(signature) != 64 or factor >= ORDER or not (public and start and base):
        return False
    hashed = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little")
    return times(factor, base) == added(start, times(hashed, public))


def point(encoded: bytes) -> tuple[int, int] | None:
    """A point of edwards25519 from its 32 bytes (5.1.3); None where there is none."""
    odd, y = divmod(int.from_bytes(encoded, "little"), 2**255)
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    x = x if x * x % P == square else x * pow(2, (P - 1) // 4, P) % P
    there = y < P and x * x % P == square and (x or not odd)
    return (x if x % 2 == odd else P - x, y) if there else None


def added(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int]:
    (a, b), (c, d) = one, other
    shared = D * a * b * c * d
    return (a * d + b * c) * pow(1 + shared, -1, P) % P, (b * d + a * c) * pow(1 - shared, -1, P) % P


def times(number: int, one: tuple[int, int]) -> tuple[int, int]:
    half = times(number // 2, added(one, one)) if number else (0, 1)
    return added(half, one) if number % 2 else half


def proofs(folder: Path, head: str | None, signer: str | None) -> Iterator[str]:
    run = Ledger(folder)
    state = "closed" if ("close", "") in run.known else "not closed, so more may be missing at the end"
    yield f"holds: {len(run.links) - 1} records, {state}, chained up to the head {run.links[-1].hex()}"
    yield f"holds: {len(run.shown)} rewards, by their terms; every text, but for {run.erased} that were erased"
    require(sha256((folder / "config.yaml").read_bytes()) == run.config_file, "config.yaml: is not that of this run")
    check_traces(folder / "traces.jsonl", run.shown)
    yield "holds: config.yaml, and the rewards in traces.jsonl"
    heads = {number: run.links[number].hex() for number in range(run.settled, len(run.links))}
    require(head is None or head in heads.values(), f"records.jsonl: do not have the head {head}")
    if signer is not None or (folder / "seal.json").exists():
        with within("seal.json"):
            yield f"holds: the seal, by {check_seal((folder / 'seal.json').read_bytes(), run.run, heads, signer)}"
    yield "not proved: that verdicts lead to the terms (`jurygraph verify` does); the rest of traces.jsonl; that texts"
    yield "are true; and, but for a head or key that you know from elsewhere, that all of this was not made anew"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Check a bundle of a jurygraph run.")
    parser.add_argument("bundle", nargs="?", type=Path, default=Path(__file__).parent)
    parser.add_argument("--expect-head", type=str.lower)
    parser.add_argument("--signer", type=str.lower)
    given = parser.parse_args(arguments)
    if not given.bundle.exists():
        parser.error(f"{given.bundle}: does not exist")
    try:
        with within(given.bundle.name), tempfile.TemporaryDirectory() as unpacked:
            if given.bundle.is_file():
                zipfile.ZipFile(given.bundle).extractall(unpacked)
            folder = Path(unpacked) if given.bundle.is_file() else given.bundle
            for proof in proofs(folder, given.expect_head, given.signer):
                sys.stdout.write(f"{proof}\n")
    except Difference as difference:
        parser.exit(5, f"differs: {difference}\n")


if __name__ == "__main__":
    main()
