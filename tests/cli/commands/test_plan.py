"""Plans made before training: whole, in the order of the tasks, and refused under other settings."""

import json
from pathlib import Path

import pytest

import jurygraph as jg
from jurygraph.errors import InputError
from jurygraph.runs.workflows.plans_file import PlansFile
from jurygraph.sources import read_tasks
from tests.command import run_command

TASKS = [
    {"id": name, "query": f"What is {name}?", "reference": "4"}
    for name in ("2 + 2", "8 / 2", "1 + 3")
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tasks.jsonl").write_text("\n".join(map(json.dumps, TASKS)))
    (tmp_path / "jury.yaml").write_text("evaluators: [maths.accuracy]\n")
    return tmp_path


def test_plans_are_those_that_scoring_makes(project: Path) -> None:
    plans = project / "plans.jsonl"
    made = run_command("plan", project / "tasks.jsonl", "--out", plans, "--json")
    assert made.code == 0, made.err
    assert json.loads(made.out) == {"plans": str(plans), "tasks": 3, "requests": None}
    with jg.Jury.from_config(project / "jury.yaml") as jury:
        file = PlansFile(plans, jury)
        assert list(file.ids) == [task["id"] for task in TASKS]
        for content in TASKS:
            task = jg.Task(**content)
            planned = file.get(task.id)
            assert planned is not None
            assert planned.task == task
            assert planned.plan.digest == jury.prepare(task).digest
            (trace,) = jury.score(planned.task, ["\\boxed{4}"], plan=planned.plan)
            assert trace.reward.value == 1.0
        assert file.get("other") is None
        file.close()


def test_tasks_that_lack_a_reference_are_counted_before_the_training(project: Path) -> None:
    lines = [TASKS[0], {**TASKS[1], "reference": ""}, {"id": "none", "query": "1 + 3?"}]
    (project / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    made = run_command("plan", project / "tasks.jsonl", "--out", project / "plans.jsonl")
    assert made.code == 0
    assert "maths.accuracy: 2 of 3 tasks lack what it needs (reference); give it" in made.err


@pytest.mark.parametrize(
    "chat",
    [[], [{"role": "user", "content": " "}], [{"role": "human", "content": ""}]],
)
def test_a_chat_in_which_nothing_is_asked_is_refused_by_its_line(
    project: Path, chat: list[dict[str, str]]
) -> None:
    lines = [TASKS[0], {"id": "empty", "query": chat}]
    (project / "tasks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    refused = run_command("plan", project / "tasks.jsonl", "--out", project / "plans.jsonl")
    message = "error: tasks.jsonl, line 2, field query: is a chat that asks nothing; write the last message\n"
    assert (refused.code, refused.err) == (2, message)


def test_plans_of_other_settings_are_refused_with_the_difference(project: Path) -> None:
    plans = project / "plans.jsonl"
    run_command("plan", project / "tasks.jsonl", "--out", plans)
    with (
        jg.Jury(evaluators=["maths.accuracy"], reward={"accuracy": 0.5}) as jury,
        pytest.raises(
            InputError, match=r"config reward.accuracy is none in the plans and 0.5 here"
        ),
    ):
        PlansFile(plans, jury)


def test_half_a_file_of_plans_is_to_be_made_again(project: Path) -> None:
    plans = project / "plans.jsonl"
    run_command("plan", project / "tasks.jsonl", "--out", plans)
    plans.write_bytes(plans.read_bytes()[:-300])
    with (
        jg.Jury(evaluators=["maths.accuracy"]) as jury,
        pytest.raises(InputError, match=r"line \d: .*; make the plans again with `jurygraph plan`"),
    ):
        PlansFile(plans, jury)


def test_a_task_that_cannot_be_planned_is_named_and_nothing_is_written(project: Path) -> None:
    plans = project / "plans.jsonl"
    (project / "jury.yaml").write_text("evaluators: [criteria]\n")
    edges = [{"parent": parent, "child": child, "kind": "weak"} for parent, child in ("ab", "ba")]
    criteria = [{"id": name, "text": f"It is {name}.", "weight": 1.0} for name in "ab"]
    tasks = [
        dict(TASKS[0], rubric={"criteria": criteria}),
        dict(TASKS[1], rubric={"criteria": criteria, "edges": edges}),
    ]
    (project / "tasks.jsonl").write_text("\n".join(map(json.dumps, tasks)))
    made = run_command("plan", project / "tasks.jsonl", "--out", plans)
    assert (made.code, "tasks.jsonl, line 2: " in made.err) == (2, True), made.err
    assert "no plan was written" not in made.err  # of `serve --tasks`, too, which writes none
    assert not plans.exists()


def test_of_chats_the_queries_are_planned_and_a_chat_may_still_lack_its_reply(
    project: Path,
) -> None:
    question, reply = {"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": "4"}
    rows = [
        {"messages": [question, reply]},
        {"id": "late", "messages": [question, reply, question]},
    ]
    chats = project / "chats.jsonl"
    chats.write_text("\n".join(map(json.dumps, rows)))
    plans = project / "plans.jsonl"
    made = run_command("plan", chats, "--out", plans)
    assert made.code == 0, made.err
    tasks = [json.loads(line)["task"] for line in plans.read_text().splitlines()[1:]]
    assert [(task["id"], len(task["query"])) for task in tasks] == [("row-1", 1), ("late", 3)]
    chats.write_text(json.dumps(rows[0]))
    assert [jg.Task(**tasks[0])] == [task for task, _ in read_tasks(chats)]


def test_chats_become_the_tasks_that_scoring_makes_of_them(project: Path) -> None:
    """With other ones, `serve --tasks` would know none of the ids that were scored."""
    question = {"role": "user", "content": "What is 2 + 2?"}
    chats = []
    for answer in ("4", "5"):
        reply = {"role": "assistant", "content": answer}
        chats.append({"case": "sum", "messages": [question, reply, question, reply]})
    (project / "chats.jsonl").write_text("\n".join(map(json.dumps, chats)))
    (project / "jury.yaml").write_text("evaluators: [trajectory.loops]\n")
    names = ("--group-by", "case", "--response-from", "first-reply")
    made = run_command("plan", project / "chats.jsonl", "--out", project / "plans.jsonl", *names)
    assert made.code == 0, made.err
    scored = run_command("score", project / "chats.jsonl", "--out", project / "run", *names)
    assert scored.code in (0, 1), scored.err
    with jg.Jury.from_config(project / "jury.yaml") as jury, jg.Run.open(project / "run") as run:
        file = PlansFile(project / "plans.jsonl", jury)
        assert list(file.ids) == ["sum"]
        planned = file.get("sum")
        assert planned is not None
        assert planned.task == run.source.task("sum")
        file.close()
