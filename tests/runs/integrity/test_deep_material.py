"""Asking again where facts rest on what a model took out of the responses: material is looked at as verdicts are."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import TraceMismatch
from jurygraph.runs.integrity.deep_verification import DeepVerification, verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.store import folder as place
from jurygraph.runs.store.chain import MAX_TEXTS, commitment
from tests.agents.extraction.extractor import perfect, reading
from tests.agents.extraction.plans import RECORDS, in_words, task_of_records
from tests.models.server import serving
from tests.runs.integrity.test_verification import rewritten
from tests.runs.made import checked, score, write_tasks

PLANS = [("40", "prose"), ("13", "bullets")]
ASKED = {"evaluators": ["facts.confirmed", "checks.constraints"], "reward": {"confirmed": 1.0}}
WEIGHED = {**ASKED, "reward": {"confirmed": 0.5}}
"""The same questions, weighed otherwise."""


def _line(name: str, layout: str) -> dict[str, Any]:
    task: dict[str, Any] = task_of_records(name).model_dump(mode="json", exclude_defaults=True)
    return {**task, "responses": [{"id": f"{name}/{layout}", "text": in_words(name, layout)}]}


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run, and one that was branched from it; the server is gone."""
    at = tmp_path_factory.mktemp("made")
    tasks = write_tasks(at, [_line(*one) for one in PLANS])
    derivers = [{"use": "extract", "params": {"records": RECORDS}}, "facts.claims"]
    with pytest.MonkeyPatch.context() as patch, serving(reading(lambda text, query: perfect(text))) as server:
        patch.setenv("JURYGRAPH_CACHE", str(at / "cache"))
        shared = {"model": f"openai-compatible:{server.url}#tiny", "derivers": derivers}
        score(at / "run", tasks, {**shared, **ASKED})
        score(at / "branch", tasks, {**shared, **WEIGHED}, branch=at / "run")
        assert server.count == len(PLANS)
    return at / "run", at / "branch"


@pytest.fixture
def run(_made: tuple[Path, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(_made[0], tmp_path / "run"))


@pytest.fixture
def branch(_made: tuple[Path, Path], run: Path) -> Path:
    return Path(shutil.copytree(_made[1], run.parent / "branch"))


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


def deep(folder: Path) -> DeepVerification:
    with closing(Run.open(folder)) as opened:
        return verify_deep(opened, lambda count: None)


def verdicts(folder: Path) -> int:
    with closing(Run.open(folder)) as opened:
        return sum(len(trace.verdicts) for trace in opened.traces())


def quotations(folder: Path) -> int:
    with closing(Run.open(folder)) as opened:
        return sum(len(m.evidence) for trace in opened.traces() for m in trace.material if m.name == "data")


def forged(folder: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change material of this name of the first response, and rewrite the whole chain, as one would who knows how."""
    with closing(sqlite3.connect(folder / place.LEDGER)) as connection, connection:
        (seq,) = connection.execute("SELECT min(seq) FROM records WHERE kind = 'trace'").fetchone()
        texts = "SELECT id, salt, content FROM texts WHERE id >= ? AND id < ?"
        for text, salt, content in connection.execute(texts, (seq * MAX_TEXTS, (seq + 1) * MAX_TEXTS)).fetchall():
            if content.startswith(f'{{"name":"{name}",'.encode()):
                stored = json.loads(content)
                change(stored)
                new = json.dumps(stored, separators=(",", ":"), ensure_ascii=False).encode()
                connection.execute("UPDATE texts SET content = ? WHERE id = ?", (new, text))
                committed = {commitment(salt, content): commitment(salt, new)}

    def commit(kind: str, key: str, content: dict[str, Any]) -> None:
        if kind == "trace":
            content["texts"] = [committed.get(one, one) for one in content["texts"]]

    rewritten(folder, commit)
    checked(folder)


def test_a_run_is_derived_and_judged_again_with_its_server_gone(run: Path) -> None:
    assert deep(run) == DeepVerification(recomputed=verdicts(run), quotations=quotations(run))
    assert quotations(run) > 0


def test_a_branch_has_its_facts_and_checks_judged_from_the_material_that_it_carried_over(branch: Path) -> None:
    assert deep(branch) == DeepVerification(recomputed=verdicts(branch), quotations=quotations(branch))


@pytest.mark.parametrize("of", ["run", "branch"])
def test_a_quotation_of_material_that_does_not_stand_there_is_named(of: str, run: Path, branch: Path) -> None:
    forged({"run": run, "branch": branch}[of], "data", lambda data: data["evidence"][1].update(quote="Le Bernardin"))
    with pytest.raises(TraceMismatch, match=r"material 'data': its quotation is not at characters \d+ to \d+"):
        deep({"run": run, "branch": branch}[of])


def of_another_name(data: dict[str, Any]) -> None:
    data["data"]["meals"][0]["name"] = "Le Bernardin"


FORGERIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "data": of_another_name,
    "evidence": lambda data: data["evidence"].pop(),
    "evidence ": lambda data: data["evidence"][0].update(verified=False, quote="Le Bernardin"),
    "note": lambda data: data.update(note="nothing"),
    "data ": lambda data: data.update(call=None, data={}),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_material_that_the_reply_does_not_give_is_named(what: str, run: Path) -> None:
    forged(run, "data", FORGERIES[what])
    with pytest.raises(TraceMismatch, match=rf"trace '40/prose', material 'data': {what.strip()} is .* in the run and"):
        deep(run)


def test_material_cannot_claim_a_reply_that_lies_elsewhere_where_nothing_was_carried_over(run: Path) -> None:
    forged(run, "data", lambda data: data.update(call="x"))
    with pytest.raises(TraceMismatch, match="material 'data': depends on a call that the run does not contain"):
        deep(run)


@pytest.mark.parametrize("of", ["run", "branch"])
def test_material_that_follows_from_other_material_is_derived_again(of: str, run: Path, branch: Path) -> None:
    forged({"run": run, "branch": branch}[of], "claims", lambda claims: claims["data"].update(meals=[]))
    with pytest.raises(TraceMismatch, match="material 'claims': data is "):
        deep({"run": run, "branch": branch}[of])


def test_what_a_branch_carried_over_must_give_its_facts(branch: Path) -> None:
    forged(branch, "data", of_another_name)
    with pytest.raises(TraceMismatch, match="material 'claims': data is "):
        deep(branch)
