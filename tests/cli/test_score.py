"""`jurygraph score`: rewards on standard output, everything else on standard error, and the exit code."""

import gzip
import json
from pathlib import Path

import pytest

from jurygraph.cli.commands.score import _advise_settings
from jurygraph.cli.scoring import ScoreOptions
from jurygraph.runs.reports.summary import Summary
from jurygraph.schema.config import ComponentConfig, Config, InputConfig
from tests.cli.conftest import (
    TASKS,
    Command,
    folder_contents,
    run_new_process,
    write_project,
)
from tests.rows import all_rows


def test_the_result_is_a_table_by_agent_and_counts_of_verdicts_that_add_up(
    project: Path, run: Command
):
    ended = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert ended.code == 0
    assert ended.out.splitlines() == [
        "agent  responses  mean reward  coverage  ok  degraded  failed",
        "─────  ─────────  ───────────  ────────  ──  ────────  ──────",
        "alice          2       0.1250    1.0000   2         0       0",
        "bob            2      -0.2500    1.0000   2         0       0",
        "verdicts: 8 judged + 0 abstained + 0 failed + 0 not applicable = 8 requested",
        "coverage: share of the weight judged, or set by a gate; degraded: some is not judged; "
        "failed: no reward, left out of the mean",
    ]
    assert f"jurygraph explain {project / 'run'} --response salt/b" in ended.err, (
        "the lowest response is named"
    )
    before = folder_contents(project / "run")
    again = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert "is complete; nothing to do" in again.err
    assert again.out == ended.out
    assert folder_contents(project / "run") == before
    result = json.loads(
        run("score", project / "tasks.jsonl", "--out", project / "run", "--json").out
    )
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


def test_settings_change_the_config_as_those_of_rescore_do(project: Path, run: Command):
    tasks = project / "tasks.jsonl"
    run("score", tasks, "--out", project / "run")
    changed = ("--set", "reward.shaky=0", "--set", "scale=2")
    rescored = run("rescore", project / "run", "--out", project / "again", *changed)
    assert rescored.code == 0
    assert run("score", tasks, "--out", project / "set", *changed).code == 0
    shown = [run("show", project / name).out for name in ("again", "set", "run")]
    assert shown[0] == shown[1] != shown[2]
    other = run("score", tasks, "--out", project / "set")
    assert (other.code, "config scale is 2.0 in the run and 1.0 here" in other.err) == (2, True)
    for setting, problem in {
        "scale": "--set 'scale': expected key=value",
        "scales=2": "config, key scales: unknown; did you mean scale?",
        "model=m": "--set model: is set before a preset is expanded; name it with --model",
        "evaluators.0.use=manners.lost": "key evaluators[0]: evaluator 'manners.lost'",
        "evaluators.0.judges=[lost]": "error: --set evaluators.0.judges: there is no model 'lost'",
    }.items():
        refused = run("score", tasks, "--out", project / "no", "--set", setting)
        assert refused.code == 2
        assert problem in refused.err, refused.err
    assert not (project / "no").exists()


def test_a_dry_run_counts_the_questions_and_writes_nothing(project: Path, run: Command):
    config = "evaluators: [manners.polite, {use: manners.judge, samples: 3}]\nreward: {polite: 1.0, judge: 1.0}\n"
    (project / "jury.yaml").write_text(config)
    before = folder_contents(project)
    ended = run("score", project / "tasks.jsonl", "--out", project / "run", "--dry-run", "--json")
    counts = {"tasks": 2, "responses": 4, "questions": 4, "verdicts": 16, "model_verdicts": 12}
    assert json.loads(ended.out) == {**counts, "model": None}
    assert "dry run: nothing was sent or written" in ended.err
    assert folder_contents(project) == before
    shown = run("score", project / "tasks.jsonl", "--dry-run").out
    assert "... of a model (they abstain: model is none)  12" in shown
    assert "US dollars" not in shown


def test_a_dry_run_with_a_model_estimates_its_requests_and_prints_the_assumptions(
    project: Path, run: Command
):
    rubric = {
        "criteria": [{"id": name, "text": f"It is {name}.", "weight": 1.0} for name in "abcde"]
    }
    config = "model: openai-compatible:http://127.0.0.1:9/v1#tiny\nevaluators: [criteria]\ncalls: {cache: false, %s}\n"
    write_project(
        project, [{**task, "rubric": rubric} for task in TASKS], config % "max_tokens: 100"
    )
    unpriced = " ".join(run("score", project / "tasks.jsonl", "--dry-run").out.split())
    assert "US dollars unknown unknown unknown" in unpriced
    (project / "jury.yaml").write_text(
        config % "max_tokens: 100, prices: {tiny: {input: 1000, output: 5000}}"
    )
    lines = run("score", project / "tasks.jsonl", "--dry-run").out.splitlines()
    rows = {line.rsplit(maxsplit=3)[0]: line.rsplit(maxsplit=3)[1:] for line in lines if line}
    assert rows["model requests"] == ["low", "expected", "worst"]
    assert rows["calls"] == ["6", "6", "12"], "of four responses one is empty"
    assert rows["output tokens"] == ["240", "600", "1200"]
    read, wrote = rows["input tokens"], rows["output tokens"]
    assert rows["US dollars"] == [
        f"{int(i) / 1000 + int(o) / 200:.4f}" for i, o in zip(read, wrote, strict=True)
    ]
    assert lines[-1].startswith("estimates: a token is taken for 5, 4 or 1 bytes, a reply for ")
    loads = json.loads(run("score", project / "tasks.jsonl", "--dry-run", "--json").out)["model"]
    assert [str(loads[name]["calls"]) for name in ("low", "expected", "worst")] == rows["calls"]


def test_a_dry_run_refuses_what_cannot_be_planned(project: Path, run: Command):
    (project / "jury.yaml").write_text("evaluators: [criteria]\nreward: {rubric: 1.0}\n")
    ended = run("score", project / "tasks.jsonl", "--dry-run")
    assert (ended.code, ended.out) == (2, "")
    assert "error: tasks.jsonl, line 1: task 'door'" in ended.err


def test_a_dry_run_needs_no_folder_for_the_run(project: Path, run: Command):
    estimates = [
        run("score", project / "tasks.jsonl", "--dry-run", *out).out
        for out in ((), ("--out", project / "r"))
    ]
    assert estimates[0] == estimates[1]


@pytest.mark.landing
def test_output_of_an_evaluator_is_not_part_of_the_result(project: Path, run: Command):
    (project / "manners.py").write_text(
        'print("loading")\n\ndef polite(t, r):\n    print("asking")\n    return 1.0\n'
    )
    (project / "jury.yaml").write_text("evaluators: [manners.polite]\n")
    for more in ((), ("--dry-run",)):
        ended = run(
            "score", project / "tasks.jsonl", "--out", project / f"run{len(more)}", "--json", *more
        )
        assert json.loads(ended.out)["tasks"] == 2
        assert "loading" in ended.err
    assert "asking" in run("score", project / "tasks.jsonl", "--out", project / "again").err
    assert json.loads(run("doctor", "--config", project / "jury.yaml", "--json").out)["checks"]


@pytest.mark.landing
def test_output_of_its_child_processes_is_not_part_of_the_result(project: Path):
    source = "import subprocess\n\ndef polite(t, r):\n    subprocess.run(['echo', 'hello'])\n    return 1.0\n"
    (project / "manners.py").write_text(source)
    (project / "jury.yaml").write_text("evaluators: [manners.polite]\n")
    _, out, err = run_new_process(
        "score", project / "tasks.jsonl", "--out", project / "run", "--json"
    )
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
    source += (
        "raise SystemError(SEEN)\n"  # ends the command while the code of an evaluator is loaded
    )
    (project / "manners.py").write_text(source)
    (project / "jury.yaml").write_text(f"{more}evaluators: [manners.polite]\n")
    ended = run("score", project / "tasks.jsonl", "--out", project / "run")
    assert traced * 2 in ended.err


POLITE, CRASH, OFFLINE = ({"id": text, "text": text} for text in ("please", "crash", "offline"))


@all_rows(
    ("responses", "code", "message"),
    [
        ([POLITE], 0, "all rewards: "),
        ([POLITE, CRASH], 1, "1 of 2 rewards failed and have no value; each needs 0.8 "),
        (
            [POLITE, OFFLINE],
            3,
            "inconclusive: 25.0% of the verdicts failed for infrastructure reasons",
        ),
    ],
)
def test_failures_decide_the_exit_code_also_of_a_complete_run(
    tmp_path: Path, run: Command, responses: list[dict[str, str]], code: int, message: str
):
    project = write_project(
        tmp_path / str(code), [{"id": "t", "query": "?", "responses": responses}]
    )
    for _ in range(2):
        ended = run("score", project / "tasks.jsonl", "--out", project / "run")
        assert (ended.code, message in ended.err) == (code, True)
        assert ("1 failed" in ended.out) == (code > 0)


@all_rows(
    ("words", "message"),
    [
        (["nonsense"], "nonsense"),
        (["score"], "TASKS"),
        (["score", "tasks.jsonl"], "error: --out: is missing; name the folder of the run"),
        (
            ["score", "tasks.jsonl", "--out", "run", "--model", "gpt"],
            "error: --model: 'gpt' is not a model",
        ),
        (
            ["score", "tasks.jsonl", "--out", "."],
            "is neither a run nor empty; name another folder with --out",
        ),
        (["score", "tasks.jsonl", "--out", "run", "--limit", "0"], "--limit"),
        (
            ["score", "tasks.jsonl", "--out", "run", "--gate", "meen>1"],
            "unknown statistic 'meen'; did you mean mean?",
        ),
    ],
)
def test_wrong_words_give_exit_code_2_and_nothing_is_written(
    project: Path, run: Command, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
):
    """What is wrong in the files is in `tests/bad_input`."""
    monkeypatch.chdir(project)
    before = folder_contents(project)
    ended = run(*words)
    assert (ended.code, ended.out, message in ended.err) == (2, "", True)
    assert folder_contents(project) == before


@all_rows(
    ("gate", "code", "missed"),
    [
        ("mean>=-1, failed<=0", 0, ""),
        ("mean>=0.8", 1, "threshold missed: mean >= 0.8, but mean is -0.0625"),
        ("failed>=1 and coverage>0.9", 1, "threshold missed: failed >= 1, but failed is 0"),
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
    task = {
        "id": "a",
        "query": "Where to?",
        "rubric": rubric,
        "responses": [{"id": "r", "text": "There."}],
    }
    (project / "tasks.jsonl").write_text(json.dumps(task))
    (project / "jury.yaml").write_text("evaluators: [criteria]\nreward: {rubric: 1.0}\n")
    command = ("score", project / "tasks.jsonl", "--out", project / "run")
    assert run(*command, "--gate", "error_rate<=1").code == 1
    assert run(*command, "--gate", "failed<=1").code == 0
    ended = run(*command, "--gate", "mean>=0, failed<=1")
    assert (ended.code, "threshold missed: mean >= 0, but there is no mean" in ended.err) == (
        1,
        True,
    )


def test_rewards_that_failed_for_low_confidence_name_the_limit_of_it(tmp_path: Path) -> None:
    summary = Summary()
    summary._discarded_counts.update(personalized=27)
    options = ScoreOptions(tasks="tasks.jsonl", run=tmp_path / "run")
    (advice,) = _advise_settings(options, summary, Config(evaluators=["personalized"]))
    limit = "27 verdicts count as not given, because their confidence is below panel.min_confidence, 0.8"
    assert advice.startswith(limit)
    command = (
        f"jurygraph rescore {tmp_path}/run --out {tmp_path}/run-2 --set panel.min_confidence=0.4"
    )
    assert advice.endswith(command)
    summary.undecided_counts.update(personalized=3)
    (advice,) = _advise_settings(options, summary, Config(evaluators=["personalized"]))
    assert f"{command} --set panel.reduce=mean" in advice
    # the component of a config has its own limit
    component = ComponentConfig(inputs={"x": InputConfig(verdicts_of="personalized")})
    config = Config(evaluators=["personalized"], components={"personalized": component})
    assert list(_advise_settings(options, summary, config)) == []


def test_rewards_that_failed_without_a_majority_of_samples_name_another_reduction(
    tmp_path: Path,
) -> None:
    """A question whose samples were all discarded has none either; neither counts where its weight is 0."""
    options = ScoreOptions(tasks="tasks.jsonl", run=tmp_path / "run")
    config = Config(evaluators=["personalized", "aggregate"], reward={"personalized": 1.0})
    summary = Summary()
    summary.undecided_counts.update(personalized=9, aggregate=5)
    summary._discarded_counts.update(personalized=2)
    (advice,) = _advise_settings(options, summary, config)
    assert advice == (
        "7 questions without a majority of samples; to decide without a request:  jurygraph rescore "
        f"{tmp_path}/run --out {tmp_path}/run-2 --set panel.reduce=mean"
    )
    summary._discarded_counts.update(personalized=25)
    (advice,) = _advise_settings(options, summary, config)
    assert "panel.min_confidence" in advice


def test_a_judge_without_a_model_is_named_before_it_starts(run: Command, tmp_path: Path) -> None:
    criterion = {"id": "kind", "text": "It is kind.", "weight": 1.0}
    judged = [{**task, "rubric": {"criteria": [criterion]}} for task in TASKS]
    tasks = write_project(tmp_path, judged, "evaluators: [criteria]\n") / "tasks.jsonl"
    dry = run("score", tasks, "--out", tmp_path / "run", "--dry-run")
    assert "model: none, so criteria cannot answer; name a model in the config" in dry.err


def test_a_model_that_no_evaluator_asks_is_named(run: Command, tmp_path: Path) -> None:
    criterion = {"id": "kind", "text": "It is kind.", "weight": 1.0}
    judged = [{**task, "rubric": {"criteria": [criterion]}} for task in TASKS]
    server = "openai-compatible:http://127.0.0.1:9/v1#"
    config = f"models: {{a: '{server}a'}}\nevaluators: [{{use: criteria, judges: [a]}}]\n"
    tasks = write_project(tmp_path, judged, config) / "tasks.jsonl"
    command = ("score", tasks, "--out", tmp_path / "run", "--dry-run")
    note = f"model: no evaluator asks {server}b here, since each names its judges"
    assert note in run(*command, "--model", f"{server}b").err
    assert "no evaluator asks" not in run(*command).err
