"""Several judges of a question beside people: as folded, each alone, and without each."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jurygraph.errors import InputError
from jurygraph.inference.clusters import bonferroni_interval, mean_with_cluster_interval
from jurygraph.models.request import Reply, Request
from jurygraph.runs.run import Run
from jurygraph.schema.rating import JudgedLabel
from jurygraph.sources.file_rows import FileRows
from jurygraph.studies.calibration import labelled_scores
from jurygraph.studies.conclusions import conclude_smaller_juries
from jurygraph.studies.judge import join_labels_with_judgements
from jurygraph.studies.judge_report import report, shorten
from jurygraph.studies.judgements import read_judgements
from jurygraph.studies.juries import measure_smaller_juries
from jurygraph.studies.report import IntervalCell, ReportTable
from jurygraph.testing import ScriptedJudge
from tests.rows import all_rows
from tests.runs.sample_runs import scored_session, traces_of, write_tasks
from tests.studies.figures import Figures, figures_of

RESPONSES = 40
SCORES = np.random.default_rng(3).random((3, RESPONSES)).round(2)
"""What each of three judges, a, b and c, says of a response, as a probability, [judges, responses]."""
MET = SCORES >= 0.5
GOLD = MET.sum(axis=0) >= 2
"""What people say: the majority of the judges."""
GOLD[:3] = ~GOLD[:3]
UNANSWERED = 7
"""The response of which c says nothing."""


def scripted(number: int) -> ScriptedJudge:
    def answer(text: str) -> float | str:
        response = int(text.split()[-1])
        return "?" if (number, response) == (2, UNANSWERED) else float(SCORES[number, response])

    return ScriptedJudge({"It answers.": answer}, f"judge {number}")


def score(folder: Path, use: Mapping[str, Any], more: Mapping[str, Any] = {}) -> Path:
    """A run of two responses to each of twenty tasks."""
    folder.mkdir(exist_ok=True)
    tasks = []
    for first in range(0, RESPONSES, 2):
        responses = [{"id": f"r{n}", "text": f"Text {n}"} for n in (first, first + 1)]
        tasks.append({"id": f"t{first}", "query": "Write.", "responses": responses})
    evaluator = {"use": "criteria", "params": {"criteria": {"ok": "It answers."}}, **use}
    models = {name: scripted(number) for number, name in enumerate("abc")}
    config = {"models": models, "evaluators": [evaluator], **more}
    with scored_session(folder / "run", write_tasks(folder, tasks), config):
        pass
    return folder / "run"


def people() -> FileRows[JudgedLabel]:
    rows = []
    for number, gold in enumerate(GOLD):
        rows.append((f"line {number}", JudgedLabel(id=f"r{number}", target=bool(gold))))
    return FileRows("people.csv", tuple(rows), {})


def study(folder: Path) -> Figures:
    with closing(Run.open(folder)) as run:
        judged = [read_judgements(run)]
    return figures_of(report(join_labels_with_judgements(judged, people()), runs=judged))


@all_rows(
    "use, more, jury",
    [
        ({"judges": ["a", "b", "c"]}, {}, "mean of 3"),
        ({"judges": ["a", "b", "c"], "fold": "median"}, {}, "median of 3"),
        ({"judges": ["a", "b", "c"], "fold": "majority"}, {}, "majority of 3"),
        (
            {"judges": ["a", "b", "c"]},
            {
                "components": {
                    "votes": {"inputs": {"all": {"verdicts_of": "criteria", "reduce": "min"}}}
                },
                "reward": {"votes": 1},
            },
            "min of 3",
        ),
        (
            {"escalate": {"first": ["a", "b"], "then": "c", "when": "disagree"}},
            {},
            "escalation of 3",
        ),
        ({"judges": ["a", "b", "c"], "samples": 2, "fold": "majority"}, {}, "majority of 3"),
    ],
)
def test_a_jury_has_the_value_that_the_reward_counts(
    tmp_path_factory: pytest.TempPathFactory,
    use: Mapping[str, Any],
    more: Mapping[str, Any],
    jury: str,
) -> None:
    folder = score(tmp_path_factory.mktemp("jury"), use, more)
    rewards = {trace.response_id: trace.reward.value for trace in traces_of(folder)}
    with closing(Run.open(folder)) as run:
        by_judge = read_judgements(run).judgements_by_judge
    (judgements,) = [
        found
        for judge, found in by_judge.items()
        if str(judge.jury) == f"jury, {jury}" and judge.without is None
    ]
    scores = {name: judgement.score for name, judgement in judgements.items()}
    assert {name: value for name, value in scores.items() if value is not None} == {
        name: rewards[name] for name, value in scores.items() if value is not None
    }
    assert {name: one.status for name, one in judgements.items() if one.score is None} in (
        {},
        {f"r{UNANSWERED}": "failed"},
    )


def test_a_majority_of_three_is_compared_with_its_judges_and_its_pairs(tmp_path: Path) -> None:
    found = study(score(tmp_path, {"judges": ["a", "b", "c"], "fold": "majority"}))
    jury = MET.sum(axis=0) >= 2
    has_jury = np.ones(RESPONSES, dtype=bool)
    has_jury[UNANSWERED] = MET[0, UNANSWERED] == MET[1, UNANSWERED]
    tasks = np.arange(RESPONSES) // 2
    counted = jury & has_jury
    met = MET.copy()
    met[2, UNANSWERED] = False  # what a judge alone does not answer counts as it does for a jury
    for number, row in enumerate(found.jury_parts[:3]):
        gaps = (met[number] != GOLD) * 1.0 - (counted != GOLD)
        estimate = mean_with_cluster_interval(gaps, tasks)
        assert estimate is not None
        assert (row.alone, row.labels, row.undecided) == ("abc"[number], RESPONSES, number == 2)
        assert row.accuracy == pytest.approx((met[number] == GOLD).mean())
        # not the mean probability, beside which the votes of the jury would be in another unit
        assert row.score == pytest.approx(met[number].mean())
        expected = [estimate.value, *bonferroni_interval(estimate, 3)]
        assert list(row.farther.values()) == pytest.approx(expected)
    assert [judge.judge for judge in found.judges] == [
        *(f"criteria/ok ({name})" for name in "abc"),
        "criteria/ok (jury, majority of 3)",
    ]
    assert {row.first for row in found.differences} == {"criteria/ok (a)", "criteria/ok (b)"}


@all_rows(
    "fold, aggregation, met",
    [
        ("mean", "gear", 0.0),
        ("median", "gear", 1.0),
        ("majority", "gear", 1.0),
        ("mean", "hard-local", 1.0),
    ],
)
def test_a_folded_score_decides_for_a_jury_what_is_met_and_votes_do_in_a_majority_or_hard_rule(
    tmp_path_factory: pytest.TempPathFactory, fold: str, aggregation: str, met: float
) -> None:
    folder = tmp_path_factory.mktemp("fold")
    criterion = {"id": "ok", "text": "It answers.", "weight": 1.0}
    task = {"id": "t", "query": "Write.", "rubric": {"criteria": [criterion]}}
    tasks = write_tasks(folder, [{**task, "responses": [{"id": "r0", "text": "Text 0"}]}])
    models = {}
    for name, said in {"a": 0.68, "b": 0.66, "c": 0.06}.items():
        models[name] = ScriptedJudge({"It answers.": said}, name)
    config = {
        "models": models,
        "evaluators": [{"use": "criteria", "judges": list(models), "fold": fold}],
        "rubric": {"aggregation": aggregation},
    }
    with scored_session(folder / "run", tasks, config):
        pass
    with closing(Run.open(folder / "run")) as run:
        by_judge = read_judgements(run).judgements_by_judge
    (jury,) = [found for judge, found in by_judge.items() if judge.jury and judge.without is None]
    assert jury["r0"].decision == met


def test_judges_that_disagree_without_a_majority_are_neither_right_nor_wrong(
    tmp_path: Path,
) -> None:
    use = {"judges": ["a", "b", "c"], "fold": "majority"}
    folder = score(tmp_path, use, {"failure": {"min_coverage": 0.0}})
    with closing(Run.open(folder)) as run:
        (without_c,) = [
            judgements
            for judge, judgements in read_judgements(run).judgements_by_judge.items()
            if judge.without == "c"
        ]
    statuses = {without_c[f"r{n}"].status for n in np.flatnonzero(MET[0] != MET[1])}
    assert statuses == {"abstained"}


class PricedJudge(ScriptedJudge):
    """A scripted judge whose replies have 1,000 tokens each."""

    costs_nothing = False

    async def complete(self, request: Request, timeout: float) -> Reply:
        reply = await super().complete(request, timeout)
        return reply.model_copy(update={"tokens_in": 0, "tokens_out": 1000})


def test_the_replies_that_another_group_shares_are_paid_once_as_the_run_bills_them(
    tmp_path: Path,
) -> None:
    responses = [{"id": f"r{n}", "text": f"Text {n}"} for n in range(3)]
    task = {"id": "t", "query": "Write.", "responses": responses}
    # of a group whose responses are gated nobody is asked
    gated = {**task, "id": "gated", "responses": [{"id": "empty", "text": ""}]}
    twins = [{**response, "id": f"twin of {response['id']}"} for response in responses]
    tasks = write_tasks(tmp_path, [task, gated, {**task, "id": "twin", "responses": twins}])
    params = {"criteria": {"ok": "It answers.", "kind": "It is kind."}}
    config = {
        "models": {name: PricedJudge({"It": True}, name) for name in "abc"},
        "evaluators": [{"use": "criteria", "params": params, "judges": list("abc")}],
        "calls": {"prices": {name: {"input": 0.0, "output": 1.0} for name in "abc"}},
    }
    with scored_session(tmp_path / "run", tasks, config) as session:
        bill = session.summary.bill
    with closing(Run.open(tmp_path / "run")) as run:
        judged = read_judgements(run)
    cost_by_judge_left_out = {
        row["without"]: row["cost"]
        for row in measure_smaller_juries(judged, [])
        if row["alone"] is None
    }
    assert cost_by_judge_left_out[None] == pytest.approx(9 * 0.001)
    assert cost_by_judge_left_out[None] == pytest.approx(bill.costs_by_source["sent"].cost)
    assert cost_by_judge_left_out["c"] == pytest.approx(6 * 0.001)
    found = report([], runs=[judged, replace(judged, run="other")])
    assert found.tables[0].rows[-1][0] == "other: criteria"


def test_a_bound_near_0_keeps_its_sign() -> None:
    nearer = part("without", "c", IntervalCell(-0.0843, -0.1639, -0.0047))
    assert "by -0.084 (-0.164 to -0.005), 40 labels" in next(
        conclude_smaller_juries([JURY, nearer])
    )


def test_what_a_jury_leaves_undecided_is_in_the_words_and_in_the_test_beside_people(
    tmp_path: Path,
) -> None:
    use = {"judges": ["a", "b"], "fold": "majority"}
    with closing(Run.open(score(tmp_path, use, {"failure": {"min_coverage": 0.0}}))) as run:
        judged = [read_judgements(run)]
    rows = []
    for line, person in enumerate(["ann", "bob", "cid"] * RESPONSES):
        name = f"r{line // 3}"
        label = JudgedLabel(id=name, target=bool(GOLD[line // 3]), reviewer=person)
        rows.append((f"line {line}", label))
    studies = join_labels_with_judgements(judged, FileRows("people.csv", tuple(rows), {}))
    (jury,) = [
        row for row in report(studies, runs=judged).figures["judges"] if "jury" in row["judge"]
    ]
    is_decided = MET[0] == MET[1]
    assert (jury["n"], jury["as_counted"]["n"]) == (is_decided.sum(), RESPONSES)
    is_right = (MET[0] & MET[1]) == GOLD
    assert jury["as_counted"]["accuracy"].value == pytest.approx(is_right.mean())
    undecided = RESPONSES - is_decided.sum()
    assert f"With {undecided} more that are undecided or unsupported" in " ".join(
        jury["conclusion"]
    )
    assert jury["alternative_annotator"].items == RESPONSES


def test_a_label_of_what_a_run_has_not_scored_yet_is_no_slip_of_the_pen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = score(tmp_path, {"judges": ["a", "b"]})
    later = FileRows("f", (("line 2", JudgedLabel(id="r99", target=True)),), {"id": "id"})
    for is_closed, hint in (
        (True, "did you mean r9"),
        (False, "40 responses, of 20 of 20 tasks, are"),
    ):
        monkeypatch.setattr(Run, "is_closed", is_closed)
        with closing(Run.open(folder)) as run:
            judged = [read_judgements(run)]
        with pytest.raises(InputError, match=f"no response 'r99'; .*{hint}"):
            join_labels_with_judgements(judged, later)


def test_a_single_judge_is_no_jury_and_the_last_of_an_escalation_is_not_compared(
    tmp_path: Path,
) -> None:
    escalation = {"first": ["a", "b"], "then": "c", "when": "disagree"}
    escalated = study(score(tmp_path / "escalated", {"escalate": escalation}))
    (row,) = escalated.jury_parts
    assert (row.alone, row.without) == (None, None)
    assert row.judges == ["a", "b", "c"]
    assert not escalated.jury_pairs
    tasks = write_tasks(
        tmp_path,
        [{"id": "t", "query": "Write.", "responses": [{"id": "r0", "text": "Text 0"}]}],
    )
    evaluator = {"use": "criteria", "params": {"criteria": {"ok": "It answers."}}, "judges": ["a"]}
    config = {"models": {"a": scripted(0)}, "evaluators": [evaluator]}
    with scored_session(tmp_path / "single", tasks, config):
        pass
    with closing(Run.open(tmp_path / "single")) as run:
        judged = [read_judgements(run)]
    label = JudgedLabel(id="r0", target=True)
    assert not any(judge.jury for judge in judged[0].judgements_by_judge)
    single = report(join_labels_with_judgements(judged, FileRows("f", (("line 2", label),), {})))
    assert "jury_parts" not in single.figures


def test_a_jury_is_no_judge_of_a_calibration(tmp_path: Path) -> None:
    """Each of the three judges has scores of its own for the map, and what is folded of them is no other one."""
    folder = score(tmp_path, {"judges": ["a", "b", "c"]})
    with closing(Run.open(folder)) as run:
        judged = [read_judgements(run, superseded=False)]
    studies = join_labels_with_judgements(judged, people())
    assert len(labelled_scores(studies, "ok").scores) == 3 * RESPONSES - 1


def part(
    kind: str, name: str | None, gap: IntervalCell | None, undecided: int = 0, cost: float = 0.4
) -> dict[str, Any]:
    judges = [judge for judge in "abc" if (judge == name) == (kind == "alone") or name is None]
    return {
        "run": "run",
        "evaluator": "criteria",
        "jury": "jury",
        "alone": None,
        "without": None,
        kind: name,
        "judges": judges,
        "position": 1,
        "answers": 200,
        "undecided": undecided,
        "change": -0.125,
        "alike": gap is not None and gap == EQUAL,
        "labels": 40,
        "farther": gap,
        "cost": cost,
        "cost_share": cost / 0.5,
    }


FARTHER = IntervalCell(0.2, 0.1, 0.3)
UNSURE = IntervalCell(0.05, -0.05, 0.15)
NEARER = IntervalCell(-0.2, -0.3, -0.1)
EQUAL = IntervalCell(0.0, None, None)
JURY = part("without", None, EQUAL, 1, 0.5)


@all_rows(
    "gaps, sentence",
    [
        (
            [FARTHER, FARTHER],
            "criteria (jury) is nearer to people than a (or b): its mean distance is less by 0.20 "
            "(0.10 to 0.30), 40 labels.",
        ),
        (
            [FARTHER, UNSURE],
            "Whether criteria (jury) is nearer to people than b cannot be told: its mean "
            "distance is less by 0.05 (-0.05 to 0.15), 40 labels. About 270 more labels like these",
        ),
        ([UNSURE, NEARER], "b is nearer to people than criteria (jury): its mean"),
        (
            [EQUAL, FARTHER],
            "a and criteria (jury) decide alike: they are equally near to people in all 40 labelled "
            "cases.",
        ),
    ],
)
def test_a_jury_is_nearer_than_its_nearest_judge_only_if_no_interval_says_otherwise(
    gaps: list[IntervalCell], sentence: str
) -> None:
    rows = [part("alone", name, gap) for name, gap in zip("ab", gaps, strict=True)]
    conclusion = next(conclude_smaller_juries([JURY, *rows]))
    assert conclusion.startswith(sentence)
    assert conclusion.endswith(" saves $0.1000 of $0.5000 (20.0%).")


def test_of_judges_that_are_equally_near_the_cheaper_one_is_named_with_its_own_saving() -> None:
    rows = [part("alone", "a", UNSURE, cost=0.3), part("alone", "b", UNSURE, cost=0.1)]
    told = next(conclude_smaller_juries([JURY, *rows]))
    assert told.endswith(" Alone, b saves $0.4000 of $0.5000 (80.0%).")


SLIGHTLY = IntervalCell(0.009, -0.01, 0.03)
FAR_UNSURE = IntervalCell(0.125, -0.06, 0.31)


@all_rows(
    "parts, cheapest",
    [
        ([part("alone", "a", EQUAL), part("alone", "b", SLIGHTLY, cost=0.1)], "b alone"),
        (
            [
                part("alone", "a", EQUAL),
                part("alone", "b", FAR_UNSURE, cost=0.1),
                part("alone", "c", FARTHER, cost=0.1),
                part("without", "a", SLIGHTLY, cost=0.2),
            ],
            "b and c alone",
        ),
        ([part("alone", "a", NEARER), part("alone", "b", SLIGHTLY, cost=0.1)], None),
        ([part("alone", "a", EQUAL, cost=0.1), part("alone", "b", SLIGHTLY)], None),
        # the nearest may be a smaller jury
        (
            [
                part("alone", "a", EQUAL, cost=0.3),
                part("alone", "b", SLIGHTLY, cost=0.1),
                part("without", "a", NEARER),
            ],
            None,
        ),
    ],
)
def test_the_cheapest_that_is_about_as_near_as_the_nearest_is_named_with_what_labels_show(
    parts: list[dict[str, Any]], cheapest: str | None
) -> None:
    """Few labels show of no judge that it is farther: what is farther by more than .05 is not named."""
    told = " ".join(conclude_smaller_juries([JURY, *parts]))
    if cheapest is None:
        assert "b alone" not in told
        return
    assert (
        f"Whether criteria (jury) is nearer to people than {cheapest} cannot be told: its mean "
        "distance is less by 0.01 (-0.01 to 0.03), 40 labels. About "
    ) in told
    assert f" Cheapest within 0.05 of the nearest, {cheapest} saves $0." in told


def test_nothing_is_said_of_the_cheapest_where_no_price_is_known() -> None:
    rows = [part("alone", name, UNSURE) | {"cost": None, "cost_share": None} for name in "ab"]
    told = " ".join(conclude_smaller_juries([JURY, *rows]))
    assert "saves" not in told
    assert "Cheapest" not in told


@all_rows(
    "parts, judges",
    [
        ([part("alone", "a", EQUAL), part("alone", "b", SLIGHTLY, cost=0.1)], "b"),
        ([part("without", "c", UNSURE)], "a,b"),
        ([part("without", "c", FARTHER), part("alone", "a", FARTHER)], None),
    ],
)
def test_the_setting_that_counts_a_smaller_jury_is_printed_unless_people_speak_against_it(
    parts: list[dict[str, Any]], judges: str | None
) -> None:
    (*_, told) = conclude_smaller_juries([JURY, *parts])
    command = f"`--branch run --set 'evaluators.1.judges=[{judges}]'` and another --out."
    assert told.endswith(command) == (judges is not None)
    assert ("--set" in told) == (judges is not None)


@all_rows(
    "smaller, sentence",
    [
        (
            [(UNSURE, 3), (UNSURE, 2), (UNSURE, 3)],
            "criteria (jury): b is missed least; without it the undecided answers go from 1 to 2 of 200, "
            "the share met changes by -0.125, the mean distance from people by 0.05 (-0.05 to 0.15), 40 "
            "labels. That saves $0.1000 of $0.5000 (20.0%).",
        ),
        (
            [(FARTHER, 0), (UNSURE, 0), (NEARER, 9)],
            "c is surely better left out; without it the undecided answers go from 1 to 9 of 200, the share met "
            "changes by -0.125, the mean distance from people by -0.20 (-0.30 to -0.10), 40 labels.",
        ),
        (
            [(FARTHER, 0)] * 3,
            "a (or b, c) is missed least of its judges, but surely missed; without it the undecided "
            "answers go from 1 to 0 of 200",
        ),
        (
            [(UNSURE, 0), (EQUAL, 1), (UNSURE, 0)],
            "b is missed least; without it the undecided answers go from 1 to 1 of 200",
        ),
        ([(EQUAL, 9), (EQUAL, 9), (EQUAL, 2)], "the mean distance from people by 0.00, 40 labels."),
    ],
)
def test_a_judge_is_dropped_over_all_questions_and_equal_ones_are_named_together(
    smaller: list[tuple[IntervalCell, int]], sentence: str
) -> None:
    rows = []
    for name, figures in zip("abc", smaller, strict=True):
        rows.append(part("without", name, *figures))
    conclusion = next(conclude_smaller_juries([JURY, *rows]))
    assert sentence in conclusion


def test_a_jury_that_may_tie_without_a_judge_is_said_to() -> None:
    voted = {"jury": "jury, majority of 3"}
    rows = [part("without", name, UNSURE, 9) | voted for name in "abc"]
    told = next(conclude_smaller_juries([JURY | voted, *rows]))
    ties = " The 2 others may tie, the worst case."
    assert told.endswith(f"(20.0%).{ties}")
    rows = [row | {"judges": ["a", "b", "c"]} for row in rows]  # the three others of four cannot
    assert "may tie" not in "".join(conclude_smaller_juries([JURY | voted, *rows]))
    means = [part("without", name, UNSURE, 9) for name in "abc"]
    assert "may tie" not in "".join(conclude_smaller_juries([JURY, *means]))


def test_nothing_is_said_against_a_judge_without_labels_and_several_runs_are_named() -> None:
    """Of whoever is outvoted the vote changes little, whether it is right or not."""
    unlabelled = [JURY | {"farther": None}] + [part("without", name, None) for name in "abc"]
    assert list(conclude_smaller_juries(unlabelled)) == []
    rows = [JURY, *(part("without", name, UNSURE) for name in "abc")]
    other_rows = [row | {"run": "other"} for row in rows]
    sentences = conclude_smaller_juries([*rows, *other_rows])
    assert [text.partition(" is missed")[0] for text in sentences if "missed" in text] == [
        "run: criteria (jury): a (or b, c)",
        "other: criteria (jury): a (or b, c)",
    ]


@all_rows("weight", [1.0, -1.0])
def test_what_a_smaller_jury_leaves_undecided_counts_as_in_the_reward(
    tmp_path_factory: pytest.TempPathFactory, weight: float
) -> None:
    """Where a and b differ, the jury without c counts the worst case: not met, or a penalty in full."""
    folder = tmp_path_factory.mktemp("undecided")
    use = {"judges": ["a", "b", "c"], "fold": "majority"}
    found = study(score(folder, use, {"reward": {"criteria": weight}}))
    *alone, jury, without_a, without_b, without_c = found.jury_parts
    agree = MET[0] == MET[1]
    counted = np.where(agree, MET[0], weight < 0.0)
    assert [row.without for row in (jury, without_a, without_b, without_c)] == [None, *"abc"]
    assert (without_c.answers, without_c.undecided) == (RESPONSES, np.count_nonzero(~agree))
    gain = counted if weight > 0.0 else ~counted
    assert without_c.score == pytest.approx(gain.mean())
    assert without_c.change == pytest.approx(without_c.score - jury.score)
    # labels that name no question are of the response as a whole, and a fault is turned round
    assert without_c.accuracy == pytest.approx((gain == GOLD).mean())
    assert without_c.farther.value == pytest.approx(jury.accuracy - without_c.accuracy)
    assert [row.alone for row in alone] == list("abc")
    assert alone[0].accuracy == pytest.approx(((MET[0] == (weight > 0.0)) == GOLD).mean())


def test_two_judges_that_are_nearly_copies_are_named_where_one_decides_which_to_drop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = study(score(tmp_path / "apart", {"judges": ["a", "b", "c"]}))
    assert "copies" not in " ".join(apart.conclusion)
    copied = SCORES.copy()
    copied[1] = np.where(np.arange(RESPONSES) == 0, 1.0 - SCORES[0], SCORES[0])
    monkeypatch.setattr("tests.studies.test_jury.SCORES", copied)
    with closing(Run.open(score(tmp_path / "alike", {"judges": ["a", "b", "c"]}))) as run:
        judged = [read_judgements(run)]
    found_report = report(join_labels_with_judgements(judged, people()), runs=judged)
    found = figures_of(found_report)
    assert found.conclusion[0].startswith(
        "a and b are nearly copies: they agree on what is met in 39 of 40 answers, κ 0.95"
    )
    (*_, pair) = [row for row in found.jury_pairs if (row.first, row.second) == ("a", "b")]
    wrong = (copied >= 0.5) != GOLD
    assert (pair.labelled, pair.first_wrong, pair.second_wrong) == (40, *wrong[:2].sum(axis=1))
    assert pair.both_wrong == (wrong[0] & wrong[1]).sum()
    chance = sum(
        wrong[0, gold == GOLD].sum() * wrong[1, gold == GOLD].sum() / (gold == GOLD).sum()
        for gold in (True, False)
    )
    assert pair.by_chance == pytest.approx(chance)
    sentence = (
        f"a and b are wrong in the same way on {pair.both_wrong} of the {pair.first_wrong} and "
    )
    assert any(text.startswith(sentence) for text in found.conclusion)
    assert pair.p < 0.05
    assert not any("in the same way" in text for text in apart.conclusion)
    ranking, judges = (
        section for section in shorten(found_report).sections if isinstance(section, ReportTable)
    )
    assert [row[0] for row in judges.rows] == ["a", "b", "c", "criteria (jury, mean of 3)"]
    together = f"{pair.both_wrong} with b (by chance {chance:.0f}), "
    assert judges.rows[0][1].startswith(together)
    # one judge gave no answer: all are compared on the others, the best first
    assert [row[1] for row in ranking.rows] == [RESPONSES - 1] * 4
    accuracies = [row[3].value for row in ranking.rows]
    assert accuracies == sorted(accuracies, reverse=True)
    # in words the jury alone: the tables have its judges
    judge_paragraphs = [text for text in found.conclusion if text.startswith("criteria/ok (")]
    assert [text.partition(" agrees")[0] for text in judge_paragraphs] == [
        "criteria/ok (jury, mean of 3)"
    ]
