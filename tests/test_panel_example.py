"""The example in which every family takes part: one plan, one trace, one reward; and what must not matter."""

import copy
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ruamel.yaml import YAML

from examples.panel.build import line
from examples.panel.scripted_judge import NAME, Unscripted, judging, replied
from examples.panel.trips import TOWNS
from jurygraph import Jury, Response, Task, Trace
from jurygraph.runs.run import Run
from jurygraph.schema import RecordedVerdict
from tests.command import run_command
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


# The files


def test_the_tasks_are_what_the_build_writes() -> None:
    assert [line(town) for town in TOWNS] == LINES


# One trace with everything in it


def test_every_family_has_verdicts_in_one_trace(whole: Mapping[str, Trace]) -> None:
    asked = {verdict.evaluator for verdict in whole["sandhaven/careful"].verdicts}
    assert asked == {name for names in FAMILIES.values() for name in names} | {"quality.arithmetic"}


def test_everything_is_judged(whole: Mapping[str, Trace]) -> None:
    for trace in whole.values():
        assert (trace.reward.status, trace.reward.coverage) == ("ok", 1.0)
        assert {v.status for v in trace.verdicts if v.evaluator not in FAMILIES["data synthesizer"]} == {"ok"}


def test_who_is_harder_to_please_weighs_more(whole: Mapping[str, Trace]) -> None:
    plan = whole["sandhaven/careful"].plan
    assert plan is not None
    (spec,) = (one for one in plan.decision.specs if one.name == "stakeholders")
    weights = {name: one.input_weight for name, one in spec.inputs.items()}
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights["mara"] > weights["lin"] > weights["oke"]


def test_a_tension_between_two_budgets_makes_both_travellers_harder_to_please() -> None:
    """It is found by rule, from the constraints alone: the share that lies between the two budgets."""
    strelna = next(row for row in LINES if row["id"] == "strelna")
    with Jury.from_config(settings()) as jury:
        (spec,) = (one for one in jury.prepare(read(strelna)[0]).decision.specs if one.name == "stakeholders")
    difficulty: Any = spec.params["difficulty"]
    assert {name: terms["conflict"] for name, terms in difficulty.items()} == pytest.approx(
        {"mara": 1 - 712 / 890, "oke": 1 - 712 / 890, "lin": 0.0}
    )
    assert difficulty["mara"]["tensions"]["oke"]["why"] == [
        "budget and thrifty: the bounds 712 and 890 of one sum differ"
    ]
    beta = float(spec.params["calibration"]["beta"])  # type: ignore[index, call-overload, arg-type]
    parts = {name: terms["hard"] + 0.5 * terms["soft"] for name, terms in difficulty.items()}
    added = {name: terms["difficulty"] - parts[name] for name, terms in difficulty.items()}
    assert added == pytest.approx({name: beta * terms["conflict"] for name, terms in difficulty.items()})
    assert added["mara"] > 0.0


def test_a_response_without_a_contrast_has_no_verdict_on_one_and_no_component(whole: Mapping[str, Trace]) -> None:
    for name in ("inventive", "talkative", "terse"):  # they calculate nothing that could be made wrong
        trace = whole[f"sandhaven/{name}"]
        (verdict,) = (v for v in trace.verdicts if v.evaluator == "quality.arithmetic-of-contrasts")
        assert (verdict.status, verdict.score, verdict.gated_by) == ("not_applicable", None, "no-variant")
        assert (trace.reward.components["enhanced"], trace.reward.components["arithmetic-of-contrasts"]) == (None, None)


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


def test_an_invented_table_costs_what_hangs_on_it_and_is_quoted(whole: Mapping[str, Trace]) -> None:
    verdicts = {(v.evaluator, v.subject, v.stakeholder): v for v in whole["sandhaven/inventive"].verdicts}
    assert verdicts["checks.constraints", "no-meat", "oke"].met is False
    fault = verdicts["quality.reasoning", "facts", None]
    assert [one.quote for one in fault.evidence] == ["dinner at The Gilded Lantern"]
    assert fault.evidence[0].verified


def test_a_wrong_sum_is_found_and_a_right_one_made_wrong_scores_less(whole: Mapping[str, Trace]) -> None:
    lavish, careful = whole["sandhaven/lavish"].reward, whole["sandhaven/careful"].reward
    assert lavish.components["arithmetic"] < 1.0
    assert (careful.components["arithmetic"], careful.components["enhanced"]) == (1.0, 1.0)


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


def test_the_careful_plan_is_the_best_and_talk_the_worst(whole: Mapping[str, Trace]) -> None:
    worth = {str(trace.agent): trace.reward.value or 0.0 for trace in whole.values()}
    assert sorted(worth, key=worth.__getitem__) == ["talkative", "inventive", "lavish", "terse", "careful"]


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


class Done(NamedTuple):
    code: int
    out: str
    err: str


Typed = Callable[..., Done]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Types a command in an empty folder, where nothing is kept of earlier replies."""
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "replies"))

    def run(*arguments: str | Path) -> Done:
        return Done(*run_command(*arguments, cwd=tmp_path))

    return run


def test_without_a_model_what_abstains_is_shown_and_rewards_are_failed(typed: Typed) -> None:
    done = typed("score", PANEL / "tasks.jsonl", "--out", "run", "--limit", "1")
    assert done.code == 1
    assert "122 judged + 195 abstained + 0 failed + 3 not applicable = 320 requested" in done.out
    assert "5 of 5 rewards failed" in done.err
    told = typed("explain", "run", "--response", "sandhaven/careful")
    assert "the config's model is none" in told.out


def test_a_dry_run_says_how_often_the_model_will_be_asked_and_asks_nobody(typed: Typed, judge: Server) -> None:
    model, before = f"openai-compatible:{judge.url}#{NAME}", judge.count
    scoring = ("score", PANEL / "tasks.jsonl", "--out", "run", "--limit", "1", "--model", model)
    said_before = json.loads(typed(*scoring, "--dry-run", "--json").out)
    assert judge.count == before
    assert typed(*scoring).code == 0
    assert said_before["model"]["expected"]["calls"] == judge.count - before == ALL_CALLS
    assert "tasks_needing_model" not in said_before


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


@pytest.mark.exhaustive
@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_that_is_added_asks_its_own_questions_alone(
    family: str, typed: Typed, judge: Server, whole: Mapping[str, Trace], tmp_path: Path
) -> None:
    config = settings(judge.url)
    write(tmp_path / "less.yaml", without(config, family))
    write(tmp_path / "whole.yaml", config)
    first = judge.count
    assert typed("score", PANEL / "tasks.jsonl", "--config", "less.yaml", "--out", "less", "--limit", "1").code == 0
    second = judge.count
    done = typed(
        *("score", PANEL / "tasks.jsonl", "--config", "whole.yaml", "--limit", "1", "--branch", "less", "--out", "run")
    )
    assert done.code == 0, done.err
    asked = judge.count - second
    assert (second - first + asked, asked) == (ALL_CALLS, own_calls(family))
    traces = {trace.response_id: trace for trace in Run.open(tmp_path / "run").traces()}
    assert {name: trace.reward for name, trace in traces.items()} == {n: t.reward for n, t in whole.items()}


ALL_CALLS = 1 + 5 * (2 + 3 + 1) + 5 * SAMPLES * (3 + 3 + 1)
"""About a trip: its graph, and of each response two calls about criteria, one a traveller, one about the steps, and
for each sample one of each judge a reviewer; `zero-shot` asks once for all of them."""


def own_calls(family: str) -> int:
    """How often a family asks the model about a trip; a rubric is annotated where somebody judges its criteria."""
    calls = {"annotator": 1, "rubric": 1 + 5 * 2, "preferences": 5 * 3, "quality assessor": 5}
    of_judges = {"personalized": 5 * 3 * SAMPLES, "aggregate": 5 * 3 * SAMPLES, "zero-shot": 5 * SAMPLES}
    return (calls | of_judges).get(family, 0)


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


def test_who_is_less_sure_than_the_panel_asks_is_not_heard_in_the_consensus(judge: Server) -> None:
    config = settings(judge.url)
    heard = scored({**config, "panel": {"min_confidence": 0.8}})["sandhaven/lavish"].reward
    unheard = scored({**config, "panel": {"min_confidence": 0.95}, "failure": {"min_coverage": 0.1}})[
        "sandhaven/lavish"
    ].reward
    assert heard.parts["reviewers"]["ivo"] == 1.0
    assert (unheard.components["reviewers"], unheard.parts["reviewers"]["ivo"]) == (None, 0.0)
    own = copy.deepcopy(config)
    for name, of in own["components"]["reviewers"]["inputs"].items():
        own["components"]["reviewers"]["inputs"][name] = {"verdicts_of": of, "min_confidence": 0.0}
    stated = scored({**own, "panel": {"min_confidence": 0.95}, "failure": {"min_coverage": 0.1}})[
        "sandhaven/lavish"
    ].reward
    assert stated.parts["reviewers"]["ivo"] == 1.0
