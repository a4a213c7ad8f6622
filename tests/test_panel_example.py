"""The example in which every family takes part: one plan, one trace, one reward; and what must not matter."""

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from examples.panel.build import line
from examples.panel.scripted_judge import NAME, Unscripted, judging, replied
from examples.panel.trips import TOWNS
from jurygraph import Jury, Response, Task, Trace
from jurygraph.runs.run import Run
from jurygraph.schema import RecordedVerdict
from tests.command import CommandResult, run_command
from tests.models.server import Server, reply_with, run_server, status

ROOT = Path(__file__).parent.parent
PANEL = ROOT / "examples" / "panel"
CONFIG: dict[str, Any] = YAML(typ="safe").load((PANEL / "jury.yaml").read_text(encoding="utf-8"))
LINES = [json.loads(row) for row in (PANEL / "tasks.jsonl").read_text(encoding="utf-8").splitlines()]
JUDGES = ("personalized", "aggregate", "zero-shot")
SAMPLES = 3
FAMILIES: Mapping[str, Sequence[str]] = {
    "facts": ("facts.confirmed",),
    "checks": ("checks.constraints",),
    "preferences": ("preferences",),
    "rubric": ("criteria",),
    "annotator": (),
    "quality assessor": ("quality.reasoning",),
    "data optimizer": ("optimizer.efficiency", "optimizer.diversity"),
    "data synthesizer": ("quality.arithmetic-of-contrasts",),
    "rules": ("maths.repetition",),
    **{name: (name,) for name in JUDGES},
    "consensus": (),
}
"""Each family, with the names of the evaluators that are its own."""


def settings(url: str | None = None) -> dict[str, Any]:
    """The example's config, with the scripted judge at this address, and with nothing kept of its replies."""
    config = copy.deepcopy(CONFIG)
    for use in config["evaluators"]:
        if isinstance(use, dict) and use["use"] in JUDGES:
            files = {name: str(PANEL / use["params"][name]) for name in ("history", "texts")}
            use["params"] = {**use["params"], **files}
    model = {} if url is None else {"model": f"openai-compatible:{url}#{NAME}"}
    return {**config, **model, "calls": {"cache": False}}


def without(config: Mapping[str, Any], family: str) -> dict[str, Any]:
    """The config without a family, and without what only rests on it."""
    left: dict[str, Any] = copy.deepcopy(dict(config))
    gone = FAMILIES[family]
    left["evaluators"] = [use for use in left["evaluators"] if known_as(use) not in gone]
    for name in gone:
        left["reward"].pop(name.rpartition(".")[2], None)
    if family == "annotator":
        del left["annotation"]
    if family == "rubric":
        del left["reward"]["rubric"]
    if family == "data synthesizer":
        left["derivers"] = ["facts.claims"]
        del left["components"]["enhanced"], left["reward"]["enhanced"]
    if family == "consensus":
        del left["components"]["reviewers"], left["reward"]["reviewers"]
    if family in JUDGES:
        del left["components"]["reviewers"]["inputs"][family]
    return left


def known_as(use: str | Mapping[str, Any]) -> str:
    if isinstance(use, str):
        return use
    return f"{use['use']}-of-{use['material']}" if "material" in use else str(use["use"])


@pytest.fixture(scope="module")
def judge() -> Iterator[Server]:
    """The scripted judge, in this process, so that its requests can be counted."""

    def answer(body: dict[str, Any], number: int) -> Any:
        try:
            return reply_with(json.dumps(replied(body), ensure_ascii=False), served=NAME)
        except Unscripted as unscripted:
            return status(400, body={"error": {"message": str(unscripted), "type": "unscripted"}})

    with run_server(answer) as server:
        yield server


def read(row: Mapping[str, Any]) -> tuple[Task, list[Response]]:
    responses = [Response.model_validate(one) for one in row["responses"]]
    return Task.model_validate({key: value for key, value in row.items() if key != "responses"}), responses


def scored(config: Mapping[str, Any], row: Mapping[str, Any] = LINES[0]) -> dict[str, Trace]:
    with Jury.from_config(dict(config)) as jury:
        return {trace.response_id: trace for trace in jury.score(*read(row))}


@pytest.fixture(scope="module")
def whole(judge: Server) -> dict[str, Trace]:
    """The traces of the first trip, by response."""
    return scored(settings(judge.url))


def test_the_tasks_are_what_the_build_writes() -> None:
    assert [line(town) for town in TOWNS] == LINES


# One trace with everything in it


def test_every_family_has_judged_verdicts_in_one_trace(whole: Mapping[str, Trace]) -> None:
    asked = {verdict.evaluator for verdict in whole["sandhaven/careful"].verdicts}
    assert asked == {name for names in FAMILIES.values() for name in names} | {"quality.arithmetic"}
    for trace in whole.values():
        assert (trace.reward.status, trace.reward.coverage) == ("ok", 1.0)
        assert {v.status for v in trace.verdicts if v.evaluator not in FAMILIES["data synthesizer"]} == {"ok"}


def test_who_is_harder_to_please_weighs_more_and_the_careful_plan_is_the_best(whole: Mapping[str, Trace]) -> None:
    plan = whole["sandhaven/careful"].plan
    assert plan is not None
    (spec,) = (one for one in plan.decision.specs if one.name == "stakeholders")
    weights = {name: one.input_weight for name, one in spec.inputs.items()}
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["mara"] > weights["lin"] > weights["oke"]
    worth = {str(trace.agent): trace.reward.value or 0.0 for trace in whole.values()}
    assert sorted(worth, key=worth.__getitem__) == ["talkative", "inventive", "lavish", "terse", "careful"]


def test_credit_that_no_plan_licenses_is_held_back_by_the_annotated_graph(whole: Mapping[str, Trace]) -> None:
    plan = whole["sandhaven/talkative"].plan
    assert plan is not None
    assert plan.rubric is not None
    assert {(one.parent, one.child) for one in plan.rubric.edges} == {
        ("days", child) for child in ("total", "rain", "for-whom", "given-up")
    }
    met = {v.subject: v.score for v in whole["sandhaven/talkative"].verdicts if v.evaluator == "criteria"}
    assert (met["days"], met["rain"]) == (0.1, 0.9)
    assert whole["sandhaven/talkative"].reward.parts["rubric"]["rain"] < 0.9


def test_each_fault_costs_what_hangs_on_it(whole: Mapping[str, Trace]) -> None:
    """An invented table is quoted, and a wrong sum found; where nothing is calculated, nothing is made wrong."""
    verdicts = {(v.evaluator, v.subject, v.stakeholder): v for v in whole["sandhaven/inventive"].verdicts}
    assert verdicts["checks.constraints", "no-meat", "oke"].met is False
    fault = verdicts["quality.reasoning", "facts", None]
    assert [(one.quote, one.verified) for one in fault.evidence] == [("dinner at The Gilded Lantern", True)]
    lavish, careful = whole["sandhaven/lavish"].reward, whole["sandhaven/careful"].reward
    assert lavish.components["arithmetic"] < 1.0
    assert (careful.components["arithmetic"], careful.components["enhanced"]) == (1.0, 1.0)
    for name in ("inventive", "talkative", "terse"):
        trace = whole[f"sandhaven/{name}"]
        (verdict,) = (v for v in trace.verdicts if v.evaluator == "quality.arithmetic-of-contrasts")
        assert (verdict.status, verdict.score, verdict.gated_by) == ("not_applicable", None, "no-variant")
        assert (trace.reward.components["enhanced"], trace.reward.components["arithmetic-of-contrasts"]) == (None, None)


def test_the_judges_of_each_reviewer_are_fused_by_consensus_and_the_reviewers_by_their_mean(
    whole: Mapping[str, Trace],
) -> None:
    """Whatever examples were drawn: each panel has nine votes, and those on its own reviewer alone."""
    for trace in whole.values():
        parts, figures = trace.reward.parts["reviewers"], trace.reward.diagnostics["reviewers"]
        assert sorted(parts) == ["hana", "ivo", "jun"]
        for reviewer, part in parts.items():
            votes = [v.score > 0.5 for v in trace.verdicts if v.reviewer == reviewer and v.score is not None]
            assert len(votes) == len(JUDGES) * SAMPLES
            assert part == figures[f"p(1) of {reviewer}"] == float(2 * sum(votes) > len(votes))
        assert trace.reward.components["reviewers"] == pytest.approx(sum(parts.values()) / 3)


# What must not matter, and what must stay


def nobody_else(verdict: RecordedVerdict) -> bool:
    """Whether it says that nobody judges a need which no check decides: so none is forgotten."""
    return verdict.status == "abstained" and "nobody else is asked about it" in verdict.reason


@pytest.mark.parametrize("family", FAMILIES)
def test_without_a_family_the_others_verdicts_are_the_same_bits(
    family: str, judge: Server, whole: Mapping[str, Trace]
) -> None:
    alone = scored(without(settings(judge.url), family))
    assert {name: [v for v in trace.verdicts if not nobody_else(v)] for name, trace in alone.items()} == {
        name: [v for v in trace.verdicts if v.evaluator not in FAMILIES[family]] for name, trace in whole.items()
    }
    unheard = {v.subject for trace in alone.values() for v in trace.verdicts if nobody_else(v)}
    assert unheard == ({"told", "slow", "rain"} if family == "preferences" else set())


def in_any_order(value: Any, draw: random.Random) -> Any:
    """A task's line with everything shuffled that has no order: people, constraints, criteria, reviewers, responses."""
    unordered = ("stakeholders", "constraints", "criteria", "reviewers", "responses")
    if isinstance(value, list):
        return [in_any_order(one, draw) for one in value]
    if not isinstance(value, dict):
        return value
    keys = draw.sample(sorted(value), len(value))
    own = {key: in_any_order(value[key], draw) for key in keys}
    return {key: draw.sample(one, len(one)) if key in unordered else one for key, one in own.items()}


def shuffled(config: Mapping[str, Any], draw: random.Random) -> dict[str, Any]:
    """A config that lists evaluators, derivers, components, inputs and weights in another order."""
    names = draw.sample(sorted(config), len(config))
    whole = {key: config[key] for key in names}
    for key in ("evaluators", "derivers"):
        whole[key] = draw.sample(whole[key], len(whole[key]))
    for key in ("reward", "components"):
        whole[key] = {name: whole[key][name] for name in draw.sample(sorted(whole[key]), len(whole[key]))}
    return whole


@pytest.mark.parametrize("seed", range(3))
def test_no_order_changes_a_bit(seed: int, judge: Server, whole: Mapping[str, Trace], tmp_path: Path) -> None:
    draw = random.Random(seed)
    config = shuffled(settings(judge.url), draw)
    for use in config["evaluators"]:
        if isinstance(use, dict) and use["use"] in JUDGES:
            use["params"] = {**use["params"], **shuffled_history(tmp_path, draw)}
    other = scored(config, in_any_order(LINES[0], draw))
    assert {name: trace.reward for name, trace in other.items()} == {n: trace.reward for n, trace in whole.items()}
    assert {name: trace.verdicts for name, trace in other.items()} == {n: trace.verdicts for n, trace in whole.items()}
    assert {trace.plan_digest for trace in other.values()} == {trace.plan_digest for trace in whole.values()}


def shuffled_history(folder: Path, draw: random.Random) -> dict[str, str]:
    head, *rows = (PANEL / "ratings.csv").read_text(encoding="utf-8").splitlines()
    texts = (PANEL / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    contents = {"ratings.csv": [head, *draw.sample(rows, len(rows))], "texts.jsonl": draw.sample(texts, len(texts))}
    for name, lines in contents.items():
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {"history": str(folder / "ratings.csv"), "texts": str(folder / "texts.jsonl")}


# The commands, as the example's README has them

Typed = Callable[..., CommandResult]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Types a command in an empty folder, where nothing is kept of earlier replies."""
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "replies"))
    return partial(run_command, cwd=tmp_path)


RECIPES = (
    ["weights.method=uniform"],
    ["rubric.aggregation=flat"],
    ["rubric.kappa=2", "failure.rule=strict"],
    ["weights.welfare=egalitarian", "reward.reviewers=0.5"],
    ["reward={reviewers: 1.0, stakeholders: 1.0}"],
    ["panel.min_confidence=0.95", "failure.min_coverage=0.1"],
)


@pytest.mark.exhaustive
def test_a_run_proves_itself_and_other_recipes_ask_nobody(typed: Typed, judge: Server, tmp_path: Path) -> None:
    model = f"openai-compatible:{judge.url}#{NAME}"
    assert typed("score", PANEL / "tasks.jsonl", "--out", "run", "--model", model).code == 0
    asked = judge.count
    assert typed("verify", "run", "--deep").code == 0
    before = [trace.reward.value for trace in Run.open(tmp_path / "run").traces()]
    for number, recipe in enumerate(RECIPES):
        sets = [part for one in recipe for part in ("--set", one)]
        done = typed("rescore", "run", "--out", f"other-{number}", *sets)
        assert done.code == 0, done.err
        after = [trace.reward.value for trace in Run.open(tmp_path / f"other-{number}").traces()]
        assert after != before
    learned = typed("rescore", "run", "--out", "learned", "--learn", "reviewers", "--artifact", "judges.json")
    assert (learned.code, (tmp_path / "judges.json").exists()) == (0, False)
    assert "the panel's depth is 52.5, and below 75" in learned.err
    assert judge.count == asked


def write(path: Path, config: Mapping[str, Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        YAML(typ="safe").dump(dict(config), file)


@pytest.mark.exhaustive
def test_the_scripted_judge_runs_by_itself_and_refuses_what_it_was_not_told(typed: Typed, tmp_path: Path) -> None:
    with judging() as url:
        model = f"openai-compatible:{url}#{NAME}"
        done = typed("score", PANEL / "tasks.jsonl", "--out", "run", "--limit", "1", "--model", model)
        assert done.code == 0, done.err
        write(tmp_path / "direct.yaml", {"model": model, "evaluators": ["protocols.direct"]})
        refused = typed("score", PANEL / "tasks.jsonl", "--config", "direct.yaml", "--out", "direct", "--limit", "1")
    assert refused.code == 3
    assert "the scripted judge was not told what to say here" in refused.err
