"""WritingBench: queries with checklists on a scale from 1 to 10."""

import gzip
import json
from pathlib import Path

from jurygraph.schema import Criterion
from tests.command import run_command
from tests.interchange.published import WRITINGBENCH, import_rows, tasks

REAL = Path(__file__).parents[1] / "data" / "writingbench" / "rubrics.jsonl.gz"


def test_an_entry_is_a_criterion_on_a_scale_with_its_described_ranges(tmp_path: Path) -> None:
    speech, letter = tasks("writingbench", tmp_path / "in.jsonl", *WRITINGBENCH)
    assert (speech.id, speech.query) == ("7", "Write a speech.")
    anchors = {"1-2": "cold", "3-4": "cool", "5-6": "tepid", "7-8": "warm", "9-10": "glowing"}
    assert speech.rubric is not None
    assert letter.rubric is not None
    assert speech.rubric.criteria == (
        Criterion(
            id="criterion-1",
            text="Warmth: How warm it is.",
            weight=1,
            scale=(1, 10),
            anchors=anchors,
        ),
        Criterion(
            id="criterion-2", text="Length", weight=1, scale=(1, 10), anchors={"1-2": "none"}
        ),
    )
    assert letter.rubric.criteria[0] == Criterion(
        id="criterion-1", text="Tone: t", weight=1, scale=(1, 10)
    )


def test_its_domains_and_other_fields_are_kept(tmp_path: Path) -> None:
    speech, letter = tasks("writingbench", tmp_path / "in.jsonl", *WRITINGBENCH)
    assert speech.metadata == {
        "domain1": "Politics & Law",
        "domain2": "Speech",
        "lang": "en",
        "criteria": {"criterion-2": {"weight": 3}},
    }
    assert (letter.id, letter.metadata) == ("8", {})


def test_real_rows_are_read_whole() -> None:
    rows = [json.loads(line) for line in gzip.decompress(REAL.read_bytes()).splitlines()]
    found = import_rows("writingbench", REAL)
    assert len(rows) >= 10
    for row, (task, notes) in zip(rows, found, strict=True):
        assert task is not None
        assert task.rubric is not None
        assert (task.id, task.query, notes) == (str(row["index"]), row["query"], ())
        assert task.metadata == {"domain1": row["domain1"], "domain2": row["domain2"]}
        for entry, criterion in zip(row["checklist"], task.rubric.criteria, strict=True):
            assert criterion.text == f"{entry.pop('name')}: {entry.pop('criteria_description')}"
            assert criterion.anchors == entry


def test_in_tenths_a_value_scores_a_tenth_of_itself(tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in WRITINGBENCH))
    assert (
        run_command("import", "writingbench", source, "--out", target, "--scale", "tenths").code
        == 0
    )
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert {tuple(one["scale"]) for line in lines for one in line["rubric"]["criteria"]} == {
        (0.0, 10.0)
    }
    ended = run_command("import", "judgebench", source, "--out", target, "--scale", "tenths")
    assert (
        ended.code,
        "; remove it for judgebench" in ended.err,
    ) == (2, True)
