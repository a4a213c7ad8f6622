"""Check that the records of a run, and the texts that they name, are what was written.

What hands a run on checks this first: it takes a small part of a report, a certificate or a bundle. `verify` also
recomputes the rewards, which costs several times as much.
"""

from collections.abc import Iterable, Iterator

from jurygraph.display import ProgressCallback
from jurygraph.errors import TraceMismatch
from jurygraph.runs.integrity.offline_verifier import Differences, RecordChain
from jurygraph.runs.run import Run
from jurygraph.runs.store.ledger import Ledger, LedgerRecord, Text, reading

_RECORDS_PER_REPORT = 100


def require_records_as_written(run: Run, report: ProgressCallback) -> None:
    """Check all records and texts of a run, of each run of a set, and of the run whose verdicts a re-scored one has.

    `report` receives the number of newly checked records. Raises `TraceMismatch` with the changes of the
    first run that was changed.
    """
    for ledger in dict.fromkeys((*run.ledger.members, *run.source.ledger.members)):
        # texts only of records that were there when the run was opened: a run may grow meanwhile
        check_record_chain(ledger, ledger.stored_texts(1, ledger.count), report)


def check_record_chain(
    ledger: Ledger, texts: Iterable[Text], report: ProgressCallback
) -> RecordChain:
    """Return the chain of a ledger's records, checked with their texts; it raises as `require_records_as_written`."""
    record_chain = RecordChain()
    record_chain.verify_records_and_texts(_report_progress(ledger.records(), report), texts)
    with reading(str(ledger.path)):
        differences = record_chain.find_differences(ledger.records())
    if differences is not None:
        raise _to_mismatch(ledger, differences)
    return record_chain


def _to_mismatch(ledger: Ledger, differences: Differences) -> TraceMismatch:
    """Return an error with the first difference, and the others as its notes."""
    first_line, *lines = differences.lines()
    error = TraceMismatch(f"{ledger.path}: {first_line}")
    error.differences = differences._asdict()
    for line in lines:
        error.add_note(line)
    return error


def _report_progress(
    records: Iterator[LedgerRecord], report: ProgressCallback
) -> Iterator[LedgerRecord]:
    for record in records:
        yield record
        if record.seq % _RECORDS_PER_REPORT == 0:
            report(_RECORDS_PER_REPORT)
