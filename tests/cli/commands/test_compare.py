"""`jurygraph compare`."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.reports.comparison import Comparison
from jurygraph.runs.reports.comparison.figures import ComparisonStatistics
from jurygraph.runs.reports.comparison.responses import ComparedResponse, from_trace
from jurygraph.runs.run import Run
from jurygraph.runs.store.header import Header
from jurygraph.schema import Config, Counts, RecordedVerdict, Reward, Trace
from jurygraph.sources import FileDigest
from tests.cli.conftest import Command


def make_trace(task: str, response: str, value: float | None, agent: str | None, *verdicts: RecordedVerdict) -> Trace:
    status = "failed" if value is None else "ok"
    reward = Reward(
        value=value, status=status, partial=value, coverage=1.0, range=None, components={}, terms=(), counts=Counts()
    )
    return Trace(
        task_id=task, response_id=response, agent=agent, group="g", plan_digest="p", reward=reward, verdicts=verdicts
    )


def polite_verdict(about: str, score: float) -> RecordedVerdict:
    return RecordedVerdict(question="polite", about=about, responses=(about,), score=score)


def duel_verdict(score: float) -> RecordedVerdict:
    return RecordedVerdict(question="duel", about="salt/a", responses=("salt/a", "salt/b"), score=score)


def predicted_verdict(evaluator: str, score: float) -> RecordedVerdict:
    identity = {"question": f"{evaluator}/appeal@ann", "evaluator": evaluator, "subject": "appeal", "reviewer": "ann"}
    return RecordedVerdict(**identity, about="door/a", responses=("door/a",), score=score)


HEADER = Header(
    tasks=FileDigest(name="tasks.jsonl", sha256="0" * 64), config=Config(evaluators=["maths.accuracy"]), evaluators={}
)
RUNS = {
    "before": [
        make_trace("door", "door/a", 0.5, "alice", polite_verdict("door/a", 1.0)),
        make_trace("door", "door/b", 0.25, "bob", polite_verdict("door/b", 0.0)),
        make_trace("salt", "salt/a", 0.75, "alice", polite_verdict("salt/a", 0.75), duel_verdict(0.0)),
        make_trace("salt", "salt/b", 0.5, None, polite_verdict("salt/b", 0.5), duel_verdict(0.0)),
    ],
    "after": [
        make_trace("door", "door/a", 0.25, "alice", polite_verdict("door/a", 0.25)),
        make_trace("door", "door/b", 0.25, "bob", polite_verdict("door/b", 0.0)),
        make_trace("salt", "salt/a", 0.5, "alice", polite_verdict("salt/a", 0.75), duel_verdict(1.0)),
        make_trace("salt", "salt/b", None, None, duel_verdict(1.0)),
    ],
    "aggregate": [
        make_trace("door", "door/a", 0.5, None, predicted_verdict("aggregate", 0.25)),
        make_trace("door", "door/b", 0.5, None),
    ],
    "personalized": [
        make_trace("door", "door/a", 0.5, None, predicted_verdict("personalized", 1.0)),
        make_trace("door", "door/b", 0.5, None),
    ],
    "hostile": [make_trace("t\n", "r\x1b[31m", 0.5, "\u202eeve", polite_verdict("r\x1b[31m", 0.0))],
    "hostile too": [make_trace("t\n", "r\x1b[31m", 0.0, "\u202eeve", polite_verdict("r\x1b[31m", 1.0))],
}


@pytest.fixture
def stored_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the stored runs with those of `RUNS`."""

    def open_run(folder: Path) -> SimpleNamespace:
        if str(folder) not in RUNS:
            raise InputError(f"{folder}: does not exist")
        return SimpleNamespace(name=str(folder), close=lambda: None, header=HEADER, load_combiners=dict)

    def read_responses(run: SimpleNamespace) -> Iterator[ComparedResponse]:
        return map(from_trace, RUNS[run.name])

    monkeypatch.setattr(Run, "open", open_run)
    monkeypatch.setattr("jurygraph.cli.commands.compare.read_responses", read_responses)
    monkeypatch.setattr("jurygraph.cli.commands.compare.possible_rewards", lambda run, combiners: [(0.0, 1.0)])


@pytest.mark.usefixtures("stored_runs")
def test_the_tables_compare_two_runs(run: Command):
    ended = run("compare", "before", "after")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "B is 0.1667 lower (1.0038 lower to 0.6704 higher); 2 of 2 tasks changed",
        "1 of 4 responses are left out: their reward failed in A or B",
        "",
        "statistic              a response passes from 0.5                       value",
        "─────────────────────  ─────────────────────────────────────────────  ───────",
        "paired                 responses in both runs                               4",
        "only_a                 responses in A only                                  0",
        "only_b                 responses in B only                                  0",
        "n                      responses with a reward in both runs                 3",
        "tasks                  ... tasks that they belong to                        2",
        "changed_tasks          ... of which the mean reward changed                 2",
        "effective_size         ... worth as many independent responses         3.0000",
        "failed_a               rewards that failed in A alone                       0",
        "failed_b               rewards that failed in B alone                       1",
        "failed_both            rewards that failed in both                          0",
        "mean_a                 mean reward in A                                0.5000",
        "mean_b                 mean reward in B                                0.3333",
        "mean_delta             mean of B - A                                  -0.1667",
        "mean_delta_low         its 95 % interval: from                        -1.0038",
        "mean_delta_high        its 95 % interval: to                           0.6704",
        "mean_delta_error       its standard error                              0.0659",
        "mean_delta_p           sign-flip test of whole tasks that it is 0: p   0.5000",
        "detectable_difference  least true mean found with a power of 80 %      1.0761",
        "median_delta           median of B - A                                -0.2500",
        "passed_a_only          responses that pass in A and not in B                1",
        "passed_b_only          responses that pass in B and not in A                0",
        "pass_p                 sign-flip test that both are as frequent: p     1.0000",
        "kendall_within         mean of Kendall's tau-b within a task                -",
        "kendall_tasks          ... tasks that have one                              0",
        "judged_both            verdicts given in both runs, samples averaged        4",
        "flips                  ... of which the decision flipped                    2",
        "flip_rate              ... as a share                                  0.5000",
        "",
        "agent         n  tasks  mean A  mean B    B - A  from  to       p  Holm p",
        "──────────  ───  ─────  ──────  ──────  ───────  ────  ──  ──────  ──────",
        "alice         2      2  0.6250  0.3750  -0.2500     -   -  0.5000  0.5000",
        "bob           1      1  0.2500  0.2500   0.0000     -   -       -       -",
        "(no agent)  0/1      0       -       -        -     -   -       -       -",
        "",
        "question    n  tasks  mean A  mean B    B - A     from      to       p  Holm p",
        "────────  ───  ─────  ──────  ──────  ───────  ───────  ──────  ──────  ──────",
        "duel        1      1  0.0000  1.0000   1.0000        -       -  1.0000  1.0000",
        "polite    3/4      2  0.5833  0.3333  -0.2500  -5.2803  4.7803  1.0000  1.0000",
        "",
        "verdicts  in both  to met  to unmet  largest |B - A|  A only  B only",
        "────────  ───────  ──────  ────────  ───────────────  ──────  ──────",
        "duel            1       1         0           1.0000       0       0",
        "polite          3       0         1           0.7500       1       0",
        "",
        "largest changes       A       B    B - A",
        "───────────────  ──────  ──────  ───────",
        "door/a           0.5000  0.2500  -0.2500",
        "salt/a           0.7500  0.5000  -0.2500",
        "",
        "flipped  response  against       A       B      decision",
        "───────  ────────  ───────  ──────  ──────  ────────────",
        "duel     salt/a    salt/b   0.0000  1.0000  unmet -> met",
        "polite   door/a    -        1.0000  0.2500  met -> unmet",
        "",
        "note: only 2 tasks: with fewer than 20, intervals rely on task means that are nearly normal",
        "note: mean_delta_p cannot fall below .05: 2 of the 2 tasks changed, so the least p is 2^(1 - 2) = 0.5",
        "note: pass_p cannot fall below .05: 1 of the 2 tasks changed, so the least p is 2^(1 - 1) = 1",
    ]


@pytest.mark.usefixtures("stored_runs")
def test_texts_from_outside_are_escaped(run: Command):
    shown = run("compare", "hostile", "hostile too").out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "r\\u001b[31m" in shown
    assert "\\u202eeve" in shown


@pytest.mark.usefixtures("stored_runs")
def test_json_has_the_whole_comparison(run: Command):
    printed = run("compare", "before", "after", "--json", "--passing", 0.3, "--flips", 0).out
    found = Comparison.model_validate_json(printed)
    assert (found.mean_delta, found.pass_threshold, found.passed_a_only, len(found.flipped_verdicts)) == (
        -0.5 / 3,
        0.3,
        1,
        2,
    )
    assert printed == json.dumps(found.model_dump(mode="json")) + "\n"
    assert set(ComparisonStatistics.model_fields) <= set(json.loads(printed))


@pytest.mark.usefixtures("stored_runs")
def test_a_met_threshold_prints_nothing(run: Command):
    ended = run("compare", "before", "after", "--gate", "mean_delta>-0.2 and failed_b<=1")
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.usefixtures("stored_runs")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_missed_threshold_prints_the_value_and_exits_with_1(run: Command, form: tuple[str, ...]):
    plain = run("compare", "before", "after", *form)
    ended = run("compare", "before", "after", *form, "--gate", "flips<=1, n>=3, mean_delta>=-0.125")
    assert (ended.code, ended.out) == (1, plain.out)
    assert ended.err.splitlines() == [
        "threshold missed: flips <= 1, but flips is 2",
        f"threshold missed: mean_delta >= -0.125, but mean_delta is {-0.5 / 3}",
    ]


@pytest.mark.usefixtures("stored_runs")
def test_a_missing_statistic_misses_the_threshold(run: Command):
    ended = run("compare", "before", "before", "--gate", "mean_delta_p>0.05")
    assert (ended.code, ended.err) == (1, "threshold missed: mean_delta_p > 0.05, but there is no mean_delta_p\n")


@pytest.mark.usefixtures("stored_runs")
def test_a_margin_is_reported_with_its_p_and_its_result(run: Command):
    """The interval of the mean difference is from -1.0038 to 0.6704, and 2 tasks do not show losses of 1 elsewhere."""
    gate = "no_worse_than=2, no_worse_than=1, flips<=2"
    ended = run("compare", "before", "after", "--gate", gate)
    assert ended.out.split("\n\n")[2].splitlines() == [
        "condition          holds       p",
        "─────────────────  ─────  ──────",
        "no_worse_than = 2  yes    0.0214",
        "no_worse_than = 1  no     0.1156",
    ]
    figures = json.loads(run("compare", "before", "after", "--json", "--gate", gate).out)
    two, one = figures["margins"]
    assert (two["holds"], one["holds"], one["needed_tasks"]) == (True, False, 4)
    assert (ended.code, ended.err) == (
        1,
        "threshold missed: no_worse_than = 1, but 2 tasks leave a mean difference of "
        f"{one['lowest']:.4f} possible (p = 0.1156), since they cannot show rare losses of up to 1; "
        "about 4 tasks like these would do\n",
    )
    assert run("compare", "before", "after", "--gate", "no_worse_than=2").code == 0


@pytest.mark.usefixtures("stored_runs")
def test_no_gate_holds_for_lack_of_evidence(run: Command):
    single = run("compare", "hostile", "hostile", "--gate", "no_worse_than=0.9")
    assert (single.code, "1 tasks show nothing of others; compare runs of several tasks" in single.err) == (1, True)
    unchanged = run("compare", "before", "before", "--gate", "mean_delta_low>-0.1, no_worse_than=0.1")
    assert unchanged.code == 1
    assert unchanged.err.splitlines()[:2] == [
        "threshold missed: mean_delta_low > -0.1, but there is no mean_delta_low",
        "2 tasks of which none changed have no interval; 36 would do",
    ]
    assert unchanged.err.endswith("since they cannot show rare losses of up to 1; about 36 tasks like these would do\n")


@pytest.mark.usefixtures("stored_runs")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("before", "after", "--gate", "mean_delta"), 'is not a condition; write it as in "mean_delta>-0.01"'),
        (("nowhere", "after", "--gate", "no_worse_than=-0.02"), "must be above 0 and finite, got -0.02"),
        (("nowhere", "after", "--gate", "mean_detla>0"), "unknown statistic 'mean_detla'; did you mean mean_delta?"),
        (("before", "nowhere"), "nowhere: does not exist"),
        (("before", "hostile"), "the runs have no response in common"),
        (("before", "after", "--passing", "nan"), "name a finite number, such as 0.5"),
        (("before", "after", "--flips", "-1"), "--flips"),
        (("before",), "RUN_B"),
    ],
)
def test_wrong_input_exits_with_2_and_prints_no_result(run: Command, arguments: tuple[str, ...], message: str):
    ended = run("compare", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


def test_runs_under_two_configs_can_be_compared(project: Path, run: Command):
    (project / "kind.yaml").write_text(
        "evaluators: [manners.polite, manners.shaky]\nreward: {polite: 1.0, shaky: 0.5}\n"
    )
    assert run("score", project / "tasks.jsonl", "--out", project / "a").code == 0
    assert run("score", project / "tasks.jsonl", "--config", project / "kind.yaml", "--out", project / "b").code == 0
    ended = run("compare", project / "a", project / "b", "--json", "--gate", "mean_delta==0.75, flips==0")
    assert (ended.code, ended.err) == (0, "")
    found = Comparison.model_validate_json(ended.out)
    assert (found.paired, found.judged_both, found.mean_a, found.mean_b) == (4, 8, -0.0625, 0.6875)
    assert [(row.agent, row.mean_delta) for row in found.agents] == [("alice", 1.0), ("bob", 0.5)]
    assert [(change.response_id, change.delta) for change in found.changes] == [
        (n, 1.0) for n in ("door/a", "salt/a", "salt/b")
    ]
    assert found.notes[:2] == (
        "the runs differ in reward.shaky: -0.5 in A, 0.5 in B",
        "the plans of 2 of the 2 tasks in both runs differ",
    )
