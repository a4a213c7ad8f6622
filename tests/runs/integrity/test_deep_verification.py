"""Asking again: the stored responses must give the stored verdicts."""

from pathlib import Path

import pytest

from jurygraph.agents.roles import EvaluatorInput
from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.integrity.deep_verification import DeepVerification, verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.store.chain import MAX_TEXTS, commitment
from jurygraph.runs.workflows.erasure import erase
from jurygraph.schema import Evidence, Verdict
from tests.graphs.cast import Told
from tests.judges.pairwise.comparing import LONGER, TASK, judging_by, longest
from tests.models.server import serving
from tests.runs.integrity.test_verification import rewritten
from tests.runs.made import ASKED, COUNTED, RICH, Counted, lines, score, write_tasks
from tests.runs.store.test_ledger import changed
from tests.runs.workflows.test_rescoring import again


def deep(folder: Path) -> DeepVerification:
    return verify_deep(Run.open(folder), lambda count: None)


def verdicts(folder: Path) -> int:
    return sum(v.about == t.response_id for t in Run.open(folder).traces() for v in t.verdicts)


def test_every_verdict_comes_out_the_same(rich: Path) -> None:
    found = deep(rich)
    assert found.recomputed == verdicts(rich)
    assert found.quotations > 0
    assert found[2:] == (0, 0, 0)


def test_a_verdict_that_the_evaluator_does_not_give_is_named(rich: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "answer", lambda self, inputs: 0.5 if inputs.question.scope != "group" else [0.5] * 3)
    with pytest.raises(
        TraceMismatch, match=r"trace 't0/r0', verdict '\w+': score is 0\.\d+ in the run and 0\.5 when recomputed"
    ):
        deep(rich)


def test_a_quotation_that_does_not_stand_there_is_named(rich: Path) -> None:
    def change(kind: str, key: str, content: dict) -> None:
        for verdict in content.get("verdicts", ()):
            if key == "t2/r1" and "evidence" in verdict:
                verdict["evidence"][0][:2] = [1, 10]

    rewritten(rich, change)
    with pytest.raises(TraceMismatch, match=r"trace 't2/r1', .*: its quotation is not at characters 1 to 10"):
        deep(rich)


def test_what_an_evaluator_asks_a_model_of_its_own_is_not_asked_again(tmp_path: Path) -> None:
    """An embedder may be gone, or cost money; a check beside it is asked again all the same."""
    own = {"use": COUNTED, "name": "embedded", "params": {"layer": "model"}}
    config = {"evaluators": [own, {"use": COUNTED, "name": "tone"}], "reward": {"embedded": 1.0, "tone": 1.0}}
    response = {"id": "r", "text": "Dear Ann", "data": {"embedded": 0.5, "tone": 0.25}}
    folder = tmp_path / "run"
    score(folder, write_tasks(tmp_path, [{"id": "t", "query": "Write.", "responses": [response]}]), config)
    ASKED.clear()
    assert deep(folder) == DeepVerification(recomputed=1, quotations=2, needing_model=1)
    assert [question for question, *_ in ASKED] == ["tone"]


@pytest.mark.parametrize("claim", [{"layer": "human"}, {"call": "x"}, {"version": "other"}, {"sample": 7}])
def test_what_the_record_claims_saves_no_verdict_from_being_asked_again(rich: Path, claim: dict) -> None:
    def change(kind: str, key: str, content: dict) -> None:
        if key == "t2/r1":
            content["verdicts"][-1] |= {"score": 0.123, **claim}

    rewritten(rich, change)
    with pytest.raises(TraceMismatch, match=r"trace 't2/r1', verdict"):
        deep(rich)


def test_a_response_that_was_put_in_the_place_of_another_is_found(rich: Path) -> None:
    texts = {text.id: text for text in Run.open(rich).ledger.all_texts()}
    record = Run.open(rich).ledger.find("trace", "t2/r1")
    assert record is not None
    text = texts[record.seq * MAX_TEXTS]
    other = text.content + b" "
    changed(rich / "run.sqlite", "UPDATE texts SET content = ? WHERE id = ?", other, text.id)

    def change(kind: str, key: str, content: dict) -> None:
        if key == "t2/r1":
            content["texts"][0] = commitment(text.salt, other)

    rewritten(rich, change)
    with pytest.raises(TraceMismatch, match=r"\(group 't2'\): its responses are not those that were judged"):
        deep(rich)


def test_another_version_of_an_evaluator_cannot_tell(rich: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Told, "version", "2")
    with pytest.raises(InputError, match="the plan was made with evaluator 'late' of version '1'; this jury has 2"):
        deep(rich)


def test_what_failed_by_our_own_trouble_is_counted_apart(tmp_path: Path) -> None:
    given = lines()
    given[1]["responses"][0]["data"]["same"] = "infrastructure"
    score(tmp_path / "run", write_tasks(tmp_path / "given", given), RICH)
    found = deep(tmp_path / "run")
    assert found.infrastructure_failures == 2, "the failed one, and the question that it gates"
    assert found.recomputed + found.infrastructure_failures == verdicts(tmp_path / "run")


def test_a_group_with_an_erased_response_is_counted_apart(rich: Path) -> None:
    erase(rich, "response", "t1/r0", "")
    found = deep(rich)
    assert found.erased > 0
    assert found.recomputed + found.erased == verdicts(rich)


def test_a_re_scored_run_asks_for_the_verdicts_that_it_refers_to(rich: Path, tmp_path: Path) -> None:
    again(rich, tmp_path / "other", "reward.same=2")
    assert deep(tmp_path / "other") == deep(rich)


# Quotations of judges that compare responses


@pytest.fixture
def compared(tmp_path: Path) -> Path:
    """Of each pair the longer one is quoted and preferred, as the first and as the second; the server is gone."""
    given = [
        {
            **TASK.model_dump(include={"id", "query"}),
            "responses": [one.model_dump(include={"id", "text"}) for one in LONGER],
        }
    ]
    with serving(judging_by(longest)) as server:
        config = {"model": f"openai-compatible:{server.url}#tiny", "evaluators": ["pairwise", "listwise"]}
        config["reward"] = {"pairwise": 1.0, "listwise": 1.0}
        score(tmp_path / "run", write_tasks(tmp_path, given), config)
    return tmp_path / "run"


def test_quotations_from_both_of_a_pair_and_from_a_list_are_looked_for(compared: Path) -> None:
    stored = [v for t in Run.open(compared).traces() for v in t.verdicts if v.about == t.response_id]
    sources = [(len(v.responses), e.source) for v in stored for e in v.evidence]
    assert sources.count((2, "response")) == sources.count((2, "opponent")) == 3
    assert sources.count((3, "response")) > 0
    assert deep(compared) == DeepVerification(recomputed=len(stored), quotations=len(sources))


@pytest.mark.parametrize(
    ("key", "kind", "source"), [("c", "pair", "response"), ("a", "pair", "opponent"), ("c", "list", "response")]
)
def test_a_quotation_of_a_comparison_that_does_not_stand_there_is_named(
    compared: Path, key: str, kind: str, source: str
) -> None:
    moved = []

    def change(_: str, record: str, content: dict) -> None:
        for verdict in content.get("verdicts", ()):
            is_list = isinstance(verdict["responses"], int)  # its group stores the list
            if record == key and is_list == (kind == "list"):
                for evidence in verdict.get("evidence", ()):
                    if evidence[2] == source:
                        evidence[:2] = [1, 5]
                        moved.append(evidence)

    rewritten(compared, change)
    assert moved
    named = rf"trace '{key}', verdict '.*{kind}wise.*': its quotation is not at characters 1 to 5"
    with pytest.raises(TraceMismatch, match=named):
        deep(compared)


def test_a_quotation_from_an_opponent_without_a_place_need_not_stand_anywhere(tmp_path: Path) -> None:
    given = lines(tasks=1)
    config = {"evaluators": [{"use": "tests.runs.integrity.test_deep_verification:Cites", "name": "cites"}]}
    score(tmp_path / "run", write_tasks(tmp_path, given), config)
    assert deep(tmp_path / "run").quotations == 0


class Cites(Told):
    """It calls evidence what it is no quotation of the other response."""

    version = "1"
    scope = "pair"

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        evidence = Evidence(quote="what one hears of it", source="opponent", verified=True)
        return Verdict(score=0.5, evidence=(evidence,))


SECRET = "sk-canary-0123456789abcdef"


@pytest.mark.parametrize(("then", "now"), [(True, False), (False, True), (True, True)])
def test_a_run_verifies_whichever_secrets_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: bool, now: bool
) -> None:
    """What a judge says of a response that holds a secret is redacted where that is known, and its quotations stay."""
    response = {"id": "r", "text": f"{SECRET} is my key", "data": {"tone": 0.25}}
    folder = tmp_path / "run"
    known(monkeypatch, then)
    score(
        folder,
        write_tasks(tmp_path, [{"id": "t", "query": "Write.", "responses": [response]}]),
        {"evaluators": [{"use": COUNTED, "name": "tone"}]},
    )
    (trace,) = Run.open(folder).traces()
    assert ("[redacted]" in trace.verdicts[0].reason) is then
    assert trace.verdicts[0].evidence[0].quote == SECRET[:9]
    known(monkeypatch, now)
    assert deep(folder) == DeepVerification(recomputed=1, quotations=1)


def known(monkeypatch: pytest.MonkeyPatch, whether: bool) -> None:
    if whether:
        monkeypatch.setenv("CANARY_API_KEY", SECRET)
    else:
        monkeypatch.delenv("CANARY_API_KEY", raising=False)


def test_a_reason_that_only_looks_redacted_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = {"id": "t", "query": "Write.", "responses": [{"id": "r", "text": "Dear Ann", "data": {"tone": 0.25}}]}
    folder = tmp_path / "run"
    score(folder, write_tasks(tmp_path, [line]), {"evaluators": [{"use": COUNTED, "name": "tone"}]})
    monkeypatch.setattr(Counted, "answer", lambda self, inputs: Verdict(score=0.25, reason="another [redacted] reason"))
    with pytest.raises(TraceMismatch, match="reason is"):
        deep(folder)
