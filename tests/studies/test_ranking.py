"""How far an order of agents is from turning, by settings and by chance."""

import json
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.arrays import Floats
from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.deciding import read_packed_groups
from jurygraph.sources.config import apply_settings
from jurygraph.studies.ranking import (
    RELATIVE_CHANGE_SIZES,
    AgentRanker,
    collect_decision_methods,
    find_rank_swaps,
    format_reversal,
    list_settings,
    measure_ranking,
)
from jurygraph.testing import ScriptedJudge
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.overview import run_overview_context
from jurygraph.viewer.shapes import column_axis_ranges
from jurygraph.viewer.what_if import WhatIfChanges, explain_with_changes
from tests.command import run_command
from tests.rows import all_rows
from tests.runs.sample_runs import scored_session, write_tasks
from tests.studies.figures import means_by_agent, two_sums


def kind(task: jg.TaskView, response: jg.Response) -> float:
    return response.text.count("k") / 10


def brief(task: jg.TaskView, response: jg.Response) -> float:
    return response.text.count("b") / 10


SETTINGS: Any = {"evaluators": [kind, brief], "reward": {"kind": 0.5, "brief": 0.5}}


@pytest.fixture
def ranker(tmp_path: Path) -> Iterator[AgentRanker]:
    """Of a run with an agent that is kind, one that is brief, and one that is worse than both."""
    draw = random.Random(0)
    with jg.Jury(**SETTINGS) as jury, jury.record(tmp_path / "run"):
        for number in range(12):
            more = draw.randint(0, 2)
            texts = {
                "kind": "k" * (7 + more) + "b" * 2,
                "brief": "b" * (7 + draw.randint(0, 2)) + "k",
                "poor": "k",
            }
            responses = [
                jg.Response(id=f"{number}/{agent}", agent=agent, text=text)
                for agent, text in texts.items()
            ]
            jury.score(jg.Task(id=f"t{number}", query="?"), responses)
    with closing(Run.open(tmp_path / "run")) as run:
        yield AgentRanker(run)


def test_the_nearest_change_turns_two_agents_and_a_smaller_one_does_not(
    ranker: AgentRanker,
) -> None:
    report = measure_ranking(ranker)
    first, second = report.figures["pairs"]
    assert (first.first, first.second, second.second) == ("kind", "brief", "poor")
    turn = first.turn
    assert turn is not None
    assert turn.key in ("reward.kind", "reward.brief")
    means = means_by_agent(ranker, [f"{turn.key}={turn.value!r}"])
    assert list(means)[:2] == ["brief", "kind"]
    nearer = turn.today + 0.99 * (turn.value - turn.today)
    assert next(iter(means_by_agent(ranker, [f"{turn.key}={nearer!r}"]))) == "kind"
    sentence = first.sentences()[1]
    assert f"instead of {turn.today:g}" in sentence
    # No weight of the same sign makes the one that is worse in everything the better one.
    assert second.turn is None


@pytest.fixture
def rubric_run(tmp_path: Path) -> Iterator[Run]:
    """Of a run whose tasks share a criterion, and have one each with a weight of its own."""
    judge = ScriptedJudge({"It is clear.": lambda text: "clear" in text, "It is long.": _is_long})
    config = {"evaluators": ["criteria"], "rubric": {"aggregation": "flat"}}
    tasks = []
    for number in range(2):
        criteria = [
            {"id": "clear", "text": "It is clear.", "weight": 1.0},
            {"id": "long", "text": "It is long.", "weight": 2.0 + number},
        ]
        responses = [
            {"id": f"{number}/{agent}", "agent": agent, "text": text}
            for agent, text in (("brief", "It is clear."), ("wordy", "It goes on and on."))
        ]
        rubric = {"criteria": criteria}
        tasks.append({"id": f"{number}", "query": "?", "rubric": rubric, "responses": responses})
    with scored_session(tmp_path / "run", write_tasks(tmp_path, tasks), config, model=judge):
        pass
    with closing(Run.open(tmp_path / "run")) as run:
        yield run


def _is_long(text: str) -> bool:
    return "on and on" in text


def test_the_weight_of_a_criterion_that_all_rubrics_share_is_tried(rubric_run: Run) -> None:
    report = measure_ranking(AgentRanker(rubric_run))
    (pair,) = report.figures["pairs"]
    assert (pair.first, pair.second) == ("wordy", "brief")
    assert pair.turn is not None
    assert pair.turn.key == "criteria.clear.weight"
    assert 2.0 < pair.turn.value < 3.0
    assert "criteria.long.weight" not in report.figures["searched"]
    points = {row["setting"]: row for row in report.figures["turning_points"]}
    clear = points["criteria.clear.weight"]
    assert (clear["today"], clear["high"]) == (1.0, 64.0)
    assert clear["value"] == pair.turn.value
    coverage = points["failure.min_coverage"]
    assert (coverage["value"], coverage["outcome"]) == (None, "not within 0 to 1")
    # nor farther than the largest change that is tried
    (near,) = measure_ranking(AgentRanker(rubric_run), ["failure.min_coverage=0.001"]).figures[
        "turning_points"
    ][-1:]
    assert (near["setting"], near["outcome"]) == ("failure.min_coverage", "not within 0 to 0.129")
    refused = run_command("study", "ranking", rubric_run.folder, "--set", "reward.clear=2")
    assert "if it is a criterion, its weight is criteria.clear.weight" in refused.err
    mistyped = run_command("show", rubric_run.folder, "--columns", "cleer")
    assert "did you mean clear?" in mistyped.err
    assert any("1 weight of criteria" in note for note in report.notes)
    assert "Not moved are which criteria are musts" in report.notes[0]


def test_in_a_panel_the_weights_of_criteria_move_nothing_and_are_no_settings(
    tmp_path: Path,
) -> None:
    answers_by_text: Any = {"It is kind.": lambda text: "kind" in text}
    models = {name: ScriptedJudge(answers_by_text, name) for name in ("first", "second")}
    criterion = {"id": "kind", "text": "It is kind.", "weight": 1.0}
    rubric = jg.Rubric.model_validate({"criteria": [criterion]})
    component = {"combiner": "panel", "inputs": {"jury": "criteria"}}
    panel: Any = {"components": {"both": component}, "reward": {"both": 1.0}}
    for folder, settings in (("weighted", {}), ("panel", panel)):
        with jg.Jury(
            models=models,
            evaluators=[{"use": "criteria", "judges": [*models]}],
            rubric={"aggregation": "flat"},
            safety={"evidence": "off"},
            record=tmp_path / folder,
            **settings,
        ) as jury:
            answers = [jg.Response(id=text, agent=text, text=text) for text in ("kind", "curt")]
            jury.score(jg.Task(id="t", query="?", rubric=rubric), answers)
        with closing(Run.open(tmp_path / folder)) as run:
            searched = measure_ranking(AgentRanker(run)).figures["searched"]
        assert ("criteria.kind.weight" in searched) == (folder == "weighted")


def test_agents_whose_names_differ_in_case_alone_are_noted(tmp_path: Path) -> None:
    with jg.Jury(**SETTINGS) as jury, jury.record(tmp_path / "run"):
        answers = [jg.Response(id=name, agent=name, text=name) for name in ("Kim", "kim ")]
        jury.score(jg.Task(id="t", query="?"), answers)
    with closing(Run.open(tmp_path / "run")) as run:
        notes = measure_ranking(AgentRanker(run)).notes
    assert any(
        note.startswith(
            "'Kim' and 'kim ' differ only in case, spaces or Unicode form, and count as two;"
        )
        for note in notes
    )


def test_of_one_agent_no_order_can_turn(tmp_path: Path) -> None:
    with jg.Jury(**SETTINGS) as jury, jury.record(tmp_path / "run"):
        jury.score(jg.Task(id="t", query="?"), [jg.Response(id="r", agent="kind", text="k")])
    with closing(Run.open(tmp_path / "run")) as run:
        report = measure_ranking(AgentRanker(run))
    assert report.conclusion == ["there is one agent alone, so that no order can turn"]


@pytest.fixture
def folder_with_failure(tmp_path: Path) -> Path:
    """Of a run with an agent that is kind, and one that is brief, one of whose rewards fails."""

    def brief_unless_lost(task: jg.TaskView, response: jg.Response) -> float:
        if "lost" in response.text:
            raise ConnectionError("the line is dead")
        return brief(task, response)

    settings: Any = {
        "evaluators": [kind, brief_unless_lost],
        "reward": {"kind": 1.0, "brief_unless_lost": 0.5},
        "scale": 2.0,
        "failure": {"rule": "strict"},
    }
    texts = {"kind": ["kkkkkkkk", "kkkkbb"], "brief": ["kkbbbb", "lost kkkkkkkkk"]}
    with jg.Jury(**settings) as jury, jury.record(tmp_path / "run"):
        for number in range(2):
            responses = [
                jg.Response(id=f"{number}/{agent}", agent=agent, text=texts[agent][number])
                for agent in texts
            ]
            jury.score(jg.Task(id=f"t{number}", query="?"), responses)
    return tmp_path / "run"


def test_the_components_say_why_one_agent_is_better(folder_with_failure: Path) -> None:
    """The means are (.8 + .4) / 2 and .2 of kind, (0 + .2) / 2 and .4 of brief; what failed is in none."""
    printed = json.loads(run_command("study", "ranking", folder_with_failure, "--json").out)
    first, second = printed["components"]
    assert (first["component"], first["weight"]) == ("kind", 2.0)
    assert first["agents"] == [
        {
            "agent": "kind",
            "mean": pytest.approx(0.6),
            "judged": 2,
            "left_out": 0,
            "points": 0.0,
            "low": None,
            "high": None,
        },
        {
            "agent": "brief",
            "mean": pytest.approx(0.2),
            "judged": 1,
            "left_out": 1,
            "points": pytest.approx(0.8),
            "low": None,  # of one task in common, and one that has all of an agent
            "high": None,
        },
    ]
    assert [row["mean"] for row in second["agents"]] == pytest.approx([0.1, 0.4])
    assert second["agents"][1]["points"] == pytest.approx(-0.3)
    assert (
        "Over all responses with a reward, the mean of kind is 0.5000 above that of brief: "
        "kind +0.8000, brief_unless_lost -0.3000." in printed["conclusion"]
    )
    table = run_command("study", "ranking", folder_with_failure).out
    assert "0.2000 (+0.8000), 1 left out" in table


def test_components_are_those_of_the_settings_that_are_tried(ranker: AgentRanker) -> None:
    now, tried = (
        measure_ranking(ranker, settings) for settings in ([], ["reward.brief=0", "scale=3"])
    )
    assert [row.component for row in now.figures["components"]] == ["kind", "brief"]
    best, *_, poor = now.figures["components"][0].agents
    assert poor.points == pytest.approx(0.5 * (best.mean - poor.mean))
    kind, brief = tried.figures["components"]
    assert (kind.component, brief.component) == ("kind", "brief")
    assert [row.points for row in brief.agents] == [0.0, 0.0, 0.0]
    assert all(row.mean is not None for row in brief.agents)
    # the one that counts is the reward itself
    assert not any(" above that of " in sentence for sentence in tried.conclusion)


def test_a_component_that_does_not_count_is_tried_as_a_gain_alone(ranker: AgentRanker) -> None:
    config = apply_settings(ranker.run.config, ["reward.brief=0"])
    settings = list_settings(config, collect_decision_methods(ranker.run))
    (brief,) = (setting for setting in settings if setting.key == "reward.brief")
    assert brief.searched_range == (0.0, 5.0)


def test_the_search_reports_its_progress_to_the_end(ranker: AgentRanker) -> None:
    counts: list[int] = []
    measure_ranking(ranker, advance=counts.append)
    assert sum(counts) == len(RELATIVE_CHANGE_SIZES)


def test_no_figure_depends_on_the_order_in_which_groups_are_read(ranker: AgentRanker) -> None:
    groups = list(read_packed_groups(ranker.run))
    for seed in range(3):
        random.Random(seed).shuffle(groups)
        shuffled = AgentRanker(ranker.run, groups)
        assert measure_ranking(shuffled).to_json() == measure_ranking(ranker).to_json()


def test_one_agent_has_no_components_to_compare(tmp_path: Path) -> None:
    with jg.Jury(**SETTINGS) as jury, jury.record(tmp_path / "run"):
        jury.score(jg.Task(id="t", query="?"), [jg.Response(agent="a", text="kb")])
    with closing(Run.open(tmp_path / "run")) as run:
        assert measure_ranking(AgentRanker(run)).figures["components"] == []


def test_what_components_do_not_explain_is_told(tmp_path: Path) -> None:
    """A gate takes all of a reward, but nothing of its components."""
    gate = {"kind": "format", "component": "kind", "below": 0.5}
    with jg.Jury(**SETTINGS, gates=[gate]) as jury, jury.record(tmp_path / "run"):
        texts = {"kind": "k" * 8, "brief": "kkkkbbb"}
        answers = [jg.Response(agent=agent, text=text) for agent, text in texts.items()]
        jury.score(jg.Task(id="t", query="?"), answers)
    with closing(Run.open(tmp_path / "run")) as run:
        report = measure_ranking(AgentRanker(run))
        with closing(RunIndex(run)) as index:
            index.update()
            assert run_overview_context(index)["components_by_agent"][-1].component == "format gate"
    brief = tmp_path / "b.html"
    assert run_command("report", tmp_path / "run", "--brief", "-o", brief).code == 0
    assert "The format gate puts brief 0.35 behind kind." in brief.read_text("utf-8")
    *_, table = report.tables
    assert table.cells()[-1] == ["format gate", "-", "-", "- (+0.3500)"]
    assert report.conclusion[0] == (
        "Over all responses with a reward, the mean of kind is 0.4000 above that of brief: "
        "kind +0.2000, brief -0.1500, format gate +0.3500."
    )


def test_an_order_that_other_tasks_would_turn_is_called_chance(ranker: AgentRanker) -> None:
    _, second = measure_ranking(ranker).figures["pairs"]
    assert second.is_clear
    assert ", by more than chance: the difference is " in second.sentences()[0]
    assert second.sentences()[0].endswith("; rough, with fewer than 20).")
    report = measure_ranking(ranker)
    (gap,) = report.figures["gaps"]
    assert (gap.first, gap.second) == ("kind", "poor")
    assert report.tables[1].cells()[-1] == [
        "kind",
        "poor",
        "0.4542 (0.4219 to 0.4864)",
        "by more than chance",
        "-",
    ]
    assert "the intervals of the 3 differences hold together with 95 %" in report.notes
    equal, _ = measure_ranking(ranker, ["reward.brief=0.57"]).figures["pairs"]
    assert equal.difference is not None
    assert not equal.is_clear
    assert "which may be chance" in equal.sentences()[0]


def test_agents_that_answered_other_tasks_are_compared_unpaired(tmp_path: Path) -> None:
    draw = random.Random(1)
    sizes = {"good": 12, "bad": 9, "lone": 1}
    with jg.Jury(**SETTINGS) as jury, jury.record(tmp_path / "run"):
        for agent, number in sizes.items():
            for index in range(number):
                text = "k" * (draw.randint(5, 9) if agent == "good" else draw.randint(0, 4))
                answer = jg.Response(id=f"{agent}/{index}", agent=agent, text=text)
                jury.score(jg.Task(id=f"{agent}{index}", query="?"), [answer])
    with closing(Run.open(tmp_path / "run")) as run:
        pairs = measure_ranking(AgentRanker(run)).figures["pairs"]
    by_names = {frozenset((pair.first, pair.second)): pair for pair in pairs}
    (first, *_) = pairs
    assert first.first == "good"
    if first.second == "bad":
        assert (first.is_paired, first.count) == (False, 9)
        assert first.is_clear
        assert (
            "unpaired over 9 tasks or more of each; rough, with fewer than 20)"
            in first.sentences()[0]
        )
    lone = next(pair for names, pair in by_names.items() if "lone" in names)
    assert lone.low is None
    assert "how sure that is cannot be told from" in lone.sentences()[0]
    assert "No task, by its id, has answers of both" in lone.sentences()[0]


def test_a_lead_and_its_turn_are_of_the_tasks_that_both_have(tmp_path: Path) -> None:
    """Kind has an easy task alone, without which it is behind: its mean would turn elsewhere, and at another weight."""
    with jg.Jury(**SETTINGS) as jury, jury.record(tmp_path / "run"):
        for number in range(4):
            texts = {"kind": "kkkkbb", "brief": "k" * (2 + number % 2) + "bbbbbb"}
            answers = [jg.Response(agent=agent, text=text) for agent, text in texts.items()]
            jury.score(jg.Task(id=f"t{number}", query="?"), answers)
        for number in range(3):
            jury.score(
                jg.Task(id=f"e{number}", query="?"), [jg.Response(agent="kind", text="k" * 9)]
            )
    with closing(Run.open(tmp_path / "run")) as run:
        ranker = AgentRanker(run)
        (pair,) = measure_ranking(ranker).figures["pairs"]
        assert list(means_by_agent(ranker, ["reward.kind=0.7"])) == ["kind", "brief"]
        (tried,) = measure_ranking(ranker, ["reward.kind=0.7"]).figures["pairs"]
        assert pair.turn is not None
        key, value = pair.turn.key, pair.turn.value
        firsts = []
        for share in (0.999, 1.001):
            settings = [f"{key}={pair.turn.today + share * (value - pair.turn.today)}"]
            (turned,) = measure_ranking(ranker, settings).figures["pairs"]
            firsts.append(turned.first)
            assert turned.difference > 0.0
    assert firsts == ["brief", "kind"]
    # 4 b against 1.5 k more
    assert (pair.first, pair.difference) == ("brief", pytest.approx(0.5 * 0.4 - 0.5 * 0.15))
    assert tried.sentence.startswith(
        "brief is ahead of kind over tasks of both (kind has the higher mean over all), by more "
    )


def test_the_command_tries_settings_and_refuses_other_questions(
    ranker: AgentRanker, tmp_path: Path
) -> None:
    command = ("study", "ranking", tmp_path / "run")
    assert "kind is ahead of brief" in run_command(*command).out
    assert "brief is ahead of kind" in run_command(*command, "--set", "reward.kind=0.3").out
    refused = run_command(*command, "--set", "evaluators.0.name=x")
    assert (refused.code, "changes the questions" in refused.err) == (2, True)


def _linear(value: float) -> float:
    return value - 0.3


def _bent(value: float) -> float:
    return math.expm1(40.0 * (value - 0.3))


def _jumping(value: float) -> float:
    return 1.0 if value > 0.3 else -0.001


def _tied(value: float) -> float:
    return max(0.0, value - 0.3)


@pytest.mark.parametrize(
    ("lead", "most_decisions"), [(_linear, 18), (_bent, 30), (_jumping, 48), (_tied, 48)]
)
def test_agents_are_said_to_change_places_where_they_do(
    lead: Callable[[float], float], most_decisions: int
) -> None:
    """The lead of the second agent is nothing or less up to .3, whatever its shape; each decision reads a whole run."""
    tried = set()

    def sum_rewards(value: float) -> Floats:
        tried.add(value)
        return two_sums(lead(value))

    (swap,) = find_rank_swaps("ab", sum_rewards, 0.0, 1.0)
    assert (swap.first, swap.second) == ("a", "b")
    assert 0.3 < swap.value < 0.3 + 2e-7
    assert len(tried) <= most_decisions


def test_an_agent_without_a_mean_is_not_ahead() -> None:
    assert (
        find_rank_swaps("ab", lambda value: two_sums(1.0 if value > 0.7 else math.nan), 0.0, 1.0)
        == []
    )


def test_a_turn_is_rounded_to_where_the_agents_have_turned() -> None:
    assert format_reversal(0.66011, is_rounded_up=True) == "0.6602"
    assert format_reversal(0.66019, is_rounded_up=False) == "0.6601"
    assert format_reversal(-1.4712, is_rounded_up=False) == "-1.472"
    assert format_reversal(0.0, is_rounded_up=True) == "0"


def test_agents_with_equal_means_are_level_and_one_alone_has_no_order(tmp_path: Path) -> None:
    def half(task: jg.TaskView, response: jg.Response) -> float:
        return 0.5

    with jg.Jury(evaluators=[half], record=tmp_path / "run") as jury:
        for task in "ab":
            responses = [jg.Response(agent=agent, text=agent) for agent in ("one", "two")]
            jury.score(jg.Task(id=task, query="?"), responses)
    with closing(Run.open(tmp_path / "run")) as run:
        (pair,) = measure_ranking(AgentRanker(run)).figures["pairs"]
    assert pair.sentences()[0].startswith("one is level with two")


def test_a_run_without_rewards_has_no_order(tmp_path: Path) -> None:
    def broken(task: jg.TaskView, response: jg.Response) -> float:
        raise ConnectionError("the line is dead")

    with jg.Jury(evaluators=[broken], record=tmp_path / "run") as jury:
        jury.score(jg.Task(id="t", query="?"), ["a"])
    with closing(Run.open(tmp_path / "run")) as run, pytest.raises(InputError, match="to rank"):
        measure_ranking(AgentRanker(run))


def test_the_weight_of_the_only_component_is_not_tried(tmp_path: Path) -> None:
    """Without it there would be no reward, which ended the search."""
    settings: Any = {"evaluators": [kind, brief], "reward": {"kind": 1.0, "brief": 0.0}}
    with jg.Jury(**settings) as jury, jury.record(tmp_path / "run"):
        for number in range(3):
            texts = [jg.Response(agent=name, text="k" * len(name)) for name in ("short", "longer")]
            jury.score(jg.Task(id=f"t{number}", query="?"), texts)
    with closing(Run.open(tmp_path / "run")) as run:
        report = measure_ranking(AgentRanker(run))
    assert report.figures["pairs"][0].first == "longer"
    assert "reward.brief" in report.figures["searched"]
    assert "reward.kind" not in report.figures["searched"]


def test_agents_that_differ_in_a_last_nul_stay_two(tmp_path: Path) -> None:
    responses = [
        jg.Response(id=str(n), agent=name, text="k") for n, name in enumerate(("a", "a\0"))
    ]
    with jg.Jury(**SETTINGS) as jury, jury.record(tmp_path / "run"):
        jury.score(jg.Task(id="t", query="?"), responses)
    with closing(Run.open(tmp_path / "run")) as run:
        assert AgentRanker(run).agents == ["a", "a\0"]


def record_tastes(
    folder: Path, taste: Any, audience: str, names: list[str], tasks: int, **settings: Any
) -> None:
    """Record what people with a taste get from a wordy and a brief agent."""
    people: Any = {"reviewers": names}
    if audience == "stakeholder":
        people = {"stakeholders": [{"id": name} for name in names]}
    with (
        jg.Jury(evaluators=[taste], weights={"method": "uniform"}, **settings) as jury,
        jury.record(folder),
    ):
        for number in range(tasks):
            answers = [
                jg.Response(id=f"{number}/{agent}", agent=agent, text=agent)
                for agent in ("wordy", "brief")
            ]
            jury.score(jg.Task(id=f"{number}", query="?", **people), answers)


@pytest.mark.parametrize("audience", ["stakeholder", "reviewer"])
def test_who_pays_for_the_choice_of_the_best_agent_is_named(tmp_path: Path, audience: Any) -> None:
    """Bea and Fay want short answers, and Walt long ones; Kit finds all alike."""

    @jg.evaluator(audience=audience)
    def taste(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        is_wanted = (task.member == "Walt") == (response.text == "wordy")
        stars = 3 if task.member == "Kit" else 4 + int(task.id) % 2 if is_wanted else 2
        unsupported = "worst-case" if (task.id, task.member) == ("0", "Kit") else None
        return jg.Verdict(
            score=(stars - 1) / 4, native=stars, scale=(1, 5), unsupported=unsupported
        )

    names = ["Bea", "Fay", "Kit", "Walt"]
    record_tastes(tmp_path / "run", taste, audience, names, 6)
    with closing(Run.open(tmp_path / "run")) as run:
        report = measure_ranking(AgentRanker(run))
    scale, lead = ("1 to 5", "2.50 (1.65 to 3.35)")
    if audience == "stakeholder":
        scale, lead = ("0 to 1", "0.62 (0.41 to 0.84)")
    sentence = f"Walt pays for the choice of brief: wordy is ahead there, by {lead} on {scale}."
    assert sentence in report.conclusion
    assert any(note.endswith("without the error of the judges themselves") for note in report.notes)
    outcomes = {row["member"]: row["outcome"] for row in report.to_json()["members"]}
    assert outcomes == {"Bea": "gains", "Fay": "gains", "Kit": "unclear", "Walt": "pays"}
    (table,) = [table for table in report.tables if table.header[0].startswith("reviewer or")]
    assert [row[0] for row in table.rows] == [f"{name} ({scale})" for name in names]
    component = "stakeholders" if audience == "stakeholder" else "taste"
    assert table.header[0] == f"reviewer or stakeholder (scale), by {component}"
    # the bars of all agents stand on one axis, and those of a lead on another
    of_brief, of_wordy, of_leads = column_axis_ranges(table).values()
    assert of_brief == of_wordy == ((0.0, 1.0) if audience == "stakeholder" else (1.0, 5.0))
    assert of_leads[0] < 0.0
    unclear = "unclear, 2 left out" if audience == "reviewer" else "unclear"
    assert [row[-1] for row in table.rows] == ["gains", "gains", unclear, "pays"]
    assert any("2 of 2 findings that need a quotation" in note for note in report.notes)
    different = "valid quotation, which the mean rewards count, by default as the worst score"
    assert any(different in note and "rest on different data" in note for note in report.notes)


@pytest.mark.parametrize("audience", ["stakeholder", "reviewer"])
def test_nobody_gains_or_pays_where_what_failed_could_be_the_opposite(
    tmp_path: Path, audience: Any
) -> None:
    """Walt's taste for brief answers fails in half of the tasks: what is left of it has no value there."""

    @jg.evaluator(audience=audience)
    def taste(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        if (task.member, response.text) == ("Walt", "brief") and int(task.id) % 2:
            raise RuntimeError("down")
        stars = 4 + int(task.id) % 3 / 2 if response.text == "wordy" else 2
        return jg.Verdict(score=(stars - 1) / 4, native=stars, scale=(1, 5))

    names = ["Bea", "Walt"]
    record_tastes(tmp_path / "run", taste, audience, names, 8, failure={"min_coverage": 0.0})
    with closing(Run.open(tmp_path / "run")) as run:
        members = measure_ranking(AgentRanker(run)).figures["members"]
    outcomes = {row.member: (row.left_out, row.outcome) for row in members}
    assert outcomes == {"Bea": (0, "gains"), "Walt": (4, "unclear")}


def test_a_reviewer_whose_judge_failed_is_told_to_be_not_judged(tmp_path: Path) -> None:
    """A row that is missing would read as nobody left out."""

    @jg.evaluator(audience="reviewer")
    def taste(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        if task.member == "Walt":
            raise RuntimeError("down")
        return jg.Verdict(score=0.5, native=3, scale=(1, 5))

    names = ["Bea", "Walt"]
    record_tastes(tmp_path / "run", taste, "reviewer", names, 4, failure={"min_coverage": 0.0})
    with closing(Run.open(tmp_path / "run")) as run:
        report = measure_ranking(AgentRanker(run))
    outcomes = {row.label: (row.left_out, row.outcome) for row in report.figures["members"]}
    assert outcomes == {"Bea (1 to 5)": (0, "unclear"), "Walt": (8, "not judged")}
    (table,) = [table for table in report.tables if table.header[0].startswith("reviewer or")]
    assert [row[-1] for row in table.rows] == ["unclear", "not judged, 8 left out"]
    assert any("their 1 intervals hold together" in note for note in report.notes)


def test_a_prediction_that_does_not_count_is_not_told_of_a_reviewer(tmp_path: Path) -> None:
    """It would double the names, and widen the intervals that hold together."""

    @jg.evaluator(audience="reviewer")
    def taste(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=float(response.text == "brief"), native=1, scale=(0, 1))

    @jg.evaluator(audience="reviewer")
    def idle(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=0.5, native=0.5, scale=(0, 1))

    with (
        jg.Jury(evaluators=[taste, idle], reward={"taste": 1.0}) as jury,
        jury.record(tmp_path / "run"),
    ):
        answers = [jg.Response(id=name, agent=name, text=name) for name in ("wordy", "brief")]
        jury.score(jg.Task(id="0", query="?", reviewers=["Bea"]), answers)
    with closing(Run.open(tmp_path / "run")) as run:
        members = measure_ranking(AgentRanker(run)).figures["members"]
    assert [member.member for member in members] == ["Bea"]


def test_that_nobody_is_told_to_pay_in_a_large_run_is_said_where_there_is_anybody(
    tmp_path: Path, ranker: AgentRanker, monkeypatch: pytest.MonkeyPatch
) -> None:
    @jg.evaluator(audience="stakeholder")
    def taste(task: jg.TaskView, response: jg.Response) -> float:
        return float(response.text == "brief")

    people: Any = {"stakeholders": [{"id": "Bea"}]}
    with jg.Jury(evaluators=[taste]) as jury, jury.record(tmp_path / "of-people"):
        answers = [jg.Response(id=name, agent=name, text=name) for name in ("wordy", "brief")]
        jury.score(jg.Task(id="0", query="?", **people), answers)
    monkeypatch.setattr("jurygraph.studies.ranking._MAX_RESPONSES_EXPLAINED", 1)
    with closing(Run.open(tmp_path / "of-people")) as run:
        report = measure_ranking(AgentRanker(run))
    assert (report.figures["members"], measure_ranking(ranker).figures["members"]) == ([], [])
    is_said = [
        any("pays for the choice is told of runs" in note for note in notes)
        for notes in (report.notes, measure_ranking(ranker).notes)
    ]
    assert is_said == [True, False]


# the last word is of the judge with the first seat, so that no column of another one is left
_FIRST = {"first": ["b", "c"], "then": "a", "when": "disagree"}
JURIES: Mapping[str, Mapping[str, Any]] = {
    f"{name}, {fold}": {**use, "fold": fold}
    for fold in ("mean", "median", "majority")
    for name, use in {
        "judges": {"judges": ["a", "b", "c"]},
        "escalated": {"escalate": _FIRST},
        "samples": {"judges": ["a", "b"], "samples": 2},
        "unsure": {"escalate": {"first": "b", "then": "a", "when": "unsure"}},
        "turns": {"escalate": _FIRST, "scope": "turn", "turns": "min"},
    }.items()
}
HOW_A_RUN_DECIDES: Sequence[Mapping[str, Any]] = (
    {},
    {"safety": {"evidence": "preferred"}},
    {"failure": {"rule": "strict"}},
    {"gates": [{"kind": "format", "component": "rubric", "below": 0.4}]},
    {"rubric": {"aggregation": "hard-local"}},
)


@all_rows("number", range(len(JURIES)))
def test_under_its_own_settings_a_ranking_has_the_rewards_of_the_run(
    tmp_path_factory: pytest.TempPathFactory, number: int
) -> None:
    """To the bit, whatever the run scored together: in a task of one response one judge may have the last word."""
    jury = list(JURIES.values())[number]
    # each jury with three of the ways to decide, one for each fold
    decided = HOW_A_RUN_DECIDES[(number + number // 5) % 5]
    draw = random.Random(number)

    def judge(name: str) -> ScriptedJudge:
        answers = [draw.random() if draw.random() < 0.9 else "?" for _ in range(40)]

        def answer(text: str) -> float | str:
            return answers[int(text.split()[-1])]

        return ScriptedJudge({"It is right.": answer, "It is kind.": answer}, name)

    criteria = [{"id": "right", "text": "It is right.", "weight": 2}]
    criteria.append({"id": "kind", "text": "It is kind.", "weight": 1})
    tasks = []
    for task in range(9):
        names = ("early", "late") if task % 3 == 0 else (("early", "late")[task % 2],)
        responses = [
            {"id": f"{task}/{agent}", "agent": agent, "text": f"Text {2 * task + position}"}
            for position, agent in enumerate(names)
        ]
        rubric = {"criteria": criteria}
        tasks.append({"id": f"{task}", "query": "?", "rubric": rubric, "responses": responses})
    folder = tmp_path_factory.mktemp("run")
    config = {
        "models": {name: judge(name) for name in "abc"},
        "evaluators": [{"use": "criteria", **jury}],
        **decided,
    }
    with scored_session(folder / "run", write_tasks(folder, tasks), config):
        pass
    with closing(Run.open(folder / "run")) as run:
        ranker = AgentRanker(run)
        rewards = ranker.decide(run.config).values.value.tolist()
        found = dict(zip(ranker.tables.responses, rewards, strict=True))
        stored = {trace.response_id: trace.reward.value for trace in run.traces()}
        ranked = {name: None if math.isnan(value) else value for name, value in found.items()}
        assert ranked == stored
        for name, value in list(stored.items())[:3]:
            assert explain_with_changes(run, name, WhatIfChanges()).trace.reward.value == value
