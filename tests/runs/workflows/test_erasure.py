"""An erased text is nowhere in the folder, and the run still verifies."""

import hashlib
import json
import shutil
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import ERASED_PLACEHOLDER
from jurygraph.runs.workflows.erasure import erase, preview_erasure
from tests.runs.sample_runs import (
    FULL_CONFIG,
    make_tasks,
    score,
    trace_contents,
    traces_of,
    verify_run,
    write_tasks,
)
from tests.runs.store.test_ledger import execute_sql

SECRET = "my own words, which\nI take back: «naïve» 'quoted' \"twice\" \\ and 日本"


def read_folder(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def traces_containing(text: str) -> list[bytes]:
    """Assert that neither a text, in plain or JSON form, nor its hashes are in a folder."""
    plain, ascii_ = json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]
    digest = hashlib.sha256(text.encode())
    return [
        text.encode(),
        plain.encode(),
        ascii_.encode(),
        digest.digest(),
        digest.hexdigest().encode(),
    ]


def assert_gone(folder: Path, text: str) -> None:
    content = read_folder(folder)
    for form in traces_containing(text):
        assert form not in content, form


@pytest.fixture(scope="module")
def scored_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("erasure")
    given = make_tasks()
    given[1]["responses"][0]["text"] = SECRET
    given[2]["responses"][2]["text"] = f"I repeat: {SECRET}!"
    given[0]["responses"][1]["text"] = ""
    score(folder / "run", write_tasks(folder / "given", given), FULL_CONFIG)
    return folder


@pytest.fixture
def run(tmp_path: Path, scored_once: Path) -> Path:
    """A run in which one response's words are quoted by verdicts on it, on others and in material, and copied."""
    shutil.copytree(scored_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


def test_an_erased_response_is_gone_from_the_folder_and_the_run_verifies(run: Path) -> None:
    assert SECRET.encode() in read_folder(run), "it was there"
    before = [trace.reward for trace in traces_of(run)]
    done = erase(run, "response", "t1/r0", "asked for by its author")
    assert_gone(run, SECRET)
    found = verify_run(run)
    assert found.erased == done.erased + done.erased_in_others
    assert [trace.reward for trace in traces_of(run)] == before


def test_other_texts_are_kept(run: Path) -> None:
    before = {trace.response_id: trace for trace in traces_of(run)}
    erase(run, "response", "t1/r0", "")
    after = {trace.response_id: trace for trace in traces_of(run)}
    for name in ("t0/r0", "t0/r2", "t3/r1"):
        assert after[name].verdicts == before[name].verdicts
    for name in ("t1/r1", "t2/r0"):
        reasons = {verdict.question: verdict.reason for verdict in after[name].verdicts}
        assert reasons["same"] == {v.question: v.reason for v in before[name].verdicts}["same"]


def test_a_copy_in_another_response_is_erased_with_its_verdicts_and_digests(run: Path) -> None:
    group = Run.open(run).find_trace("t2/r2").group
    assert erase(run, "response", "t1/r0", "").erased_in_others > 0
    there = {one.trace.response_id: one for one in Run.open(run).scored_responses()}
    assert there["t2/r2"].response is None
    assert there["t2/r1"].response is not None
    reasons = {
        verdict.reason for verdict in there["t2/r2"].trace.verdicts if verdict.score is not None
    }
    assert reasons <= {ERASED_PLACEHOLDER, ""}
    assert group.encode() not in read_folder(run)


@pytest.mark.parametrize(
    ("what", "names"),
    [("response", ["t1/r0"]), ("task", ["t1"]), ("response", ["t1/r0", "t3/r0"])],
)
def test_a_preview_says_what_an_erasure_touches_and_writes_nothing(
    run: Path, what: Any, names: list[str]
) -> None:
    before = read_folder(run)
    expected = preview_erasure(run, what, names)
    assert read_folder(run) == before
    assert set(expected.responses) >= {"t2/r2", "t2/r0"}  # the copy, and what was compared with it
    assert not {*names} & {*expected.responses}
    assert erase(run, what, names, "") == expected
    with closing(Run.open(run)) as erased:
        assert [record.key for record in erased.ledger.records("erasure")] == names
        assert names[-1] in {*erased.ledger.keys("trace"), *erased.ledger.keys("task")}
    verify_run(run)


def test_an_erased_task_is_gone_with_its_responses(run: Path) -> None:
    texts = [one.response.text for one in Run.open(run).group_of("t3") if one.response]
    erase(run, "task", "t3", "")
    for text in (
        *texts,
        "The reference of task 3.",
        "How would one say the number 3, and to whom?",
    ):
        assert_gone(run, text)
    verify_run(run)
    with pytest.raises(InputError, match="the texts of task 't3' were erased, its plan with them"):
        Run.open(run).plan_of("t3")
    assert Run.open(run).find_trace("t3/r0").plan_digest == ERASED_PLACEHOLDER


def test_the_record_of_an_erasure_has_reason_and_ids_and_no_text(run: Path) -> None:
    erase(run, "response", "t1/r0", "asked for by its author")
    record = Run.open(run).ledger.find("erasure", "t1/r0")
    assert record is not None
    assert record.content | {"ids": []} == {
        "what": "response",
        "reason": "asked for by its author",
        "ids": [],
    }


def test_the_digests_of_the_scored_files_are_erased(run: Path, tmp_path: Path) -> None:
    tasks = tmp_path / "given" / "tasks.jsonl"
    digest = hashlib.sha256(tasks.read_bytes()).hexdigest().encode()
    assert digest in read_folder(run)
    erase(run, "response", "t1/r0", "")
    assert digest not in read_folder(run)
    assert Run.open(run).header.tasks.sha256 == ERASED_PLACEHOLDER


def test_a_run_can_be_resumed_after_an_erasure(tmp_path: Path) -> None:
    tasks = write_tasks(tmp_path / "given", make_tasks())
    score(tmp_path / "run", tasks, FULL_CONFIG, limit=2)
    erase(tmp_path / "run", "response", "t1/r0", "")
    score(tmp_path / "run", tasks, FULL_CONFIG)
    assert verify_run(tmp_path / "run").traces == 12
    other = make_tasks()
    other[3]["query"] = "Another?"
    with pytest.raises(InputError, match="task 't3', field query"):
        score(tmp_path / "run", write_tasks(tmp_path / "other", other), FULL_CONFIG)


def test_an_erasure_is_refused_while_the_run_is_read(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jurygraph.runs.store.ledger.LOCK_TIMEOUT_SECONDS", 0.0)
    refused = pytest.raises(InputError, match=r"another program reads the run just now; end it")
    before = read_folder(run)
    with closing(Run.open(run)) as reader:
        with reader.ledger.snapshot_transaction(), refused:
            erase(run, "response", "t1/r0", "")
        assert read_folder(run) == before
        erase(run, "response", "t1/r0", "")
    assert_gone(run, SECRET)


def test_a_task_that_contains_the_text_is_named_and_kept(tmp_path: Path) -> None:
    given = make_tasks()
    given[0]["reference"] = given[1]["responses"][0]["text"] = SECRET
    score(tmp_path / "run", write_tasks(tmp_path / "given", given), FULL_CONFIG)
    assert erase(tmp_path / "run", "response", "t1/r0", "").tasks == ["t0"]
    assert Run.open(tmp_path / "run").plan_of("t0").task_id == "t0"
    erase(tmp_path / "run", "task", "t0", "")
    assert_gone(tmp_path / "run", SECRET)


def test_a_planned_task_can_be_erased_before_it_is_scored(run: Path, tmp_path: Path) -> None:
    first_scored = "(SELECT min(seq) FROM records WHERE kind IN ('group', 'trace'))"
    execute_sql(run / "run.sqlite", f"DELETE FROM texts WHERE id >= {first_scored} << 20")
    execute_sql(run / "run.sqlite", f"DELETE FROM records WHERE seq >= {first_scored}")
    erase(run, "task", "t3", "")
    for text in (
        *(response["text"] for response in make_tasks()[3]["responses"]),
        "The reference of task 3.",
    ):
        assert_gone(run, text)
    with pytest.raises(InputError, match="the texts of task 't3' were erased, its plan with them"):
        score(run, tmp_path / "given" / "tasks.jsonl", FULL_CONFIG)
    verify_run(run)


def test_an_erasure_hides_no_earlier_change(run: Path) -> None:
    execute_sql(run / "run.sqlite", "UPDATE records SET at = at + 1 WHERE key = 't0/r0'")
    with suppress(TraceMismatch):
        erase(run, "response", "t1/r0", "")
    with pytest.raises(TraceMismatch):
        verify_run(run)


@pytest.mark.parametrize(
    ("what", "name", "message"),
    [
        ("response", "t1/r9", r"there is no response 't1/r9'; did you mean t1/r"),
        ("task", "x", "there is no task 'x'"),
    ],
)
def test_unknown_ids_are_refused(run: Path, what: Any, name: str, message: str) -> None:
    before = trace_contents(run)
    with pytest.raises(InputError, match=message):
        erase(run, what, name, "")
    assert trace_contents(run) == before


def test_a_rescored_run_names_the_run_with_the_texts(run: Path, tmp_path: Path) -> None:
    from tests.runs.workflows.test_rescoring import rescore_run

    rescore_run(run, tmp_path / "other")
    with pytest.raises(InputError, match=r"contains no texts; erase in .*run$"):
        erase(tmp_path / "other", "response", "t1/r0", "")
    erase(run, "response", "t1/r0", "")
    verify_run(tmp_path / "other")
