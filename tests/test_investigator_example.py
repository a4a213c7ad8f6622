"""The example of a judge with tools: its README is followed, and the script acts from what it reads."""

import csv
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import jurygraph as jg
from tests.command import run_command, run_script
from tests.pages import ROOT, read_page, require_shown, steps

FOLDER = ROOT / "examples" / "investigator"
CODES: Mapping[str, tuple[int, ...]] = {"without_tools.yaml": (1,), "verify": (0, 5)}
"""Exit codes of commands that have these words, in their order; of all others 0."""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


def test_the_readme_is_followed(tmp_path: Path) -> None:
    """The run is verified until the table changes; then the lost quotation is named. The copy in git is left alone."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    before = (FOLDER / "prices.csv").read_bytes()
    printed = ""
    codes = {words: list(codes) for words, codes in CODES.items()}
    for shows, line, text in steps(read_page("examples/investigator/README.md")):
        if shows:
            require_shown(text, printed)
            continue
        program, first, *arguments = line.split()
        if program == "jurygraph":
            done = run_command(first, *arguments, cwd=tmp_path)
        else:
            done = run_script(tmp_path / first, *arguments, cwd=tmp_path)
        expected = next((left.pop(0) for words, left in codes.items() if words in line), 0)
        printed = done.out + done.err
        assert done.code == expected, f"{line}: {printed}"
    assert (FOLDER / "prices.csv").read_bytes() == before
    assert not any(codes.values())


def test_the_script_judges_by_the_table_that_it_reads(tmp_path: Path) -> None:
    """With other prices in the table the reference plans are wrong, and exceed the budget."""
    assert run_script(FOLDER / "prepare.py", tmp_path).code == 0
    table = tmp_path / "prices.csv"
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "price": int(row["price"]) + 1_000} for row in rows)
    scored = run_command("score", tmp_path / "tasks.jsonl", "--limit", 1, "--out", tmp_path / "run")
    assert scored.code == 0, scored.err
    with jg.Run.open(tmp_path / "run") as run:
        traces = list(run.traces())
    assert [verdict.met for trace in traces for verdict in trace.verdicts] == [False] * 6
