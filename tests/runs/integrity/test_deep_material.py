"""Deep verification of material: it is recomputed and compared as verdicts are."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import TraceMismatch
from jurygraph.runs.integrity.deep_verification import DeepVerificationCounts
from jurygraph.runs.run import Run
from jurygraph.runs.store import folder as run_folder
from jurygraph.runs.store.ledger import MAX_TEXTS_PER_RECORD, commitment
from tests.agents.extraction.extractor import read_perfectly, reader_script
from tests.agents.extraction.plans import RECORDS, in_words, task_of_records
from tests.models.server import run_server
from tests.runs.integrity.test_verification import rewrite_chain
from tests.runs.sample_runs import (
    score,
    verify_deeply,
    verify_run,
    word_repairs_otherwise,
    write_tasks,
)

PLANS = [("40", "prose"), ("13", "bullets")]
ASKED = {"evaluators": ["facts.confirmed", "checks.constraints"], "reward": {"confirmed": 1.0}}
WEIGHED = {**ASKED, "reward": {"confirmed": 0.5}}
"""The same questions with another weight."""


def _line(name: str, layout: str) -> dict[str, Any]:
    task: dict[str, Any] = task_of_records(name).model_dump(mode="json", exclude_defaults=True)
    return {**task, "responses": [{"id": f"{name}/{layout}", "text": in_words(name, layout)}]}


@pytest.fixture(scope="module")
def _scored_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run and a branch of it; the server is gone."""
    at = tmp_path_factory.mktemp("made")
    tasks = write_tasks(at, [_line(*one) for one in PLANS])
    derivers = [{"use": "extract", "params": {"records": RECORDS}}, "facts.claims"]
    with (
        pytest.MonkeyPatch.context() as patch,
        run_server(reader_script(lambda text, query: read_perfectly(text))) as server,
    ):
        patch.setenv("JURYGRAPH_CACHE", str(at / "cache"))
        shared = {"model": f"openai-compatible:{server.url}#tiny", "derivers": derivers}
        score(at / "run", tasks, {**shared, **ASKED})
        score(at / "branch", tasks, {**shared, **WEIGHED}, branch=at / "run")
        assert server.count == len(PLANS)
    return at / "run", at / "branch"


@pytest.fixture
def run(_scored_run: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(_scored_run[0], tmp_path / "run"))


@pytest.fixture
def branch(_scored_run: tuple[Path, Path], run: Path) -> Path:
    return Path(shutil.copytree(_scored_run[1], run.parent / "branch"))


@pytest.fixture(autouse=True)
def _isolate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


def count_verdicts(folder: Path) -> int:
    with closing(Run.open(folder)) as opened:
        return sum(len(trace.verdicts) for trace in opened.traces())


def count_quotations(folder: Path) -> int:
    with closing(Run.open(folder)) as opened:
        return sum(
            len(m.evidence) for trace in opened.traces() for m in trace.material if m.name == "data"
        )


def forge_material(folder: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change material of the first response and recompute the whole chain, as a skilled forger would."""
    with closing(sqlite3.connect(folder / run_folder.LEDGER_FILE)) as connection, connection:
        (seq,) = connection.execute("SELECT min(seq) FROM records WHERE kind = 'trace'").fetchone()
        texts = "SELECT id, salt, content FROM texts WHERE id >= ? AND id < ?"
        for text, salt, content in connection.execute(
            texts, (seq * MAX_TEXTS_PER_RECORD, (seq + 1) * MAX_TEXTS_PER_RECORD)
        ).fetchall():
            if content.startswith(f'{{"name":"{name}",'.encode()):
                stored = json.loads(content)
                change(stored)
                new = json.dumps(stored, separators=(",", ":"), ensure_ascii=False).encode()
                connection.execute("UPDATE texts SET content = ? WHERE id = ?", (new, text))
                committed = {commitment(salt, content): commitment(salt, new)}

    def commit(kind: str, key: str, content: dict[str, Any]) -> None:
        if kind == "trace":
            content["texts"] = [committed.get(one, one) for one in content["texts"]]

    rewrite_chain(folder, commit)
    verify_run(folder)


@pytest.mark.landing
def test_material_and_verdicts_are_recomputed_without_the_server(run: Path) -> None:
    assert verify_deeply(run) == DeepVerificationCounts(
        recomputed=count_verdicts(run), quotations=count_quotations(run)
    )
    assert count_quotations(run) > 0


def test_a_branch_is_verified_with_the_carried_over_material(branch: Path) -> None:
    assert verify_deeply(branch) == DeepVerificationCounts(
        recomputed=count_verdicts(branch), quotations=count_quotations(branch)
    )


@pytest.mark.parametrize("of", ["run", "branch"])
def test_a_misplaced_quotation_in_material_is_named(of: str, run: Path, branch: Path) -> None:
    forge_material(
        {"run": run, "branch": branch}[of],
        "data",
        lambda data: data["evidence"][1].update(quote="Le Bernardin"),
    )
    with pytest.raises(
        TraceMismatch, match=r"material 'data': its quotation is not at characters \d+ to \d+"
    ):
        verify_deeply({"run": run, "branch": branch}[of])


def rename_material(data: dict[str, Any]) -> None:
    data["data"]["meals"][0]["name"] = "Le Bernardin"


FORGERIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "data": rename_material,
    "evidence": lambda data: data["evidence"][0].update(verified=False, quote="Le Bernardin"),
    "note": lambda data: data.update(note="nothing"),
    "data ": lambda data: data.update(call=None, data={}),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_material_that_differs_from_the_reply_is_named(what: str, run: Path) -> None:
    forge_material(run, "data", FORGERIES[what])
    with pytest.raises(
        TraceMismatch,
        match=rf"trace '40/prose', material 'data': {what.strip()} is .* in the run and",
    ):
        verify_deeply(run)


def test_material_is_recomputed_though_its_repair_is_worded_otherwise_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = write_tasks(tmp_path, [_line(*PLANS[0])])
    script = reader_script(lambda text, query: {}, lambda text, query: read_perfectly(text))
    derivers = [{"use": "extract", "params": {"records": RECORDS}}, "facts.claims"]
    with run_server(script) as server:
        model = f"openai-compatible:{server.url}#tiny"
        score(tmp_path / "run", tasks, {"model": model, "derivers": derivers, **ASKED})
        assert server.count == 2
    word_repairs_otherwise(monkeypatch)
    recomputed = count_verdicts(tmp_path / "run")
    assert verify_deeply(tmp_path / "run")[:5:2] == (recomputed, 0, 0)
    forge_material(tmp_path / "run", "data", rename_material)
    with pytest.raises(TraceMismatch, match=r"trace '40/prose', material 'data': data is .* in"):
        verify_deeply(tmp_path / "run")


def test_material_of_a_missing_call_is_refused_without_a_branch(run: Path) -> None:
    forge_material(run, "data", lambda data: data.update(calls=[{"id": "x", "purpose": "derive"}]))
    with pytest.raises(
        TraceMismatch, match="material 'data': depends on a call that the run does not contain"
    ):
        verify_deeply(run)


@pytest.mark.parametrize(
    ("name", "change"),
    [("claims", lambda claims: claims["data"].update(meals=[])), ("data", rename_material)],
)
def test_reused_material_is_recomputed(
    branch: Path, name: str, change: Callable[[dict[str, Any]], None]
) -> None:
    forge_material(branch, name, change)
    with pytest.raises(TraceMismatch, match=f"material '{name}': data is "):
        verify_deeply(branch)


def test_a_reply_that_was_changed_in_the_other_run_is_found(run: Path, branch: Path) -> None:
    rewrite_chain(run, lambda kind, key, content: content.pop("texts") if kind == "call" else None)
    with pytest.raises(
        TraceMismatch, match=r"record \d+: is not the one from which .*branch was branched"
    ):
        verify_deeply(branch)


def test_reused_material_must_lead_to_the_stored_verdicts_without_the_other_run(
    run: Path, branch: Path
) -> None:
    shutil.rmtree(run)
    assert verify_deeply(branch).recomputed == count_verdicts(branch)
    forge_material(branch, "data", rename_material)
    with pytest.raises(TraceMismatch, match="material 'claims': data is "):
        verify_deeply(branch)
