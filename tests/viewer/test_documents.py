"""What is handed on: pages that stand alone, drawings in notebooks, and what each of them leaves out."""

import json
import re
import sqlite3
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path

import pytest

import jurygraph as jg
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.sources.config import apply_settings
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.overview import run_overview_context
from jurygraph.viewer.report import measure_losses
from jurygraph.viewer.shapes import format_failure
from tests.cli.conftest import folder_contents
from tests.command import run_command
from tests.rows import all_rows
from tests.viewer.conftest import HOSTILE, SETTINGS, Browser, record

HTMX_OR_SCRIPT = re.compile(r"on\w+|hx-.*|data-hx.*|src|srcset|href|style|xlink:href|action|srcdoc")
INVISIBLE = ("\u202e", "\u200b", "\x00", "\x1b")
WORST = f"{HOSTILE}<svg onload=alert(1)><style>*{{background:url(//x)}}</style></style></main>"
"""More than `HOSTILE`: markup of drawings and styles, and an end of what surrounds it."""


class Markup(HTMLParser):
    """The tags, attributes and styles of a page, and the whole of its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: dict[str, set[str]] = {}
        self.styles: list[str] = []
        self.text = ""
        self._open = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self._open = tag
        for name, value in attrs:
            self.attributes.setdefault(name, set()).add(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "style":
            self.styles.append(data)
        else:
            self.text += data


def check_stands_alone(page: str) -> Markup:
    """Check that a page runs nothing and asks for nothing, whatever was written into it."""
    markup = Markup(page)
    assert not markup.tags & {"script", "img", "iframe", "link", "object", "embed", "b", "form"}
    acting = {name for name in markup.attributes if HTMX_OR_SCRIPT.fullmatch(name)}
    assert acting <= {"href"}
    assert all(target.startswith("#") for target in markup.attributes.get("href", ()))
    assert len(markup.styles) == 1
    assert not re.search(r"url\(|@import|http", markup.styles[0])
    for sign in INVISIBLE:
        assert sign not in page
    assert " 49" not in markup.text  # {{ 7 * 7 }}
    return markup


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with hostile content in every field, and a line of 1 MB in the response and in a reason."""

    def wary(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        quotation = jg.Evidence(quote=WORST, start=0, end=len(WORST))
        return jg.Verdict(score=0.25, reason=response.text, evidence=[quotation])

    def failing(task: jg.TaskView, response: jg.Response) -> float:
        if response.text.endswith("last"):
            raise RuntimeError(WORST)
        return 1.0

    evaluators = [jg.evaluator(judge, layer="check") for judge in (wary, failing)]
    folder = tmp_path_factory.mktemp("hostile") / "<b>run"
    text = f"{WORST} {'x' * 1_000_000}"
    with (
        jg.Jury(evaluators=evaluators, reward={"wary": 1, "failing": 1}) as jury,
        jury.record(folder),
    ):
        responses = [
            jg.Response(id=f"{WORST}{agent}", agent=agent, text=f"{text}{agent}")
            for agent in (WORST, "last")
        ]
        jury.score(jg.Task(id=WORST, query=WORST), responses)
    return folder


def test_a_report_of_hostile_content_is_text_that_asks_for_nothing(
    hostile: Path, tmp_path: Path
) -> None:
    written = tmp_path / "report.html"
    assert run_command("report", hostile, "-o", written).code == 0
    markup = check_stands_alone(written.read_text())
    assert markup.text.count("<script>alert(1)</script>") >= 4  # id, agent, task and reason
    assert "1 could not be scored; the means leave it out." in markup.text
    assert "RuntimeError" in markup.text
    assert len(written.read_bytes()) < 40_000
    assert run_command("report", hostile, "-o", written, "--response", f"{WORST}last").code == 0
    markup = check_stands_alone(written.read_text())
    assert "no reward" in markup.text
    assert "x" * 1_000_000 in markup.text


def test_a_report_has_the_lowest_rewards_first_and_says_what_it_leaves_out(
    letters: Path, tmp_path: Path
) -> None:
    before = folder_contents(letters)
    written = tmp_path / "report.html"
    ended = run_command("report", letters, "-o", written, "--most", 2)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err.endswith(f"wrote {written}\n")
    markup = check_stands_alone(written.read_text())
    with closing(Run.open(letters)) as run:
        rewards = {trace.response_id: trace.reward.value for trace in run.traces()}
    lowest = sorted((value, name) for name, value in rewards.items() if value is not None)[:2]
    drawn = re.findall(r'class="big">([0-9.]+)</span> (\S+)</h3>', written.read_text())
    assert drawn == [(f"{value:.4f}", name) for value, name in lowest]
    assert "The 2 lowest of 4" in markup.text
    assert re.search(r"question Write to ann.*\s*answer come\s*Lost", markup.text)
    assert "1 could not be scored; the means leave it out." in markup.text
    (lead, *_) = json.loads(run_command("study", "ranking", letters, "--json").out)["pairs"]
    assert f"{lead['first']} is ahead of {lead['second']}, " in markup.text
    # agent 0 is polite at .25 and .25, agent 1 at 0, and agent 2 has one response
    behind = "the points by which it is behind agent 2; those of agent 0 add up to 0.5633, the difference"
    assert behind in markup.text
    assert re.search(
        r"polite\s*0\.7\s*1\.00000 of 1 below 0\.5\s*0\.2500 \(\+0\.5250\)2 of 2 below 0\.5\s*"
        r"0\.0000 \(\+0\.7000\)1 left out1 of 1 below 0\.5",
        markup.text,
    )
    failed = r"bob/1\s*agent 1\s*Write to bob.*\s*quixotic\s*Not scored: .*as the response wished"
    assert re.search(failed, markup.text)
    assert "judge's probability" not in markup.text
    unchanged = {
        name: text for name, text in folder_contents(letters).items() if "index" not in name
    }
    assert unchanged == before


def test_a_report_says_first_which_agent_is_better_and_nothing_of_a_terminal(
    letters: Path, tmp_path: Path
) -> None:
    written = tmp_path / "report.html"
    run_command("report", letters, "-o", written, "--most", 1)
    page = written.read_text()
    first = re.search(r"<h1>.*?</h1>\s*<p><strong>(.*?)</strong></p>", page, flags=re.DOTALL)
    assert first is not None
    assert first[1] == "No agent is shown to be better than the next, nor the first than any other."
    text = check_stands_alone(page).text
    assert "jurygraph " not in text.replace("jurygraph 0", "")  # its version, in the proof
    assert "--" not in text
    assert "Judged: 5 responses of 3 agents to 2 groups" in text
    assert re.search(
        r"lost by\s*agent 2\s*agent 0\s*agent 1\s*polite\s*0\.0000\s*0\.5250\s*0\.7", text
    )
    # the three that are not drawn have a line each, the last of them the best of all
    others = re.findall(r'<tr><th scope="row">(\w+/\d)</th><td class="num">([0-9.]+)</td>', page)
    rewards = [float(reward) for _, reward in others]
    assert len(others) == 3
    assert rewards == sorted(rewards)
    assert others[-1][0] == "ann/2"
    losses = re.findall(r"<td>([^<]*)</td></tr>", page[page.index("lost most by</th>") :])
    assert losses == ["polite 0.5250", "polite 0.5250", "brief 0.0405"]


def test_a_report_that_lists_no_others_promises_no_table_of_them(
    letters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jurygraph.viewer.report._MAX_LISTED_RESPONSES", 2)
    written = tmp_path / "report.html"
    assert run_command("report", letters, "-o", written, "--most", 2).code == 0
    text = check_stands_alone(written.read_text()).text
    assert "The 2 lowest of 4." in text
    assert "stand in a table below" not in text


def test_a_report_of_two_agents_says_in_points_and_tasks_won_whether_one_is_better(
    tmp_path: Path,
) -> None:
    names = [*"abcdefghijklmnopqrstuvwxyz"]
    word = "please "

    def first_sentence(folder: str, texts: list[tuple[str, str]]) -> str:
        record(tmp_path / folder, dict(zip(names, texts, strict=False)))
        run_command("report", tmp_path / folder, "-o", tmp_path / f"{folder}.html")
        page = (tmp_path / f"{folder}.html").read_text()
        found = re.search(r"<h1>.*?</h1>\s*<p><strong>(.*?)</strong></p>", page, flags=re.DOTALL)
        assert found is not None
        assert "the difference is" not in page  # which the first sentence says
        return found[1]

    better = [(word * (1 + number % 3), word) for number in range(22)] + [(word, word * 2)] * 2
    assert re.fullmatch(
        r"agent 0 is better than agent 1: by 0\.1\d of 1 point \(95 % sure of 0\.0\d to 0\.2\d; "
        r"24 tasks in which both were scored: 14 won, 8 equal, 2 lost\)\.",
        first_sentence("better", better),
    )
    alike = [(word, word * 2), (word * 2, word)] * 11 + [(word * 2, word), (word, word)]
    assert re.fullmatch(
        r"agent 0 is not shown to be better than agent 1: ahead by 0\.01 of 1 point "
        r"\(95 % sure of -0\.\d\d to 0\.\d\d; 24 tasks .*: 12 won, 1 equal, 11 lost\)\.",
        first_sentence("alike", alike),
    )


@pytest.mark.parametrize(
    ("reward", "lead"),
    [
        ({"rude": -1.0, "long": -0.2}, r"by 0\.50 of 1\.2 points \(95 % sure of 0\.\d\d to"),
        ({"rude": -0.5, "long": 1.0}, r"by 0\.25 of 1\.5 points \(95 % sure of 0\.\d\d to"),
        ({"rude": -0.01, "long": 0.0}, r"by 0\.0050 of 0\.01 points \(95 % sure of 0\.0012 to"),
    ],
)
def test_a_lead_is_part_of_all_points_between_the_worst_and_the_best_reward(
    reward: dict[str, float], lead: str, tmp_path: Path
) -> None:
    @jg.evaluator(layer="check")
    def rude(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=float("rude" in response.text))

    @jg.evaluator(layer="check")
    def long(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=len(response.text) / 10)

    config = {"evaluators": [rude, long], "reward": reward}
    with jg.Jury(**config) as jury, jury.record(tmp_path / "run"):
        for number in range(10):
            texts = {"kind": "x" * 7, "rude": "rude xxxx" if number % 2 else "x" * 5}
            answers = [
                jg.Response(id=f"{name} {number}", agent=name, text=text)
                for name, text in texts.items()
            ]
            jury.score(jg.Task(id=f"t{number}", query="?"), answers)
    run_command("report", tmp_path / "run", "-o", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert re.search(rf"kind is better than rude: {lead}", page)


def test_a_report_and_the_page_of_a_run_say_what_a_component_asks(
    tmp_path: Path, browser: Browser
) -> None:
    config = {
        "model": "none",
        "evaluators": [{"use": "context", "name": "passages"}],
        "components": {
            name: {"combiner": "mean", "inputs": {name: {"verdicts_of": f"passages/{name}"}}}
            for name in ("faithful", "answers")
        },
        "reward": {"faithful": 0.6, "answers": 0.4},
    }
    with jg.Jury(**config) as jury, jury.record(tmp_path / "run"):
        task = jg.Task(id="ann", query="When?", context=("Ann was born in 1815.",))
        answers = [jg.Response(id=name, agent=name, text=name) for name in ("1815", "1816")]
        jury.score(task, answers)
    run_command("report", tmp_path / "run", "-o", tmp_path / "report.html")
    for page in ((tmp_path / "report.html").read_text(), browser.open("/a/", tmp_path / "run")):
        assert "Everything that the response claims is borne out by the passages" in page
        assert "The response answers what was asked, and all of it." in page
    asked = browser.open("/a/verdict?id=1815&question=passages/faithful", tmp_path / "run")
    assert "<h1>Everything that the response claims is borne out" in asked


def test_the_losses_of_an_agent_lead_from_the_best_reward_to_its_mean(
    letters: Path, tmp_path: Path
) -> None:
    with closing(Run.open(letters)) as run:
        config = apply_settings(run.config, ["scale=2"])
        rescore(run, tmp_path / "scaled", config, lambda count: None)
    with Run.open(tmp_path / "scaled") as run, closing(RunIndex(run)) as index:
        index.update()
        agents = run_overview_context(index)["agents"]
        losses = measure_losses(run, agents, lambda count: None)
    assert [name for name, _ in losses[:2]] == ["polite", "brief"]
    for row, lost in zip(agents, zip(*(points for _, points in losses), strict=True), strict=True):
        assert row.mean is not None
        assert 2.0 - sum(lost) == pytest.approx(row.mean.value)


def test_the_components_by_agent_are_those_of_study_ranking(letters: Path) -> None:
    printed = json.loads(run_command("study", "ranking", letters, "--json").out)["components"]
    with (
        closing(Run.open(letters)) as run,
        closing(RunIndex(run, is_index_temporary=True)) as index,
    ):
        index.update()
        components = run_overview_context(index)["components_by_agent"]
    assert [row.component for row in components] == ["polite", "brief"]
    for row, expected in zip(components, printed, strict=True):
        agents = [pytest.approx(agent._asdict()) for agent in row.agents]
        assert {**row._asdict(), "agents": agents} == expected


def test_a_report_keeps_line_breaks_and_says_what_the_numbers_of_a_criterion_are(
    rubrics: Path, tmp_path: Path
) -> None:
    record(tmp_path / "run", {"ann": ("Dear Ann,\r\nplease come.\n",)})
    run_command("report", tmp_path / "run", "-o", tmp_path / "lines.html")
    assert "Dear Ann,\nplease come.\n" in (tmp_path / "lines.html").read_text()
    run_command("report", rubrics, "-o", tmp_path / "rubrics.html")
    assert "is the judge's probability that" in (tmp_path / "rubrics.html").read_text()


def test_the_sums_of_a_response_can_be_redone_by_hand(letters: Path, tmp_path: Path) -> None:
    with closing(Run.open(letters)) as run:
        config = apply_settings(run.config, ["scale=2", "clip=[0, 1.9]"])
        rescore(run, tmp_path / "scaled", config, lambda count: None)
    written = tmp_path / "response.html"
    run_command("report", tmp_path / "scaled", "-o", written, "--response", "ann/2")
    page = written.read_text()
    rows = re.findall(r'<tr(?: class="sum")?><th scope="row">(.*?)</th>(.*?)</tr>', page)
    numbers = {name: re.findall(r">([0-9.]*)</td>", cells) for name, cells in rows}
    points = 0.0
    for term in ("polite", "brief"):
        weight, value, _, gained, _ = numbers[term]
        assert float(weight) * float(value) == pytest.approx(float(gained), abs=1e-4)
        points += float(gained)
    assert points == pytest.approx(float(numbers["sum"][3]), abs=1e-4)
    factor, before, _, after, _ = numbers["scale"]
    assert (float(factor), float(before)) == (2.0, pytest.approx(points, abs=1e-4))
    assert numbers["clip"][1] == after
    assert numbers["reward"][3] == numbers["clip"][3] == "1.9"


def test_a_response_as_markdown_has_what_an_issue_needs_and_no_markup_of_its_texts(
    hostile: Path, rubrics: Path, tmp_path: Path
) -> None:
    written = tmp_path / "issue.md"
    assert run_command("report", hostile, "-o", written, "--response", f"{WORST}last").code == 0
    page = written.read_text()
    fences = re.findall(r"^(`{3,})text\n(.*?)\n\1$", page, flags=re.DOTALL | re.MULTILINE)
    assert len(fences) == 2  # question and answer
    assert WORST.split("\u202e")[0] in fences[0][1]
    assert len(page) < 10_000
    outside = re.sub(r"^(`{3,})text\n.*?\n\1$", "", page, flags=re.DOTALL | re.MULTILINE)
    assert "<script" not in outside.replace("\\<", "")
    with closing(Run.open(rubrics)) as run:
        trace = next(run.traces())
        task = run.task(trace.task_id)
        lines = [part for line in run.explain_trace(trace).lines for part in line.parts or (line,)]
    notes = [f"- {', '.join(line.names)}: {line.note}" for line in lines if line.note]
    assert notes
    assert task is not None
    assert task.rubric is not None
    assert run_command("report", rubrics, "-o", written, "--response", trace.response_id).code == 0
    page = written.read_text()
    for criterion in task.rubric.criteria:
        assert f"- {criterion.id}: {criterion.text}" in page.replace("\\", "")
    assert set(notes) <= set(page.replace("\\", "").splitlines())
    assert "| term | weight | × value | × number | = points | lost |" in page


def test_passages_stand_in_the_markdown_of_a_response_and_in_a_table_with_texts(
    tmp_path: Path,
) -> None:
    with jg.Jury(**SETTINGS) as jury, jury.record(tmp_path / "run"):
        passages = ["Ann was born in 1815.", {"text": "She lived in `London`.", "source": "b.txt"}]
        task = jg.Task.model_validate({"id": "ann", "query": "When?", "context": passages})
        jury.score(task, [jg.Response(id="ann/0", text="please")])
    written = tmp_path / "issue.md"
    assert run_command("report", tmp_path / "run", "-o", written, "--response", "ann/0").code == 0
    assert "**Passage**\n\n```text\nShe lived in `London`.\n```\n" in written.read_text()
    table = run_command("export", tmp_path / "run", "--to", "csv", "--texts").out
    assert "Ann was born in 1815.\n\nShe lived in `London`." in table
    assert "context" not in run_command("export", tmp_path / "run", "--to", "csv").out


def test_a_fence_is_longer_than_those_in_its_text(tmp_path: Path) -> None:
    text = "a\n````\n# not a heading"
    record(tmp_path / "run", {"ann": (text,)})
    written = tmp_path / "issue.md"
    run_command("report", tmp_path / "run", "-o", written, "--response", "ann/0")
    assert f"\n`````text\n{text}\n`````\n" in written.read_text()


def test_intervals_of_page_and_report_are_over_groups_where_tasks_have_some(
    letters: Path, tmp_path: Path, browser: Browser
) -> None:
    with jg.Jury(**SETTINGS, record=tmp_path / "grouped") as jury:
        for number in range(4):
            task = jg.Task(id=f"t{number}", query="Write.", group=f"g{number // 2}")
            answers = [jg.Response(agent=agent, text=agent) for agent in ("come", "please")]
            jury.score(task, answers)
    for run, units in ((letters, "tasks"), (tmp_path / "grouped", "groups of tasks")):
        run_command("report", run, "-o", tmp_path / "report.html")
        for document in ((tmp_path / "report.html").read_text(), browser.open("/a/", run)):
            assert f"interval over {units}, drawn from " in document


def test_a_report_of_an_unfinished_run_says_so(letters: Path, tmp_path: Path) -> None:
    ended = run_command("report", letters, "-o", tmp_path / "report.html")
    assert "2 groups of 2 tasks are in the whole run so far; `jurygraph close" in ended.err


@all_rows(
    "arguments, code, message",
    [
        (["-o", "run.sqlite"], 2, "is a file of the run"),
        (["-o", "no/such/folder.html"], 2, "does not exist"),
        (["-o", "x.pdf"], 2, "name a file that ends in .html"),
        (["-o", "x.xlsx"], 2, " -o x.xlsx` writes a workbook"),
        (["-o", "x.md"], 2, "Markdown is of one response; add --response ID"),
        ([], 2, "For example: jurygraph report run -o report.html"),
        (["-o", "x.html", "--response", "ann/9"], 2, "there is no response"),
        (["-o", "x.html", "--response", "Otto"], 2, "lists them, with --agent those of an agent"),
        (["-o", "x.html", "--response", "ann/0", "--most", 3], 2, "--most is about many"),
    ],
)
def test_what_cannot_be_reported_is_refused_before_work(
    arguments: list[object], code: int, message: str, letters: Path
) -> None:
    before = folder_contents(letters)
    ended = run_command("report", letters, *arguments, cwd=letters)
    assert (ended.code, message in ended.err) == (code, True), ended.err
    assert folder_contents(letters) == before


def test_a_changed_run_is_named_and_nothing_is_written(letters: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(letters / "run.sqlite")) as ledger, ledger:
        ledger.execute(
            "UPDATE records SET body = replace(body, '\"value\":0', '\"value\":1') WHERE kind = 'trace'"
        )
    for options in ([], ["--response", "ann/0"]):
        ended = run_command("report", letters, "-o", tmp_path / "report.html", *options)
        assert (ended.code, "record" in ended.err) == (5, True)
    assert not (tmp_path / "report.html").exists()


def test_a_run_in_which_everything_failed_has_a_report(tmp_path: Path) -> None:
    record(tmp_path / "run", {"bob": ("quixotic",)})
    assert run_command("report", tmp_path / "run", "-o", tmp_path / "report.html").code == 0
    markup = check_stands_alone((tmp_path / "report.html").read_text())
    assert "No reward has a value." in markup.text
    assert "None has a reward." in markup.text
    assert "0.0000" not in markup.text


@all_rows(
    ("texts", "sentence"),
    [
        (
            ("please\nplease", "come", "quixotic"),
            "agent 0 is not shown to be better than agent 1: 0.",
        ),
        (("please", "quixotic"), "agent 0 gets 0.47 on average."),
        (("quixotic", "quixotic"), "Nothing could be scored."),
    ],
)
def test_a_brief_says_what_is_known_where_an_agent_has_no_reward(
    tmp_path: Path, texts: tuple[str, ...], sentence: str
) -> None:
    record(tmp_path / sentence, {"ann": texts})
    assert (
        run_command("report", tmp_path / sentence, "--brief", "-o", tmp_path / "b.html").code == 0
    )
    text = Markup((tmp_path / "b.html").read_text()).text
    assert sentence in text
    last = f"No answer of agent {len(texts) - 1} could be scored."
    has_scored_answer = texts[0] != "quixotic"
    assert (last in text, "fall short in" in text, "lost by polite: counted in" in text) == (
        has_scored_answer,
    ) * 3
    assert r"\n" not in text  # lines are joined in an example


def test_a_brief_says_where_failed_rewards_could_turn_who_is_better(tmp_path: Path) -> None:
    scored = {f"task-{n}": ("please\n" * (1 + n % 2) + "come", "come") for n in range(12)}
    record(tmp_path / "run", scored | {f"lost-{n}": ("quixotic", "come") for n in range(6)})
    assert run_command("report", tmp_path / "run", "--brief", "-o", tmp_path / "b.html").code == 0
    page = (tmp_path / "b.html").read_text()
    assert "agent 0 is not shown to be better than agent 1" in page
    assert "(95 % sure), but the failed rewards could change that." in page


def test_a_brief_says_of_an_unfinished_run_how_far_it_is(tmp_path: Path) -> None:
    write_text = (tmp_path / "jury.yaml").write_text
    write_text("evaluators: [trajectory.loops]\n")
    lines = [
        {"id": name, "query": "High?", "responses": [{"id": name, "text": ""}]} for name in "ab"
    ]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run = tmp_path / "run"
    arguments = ("score", tmp_path / "t.jsonl", "--config", tmp_path / "jury.yaml", "--out", run)
    for limit, is_unfinished in ((("--limit", 1), True), ((), False)):
        run_command(*arguments, *limit)
        run_command("report", run, "--brief", "-o", tmp_path / "b.html")
        page = (tmp_path / "b.html").read_text()
        assert ("Not all is judged yet: 1 of 2 tasks so far." in page) == is_unfinished


def test_examples_of_chats_begin_with_what_was_asked_last_and_units_have_the_users_word(
    tmp_path: Path,
) -> None:
    (tmp_path / "jury.yaml").write_text("evaluators: [trajectory.loops]\n")
    opening = [
        {"role": "system", "content": "You are kind. " * 30},
        {"role": "user", "content": "Hello."},
        {"role": "assistant", "content": "Good day."},
        {"role": "user", "content": "May I go?"},
    ]
    messages = [*opening, {"role": "assistant", "content": "Yes."}]
    chats = [{"messages": messages, "agent": agent, "inquiry": "leave"} for agent in "ab"]
    (tmp_path / "chats.jsonl").write_text("\n".join(map(json.dumps, chats)))
    arguments = ("score", tmp_path / "chats.jsonl", "--config", tmp_path / "jury.yaml")
    scored = run_command(*arguments, "--group-column", "inquiry", "--out", tmp_path / "run")
    assert scored.code == 0, scored.err
    for option, example in (("--brief", "May I go? – a: Yes."), ("--most=1", "question May I go?")):
        run_command("report", tmp_path / "run", option, "-o", tmp_path / "page.html")
        text = Markup((tmp_path / "page.html").read_text()).text
        assert example in " ".join(text.split())
        assert ("2 answers to 1 inquiry," in text) == (option == "--brief")
    assert "query     May I go?" in run_command("show", tmp_path / "run", "--response", "row-1").out


def test_where_only_verdicts_failed_a_report_has_no_table_of_responses(
    letters: Path, tmp_path: Path
) -> None:
    setting = ("--set", "failure.min_coverage=0")
    rescored = run_command("rescore", letters, "-o", tmp_path / "filled", *setting)
    assert rescored.code == 0, rescored.err
    has_table = {}
    for folder in (letters, tmp_path / "filled"):
        assert run_command("report", folder, "-o", tmp_path / f"{folder.name}.html").code == 0
        page = (tmp_path / f"{folder.name}.html").read_text()
        assert "What failed" in page
        has_table[folder] = "without a reward</th>" in page
    assert list(has_table.values()) == [True, False]


def test_a_notebook_draws_runs_and_traces_of_hostile_content_as_text(hostile: Path) -> None:
    before = folder_contents(hostile)
    with Run.open(hostile) as run:
        drawn = [run, *(run.explain(trace.response_id) for trace in run.traces())]
        for shown in drawn:
            page = shown._repr_html_()
            markup = check_stands_alone(page)
            assert {"svg", "style"} <= markup.tags
            assert markup.styles[0].strip().startswith(".jurygraph {")
            assert ":root" not in markup.styles[0]
            assert len(page) < 40_000
        assert "1 could not be scored; the means leave it out." in Markup(run._repr_html_()).text
        failed = Markup(drawn[2]._repr_html_()).text
        assert "no reward" in failed
    assert "this run is closed" in run._repr_html_()
    assert folder_contents(hostile) == before


def test_a_large_run_is_not_read_for_a_notebook(
    letters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jurygraph.viewer.notebook._MAX_NOTEBOOK_RESPONSES", 4)
    with Run.open(letters) as run:
        text = Markup(run._repr_html_()).text
    assert "5 responses, open" in text
    assert "too large to be drawn here" in text
    assert "agent 0" not in text


@all_rows(
    "name, words",
    [
        ("response malformed", "unusable reply, malformed"),
        ("infrastructure server", "no reply, server"),
        ("infrastructure timeout", "infrastructure timeout"),
        ("response RuntimeError", "response RuntimeError"),
    ],
)
def test_a_failure_of_a_model_is_named_by_its_reply(name: str, words: str) -> None:
    assert format_failure(name) == words
