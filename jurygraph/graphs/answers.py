"""Answers: turn what user code returns or raises into verdicts and material, validated, redacted and stamped.

Nothing that user code gives is trusted: a value out of range, of another type or with a field that jurygraph sets is a
named failure, never a score.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from pydantic import ValidationError

from jurygraph.agents.worker_pool import WorkFailed
from jurygraph.concurrency import is_interrupt
from jurygraph.errors import InputError, JurygraphError, PlanError, TimeLimitExceeded
from jurygraph.graphs.routing import (
    DueDerivation,
    DueJudgement,
    VerdictStamp,
)
from jurygraph.messages import first_validation_message, locate_user_code
from jurygraph.models.request import Fault
from jurygraph.safety.evidence import to_searchable_text
from jurygraph.safety.redaction import Redactor
from jurygraph.schema import (
    Evidence,
    Failure,
    Material,
    RecordedVerdict,
    Response,
    Verdict,
)
from jurygraph.schema.conversation import RenderedText
from jurygraph.schema.frozen_model import JsonFields
from jurygraph.schema.verdict import TIME_LIMIT_FAILURE_KIND

VerdictOrMaterial = TypeVar("VerdictOrMaterial", Verdict, Material)
MAX_FAILURE_MESSAGE_CHARACTERS = 500
MAX_FAILURE_KIND_CHARACTERS = 100
MAX_QUOTES_SEARCHED = 100
MAX_SEARCHED_QUOTE_CHARACTERS = 10_000
"""Maximum number of quotations without offsets searched for per verdict, and of characters in each.

Others stay unverified. An evaluator that quotes every line of a long response would cost the square of its length.
"""
_USER_CODE_ERRORS = (
    WorkFailed,
    InputError,
    PlanError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
)
_INFRASTRUCTURE_ERRORS = (JurygraphError, OSError, MemoryError, sqlite3.Error)
_MAX_MESSAGE_CHARACTERS_READ = 1 << 16  # characters of a message that are read


class _MalformedResultError(ValueError):
    """The result of user code is not of a permitted kind; the message says why."""


def to_recorded_verdicts(
    judgement: DueJudgement,
    answer: Any,
    stamp: VerdictStamp,
    redactor: Redactor,
) -> list[RecordedVerdict]:
    """Return the verdicts of an answer, one for each response that the judgement is about, redacted and stamped."""
    responses = judgement.shown_responses
    count = len(judgement.about)
    items = [answer] * count
    if judgement.question.scope == "group":
        items = result_or_error(partial(_split_group_answer, answer, count))
    if isinstance(items, BaseException):
        items = [items] * count
    return [
        stamp(_read_verdict(item, index, responses, redactor), key)
        for index, (item, key) in enumerate(zip(items, judgement.keys, strict=True))
    ]


def _read_verdict(
    item: Any, index: int, responses: Sequence[Response], redactor: Redactor
) -> Verdict:
    """Return the verdict of an answer about the response of this index; a failed one for an exception."""
    verdict = result_or_error(partial(_parse_verdict, item, index, responses, redactor))
    if isinstance(verdict, Verdict):
        return verdict
    failure = to_failure(verdict, redactor)
    call = verdict.call if isinstance(verdict, Fault) else None
    return Verdict(status="failed", failure=failure, reason=failure.message, call=call)


def validate_material(due_derivation: DueDerivation, result: Any, redactor: Redactor) -> Material:
    """Return a result as material about the response, redacted; failed material if it is invalid."""
    material_or_error = result_or_error(partial(_parse_material, due_derivation, result, redactor))
    if isinstance(material_or_error, BaseException):
        call = material_or_error.call if isinstance(material_or_error, Fault) else None
        failure = to_failure(material_or_error, redactor)
        material_or_error = Material(
            name=due_derivation.derivation.gives, status="failed", failure=failure, call=call
        )
    material: Material = material_or_error.model_copy(
        update={"response": due_derivation.response.id, "calls": ()}
    )
    return material


def to_failure(error: BaseException, redactor: Redactor) -> Failure:
    """Return the failure for an exception.

    The response may have provoked a time limit of code that reads it. Connections, disks, memory and worker processes
    are of the infrastructure, and everything else of the evaluator, also a path that is not there. The message is
    redacted before it is cut, so that no part of a secret remains.
    """
    if isinstance(error, Fault):
        return Failure(cause=error.cause, kind=error.kind, message=_error_message(error, redactor))
    is_infrastructure_error = isinstance(error, _INFRASTRUCTURE_ERRORS) and not isinstance(
        error, _USER_CODE_ERRORS
    )
    cause = "infrastructure" if is_infrastructure_error else "evaluator"
    kind = redactor.redact_text(type(error).__name__)[:MAX_FAILURE_KIND_CHARACTERS] or "error"
    if isinstance(error, TimeLimitExceeded):
        cause = "response"
        kind = TIME_LIMIT_FAILURE_KIND
    elif isinstance(error, _MalformedResultError):
        kind = "malformed"
    description = result_or_error(partial(_error_message, error, redactor))
    message = (
        description
        if isinstance(description, str)
        else f"it has no message: {type(description).__name__}"
    )
    return Failure(
        cause=cause,
        kind=kind,
        message=(message or kind) + redactor.redact_text(locate_user_code(error)),
    )


def _error_message(error: BaseException, redactor: Redactor) -> str:
    text = first_validation_message(error) if isinstance(error, ValidationError) else str(error)
    redacted_text = (
        redactor.redact_text(text[:_MAX_MESSAGE_CHARACTERS_READ])
        .encode("utf-8", "backslashreplace")
        .decode("utf-8")
    )
    return redacted_text[:MAX_FAILURE_MESSAGE_CHARACTERS]


def result_or_error(read: Callable[[], Any]) -> Any:
    """Return the result of `read`, or the exception that it raised: even a number or a message can run user code."""
    try:
        return read()
    except BaseException as error:
        if is_interrupt(error):
            raise
        return error


def _split_group_answer(answer: Any, count: int) -> Sequence[Any]:
    """Return an answer for each of this number of responses, from one about a whole group."""
    if isinstance(answer, BaseException) or (isinstance(answer, Verdict) and answer.status != "ok"):
        return [answer] * count
    if not isinstance(answer, Sequence | np.ndarray) or len(answer) != count:
        raise _MalformedResultError(
            f"expected a sequence of {count} verdicts, one for each response of the group"
        )
    return list(answer)


def _parse_verdict(
    answer: Any, index: int, responses: Sequence[Response], redactor: Redactor
) -> Verdict | BaseException:
    """Return an evaluator's answer as a verdict; a value out of range or of another type is refused, never a score.

    An exception is returned as it is.
    """
    if isinstance(answer, BaseException):
        return answer
    if isinstance(answer, bool | np.bool_):
        return Verdict(score=float(answer), met=bool(answer))
    if isinstance(answer, int | float | np.integer | np.floating):
        if not 0.0 <= answer <= 1.0:
            raise _MalformedResultError(
                f"a score lies in [0, 1], not at {answer}; divide by its maximum"
            )
        return Verdict(score=float(answer))
    if isinstance(answer, RecordedVerdict):
        raise _MalformedResultError(
            "jurygraph records verdicts: return a Verdict(score=..., reason=...), not a RecordedVerdict"
        )
    if not isinstance(answer, Verdict):
        problem = f"expected a Verdict, a number or a boolean, got {type(answer).__name__}"
        if isinstance(answer, dict) and "score" in answer:
            problem += "; name its first parameter `outputs` for openevals' form"
        raise _MalformedResultError(problem)
    verdict, answer_json = _revalidate(answer)
    if verdict.status in ("ok", "not_applicable") and verdict.failure is not None:
        raise _MalformedResultError(f"a verdict that is {verdict.status} has no failure")
    if verdict.evidence:  # most verdicts have none, and need no text
        verdict = _verify_quotes(verdict, responses[index].text)
    return _redact_item(verdict, answer_json, responses, redactor)


def _parse_material(due_derivation: DueDerivation, result: Any, redactor: Redactor) -> Material:
    if isinstance(result, BaseException):
        raise result
    if not isinstance(result, Material):
        type_name = type(result).__name__
        name = due_derivation.derivation.gives
        raise _MalformedResultError(
            f"expected material {name!r}, got {type_name}; return Material(name={name!r}, data=...)"
        )
    material, answer_json = _revalidate(result)
    response = due_derivation.response
    material = _verify_quotes(material, response.text)
    material = _redact_item(material, answer_json, [response], redactor)
    if material.name != due_derivation.derivation.gives:
        raise _MalformedResultError(
            f"expected material {due_derivation.derivation.gives!r}, got {material.name!r}"
        )
    if len({variant.response.id for variant in material.variants}) < len(material.variants):
        raise _MalformedResultError(f"two variants in material {material.name!r} have the same id")
    return material


def _revalidate(model: VerdictOrMaterial) -> tuple[VerdictOrMaterial, bytes]:
    """Return the model validated again (`model_copy` and `model_construct` skip that), and its JSON."""
    kind = Verdict if isinstance(model, Verdict) else Material
    # without its digest, and what a user's class has besides
    fields = {name: value for name, value in vars(model).items() if name in kind.model_fields}
    try:
        validated_result: VerdictOrMaterial = kind.model_validate(fields)
        return validated_result, kind.__pydantic_serializer__.to_json(validated_result)
    except ValidationError as error:
        raise _MalformedResultError(first_validation_message(error)) from error
    except ValueError as error:
        raise _MalformedResultError(f"it cannot be written as JSON: {error}") from error


def _redact_item(
    item: VerdictOrMaterial, answer_json: bytes, responses: Sequence[Response], redactor: Redactor
) -> VerdictOrMaterial:
    """Return the item without secrets. A quotation of a text that was shown stays: that text is stored unchanged.

    `answer_json` is its JSON, which may be older than `_verify_quotes`: that adds nothing but quotations that stay.
    """
    if not redactor.has_secret_in(answer_json.decode()):
        return item
    redacted_json: Any = redactor.redact_json(item.model_dump(mode="json"))
    for evidence, redacted_evidence in zip(item.evidence, redacted_json["evidence"], strict=True):
        if any(evidence.quote in response.text for response in responses):
            redacted_evidence["quote"] = evidence.quote
    try:
        return type(item).model_validate_json(json.dumps(redacted_json))
    except ValidationError as error:
        raise _MalformedResultError(
            f"it holds a secret where none can be struck out: {first_validation_message(error)}"
        ) from None


def _verify_quotes(item: VerdictOrMaterial, text: str) -> VerdictOrMaterial:
    """Return an item whose evidence is `verified` if the response has the quotation at its offsets, or anywhere if it
    has none."""
    checked_evidence = []
    searched_quote_count = 0
    for evidence in item.evidence:
        update: JsonFields = {}
        if evidence.source == "response":
            searched_quote_count += evidence.start is None or evidence.end is None
            may_search = searched_quote_count <= MAX_QUOTES_SEARCHED
            update = _locate_quotation(text, evidence, may_search=may_search)
        checked_evidence.append(evidence.model_copy(update=update) if update else evidence)
    if checked_evidence == list(item.evidence):
        return item
    return item.model_copy(update={"evidence": tuple(checked_evidence)})


def _locate_quotation(text: str, evidence: Evidence, *, may_search: bool) -> JsonFields:
    """Return whether a quotation is `verified`, and where it is: in a conversation it is within one turn, and its
    offsets are those in the text of the whole conversation."""
    quote, start, end = evidence.quote, evidence.start, evidence.end
    if start is None or end is None:
        is_searched = may_search and len(quote) <= MAX_SEARCHED_QUOTE_CHARACTERS
        found = to_searchable_text(text).find(quote) if is_searched else None
        if found is None:
            return {"verified": False}
        start, end, quote = found
    elif text[start:end] != quote:
        return {"verified": False}
    fields: JsonFields = {"verified": True, "quote": quote, "start": start, "end": end}
    if isinstance(text, RenderedText):
        turn = text.find_enclosing_turn(start, end)
        if turn is None:
            return {"verified": False}
        shift = turn.origin - turn.start
        fields |= {"message": turn.message, "start": start + shift, "end": end + shift}
    return fields
