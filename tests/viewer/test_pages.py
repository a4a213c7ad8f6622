"""What a page says is what the run has."""

import html
import json
import random
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import jurygraph as jg
from jurygraph.models.request import Request
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.sources.config import apply_settings
from jurygraph.testing import ScriptedJudge
from jurygraph.viewer.shapes import say_once
from tests.command import run_command
from tests.examples import some_or_all
from tests.rows import all_rows
from tests.runs import investigations
from tests.viewer.conftest import SETTINGS, Browser, record

POINTS = re.compile(r'class="points">([−+0-9.-]+)<')


@some_or_all("count", 40, 200)
def test_every_page_says_what_show_says(count: int, tmp_path: Path, browser: Browser) -> None:
    draw = random.Random(0)
    folder = tmp_path / "run"
    words = ("please", "come", "now", "quixotic", "tomorrow", "or never")
    with jg.Jury(**SETTINGS) as jury, jury.record(folder):
        for task in range(count // 4):
            texts = [" ".join(draw.choices(words, k=draw.randint(1, 20))) for _ in range(4)]
            responses = [
                jg.Response(id=f"{task}/{number}", text=text) for number, text in enumerate(texts)
            ]
            jury.score(jg.Task(id=f"t{task}", query="Write."), responses)
    lines = run_command("show", folder, "--json").out.splitlines()
    traces = [json.loads(line) for line in lines]
    paths = [f"/a/response?{urlencode({'id': trace['response_id']})}" for trace in traces]
    pages = browser.open_all(paths, folder)
    assert len(pages) == count
    statuses = set()
    for trace, page in zip(traces, pages, strict=True):
        reward = trace["reward"]
        statuses.add(reward["status"])
        (shown,) = re.findall(r'class="big">([^<]+)</span>', page)
        value = reward["value"]
        assert shown == ("no reward" if value is None else f"{value:.4f}")
        points = [float(number.replace("−", "-")) for number in POINTS.findall(page)]
        (last,) = re.findall(r'class="total">.*?class="points">([^<]+)<', page, re.S)
        assert last == ("–" if value is None else shown)
        if value is not None:
            assert points[-1] == pytest.approx(sum(points[:-1]), abs=1e-3)
        scores = re.findall(r'question=([^"]+)">[^<]*</a>\s*<span class="score">([^<]+)<', page)
        assert sorted(scores) == sorted(
            (
                verdict["question"],
                verdict["status"].replace("_", " ")
                if verdict["score"] is None
                else f"{verdict['score']:.4f}",
            )
            for verdict in trace["verdicts"]
        )
        text = html.unescape(page)
        assert all(note in text for note in reward["notes"])
        for verdict in trace["verdicts"]:
            assert verdict["reason"][:60] in text
    assert statuses == {"ok", "failed"} or statuses == {"ok", "degraded", "failed"}


@all_rows(
    "settings, titles, is_below_0",
    [
        (["scale=2", "clip=[0, 0.5]"], ["scale", "clip"], False),
        (
            ['gates=[{"kind": "format", "component": "polite", "below": 0.3}]'],
            ["format gate"],
            False,
        ),
        (["reward.polite=-3"], [], True),
    ],
)
def test_a_waterfall_ends_in_the_reward_whatever_comes_after_the_sum(
    settings: list[str],
    titles: list[str],
    is_below_0: bool,
    letters: Path,
    browser: Browser,
    tmp_path: Path,
) -> None:
    with closing(Run.open(letters)) as run:
        config = apply_settings(run.config, settings)
        folder = tmp_path / str(len(titles))
        rescore(run, folder, config, lambda count: None)
    page = browser.open("/a/response?id=ann/0", folder)
    (reward,) = re.findall(r'class="big">([^<]+)</span>', page)
    points = [float(number.replace("−", "-")) for number in POINTS.findall(page)]
    assert points[-1] == float(reward)
    assert points[-1] == pytest.approx(sum(points[:-1]), abs=1e-3)
    steps = re.findall(
        r'class="what">([^<:]+)[^<]*</span>(?:(?!</li>).)*class="(?:taken|added)"', page, re.S
    )
    assert steps == titles
    assert ('class="zero"' in page) is is_below_0
    total = page.partition('class="total"')[2]
    assert (re.findall(r'<rect class="(kept|loss)"', total)[1] == "loss") is is_below_0


def test_a_verdict_has_the_words_of_its_criterion(rubrics: Path, browser: Browser) -> None:
    with closing(Run.open(rubrics)) as run:
        task = run.task("t1")
    assert task is not None
    assert task.rubric is not None
    for criterion in task.rubric.criteria:
        page = browser.open(f"/a/verdict?id=t1/r1&question=met@{criterion.id}", rubrics)
        assert f"<h1>{html.escape(criterion.text)}</h1>" in page
    response = browser.open("/a/response?id=t1/r1", rubrics)
    assert f'<p class="fine">met: {criterion.id} “{html.escape(criterion.text)}”' in response


def test_a_loss_leads_to_its_verdict_which_gives_each_reason_once_and_data_is_shown(
    browser: Browser, tmp_path: Path
) -> None:
    problem = "the reply is not valid JSON: expected ident at line 1 column 2"

    def found(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(
            status="failed",
            reason=problem,
            failure=jg.Failure(cause="response", kind="malformed", message=problem[:40] + "…"),
        )

    def cost(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        items = [jg.Evidence(quote=f"{n}", source="data", verified=True) for n in range(10)]
        return jg.Verdict(score=0.0, reason="the sum is 45", evidence=items)

    reward = {"found": 1.0, "cost": 1.0}
    with jg.Jury(evaluators=[found, cost], reward=reward) as jury, jury.record(tmp_path / "run"):
        data = {"items": [{"cost": 7, "name": "<b>"}]}
        jury.score(jg.Task(id="t", query="?"), [jg.Response(id="r", text="Ja.", data=data)])
    page = browser.open("/a/response?id=r", tmp_path / "run")
    verdicts = page.partition('<ul class="verdicts">')[2].partition("</ul>")[0]
    assert verdicts.count("the reply is not valid JSON") == 1
    assert "expected ident" not in verdicts
    assert "10 quotations were kept; more may have been counted." in page
    assert "&#34;name&#34;: &#34;&lt;b&gt;&#34;" in page
    _, _, waterfall = page.partition('<ol class="waterfall">')
    assert '<a href="/a/verdict?id=r&amp;question=cost">cost</a>' in waterfall.partition("</ol>")[0]


def test_a_quotation_stands_once_with_its_verdicts_and_is_folded_if_none_of_them_lost(
    browser: Browser, tmp_path: Path
) -> None:
    def quoting(name: str, score: float, *quotes: str) -> Callable[..., jg.Verdict]:
        def quote(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
            starts = {text: response.text.index(text) for text in quotes}
            evidence = [
                jg.Evidence(quote=text, start=start, end=start + len(text), verified=True)
                for text, start in starts.items()
            ]
            return jg.Verdict(score=score, reason=name, evidence=evidence)

        return jg.evaluator(name=name)(quote)

    evaluators = [
        quoting("good", 1.0, "yes", "no"),
        quoting("bad", 0.0, "no"),
        quoting("fine", 1.0, "yes"),
    ]
    reward = {"good": 1.0, "bad": 1.0, "fine": 1.0}
    with jg.Jury(evaluators=evaluators, reward=reward) as jury, jury.record(tmp_path / "run"):
        jury.score(jg.Task(id="t", query="?"), [jg.Response(id="r", text="yes, no")])
    page = browser.open("/a/response?id=r", tmp_path / "run")
    costly, _, folded = page.partition("<h3>Quotations</h3>")[2].partition("<details >")
    assert (costly.count("<q>no</q>"), costly.count("<q>yes</q>")) == (1, 0)
    assert "for bad, good, from response" in costly
    assert "1 of verdicts without a loss" in folded
    assert (folded.count("<q>yes</q>"), folded.count("<q>no</q>")) == (1, 0)
    numbers = re.findall(r'href="#e(\d)"', page)
    assert sorted(numbers) == sorted(re.findall(r'id="e(\d)"', page)) == ["1", "2"]


def test_passages_stand_below_the_response_with_their_quotations(
    browser: Browser, tmp_path: Path
) -> None:
    quotes = ["It is 330 m high.", "330 metres <high>"]
    finding = {"met": True, "probability": 0.9, "reason": "so", "quotes": quotes}
    passages = [{"text": "It is 330 metres <high>.", "source": "tower.md"}, "It opened in 1889."]
    task = jg.Task(id="t", query="How high?", context=passages, reference="330 m")
    judge = ScriptedJudge({"": finding})
    with jg.Jury(model=judge, evaluators=["context"], record=tmp_path / "run") as jury:
        jury.score(task, [jg.Response(id="r", text=quotes[0])])
    page = html.unescape(browser.open("/a/response?id=r", tmp_path / "run"))
    words = re.sub(r"<(?!high)[^>]*>", " ", page.partition('id="h-text"')[2])
    assert " ".join(words.split()).startswith(
        ">Response Query How high? Reference 330 m It is 330 m high. 1 "
        "passage 1 (tower.md) It is 330 metres <high> 2 . passage 2 It opened in 1889."
    )
    assert run_command("report", tmp_path / "run", "-o", tmp_path / "report.html").code == 0
    report = html.unescape(re.sub(r"<[^>]*>", " ", (tmp_path / "report.html").read_text()))
    assert "tower.md It is 330 metres <high>. passage 2 It opened" in " ".join(report.split())
    assert "reference 330 m answer It is" in " ".join(report.split())
    for_an_issue = tmp_path / "r.md"
    run_command("report", tmp_path / "run", "--response", "r", "-o", for_an_issue)
    assert "**Reference**\n\n```text\n330 m\n```" in for_an_issue.read_text()


def test_each_judge_stands_beside_what_counts_and_the_run_says_who_was_outvoted(
    browser: Browser, tmp_path: Path
) -> None:
    answers = {"kind": (True, True), "mild": (True, {"met": None, "probability": None})}
    models = {
        name: ScriptedJudge({"It is clear.": clear, "It is short.": short}, f"{name}-1")
        for name, (clear, short) in (answers | {"strict": (False, False)}).items()
    }
    criteria = {"clear": "It is clear.", "short": "It is short."}
    use = {"use": "criteria", "params": {"criteria": criteria}, "judges": list(models)}
    evaluators = [{**use, "fold": "majority"}]
    with jg.Jury(models=models, evaluators=evaluators, record=tmp_path / "my run") as jury:
        jury.score(jg.Task(id="t", query="?"), [jg.Response(id="r", text="One text of a length.")])
    addresses = ["/a/", "/a/response?id=r", "/a/responses?columns=disagreement&sort=-disagreement"]
    overview, page, responses = browser.open_all(addresses, tmp_path / "my run")
    assert re.search(r'aria-sort="descending">\s*<a [^>]*>disagreement ', responses)
    assert "kind (kind-1), mild (mild-1), strict (strict-1)" in overview
    assert "<dt>cost</dt><dd>3 calls of models, $0.0000</dd>" in overview
    assert "1 had no majority (1 count as the worst case); outvoted: strict on 1</a>." in overview
    assert (
        f"study judge &#39;{tmp_path / 'my run'}&#39; --labels F" in overview
    )  # as a shell reads it
    table = page.partition("What the judges say")[2].partition("</table>")[0]
    reason = '<span class="fine">scripted</span><br>'  # before the answer of whoever gives one
    assert table.count(reason) == 6
    table = table.replace(reason, "")
    rows = [re.findall(r"<td[^>]*>([^<]*)<", row) for row in table.split("<tr>")[2:]]
    kept = [[re.sub(r" \(.*", "", cell) for cell in row] for row in rows]
    assert kept == [
        ["met", "met", "met", "not met"],
        ["no majority: worst case", "met", "abstained", "not met"],
    ]
    assert table.count('class="warn"') == 1


def test_means_that_leave_out_other_rewards_than_they_have_are_said_to_mislead(
    browser: Browser, tmp_path: Path
) -> None:
    failed, others = ("please please please please quixotic",) * 4, ("come",) * 6
    record(tmp_path / "run", {"ann": (*failed, *others)})
    warning = "eans mislead: they leave out 4 failed rewards, whose mean on polite is 1.0000"
    for page in browser.open_all(["/a/", "/a/ranking"], tmp_path / "run"):
        assert warning in page
    assert warning in run_command("study", "ranking", tmp_path / "run").err


def test_a_check_has_not_the_words_of_a_criterion_of_its_name(
    browser: Browser, tmp_path: Path
) -> None:
    rubric = jg.Rubric(criteria=(jg.Criterion(id="w", text="It is warm.", weight=1.0),))
    with jg.Jury(evaluators=[find("w")], reward={"w": 1.0}) as jury, jury.record(tmp_path / "run"):
        response = jg.Response(id="r", text="warm")
        (trace,) = jury.score(jg.Task(id="t", query="?", rubric=rubric), [response])
    (verdict,) = trace.verdicts
    address = urlencode({"id": "r", "question": verdict.question})
    page = browser.open(f"/a/verdict?{address}", tmp_path / "run")
    assert verdict.subject == "w"
    assert f"<h1>{verdict.question}</h1>" in page


def test_what_a_clip_takes_from_the_best_reward_is_no_loss(
    letters: Path, browser: Browser, tmp_path: Path
) -> None:
    with closing(Run.open(letters)) as run:
        config = apply_settings(run.config, ["scale=10", "clip=[0, 2]"])
        rescore(run, tmp_path / "clipped", config, lambda count: None)
    page = browser.open("/a/response?id=ann/0", tmp_path / "clipped")
    (headline,) = re.findall(r'<p class="verdict-line">.*?</p>', page, re.S)
    assert '"big">2.0000</span> of 2' in headline
    assert "Lost most by polite: 0.525 of 1 points." in headline


def find(letter: str) -> Any:
    """Return an evaluator for whether a letter is in a response; that fails where it is a capital."""

    def evaluate(task: jg.TaskView, response: jg.Response) -> float:
        if letter.upper() in response.text:
            raise RuntimeError("it is too large")
        return float(letter in response.text)

    evaluate.__name__ = letter
    return jg.evaluator(layer="check")(evaluate)


def test_a_loss_by_an_outage_is_called_filled_in_and_blamed_on_nobody(
    browser: Browser, tmp_path: Path
) -> None:
    settings = {"reward": {"w": 3.0, "x": 1.0}, "failure": {"min_coverage": 0.1}}
    with (
        jg.Jury(evaluators=[find("w"), find("x")], **settings) as jury,
        jury.record(tmp_path / "run"),
    ):
        jury.score(jg.Task(id="t", query="?"), [jg.Response(id="r", text="cold W")])
    page = browser.open("/a/response?id=r", tmp_path / "run")
    assert "Lost most by w (filled in by the failure rule): 3 of 4 points." in page
    assert run_command("report", tmp_path / "run", "-o", tmp_path / "report.html").code == 0
    report = (tmp_path / "report.html").read_text()
    assert "3 by w (filled in by the failure rule), 1 by x." in report


def test_a_turn_names_today_only_agents_that_have_a_mean_and_no_leader_of_equals(
    browser: Browser, tmp_path: Path
) -> None:
    settings: Any = {
        "evaluators": [find(letter) for letter in "wxyz"],
        "reward": {"w": 3.0, "x": 1.0, "y": 1.0, "z": 1.0},
        "failure": {"min_coverage": 0.1},
    }
    texts_by_agent = {"ann": ("wXYZ", "wXYZ", "none"), "bob": ("xY", "xY", "xY")}
    texts_by_agent |= {"cas": ("x", "x", "x"), "dan": ("y", "y", "y")}
    with jg.Jury(**settings) as jury, jury.record(tmp_path / "run"):
        for number in range(3):
            responses = [
                jg.Response(id=f"{agent}{number}", agent=agent, text=texts[number])
                for agent, texts in texts_by_agent.items()
            ]
            jury.score(jg.Task(id=str(number), query="?"), responses)
    level = browser.open("/a/ranking?scan=reward.x", tmp_path / "run")
    assert re.search(r"(From 1.\d* on|Below 1) <strong>\w+</strong> leads \w+ \(1 today\)", level)
    assert "</strong> is level" not in level
    turns = browser.open("/a/ranking?far=1", tmp_path / "run")
    assert re.search(r"cas is level with dan, [^<]*</li>", turns)
    tried = urlencode({"scan": "failure.min_coverage", "set": "failure.min_coverage=1"})
    page = browser.open(f"/a/ranking?{tried}", tmp_path / "run")
    assert browser.status == 200
    assert "<li>Below 0.5 <strong>ann</strong> leads " in page


def test_a_verdict_stands_with_what_was_looked_up_and_its_quotation_leads_there(
    tmp_path: Path,
) -> None:
    def look(request: Request, step: int) -> Any:
        if step == 0:
            return [("price", {"item": "room"})]
        return {"quotes": ["The room is 90 euros a night", "is 120 euros a night"]}

    trace, _ = investigations.judge(investigations.Investigator(look), tmp_path / "run")
    (name,) = trace.verdicts[0].lookups
    page = html.unescape(Browser().open("/a/response?id=trip/a", tmp_path / "run"))
    assert f'<a href="#l-{name}">tool:1</a>' in page
    (line,) = re.findall(rf'id="l-{name}">(.*?)</p>', page)
    assert line == 'tool:1 price {"item": "room"} → The room is 120 euros a night.'


@pytest.mark.parametrize("source", ["tool:search", "tool:0", "tool:2"])
def test_a_source_of_an_evaluators_own_that_is_called_a_tool_leads_nowhere(
    source: str, tmp_path: Path
) -> None:
    @jg.evaluator(layer="check")
    def search(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=0.5, evidence=[jg.Evidence(quote="120 euros", source=source)])

    with jg.Jury(evaluators=[search]) as jury, jury.record(tmp_path / "run"):
        jury.score(jg.Task(id="t", query="?"), [jg.Response(id="r", text="120 euros")])
    assert f", from {source}: not found" in Browser().open("/a/response?id=r", tmp_path / "run")


def test_findings_without_a_quotation_are_listed_and_an_address_with_a_typo_is_refused(
    tmp_path: Path, browser: Browser
) -> None:
    says = "[unsupported: the judge says met, and quotes 'Ja'"

    def kind(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        if response.id == "sure":
            return jg.Verdict(score=1.0)
        run = "A" * 250 if response.id == "vague" else ""
        reason = f"It is so. {run}{says}]"
        return jg.Verdict(score=0.25, met=False, unsupported="stands", reason=reason)

    with jg.Jury(evaluators=[kind], record=tmp_path / "run") as jury:
        answers = [jg.Response(id=name, text=name) for name in ("sure", "unsure", "vague")]
        jury.score(jg.Task(id="t", query="Write."), answers)
    addresses = ["status=unsupported", "xyzzy=1", "agnet=a", "sort=reward&token=x"]
    addresses = [f"/a/responses?{address}" for address in addresses] + ["/a/response?id=unsure"]
    addresses += ["/a/verdict?id=unsure&question=kind&quesion=x", "/a/?label.x=1"]
    addresses.append("/a/verdict?id=vague&question=kind")
    listed, unknown, typo, known, page, *others = browser.open_all(addresses, tmp_path / "run")
    found = re.findall(r'question=kind">kind</a>: ([^<]*)<', html.unescape(listed))
    assert found == ["the judge says met, and quotes 'Ja'"] * 2
    assert "this page has no parameter &#39;xyzzy&#39;; there are search" in unknown
    assert "no parameter &#39;quesion&#39;; did you mean question?" in others[0]
    assert "no parameter &#39;label.x&#39;; there are none" in others[1]
    assert "did you mean agent?" in typo
    assert "3 responses" in known
    told: dict[str, bool] = {}
    fact = "it cannot be shown, for the flight is in no list"
    # a browser lays out a run of 200,000 characters in a minute and a half
    assert f"so. <wbr>{'A' * 100}<wbr>{'A' * 100}<wbr>{'A' * 50}[" in others[2]
    reasons = [say_once(f"{name} is late; {fact}", told) for name in ("ann", "ben")]
    assert reasons == [f"ann is late; {fact}", "ben is late; as above"]
    # the reason is to be seen, and the sums when asked for
    (why,) = re.findall(r'<details class="why"><summary><span>(.*?)</span></summary>(.*?)</', page)
    assert (why[0][:9], why[1]) == ("It is so.", "Lost 0.75: kind 0.25 of 1, weight 1")
    neighbours = re.findall(r'<a href="([^"]*)">(← previous|next)', page)
    assert neighbours == [("/a/response?id=vague", "next")]


def test_a_part_of_a_conversation_is_headed_as_in_show_and_a_fault_is_found(
    tmp_path: Path, browser: Browser
) -> None:
    call = {"id": "1", "function": {"name": "look", "arguments": "{}"}}
    chat = [
        {
            "role": "assistant",
            "content": None,
            "reasoning": "First the shelf.",
            "tool_calls": [call],
        },
        {"role": "tool", "tool_call_id": "1", "content": "salt"},
        {"role": "assistant", "content": "salt"},
    ]
    salty = jg.evaluator(lambda task, response: "salt" in response.text, name="salty")
    brief = jg.evaluator(lambda task, response: len(response.text) < 9, name="brief")
    with (
        jg.Jury(evaluators=[salty, brief], reward={"brief": 1, "salty": -1}) as jury,
        jury.record(tmp_path / "run"),
    ):
        answers = [
            jg.Response(id="a", messages=chat, agent="A"),
            jg.Response(id="b", text="No.", agent="B"),
        ]
        jury.score(jg.Task(id="t", query="Salt?"), answers)
    page, overview = browser.open_all(["/a/response?id=a", "/a/"], tmp_path / "run")
    headings = re.findall(r"<h3>(\[.*?)</h3>", page)
    assert headings == [
        "[0] assistant reasoning",
        "[0] assistant",
        "[1] tool look",
        "[2] assistant",
    ]
    assert ("found in 1 of 1" in overview, "found in 0 of 1" in overview) == (True, True)


def test_a_fault_of_one_turn_is_found_in_the_response(tmp_path: Path, browser: Browser) -> None:
    """The mean of its turns would be below one half."""
    chat = [{"role": "assistant", "content": words} for words in ("rude", "kind", "", "kind")]
    rude = {"use": "criteria", "name": "rude", "params": {"criteria": {"rude": "It is rude."}}}
    config = {
        "evaluators": [
            {**rude, "scope": "turn"},
            {"use": "maths.length", "name": "long"},
        ],
        "reward": {"rude": -1, "long": 1},
    }
    judge = ScriptedJudge({"rude": lambda text: text.endswith("rude")})
    with jg.Jury.from_config(config, model=judge, record=tmp_path / "run") as jury:
        answers = [
            jg.Response(id="a", messages=chat, agent="A"),
            jg.Response(id="b", messages=chat[1:], agent="B"),
        ]
        jury.score(jg.Task(id="t", query="Salt?"), answers)
    (overview,) = browser.open_all(["/a/"], tmp_path / "run")
    assert "found in 1 of 1, in 1 of 3 turns" in overview
    assert "found in 0 of 1, in 0 of 2 turns" in overview
