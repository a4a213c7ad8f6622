"""`jurygraph study judge`."""

import json
from pathlib import Path

from tests.cli.conftest import Command, folder_contents, write_project

LABELS = """\
id,target,question
door/a,true,manners.shaky
door/b,false,manners.shaky
salt/a,true,manners.shaky
salt/b,false,manners.shaky
"""


def write_labels(folder: Path, content: str = LABELS) -> Path:
    file = folder / "people.csv"
    file.write_text(content)
    return file


def test_the_judge_stands_beside_a_constant_and_length(scored_folder: Path, tmp_path: Path, run: Command) -> None:
    before = folder_contents(scored_folder)
    ended = run("study", "judge", scored_folder, "--labels", write_labels(tmp_path), "--need", "0.1")
    assert ended.code == 0
    assert folder_contents(scored_folder) == before
    lines = [line.split() for line in ended.out.splitlines()]
    names = [line[0] for line in lines if line]
    assert names[:5] == ["judge", names[1], "manners.shaky", "always", "length"]
    assert f"jurygraph show {scored_folder} --response salt/b --verdict manners.shaky" in ended.out
    assert "labels of 2 tasks: with fewer than 20, intervals are rough" in ended.err


def test_json_has_the_names_of_the_contract(scored_folder: Path, tmp_path: Path, run: Command) -> None:
    found = json.loads(run("study", "judge", scored_folder, "--labels", write_labels(tmp_path), "--json").out)
    assert {"judges", "constant", "length", "ceiling", "disagreements"} <= found.keys()
    (judge,) = found["judges"]
    assert (judge["n"], judge["missing"], judge["failed"], judge["abstained"]) == (4, 0, 0, 0)
    assert judge["tpr"]["value"] == 1.0
    assert judge["tnr"]["value"] == 0.5
    assert judge["corrected"]["value"] == 0.5
    assert [one["response"] for one in found["disagreements"]] == ["salt/b"]


def test_a_threshold_that_is_missed_ends_with_code_1(scored_folder: Path, tmp_path: Path, run: Command) -> None:
    file = write_labels(tmp_path)
    assert run("study", "judge", scored_folder, "--labels", file, "--gate", "tpr>=0.9").code == 0
    ended = run("study", "judge", scored_folder, "--labels", file, "--gate", "tpr>=0.9, tnr>=0.9")
    assert ended.code == 1
    assert "threshold missed: tnr >= 0.9, but tnr is 0.5" in ended.err


def test_wrong_labels_end_with_code_2_and_their_place(scored_folder: Path, tmp_path: Path, run: Command) -> None:
    messages = {
        "id,target\ndoor/a,good\n": "line 2, field target: is the text 'good'; write true or false",
        "id,target\ndoor/a,1\ndoor/a,0\n": "line 3, field id: 'door/a' has a label in line 2 already",
        "id,target\ndoor/z,1\n": "line 2, field id: there is no response 'door/z'",
        "id,other,target\ndoor/a,door/z,1\n": "line 2, field other: there is no response 'door/z'",
        "id,other,target\ndoor/a,door/b,1\n": "pairs by `id` and `other`",
    }
    for content, message in messages.items():
        ended = run("study", "judge", scored_folder, "--labels", write_labels(tmp_path, content))
        assert (ended.code, ended.out) == (2, "")
        assert message in ended.err


LONGER = """
import jurygraph as jg


@jg.evaluator(scope="pair")
def longer(task: jg.TaskView, first: jg.Response, second: jg.Response) -> float:
    return 1.0 if len(first.text) > len(second.text) else 0.0
"""


def test_responses_and_pairs_of_a_task_or_group_are_one_cluster(run: Command, tmp_path: Path) -> None:
    """Labels in a file name responses alone: the run knows which of them belong together."""
    tasks = [
        {
            "id": f"t{task}",
            "query": "?",
            "reference": "4",
            "group": group,
            "responses": [{"id": f"t{task}/{n}", "text": f"A: 4{' ' * n}."} for n in range(3)],
        }
        for task, group in enumerate((None, None, "g", "g"))
    ]
    project = write_project(tmp_path, tasks, "evaluators: [longer.longer, maths.accuracy]\nreward: {accuracy: 1.0}\n")
    (project / "longer.py").write_text(LONGER, encoding="utf-8")
    assert run("score", project / "tasks.jsonl", "--out", project / "run").code == 0
    ids = [response["id"] for task in tasks for response in task["responses"]]  # type: ignore[union-attr]
    single = "".join(f"{one},,true,maths.accuracy\n" for one in ids)
    pairs = "".join(f"t{task}/0,t{task}/{n},0.5,longer.longer\n" for task in range(4) for n in (1, 2))
    labels = write_labels(tmp_path, f"id,other,target,question\n{single}{pairs}")
    judged = run("study", "judge", project / "run", "--labels", labels, "--json")
    assert judged.code == 0, judged.err
    found = json.loads(judged.out)["judges"]
    assert {one["question"]: (one["n"], one["tasks"]) for one in found} == {
        "longer.longer": (8, 3),
        "maths.accuracy": (12, 3),
    }
