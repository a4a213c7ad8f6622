"""Studies of runs in which several judges answered a question, or a dearer one where the first ones differed."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jurygraph.runs.run import Run
from jurygraph.studies import reliability
from jurygraph.studies.judge import join_labels_with_judgements, read_labels
from jurygraph.studies.judgements import read_judgements
from jurygraph.studies.reliability import read_scores
from jurygraph.testing import ScriptedJudge
from tests.runs.sample_runs import scored_session, write_tasks
from tests.studies.figures import Figures, figures_of

TASKS = 30
ANSWERS = np.random.default_rng(1).random((3, 2 * TASKS)) < 0.6
"""Whether each of three judges says yes of a response, independently of the others, [judges, responses]."""
DIFFERING = int(np.count_nonzero(ANSWERS[0] != ANSWERS[1]))
USES: Mapping[str, Mapping[str, Any]] = {
    "flat": {"judges": ["a", "b"]},
    "escalated": {"escalate": {"first": ["a", "b"], "then": "big", "when": "disagree"}},
    "sampled": {"judges": ["a", "b"], "samples": 2},
}


def judge(number: int) -> ScriptedJudge:
    def answer(text: str) -> bool:
        return bool(ANSWERS[number, int(text.split()[-1])])

    return ScriptedJudge({"It answers.": answer}, f"judge {number}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of each of `USES`: the judges say the same of a response, in whichever run."""
    folder = tmp_path_factory.mktemp("runs")
    content = []
    for task in range(TASKS):
        texts = [
            {"id": f"r{n}", "text": f"Text {n}", "labels": {"gold": bool(n % 3)}}
            for n in (2 * task, 2 * task + 1)
        ]
        content.append({"id": f"t{task}", "query": "Write.", "responses": texts})
    tasks = write_tasks(folder, content)
    for name, use in USES.items():
        models = {"a": judge(0), "b": judge(1)}
        if "escalate" in use:
            models["big"] = judge(2)
        evaluator = {"use": "criteria", "params": {"criteria": {"ok": "It answers."}}, **use}
        with scored_session(folder / name, tasks, {"models": models, "evaluators": [evaluator]}):
            pass
    return folder


def repeatability(folder: Path, name: str) -> Figures:
    with closing(Run.open(folder / name)) as run:
        return figures_of(reliability.report(read_scores(run)))


def test_two_judges_are_no_samples_of_one_whichever_of_their_verdicts_count(folder: Path) -> None:
    flat = repeatability(folder, "flat")
    escalated = repeatability(folder, "escalated")
    assert [question.within_response for question in escalated.questions] == [None] * 3
    assert [level.name for level in flat.questions[0].levels] == ["task", "response"]
    assert escalated.questions[:2] == flat.questions
    assert [(question.name, question["values"]) for question in escalated.questions] == [
        ("criteria/ok (a)", 2 * TASKS),
        ("criteria/ok (b)", 2 * TASKS),
        ("criteria/ok (big)", DIFFERING),
    ]
    # Of the answers that count, those of a and b are left where they agree.
    assert escalated.judges[0].alpha == flat.judges[0].alpha
    assert abs(flat.judges[0].alpha.value) < 0.3


def test_samples_are_compared_within_a_judge(folder: Path) -> None:
    """Either judge repeats itself to the letter, and neither what the other says."""
    sampled = repeatability(folder, "sampled")
    assert [question.within_response.value for question in sampled.questions] == [1.0, 1.0]


def test_the_first_judges_are_compared_with_people_on_all_that_they_judged(folder: Path) -> None:
    found = {}
    left_out = {}
    for superseded in (True, False):
        with closing(Run.open(folder / "escalated")) as run:
            judged = [read_judgements(run, superseded=superseded)]
        studies = join_labels_with_judgements(judged, read_labels(["label.gold"], judged))
        found[superseded] = {study.judge.model: len(study.rows) for study in studies}
        left_out[superseded] = {study.judge.model: study.left_out for study in studies}
    agreeing = 2 * TASKS - DIFFERING
    # as a jury, which has no model, they judged all, whichever verdicts are read
    jury = {None: 2 * TASKS}
    assert found[True] == {"a": 2 * TASKS, "b": 2 * TASKS, "big": DIFFERING} | jury
    assert left_out[True]["big"] == {"not asked": agreeing}
    assert found[False] == {"a": agreeing, "b": agreeing, "big": DIFFERING} | jury
