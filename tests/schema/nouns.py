"""A strategy for every noun, so that what holds of all of them is tested of all of them."""

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


def maybe(one: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | one


def several(one: st.SearchStrategy[Any], least: int = 0, **unique: Any) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(one, min_size=least, max_size=2, **unique).map(tuple)


def by_name(one: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(ids, one, min_size=least, max_size=2)


def apart(one: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[tuple[Any, ...]]:
    return several(one, least, unique_by=lambda each: each.id)


def pick(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


rising = st.tuples(st.floats(-9.0, 0.0), st.floats(1.0, 9.0))
layers = pick("fact", "check", "model", "residual", "human")
STRATEGIES: dict[type[FrozenModel], st.SearchStrategy[Any]] = {}


def strategy(noun: type[N], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[N]:
    """A noun with every field drawn: none may be left to its default."""
    assert fields.keys() == noun.model_fields.keys(), f"{noun.__name__}: {fields.keys() ^ noun.model_fields.keys()}"
    STRATEGIES[noun] = st.builds(noun, **fields)
    return STRATEGIES[noun]


messages = strategy(schema.Message, role=pick("system", "user", "assistant", "tool"), content=texts)
constraints = strategy(
    schema.Constraint,
    id=ids,
    text=texts,
    kind=pick("hard", "soft"),
    restrictiveness=positives,
    check=maybe(objects),
)
stakeholders = strategy(schema.Stakeholder, id=ids, profile=texts, constraints=apart(constraints))
tensions = strategy(schema.Tension, between=st.just(("a", "b")), strength=positives)
parts = strategy(schema.Part, text=texts, weight=positives)
criterion_fields: dict[str, st.SearchStrategy[Any]] = {
    "id": ids,
    "text": texts,
    "weight": numbers.filter(bool),
    "role": maybe(pick("core", "additional", "penalty", "applicability")),
}
criteria_in_parts = strategy(
    schema.Criterion, **criterion_fields, scale=st.none(), anchors=st.just({}), parts=several(parts)
)
criteria_on_scales = strategy(
    schema.Criterion, **criterion_fields, scale=rising, anchors=by_name(texts), parts=st.just(())
)
criteria = STRATEGIES[schema.Criterion] = criteria_in_parts | criteria_on_scales
edges = strategy(
    schema.Edge,
    parent=st.just("p"),
    child=st.just("c"),
    kind=pick("weak", "strong", "activation"),
    retention=maybe(units),
    reason=texts,
    confidence=maybe(units),
    votes=maybe(st.tuples(counts, counts)),
    model=texts,
    prompt=texts,
)
rejected_edges = strategy(
    schema.RejectedEdge,
    stage=pick("check", "vote", "projection"),
    parent=texts,
    child=texts,
    kind=texts,
    reason=texts,
    confidence=maybe(units),
    model=texts,
    prompt=texts,
    why=texts,
)
unanswered = strategy(schema.UnansweredPair, parent=ids, child=ids, why=texts)
annotations = strategy(
    schema.Annotation,
    domain=texts,
    candidates=counts,
    roles=by_name(pick("core", "additional", "penalty", "applicability")),
    unassigned=by_name(texts),
    seen=by_name(texts),
    rejected=several(rejected_edges),
    unanswered=several(unanswered),
)
pair_of_criteria = st.tuples(criteria, criteria).map(
    lambda pair: (pair[0].model_copy(update={"id": "p"}), pair[1].model_copy(update={"id": "c"}))
)
rubrics = strategy(
    schema.Rubric,
    criteria=pair_of_criteria,
    edges=st.just(()) | st.tuples(edges),
    annotation=maybe(annotations),
)
reviewers = strategy(schema.Reviewer, id=ids)
queries = texts | several(messages)
task_fields = {
    "id": ids,
    "query": queries,
    "stakeholders": apart(stakeholders.filter(lambda one: one.id not in "ab")).map(
        lambda others: (schema.Stakeholder(id="a"), schema.Stakeholder(id="b"), *others)
    ),
    "tensions": several(tensions),
    "rubric": maybe(rubrics),
    "reviewers": several(ids, unique=True),
    "reference": maybe(texts),
    "facts": maybe(objects),
    "group": maybe(texts),
    "metadata": objects,
}
response_fields = {
    "id": ids,
    "text": texts,
    "agent": maybe(texts),
    "data": json_values,
    "labels": objects,
    "metadata": objects,
}
tasks = strategy(schema.Task, **task_fields)
responses = strategy(schema.Response, **response_fields)
task_lines = strategy(schema.TaskLine, **task_fields, responses=several(responses))
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
    "reference": maybe(texts),
    "facts": maybe(objects),
    "people": apart(stakeholders),
    "group": maybe(texts),
    "metadata": objects,
}
views = pick(*members).flatmap(
    lambda audience: st.builds(schema.TaskView, **view_fields, audience=st.just(audience), about=members[audience])
)
STRATEGIES[schema.TaskView] = views

failures = strategy(schema.Failure, cause=pick("response", "infrastructure"), kind=ids, message=texts)
evidence = strategy(
    schema.Evidence, quote=texts, start=maybe(counts), end=maybe(counts), source=texts, verified=flags, of=maybe(texts)
)


@st.composite
def outcomes(draw: Draw) -> dict[str, Any]:
    """Status, score and failure, as they belong together."""
    status = draw(pick("ok", "abstained", "failed", "not_applicable"))
    return {
        "status": status,
        "score": draw(units) if status == "ok" else None,
        "failure": draw(failures) if status == "failed" else draw(maybe(failures)) if status == "abstained" else None,
    }


example_uses = strategy(
    schema.ExampleUse, item=ids, reviewer=ids, score=numbers, fingerprint=texts, dropped=maybe(texts)
)
shrinkages = strategy(schema.Shrinkage, weight=units, toward=units, call=maybe(texts), examples=several(example_uses))
identity_fields = {
    "question": texts,
    "evaluator": texts,
    "version": texts,
    "layer": layers,
    "subject": texts,
    "stakeholder": maybe(texts),
    "reviewer": maybe(texts),
    "about": texts,
    "responses": several(texts),
    "sample": counts,
    "gated_by": maybe(texts),
}
verdict_fields = {
    "met": maybe(flags),
    "native": maybe(flags | numbers | texts),
    "scale": maybe(rising),
    "confidence": maybe(units),
    "reason": texts,
    "evidence": several(evidence),
    "call": maybe(texts),
    "examples": several(example_uses),
    "shrinkage": maybe(shrinkages),
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
    "variants": several(variants),
    "evidence": several(evidence),
    "note": texts,
    "call": maybe(texts),
}
materials = st.builds(
    lambda fields, failure: schema.Material(**fields, status="failed" if failure else "ok", failure=failure),
    st.fixed_dictionaries(material_fields),
    maybe(failures),
)
STRATEGIES[schema.Material] = materials
calls = strategy(
    schema.Call,
    id=ids,
    provider=texts,
    model=texts,
    served=maybe(texts),
    endpoint=maybe(texts),
    parameters=objects,
    prompt=maybe(texts),
    prompt_version=maybe(texts),
    tokens_in=maybe(counts),
    tokens_out=maybe(counts),
    cost=maybe(numbers),
    latency=maybe(numbers),
    cache_hit=flags,
    attempts=counts,
    repairs=maybe(ids),
)

whens = strategy(
    schema.Condition,
    question=ids,
    op=pick(">=", ">", "<=", "<"),
    threshold=numbers,
    reduce=pick("mean", "min", "max", "median"),
    on=pick("score", "native"),
)
questions = strategy(
    schema.Question,
    id=ids,
    evaluator=ids,
    version=texts,
    subject=ids,
    view=texts,
    branch=pick("checks", "stakeholders", "criteria", "specialists", "judges"),
    layer=layers,
    scope=pick("response", "pair", "group"),
    of=ids,
    needs=several(ids),
    when=maybe(whens),
    pairs=pick("ordered", "unordered"),
    samples=st.integers(1, 9),
    standby=flags,
    seed=counts,
    params=objects,
)
derivations = strategy(
    schema.Derivation, gives=ids, deriver=ids, version=texts, view=texts, needs=several(ids), params=objects
)
waves = strategy(schema.Wave, materials=several(ids), questions=several(ids))
surveys = strategy(
    schema.Survey,
    views=by_name(views),
    derivations=several(derivations),
    questions=several(questions),
    waves=several(waves),
    gates=several(pick(*schema.RESPONSE_GATES)),
)
inputs = strategy(
    schema.ComponentInput,
    questions=several(ids),
    weights=several(numbers),
    reduce=maybe(pick("mean", "min", "max", "majority")),
    confident=units,
    input_weight=positives,
    gated=pick("missing", "zero"),
)
specs = strategy(
    schema.ComponentSpec,
    name=ids,
    weight=numbers,
    direction=pick(1, -1),
    combiner=ids,
    version=texts,
    inputs=by_name(inputs),
    params=objects,
)
format_gates = strategy(schema.FormatGate, kind=pick("format"), component=ids, below=units)
precision_shapings = strategy(
    schema.PrecisionShaping,
    kind=pick("precision"),
    component=ids,
    below=units,
    auxiliary=several(ids, 1),
    fraction=units,
)
repetition_controls = strategy(schema.RepetitionControl, kind=pick("repetition"), component=ids, above=units)
gates = format_gates | precision_shapings | repetition_controls
rules = pick("conservative", "gear", "strict")
group_rules = maybe(pick("drop-criterion"))
decisions = strategy(
    schema.Decision,
    specs=several(specs),
    gates=several(gates),
    scale=positives,
    clip=maybe(rising),
    rule=rules,
    min_coverage=units,
    group_rule=group_rules,
    weights_fixed=flags,
)
constraint_fields: dict[str, st.SearchStrategy[Any]] = {
    "id": ids,
    "text": texts,
    "kind": pick("hard", "soft"),
    "restrictiveness": positives,
    "check": maybe(objects),
}
read_constraints = strategy(schema.ReadConstraint, **constraint_fields, quote=texts)
read_tensions = strategy(schema.ReadTension, between=st.just(("a", "b")), strength=positives, reason=texts)
read_stakeholders = strategy(
    schema.ReadStakeholder, id=ids, profile=texts, constraints=apart(read_constraints, least=1)
)
profiles = strategy(
    schema.Profiles,
    stakeholders=apart(read_stakeholders),
    by=by_name(texts),
    tensions=several(read_tensions),
    tensions_by=maybe(texts),
    dropped=st.just(()),
)
profiles_lines = strategy(
    schema.ProfilesLine, task=ids, stakeholders=apart(read_stakeholders, 1), tensions=maybe(several(read_tensions))
)
plans = strategy(
    schema.Plan,
    task_id=ids,
    task_digest=texts,
    survey=surveys,
    decision=decisions,
    profiles=maybe(profiles),
    rubric=maybe(rubrics),
    calls=st.just(()),  # told beside what is frozen
)

evaluator_uses = strategy(
    schema.EvaluatorUse,
    use=ids,
    name=maybe(ids),
    params=objects,
    when=maybe(whens),
    samples=maybe(st.integers(1, 9)),
    of=maybe(ids),
)
deriver_uses = strategy(schema.DeriverUse, use=ids, name=maybe(ids), params=objects)
input_configs = strategy(
    schema.InputConfig,
    of=ids,
    reduce=maybe(pick("mean", "min", "max", "majority")),
    confident=units,
    input_weight=positives,
    gated=maybe(pick("missing", "zero")),
)
component_configs = strategy(schema.ComponentConfig, combiner=ids, inputs=by_name(input_configs, 1), params=objects)
shares = st.floats(0.0, 1.0, exclude_min=True, exclude_max=True)
weights_fields = {"gamma": shares, "beta": shares, "temperature": positives}
weights_configs = st.builds(
    lambda fields, fixed, method: schema.WeightsConfig(**fields, fixed=fixed, method="fixed" if fixed else method),
    st.fixed_dictionaries(weights_fields),
    by_name(positives),
    pick("calibrated", "uniform"),
)
STRATEGIES[schema.WeightsConfig] = weights_configs
evaluations = strategy(
    schema.PurposeConfig,
    kind=st.just("evaluation"),
    reward_judges=several(ids),
    same_judge=pick("refuse", "allow"),
)
purposes = strategy(
    schema.Purpose, kind=pick("reward", "evaluation"), judge=maybe(ids), reward_judges=several(ids), same_judge=flags
)
rubric_configs = strategy(
    schema.RubricConfig,
    aggregation=pick("flat", "gear", "hard-local", "hard-transitive"),
    kappa=positives,
    gated=maybe(pick("missing", "zero")),
)
panel_configs = strategy(
    schema.PanelConfig,
    confidence=units,
    reduce=pick("mean", "min", "max", "majority"),
    gated=maybe(pick("missing", "zero")),
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
        pick("temperature", "top_p", "seed", "logit_bias"),
        numbers | flags | st.lists(numbers, max_size=2) | st.dictionaries(counts.map(str), numbers, max_size=2),
        max_size=3,
    ),
    max_tokens=whole,
    form=maybe(pick("native", "instructed")),
    timeout=positives,
    deadline=maybe(positives),
    attempts=whole,
    outage=outage_configs,
    concurrency=whole,
    requests_per_minute=maybe(positives),
    tokens_per_minute=maybe(positives),
    context=whole,
    key=pick("JURYGRAPH_API_KEY", "A_KEY"),
    cache=flags,
    record=maybe(ids),
    prices=by_name(prices),
)
safety_configs = strategy(
    schema.SafetyConfig,
    fence=flags,
    reminder=flags,
    whole_reply=flags,
    evidence=flags,
    gates=several(pick(*schema.RESPONSE_GATES)),
)
canary_configs = strategy(
    schema.CanaryConfig,
    rate=st.floats(0.0, 1.0, exclude_min=True),
    suite=pick("master-keys", "null", "injection", "reference", "all"),
    seed=counts,
    alert=units,
)
configs = strategy(
    schema.Config,
    version=pick(1),
    model=texts,
    evaluators=several(evaluator_uses, 1),
    derivers=several(deriver_uses),
    components=by_name(component_configs),
    reward=by_name(numbers),
    gates=several(gates),
    scale=positives,
    clip=maybe(rising),
    weights=weights_configs,
    rubric=rubric_configs,
    panel=panel_configs,
    annotation=maybe(annotation_configs),
    purpose=evaluations,
    failure=failure_configs,
    calls=calls_configs,
    safety=safety_configs,
    canary=maybe(canary_configs),
    langsmith=flags,
)

terms = strategy(schema.Term, name=texts, weight=numbers, value=maybe(numbers), contribution=maybe(numbers))
tallies = strategy(schema.Counts, judged=counts, abstained=counts, failed=counts, not_applicable=counts)
adjustments = strategy(schema.Adjustment, name=texts, before=numbers, after=numbers)
rewards = strategy(
    schema.Reward,
    value=maybe(numbers),
    status=pick("ok", "degraded", "failed"),
    partial=maybe(numbers),
    coverage=units,
    range=maybe(rising),
    components=by_name(maybe(numbers)),
    terms=several(terms),
    counts=tallies,
    parts=by_name(by_name(numbers)),
    diagnostics=by_name(by_name(numbers)),
    adjustments=several(adjustments),
    weights_fixed=flags,
    notes=several(texts),
)
traces = strategy(
    schema.Trace,
    task_id=texts,
    response_id=texts,
    agent=maybe(texts),
    group=texts,
    labels=objects,
    plan_digest=texts,
    reward=rewards,
    verdicts=several(recorded_verdicts),
    calls=several(calls),
    material=several(materials),
    statistics=objects,
    purpose=maybe(purposes),
    previous=maybe(texts),
    plan=st.none(),
)
seats = strategy(
    schema.EvaluatorRecord,
    version=texts,
    audience=pick("task", "everyone", "stakeholder", "criterion", "reviewer"),
    combiner=ids,
    shares=by_name(positives),
    depends_on=texts,
)

NOUNS = sorted(STRATEGIES, key=lambda noun: noun.__name__)
