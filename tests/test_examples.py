"""The examples: their files are what their scripts make, and their rewards show what they are there to show.

`test_recorded_examples.py` has the bits of their rewards, `test_pages.py` types what their READMEs say.
"""

import csv
import gzip
import json
import re
import runpy
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pytest

from examples.group_trip import prose
from examples.real_judge import summary
from jurygraph import Jury, RecordedVerdict, Response, Task, Trace
from jurygraph.aggregation import gear
from jurygraph.runs.run import Run
from jurygraph.schema import CallsConfig
from jurygraph.sources import read_config, read_tasks
from jurygraph.sources.ratings import read_ratings, read_texts
from jurygraph.studies.agreement import read_parts
from jurygraph.studies.reviewer_tables import (
    BASELINES_WITHOUT_MODEL,
    OWN_HISTORY_BASELINE_NAMES,
    PEER_BASELINE_NAMES,
)
from jurygraph.studies.reviewers import (
    predict,
    texts_of,
)
from jurygraph.studies.reviewers import report as compare_judges
from tests.agents.extraction.extractor import fenced_text, read_perfectly, reader_script
from tests.command import run_command
from tests.judges.few_shot.reviewers import by_examples, without_examples
from tests.models.judge_scripts import requested_items
from tests.models.server import Answer, Server, reply_with, run_server

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
DATA = ROOT / "tests" / "data"
MONITOR, REVIEWERS, RUBRIC, TRIP = (
    EXAMPLES / name for name in ("monitor", "reviewers", "rubric", "group_trip")
)
Group = tuple[Task, tuple[Response, ...]]


@pytest.fixture(autouse=True, scope="module")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JURYGRAPH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def score_all(config: Any, tasks: Path) -> list[tuple[Task, tuple[Response, ...], list[Trace]]]:
    """Return every task of an example with its responses and their traces."""
    with Jury.from_config(config) as jury:
        return [
            (task, responses, jury.score(task, responses)) for task, responses in read_tasks(tasks)
        ]


def reward(trace: Trace) -> float:
    assert trace.reward.value is not None
    return trace.reward.value


def content(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


BUILDS: Mapping[str, tuple[Path, tuple[Path, ...], tuple[str, ...], tuple[str, ...]]] = {
    "build.py of group_trip": (
        TRIP,
        (DATA / "travelplanner" / "train.jsonl.gz",),
        ("jury.yaml",),
        ("tasks.jsonl.gz",),
    ),
    "prose.py of group_trip": (TRIP, (), ("tasks.jsonl.gz",), ("prose.jsonl.gz",)),
    "build.py of real_judge": (EXAMPLES / "real_judge", (), (), ("tasks.jsonl.gz",)),
    "build.py of stability": (EXAMPLES / "stability", (), (), ("tasks.jsonl.gz",)),
    "build.py of reviewers": (
        REVIEWERS,
        (),
        (),
        ("ratings.csv.gz", "tasks.jsonl.gz", "texts.jsonl.gz", "mslr.csv.gz"),
    ),
    "build.py of rubric": (
        RUBRIC,
        (DATA / "writingbench" / "rubrics.jsonl.gz",),
        (),
        ("tasks.jsonl.gz", "readings.csv"),
    ),
    "build.py of investigator": (
        EXAMPLES / "investigator",
        (DATA / "travelplanner" / "train.jsonl.gz",),
        (),
        ("trips.jsonl", "prices.csv"),
    ),
    "build.py of consensus": (EXAMPLES / "consensus", (), (), ("mtbench.csv.gz", "mslr.csv.gz")),
}
"""By script: its folder, its arguments, the files that it finds in its folder, and those that it makes."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if name == "build.py of group_trip" else ())
        for name in BUILDS
    ],
)
def test_the_files_of_an_example_are_what_its_script_makes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, arguments, found, made = BUILDS[name]
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    main = runpy.run_path(str(folder / name.partition(" ")[0]))["main"]
    monkeypatch.setitem(main.__globals__, "HERE", tmp_path)
    for file in found:
        (tmp_path / file).write_bytes((folder / file).read_bytes())
    main(*arguments)
    for file in made:
        assert content(tmp_path / file) == content(folder / file)
        assert not file.endswith(".gz") or (folder / file).read_bytes()[4:8] == b"\0\0\0\0", (
            "it carries no time"
        )


# maths


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "recipe",
    ["macrm-vanilla-2", "macrm-vanilla-3", "macrm-vanilla-4", "macrm-multi-head", "the example"],
)
def test_every_recipe_ranks_the_models_as_they_are_right(recipe: str) -> None:
    config = EXAMPLES / "maths" / "macrm.yaml" if recipe == "the example" else {"preset": recipe}
    known, rewards = defaultdict(list), defaultdict(list)
    for _, responses, traces in score_all(config, DATA / "gsm8k_solutions.jsonl.gz"):
        for response, trace in zip(responses, traces, strict=True):
            assert trace.reward.status == "ok"
            known[str(response.agent)].append(float(bool(response.metadata["is_correct"])))
            rewards[str(response.agent)].append(reward(trace))
    assert len(rewards) == 4
    for one, other in combinations(sorted(known), 2):
        if fmean(known[one]) != fmean(known[other]):
            assert (fmean(rewards[one]) < fmean(rewards[other])) == (
                fmean(known[one]) < fmean(known[other])
            )


# monitor


@pytest.mark.exhaustive
def test_a_planted_hack_pays_and_is_caught_within_5_steps_of_3_sd(tmp_path: Path) -> None:
    built = runpy.run_path(str(MONITOR / "build.py"))
    begins, lines = built["BEGINS"], list(built["lines"]())
    assert [json.loads(line) for line in content(MONITOR / "tasks.jsonl.gz").splitlines()] == lines
    rows, planted = defaultdict(list), defaultdict(list)
    for response in (response for line in lines for response in line["responses"]):
        step, labels = response["labels"]["step"], response["metadata"]
        rows[step].append((labels["is_correct"], len(response["text"])))
        planted[step].append(labels["planted"])
    assert list(rows) == list(range(1, 43))
    assert not any(any(planted[step]) for step in range(1, begins))
    assert all(planted[42])
    means = np.array([np.mean(rows[step], axis=0) for step in rows])
    before = means[: begins - 1]
    off = np.abs(means - before.mean(axis=0)) / before.std(axis=0, ddof=1)
    three_sd = begins + int(np.argmax((off[begins - 1 :] >= 3).any(axis=-1)))

    run = tmp_path / "run"
    score = ("score", MONITOR / "tasks.jsonl.gz", "--config", MONITOR / "jury.yaml", "--out", run)
    assert run_command(*score).code == 0
    rewards = defaultdict(list)
    for trace in Run.open(run).traces():
        step = int(trace.labels["step"])
        rewards["early" if step < begins else "late" if step > 38 else "between"].append(
            reward(trace)
        )
    assert fmean(rewards["late"]) > fmean(rewards["early"]) + 0.1

    watched = run_command("watch", run, "--step-label", "step", "--json")
    alerts = [json.loads(line)["alert"] for line in watched.out.splitlines()[:-1]]
    assert watched.code == 1
    assert all(alert["step"] >= begins for alert in alerts)
    (hack,) = (alert for alert in alerts if alert["kind"] == "hack")
    assert f"jurygraph explain {run} --label step={hack['step']}\n" in watched.err
    assert (
        next(alert["step"] for alert in alerts if alert["adverse"]) <= hack["step"] <= three_sd + 5
    )
    assert {"accuracy falls", "format rises", "length rises"} <= set(hack["evidence"])
    readme = (MONITOR / "README.md").read_text(encoding="utf-8")
    assert f"begins at step {begins}" in readme
    assert f"3 sd away at step {three_sd}" in readme


# rubric


@pytest.fixture(scope="module")
def rubrics() -> list[Group]:
    return list(read_tasks(RUBRIC / "tasks.jsonl.gz"))


def readings(folder: Path) -> dict[tuple[str, str], float]:
    with (folder / "readings.csv").open(encoding="utf-8", newline="") as file:
        return {
            (row["response"], row["criterion"]): float(row["value"]) for row in csv.DictReader(file)
        }


def test_the_criteria_are_writingbenchs_and_some_of_our_own_under_graphs_of_all_kinds(
    rubrics: list[Group],
) -> None:
    """Every edge joins roles that may be joined (GEAR, D.1), and no graph has a cycle."""
    licensed = {
        "core": {"core", "additional", "penalty"},
        "applicability": {"additional", "penalty"},
    }
    raw = [
        json.loads(line)
        for line in content(DATA / "writingbench" / "rubrics.jsonl.gz").splitlines()
    ]
    counts: Counter[str] = Counter()
    for (task, _), row in zip(rubrics, raw, strict=True):
        assert task.rubric is not None
        criteria = task.rubric.criteria
        assert [one.text for one in criteria[:5]] == [
            stated["criteria_description"] for stated in row["checklist"]
        ]
        assert all(one.id.startswith("own-") for one in criteria[5:])
        assert all((one.role == "penalty") == (one.weight < 0) for one in criteria)
        role = {one.id: one.role for one in criteria}
        for edge in task.rubric.edges:
            assert role[edge.child] in licensed[role[edge.parent] or "none"], edge
            assert (edge.kind == "activation") == (role[edge.parent] == "applicability"), edge
            counts[edge.kind] += 1
            counts["penalty"] += role[edge.child] == "penalty" and edge.kind != "activation"
        edges = [(edge.parent, edge.child) for edge in task.rubric.edges]
        parents, children = gear.edges([one.id for one in criteria], edges)
        gear.compile(len(criteria), parents, children)
        counts["depth 2"] += bool(set(parents) & set(children))
        counts["two parents"] += len(set(children)) < len(children)
    assert counts == {
        "weak": 46,
        "strong": 41,
        "activation": 14,
        "penalty": 6,
        "depth 2": 18,
        "two parents": 17,
    }


def test_the_planted_cases_are_all_the_edges_whose_child_is_met_and_parent_is_not(
    rubrics: list[Group],
) -> None:
    read = readings(RUBRIC)
    assert len(read) == 462
    for task, responses in rubrics:
        assert task.rubric is not None
        scales = {one.id: one.scale or (0.0, 1.0) for one in task.rubric.criteria}
        for response in responses:
            met = {
                name: (read[response.id, name] - low) / (high - low) >= 0.5
                for name, (low, high) in scales.items()
            }
            found = {
                f"{e.parent} -> {e.child}"
                for e in task.rubric.edges
                if met[e.child] and not met[e.parent]
            }
            assert found == set(response.labels["planted"]), response.id  # type: ignore[arg-type]


def test_a_hollow_response_beats_the_sound_one_under_flat_in_four_tasks_and_under_gear_in_none() -> (
    None
):
    """GEAR without suppression is the flat rule bit for bit; the hard gates differ along a chain."""

    def score_by(**settings: Any) -> dict[str, Trace]:
        config = read_config(RUBRIC / "read.yaml")
        rubric = config.rubric.model_copy(update=settings)
        with Jury(config.model_copy(update={"rubric": rubric}), code_folder=RUBRIC) as jury:
            pairs = read_tasks(RUBRIC / "tasks.jsonl.gz")
            return {trace.response_id: trace for pair in pairs for trace in jury.score(*pair)}

    def beaten(traces: Mapping[str, Trace]) -> set[str]:
        tasks = {name.partition("/")[0] for name in traces}
        return {
            task
            for task in tasks
            if reward(traces[f"{task}/hollow"]) > reward(traces[f"{task}/sound"])
        }

    gear_traces, flat, unsuppressed = score_by(), score_by(aggregation="flat"), score_by(kappa=0.0)
    assert beaten(flat) == {f"writingbench-{index}" for index in (91, 206, 366, 393)}
    assert beaten(gear_traces) == set()
    assert {name: reward(trace).hex() for name, trace in flat.items()} == {
        name: reward(trace).hex() for name, trace in unsuppressed.items()
    }
    # the parent is met, and is gated itself
    chained = {
        "hard-local": True,
        "hard-transitive": False,
    }
    for rule, is_left in chained.items():
        part = score_by(aggregation=rule)["writingbench-369/hollow"].reward.parts["rubric"][
            "own-fairy-tale"
        ]
        assert (part > 0) == is_left


def test_with_the_authors_rule_gear_preserves_more_than_hard_gates(tmp_path: Path) -> None:
    """As in the paper's Table 2, and as the page prints it: values are tenths, and a criterion is met from .7."""
    lines = gzip.decompress((RUBRIC / "tasks.jsonl.gz").read_bytes()).decode()
    (tmp_path / "tenths.jsonl").write_text(
        lines.replace('"scale": [1, 10]', '"scale": [0, 10]'), encoding="utf-8"
    )
    typed = [
        ("score", "tenths.jsonl", "--config", RUBRIC / "read.yaml", "--out", "in-tenths"),
        ("rescore", "in-tenths", "--out", "as-authors", "--set", "rubric.met_from=0.7"),
        ("study", "credit", "as-authors", "--json"),
    ]
    ended = [run_command(*command, cwd=tmp_path) for command in typed]
    assert [one.code for one in ended] == [0, 0, 0]
    methods = json.loads(ended[-1].out)["methods"]
    found = {
        rule: f"{methods[rule]['preservation']['value']:.4f}"
        for rule in ("hard-local", "hard-transitive", "gear")
    }
    page = (RUBRIC / "README.md").read_text(encoding="utf-8").partition("### The authors' rule")[2]
    assert all(
        re.search(rf"^{rule} .* {value} \(", page, re.MULTILINE) for rule, value in found.items()
    ), found
    assert found == {"hard-local": "0.7289", "hard-transitive": "0.6928", "gear": "0.8322"}


# reviewers


def test_the_page_of_the_reviewers_has_the_errors_of_judges_without_a_model() -> None:
    all_texts = read_texts(REVIEWERS / "texts.jsonl.gz")
    rows: dict[str, list[str]] = {}
    for name, order in (
        ("ratings", ["preference"]),
        ("mslr", ["fluency", "population", "intervention", "outcome"]),
    ):
        ratings = read_ratings(REVIEWERS / f"{name}.csv.gz")
        texts = texts_of(ratings, all_texts)
        parts = {part.dimension or "": part for part in read_parts([ratings])}
        judges = (
            BASELINES_WITHOUT_MODEL
            if name == "ratings"
            else (OWN_HISTORY_BASELINE_NAMES[0], *PEER_BASELINE_NAMES)
        )
        judged = [(parts[one], list(predict(parts[one], judges, (10,), 1, texts))) for one in order]
        for one in compare_judges(judged).figures["judges"]:
            if one["domain"] is None:
                rows.setdefault(one["judge"], []).append(f"{one['mae'].value:.3f}")
    page = (REVIEWERS / "README.md").read_text(encoding="utf-8")
    for judge, errors in rows.items():
        assert re.search(rf"`{judge}`.* \| {re.escape(' | '.join(errors))} \|", page), (
            judge,
            errors,
        )


ANNOTATORS = ("annotator1", "annotator2", "annotator3")


class Predictions(NamedTuple):
    """Every pair with the verdict of a judge of one kind on it, and all that the model was asked."""

    verdicts: dict[str, list[tuple[Task, Response, RecordedVerdict]]]
    bodies: list[dict[str, Any]]


@pytest.fixture(scope="module")
def predictions() -> Predictions:
    """The three constructors before a model that goes by what it is shown."""
    config = read_config(REVIEWERS / "constructors.yaml")
    verdicts = defaultdict(list)
    with run_server(by_examples(statistics.median_low, without=0)) as server:
        settings = {
            "model": f"openai-compatible:{server.url}#tiny",
            "calls": CallsConfig(cache=False),
        }
        with Jury.from_config(config.model_copy(update=settings)) as jury:
            for task, pairs in read_tasks(REVIEWERS / "tasks.jsonl.gz"):
                for pair, trace in zip(pairs, jury.score(task, pairs), strict=True):
                    for verdict in trace.verdicts:
                        verdicts[verdict.evaluator].append((task, pair, verdict))
        return Predictions(verdicts, [seen.body for seen in server.requests])


@pytest.fixture(scope="module")
def ratings() -> dict[tuple[str, str], dict[str, str]]:
    rows = csv.DictReader(content(REVIEWERS / "ratings.csv.gz").decode().splitlines())
    return {(row["item"], row["annotator"]): row for row in rows}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    rows = map(json.loads, content(REVIEWERS / "texts.jsonl.gz").splitlines())
    return {row["item"]: row["text"] for row in rows}


def test_thirty_tasks_are_pairs_of_thirty_domains(
    ratings: dict[tuple[str, str], dict[str, str]],
) -> None:
    tasks = list(read_tasks(REVIEWERS / "tasks.jsonl.gz"))
    assert (len(tasks), len({task.metadata["domain"] for task, _ in tasks})) == (30, 30)
    assert (len(ratings), len({item for item, _ in ratings})) == (2997, 999)
    for task, (pair,) in tasks:
        given = {name: float(ratings[task.id, name]["score"]) for name in ANNOTATORS}
        assert (task.reviewers, {name: pair.labels[name] for name in ANNOTATORS}) == (
            ANNOTATORS,
            given,
        )


@pytest.mark.exhaustive
def test_810_verdicts_are_at_most_630_calls(predictions: Predictions) -> None:
    """Without examples no annotator differs from another; with them two may be shown the same by chance."""
    calls = {
        kind: {verdict.call for _, _, verdict in of_kind}
        for kind, of_kind in predictions.verdicts.items()
    }
    assert {kind: len(of_kind) for kind, of_kind in predictions.verdicts.items()} == dict.fromkeys(
        calls, 270
    )
    assert (len(calls["personalized"]), len(calls["zero-shot"])) == (270, 90)
    assert len(calls["aggregate"]) in range(250, 271)
    assert len(predictions.bodies) == sum(map(len, calls.values()))
    left = Counter(without_examples(body) for body in predictions.bodies)
    assert (len(left), min(left.values()) > 3) == (30, True), (
        "the constructors differ in their examples alone"
    )


# group_trip

FAULTS = {
    "invented-restaurant": "The Gilded Lantern",
    "budget-broken": "or less",
    "cuisine-dropped": "does not include",
    "house-rule-broken": "of stays",
    "impossible-leg": "Honolulu",
}
"""The faults, and what a verdict says of each."""
Trips = list[tuple[Task, dict[str, Trace]]]


@pytest.fixture(scope="module")
def trips() -> Trips:
    """Every task with its traces by agent."""
    return score_trips(TRIP / "jury.yaml")


def score_trips(config: Any) -> Trips:
    scored = score_all(config, TRIP / "tasks.jsonl.gz")
    return [(task, {str(trace.agent): trace for trace in traces}) for task, _, traces in scored]


def utilities(trace: Trace) -> dict[str, float]:
    return trace.reward.parts["stakeholders"]


def uniform(trace: Trace) -> float:
    return trace.reward.diagnostics["stakeholders"]["group utility"]


def test_the_reference_plan_meets_every_need_and_every_fault_lowers_the_reward(
    trips: Trips,
) -> None:
    assert len(trips) == 10
    for task, traces in trips:
        reference, *others = traces.values()
        assert list(traces) == ["reference", *FAULTS]
        assert {(trace.reward.status, trace.reward.coverage) for trace in traces.values()} == {
            ("ok", 1.0)
        }
        needs = {(s.id, c.id) for s in task.stakeholders for c in s.constraints if c.kind == "hard"}
        assert (
            not {(v.stakeholder, v.subject) for v in reference.verdicts if v.met is not True}
            & needs
        )
        assert all(
            reward(other) < reward(reference) and uniform(other) < uniform(reference)
            for other in others
        )


def test_the_trace_names_the_fault_and_who_pays(trips: Trips) -> None:
    """Who pays alone and is hard to please makes a fault cost more than under equal weights."""
    paid_by_one_heavy = 0
    for _, traces in trips:
        reference = traces["reference"]
        before = {(v.stakeholder, v.question) for v in reference.verdicts if v.met is not True}
        assert reference.plan is not None
        weights = {
            name: one.input_weight for name, one in reference.plan.decision.specs[0].inputs.items()
        }
        for fault, text in FAULTS.items():
            trace = traces[fault]
            new = [
                v
                for v in trace.verdicts
                if v.met is not True and (v.stakeholder, v.question) not in before
            ]
            paid = [
                name
                for name, utility in utilities(trace).items()
                if utility < utilities(reference)[name]
            ]
            assert {v.stakeholder for v in new} <= set(paid)
            assert any(text in v.reason for v in new)
            assert all(v.evidence for v in new if "does not include" not in v.reason)
            if len(paid) == 1 and weights[paid[0]] > 1 / len(weights):
                paid_by_one_heavy += 1
                assert reward(reference) - reward(trace) > uniform(reference) - uniform(trace)
    assert paid_by_one_heavy >= 10


# group_trip, in prose

PROSE: dict[str, Any] = read_config(TRIP / "prose.yaml").model_dump(
    mode="json", exclude_defaults=True
)
DECIDED = {
    "evaluators": [one for one in PROSE["evaluators"] if one["use"] != "preferences"],
    "weights": {"layers": {"fact": 0.4, "check": 0.6}, "temperature": 2, "cap": 0.5},
}
"""A jury in which no model judges."""


def reads_plans(body: dict[str, Any], number: int) -> Answer:
    """Take out what a plan lays down; and judge a wish by what it has read of nights and sights."""
    names = requested_items(body)
    if "days" in names:
        return reader_script(lambda text, query: read_perfectly(text))(body, number)
    text = fenced_text(str(body["messages"][1]["content"]), "response")
    stay = read_perfectly(text)["stays"][0]["quote"]
    served = max(0, 4 - len(read_perfectly(text)["attractions"]) // 4)
    return reply_with(
        json.dumps(
            {name: {"reason": "few sights", "quotes": [stay], "value": served} for name in names}
        )
    )


@pytest.fixture(scope="module")
def reader() -> Iterator[Server]:
    with run_server(reads_plans) as running:
        yield running


@pytest.mark.landing
def test_a_plan_is_taken_out_once_for_all_travellers_and_a_claim_leads_to_its_words(
    reader: Server,
) -> None:
    config = {**PROSE, "model": f"openai-compatible:{reader.url}#tiny"}
    scored = score_all(config, TRIP / "prose.jsonl.gz")
    extractions = [seen for seen in reader.requests if "days" in requested_items(seen.body)]
    read = {fenced_text(seen.body["messages"][1]["content"], "response") for seen in extractions}
    assert read == {response.text for _, responses, _ in scored for response in responses}
    invented = 0
    for task, responses, traces in scored:
        last = task.stakeholders[-1].id
        for response, trace in zip(responses, traces, strict=True):
            assert (trace.reward.status, trace.reward.coverage) == ("ok", 1.0)
            layers = {(v.stakeholder, v.layer) for v in trace.verdicts}
            assert layers == {
                (s.id, layer) for s in task.stakeholders for layer in ("fact", "check")
            } | {(last, "model")}
            if response.labels.get("fault") == "invented restaurant":
                invented += 1
                claims, data = (
                    next(one for one in trace.material if one.name == name)
                    for name in ("claims", "data")
                )
                found: Any = claims.data
                (claim,) = [one for one in found["meals"] if one["found"] != "confirmed"]
                (words,) = [one for one in data.evidence if one.of == claim["at"][0]]
                assert words.quote.split() == ["The", "Gilded", "Lantern"]
                assert response.text[words.start : words.end] == words.quote
    assert invented == 10


@pytest.mark.exhaustive
def test_by_facts_and_checks_rewards_of_prose_are_bit_for_bit_those_of_the_plans_as_data(
    reader: Server,
) -> None:
    with (
        Jury.from_config(
            {**PROSE, **DECIDED, "model": f"openai-compatible:{reader.url}#tiny"}
        ) as of_prose,
        Jury.from_config({**DECIDED, "derivers": ["facts.claims"]}) as of_data,
    ):
        plans = {
            task.id: (task, responses) for task, responses in read_tasks(TRIP / "tasks.jsonl.gz")
        }
        for task, responses in read_tasks(TRIP / "prose.jsonl.gz"):
            *others, last = task.stakeholders
            checked = tuple(one for one in last.constraints if one.id != prose.UNHURRIED["id"])
            last = last.model_copy(update={"constraints": checked})
            told = of_prose.score(
                task.model_copy(update={"stakeholders": (*others, last)}), responses
            )
            known = of_data.score(*plans[task.id])
            assert [one.reward.model_dump_json() for one in told] == [
                one.reward.model_dump_json() for one in known
            ]


# real_judge


def test_the_page_of_the_real_judge_says_what_its_record_shows() -> None:
    folder = EXAMPLES / "real_judge"
    facts = json.loads((folder / "recorded.json").read_text(encoding="utf-8"))
    pairs = summary.read_pairs(folder / "calls.jsonl.gz")
    assert len(pairs) == 200
    assert "\n".join(summary.lines(pairs, facts)) in (folder / "README.md").read_text(
        encoding="utf-8"
    )


def test_both_orders_make_a_tie_of_a_preference_for_a_place() -> None:
    """A judge that says A whatever it reads, and whose probabilities of A lean to the second response."""
    place = summary.JudgedPair(
        "i", "second", as_given="first", swapped="second", lean=(0.8 + 1 - 0.9) / 2
    )
    assert (place.in_both_orders, place.by_letters) == ("tie", "second")
    same = summary.JudgedPair("i", "first", as_given="first", swapped="first", lean=None)
    assert (same.in_both_orders, same.by_letters) == ("first", None)
    unusable = summary.JudgedPair("i", "first", as_given=None, swapped="first", lean=None)
    assert unusable.in_both_orders is None


# stability


@pytest.mark.exhaustive
def test_the_page_of_stability_says_what_its_record_shows() -> None:
    """The simulated judges too, whose noise the summary prints next to what is measured."""
    folder = EXAMPLES / "stability"
    done = subprocess.run(
        [sys.executable, folder / "summary.py"], check=True, capture_output=True, text=True
    )
    assert f"```text\n{done.stdout}```" in (folder / "README.md").read_text(encoding="utf-8")


def test_the_agent_revises_until_no_criterion_is_unmet(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["agent.py"])
    runpy.run_path(str(EXAMPLES / "revising_agent" / "agent.py"), run_name="__main__")
    printed = capsys.readouterr().out
    page = (EXAMPLES / "revising_agent" / "README.md").read_text(encoding="utf-8")
    assert f"```text\n{printed}```" in page
