"""Erase texts from a run, its cache and its recording for good: the text, its salts and every copy there.

The erasure is recorded in the chain; the scores of verdicts, rewards and ids are kept, and the run still verifies.
"""

import json
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.models.cache import default_cache_folder, erase_replies
from jurygraph.runs.run import Run
from jurygraph.runs.store.atomic_files import REPLACEMENT_FILE_GLOB, write_atomically
from jurygraph.runs.store.folder import discard_index, remove_planning_calls
from jurygraph.runs.store.ledger import MAX_TEXTS_PER_RECORD, LedgerRecord, RecordDraft, Text
from jurygraph.runs.store.packing import read_shared_id_lists, shown_response_ids
from jurygraph.runs.writable_run import WritableRun
from jurygraph.schema.frozen_model import iter_strings

ErasureTarget = Literal["response", "task"]
ErasedNames = str | Sequence[str]
"""The id of a response or a task, or several."""

_CALL_RECORD_KINDS = ("call", "lookup")
"""Kinds of records whose texts, of a call of a model or of a tool, may quote what is erased."""
MIN_SEARCHED_TEXT_LENGTH = 20
"""Length in characters below which a text is not searched for: "42" occurs in other answers by chance."""


class ErasureResult(NamedTuple):
    """The result of an erasure, or what one would do in the run.

    `erased` counts its own texts that were erased, `erased_in_others` other texts that contained it. `responses` are
    other responses that lose their text, or the words of a verdict.
    `replies` is the number of replies deleted from the cache, `calls` of calls deleted from recordings. `tasks` whose
    own text contains it are left and listed. `unreached` are messages about places that could not be searched or
    written.
    """

    erased: int
    erased_in_others: int
    responses: list[str]
    tasks: list[str]
    replies: int
    calls: int
    unreached: list[str]


def erase(folder: Path, what: ErasureTarget, names: ErasedNames, reason: str) -> ErasureResult:
    """Erase all texts of a response or several, or of a task or several and all responses to them.

    Raises `InputError` where there is no such response or task, or where another process writes or reads the run.
    """
    with WritableRun.open_existing_run(folder) as run:
        erasure = _Erasure(run, what, names)
        run.ledger.refuse_other_readers()
        return erasure.erase(reason)


def preview_erasure(folder: Path, what: ErasureTarget, names: ErasedNames) -> ErasureResult:
    """Return what `erase` would do in the run; cache and recordings are not searched, and nothing is written.

    Raises `InputError` as `erase` does, but for a run in use.
    """
    with Run.open(folder) as run:
        run.require_single_run()
        return _Erasure(run, what, names).erase(None)


class _Erasure:
    def __init__(self, run: Run, what: ErasureTarget, names: ErasedNames) -> None:
        if run.header.base is not None:
            raise InputError(
                f"{run.folder}: contains no texts; erase in {run.folder_of_origin(run.header.base)}"
            )
        self._run = run
        self._ledger = run.ledger
        self._what: ErasureTarget = what
        self._own_by_name = {
            name: {text.id: text.content for text in self._read_requested_texts(name)}
            for name in ([names] if isinstance(names, str) else names)
        }
        self._own = dict(ChainMap(*self._own_by_name.values()))
        self._erased_text_encodings = self._encoded_erased_texts()

    def erase(self, reason: str | None) -> ErasureResult:
        """Erase the texts for this reason; without one, only find out which of the run would be erased."""
        copied_text_ids, tasks = self._find_texts_with_copies()
        erased_text_ids = sorted({*self._own, *copied_text_ids})
        others = self._affected_response_ids(erased_text_ids)
        replies = calls = 0
        unreached_files: list[str] = []
        if reason is not None:
            # before the ledger: once its texts are erased, the forms to search for cannot be made again
            replies, calls, unreached_files = self._erase_in_cache_and_recordings(erased_text_ids)
            self._erase_in_ledger(copied_text_ids, reason)
        return ErasureResult(
            len(self._own), len(copied_text_ids), others, tasks, replies, calls, unreached_files
        )

    def _erase_in_ledger(self, copied_text_ids: set[int], reason: str) -> None:
        ledger = self._ledger
        # it holds texts too; tasks that are still to be planned repeat their calls
        remove_planning_calls(self._run.folder)
        # it has the words of the texts
        discard_index(self._run.folder)
        for leftover_file in self._run.folder.glob(REPLACEMENT_FILE_GLOB):
            leftover_file.unlink()
        for name, own in self._own_by_name.items():
            ids = sorted({*own, *copied_text_ids})
            ledger.append(
                RecordDraft("erasure", name, {"what": self._what, "reason": reason, "ids": ids})
            )
            ledger.erase(ids)
        ledger.commit()
        ledger.compact()

    def _affected_response_ids(self, erased_text_ids: Iterable[int]) -> list[str]:
        """Return the ids of responses that lose text, or the words of verdicts, besides those that were named."""
        requested_response_ids = (
            self._own_by_name
            if self._what == "response"
            else self._response_ids_of_texts(self._own)
        )
        return [
            name
            for name in self._response_ids_of_texts(erased_text_ids)
            if name not in requested_response_ids
        ]

    def _response_ids_of_texts(self, texts: Iterable[int]) -> dict[str, None]:
        """Return the ids of responses in whose records these texts are, in order."""
        records = [self._ledger.record_at(number // MAX_TEXTS_PER_RECORD) for number in texts]
        return {record.key: None for record in records if record.kind == "trace"}

    def _read_requested_texts(self, name: str) -> Iterator[Text]:
        ledger = self._ledger
        kind = "trace" if self._what == "response" else "task"
        records = ledger.find_all_records(kind, name)  # a group that was scored again has two
        if not records:
            hint = (
                did_you_mean(name, ledger.keys(kind))
                or f"name the id of a {self._what} of this run"
            )
            raise InputError(f"{self._run.folder}: there is no {self._what} {name!r}; {hint}")
        yield from ledger.stored_texts(1, 1)  # the digests of the scored files
        if self._what == "response":
            for record in records:
                yield from self._response_texts(record)
            return
        for record in records:
            yield from self._texts_of_record_and_calls(record)  # those of a task read its profiles
        for group in ledger.find_all_records("group", name):
            yield from ledger.stored_texts(group.seq, group.seq)
            for trace in ledger.records(
                "trace", after=group.seq, up_to_record=group.seq + group.content["size"]
            ):
                yield from self._texts_of_record_and_calls(trace)

    def _response_texts(self, record: LedgerRecord) -> Iterator[Text]:
        """Yield a response's own texts, its group's digest, and the texts of verdicts on others that showed it."""
        ledger = self._ledger
        group = ledger.record_at(record.seq - record.content["group"])
        yield from ledger.stored_texts(group.seq, group.seq)
        yield from self._texts_of_record_and_calls(record)
        shared_id_lists = read_shared_id_lists(group.content)
        for trace in ledger.records(
            "trace", after=group.seq, up_to_record=group.seq + group.content["size"]
        ):
            shown_text_indices = {
                verdict.get("text")
                for verdict in trace.content["verdicts"]
                if record.key in shown_response_ids(verdict, shared_id_lists)
            }
            for text in ledger.stored_texts(trace.seq, trace.seq):
                if text.id % MAX_TEXTS_PER_RECORD in shown_text_indices:
                    yield text

    def _texts_of_record_and_calls(self, record: LedgerRecord) -> Iterator[Text]:
        yield from self._ledger.stored_texts(record.seq, record.seq)
        for kind, name in _referenced_call_ids(record):
            for call in self._ledger.find_all_records(kind, name):
                yield from self._ledger.stored_texts(call.seq, call.seq)

    def _encoded_erased_texts(self) -> set[bytes]:
        """Return the encoded forms of the erased responses and of the strings of an erased task, if long enough.

        Strings that another task or response contains as well, such as those of a shared rubric, are left out.
        """
        responses = set()
        erased_task_strings: set[str] = set()
        for number, content in self._own.items():
            kind = self._ledger.record_at(number // MAX_TEXTS_PER_RECORD).kind
            if kind == "task":
                erased_task_strings.update(iter_strings(json.loads(content)))
            elif kind == "trace" and number % MAX_TEXTS_PER_RECORD == 0:
                responses.add(content.decode())
        searchable_task_strings = filter(_is_long_enough_to_search, erased_task_strings)
        encodings_by_string = {text: json_encodings(text) for text in searchable_task_strings}
        for kind in ("task", "trace"):
            for other in self._ledger.first_text_per_record(kind):
                if encodings_by_string and other.id not in self._own:
                    encodings_by_string = {
                        text: forms
                        for text, forms in encodings_by_string.items()
                        if not _contains_any(forms, other.content)
                    }
        response_encodings = map(json_encodings, filter(_is_long_enough_to_search, responses))
        return set(chain(*encodings_by_string.values(), *response_encodings))

    def _contains_erased_text(self, content: bytes) -> bool:
        return _contains_any(self._erased_text_encodings, content)

    def _find_texts_with_copies(self) -> tuple[set[int], list[str]]:
        """Return the texts that contain an erased one, and the tasks whose own text does, which is kept.

        Of a response that does, all texts are included, and of a call, since its reply may quote its request.
        """
        ledger = self._ledger
        copied_text_ids = set()
        tasks = []
        for text in ledger.stored_texts(1, ledger.count) if self._erased_text_encodings else ():
            if text.id in self._own or not self._contains_erased_text(text.content):
                continue
            record = ledger.record_at(text.id // MAX_TEXTS_PER_RECORD)
            if record.kind == "task":
                tasks.append(record.key)
                continue
            copied_text_ids.add(text.id)
            if record.kind == "trace" and text.id % MAX_TEXTS_PER_RECORD == 0:
                copied_text_ids |= {other.id for other in self._response_texts(record)}
            elif record.kind in _CALL_RECORD_KINDS:
                copied_text_ids |= {
                    other.id for other in ledger.stored_texts(record.seq, record.seq)
                }
        return copied_text_ids - self._own.keys(), tasks

    def _erase_in_cache_and_recordings(
        self, erased_text_ids: Collection[int]
    ) -> tuple[int, int, list[str]]:
        """Erase from the cache and the recordings; return the numbers of replies and calls, and what failed."""
        config = self._run.config
        keys = self._call_keys(erased_text_ids)
        unreached_files = []
        calls = replies = 0
        for recording in dict.fromkeys(
            config.call_settings_of(judge).record for judge in config.judges
        ):
            if recording is not None:
                try:
                    calls += self._erase_calls(Path(recording), keys)
                except InputError as error:
                    unreached_files.append(f"calls.record: {error}")
        try:
            replies = erase_replies(default_cache_folder(), keys, self._contains_erased_text)
        except InputError as error:
            unreached_files.append(str(error))
        return replies, calls, unreached_files

    def _call_keys(self, erased_text_ids: Collection[int]) -> set[str]:
        """Return the keys of the calls that erased texts belong to, or that led to the texts' traces and plans.

        Texts that earlier erasures of the same response or task deleted are included.
        """
        numbers = set(erased_text_ids)
        for erasure in self._ledger.records("erasure"):
            if erasure.key in self._own_by_name:
                numbers.update(erasure.content["ids"])
        keys = set()
        for number in sorted(numbers):
            record = self._ledger.record_at(number // MAX_TEXTS_PER_RECORD)
            if record.kind in _CALL_RECORD_KINDS:
                keys.add(record.key)
            elif number % MAX_TEXTS_PER_RECORD == 0:
                keys |= {name for _, name in _referenced_call_ids(record)}
        return keys

    def _erase_calls(self, path: Path, keys: Collection[str]) -> int:
        """Rewrite a recording without the calls that have one of the keys or contain an erased text; count them."""

        def is_erased(line: bytes) -> bool:
            return _read_call_key(line) in keys or self._contains_erased_text(line)

        try:
            target = path.resolve(strict=True)
            with target.open("rb") as file:
                erased_count = sum(map(is_erased, file))
                if erased_count:
                    file.seek(0)
                    write_atomically(target, (line for line in file if not is_erased(line)))
        except OSError as error:
            raise InputError(
                f"{path}: the recording cannot be rewritten ({error.strerror or error}); "
                "put it back there, see that you may write to it, "
                "and give the same command again"
            ) from None
        return erased_count


def _referenced_call_ids(record: LedgerRecord) -> Iterator[tuple[str, str]]:
    """Yield the kind and the id of each call, of a model or of a tool, that a record names."""
    content = record.content
    for kind in _CALL_RECORD_KINDS:
        for call in content.get(f"{kind}s", ()):
            yield kind, call["id"]


def _is_long_enough_to_search(text: str) -> bool:
    return len(text) >= MIN_SEARCHED_TEXT_LENGTH


def _contains_any(forms: Iterable[bytes], content: bytes) -> bool:
    return any(form in content for form in forms)


def json_encodings(text: str) -> set[bytes]:
    """Return a text as bytes: plain, as JSON with and without ASCII escapes, and so escaped once more.

    The last are of a JSON reply that is itself stored as a JSON string.
    """
    forms = {text}
    for _ in range(2):
        for form in list(forms):
            forms.add(json.dumps(form, ensure_ascii=False)[1:-1])
            forms.add(json.dumps(form, ensure_ascii=True)[1:-1])
    return {form.encode(errors="surrogatepass") for form in forms}


def _read_call_key(line: bytes) -> str | None:
    """Return the key of the call in a line; None if the line was torn, or is of another kind."""
    try:
        key = json.loads(line)["key"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return key if isinstance(key, str) else None
