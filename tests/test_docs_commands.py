"""The commands of the docs are typed, page by page, in a folder that holds what the page speaks of.

Not typed is what a model has to answer: there is none here.
"""

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.models.judge_scripts import judge_reply, quotable, response_in
from tests.models.server import Answer, reply_with, run_server
from tests.sources.importers import published
from tests.sources.importers import test_qags as qags
from tests.test_readme import COMMAND, README, ROOT, blocks, commands, run, words

DOCS = ROOT / "docs"
PAGES = {page.name: page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")}
ELSEWHERE = {"composing.md": "test_composing_guide.py", "judges.md": "test_judges_page.py", "tour.md": "test_readme.py"}
"""Pages whose commands another test types."""
NEEDS_A_MODEL = {
    "graphs.md": (
        "jurygraph annotate tasks.jsonl --model openai/gpt-5-mini --domain writing --out graphs.jsonl",
        "jurygraph score eval.jsonl --config jury.yaml --model openai/gpt-5 --out eval --rewards-from train-run",
    ),
    "importing.md": (
        "jurygraph score answers.csv --prompt-column question --response-column answer --config judge.yaml --out run",
        "jurygraph explain run --response row-1",
        "jurygraph export run --to jsonl",
        "jurygraph score tasks.jsonl --config reviewers.yaml --out predicted",
    ),
    "safety.md": (
        "jurygraph attack --config jury.yaml --max-cost 5",
        'jurygraph attack --config jury.yaml --suite injection --gate "rate<=0.02, honest_rate>=0.9"',
        "jurygraph attack --config jury.yaml --tasks tasks.jsonl --json",
    ),
}
"""Commands by page, without their comments."""
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


def lines(path: Path, rows: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def table(path: Path, head: str, rows: Iterable[Iterable[object]]) -> None:
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows), ""]), encoding="utf-8")


def criteria_by_words(folder: Path) -> None:
    """A config whose criteria are met where a response names them."""
    (folder / "meeting.py").write_text(MET, encoding="utf-8")
    (folder / "jury.yaml").write_text("evaluators: [meeting.met]\n", encoding="utf-8")


def for_consensus(folder: Path) -> None:
    """Four annotators of whom one slips now and then, and a run that three judges scored by the page's own recipe."""
    shutil.copytree(ROOT / "examples" / "consensus", folder / "examples" / "consensus")
    said = [(f"i{item}", who, (item + (who == "dan" and item % 3 == 0)) % 3) for item in range(40) for who in WHO]
    worded = [(item, who, ("bad", "ok", "good")[label]) for item, who, label in said]
    eve = [{"item": item, "annotator": who, "label": label} for item, who, label in said if who == "eve"]
    table(folder / "ratings.csv", "item,annotator,label", said)
    table(folder / "votes.csv", "id,who,label", worded)
    table(folder / "people.csv", "item,annotator,label", [row for row in said if row[1] != "eve"])
    lines(folder / "gpt4.jsonl", eve)
    names = ("strict", "kind", "terse")
    judges = [JUDGES.format(name=name, place=place) for place, name in enumerate(names)]
    (folder / "my_judges.py").write_text("".join(judges), encoding="utf-8")
    recipe, _ = blocks(PAGES["consensus.md"], "yaml")
    own = f"evaluators: [{', '.join(f'my_judges.{name}' for name in names)}]\n{recipe}"
    (folder / "jury.yaml").write_text(own, encoding="utf-8")
    lines(folder / "tasks.jsonl", map(judged_by_three, range(60)))
    run([COMMAND, "score", "tasks.jsonl", "--out", "run"], folder)


WHO = ("ann", "bob", "dan", "eve")


def judged_by_three(task: int) -> dict[str, Any]:
    """Nine responses; the first judge is one too strict now and then, the last one too kind."""
    marks = [(max(0, true - (task % 4 == 0)), true, min(2, true + (task % 5 == 0))) for true in (0, 1, 2) * 3]
    said = [{"id": f"{task}/{n}", "text": " ".join(map(str, mark))} for n, mark in enumerate(marks)]
    return {"id": str(task), "query": "How good is it?", "responses": said}


def for_credit(folder: Path) -> None:
    """A run of the template about rubrics."""
    run([COMMAND, "init", "own", "--template", "rubric"], folder)
    run([COMMAND, "score", "own/tasks.jsonl", "--out", "run"], folder)


def for_watching(folder: Path) -> None:
    """A run with steps, closed."""
    monitor = ROOT / "examples" / "monitor"
    score = [COMMAND, "score", str(monitor / "tasks.jsonl.gz"), "--config", str(monitor / "jury.yaml"), "--out", "run"]
    run(score, folder)
    run([COMMAND, "close", "run"], folder)


def for_disagreement(folder: Path) -> None:
    """Three runs with steps."""
    for_watching(folder)
    for name in ("macrm", "multi-head"):
        shutil.copytree(folder / "run", folder / name)


def for_graphs(folder: Path) -> None:
    """The page's own task, with and without its edges."""
    criteria_by_words(folder)
    (stated,) = blocks(PAGES["graphs.md"], "json")
    task = json.loads(stated) | {"responses": [{"id": "t1/a", "text": "It has depth."}]}
    lines(folder / "graphs.jsonl", [task])
    lines(folder / "tasks.jsonl", [task | {"rubric": {"criteria": task["rubric"]["criteria"]}}])


def for_importing(folder: Path) -> None:
    """Files as they are published: forty of WritingBench's rows, and rows made after QAGS's."""
    criteria_by_words(folder)
    packed = ROOT / "tests" / "data" / "writingbench" / "rubrics.jsonl.gz"
    text = gzip.decompress(packed.read_bytes()).decode()
    (folder / "benchmark_all.jsonl").write_text(text, encoding="utf-8")
    ids = [str(json.loads(line)["index"]) for line in text.splitlines()]
    lines(folder / "answers.jsonl", [{"task": one, "id": f"{one}/a", "text": "criterion-1"} for one in ids])
    (folder / "people.csv").write_text(blocks(PAGES["importing.md"], "csv")[1], encoding="utf-8")
    lines(folder / "mturk_cnndm.jsonl", qags.CNN)
    lines(folder / "mturk_xsum.jsonl", qags.XSUM)


def for_preference(folder: Path) -> None:
    """JudgeBench's rows, made for the tests, and a judge of pairs that prefers the longer response."""
    lines(folder / "judgebench.jsonl", published.JUDGEBENCH)
    (folder / "longer.py").write_text(LONGER, encoding="utf-8")
    (folder / "jury.yaml").write_text("evaluators: [longer.longer]\nsafety: {gates: []}\n", encoding="utf-8")


def for_safety(folder: Path) -> None:
    """The README's judge."""
    (config,) = (block for block in blocks(README, "yaml") if "model:" in block)
    (folder / "jury.yaml").write_text(config, encoding="utf-8")


def test_a_table_becomes_explained_rewards_with_three_commands_and_fifteen_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    typed = NEEDS_A_MODEL["importing.md"][:3]
    (config, _), (answers, _) = (blocks(PAGES["importing.md"], language) for language in ("yaml", "csv"))
    assert (len(config.splitlines()) <= 15, len(typed) <= 3) == (True, True)
    (tmp_path / "answers.csv").write_text(answers, encoding="utf-8")
    with run_server(lambda body, _: judge_reply(body)) as server:
        (tmp_path / "judge.yaml").write_text(re.sub(r"http://[^#]*", server.url, config), encoding="utf-8")
        _, explained, exported = (run(words(line), tmp_path) for line in typed)
        assert server.count == 2
    assert "Response row-1 to task row-1" in explained
    assert ("right" in explained, "kind" in explained) == (True, True)
    traces = [json.loads(line) for line in exported.splitlines()]
    assert [trace["labels"] for trace in traces] == [{"team": "blue"}, {"team": "red"}]
    assert [trace["reward"]["value"] for trace in traces] == [0.9, 0.9]


@pytest.mark.landing
def test_a_table_of_ratings_becomes_tasks_and_the_history_of_a_judge_with_ten_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    (_, config), (_, people) = (blocks(PAGES["importing.md"], language) for language in ("yaml", "csv"))
    typed = [line for line in commands(PAGES["importing.md"]) if re.search("people.csv|consensus|reviewers.yaml", line)]
    typed = typed[:3]
    assert len([*config.splitlines(), *typed]) <= 10
    (tmp_path / "people.csv").write_text(people, encoding="utf-8")
    sent: list[str] = []

    def predict(body: Mapping[str, Any], _: int) -> Answer:
        sent.append(json.dumps(body))
        reply = {"reason": "So.", "quotes": quotable(response_in(body)), "value": 1, "confidence": 90}
        return reply_with(json.dumps({"score": reply}))

    with run_server(predict) as server:
        (tmp_path / "reviewers.yaml").write_text(re.sub(r"http://[^#]*", server.url, config), encoding="utf-8")
        shown = [run(words(line), tmp_path) for line in typed]
    assert len(sent) == 3 * 6  # three samples of each
    assert {reason: sum(reason in one for one in sent) for reason in ("Right and kind.", "Short.")} == {
        "Right and kind.": 3 * 1,
        "Short.": 3 * 2,
    }
    assert "= 18 requested" in shown[2]


PREPARED: Mapping[str, Callable[[Path], None]] = {
    "consensus.md": for_consensus,
    "credit.md": for_credit,
    "disagreement.md": for_disagreement,
    "graphs.md": for_graphs,
    "importing.md": for_importing,
    "preference.md": for_preference,
    "reliability.md": for_credit,
    "safety.md": for_safety,
    "watching.md": for_watching,
}
ALARMED = re.compile("jurygraph watch ")
"""Ends with 1 where it found what should worry, as it does in the run of `examples/monitor`."""


def bare(line: str) -> str:
    """A command without its comment."""
    return re.sub(r"\s+#.*", "", line)


def test_every_page_with_commands_is_typed_somewhere() -> None:
    assert {name for name, page in PAGES.items() if commands(page)} == {*PREPARED, *ELSEWHERE}
    for name, test in ELSEWHERE.items():
        assert name in (ROOT / "tests" / test).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NEEDS_A_MODEL)
def test_what_is_left_out_stands_on_its_page(name: str) -> None:
    assert set(NEEDS_A_MODEL[name]) < {bare(line) for line in commands(PAGES[name])}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["disagreement.md", "reliability.md"])
def test_the_figures_on_real_solutions_are_those_of_the_command(name: str, tmp_path: Path) -> None:
    maths = ROOT / "examples" / "maths"
    run([COMMAND, "score", str(maths / "tasks.jsonl"), "--config", str(maths / "jury.yaml"), "--out", "run"], tmp_path)
    (shown,) = blocks(PAGES[name], "text")
    command, _, figures = shown.removeprefix("$ ").partition("\n")
    done = subprocess.run(words(command), cwd=tmp_path, capture_output=True, text=True, check=True)
    rest = " ".join(f"{done.stdout} {done.stderr}".split())
    for piece in figures.split("\n…\n"):
        text = " ".join(piece.split())
        assert text in rest
        rest = rest.partition(text)[2]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", PREPARED)
def test_the_commands_of_a_page_run_as_typed(name: str, tmp_path: Path) -> None:
    PREPARED[name](tmp_path)
    for line in commands(PAGES[name]):
        if bare(line) not in NEEDS_A_MODEL.get(name, ()):
            done = subprocess.run(words(line), cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode in ((0, 1) if ALARMED.match(line) else (0,)), f"{line}: {done.stderr}"
