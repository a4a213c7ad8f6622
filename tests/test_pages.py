"""The README, the docs and the READMEs of the examples are followed.

Their commands are typed, page by page, in a folder that holds what the page speaks of; what a page shows comes out.
"""

import gzip
import inspect
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from contextlib import closing, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import jurygraph as jg
from jurygraph.agents.functions import REGISTERED_EVALUATORS
from jurygraph.aggregation.pairwise import bradley_terry
from jurygraph.runs.run import Run
from jurygraph.sources import read_tasks
from tests.command import run_command, run_script
from tests.interchange import published, test_gear_graphs
from tests.interchange import test_qags as qags
from tests.judges.few_shot.reviewers import examples_shown, prose
from tests.judges.pairwise.comparisons import Order, judge_script, longest, shown_order
from tests.judges.protocols.trip import PLAN, find_everything, trip
from tests.models.judge_scripts import items_of, judge_reply, quotable, response_in
from tests.models.server import Answer, Script, call_tool, reply_with, run_server, status
from tests.pages import (
    ROOT,
    SERVER,
    blocks,
    commands,
    follow,
    read_page,
    require_shown,
    type_line,
    without_comment,
)

README = read_page("README.md")
TOUR = read_page("docs/tour.md")
PYTHON = read_page("docs/python.md")
DEMO = re.compile(r"^<!-- from: jurygraph demo -->\n```text\n(.*?)```\n", re.DOTALL | re.MULTILINE)
SNIPPET = re.compile(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", re.DOTALL)
JUDGES = """
import jurygraph as jg


@jg.evaluator
def {name}(task: jg.TaskView, response: jg.Response) -> float:
    return int(response.text.split()[{place}]) / 2
"""
MET = """
import jurygraph as jg


@jg.evaluator(audience="criterion")
def met(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
    return jg.Verdict(score=1.0 if task.about.id in response.text else 0.25)
"""
LONGER = """
import jurygraph as jg


@jg.evaluator(scope="pair")
def longer(task: jg.TaskView, first: jg.Response, second: jg.Response) -> float:
    return 1.0 if len(first.text) > len(second.text) else 0.0
"""


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


# What a page needs in its folder


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_table(path: Path, head: str, rows: Iterable[Iterable[object]]) -> None:
    path.write_text(
        "\n".join([head, *(",".join(map(str, row)) for row in rows), ""]), encoding="utf-8"
    )


def write_config_by_words(folder: Path) -> None:
    """Write a config whose criteria are met where a response names them."""
    (folder / "meeting.py").write_text(MET, encoding="utf-8")
    (folder / "jury.yaml").write_text("evaluators: [meeting.met]\n", encoding="utf-8")


def for_serving(folder: Path) -> None:
    """Two tasks without responses, and a config without a model."""
    tasks = [
        {"id": "sum", "query": "What is 2 + 2?", "reference": "4"},
        {"id": "product", "query": "What is 3 * 4?", "reference": "12"},
    ]
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)), encoding="utf-8")
    (folder / "jury.yaml").write_text("evaluators: [maths.accuracy]\n", encoding="utf-8")


def copy_examples(folder: Path) -> None:
    shutil.copytree(ROOT / "examples", folder / "examples")


def score_example(folder: Path, config: str, out: str) -> None:
    """Score an example of the repository, which is at rest: its config alone tells which."""
    example = (ROOT / "examples" / config).parent
    (tasks,) = example.glob("tasks.jsonl*")
    typed = run_command(
        "score", tasks, "--config", ROOT / "examples" / config, "--out", folder / out
    )
    assert typed.code == 0, typed.err


def for_readme(folder: Path) -> None:
    """The files that the README says to save."""
    (folder / "tone.py").write_text(blocks(README, "python")[0], encoding="utf-8")
    (config,) = blocks(README, "yaml")
    (folder / "jury.yaml").write_text(config, encoding="utf-8")
    copy_examples(folder)


def for_consensus(folder: Path) -> None:
    """Four annotators of whom one slips now and then, and a run that three judges scored by the page's own recipe.

    Two of the annotators see every tenth item otherwise than the others; both then label it again, with 2.
    """
    copy_examples(folder)
    people = ("ann", "bob", "dan", "eve")
    said = [
        (
            f"i{item}",
            who,
            (item + (who == "dan" and item % 3 == 0) + (who in ("ann", "bob") and item % 10 == 5))
            % 3,
        )
        for item in range(40)
        for who in people
    ]
    worded = [(item, who, ("bad", "ok", "good")[label]) for item, who, label in said]
    eve = [
        {"item": item, "annotator": who, "label": label}
        for item, who, label in said
        if who == "eve"
    ]
    write_table(folder / "ratings.csv", "item,annotator,label", said)
    write_table(folder / "votes.csv", "id,who,label", worded)
    write_table(
        folder / "people.csv", "item,annotator,label", [row for row in said if row[1] != "eve"]
    )
    tones = ("rude", "neutral", "kind")
    survey = [(item, who, 3 + label, tones[label]) for item, who, label in said]
    write_table(folder / "survey.csv", "item,annotator,helpful,tone", survey)
    write_lines(folder / "gpt4.jsonl", eve)
    write_table(folder / "items.csv", "item,text", [(f"i{item}", "A text") for item in range(40)])
    fill_sheets_of_doubt(folder)
    names = ("strict", "kind", "terse")
    judges = [JUDGES.format(name=name, place=place) for place, name in enumerate(names)]
    (folder / "my_judges.py").write_text("".join(judges), encoding="utf-8")
    recipe, _ = blocks(read_page("docs/consensus.md"), "yaml")
    own = f"evaluators: [{', '.join(f'my_judges.{name}' for name in names)}]\n{recipe}"
    (folder / "jury.yaml").write_text(own, encoding="utf-8")
    write_lines(folder / "tasks.jsonl", map(judged_by_three, range(60)))
    assert run_command("score", "tasks.jsonl", "--out", "run", cwd=folder).code == 0


def fill_sheets_of_doubt(folder: Path) -> None:
    """Make the page's own sheets in advance, and fill them in: those that the page makes have the same ids."""
    page = commands(read_page("docs/consensus.md"))
    diagnose, assign = (
        line for line in page if "> consensus.json" in line or "--ambiguous" in line
    )
    for line in (diagnose, assign.replace("doubtful", "made")):
        assert type_line(line, folder).code == 0
    (folder / "filled").mkdir()
    for sheet in (folder / "made" / "sheets").iterdir():
        filled = sheet.read_text(encoding="utf-8").replace('"",""', '"2",""')
        (folder / "filled" / sheet.name).write_text(filled, encoding="utf-8")


def judged_by_three(task: int) -> dict[str, Any]:
    """Return nine responses; the first judge is one too strict now and then, the last one too kind."""
    marks = [
        (max(0, true - (task % 4 == 0)), true, min(2, true + (task % 5 == 0)))
        for true in (0, 1, 2) * 3
    ]
    said = [{"id": f"{task}/{n}", "text": " ".join(map(str, mark))} for n, mark in enumerate(marks)]
    return {"id": str(task), "query": "How good is it?", "responses": said}


def for_credit(folder: Path) -> None:
    score_example(folder, "rubric/read.yaml", "run")


def for_watching(folder: Path) -> None:
    score_example(folder, "monitor/jury.yaml", "run")
    assert run_command("close", folder / "run").code == 0


def for_viewing(folder: Path) -> None:
    score_example(folder, "group_trip/jury.yaml", "run")


def for_disagreement(folder: Path) -> None:
    """Solutions to maths problems, and two runs with steps."""
    score_example(folder, "maths/jury.yaml", "run")
    score_example(folder, "monitor/jury.yaml", "macrm")
    shutil.copytree(folder / "macrm", folder / "multi-head")


def for_reliability(folder: Path) -> None:
    """Solutions to maths problems, and which of the first 240 are correct."""
    score_example(folder, "maths/jury.yaml", "run")
    tasks = [
        json.loads(line)
        for line in (ROOT / "examples/maths/tasks.jsonl").read_text("utf-8").splitlines()[:60]
    ]
    responses = [response for task in tasks for response in task["responses"]]
    rows = [(one["id"], one["metadata"]["is_correct"], "maths.calculation") for one in responses]
    write_table(folder / "people.csv", "id,target,question", rows)


def for_stability(folder: Path) -> None:
    """The page's own scores, and weights."""
    for name, content in zip(
        ("scores.csv", "groups.csv"), blocks(read_page("docs/stability.md"), "csv"), strict=True
    ):
        (folder / name).write_text(content, encoding="utf-8")
    trips = gzip.decompress((ROOT / "examples/group_trip/tasks.jsonl.gz").read_bytes())
    line = trips.splitlines(keepends=True)[0]
    (folder / "tasks.jsonl").write_bytes(line)
    shutil.copy(ROOT / "examples/group_trip/jury.yaml", folder)
    task = json.loads(line)
    people = [one["id"] for one in task["stakeholders"]]
    rows = [(task["id"], person, 1 / len(people)) for person in people]
    write_table(folder / "own.csv", "task,stakeholder,weight", rows)


def for_graphs(folder: Path) -> None:
    """The page's own task, with and without its edges."""
    write_config_by_words(folder)
    (stated,) = blocks(read_page("docs/graphs.md"), "json")
    task = json.loads(stated) | {"responses": [{"id": "t1/a", "text": "It has depth."}]}
    write_lines(folder / "graphs.jsonl", [task])
    write_lines(
        folder / "tasks.jsonl", [task | {"rubric": {"criteria": task["rubric"]["criteria"]}}]
    )


def for_importing(folder: Path) -> None:
    """The page's own tables, and files as they are published: rows of WritingBench, and rows made after QAGS's."""
    page = read_page("docs/importing.md")
    write_config_by_words(folder)
    for name, content in zip(("answers.csv", "people.csv"), blocks(page, "csv"), strict=True):
        (folder / name).write_text(content, encoding="utf-8")
    for name, content in zip(("judge.yaml", "reviewers.yaml"), blocks(page, "yaml"), strict=True):
        (folder / name).write_text(content, encoding="utf-8")
    packed = ROOT / "tests" / "data" / "writingbench" / "rubrics.jsonl.gz"
    text = gzip.decompress(packed.read_bytes()).decode()
    (folder / "benchmark_all.jsonl").write_text(text, encoding="utf-8")
    ids = [str(json.loads(line)["index"]) for line in text.splitlines()]
    write_lines(
        folder / "answers.jsonl",
        [{"task": one, "id": f"{one}/a", "text": "criterion-1"} for one in ids],
    )
    write_lines(folder / "mturk_cnndm.jsonl", qags.CNN)
    write_lines(folder / "mturk_xsum.jsonl", qags.XSUM)
    results = ROOT / "tests" / "interchange" / "rows" / "taubench.json"
    shutil.copy(results, folder / "gpt-4o-airline.json")
    write_lines(folder / "plawbench_val_gear.jsonl", [test_gear_graphs.make_row([])])
    (folder / "validation_log").mkdir()
    dump = [test_gear_graphs.make_line(0.2, 0.8, 0.0, 1.0)]
    write_lines(folder / "validation_log" / "20.jsonl", dump)


def for_preference(folder: Path) -> None:
    """JudgeBench's rows, made for the tests, and a judge of pairs that prefers the longer response."""
    write_lines(folder / "judgebench.jsonl", published.JUDGEBENCH)
    (folder / "longer.py").write_text(LONGER, encoding="utf-8")
    (folder / "jury.yaml").write_text(
        "evaluators: [longer.longer]\nsafety: {gates: []}\n", encoding="utf-8"
    )


def for_safety(folder: Path) -> None:
    """The judge of the template, with a model."""
    config = (ROOT / "jurygraph/cli/templates/judge/jury.yaml").read_text(encoding="utf-8")
    model = f"model: openai-compatible:{SERVER}#qwen"
    written = config.replace("model: none", model, 1)
    (folder / "jury.yaml").write_text(written, encoding="utf-8")


def answer_anything(body: dict[str, Any], number: int) -> Answer:
    """Judge criteria as met, and predict 1 as any score."""
    if set(items_of(body)) != {"score"}:
        return judge_reply(body)
    reply = {"reason": "So.", "quotes": quotable(response_in(body)), "value": 1, "confidence": 90}
    return reply_with(json.dumps({"score": reply}))


# The pages


def for_lookups(folder: Path) -> None:
    """The page's own task and config."""
    page = read_page("docs/lookups.md")
    (task,) = blocks(page, "json")
    write_lines(folder / "tasks.jsonl", [json.loads(task)])
    config, long_document, _ = blocks(page, "yaml")
    assert "search, read" in long_document
    (folder / "jury.yaml").write_text(config, encoding="utf-8")


def look_up_prices(body: dict[str, Any], number: int) -> Answer:
    """Look up the hotel, add up two nights, and then answer, with a quotation."""
    hotel, price = ("Sole", 120) if "Sole" in response_in(body) else ("Luna", 95)
    step = sum(message["role"] == "assistant" for message in body["messages"])
    if step < 2:
        calls: list[tuple[str, Any]] = [
            ("look_up", {"table": "hotels", "where": {"name": hotel}}),
            ("calculate", {"expression": f"2 * {price}"}),
        ]
        return call_tool(*calls[step])
    item = {"reason": "As it is.", "quotes": quotable(response_in(body)), "met": hotel == "Luna"}
    answer = {**item, "probability": 0.9 if item["met"] else 0.1}
    return reply_with(json.dumps({"criterion_1": answer}))


class Page(NamedTuple):
    """How a page is followed: what is in its folder, what is left out, and what may end with exit code 1."""

    name: str
    prepare: Callable[[Path], None] = copy_examples
    skipped: tuple[str, ...] = ()
    may_fail: str = "$^"
    is_quick: bool = False
    script: Script = answer_anything


def lines_with(page: str, pattern: str) -> tuple[str, ...]:
    """Return the commands of a page that match: those that a model has to answer, and those that need their results."""
    return tuple(
        line for line in map(without_comment, commands(read_page(page))) if re.search(pattern, line)
    )


PAGES = [
    Page("docs/consensus.md", for_consensus),
    Page("docs/credit.md", for_credit),
    Page("docs/disagreement.md", for_disagreement),
    Page("docs/from-a-paper.md"),
    Page(
        "docs/graphs.md",
        for_graphs,
        lines_with("docs/graphs.md", "graphs.jsonl$|eval.jsonl"),
    ),
    Page("docs/importing.md", for_importing),
    Page("docs/lookups.md", for_lookups, is_quick=True, script=look_up_prices),
    Page("docs/preference.md", for_preference),
    Page("docs/reliability.md", for_reliability),
    Page("docs/serving.md", for_serving),
    Page("docs/stability.md", for_stability, lines_with("docs/stability.md", "openai/")),
    Page(
        "docs/safety.md",
        for_safety,
        lines_with("docs/safety.md", "max-cost|--gate|--tasks"),
    ),
    Page("docs/scaling.md", skipped=lines_with("docs/scaling.md", "--engine ray")),
    Page("docs/training.md"),
    Page("docs/viewing.md", for_viewing, is_quick=True),
    Page("docs/watching.md", for_watching, may_fail="jurygraph watch "),
    Page("examples/agent/README.md"),
    Page("examples/consensus/README.md"),
    Page("examples/judge_labels/README.md", may_fail="jurygraph score judge-labels|--gate "),
    Page("examples/maths/README.md"),
    Page("examples/monitor/README.md", may_fail="jurygraph watch "),
    Page(
        "examples/group_trip/README.md",
        skipped=lines_with("examples/group_trip/README.md", "prose"),
    ),
    Page(
        "examples/panel/README.md",
        skipped=lines_with("examples/panel/README.md", "scripted_judge|judged"),
        may_fail="--out panel-run",
    ),
    Page(
        "examples/real_judge/README.md",
        skipped=lines_with("examples/real_judge/README.md", "examples.real_judge.record|other"),
    ),
    Page(
        "examples/stability/README.md",
        skipped=lines_with("examples/stability/README.md", "examples.stability.record|openai/"),
    ),
    Page(
        "examples/reviewers/README.md",
        skipped=lines_with("examples/reviewers/README.md", "^cd |show|NAME|beside"),
        may_fail="--out my-reviewers",
    ),
    Page(
        "examples/rubric/README.md",
        skipped=lines_with("examples/rubric/README.md", "^cd |NAME|judged|writingbench "),
        is_quick=True,
    ),
]
FOLLOWED_BELOW = {"README.md", "docs/tour.md", "docs/judges.md"}
FOLLOWED_ELSEWHERE = {
    "docs/composing.md",  # test_composing_guide.py
    "examples/investigator/README.md",  # test_investigator_example.py
}


@pytest.mark.exhaustive
def test_the_recipe_for_clusters_runs_here(tmp_path: Path) -> None:
    copy_examples(tmp_path)
    tasks = tmp_path / "examples" / "maths" / "tasks.jsonl"
    tasks.write_text("".join(tasks.read_text("utf-8").splitlines(keepends=True)[:6]), "utf-8")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["examples/scaling/local.sh", tasks, "run", "3"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "24 rewards" in done.stdout
    assert run_command("verify", "run", cwd=tmp_path).code == 0


def test_every_page_with_commands_is_followed() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/README.md")]
    with_commands = {
        str(page.relative_to(ROOT)) for page in pages if commands(page.read_text(encoding="utf-8"))
    }
    assert with_commands - {"CONTRIBUTING.md"} == {
        *(page.name for page in PAGES),
        *FOLLOWED_BELOW,
        *FOLLOWED_ELSEWHERE,
    }


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=page.name,
            marks=pytest.mark.landing if page.is_quick else pytest.mark.exhaustive,
        )
        for page in PAGES
    ],
)
def test_a_page_does_what_it_says(page: Page, tmp_path: Path) -> None:
    page.prepare(tmp_path)
    follow(read_page(page.name), tmp_path, page.script, page.skipped, page.may_fail)


def test_a_table_becomes_explained_rewards_with_three_commands_and_fifteen_lines(
    tmp_path: Path,
) -> None:
    for_importing(tmp_path)
    page, _, _ = read_page("docs/importing.md").partition("\n## Ratings")
    (config, _) = blocks(read_page("docs/importing.md"), "yaml")
    followed = follow(page, tmp_path, answer_anything)
    assert (len(config.splitlines()) <= 15, len(followed)) == (True, 3)
    _, explained, exported = (typed.printed for typed in followed.values())
    assert "Response row-1 to task row-1" in explained
    traces = [json.loads(line) for line in exported.splitlines()]
    assert [trace["labels"] for trace in traces] == [{"team": "blue"}, {"team": "red"}]
    assert [trace["reward"]["value"] for trace in traces] == [0.9, 0.9]


# The README and the tour


def test_the_readme_is_followed(tmp_path: Path) -> None:
    """Its table is judged for what the dry run said, and its evaluator tells responses apart."""
    for_readme(tmp_path)
    page = DEMO.sub("", README)
    assert page != README
    asked: list[str] = []

    def answer(body: dict[str, Any], number: int) -> Answer:
        asked.extend(items_of(body))
        return answer_anything(body, number)

    followed = follow(page, tmp_path, answer)
    (estimated,) = (line for line in commands(README) if "--dry-run" in line)
    assert re.findall(r"^calls +(\d+)", followed[estimated].printed, re.MULTILINE) == ["6"]
    assert len([item for item in asked if item != "score"]) == 6 * 3, "the dry run sends nothing"
    shown = type_line("jurygraph show run --json", tmp_path).printed.splitlines()
    traces = {
        trace["response_id"]: trace["reward"]["components"]["patient"]
        for trace in map(json.loads, shown)
    }
    assert set(traces.values()) == {0.0, 0.5, 1.0}
    assert traces["cake/silent"] == 0.0
    assert len(blocks(README, "python")[0].splitlines()) <= 10
    assert len(README.splitlines()) <= 140


@pytest.mark.exhaustive
def test_the_tour_is_followed_after_the_readme(tmp_path: Path) -> None:
    for_readme(tmp_path)
    attack = next(
        line
        for line in commands(TOUR)
        if line.startswith("jurygraph attack --config my-judge/jury.yaml") and "--gate" in line
    )
    follow(DEMO.sub("", README) + TOUR, tmp_path, answer_anything, skipped=(attack,))


@pytest.mark.landing
def test_the_demo_begins_with_the_findings_of_the_readme(tmp_path: Path) -> None:
    (findings,) = DEMO.findall(README)
    require_shown(findings, type_line("jurygraph demo", tmp_path).printed)


def test_the_script_of_the_tour_prints_stored_rewards_with_their_reasons(tmp_path: Path) -> None:
    for_readme(tmp_path)
    for line in ("jurygraph init my-jury", "jurygraph score my-jury/tasks.jsonl --out my-jury/run"):
        assert line in [*commands(README), *commands(TOUR)]
        assert type_line(line, tmp_path).code == 0
    (script,) = blocks(TOUR, "python")
    stored = run_block(script, tmp_path)
    traces = list(
        map(
            json.loads,
            type_line("jurygraph show my-jury/run --json", tmp_path).printed.splitlines(),
        )
    )
    assert stored[0] == f"none True {len({trace['task_id'] for trace in traces})}"
    rewards = [f"{one['task_id']} {one['response_id']} {one['reward']['value']}" for one in traces]
    verdicts = [
        f"{one['response_id']} {verdict['question']} {verdict['score']} {verdict['reason']}"
        for one in traces
        for verdict in one["verdicts"]
    ]
    assert (stored[1 : len(rewards) + 1], stored[-len(verdicts) :]) == (rewards, verdicts)
    assert "Response train/hasty by hasty to task train gets 0.6667." in stored


def run_block(script: str, folder: Path) -> list[str]:
    """Run a script of a page in a folder, and return the lines that it prints."""
    (folder / "use.py").write_text(script, encoding="utf-8")
    done = run_script(folder / "use.py", cwd=folder)
    assert done.code == 0, done.err
    return done.out.splitlines()


# docs/python.md


def test_the_snippets_print_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for line in ("jurygraph init my-jury", "jurygraph score my-jury/tasks.jsonl --out my-jury/run"):
        assert type_line(line, tmp_path).code == 0
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "jurygraph.agents.functions.REGISTERED_EVALUATORS", dict(REGISTERED_EVALUATORS)
    )
    names: dict[str, object] = {"__name__": "docs_python"}
    snippets = SNIPPET.findall(PYTHON)
    for code, shown in snippets:
        printed = StringIO()
        with redirect_stdout(printed):
            exec(compile(code, "docs/python.md", "exec"), names)
        assert printed.getvalue() == shown, code
    assert len(snippets) == 11


def test_the_page_lists_the_methods_of_a_run_and_every_public_name_once() -> None:
    (row,) = re.findall(r"^\| `Run` \|.*", PYTHON, re.MULTILINE)
    named = re.findall(r"`(\w+)`", row)[1:]
    assert all(
        hasattr(jg.Run, name) or f"    {name}: " in inspect.getdoc(jg.Run) for name in named
    ), named
    _, _, reference = PYTHON.partition("## API reference")
    classes = {name: value for name, value in vars(jg.testing).items() if isinstance(value, type)}
    testing = {name for name, value in classes.items() if value.__module__ == "jurygraph.testing"}
    assert testing <= set(re.findall(r"\w+", reference))
    assert sorted(re.findall(r"^\| `(\w+)` \|", reference, re.MULTILINE)) == sorted(jg.__all__)


# docs/training.md


def test_rows_with_a_reference_and_rows_with_a_rubric_are_judged_by_what_applies(
    tmp_path: Path,
) -> None:
    page = read_page("docs/training.md")
    (config,) = blocks(page, "yaml")
    (script,) = (block for block in blocks(page, "python") if "asyncio.run" in block)
    shown = re.findall(r"print\(.*# (.*)", script)
    with run_server(answer_anything) as server:
        write_jury(tmp_path, config, server.url)
        assert run_block(script, tmp_path) == shown
        assert len(server.requests) == 1


# docs/judges.md

JUDGES_PAGE = read_page("docs/judges.md")
PROTOCOLS, PAIRWISE, COMBINED, REVIEWERS, MEASURED, IDEAS = blocks(JUDGES_PAGE, "yaml")
ORDER, RANKING = blocks(JUDGES_PAGE, "python")
TEMPLATES = ROOT / "jurygraph" / "cli" / "templates"
LETTERS = [
    jg.Response(id=name, text=f"Dear Ann, come at {name}.") for name in ("seven", "eight", "nine")
]


def write_jury(folder: Path, config: str, url: str = SERVER) -> Path:
    path = folder / "jury.yaml"
    path.write_text(config.replace(SERVER, url), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("config", "template", "asked"), [(REVIEWERS, "reviewers", 3), (IDEAS, "ideas", 18)]
)
def test_the_configs_of_reviewers_plan_the_tasks_of_the_templates(
    config: str, template: str, asked: int, tmp_path: Path
) -> None:
    for path in (TEMPLATES / template).glob("*.jsonl"):
        shutil.copy(path, tmp_path)
    with jg.Jury.from_config(write_jury(tmp_path, config)) as jury:
        for task, _ in read_tasks(tmp_path / "tasks.jsonl"):
            assert len(jury.prepare(task).survey.questions) == asked


def test_five_protocols_are_four_calls_and_give_what_the_page_calls_them(tmp_path: Path) -> None:
    with run_server(find_everything) as server:
        with jg.Jury.from_config(write_jury(tmp_path, PROTOCOLS, server.url)) as jury:
            (trace,) = jury.score(trip(3), [jg.Response(id="a", text=PLAN)])
        assert server.count == 4
    named = re.search(r"- \*\*A component is R.*?named(.*?)If you", JUDGES_PAGE, flags=re.DOTALL)
    assert named is not None
    assert set(trace.reward.components) == set(re.findall(r"`([a-z-]+)`", named[1]))
    assert all("R" in figures for figures in trace.reward.diagnostics.values())


def test_pairs_and_lists_make_rewards(tmp_path: Path) -> None:
    with run_server(judge_script(shown_order)) as server:
        with jg.Jury.from_config(write_jury(tmp_path, COMBINED, server.url)) as jury:
            traces = jury.score(jg.Task(id="t", query="Write to Ann."), LETTERS)
        assert server.count == 3 * 2 + 2
    assert [trace.reward.value for trace in traces] == [0.5, 0.5, 0.5]


def score_letters(folder: Path, order: Order, rows: list[dict[str, Any]]) -> None:
    """Score by the page's judge of pairs, which prefers by an order."""
    write_lines(folder / "tasks.jsonl", rows)
    with run_server(judge_script(order)) as server:
        write_jury(folder, PAIRWISE, server.url)
        assert run_command("score", "tasks.jsonl", "--out", "run", cwd=folder).code == 0


def test_the_script_counts_what_the_order_did(tmp_path: Path) -> None:
    letters = [one.model_dump(mode="json", include={"id", "text"}) for one in LETTERS]
    score_letters(
        tmp_path, shown_order, [{"id": "t", "query": "Write to Ann.", "responses": letters}]
    )
    assert run_block(ORDER, tmp_path) == ["3 3"]


def test_the_script_ranks_the_agents_over_tasks(tmp_path: Path) -> None:
    """Of two agents the longer response wins in both orders, but for one task of four."""
    rows = []
    for number in range(4):
        texts = {"long": " Do come soon." * (number > 0), "short": " Do come soon." * (number == 0)}
        letters = [
            {"id": f"t{number}/{agent}", "agent": agent, "text": f"Dear Ann, come at seven.{more}"}
            for agent, more in texts.items()
        ]
        rows.append({"id": f"t{number}", "query": "Write to Ann.", "responses": letters})
    score_letters(tmp_path, longest, rows)
    long, short = bradley_terry([[0.0, 3.0], [1.0, 0.0]])
    assert run_block(RANKING, tmp_path) == [f"long: {long:.2f}", f"short: {short:.2f}"]


def test_the_predictions_are_measured_as_typed(tmp_path: Path) -> None:
    (form,) = blocks(JUDGES_PAGE, "json")

    def predict(body: dict[str, Any], number: int) -> Answer:
        """Reply in the form of the page with the median of the shown scores, or 5."""
        shown = [score for _, score in examples_shown(body)]
        score = {"value": int(statistics.median_low(shown)) if shown else 5, "confidence": 90}
        reply = {**json.loads(form)["score"], **score, "quotes": quotable(response_in(body))}
        return reply_with(json.dumps({"score": reply}))

    stars = {"ann": (1, 1, 1, 2), "bo": (5, 5, 5, 4)}
    people = [
        (f"i{n}", who, given, prose(n), "so")
        for who, row in stars.items()
        for n, given in enumerate(row)
    ]
    write_table(tmp_path / "people.csv", "item,person,stars,text,reason", people)
    write_jury(tmp_path, MEASURED)
    _, _, measured = JUDGES_PAGE.partition("### Measure the predictions")
    followed = follow(measured, tmp_path, predict)
    printed = next(
        typed.printed
        for line, typed in followed.items()
        if line.startswith("jurygraph study reviewers")
    )
    errors = {
        line.split()[0]: re.split(r"\s{2,}", line)[1:]
        for line in reversed(printed.splitlines())  # of several tables, the first
        if line.startswith(("ann ", "bo ")) and len(re.split(r"\s{2,}", line)) > 8
    }
    # After n and the own mean: zero-shot, then with the other's scores as examples, with the own ones, and after the
    # mean of others the difference of these two.
    assert errors["ann"][2:5] == ["3.75", "3.75", "0.25"]
    assert errors["bo"][2:5] == ["0.25", "3.75", "0.25"]
    assert errors["ann"][6].startswith("3.50 (")


def test_a_chat_to_which_a_part_does_not_apply_may_be_as_good_as_any(tmp_path: Path) -> None:
    """The config and the command of the page: references for one task of two, and a reply that is rude."""
    page = read_page("docs/conversations.md")
    (config,) = blocks(page, "yaml")
    (command,) = (
        line.strip() for line in page.splitlines() if " --group-by case" in line and "score" in line
    )
    replies = {
        "plain": "Done.",
        "right": "B-101 is booked.",
        "invented": "It is 40 euros.",
        "rude": "Go away.",
    }
    tools = [
        {"function": {"name": name, "parameters": {"type": "object"}}}
        for name in ("book", "cancel")
    ]
    call = {"id": "1", "function": {"name": "book", "arguments": "{}"}}
    with (tmp_path / "chats.jsonl").open("w", encoding="utf-8") as chats:
        for case, reference in (("a", {"reference_actions": [{"name": "book"}]}), ("b", {})):
            for name, text in replies.items():
                messages = [
                    {"role": "user", "content": "Book it."},
                    {"role": "assistant", "content": None, "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "1", "content": "booked B-101"},
                    {"role": "assistant", "content": text},
                ]
                chat = {"case": case, "agent": name, "messages": messages, "tools": tools}
                chats.write(json.dumps(chat | reference) + "\n")

    def judge(body: dict[str, Any], number: int) -> Answer:
        quote = "Go away." if "is rude" in json.dumps(body) else "booked B-101"
        met = quote in response_in(body)
        reply = {"reason": "So.", "quotes": [quote] * met, "met": met, "probability": float(met)}
        return reply_with(json.dumps(dict.fromkeys(items_of(body), reply)))

    with run_server(judge) as server:
        (tmp_path / "jury.yaml").write_text(config.replace(SERVER, server.url), encoding="utf-8")
        typed = type_line(command, tmp_path)
    assert typed.code == 0, typed.printed
    with closing(Run.open(tmp_path / "run")) as run:
        rewards = {(trace.task_id, trace.agent): trace.reward.value for trace in run.traces()}
    # 8 parts of the weight apply, without a reference 6; of both, 1 is for figures.
    assert rewards == {
        ("a", "plain"): 1.0,
        ("a", "right"): 1.0,
        ("a", "invented"): pytest.approx(7 / 8),
        ("a", "rude"): pytest.approx(0.7),
        ("b", "plain"): 1.0,
        ("b", "right"): 1.0,
        ("b", "invented"): pytest.approx(5 / 6),
        ("b", "rude"): pytest.approx(0.7),
    }


PYTEST = read_page("docs/pytest.md")


def answer_by_words(body: dict[str, Any], number: int) -> Answer:
    met = "Late again" not in response_in(body)
    return judge_reply(body, met=met, probability=0.9 if met else 0.1)


@pytest.mark.parametrize(
    ("script", "outcome"),
    [
        pytest.param(answer_by_words, "2 passed", marks=pytest.mark.exhaustive),
        (answer_anything, "1 failed, 1 passed"),
        (lambda body, number: status(404), "2 skipped"),
    ],
    ids=["knows", "does-not-know", "outage"],
)
@pytest.mark.landing
def test_a_judge_is_tested_with_pytest(script: Script, outcome: str, tmp_path: Path) -> None:
    """An outage skips the tests, and passes none of them."""
    code, _ = blocks(PYTEST, "python")
    with run_server(script) as server:
        (tmp_path / "test_judge.py").write_text(code.replace(SERVER, server.url), "utf-8")
        typed = type_line("python -m pytest -q -p no:cacheprovider test_judge.py", tmp_path)
    assert outcome in typed.printed, typed.printed


def test_a_config_with_a_gate_is_tested_without_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jury.yaml").write_text(
        "evaluators: [criteria, maths.format]\n"
        "task_defaults: {rubric: {criteria: [{id: polite, text: It is polite., weight: 1}]}}\n"
        "reward: {rubric: 1}\ngates: [{kind: format, component: format, below: 0.5}]\n"
    )
    monkeypatch.chdir(tmp_path)
    _, code = blocks(PYTEST, "python")
    names: dict[str, Any] = {}
    exec(code, names)
    names["test_a_missing_format_takes_all"]()
