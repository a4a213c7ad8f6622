"""`jurygraph study stability`."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.agents.presentation.rewrites import REWRITINGS
from jurygraph.runs.run import Run
from tests.cli.conftest import Command, folder_contents, run_command, write_project
from tests.graphs.scripted import evaluator_use
from tests.models.judge_scripts import requested_items
from tests.models.server import Answer, reply_with, run_server
from tests.runs.test_calls import judge_config

CONFIG = json.dumps({"evaluators": [evaluator_use("judge")], "reward": {"judge": 1.0}})


def labelled_run(folder: Path, config: str = CONFIG) -> Path:
    scores = {"r": (0.5, {}), "a": (0.4, {"family": "order"}), "b": (0.6, {"family": "order", "version": 1})}
    responses = [
        {
            "id": f"t/{name}",
            "text": f"it is {name}",
            "data": {"judge": score, "advice": 0.5},
            "labels": {**labels, "seed": "t/r"},
        }
        for name, (score, labels) in scores.items()
    ]
    project = write_project(folder, [{"id": "t", "query": "What?", "responses": responses}], config)
    run_command("score", project / "tasks.jsonl", "--config", project / "jury.yaml", "--out", project / "run")
    return project / "run"


def test_the_variance_over_variants_is_on_the_scale_from_1_to_10(tmp_path: Path, run: Command):
    folder = labelled_run(tmp_path / "trips")
    before = folder_contents(folder)
    ended = run("study", "stability", folder)
    assert (ended.code, folder_contents(folder)) == (0, before)
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0] == "1 responses in 2 variants, of 1 families; scores from 1 to 10"
    assert "σ²_Rep and S/R are not measured" in ended.err
    found = json.loads(run("study", "stability", folder, "--json").out)
    assert found["noise"][0]["semantic"]["value"] == pytest.approx(81 * 0.01)
    assert run("study", "stability", folder, "--quality", "high").code == 2


def test_a_reward_that_is_one_component_is_measured_once_and_first(tmp_path: Path, run: Command):
    uses = [evaluator_use("advice"), evaluator_use("judge")]
    folder = labelled_run(tmp_path / "one", json.dumps({"evaluators": uses, "reward": {"judge": 1.0}}))
    found = json.loads(run("study", "stability", folder, "--json").out)
    assert [row["name"] for row in found["protocols"]] == ["judge", "advice"]
    mixed = labelled_run(tmp_path / "two", json.dumps({"evaluators": uses, "reward": {"judge": 0.5, "advice": 0.5}}))
    found = json.loads(run("study", "stability", mixed, "--json").out)
    assert [row["name"] for row in found["protocols"]] == ["reward", "advice", "judge"]


def test_a_run_without_variants_is_refused(tmp_path: Path, run: Command):
    project = write_project(tmp_path / "trips", [{"id": "t", "query": "?", "responses": [
        {"id": "t/r", "text": "it is", "data": {"judge": 0.5}}]}], CONFIG)  # fmt: skip
    run("score", project / "tasks.jsonl", "--config", project / "jury.yaml", "--out", project / "run")
    ended = run("study", "stability", project / "run")
    assert (ended.code, ended.out) == (2, "")
    assert "no response has two scored variants; label each response with `seed` and `family`" in ended.err


def test_the_signal_of_a_group_is_printed(tmp_path: Path, run: Command):
    scores = tmp_path / "scores.csv"
    rows = ["a,original,0,5", "a,order,0,4.5", "a,order,1,5.5", "b,original,0,7", "b,order,0,6.5", "b,order,1,7.5"]
    lines = ["seed,family,version,score,stakeholders,task", *(f"{row},2,trip" for row in rows)]
    scores.write_text("\n".join(lines), encoding="utf-8")
    ended = run("study", "signal", scores, "--correct", "0.99", "--cut", "5.2")
    assert ended.code == 0
    printed = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert printed[0] == "score: 1 groups, scores from 1 to 10"
    assert "trip 2 0.250 3.500 0.996 1" in printed
    assert "decisions at 5.2: 1 of 2 responses flip with some wording" in printed
    assert run("study", "signal", scores, "--correct", "0.4").code == 2


PLAN = {"itinerary": [{"time": "09:00", "what": "ferry"}], "tradeoffs": ["no hike", "an early start", "one museum"]}


def test_variants_and_exact_repeats_are_made_scored_and_kept(tmp_path: Path, run: Command):
    """The judge likes texts with `**`, and its second and third answer to one input are another than its first."""

    def reply(body: dict[str, Any], number: int) -> Answer:
        content = "".join(one["content"] for one in body["messages"])
        found = {"reason": "no", "quotes": [], "met": "**" in content, "probability": 0.5 + 0.25 * ("**" in content)}
        found["probability"] += 0.125 * (asked.count(content) > 0)
        asked.append(content)
        return reply_with(json.dumps(dict.fromkeys(requested_items(body), found)))

    asked: list[str] = []
    use = {"use": "criteria", "params": {"criteria": ["It is kind."]}}
    tasks = tmp_path / "tasks.jsonl"
    task = {"id": "t", "query": "?", "responses": [{"id": "t/a", "text": "-", "data": PLAN}]}
    tasks.write_text(json.dumps(task))
    with run_server(reply) as server:
        config = tmp_path / "jury.yaml"
        config.write_text(json.dumps(judge_config(server) | {"evaluators": [use], "safety": {"evidence": "off"}}))
        words = ("study", "stability", tasks, "--config", config, "--repeats", "3", "--out", tmp_path / "lab")
        before = folder_contents(tmp_path)
        estimate = run(*words, "--dry-run")
        assert (estimate.code, folder_contents(tmp_path), asked) == (0, before, [])
        assert [" ".join(line.split()) for line in estimate.out.splitlines()[2:4]] == [
            "variants 1 20 20 20 20 40 unknown",
            "repeats 1 1 3 3 3 6 unknown",
        ]
        ended = run(*words, "--json")
        assert (ended.code, len(asked)) == (0, 23)
        again = run(*words, "--json")
        assert (again.out, len(asked)) == (ended.out, 23)
    found = json.loads(ended.out)
    assert found["noise"][0]["repeat"]["value"] == pytest.approx(81 * 0.125**2 * 2 / 9)
    families = {row["name"]: row["variance"]["0"] for row in found["families"]}
    assert families["trade-off-order"]["value"] == 0.0
    assert families["low-level-formatting"]["value"] == pytest.approx(81 * 0.25**2 * 6 / 25)
    assert found["presentations"]["undefined"]["stakeholder-section-order"] == 1
    refused = run("study", "stability", tasks, "--config", config)
    assert (refused.code, "--out FOLDER for the runs" in refused.err) == (2, True)
    assert run("study", "stability", tmp_path / "lab" / "variants", "--dry-run").code == 2


def test_a_model_writes_the_other_families_and_what_breaks_an_invariant_is_counted(tmp_path: Path, run: Command):
    """Its second version of topic-position has another time, and nobody is under-served in this plan."""

    def reply(body: dict[str, Any], number: int) -> Answer:
        content = "".join(one["content"] for one in body["messages"])
        moved = "no single stakeholder" in content
        is_second = "to the beginning" in content or "Use full sentences" in content or "Begin with causes" in content
        said = {
            "s1": f"At {'10:00' if moved and is_second else '09:00'} {'goes' if is_second else 'leaves'} the ferry.",
            "s2": "There is no hike.",
            "s3": f"The start is early{' as well' if moved else ''}.",
            "s4": "One of the museums is left out." if "synonyms" in content else "There is one museum.",
        }
        asked.append(content)
        return reply_with(json.dumps({"passages": [{"statement": name, "text": text} for name, text in said.items()]}))

    asked: list[str] = []
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps({"id": "t", "query": "?", "responses": [{"id": "t/a", "text": "-", "data": PLAN}]}))
    config = tmp_path / "jury.yaml"
    uses = [{"use": "criteria", "params": {"criteria": ["It is kind."]}}]

    def judge(body: dict[str, Any], number: int) -> Answer:
        found = {"reason": "no", "quotes": [], "met": True, "probability": 0.75}
        return reply_with(json.dumps(dict.fromkeys(requested_items(body), found)))

    with run_server(reply) as server, run_server(judge) as judging:
        config.write_text(json.dumps(judge_config(judging) | {"evaluators": uses, "safety": {"evidence": "off"}}))
        words = ("--versions", "2", "--repeats", "1", "--writer", f"openai-compatible:{server.url}#tiny")
        lab = tmp_path / "lab"
        ended = run("study", "stability", tasks, "--config", config, "--out", lab, *words, "--json")
    found = json.loads(ended.out)["presentations"]
    assert (ended.code, len(asked)) == (0, 6)
    assert {name: number for name, number in found["variants"].items() if name in REWRITINGS} == {
        "causal-direction": 2,
        "paraphrase": 2,
    }
    assert (found["discarded"], found["broken"]) == ({"topic-position": 1}, {"times": 1})
    assert [found["undefined"][name] for name in ("under-served-evidence", "topic-position")] == [1, 1]
    labels = [one.labels for one in Run.open(lab / "variants").traces()]
    assert {"seed": "t/a", "family": "paraphrase", "version": 2} in labels


def test_a_writer_waits_for_a_valid_config_and_shares_the_limits(tmp_path: Path, run: Command):
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text(json.dumps({"id": "t", "query": "?", "responses": [{"id": "t/a", "text": "-", "data": PLAN}]}))
    with run_server(lambda body, number: reply_with("no JSON")) as server:
        config = tmp_path / "jury.yaml"
        use = {"use": "criteria", "params": {"criteria": ["It is kind."]}}
        config.write_text(json.dumps(judge_config(server) | {"evaluators": [use], "reward": {"nothing": 1.0}}))
        words = ("study", "stability", tasks, "--config", config, "--out", tmp_path / "lab", "--versions", "1")
        words += ("--repeats", "1", "--writer", f"openai-compatible:{server.url}#writer")
        assert (run(*words).code, server.count) == (2, 0)
        config.write_text(json.dumps(judge_config(server) | {"evaluators": [use]}))
        assert "at most 4 requests" in run(*words, "--dry-run").err
        ended = run(*words, "--max-calls", "8")
        assert (ended.code, server.count) == (4, 8)
    for words in (("--writer", "openai/gpt-5-mini"), ("--max-calls", "3")):
        refused = run("study", "stability", tasks, *words)
        assert (refused.code, f"{words[0]}: is for the variants of TASKS" in refused.err) == (2, True)
