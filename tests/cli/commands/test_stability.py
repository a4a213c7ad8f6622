"""`jurygraph study stability` and `signal`: the figures are tested in `tests/studies/stability`, variants in
`tests/agents/presentation`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, folder_contents
from tests.models.judge_scripts import requested_items
from tests.models.server import Answer, Server, reply_with, run_server
from tests.rows import all_rows
from tests.runs.sample_runs import write_tasks
from tests.runs.test_calls import judge_config
from tests.studies.stability.made import RESPONSES, labelled_run

pytestmark = pytest.mark.usefixtures("own_cache")


def test_the_variance_over_variants_is_on_the_scale_from_1_to_10(tmp_path: Path, run: Command):
    folder = labelled_run(tmp_path)
    before = folder_contents(folder)
    ended = run("study", "stability", folder)
    assert (ended.code, folder_contents(folder)) == (0, before)
    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert lines[0].startswith("judge: whether other words move the score more than asking again")
    assert lines[1] == "1 responses in 2 variants, of 1 families; scores from 1 to 10"
    assert "σ²_Rep and S/R are not measured" in ended.err
    found = json.loads(run("study", "stability", folder, "--json").out)
    assert found["noise"][0]["semantic"]["value"] == pytest.approx(81 * 0.02)


SCORES = [
    "a,original,0,5",
    "a,order,0,4.5",
    "a,order,1,5.5",
    "b,original,0,7",
    "b,order,0,6.5",
    "b,order,1,7.5",
]


def write_scores(path: Path) -> None:
    lines = ["seed,family,version,score,stakeholders,task", *(f"{row},2,trip" for row in SCORES)]
    path.write_text("\n".join(lines), encoding="utf-8")


def test_the_signal_of_a_group_is_printed(tmp_path: Path, run: Command):
    write_scores(tmp_path / "scores.csv")
    ended = run("study", "signal", tmp_path / "scores.csv", "--correct", "0.99", "--cut", "5.2")
    assert ended.code == 0
    printed = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert printed[0] == "score: 1 groups, scores from 1 to 10"
    assert "trip 2 2.000 0.500 1.500 0.958 2" in printed
    assert "decisions at 5.2: 1 of 2 responses flip with some wording" in printed


@all_rows(
    "arguments, message",
    [
        (
            ("stability", "run"),
            "no response has two scored variants; label each response with `seed` and `family`",
        ),
        (("stability", "scores.csv", "--quality", "high"), "no score has the quality 'high'"),
        (
            ("stability", "tasks.jsonl", "--writer", "openai/gpt-5-mini"),
            "--writer: is for the variants of TASKS",
        ),
        (
            ("stability", "tasks.jsonl", "--max-calls", "3"),
            "--max-calls: is for the variants of TASKS",
        ),
        (("stability", "tasks.jsonl", "--config", "jury.yaml"), "--out FOLDER for the runs"),
        (
            ("stability", "scores.csv", "--config", "jury.yaml", "--out", "lab"),
            "scores.csv: is a table, and JSON lines are read here",
        ),
        (
            ("signal", "scores.csv", "--correct", "0.4"),
            "--correct: is 0.4; write a number between 0.5 and 1",
        ),
    ],
)
def test_wrong_input_is_refused_without_a_result(
    tmp_path: Path,
    run: Command,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
):
    monkeypatch.chdir(tmp_path)
    if not (tmp_path / "run").exists():
        labelled_run(tmp_path, responses=RESPONSES[:1])
        write_scores(tmp_path / "scores.csv")
    ended = run("study", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


PLAN = {
    "itinerary": [{"time": "09:00", "what": "ferry"}],
    "tradeoffs": ["no hike", "an early start", "one museum"],
}


def write_project(folder: Path, server: Server, **settings: Any) -> tuple[object, ...]:
    """Write a task with a structured response and a config; return the command that makes and scores its variants."""
    use = {"use": "criteria", "params": {"criteria": ["It is kind."]}}
    task = {"id": "t", "query": "?", "responses": [{"id": "t/a", "text": "-", "data": PLAN}]}
    config = judge_config(server) | {"evaluators": [use], "safety": {"evidence": "off"}, **settings}
    (folder / "jury.yaml").write_text(json.dumps(config))
    tasks = write_tasks(folder, [task])
    return ("study", "stability", tasks, "--config", folder / "jury.yaml", "--out", folder / "lab")


def test_variants_and_exact_repeats_are_made_scored_and_kept(tmp_path: Path, run: Command):
    """The judge likes texts with `**`, and its second and third answer to one input are another than its first."""

    def reply(body: dict[str, Any], number: int) -> Answer:
        content = "".join(one["content"] for one in body["messages"])
        found = {
            "reason": "no",
            "quotes": [],
            "met": True,
            "probability": 0.5 + 0.25 * ("**" in content),
        }
        found["probability"] += 0.125 * (asked.count(content) > 0)
        asked.append(content)
        return reply_with(json.dumps(dict.fromkeys(requested_items(body), found)))

    asked: list[str] = []
    with run_server(reply) as server:
        words = (*write_project(tmp_path, server), "--repeats", "3")
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
    assert found["noise"][0]["repeat"]["value"] == pytest.approx(81 * 0.125**2 * 2 / 6)
    assert found["presentations"]["undefined"]["stakeholder-section-order"] == 1
    assert run("study", "stability", tmp_path / "lab" / "variants", "--dry-run").code == 2


def test_a_writer_waits_for_a_valid_config_and_shares_the_limits(tmp_path: Path, run: Command):
    """It makes no statement of the plan, so that all that it writes is discarded."""

    def reply(body: dict[str, Any], number: int) -> Answer:
        if body["model"] == "writer":
            return reply_with(
                json.dumps({"passages": [{"statement": "s1", "text": f"Nothing, {number}."}]})
            )
        found = {"reason": "no", "quotes": [], "met": True, "probability": 0.75}
        return reply_with(json.dumps(dict.fromkeys(requested_items(body), found)))

    with run_server(reply) as server:
        words = (
            *write_project(tmp_path, server, reward={"nothing": 1.0}),
            "--versions",
            "1",
            "--repeats",
            "1",
        )
        words += ("--writer", f"openai-compatible:{server.url}#writer")
        assert (run(*words).code, server.count) == (2, 0)
        write_project(tmp_path, server)
        assert "at most 4 requests" in run(*words, "--dry-run").err
        ended = run(*words, "--max-calls", "3")
        assert (ended.code, server.count) == (4, 3)
        ended = run(*words, "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["presentations"]["broken"] == {"statements": 3}


def test_a_reader_takes_responses_as_they_were_written_and_reads_the_writers_back(
    tmp_path: Path, run: Command
):
    """The writer moves the first sentence to the end."""
    text = "We go at 9:00. Ann and Bob eat. We gave up the hike. We gave up the museum."
    records = [{"quote": f"We gave up the {what}", "what": what} for what in ("hike", "museum")]
    kinds = ("itinerary", "stakeholders", "summary", "shared", "tradeoffs")
    read = {kind: records if kind == "tradeoffs" else [] for kind in kinds}

    def reply(body: dict[str, Any], number: int) -> Answer:
        shown = body["messages"][1]["content"]
        if body["model"] == "writer":
            pieces = text.replace(". ", ".\n").split("\n")
            passages = [{"statement": f"s{n}", "text": one} for n, one in enumerate(pieces, 1)]
            passages.append(passages.pop(0))
            return reply_with(json.dumps({"passages": passages}))
        if body["model"] == "reader":
            assert text in shown or "We gave up the hike.\n\nWe" in shown
            return reply_with(json.dumps(read))
        found = {"reason": "no", "quotes": [], "met": True, "probability": 0.75}
        return reply_with(json.dumps(dict.fromkeys(requested_items(body), found)))

    with run_server(reply) as server:
        words = (*write_project(tmp_path, server), "--versions", "1", "--repeats", "1")
        task = {"id": "t", "query": "?", "responses": [{"id": "t/a", "text": text}]}
        task["stakeholders"] = [{"id": name, "constraints": []} for name in ("ann", "bob")]
        write_tasks(tmp_path, [task])
        refused = run(*words)
        assert (refused.code, server.count) == (2, 0)
        assert "name a model that reads them with --reader" in refused.err
        words += ("--reader", f"openai-compatible:{server.url}#reader")
        words += ("--writer", f"openai-compatible:{server.url}#writer")
        estimate = run(*words, "--dry-run")
        assert (estimate.code, server.count) == (0, 0)
        assert "reads responses without data: at most 1 requests" in estimate.err
        unknown = run(*words[:-4], "--reader", "nope", "--dry-run")
        assert (unknown.code, "'nope' is not a model" in unknown.err) == (2, True)
        ended = run(*words, "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)["presentations"]
    assert (found["structured"], found["prose"], found["left_out"]) == (0, 1, 0)
    assert found["variants"]["trade-off-order"] == 1
    assert found["variants"]["paraphrase"] == 1
    assert (tmp_path / "lab" / "variants").exists()
