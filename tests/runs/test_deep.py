"""Asking again: the stored responses must give the stored verdicts."""

from pathlib import Path

import pytest

from jurygraph.errors import InputError, TraceMismatch
from jurygraph.runs.chain import MOST_TEXTS, commitment
from jurygraph.runs.deep import Deep, verify_deep
from jurygraph.runs.erasure import erase
from jurygraph.runs.run import Run
from tests.graphs.cast import Told
from tests.runs.made import RICH, Counted, lines, score, write_tasks
from tests.runs.test_ledger import changed
from tests.runs.test_rescoring import again
from tests.runs.test_verification import rewritten


def deep(folder: Path) -> Deep:
    return verify_deep(Run.open(folder), lambda count: None)


def verdicts(folder: Path) -> int:
    return sum(v.about == t.response_id for t in Run.open(folder).traces() for v in t.verdicts)


def test_every_verdict_comes_out_the_same(rich: Path) -> None:
    found = deep(rich)
    assert found.asked_again == verdicts(rich)
    assert found.quotations > 0
    assert found[2:] == (0, 0, 0)


def test_a_verdict_that_the_evaluator_does_not_give_is_named(rich: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "answer", lambda self, ask: 0.5 if ask.question.scope != "group" else [0.5] * 3)
    with pytest.raises(
        TraceMismatch, match=r"trace 't0/r0', verdict '\w+': score is 0\.\d+ in the run and 0\.5 when asked"
    ):
        deep(rich)


def test_a_quotation_that_does_not_stand_there_is_named(rich: Path) -> None:
    def change(kind: str, key: str, content: dict) -> None:
        for verdict in content.get("verdicts", ()):
            if key == "t2/r1" and "evidence" in verdict:
                verdict["evidence"][0][:2] = [1, 10]

    rewritten(rich, change)
    with pytest.raises(TraceMismatch, match=r"trace 't2/r1', .*: its quotation does not stand at characters 1 to 10"):
        deep(rich)


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
    text = texts[record.seq * MOST_TEXTS]
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
    assert found.own_trouble == 2, "the failed one, and the question that it gates"
    assert found.asked_again + found.own_trouble == verdicts(tmp_path / "run")


def test_a_group_with_an_erased_response_is_counted_apart(rich: Path) -> None:
    erase(rich, "response", "t1/r0", "")
    found = deep(rich)
    assert found.erased > 0
    assert found.asked_again + found.erased == verdicts(rich)


def test_a_re_scored_run_asks_for_the_verdicts_that_it_refers_to(rich: Path, tmp_path: Path) -> None:
    again(rich, tmp_path / "other", "reward.same=2")
    assert deep(tmp_path / "other") == deep(rich)
