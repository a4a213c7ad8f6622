"""`jurygraph init --template reviewers` and `ideas`: projects with a judge for each reviewer that run as they are."""

import json
import re
import shlex
import statistics
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jurygraph.cli import main
from jurygraph.judges.reviewers import load_ready_set
from jurygraph.sources import read_config, read_tasks
from tests.cli.conftest import Command
from tests.judges.criteria import scripted_judge
from tests.judges.few_shot.reviewers import examples_shown, prediction_reply
from tests.models.judge_scripts import response_in
from tests.models.server import Answer, run_server

FILES = {
    "reviewers": ["README.md", "jury.yaml", "ratings.jsonl", "tasks.jsonl"],
    "ideas": ["README.md", "jury.yaml", "ratings.jsonl", "tasks.jsonl", "texts.jsonl"],
}
FORETOLD = {"reviewers": 54, "ideas": 270}
LEFT_OPEN = {"reviewers": 54, "ideas": 120}
"""Number of abstained verdicts without a model: a question with an open condition has one verdict, not three."""
NAMED = "openai-compatible:http://127.0.0.1:8000/v1#NAME"
each_template = pytest.mark.parametrize("template", FILES)


class ReadmeCommand(NamedTuple):
    """A command of a README: its words, exit code, output, and number of requests."""

    words: list[str]
    code: int
    printed: str
    requests: int


class ReadmeProject(NamedTuple):
    """A project after the commands of its README, and the requests that the model got."""

    folder: Path
    commands: list[ReadmeCommand]
    bodies: list[dict[str, Any]]


def script(body: dict[str, Any], number: int) -> Answer:
    """Score like the shown examples; an idea without numbers is vague, and nothing works in the dark."""
    text, response = scripted_judge.user_message(body), response_in(body)
    if "How concretely the idea is described" in text:
        return prediction_reply(body, 3 if re.search(r"\d", response) else 1)
    if "Whether the idea could be built as described" in text and "in the dark" in response:
        return prediction_reply(body, 1)
    return prediction_reply(body, int(statistics.median_low([score for _, score in examples_shown(body)])))


@pytest.fixture(scope="module")
def readme_projects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ReadmeProject]]:
    """Both projects. Hosted models are skipped, and NAME is replaced by a local model."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
            patch.setenv(name, "false")
        yield {template: _run_readme(template, tmp_path_factory.mktemp(template), patch) for template in FILES}


def _run_readme(template: str, folder: Path, patch: pytest.MonkeyPatch) -> ReadmeProject:
    patch.setenv("JURYGRAPH_CACHE", str(folder / "cache"))
    patch.chdir(folder)
    assert _run_command(["init", "jury", "--template", template])[0] == 0
    patch.chdir("jury")
    commands = []
    with run_server(script) as server:
        for words in _readme_commands(Path("README.md").read_text(encoding="utf-8")):
            before = server.count
            there = [f"openai-compatible:{server.url}#tiny" if word == NAMED else word for word in words]
            commands.append(ReadmeCommand(words, *_run_command(there), server.count - before))
        return ReadmeProject(folder / "jury", commands, [seen.body for seen in server.requests])


def _readme_commands(readme: str) -> Iterator[list[str]]:
    for line in readme.splitlines():
        if line.startswith("    jurygraph ") and "openai/" not in line:
            yield shlex.split(line)[1:]


def _run_command(words: list[str]) -> tuple[int, str]:
    printed = StringIO()
    with redirect_stdout(printed), redirect_stderr(printed), pytest.raises(SystemExit) as caught:
        main(words)
    return int(caught.value.code or 0), printed.getvalue()


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@each_template
def test_the_readme_names_every_file_and_each_is_valid(template: str, tmp_path: Path, run: Command) -> None:
    assert run("init", tmp_path / "jury", "--template", template).code == 0
    folder = tmp_path / "jury"
    assert sorted(path.name for path in folder.iterdir()) == FILES[template]
    readme = (folder / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"^\| `(\w+\.\w+)` \|", readme, flags=re.MULTILINE)
    assert sorted(["README.md", *named]) == FILES[template]
    assert read_config(folder / "jury.yaml").model == "none"
    reviewers = {row["reviewer"] for row in rows(folder / "ratings.jsonl")}
    assert all(set(task.reviewers) == reviewers for task, _ in read_tasks(folder / "tasks.jsonl"))


@each_template
def test_without_a_model_it_abstains_and_every_example_can_be_shown(
    template: str, tmp_path: Path, run: Command
) -> None:
    run("init", tmp_path / "jury", "--template", template)
    ended = run("score", tmp_path / "jury" / "tasks.jsonl", "--out", tmp_path / "run")
    assert ended.code == 1
    assert f"0 judged + {LEFT_OPEN[template]} abstained + 0 failed" in ended.out
    number = len(rows(tmp_path / "jury" / "ratings.jsonl"))
    assert f"Of {number} ratings in ratings.jsonl, {number} can be shown, by 3 reviewers." in ended.err
    assert "Left out" not in ended.err


@each_template
def test_the_commands_of_the_readme_run_as_typed(template: str, readme_projects: dict[str, ReadmeProject]) -> None:
    commands = readme_projects[template].commands
    assert {words[0] for words, *_ in commands} >= {"score", "show", "prompts"}
    assert [(words, printed) for words, code, printed, _ in commands if code != 0] == []
    assert [words for words, _, _, requests in commands if requests] == [
        ["score", "tasks.jsonl", "--out", "run", "--model", NAMED]
    ]
    (dry,) = (printed for words, _, printed, _ in commands if "--dry-run" in words)
    assert re.search(rf"^calls +{FORETOLD[template]} +{FORETOLD[template]} ", dry, flags=re.MULTILINE)


def test_the_history_of_ideas_follows_the_screening_of_the_judges(readme_projects: dict[str, ReadmeProject]) -> None:
    """Every reviewer rated exactly the items that passed their own gates, on the scales of the dimensions."""
    dimensions = load_ready_set("ideas")
    given: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows(readme_projects["ideas"].folder / "ratings.jsonl"):
        given.setdefault((row["item"], row["reviewer"]), {})[row["dimension"]] = row["score"]
    assert len(given) == 8 * 3
    for scores in given.values():
        expected = [
            name
            for name, dimension in dimensions.items()
            if all(scores.get(before, 0) > threshold for before, threshold in dimension.above.items())
        ]
        assert sorted(scores) == expected
        assert all(dimensions[name].form.is_valid_score(value) for name, value in scores.items())
