"""Which model a run asked: another one behind the same name is found, and to verify the run none is needed."""

import asyncio
import json
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.models.backend import Capabilities
from jurygraph.models.faults import Fault
from jurygraph.models.request import Request
from jurygraph.runs.integrity.deep_verification import DeepVerification, OfflineBackend, verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.store.header import ModelIdentity, model_of
from jurygraph.runs.workflows.erasure import erase
from tests.models.server import Server, said, serving, status
from tests.models.tiny_gguf import CHAT, write_tiny
from tests.runs.made import checked, lines, score, write_tasks
from tests.runs.test_calls import CALLS_EACH, plain, sit
from tests.runs.test_calls import lines as with_rubrics
from tests.runs.workflows.test_rescoring import again


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return write_tasks(tmp_path, with_rubrics(2))


def told(folder: Path) -> ModelIdentity | None:
    with closing(Run.open(folder)) as run:
        return run.header.model


def deep(folder: Path) -> DeepVerification:
    with closing(Run.open(folder)) as run:
        return verify_deep(run, lambda count: None)


def quoted(folder: Path) -> int:
    """How many quotations stand in a run."""
    with closing(Run.open(folder)) as run:
        return sum(len(verdict.evidence) for trace in run.traces() for verdict in trace.verdicts)


def local(path: Path, **calls: Any) -> dict[str, Any]:
    return {"model": f"gguf:{path}", "evaluators": ["criteria"], "calls": {"max_tokens": 8, **calls}}


class TestTold:
    def test_the_header_names_the_model_as_requests_do(self, server: Server, tasks: Path, tmp_path: Path) -> None:
        sit(tmp_path / "run", tasks, plain(server))
        expected = {"provider": "openai-compatible", "endpoint": server.url, "model": "tiny", "form": "native"}
        found = told(tmp_path / "run")
        assert found is not None
        assert found.model_dump() == {**expected, "top_logprobs": 20}
        checked(tmp_path / "run")

    def test_a_recording_goes_by_the_name_of_what_was_recorded(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        sit(tmp_path / "run", tasks, plain(server, record=str(tmp_path / "calls.jsonl")))
        sit(tmp_path / "again", tasks, {"model": f"replay:{tmp_path / 'calls.jsonl'}", "evaluators": ["criteria"]})
        assert told(tmp_path / "again") == told(tmp_path / "run")

    def test_who_asks_no_model_says_nothing_of_one(self, tmp_path: Path) -> None:
        score(tmp_path / "run", write_tasks(tmp_path, lines(1)))
        with closing(Run.open(tmp_path / "run")) as run:
            assert "model" not in json.loads(run.ledger.record_at(1).body)

    @pytest.mark.parametrize("top", [None, 0, 5])
    def test_who_stands_in_for_a_model_goes_by_its_name(self, top: int | None) -> None:
        identity = ModelIdentity(provider="p", endpoint="e", model="m", form="grammar", top_logprobs=top)
        assert ModelIdentity.of(OfflineBackend(identity)) == identity


class TestReplaced:
    """The config says what it said, and leads to another model."""

    @pytest.fixture
    def begun(self, tasks: Path, tmp_path: Path) -> dict[str, Any]:
        """A run of a GGUF file that has been replaced since; the settings with which it was begun."""
        settings = local(write_tiny(tmp_path / "judge.gguf"))
        sit(tmp_path / "run", tasks, settings)
        write_tiny(tmp_path / "judge.gguf", CHAT + " ")
        return settings

    def test_a_resume_is_refused_and_both_are_named(self, begun: dict[str, Any], tasks: Path, tmp_path: Path) -> None:
        before = (tmp_path / "run" / "run.sqlite").read_bytes()
        there = told(tmp_path / "run")
        assert there is not None
        with pytest.raises(InputError) as caught:
            sit(tmp_path / "run", tasks, begun)
        said = str(caught.value)
        assert f'the model behind {begun["model"]} has the endpoint "{there.endpoint}" in the run and "sha256:' in said
        assert said.endswith("use another --out, or --branch to request only what changed")
        assert (tmp_path / "run" / "run.sqlite").read_bytes() == before

    def test_a_branch_asks_the_new_one_everything(self, begun: dict[str, Any], tasks: Path, tmp_path: Path) -> None:
        sit(tmp_path / "new", tasks, begun, branch=tmp_path / "run")
        old, new = told(tmp_path / "run"), told(tmp_path / "new")
        assert old != new
        with closing(Run.open(tmp_path / "new")) as run:
            assert new is not None
            calls = [call for trace in run.traces() for call in trace.calls]
            assert {call.endpoint for call in calls} == {new.endpoint}
            assert len(calls) == 2 * 2 * CALLS_EACH

    def test_the_run_verifies_all_the_same(self, begun: dict[str, Any], tmp_path: Path) -> None:
        found = deep(tmp_path / "run")
        assert found.recomputed > 0
        assert found[2:] == (0, 0, 0)

    def test_where_the_config_says_so_itself_the_model_is_not_named_as_well(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        sit(tmp_path / "run", tasks, plain(server, record=str(tmp_path / "calls.jsonl")))
        instructed = plain(server, form="instructed")
        replayed = {**plain(server), "model": f"replay:{tmp_path / 'calls.jsonl'}"}
        for settings in (instructed, replayed):
            with pytest.raises(InputError, match=r": config (calls\.form|model) is") as caught:
                sit(tmp_path / "run", tasks, settings)
            assert "the model behind" not in str(caught.value)


class TestVerifiedWithoutAModel:
    def same(self, folder: Path, verdicts: int) -> None:
        assert deep(folder) == DeepVerification(recomputed=verdicts, quotations=quoted(folder))

    def test_the_file_of_a_local_model_may_be_gone(self, tasks: Path, tmp_path: Path) -> None:
        model = write_tiny(tmp_path / "judge.gguf")
        sit(tmp_path / "run", tasks, local(model))
        model.unlink()
        self.same(tmp_path / "run", 2 * 2 * 5)

    def test_a_recording_may_be_gone(self, server: Server, tasks: Path, tmp_path: Path) -> None:
        recording = tmp_path / "calls.jsonl"
        sit(tmp_path / "first", tasks, plain(server, form="instructed", record=str(recording)))
        sit(tmp_path / "run", tasks, {"model": f"replay:{recording}", "evaluators": ["criteria"]})
        recording.unlink()
        self.same(tmp_path / "run", 2 * 2 * 5)

    def test_a_chat_model_of_ones_own_need_not_be_importable(
        self, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one = {"reason": "so it is", "quotes": [], "met": False, "probability": 0.25}
        replies = [json.dumps({f"criterion_{place}": one for place in range(1, n + 1)}) for n in (4, 1)] * 4
        source = "from langchain_core.language_models import FakeListChatModel\n\n"
        (tmp_path / "own_chat.py").write_text(f"{source}judge = FakeListChatModel(responses={replies!r})\n")
        monkeypatch.syspath_prepend(tmp_path)
        settings = {"model": "langchain:own_chat.judge", "evaluators": ["criteria"], "calls": {"concurrency": 1}}
        sit(tmp_path / "run", tasks, settings)
        (tmp_path / "own_chat.py").unlink()
        monkeypatch.delitem(sys.modules, "own_chat")
        with pytest.raises(jg.ConfigError):
            jg.Jury.from_config(settings)
        assert deep(tmp_path / "run").recomputed == 2 * 2 * 5

    def test_a_run_of_which_nothing_was_answered(self, tasks: Path, tmp_path: Path) -> None:
        with serving(lambda body, number: status(401)) as server:
            sit(tmp_path / "run", tasks, plain(server))
        assert deep(tmp_path / "run") == DeepVerification(needing_model=2 * 2 * 5)

    def test_a_call_whose_repair_came_to_nothing_is_our_own_trouble(self, tasks: Path, tmp_path: Path) -> None:
        with serving(lambda body, number: status(400) if len(body["messages"]) > 2 else said("no JSON")) as server:
            sit(tmp_path / "run", tasks, plain(server))
        assert deep(tmp_path / "run") == DeepVerification(infrastructure_failures=2 * 2 * 5)

    def test_a_reply_that_says_another_thing_is_found(
        self, server: Server, tasks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sit(tmp_path / "run", tasks, plain(server))
        monkeypatch.setattr("jurygraph.agents.judging.forms.p_true", lambda reply, path: 0.123)
        with pytest.raises(TraceMismatch, match=r"score is 0\.\d+ in the run and 0\.123 when recomputed"):
            deep(tmp_path / "run")

    def test_a_re_scored_run_whose_calls_were_erased(self, server: Server, tmp_path: Path) -> None:
        twins = with_rubrics(2, 1)
        for task in twins:
            task["query"], task["responses"][0]["text"] = "Write a letter.", "Dear Anna"
        sit(tmp_path / "run", write_tasks(tmp_path, twins), plain(server))
        erase(tmp_path / "run", "response", "t0/r0", "")
        again(tmp_path / "run", tmp_path / "other", "failure.rule=gear")
        assert deep(tmp_path / "other") == deep(tmp_path / "run")
        assert deep(tmp_path / "run")._replace(quotations=0) == DeepVerification(needing_model=5, erased=5)

    def test_a_re_scored_branch_whose_calls_are_in_another_run(
        self, server: Server, tasks: Path, tmp_path: Path
    ) -> None:
        sit(tmp_path / "old", tasks, plain(server))
        sit(tmp_path / "run", tasks, plain(server), branch=tmp_path / "old")
        again(tmp_path / "run", tmp_path / "other", "failure.rule=gear")
        found = DeepVerification(needing_model=2 * 2 * 5, quotations=quoted(tmp_path / "run"))
        assert deep(tmp_path / "other") == deep(tmp_path / "run") == found
        assert found.quotations > 0


class TestRequests:
    """What the requests in a ledger tell of the model that they were for."""

    @pytest.mark.parametrize(("logprobs", "top"), [(True, 5), (False, None)])
    def test_are_named_by_the_model_and_what_it_can_do(self, logprobs: bool, top: int | None) -> None:
        able = Capabilities("native", logprobs=logprobs, top_logprobs=5)
        backend = SimpleNamespace(provider="p", endpoint="http://e", model="m", capabilities=able)
        expected = ModelIdentity(provider="p", endpoint="http://e", model="m", form="native", top_logprobs=top)
        assert ModelIdentity.of(backend) == expected  # type: ignore[arg-type]

    def test_the_model_of_a_jury_is_that_of_its_gateway_if_it_has_one(self) -> None:
        backend = SimpleNamespace(provider="p", endpoint=None, model="m", capabilities=Capabilities("text"))
        with_model: Any = SimpleNamespace(gateway=SimpleNamespace(backend=backend))
        without: Any = SimpleNamespace(gateway=None)
        assert model_of(with_model) == ModelIdentity(provider="p", model="m")
        assert model_of(without) is None

    def request(self, model: str = "m", **fields: Any) -> Request:
        messages = ({"role": "user", "content": "?"},)
        return Request.model_validate(
            {"provider": "p", "endpoint": "e", "model": model, "messages": messages, **fields}
        )

    def test_the_stand_in_can_do_what_the_model_could_and_answers_nothing(self) -> None:
        identity = ModelIdentity(provider="p", endpoint="e", model="m", form="grammar", top_logprobs=5)
        absent = OfflineBackend(identity)
        able = absent.capabilities
        assert (able.form, able.logprobs, able.top_logprobs) == ("grammar", True, 5)
        assert not OfflineBackend(identity.model_copy(update={"top_logprobs": None})).capabilities.logprobs
        with pytest.raises(Fault, match="the run contains no reply to this request") as caught:
            asyncio.run(absent.complete(self.request(), 1.0))
        assert caught.value.kind == "unrecorded"

    def test_a_model_that_gives_no_log_probabilities_gives_no_other_tokens(self) -> None:
        able = SimpleNamespace(form="text", logprobs=False, top_logprobs=20)
        backend: Any = SimpleNamespace(provider="p", endpoint=None, model="m", capabilities=able)
        assert ModelIdentity.of(backend).top_logprobs is None
