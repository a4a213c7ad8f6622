"""`context`: the ready rubric for answers from retrieved passages."""

from pathlib import Path

import pytest

import jurygraph as jg
from jurygraph import InputError
from jurygraph.explanation.terms import describe_unsupported
from jurygraph.schema import RecordedVerdict
from jurygraph.sources import TableColumns, read_tasks
from jurygraph.testing import ScriptedJudge

PASSAGES = [
    {"text": "The tower is 330 metres high.", "source": "tower.md"},
    {"text": "It opened in the year 1889.", "source": "history.md"},
]
ANSWER = "The tower is 330 m high."


def judge(quotes: dict[str, list[str]], context: object = PASSAGES) -> dict[str, RecordedVerdict]:
    """Return the verdicts of a judge that finds every item met, and gives these quotations."""
    keys = {"borne out": "faithful", "all of it": "answers", "have all": "sufficient"}
    answers = {
        key: {"met": True, "probability": 0.9, "reason": "so", "quotes": quotes[name]}
        for key, name in keys.items()
    }
    config = {"evaluators": ["context"], "model": "scripted"}
    task = jg.Task(id="t", query="How high is the tower?", context=context)
    with jg.Jury.from_config(config, model=ScriptedJudge(answers)) as jury:
        (trace,) = jury.score(task, [jg.Response(id="r", text=ANSWER)])
    return {verdict.subject: verdict for verdict in trace.verdicts}


def test_findings_quote_the_answer_and_the_context_with_their_sources() -> None:
    high = PASSAGES[0]["text"]
    verdicts = judge({"faithful": [ANSWER, high], "answers": [ANSWER], "sufficient": [high]})
    assert {verdict.score for verdict in verdicts.values()} == {0.9}
    assert [(item.source, item.quote, item.verified) for item in verdicts["faithful"].evidence] == [
        ("response", ANSWER, True),
        ("passage 1 (tower.md)", high, True),
    ]


def test_a_finding_without_a_quotation_from_each_text_is_unsupported() -> None:
    verdicts = judge({"faithful": [ANSWER], "answers": [ANSWER], "sufficient": [ANSWER]})
    assert (verdicts["faithful"].score, verdicts["faithful"].unsupported) == (0.0, "worst-case")
    assert "does not quote response and context" in verdicts["faithful"].reason
    assert (verdicts["sufficient"].score, verdicts["answers"].score) == (0.0, 0.9)
    effect = describe_unsupported(verdicts["sufficient"])
    assert effect.endswith(
        "from the response, or from the context where it is about that, supports it"
    )


def test_a_quotation_that_is_too_weak_comes_with_what_one_needs() -> None:
    verdicts = judge({"faithful": [ANSWER, "330"], "answers": [ANSWER], "sufficient": ["330"]})
    for name in ("faithful", "sufficient"):
        effect = describe_unsupported(verdicts[name])
        assert (
            "; a quotation has eight letters or digits at least, or is a line, and cuts" in effect
        )


def test_without_context_it_abstains() -> None:
    verdicts = judge({name: [ANSWER] for name in ("faithful", "answers", "sufficient")}, None)
    assert {verdict.status for verdict in verdicts.values()} == {"abstained"}


def test_passages_come_from_a_column(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        'q,a,c\nHigh?,330 m,"[""One."", {""text"": ""Two."", ""source"": ""b""}]"\nOld?,1889,[sic] Old.\n'
    )
    columns = TableColumns(prompt="q", response=("a",), context="c")
    contexts = [task.context for task, _ in read_tasks(table, columns=columns)]
    assert [[(p.text, p.source) for p in context or ()] for context in contexts] == [
        [("One.", None), ("Two.", "b")],
        [("[sic] Old.", None)],
    ]


def test_an_empty_cell_is_refused_and_an_empty_list_is_that_nothing_was_found(
    tmp_path: Path,
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("q,a,c\nHigh?,330 m,\n")
    columns = TableColumns(prompt="q", response=("a",), context="c")
    with pytest.raises(
        InputError, match=r"column c: is empty; fill it, .*; write \[\] where nothing was found"
    ):
        read_tasks(table, columns=columns)
    table.write_text("q,a,c\nHigh?,330 m,[]\n")
    lines = tmp_path / "t.jsonl"
    lines.write_text('{"q": "High?", "a": "330 m", "c": []}\n')
    for path in (table, lines):
        ((task, _),) = read_tasks(path, columns=columns)
        assert task.context == ()
    verdicts = judge({name: [ANSWER] for name in ("faithful", "answers", "sufficient")}, [])
    assert {verdict.status for verdict in verdicts.values()} == {"abstained"}
