"""`task_defaults` in the config: they complete tasks as if they were written there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.runs.run import Run
from tests.agents.parser import constraints_reply
from tests.cli.conftest import Command
from tests.models.judge_scripts import judge_reply
from tests.models.server import Server, run_server

RUBRIC = {"criteria": [{"id": "kind", "text": "It is kind.", "weight": 2.0}]}
OWN_RUBRIC = {"criteria": [{"id": "short", "text": "It is short.", "weight": 1.0}]}
LINES: list[dict[str, Any]] = [
    {"id": "bare", "query": "Write.", "responses": [{"id": "bare/a", "text": "dear you"}]},
    {"id": "own", "query": "Write.", "rubric": OWN_RUBRIC, "responses": [{"id": "own/a", "text": "hi"}]},
]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    with run_server(lambda body, _: judge_reply(body)) as running:
        yield running


@pytest.fixture
def project(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, "tasks.jsonl", LINES)
    configure(tmp_path, server, {"rubric": RUBRIC})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, name: str, lines: list[dict[str, Any]]) -> None:
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))


def configure(folder: Path, server: Server, defaults: dict[str, Any], **more: Any) -> dict[str, Any]:
    config = {"model": f"openai-compatible:{server.url}#tiny", "evaluators": ["criteria"], **more}
    config |= {"task_defaults": defaults} if defaults else {}
    (folder / "jury.yaml").write_text(json.dumps(config))
    return config


def digests(folder: str) -> dict[str, tuple[str, float | None]]:
    with Run.open(Path(folder)) as run:
        return {trace.response_id: (trace.plan_digest, trace.reward.value) for trace in run.traces()}


def test_a_run_equals_that_of_tasks_with_the_defaults_written_in_them(
    project: Path, run: Command, server: Server
) -> None:
    assert run("score", "tasks.jsonl", "--out", "run").code == 0
    write(project, "complete.jsonl", [{"rubric": RUBRIC, **line} for line in LINES])
    config = configure(project, server, {})
    assert run("score", "complete.jsonl", "--out", "complete").code == 0
    assert digests("run") == digests("complete")
    with jg.Jury.from_config(config | {"task_defaults": {"rubric": RUBRIC}}) as jury:  # from Python
        line = LINES[0]
        task = jg.Task(id=line["id"], query=line["query"])
        responses = [jg.Response(**response) for response in line["responses"]]
        (trace,) = jury.score(task, responses, plan=jury.prepare(task))
    assert (trace.plan_digest, trace.reward.value) == digests("run")["bare/a"]


def test_the_run_resumes_verifies_and_rescores_and_other_defaults_are_refused(
    project: Path, run: Command, server: Server
) -> None:
    assert run("score", "tasks.jsonl", "--out", "run", "--limit", "1").code == 0
    assert run("score", "tasks.jsonl", "--out", "run").code == 0
    for command in (("verify", "run", "--deep"), ("rescore", "run", "--set", "failure.rule=gear", "--out", "run2")):
        assert run(*command).code == 0
    other = {"criteria": [{**RUBRIC["criteria"][0], "text": "It is warm."}]}
    configure(project, server, {"rubric": other})
    refused = run("score", "tasks.jsonl", "--out", "run")
    assert refused.code == 2
    assert 'config task_defaults.rubric.criteria[0].text is "It is kind." in the run and "It is warm." here' in (
        refused.err
    )


def test_stakeholders_reviewers_and_facts_reach_their_evaluators(project: Path, run: Command, server: Server) -> None:
    (project / "seen.py").write_text(
        "def of(name, audience):\n"
        "    import jurygraph as jg\n"
        "    @jg.evaluator(layer='check', audience=audience, name=name)\n"
        "    def see(task, response):\n"
        "        return jg.Verdict(score=1.0, reason=f'{task.member} {task.facts}')\n"
        "    return see\n"
        "people, raters = of('seen.people', 'stakeholder'), of('seen.raters', 'reviewer')\n"
    )
    defaults = {"stakeholders": [{"id": "ann"}], "reviewers": ["rae"], "facts": {"price": 3}}
    config = {"evaluators": ["seen.people", "seen.raters"], "reward": {"stakeholders": 1, "raters": 1}}
    (project / "jury.yaml").write_text(json.dumps(config | {"task_defaults": defaults}))
    assert run("score", "tasks.jsonl", "--out", "run").code == 0
    with Run.open(project / "run") as scored:
        reasons = {verdict.reason for trace in scored.traces() for verdict in trace.verdicts}
    assert reasons == {"ann {'price': 3}", "rae {'price': 3}"}


def test_tables_of_default_facts_lie_below_the_folder_of_the_tasks(project: Path, run: Command, server: Server) -> None:
    table = {"file": "/etc/rows.csv", "key": ["name"]}
    configure(project, server, {"rubric": RUBRIC, "facts": {"tables": {"rows": table}}})
    refused = run("score", "tasks.jsonl", "--out", "run")
    assert refused.code == 2
    assert "task_defaults.facts.tables.rows.file: is '/etc/rows.csv', which is not below" in refused.err
    assert not (project / "run").exists()


def test_annotate_and_profiles_read_the_defaults(project: Path, run: Command, server: Server) -> None:
    with run_server(lambda *_: constraints_reply()) as reader:
        configure(project, reader, {"stakeholders": [{"id": "ann", "profile": "Likes dogs."}]})
        run("profiles", "tasks.jsonl", "--out", "profiles.jsonl")
        assert reader.count == len(LINES)
    configure(project, server, {"rubric": RUBRIC}, annotation={"domain": "generic"})
    estimate = run("annotate", "tasks.jsonl", "--dry-run", "--json", "--out", "graphs.jsonl")
    assert json.loads(estimate.out)["tasks"] == len(LINES)
