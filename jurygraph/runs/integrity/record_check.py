"""Check that the records of a run, and the texts that they name, are what was written.

What hands a run on checks this first: it takes a small part of a report, a certificate or a bundle. `verify` also
recomputes the rewards, which costs several times as much.
"""

from collections.abc import Iterable, Iterator

from jurygraph.display import ProgressCallback
from jurygraph.errors import TraceMismatch
from jurygraph.messages import quote
from jurygraph.runs.integrity.offline_verifier import RecordChain, VerificationError
from jurygraph.runs.run import Run
from jurygraph.runs.store.ledger import Ledger, LedgerRecord, Text

_RECORDS_PER_REPORT = 100


def require_records_as_written(run: Run, report: ProgressCallback) -> None:
    """Check all records and texts of a run, of each run of a set, and of the run whose verdicts a re-scored one has.

    `report` receives the number of newly checked records. Raises `TraceMismatch` with the first thing that was changed.
    """
    for ledger in dict.fromkeys((*run.ledger.members, *run.source.ledger.members)):
        # texts only of records that were there when the run was opened: a run may grow meanwhile
        check_record_chain(ledger, ledger.stored_texts(1, ledger.count), report)


def check_record_chain(
    ledger: Ledger, texts: Iterable[Text], report: ProgressCallback
) -> RecordChain:
    """Return the chain of a ledger's records, checked with their texts; it raises as `require_records_as_written`."""
    record_chain = RecordChain()
    try:
        record_chain.verify_records_and_texts(_report_progress(ledger.records(), report), texts)
    except VerificationError as difference:
        owner = _describe_call_owner(ledger, len(record_chain.links))
        raise TraceMismatch(f"{ledger.path}: {difference}{owner}") from None
    return record_chain


def _describe_call_owner(ledger: Ledger, number: int) -> str:
    """Return for which response or task a call was made, if this record is one: its key is only a digest."""
    for call in ledger.records("call", number - 1, number):
        for kind, noun in (("trace", "response"), ("task", "task")):
            for record in ledger.records(kind):
                if call.key in record.body:
                    return f"; the call was made for {noun} {quote(record.key)}"
    return ""


def _report_progress(
    records: Iterator[LedgerRecord], report: ProgressCallback
) -> Iterator[LedgerRecord]:
    for record in records:
        yield record
        if record.seq % _RECORDS_PER_REPORT == 0:
            report(_RECORDS_PER_REPORT)
