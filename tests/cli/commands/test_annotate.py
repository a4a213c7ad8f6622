"""`jurygraph annotate`, and `score` with the graphs that it wrote."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph_annotator.annotator_replies import (
    annotator_script,
    asks_about_roles,
    rubric_task,
    settings,
)
from tests.cli.conftest import Command, CommandResult
from tests.models.server import Answer, Server, reply_with, run_server, status
from tests.rows import all_rows

CRITERIA = {"facts": (2.0, None), "story": (3.0, None), "style": (1.0, None), "rude": (-1.0, None)}
ROLES = {"facts": "core", "story": "core", "style": "additional", "rude": "penalty"}
FOUND = {("facts", "story"): "strong", ("story", "style"): "weak"}
CANDIDATES = 6
CALLS = 2
"""What a task needs: one for the roles, one for the pairs."""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server(annotator_script(FOUND, ROLES)) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path / "tasks.jsonl", 2)
    configure(tmp_path, server)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, tasks: int) -> None:
    lines = []
    for place in range(tasks):
        task = rubric_task(CRITERIA, name=f"t{place}").model_dump(mode="json", exclude_none=True)
        other_fields = {"metadata": {"kept": 1.50}, "responses": [{"id": f"t{place}/a", "text": "x" * 40}]}
        lines.append({**task, "query": f"Write letter {place}.", **other_fields})
    lines.append({"id": "bare", "query": "no rubric", "responses": [{"id": "b", "text": "y"}]})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def configure(project: Path, server: Server, **fields: Any) -> None:
    (project / "jury.yaml").write_text(json.dumps(settings(server.url, calls={"cache": True}, **fields)))


def annotate(run: Command, *options: object, out: str = "graphs.jsonl") -> CommandResult:
    return run("annotate", "tasks.jsonl", "--out", out, *options)


def read(path: Path) -> dict[str, Any]:
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return {line["id"]: line for line in map(json.loads, content.splitlines())}


def write_lines(path: Path, lines: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines.values()))


def triples(line: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["parent"], one["child"], one["kind"]) for one in line["rubric"]["edges"]]


def test_annotate_writes_tasks_with_graphs_and_changes_nothing_else(
    run: Command, project: Path, server: Server
) -> None:
    ended = annotate(run)
    assert ended.code == 0, ended.err
    before, after = read(project / "tasks.jsonl"), read(project / "graphs.jsonl")
    for name in ("t0", "t1"):
        assert triples(after[name]) == [("facts", "story", "strong"), ("story", "style", "weak")]
        assert {one["id"]: one["role"] for one in after[name]["rubric"]["criteria"]} == ROLES
        for one in after[name]["rubric"]["criteria"]:
            del one["role"]
        del after[name]["rubric"]["annotation"]
        after[name]["rubric"]["edges"] = []
    for line in before.values():
        line.get("rubric", {}).setdefault("edges", [])
    assert {name: line for name, line in after.items() if name != "bare"} == {
        name: line for name, line in before.items() if name != "bare"
    }
    assert after["bare"]["query"] == "no rubric"
    assert server.count == 2 * CALLS


def test_annotate_prints_the_statistics_of_the_paper_and_the_requests(run: Command, project: Path) -> None:
    ended = annotate(run)
    printed = re.sub(" +", " ", ended.out)
    for line in (
        "rubrics 2",
        "criteria 4.0000",
        "candidates 6.0000",
        "edges 2.0000",
        "update size 6.0000",
        "non empty 1.0000",
        "invalid 0.0000",
        "requests: 4 by this command",
    ):
        assert line in printed
    assert "next: jurygraph score tasks.jsonl --edges-from graphs.jsonl --out run" in ended.err
    given = json.loads(annotate(run, "--json", out="again.jsonl").out)
    assert given["statistics"]["candidates"] == CANDIDATES
    assert [one["task"] for one in given["graphs"]] == ["t0", "t1"]
    assert {one["id"]: one["role"] for one in given["graphs"][0]["criteria"]} == ROLES
    assert given["requests"]["number"] == 0, "the cache has the replies"
    assert (given["left_out"], given["graphs"][0]["annotation"]["unanswered"]) == ([], [])


def test_the_same_command_sends_nothing_and_keeps_manual_edits(run: Command, project: Path, server: Server) -> None:
    configure(project, server, annotation={"batch": 2})
    annotate(run)
    lines = read(project / "graphs.jsonl")
    lines["t0"]["rubric"]["edges"][0]["kind"] = "weak"
    del lines["t1"]["rubric"]["edges"][1]
    write_lines(project / "graphs.jsonl", lines)
    count_before = server.count
    ended = annotate(run)
    assert ended.code == 0, ended.err
    assert server.count == count_before
    assert "graphs.jsonl exists: its graphs are kept" in ended.err
    again = read(project / "graphs.jsonl")
    assert triples(again["t0"])[0] == ("facts", "story", "weak")
    assert triples(again["t1"]) == [("facts", "story", "strong")]
    fresh = annotate(run, out="fresh.jsonl")
    assert (fresh.code, server.count) == (0, count_before), "the cache has it"
    assert triples(read(project / "fresh.jsonl")["t1"]) == [("facts", "story", "strong"), ("story", "style", "weak")]


def test_a_reached_budget_writes_nothing_and_the_next_command_continues(
    run: Command, project: Path, server: Server
) -> None:
    configure(project, server, annotation={"batch": 1})
    ended = annotate(run, "--max-calls", "5")
    assert ended.code == 4, ended.err
    assert "run the same command again: it continues from the cache" in ended.err
    assert not (project / "graphs.jsonl").exists()
    assert annotate(run).code == 0
    assert server.count == 2 * (1 + CANDIDATES), "what was answered is not asked again"


def test_an_unreachable_model_is_reported_with_file_and_line_and_nothing_is_written(
    run: Command, project: Path
) -> None:
    with run_server(lambda body, number: status(503)) as gone:
        ended = annotate(run, "--model", f"openai-compatible:{gone.url}#other")
    assert ended.code == 3
    assert "tasks.jsonl, line 1: task 't0': the roles of its criteria could not be annotated" in ended.err
    assert not (project / "graphs.jsonl").exists()


def test_missing_answers_are_listed_exit_with_1_and_are_reported_by_score(run: Command, project: Path) -> None:
    def script(body: dict[str, Any], number: int) -> Answer:
        return (
            annotator_script(FOUND, ROLES)(body, number)
            if asks_about_roles(body)
            else reply_with("I would rather not.")
        )

    with run_server(script) as reluctant:
        ended = annotate(run, "--model", f"openai-compatible:{reluctant.url}#other")
    assert ended.code == 1
    assert "t0: facts -> rude has no answer: " in ended.err
    assert "and 3 more, listed in the file" in ended.err
    assert [len(read(project / "graphs.jsonl")["t0"]["rubric"]["annotation"]["unanswered"])] == [CANDIDATES]
    lines = read(project / "graphs.jsonl")
    del lines["bare"]
    write_lines(project / "graphs.jsonl", lines)
    (project / "none.yaml").write_text("evaluators: [criteria]\n")
    ended = run("score", "graphs.jsonl", "--config", "none.yaml", "--out", "run")
    message = "graphs: 12 pairs or roles of criteria without an answer and an edge; criteria"
    assert message in ended.err


def test_a_dry_run_estimates_the_requests_and_sends_nothing(run: Command, project: Path, server: Server) -> None:
    ended = annotate(run, "--dry-run")
    assert (ended.code, server.count) == (0, 0)
    assert "2 rubrics need roles first" in ended.out
    assert json.loads(annotate(run, "--dry-run", "--json").out)["model"]["expected"]["calls"] == 2
    annotate(run)
    assert json.loads(annotate(run, "--dry-run", "--json").out)["model"]["expected"]["calls"] == 0
    assert server.count == 2 * CALLS


def test_without_a_config_the_model_its_domain_and_votes_are_options(
    run: Command, project: Path, server: Server
) -> None:
    (project / "jury.yaml").unlink()
    ended = annotate(run, "--model", f"openai-compatible:{server.url}#tiny", "--domain", "legal", "--votes", "3")
    assert ended.code == 0, ended.err
    assert server.count == 2 * (1 + 3)
    rubric = read(project / "graphs.jsonl")["t0"]["rubric"]
    assert rubric["annotation"]["domain"] == "legal 2"
    assert rubric["edges"][0]["votes"] == [3, 3]


@all_rows(
    "options, out, why",
    [
        (["--domain", "medicl"], "x.jsonl", "--domain: there is no domain 'medicl', and no such file; did you mean"),
        (["--edges-from", "none.jsonl"], "x.jsonl", "none.jsonl"),
        (["--model", "none"], "x.jsonl", "model: annotation needs a model"),
        ([], "tasks.jsonl", "tasks.jsonl: is an input file; name another file to write"),
        ([], ".", "error: "),
        ([], "no/such/folder.jsonl", "error: "),
        ([], "-", "error: "),
    ],
)
def test_bad_input_is_one_clear_error_before_any_request(
    run: Command, project: Path, server: Server, options: list[str], out: str, why: str
) -> None:
    ended = annotate(run, *options, out=out)
    assert (ended.code, server.count) == (2, 0)
    assert why in ended.err


def test_an_existing_file_with_other_tasks_is_not_overwritten(run: Command, project: Path) -> None:
    (project / "graphs.jsonl").write_text('{"id": "precious", "query": "?"}\n')
    ended = annotate(run)
    assert ended.code == 2
    assert "graphs.jsonl, line 1, field id: there is no task 'precious'" in ended.err
    assert "precious" in (project / "graphs.jsonl").read_text()


def test_edits_outside_the_graphs_are_not_overwritten(run: Command, project: Path) -> None:
    annotate(run)
    lines = read(project / "graphs.jsonl")
    lines["t0"]["rubric"]["criteria"][0]["weight"] = 7.0
    write_lines(project / "graphs.jsonl", lines)
    before = (project / "graphs.jsonl").read_bytes()
    ended = annotate(run)
    assert ended.code == 2
    assert "graphs.jsonl, line 1: task 't0' differs from that in TASKS in more than its graph" in ended.err
    assert (project / "graphs.jsonl").read_bytes() == before


# Scoring with a reviewed graph

RATING = """\
import jurygraph as jg


@jg.evaluator(layer="human", audience="criterion")
def rating(task, response):
    return 0.0 if task.about.id == "facts" else 1.0
"""


def score(run: Command, *options: object, out: str = "run") -> CommandResult:
    return run("score", "tasks.jsonl", "--config", "score.yaml", "--out", out, *options)


@pytest.fixture
def graphs(run: Command, project: Path) -> Path:
    annotate(run)
    (project / "rating.py").write_text(RATING)
    (project / "score.yaml").write_text("evaluators: [rating.rating]\n")
    lines = read(project / "tasks.jsonl")
    del lines["bare"]
    write_lines(project / "tasks.jsonl", lines)
    lines = read(project / "graphs.jsonl")
    del lines["bare"]
    write_lines(project / "graphs.jsonl", lines)
    return project / "graphs.jsonl"


def value(run: Command, folder: str) -> float:
    return float(json.loads(run("show", folder, "--json").out.splitlines()[0])["reward"]["value"])


@pytest.mark.landing
def test_score_uses_the_edges_and_roles_of_the_file(run: Command, project: Path, graphs: Path) -> None:
    assert score(run, out="flat").code == 0
    assert score(run, "--edges-from", graphs).code == 0
    story, style = 0.2, 0.2 + 0.8 * 0.6
    assert value(run, "flat") == pytest.approx((3 + 1 - 1) / 6)
    assert value(run, "run") == pytest.approx((3 * story + 1 * style - 1) / 6)
    assert run("verify", "run", "--deep").code == 0
    assert run("rescore", "run", "--out", "zero", "--set", "rubric.kappa=0").code == 0
    assert value(run, "zero") == value(run, "flat"), "bit for bit"


def other_criterion(lines: dict[str, Any]) -> None:
    lines["t1"]["rubric"]["criteria"][1]["text"] = "It is about something else."


def other_query(lines: dict[str, Any]) -> None:
    lines["t0"]["query"] = "Write something else."


def cycle(lines: dict[str, Any]) -> None:
    lines["t0"]["rubric"]["edges"].append({"parent": "story", "child": "facts", "kind": "weak"})


def no_graph(lines: dict[str, Any]) -> None:
    lines.clear()


UNFIT = [
    (other_criterion, "graphs.jsonl, line 2, field rubric.criteria: criterion 'story' of task 't1' differs"),
    (other_query, "line 1, field query: is not that of task 't0', and the graph was made for it"),
    (cycle, "facts -> story -> facts"),
    (no_graph, "the file is empty"),
]


def test_a_graph_that_does_not_fit_is_refused_with_file_line_and_field(
    run: Command, project: Path, graphs: Path
) -> None:
    for edit, message in UNFIT:
        lines = read(graphs)
        kept = graphs.read_text()
        edit(lines)
        write_lines(graphs, lines)
        ended = score(run, "--edges-from", graphs)
        assert ended.code == 2
        assert message in ended.err
        assert not (project / "run").exists()
        graphs.write_text(kept)
    assert "2 of 2 tasks take their graph from" in score(run, "--edges-from", graphs).err
    lines = read(project / "tasks.jsonl")
    lines["t1"]["rubric"]["edges"] = [{"parent": "facts", "child": "rude", "kind": "weak"}]
    write_lines(project / "tasks.jsonl", lines)
    ended = score(run, "--edges-from", graphs, out="other")
    assert ended.code == 2
    assert "line 2, field rubric.edges: lacks facts -> rude, which task 't1' defines itself" in ended.err
