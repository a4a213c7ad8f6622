"""Check a bundle of a jurygraph run with Python 3.8 or newer, without jurygraph.

Only the signature of a seal needs another package, cryptography; without it, all the rest is checked.
Without bundle.zip, the unpacked files next to this one are checked. Prints which checks hold, and what they do not
prove. Exit codes: 0, all checks hold; 5, a check failed, and the first failure is printed; 2, the command was wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import re
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

UNREADABLE = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
SIGNATURES_NEED = "the package cryptography: pip install cryptography, and run this again"
ERASED = "erased"  # the placeholder of an erased text
FIELDS = "evaluator version layer subject stakeholder reviewer met native scale confidence score failure gated_by call"
EMPTY: dict[str, Any] = {**dict.fromkeys(FIELDS.split()), "sample": 0, "status": "ok", "reason": "", "evidence": []}


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
    except (*UNREADABLE, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise VerificationError(f"{place}: cannot be read ({type(error).__name__}: {error})") from None


def canonical_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def unique_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the fields of a JSON object; a name that occurs twice would be read in two ways."""
    fields = dict(pairs)
    require(len(fields) == len(pairs), "has a field twice")
    return fields


def read_lines(path: Path, exact: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield the place and content of every line; with `exact`, a line must have the bytes that jurygraph writes."""
    with at_place(path.name), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            with at_place(f"line {number}"):
                content = json.loads(line.decode(), object_pairs_hook=unique_fields)
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
        self.shown: dict[str, str] = {}  # by response: a digest of its reward as in traces.jsonl
        self.judged: dict[str, str] = {}  # by response: a digest of its verdicts and calls as in traces.jsonl
        self.unsigned = 0  # erasures in the base after this run was made
        self._members: list[tuple[str, dict[str, Any], dict[int, str]]] = []
        self._folder = folder
        self._group = ""
        self._group_end = 0
        self.base: Ledger | None = None
        self._traces: dict[int, tuple[str, str]] = {}
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
            texts: dict[int, str] = {}
            for number, expected in enumerate(commitments, start=record["seq"] << 20):
                with at_place(place):
                    if text is end or text.get("id") != number:
                        self._missing.add(number)
                        continue
                    salt = bytes.fromhex(text["salt"])
                    content = text["content"].encode()
                    is_intact = len(text) == 3 and salt.hex() == text["salt"] and sha256(salt + content) == expected
                    require(is_intact, "differs from what was written")
                    texts[number & 0xFFFFF] = text["content"]
                place, text = next(remaining, ("texts.jsonl", end))
            with at_place(record_place):
                self._collect_verdicts(record["seq"], record["kind"], record["key"], json.loads(record["body"]), texts)
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
        require(kind == "erasure" or not {("close", ""), (kind, key)} & self.known.keys(), "is after the end, or twice")
        parsed: dict[str, Any] = json.loads(body)
        self._apply_record(seq, kind, key, parsed)
        self.links.append(bytes.fromhex(link))
        self.settled = self.settled if kind in ("close", "erasure") else seq
        return list(parsed.get("texts", ()))

    def _apply_record(self, seq: int, kind: str, key: str, body: dict[str, Any]) -> None:
        self.known[kind, str(seq) if kind == "call" else key] = body if kind in ("survey", "decision", "task") else None
        if kind == "run":
            self.run = key
            self.config_file = body["config_file"]
            origin = body["base"]
            with at_place("base"):
                self.base = base = Ledger(self._folder / "base") if origin else None
            self.erased = base.erased if base else 0
            is_same_run = not base or (base.run, base.links[origin["records"]].hex()) == (origin["run"], origin["head"])
            require(is_same_run, "base/ does not hold the run that this one refers to")
            self.unsigned = len(base.links) - 1 - origin["records"] if base else 0
        elif kind == "group":
            self._group = key
            self._group_end = seq + body["size"]
            self._lists = body.get("shown", [])  # lists of responses, to which verdicts refer by index
        elif kind == "trace":
            self._check_reward(seq, key, body)
        elif kind == "close":
            expected = {"traces": len(self._traces), "head": self.links[-1].hex()}
            require(key == "" and body == expected, "does not state the traces and the head before it")
        elif kind not in ("survey", "decision", "task", "call", "canary"):
            require(kind == "erasure", "is of no kind that there is")
            self._missing ^= set(body["ids"])
            self.erased += len(body["ids"])

    def _check_reward(self, seq: int, key: str, body: dict[str, Any]) -> None:
        response, task = self.base._traces[body["base"]] if self.base else (key, self._group)
        require(key == response, "is not of the response that the base has there")
        reward = check_reward(body["reward"], self.known["decision", self.known["task", task]["decision"]]["specs"])
        self._traces[seq] = key, task
        self.shown[key] = sha256(canonical_json([task, *reward, self.links[-1].hex()]))
        if self.base:
            self.judged[key] = self.base.judged[key]

    def _collect_verdicts(self, seq: int, kind: str, key: str, body: dict[str, Any], texts: dict[int, str]) -> None:
        """Collect the traces of a group, and combine their verdicts once the group is complete."""
        if kind != "trace" or self.base:
            return
        self._members.append((key, body, texts))
        if seq == self._group_end:
            survey = self.known["survey", self.known["task", self._group]["survey"]]
            self.judged.update(verdicts_of(survey, self._members, self._lists))
            self._members = []


def verdicts_of(
    survey: dict[str, Any], members: list[tuple[str, dict[str, Any], dict[int, str]]], lists: list[list[str]]
) -> dict[str, str]:
    """Return by response a digest of its trace's verdicts and calls; a verdict on an unordered pair belongs to both."""
    verdicts: dict[str, list[Any]] = {key: [] for key, _, _ in members}
    for key, body, texts in members:
        for packed in body["verdicts"]:
            question = survey["questions"][packed["question"]]
            verdict = unpack_verdict(packed, key, question, survey["members"][int(question["view"])], texts)
            if isinstance(verdict["responses"], int):
                verdict["responses"] = lists[verdict["responses"]]
            verdicts[key].append(verdict)
            if (question["scope"], question["pairs"]) == ("pair", "unordered") and verdict["responses"]:
                verdicts[verdict["responses"][1]].append(verdict)
    return {
        key: digest_shown(verdicts[key], body.get("calls", []), body.get("agent"), labels_of(body, texts))
        for key, body, texts in members
    }


def labels_of(body: dict[str, Any], texts: dict[int, str]) -> Any:
    """Return the labels of a response; none where its texts were erased."""
    return json.loads(texts[body["about"]])["labels"] if body.get("about") in texts else {}


def unpack_verdict(packed: dict[str, Any], key: str, question: dict[str, Any], view: Any, texts: dict[int, str]) -> Any:
    """Return a verdict as in a trace, from its record and its question."""
    stamp = {name: question[name] for name in ("evaluator", "version", "layer", "subject")}
    verdict = {**EMPTY, **stamp, "question": question["id"], "about": key, "responses": [key]}
    verdict.update({view[0]: view[1]} if view[0] in ("stakeholder", "reviewer") else {})
    verdict.update({name: value for name, value in packed.items() if name not in ("question", "text", "failure")})
    erased = "text" in packed and packed["text"] not in texts
    written = {"reason": ERASED if erased else ""}
    written = json.loads(texts[packed["text"]]) if "text" in packed and not erased else written
    verdict.update({name: written[name] for name in ("reason", "native") if name in written})
    if "failure" in packed:
        cause, kind = packed["failure"]
        verdict["failure"] = {"cause": cause, "kind": kind, "message": written.get("message", ERASED if erased else "")}
    quotes = written.get("quotes", [ERASED] * len(verdict["evidence"]))
    names = ("quote", "start", "end", "source", "verified", "of")
    places = zip(quotes, verdict["evidence"])  # noqa: B905 - Python 3.8 knows no `strict`
    verdict["evidence"] = [dict(zip(names, (quote, *place))) for quote, place in places]  # noqa: B905
    return verdict


def digest_shown(verdicts: list[Any], calls: list[Any], agent: Any, labels: Any) -> str:
    """Return a digest that depends on the values of numbers, not on their notation."""
    ordered = sorted(verdicts, key=lambda v: (v["question"], v["about"], v["responses"], v["sample"]))
    return sha256(canonical_json(json.loads(json.dumps([ordered, calls, agent, labels]), parse_int=float)))


def check_reward(reward: dict[str, Any], specs: list[dict[str, Any]]) -> list[Any]:
    """Check that a reward follows from its terms and adjustments, to the last bit; return these and its coverage."""
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
    return [value, status, reward.get("coverage", 1.0), terms, reward.get("adjustments", [])]


def check_traces(path: Path, shown: dict[str, str], judged: dict[str, str]) -> None:
    for place, trace in read_lines(path, exact=False):
        with at_place(place):
            reward = trace["reward"]
            terms = {term["name"]: term["contribution"] for term in reward["terms"]}
            steps = [[step["name"], step["before"], step["after"]] for step in reward["adjustments"]]
            figures = [reward["value"], reward["status"], reward["coverage"]]
            fields = [trace["task_id"], *figures, terms, steps, trace.pop("previous")]
            require(shown.pop(trace["response_id"], "") == sha256(canonical_json(fields)), "does not match its record")
            about = trace.get("agent"), trace.get("labels", {})
            is_same = judged[trace["response_id"]] == digest_shown(trace["verdicts"], trace["calls"], *about)
            require(is_same, "has verdicts, calls, an agent or labels that are not those of its record")
            for timed in (*trace["calls"], *(step for v in trace["verdicts"] for step in v.get("steps", ()))):
                del timed["latency" if "latency" in timed else "duration"]
            require(trace.pop("digest") == sha256(canonical_json(trace)), "does not match its digest")
    require(not shown, f"traces.jsonl: {len(shown)} traces are missing")


def check_seal(written: bytes, run: Ledger, signer: str | None) -> str:
    """Check a seal and return its key; with a signer, nothing may follow the sealed records, not even erasures."""
    seal = json.loads(written)
    key = str(seal["public_key"])
    signature = bytes.fromhex(seal.pop("signature"))
    require(canonical_json({**seal, "signature": signature.hex()}) + b"\n" == written, "is not in the form of a seal")
    signed = b"jurygraph seal\n" + canonical_json(seal)
    if can_check_signatures():
        check_signature(bytes.fromhex(key), signed, signature)
    require(signer in (None, key), f"is by another key, {key}")
    require(seal["version"] == 1 and seal["run"] == run.run, "is of another version, or another run")
    heads = run.heads()
    require(heads.get(seal["records"]) == seal["head"], "is of other records: some were changed, added or lost")
    after = len(run.links) - 1 - seal["records"]
    require(signer is None or not after, f"does not cover the last {after} records, which are erasures; seal it again")
    return key


def check_signature(key: bytes, message: bytes, signature: bytes) -> None:
    """Check an Ed25519 signature (RFC 8032)."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except InvalidSignature:
        raise VerificationError("has a wrong signature") from None


def can_check_signatures() -> bool:
    return importlib.util.find_spec("cryptography") is not None


def iter_proofs(folder: Path, head: str | None, signer: str | None) -> Iterator[str]:
    run = Ledger(folder)
    state = "closed" if ("close", "") in run.known else "not closed, so more may be missing at the end"
    yield f"holds: {len(run.links) - 1} records, {state}, chained up to the head {run.links[-1].hex()}"
    yield f"holds: {len(run.shown)} rewards, by their terms; every text, but for {run.erased} that were erased"
    require(sha256((folder / "config.yaml").read_bytes()) == run.config_file, "config.yaml: is not that of this run")
    check_traces(folder / "traces.jsonl", run.shown, run.judged)
    yield "holds: config.yaml, and in traces.jsonl the rewards, coverage, agents, labels, verdicts and calls"
    require(head is None or head in run.heads().values(), f"records.jsonl: do not have the head {head}")
    if signer is not None or (folder / "seal.json").exists():
        with at_place("seal.json"):
            key = check_seal((folder / "seal.json").read_bytes(), run, signer)
        if can_check_signatures():
            yield f"holds: the seal, by {key}"
        else:
            yield f"not checked: the signature of the seal, by {key}, which needs {SIGNATURES_NEED}"
    if signer is not None and run.base and run.unsigned:
        with at_place("base/seal.json"):
            check_seal((folder / "base" / "seal.json").read_bytes(), run.base, signer)
    yield "not proved: that verdicts lead to the terms (`jurygraph verify` does); the rest of traces.jsonl; that texts"
    yield "are true; and, without a head or key that you know from elsewhere, that nothing was rebuilt"


def read_key(text: str) -> str:
    """Return a public key in hexadecimal: from its digits, or from a PEM or an OpenSSH file."""
    if re.fullmatch("[0-9a-fA-F]{64}", text):
        return text.lower()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key, load_ssh_public_key

    content = Path(text).read_bytes()
    key = load_ssh_public_key(content) if content.startswith(b"ssh-") else load_pem_public_key(content)
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError(f"{text} has another kind of key")
    return key.public_bytes_raw().hex()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", nargs="?", type=Path, default=Path(__file__).parent, help="zip, or unpacked folder")
    parser.add_argument("--expect-head", type=str.lower, help="head that the run must have: 64 hexadecimal digits")
    parser.add_argument("--signer", help="public key that must have sealed it: its file or its digits")
    options = parser.parse_args(arguments)
    if not options.bundle.exists():
        parser.error(f"{options.bundle}: does not exist")
    if options.signer is not None and not can_check_signatures():
        parser.error(f"--signer needs {SIGNATURES_NEED}")
    try:
        signer = None if options.signer is None else read_key(options.signer)
    except UNREADABLE:
        parser.error(f"--signer {options.signer}: is no Ed25519 public key (its file, or 64 hex digits)")
    try:
        with at_place(options.bundle.name), tempfile.TemporaryDirectory() as unpacked:
            folder = options.bundle
            if options.bundle.is_file():
                folder = Path(unpacked)
                with zipfile.ZipFile(options.bundle) as archive:
                    archive.extractall(folder)
            sys.stdout.writelines(f"{proof}\n" for proof in iter_proofs(folder, options.expect_head, signer))
    except VerificationError as difference:
        parser.exit(5, f"differs: {difference}\n")


if __name__ == "__main__":
    main()
