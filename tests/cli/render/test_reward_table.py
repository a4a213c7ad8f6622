"""The table of `jurygraph show`: its responses, their order, its columns, and marks on filled-in values."""

import json
import re
from pathlib import Path

import pytest

from jurygraph.runs.run import Run
from tests.cli.conftest import Command, run_command, write_project
from tests.cli.render.test_text import run_on_terminal
from tests.rows import all_rows

CONFIG = """
evaluators: [manners.polite, manners.shaky, manners.judge, manners.coverage]
reward: {polite: 1.0, judge: 0.2, shaky: 0.1, coverage: 0}
"""
GATED = f"{CONFIG}gates: [{{kind: format, component: polite, below: 0.5}}]\n"
EVALUATORS = """
import jurygraph as jg


def polite(task, response):
    return min(1.0, 0.25 * response.text.count("please"))


def shaky(task, response):
    if "bad" in response.text:
        raise RuntimeError("it cannot be read")
    return 1.0


@jg.evaluator(layer="model")
def judge(task, response):
    return jg.Verdict.abstain("no opinion")


def coverage(task, response):
    return 0.5
"""


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = write_project(
        tmp_path_factory.mktemp("rewards") / "project", config=CONFIG, evaluators=EVALUATORS
    )
    run_command("score", project / "tasks.jsonl", "--out", project / "run")
    return project / "run"


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_filled_in_values_are_marked_and_a_gate_s_zero_is_not(scored: Path, run: Command) -> None:
    shown = run("show", scored)
    assert shown.out.splitlines() == [
        "response  agent  status     reward  coverage  component.coverage    judge  polite    shaky",
        "────────  ─────  ─────────  ──────  ────────  ──────────────────  ───────  ──────  ───────",
        "door/a    alice  degraded   1.1000    0.8462              0.5000  *0.0000  1.0000   1.0000",
        "door/b    bob    failed          -    0.7692              0.5000  *0.0000  0.0000  *0.0000",
        "salt/a    alice  degraded   0.3500    0.8462              0.5000  *0.0000  0.2500   1.0000",
        "salt/b    bob    ok, gated  0.1000    1.0000              0.5000   0.0000  0.0000   1.0000",
        "* filled in by the failure rule; --response shows what was judged",
    ]
    means = "mean reward of 3 responses: alice 0.7250, bob 0.1000, 1 left out because they failed"
    assert means in shown.err
    assert "mean reward of 2 responses: 0.7250\n" in run("show", scored, "--agent", "alice").err


def test_the_table_and_the_trace_agree(scored: Path, run: Command) -> None:
    table = {
        row[0]: row
        for row in rows(run("show", scored, "--columns", "polite,judge,shaky").out)[2:-1]
    }
    for trace in Run.open(scored).traces():
        lines = run("show", scored, "--response", trace.response_id).out.splitlines()
        terms = {line.split()[0]: line.split()[2] for line in lines[lines.index("") + 3 :][:4]}
        assert [terms[name] for name in ("polite", "judge", "shaky")] == table[trace.response_id][
            1:
        ]
    door = run("show", scored, "--response", "door/b").out
    assert "* judge: filled in by the failure rule; the judged part alone is -" in door
    salt = run("show", scored, "--response", "salt/b").out
    assert (
        "verdicts  4 = 3 judged + 1 set by empty-response + 0 abstained + 0 failed + 0 not applicable"
        in salt
    )


@all_rows(
    "options, expected",
    [
        (("--sort", "reward"), ["salt/b", "salt/a", "door/a", "door/b"]),
        (("--sort", "-reward"), ["door/a", "salt/a", "salt/b", "door/b"]),
        (("--sort", "-response", "--limit", "3"), ["salt/b", "salt/a", "door/b"]),
        (("--sort", "agent"), ["door/a", "salt/a", "door/b", "salt/b"]),
        (("--sort", "polite", "--status", "degraded"), ["salt/a", "door/a"]),
        (("--sort", "-coverage"), ["salt/b", "door/a", "salt/a", "door/b"]),
        (("--agent", "bob"), ["door/b", "salt/b"]),
        (("--agent", "bob", "--status", "ok", "--limit", "1"), ["salt/b"]),
        (("--agent", "alice", "--status", "failed"), []),
    ],
)
def test_the_table_and_json_give_the_same_responses(
    scored: Path, run: Command, options: tuple[str, ...], expected: list[str]
) -> None:
    shown = rows(run("show", scored, "--columns", "reward", *options).out)
    assert [row[0] for row in shown[2:]] == expected
    traces = [json.loads(line) for line in run("show", scored, "--json", *options).out.splitlines()]
    assert [trace["response_id"] for trace in traces] == expected


def test_responses_that_a_gate_changed_are_marked_and_can_be_selected(
    tmp_path: Path, run: Command
) -> None:
    project = write_project(tmp_path / "gated", config=GATED, evaluators=EVALUATORS)
    run("score", project / "tasks.jsonl", "--out", project / "run")
    shown = run("show", project / "run", "--columns", "status,gates,query").out.splitlines()
    assert [re.split("  +", line) for line in shown[2:]] == [
        ["door/a", "degraded", "-", "Ask for the door to be closed."],
        ["door/b", "failed", "-", "Ask for the door to be closed."],
        ["salt/a", "degraded, gated", "format gate", "Ask for the salt."],
        ["salt/b", "ok, gated", "empty-response, format gate", "Ask for the salt."],
    ]
    selected = run("show", project / "run", "--status", "gated", "--json").out.splitlines()
    assert [json.loads(line)["response_id"] for line in selected] == ["salt/a", "salt/b"]


def test_columns_are_those_named_texts_first(scored: Path, run: Command) -> None:
    shown = run("show", scored, "--columns", "component.coverage, reward,agent", "--limit", 1).out
    assert rows(shown)[0] == ["response", "agent", "component.coverage", "reward"]
    assert rows(shown)[2] == ["door/a", "alice", "0.5000", "1.1000"]


def test_first_words_of_a_response_are_a_column_until_they_are_erased(
    scored: Path, run: Command
) -> None:
    assert run("erase", scored, "--response", "door/a").code == 0
    shown = run("show", scored, "--columns", "text", "--limit", 2).out.splitlines()[2:]
    assert [re.split("  +", line) for line in shown] == [
        ["door/a", "erased"],
        ["door/b", "bad: the door"],
    ]


@pytest.mark.landing
def test_on_a_terminal_columns_that_do_not_fit_follow_below(
    scored: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "58")
    lines = run_on_terminal("show", scored).splitlines()
    assert max(map(len, lines[:13])) <= 58
    assert lines[0].split() == ["response", "agent", "status", "reward", "coverage"]
    assert lines[7].split() == ["response", "agent", "status", "component.coverage", "judge"]


def test_questions_and_labels_are_columns(tmp_path: Path, run: Command) -> None:
    marks: list[dict[str, object]] = [{"step": 9}, {"step": 10, "who": "ann"}, {"step": "late"}, {}]
    texts = ("please", "bad", "", "please please")
    responses = [{"id": f"r{i}", "text": text, "labels": marks[i]} for i, text in enumerate(texts)]
    config = CONFIG.replace("manners.polite", "{use: manners.polite, samples: 2}")
    project = write_project(
        tmp_path / "new", [{"id": "t", "query": "?", "responses": responses}], config, EVALUATORS
    )
    run("score", project / "tasks.jsonl", "--out", project / "run")
    columns = "question.manners.shaky,label.step,manners.polite,label.who"
    shown = run("show", project / "run", "--columns", columns, "--sort", "-label.step")
    assert rows(shown.out) == [
        ["response", "label.step", "label.who", "question.manners.shaky", "manners.polite"],
        ["────────", "──────────", "─────────", "──────────────────────", "──────────────"],
        ["r2", "late", "-", "1.0000", "0.0000"],
        ["r1", "10", "ann", "-", "0.0000"],
        ["r0", "9", "-", "1.0000", "0.2500"],
        ["r3", "-", "-", "1.0000", "0.5000"],
    ]
    (last,) = rows(run("show", project / "run", "--columns", "question.polite", "--limit", 1).out)[
        2:
    ]
    assert last == ["r0", "0.2500"]
    best = run(
        "show", project / "run", "--columns", "reward", "--sort", "-manners.polite", "--limit", 1
    )
    assert rows(best.out)[2][0] == "r3"


def test_rows_without_a_mean_say_why(scored: Path, run: Command) -> None:
    assert (
        run("show", scored, "--status", "failed", "--agent", "alice").err == "no response matches\n"
    )
    assert run("show", scored, "--status", "failed").err.startswith(
        "no mean reward: all 1 failed (--response ID shows why)\n"
    )
