"""Learning the judges of a run from its verdicts, without requests."""

import json
import random
from pathlib import Path

import pytest

from jurygraph.aggregation import consensus
from tests.cli.conftest import run_command

TASKS = 140


def read_rewards(run: Path) -> dict[str, dict]:  # type: ignore[type-arg]
    lines = run_command("export", run, "--to", "jsonl").out.splitlines()
    return {one["response_id"]: one for one in map(json.loads, lines)}


PREDICTING = """
import random

import jurygraph as jg


def judge(name, right):
    def says(task, response):
        truth = int(response.text[["ann", "bob"].index(task.member)])
        draw = random.Random(f"{name} {task.member} {response.text}")
        return [0.0, 0.5, 1.0][truth if draw.random() < right else draw.randrange(3)]

    says.__name__ = name
    return jg.evaluator(layer="check", audience="reviewer")(says)


def anybody(task, response):
    return [0.0, 0.5, 1.0][int(response.text[0])]


first, second, third = judge("first", 0.85), judge("second", 0.75), judge("third", 0.65)
anybody = jg.evaluator(layer="check")(anybody)
"""
PANELS = """
evaluators: [predicting:first, predicting:second, predicting:third, predicting:anybody]
components:
  reviewers:
    combiner: consensus
    inputs: {first: predicting.first, second: predicting.second, third: predicting.third, anybody: predicting.anybody}
    params: {levels: [0, 0.5, 1]}
reward: {reviewers: 1.0}
"""


@pytest.fixture(scope="module")
def panels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with judges of two reviewers whose truths are independent, and one judge of nobody in particular."""
    folder, draw = tmp_path_factory.mktemp("panels"), random.Random(1)
    (folder / "predicting.py").write_text(PREDICTING, encoding="utf-8")
    (folder / "jury.yaml").write_text(PANELS, encoding="utf-8")
    texts = [f"{draw.randrange(3)}{draw.randrange(3)} t{task}" for task in range(TASKS)]
    tasks = [
        {
            "id": f"t{task}",
            "query": "q",
            "reviewers": ["ann", "bob"],
            "responses": [{"id": f"t{task}/r", "text": text}],
        }
        for task, text in enumerate(texts)
    ]
    (folder / "tasks.jsonl").write_text(
        "".join(json.dumps(one) + "\n" for one in tasks), encoding="utf-8"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        assert (
            run_command("score", "tasks.jsonl", "--config", "jury.yaml", "--out", "run").code == 0
        )
        learned = run_command(
            "rescore",
            "run",
            "--out",
            "learned",
            "--learn",
            "reviewers",
            "--artifact",
            "a.json",
            "--json",
        )
        assert learned.code == 0, learned.err
        (folder / "told.json").write_text(learned.out, encoding="utf-8")
    return folder


@pytest.mark.landing
def test_the_matrices_of_judges_are_learned_over_responses_with_each_reviewer(panels: Path) -> None:
    before, after = read_rewards(panels / "run"), read_rewards(panels / "learned")
    votes = [
        (f"{name}@{reviewer}", verdict["evaluator"].rpartition(".")[2], int(2 * verdict["score"]))
        for name, trace in before.items()
        for verdict in trace["verdicts"]
        for reviewer in ([verdict["reviewer"]] if verdict["reviewer"] else ["ann", "bob"])
    ]
    fitted = consensus.fit(*zip(*votes, strict=True), n_classes=3)  # type: ignore[arg-type]
    credit = dict(zip(map(str, fitted.items), fitted.credit(), strict=True))
    for name, trace in after.items():
        own = {reviewer: credit[f"{name}@{reviewer}"] for reviewer in ("ann", "bob")}
        assert trace["reward"]["parts"]["reviewers"] == pytest.approx(own, abs=1e-6)
        assert trace["reward"]["value"] == pytest.approx(sum(own.values()) / 2, abs=1e-6)
    told = json.loads((panels / "told.json").read_text(encoding="utf-8"))["learned"]["reviewers"]
    assert (told["responses"], told["units"]) == (TASKS, 2 * TASKS)
    assert told["judges"]["first"]["accuracy"] > told["judges"]["third"]["accuracy"]
    assert sorted(
        json.loads((panels / "a.json").read_text(encoding="utf-8"))["annotators"]
    ) == sorted(told["judges"])


def test_a_later_plan_uses_the_artifact_bit_for_bit(
    panels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(panels)
    monkeypatch.syspath_prepend(panels)
    (panels / "later.yaml").write_text(
        PANELS.replace("0.5, 1]", "0.5, 1], confusions: a.json"), encoding="utf-8"
    )
    ended = run_command("score", "tasks.jsonl", "--config", "later.yaml", "--out", "later")
    assert ended.code == 0, ended.err
    learned, later = read_rewards(panels / "learned"), read_rewards(panels / "later")
    assert {k: one["reward"]["value"] for k, one in learned.items()} == {
        k: one["reward"]["value"] for k, one in later.items()
    }


def test_a_changed_artifact_is_refused(panels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(panels)
    changed = json.loads((panels / "a.json").read_text(encoding="utf-8"))
    changed["prior"] = changed["prior"][::-1]
    (panels / "changed.json").write_text(json.dumps(changed), encoding="utf-8")
    setting = "components.reviewers.params.confusions=changed.json"
    ended = run_command("rescore", "run", "--out", "never", "--set", setting)
    assert ended.code == 2
    assert "changed.json, field digest: is not that of the rest" in ended.err
    assert not (panels / "never").exists()


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (
            ["--learn", "pannel"],
            "components.pannel: is not a component with combiner 'consensus'; there are reviewers",
        ),
        (
            ["--artifact", "x.json"],
            "--artifact: stores the confusions of one component, or calibrations; name one with --learn",
        ),
    ],
)
def test_impossible_learning_is_refused(panels: Path, arguments: list[str], wrong: str) -> None:
    ended = run_command("rescore", panels / "run", "--out", panels / "never", *arguments)
    assert ended.code == 2
    assert wrong in ended.err
    assert not (panels / "never").exists()
