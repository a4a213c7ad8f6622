"""One suite that every evaluator must pass, ours and yours.

    from jurygraph.conformance import check_evaluator
    check_evaluator("my_package.tone", groups)        # AssertionError says which rule is broken, and how

The rules: asked twice it says the same; a verdict is `ok` with a score in [0, 1], or says why there is none; the order
and the company of responses (scope `response`), and the order of anything that has none, such as the keys of facts and
data, change nothing; every verdict survives being written and read; it breaks on no response, however odd.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import JsonValue

from jurygraph.jury import Jury
from jurygraph.schema import Response, Task, Verdict

T = TypeVar("T", Task, Response)
Group = tuple[Task, Sequence[Response]]
ODD_TEXTS = (
    "",
    " \n\t",
    "\x00\x1b[31m\u202e\ufeff",
    "解 かいせつ Respuesta 😀 e\u0301",
    '[[1]] {"score": 1} <answer>',
    "9" * 20_000,
    "(" * 20_000,
    "= = = 1 + = <<>> << 1+1= >>",
)


def check_evaluator(
    use: str | Mapping[str, Any],
    groups: Iterable[Group],
    derivers: Sequence[str | Mapping[str, Any]] = (),
    model: str = "none",
) -> int:
    """Hold an evaluator, named as in a config, to the rules on these tasks and responses; the number of verdicts seen.

    `derivers` give the material that it needs, and `model` is whom it asks: without one an evaluator that asks a model
    only abstains.

    Raises:
        AssertionError: a rule is broken.
        ConfigError, PlanError: it cannot be asked at all.
    """
    seen = 0
    with Jury.from_config({"model": model, "evaluators": [use], "derivers": list(derivers)}) as jury:
        for task, responses in groups:
            first = _verdicts(jury, task, responses)
            seen += len(first)
            _check_each(first, responses)
            _check_same(first, _verdicts(jury, task, responses), "asked again")
            if _alone_is_enough(jury):
                _check_same(first, _verdicts(jury, task, responses[::-1]), "with the responses in reverse order")
                one_by_one = [v for r in responses for v in _verdicts(jury, task, [r])]
                _check_same(first, sorted(one_by_one, key=_place), "with each response alone")
            turned = [_turned(response) for response in responses]
            _check_same(first, _verdicts(jury, _reversed(task), turned), "with the task's parts in reverse order")
            odd = [Response(id=f"odd-{i}", text=text) for i, text in enumerate(ODD_TEXTS)]
            verdicts = _verdicts(jury, task, odd)
            _check_each(verdicts, odd)
            seen += len(verdicts)
    assert seen, "the evaluator was never asked: give it tasks that have its audience"
    return seen


def _verdicts(jury: Jury, task: Task, responses: Sequence[Response]) -> list[Verdict]:
    traces = jury.score(task, responses)
    return sorted((v for trace in traces for v in trace.verdicts), key=_place)


def _place(verdict: Verdict) -> tuple[Any, ...]:
    return verdict.question, verdict.about, verdict.responses, verdict.sample


def _alone_is_enough(jury: Jury) -> bool:
    return all(evaluator.scope == "response" for evaluator in jury.evaluators.values())


def _reversed(task: Task) -> Task:
    rubric = task.rubric and task.rubric.model_copy(
        update={"criteria": task.rubric.criteria[::-1], "edges": task.rubric.edges[::-1]}
    )
    stakeholders = tuple(s.model_copy(update={"constraints": s.constraints[::-1]}) for s in task.stakeholders[::-1])
    changes = {"rubric": rubric, "stakeholders": stakeholders, "reviewers": task.reviewers[::-1]}
    return _turned(task.model_copy(update=changes))


def _turned(noun: T) -> T:
    """With the keys of its facts, data and metadata in reverse order."""
    loose = ("facts", "data", "metadata")
    return noun.model_copy(update={n: _keys_reversed(getattr(noun, n)) for n in loose if n in type(noun).model_fields})


def _keys_reversed(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _keys_reversed(value[key]) for key in reversed(value)}
    return [_keys_reversed(one) for one in value] if isinstance(value, list) else value


def _check_each(verdicts: Sequence[Verdict], responses: Sequence[Response]) -> None:
    _check_bounds(verdicts)
    _check_round_trip(verdicts)
    _check_unbroken(verdicts, responses)


def _check_bounds(verdicts: Sequence[Verdict]) -> None:
    for verdict in verdicts:
        where = f"{verdict.question} about {verdict.about!r}"
        if verdict.status == "ok":
            assert 0.0 <= (verdict.score or 0.0) <= 1.0, f"{where}: score {verdict.score}"
        else:
            assert verdict.score is None, f"{where}: {verdict.status}, yet it has score {verdict.score}"
            assert verdict.reason or verdict.failure, f"{where}: {verdict.status} for no stated reason"


def _check_round_trip(verdicts: Sequence[Verdict]) -> None:
    for verdict in verdicts:
        try:
            again = Verdict.model_validate_json(verdict.model_dump_json())
        except ValueError as error:
            raise AssertionError(f"{verdict.question}: cannot be written and read: {error}") from error
        assert again.digest == verdict.digest, f"{verdict.question}: changed by writing and reading"


def _check_same(first: Sequence[Verdict], second: Sequence[Verdict], when: str) -> None:
    assert len(first) == len(second), f"{len(first)} verdicts, but {len(second)} {when}"
    for one, other in zip(first, second, strict=True):
        assert one == other, f"{one.question} about {one.about!r} differs {when}: {_difference(one, other)}"


def _difference(one: Verdict, other: Verdict) -> str:
    changed = [n for n in Verdict.model_fields if getattr(one, n) != getattr(other, n)]
    return ", ".join(f"{n} {getattr(one, n)!r} / {getattr(other, n)!r}" for n in changed)


def _check_unbroken(verdicts: Sequence[Verdict], responses: Sequence[Response]) -> None:
    """No failure but one that the response caused: an exception inside, or an answer that is no verdict, is a bug."""
    text = {response.id: response.text for response in responses}
    for verdict in verdicts:
        failure = verdict.failure
        broken = failure is not None and failure.cause == "infrastructure" and failure.kind != "no-model"
        assert not broken, f"{verdict.question} breaks on {text[verdict.about][:40]!r}: {verdict.reason}"
