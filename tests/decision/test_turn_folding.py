"""The figure about a response of tables and studies is the value that its turns have in the reward."""

import csv
import io
from operator import attrgetter
from pathlib import Path
from typing import Any

from jurygraph.decision.turns import fold_turns
from jurygraph.runs.run import Run
from jurygraph.schema import ComponentInput, ComponentSpec, Decision, RecordedVerdict, Verdict
from jurygraph.studies.judgements import read_judgements
from jurygraph.studies.reliability import read_scores
from jurygraph.testing import ScriptedJudge
from tests.command import run_command
from tests.decision.test_turns import LOST, SKIPPED, make_question, make_verdict
from tests.graphs.test_assistant_turns import ADDRESS, RUBRIC
from tests.rows import all_rows
from tests.runs.sample_runs import rescore_run, scored_session, traces_of, write_tasks

QUESTION = "criteria@kind"
RULES = ("mean", "min", "last", "first_failure")
LINES = {
    "good": ("Yes.", "Yes.", "Yes.", "Yes."),
    "late": ("Yes.", "Yes.", "No.", "Yes."),
    "last": ("Yes.", "Yes.", "Yes.", "No."),
    "stopped": ("Yes.", "Yes.", "Yes.", ADDRESS),
}


def chat(lines: tuple[str, ...]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for line in lines:
        messages += [{"role": "assistant", "content": line}, {"role": "user", "content": "And?"}]
    return messages[:-1]


def score_chats(folder: Path, weight: float, **config: Any) -> Path:
    """Score two tasks with a response for each of `LINES`; what is met of a penalty is a fault."""
    tasks = [
        {
            "id": name,
            "query": "A hat?",
            "rubric": RUBRIC,
            "responses": [
                {"id": f"{name}/{kind}", "messages": chat(lines)} for kind, lines in LINES.items()
            ],
        }
        for name in ("a", "b")
    ]
    use = {"use": "criteria", "scope": "turn", "sees": "last_reply", **config}
    settings = {"evaluators": [use], "model": "scripted", "reward": {"rubric": weight}}
    settings["failure"] = {"min_coverage": 0.1}
    judge = ScriptedJudge({"kind": lambda text: text.endswith("Yes.") == (weight > 0)})
    with scored_session(folder / "run", write_tasks(folder, tasks), settings, model=judge):
        pass
    return folder / "run"


@all_rows("weight", [1.0, -1.0])
def test_each_figure_of_a_response_is_the_number_that_counted(
    weight: float, tmp_path: Path
) -> None:
    folder = tmp_path / str(weight)
    folder.mkdir()
    first = score_chats(folder, weight, samples=2)
    for rule in RULES:
        run_folder = rescore_run(first, folder / rule, f"evaluators.0.turns={rule}")
        traces = {trace.response_id: trace for trace in traces_of(run_folder)}
        counted = {name: trace.reward.components["rubric"] for name, trace in traces.items()}
        assert len(set(counted.values())) > 1
        out = run_command("export", run_folder, "--to", "csv", "--questions").out
        cells = {row["response"]: row for row in csv.DictReader(io.StringIO(out))}
        shown = run_command("show", run_folder, "--columns", f"response,{QUESTION}").out
        with Run.open(run_folder) as run:
            judged, _ = read_judgements(run).judgements_by_judge.values()
            scores = read_scores(run)
        (question,) = scores.questions
        by_sample = list(zip(question.responses, question.values, strict=True))
        for name, value in counted.items():
            assert value is not None
            assert float(cells[name][f"question.{QUESTION}"]) == value
            assert f"{name} " in shown
            assert f"{value:.4f}" in next(row for row in shown.splitlines() if f"{name} " in row)
            if name.endswith("stopped"):
                assert (judged[name].status, judged[name].score) == ("gated", None)
                assert name not in question.responses
            else:
                assert (judged[name].status, judged[name].score) == ("judged", value)
                is_met = value >= 0.5
                if rule == "first_failure":  # a fault in the last turn is one
                    is_met = value == 1.0 if weight > 0 else value > 0.0
                assert judged[name].decision == is_met
                assert by_sample.count((name, value)) == 2
        assert scores.left_out == {"verdicts without a score, or with that of a gate": 4}


DECISION = Decision(
    specs=(
        ComponentSpec(
            name="s",
            weight=1.0,
            combiner="mean",
            version="1",
            inputs={"e": ComponentInput(questions=("q",), weights=(1.0,), turns={"q": "last"})},
        ),
    )
)
GRADE = Verdict(score=0.75, native=4, scale=(1.0, 5.0))
FOLDED: dict[str, tuple[list[tuple[Any, str | None]], list[tuple[Any, ...]]]] = {
    "a missing turn that does not count": ([(LOST, None), (0.75, None)], [("ok", 0.75, None)]),
    "a missing turn that counts": ([(0.75, None), (LOST, None)], [("failed", 0.0, None)]),
    "no score at all": ([(LOST, None), (LOST, None)], [("failed", None, None)]),
    "no turn applies": ([(SKIPPED, None), (SKIPPED, None)], [("not_applicable", None, None)]),
    "on the judge's scale": ([(Verdict(score=0.0), None), (GRADE, None)], [("ok", 0.75, None)]),
    "one judge answers some": (
        [(0.25, "x"), (0.5, "x"), (1.0, "y")],
        [("ok", 0.5, None), ("abstained", 1.0, None)],
    ),
}


@all_rows(("given", "expected"), FOLDED.values())
def test_a_figure_needs_a_verdict_on_every_turn_that_counts(
    given: list[tuple[Any, str | None]], expected: list[tuple[Any, ...]]
) -> None:
    turns = {"x": iter(range(9)), "y": iter([1]), None: iter(range(9))}
    verdicts = [make_verdict("a", next(turns[judge]), score, judge) for score, judge in given]
    question = make_question(judges=("x", "y") if given[0][1] else ())
    folded = list(fold_turns(verdicts, DECISION, [question], attrgetter("judge")))
    assert [(one.status, one.score, one.turn) for one in folded] == expected
    for one in folded:
        assert one.scale is None or one.native == 4.0


def test_turns_in_no_component_stay_as_they_are() -> None:
    verdicts: list[RecordedVerdict] = [make_verdict("a", turn, 0.5) for turn in range(2)]
    decision = DECISION.model_copy(update={"specs": ()})
    assert list(fold_turns(verdicts, decision, [make_question()], attrgetter("judge"))) == verdicts
