"""`calls.reply` and `calls.system` belong to a run: they decide what its stored replies say, and what was sent."""

import json
from pathlib import Path
from typing import Any

from tests.command import run_command
from tests.models.judge_scripts import config, rubric
from tests.models.server import run_server
from tests.models.test_replies import CASES, QUOTED, answer

SETTINGS = {"reply": "one-object", "system": "joined"}


def test_stored_replies_are_read_by_the_settings_of_their_run(tmp_path: Path) -> None:
    task = rubric("a").model_dump(mode="json") | {"responses": [{"id": "letter/0", "text": QUOTED}]}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task))

    def score(out: str, model: str | None = None, **calls: Any) -> tuple[int, str, Any]:
        settings = config(server.url, cache=False, **calls) | (
            {} if model is None else {"model": model}
        )
        (tmp_path / "jury.yaml").write_text(json.dumps(settings))
        ended = run_command(
            "score", "tasks.jsonl", "--config", "jury.yaml", "--out", out, "--json", cwd=tmp_path
        )
        return (
            ended.code,
            ended.err,
            json.loads(ended.out)["agents"][0]["mean"] if ended.out else None,
        )

    with run_server(lambda body, number: answer(CASES["chatty"])) as server:
        assert score("run", record="calls.jsonl", **SETTINGS)[::2] == (0, 0.9)
        assert server.count == 1
        for changed in ({"reply": "strict"}, {"system": "separate"}):
            [(name, value)] = changed.items()
            code, message, _ = score("run", **{**SETTINGS, **changed})
            assert code == 2
            assert (
                f'config calls.{name} is "{SETTINGS[name]}" in the run and "{value}" here'
                in message
            )
    verified = run_command("verify", "run", "--deep", "--json", cwd=tmp_path)
    assert (verified.code, json.loads(verified.out)["deep"]["recomputed"]) == (0, 1), verified.err
    replay = "replay:calls.jsonl"
    assert score("same", replay, **SETTINGS)[::2] == (0, 0.9)
    code, message, _ = score("strict", replay, system="joined")
    assert (code, "unrecorded" in message) == (3, True), "the repair was never sent"
