"""Check a bundle of a jurygraph run with Python 3.8 or newer, without jurygraph: python3 -I verify.py

Without bundle.zip, the unpacked files next to this one are checked. Prints which checks hold, what they do not prove,
and the command that checks the signature of a seal. Exit codes: 0, all checks hold; 5, a check failed, and what differs
is printed; 2, the command was wrong.
"""

import sys

if __name__ == "__main__" and not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
    # A `json.py` beside this file must not run. So nothing is imported before, not even `__future__`.
    sys.path = [folder for folder in sys.path if folder not in (sys.path[0], "", ".")]

import argparse
import hashlib
import json
import re
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

OPENSSL_COMMAND = (
    "openssl pkeyutl -verify -pubin -inkey PUBLIC.pem -rawin -in seal.txt -sigfile seal.sig"
)
RECORD_KINDS = (
    "run",
    "survey",
    "decision",
    "task",
    "group",
    "trace",
    "call",
    "lookup",
    "close",
    "erasure",
)


TEXT_KINDS = {
    "call": {0: "prompt", 1: "reply"},
    "lookup": {0: "arguments", 1: "result"},
    "task": {0: "task"},
    "trace": {0: "response"},
}
OWNERS = {"task": "task", "group": "task", "trace": "response"}
TEXT_BITS = 20
"""The texts of record n have the numbers from n << TEXT_BITS on."""
MAX_LISTED = 20
_UNLINKED = "differs from what was written, or from the record before it"
STATEMENT_BEGINNINGS = ('{"reason":', '{"message":', '{"quotes":', '{"native":', '{"labels":')
"""How texts begin that say what a verdict says, or how a response is labelled; other texts may begin so, too."""


class VerificationError(Exception):
    """Raised where the content of a bundle is not what was written."""


def require(condition: bool, problem: str) -> None:
    if not condition:
        raise VerificationError(problem)


@contextmanager
def add_place_to_errors(place: str) -> "Iterator[None]":
    """Add the place to a failure raised inside; turn content that cannot be read into a failure."""
    try:
        yield
    except VerificationError as difference:
        raise VerificationError(f"{place}: {difference}") from None
    except Exception as error:  # noqa: BLE001 - whatever a changed byte leads to
        raise VerificationError(
            f"{place}: cannot be read ({type(error).__name__}: {error})"
        ) from None


def canonical_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def parse_object_pairs(pairs: "list[tuple[str, Any]]") -> "dict[str, Any]":
    """Return an object of JSON; of two values with one key, a reader may show either."""
    content = dict(pairs)
    require(len(content) == len(pairs), "has a key twice")
    return content


def read_lines(path: Path) -> "Iterator[tuple[str, bytes, Any]]":
    with add_place_to_errors(path.name), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            with add_place_to_errors(f"line {number}"):
                content = json.loads(line.decode(), object_pairs_hook=parse_object_pairs)
            yield f"{path.name}: line {number}", line, content


def read_canonical_lines(path: Path, length: int) -> "Iterator[dict[str, Any]]":
    for place, line, content in read_lines(path):
        with add_place_to_errors(place):
            require(
                canonical_json(content) + b"\n" == line and len(content) == length,
                "is not as jurygraph writes it",
            )
        yield content


class Differences(NamedTuple):
    """Differences of a run: the number of changed texts and the first of them, and the same of its records.

    Each text is an object with its `kind`, its `record`, the `response` or `task` that it is of or was asked about,
    the `questions`, the `sample` and the `problem`; what is not known or has no sense is null. `broken` is what is
    wrong with the first changed record.
    """

    changed_texts: int
    listed: "list[dict[str, Any]]"
    broken: str
    changed_records: int
    listed_records: "list[str]"

    def lines(self) -> "Iterator[str]":
        for text in self.listed:
            line = f"record {text['record']}: {text['kind']}"
            for name in ("response", "task"):
                if text[name] is not None:
                    owner = "" if text["kind"] == name else f" of {name}"
                    line += f"{owner} {text[name]!r}"
            line = ", ".join([line, *text["questions"]])
            if text["sample"]:
                line += f", sample {text['sample'] + 1}"
            yield f"{line}: {text['problem']}"
        if self.changed_texts > len(self.listed):
            yield f"and {self.changed_texts - len(self.listed)} more texts"
        yield from self.listed_records
        if self.broken:
            yield (
                f"changed records: {self.changed_records}; not checked: texts after the first of them, "
                "and what rests on all records, such as rewards"
            )


def locate_texts(
    records: "Iterable[tuple[int, str, str, int, str, bytes]]", numbers: "list[int]"
) -> "list[dict[str, Any]]":
    """Return what each text is of, in the order of their numbers, as `Differences` lists it, but for the problem.

    A prompt or reply is for the first response whose trace names its call, and for the questions whose verdicts do.
    """
    empty = {"kind": "text", "response": None, "task": None, "sample": None}
    texts: list[dict[str, Any]] = [
        {"record": number >> TEXT_BITS, **empty, "questions": []} for number in numbers
    ]
    calls: dict[int, str] = {}  # by the number of its text
    questions: dict[str, list[str]] = {}  # of each survey
    surveys: dict[str, str] = {}  # of each task
    group_questions: list[str] = []  # of the last group
    for seq, kind, key, _, body_json, _ in records:
        body = json.loads(body_json)
        if kind == "survey":
            questions[key] = [question["id"] for question in body["questions"]]
        elif kind == "task":
            surveys[key] = body["survey"]
        elif kind == "group":
            group_questions = questions[surveys[key]]
        verdicts = body.get("verdicts", ())
        for number, text in zip(numbers, texts):  # noqa: B905 - Python 3.8 knows no `strict`
            index = number - (seq << TEXT_BITS)
            if seq == text["record"]:
                if kind in ("call", "lookup"):
                    calls[number] = key
                used = [item for item in verdicts if item.get("text") == index]
                text["kind"] = "reason" if used else TEXT_KINDS.get(kind, {}).get(index, "text")
            elif text["response"] is None and number in calls and calls[number] in body_json:
                used = [item for item in verdicts if calls[number] in str(item)]
            else:
                continue
            if kind in OWNERS:
                text[OWNERS[kind]] = key
            add_questions(text, used, group_questions)
    return texts


def add_questions(
    text: "dict[str, Any]", verdicts: "list[Any]", group_questions: "list[str]"
) -> None:
    """Add the questions and the sample of the verdicts that a text is of."""
    for verdict in verdicts:
        text["questions"].append(group_questions[verdict["question"]])
        text["sample"] = verdict.get("sample", 0)


def is_linked(previous: bytes, record: "tuple[int, str, str, int, str, bytes]") -> bool:
    """Return whether a record follows the one before it, by the link that is stored of that one."""
    *header, body_json, link = record
    linked_bytes = previous + canonical_json(header) + b"\n" + body_json.encode()
    return hashlib.sha256(linked_bytes).digest() == link


class RecordChain:
    """The records and texts of a run, checked in one pass over both: its chain, its order and its completeness.

    jurygraph itself verifies the records of a database with it.
    """

    def __init__(self) -> None:
        self.links = [bytes(32)]
        self.settled = 0  # the last record that is no close record and no erasure
        self.erased: set[int] = set()
        self.texts = 0
        # by kind and key, except calls
        self.known: dict[str, dict[str, Any]] = {kind: {} for kind in RECORD_KINDS}
        self.traces = 0
        self.changed_count = 0
        self.changed_texts: dict[int, str] = {}  # what is wrong with the first texts, by number
        # what is wrong with records, first why the chain cannot be followed to its end
        self.changed_records: list[str] = []
        self._stored_link = b""  # of the last record that was read
        self._missing: set[int] = set()
        self._group = range(0)  # the records of the traces of the last group
        self._has_base = False
        self._groups: dict[str, int] = {}  # the last record of each group, by its name
        self._replaced = (
            0  # the group of the same name before the last group, if that is there again
        )

    def verify_records_and_texts(
        self,
        records: "Iterable[tuple[int, str, str, int, str, bytes]]",
        texts: "Iterable[tuple[int, bytes, bytes]]",
    ) -> None:
        """Check records (number, kind, key, time, body, link) and texts (number, salt, content), in their order.

        A changed text leaves the chain whole, so that the walk goes on; `find_differences` has what was found. After a
        changed record, the others are checked by the stored link of the one before: their order rests on all.
        """
        remaining_records = iter(records)
        try:
            self._follow_chain(remaining_records, texts)
        except VerificationError as difference:
            self.changed_records.append(str(difference))
            try:
                for record in remaining_records:
                    seq, kind, key, *_, link = record
                    if not is_linked(self._stored_link, record):
                        self.changed_records.append(f"record {seq} ({kind} {key!r}): {_UNLINKED}")
                    self._stored_link = link
            except VerificationError as unreadable_line:
                self.changed_records.append(str(unreadable_line))
            return
        unexplained = self._missing ^ self.erased
        self.changed_count += len(unexplained)
        for number in sorted(unexplained)[:MAX_LISTED]:
            is_missing = number in self._missing
            self.changed_texts[number] = (
                "is missing and was not erased" if is_missing else "was erased and is there"
            )

    def _add_changed_text(self, number: int, problem: str) -> None:
        self.changed_count += 1
        if len(self.changed_texts) < MAX_LISTED:  # of a large run all may be changed
            self.changed_texts[number] = problem

    def _follow_chain(
        self,
        records: "Iterable[tuple[int, str, str, int, str, bytes]]",
        texts: "Iterable[tuple[int, bytes, bytes]]",
    ) -> None:
        stored_texts = iter(texts)
        text = next(stored_texts, None)
        for record in records:
            seq, kind, key, _, body_json, self._stored_link = record
            with add_place_to_errors(f"record {seq} ({kind} {key!r})"):
                require(
                    seq == len(self.links), "is not the next record: one is missing, or there twice"
                )
                require(is_linked(self.links[-1], record), _UNLINKED)
                body = json.loads(body_json)
                self._check_record_order(seq, kind, key, body)
                for number, commitment in enumerate(body.get("texts", ()), start=seq << TEXT_BITS):
                    while text is not None and text[0] < number:
                        self._add_changed_text(text[0], "belongs to no record")
                        text = next(stored_texts, None)
                    if text is None or text[0] > number:
                        self._missing.add(number)
                        continue
                    if sha256(text[1] + text[2]) != commitment:
                        self._add_changed_text(number, "differs from what was written")
                    self.texts += 1
                    text = next(stored_texts, None)
                self.links.append(self._stored_link)
        # one finding for a tail that was cut off, however many texts it had
        require(
            text is None,
            f"the records end too early, or texts were added: after record {len(self.links) - 1} "
            "some are left",
        )
        require(len(self.links) >= max(2, self._group.stop), "the records end too early")

    def find_differences(
        self, records: "Iterable[tuple[int, str, str, int, str, bytes]]"
    ) -> "Differences | None":
        """Return what was found, if anything; `records` are the same again, to find what changed texts are of."""
        changed_records = self.changed_records
        if not self.changed_count and not changed_records:
            return None
        numbers = sorted(self.changed_texts)[:MAX_LISTED]
        checked_records = takewhile(lambda record: record[0] < len(self.links), records)
        listed = locate_texts(checked_records, numbers) if numbers else []
        for number, text in zip(numbers, listed):  # noqa: B905 - Python 3.8 knows no `strict`
            text["problem"] = self.changed_texts[number]
        return Differences(
            self.changed_count,
            listed,
            next(iter(changed_records), ""),
            len(changed_records),
            changed_records[:MAX_LISTED],
        )

    def head_digests_by_record(self) -> "dict[int, str]":
        """Return the links that only a close record and erasures follow, by the numbers of their records."""
        return {number: self.links[number].hex() for number in range(self.settled, len(self.links))}

    @property
    def is_closed(self) -> bool:
        return bool(self.known["close"])

    def _check_record_order(self, seq: int, kind: str, key: str, body: Any) -> None:
        require(kind in RECORD_KINDS and (kind == "run") == (seq == 1), "has no business there")
        is_group_trace = kind == "trace" and not self._has_base
        require(is_group_trace == (seq in self._group), "is not of the group before it")
        require(
            not is_group_trace or body["group"] == seq - self._group.start + 1,
            "has another place in its group",
        )
        is_repeated_record = kind not in ("call", "lookup", "group") and key in self.known[kind]
        if kind == "trace" and is_repeated_record and not self._has_base:
            is_repeated_record = self.known[kind][key] != self._replaced
        require(
            kind == "erasure" or not (is_repeated_record or self.is_closed),
            "is after the end, or twice",
        )
        if kind == "run":
            self._has_base = bool(body["base"])
        elif kind == "group":
            self._group = range(seq + 1, seq + 1 + body["size"])
            name = canonical_json([key, body.get("phase"), body.get("step")]).decode()
            self._replaced = self._groups.get(name, 0)
            require(bool(self._replaced) == body.get("again", False), "is after the end, or twice")
            self._groups[name] = seq
        elif kind == "trace":
            self.traces += 1
        elif kind == "close":
            expected = {"traces": self.traces, "head": self.links[-1].hex()}
            require(
                key == "" and body == expected, "does not state the traces and the head before it"
            )
        elif kind == "erasure":
            self.erased.update(body["ids"])
        if kind == "trace":
            self.read(kind, key, body)
            self.known[kind][key] = self._group.start - 1
        elif kind not in ("call", "lookup"):
            self.known[kind][key] = self.read(kind, key, body)
        if kind not in ("close", "erasure"):
            self.settled = seq

    def read(self, kind: str, key: str, body: Any) -> Any:
        """Return what to remember of a record."""


class Ledger(RecordChain):
    """The records and texts in a folder, and the values that later checks need."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.run: dict[str, Any] = {}
        self.tasks: dict[str, str] = {}  # by response
        self.rewards: dict[
            str, list[Any]
        ] = {}  # by response: its task, and its reward as traces.jsonl has it
        self.shown: dict[str, StoredTrace] = {}  # by response
        self.statements: dict[int, str] = {}  # digests of what texts say, by their numbers
        self.base: Ledger | None = None
        self._folder = folder
        self._task = ""
        with add_place_to_errors("records.jsonl and texts.jsonl"):
            self.verify_records_and_texts(self._records(), self._texts())
            differences = self.find_differences(self._records())
            if differences is not None:
                raise VerificationError("\n  ".join(differences.lines()))

    def _records(self) -> "Iterator[tuple[Any, ...]]":
        for record in read_canonical_lines(self._folder / "records.jsonl", 6):
            fields = (record[name] for name in ("seq", "kind", "key", "at", "body"))
            yield (*fields, bytes.fromhex(record["link"]))

    def _texts(self) -> "Iterator[tuple[int, bytes, bytes]]":
        for text in read_canonical_lines(self._folder / "texts.jsonl", 3):
            statement = digest_statement(text["content"])
            if statement is not None:
                self.statements[text["id"]] = statement
            yield text["id"], bytes.fromhex(text["salt"]), text["content"].encode()

    def read(self, kind: str, key: str, body: Any) -> Any:
        """Return what later records need of a decision, a task or a survey; check rewards, and the base of a run."""
        if kind == "run":
            self.run = {**body, "key": key}
            origin = body["base"]
            if origin:
                with add_place_to_errors("base"):
                    self.base = Ledger(self._folder / "base")
                    base = (self.base.run["key"], self.base.links[origin["records"]].hex())
                    require(
                        base == (origin["run"], origin["head"]),
                        "is not the run that this one refers to",
                    )
                self.tasks = self.base.tasks
        elif kind == "group":
            self._task = key
        elif kind == "trace":
            task = self.tasks.setdefault(key, self._task)
            specs = self.known["decision"][self.known["task"][task]["decision"]]["specs"]
            self.rewards[key] = [task, *check_reward(body["reward"], specs)]
            if self.base is None:
                questions = self.known["survey"][self.known["task"][task]["survey"]]
                self.shown[key] = StoredTrace.read(body, len(self.links) << TEXT_BITS, questions)
        if kind == "survey":
            return [question["id"] for question in body["questions"]]
        return body if kind in ("decision", "task") else None


class StoredTrace(NamedTuple):
    """The content of a trace's record; its texts are numbers, that of the labels first, None where there is none."""

    agent: "str | None"
    scores: "list[tuple[str, int, float | None]]"
    texts: "list[int | None]"

    @classmethod
    def read(cls, body: Any, first_text: int, questions: "list[str]") -> "StoredTrace":
        verdicts = body["verdicts"]
        scores = [
            (questions[verdict["question"]], verdict.get("sample", 0), verdict.get("score"))
            for verdict in verdicts
        ]
        text_indices = [body.get("about"), *(verdict.get("text") for verdict in verdicts)]
        texts = [None if index is None else first_text + index for index in text_indices]
        return cls(body.get("agent"), scores, texts)

    def check(self, trace: Any, statements: "dict[int, str]") -> None:
        """Check a line of traces.jsonl against the record; of an erased text nothing is said."""
        require(trace["agent"] == self.agent, "has another agent than its record")
        own_verdicts = [
            verdict for verdict in trace["verdicts"] if verdict["about"] == trace["response_id"]
        ]
        scores = [
            (verdict["question"], verdict["sample"], verdict["score"]) for verdict in own_verdicts
        ]
        require(scores == self.scores, "has other scores than its record")
        trace_statements: list[Any] = [trace["labels"]]
        trace_statements += [
            [verdict["reason"], [e["quote"] for e in verdict["evidence"]]]
            for verdict in own_verdicts
        ]
        for statement, text in zip(trace_statements, self.texts):  # noqa: B905 - Python 3.8 knows no `strict`
            is_stored = statement in ({}, ["", []])
            if text is not None:
                digest = digest_shown(statement)
                is_stored = statements.get(text, digest) == digest
            require(is_stored, "has other labels, reasons or quotations than its record")


def digest_statement(content: str) -> "str | None":
    """Return the digest of the reason and quotations, or the labels, that a text contains; None of another text."""
    if not content.startswith(STATEMENT_BEGINNINGS):
        return None
    try:
        text = json.loads(content)
        return digest_shown(text.get("labels", [text.get("reason", ""), text.get("quotes", [])]))
    except (ValueError, RecursionError):  # a response may begin so
        return None


def digest_shown(value: Any) -> str:
    return sha256(canonical_json(value))


def check_reward(reward: "dict[str, Any]", specs: "list[dict[str, Any]]") -> "list[Any]":
    """Check that a reward follows from its terms and adjustments, to the last bit; return it with its terms."""
    require(len(reward["terms"]) == len(specs), "the reward has not one term for each component")
    pairs = zip(specs, reward["terms"])  # noqa: B905 - Python 3.8 knows no `strict`
    terms = {
        spec["name"]: None if value is None else spec["weight"] * value for spec, value in pairs
    }
    total = 0.0
    value = reward["value"]
    status = reward.get("status", "ok")
    for name in sorted(terms):
        total += terms[name] or 0.0  # not sum(), which adds differently since Python 3.12
    for name, before, after in reward.get("adjustments", ()):
        require(
            before == total, f"the reward before the {name} is {before}, and {total} comes to it"
        )
        total = after
    require(
        value == (None if status == "failed" else total),
        f"the {status} reward is {value}; its terms give {total}",
    )
    return [value, status, reward.get("coverage", 1.0), terms]


def check_traces(path: Path, run: Ledger) -> None:
    """Check each line of traces.jsonl against its record, all but what is left out of `Not proved`."""
    rewards = dict(run.rewards)
    stored = run.base or run
    for place, _, trace in read_lines(path):
        with add_place_to_errors(place):
            reward = trace["reward"]
            terms = {term["name"]: term["contribution"] for term in reward["terms"]}
            reward_fields = [
                trace["task_id"],
                reward["value"],
                reward["status"],
                reward["coverage"],
                terms,
            ]
            require(
                rewards.pop(trace["response_id"], None) == reward_fields,
                "does not match its record",
            )
            stored.shown[trace["response_id"]].check(trace, stored.statements)
    require(not rewards, f"traces.jsonl: {len(rewards)} traces are missing")


def check_run_seal(folder: Path, run: Ledger) -> "Iterator[str]":
    """Check that a seal is of this run, and yield what its signature would prove."""
    with add_place_to_errors("seal.txt"):
        first, _, text = (folder / "seal.txt").read_bytes().partition(b"\n")
        seal = json.loads(text)
        require(first == b"jurygraph seal" and seal["version"] == 1, "is not in the form of a seal")
        require(seal["run"] == run.run["key"], "is of another run")
        matches_sealed_head = run.head_digests_by_record().get(seal["records"]) == seal["head"]
        require(matches_sealed_head, "is of other records: some were changed, added or lost")
    after = len(run.links) - 1 - seal["records"]
    if run.base is not None:
        after += len(run.base.links) - 1 - run.run["base"]["records"]
    unsigned_erasures_note = f"; {after} later erasures are not signed" if after else ""
    yield f"holds: the seal of {seal['records']} records, by the key {seal['public_key']}{unsigned_erasures_note}"
    yield f"not checked: its signature; with the signer's key, from elsewhere: {OPENSSL_COMMAND}"


def verify_folder(folder: Path, head: "str | None") -> "Iterator[str]":
    run = Ledger(folder)
    state = "closed" if run.is_closed else "not closed, so more may be missing at the end"
    yield f"holds: {len(run.links) - 1} records, {state}, chained up to the head {run.links[-1].hex()}"
    erased_count = len((run.base or run).erased)
    yield f"holds: {len(run.rewards)} rewards, by their terms; every text, but for {erased_count} that were erased"
    config = sha256((folder / "config.yaml").read_bytes())
    require(config == run.run["config_file"], "config.yaml: is not that of this run")
    check_traces(folder / "traces.jsonl", run)
    yield "holds: config.yaml; in traces.jsonl rewards, terms, agents, labels, scores, reasons and quotations"
    require(
        head is None or head in run.head_digests_by_record().values(),
        f"records.jsonl: do not have the head {head}",
    )
    if (folder / "seal.txt").exists():
        yield from check_run_seal(folder, run)
    yield "not proved: that verdicts lead to the terms (`jurygraph verify` does); the rest of traces.jsonl, such as"
    yield "notes, counts, calls and offsets; that texts are true; and, without a head or key that you know from"
    yield "elsewhere, that nothing was rebuilt"


def main(arguments: "list[str] | None" = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "bundle",
        nargs="?",
        type=Path,
        default=Path(__file__).parent,
        help="zip, or unpacked folder",
    )
    parser.add_argument(
        "--expect-head", type=str.lower, help="head that the run must have: 64 hexadecimal digits"
    )
    options = parser.parse_args(arguments)
    if not options.bundle.exists():
        parser.error(f"{options.bundle}: does not exist")
    if options.expect_head is not None and not re.fullmatch("[0-9a-f]{64}", options.expect_head):
        parser.error(
            f"--expect-head: {options.expect_head!r} is no head; give its 64 hexadecimal digits"
        )
    try:
        for result_line in verify_bundle(options.bundle, options.expect_head):
            sys.stdout.write(f"{result_line}\n")
        sys.stdout.flush()
    except VerificationError as difference:
        parser.exit(5, f"differs: {difference}\n")


def verify_bundle(bundle_path: Path, head: "str | None") -> "Iterator[str]":
    with tempfile.TemporaryDirectory() as unpacked_folder:
        folder = bundle_path
        if bundle_path.is_file():
            folder = Path(unpacked_folder)
            with add_place_to_errors(bundle_path.name), zipfile.ZipFile(bundle_path) as archive:
                archive.extractall(folder)
        with add_place_to_errors(bundle_path.name):
            yield from verify_folder(folder, head)


if __name__ == "__main__":
    main()
