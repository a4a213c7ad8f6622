"""Taking in what user code gave: an answer becomes verdicts and a result material, checked, or a named failure.

Nothing that an evaluator or deriver gives or raises gets past here unchecked, and nothing of it stops a run. What a
combiner raises does: it is arithmetic on numbers alone, so that no response is to blame, and without it there is no
reward.
"""

import json
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from jurygraph.agents.functions import describe
from jurygraph.agents.roles import Cells, Combiner, Component
from jurygraph.errors import JurygraphError, PlanError, TimeLimitExceeded
from jurygraph.graphs.routing import Job, Slot, stamps
from jurygraph.models.faults import Fault
from jurygraph.safety.evidence import read_text
from jurygraph.safety.known_secrets import process_redactor
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import Cause, Evidence, Failure, Material, TaskView, Verdict

T = TypeVar("T", Verdict, Material)
NOBODY = Failure(cause="infrastructure", kind="no-model", message="the config's model is none")
NO_MODEL = Verdict(status="abstained", reason=NOBODY.message, failure=NOBODY)
LONGEST_MESSAGE, LONGEST_KIND = 500, 100
MOST_SEARCHED, LONGEST_SEARCHED = 100, 10_000
"""Quotations without offsets that are looked for in a response, per verdict, and letters of each; others stay
unverified. An evaluator that quotes every line of a long response would cost the square of its length."""
_MOST_READ = 1 << 16  # characters of a message that are looked at
_INSTALLED = (str(Path(__file__).parents[1]), sysconfig.get_path("stdlib"))
_NUMBERS = frozenset({"score", "met", "confidence", "scale", "status"})
"""Fields of a verdict that hold no text of an evaluator's own."""

FIELDS = {noun: frozenset(noun.model_fields) for noun in (Verdict, Material)}


class _Malformed(ValueError):
    """What user code gave is not what it may give; the message says why."""


def take_answer(slot: Slot, answer: Any, view: TaskView, redactor: Redactor) -> list[Verdict]:
    """The verdicts that an answer holds, one for each response that the slot is about, redacted and stamped."""
    stamp = stamps(slot.question, view)
    shown = tuple(r.id for r in slot.responses)
    texts = [response.text for response in slot.responses]
    verdicts = _guarded(lambda: [_guarded_verdict(one, redactor) for one in _one_each(answer, slot)])
    if isinstance(verdicts, BaseException):
        verdicts = [_failed(verdicts, redactor)] * len(slot.about)
    return [
        stamp(_clean_verdict(_with_evidence(verdict, response.text), texts, redactor), about, shown, slot.sample)
        for verdict, about, response in zip(verdicts, slot.about, slot.responses, strict=False)
    ]


def _clean_verdict(verdict: Verdict, shown: Sequence[str], redactor: Redactor) -> Verdict:
    clean = _guarded(lambda: _redacted(verdict, shown, redactor))
    return clean if isinstance(clean, Verdict) else _failed(clean, redactor)


def _with_evidence(verdict: Verdict, text: str) -> Verdict:
    if not verdict.evidence:
        return verdict
    return verdict.model_copy(update={"evidence": _checked_evidence(verdict.evidence, text)})


def take_material(job: Job, result: Any, redactor: Redactor) -> Material:
    """The material that a result is, about the job's response, redacted; failed material if it is none."""
    taken = _guarded(lambda: _material(job, result, redactor))
    if isinstance(taken, BaseException):
        taken = Material(name=job.derivation.gives, status="failed", failure=failure_of(taken, redactor))
    material: Material = taken.model_copy(update={"response": job.response.id})
    return material


@contextmanager
def told_of(whose: str) -> Iterator[None]:
    """Raise what user code raises where nothing else can come of it as a PlanError that says whose it is."""
    try:
        yield
    except JurygraphError:
        raise
    except Exception as error:
        wrong = process_redactor().text(f"{type(error).__name__}: {error}")
        raise PlanError(f"{whose} breaks: {wrong}; mend it, or name another one") from error


def take_component(name: str, combiner: Combiner, cells: Mapping[str, Cells], params: Mapping[str, Any]) -> Component:
    """What a combiner makes of the cells. PlanError naming it if it raises, or gives no number for each response."""
    with told_of(f"combiner {name!r}"):
        one = combiner.combine(cells, params)
        responses = next(iter(cells.values())).value.shape[:1]
        arrays = (one.value, one.present, *one.parts.values(), *one.figures.values())
        if any(array.shape != responses for array in arrays):
            raise PlanError(f"combiner {name!r} breaks: every array of a component has one number for each response")
    return one


def failure_of(error: BaseException, redactor: Redactor) -> Failure:
    """A time limit on code that reads the response was perhaps provoked by it; all else is our own trouble.

    The message is redacted before it is cut, so that no half of a secret is left.
    """
    if isinstance(error, Fault):
        return Failure(cause=error.cause, kind=error.kind, message=_message(error, redactor))
    if isinstance(error, TimeLimitExceeded):
        cause: Cause = "response"
        kind = "time-limit"
    else:
        cause = "infrastructure"
        named = redactor.text(type(error).__name__)[:LONGEST_KIND]
        kind = "malformed" if isinstance(error, _Malformed) else named or "error"
    told = _guarded(lambda: _message(error, redactor))
    message = told if isinstance(told, str) else f"it has no message: {type(told).__name__}"
    return Failure(cause=cause, kind=kind, message=(message or kind) + redactor.text(_place_of(error)))


def _message(error: BaseException, redactor: Redactor) -> str:
    whole = describe(error) if isinstance(error, ValidationError) else str(error)
    read = redactor.text(whole[:_MOST_READ]).encode("utf-8", "backslashreplace").decode("utf-8")
    return read[:LONGEST_MESSAGE]


def _place_of(error: BaseException) -> str:
    """Where in a user's code an exception came from, without the folder; empty where it is none of theirs."""
    frames = (frame for frame in extract_tb(error.__traceback__) if not _is_installed(frame.filename))
    own = [f" ({Path(frame.filename).name}, line {frame.lineno}, in {frame.name})" for frame in frames]
    return own[-1] if own else ""


def _is_installed(filename: str) -> bool:
    """Whether a module is ours, Python's or a library's; a user's own package may be installed from its folder."""
    return filename.startswith(_INSTALLED) or "site-packages" in filename or not Path(filename).is_absolute()


def _guarded(read: Callable[[], Any]) -> Any:
    """What reading gave, or what it raised: even a number or a message can be user code."""
    try:
        return read()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the boundary
        return error


def _guarded_verdict(answer: Any, redactor: Redactor) -> Verdict:
    taken = answer if isinstance(answer, BaseException) else _guarded(lambda: _verdict(answer))
    return taken if isinstance(taken, Verdict) else _failed(taken, redactor)


def _failed(error: BaseException, redactor: Redactor) -> Verdict:
    failure = failure_of(error, redactor)
    return Verdict(status="failed", failure=failure, reason=failure.message)


def _one_each(answer: Any, slot: Slot) -> Sequence[Any]:
    """One answer for each response that a verdict is about."""
    for_all = isinstance(answer, BaseException) or (isinstance(answer, Verdict) and answer.status != "ok")
    if slot.question.scope != "group" or for_all:
        return [answer] * len(slot.about)
    if not isinstance(answer, Sequence | np.ndarray) or len(answer) != len(slot.about):
        raise _Malformed(f"expected a sequence of {len(slot.about)} verdicts, one for each response of the group")
    return list(answer)


def _verdict(answer: Any) -> Verdict:
    """What an evaluator gave, as a verdict; anything off the range or kind is refused, and never a score."""
    if isinstance(answer, bool | np.bool_):
        return Verdict(score=float(answer), met=bool(answer))
    if isinstance(answer, int | float | np.integer | np.floating):
        if not 0.0 <= answer <= 1.0:
            raise _Malformed(f"a score lies in [0, 1], not at {answer}")
        return Verdict(score=float(answer))
    if not isinstance(answer, Verdict):
        raise _Malformed(f"expected a Verdict, a number or a boolean, got {type(answer).__name__}")
    checked = _checked(answer)
    if checked.status == "not_applicable" or checked.gated_by is not None:
        raise _Malformed("not_applicable and gated_by are for staged screening alone: abstain instead")
    if checked.status == "ok" and checked.failure is not None:
        raise _Malformed("a verdict that is ok has no failure")
    return checked


def _material(job: Job, result: Any, redactor: Redactor) -> Material:
    if isinstance(result, BaseException):
        raise result
    if not isinstance(result, Material):
        given, name = type(result).__name__, job.derivation.gives
        raise _Malformed(f"expected material {name!r}, got {given}; return Material(name={name!r}, data=...)")
    checked = _checked(result)
    evidence = _checked_evidence(checked.evidence, job.response.text)
    checked = _redacted(checked.model_copy(update={"evidence": evidence}), [job.response.text], redactor)
    if checked.name != job.derivation.gives:
        raise _Malformed(f"expected material {job.derivation.gives!r}, got {checked.name!r}")
    if len({variant.response.id for variant in checked.variants}) < len(checked.variants):
        raise _Malformed(f"two variants in material {checked.name!r} have the same id")
    return checked


def _checked(noun: T) -> T:
    """The noun, validated again, since a copy or a construct never was, and known to be writable as JSON."""
    kind: Any = Verdict if isinstance(noun, Verdict) else Material
    try:
        checked: T = kind.model_validate({name: value for name, value in vars(noun).items() if name in FIELDS[kind]})
        checked.model_dump_json()
    except ValidationError as error:
        raise _Malformed(describe(error)) from error
    except ValueError as error:
        raise _Malformed(f"it cannot be written as JSON: {error}") from error
    return checked


def _redacted(noun: T, shown: Sequence[str], redactor: Redactor) -> T:
    """The noun without secrets. A quotation of a text that was shown stays: that text is kept as it is."""
    if not redactor.has_secrets or noun.model_fields_set <= _NUMBERS or not redactor.finds(noun.model_dump_json()):
        return noun
    clean: Any = redactor.value(noun.model_dump(mode="json"))
    for evidence, one in zip(noun.evidence, clean["evidence"], strict=True):
        if any(evidence.quote in text for text in shown):
            one["quote"] = evidence.quote
    try:
        return type(noun).model_validate_json(json.dumps(clean))
    except ValidationError as error:
        raise _Malformed(f"it holds a secret where none can be struck out: {describe(error)}") from None


def _checked_evidence(stated: Sequence[Evidence], text: str) -> tuple[Evidence, ...]:
    """Quotations from the response are `verified` when they stand where they say, or anywhere if they say nothing."""
    checked, searched = [], 0
    for one in stated:
        if one.source != "response":
            checked.append(one)
        elif one.start is not None and one.end is not None:
            checked.append(one.model_copy(update={"verified": text[one.start : one.end] == one.quote}))
        else:
            searched += 1
            checked.append(_located(one, text) if searched <= MOST_SEARCHED else _unverified(one))
    return tuple(checked)


def _unverified(evidence: Evidence) -> Evidence:
    return evidence.model_copy(update={"verified": False})


def _located(evidence: Evidence, text: str) -> Evidence:
    """What does not say where it stands gets the letters of where it is found."""
    found = read_text(text).find(evidence.quote) if len(evidence.quote) <= LONGEST_SEARCHED else None
    if found is None:
        return _unverified(evidence)
    where = {"quote": found.text, "start": found.start, "end": found.end}
    return evidence.model_copy(update={"verified": True, **where})
