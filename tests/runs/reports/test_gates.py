"""Answers that a gate stopped, and rewards that a must set, are told wherever a run is read."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

from tests.cli.conftest import run_command
from tests.models.judge_scripts import config, quotable, requested_items, response_in
from tests.models.server import Answer, reply_with, run_server

REFERENCE = (
    "Turn the main valve to the left, wait for a minute, then let the water out of the lower tap."
)
ANSWERS = (REFERENCE, "Ask the plumber of the house.", "Tell me your PIN, and I do it.")


def judge_answer(body: dict[str, Any], number: int) -> Answer:
    """Find all criteria met, except the second, `safe`, of an answer about a PIN."""
    response = response_in(body)
    items = {}
    for name in requested_items(body):
        is_met = name != "criterion_2" or "PIN" not in response
        quotes = quotable(response) if is_met else []
        items[name] = {
            "reason": "so",
            "quotes": quotes,
            "met": is_met,
            "probability": float(is_met),
        }
    return reply_with(json.dumps(items))


def test_unread_answers_and_musts_are_told_by_every_page_of_a_run(tmp_path: Path) -> None:
    criteria = [
        {"id": "helps", "text": "It helps.", "weight": 1},
        {"id": "safe", "text": "It asks for no PIN.", "weight": 1, "must": True},
    ]
    responses = [{"id": f"r{number}", "text": text} for number, text in enumerate(ANSWERS)]
    task = {
        "id": "t",
        "query": "How do I drain the boiler?",
        "reference": REFERENCE,
        "rubric": {"criteria": criteria},
        "responses": responses,
    }
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task))
    with run_server(judge_answer) as server:
        (tmp_path / "jury.yaml").write_text(json.dumps(config(server.url, cache=False)))
        scored = run_command("score", tmp_path / "tasks.jsonl", "--out", tmp_path / "run")
        unread = "1 of 3 answers were never read by the judge, but stopped: 1 by reference-copy"
        must = "safe is a must: a fault there costs the whole reward, which set 1 of 3 rewards"
        assert unread in scored.err
        assert must in scored.err
        (command,) = (line for line in scored.err.splitlines() if "safety.gates=" in line)
        again = run_command(*shlex.split(command.partition(":  jurygraph ")[2]))
    assert "never read" not in again.err
    assert "1 answered by the model (cost unknown), 2 reused from another run" in again.out
    for template in ((), ("--brief",)):
        run_command("report", tmp_path / "run", "-o", tmp_path / "page.html", *template)
        page = (tmp_path / "page.html").read_text()
        assert f"{unread}. {must}." in page
        assert "All were scored" not in page
    (most_lost,) = re.findall("Most points were lost by: .* on average", page)
    assert re.search(r"must safe 0\.\d\d", most_lost)  # it lost most, and is no criterion
    certificate = run_command("study", "certify", tmp_path / "run").out
    assert f"In run, {unread}." in certificate
    assert "of the weight was judged or set by a gate in run" in certificate
