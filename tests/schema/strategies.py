"""A hypothesis strategy for every model of the schema, built from the types of its fields.

No field is left to its default. `OWN` has what types do not say: fields that must fit together, and values that are
refused.
"""

import string
import types
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from hypothesis import strategies as st
from pydantic import JsonValue
from pydantic.fields import FieldInfo

from jurygraph import schema
from jurygraph.schema import FrozenModel, ParamsModel
from jurygraph.schema.config import CriterionConfig
from jurygraph.schema.conversation import ChatMessage
from jurygraph.schema.plan import Escalation

Strategy = st.SearchStrategy[Any]
FREE = frozenset(
    (
        "metadata",
        "facts",
        "labels",
        "data",
        "params",
        "check",
        "edit",
        "statistics",
        "parameters",
        "difficulty",
    )
)
"""Fields of a user's own JSON: what stands in them is nobody else's business."""
LARGEST = 1e6
BOUNDS = ("ge", "gt", "le", "lt", "min_length", "max_length")

texts = st.text(max_size=8)
ids = st.text(min_size=1, max_size=6)
numbers = st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | numbers | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
PLAIN: Mapping[Any, Strategy] = {
    bool: st.booleans(),
    type(None): st.none(),
    JsonValue: json_values,
    Any: st.none(),
}


def values_of(annotation: Any, metadata: Sequence[Any] = ()) -> Strategy:
    """Return the values of a type under the bounds in its metadata."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        annotation, *inner = arguments
        return values_of(annotation, [*inner, *metadata])
    if annotation in PLAIN:
        return PLAIN[annotation]
    if isinstance(annotation, type) and issubclass(annotation, FrozenModel):
        return st.deferred(lambda: made(annotation))
    if origin in (Union, types.UnionType):
        return st.one_of(*(values_of(part) for part in arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    bounds = bounds_in(metadata)
    if origin is tuple and arguments[-1] is ...:
        least = bounds.get("min_length", 0)
        return st.lists(values_of(arguments[0]), min_size=least, max_size=least + 1).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, arguments))
    if origin is dict:
        least = bounds.get("min_length", 0)
        return st.dictionaries(*map(values_of, arguments), min_size=least, max_size=least + 1)
    return values_within(annotation, bounds)


def bounds_in(metadata: Sequence[Any]) -> dict[str, Any]:
    flat = [
        part
        for one in metadata
        for part in ([*one.metadata] if isinstance(one, FieldInfo) else [one])
    ]
    return {
        name: getattr(one, name)
        for one in flat
        for name in BOUNDS
        if getattr(one, name, None) is not None
    }


def values_within(kind: type, bounds: Mapping[str, Any]) -> Strategy:
    """Return texts or numbers within bounds, and not much beyond those that are given."""
    low, high = (
        bounds.get(name, bounds.get(strict)) for name, strict in (("ge", "gt"), ("le", "lt"))
    )
    if kind is str:
        return st.text(min_size=bounds.get("min_length", 0), max_size=8)
    if kind is int:
        least = 0 if low is None else low
        return st.integers(least, least + 9 if high is None else high)
    assert kind is float, f"no strategy for {kind}"
    if low is None and high is None:
        return numbers
    open_ends = {"exclude_min": "gt" in bounds, "exclude_max": "lt" in bounds}
    return st.floats(low, LARGEST if high is None else high, **open_ends)


def with_unique_ids(one: Strategy, least: int = 0) -> Strategy:
    return st.lists(one, min_size=least, max_size=2, unique_by=lambda each: each.id).map(tuple)


def unlike_a_and_b(people: tuple[Any, ...]) -> tuple[Any, ...]:
    """Put two people in front, between whom there may be a tension."""
    others = [one for one in people if one.id not in "ab"]
    return (schema.Stakeholder(id="a"), schema.Stakeholder(id="b"), *others)


def as_p_and_c(pair: tuple[Any, Any]) -> tuple[Any, Any]:
    return pair[0].model_copy(update={"id": "p"}), pair[1].model_copy(update={"id": "c"})


criteria = st.deferred(lambda: made(schema.Criterion))
stakeholders = st.deferred(lambda: made(schema.Stakeholder))
failures = st.deferred(lambda: made(schema.Failure))
rising = st.tuples(st.floats(-9.0, 0.0), st.floats(1.0, 9.0))
seen_texts = texts.filter(str.strip)
named = st.text(string.ascii_letters, min_size=1, max_size=4)
# limits of an investigation need a tool
tools = st.tuples(st.deferred(lambda: made(schema.ToolUse)))
OWN: Mapping[type[FrozenModel], Mapping[str, Strategy]] = {
    schema.Tension: {"between": st.just(("a", "b"))},
    schema.Stakeholder: {
        "constraints": with_unique_ids(st.deferred(lambda: made(schema.Constraint)))
    },
    schema.ReadStakeholder: {
        "constraints": with_unique_ids(st.deferred(lambda: made(schema.ReadConstraint)), 1)
    },
    schema.Profiles: {
        "stakeholders": with_unique_ids(st.deferred(lambda: made(schema.ReadStakeholder))),
        "dropped": st.just(()),
    },
    schema.ProfilesLine: {
        "stakeholders": with_unique_ids(st.deferred(lambda: made(schema.ReadStakeholder)), 1)
    },
    schema.Part: {"text": seen_texts},
    schema.Criterion: {"text": seen_texts, "weight": numbers.filter(bool)},
    schema.Edge: {"parent": st.just("p"), "child": st.just("c")},
    schema.Rubric: {
        "criteria": st.tuples(criteria, criteria)
        .filter(lambda pair: pair[0].text.strip() != pair[1].text.strip())
        .map(as_p_and_c),
        "edges": st.just(()) | st.tuples(st.deferred(lambda: made(schema.Edge))),
    },
    schema.Task: {
        "stakeholders": with_unique_ids(stakeholders).map(unlike_a_and_b),
        "reviewers": st.lists(ids, max_size=2, unique=True).map(tuple),
    },
    schema.TaskView: {"people": with_unique_ids(stakeholders)},
    # the messages of a response have tests of their own: its text is made from them
    schema.Response: {"messages": st.none(), "rendering": st.none()},
    ChatMessage: {"content": texts},
    schema.Verdict: {"scale": st.none() | rising},
    schema.CallUse: {"purpose": st.text("abc _-", min_size=1, max_size=64)},
    schema.Plan: {"calls": st.just(())},  # not part of what is stored
    schema.Decision: {"clip": st.none() | rising},
    schema.ToolSpec: {"name": named},
    schema.ToolUse: {"use": named, "name": st.none() | named},
    schema.EvaluatorUse: {"use": named, "tools": tools},
    schema.DeriverUse: {"use": named, "tools": tools},
    schema.ComponentConfig: {"combiner": named},
    schema.ScoreCalibration: {
        "scores": st.just((0.0, 0.5)),
        "calibrated": st.tuples(st.floats(0.0, 0.5), st.floats(0.5, 1.0)),
    },
    schema.PurposeConfig: {
        "kind": st.just("evaluation"),
        "reward_judges": st.lists(ids, max_size=2).map(tuple),
    },
    schema.CallsConfig: {
        "parameters": st.dictionaries(
            st.sampled_from(["temperature", "top_p", "seed"]), numbers | st.booleans()
        ),
        "key": st.sampled_from(["JURYGRAPH_API_KEY", "A_KEY"]),
    },
    schema.Config: {"clip": st.none() | rising, "model": texts},
    schema.Trace: {"plan": st.none()},
}
"""The values of fields that a model takes, where their types do not say it; models that are derived take them, too."""
OWN = {**OWN, schema.TaskDefaults: OWN[schema.Task]}

MEMBERS = {
    "task": st.none(),
    "everyone": st.none(),
    "stakeholder": stakeholders,
    "criterion": criteria,
    "reviewer": st.deferred(lambda: made(schema.Reviewer)),
}


@st.composite
def fitting_fields(draw: Any, model: type[FrozenModel]) -> dict[str, Any]:
    """Return fields that have to fit together."""
    if model is schema.Criterion:
        in_parts = draw(st.booleans())
        parts = (
            draw(st.lists(made(schema.Part), min_size=1, max_size=2).map(tuple)) if in_parts else ()
        )
        return {
            "parts": parts,
            **({"scale": None, "anchors": {}} if in_parts else {"scale": draw(rising)}),
        }
    if model is schema.TaskView:
        audience = draw(st.sampled_from(sorted(MEMBERS)))
        return {"audience": audience, "about": draw(MEMBERS[audience])}
    if model is schema.Material:
        failure = draw(st.none() | failures)
        return {"status": "failed" if failure else "ok", "failure": failure}
    if issubclass(model, schema.Verdict):
        status = draw(st.sampled_from(["ok", "abstained", "failed", "not_applicable"]))
        failure = {"failed": failures, "abstained": st.none() | failures}.get(status, st.none())
        score = draw(st.floats(0.0, 1.0)) if status == "ok" else None
        return {"status": status, "score": score, "failure": draw(failure)}
    if model is schema.WeightsConfig:
        fixed = draw(st.dictionaries(ids, st.floats(0.1, 9.0), max_size=2))
        return {
            "fixed": fixed,
            "method": "fixed" if fixed else draw(st.sampled_from(["calibrated", "uniform"])),
        }
    if model is CriterionConfig:
        return {"weight": draw(st.floats(0.1, 9.0) | st.floats(-9.0, -0.1))}
    if model is Escalation:
        names = draw(st.lists(ids, min_size=2, max_size=3, unique=True))
        return {"first": tuple(names[1:]), "then": names[0]}
    if model is schema.EvaluatorUse:
        escalate = draw(st.none() | made(Escalation))
        judges = () if escalate else draw(st.lists(ids, max_size=2, unique=True).map(tuple))
        scope = draw(st.sampled_from([None, "turn"]))
        turned = {"material": None} if scope else {"turns": None}
        return {"judges": judges, "escalate": escalate, "scope": scope, **turned}
    return {}


@cache
def made(model: type[FrozenModel]) -> Strategy:
    """Return the instances of a model, every field of which is drawn."""
    own = {name: one for base in reversed(model.__mro__) for name, one in OWN.get(base, {}).items()}
    fields = {
        name: values_of(field.annotation, field.metadata)
        for name, field in model.model_fields.items()
    }
    drawn = st.fixed_dictionaries(fields | {name: own[name] for name in own.keys() & fields.keys()})
    return st.builds(
        lambda values, fitting: model(**(values | fitting)), drawn, fitting_fields(model)
    )


PUBLIC = [
    value
    for value in vars(schema).values()
    if isinstance(value, type) and issubclass(value, FrozenModel)
]
MODELS = sorted(set(PUBLIC) - {FrozenModel, ParamsModel}, key=lambda model: model.__name__)
STRATEGIES = {model: made(model) for model in MODELS}
