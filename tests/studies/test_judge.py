"""Judges beside people: figures by hand, and of published verdicts."""

import csv
import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from jurygraph.errors import InputError
from jurygraph.inference.clusters import t_quantile
from jurygraph.runs.export_table import ExportRow
from jurygraph.runs.run import Run
from jurygraph.schema import RecordedVerdict
from jurygraph.schema.rating import JudgedLabel
from jurygraph.sources.file_rows import FileRows
from jurygraph.studies.alternative_annotator import DEFAULT_WIN_RATE_MARGIN
from jurygraph.studies.calibration import labelled_scores
from jurygraph.studies.conclusions import describe_needed_count
from jurygraph.studies.judge import (
    JudgeStudy,
    LabelledJudgement,
    add_mean_labels,
    join_labels_with_judgements,
    read_labels,
    unlabelled_row_notes,
    unpredicted_label_notes,
)
from jurygraph.studies.judge_report import (
    _compare_judges,
    _measure_judge_agreement,
    gate_values,
    report,
    shorten,
)
from jurygraph.studies.judgements import (
    Judge,
    Judgement,
    RunJudgements,
    _copy_modelless_judgements,
    _summarize_pair_verdicts,
    _summarize_verdicts,
    find_judgements_of_question,
    pair_name,
    read_judgements,
)
from jurygraph.studies.report import IntervalCell, ReportTable
from tests.rows import all_rows
from tests.runs.sample_runs import evaluator_config, make_tasks, score, write_tasks
from tests.studies.figures import Figures, figures_of

DATA = Path(__file__).parents[1] / "data"


def binary_study(pairs: Sequence[tuple[int, int]], name: str = "q", size: int = 1) -> JudgeStudy:
    """A judge with (target, decision) of each response, with `size` responses to a task."""
    rows = [
        LabelledJudgement(f"r{place}", f"t{place // size}", float(target), float(said), float(said))
        for place, (target, said) in enumerate(pairs)
    ]
    return JudgeStudy(Judge("run", name, name), True, rows)


def measure(*studies: JudgeStudy) -> Figures:
    return figures_of(report(studies))


def judgements(
    scores: dict[str, float | str], scale: tuple[float, float] | None = None
) -> RunJudgements:
    """A run of one judge, with a score or a status for each response, each of a task of its own."""
    given = {}
    for name, value in scores.items():
        if isinstance(value, str):
            given[name] = Judgement(f"task of {name}", value)
        else:
            native = None if scale is None else scale[0] + value * (scale[1] - scale[0])
            given[name] = Judgement(
                f"task of {name}", "judged", value, float(value >= 0.5), native, scale
            )
    return RunJudgements("run", {Judge("run", "q", "q"): given}, dict.fromkeys(scores, 10), {})


def labels(*rows: JudgedLabel) -> FileRows[JudgedLabel]:
    placed = tuple((f"line {place}", row) for place, row in enumerate(rows, start=2))
    return FileRows(
        "people.csv", placed, {one: one for one in ("id", "other", "target", "question")}
    )


# Figures


def test_samples_that_tie_are_decided_by_their_mean_which_the_reward_counts() -> None:
    for scores, decision in (((0.16, 0.76), 0.0), ((0.3, 0.76), 1.0), ((0.1, 0.6, 0.6), 1.0)):
        samples = [
            RecordedVerdict(question="q", about="r", responses=("r",), score=score, sample=number)
            for number, score in enumerate(scores)
        ]
        assert _summarize_verdicts("t", samples).decision == decision


def test_labels_of_reviewers_are_of_the_questions_about_them_alone() -> None:
    questions = {name: f"personalized/quality@{name}" for name in ("ann", "bo")}
    by_judge = {
        Judge("run", question, "personalized", reviewer=name): {"a": Judgement("t", "judged", 0.5)}
        for name, question in questions.items()
    }
    run = RunJudgements("run", by_judge, {"a": 10}, {})
    ann, bo = questions.values()
    for named, expected in (("quality", {ann: 6.0, bo: 2.0, "quality": 4.0}), (ann, {ann: 6.0})):
        people = (("ann", 6.0), ("bo", 2.0))
        given = [JudgedLabel(id="a", target=y, question=named, reviewer=who) for who, y in people]
        rows: dict[str, ExportRow] = {}
        add_mean_labels(rows, labels(*given), run)
        gave = {name: value for name, value in rows["a"].items() if name.startswith("people.")}
        assert gave == {f"people.{name}": value for name, value in expected.items()}


def test_a_label_between_0_and_1_beside_a_judge_that_decides_is_a_share_of_people_or_a_tie() -> (
    None
):
    run = judgements({"a": 1.0, "b": 0.0, "c": 1.0, "d": 1.0})
    people = [("a", 0.75), ("b", 0.25), ("c", 0.0), ("d", 0.5)]
    (study,) = join_labels_with_judgements(
        [run], labels(*(JudgedLabel(id=name, target=share) for name, share in people))
    )
    assert [(row.response, row.target) for row in study.rows] == [
        ("a", 1.0),
        ("b", 0.0),
        ("c", 0.0),
    ]
    assert (study.has_binary_labels, study.shares, study.left_out) == (True, 3, {"tied": 1})
    (note, *_) = [note for note in report([study]).notes if "shares of people" in note]
    assert "q: labels between 0 and 1: 3" in note
    (study,) = join_labels_with_judgements([run], labels(JudgedLabel(id="d", target=0.5)))
    assert report([study]).conclusion == [
        "q: nothing can be said, because 1 label tied, and no other labelled response has its judgement."
    ]
    # a judge that gives shares itself is compared with them, and with 0 and 1 beside them
    graded = judgements({"a": 0.7, "b": 0.2})
    people = [("a", 0.5), ("b", 0.0)]
    (study,) = join_labels_with_judgements(
        [graded], labels(*(JudgedLabel(id=name, target=share) for name, share in people))
    )
    assert not study.has_binary_labels
    (note,) = [note for note in report([study]).notes if "labels between 0 and 1" in note]
    assert "q: labels between 0 and 1: 1, so that all labels are compared with its score" in note


def test_labels_on_another_scale_than_the_judges_are_compared_by_their_order() -> None:
    """Shares .9, .9, 0, 0 against 5, 4, 1, 3: both high ones rank above both others, and Spearman is 2/√5."""
    run = judgements({"a": 0.9, "b": 0.9, "c": 0.0, "d": 0.0})
    stars = {"a": 5.0, "b": 4.0, "c": 1.0, "d": 3.0}
    people = [JudgedLabel(id=name, target=value) for name, value in stars.items()]
    (study,) = join_labels_with_judgements([run], labels(*people))
    assert (study.is_compared_by_rank, study.has_binary_labels, study.scale) == (
        True,
        False,
        (1.0, 5.0),
    )
    found = measure(study)
    assert found.judges[0].scale == "ranks"
    assert found.judges[0].rank_correlation.value == pytest.approx(2 / math.sqrt(5))
    assert found.judges[0].rank_correlation.high <= 1.0
    for name in ("accuracy", "kappa", "bias", "corrected", "ece"):
        assert found.judges[0][name] is None
    assert (found.disagreements, found.differences) == ([], [])
    (note, *_) = report([study]).notes
    assert note.startswith(
        "q: labels go from 1 to 5, and its scores have another scale; only their order"
    )
    with pytest.raises(InputError, match="labels of 'q' are on another scale than its scores"):
        labelled_scores([study], "q")


def test_labels_of_the_reward_are_compared_with_it_only_where_they_name_it() -> None:
    judged = judgements({"a": 1.0, "b": 0.0})
    rewards = {
        "a": Judgement("task of a", "judged", 0.75, 1.0),
        "b": Judgement("task of b", "failed"),
    }
    reward = Judge("run", "reward", "")
    run = replace(judged, judgements_by_judge={**judged.judgements_by_judge, reward: rewards})
    people = [JudgedLabel(id=name, target=True) for name in "ab"]
    assert [one.judge.question for one in join_labels_with_judgements([run], labels(*people))] == [
        "q"
    ]
    named = [label.model_copy(update={"question": "reward"}) for label in people]
    for (study,) in (
        join_labels_with_judgements([run], labels(*named)),
        join_labels_with_judgements([run], labels(*people), question="reward"),
    ):
        assert study.judge.name == "reward"
        assert [(row.response, row.prediction, row.score) for row in study.rows] == [
            ("a", 1.0, 0.75)
        ]
        assert study.left_out == {"failed": 1}
    beyond = replace(
        run, judgements_by_judge={reward: {"a": Judgement("task of a", "judged", 2.5, 1.0)}}
    )
    assert join_labels_with_judgements([beyond], labels(*named))[
        0
    ].is_compared_by_rank  # a reward above 1 is no probability


@all_rows(
    ("name", "expected"),
    [
        ("criteria/kind", "criteria/kind"),
        ("solves", "criteria/solves"),
        ("appeal", "personalized/appeal@ann"),  # the one of the reviewer who gave the label
        ("kind", ["'kind' is the end of several questions; write one of criteria/kind, tone.kind"]),
        ("own", "criteria@own"),  # a criterion is the member
        ("elsewhere", "other/elsewhere"),  # of another response alone
        ("solve", ["there is no question 'solve'; did you mean solves?"]),
        ("zzzz", ["there is no question 'zzzz'; there are criteria/kind, criteria/solves, "]),
    ],
)
def test_the_last_part_of_a_question_is_enough_where_it_is_the_only_one(
    name: str, expected: str | list[str]
) -> None:
    met = {"a": Judgement("t", "judged", 1.0, 1.0)}
    ids = ("criteria/kind", "criteria/solves", "tone.kind", "criteria@own")
    by_judge = {Judge("run", one, one.partition("/")[0]): met for one in ids}
    for reviewer in ("ann", "bob"):
        question = f"personalized/appeal@{reviewer}"
        by_judge[Judge("run", question, "personalized", reviewer=reviewer)] = met
    by_judge[Judge("run", "other/elsewhere", "other")] = {"b": Judgement("t", "judged", 1.0, 1.0)}
    run = RunJudgements("run", by_judge, {"a": 1, "b": 1}, {})
    people = labels(JudgedLabel(id="a", target=True, question=name, reviewer="ann"))
    if isinstance(expected, list):
        with pytest.raises(InputError, match=re.escape(f"line 2, field question: {expected[0]}")):
            join_labels_with_judgements([run], people)
    else:
        assert [study.judge.question for study in join_labels_with_judgements([run], people)] == [
            expected
        ]


@all_rows(
    "label_question, question, expected",
    [
        ("appeal", None, ["own/appeal@ann", "own/appeal@bob"]),  # the one that makes the reward
        ("appeal", "all/appeal", ["all/appeal@ann", "all/appeal@bob"]),
        ("appeal", "all/appeal@bob", ["all/appeal@bob"]),
        (None, "all/appeal", ["all/appeal@ann", "all/appeal@bob"]),
        ("all/appeal", None, ["all/appeal@ann", "all/appeal@bob"]),
    ],
)
def test_of_several_judges_of_reviewers_labels_are_of_the_one_that_makes_the_reward_or_is_named(
    label_question: str | None,
    question: str | None,
    expected: list[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.clear()
    by_judge = {}
    for name, (share, reviewer) in product(("all", "own"), ((0.5, "ann"), (1.0, "bob"))):
        judge = Judge("run", f"{name}/appeal@{reviewer}", name, reviewer=reviewer)
        by_judge[judge] = {"a": Judgement("t", "judged", share, 1.0, 1 + 4 * share, (1.0, 5.0))}
    run = RunJudgements("run", by_judge, {"a": 1}, {}, rewarded=["own"])
    given = [
        JudgedLabel(id="a", target=3, question=label_question, reviewer=name)
        for name in ("ann", "bob")
    ]
    studies = join_labels_with_judgements([run], labels(*given), question=question)
    assert [study.judge.question for study in studies] == expected
    said = "(all/appeal, own/appeal): own/appeal is taken, which makes the reward; --question names"
    assert (said in caplog.text) == (expected[0].startswith("own"))
    # what is said of a response is the mean over its reviewers
    (judgement,) = find_judgements_of_question(run, "appeal").values()
    assert (judgement.score, judgement.native) == (0.75, 4.0)
    several = replace(run, rewarded=["all", "own"])
    with pytest.raises(InputError, match=r"'appeal' is the end of several questions; write one of"):
        find_judgements_of_question(several, "appeal")


@all_rows(
    "label_question, column, question, is_turned",
    [
        (None, "target", None, True),  # of the outcome
        (None, "adjusted_mean", None, True),
        (None, "adjusted_mean", "q", False),  # as --question says
        (None, "target", "q", False),
        (None, "q", None, False),
        ("q", "target", "q", False),
    ],
)
def test_a_fault_is_turned_round_where_labels_are_of_something_else(
    label_question: str | None, column: str, question: str | None, is_turned: bool
) -> None:
    """Faults of .9 and .2 in a bad and a good response are right of the outcome: .1 and .8, not met and met."""
    judged = judgements({"a": 0.9, "b": 0.2})
    by_judge = {}
    for judge, answers in judged.judgements_by_judge.items():
        by_judge[judge] = {name: row._replace(is_fault=True) for name, row in answers.items()}
    run = replace(judged, judgements_by_judge=by_judge)
    people = labels(
        *(JudgedLabel(id=name, target=name == "b", question=label_question) for name in "ab")
    )
    people = replace(people, columns={**people.columns, "target": column})
    result = report(join_labels_with_judgements([run], people, question=question))
    (judge,) = figures_of(result).judges
    assert judge.accuracy.value == is_turned
    assert judge.uncorrected == 0.5
    assert judge.brier == pytest.approx(0.025 if is_turned else 0.725)
    note = "compared turned round (1 - value), as no label names the fault q; if they are of it, say so: --question q"
    assert (note in result.notes) == is_turned
    by_judge[Judge("run", "p", "p")] = judged.judgements_by_judge[Judge("run", "q", "q")]
    names = {"a": "q", "b": None}
    people = labels(*(JudgedLabel(id=name, target=True, question=names[name]) for name in "ba"))
    studies = join_labels_with_judgements([run], people)
    assert not any(study.is_fault for study in studies), "a label names it"


def test_the_ranking_of_two_questions_leaves_out_no_label_in_which_they_differ() -> None:
    """By those of equal labels the judge of `q` would be right of all."""
    judged = judgements(dict.fromkeys("abcd", 0.9))
    (answers,) = judged.judgements_by_judge.values()
    by_judge = {Judge("run", name, name): answers for name in "qp"}
    rows = []
    for name, targets in {"q": (1, 1, 1, 0), "p": (1, 1, 1, 1)}.items():
        for response, target in zip("abcd", targets, strict=True):
            rows.append(JudgedLabel(id=response, target=bool(target), question=name))
    studies = join_labels_with_judgements(
        [replace(judged, judgements_by_judge=by_judge)], labels(*rows)
    )
    ranking = report(studies).figures["ranking"]
    found = {row["name"]: (row["n"], row["accuracy"].value) for row in ranking}
    assert found == {"q": (4, 0.75), "p": (4, 1.0)}


def test_a_judge_of_a_scale_that_is_too_low_is_told_by_how_much() -> None:
    rows = [LabelledJudgement(f"r{n}", f"t{n}", 3.0, 2.0 - n % 2, 0.5) for n in range(40)]
    study = JudgeStudy(Judge("run", "q", "q"), False, rows, scale=(1.0, 5.0))
    conclusion = " ".join(measure(study).judges[0].conclusion)
    assert "On average it is too low by 1.50 (1.34 to 1.66)." in conclusion


def test_rates_of_a_small_table_by_hand() -> None:
    """3 of 4 positives and 4 of 6 negatives are found: kappa = (0.7 - 0.5) / (1 - 0.5)."""
    found = measure(binary_study([(1, 1)] * 3 + [(1, 0)] + [(0, 1)] * 2 + [(0, 0)] * 4)).judges[0]
    assert (found.n, found.tasks, found.scale) == (10, 10, "binary")
    assert found.accuracy.value == 0.7
    assert (found.tpr.value, found.tnr.value) == (0.75, pytest.approx(2 / 3))
    assert found.kappa.value == pytest.approx(0.4)
    assert found.bias.value == pytest.approx(0.1)
    assert found.brier == pytest.approx(0.3)
    assert found.tpr.low < 0.75 < found.tpr.high


def test_calibration_compares_the_scores_of_a_bin_with_what_people_say() -> None:
    rows = [LabelledJudgement(f"r{n}", f"t{n}", float(n < 6), 1.0, 0.8) for n in range(10)]
    found = measure(JudgeStudy(Judge("run", "q", "q"), True, rows)).judges[0]
    assert found.ece == pytest.approx(0.2)
    assert found.brier == pytest.approx(0.6 * 0.04 + 0.4 * 0.64)
    assert [(one["n"], one["met"]) for one in found.reliability] == [(10, 0.6)]


def test_confusions_and_base_rates_are_counted_and_a_judge_that_decides_has_no_calibration() -> (
    None
):
    pairs = [(1, 1)] * 3 + [(1, 0)] + [(0, 1)] * 2 + [(0, 0)] * 4
    result = report([binary_study(pairs)])
    found = figures_of(result).judges[0]
    assert found.confusion == {"levels": [0.0, 1.0], "counts": [[4, 2], [1, 3]]}
    assert found.base_rates == {"people": 0.4, "judge": 0.5}
    assert (found.ece, found.reliability, result.plots) == (None, [], [])
    (table,) = [table for table in result.tables if table.header[0] == "confusions"]
    assert [row[2:] for row in table.rows] == [[6, 0.6, 4, 2], [4, 0.4, 1, 3], [10, None, 0.5, 0.5]]


def test_accuracy_is_shown_by_agent_domain_and_thirds_of_length_wherever_there_are_several() -> (
    None
):
    study = binary_study([(1, 1), (1, 0), (0, 0), (0, 0), (1, 1), (0, 1)])
    agents = {f"r{number}": "even" if number % 2 == 0 else "odd" for number in range(6)}
    traits = {"agent": agents, "domain": dict.fromkeys(agents, "law")}
    lengths = {f"r{number}": 10 * number for number in range(6)}
    parts = measure(replace(study, traits=traits, lengths=lengths)).judges[0].parts
    assert [(part.by, part.name, part.n, part.accuracy.value) for part in parts] == [
        ("agent", "even", 3, 1.0),
        ("agent", "odd", 3, pytest.approx(1 / 3)),
        ("length", "to 10 characters", 2, 0.5),
        ("length", "to 30 characters", 2, 1.0),
        ("length", "over 30 characters", 2, 0.5),
    ]


@all_rows(
    "pairs, beginning",
    [
        ([(1, 1), (0, 0)] * 100 + [(1, 0)], "q agrees with people well: κ 0.99"),
        (
            [(1, 1), (0, 0), (1, 0)] * 60,
            "q agrees with people more than guessing would, but not well",
        ),
        ([(1, 1), (0, 0), (1, 0)] * 10, "q agrees with people more than guessing would: κ 0.40"),
        (
            [(1, 1)] * 41 + [(0, 0)] * 40 + [(1, 0)] * 10 + [(0, 1)] * 9,
            "q agrees with people more than guessing would: κ 0.62 (0.44 to 0.75), 100 labels. Whether it agrees well, "
            "0.6 or more, cannot be told (0.62 (0.44 to 0.75)); it is about at this bar, and telling takes over 10 "
            "times as many labels.",
        ),
        (
            [(1, 1), (0, 0), (1, 0), (0, 1)] * 9 + [(1, 1)],
            "q may be guessing: κ 0.03 (-0.30 to 0.35) of 37 labels, whose interval contains 0; more ",
        ),
        ([(1, 0), (0, 1)] * 20 + [(1, 1)], "q is further from people than guessing would be: κ -0"),
        (
            [(1, 1), (0, 0)],
            "q may be guessing: κ 1.00 (-0.98 to 1.00) of 2 labels, whose interval contains 0; about 5 more would "
            "tell, if all are like these labels. Of 1 that people call 1 it calls 1 so, and of 1 that they call 0 1. "
            "Whether it is nearer to them than always saying 0 cannot be told (0.50 (-1.00 to 1.00) in accuracy).",
        ),
        (
            [(1, 1), (0, 0)] * 6,
            "q agrees with people more than guessing would: κ 1.00 (0.42 to 1.00), 12 labels. Whether it agrees well, "
            "0.6 or more, cannot be told (1.00 (0.42 to 1.00)); about 6 more would tell, if all are like these labels.",
        ),
        ([(1, 1), (0, 1)] * 20, "q gives all 40 labelled responses one answer"),
        ([(1, 1)], "q gives all 1 labelled responses one answer"),
    ],
)
def test_a_conclusion_claims_no_more_than_its_interval(
    pairs: list[tuple[int, int]], beginning: str
) -> None:
    found = report([binary_study(pairs)])
    (conclusion,) = found.conclusion
    assert conclusion.startswith(beginning)
    need = "it takes 3 persons who share 30 judged items with others, by name"
    # once, however many judges there are
    assert sum(f"was not tested: {need}" in note for note in found.notes) == 1


@all_rows("labels_now, mean, tests", [(50, 0.1, 1), (6, 0.175, 1), (50, 0.1, 6)])
def test_the_labels_that_a_conclusion_asks_for_tell_in_four_fifths_of_such_studies(
    labels_now: int, mean: float, tests: int
) -> None:
    """Of means of numbers with a deviation of .5, of few, too, whose own interval is the wider for being of few.

    Of one of several intervals that hold together, which are wider, too.
    """
    probability = 1.0 - 0.025 / tests
    half_width = t_quantile(labels_now - 1, probability) * 0.5 / labels_now**0.5
    need = describe_needed_count(
        IntervalCell(mean, mean - half_width, mean + half_width), 0.0, labels_now, "labels", tests
    )
    found = re.fullmatch(
        r" About (\d+) more labels like these would tell with a chance of 80%\.", need
    )
    assert found is not None
    total = labels_now + int(found[1])
    values = np.random.default_rng(0).normal(mean, 0.5, (4000, total))
    t = values.mean(axis=1) / values.std(axis=1, ddof=1) * total**0.5
    assert 0.78 <= float((t > t_quantile(total - 1, probability)).mean()) <= 0.82


def test_full_agreement_that_has_no_interval_is_said() -> None:
    run = judgements({f"r{number}": number / 40 for number in range(40)})
    for turn, beginning in (
        (1.0, "q agrees with people fully"),
        (-1.0, "q says the opposite of people"),
    ):
        people = [JudgedLabel(id=f"r{number}", target=turn * number) for number in range(40)]
        (conclusion,) = report(join_labels_with_judgements([run], labels(*people))).conclusion
        assert conclusion == (
            f"{beginning}, as far as 40 labels show: rank correlation {turn:.2f}, without an interval, as nothing "
            "varies."
        )


def test_labels_that_would_hardly_tell_are_not_counted() -> None:
    none = " More labels would hardly tell: it would take over 100 times as many."
    assert describe_needed_count(IntervalCell(0.01, -0.1, 0.2), 0.0, 50, "labels") == none
    assert describe_needed_count(IntervalCell(0.0, -0.1, 0.2), 0.0, 50, "labels") == ""


def test_a_judge_stands_beside_the_people_who_labelled_the_same_responses() -> None:
    """Three people who err in a fifth of the cases, a judge who does not: it beats each of them."""
    rng = np.random.default_rng(1)
    truth = rng.random(200) < 0.5
    rows = []
    for person in ("ann", "bob", "cat", None):
        errors = rng.random(200) < 0.2
        for number, is_met in enumerate(truth ^ errors):
            rows.append(JudgedLabel(id=f"r{number}", target=bool(is_met), reviewer=person))
    run = judgements({f"r{number}": float(is_met) for number, is_met in enumerate(truth)})
    found = measure(*join_labels_with_judgements([run], labels(*rows)))
    test = found.judges[0].alternative_annotator
    assert (test.persons, test["items"], test.winning_rate, test.epsilon) == (3, 200, 1.0, 0.1)
    assert test.advantage.low > 0.8
    assert "may stand in for one: ω 1.00 of 3 persons" in found.conclusion[0]


def test_a_judge_that_gives_shares_has_a_reliability_diagram() -> None:
    rows = [
        LabelledJudgement(f"r{n}", f"t{n}", float(n % 4 > 0), 1.0, 0.6 + 0.3 * (n % 2))
        for n in range(80)
    ]
    (plot,) = report([JudgeStudy(Judge("run", "q", "q"), True, rows)]).plots
    scores, equal = plot.series
    assert (list(scores.x), list(scores.y)) == (
        [pytest.approx(0.6), pytest.approx(0.9)],
        [0.5, 1.0],
    )
    assert scores.low[0] < 0.5 < scores.high[0]
    assert list(equal.x) == list(equal.y)
    assert "differ by 0.10 on average" in plot.title


def test_intervals_are_over_tasks() -> None:
    """Ten equal responses to a task say hardly more than one."""
    single = measure(binary_study([(1, int(n % 4 > 0)) for n in range(12)])).judges[0].accuracy
    tenfold = [(1, int(n % 4 > 0)) for n in range(12) for _ in range(10)]
    copied = measure(binary_study(tenfold, size=10)).judges[0].accuracy
    independent = measure(binary_study(tenfold)).judges[0].accuracy
    assert copied.high - copied.low == pytest.approx(single.high - single.low, rel=0.15)
    assert independent.high - independent.low < 0.5 * (copied.high - copied.low)


def test_the_constant_is_right_as_often_as_the_commonest_label() -> None:
    constant = measure(binary_study([(1, 1)] * 7 + [(0, 1)] * 3)).constant[0]
    assert (constant.value, constant.accuracy.value, constant.tpr.value, constant.tnr.value) == (
        1.0,
        0.7,
        1.0,
        0.0,
    )


def test_judges_that_differ_are_found_and_equal_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    targets = (rng.random(200) < 0.5).astype(int)

    def judge(accuracy: float, name: str) -> JudgeStudy:
        right = rng.random(200) < accuracy
        return binary_study(
            list(zip(targets, np.where(right, targets, 1 - targets), strict=True)), name
        )

    better, same, worse = (
        judge(share, name) for share, name in ((0.9, "a"), (0.9, "b"), (0.6, "c"))
    )
    found = {(one["first"], one["second"]): one for one in measure(better, same, worse).differences}
    assert found["a", "c"].p < 0.001
    assert found["a", "c"].difference.value < 0.0  # nearer to people
    assert found["a", "b"].p > 0.05
    assert not [text for text in report([better, same, worse]).conclusion if "a is nearer" in text]
    for studies, beginning in (
        ((worse, better), "a is nearer to people than c: its mean distance is less by 0.29 ("),
        ((better, worse), "a is nearer to people than c: its mean distance is less by 0.29 ("),
        # equal on these labels shows nothing of others
        (
            (better, replace(better, judge=same.judge)),
            "a and b decide alike: they are equally near to people in all 200 labelled cases.",
        ),
    ):
        assert report(studies).conclusion[-1].startswith(beginning)
    several = [binary_study([(0, 1), (1, 1)], f"judge {number}") for number in range(6)]
    found = report(several)
    assert "judge 5 " in " ".join(found.conclusion)
    judged, rates, counts, *_ = found.tables
    assert (judged.header, rates.header) == (
        ["judge", "n", "accuracy", "κ"],
        ["judge", "TPR", "TNR"],
    )
    assert counts.header == ["judge", "tasks", "missing", "failed", "abstained", "unsupported"]
    told = report([better, same]).conclusion[-1]
    assert re.match(
        r"Whether . is nearer to people than . cannot be told: its mean .* would tell", told
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("size", [200, 1000])
def test_intervals_of_a_known_judge_cover(size: int, seed: int) -> None:
    """300 draws of tasks with two responses, by judges with TPR .85 and TNR .9: within the 99 % bounds of chance."""
    rng = np.random.default_rng((seed, size))
    true = {
        "accuracy": 0.885,
        "tpr": 0.85,
        "tnr": 0.9,
        "bias": 0.025,
        "corrected": 0.3,
        "rogan_gladen": 0.3,
    }
    chance = 0.3 * 0.325 + 0.7 * 0.675
    true["kappa"] = (0.885 - chance) / (1.0 - chance)
    covered = dict.fromkeys(true, 0)
    differ = 0
    for draw in range(300):
        people = rng.random(size + 500) < 0.3
        studies = []
        for question in "ab":
            said = np.where(
                people, rng.random(len(people)) < 0.85, rng.random(len(people)) > 0.9
            ).astype(float)
            rows = [
                LabelledJudgement(f"r{n}", f"t{n // 2}", float(people[n]), said[n], said[n])
                for n in range(size)
            ]
            others = [(f"t{n // 2}", said[n]) for n in range(size, len(people))]
            studies.append(JudgeStudy(Judge("run", question, "e"), True, rows, others))
        found = _measure_judge_agreement(studies[0], None, DEFAULT_WIN_RATE_MARGIN)
        for name, value in true.items():
            covered[name] += found[name].low <= value <= found[name].high
        if draw < 200:
            differ += _compare_judges(studies)[0]["p"] < 0.05
    bound = 2.576 * np.sqrt(0.95 * 0.05 / 300)
    assert all(abs(hits / 300 - 0.95) < bound for hits in covered.values()), covered
    assert differ <= 18


def test_disagreements_come_worst_first_with_their_command() -> None:
    run = judgements({"a": 0.6, "b": 0.95, "c": 0.2})
    study = join_labels_with_judgements(
        [run], labels(*(JudgedLabel(id=name, target=False) for name in "abc"))
    )
    found = measure(*study).disagreements
    assert [one["show"] for one in found] == [
        f"jurygraph show run --response {one} --verdict q" for one in "ba"
    ]


def test_an_unsupported_finding_has_a_count_and_stands_among_the_disagreements() -> None:
    run = judgements({"a": 0.9, "b": 0.1, "c": 0.6})
    (by_response,) = run.judgements_by_judge.values()
    for name in "ab":
        by_response[name] = Judgement(f"task of {name}", "unsupported", counted=0.0)
    people = labels(
        JudgedLabel(id="a", target=True),
        JudgedLabel(id="b", target=False),
        JudgedLabel(id="c", target=False),
    )
    found = report(join_labels_with_judgements([run], people))
    judge, *_ = figures_of(found).judges
    assert (judge.n, judge.unsupported, judge.left_out) == (1, 2, {})
    disagreements = figures_of(found).disagreements
    assert [(one["response"], one["judge"], one["status"]) for one in disagreements] == [
        ("a", 0.0, "unsupported"),
        ("c", 1.0, "judged"),
    ]
    assert "unsupported" in found.tables[2].header
    supported = report(
        join_labels_with_judgements(
            [judgements({"a": 0.9})], labels(JudgedLabel(id="a", target=True))
        )
    )
    assert "unsupported" not in supported.tables[0].header


# Joining


def test_responses_without_a_judgement_are_counted_and_never_wrong() -> None:
    run = judgements({"a": 0.9, "b": "failed", "c": "abstained", "d": "gated", "e": 0.1})
    people = labels(*(JudgedLabel(id=name, target=True) for name in "abcd"))
    found = measure(*join_labels_with_judgements([run], people)).judges[0]
    assert (found.n, found.failed, found.abstained, found.left_out) == (1, 1, 1, {"gated": 1})
    assert found.accuracy.value == 1.0
    assert found.uncorrected == 0.5  # of both judged responses; e has no label
    nothing = measure(
        *join_labels_with_judgements([judgements(dict.fromkeys("abcd", "failed"))], people)
    ).judges[0]
    assert (
        gate_values(found)["failed"],
        gate_values(nothing)["failed"],
        gate_values(nothing)["n"],
    ) == (1, None, 0)


def test_several_people_are_a_majority_and_a_ceiling() -> None:
    run = judgements({"a": 0.9, "b": 0.9})
    votes = {"a": (True, True, False), "b": (True, False)}
    people = labels(*(JudgedLabel(id=name, target=one, reviewer=f"p{place}")
                      for name, given in votes.items() for place, one in enumerate(given)))  # fmt: skip
    studies = join_labels_with_judgements([run], people)
    found = measure(*studies)
    assert (found.judges[0].n, found.judges[0].left_out) == (1, {"tied": 1})
    for page in (report(studies), shorten(report(studies))):
        assert "of the labelled, 2 = 1 compared + 1 tied" in page.notes[0]
    assert found.ceiling[0].value == 0.25  # one of four pairs
    assert found.ceiling[0].judge_share.value == 0.6  # three of five labels
    tables = [table for table in report(studies).sections if isinstance(table, ReportTable)]
    (row,) = next(table.rows for table in tables if table.header[0] == "people agree on")
    assert row[2:] == ["q", IntervalCell(**found.ceiling[0].judge_share)]


def test_people_who_differ_in_numbers_stand_beside_the_judge_s_distance_from_one_of_them() -> None:
    """From the mean of both, 3, the judge is 0 away, and from each person 2; one person alone is no pair, nor counts
    one of a response that the judge failed."""
    run = judgements({"a": 0.5, "b": 0.5, "c": "failed"}, scale=(1.0, 5.0))
    given = {"a": (1.0, 5.0), "b": (4.0,), "c": (1.0, 2.0)}
    people = [
        JudgedLabel(id=name, target=target, reviewer=f"p{place}")
        for name, targets in given.items()
        for place, target in enumerate(targets)
    ]
    found = report(join_labels_with_judgements([run], labels(*people)))
    (ceiling,) = found.figures["ceiling"]
    assert (ceiling["distance"].value, ceiling["judge_distance"].value) == (4.0, 2.0)
    assert any(
        str(section).startswith("compare these two distances: ") for section in found.sections
    )


def test_labels_without_a_question_are_of_the_one_that_their_column_is_called_by() -> None:
    run = judgements({"a": 0.9, "b": 0.9})
    tone = JudgedLabel(id="a", target=True)
    named = labels(tone, JudgedLabel(id="b", target=True, question="q"))
    column = replace(named, columns={**named.columns, "target": "q"})
    (study,) = join_labels_with_judgements([run], column)
    assert [row.response for row in study.rows] == ["a", "b"]


def test_a_scale_is_compared_in_its_own_units() -> None:
    run = judgements({"a": 0.0, "b": 0.5, "c": 1.0}, scale=(1.0, 5.0))
    people = [
        JudgedLabel(id=name, target=target) for name, target in (("a", 1.0), ("b", 4.0), ("c", 5.0))
    ]
    found = measure(*join_labels_with_judgements([run], labels(*people))).judges[0]
    assert (found.scale, found.tpr, found.brier) == ("ordered", None, None)
    assert (found.accuracy.value, found.bias.value) == (pytest.approx(2 / 3), pytest.approx(-1 / 3))
    assert found.rank_correlation.value == pytest.approx(1.0)


def test_means_of_grades_have_a_distance_and_no_accuracy_that_equal_fractions_would_give() -> None:
    """Three people give a and b the means 7/3 and 8/3; a judge that says 2 and 4 is 1/3 and 4/3 away."""
    run = judgements({"a": 0.25, "b": 0.75}, scale=(1.0, 5.0))
    run = replace(run, traits={"agent": {"a": "one", "b": "two"}})
    grades = {"a": (2.0, 2.0, 3.0), "b": (2.0, 3.0, 3.0)}
    people = [
        JudgedLabel(id=name, target=grade, reviewer=f"p{place}")
        for name, given in grades.items()
        for place, grade in enumerate(given)
    ]
    result = report(join_labels_with_judgements([run], labels(*people)))
    found = figures_of(result)
    judge = found.judges[0]
    assert (judge.accuracy, judge.label_range) == (None, [1.0, 5.0])
    assert judge.distance.value == pytest.approx(5 / 6)
    assert [(part.accuracy, part.distance.value) for part in judge.parts] == [
        (None, pytest.approx(1 / 3)),
        (None, pytest.approx(4 / 3)),
    ]
    # four of the six pairs of people are a grade apart
    assert (found.ceiling[0].value, found.ceiling[0].distance.value) == (
        None,
        pytest.approx(2 / 3),
    )
    headers = [title for table in result.tables for title in table.header]
    assert not [title for title in headers if "accuracy" in title and "pairwise" not in title]
    assert "mean distance" in headers
    (table,) = [table for table in result.tables if table.header[0] == "confusions"]
    assert [row[1] for row in table.rows] == ["2", "4", ""], "7/3 and 8/3 have no row"
    assert table.header[1] == "people say (no fractions)"


def test_a_judge_of_numbers_is_compared_with_their_median_which_no_constant_is_nearer_than() -> (
    None
):
    """Of 1, 1, 3, 4, 5 the commonest is 1, and 9 away in all; the median, 3, is 7 away, and the judge 5."""
    targets = (1.0, 1.0, 3.0, 4.0, 5.0)
    rows = [
        LabelledJudgement(f"r{place}", f"t{place}", target, abs(target - 1.0), 0.5)
        for place, target in enumerate(targets)
    ]
    study = JudgeStudy(Judge("run", "q", "q"), False, rows, scale=(0.0, 5.0))
    found = measure(study)
    assert found.constant[0].value == 3.0
    assert found.judges[0].above_constant.value == pytest.approx((7 - 5) / 5)
    assert found.judges[0].accuracy.value == 0.0  # whole grades, none of them the same


def test_a_question_that_is_none_is_refused_also_where_each_label_names_its_own() -> None:
    run = judgements({"a": 1.0})
    named = labels(JudgedLabel(id="a", target=True, question="q"))
    with pytest.raises(InputError, match=r"^--question: there is no question 'r'; there are q$"):
        join_labels_with_judgements([run], named, question="r")


def test_a_question_that_decides_no_label_is_refused_unless_each_label_names_it() -> None:
    met = {"a": Judgement("t", "judged", 1.0, 1.0)}
    by_judge = {Judge("run", name, "criteria"): met for name in ("criteria@helps", "criteria@kind")}
    run = RunJudgements("run", by_judge, {"a": 1}, {})
    named = labels(JudgedLabel(id="a", target=True, question="helps"))
    message = (
        "--question: 'kind' decides nothing, since each label names its own question; leave it out, "
        "or the labels of other questions"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        join_labels_with_judgements([run], named, question="kind")
    (study,) = join_labels_with_judgements([run], named, question="criteria@helps")
    assert study.judge.question == "criteria@helps"


def test_labels_of_a_column_that_is_called_as_a_question_are_of_that_question() -> None:
    met = {"a": Judgement("t", "judged", 1.0, 1.0)}
    by_judge = {Judge("run", name, "criteria"): met for name in ("criteria@helps", "criteria@kind")}
    run = RunJudgements("run", by_judge, {"a": 1}, {})
    rows = labels(JudgedLabel(id="a", target=True)).rows
    for column, questions in {
        "kind": ["criteria@kind"],
        "people": ["criteria@helps", "criteria@kind"],
    }.items():
        studies = join_labels_with_judgements([run], FileRows("f", rows, {"target": column}))
        assert [study.judge.question for study in studies] == questions
    (study,) = join_labels_with_judgements(
        [run], FileRows("f", rows, {"target": "kind"}), question="helps"
    )
    assert study.judge.question == "criteria@helps"


def test_a_column_question_that_is_of_the_items_of_the_file_is_told_what_stands_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Labels of other questions beside those of the judge, as `consensus --labels-out` writes them, are left out."""
    run = judgements({"a": 1.0, "b": 0.0})
    remedy = " (labels name q0a, q0b; if that is something else than the judge's question, rename the column)"
    own = [JudgedLabel(id=name, target=True, question=f"q0{name}") for name in "ab"]
    for question in (None, "q"):
        with pytest.raises(InputError, match=f"field question: .*{re.escape(remedy)}$"):
            join_labels_with_judgements([run], labels(*own), question=question)
    slip = labels(own[0], JudgedLabel(id="b", target=True, question="q"))
    (study,) = join_labels_with_judgements([run], slip)
    assert [row.response for row in study.rows] == ["b"]
    assert "labels of questions that no judge is of, left out: q0a" in caplog.text


def test_a_name_that_all_labels_have_and_no_question_is_of_the_question_that_is_asked_for() -> None:
    run = judgements({"a": 1.0, "b": 0.0})
    stars = JudgedLabel(id="a", target=True, question="stars")
    (study,) = join_labels_with_judgements([run], labels(stars), question="q")
    assert study.judge.question == "q"
    use = JudgedLabel(id="b", target=True, question="use")
    for given, question in (([stars, use], "q"), ([stars, use], None), ([stars], None)):
        names = ", ".join(str(label.question) for label in given)
        problem = rf"there is no question 'stars'; there are q \(labels name {names}; .* rename"
        with pytest.raises(InputError, match=problem):
            join_labels_with_judgements([run], labels(*given), question=question)


def test_labels_of_one_dimension_that_is_no_question_are_of_every_question() -> None:
    run = judgements({"a": 1.0, "b": 0.0})
    stars = labels(JudgedLabel(id="a", target=True, question="stars"))
    of_dimension = replace(stars, columns={**stars.columns, "question": "dimension"})
    for question in (None, "q"):
        (study,) = join_labels_with_judgements([run], of_dimension, question=question)
        assert study.judge.question == "q"


@pytest.mark.parametrize("reason", ["no label", "tie", "other split", "other question"])
def test_the_mean_of_all_responses_is_over_the_same_set_whyever_a_response_is_not_compared(
    reason: str,
) -> None:
    """The judge has 1, 0, 1, 0, 0, of which the last is compared with nobody: 2/5, and not 2/4."""
    run = judgements({"a": 1.0, "b": 0.0, "c": 1.0, "d": 0.0, "e": 0.0})
    judge, given = next(iter(run.judgements_by_judge.items()))
    second_question = {judge._replace(question="other"): given}
    run = replace(run, judgements_by_judge={judge: given} | second_question)
    people = [
        JudgedLabel(id=name, target=name in "ac", question="q", split="test") for name in "abcd"
    ]
    last = JudgedLabel(id="e", target=True, question="q", split="test", reviewer="ann")
    rows_of_last = {
        "no label": [],
        "tie": [last, last.model_copy(update={"target": False, "reviewer": "bob"})],
        "other split": [last.model_copy(update={"split": "train"})],
        "other question": [last.model_copy(update={"question": "other"})],
    }
    studies = join_labels_with_judgements(
        [run], labels(*people, *rows_of_last[reason]), split="test"
    )
    found = measure(*studies).judges[0]
    assert (found.judge, found.n, found["items"], found.uncorrected) == ("q", 4, 5, 0.4)
    assert found.weight > 0.0


def test_labels_of_one_task_have_figures_without_intervals() -> None:
    """NumPy has nothing to warn of, where without the only task no row is left."""
    found = measure(binary_study([(1, 1), (0, 0)], size=2)).judges[0]
    assert found.rank_correlation == pytest.approx({"value": 1.0, "low": None, "high": None})


def test_models_are_judges_of_their_own_and_share_what_no_model_was_asked() -> None:
    gated = Judgement("t", "gated")
    judged = Judgement("t", "judged", 1.0, 1.0)
    nobody, small, large = (
        Judge("run", "q", "criteria", model) for model in (None, "small", "large")
    )
    by_judge = {nobody: {"a": gated}, small: {"b": judged}, large: {"b": judged}}
    _copy_modelless_judgements(by_judge)
    assert by_judge == {small: {"a": gated, "b": judged}, large: {"a": gated, "b": judged}}
    assert (nobody.name, small.name) == ("q (criteria)", "q (criteria, small)")


def test_labels_of_people_whom_no_judge_predicts_are_counted_and_named() -> None:
    names = ("ann", "bob")
    by_judge = {Judge("run", f"q@{name}", "q", reviewer=name): {} for name in names}
    by_judge[Judge("run", "reward", "")] = {}
    run = RunJudgements("run", by_judge, {"a": 1}, {})
    people = [
        JudgedLabel(id="a", target=1, reviewer=name, question=question)
        for name, question in (("ann", "q@ann"), ("ann", "q@bob"), ("bob", None), ("bobb", None))
    ]
    assert list(unpredicted_label_notes([run], labels(*people))) == [
        "1 of 4 labels are left out: their question predicts another reviewer than the one who gave them",
        "no judge predicts reviewer 'bobb', of 1 labels; did you mean bob?",
    ]
    by_judge[Judge("run", "kind", "kind")] = {}  # is compared with everybody
    assert list(unpredicted_label_notes([run], labels(*people[2:]))) == []


def test_a_judge_for_a_reviewer_is_compared_with_that_reviewer_alone() -> None:
    judge = Judge("run", "q", "q", reviewer="ann")
    run = RunJudgements(
        "run", {judge: {"a": Judgement("t", "judged", 1.0, 1.0)}}, {"a": 10, "b": 10}, {}
    )
    people = [
        JudgedLabel(id="a", target=True, reviewer="ann"),
        JudgedLabel(id="a", target=False, reviewer="bob"),
    ]
    (study,) = join_labels_with_judgements([run], labels(*people))
    assert [row.target for row in study.rows] == [1.0]
    untested = (
        "was not tested: each question predicts one person, with whom `study reviewers` compares"
    )
    assert untested in " ".join(report([study]).notes)
    with pytest.raises(InputError, match="no judge is of a reviewer who gave a label"):
        join_labels_with_judgements([run], labels(people[1]))


def test_a_response_that_one_of_two_runs_lacks_is_missing_there() -> None:
    people = labels(JudgedLabel(id="a", target=True), JudgedLabel(id="b", target=False))
    runs = [judgements({"a": 0.9, "b": 0.1}), judgements({"a": 0.9})]
    assert [one.missing for one in measure(*join_labels_with_judgements(runs, people)).judges] == [
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("label", "message"),
    [
        (
            JudgedLabel(id="z", target=True),
            "people.csv, line 2, field id: there is no response 'z'",
        ),
        (
            JudgedLabel(id="a", target=True, question="r"),
            "people.csv, line 2, field question: there is no question",
        ),
        (
            JudgedLabel(id="a", target=7.0),
            "people.csv, line 2, field target: is 7; 'q' goes from 0 to 1",
        ),
        (
            JudgedLabel(id="a", other="z", target=1.0),
            "people.csv, line 2, field other: there is no response 'z'",
        ),
        (
            JudgedLabel(id="a", other="b", target=1.0),
            "no judge is of a reviewer who gave a label; name the",
        ),
    ],
)
def test_labels_that_fit_nothing_are_refused(label: JudgedLabel, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        join_labels_with_judgements([judgements({"a": 1.0, "b": 1.0})], labels(label))


def test_responses_and_pairs_of_a_task_or_group_are_one_cluster(tmp_path: Path) -> None:
    """Labels name responses alone: the run knows which of them belong together."""
    tasks = make_tasks(tasks=4)
    for task in tasks[2:]:
        task["group"] = "g"
    evaluators = [
        evaluator_config("same"),
        evaluator_config("rank", scope="pair", pairs="unordered"),
    ]
    config = {"evaluators": evaluators, "reward": {"same": 1.0, "rank": 1.0}}
    score(tmp_path / "run", write_tasks(tmp_path, tasks), config)
    with closing(Run.open(tmp_path / "run")) as run:
        read = read_judgements(run)
    ids = [response["id"] for task in tasks for response in task["responses"]]
    single = [JudgedLabel(id=one, target=True, question="same") for one in ids]
    pairs = [
        JudgedLabel(id=f"t{task}/r0", other=f"t{task}/r{n}", target=0.5, question="rank")
        for task in range(4)
        for n in (1, 2)
    ]
    found = measure(*join_labels_with_judgements([read], labels(*single, *pairs))).judges
    assert {one.question: (one.n, one.tasks) for one in found} == {"rank": (8, 3), "same": (12, 3)}


def test_the_labels_that_are_needed_are_said_even_where_all_would_not_do() -> None:
    study = replace(
        binary_study([(1, 1), (0, 0), (1, 0), (0, 0)] * 10),
        others=[(f"o{n}", n % 2) for n in range(60)],
    )
    found = [report([study], need).tables for need in (0.2, 0.001)]
    cells = [
        next(table for table in tables if "PPI++ (95 %)" in table.header).rows[0][-1]
        for tables in found
    ]
    assert isinstance(cells[0], int)
    assert cells[0] < 40
    assert cells[1] == "not even all 100"


def labelled_run(name: str, **targets: object) -> RunJudgements:
    """A run whose responses have a label `gold`."""
    return replace(
        judgements({}), run=name, labels={one: {"gold": target} for one, target in targets.items()}
    )


def test_labels_of_the_responses_themselves_are_read_from_the_runs() -> None:
    found = read_labels(
        ["label.gold"],
        [
            labelled_run("one", a=True, b=None),
            labelled_run("two", a="yes", c=3, d=" Not met ", e="0.5"),
        ],
    )
    assert [row for _, row in found.rows] == [
        JudgedLabel(id="a", target=True),
        JudgedLabel(id="c", target=3.0),
        JudgedLabel(id="d", target=False),
        JudgedLabel(id="e", target=0.5),
    ]


@all_rows(
    "source, targets, message",
    [
        (
            "label.gld",
            [True, True],
            "one, two: no response has the label 'gld'; did you mean gold?",
        ),
        ("label.csv", [True, True], "label.csv: there is no such file; "),
        (
            "label.gold",
            ["good", True],
            "one: label 'gold' of response 'a' is 'good'; write a number, or true or false",
        ),
        (
            "label.gold",
            [True, False],
            "two: label 'gold' of response 'a' is 'False', and another run has True",
        ),
    ],
)
def test_labels_of_responses_that_give_no_target_are_refused(
    source: str, targets: list[object], message: str
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        read_labels(
            [source],
            [labelled_run(name, a=one) for name, one in zip(("one", "two"), targets, strict=True)],
        )


# Published verdicts


def test_pandalms_judges_have_the_published_accuracies() -> None:
    """Codes become numbers in order; replies without one have failed, which counts as wrong in the published figure."""
    order = {"Tie": 0.5, "0": 0.5, "1": 1.0, "2": 0.0}
    with gzip.open(DATA / "pandalm" / "ratings.csv.gz", "rt", encoding="utf-8") as file:
        pairs = list(csv.DictReader(file))
    published = json.loads((DATA / "pandalm" / "published.json").read_text(encoding="utf-8"))
    studies = []
    for name in ("gpt35", "pandalm7b"):
        judged = [pair for pair in pairs if pair[name] in order]
        rows = [
            LabelledJudgement(
                pair_name(p["idx"], "other"),
                p["idx"],
                order[p["maj"]],
                order[p[name]],
                order[p[name]],
            )
            for p in judged
        ]
        left_out = {"failed": len(pairs) - len(rows)}
        studies.append(JudgeStudy(Judge(name, name, name), False, rows, left_out=left_out))
    found = measure(*studies)
    for one in found.judges:
        assert (
            round(one.accuracy.value * one.n / (one.n + one.failed), 4)
            == published[one.judge]["acc"]
        )
        assert one.accuracy.low < one.accuracy.value < one.accuracy.high
    assert found.differences[0].n == found.judges[0].n


def test_the_65_evaluators_of_llmbar_have_the_published_accuracies() -> None:
    with gzip.open(DATA / "llmbar" / "statistics.json.gz", "rt", encoding="utf-8") as file:
        published = json.load(file)
    with gzip.open(DATA / "llmbar" / "verdicts.jsonl.gz", "rt", encoding="utf-8") as lines:
        entries = [json.loads(line) for line in lines]
    pairs: dict[str, list[tuple[int, int]]] = {}
    right: Counter[str] = Counter()
    for entry in entries:
        name = f"{entry['evaluator']}|{entry['mode']}"
        judged = [
            both for both in zip(entry["label"], entry["orig"], strict=True) if both[1] in "12"
        ]
        pairs.setdefault(name, []).extend(
            (int(label == "1"), int(said == "1")) for label, said in judged
        )
        right[name] += int(published[f"{entry['subset']}|{name}"]["correct_False"].split(" / ")[0])
    assert len(pairs) == 65
    for name, judged_pairs in pairs.items():
        found = measure(binary_study(judged_pairs)).judges[0]
        assert round(found.accuracy.value * len(judged_pairs)) == right[name]
        assert found.accuracy.low < found.accuracy.value < found.accuracy.high
        assert found.kappa.low < found.kappa.value < found.kappa.high


CONSENSUS_EXAMPLE = Path(__file__).parents[2] / "examples" / "consensus"


def mtbench_votes(name: str, turn: str) -> dict[str, list[float]]:
    """1 for the first model by name, 0 for the second, 0.5 for a tie, as a model or experts vote on a question."""
    votes: dict[str, list[float]] = {}
    with gzip.open(CONSENSUS_EXAMPLE / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["turn"] == turn and not row["judge"].startswith("author"):
                models = sorted((row["model_a"], row["model_b"]))
                # none of a tie, whether it is one in each order or between them
                winner = row.get(row["winner"])
                vote = 0.5 if winner is None else float(winner == models[0])
                votes.setdefault(" ".join((row["question_id"], *models)), []).append(vote)
    return votes


@all_rows("turn, ties", [("1", True), ("1", False), ("2", True), ("2", False)])
def test_gpt4_agrees_with_the_experts_of_mtbench_as_published(turn: str, ties: bool) -> None:
    """An expert's vote is a label, and all of a pair are one task; without ties both name a winner."""
    experts = mtbench_votes("mtbench_human", turn)
    if not ties:
        experts = {key: [who for who in given if who != 0.5] for key, given in experts.items()}
    rows = [
        LabelledJudgement(pair_name(key, str(number)), key, who, said, said)
        for key, (said,) in mtbench_votes("mtbench_gpt4", turn).items()
        for number, who in enumerate(experts.get(key, ()))
        if ties or said != 0.5
    ]
    votes = [(key, given) for key, given in experts.items() if len(given) > 1]
    found = measure(JudgeStudy(Judge("mtbench", "better", "gpt4"), False, rows, votes=votes))
    published = json.loads((DATA / "mtbench" / "agreement.json").read_text(encoding="utf-8"))
    expected = published[f"turn{turn}_{'with' if ties else 'no'}_ties"]
    accuracy = found.judges[0].accuracy
    assert [round(accuracy.value * len(rows)), len(rows), round(accuracy.value, 4)] == expected[
        "gpt4_human"
    ]
    assert accuracy.low < accuracy.value < accuracy.high
    assert round(found.ceiling[0].value, 2) == round(expected["human_human"][2], 2)


# Pairs


def pair_run(*scores: tuple[float, float]) -> RunJudgements:
    """A judge of pairs a/b, with P(a is better) in both orders, as verdicts."""
    given = {}
    for number, (straight, swapped) in enumerate(scores):
        pair = pair_name(f"a{number}", f"b{number}")
        verdicts = [
            RecordedVerdict(
                score=straight, responses=(f"a{number}", f"b{number}"), about=f"a{number}"
            ),
            RecordedVerdict(
                score=1.0 - swapped, responses=(f"b{number}", f"a{number}"), about=f"b{number}"
            ),
        ]
        given[pair] = _summarize_pair_verdicts(f"t{number}", pair, verdicts)
    lengths = {
        f"{side}{number}": 10 + (side == "a") for number in range(len(scores)) for side in "ab"
    }
    return RunJudgements("run", {Judge("run", "better", "better"): given}, lengths, {})


def test_the_orders_of_a_pair_add_up_and_flips_are_ties() -> None:
    """a3 is right in one order and a tie in the other, which is right; a0 and a2 are right in both."""
    run = pair_run((0.9, 0.8), (0.9, 0.1), (0.2, 0.3), (0.5, 0.9))
    people = [("a0", "b0", 1.0), ("b1", "a1", 1.0), ("b2", "a2", 1.0), ("a3", "b3", 1.0)]
    study = join_labels_with_judgements(
        [run], labels(*(JudgedLabel(id=a, other=b, target=target) for a, b, target in people))
    )[0]
    assert [(row.target, row.prediction) for row in study.rows] == [
        (1.0, 1.0),
        (0.0, 0.5),
        (0.0, 0.0),
        (1.0, 1.0),
    ]
    found = measure(study)
    assert found.judges[0].flips.value == 0.25  # a tie in one order is no flip
    assert found.judges[0].accuracy.value == 0.75
    assert found.judges[0].strict.value == 0.5
    assert found.length[0].accuracy.value == 0.5  # a is longer
    assert found.disagreements[0]["show"] == "jurygraph show run --response a1 --verdict better"
    with pytest.raises(InputError, match="pairs by `id` and `other`"):
        join_labels_with_judgements([run], labels(JudgedLabel(id="a0", target=1.0)))


def test_an_order_that_failed_is_no_half_answer() -> None:
    pair = pair_name("a", "b")
    right = RecordedVerdict(score=1.0, responses=("a", "b"), about="a")
    lost = RecordedVerdict(status="abstained", responses=("b", "a"), about="b")
    assert _summarize_pair_verdicts("t", pair, [right, lost]).status == "abstained"
    assert (
        _summarize_pair_verdicts("t", pair, [right, right]).native == 1.0
    )  # one order alone was asked


def test_a_consensus_outweighs_a_majority_of_people_who_guess() -> None:
    rng = np.random.default_rng(6)
    truth = rng.random(300) < 0.5
    right = {"ann": 0.95, "bob": 0.9, "cat": 0.9, "dan": 0.5, "eve": 0.5}
    people = [
        JudgedLabel(
            id=f"r{n}", target=bool(is_met if rng.random() < share else not is_met), reviewer=name
        )
        for n, is_met in enumerate(truth.tolist())
        for name, share in right.items()
    ]
    run = judgements({f"r{n}": float(is_met) for n, is_met in enumerate(truth.tolist())})
    by_majority, by_consensus = (
        measure(
            *join_labels_with_judgements([run], labels(*people), should_fit_consensus=has_consensus)
        )
        for has_consensus in (False, True)
    )
    assert by_majority.judges[0].accuracy.value < by_consensus.judges[0].accuracy.value
    assert by_consensus.judges[0].accuracy.value > 0.94
    assert by_consensus.ceiling[0].value == pytest.approx(np.mean(list(right.values())), abs=0.03)
    with pytest.raises(
        InputError,
        match=r"--consensus: .*name who gave each label in `reviewer`, or leave --consensus out: the majority "
        r".* `jurygraph consensus … --labels-out F` writes",
    ):
        join_labels_with_judgements(
            [run],
            labels(*(one.model_copy(update={"reviewer": None}) for one in people)),
            should_fit_consensus=True,
        )


def test_responses_with_an_empty_label_are_left_out_and_the_report_counts_them() -> None:
    run = judgements({"a": 1.0, "b": 0.0, "c": 1.0, "d": 1.0})
    values = {"a": "yes", "b": "", "c": "no", "d": "N/A"}
    run = replace(run, labels={name: {"gold": value} for name, value in values.items()})
    people = read_labels(["label.gold"], [run])
    notes = unlabelled_row_notes(people)
    words = "an empty cell, or n/a, NA, unsure, ? or -"
    assert notes == [f"2 of 4 labels are missing ({words}) and are left out"]
    measured = report(join_labels_with_judgements([run], people), notes=notes)
    assert measured.notes[0] == notes[0]
    assert figures_of(measured).judges[0].n == 2
    with pytest.raises(InputError, match="label 'gold' is empty in every response"):
        read_labels(["label.gold"], [replace(run, labels={"b": {"gold": ""}})])


def test_words_lie_evenly_on_the_scale_of_the_judge_whose_question_is_chosen(
    tmp_path: Path,
) -> None:
    """`consensus --labels-out` writes words for `study judge`, and a file of ratings has other questions."""
    path = tmp_path / "people.csv"
    path.write_text(
        "item,question,label\na,tone,cold\nb,tone,Warm\nc,tone,n/a\na,stars,4\nb,style,dull\n"
    )
    judged = judgements({"a": 0.0, "b": 0.5, "c": 1.0}, scale=(1.0, 5.0)).judgements_by_judge
    (given,) = judged.values()
    by_judge = {Judge("run", f"criteria@{name}", "criteria"): given for name in ("tone", "stars")}
    run = RunJudgements("run", by_judge, dict.fromkeys("abc", 10), {})

    def targets(question: str | None, classes: str | None) -> dict[str, float]:
        found = read_labels([str(path)], [run], question=question, classes=classes and [classes])
        assert found.empty == (classes is not None), "a label of another question is not missing"
        (study,) = join_labels_with_judgements([run], found, question=question)
        return {row.response: row.target for row in study.rows}

    assert targets("tone", "cold,ok,warm") == {"a": 1.0, "b": 5.0}
    assert targets("criteria@tone", "awful,cold,warm") == {"a": 3.0, "b": 5.0}
    assert targets("stars", None) == {"a": 4.0}
    assert targets("tone", "Tone=cold,ok,warm") == {"a": 1.0, "b": 5.0}
    unnamed = "is the text 'cold'; write a number, .*, or name all words by --classes tone=LOWEST"
    for question, classes, message in (
        ("tone", None, unnamed),
        (None, "cold,ok,warm,dull", "is '4', which is none of --classes; name all words, or those"),
        (None, "ton=cold,warm", unnamed),
        ("stars", "star=1,2", "--classes: no label is of the question 'star'; there are criteria@"),
    ):
        with pytest.raises(InputError, match=message):
            targets(question, classes)


def test_words_of_one_question_stand_beside_the_numbers_of_another(tmp_path: Path) -> None:
    """A name of the question by its last part, or in another case, is that of the labels by its id."""
    path = tmp_path / "people.csv"
    path.write_text("id,stars,mood\na,4,cold\nb,2,Warm\n")
    (given,) = judgements({"a": 0.0, "b": 0.5}, scale=(1.0, 5.0)).judgements_by_judge.values()
    by_judge = {Judge("run", f"criteria@{name}", "criteria"): given for name in ("tone", "stars")}
    run = RunJudgements("run", by_judge, dict.fromkeys("ab", 10), {})
    for column, classes in {
        "stars,criteria@tone=mood": ["Tone=cold,ok,warm"],
        "stars,tone=mood": ["criteria@tone=cold,ok,warm", "stars=1,2,3,4"],
    }.items():
        found = read_labels([str(path)], [run], {"target": column}, classes=classes)
        studies = join_labels_with_judgements([run], found)
        targets = [[row.target for row in study.rows] for study in studies]
        assert targets == [[1.0, 5.0], [4.0, 2.0] if len(classes) == 1 else [5.0, 1.0 + 4.0 / 3]]
    columns = {"target": "stars,mood"}
    message = r"is '4', which is none of --classes; .*: --classes QUESTION=cold,ok,warm"
    with pytest.raises(InputError, match=message):
        read_labels([str(path)], [run], columns, classes=["cold,ok,warm"])


def test_a_judge_may_stand_in_for_a_person_only_if_always_saying_one_thing_would_not_do() -> None:
    """Of rare 1s the judge hits half: as near to people as they are, and so is always saying 0."""
    rng = np.random.default_rng(3)
    truth = np.arange(150) % 15 == 0
    rows = []
    for person in ("ann", "bob", "cat"):
        said = truth ^ (rng.random(150) < 0.03)
        for number, is_met in enumerate(said):
            rows.append(JudgedLabel(id=f"r{number}", target=bool(is_met), reviewer=person))
    for hit, words in {
        0.55: "but so is always saying 0: whether it may stand in for one cannot be told, because only 1",
        1.0: "and may stand in for one: ω",
    }.items():
        says = truth & (np.arange(150) < hit * 150) | (np.arange(150) % 50 == 7) & (hit < 1)
        run = judgements({f"r{number}": float(is_met) for number, is_met in enumerate(says)})
        found = measure(*join_labels_with_judgements([run], labels(*rows)))
        assert f"q is as near to people as a person is, {words}" in " ".join(found.conclusion)
