"""Functions of openevals' and LangSmith's form: keywords in, and a result with a key, a score and a comment out.

They are known by their parameters `inputs`, `outputs` and `reference_outputs`: keyword-only ones, or `outputs` and the
first of all, which is the task in jurygraph's form. Nothing of these packages is imported: a result is a mapping.
"""

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

from jurygraph.agents.roles import EvaluatorAnswer, EvaluatorInput
from jurygraph.agents.trajectory.calls import list_messages
from jurygraph.messages import join_names
from jurygraph.schema import Verdict
from jurygraph.schema.conversation import ChatMessage
from jurygraph.schema.frozen_model import JsonFields, digest_of

FEEDBACK_KEYWORDS = ("inputs", "outputs", "reference_outputs")
_KEYWORD_KINDS = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
MISSING_REASON_BY_KEYWORD = {
    "reference_outputs": "the task has neither reference_messages nor a reference",
    "context": "the task has no context",
}


def declared_keywords(target: Any) -> Mapping[str, inspect.Parameter]:
    """Return the parameters that jurygraph fills in by name; none for a function of another form."""
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return {}
    parameter_by_keyword = {
        name: parameter
        for name, parameter in parameters.items()
        if name in (*FEEDBACK_KEYWORDS, "context") and parameter.kind in _KEYWORD_KINDS
    }
    kinds = {parameter_by_keyword[name].kind for name in parameter_by_keyword if name != "context"}
    begins_with_keyword = (
        "outputs" in parameter_by_keyword and next(iter(parameters)) in parameter_by_keyword
    )
    is_feedback_form = inspect.Parameter.KEYWORD_ONLY in kinds or begins_with_keyword
    return parameter_by_keyword if is_feedback_form else {}


def closure_digest(target: Any) -> str:
    """Return a digest of the values that a function was made with, such as the mode of a comparison; "" without any.

    The source of the module that defines the function is the same for all of them.
    """
    if not inspect.isfunction(target):
        return ""
    values = inspect.getclosurevars(target).nonlocals
    descriptions = {name: _describe(values[name]) for name in sorted(values)}
    return digest_of(descriptions)[:12] if descriptions else ""


def _describe(value: Any) -> Any:
    try:
        return digest_of(value)
    except (TypeError, ValueError, RecursionError):
        value_or_type = value if hasattr(value, "__qualname__") else type(value)
        return f"{value_or_type.__module__}.{value_or_type.__qualname__}"


def feedback_keyword_values(inputs: EvaluatorInput) -> JsonFields:
    """Return the values of the keywords: messages as dicts, and texts where there are no messages.

    A response that is written as a text is one, unless it is compared with messages.
    """
    task = inputs.task
    response = inputs.response
    has_messages = response.messages is not None or task.reference_messages is not None
    outputs: Any = response.text
    if inputs.question.shown_part != "last_reply" and has_messages:
        outputs = _messages_to_dicts(list_messages(response))
    reference: Any = task.reference
    if task.reference_messages is not None:
        reference = _messages_to_dicts(task.reference_messages)
    context = None
    if task.context is not None:
        context = [passage.text for passage in task.context]
    return {
        "inputs": task.query if isinstance(task.query, str) else _messages_to_dicts(task.query),
        "outputs": outputs,
        "reference_outputs": reference,
        "context": context,
    }


def _messages_to_dicts(messages: Sequence[ChatMessage]) -> list[JsonFields]:
    """Return the messages as dicts; a list of texts alone is one text, for functions take `content` as such."""
    fields_of_messages = []
    for message in messages:
        fields = message.model_dump(mode="json")
        if {kind for kind, _ in message.parts()} == {"text"}:
            fields["content"] = message.text
        fields_of_messages.append(fields)
    return fields_of_messages


def read_feedback(result: Any, name: str) -> EvaluatorAnswer:
    """Convert the result of such a function to an answer; its metadata is added to the reason.

    Of several results it is the one whose key is `name`, or the last part of it. Raises ValueError for none.
    """
    if isinstance(result, Mapping) and "results" in result:
        result = result["results"]
    if isinstance(result, list | tuple):
        result = _choose_result(result, name)
    if not isinstance(result, Mapping):
        return result  # type: ignore[no-any-return]
    if "score" not in result:
        raise ValueError(f"expected `score` in the result, found {sorted(map(str, result))}")
    score = result["score"]
    comment = result.get("comment")
    reason = "" if comment is None else str(comment)
    if result.get("metadata"):
        metadata_json = json.dumps(
            result["metadata"], sort_keys=True, ensure_ascii=False, default=str
        )
        reason = f"{reason} (metadata: {metadata_json})".lstrip()
    if score is None:
        return Verdict.abstain(reason or "the evaluator gave no score, and no comment")
    return Verdict(score=score, met=score if isinstance(score, bool) else None, reason=reason)


def _choose_result(results: Sequence[Any], name: str) -> Any:
    if len(results) == 1:
        return results[0]
    keys = [str(result["key"]) for result in results]
    names = (name, name.rpartition(".")[2])
    chosen = [result for key, result in zip(keys, results, strict=True) if key in names]
    if len(chosen) != 1:
        keys_text = join_names(keys) or "no key"
        raise ValueError(
            f"gave {len(results)} results ({keys_text}), of which {len(chosen)} are called {name!r}; "
            "set `name` of the evaluator to the key of one"
        )
    return chosen[0]
