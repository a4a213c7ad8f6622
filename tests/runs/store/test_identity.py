"""The identity of a run's model: another model behind the same name is found, and verification needs no model."""

import json
import shutil
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.integrity.deep_verification import DeepVerificationCounts
from jurygraph.runs.run import Run
from jurygraph.runs.store.header import ModelIdentity
from jurygraph.runs.store.ledger import MAX_TEXTS_PER_RECORD
from jurygraph.runs.workflows.erasure import erase
from tests.models.server import Server, run_server, status
from tests.models.tiny_gguf import CHAT, write_tiny
from tests.runs.sample_runs import rescore_run, verify_deeply, verify_run, write_tasks
from tests.runs.store.test_ledger import execute_sql
from tests.runs.test_calls import CALLS_EACH, judge_config, run_session, tasks_with_rubrics


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, tasks_with_rubrics(2))


def stored_identity(folder: Path) -> ModelIdentity | None:
    with closing(Run.open(folder)) as run:
        return run.header.model


def count_quotations(folder: Path) -> int:
    """Return the number of quotations in a run."""
    with closing(Run.open(folder)) as run:
        return sum(len(verdict.evidence) for trace in run.traces() for verdict in trace.verdicts)


def gguf_config(path: Path, **calls: Any) -> dict[str, Any]:
    return {
        "model": f"gguf:{path}",
        "evaluators": ["criteria"],
        "calls": {"max_tokens": 8, **calls},
    }


class TestHeader:
    def test_the_header_identifies_the_model_as_requests_do(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        run_session(tmp_path / "run", tasks, judge_config(server))
        expected = {
            "provider": "openai-compatible",
            "endpoint": server.url,
            "model": "tiny",
            "form": "native",
        }
        found = stored_identity(tmp_path / "run")
        assert found is not None
        assert found.model_dump() == {**expected, "top_logprobs": 20}
        verify_run(tmp_path / "run")

    def test_a_recording_has_the_identity_of_the_recorded_model(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        run_session(
            tmp_path / "run", tasks, judge_config(server, record=str(tmp_path / "calls.jsonl"))
        )
        run_session(
            tmp_path / "again",
            tasks,
            {"model": f"replay:{tmp_path / 'calls.jsonl'}", "evaluators": ["criteria"]},
        )
        assert stored_identity(tmp_path / "again") == stored_identity(tmp_path / "run")


@pytest.fixture(scope="module")
def stored_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Score a run with a GGUF file that is replaced afterwards; return its folder and settings."""
    folder = tmp_path_factory.mktemp("replaced")
    settings = gguf_config(write_tiny(folder / "judge.gguf"), cache=False)
    run_session(folder / "run", write_tasks(folder, tasks_with_rubrics(2)), settings)
    write_tiny(folder / "judge.gguf", CHAT + " ")
    return folder / "run", settings


@pytest.mark.heavy
class TestReplacedModel:
    """The config is the same, and the model behind it another one."""

    @pytest.fixture
    def replaced_model(
        self, stored_run: tuple[Path, dict[str, Any]], tmp_path: Path
    ) -> dict[str, Any]:
        """Copy the run, and return its settings."""
        folder, settings = stored_run
        shutil.copytree(folder, tmp_path / "run")
        return settings

    def test_resuming_is_refused_and_both_models_are_named(
        self, replaced_model: dict[str, Any], tasks: Path, tmp_path: Path
    ) -> None:
        before = (tmp_path / "run" / "run.sqlite").read_bytes()
        there = stored_identity(tmp_path / "run")
        assert there is not None
        with pytest.raises(InputError) as caught:
            run_session(tmp_path / "run", tasks, replaced_model)
        said = str(caught.value)
        assert (
            f'the model behind {replaced_model["model"]} has the endpoint "{there.endpoint}" in the run and "sha256:'
            in said
        )
        assert said.endswith("use another --out, or --branch to request only what changed")
        assert (tmp_path / "run" / "run.sqlite").read_bytes() == before

    def test_a_branch_requests_everything_from_the_new_model(
        self, replaced_model: dict[str, Any], tasks: Path, tmp_path: Path
    ) -> None:
        run_session(tmp_path / "new", tasks, replaced_model, branch=tmp_path / "run")
        old, new = stored_identity(tmp_path / "run"), stored_identity(tmp_path / "new")
        assert old != new
        with closing(Run.open(tmp_path / "new")) as run:
            assert new is not None
            calls = [call for trace in run.traces() for call in trace.calls]
            assert {call.endpoint for call in calls} == {new.endpoint}
            assert len(calls) == 2 * 2 * CALLS_EACH


class TestVerifiedWithoutAModel:
    def assert_recomputed(self, folder: Path, verdicts: int) -> None:
        assert verify_deeply(folder) == DeepVerificationCounts(
            recomputed=verdicts, quotations=count_quotations(folder)
        )

    def test_a_custom_chat_model_need_not_be_importable(
        self, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one = {"reason": "so it is", "quotes": [], "met": False, "probability": 0.25}
        replies = [
            json.dumps({f"criterion_{place}": one for place in range(1, n + 1)}) for n in (4, 1)
        ] * 4
        source = "from langchain_core.language_models import FakeListChatModel\n\n"
        (tmp_path / "own_chat.py").write_text(
            f"{source}judge = FakeListChatModel(responses={replies!r})\n"
        )
        monkeypatch.syspath_prepend(tmp_path)
        settings = {
            "model": "langchain:own_chat.judge",
            "evaluators": ["criteria"],
            "calls": {"concurrency": 1},
        }
        run_session(tmp_path / "run", tasks, settings)
        (tmp_path / "own_chat.py").unlink()
        monkeypatch.delitem(sys.modules, "own_chat")
        with pytest.raises(jg.ConfigError):
            jg.Jury.from_config(settings)
        assert verify_deeply(tmp_path / "run").recomputed == 2 * 2 * 5

    def test_a_run_without_any_reply_verifies(self, tasks: Path, tmp_path: Path) -> None:
        with run_server(lambda body, number: status(400)) as server:
            run_session(tmp_path / "run", tasks, judge_config(server))
        assert verify_deeply(tmp_path / "run") == DeepVerificationCounts(
            transient_failures=2 * 2 * 5
        )

    def test_a_changed_reply_is_found(
        self, server: Server, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_session(tmp_path / "run", tasks, judge_config(server))
        monkeypatch.setattr(
            "jurygraph.judges.criteria.probability_of_true", lambda reply, path: 0.123
        )
        with pytest.raises(
            TraceMismatch, match=r"score is 0\.\d+ in the run and 0\.123 when recomputed"
        ):
            verify_deeply(tmp_path / "run")

    def test_a_rescored_run_with_erased_calls_verifies(
        self, server: Server, tmp_path: Path
    ) -> None:
        twins = tasks_with_rubrics(2, 1)
        for task in twins:
            task["query"], task["responses"][0]["text"] = "Write a letter.", "Dear Anna"
        run_session(tmp_path / "run", write_tasks(tmp_path, twins), judge_config(server))
        erase(tmp_path / "run", "response", "t0/r0", "")
        rescore_run(tmp_path / "run", tmp_path / "other", "failure.rule=gear")
        assert verify_deeply(tmp_path / "other") == verify_deeply(tmp_path / "run")
        assert verify_deeply(tmp_path / "run")._replace(quotations=0) == DeepVerificationCounts(
            needing_model=5, erased=5
        )

    @pytest.mark.parametrize("change", ["UPDATE texts SET content = x'00'", "DELETE FROM texts"])
    def test_a_changed_reply_in_the_run_that_was_branched_from_is_found(
        self, server: Server, tasks: Path, tmp_path: Path, change: str
    ) -> None:
        run_session(tmp_path / "old", tasks, judge_config(server))
        run_session(tmp_path / "run", tasks, judge_config(server), branch=tmp_path / "old")
        with closing(Run.open(tmp_path / "old")) as old:
            reply = next(old.ledger.records("call")).seq * MAX_TEXTS_PER_RECORD + 1
        execute_sql(tmp_path / "old" / "run.sqlite", f"{change} WHERE id = {reply}")
        with pytest.raises(
            TraceMismatch,
            match=rf"old.run.sqlite, text {reply} of record \d+ .*(differs|is missing)",
        ):
            verify_deeply(tmp_path / "run")

    def test_a_rescored_branch_with_calls_in_another_run_verifies(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        run_session(tmp_path / "old", tasks, judge_config(server))
        run_session(tmp_path / "run", tasks, judge_config(server), branch=tmp_path / "old")
        rescore_run(tmp_path / "run", tmp_path / "other", "failure.rule=gear")
        for folder in ("run", "other"):
            self.assert_recomputed(tmp_path / folder, 2 * 2 * 5)
        shutil.rmtree(tmp_path / "old")
        quotations = count_quotations(tmp_path / "run")
        found = DeepVerificationCounts(needing_model=2 * 2 * 5, quotations=quotations)
        assert verify_deeply(tmp_path / "other") == verify_deeply(tmp_path / "run") == found
        assert quotations > 0
