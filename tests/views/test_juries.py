"""The votes of a run's judges, in a sentence."""

from pathlib import Path

import jurygraph as jg
from jurygraph.runs.run import Run
from jurygraph.studies.judgements import read_judgements
from jurygraph.testing import ScriptedJudge
from jurygraph.views.juries import describe_jury_votes

RESPONSES = ("One text of some length.", "Another text, which is longer.", "A third one of them.")
QUOTED = {"met": True, "probability": 0.9, "reason": "so", "quotes": [RESPONSES[0]]}
UNQUOTED = {**QUOTED, "quotes": []}


def score(folder: Path, fold: str, samples: int = 1) -> Run:
    """A run of three responses, of whom `strict` finds none clear; the two others find a quotation in the first."""
    says_met = {name: ScriptedJudge({"": QUOTED}, name) for name in ("kind", "mild")}
    models = {**says_met, "strict": ScriptedJudge({"": False}, "strict")}
    criteria = {"use": "criteria", "params": {"criteria": {"clear": "It is clear."}}}
    use = {**criteria, "judges": list(models), "fold": fold, "samples": samples}
    with jg.Jury(models=models, evaluators=[use], record=folder) as jury:
        jury.score(jg.Task(id="t", query="Write."), RESPONSES)
    return Run.open(folder)


def test_a_run_says_how_many_majorities_failed_and_who_was_outvoted(tmp_path: Path) -> None:
    """Two findings without a quotation are no votes: with that of the third there is no majority."""
    with score(tmp_path / "run", "majority") as run:
        assert describe_jury_votes(run) == (
            "Judges voted on 3 questions: 2 had no majority (2 count as the worst case); outvoted: "
            "strict on 1"
        )
        judgements = read_judgements(run).judgements_by_judge
        (found,) = [of for judge, of in judgements.items() if judge.jury and judge.without is None]
        assert [one.status for one in found.values()] == ["judged", "abstained", "abstained"]
    with score(tmp_path / "mean", "mean") as run:
        assert describe_jury_votes(run) == "The judges answered 1 of 1 question differently"


def test_a_judge_of_several_samples_is_outvoted_once_on_a_question(tmp_path: Path) -> None:
    with score(tmp_path / "run", "majority", samples=2) as run:
        assert describe_jury_votes(run).endswith("outvoted: strict on 1")
