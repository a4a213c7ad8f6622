"""`jurygraph study judge`: the figures are tested in `tests/studies/test_judge.py`."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Command, folder_contents

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


def test_the_judge_stands_beside_a_constant_and_length(
    scored_folder: Path, tmp_path: Path, run: Command
) -> None:
    before = folder_contents(scored_folder)
    ended = run(
        "study", "judge", scored_folder, "--labels", write_labels(tmp_path), "--need", "0.1"
    )
    assert ended.code == 0
    assert folder_contents(scored_folder) == before
    first = ended.out.splitlines()
    assert first[0].startswith("manners.shaky ")
    assert [line.split()[0] for line in first if line.startswith("manners.shaky  ")] == [
        "manners.shaky"
    ]
    assert first[-1].endswith(": --all")
    more = LABELS + "book/a,true,manners.shaky\n"
    ended = run(
        *("study", "judge", scored_folder, "--labels", write_labels(tmp_path, more)),
        *("--need", "0.1", "--all"),
    )
    unknown = "1 label of responses that the run does not have, left out: book/a\n"
    assert unknown in ended.err
    lines = [line.split() for line in ended.out.splitlines()]
    names = [line[0] for line in lines if line]
    assert "manners.shaky" in ended.out.splitlines()[0]
    assert re.search(r"than always saying \d.* in accuracy\b", ended.out.splitlines()[0])
    table = names[names.index("judge") :]
    assert table[:5] == ["judge", table[1], "manners.shaky", "always", "length"]
    assert f"jurygraph show {scored_folder} --response salt/b --verdict manners.shaky" in ended.out
    assert "tasks compared: 2; with fewer than 20, intervals are rough" in ended.err


def test_labels_without_a_question_are_said_to_be_compared_with_all(
    scored_folder: Path, tmp_path: Path, run: Command
) -> None:
    file = write_labels(tmp_path, LABELS.replace(",question", "").replace(",manners.shaky", ""))
    ended = run("study", "judge", scored_folder, "--labels", file)
    ended_without = run("study", "judge", scored_folder, "--label", file)
    assert f"--labels: is missing; did you mean --labels {file}?" in ended_without.err
    twice = run("study", "judge", scored_folder, "--labels", file, "--labels", file)
    assert (twice.code, twice.out) == (2, "")
    assert twice.err.endswith(f"{file}: is named twice; name each once\n")
    assert re.search(r"compared with all \d; choose one with --question", ended.err)


def test_json_has_the_names_of_the_contract(
    scored_folder: Path, tmp_path: Path, run: Command
) -> None:
    found = json.loads(
        run("study", "judge", scored_folder, "--labels", write_labels(tmp_path), "--json").out
    )
    assert {"judges", "constant", "length", "ceiling", "disagreements"} <= found.keys()
    (judge,) = found["judges"]
    assert (judge["n"], judge["missing"], judge["failed"], judge["abstained"]) == (4, 0, 0, 0)
    assert judge["tpr"]["value"] == 1.0
    assert judge["tnr"]["value"] == 0.5
    assert judge["corrected"]["value"] == 0.5
    assert [one["response"] for one in found["disagreements"]] == ["salt/b"]


def test_a_threshold_that_is_missed_ends_with_code_1(
    scored_folder: Path, tmp_path: Path, run: Command
) -> None:
    file = write_labels(tmp_path)
    assert run("study", "judge", scored_folder, "--labels", file, "--gate", "tpr>=0.9").code == 0
    ended = run("study", "judge", scored_folder, "--labels", file, "--gate", "tpr>=0.9, tnr>=0.9")
    assert ended.code == 1
    assert "threshold missed: tnr >= 0.9, but tnr is 0.5" in ended.err


def test_labels_of_people_are_left_out_by_name(
    scored_folder: Path, tmp_path: Path, run: Command
) -> None:
    header, *rows = LABELS.splitlines()
    content = [f"{header},reviewer", *(f"{row},ann" for row in rows)]
    labels = write_labels(tmp_path, "\n".join([*content, "door/a,false,manners.shaky,bo\n"]))
    command = ("study", "judge", scored_folder, "--labels", labels, "--json")
    numbers = [json.loads(run(*command).out)["judges"][0]["n"]]
    numbers.append(json.loads(run(*command, "--without", "bo").out)["judges"][0]["n"])
    assert numbers == [3, 4]  # who ties is no majority
    certified = ("study", "certify", scored_folder, "--labels", labels, "--json")
    figures = json.loads(run(*certified, "--without", "bo").out)["figures"]
    assert (figures[0]["n"], figures[0]["command"][-13:]) == (4, " --without bo")
    write_labels(tmp_path)
    ended = run(*command, "--without", "bo")
    assert ended.err == "error: --without: nobody is 'bo'; there are none\n"


def test_options_name_the_columns_of_labels(
    scored_folder: Path, tmp_path: Path, run: Command
) -> None:
    labels = write_labels(tmp_path, LABELS.replace("id,target", "row,gold"))
    command = ("study", "judge", scored_folder, "--labels", labels, "--json")
    ended = run(*command, "--id-column", "row", "--target-column", "gold")
    assert json.loads(ended.out)["judges"][0]["n"] == 4
    ended = run(*command, "--id-column", "row")
    assert (
        "has no column 'label' or 'target'; name one that is there with --target-column"
        in ended.err
    )
    for option in ("--id-column", "--agent-column"):
        ended = run("study", "judge", scored_folder, "--labels", "label.gold", option, "row")
        assert (
            f"{option}: is for a file of labels, and label.gold is a label of the runs" in ended.err
        )


def test_labels_of_several_files_are_joined_and_must_not_contradict_each_other(
    scored_folder: Path, tmp_path: Path, run: Command
) -> None:
    shaky = tmp_path / "shaky.csv"
    shaky.write_text("id,who,shaky\ndoor/a,ann,true\ndoor/b,ann,false\nsalt/a,ann,true\n")
    polite = tmp_path / "polite.csv"
    polite.write_text("id,who,mood\ndoor/a,ann,0\nsalt/b,ann,1\n")
    command = ["study", "judge", scored_folder, "--json", "--reviewer-column", "who"]
    command += ["--labels", shaky, "--target-column"]
    ended = run(*command, "shaky,polite=mood", "--labels", polite)
    found = json.loads(ended.out)["judges"]
    assert {row["question"]: row["n"] for row in found} == {"manners.polite": 2, "manners.shaky": 3}
    again = tmp_path / "again.csv"
    again.write_text("id,who,shaky\nsalt/b,bo,true\nsalt/a,bo,true\n")
    (row,) = json.loads(run(*command, "shaky", "--labels", again).out)["judges"]
    assert row["n"] == 4
    again.write_text("id,who,shaky\nsalt/a,ann,false\n")
    ended = run(*command, "shaky", "--labels", again)
    assert (ended.code, ended.out) == (2, "")
    message = f"line 2 of {again}, field id: 'salt/a' has a label in line 4 of {shaky} already; "
    assert message in ended.err


def test_labels_of_the_items_of_a_table_are_of_the_rows_of_their_agents(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ids of rows are made when it is scored: nobody has them when people label it."""
    monkeypatch.chdir(tmp_path)
    answers = ["q1,gpt,Yes.", "q1,qwen,No.", "q2,gpt,Yes.", "q2,qwen,No.", "q2,qwen,Perhaps."]
    rows = [f"{row.partition(',')[0]}?,{row}" for row in answers]
    Path("answers.csv").write_text("\n".join(["question,qid,agent,answer", *rows, ""]))
    Path("jury.yaml").write_text("model: none\nevaluators: [maths.repetition]\n")
    columns = ["--prompt-column", "question", "--response-column", "answer", "--group-by", "qid"]
    command = ("score", "answers.csv", *columns, "--agent-column", "agent")
    assert run(*command, "--config", "jury.yaml", "--out", "run").code == 0
    votes = [f"{answer},{who},1" for answer in ("q1,gpt", "q1,qwen") for who in ("ann", "bo")]
    votes += ["q2,gpt,ann,0", "q2,gpt,bo,0"]
    Path("votes.csv").write_text("\n".join(["item,agent,annotator,label", *votes, ""]))
    assert run("consensus", "votes.csv", "--labels-out", "labels.csv").code == 0
    ended = run("study", "judge", "run", "--labels", "labels.csv", "--json")
    assert json.loads(ended.out)["judges"][0]["n"] == 3, ended.err
    Path("two.csv").write_text("item,agent,target\nq2,qwen,1\n")
    ended = run("study", "judge", "run", "--labels", "two.csv")
    assert (ended.code, ended.out) == (2, "")
    assert "there is no response 'q2_qwen'" in ended.err


def test_labels_of_an_item_and_an_agent_are_of_that_agents_response(
    scored_folder: Path, tmp_path: Path, run: Command
) -> None:
    labels = write_labels(tmp_path, "id,model,target\ndoor/a,first,true\ndoor/b,second,false\n")
    command = ("study", "judge", scored_folder, "--agent-column", "model", "--labels")
    assert run(*command, labels).code == 0  # ids of responses need no agent
    labels = write_labels(tmp_path, "id,model,target\ndoor,a,true\ndoor,b,false\n")
    assert "'door_a'" in run(*command, labels).err  # this run has door/a


def test_wrong_labels_end_with_code_2_and_their_place(
    scored_folder: Path, tmp_path: Path, run: Command
) -> None:
    labels = write_labels(tmp_path, "id,target\ndoor/a,good\n")
    ended = run("study", "judge", scored_folder, "--labels", labels)
    assert (ended.code, ended.out) == (2, "")
    assert "line 2 (door/a), field target: is the text 'good'; write a number" in ended.err


def test_a_sheet_has_a_column_for_each_question(
    scored_folder: Path, tmp_path: Path, run: Command
) -> None:
    rows = ["door/a,true,0", "door/b,false,0", "salt/a,true,1", "salt/b,false,1"]
    labels = write_labels(tmp_path, "\n".join(["id,shaky,mood", *rows, ""]))
    command = ("study", "judge", scored_folder, "--labels", labels, "--json", "--target-column")
    found = json.loads(run(*command, "shaky,polite=mood").out)["judges"]
    accuracies = {judge["question"]: (judge["n"], judge["accuracy"]["value"]) for judge in found}
    assert accuracies == {"manners.polite": (4, 0.25), "manners.shaky": (4, 0.75)}
    certificate = run("study", "certify", *command[2:5], *command[6:], "shaky,polite=mood").out
    assert "--target-column shaky,polite=mood" in certificate
    words = ("--classes", "mood=0,1", "--classes", "door=a,b", "--keep-last")
    refused = run(*command, "shaky,mood=mood", *words)
    hint = "'door'; there are manners.shaky, mood"
    assert f"--classes: no label is of the question {hint}" in refused.err
    words = ("--classes", "polite=1,0", "--classes", "shaky=false,true", "--keep-last")
    certificate = run("study", "certify", *command[2:5], *command[6:], "shaky,polite=mood", *words)
    printed = "--classes polite=1,0 --classes shaky=false,true --keep-last"
    assert f"--target-column shaky,polite=mood {printed}" in certificate.out
    found = json.loads(run(*command, "shaky,polite=mood", *words).out)["judges"]
    accuracies = {judge["question"]: (judge["n"], judge["accuracy"]["value"]) for judge in found}
    assert accuracies == {"manners.polite": (4, 0.75), "manners.shaky": (4, 0.75)}
    ended = run(*command, "mood,door")
    assert ended.err.endswith(
        "people.csv, line 1: has no column 'door'; name one that is there with --target-column: id, shaky, mood\n"
    )
    ended = run(*command, "mood,moood=mood")
    hint = "there is no question 'mood'; there are manners.polite, manners.shaky, reward"
    assert f"line 2, field mood,moood=mood: {hint}" in ended.err
