"""Random scenes for the properties of `decide`: a config, its task, and everything that may become of a question."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from jurygraph.agents.checks.spec import find_tensions
from jurygraph.agents.roles import Evaluator
from jurygraph.decision.combiners import Combiners
from jurygraph.decision.decide import GroupVerdicts, compute_rewards
from jurygraph.decision.recipe import build_decision
from jurygraph.decision.weighting import weigh_stakeholders
from jurygraph.graphs.routing import make_stamp
from jurygraph.graphs.survey import build_survey, list_configured_questions, view_task
from jurygraph.schema import (
    Config,
    Decision,
    EvaluatorRecord,
    Plan,
    Question,
    RecordedVerdict,
    Reward,
    Stakeholder,
    Survey,
    Task,
)
from jurygraph.schema.verdict import VerdictKey
from jurygraph.sources import parse_config_mapping
from tests.graphs.scripted import (
    COMBINERS,
    UNJUDGED,
    ScriptedEvaluator,
    criterion,
    evaluator_use,
    task,
)

Place = tuple[str, str, tuple[str, ...], int]
"""Question, about, responses as shown, sample."""

NAMES = ("a", "b", "c", "d")
SCREENED_OUT = RecordedVerdict(status="not_applicable", gated_by="gate")
STOPPED_BY_A_GATE = [
    RecordedVerdict(score=float(bad), met=bad, gated_by="empty-response") for bad in (False, True)
]
AWKWARD = st.sampled_from([0.0, 1.0, 0.5, 0.1, 0.3, 1 / 3, 0.7, 1e-9, 1 - 1e-9])
SCORES = AWKWARD | st.floats(0.0, 1.0)
WEIGHTS = st.sampled_from([1.0, 0.1, 0.3, 2.0, 0.7, 1e-3])
SIGNED = st.builds(lambda w, s: w * s, WEIGHTS, st.sampled_from([1.0, -1.0]))


@dataclass(frozen=True)
class Scene:
    config: dict[str, Any]
    task: Task
    plan: Plan
    verdicts: Mapping[Place, RecordedVerdict]

    def rewards(
        self, names: Sequence[str] = NAMES, verdicts: Mapping[Place, RecordedVerdict] | None = None
    ) -> dict[str, Reward]:
        """The rewards of these responses as one group, from their verdicts in the order given."""
        rewards = compute_rewards(*self.group(names, verdicts), COMBINERS)
        return dict(zip(names, rewards, strict=True))

    def group(
        self, names: Sequence[str] = NAMES, verdicts: Mapping[Place, RecordedVerdict] | None = None
    ) -> GroupVerdicts:
        """These responses as one group, with their verdicts in the order given."""
        given = self.verdicts if verdicts is None else verdicts
        survey = self.plan.survey
        known = {question.id: question for question in survey.questions}
        stamped = [
            make_stamp(known[question], survey.views[known[question].view])(
                verdict, VerdictKey(question, about, shown, sample)
            )
            for (question, about, shown, sample), verdict in given.items()
            if about in names and set(shown) <= set(names)
        ]
        return GroupVerdicts(self.plan.decision, survey.questions, names, stamped)


def bits(rewards: Mapping[str, Reward]) -> dict[str, str]:
    """Every bit of the rewards: JSON tells 0.0 from -0.0, and shows floats in full."""
    return {name: rewards[name].model_dump_json() for name in sorted(rewards)}


@st.composite
def rubrics(draw: st.DrawFn) -> Task:
    """Up to five criteria, penalties among them, and edges of every kind that form no cycle."""
    ids = draw(st.permutations("vwxyz"))[: draw(st.integers(1, 5))]
    weights = [draw(WEIGHTS), *(draw(SIGNED) for _ in ids[1:])]
    kinds = st.sampled_from(["weak", "strong", "activation", 0.35, 0.0, 1.0])
    pairs = [(p, c) for i, p in enumerate(ids) for c in ids[i + 1 :]]
    edges = [(p, c, draw(kinds)) for p, c in pairs if draw(st.booleans())]
    people = [Stakeholder(id=name) for name in draw(st.sampled_from(["", "m", "mn", "mno"]))]
    return task(
        *[criterion(i, w) for i, w in zip(ids, weights, strict=True)],
        edges=edges,
        stakeholders=people,
    )


GATES = st.fixed_dictionaries(
    {},
    optional={
        "format": st.builds(
            lambda b, c: {"kind": "format", "component": c, "below": b}, AWKWARD, st.just("tone")
        ),
        "precision": st.builds(
            lambda b, f: {
                "kind": "precision",
                "component": "own",
                "below": b,
                "auxiliary": ["tone"],
                "fraction": f,
            },
            AWKWARD,
            AWKWARD,
        ),
        "repetition": st.builds(
            lambda b: {"kind": "repetition", "component": "rubric", "above": b}, AWKWARD
        ),
        "must": st.builds(lambda b: {"kind": "must", "component": "same", "below": b}, AWKWARD),
        "another must": st.builds(
            lambda b: {"kind": "must", "component": "rubric", "below": b}, AWKWARD
        ),
    },
)


@st.composite
def scenes(
    draw: st.DrawFn, alone: bool = False, judged: bool = False, plain: bool = False
) -> Scene:
    """A scene of four responses.

    Args:
        alone: no question looks at more than one response.
        judged: nothing is left unjudged.
        plain: the rubric is a gain, the rule is conservative, and there are no gates.
    """
    about = draw(rubrics())
    gate = {"question": "tone", "threshold": 0.0}
    evaluators = [
        evaluator_use("met", audience="criterion"),
        {**evaluator_use("tone"), "samples": draw(st.integers(1, 3))},
        evaluator_use("same"),
        {**evaluator_use("late"), "when": gate},
    ]
    if about.stakeholders:
        evaluators.append(evaluator_use("kind", audience="stakeholder"))
    if not alone:
        evaluators.append(
            evaluator_use(
                "rank", scope="pair", pairs=draw(st.sampled_from(["ordered", "unordered"]))
            )
        )
        evaluators.append(evaluator_use("place", scope="group"))
    gated = st.sampled_from(["left-out", "zero"])
    reduce = st.sampled_from(["mean", "min", "max", None, *([] if judged else ["majority"])])
    confident = draw(st.sampled_from([0.0, 0.0 if judged else 0.8]))
    inputs = {
        "tone": {
            "verdicts_of": "tone",
            "reduce": draw(reduce),
            "input_weight": draw(WEIGHTS),
            "min_confidence": confident,
        },
        "late": {"verdicts_of": "late", "if_skipped": draw(gated)},
        "same": {"verdicts_of": "same", "input_weight": draw(WEIGHTS)},
    }
    names = ["rubric", "tone", "same", "own"] + [
        n for n in ("stakeholders", "rank", "place") if n in _homes(evaluators)
    ]
    config = {
        "evaluators": evaluators,
        "components": {
            "own": {"combiner": draw(st.sampled_from(["mean", "product"])), "inputs": inputs}
        },
        "reward": {
            "rubric": draw(WEIGHTS if plain else SIGNED),
            **{name: draw(SIGNED | st.just(0.0)) for name in names[1:]},
        },
        "gates": [] if plain else list(draw(GATES).values()),
        "scale": draw(st.sampled_from([1.0, 0.3])),
        "clip": draw(st.sampled_from([None, [0.0, 1.0], [-0.7, 0.4]])),
        "weights": {"method": "uniform"},
        "rubric": {
            "aggregation": draw(st.sampled_from(["flat", "gear", "hard-local", "hard-transitive"])),
            "if_skipped": draw(gated),
        },
        "failure": {
            "rule": "conservative"
            if plain
            else draw(st.sampled_from(["conservative", "gear", "strict", "decisive"])),
            "min_coverage": draw(st.sampled_from([0.0, 0.5, 0.8, 1.0])),
        },
    }
    if not plain and config["reward"]["rubric"] > 0:
        assert about.rubric is not None
        gains = [criterion.id for criterion in about.rubric.criteria if criterion.weight > 0]
        musts = draw(st.sets(st.sampled_from(gains)))
        config["criteria"] = {name: {"must": True} for name in sorted(musts)}
    plan = plan_of(config, about)
    outcomes = judgements(judged)
    verdicts = {
        place: draw(outcomes) for question in plan.survey.questions for place in places(question)
    }
    return Scene(config, about, plan, verdicts)


def plan_of(config: Mapping[str, Any], about: Task) -> Plan:
    """The plan, by the steps of `prepare`: quicker than its graph, and without the random ids that LangGraph draws."""
    read = parse_config_mapping(config)
    cast: dict[str, Evaluator] = {}
    for use in sorted(read.evaluators, key=lambda use: use.name or ""):
        made = ScriptedEvaluator(**use.params)
        made.name, made.params = use.name or "", use.params
        cast[made.name] = made
    views = view_task(about, ["task", *(one.audience for one in cast.values())])
    questions = list_configured_questions(
        cast, {use.name or "": use for use in read.evaluators}, views
    )
    survey = build_survey(views, (), questions, read.safety.gates)
    decision = decide(
        about, survey, read, {name: one.record for name, one in cast.items()}, COMBINERS
    )
    return Plan(
        task_id=about.id, task_digest=about.content_digest, survey=survey, decision=decision
    )


def decide(
    about: Task,
    survey: Survey,
    config: Config,
    records: Mapping[str, EvaluatorRecord],
    combiners: Combiners,
) -> Decision:
    """The decision of a task and its survey under a config."""
    audiences = [record.audience for record in records.values()]
    weighed = weigh_stakeholders(about, config.weights, audiences, find_tensions)
    return build_decision(about, survey, config, records, combiners, *weighed)


def _homes(evaluators: Sequence[Mapping[str, Any]]) -> set[str]:
    return {{"kind": "stakeholders"}.get(use["name"], use["name"]) for use in evaluators}


def judgements(judged: bool = False) -> st.SearchStrategy[RecordedVerdict]:
    decisions, sure = (
        st.sampled_from([None, None, True, False]),
        st.sampled_from([None, None, 0.5, 0.8]),
    )
    scored = st.builds(
        lambda s, m, c: RecordedVerdict(score=s, met=m, confidence=c), SCORES, decisions, sure
    )
    settled = st.sampled_from([SCREENED_OUT, *STOPPED_BY_A_GATE])
    missing = st.sampled_from([*UNJUDGED.values()])
    return scored | settled if judged else scored | scored | scored | missing | settled


def places(question: Question, names: Sequence[str] = NAMES) -> Iterator[Place]:
    """Where the verdicts on a question stand."""
    for i, name in enumerate(names):
        shown: list[tuple[str, ...]] = [(name,)]
        if question.scope == "pair":
            others = (
                names[i + 1 :] if question.pairs == "unordered" else [n for n in names if n != name]
            )
            shown = [(name, other) for other in others]
        elif question.scope == "group":
            shown = [tuple(names)]
        for each in shown:
            for sample in range(question.samples):
                yield question.id, name, each, sample
