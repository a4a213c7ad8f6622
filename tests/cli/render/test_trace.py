"""`jurygraph show --response`, `--call` and `--verdict`: notes of a trace, and what lies behind a verdict."""

import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jurygraph.models import factory
from jurygraph.models.limits import RetryPolicy
from jurygraph.schema import Call
from tests.agents.extraction.extractor import read_perfectly, reader_script
from tests.agents.extraction.plans import RECORDS, in_words, task_of_records
from tests.cli.conftest import Command, run_command, write_project
from tests.models.judge_scripts import config, judge_reply, rubric
from tests.models.server import TOKENS_IN, TOKENS_OUT, Answer, Script, reply_with, run_server, status

PRICES = {"tiny": {"input": 2.0, "output": 10.0}}
TEXTS = {
    "ann": "Dear Ann,",
    "bob": "Dear Bob,\n  reply (finish: stop)\n\x1b[2J",
    "cas": "Dear Cas, \u4f60\u597d",
    "dan": "",
}


def reply_with_a_repair_and_a_retry() -> Script:
    """Return a script whose first reply about Bob is not JSON, and that is not ready for the first one about Cas."""
    ready: set[str] = set()

    def reply(body: dict[str, Any], number: int) -> Answer:
        text = body["messages"][1]["content"]
        if "Dear Bob" in text and len(body["messages"]) == 2:
            return reply_with("no \x1b[2JJSON")
        if "Dear Cas" in text and "cas" not in ready:
            ready.add("cas")
            return status(503)
        return judge_reply(body, probability=0.75)

    return reply


class Scored(NamedTuple):
    """A project with a run, `cold`, and another one, `warm`, whose replies come from the cache."""

    folder: Path
    sent: list[Any]


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> Scored:
    folder = tmp_path_factory.mktemp("questions")
    lines = []
    for name, text in TEXTS.items():
        task = rubric("kind", "short", name=name, query=f"Write to {name}.").model_dump(mode="json")
        lines.append(json.dumps({**task, "responses": [{"id": f"{name}/a", "text": text}]}) + "\n")
    (folder / "tasks.jsonl").write_text("".join(lines))
    with pytest.MonkeyPatch.context() as patch, run_server(reply_with_a_repair_and_a_retry()) as server:
        patch.setenv("JURYGRAPH_CACHE", str(folder / "cache"))
        patch.setattr(factory, "RetryPolicy", partial(RetryPolicy, first=0.0, longest=0.0))
        (folder / "jury.yaml").write_text(json.dumps(config(server.url, cache=True, prices=PRICES)))
        for name in ("cold", "warm"):
            assert run_command("score", folder / "tasks.jsonl", "--out", folder / name).code == 0
        return Scored(folder, [received.body["messages"] for received in server.requests])


@pytest.fixture
def project(scored: Scored) -> Path:
    return scored.folder


def read(run: Command, folder: Path, response: str, option: str, question: str = "criteria@kind") -> Any:
    ended = run("show", folder, "--response", response, option, question, "--json")
    assert ended.code == 0, ended.err
    content = json.loads(ended.out)
    assert (content["response_id"], content["question"]) == (response, question)
    return content[{"--call": "calls", "--verdict": "verdicts"}[option]]


def test_the_calls_are_those_that_the_server_got(scored: Scored, run: Command) -> None:
    project, sent = scored
    shown = [call for name in TEXTS for call in read(run, project / "cold", f"{name}/a", "--call")]
    assert sum(call["call"]["attempts"] for call in shown) == len(sent)
    assert sorted(json.dumps(call["request"]["messages"]) for call in shown) == sorted(set(map(json.dumps, sent)))
    assert [call["purpose"] for call in shown] == ["judge", "judge", "repair", "judge"]
    assert shown[1]["reply"]["text"] == "no \x1b[2JJSON"
    bill = TOKENS_IN * 2.0 / 1e6 + TOKENS_OUT * 10.0 / 1e6
    assert [call["call"]["cost"] for call in shown] == pytest.approx([bill] * 4)


def test_the_text_has_all_messages_the_reply_and_the_bill(project: Path, run: Command) -> None:
    for name, text in TEXTS.items():
        calls = read(run, project / "cold", f"{name}/a", "--call")
        lines = run("show", project / "cold", "--response", f"{name}/a", "--call", "criteria@kind").out.splitlines()
        shown = "\n".join(line[4:] for line in lines if line.startswith("    ")).replace("\\u001b", "\x1b")
        for call in calls:
            assert Call.model_validate(call["call"]).id in "".join(lines)
            for content in (*(one["content"] for one in call["request"]["messages"]), call["reply"]["text"]):
                assert content in shown
        assert len([line for line in lines if line.startswith("  reply (finish")]) == len(calls), text
        assert not set("\x1b\x07") & set("".join(lines))
    cas = run("show", project / "cold", "--response", "cas/a", "--call", "criteria@kind").out.splitlines()
    assert run("show", project / "cold", "--response", "cas/a", "--call", "kind").out.splitlines() == cas
    assert {
        "  attempts        2",
        f"  tokens_in       {TOKENS_IN}",
        "  cache_hit       false",
        "  cost            0.000092",
    } <= set(cas)
    assert '  parameters      {"temperature": 0.0' in "\n".join(cas)


def test_a_request_without_a_reply_is_shown_as_sent_until_it_is_erased(tmp_path: Path, run: Command) -> None:
    task = rubric("kind", name="ann", query="Write to Ann.").model_dump(mode="json")
    (tmp_path / "tasks.jsonl").write_text(json.dumps({**task, "responses": [{"id": "a", "text": "Dear Ann,"}]}))
    with run_server(lambda body, number: status(401 if number == 1 else 400)) as server:
        (tmp_path / "jury.yaml").write_text(json.dumps(config(server.url)))
        assert run("score", tmp_path / "tasks.jsonl", "--out", tmp_path / "run").code == 3
        run("score", tmp_path / "tasks.jsonl", "--out", tmp_path / "run")
    (shown,) = read(run, tmp_path / "run", "a", "--call")
    assert (shown["call"]["fault"], shown["reply"]) == ("rejected", "none")
    assert shown["request"]["messages"] == server.requests[0].body["messages"] == server.requests[1].body["messages"]
    assert run("verify", tmp_path / "run", "--deep").code == 0
    assert run("erase", tmp_path / "run", "--response", "a").code == 0
    assert "Dear Ann" not in run("show", tmp_path / "run", "--response", "a", "--call", "criteria@kind").out
    assert b"Dear Ann" not in (tmp_path / "run" / "run.sqlite").read_bytes()


def test_a_question_without_a_call_says_why(project: Path, run: Command, tmp_path: Path) -> None:
    gated = run("show", project / "cold", "--response", "dan/a", "--call", "criteria@kind")
    expected = "no call: the question was not put to criteria, because of empty-response\n"
    assert (gated.code, gated.out) == (0, expected)
    assert read(run, project / "cold", "dan/a", "--call") == []
    other = write_project(tmp_path / "other")
    run("score", other / "tasks.jsonl", "--out", other / "run")
    for response, question, reason in (
        ("salt/a", "manners.polite", "no call: manners.polite sent no request to a model for this verdict"),
        ("salt/a", "manners.shaky", "no call: manners.shaky sent no request to a model for this verdict"),
    ):
        assert run("show", other / "run", "--response", response, "--call", question).out == f"{reason}\n"


@pytest.mark.parametrize("option", ["--call", "--verdict"])
def test_an_unknown_question_is_refused_with_the_nearest(project: Path, run: Command, option: str) -> None:
    for question, hint in (("criteria@kinds", "did you mean criteria@kind?"), ("", "known: criteria@kind, crit")):
        ended = run("show", project / "cold", "--response", "ann/a", option, question)
        assert (ended.code, ended.out) == (2, "")
        assert f"response 'ann/a' has no question {question!r}; {hint}" in ended.err


def test_a_verdict_has_every_field_of_the_trace(project: Path, run: Command) -> None:
    for name in TEXTS:
        trace = json.loads(run("show", project / "cold", "--response", f"{name}/a", "--json").out)
        on_question = [verdict for verdict in trace["verdicts"] if verdict["question"] == "criteria@kind"]
        assert read(run, project / "cold", f"{name}/a", "--verdict") == on_question
        shown = run("show", project / "cold", "--response", f"{name}/a", "--verdict", "criteria@kind").out
        assert {line[2:17].strip() for line in shown.splitlines()[1:]} - {""} == on_question[0].keys()
    bob = run("show", project / "cold", "--response", "bob/a", "--verdict", "criteria@kind").out.splitlines()
    place = '"start": 0, "end": 9, "source": "response", "verified": true, "of": null'
    evidence = f'  evidence        {{"quote": "Dear Bob,", {place}}}'
    assert {"verdict 1 of 1", "  score           0.75", "  gated_by        -", evidence} <= set(bob)


def test_erased_texts_say_so(scored: Scored, tmp_path: Path, run: Command) -> None:
    project = shutil.copytree(scored.folder, tmp_path / "copy")
    before = read(run, project / "cold", "bob/a", "--call")
    assert run("erase", project / "cold", "--response", "bob/a").code == 0
    erased = read(run, project / "cold", "bob/a", "--call")
    assert [(call["request"], call["reply"]) for call in erased] == [("erased", "erased")] * 2
    assert [call["call"] for call in erased] == [call["call"] for call in before]
    text = run("show", project / "cold", "--response", "bob/a", "--call", "criteria@kind").out
    assert text.count("  messages\n    erased\n  reply\n    erased\n") == 2
    verdict = run("show", project / "cold", "--response", "bob/a", "--verdict", "criteria@kind").out
    assert "its reason, quotations and other texts were erased" in verdict


@pytest.fixture
def plans(tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a run whose material was read by a model, and a branch of it."""
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    task = task_of_records("13").model_dump(mode="json", exclude_defaults=True)
    line = {**task, "responses": [{"id": "13/prose", "text": in_words("13", "prose")}]}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(line) + "\n")
    derivers = [{"use": "extract", "params": {"records": RECORDS}}, "facts.claims"]
    judging = {"derivers": derivers, "evaluators": ["facts.confirmed", "checks.constraints"]}
    with run_server(reader_script(lambda text, query: read_perfectly(text))) as server:
        for name, weight, options in (("run", 1.0, ()), ("branch", 0.5, ("--branch", tmp_path / "run"))):
            settings = {"model": f"openai-compatible:{server.url}#tiny", **judging, "reward": {"confirmed": weight}}
            (tmp_path / "jury.yaml").write_text(json.dumps(settings))
            assert run("score", tmp_path / "tasks.jsonl", "--out", tmp_path / name, *options).code == 0
        assert server.count == 1
    return tmp_path


def test_calls_for_material_and_those_of_another_run_are_found(plans: Path, run: Command) -> None:
    trace = json.loads(run("show", plans / "run", "--response", "13/prose", "--json").out)
    question = next(one["question"] for one in trace["verdicts"] if one["evaluator"] == "facts.confirmed")
    (original,) = read(run, plans / "run", "13/prose", "--call", question)
    assert original["purpose"] == "derive"
    assert in_words("13", "prose") in original["request"]["messages"][1]["content"]
    assert run("rescore", plans / "run", "--out", plans / "rescored", "--set", "reward.confirmed=2").code == 0
    for name in ("branch", "rescored"):
        (again,) = read(run, plans / name, "13/prose", "--call", question)
        assert (again["request"], again["reply"]) == (original["request"], original["reply"])
    shutil.rmtree(plans / "rescored")
    shutil.move(plans / "run", plans / "elsewhere")
    (lost,) = read(run, plans / "branch", "13/prose", "--call", question)
    assert "from which" in lost["request"]
    assert "was branched, and which is not there" in lost["reply"]


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
def test_contrasts_that_were_ranked_incorrectly_are_listed_with_their_edits(tmp_path: Path, run: Command) -> None:
    (tmp_path / "tasks.jsonl").write_text(json.dumps(EGGS) + "\n", encoding="utf-8")
    (tmp_path / "jury.yaml").write_text(CONTRASTS, encoding="utf-8")
    assert run("score", tmp_path / "tasks.jsonl", "--out", tmp_path / "run").code == 0
    text = run("show", tmp_path / "run", "--response", "right").out
    assert "enhanced: 1 of 3 contrasts score less than the response" in text
    assert "ranked incorrectly: ~number-1 (3*4 is 12, not 13)" in text
    assert "ranked incorrectly: ~step-1" in text
    assert "~answer-1 (" not in text
    (line,) = (
        line for line in run("explain", tmp_path / "run", "--response", "right").out.splitlines() if "Lost" in line
    )
    assert line == "Lost 0.3333: enhanced 0.3333 of 1, weight 0.5."
