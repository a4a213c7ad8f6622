"""Thin, invalid and missing histories are named, omissions are counted, and none breaks a jury."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from jurygraph import Jury
from jurygraph.errors import ConfigError, InputError, PlanError
from jurygraph.runs.run import Run
from tests.cli.conftest import Command, run_command
from tests.judges.few_shot.reviewers import (
    JUDGED_TEXT,
    WITH_EXAMPLES,
    by_examples,
    examples_shown,
    judge_use,
    prose,
    response,
    row,
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


def drop_fields(given: Sequence[Row], *fields: str) -> list[Row]:
    return [{name: value for name, value in one.items() if name not in fields} for one in given]


def blank_texts(given: Sequence[Row]) -> list[Row]:
    return [{**one, "text": " \n"} for one in given]


class Bad(NamedTuple):
    """An invalid history: its ratings by ann, the note on them, and the number of examples shown."""

    said: list[Row]
    notes: Sequence[str]
    shown: int


FOUR = rows({"ann": (1, 2, 4, 5)})
BAD: Mapping[str, Bad] = {
    "one rating": Bad(
        rows({"ann": (4,)}),
        [
            "Of 6 ratings in history.jsonl, 6 can be shown, by 2 reviewers.",
            "With fewer than 3 ratings for 'quality': 'ann' (1).",
            "With one score alone for 'quality': 'ann' (4).",
        ],
        1,
    ),
    "constant scores": Bad(rows({"ann": (3, 3, 3, 3)}), ["With one score alone for 'quality': 'ann' (3)."], 3),
    "duplicate rows": Bad(
        [*FOUR, *FOUR[:3]],
        [
            "Of 12 ratings in history.jsonl, 9 can be shown, by 2 reviewers.",
            "Left out: 3 ratings given before, with the same score; the first is history.jsonl, line 10.",
        ],
        3,
    ),
    "scores off the scale": Bad(
        [*FOUR, *(row("ann", f"x{n}", score) for n, score in enumerate((0, 6, -1, 5.5)))],
        ["Left out: 4 ratings with a score off the scale; the first is history.jsonl, line 10."],
        3,
    ),
    "nothing on the scale": Bad(rows({"ann": (50, 90)}), ["With fewer than 3 ratings for 'quality': 'ann' (0)."], 0),
    "missing texts": Bad(
        [*FOUR[:2], *drop_fields(FOUR[2:], "text")],
        ["Left out: 2 ratings of an item without a text; the first is history.jsonl, line 8."],
        2,
    ),
    "blank texts": Bad(
        [*FOUR[:1], *blank_texts(FOUR[1:])],
        ["Left out: 3 ratings of an item whose text is blank; the first is history.jsonl, line 7."],
        1,
    ),
    "contradictory": Bad(
        [*FOUR, row("ann", "i0", 5), row("ann", "i1", 1)],
        [
            "Left out: 4 ratings by a reviewer who gave the same item another score for the same dimension; the first "
            "is history.jsonl, line 6.",
            "With fewer than 3 ratings for 'quality': 'ann' (2).",
        ],
        2,
    ),
    "of another dimension": Bad(
        [{**one, "dimension": "depth"} for one in FOUR],
        ["Left out: 4 ratings of a dimension that is not asked about; the first is history.jsonl, line 6."],
        0,
    ),
    "of no dimension": Bad(
        drop_fields(FOUR, "dimension"),
        ["Left out: 4 ratings without a dimension, where others have one; the first is history.jsonl, line 6."],
        0,
    ),
}
MIXED = ("of another dimension", "of no dimension")


def file_of(folder: Path, name: str) -> str:
    bob = [{**one, "dimension": "quality"} for one in BOB] if name in MIXED else BOB
    return write_history(folder, [*bob, *BAD[name].said])


# Named and counted


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
@pytest.mark.parametrize("name", BAD)
def test_errors_are_named_and_counted_and_the_rest_is_shown(tmp_path: Path, kind: str, name: str) -> None:
    stated = judge_use(kind, history=file_of(tmp_path, name), shots=3)
    with Jury.from_config({"evaluators": [stated]}) as jury:
        (evaluator,) = jury.evaluators.values()
        assert set(BAD[name].notes) <= set(evaluator.notes)
    (trace,), bodies = score_with(by_examples(min), stated, task("ann"))
    (verdict,) = trace.verdicts
    assert [len(examples_shown(body)) for body in bodies] == ([BAD[name].shown] if BAD[name].shown else [])
    assert verdict.status == ("ok" if BAD[name].shown else "abstained")


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
def test_without_examples_no_judge_is_called_and_no_credit_given(tmp_path: Path, kind: str) -> None:
    stated = judge_use(kind, history=file_of(tmp_path, "nothing on the scale"), shots=3)
    (trace,), bodies = score_with(by_examples(), stated, task("ann"))
    (verdict,) = trace.verdicts
    assert bodies == []
    assert (verdict.status, verdict.score, verdict.failure) == ("abstained", None, None)
    reason = "no rating of 'quality' by reviewer 'ann' can be shown"
    assert verdict.reason == reason + (EQUALLY_MANY if kind == "aggregate" else "")
    assert (trace.reward.value, trace.reward.coverage, trace.reward.counts.abstained) == (None, 0.0, 1)


@pytest.mark.parametrize(("name", "hint"), [("anne", "did you mean ann?"), ("zoe", "it has ann, bob")])
@pytest.mark.parametrize("kind", WITH_EXAMPLES)
def test_a_reviewer_who_is_not_in_the_history_is_refused(tmp_path: Path, kind: str, name: str, hint: str) -> None:
    use = judge_use(kind, history=write_history(tmp_path, [*FOUR, *BOB]))
    with Jury.from_config({"evaluators": [use]}) as jury, pytest.raises(PlanError) as refused:
        jury.prepare(task("ann", name))
    assert str(refused.value) == f"task 't': reviewer '{name}' is not in history.jsonl; {hint}"
    with Jury.from_config({"evaluators": [judge_use(kind, shots=0)]}) as jury:  # without a history, anybody is known
        assert len(jury.prepare(task("ann", name)).survey.questions) == 2


@pytest.mark.parametrize(("domain", "known"), [(None, "No rating has a domain; "), ("kettles", "'kettles'; ")])
def test_a_domain_without_ratings_is_named_before_the_run_and_in_the_verdict(
    tmp_path: Path, domain: str | None, known: str
) -> None:
    said = rows({"ann": (1, 5), "bob": (2, 4)}, **({} if domain is None else {"domain": domain}))
    use = judge_use("personalized", history=write_history(tmp_path, said))
    with Jury.from_config({"evaluators": [use]}) as jury:
        (evaluator,) = jury.evaluators.values()
        note = evaluator.notes[-1]
    assert known in note
    assert note.endswith(f"abstain on tasks with {'another' if domain else 'a'} domain (metadata.domain).")
    (trace,), _ = score_with(by_examples(), use, task("ann", metadata={"domain": "kettle"}))
    reason = "no rating of 'quality' by reviewer 'ann' in the task's domain 'kettle' can be shown"
    assert trace.verdicts[0].reason == reason


def test_a_history_of_the_judged_text_alone_is_dropped_and_counted(tmp_path: Path) -> None:
    said = [row(who, f"{who}{n}", n, text=JUDGED_TEXT) for who in ("ann", "bob") for n in (1, 2, 3, 4, 5)]
    for kind in WITH_EXAMPLES:
        (trace,), bodies = score_with(
            by_examples(), judge_use(kind, history=write_history(tmp_path, said), shots=2), task("ann")
        )
        (verdict,) = trace.verdicts
        assert (bodies, verdict.status, trace.reward.value) == ([], "abstained", None)
        assert verdict.reason.endswith("; 5 were dropped")
        assert len([one for one in verdict.examples if one.dropped]) == 5


# Refused


def text_file(folder: Path, content: str, name: str = "history.jsonl") -> str:
    (folder / name).write_text(content, encoding="utf-8")
    return str(folder / name)


LINE = json.dumps(FOUR[0])
FILES: Mapping[str, tuple[str, str, str]] = {
    "empty": ("history.jsonl", "", "history.jsonl: has no rows; write one a line, each with `item`"),
    "blank lines alone": ("history.jsonl", "\n\n", "history.jsonl: has no rows"),
    "a heading alone": ("history.csv", "item,reviewer,score\n", "history.csv: has no rows"),
    "no JSON": ("history.jsonl", f"{LINE}\n{{broken", "history.jsonl, line 2"),
    "no score": ("history.jsonl", '{"item": "a", "reviewer": "ann"}', "history.jsonl, line 1"),
    "no reviewer": ("history.csv", "item,score,text\na,1,x\n", "has no column"),
    "a score in words": ("history.csv", "item,reviewer,score\na,ann,good\n", "field score: is the text 'good'"),
    "a score that is none": ("history.jsonl", LINE.replace('"score": 1', '"score": NaN'), "history.jsonl, line 1"),
    "a score without an end": ("history.csv", "item,reviewer,score\na,ann,1e999\n", "line 2, field score"),
    "a truth as score": ("history.jsonl", LINE.replace('"score": 1', '"score": true'), "line 1, field score"),
    "another kind of file": ("history.docx", LINE, "history.docx"),
}


@pytest.mark.parametrize("kind", WITH_EXAMPLES)
@pytest.mark.parametrize(("name", "content", "said"), FILES.values(), ids=FILES)
def test_a_file_that_is_no_history_is_refused_by_name_and_line(
    tmp_path: Path, kind: str, name: str, content: str, said: str
) -> None:
    with pytest.raises((ConfigError, InputError)) as refused:
        Jury.from_config({"evaluators": [judge_use(kind, history=text_file(tmp_path, content, name))]})
    assert said in str(refused.value)


def test_without_a_history_a_judge_with_examples_is_refused() -> None:
    for kind in WITH_EXAMPLES:
        with pytest.raises(ConfigError, match="history: name a RATINGS file with reviewers' ratings of other items"):
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
        write_history(tmp_path, change(said) if kind == "personalized" else _of("ann2", change, said))
        with Jury.from_config(config) as jury, pytest.raises(InputError) as refused:
            jury.score(task("ann"), [response()], plan)
        assert server.count == 0
    assert f"the plan for question '{kind}/quality@ann' shows what 'ann" in str(refused.value)
    assert "which the history no longer holds as it was; put the file back, or prepare the task again" in str(
        refused.value
    )


def _of(who: str, change: Callable[[list[Row]], list[Row]], said: list[Row]) -> list[Row]:
    """The change of what somebody said, named as ann is in the changes."""
    mine = [{**one, "reviewer": "ann"} for one in said if one["reviewer"] == who]
    changed = [{**one, "reviewer": who} for one in change(mine)]
    return [*(one for one in said if one["reviewer"] != who), *changed]


# On the command line


def project(folder: Path, url: str, said: Sequence[Row], **params: Any) -> Path:
    """A folder with a config that names its history beside it, and two tasks."""
    write_history(folder, said)
    stated = judge_use("personalized", history="history.jsonl", shots=3, **params)
    (folder / "jury.yaml").write_text(
        yaml.safe_dump({**judge_scripts.config(url, cache=False), "evaluators": [stated]})
    )
    lines = [{**task("ann", id=name).model_dump(mode="json"), "responses": [_response(name)]} for name in "ab"]
    (folder / "tasks.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def _response(name: str) -> Row:
    return {"id": f"{name}/r", "text": f"{JUDGED_TEXT} {prose(ord(name))}"}


@pytest.mark.landing
def test_doctor_and_score_report_an_invalid_history(tmp_path: Path, run: Command) -> None:
    with run_server(by_examples(min)) as server:
        folder = project(tmp_path, server.url, [*FOUR, *FOUR[:1], *BOB, row("ann", "x", 9)])
        doctor = run("doctor", "--config", folder / "jury.yaml")
        score = run("score", folder / "tasks.jsonl", "--out", folder / "run")
    noted = (
        "Of 11 ratings in history.jsonl, 9 can be shown, by 2 reviewers.",
        "Left out: 1 rating with a score off the scale; the first is history.jsonl, line 11.",
        "Left out: 1 rating given before, with the same score; the first is history.jsonl, line 5.",
    )
    assert doctor.code == 0, doctor.out
    lines = [line for line in doctor.out.splitlines() if "history" in line]
    assert all(any(note in line for line in lines) for note in noted)
    assert score.code == 0, score.err
    assert all(note in score.err for note in noted)
    assert not any(note in score.out for note in noted)


@pytest.mark.exhaustive
def test_a_branch_drops_examples_of_the_judged_item_by_the_present_history(tmp_path: Path) -> None:
    said = [*FOUR, *BOB]
    grouped = [row("zoe", "i0", 99, agent="m", group="g"), row("zoe", "a/r", 99, group="g")]
    with run_server(by_examples(min)) as server:
        folder = project(tmp_path, server.url, said)
        assert run_command("score", folder / "tasks.jsonl", "--out", folder / "old").code == 0
        asked = server.count
        again = run_command("score", folder / "tasks.jsonl", "--out", folder / "same", "--branch", folder / "old")
        assert (again.code, server.count) == (0, asked)
        write_history(folder, [*said, *grouped])
        branched = run_command("score", folder / "tasks.jsonl", "--out", folder / "new", "--branch", folder / "old")
        verified = run_command("verify", folder / "new", "--deep")
    assert branched.code == 0, branched.err
    assert verified.code == 0, verified.out + verified.err
    assert server.count == asked + 1  # of the other response nothing is dropped, and its request was sent before
    with closing(Run.open(folder / "new")) as run:
        dropped = {
            trace.task_id: [(one.item, one.dropped) for one in trace.verdicts[0].examples if one.dropped]
            for trace in run.traces()
        }
    assert dropped == {"a": [("i0", "it is of the judged item's group")], "b": []}


@pytest.mark.exhaustive
def test_an_interrupted_run_resumes_only_with_its_history(tmp_path: Path) -> None:
    with run_server(by_examples(min)) as server:
        folder = project(tmp_path, server.url, [*FOUR, *BOB])
        score = ("score", folder / "tasks.jsonl", "--out", folder / "run")
        stopped = run_command(*score, "--max-calls", 1)
        write_history(folder, [*CHANGES["another score"](FOUR), *BOB])
        changed, checked = run_command(*score), run_command("verify", folder / "run", "--deep")
        write_history(folder, [*FOUR, *BOB])
        restored = run_command(*score)
        assert server.count == 2
    assert stopped.code != 0
    assert changed.code == 2
    told = "additional input of evaluator personalized, such as a history, differs from that of the run"
    assert told in changed.err
    assert "Traceback" not in changed.err + checked.err
    assert restored.code == 0, restored.err
