"""Check that the records of a run, and the texts that they name, are what was written.

What hands a run on checks this first: it takes a small part of a report, a certificate or a bundle. `verify` also
recomputes the rewards, which costs several times as much.
"""

from collections.abc import Iterable, Iterator
from hashlib import sha256

from jurygraph.display import ProgressCallback
from jurygraph.errors import TraceMismatch
from jurygraph.messages import list_first
from jurygraph.runs.integrity.offline_verifier import MAX_LISTED, Differences, RecordChain
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import CONFIG_FILE
from jurygraph.runs.store.header import setting_differences
from jurygraph.runs.store.ledger import Ledger, LedgerRecord, Text, reading
from jurygraph.sources.config import Document, YamlError

_RECORDS_PER_REPORT = 100


def require_records_as_written(run: Run, report: ProgressCallback) -> None:
    """Check all records and texts of a run, of each run of a set, and of the run whose verdicts a re-scored one has.

    `report` receives the number of newly checked records. Raises `TraceMismatch` with the changes of the
    first run that was changed.
    """
    for ledger in dict.fromkeys((*run.ledger.members, *run.source.ledger.members)):
        # texts only of records that were there when the run was opened: a run may grow meanwhile
        check_record_chain(ledger, ledger.stored_texts(1, ledger.count), report)


def require_config_file_as_written(run: Run) -> None:
    """Raise `TraceMismatch` unless the config in the folder of a run is there as written, with what was changed.

    A forger who rebuilds the chain may have changed the settings of the first record, and left the file and its digest.
    """
    path = run.folder / CONFIG_FILE
    if not path.is_file():
        raise TraceMismatch(f"{path}: is missing; put it back from a copy of this run")
    content = path.read_bytes()
    is_as_written = sha256(content).hexdigest() == run.header.config_file
    # as recorded: what later versions add to the settings is not in the file either
    settings_in_run = run.ledger.record_at(1).content["config"]
    try:
        settings = Document(content.decode(errors="replace")).value or {}
        changed_settings = list(setting_differences(settings_in_run, settings))
    except YamlError as error:
        changed_settings = [str(error)]
    if is_as_written and not changed_settings:
        return
    problem = "is not the config that was written; it has been changed"
    if is_as_written:
        problem = "is as it was written, and record 1 has other settings; that has been changed"
    what_changed = "; ".join(list_first(changed_settings, MAX_LISTED))
    raise TraceMismatch(
        f"{path}: {problem}: "
        f"{what_changed or 'its settings are the same, its comments or line breaks are not'}"
    )


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
