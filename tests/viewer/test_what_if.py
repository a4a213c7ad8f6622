"""What a page decides again has the bits of `rescore`."""

import html
import json
import math
import random
import re
import shlex
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from multidict import MultiDict

import jurygraph as jg
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.studies.ranking import AgentRanker, RankSwap, find_rank_swaps
from jurygraph.testing import ScriptedJudge
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.pages import first_what_if_verdicts
from jurygraph.viewer.what_if import WhatIfChanges, explain_with_changes
from jurygraph.views.trace import build_trace_view
from tests.examples import some_or_all
from tests.rows import all_rows
from tests.studies.figures import means_by_agent, two_sums
from tests.viewer.conftest import Browser, polite

CHANGES = [
    ["reward.polite=0.1"],
    ["reward.polite=-1", "reward.brief=3"],
    ["failure.rule=strict"],
    ["failure.rule=gear", "failure.min_coverage=0"],
    ["scale=3", "clip=[0, 0.5]"],
]


@pytest.mark.parametrize("settings", CHANGES, ids=json.dumps)
def test_settings_give_the_rewards_of_rescore(
    settings: list[str], letters: Path, tmp_path: Path
) -> None:
    changes = WhatIfChanges.from_url(
        MultiDict([("set", setting) for setting in [*settings, "scale="]])
    )
    with closing(Run.open(letters)) as run:
        config = changes.make_changed_config(run)
        rescore(run, tmp_path / "again", config, lambda count: None)
        with closing(Run.open(tmp_path / "again")) as again:
            expected = {trace.response_id: trace.reward for trace in again.traces()}
        for name, reward in expected.items():
            assert explain_with_changes(run, name, changes).trace.reward == reward
        means = means_by_agent(AgentRanker(run), settings)
    by_agent: dict[str, list[float]] = {}
    for name, reward in expected.items():
        if reward.value is not None:
            by_agent.setdefault(f"agent {name[-1]}", []).append(reward.value)
    assert means == {
        agent: pytest.approx(sum(values) / len(values)) for agent, values in by_agent.items()
    }


def test_a_score_that_is_tried_is_that_of_its_question_alone(letters: Path) -> None:
    with closing(Run.open(letters)) as run:
        before = run.find_trace("ann/1").reward
        changes = WhatIfChanges.from_url(MultiDict(score="polite=1"))
        after = explain_with_changes(run, "ann/1", changes).trace.reward
    assert before.value is not None
    assert after.value == pytest.approx(before.value + 0.7)
    assert after.components["brief"] == before.components["brief"]


def test_a_page_names_all_that_was_changed(letters: Path, browser: Browser) -> None:
    page = browser.open("/a/response?id=bob/0&score=polite%3D1&set=reward.brief%3D0", letters)
    assert "decided again without a call." in page
    before_all, _, _ = page.partition("<h1>")
    assert re.search(
        r"With 2 changes: <strong>0.7000</strong> instead of 0.\d+ .*>reset<", before_all
    )


def test_printed_commands_are_quoted_and_names_that_no_setting_reaches_are_told(
    browser: Browser, tmp_path: Path
) -> None:
    weights = {"it's; echo": 1.0, "$HOME": 0.5, "x=y": 0.25, "a.b": 0.25}
    with jg.Jury(
        evaluators=[polite],
        components={name: {"inputs": {"a": {"verdicts_of": "polite"}}} for name in weights},
        reward=weights,
        record=tmp_path / "a run",
    ) as jury:
        answers = [jg.Response(id=text, agent=text, text=text) for text in ("please", "no")]
        jury.score(jg.Task(id="t", query="Write."), answers)
    settings = ["reward.it's; echo=2.0", "reward.$HOME=0.7"]
    tried = urlencode([("set", setting) for setting in settings])
    response, ranking, typo, zero = browser.open_all(
        [
            f"/a/response?id=no&{tried}",
            f"/a/ranking?far=1&{tried}",
            "/a/response?id=no&set=reward.nope%3D1",
            f"/a/response?id=no&{urlencode([('set', f'reward={dict.fromkeys(weights, 0)}')])}",
        ],
        tmp_path / "a run",
    )
    options = [word for setting in settings for word in ("--set", setting)]
    folder = str(tmp_path / "a run")
    rescore_words = ["jurygraph", "rescore", folder, "--out", "NEW", *options]
    for page, commands in (
        (response, [rescore_words]),
        (ranking, [["jurygraph", "study", "ranking", folder, *options], rescore_words]),
    ):
        printed = re.findall("<code>(jurygraph .*?)</code>", page)
        assert [shlex.split(html.unescape(command)) for command in printed] == commands
        assert "not tried: the weight of x=y, a.b, since" in page
        assert 'data-setting="reward.$HOME"' in page
        assert 'data-setting="reward.x=y"' not in page
    # as `rescore` says it
    assert "there is no component &#39;nope&#39;" in typo
    assert "every weight is 0, so nothing would count" in zero


def test_a_page_says_why_a_response_stays_without_a_reward(letters: Path, browser: Browser) -> None:
    page = browser.open("/a/response?id=bob/1&set=failure.min_coverage%3D0.9", letters)
    assert (
        "Not scored: brief: RuntimeError as the response wished"
        in page.partition('id="what-if"')[2]
    )


@all_rows(
    "slope, turns",
    [
        (1.0, [RankSwap(0.5, "a", "b")]),
        (0.0, []),
    ],
)
def test_agents_change_places_where_their_means_cross(slope: float, turns: list[RankSwap]) -> None:
    found = find_rank_swaps("ab", lambda value: two_sums(slope * value - 0.5), 0.0, 1.0)
    assert [(turn.first, turn.second) for turn in found] == [
        (turn.first, turn.second) for turn in turns
    ]
    for turn, expected in zip(found, turns, strict=True):
        assert turn.value == pytest.approx(expected.value, abs=1e-3)


def draw_letters(draw: random.Random) -> list[str]:
    weights = [f"reward.{name}={draw.uniform(0, 2)!r}" for name in ("polite", "brief")]
    return [*weights, f"failure.rule={draw.choice(('strict', 'gear', 'conservative', 'decisive'))}"]


def draw_rubrics(draw: random.Random) -> list[str]:
    settings = [f"rubric.kappa={draw.uniform(0, 4)!r}", f"reward.rank={draw.random()!r}"]
    return [*settings, f"gates.0.below={draw.random()!r}"]


@some_or_all("share", 0.2, 1.0)
@pytest.mark.parametrize(
    ("name", "count", "draw_settings"),
    [("letters", 40, draw_letters), ("rubrics", 10, draw_rubrics)],
)
def test_random_changes_are_those_of_rescore(
    name: str,
    count: int,
    share: float,
    draw_settings: Callable[[random.Random], list[str]],
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    draw = random.Random(0)
    with (
        closing(Run.open(request.getfixturevalue(name))) as run,
        closing(RunIndex(run)) as index,
    ):
        names = [trace.response_id for trace in run.traces()]
        index.update()
        index.complete()
        ranker = AgentRanker(run, index.iter_packed_groups())
        for number in range(round(share * count)):
            settings = draw_settings(draw)
            changes = WhatIfChanges(settings=tuple(settings))
            folder = tmp_path / str(number)
            rescore(run, folder, changes.make_changed_config(run), lambda count: None)
            response = draw.choice(names)
            by_agent: dict[str, list[float]] = {}
            with closing(Run.open(folder)) as again:
                expected = again.find_trace(response).reward
                for trace in again.traces():
                    if trace.reward.value is not None:
                        by_agent.setdefault(trace.agent or "", []).append(trace.reward.value)
            assert explain_with_changes(run, response, changes).trace.reward == expected
            expected_means = {
                agent: math.fsum(values) / len(values) for agent, values in by_agent.items()
            }
            assert means_by_agent(ranker, settings) == pytest.approx(expected_means, rel=1e-12)


@all_rows(
    "retention, q",
    [
        ("null", lambda core, more: more),  # without its edge it has what it scored
        ("1", lambda core, more: more),
        ("0", lambda core, more: more * core),  # GEAR, Eq. 11: p (z + (1 - z) λ)
        ("0.5", lambda core, more: more * (core + (1.0 - core) * 0.5)),
    ],
)
def test_an_edge_that_is_tried_has_the_retention_that_is_named(
    retention: str, q: Callable[[float, float], float], rubrics: Path
) -> None:
    changes = WhatIfChanges.from_url(MultiDict(edge=f'["core","more",{retention}]'))
    assert WhatIfChanges.from_url(MultiDict(parse_qsl(changes.to_url()))) == changes
    with closing(Run.open(rubrics)) as run:
        scores = run.question_scores(run.find_trace("t1/r1"))
        core, more = (scores[f"met@{name}"] for name in ("core", "more"))
        reward = explain_with_changes(run, "t1/r1", changes).trace.reward
    found = reward.parts["rubric"]["more"]
    assert found == pytest.approx(q(core, more))


def test_the_score_of_a_question_is_tried_below_a_verdict_that_was_judged(tmp_path: Path) -> None:
    votes = {"absent": "no decision", "strict": False}
    judges = {name: ScriptedJudge({"It is kind.": met}, name=name) for name, met in votes.items()}
    use = {"use": "criteria", "judges": [*judges], "fold": "majority"}
    rubric = jg.Rubric(criteria=(jg.Criterion(id="kind", text="It is kind.", weight=1),))
    with jg.Jury(models=judges, evaluators=[use]) as jury, jury.record(tmp_path / "run"):
        task = jg.Task(id="letter", query="Write a letter.", rubric=rubric)
        jury.score(task, [jg.Response(id="a", text="Go away.")])
    with closing(Run.open(tmp_path / "run")) as run:
        view = build_trace_view(run.explain_trace(run.find_trace("a")))
    (tried,) = first_what_if_verdicts(view).values()
    assert tried.verdict.judge == "strict"


def test_the_page_tries_the_questions_that_the_terminal_tries(tmp_path: Path) -> None:
    def dated(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        if "no date" in response.text:
            return jg.Verdict(status="not_applicable", reason="it needs none")
        return jg.Verdict(score=0.5)

    settings = {"evaluators": [polite, dated], "reward": {"polite": 1.0, "dated": 1.0}}
    responses = [jg.Response(id=text, text=text) for text in ("no date, please", "please")]
    with jg.Jury(**settings) as jury, jury.record(tmp_path / "run"):
        jury.score(jg.Task(id="letter", query="Write a letter."), responses)
    with closing(Run.open(tmp_path / "run")) as run:
        for trace in run.traces():
            explanation = run.explain_trace(trace)
            tried = {change.question for change in explanation.what_if() if change.question}
            assert first_what_if_verdicts(build_trace_view(explanation)).keys() == tried
            assert ("dated" in tried) is (trace.response_id == "please")


def test_a_question_about_turns_is_tried_for_all_of_them(browser: Browser, tmp_path: Path) -> None:
    """`rescore` knows scores of questions alone, and the control says so."""
    chat = [
        {"role": role, "content": text}
        for role, text in (("assistant", "come"), ("user", "?"), ("assistant", "please come"))
    ]
    use = {"use": polite, "scope": "turn"}
    with jg.Jury(evaluators=[use]) as jury, jury.record(tmp_path / "run"):
        jury.score(jg.Task(id="letter", query="Write."), [jg.Response(id="a", messages=chat)])
    page = browser.open("/a/response?id=a", tmp_path / "run")
    assert "what if polite in every turn were" in page
    assert "what if polite in turn" not in page
