"""Deep verification: the stored responses must give the stored verdicts."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.integrity.deep_verification import DeepVerificationCounts, verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.store.ledger import MAX_TEXTS_PER_RECORD, commitment
from jurygraph.runs.workflows.erasure import erase
from jurygraph.schema import Verdict
from tests.graphs.scripted import ScriptedEvaluator
from tests.judges.criteria.scripted_judge import binary_reply, find_everything
from tests.judges.criteria.test_decision import with_tokens
from tests.judges.pairwise.comparisons import LONGER, TASK, judge_script, longest
from tests.models.judge_scripts import response_in, responses, rubric
from tests.models.server import Answer, run_server
from tests.runs.integrity.test_verification import rewrite_chain
from tests.runs.sample_runs import (
    FULL_CONFIG,
    RECORDING,
    REQUESTED,
    RecordingEvaluator,
    evaluator_config,
    make_tasks,
    rescore_run,
    score,
    task_line,
    traces_of,
    verify_deeply,
    write_tasks,
)
from tests.runs.store.test_ledger import execute_sql


def count_verdicts(folder: Path) -> int:
    return sum(v.about == t.response_id for t in Run.open(folder).traces() for v in t.verdicts)


def test_every_verdict_is_recomputed(rich: Path) -> None:
    found = verify_deeply(rich)
    assert found.recomputed == count_verdicts(rich)
    assert found.quotations > 0
    assert not any(found[2:])


def test_a_changed_verdict_is_named(rich: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        RecordingEvaluator,
        "answer",
        lambda self, inputs: 0.5 if inputs.question.scope != "group" else [0.5] * 3,
    )
    with pytest.raises(
        TraceMismatch,
        match=r"trace 't0/r0', verdict '\w+': score is 0\.\d+ in the run and 0\.5 when recomputed",
    ):
        verify_deeply(rich)


def test_a_misplaced_quotation_is_named(rich: Path) -> None:
    def change(kind: str, key: str, content: dict) -> None:
        for verdict in content.get("verdicts", ()):
            if key == "t2/r1" and "evidence" in verdict:
                verdict["evidence"][0][:2] = [1, 10]

    rewrite_chain(rich, change)
    with pytest.raises(
        TraceMismatch, match=r"trace 't2/r1', .*: its quotation is not at characters 1 to 10"
    ):
        verify_deeply(rich)


def test_evaluators_with_their_own_model_are_not_repeated(tmp_path: Path) -> None:
    """An embedder may be unavailable or cost money; other checks are still repeated."""
    own = {"use": RECORDING, "name": "embedded", "params": {"layer": "model"}}
    config = {
        "evaluators": [own, {"use": RECORDING, "name": "tone"}],
        "reward": {"embedded": 1.0, "tone": 1.0},
    }
    response = {"id": "r", "text": "Dear Ann", "data": {"embedded": 0.5, "tone": 0.25}}
    folder = tmp_path / "run"
    score(
        folder,
        write_tasks(tmp_path, [{"id": "t", "query": "Write.", "responses": [response]}]),
        config,
    )
    REQUESTED.clear()
    assert verify_deeply(folder) == DeepVerificationCounts(
        recomputed=1, quotations=2, needing_model=1
    )
    assert [question for question, *_ in REQUESTED] == ["tone"]


@pytest.mark.parametrize(
    "claim", [{"layer": "human"}, {"call": "x"}, {"version": "other"}, {"sample": 7}]
)
def test_a_forged_record_does_not_exempt_a_verdict(rich: Path, claim: dict) -> None:
    def change(kind: str, key: str, content: dict) -> None:
        if key == "t2/r1":
            content["verdicts"][-1] |= {"score": 0.123, **claim}

    rewrite_chain(rich, change)
    with pytest.raises(TraceMismatch, match=r"trace 't2/r1', verdict"):
        verify_deeply(rich)


def test_an_exchanged_response_is_found(rich: Path) -> None:
    texts = {text.id: text for text in Run.open(rich).ledger.all_texts()}
    record = Run.open(rich).ledger.find("trace", "t2/r1")
    assert record is not None
    text = texts[record.seq * MAX_TEXTS_PER_RECORD]
    other = text.content + b" "
    execute_sql(rich / "run.sqlite", "UPDATE texts SET content = ? WHERE id = ?", other, text.id)

    def change(kind: str, key: str, content: dict) -> None:
        if key == "t2/r1":
            content["texts"][0] = commitment(text.salt, other)

    rewrite_chain(rich, change)
    with pytest.raises(
        TraceMismatch, match=r"\(group 't2'\): its responses are not those that were judged"
    ):
        verify_deeply(rich)


def test_another_version_of_an_evaluator_is_refused_at_once(
    rich: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptedEvaluator, "version", "2")
    checked_responses: list[int] = []
    with (
        closing(Run.open(rich)) as run,
        pytest.raises(
            InputError,
            match="was made with evaluator 'late' of version '1'; this jury has 2; put the code and the files that",
        ),
    ):
        verify_deep(run, checked_responses.append)
    assert not checked_responses


def test_transient_failures_are_counted_separately(tmp_path: Path) -> None:
    given = make_tasks()
    given[1]["responses"][0]["data"]["same"] = "infrastructure"
    score(tmp_path / "run", write_tasks(tmp_path / "given", given), FULL_CONFIG)
    found = verify_deeply(tmp_path / "run")
    assert found.transient_failures == 2, "the failed one, and the question that it gates"
    assert found.recomputed + found.transient_failures == count_verdicts(tmp_path / "run")


def test_the_other_responses_of_a_group_with_an_erased_one_are_verified(tmp_path: Path) -> None:
    """But for what depends on the erased one: its comparisons, and a question that waits for one."""
    waiting = evaluator_config("waiting", when={"question": "rank", "threshold": 0.0})
    config = {**FULL_CONFIG, "evaluators": [*FULL_CONFIG["evaluators"], waiting]}
    config["reward"] = {**FULL_CONFIG["reward"], "waiting": 0.1}
    use = {"verdicts_of": "waiting", "if_skipped": "zero"}
    config["components"] = {**FULL_CONFIG["components"], "waiting": {"inputs": {"waiting": use}}}
    run = tmp_path / "run"
    score(run, write_tasks(tmp_path / "given", make_tasks(2)), config)
    before = verify_deeply(run)
    erase(run, "response", "t1/r0", "")
    found = verify_deeply(run)
    assert found.depending_on_erased == 3, "the pair of the others, and what waits for it in each"
    assert sum(found) - found.quotations == sum(before) - before.quotations
    assert found.recomputed > 30
    shown = {"t1/r0"}.intersection
    assert found.erased == sum(
        trace.response_id == verdict.about and bool(shown((verdict.about, *verdict.responses)))
        for trace in Run.open(run).traces()
        for verdict in trace.verdicts
    )

    def change_score(kind: str, key: str, content: dict[str, Any]) -> None:
        for verdict in content.get("verdicts", ()):
            if key == "t1/r1" and verdict["question"] == 1:  # of its survey
                verdict["score"] = 0.987

    rewrite_chain(run, change_score)
    with pytest.raises(TraceMismatch, match=r"trace 't1/r1', verdict 'met@core': score is 0\.987"):
        verify_deeply(run)


def test_a_rescored_run_verifies_the_verdicts_of_its_base(rich: Path, tmp_path: Path) -> None:
    rescore_run(rich, tmp_path / "other", "reward.same=2")
    assert verify_deeply(tmp_path / "other") == verify_deeply(rich)


def test_the_decisions_of_replies_that_contradict_themselves_are_the_same_again(
    tmp_path: Path,
) -> None:
    """With log probabilities that save the reply of the first criterion, and without: then it fails."""
    task, texts = rubric("clear"), ["Dear Ann, at four.", "Dear Bob, at five."]
    reply = {"criterion_1": binary_reply(False, 0.9)}

    def script(body: dict[str, Any], number: int) -> Answer:
        return with_tokens(reply, 0.018 if texts[0] in response_in(body) else None)

    with run_server(script) as server:
        config = {"model": f"openai-compatible:{server.url}#tiny", "evaluators": ["criteria"]}
        lines = [task_line(task, responses(*texts))]
        score(
            tmp_path / "run",
            write_tasks(tmp_path, lines),
            config | {"failure": {"min_coverage": 0.0}},
        )
        assert server.count == 1 + 2
    saved, failed = (trace.verdicts[0] for trace in traces_of(tmp_path / "run"))
    assert (saved.met, saved.native) == (False, "P(met) from log probabilities")
    assert (failed.status, len(failed.calls)) == ("failed", 2)
    assert verify_deeply(tmp_path / "run") == DeepVerificationCounts(recomputed=2)


# Quotations of judges that compare responses


@pytest.fixture
def comparison_run(tmp_path: Path) -> Path:
    """A run in which the longer response of each pair is quoted and preferred, in both orders; the server is gone."""
    given = [
        {
            **TASK.model_dump(include={"id", "query"}),
            "responses": [one.model_dump(include={"id", "text"}) for one in LONGER],
        }
    ]
    with run_server(judge_script(longest)) as server:
        config = {
            "model": f"openai-compatible:{server.url}#tiny",
            "evaluators": ["pairwise", "listwise"],
        }
        config["reward"] = {"pairwise": 1.0, "listwise": 1.0}
        score(tmp_path / "run", write_tasks(tmp_path, given), config)
    return tmp_path / "run"


def test_quotations_of_pairs_and_lists_are_checked(comparison_run: Path) -> None:
    stored = [
        v for t in Run.open(comparison_run).traces() for v in t.verdicts if v.about == t.response_id
    ]
    sources = [(len(v.responses), e.source) for v in stored for e in v.evidence]
    own = [(number, source) for number, source in sources if source == "response"]
    assert own.count((2, "response")) == 3
    assert own.count((3, "response")) > 0
    assert verify_deeply(comparison_run) == DeepVerificationCounts(
        recomputed=len(stored), quotations=len(own)
    )


@pytest.mark.parametrize(
    ("key", "kind", "source"),
    [("c", "pair", "response"), ("a", "pair", "opponent"), ("c", "list", "response")],
)
def test_a_misplaced_quotation_of_a_comparison_is_named(
    comparison_run: Path, key: str, kind: str, source: str
) -> None:
    def change(_: str, record: str, content: dict) -> None:
        for verdict in content.get("verdicts", ()):
            is_list = isinstance(verdict["responses"], int)  # its group stores the list
            if record == key and is_list == (kind == "list"):
                for evidence in verdict.get("evidence", ()):
                    if evidence[2] == source:
                        evidence[:2] = [1, 5]

    rewrite_chain(comparison_run, change)
    problem = (
        "its quotation is not at characters 1 to 5"
        if source == "response"
        else "evidence is .* in the run and"
    )
    with pytest.raises(TraceMismatch, match=rf"trace '{key}', verdict '.*{kind}wise.*': {problem}"):
        verify_deeply(comparison_run)


SECRET = "sk-canary-0123456789abcdef"


@pytest.mark.parametrize(("then", "now"), [(True, False), (False, True), (True, True)])
def test_redaction_does_not_depend_on_the_known_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: bool, now: bool
) -> None:
    """Known secrets in the judge's text are redacted; quotations are kept."""
    response = {"id": "r", "text": f"{SECRET} is my key", "data": {"tone": 0.25}}
    folder = tmp_path / "run"
    set_secret(monkeypatch, then)
    score(
        folder,
        write_tasks(tmp_path, [{"id": "t", "query": "Write.", "responses": [response]}]),
        {"evaluators": [{"use": RECORDING, "name": "tone"}]},
    )
    (trace,) = Run.open(folder).traces()
    assert ("[redacted]" in trace.verdicts[0].reason) is then
    assert trace.verdicts[0].evidence[0].quote == SECRET[:9]
    set_secret(monkeypatch, now)
    assert verify_deeply(folder) == DeepVerificationCounts(recomputed=1, quotations=1)


def set_secret(monkeypatch: pytest.MonkeyPatch, whether: bool) -> None:
    if whether:
        monkeypatch.setenv("CANARY_API_KEY", SECRET)
    else:
        monkeypatch.delenv("CANARY_API_KEY", raising=False)


def test_a_reason_that_only_looks_redacted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = {
        "id": "t",
        "query": "Write.",
        "responses": [{"id": "r", "text": "Dear Ann", "data": {"tone": 0.25}}],
    }
    folder = tmp_path / "run"
    score(
        folder, write_tasks(tmp_path, [line]), {"evaluators": [{"use": RECORDING, "name": "tone"}]}
    )
    monkeypatch.setattr(
        RecordingEvaluator,
        "answer",
        lambda self, inputs: Verdict(score=0.25, reason="another [redacted] reason"),
    )
    with pytest.raises(TraceMismatch, match="reason is"):
        verify_deeply(folder)


def test_a_branch_repeats_its_own_requests_next_to_reused_verdicts(tmp_path: Path) -> None:
    def tasks(second: str) -> Path:
        criteria = [
            {"id": "one", "text": "It names a day.", "weight": 1},
            {"id": "two", "text": second, "weight": 1},
        ]
        responses = [{"id": "r", "text": "Dear Ann, come on Friday."}]
        return write_tasks(
            tmp_path,
            [
                {
                    "id": "t",
                    "query": "Write.",
                    "rubric": {"criteria": criteria},
                    "responses": responses,
                }
            ],
        )

    with run_server(find_everything) as server:
        config = {
            "model": f"openai-compatible:{server.url}#tiny",
            "evaluators": ["criteria"],
            "calls": {"cache": False},
        }
        score(tmp_path / "run", tasks("It greets."), config)
        score(tmp_path / "branch", tasks("It greets by name."), config, branch=tmp_path / "run")
        assert server.count == 2
    assert verify_deeply(tmp_path / "run") == DeepVerificationCounts(recomputed=2, quotations=2)
    assert verify_deeply(tmp_path / "branch") == DeepVerificationCounts(
        recomputed=1, quotations=2, needing_model=1
    )
