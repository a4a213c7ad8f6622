"""Thin, invalid and missing histories are named, omissions are counted, and none breaks a jury."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jurygraph import Jury
from jurygraph.errors import ConfigError, InputError, PlanError
from jurygraph.judges.reviewers import Personalized
from tests.judges.few_shot.reviewers import (
    QUALITY,
    WITH_EXAMPLES,
    by_examples,
    examples_shown,
    judge_use,
    response,
    rows,
    score_with,
    task,
    write_history,
)
from tests.models import judge_scripts
from tests.models.server import run_server

Row = dict[str, Any]
EQUALLY_MANY = "; as many are shown of the reviewer as of the others"
BOB = rows({"bob": (1, 2, 3, 4, 5)})


class Bad(NamedTuple):
    """An invalid history: its ratings by ann, the note on them, and the number of examples shown."""

    said: list[Row]
    notes: Sequence[str]
    shown: int


FOUR = rows({"ann": (1, 2, 4, 5)})
BAD: Mapping[str, Bad] = {
    "duplicate rows": Bad(
        [*FOUR, *FOUR[:3]],
        [
            "Of 12 ratings in history.jsonl, 9 can be shown, by 2 reviewers.",
            "Left out: 3 ratings given before, with the same score; the first is history.jsonl, line 10.",
        ],
        3,
    ),
    "nothing with a text": Bad(
        [{**one, "text": None} for one in FOUR[:2]],
        ["Left out: 2 ratings of an item without a text; the first is history.jsonl, line 6."],
        0,
    ),
    "of another dimension": Bad(
        [{**one, "dimension": "depth"} for one in FOUR],
        [
            "Left out: 4 ratings of a dimension that is not asked about; the first is history.jsonl, line 6."
        ],
        0,
    ),
}


def file_of(folder: Path, name: str) -> str:
    bob = (
        [{**one, "dimension": "quality"} for one in BOB] if name == "of another dimension" else BOB
    )
    return write_history(folder, [*bob, *BAD[name].said])


# Named and counted


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
@pytest.mark.parametrize("name", BAD)
def test_errors_are_named_and_counted_and_the_rest_is_shown(
    tmp_path: Path, kind: str, name: str
) -> None:
    stated = judge_use(kind, history=file_of(tmp_path, name), shots=3)
    with Jury.from_config({"evaluators": [stated]}) as jury:
        (evaluator,) = jury.evaluators.values()
        assert set(BAD[name].notes) <= set(evaluator.notes)
    (trace,), bodies = score_with(by_examples(min), stated, task("ann"))
    (verdict,) = trace.verdicts
    assert [len(examples_shown(body)) for body in bodies] == (
        [BAD[name].shown] if BAD[name].shown else []
    )
    assert verdict.status == ("ok" if BAD[name].shown else "abstained")


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
def test_without_examples_no_judge_is_called_and_no_credit_given(tmp_path: Path, kind: str) -> None:
    stated = judge_use(kind, history=file_of(tmp_path, "nothing with a text"), shots=3)
    (trace,), bodies = score_with(by_examples(), stated, task("ann"))
    (verdict,) = trace.verdicts
    assert bodies == []
    assert (verdict.status, verdict.score, verdict.failure) == ("abstained", None, None)
    reason = "no rating of 'quality' by reviewer 'ann' can be shown"
    assert verdict.reason == reason + (EQUALLY_MANY if kind == "aggregate" else "")
    assert (trace.reward.value, trace.reward.coverage, trace.reward.counts.abstained) == (
        None,
        0.0,
        1,
    )


@pytest.mark.parametrize(
    ("name", "hint"), [("anne", "did you mean ann?"), ("zoe", "it has ann, bob")]
)
@pytest.mark.parametrize("kind", WITH_EXAMPLES)
def test_a_reviewer_who_is_not_in_the_history_is_refused(
    tmp_path: Path, kind: str, name: str, hint: str
) -> None:
    use = judge_use(kind, history=write_history(tmp_path, [*FOUR, *BOB]))
    with Jury.from_config({"evaluators": [use]}) as jury, pytest.raises(PlanError) as refused:
        jury.prepare(task("ann", name))
    assert str(refused.value) == (
        f"task 't': reviewer '{name}' is not in history.jsonl (`judge_newcomers: true` judges new ones from "
        f"everybody's ratings); {hint}"
    )
    use["params"]["judge_newcomers"] = True
    (trace,), (body,) = score_with(by_examples(min), use, task(name))
    assert len(examples_shown(body)) == 5
    assert {use.reviewer for use in trace.verdicts[0].examples} <= {"ann", "bob"}
    # without a history, anybody is known
    with Jury.from_config({"evaluators": [judge_use(kind, shots=0)]}) as jury:
        assert len(jury.prepare(task("ann", name)).survey.questions) == 2


@pytest.mark.parametrize("domain", [None, "kettles"])
def test_a_domain_without_ratings_is_named_in_the_verdict(
    tmp_path: Path, domain: str | None
) -> None:
    said = rows({"ann": (1, 5), "bob": (2, 4)}, **({} if domain is None else {"domain": domain}))
    use = judge_use("personalized", history=write_history(tmp_path, said))
    (trace,), _ = score_with(by_examples(), use, task("ann", metadata={"domain": "kettle"}))
    reason = "no rating of 'quality' by reviewer 'ann' in the task's domain 'kettle' can be shown"
    assert trace.verdicts[0].reason == reason


# Refused


def text_file(folder: Path, content: str, name: str = "history.jsonl") -> str:
    (folder / name).write_text(content, encoding="utf-8")
    return str(folder / name)


LINE = json.dumps(FOUR[0])
FILES: Mapping[str, tuple[str, str, str]] = {
    "no JSON": ("history.jsonl", f"{LINE}\n{{broken", "history.jsonl, line 2"),
    "another kind of file": ("history.docx", LINE, "history.docx"),
}


@pytest.mark.parametrize(("name", "content", "said"), FILES.values(), ids=FILES)
def test_a_file_that_is_no_history_is_refused_by_name_and_line(
    tmp_path: Path, name: str, content: str, said: str
) -> None:
    with pytest.raises((ConfigError, InputError)) as refused:
        Jury.from_config(
            {"evaluators": [judge_use("aggregate", history=text_file(tmp_path, content, name))]}
        )
    assert said in str(refused.value)


def test_the_error_about_a_missing_history_names_the_folders_that_were_searched() -> None:
    with pytest.raises(ConfigError) as refused:
        Jury.from_config({"evaluators": [judge_use("aggregate", history="gone.jsonl")]})
    folders = f"looked for in the folder of the config when that was read, and now in {Path.cwd()}"
    assert f"gone.jsonl: there is no such file; name one that is there; {folders}" in str(
        refused.value
    )


def test_without_a_history_a_judge_with_examples_is_refused() -> None:
    for kind in WITH_EXAMPLES:
        with pytest.raises(
            ConfigError, match="history: name a RATINGS file with reviewers' ratings of other items"
        ):
            Jury.from_config({"evaluators": [judge_use(kind)]})


# Changed after it was planned with


CHANGES: Mapping[str, Callable[[list[Row]], list[Row]]] = {
    "another score": lambda said: [{**one, "score": 6 - one["score"]} for one in said],
    "another text": lambda said: [{**one, "text": f"{one['text']} More."} for one in said],
    "another reason": lambda said: [{**one, "reason": "as it is"} for one in said],
    "gone": lambda said: [one for one in said if one["reviewer"] != "ann"],
    "contradicted": lambda said: [*said, *({**one, "score": 6 - one["score"]} for one in said)],
}


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_plan_is_refused_if_its_examples_have_changed(
    tmp_path: Path, change: Callable[[list[Row]], list[Row]], kind: str
) -> None:
    said = rows({"ann": (1, 2, 4, 5), "ann2": (1, 2, 4, 5)})
    with run_server(by_examples(min)) as server:
        config = judge_scripts.config(server.url) | {
            "evaluators": [judge_use(kind, history=write_history(tmp_path, said), shots=3)]
        }
        with Jury.from_config(config) as jury:
            plan = jury.prepare(task("ann"))
        write_history(
            tmp_path, change(said) if kind == "personalized" else _of("ann2", change, said)
        )
        with Jury.from_config(config) as jury, pytest.raises(InputError) as refused:
            jury.score(task("ann"), [response()], plan)
        assert server.count == 0
    assert f"the plan for question '{kind}/quality@ann' shows what 'ann" in str(refused.value)
    assert (
        "which the history no longer holds as it was; put the file back, or prepare the task again"
        in str(refused.value)
    )


def _of(who: str, change: Callable[[list[Row]], list[Row]], said: list[Row]) -> list[Row]:
    """The change of what somebody said, named as ann is in the changes."""
    mine = [{**one, "reviewer": "ann"} for one in said if one["reviewer"] == who]
    changed = [{**one, "reviewer": who} for one in change(mine)]
    return [*(one for one in said if one["reviewer"] != who), *changed]


def test_rows_in_python_are_read_as_those_of_a_file_and_those_left_out_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A command prints the notes, and in Python nobody does."""
    rows = [*FOUR, {**FOUR[0], "item": "silent", "text": " "}]
    judge, of_file = (
        Personalized(dimensions=QUALITY, history=history)
        for history in (rows, write_history(tmp_path, rows))
    )
    assert judge.depends_on == of_file.depends_on
    (record,) = caplog.records
    assert record.getMessage() == (
        "personalized: Left out: 1 rating of an item whose text is blank; the first is history[4]."
    )
    with pytest.raises(InputError, match=r"^history\[0\] .*, field score: is the text 'x'"):
        Personalized(dimensions=QUALITY, history=[{**FOUR[0], "score": "x"}])
