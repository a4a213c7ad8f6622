"""`jurygraph show --response`, `--call` and `--verdict`: notes of a trace, and what lies behind a verdict.

Which calls lie behind a verdict is tested in `tests/runs/test_read_calls.py`.
"""

import csv
import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.cli.render.summary import format_result_lines
from jurygraph.cli.render.trace import format_trace_lines
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.totals import summarize_run
from jurygraph.testing import ScriptedJudge
from jurygraph.views.trace import build_trace_view
from tests.agents.parser import parser_script
from tests.cli.conftest import Command, run_command
from tests.models.judge_scripts import config, judge_reply, rubric
from tests.models.server import TOKENS_IN, Answer, reply_with, run_server
from tests.rows import all_rows
from tests.runs.investigations import PRICE, RESPONSES, TASK, Investigator
from tests.runs.sample_runs import write_tasks
from tests.runs.test_profiles import (
    TENSIONS,
    make_profile_tasks,
    profile_config,
    score_profiles,
    write_profiles,
)

PRICES = {"tiny": {"input": 2.0, "output": 10.0}}
TEXTS = {
    "bob": "Dear Bob,\n  reply (finish: stop)\n\x1b[2J",
    "cas": "Dear Cas, \u4f60\u597d",
    "dan": "",
}


def answer(body: dict[str, Any], number: int) -> Answer:
    """Give no JSON in the first reply about Bob."""
    if "Dear Bob" in body["messages"][1]["content"] and len(body["messages"]) == 2:
        return reply_with("no \x1b[2JJSON")
    return judge_reply(body, probability=0.75)


@pytest.fixture(scope="module")
def scored_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose requests the tests show."""
    folder = tmp_path_factory.mktemp("questions")
    tasks = [
        rubric("kind", "short", name=name, query=f"Write to {name}.").model_dump(mode="json")
        for name in TEXTS
    ]
    for task in tasks:
        task["responses"] = [{"id": f"{task['id']}/a", "text": TEXTS[task["id"]]}]
    with run_server(answer) as server:
        evaluators = {"evaluators": ["criteria", "maths.length"], "reward": {"rubric": 1.0}}
        settings = {**config(server.url, cache=False, prices=PRICES), **evaluators}
        (folder / "jury.yaml").write_text(json.dumps(settings))
        command = ("score", write_tasks(folder, tasks), "--out", folder / "run")
        assert run_command(*command).code == 0
    return folder / "run"


def show(run: Command, folder: Path, response: str, *options: str) -> str:
    ended = run("show", folder, "--response", response, *options)
    assert ended.code == 0, ended.err
    return ended.out


@all_rows("response", ["bob/a", "cas/a"])
def test_the_text_of_a_call_has_all_messages_the_reply_and_the_bill(
    scored_once: Path, run: Command, response: str
) -> None:
    found = json.loads(show(run, scored_once, response, "--call", "criteria@kind", "--json"))
    assert (found["task_id"], found["response_id"], found["question"]) == (
        response[:3],
        response,
        "criteria@kind",
    )
    lines = show(run, scored_once, response, "--call", "criteria@kind").splitlines()
    shown = "\n".join(line[4:] for line in lines if line.startswith("    ")).replace(
        "\\u001b", "\x1b"
    )
    for call in found["calls"]:
        assert call["call"]["id"] in "".join(lines)
        for content in (
            *(one["content"] for one in call["request"]["messages"]),
            call["reply"]["text"],
        ):
            assert content in shown
    assert len([line for line in lines if line.startswith("  reply (finish")]) == len(
        found["calls"]
    )
    assert not set("\x1b\x07") & set("".join(lines))
    bill = {
        f"  tokens_in       {TOKENS_IN}",
        "  cache_hit       false",
        "  cost            0.00407",
    }
    assert {"  attempts        1", *bill} <= set(lines)
    assert show(run, scored_once, response, "--call", "kind").splitlines() == lines


@all_rows(
    "response, question, reason",
    [
        (
            "dan/a",
            "criteria@kind",
            "no call: the question was not put to criteria, because of empty-response\n",
        ),
        (
            "bob/a",
            "maths.length",
            "no call: maths.length sent no request to a model for this verdict\n",
        ),
    ],
)
def test_a_question_without_a_call_says_why(
    scored_once: Path, run: Command, response: str, question: str, reason: str
) -> None:
    assert show(run, scored_once, response, "--call", question) == reason
    assert json.loads(show(run, scored_once, response, "--call", question, "--json"))["calls"] == []


def test_a_verdict_of_a_gate_is_shown_and_exported_with_the_value_that_counts(
    tmp_path: Path, run: Command
) -> None:
    """What an empty answer is found to be counts in full, and an empty turn is left out."""
    rude = {"use": "criteria", "params": {"criteria": {"rude": "It is rude."}}}
    config = {
        "evaluators": [{**rude, "name": "rude"}, {**rude, "name": "snubs", "scope": "turn"}],
        "reward": {"rude": -1, "snubs": -1},
    }
    chat = [{"role": "assistant", "content": words} for words in ("Hello.", "")]
    with jg.Jury.from_config(
        config, model=ScriptedJudge({"rude": False}), record=tmp_path / "run"
    ) as jury:
        responses = [jg.Response(id="no", text=""), jg.Response(id="chat", messages=chat)]
        jury.score(jg.Task(id="t", query="Hello!"), responses)
    assert "rude/rude  1.0000  (rude" in show(run, tmp_path / "run", "no")
    shown = show(run, tmp_path / "run", "chat")
    assert "snubs/rude, turn 1  left out  (snubs" in shown
    assert "snubs/rude, turn 0  0.0000  (snubs" in shown
    table = run("export", tmp_path / "run", "--to", "verdicts").out
    cells = [
        [row[name] for name in ("response", "question", "score", "met", "gated_by", "counts_as")]
        for row in csv.DictReader(table.splitlines())
    ]
    assert ["no", "rude/rude", "1.0", "true", "empty-response", "1.0"] in cells
    assert ["chat", "rude/rude", "0.0", "false", "", ""] in cells


def test_a_term_of_weight_0_says_what_counts_it(tmp_path: Path, run: Command) -> None:
    config = {
        "evaluators": ["maths.format", "maths.length", "maths.calculation"],
        "components": {"both": {"inputs": {"a": "maths.length", "b": "maths.format"}}},
        "reward": {"both": 1},
        "gates": [{"kind": "format", "component": "format", "below": 0.5}],
    }
    with jg.Jury.from_config(config, record=tmp_path / "run") as jury:
        jury.score(jg.Task(id="t", query="2 + 2?"), [jg.Response(id="a", text="4")])
    shown = show(run, tmp_path / "run", "a")
    assert "format: its weight is 0; it counts in the format gate, component both\n" in shown
    assert "length: its weight is 0; it counts in component both\n" in shown
    assert "calculation: its weight" not in shown


def test_a_verdict_has_every_field_of_the_trace(scored_once: Path, run: Command) -> None:
    trace = json.loads(show(run, scored_once, "bob/a", "--json"))
    on_question = [
        verdict for verdict in trace["verdicts"] if verdict["question"] == "criteria@kind"
    ]
    assert (
        json.loads(show(run, scored_once, "bob/a", "--verdict", "kind", "--json"))["verdicts"]
        == on_question
    )
    shown = show(run, scored_once, "bob/a", "--verdict", "criteria@kind").splitlines()
    assert {line[2:17].strip() for line in shown[1:]} - {""} == on_question[0].keys()
    place = '"start": 0, "end": 9, "source": "response", "verified": true, "of": null'
    evidence = f'  evidence        {{"quote": "Dear Bob,", {place}}}'
    assert {"verdict 1 of 1", "  score           0.75", "  gated_by        -", evidence} <= set(
        shown
    )


def test_erased_texts_say_so(scored_once: Path, run: Command, tmp_path: Path) -> None:
    folder = shutil.copytree(scored_once, tmp_path / "run")
    assert run("erase", folder, "--response", "bob/a").code == 0
    text = show(run, folder, "bob/a", "--call", "criteria@kind")
    assert text.count("  messages\n    erased\n  reply\n    erased\n") == 2
    verdict = show(run, folder, "bob/a", "--verdict", "criteria@kind")
    assert "its reason, quotations and other texts were erased" in verdict


@pytest.fixture
def run_with_edited_profiles(tmp_path: Path) -> Iterator[Path]:
    with run_server(parser_script(tensions=TENSIONS)) as server:
        tasks = write_tasks(tmp_path, make_profile_tasks(tasks=2))
        score_profiles(tmp_path / "read", tasks, profile_config(server))

        def edit(lines: list[dict[str, Any]]) -> None:
            del lines[1]["stakeholders"][0], lines[1]["tensions"]

        by_hand = write_profiles(tmp_path / "read", edit)
        score_profiles(tmp_path / "run", tasks, profile_config(server), profiles=by_hand)
        yield tmp_path / "run"


def test_a_trace_names_the_source_of_its_constraints_and_tensions(
    run_with_edited_profiles: Path,
) -> None:
    with closing(Run.open(run_with_edited_profiles)) as opened:
        first, second = (
            format_trace_lines(build_trace_view(opened.explain(f"t{t}/r0"))) for t in range(2)
        )
    assert {
        "constraints of ben: from a file of profiles",
        "tensions: from a file of profiles",
    } <= set(first)
    assert {
        "constraints of ben: from a file of profiles",
        "constraints of ann: profile parsed by tiny, prompt profile 2",
        "tensions: profile parsed by tiny, prompt tensions 1",
        "tension between ann and ben: 1.5000, ann loves the sea, and it is dear",
    } <= set(second)


CONTRASTS = """
derivers: [synthesizer]
evaluators: [maths.accuracy, {use: maths.accuracy, material: contrasts}]
components:
  enhanced:
    combiner: contrast
    inputs: {accuracy: maths.accuracy, accuracy-of-contrasts: maths.accuracy-of-contrasts}
reward: {accuracy: 1.0, enhanced: 0.5}
"""
EGGS = {
    "id": "eggs",
    "query": "Ann buys 3 boxes of 4 eggs and sells half of them. How many are left?",
    "reference": "A: 6",
    "responses": [{"id": "right", "text": "Ann buys 3*4=12 eggs.\nShe sells 12/2=6 eggs.\nA: 6"}],
}


@pytest.mark.exhaustive
def test_contrasts_that_were_ranked_incorrectly_are_listed_with_their_edits(
    tmp_path: Path, run: Command
) -> None:
    (tmp_path / "tasks.jsonl").write_text(json.dumps(EGGS) + "\n", encoding="utf-8")
    (tmp_path / "jury.yaml").write_text(CONTRASTS, encoding="utf-8")
    assert run("score", tmp_path / "tasks.jsonl", "--out", tmp_path / "run").code == 0
    text = run("show", tmp_path / "run", "--response", "right").out
    assert "enhanced: 1 of 3 contrasts score less than the response" in text
    assert "ranked incorrectly: ~number-1 (3*4 is 12, not 13)" in text
    assert "ranked incorrectly: ~step-1" in text
    assert "~answer-1 (" not in text
    (line,) = (
        line
        for line in run("explain", tmp_path / "run", "--response", "right").out.splitlines()
        if "Lost" in line
    )
    assert line == "Lost 0.3333: enhanced 0.3333 of 1, weight 0.5."


def test_what_a_judge_looked_up_is_told_once_for_an_investigation(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with jg.Jury(
        model=Investigator(look_up_unless_at_noon),
        evaluators=[jg.criteria(["The prices are right."], tools=[PRICE])],
        record=folder,
    ) as jury:
        jury.score(TASK, RESPONSES, step=1)
    with closing(Run.open(folder)) as opened:
        shown = [run_command("show", folder, "--response", f"trip/{name}").out for name in "ab"]
        summary = summarize_run(jury, opened)
    told = '      tool:1 price {"item": "room"} → The room is 120 euros a night.\n'
    assert told in shown[0]
    assert "      0 lookups: the judge has tools, and called none\n" in shown[1]
    unseen = "looked nothing up: a judge with tools, in 1 of 2 responses: trip/b"
    assert unseen in format_result_lines(summary)
    many = replace(summary, unseen=list("edcba"), investigated=9)
    unseen = "looked nothing up: a judge with tools, in 5 of 9 responses: a, b, c, and 2 more"
    assert unseen in format_result_lines(many)


def hang(item: str) -> str:
    """Never return."""
    threading.Event().wait()
    return item


def test_what_was_not_looked_up_since_a_tool_hangs_is_counted_with_its_responses(
    tmp_path: Path,
) -> None:
    """Four calls for the first response take the tool from all that come later."""

    def look_up_much(request: Any, step: int) -> Any:
        is_first = "at noon" not in request.messages[1].content
        calls = [("hang", {"item": str(number)}) for number in range(5 if is_first else 1)]
        return calls if step == 0 else {"met": False}

    tool = {"use": f"{__name__}:hang", "timeout": 0.05}
    jury = jg.Jury(
        model=Investigator(look_up_much),
        evaluators=[jg.criteria(["The prices are right."], tools=[tool])],
        record=tmp_path / "run",
    )
    with jury:
        (first,) = jury.score(TASK, RESPONSES[:1], step=1)
        jury.score(TASK.model_copy(update={"id": "later"}), RESPONSES[1:], step=1)
    outcomes = Counter(lookup.outcome for lookup in first.lookups)
    assert outcomes == {"time-limit": 4, "not-called": 1}
    with closing(Run.open(tmp_path / "run")) as opened:
        lines = format_result_lines(summarize_run(jury, opened))
    lost = "not looked up, as earlier calls of tool hang hang: 2, for trip/a, trip/b"
    assert lost in lines


def look_up_unless_at_noon(request: Any, step: int) -> Any:
    is_looking = step == 0 and not any("at noon" in message.content for message in request.messages)
    return [("price", {"item": "room"})] if is_looking else {"met": False}
