"""A test suite that every evaluator must pass, built-in or custom.

    from jurygraph.conformance import check_evaluator
    check_evaluator("my_package.tone", groups)        # AssertionError names the broken rule

The rules: the same question gives the same verdict twice; a verdict is `ok` with a score in [0, 1], or has a reason why
there is none; the order of responses, the other responses (scope `response`), and the order of unordered data, such as
the keys of facts and data, have no effect; every verdict survives serialisation; no response, however odd, causes an
error, takes 5 seconds of CPU time or makes it run past its time limit.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from time import process_time
from typing import Any, TypeVar

from pydantic import JsonValue

from jurygraph.graphs.groups import GroupLike, to_groups
from jurygraph.jury import Jury
from jurygraph.schema import RecordedVerdict, Response, Task
from jurygraph.schema.verdict import GATED_LAYERS

T = TypeVar("T", Task, Response)
ODD_RESPONSE_TEXTS = (
    "",
    " \n\t",
    "\x00\x1b[31m\u202e\ufeff",
    "解 かいせつ Respuesta 😀 e\u0301",
    '[[1]] {"score": 1} <answer>',
    "9" * 20_000,
    "(" * 20_000,
    "= = = 1 + = <<>> << 1+1= >>",
)
_get_sort_key = attrgetter("key.sort_key")


def check_evaluator(
    use: Any,
    groups: Iterable[GroupLike],
    derivers: Sequence[Any] = (),
    model: Any = "none",
    max_cpu_seconds: float = 5.0,
) -> int:
    """Check an evaluator, as in a config or an object, on these tasks and responses; return the number of verdicts.

    `derivers` make the material that it needs, and `model` is the model that it may ask: without one an evaluator that
    needs a model only abstains. `use` may be a dict as in a config: `{"use": …, "timeout": 5}` sets the time limit of a
    call in seconds (60 by default). Code, unlike a model, may take `max_cpu_seconds` of this process, all its threads
    together, over an unusual response.

    Raises:
        AssertionError: a rule is broken.
        ConfigError, PlanError: the evaluator cannot be used at all.
        InputError: one of `groups` is no jg.Group, and no pair of a task and its responses.
    """
    verdict_count = 0
    config = {"model": model, "evaluators": [use], "derivers": list(derivers)}
    with Jury.from_config(config) as jury:
        (evaluator,) = jury.evaluators.values()
        is_about_single_responses = evaluator.scope == "response"
        for group in to_groups("groups", groups):
            task = group.task
            responses = group.responses
            first = _collect_verdicts(jury, task, responses)
            verdict_count += len(first)
            _check_each_verdict(first, responses)
            _check_same_verdicts(first, _collect_verdicts(jury, task, responses), "when repeated")
            if is_about_single_responses:
                reversed_order_verdicts = _collect_verdicts(jury, task, responses[::-1])
                _check_same_verdicts(
                    first, reversed_order_verdicts, "with the responses in reverse order"
                )
                one_by_one_verdicts = []
                for response in responses:
                    one_by_one_verdicts += _collect_verdicts(jury, task, [response])
                one_by_one_verdicts.sort(key=_get_sort_key)
                _check_same_verdicts(first, one_by_one_verdicts, "with each response alone")
            responses_with_reversed_keys = [_reverse_model_keys(response) for response in responses]
            reordered_task_verdicts = _collect_verdicts(
                jury, _reverse_task_lists(task), responses_with_reversed_keys
            )
            _check_same_verdicts(
                first, reordered_task_verdicts, "with the task's parts in reverse order"
            )
            odd_test_responses = [
                Response(id=f"odd-{i}", text=text) for i, text in enumerate(ODD_RESPONSE_TEXTS)
            ]
            batches = [odd_test_responses]
            if is_about_single_responses:
                batches = [[response] for response in odd_test_responses]
            for batch in batches:
                start = process_time()
                verdicts = _collect_verdicts(jury, task, batch)
                if evaluator.layer not in GATED_LAYERS:  # a model may run in this process
                    _check_cpu_time(batch, process_time() - start, max_cpu_seconds)
                _check_each_verdict(verdicts, batch)
                verdict_count += len(verdicts)
    assert verdict_count, "the evaluator got no question: use tasks with its audience"
    return verdict_count


def _collect_verdicts(
    jury: Jury, task: Task, responses: Sequence[Response]
) -> list[RecordedVerdict]:
    traces = jury.score(task, responses)
    verdicts = chain.from_iterable(trace.verdicts for trace in traces)
    return sorted(verdicts, key=_get_sort_key)


def _check_cpu_time(responses: Sequence[Response], seconds: float, limit: float) -> None:
    longest_text = max((response.text for response in responses), key=len)
    assert seconds <= limit, (
        f"took {seconds:.1f} s of CPU time over a response of {len(longest_text)} characters that begins "
        f"{longest_text[:40]!r}, and {limit:g} s are allowed: anchor a regular expression, bound its repetitions, set "
        "`isolate: process`, which can be ended in time, or raise `max_cpu_seconds`"
    )


def _reverse_task_lists(task: Task) -> Task:
    rubric = task.rubric
    if rubric is not None:
        parts = {"criteria": rubric.criteria[::-1], "edges": rubric.edges[::-1]}
        rubric = rubric.model_copy(update=parts)
    stakeholders = []
    for stakeholder in task.stakeholders[::-1]:
        constraints = stakeholder.constraints[::-1]
        stakeholders.append(stakeholder.model_copy(update={"constraints": constraints}))
    changes = {
        "rubric": rubric,
        "stakeholders": tuple(stakeholders),
        "reviewers": task.reviewers[::-1],
    }
    return _reverse_model_keys(task.model_copy(update=changes))


def _reverse_model_keys(model: T) -> T:
    """Return a copy with the keys of its facts, data and metadata in reverse order."""
    changes = {
        name: _reverse_key_order(getattr(model, name))
        for name in ("facts", "data", "metadata")
        if name in type(model).model_fields
    }
    return model.model_copy(update=changes)


def _reverse_key_order(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _reverse_key_order(value[key]) for key in reversed(value)}
    return [_reverse_key_order(item) for item in value] if isinstance(value, list) else value


def _check_each_verdict(verdicts: Sequence[RecordedVerdict], responses: Sequence[Response]) -> None:
    text = {response.id: response.text for response in responses}
    for verdict in verdicts:
        where = f"{verdict.question} about {verdict.about!r}"
        failure = verdict.failure
        if verdict.status == "ok":
            assert 0.0 <= (verdict.score or 0.0) <= 1.0, f"{where}: score {verdict.score}"
        else:
            assert verdict.score is None, (
                f"{where}: {verdict.status}, yet it has score {verdict.score}"
            )
            assert verdict.reason or failure, f"{where}: {verdict.status} without a reason"
        try:
            validated_copy = RecordedVerdict.model_validate_json(verdict.model_dump_json())
        except ValueError as error:
            raise AssertionError(
                f"{verdict.question}: cannot be written and read: {error}"
            ) from error
        assert validated_copy.digest == verdict.digest, (
            f"{verdict.question}: changed by writing and reading"
        )
        # Only the response causes failures: an exception inside, an invalid answer or a call that hangs is a bug.
        if failure is not None:
            has_timed_out = failure.kind in ("time-limit", "hanging")
            is_permitted_failure = failure.cause == "response" or failure.kind == "no-model"
            is_evaluator_broken = has_timed_out or not is_permitted_failure
            assert not is_evaluator_broken, (
                f"{verdict.question} breaks on {text[verdict.about][:40]!r}: {verdict.reason}"
            )


def _check_same_verdicts(
    first: Sequence[RecordedVerdict], second: Sequence[RecordedVerdict], when: str
) -> None:
    assert len(first) == len(second), f"{len(first)} verdicts, but {len(second)} {when}"
    for before, after in zip(first, second, strict=True):
        differences = []
        for name in RecordedVerdict.model_fields:
            old = getattr(before, name)
            new = getattr(after, name)
            if old != new:
                differences.append(f"{name} {old!r} / {new!r}")
        assert before.digest == after.digest, (
            f"{before.question} about {before.about!r} differs {when}: {', '.join(differences)}"
        )
