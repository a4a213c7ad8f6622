"""`jurygraph score`: rewards on standard output, everything else on standard error, and the exit code."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import (
    CONFIG,
    TASKS,
    Command,
    CommandResult,
    folder_contents,
    run_new_process,
    write_project,
)
from tests.rows import all_rows


def test_the_result_is_a_table_by_agent_and_counts_of_verdicts_that_add_up(project: Path, run: Command):
    ended = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "agent  responses  mean reward  coverage  ok  degraded  failed",
        "─────  ─────────  ───────────  ────────  ──  ────────  ──────",
        "alice          2       0.1250    1.0000   2         0       0",
        "bob            2      -0.2500    1.0000   2         0       0",
        "verdicts: 8 judged + 0 abstained + 0 failed + 0 not applicable = 8 requested",
        "highest possible reward: 1.0000; lowest: -0.5000",
        "coverage: judged share of the weight; degraded: some is not judged; failed: no reward, left out of the mean",
    ]
    assert f"jurygraph explain {project / 'run'} --response salt/b" in ended.err, "the lowest response is named"
    before = folder_contents(project / "run")
    again = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert "is complete; nothing to do" in again.err
    assert again.out == ended.out
    assert folder_contents(project / "run") == before
    result = json.loads(run("score", project / "tasks.jsonl", "--out", project / "run", "--json").out)
    assert result["agents"][0] == {
        "agent": "alice",
        "responses": 2,
        "scored": 2,
        "ok": 2,
        "degraded": 0,
        "failed": 0,
        "mean": 0.125,
        "coverage": 1.0,
    }
    assert result["verdicts"] == {
        "judged": 8,
        "gated": 0,
        "abstained": 0,
        "failed": 0,
        "not_applicable": 0,
        "requested": 8,
    }
    assert (result["run"], result["tasks"], result["responses"]) == (str(project / "run"), 2, 4)


def test_evaluators_are_found_from_any_folder_and_an_empty_one_can_become_the_run(
    project: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tasks.jsonl").write_bytes((project / "tasks.jsonl").read_bytes())
    monkeypatch.chdir(elsewhere)
    assert run("score", "tasks.jsonl", "--config", project / "jury.yaml", "--out", "run").code == 0
    (project / "here").mkdir()
    monkeypatch.chdir(project / "here")
    assert run("score", project / "tasks.jsonl", "--out", ".").code == 0
    assert run("show", ".").code == 0


def test_the_default_config_is_jury_yaml_next_to_the_tasks_or_in_the_current_folder(
    project: Path, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "tasks").mkdir()
    tasks = tmp_path / "tasks" / "tasks.jsonl.gz"
    tasks.write_bytes(gzip.compress((project / "tasks.jsonl").read_bytes()))
    monkeypatch.chdir(tmp_path)
    ended = run("score", tasks, "--out", tmp_path / "run")
    assert (ended.code, ended.out) == (2, "")
    assert "no jury.yaml next to the tasks or in the current folder" in ended.err
    monkeypatch.chdir(project)
    assert run("score", tasks, "--out", tmp_path / "run").code == 0


def test_a_dry_run_counts_the_questions_and_writes_nothing(project: Path, run: Command):
    config = "evaluators: [manners.polite, {use: manners.judge, samples: 3}]\nreward: {polite: 1.0, judge: 1.0}\n"
    (project / "jury.yaml").write_text(config)
    before = sorted(project.iterdir())
    ended = run("score", project / "tasks.jsonl", "--out", project / "run", "--dry-run", "--json")
    assert json.loads(ended.out) == {
        "tasks": 2,
        "responses": 4,
        "questions": 4,
        "verdicts": 16,
        "model_verdicts": 12,
        "model": None,
    }
    assert "dry run: nothing was sent or written" in ended.err
    assert sorted(path for path in project.iterdir() if path.name != "__pycache__") == before
    shown = run("score", project / "tasks.jsonl", "--dry-run").out
    assert "... of a model (they abstain: model is none)  12" in shown
    assert "US dollars" not in shown


def test_only_a_dry_run_needs_no_folder_for_the_run(project: Path, run: Command):
    estimates = [run("score", project / "tasks.jsonl", "--dry-run", *out).out for out in ((), ("--out", project / "r"))]
    assert estimates[0] == estimates[1]
    ended = run("score", project / "tasks.jsonl")
    assert (ended.code, ended.err.startswith("error: --out: is missing; name the folder of the run")) == (2, True)


class TestForecastOfAModel:
    """`score --dry-run` with an unreachable model."""

    @pytest.fixture
    def estimate(self, tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CommandResult]:
        """Return a function that estimates a project with a rubric under given settings of calls."""
        monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
        rubric = {"criteria": [{"id": name, "text": f"It is {name}.", "weight": 1.0} for name in "abcde"]}
        tasks = [{**task, "rubric": rubric} for task in TASKS]

        def forecast(calls: str, *more: object) -> CommandResult:
            config = f"model: openai-compatible:http://127.0.0.1:9/v1#tiny\nevaluators: [criteria]\ncalls: {calls}\n"
            project = write_project(tmp_path / "project", tasks, config)
            return run("score", project / "tasks.jsonl", "--out", tmp_path / "run", "--dry-run", *more)

        return forecast

    def test_a_dry_run_estimates_calls_tokens_and_dollars_and_prints_its_assumptions(
        self, estimate: Callable[..., CommandResult], tmp_path: Path
    ):
        ended = estimate("{max_tokens: 100, prices: {tiny: {input: 1000, output: 5000}}}")
        assert ended.code == 0, ended.err
        rows = {line.rsplit(maxsplit=3)[0]: line.rsplit(maxsplit=3)[1:] for line in ended.out.splitlines() if line}
        assert rows["model requests"] == ["low", "expected", "worst"]
        assert rows["calls"] == ["6", "6", "12"]  # of four responses one is empty
        assert rows["output tokens"] == ["240", "600", "1200"]
        read, wrote = rows["input tokens"], rows["output tokens"]
        assert rows["US dollars"] == [f"{int(i) / 1000 + int(o) / 200:.4f}" for i, o in zip(read, wrote, strict=True)]
        assert ended.out.splitlines()[-1].startswith("estimates: a token is taken for 5, 4 or 1 bytes, a reply for ")
        assert "dry run: nothing was sent or written" in ended.err
        assert not (tmp_path / "run").exists()

    def test_json_has_the_same_estimate_without_a_price_that_is_unknown(
        self, estimate: Callable[..., CommandResult], tmp_path: Path
    ):
        loads = json.loads(estimate("{prices: {tiny: {input: 1, output: 2}}}", "--json").out)["model"]
        assert [loads[name]["calls"] for name in ("low", "expected", "worst")] == [6, 6, 12]
        assert (loads.pop("from_cache"), loads.pop("from_run")) == (0, 0)
        for load in loads.values():
            assert load["cost"] == pytest.approx((load["tokens_in"] + 2 * load["tokens_out"]) / 1e6)
        recorded = f"{{record: {tmp_path / 'record.jsonl'}}}"
        assert "US dollars unknown unknown unknown" in " ".join(estimate(recorded).out.split())
        assert json.loads(estimate(recorded, "--json").out)["model"]["worst"]["cost"] is None
        assert [path.name for path in tmp_path.iterdir()] == ["project"], "neither a recording nor a cache is made"


@pytest.mark.landing
def test_output_of_an_evaluator_is_not_part_of_the_result(project: Path, run: Command):
    (project / "manners.py").write_text('print("loading")\n\ndef polite(t, r):\n    print("asking")\n    return 1.0\n')
    (project / "jury.yaml").write_text("evaluators: [manners.polite]\n")
    for more in ((), ("--dry-run",)):
        ended = run("score", project / "tasks.jsonl", "--out", project / f"run{len(more)}", "--json", *more)
        assert json.loads(ended.out)["tasks"] == 2
        assert "loading" in ended.err
    assert "asking" in run("score", project / "tasks.jsonl", "--out", project / "again").err
    assert json.loads(run("doctor", "--config", project / "jury.yaml", "--json").out)["checks"]


@pytest.mark.landing
def test_output_of_its_child_processes_is_not_part_of_the_result(project: Path):
    source = "import subprocess\n\ndef polite(t, r):\n    subprocess.run(['echo', 'hello'])\n    return 1.0\n"
    (project / "manners.py").write_text(source)
    (project / "jury.yaml").write_text("evaluators: [manners.polite]\n")
    _, out, err = run_new_process("score", project / "tasks.jsonl", "--out", project / "run", "--json")
    assert json.loads(out)["tasks"] == 2
    assert "hello" in err


@pytest.mark.parametrize(("more", "traced"), [("", "false"), ("langsmith: true\n", "true")])
def test_no_trace_is_sent_to_langsmith_unless_the_config_enables_it(
    project: Path, run: Command, monkeypatch: pytest.MonkeyPatch, more: str, traced: str
):
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "true")
    source = "import os\n\nSEEN = os.environ['LANGSMITH_TRACING'] + os.environ['LANGCHAIN_TRACING_V2']\n\n"
    source += "def polite(task, response):\n    raise RuntimeError\n"
    source += "raise SystemError(SEEN)\n"  # ends the command while the code of an evaluator is loaded
    (project / "manners.py").write_text(source)
    (project / "jury.yaml").write_text(f"{more}evaluators: [manners.polite]\n")
    ended = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert traced * 2 in ended.err


def test_a_task_that_cannot_be_planned_is_named_with_its_line(project: Path, run: Command):
    source = "import jurygraph as jg\n\n@jg.evaluator(audience='criterion')\ndef met(task, response):\n    return 1.0\n"
    (project / "manners.py").write_text(source)
    rubric = {"criteria": [{"id": "c", "text": "?", "weight": 1.0}]}
    tasks = [json.dumps({**TASKS[0], "rubric": rubric}), "", json.dumps(TASKS[1])]
    (project / "tasks.jsonl").write_text("\n".join(tasks))
    (project / "jury.yaml").write_text("evaluators: [manners.met]\n")
    ended = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert (ended.code, ended.out) == (2, "")
    assert "error: tasks.jsonl, line 3: task 'salt'" in ended.err
    assert not (project / "run").exists()


def test_failed_rewards_give_exit_code_1(project: Path, run: Command, tmp_path: Path):
    responses = [{"id": f"r{i}", "text": "please"} for i in range(9)] + [{"id": "r9", "text": "crash"}]
    write_project(project, [{"id": "t", "query": "?", "responses": responses}])
    ended = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert ended.code == 1
    assert "1 of 10 rewards failed and have no value" in ended.err
    assert "1 failed" in ended.out
    assert run("score", project / "tasks.jsonl", "--out", project / "run").code == 1


def test_too_many_infrastructure_failures_are_inconclusive(project: Path, run: Command):
    responses = [{"id": "r0", "text": "please"}, {"id": "r1", "text": "offline"}]
    write_project(project, [{"id": "t", "query": "?", "responses": responses}])
    ended = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert ended.code == 3
    assert "inconclusive: 25.0% of the verdicts failed for infrastructure reasons" in ended.err


def test_without_a_model_its_verdicts_abstain_and_the_reward_has_a_note(project: Path, run: Command):
    (project / "jury.yaml").write_text(
        "evaluators: [manners.polite, manners.judge]\nreward: {polite: 0.9, judge: 0.1}\n"
    )
    ended = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert ended.code == 0
    assert (
        "4 judged + 1 set by empty-response + 3 abstained + 0 failed" in ended.out
    )  # an empty response needs no model
    assert "0.9000   0         2       0" in ended.out


BAD_INPUT = [
    ("tasks.jsonl", "\n" * 6 + '{"id": "a", "query":', "error: tasks.jsonl, line 7: is not valid JSON"),
    ("tasks.jsonl", '{"id": "a", "qeury": "?"}', "line 1, field qeury: unknown; did you mean query?"),
    ("tasks.jsonl", '{"id": "a", "query": "?"}', "field responses: task 'a' has no responses"),
    ("tasks.jsonl", "", "error: tasks.jsonl: the file is empty"),
    ("jury.yaml", "evaluatorz: [a]", "error: jury.yaml, line 1, key evaluatorz: unknown; did you mean"),
    ("jury.yaml", "version: 3", "error: jury.yaml, line 1, key version: is the number 3"),
    (
        "jury.yaml",
        "evaluators: [maths.acuracy]",
        "jury.yaml, line 1, key evaluators[0]: unknown evaluator 'maths.acuracy'; did you mean 'maths.accuracy'?",
    ),
    ("jury.yaml", f"{CONFIG}gates: [{{kind: format, below: 1}}]", "format"),
    ("jury.yaml", f"model: gpt\n{CONFIG}", "error: jury.yaml, line 1, key model: 'gpt' is not a model"),
    (
        "jury.yaml",
        "evaluators: [manners.polite, {use: manners.shaky, when: {question: manners.polit, threshold: 1}}]\n"
        "reward: {polite: 1.0, shaky: 1.0}\n",
        "did you mean 'manners.polite'?",
    ),
    ("manners.py", "import nothing_like_it", "nothing_like_it"),
]


def test_bad_input_gives_exit_code_2_in_one_line_and_writes_nothing(project: Path, run: Command):
    score = ("score", project / "tasks.jsonl")
    for name, content, message in BAD_INPUT:
        kept = (project / name).read_text()
        (project / name).write_text(content)
        ended = run(*score, "--out", project / "run")
        (project / name).write_text(kept)
        assert (ended.code, ended.out) == (2, ""), name
        assert message in ended.err
        assert ended.err.count("\n") == 1
        assert not (project / "run").exists()
    for words, message in (
        ((*score, "--out", project), "is neither a run nor empty; name another folder with --out"),
        ((*score, "--out", project / "run", "--model", "gpt"), "error: --model: 'gpt' is not a model"),
        (("score",), "TASKS"),
        (("score", "tasks.jsonl"), "--out"),
        (("nonsense",), "nonsense"),
    ):
        ended = run(*words)
        assert ended.code == 2
        assert message in ended.err


@all_rows(
    ("gate", "code", "missed"),
    [
        ("mean>=-1, failed<=0", 0, ""),
        ("mean>=0.8", 1, "threshold missed: mean >= 0.8, but mean is -0.0625"),
        ("failed>=1 and coverage>0.9", 1, "threshold missed: failed >= 1, but failed is 0"),
        ("meen>1", 2, "unknown statistic 'meen'; did you mean mean?"),
    ],
)
def test_a_gate_decides_by_the_figures_of_the_run(
    scored_folder: Path, project: Path, run: Command, gate: str, code: int, missed: str
):
    ended = run("score", project / "tasks.jsonl", "--out", scored_folder, "--gate", gate)
    assert ended.code == code
    assert missed in ended.err


def test_failed_rewards_miss_a_gate_that_does_not_name_them(project: Path, run: Command):
    """A mean leaves them out. Without a model nothing is judged."""
    rubric = {"criteria": [{"id": "short", "text": "It is short.", "weight": 1.0}]}
    task = {"id": "a", "query": "Where to?", "rubric": rubric, "responses": [{"id": "r", "text": "There."}]}
    (project / "tasks.jsonl").write_text(json.dumps(task))
    (project / "jury.yaml").write_text("evaluators: [criteria]\nreward: {rubric: 1.0}\n")
    command = ("score", project / "tasks.jsonl", "--out", project / "run")
    assert run(*command, "--gate", "error_rate<=1").code == 1
    assert run(*command, "--gate", "failed<=1").code == 0
    ended = run(*command, "--gate", "mean>=0, failed<=1")
    assert (ended.code, "threshold missed: mean >= 0, but there is no mean" in ended.err) == (1, True)
