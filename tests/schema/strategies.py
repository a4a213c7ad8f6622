"""A hypothesis strategy for every model of the schema, so that tests of all models cover each of them."""

import string
from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st

from jurygraph import schema
from jurygraph.schema import FrozenModel

N = TypeVar("N", bound=FrozenModel)
Draw = Callable[[st.SearchStrategy[Any]], Any]

FREE = frozenset(
    ("metadata", "facts", "labels", "data", "params", "check", "edit", "statistics", "parameters", "difficulty")
)
"""Fields of a user's own JSON: what stands in them is nobody else's business."""

ids = st.text(min_size=1, max_size=6)
names = st.text(alphabet=string.ascii_letters, min_size=1, max_size=4)
texts = st.text(max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
units = st.floats(0.0, 1.0)
positives = st.floats(0.0, 1e6, exclude_min=True)
counts = st.integers(0, 10)
flags = st.booleans()
json_values = st.recursive(
    st.none() | flags | st.integers(-(2**40), 2**40) | numbers | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(texts, json_values, max_size=2)


def optional(one: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | one


def lists_of(one: st.SearchStrategy[Any], least: int = 0, **unique: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(one, min_size=least, max_size=2, **unique).map(tuple)


def by_name(one: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(ids, one, min_size=least, max_size=2)


def with_unique_ids(one: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[tuple[Any, ...]]:
    return lists_of(one, least, unique_by=lambda each: each.id)


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


rising = st.tuples(st.floats(-9.0, 0.0), st.floats(1.0, 9.0))
layers = one_of("fact", "check", "model", "residual", "human")
STRATEGIES: dict[type[FrozenModel], st.SearchStrategy[Any]] = {}


def strategy(model: type[N], /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[N]:
    """A model with every field drawn: none may be left to its default."""
    assert fields.keys() == model.model_fields.keys(), f"{model.__name__}: {fields.keys() ^ model.model_fields.keys()}"
    STRATEGIES[model] = st.builds(model, **fields)
    return STRATEGIES[model]


messages = strategy(schema.Message, role=one_of("system", "user", "assistant", "tool"), content=texts)
constraints = strategy(
    schema.Constraint,
    id=ids,
    text=texts,
    kind=one_of("hard", "soft"),
    restrictiveness=positives,
    check=optional(objects),
)
stakeholders = strategy(schema.Stakeholder, id=ids, profile=texts, constraints=with_unique_ids(constraints))
tensions = strategy(schema.Tension, between=st.just(("a", "b")), strength=positives)
parts = strategy(schema.Part, text=texts.filter(str.strip), weight=positives)
criterion_fields: dict[str, st.SearchStrategy[Any]] = {
    "id": ids,
    "text": texts.filter(str.strip),
    "weight": numbers.filter(bool),
    "role": optional(one_of("core", "additional", "penalty", "applicability")),
}
criteria_in_parts = strategy(
    schema.Criterion, **criterion_fields, scale=st.none(), anchors=st.just({}), parts=lists_of(parts)
)
criteria_on_scales = strategy(
    schema.Criterion, **criterion_fields, scale=rising, anchors=by_name(texts), parts=st.just(())
)
criteria = STRATEGIES[schema.Criterion] = criteria_in_parts | criteria_on_scales
edges = strategy(
    schema.Edge,
    parent=st.just("p"),
    child=st.just("c"),
    kind=one_of("weak", "strong", "activation"),
    retention=optional(units),
    reason=texts,
    confidence=optional(units),
    votes=optional(st.tuples(counts, counts)),
    model=texts,
    prompt=texts,
)
rejected_edges = strategy(
    schema.RejectedEdge,
    stage=one_of("check", "vote", "projection"),
    parent=texts,
    child=texts,
    kind=texts,
    reason=texts,
    confidence=optional(units),
    model=texts,
    prompt=texts,
    why=texts,
)
unanswered = strategy(schema.UnansweredPair, parent=ids, child=ids, why=texts)
annotations = strategy(
    schema.Annotation,
    domain=texts,
    candidates=counts,
    roles=by_name(one_of("core", "additional", "penalty", "applicability")),
    unassigned=by_name(texts),
    seen=by_name(texts),
    rejected=lists_of(rejected_edges),
    unanswered=lists_of(unanswered),
)
pair_of_criteria = (
    st.tuples(criteria, criteria)
    .filter(lambda pair: pair[0].text.strip() != pair[1].text.strip())
    .map(lambda pair: (pair[0].model_copy(update={"id": "p"}), pair[1].model_copy(update={"id": "c"})))
)
rubrics = strategy(
    schema.Rubric,
    criteria=pair_of_criteria,
    edges=st.just(()) | st.tuples(edges),
    annotation=optional(annotations),
)
reviewers = strategy(schema.Reviewer, id=ids)
queries = texts | lists_of(messages)
task_fields = {
    "id": ids,
    "query": queries,
    "stakeholders": with_unique_ids(stakeholders.filter(lambda one: one.id not in "ab")).map(
        lambda others: (schema.Stakeholder(id="a"), schema.Stakeholder(id="b"), *others)
    ),
    "tensions": lists_of(tensions),
    "rubric": optional(rubrics),
    "reviewers": lists_of(ids, unique=True),
    "reference": optional(texts),
    "facts": optional(objects),
    "group": optional(texts),
    "metadata": objects,
}
defaulted = {name: task_fields[name] for name in schema.TaskDefaults.model_fields}
task_defaults = strategy(schema.TaskDefaults, **defaulted) | st.just(schema.TaskDefaults())
response_fields = {
    "id": ids,
    "text": texts,
    "agent": optional(texts),
    "data": json_values,
    "labels": objects,
    "metadata": objects,
}
tasks = strategy(schema.Task, **task_fields)
responses = strategy(schema.Response, **response_fields)
task_lines = strategy(schema.TaskLine, **task_fields, responses=lists_of(responses))
response_lines = strategy(schema.ResponseLine, **response_fields, task=ids)
members = {
    "task": st.none(),
    "everyone": st.none(),
    "stakeholder": stakeholders,
    "criterion": criteria,
    "reviewer": reviewers,
}
view_fields = {
    "id": ids,
    "query": queries,
    "reference": optional(texts),
    "facts": optional(objects),
    "people": with_unique_ids(stakeholders),
    "group": optional(texts),
    "metadata": objects,
}
views = one_of(*members).flatmap(
    lambda audience: st.builds(schema.TaskView, **view_fields, audience=st.just(audience), about=members[audience])
)
STRATEGIES[schema.TaskView] = views

failures = strategy(schema.Failure, cause=one_of("response", "infrastructure"), kind=ids, message=texts)
evidence = strategy(
    schema.Evidence,
    quote=texts,
    start=optional(counts),
    end=optional(counts),
    source=texts,
    verified=flags,
    of=optional(texts),
)


@st.composite
def outcomes(draw: Draw) -> dict[str, Any]:
    """Status, score and failure, as they belong together."""
    status = draw(one_of("ok", "abstained", "failed", "not_applicable"))
    return {
        "status": status,
        "score": draw(units) if status == "ok" else None,
        "failure": draw(failures)
        if status == "failed"
        else draw(optional(failures))
        if status == "abstained"
        else None,
    }


example_uses = strategy(
    schema.ExampleUse, item=ids, reviewer=ids, score=numbers, fingerprint=texts, dropped=optional(texts)
)
swaps = strategy(schema.Swap, given=units, swapped=units, call=optional(texts))
shrinkages = strategy(
    schema.Shrinkage,
    weight=units,
    toward=units,
    call=optional(texts),
    examples=lists_of(example_uses),
    swap=optional(swaps),
)
call_uses = strategy(schema.CallUse, id=ids, purpose=st.text("abc _-", min_size=1, max_size=64))
steps = strategy(schema.Step, name=ids, duration=optional(numbers))
identity_fields = {
    "question": texts,
    "evaluator": texts,
    "version": texts,
    "layer": layers,
    "subject": texts,
    "stakeholder": optional(texts),
    "reviewer": optional(texts),
    "about": texts,
    "responses": lists_of(texts),
    "sample": counts,
    "gated_by": optional(texts),
    "calls": lists_of(call_uses),
    "steps": lists_of(steps),
}
verdict_fields = {
    "met": optional(flags),
    "native": optional(flags | numbers | texts),
    "scale": optional(rising),
    "confidence": optional(units),
    "reason": texts,
    "evidence": lists_of(evidence),
    "call": optional(texts),
    "examples": lists_of(example_uses),
    "shrinkage": optional(shrinkages),
    "swap": optional(swaps),
}
verdicts = st.builds(
    lambda fields, outcome: schema.Verdict(**fields, **outcome), st.fixed_dictionaries(verdict_fields), outcomes()
)
STRATEGIES[schema.Verdict] = verdicts
recorded_verdicts = st.builds(
    lambda identity, verdict: schema.RecordedVerdict(**identity, **vars(verdict)),
    st.fixed_dictionaries(identity_fields),
    verdicts,
)
STRATEGIES[schema.RecordedVerdict] = recorded_verdicts
variants = strategy(schema.Variant, response=responses, edit=json_values)
material_fields = {
    "name": ids,
    "response": texts,
    "data": json_values,
    "variants": lists_of(variants),
    "evidence": lists_of(evidence),
    "note": texts,
    "call": optional(texts),
    "calls": lists_of(call_uses),
}
materials = st.builds(
    lambda fields, failure: schema.Material(**fields, status="failed" if failure else "ok", failure=failure),
    st.fixed_dictionaries(material_fields),
    optional(failures),
)
STRATEGIES[schema.Material] = materials
calls = strategy(
    schema.Call,
    id=ids,
    provider=texts,
    model=texts,
    served=optional(texts),
    endpoint=optional(texts),
    parameters=objects,
    prompt=optional(texts),
    prompt_version=optional(texts),
    tokens_in=optional(counts),
    tokens_out=optional(counts),
    cost=optional(numbers),
    latency=optional(numbers),
    cache_hit=flags,
    attempts=counts,
    fault=optional(ids),
)

whens = strategy(
    schema.Condition,
    question=ids,
    op=one_of(">=", ">", "<=", "<"),
    threshold=numbers,
    reduce=one_of("mean", "min", "max", "median"),
    on=one_of("score", "native"),
)
questions = strategy(
    schema.Question,
    id=ids,
    evaluator=ids,
    version=texts,
    subject=ids,
    view=texts,
    branch=one_of("checks", "stakeholders", "criteria", "specialists", "judges"),
    layer=layers,
    scope=one_of("response", "pair", "group"),
    material=ids,
    needs=lists_of(ids),
    when=optional(whens),
    pairs=one_of("ordered", "unordered"),
    samples=st.integers(1, 9),
    standby=flags,
    params=objects,
)
derivations = strategy(
    schema.Derivation, gives=ids, deriver=ids, version=texts, view=texts, needs=lists_of(ids), params=objects
)
waves = strategy(schema.Wave, materials=lists_of(ids), questions=lists_of(ids))
surveys = strategy(
    schema.Survey,
    views=by_name(views),
    derivations=lists_of(derivations),
    questions=lists_of(questions),
    waves=lists_of(waves),
    gates=lists_of(one_of(*schema.RESPONSE_GATES)),
)
outlines = strategy(
    schema.SurveyOutline,
    members=lists_of(st.tuples(one_of("task", "criterion"), optional(texts))),
    derivations=lists_of(derivations),
    questions=lists_of(questions),
    waves=lists_of(waves),
    gates=lists_of(one_of(*schema.RESPONSE_GATES)),
)
inputs = strategy(
    schema.ComponentInput,
    questions=lists_of(ids),
    weights=lists_of(numbers),
    reduce=optional(one_of("mean", "min", "max", "majority")),
    vote=one_of("discard-first", "all-seats"),
    min_confidence=units,
    input_weight=positives,
    if_skipped=one_of("left-out", "zero"),
    reviewer=optional(ids),
)
specs = strategy(
    schema.ComponentSpec,
    name=ids,
    weight=numbers,
    direction=one_of(1, -1),
    combiner=ids,
    version=texts,
    inputs=by_name(inputs),
    params=objects,
)
format_gates = strategy(schema.FormatGate, kind=one_of("format"), component=ids, below=units)
precision_shapings = strategy(
    schema.PrecisionShaping,
    kind=one_of("precision"),
    component=ids,
    below=units,
    auxiliary=lists_of(ids, 1),
    fraction=units,
)
repetition_controls = strategy(schema.RepetitionControl, kind=one_of("repetition"), component=ids, above=units)
gates = format_gates | precision_shapings | repetition_controls
rules = one_of("conservative", "gear", "strict")
group_rules = optional(one_of("drop-criterion"))
decisions = strategy(
    schema.Decision,
    specs=lists_of(specs),
    gates=lists_of(gates),
    scale=positives,
    clip=optional(rising),
    rule=rules,
    min_coverage=units,
    group_rule=group_rules,
    weights_fixed=flags,
)
constraint_fields: dict[str, st.SearchStrategy[Any]] = {
    "id": ids,
    "text": texts,
    "kind": one_of("hard", "soft"),
    "restrictiveness": positives,
    "check": optional(objects),
}
read_constraints = strategy(schema.ReadConstraint, **constraint_fields, quote=texts)
read_tensions = strategy(schema.ReadTension, between=st.just(("a", "b")), strength=positives, reason=texts)
read_stakeholders = strategy(
    schema.ReadStakeholder, id=ids, profile=texts, constraints=with_unique_ids(read_constraints, least=1)
)
profiles = strategy(
    schema.Profiles,
    stakeholders=with_unique_ids(read_stakeholders),
    by=by_name(texts),
    tensions=lists_of(read_tensions),
    tensions_by=optional(texts),
    dropped=st.just(()),
)
profiles_lines = strategy(
    schema.ProfilesLine,
    task=ids,
    stakeholders=with_unique_ids(read_stakeholders, 1),
    tensions=optional(lists_of(read_tensions)),
)
plans = strategy(
    schema.Plan,
    task_id=ids,
    task_digest=texts,
    survey=surveys,
    decision=decisions,
    profiles=optional(profiles),
    rubric=optional(rubrics),
    calls=st.just(()),  # told beside what is frozen
)

evaluator_uses = strategy(
    schema.EvaluatorUse,
    use=ids,
    name=optional(ids),
    params=objects,
    when=optional(whens),
    samples=optional(st.integers(1, 9)),
    material=optional(ids),
    timeout=optional(positives),
    isolate=optional(one_of("process")),
)
deriver_uses = strategy(schema.DeriverUse, use=ids, name=optional(ids), params=objects, timeout=optional(positives))
input_configs = strategy(
    schema.InputConfig,
    verdicts_of=ids,
    reduce=optional(one_of("mean", "min", "max", "majority")),
    min_confidence=units,
    input_weight=positives,
    if_skipped=optional(one_of("left-out", "zero")),
)
component_configs = strategy(schema.ComponentConfig, combiner=ids, inputs=by_name(input_configs, 1), params=objects)
shares = st.floats(0.0, 1.0, exclude_min=True, exclude_max=True)
weights_fields = {"gamma": shares, "beta": shares, "temperature": positives}
weights_configs = st.builds(
    lambda fields, fixed, method: schema.WeightsConfig(**fields, fixed=fixed, method="fixed" if fixed else method),
    st.fixed_dictionaries(weights_fields),
    by_name(positives),
    one_of("calibrated", "uniform"),
)
STRATEGIES[schema.WeightsConfig] = weights_configs
evaluations = strategy(
    schema.PurposeConfig,
    kind=st.just("evaluation"),
    reward_judges=lists_of(ids),
    same_judge=one_of("refuse", "allow"),
)
purposes = strategy(
    schema.Purpose,
    kind=one_of("reward", "evaluation"),
    judge=optional(ids),
    reward_judges=lists_of(ids),
    same_judge=flags,
)
rubric_configs = strategy(
    schema.RubricConfig,
    aggregation=one_of("flat", "gear", "hard-local", "hard-transitive"),
    kappa=positives,
    exact=one_of("auto", "never"),
    if_skipped=optional(one_of("left-out", "zero")),
)
panel_configs = strategy(
    schema.PanelConfig,
    min_confidence=units,
    reduce=one_of("mean", "min", "max", "majority"),
    vote=one_of("discard-first", "all-seats"),
    if_skipped=optional(one_of("left-out", "zero")),
)
annotation_configs = strategy(schema.AnnotationConfig, domain=names, votes=st.integers(1, 15), batch=st.integers(1, 64))
failure_configs = strategy(
    schema.FailureConfig, rule=rules, min_coverage=units, max_error_rate=units, group_rule=group_rules
)
prices = strategy(schema.Price, input=positives, output=positives)
whole = st.integers(1, 9)
outage_configs = strategy(schema.OutageConfig, after=whole, wait=positives)
calls_configs = strategy(
    schema.CallsConfig,
    parameters=st.dictionaries(
        one_of("temperature", "top_p", "seed", "logit_bias"),
        numbers | flags | st.lists(numbers, max_size=2) | st.dictionaries(counts.map(str), numbers, max_size=2),
        max_size=3,
    ),
    max_tokens=whole,
    form=optional(one_of("native", "instructed")),
    timeout=positives,
    deadline=optional(positives),
    attempts=whole,
    outage=outage_configs,
    concurrency=whole,
    requests_per_minute=optional(positives),
    tokens_per_minute=optional(positives),
    context=whole,
    key=one_of("JURYGRAPH_API_KEY", "A_KEY"),
    cache=flags,
    record=optional(ids),
    prices=by_name(prices),
)
safety_configs = strategy(
    schema.SafetyConfig,
    fence=flags,
    reminder=flags,
    whole_reply=flags,
    evidence=one_of("required", "preferred", "off"),
    gates=lists_of(one_of(*schema.RESPONSE_GATES)),
)
canary_configs = strategy(
    schema.CanaryConfig,
    rate=st.floats(0.0, 1.0, exclude_min=True),
    suite=one_of("master-keys", "null", "injection", "reference", "all"),
    seed=counts,
    alert=units,
)
configs = strategy(
    schema.Config,
    version=one_of(1),
    model=texts,
    evaluators=lists_of(evaluator_uses, 1),
    derivers=lists_of(deriver_uses),
    components=by_name(component_configs),
    reward=by_name(numbers),
    gates=lists_of(gates),
    scale=positives,
    clip=optional(rising),
    weights=weights_configs,
    rubric=rubric_configs,
    task_defaults=task_defaults,
    panel=panel_configs,
    annotation=optional(annotation_configs),
    purpose=evaluations,
    failure=failure_configs,
    calls=calls_configs,
    safety=safety_configs,
    canary=optional(canary_configs),
    langsmith=flags,
)

terms = strategy(schema.Term, name=texts, weight=numbers, value=optional(numbers), contribution=optional(numbers))
tallies = strategy(schema.Counts, judged=counts, abstained=counts, failed=counts, not_applicable=counts)
adjustments = strategy(schema.Adjustment, name=texts, before=numbers, after=numbers)
gate_results = strategy(
    schema.GateResult,
    kind=one_of("format", "precision", "repetition"),
    component=texts,
    value=optional(units),
    op=one_of("<", ">"),
    threshold=units,
    before=numbers,
    after=numbers,
    is_worst_case=flags,
)
rewards = strategy(
    schema.Reward,
    value=optional(numbers),
    status=one_of("ok", "degraded", "failed"),
    partial=optional(numbers),
    coverage=units,
    range=optional(rising),
    components=by_name(optional(numbers)),
    terms=lists_of(terms),
    counts=tallies,
    parts=by_name(by_name(numbers)),
    diagnostics=by_name(by_name(numbers)),
    adjustments=lists_of(adjustments),
    gates=lists_of(gate_results),
    weights_fixed=flags,
    notes=lists_of(texts),
)
traces = strategy(
    schema.Trace,
    task_id=texts,
    response_id=texts,
    agent=optional(texts),
    group=texts,
    labels=objects,
    plan_digest=texts,
    reward=rewards,
    verdicts=lists_of(recorded_verdicts),
    calls=lists_of(calls),
    material=lists_of(materials),
    statistics=objects,
    purpose=optional(purposes),
    previous=optional(texts),
    plan=st.none(),
)
seats = strategy(
    schema.EvaluatorRecord,
    version=texts,
    audience=one_of("task", "everyone", "stakeholder", "criterion", "reviewer"),
    combiner=ids,
    shares=by_name(positives),
    depends_on=texts,
)

MODELS = sorted(STRATEGIES, key=lambda model: model.__name__)
