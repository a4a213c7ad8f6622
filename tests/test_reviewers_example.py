"""The example of reviewers: PandaLM's pairs and annotators, each predicted from what that one said of other pairs."""

import csv
import gzip
import json
import re
import runpy
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jurygraph import Jury, RecordedVerdict, Response, Task, Trace
from jurygraph.judges.few_shot.shown_examples import is_near_duplicate
from jurygraph.schema import CallsConfig
from jurygraph.sources import read_config, read_tasks
from tests.cli import conftest as command_line
from tests.cli.conftest import Command, traces
from tests.judges.few_shot.reviewers import by_examples, examples_in, without_examples
from tests.models.judge_scripts import response_in
from tests.models.server import Server, run_server

ROOT = Path(__file__).parent.parent
REVIEWERS = ROOT / "examples" / "reviewers"
PANDALM = ROOT / "tests" / "data" / "pandalm"
ANNOTATORS = ("annotator1", "annotator2", "annotator3")
KINDS = ("personalized", "aggregate", "zero-shot")
SAMPLES = 3
MADE = ("ratings.csv.gz", "tasks.jsonl.gz", "texts.jsonl.gz")
SCORE = ("score", REVIEWERS / "tasks.jsonl.gz", "--config", REVIEWERS / "jury.yaml", "--out")

going_by_examples = by_examples(statistics.median_low, without=0)
run = command_line.run

_SHOT = re.compile(
    r"^What (?P<who>reviewer \d+) scored:\n"
    r"<<<example (?P<mark>[0-9a-f]{16})\n(?P<text>.*?)\nexample (?P=mark)>>>\n"
    r"The score of (?P=who): (?P<score>[^\n]+)$",
    re.DOTALL | re.MULTILINE,
)


class Said(NamedTuple):
    """What an annotator gave a pair."""

    score: float
    domain: str
    group: str


class Scored(NamedTuple):
    """Every task with the trace of its pair, and all that the model was asked for it."""

    groups: list[tuple[Task, Response, Trace]]
    bodies: list[dict[str, Any]]

    def verdicts(self, kind: str) -> Iterator[tuple[Task, Response, RecordedVerdict]]:
        for task, response, trace in self.groups:
            yield from ((task, response, one) for one in trace.verdicts if one.evaluator == kind)


def lines_of(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(file)


@pytest.fixture(scope="module")
def ratings() -> dict[tuple[str, str], Said]:
    """What was said, by item and annotator."""
    rows = csv.DictReader(lines_of(REVIEWERS / "ratings.csv.gz"))
    return {(row["item"], row["annotator"]): Said(float(row["score"]), row["domain"], row["group"]) for row in rows}


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """What the pairs say, by item."""
    rows = map(json.loads, lines_of(REVIEWERS / "texts.jsonl.gz"))
    return {row["item"]: row["text"] for row in rows}


@pytest.fixture(scope="module")
def scored() -> Scored:
    """The three constructors before a model that goes by what it is shown."""
    config = read_config(REVIEWERS / "constructors.yaml")
    with run_server(going_by_examples) as server:
        settings = {"model": f"openai-compatible:{server.url}#tiny", "calls": CallsConfig(cache=False)}
        with Jury.from_config(config.model_copy(update=settings)) as jury:
            groups = [
                (task, response, trace)
                for task, group in read_tasks(REVIEWERS / "tasks.jsonl.gz")
                for response, trace in zip(group, jury.score(task, group), strict=True)
            ]
        return Scored(groups, [seen.body for seen in server.requests])


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))
    with run_server(going_by_examples) as server:
        yield server


# What it is made of


def test_the_files_are_what_the_script_makes_of_pandalms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = runpy.run_path(str(REVIEWERS / "build.py"))["main"]
    monkeypatch.setitem(main.__globals__, "HERE", tmp_path)
    main()
    made = {path.name: gzip.decompress(path.read_bytes()) for path in tmp_path.iterdir()}
    assert made == {name: gzip.decompress((REVIEWERS / name).read_bytes()) for name in MADE}


def test_the_verdicts_are_those_whose_agreement_is_published() -> None:
    kept, all_of_it = (
        [{name: row[name] for name in ("idx", *ANNOTATORS, "gpt35", "pandalm7b")} for row in csv.DictReader(lines)]
        for lines in map(lines_of, (PANDALM / "ratings.csv.gz", REVIEWERS / "pandalm" / "ratings.csv.gz"))
    )
    assert (len(kept), kept) == (999, all_of_it)


def test_thirty_tasks_each_a_pair_of_another_domain_that_three_groups_or_more_are_of(
    ratings: dict[tuple[str, str], Said],
) -> None:
    groups = list(read_tasks(REVIEWERS / "tasks.jsonl.gz"))
    assert (len(groups), len({task.metadata["domain"] for task, _ in groups})) == (30, 30)
    assert (len(ratings), len({item for item, _ in ratings})) == (2997, 999)
    for task, (pair,) in groups:
        said = {name: ratings[task.id, name] for name in ANNOTATORS}
        assert (pair.id, task.reviewers) == (task.id, ANNOTATORS)
        assert {(one.group, one.domain) for one in said.values()} == {(task.group, task.metadata["domain"])}
        assert len({one.group for one in ratings.values() if one.domain == task.metadata["domain"]}) >= 3
        assert {name: pair.labels[name] for name in ANNOTATORS} == {name: one.score for name, one in said.items()}


@pytest.mark.landing
def test_what_agreement_prints_is_what_is_published() -> None:
    published = json.loads((PANDALM / "published.json").read_text(encoding="utf-8"))
    figures = ("macroP", "macroR", "macroF1", "acc", "cohen_kappa_vs_majority")
    expected = [
        f"annotator{a} and annotator{b} {published['iaa_cohen'][f'{a}-{b}']:.4f}" for a, b in ("12", "13", "23")
    ]
    expected += [
        " ".join([shown, *(f"{published[name][figure]:.4f}" for figure in figures)])
        for name, shown in (("gpt35", "GPT-3.5"), ("pandalm7b", "PandaLM-7B"))
    ]
    script = [sys.executable, str(REVIEWERS / "agreement.py")]
    printed = subprocess.run(script, capture_output=True, text=True, check=True).stdout.splitlines()
    told = [re.sub(r" \(\S+ to \S+\)", "", " ".join(line.split())) for line in printed]
    assert told[0] == "999 pairs; two of the three annotators say the same on 999."
    assert [line for line in told if re.search(r"\d\.\d{4}", line)] == expected
    intervals = re.findall(r"(\S+) \((\S+) to (\S+)\)", "\n".join(printed))
    assert len(intervals) == 3 + 2 * 2
    assert "\n".join(printed) in (REVIEWERS / "README.md").read_text(encoding="utf-8")
    assert all(float(low) < float(value) < float(high) for value, low, high in intervals)


# On the command line, as the README has it


def test_without_a_model_every_question_abstains_and_the_command_says_so(tmp_path: Path, run: Command) -> None:
    ended = run(*SCORE, tmp_path / "run")
    assert ended.code == 1
    assert "0 judged + 270 abstained + 0 failed + 0 not applicable = 270 requested" in ended.out
    assert "30 of 30 rewards failed and have no value" in ended.err
    assert "Of 2997 ratings in ratings.csv.gz, 2997 can be shown, by 3 reviewers." in ended.err


def test_the_dry_run_foretells_six_calls_for_each_pair_and_annotator(
    tmp_path: Path, run: Command, server: Server
) -> None:
    model = f"openai-compatible:{server.url}#tiny"
    ended = run(*SCORE, tmp_path / "run", "--limit", 5, "--model", model, "--dry-run", "--json")
    assert json.loads(ended.out)["model"]["expected"]["calls"] == 5 * 3 * SAMPLES * 2
    assert server.count == 0


def test_with_a_model_and_nothing_else_changed_there_are_rewards(tmp_path: Path, run: Command, server: Server) -> None:
    ended = run(*SCORE, tmp_path / "run", "--limit", 5, "--model", f"openai-compatible:{server.url}#tiny")
    assert "45 judged + 0 abstained" in ended.out
    assert server.count == 5 * 3 * SAMPLES * 2
    rewards = {}
    for trace in traces(run, tmp_path / "run"):
        said = {name: Counter(v["native"] for v in trace["verdicts"] if v["reviewer"] == name) for name in ANNOTATORS}
        won = [next((v for v, times in votes.items() if 2 * times > SAMPLES), None) for votes in said.values()]
        rewards[trace["reward"]["value"]] = None if None in won else (sum(won) / 3 + 1) / 2
    assert list(rewards) == pytest.approx(list(rewards.values()))
    assert ended.code == (None in rewards), ended.err


@pytest.mark.landing
def test_show_names_what_was_shown_and_what_was_not_and_why(
    tmp_path: Path, run: Command, server: Server, scored: Scored, texts: Mapping[str, str]
) -> None:
    """A response that is copied from a pair which an annotator rated."""
    task, _, verdict = next(scored.verdicts("personalized"))
    copied, *others = verdict.examples
    text = texts[copied.item].partition("\n\nResponse 1:\n")[2]
    row = {"id": task.id, "query": task.query, "reviewers": [verdict.reviewer], "group": task.group}
    both = dict(zip(("first", "second"), text.split("\n\nResponse 2:\n"), strict=True))
    copy = {"id": "copy", "text": f"Response 1:\n{text}", "data": both}
    row |= {"metadata": task.metadata, "responses": [copy]}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(row), encoding="utf-8")
    model = f"openai-compatible:{server.url}#tiny"
    ended = run("score", tmp_path / "tasks.jsonl", *SCORE[2:], tmp_path / "run", "--model", model)
    assert ended.code == 0, ended.err
    (trace,) = traces(run, tmp_path / "run")
    dropped, *shown = trace["verdicts"][0]["examples"]
    assert [one["item"] for one in shown][:4] == [one.item for one in others]
    assert (len(shown), any("dropped" in one for one in shown)) == (5, False)
    told = run("show", tmp_path / "run", "--response", "copy").out
    named = ", ".join(f"{one['item']} ({verdict.reviewer}: {one['score']:g})" for one in shown)
    assert f"examples shown: {named}\n" in told
    why = "it says nearly the same as the judged item"
    assert (dropped["item"], dropped["dropped"]) == (copied.item, why)
    assert f"example not shown: {copied.item} ({verdict.reviewer}: {copied.score:g}), because {why}\n" in told
    assert text not in "".join(examples_in(seen.body) for seen in server.requests)


# What a judge is shown


def test_810_verdicts_are_at_most_630_calls(scored: Scored) -> None:
    """Without examples no annotator differs from another; with them two may be shown the same by chance."""
    assert {kind: len(list(scored.verdicts(kind))) for kind in KINDS} == dict.fromkeys(KINDS, 90 * SAMPLES)
    assert {verdict.status for kind in KINDS for _, _, verdict in scored.verdicts(kind)} == {"ok"}
    calls = {kind: len({verdict.call for _, _, verdict in scored.verdicts(kind)}) for kind in KINDS}
    assert (calls["personalized"], calls["zero-shot"]) == (270, 90)
    assert calls["aggregate"] in range(250, 271)
    assert len(scored.bodies) == sum(calls.values())
    assert sum(examples_in(body) == "" for body in scored.bodies) == 90


def test_each_annotators_prompt_carries_their_own_examples_only(
    scored: Scored, ratings: Mapping[tuple[str, str], Said]
) -> None:
    for task, _, verdict in scored.verdicts("personalized"):
        assert {one.reviewer for one in verdict.examples} == {verdict.reviewer}
        assert len({one.item for one in verdict.examples}) == 5
        for one in verdict.examples:
            said = ratings[one.item, one.reviewer]
            assert (said.score, said.domain) == (one.score, task.metadata["domain"])


def test_the_aggregate_judges_prompt_carries_as_many_and_none_of_the_annotators(scored: Scored) -> None:
    for _, _, verdict in scored.verdicts("aggregate"):
        assert verdict.reviewer not in {one.reviewer for one in verdict.examples}
        assert len([one for one in verdict.examples if one.dropped is None]) == 5


def test_the_prompts_say_just_what_the_traces_say_that_they_do(scored: Scored, texts: Mapping[str, str]) -> None:
    told = {
        verdict.call: (
            response.text,
            tuple((texts[one.item], f"{one.score:g}") for one in verdict.examples if one.dropped is None),
        )
        for kind in ("personalized", "aggregate")
        for _, response, verdict in scored.verdicts(kind)
    }
    found = Counter(
        (response_in(body), tuple((shot["text"], shot["score"]) for shot in _SHOT.finditer(examples_in(body))))
        for body in scored.bodies
        if examples_in(body)
    )
    assert found == Counter(told.values())
    assert not any(name in json.dumps(body) for body in scored.bodies for name in ANNOTATORS)


def test_who_is_predicted_is_reviewer_1_in_every_prompt(scored: Scored) -> None:
    own = [{shot["who"] for shot in _SHOT.finditer(examples_in(body))} for body in scored.bodies]
    assert sum("reviewer 1" in names for names in own) == 270
    assert all(names == {"reviewer 1"} for names in own if "reviewer 1" in names)


def test_no_prompt_shows_the_judged_pair_nor_one_of_its_group_nor_one_that_says_nearly_the_same(
    scored: Scored, ratings: Mapping[tuple[str, str], Said], texts: Mapping[str, str]
) -> None:
    for kind in KINDS:
        for task, response, verdict in scored.verdicts(kind):
            for one in verdict.examples:
                assert ratings[one.item, one.reviewer].group != task.group
                assert one.dropped is not None or not is_near_duplicate(texts[one.item], response.text)
    for body in scored.bodies:
        assert response_in(body) not in examples_in(body)


def test_the_constructors_differ_in_their_examples_alone(scored: Scored) -> None:
    left = Counter(without_examples(body) for body in scored.bodies)
    assert len(left) == 30
    assert min(left.values()) > SAMPLES
