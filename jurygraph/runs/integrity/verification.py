"""Whether a run is what was written: its chain, its texts, its config, and every reward again from its verdicts."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from jurygraph.agents.registry import load_combiners
from jurygraph.errors import InputError, JurygraphError, TraceMismatch
from jurygraph.graphs.decide import collection_paused
from jurygraph.runs.canary import check_canaries
from jurygraph.runs.integrity.recomputing import Combiners, Group, Recomputation, groups_of, statistics_again
from jurygraph.runs.integrity.seal import MAY_FOLLOW, check_seal
from jurygraph.runs.progress import Report
from jurygraph.runs.run import Run
from jurygraph.runs.store import folder as place
from jurygraph.runs.store.chain import MOST_TEXTS, START, Record, Text, commitment, named
from jurygraph.runs.store.header import changes, shown
from jurygraph.runs.store.ledger import Ledger
from jurygraph.runs.store.packing import Body

_KINDS = frozenset({"run", "survey", "decision", "task", "group", "trace", "call", "canary", *MAY_FOLLOW})
_ONCE = ("survey", "decision", "task", "group", "trace", "canary")
_STEP = 100


class Verified(NamedTuple):
    """What was found right: so many records, texts and rewards, up to this head.

    `erased` texts are gone and said to be. `sealed` is the public key that signed the run, and `unsigned` counts the
    erasures that came after the seal; `base` is the folder of the run whose verdicts it refers to, which was verified
    as well.
    """

    records: int
    traces: int
    texts: int
    erased: int
    closed: bool
    head: str
    sealed: str | None
    base: str | None
    unsigned: int


def verify(run: Run, report: Report, expect_head: str | None = None, signer: Path | None = None) -> Verified:
    """Check a whole run; `report` is told how many records were looked at since the last time.

    Raises `TraceMismatch` naming the first thing that is not as it was written. With `expect_head`, nothing but an end
    or an erasure may follow the record with that link; with `signer`, the run must be sealed by that key, and
    nothing may follow what was sealed. What another process writes meanwhile is not looked at.
    """
    head = None if expect_head is None else _head(expect_head)
    try:
        with run.ledger.snapshot(), collection_paused():
            return _verified(run, report, head, signer)
    except JurygraphError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        wrong = f"holds a record that nobody wrote like that ({type(error).__name__}: {error})"
        raise TraceMismatch(f"{run.ledger.path}: {wrong}; it has been changed") from error


def _head(text: str) -> str:
    head = text.strip().lower()
    if not re.fullmatch("[0-9a-f]{64}", head):
        raise InputError(f"the head {text!r} is none; give the 64 hexadecimal digits that `jurygraph verify` prints")
    return head


def _verified(run: Run, report: Report, expected: str | None, signer: Path | None) -> Verified:
    for fault in run.ledger.faults():
        raise TraceMismatch(f"{run.ledger.path}: {fault}; it has been changed")
    chain = _Chain(run.ledger, report)
    chain.walk()
    _check_config(run)
    if expected is not None:
        chain.expect(expected)
    sealed = check_seal(run.folder, run.ledger, signer)
    base = None if run.base is None else _verified_base(run, run.base, report, signer)
    _check_rewards(run)
    if run.base is None:
        check_canaries(run.ledger, run.plan_of)
    return Verified(
        records=run.ledger.count,
        traces=chain.numbers.get("trace", 0),
        texts=chain.texts,
        erased=len(chain.erased),
        closed=run.closed,
        head=run.ledger.head.hex(),
        sealed=None if sealed is None else sealed.public_key,
        base=base,
        unsigned=0 if sealed is None else run.ledger.count - sealed.records,
    )


class _Chain:
    """One walk over all records and, beside them, all texts."""

    def __init__(self, ledger: Ledger, report: Report) -> None:
        self.texts = 0
        self.erased: set[int] = set()
        self.numbers: dict[str, int] = {}
        self._ledger = ledger
        self._report = report
        self._stored = ledger.all_texts()
        self._text: Text | None = next(self._stored, None)
        self._missing: dict[int, Record] = {}
        self._group, self._size = 0, 0

    def walk(self) -> None:
        before = START.hex()
        for record in self._ledger.chained(1, self._ledger.count):
            body = self._body(record)
            self._check_place(record, body)
            self._check_texts(record, body.get("texts", ()))
            if record.kind == "close" and body != {"traces": self.numbers.get("trace", 0), "head": before}:
                self._wrong(f"{named(record)}: does not state the traces and the head before it")
            if record.kind == "erasure":
                self.erased.update(body["ids"])
            self.numbers[record.kind] = self.numbers.get(record.kind, 0) + 1
            before = record.link.hex()
            if record.seq % _STEP == 0:
                self._report(_STEP)
        self._check_whole()

    def expect(self, head: str) -> None:
        """Refuse a run of which this is not the head, but for an end or erasures after it."""
        after: list[Record] | None = [] if head == START.hex() else None
        for record in self._ledger.records():
            if after is not None:
                after.append(record)
            elif record.link.hex() == head:
                after = []
        if after is None:
            self._wrong(f"the head is {self._ledger.head.hex()}, and no record has the link {head} that was expected")
        for record in after:
            if record.kind not in MAY_FOLLOW:
                self._wrong(f"{named(record)}: comes after the head that was expected")

    def _body(self, record: Record) -> Body:
        misplaced = (record.kind == "run") != (record.seq == 1) or (
            "close" in self.numbers and record.kind != "erasure"
        )
        if record.kind not in _KINDS or misplaced:
            self._wrong(f"{named(record)}: has no business there")
        return record.content

    def _check_place(self, record: Record, body: Body) -> None:
        """The traces of a group follow it at once."""
        if record.kind == "group":
            self._group, self._size = record.seq, body["size"]
        expects_trace = record.seq - self._group <= self._size and record.seq != self._group
        if "group" in body and record.kind == "trace":
            if not expects_trace or body["group"] != record.seq - self._group:
                self._wrong(f"{named(record)}: does not belong to the group before it")
        elif expects_trace:
            self._wrong(f"{named(record)}: stands where a trace of the group before it is missing")

    def _check_texts(self, record: Record, commitments: Any) -> None:
        for number, stated in enumerate(commitments, start=record.seq * MOST_TEXTS):
            text = self._text
            if text is not None and text.id < number:
                self._wrong(f"text {text.id}: belongs to no record")
            if text is None or text.id > number:
                self._missing[number] = record
                continue
            if commitment(text.salt, text.content) != stated:
                self._wrong(f"text {text.id} of {named(record)}: is not what was written")
            self.texts += 1
            self._text = next(self._stored, None)

    def _check_whole(self) -> None:
        if self._text is not None:
            self._wrong(f"text {self._text.id}: belongs to no record")
        for number in sorted(self.erased - self._missing.keys()):
            self._wrong(f"text {number}: was erased, and is there again")
        for number, record in self._missing.items():
            if number not in self.erased:
                self._wrong(f"text {number} of {named(record)}: is missing, and no erasure says so")
        if self._ledger.count < self._group + self._size:
            self._wrong(f"record {self._group}: not all traces of this group are there")
        for kind in _ONCE:
            twice = self._ledger.repeated(kind)
            if twice is not None:
                self._wrong(f"{kind} {twice!r}: is there twice")

    def _wrong(self, what: str) -> NoReturn:
        raise TraceMismatch(f"{self._ledger.path}: {what}")


def _check_config(run: Run) -> None:
    path = run.folder / place.CONFIG
    if not path.is_file():
        raise TraceMismatch(f"{path}: is missing")
    if place.digest(path.read_bytes()) != run.header.config_file:
        raise TraceMismatch(f"{path}: is not the config that was written; it has been changed")


def _verified_base(run: Run, base: Run, report: Report, signer: Path | None) -> str:
    """The folder of a base that holds; erasures in it that the run's seal does not cover need a seal of its own."""
    origin = run.header.base
    assert origin is not None
    verify(base, report, signer=signer if base.ledger.count > origin.records else None)
    if base.ledger.count < origin.records or base.ledger.at(origin.records).link.hex() != origin.head:
        raise TraceMismatch(f"{base.ledger.path}, record {origin.records}: is not the one that {run.folder} refers to")
    return str(base.folder)


def combiners_for(run: Run) -> Combiners:
    """The combiners of a run's config. Raises `InputError` where one is of another version than the run's."""
    combiners = load_combiners(run.config, run.header.evaluators.values())
    for name, version in run.header.combiners.items():
        found = combiners[name].version if name in combiners else "none"
        if found != version:
            wrong = f"was decided with combiner {name} of version {version}, and here it has {found}"
            raise InputError(f"{run.folder}: {wrong}; rewards can be recomputed with the version of the run alone")
    return combiners


def _check_rewards(run: Run) -> None:
    """Every reward again; it must be the same to the last bit."""
    origin = run.header.base
    groups = groups_of(run.source, run.extent)
    again = Recomputation(run.source, lambda group: run.decision_of(group.record.key), combiners_for(run))
    own = run.ledger.records("trace")
    for one in again.rewards(_with_right_statistics(run, groups) if origin is None else groups):
        record, stored = (one.record, one.body) if origin is None else _own(run, one.record, own)
        if _written(stored["reward"]) != _written(one.reward):
            raise TraceMismatch(
                f"{run.ledger.path}, {named(record)}: {_reward_difference(stored['reward'], one.reward)}"
            )
    if origin is not None and next(own, None) is not None:
        raise TraceMismatch(f"{run.ledger.path}: has traces that {run.source.folder} does not have")


def _own(run: Run, record: Record, own: Iterator[Record]) -> tuple[Record, Body]:
    """The record of the same trace in a run that refers to another one."""
    mine = next(own, None)
    if mine is None or mine.key != record.key:
        raise TraceMismatch(f"{run.ledger.path}: the trace of response {record.key!r} is missing or out of its place")
    return mine, mine.content


def _with_right_statistics(run: Run, groups: Iterator[Group]) -> Iterator[Group]:
    for group in groups:
        if _written(group.body["statistics"]) != _written(statistics_again(group, run.shape(group.survey))):
            raise TraceMismatch(f"{run.ledger.path}, {named(group.record)}: its verdicts give other statistics")
        yield group


def _reward_difference(stored: Body, again: Body) -> str:
    key, there, here = next(changes(stored, json.loads(_written(again))), ("reward", stored, again))
    return f"the verdicts give another reward: {key} is {shown(there)} in the run and {shown(here)} when recomputed"


def _written(value: Any) -> str:
    return json.dumps(value)
