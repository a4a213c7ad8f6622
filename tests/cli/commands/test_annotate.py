"""`jurygraph annotate`: a model's graphs, in a file of tasks that a person may edit.

What graph comes of which replies is tested in `tests/graphs/test_annotate_graph.py`, and which graphs fit which
tasks in `tests/sources/test_edges.py`.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.agents.graph_annotator.annotator_replies import (
    annotator_script,
    asks_about_roles,
    rubric_task,
    settings,
)
from tests.cli.conftest import Command, CommandResult, check_nothing_is_written, folder_contents
from tests.models.server import Answer, Server, reply_with, run_server, status
from tests.rows import all_rows
from tests.runs.sample_runs import write_tasks

pytestmark = pytest.mark.usefixtures("own_cache")

CRITERIA = {"facts": (2.0, None), "story": (3.0, None), "style": (1.0, None), "rude": (-1.0, None)}
ROLES = {"facts": "core", "story": "core", "style": "additional", "rude": "penalty"}
FOUND = {("facts", "story"): "strong", ("story", "style"): "weak"}
CANDIDATES = 6
CALLS = 2
"""What a task needs: one for the roles, one for the pairs."""
STATISTICS = """\
of a rubric, on average
───────────────────────  ──────
rubrics                       2
criteria                 4.0000
candidates               6.0000
edges                    2.0000
update size              6.0000
non empty                1.0000
invalid                  0.0000
"""


def answer(body: dict[str, Any], number: int) -> Answer:
    """Answer as the annotator; a model named `down` never does, and one named `silent` knows the roles alone."""
    if body["model"] == "down":
        return status(503)
    if body["model"] == "silent" and not asks_about_roles(body):
        return reply_with("I would rather not.")
    return annotator_script(FOUND, ROLES)(body, number)


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server(answer) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two tasks with a rubric, and one without."""
    lines = [
        {
            **rubric_task(CRITERIA, name=f"t{place}").model_dump(mode="json", exclude_none=True),
            "query": f"Write letter {place}.",
            "responses": [{"id": f"t{place}/a", "text": "x" * 40}],
        }
        for place in range(2)
    ]
    write_tasks(tmp_path, [*lines, {"id": "bare", "query": "no rubric"}])
    (tmp_path / "jury.yaml").write_text(json.dumps(settings(server.url, calls={"cache": True})))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def annotate(run: Command, *options: object, out: str = "graphs.jsonl") -> CommandResult:
    return run("annotate", "tasks.jsonl", "--out", out, *options)


def read(path: Path) -> dict[str, Any]:
    return {line["id"]: line for line in map(json.loads, path.read_text().splitlines())}


def write(path: Path, lines: dict[str, Any]) -> None:
    write_tasks(path.parent, [*lines.values()], path.name)


def triples(line: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["parent"], one["child"], one["kind"]) for one in line["rubric"]["edges"]]


def test_annotate_writes_the_tasks_with_graphs_and_prints_their_statistics(
    run: Command, project: Path, server: Server
) -> None:
    ended = annotate(run)
    assert (ended.code, server.count) == (0, 2 * CALLS)
    assert ended.out.startswith(STATISTICS)
    assert "requests: 4 by this command" in ended.out
    assert ended.err.splitlines()[-2:] == [
        "2 tasks written, 0 omitted",
        "next: jurygraph score tasks.jsonl --edges-from graphs.jsonl --out run",
    ]
    written = read(project / "graphs.jsonl")
    assert list(written) == ["t0", "t1", "bare"]
    for name in ("t0", "t1"):
        assert triples(written[name]) == [("facts", "story", "strong"), ("story", "style", "weak")]
        assert {one["id"]: one["role"] for one in written[name]["rubric"]["criteria"]} == ROLES
    assert written["bare"] == {"id": "bare", "query": "no rubric"}


@pytest.mark.usefixtures("project")
def test_json_has_the_statistics_the_graphs_and_the_requests(run: Command) -> None:
    given = json.loads(annotate(run, "--json").out)
    assert (given["tasks_file"], given["statistics"]["candidates"]) == ("graphs.jsonl", CANDIDATES)
    assert [one["task"] for one in given["graphs"]] == ["t0", "t1"]
    assert {one["id"]: one["role"] for one in given["graphs"][0]["rubric"]["criteria"]} == ROLES
    assert (given["left_out"], given["requests"]["number"]) == ([], 4)


def test_the_same_command_sends_nothing_and_keeps_manual_edits(
    run: Command, project: Path, server: Server
) -> None:
    annotate(run)
    lines = read(project / "graphs.jsonl")
    lines["t0"]["rubric"]["edges"][0]["kind"] = "weak"
    del lines["t1"]["rubric"]["edges"][1]
    write(project / "graphs.jsonl", lines)
    ended = annotate(run)
    assert (ended.code, server.count) == (0, 2 * CALLS)
    assert "graphs.jsonl exists: its graphs are kept" in ended.err
    again = read(project / "graphs.jsonl")
    assert triples(again["t0"])[0] == ("facts", "story", "weak")
    assert triples(again["t1"]) == [("facts", "story", "strong")]


def test_a_dry_run_estimates_the_requests_and_sends_nothing(
    run: Command, project: Path, server: Server
) -> None:
    before = folder_contents(project)
    ended = annotate(run, "--dry-run")
    assert (ended.code, server.count) == (0, 0)
    assert json.loads(annotate(run, "--dry-run", "--json").out)["model"]["expected"]["calls"] == 2
    assert folder_contents(project) == before
    annotate(run)
    assert json.loads(annotate(run, "--dry-run", "--json").out)["model"]["expected"]["calls"] == 0


def test_without_a_config_the_model_its_domain_and_votes_are_options(
    run: Command, project: Path, server: Server
) -> None:
    (project / "jury.yaml").unlink()
    ended = annotate(
        run, "--model", f"openai-compatible:{server.url}#tiny", "--domain", "legal", "--votes", "3"
    )
    assert ended.code == 0, ended.err
    assert server.count == 2 * (1 + 3)
    rubric = read(project / "graphs.jsonl")["t0"]["rubric"]
    assert rubric["annotation"]["domain"] == "legal 2"
    assert rubric["edges"][0]["votes"] == [3, 3]


@all_rows(
    "options, code, message",
    [
        (["--max-calls", "1"], 4, "run the same command again: it continues from the cache"),
        (
            ["--model", "down"],
            3,
            "tasks.jsonl, line 1: task 't0': the roles of its criteria could not be annotated",
        ),
        (
            ["--domain", "medicl"],
            2,
            "--domain: there is no domain 'medicl', and no such file; did you mean",
        ),
        (["--edges-from", "none.jsonl"], 2, "none.jsonl"),
        (["--model", "none"], 2, "model: annotation needs a model"),
        (["--out", "tasks.jsonl"], 2, "tasks.jsonl: is an input file; name another file to write"),
        (
            ["--out", "other.jsonl"],
            2,
            "other.jsonl, line 1: task 't0' differs from that in TASKS in more than its gra",
        ),
        (
            ["--out", "other.jsonl", "--edges-from", "tasks.jsonl"],
            2,
            "other.jsonl: exists, and --edges-from names an",
        ),
        (["--out", "."], 2, "error: "),
        (["--out", "no/such/folder.jsonl"], 2, "error: "),
        (["--out", "-"], 2, "error: "),
    ],
)
def test_except_with_0_and_1_nothing_is_written(
    run: Command, project: Path, server: Server, options: list[str], code: int, message: str
) -> None:
    (project / "other.jsonl").write_text(
        (project / "tasks.jsonl").read_text().replace("letter 0", "another")
    )
    check_nothing_is_written(project, partial(annotate, run), options, server, code, message)


def test_after_a_reached_budget_the_same_command_asks_the_rest(
    run: Command, project: Path, server: Server
) -> None:
    calls = {"calls": {"cache": True}, "annotation": {"batch": 1}}
    (project / "jury.yaml").write_text(json.dumps(settings(server.url, **calls)))
    assert annotate(run, "--max-calls", "5").code == 4
    assert annotate(run).code == 0
    assert server.count == 2 * (1 + CANDIDATES)


def test_missing_answers_exit_with_1_and_score_reports_them(
    run: Command, project: Path, server: Server
) -> None:
    ended = annotate(run, "--model", f"openai-compatible:{server.url}#silent")
    assert ended.code == 1
    assert (
        f"{2 * CANDIDATES} criteria or pairs have no answer; graphs.jsonl lists them" in ended.err
    )
    lines = read(project / "graphs.jsonl")
    assert len(lines["t0"]["rubric"]["annotation"]["unanswered"]) == CANDIDATES
    del lines["bare"]
    write(project / "graphs.jsonl", lines)
    (project / "none.yaml").write_text("evaluators: [criteria]\n")
    scored = run("score", "graphs.jsonl", "--config", "none.yaml", "--out", "run")
    assert (
        "graphs: 12 pairs or roles of criteria without an answer and an edge; criteria"
        in scored.err
    )


RATING = """\
import jurygraph as jg


@jg.evaluator(layer="human", audience="criterion")
def rating(task, response):
    return 0.0 if task.about.id == "facts" else 1.0
"""


def test_score_uses_the_edges_of_the_file(run: Command, project: Path) -> None:
    annotate(run)
    (project / "rating.py").write_text(RATING)
    (project / "score.yaml").write_text("evaluators: [rating.rating]\n")
    for name in ("tasks.jsonl", "graphs.jsonl"):
        write(
            project / name,
            {key: line for key, line in read(project / name).items() if key != "bare"},
        )
    ended = run(
        "score",
        "tasks.jsonl",
        "--config",
        "score.yaml",
        "--out",
        "run",
        "--edges-from",
        "graphs.jsonl",
    )
    assert ended.code == 0, ended.err
    assert "2 of 2 tasks take their graph from graphs.jsonl" in ended.err
    story, style = 0.2, 0.2 + 0.8 * 0.6
    reward = json.loads(run("show", "run", "--json").out.splitlines()[0])["reward"]["value"]
    assert reward == pytest.approx((3 * story + 1 * style - 1) / 6)
