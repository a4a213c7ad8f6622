"""Reading a run: what is there is found, what was changed is refused."""

import asyncio
import csv
import io
import json
from pathlib import Path

import pytest

from jurygraph import InputError, TraceMismatch
from jurygraph.runs import Extent, Manifest, Recovered, Run, Session, Summary, export_csv, export_jsonl
from jurygraph.schema import Verdict
from jurygraph.sources import FileMark
from tests.runs.made import CONFIG, HandJury, failed_verdict, lines, reward, trace, work

OF = {
    "ok": Verdict(score=0.5, question="own.tone", about="b"),
    "abstained": Verdict.abstained("cannot tell").model_copy(update={"question": "own.tone", "about": "b"}),
    "not_applicable": Verdict(status="not_applicable", question="own.tone", about="d"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    async def both() -> None:
        await session.prepare()
        await session.score(lambda count: None)

    session = Session(tmp_path / "run", HandJury(), work())
    asyncio.run(both())
    return tmp_path / "run"


def made(folder: Path, *traces) -> Run:
    mark = FileMark(name="tasks.jsonl", sha256="0" * 64)
    manifest = Manifest(tasks=mark, config=CONFIG.digest, evaluators={})
    run = Run.create(folder, manifest, CONFIG, [])
    run.begin(Extent(), Recovered())
    run.append(traces)
    run.end("complete", Extent())
    run.release()
    return run


def test_a_response_is_found_by_its_id(folder: Path):
    record = Run.open(folder).find("t2/r1")
    assert record.trace.task_id == "t2"
    assert json.loads(record.line)["response_id"] == "t2/r1"


def test_an_unknown_id_names_the_nearest(folder: Path):
    with pytest.raises(InputError, match=r"there is no response 't2/r'; did you mean t2/r"):
        Run.open(folder).find("t2/r")
    with pytest.raises(InputError, match="`jurygraph show RUN` lists them"):
        Run.open(folder).find("nothing like it")


def test_a_torn_last_line_does_not_keep_one_from_reading(folder: Path):
    content = (folder / "traces.jsonl").read_bytes()
    (folder / "traces.jsonl").write_bytes(content[:-5])
    manifest = folder / "run.json"
    manifest.write_text(manifest.read_text().replace('"complete"', '"interrupted"'))
    assert len(list(Run.open(folder).traces())) == 7


@pytest.mark.parametrize(
    ("name", "state"), [("nowhere", "does not exist"), ("", "holds no run"), ("a", "is no folder")]
)
def test_what_is_no_run_is_refused(tmp_path: Path, name: str, state: str):
    (tmp_path / "a").touch()
    with pytest.raises(InputError, match=state):
        Run.open(tmp_path / name)


def test_a_run_made_by_a_newer_jurygraph_is_refused(folder: Path):
    content = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(content | {"schema_version": 2}))
    with pytest.raises(InputError, match="has schema version 2, and this jurygraph reads version 1"):
        Run.open(folder)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"schema_version": 1}'])
def test_a_damaged_manifest_is_refused(folder: Path, content: str):
    (folder / "run.json").write_text(content)
    with pytest.raises(TraceMismatch, match="it has been changed"):
        Run.open(folder)


def test_a_changed_config_is_refused(folder: Path):
    path = folder / "config.yaml"
    path.write_text(path.read_text().replace("scale: 1.0", "scale: 2.0"))
    with pytest.raises(TraceMismatch, match="is not the config of this run"):
        Run.open(folder).config()


@pytest.mark.parametrize(("old", "new"), [('"min_coverage": 0.8', '"min_coverage": 0.7'), ('{"digest"', '{"digset"')])
def test_a_changed_plan_is_refused(folder: Path, old: str, new: str):
    path = folder / "plans.jsonl"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(TraceMismatch, match=r"plans.jsonl, line 1: is no plan"):
        Run.open(folder).plans()


def test_the_summary_means_over_numbers_and_counts_everything():
    summary = Summary()
    for one in (
        trace("t", "a", 1.0),
        trace("t", "b", 0.5, reward=reward(0.5, "degraded", 0.9), verdicts=(OF["ok"], OF["abstained"])),
        trace("t", "c", None, agent="bob", verdicts=(failed_verdict("infrastructure"), failed_verdict("response"))),
        trace("u", "d", 0.0, agent=None, verdicts=(OF["not_applicable"],)),
    ):
        summary.add(one)
    alice, bob, nobody = summary.agents.values()
    assert (alice.mean, alice.coverage, alice.ok, alice.degraded, alice.failed) == (0.75, 0.95, 1, 1, 0)
    assert (bob.mean, bob.failed, nobody.mean, nobody.agent) == (None, 1, 0.0, None)
    assert summary.plain()["verdicts"] == {
        "judged": 2,
        "abstained": 1,
        "failed": 2,
        "not_applicable": 1,
        "asked": 6,
    }
    assert (len(summary.tasks), summary.responses, summary.failed) == (2, 4, 1)
    assert summary.infrastructure == 1
    assert summary.error_rate == 1 / 6
    assert summary.lowest == "c"


def test_a_verdict_on_an_unordered_pair_stands_in_two_traces_and_counts_once():
    timeout = failed_verdict("infrastructure").model_copy(update={"about": "a", "responses": ("a", "b")})
    summary = Summary()
    for name in "ab":
        summary.add(trace("t", name, verdicts=(timeout, OF["ok"].model_copy(update={"about": name}))))
    assert (summary.unanswered, summary.judged, summary.asked) == (1, 2, 3)
    assert summary.error_rate == 1 / 3


def test_traces_that_a_complete_run_has_lost_are_missed(folder: Path):
    path = folder / "traces.jsonl"
    path.write_bytes(b"".join(lines(folder)[:5]))
    for read in (Run.records, Run.traces, export_jsonl, export_csv):
        with pytest.raises(TraceMismatch, match=r"3 of the 8 traces of this complete run are missing"):
            list(read(Run.open(folder)))
    with pytest.raises(TraceMismatch, match="3 of the 8"):
        Run.open(folder).find("t3/r1")


def test_a_plan_that_was_lost_is_missed(folder: Path):
    path = folder / "plans.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    assert Run.open(folder).plan_of("t1").task_id == "t1"
    with pytest.raises(TraceMismatch, match=r"plans.jsonl: has no plan of task 't0'"):
        Run.open(folder).plan_of("t0")


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("config.yaml", Run.config),
        ("plans.jsonl", Run.plans),
        ("traces.jsonl", lambda run: list(run.records())),
        ("traces.jsonl", lambda run: Run.at(run.folder)),
    ],
)
def test_a_missing_file_of_a_run_is_named(folder: Path, name: str, read):
    (folder / name).unlink()
    with pytest.raises(TraceMismatch, match=f"{name}: is missing"):
        read(Run.open(folder))


def test_an_abstention_is_no_failure_even_where_a_cause_is_given():
    abstained = failed_verdict("infrastructure").model_copy(update={"status": "abstained", "about": "a"})
    summary = Summary()
    summary.add(trace("t", "a", verdicts=(abstained,)))
    assert summary.infrastructure == 0


def test_jsonl_gives_the_records_as_they_are(folder: Path):
    assert list(export_jsonl(Run.open(folder))) == lines(folder)


def test_csv_gives_one_row_a_response(tmp_path: Path):
    run = made(
        tmp_path / "run",
        trace("t", "a", 0.1 + 0.2),
        trace("t", "b", None, reward=reward(None, "failed", 0.25, components={"x, y": -1.5, "tone": None})),
    )
    rows = list(csv.DictReader(io.StringIO(b"".join(export_csv(run)).decode())))
    assert rows[0] == {
        "task_id": "t",
        "response_id": "a",
        "agent": "alice",
        "value": "0.30000000000000004",
        "status": "ok",
        "coverage": "1.0",
        "low": "0.30000000000000004",
        "high": "0.30000000000000004",
        "component.tone": "0.30000000000000004",
        "component.x, y": "",
        "judged": "1",
        "abstained": "0",
        "failed": "0",
        "not_applicable": "0",
    }
    assert (rows[1]["value"], rows[1]["low"], rows[1]["component.x, y"], rows[1]["component.tone"]) == (
        "",
        "",
        "-1.5",
        "",
    )


@pytest.mark.parametrize("name", ['=HYPERLINK("http://x")', "+1", "-1", "@SUM(A1)", "\t=1"])
def test_csv_gives_a_spreadsheet_no_formula_to_run(tmp_path: Path, name: str):
    run = made(tmp_path / "run", trace(name, name, agent=name))
    row = next(csv.DictReader(io.StringIO(b"".join(export_csv(run)).decode())))
    assert row["task_id"] == row["response_id"] == row["agent"] == f"'{name}"
