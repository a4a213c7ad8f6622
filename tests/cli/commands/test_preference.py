"""`jurygraph study preference`."""

import json
from pathlib import Path
from typing import Any

from tests.cli.conftest import Command
from tests.judges.pairwise.comparisons import failing_judge
from tests.models.server import run_server
from tests.sources.importers.published import write_rows

JUDGEBENCH: list[dict[str, Any]] = [
    {"pair_id": name, "source": source, "question": f"Which is right, {name}?", "label": label}
    | {"response_model": "m", "response_A": a, "response_B": b}
    for name, source, label, a, b in (
        ("law", "mmlu-pro-law", "A>B", "A long and right answer.", "A wrong one."),
        ("logic", "livebench-reasoning", "B>A", "A long and wrong answer.", "A right one."),
        ("sums", "livebench-math", "B>A", "Two and two are four.", "It is the number four, for two and two."),
        ("code", "livecodebench", "A>B", "unreadable: print the longest line", "print(1)"),
    )
]
"""The longer response is right in `law` and `sums`."""


def test_a_pairwise_judge_of_judgebench_from_the_published_file_to_the_table(run: Command, tmp_path: Path):
    source = write_rows(tmp_path / "judgebench.jsonl", *JUDGEBENCH)
    assert run("import", "judgebench", source, "--out", tmp_path / "tasks.jsonl").code == 0
    script = failing_judge(lambda shown: shown["A"].startswith("unreadable"))
    with run_server(script) as server:
        config = {
            "model": f"openai-compatible:{server.url}#tiny",
            "evaluators": ["pairwise"],
            "calls": {"cache": False},
        }
        (tmp_path / "jury.yaml").write_text(json.dumps(config))
        scored = run("score", tmp_path / "tasks.jsonl", "--config", tmp_path / "jury.yaml", "--out", tmp_path / "run")
    assert scored.code in (0, 1), scored.err
    ended = run("study", "preference", tmp_path / "run")
    assert ended.code == 0, ended.err
    lines = [line.split() for line in ended.out.splitlines()]
    assert ended.out.splitlines()[0].endswith(
        "decided by verdicts of pairwise on pairs; a tie is not right, a failed task is wrong"
    )
    table = {cells[0]: cells[1:9] for cells in lines[4:9]}
    assert table == {  # tasks, right, wrong, ties, failed, flips, coverage, accuracy
        "Knowledge": ["1", "1", "0", "0", "0", "0", "1.0000", "1.0000"],
        "Reasoning": ["1", "0", "1", "0", "0", "0", "1.0000", "0.0000"],
        "Math": ["1", "1", "0", "0", "0", "0", "1.0000", "1.0000"],
        "Coding": ["1", "0", "0", "0", "1", "0", "0.0000", "0.0000"],
        "all": ["4", "2", "1", "0", "1", "0", "0.7500", "0.5000"],
    }
    assert ended.out.endswith("code         Coding    1 of 2 verdicts on the pair are missing\n")


def test_a_run_without_preferences_is_refused(scored_folder: Path, run: Command):
    ended = run("study", "preference", scored_folder)
    assert (ended.code, ended.out) == (2, "")
    assert "none of its tasks is a preference (tasks without one response labelled `preferred: true`" in ended.err
