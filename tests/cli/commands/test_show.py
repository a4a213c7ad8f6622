"""`jurygraph show` and `explain`; what is in the table of rewards is tested in `tests/cli/render`."""

import json
import re
from csv import DictReader
from pathlib import Path
from typing import Any

import pytest
from openpyxl import load_workbook

import jurygraph as jg
from jurygraph.models.request import Request
from jurygraph.schema import Trace
from jurygraph.views import rewards
from tests.cli.conftest import Command, change_ledger, write_project
from tests.cli.render.test_text import run_on_terminal
from tests.judges.few_shot.reviewers import prediction_reply
from tests.models.judge_scripts import response_in
from tests.models.server import Answer, run_server
from tests.rows import all_rows
from tests.runs import investigations
from tests.studies.reliability.test_runs import score_tasks, task


def test_show_is_a_table_of_rewards_with_their_components(scored_folder: Path, run: Command):
    assert run("show", scored_folder).out.splitlines() == [
        "response  agent  status   reward  coverage  polite   shaky",
        "────────  ─────  ──────  ───────  ────────  ──────  ──────",
        "door/a    alice  ok       0.5000    1.0000  1.0000  1.0000",
        "door/b    bob    ok       0.0000    1.0000  0.0000  0.0000",
        "salt/a    alice  ok      -0.2500    1.0000  0.2500  1.0000",
        "salt/b    bob    ok      -0.5000    1.0000  0.0000  1.0000",
    ]
    assert len(run("show", scored_folder, "--limit", 1).out.splitlines()) == 3


@all_rows(
    ("conditions", "expected"),
    [
        (["polite<0.5"], ["door/b", "salt/a", "salt/b"]),
        (["polite < 0.5", "reward>=-0.25"], ["door/b", "salt/a"]),
        (["polite < 0.5 and reward>=-0.25"], ["door/b", "salt/a"]),
        (["shaky==0"], ["door/b"]),
        (["agent>0"], []),  # a text is in no order of numbers
    ],
)
def test_only_where_all_conditions_on_columns_hold(
    scored_folder: Path, run: Command, conditions: list[str], expected: list[str]
) -> None:
    options = [word for condition in conditions for word in ("--where", condition)]
    rows = run("show", scored_folder, *options, "--json").out.splitlines()
    assert [json.loads(row)["response_id"] for row in rows] == expected
    exported = run("export", scored_folder, "--to", "csv", *options)
    assert exported.err == f"{len(expected)} of 4 responses\n"
    assert [row.split(",")[1] for row in exported.out.splitlines()[1:]] == expected
    explained = run("explain", scored_folder, *options, "--json")
    assert [json.loads(row)["response_id"] for row in explained.out.splitlines()] == expected
    assert explained.err == ("" if expected else "no response matches\n")


@all_rows(
    ("condition", "message"),
    [
        ("polight<1", "error: --where: there is no column 'polight'; did you mean polite?"),
        ("polite", "error: --where: 'polite' is no condition; write it as in 'reward<0.5'"),
        ("reward<1 and polite", "error: --where: 'reward<1 and polite' is no condition; write"),
        ("polite<high", "error: --where: 'polite<high' is no condition; write it as in"),
        ("label.session<1", "no column 'label.session'; known: response, agent, status"),
        ("nothing_like_it<1", "known: response, agent, status, reward"),
    ],
)
def test_a_wrong_condition_is_refused_with_a_right_one(
    scored_folder: Path, run: Command, condition: str, message: str
) -> None:
    refused = run("show", scored_folder, "--where", condition)
    assert (refused.code, message in refused.err) == (2, True), refused.err


def test_a_condition_may_be_on_a_name_with_blanks(tmp_path: Path, run: Command) -> None:
    responses = [{"id": name, "text": "", "labels": {"top k": n}} for n, name in enumerate("abc")]
    tasks = [{"id": "t", "query": "?", "responses": responses}]
    project = write_project(tmp_path / "project", tasks)
    run("score", project / "tasks.jsonl", "--out", project / "run")
    rows = run("show", project / "run", "--where", " label.top k >= 1 ", "--json").out.splitlines()
    assert [json.loads(row)["response_id"] for row in rows] == ["b", "c"]
    refused = run("show", project / "run", "--columns", "label.session")
    assert "no column 'label.session'; known: label.top k, and each" in refused.err


def test_show_of_one_response_is_the_whole_trace(scored_folder: Path, run: Command):
    shown = run("show", scored_folder, "--response", "salt/a").out
    for part in (
        "response  salt/a",
        "reward    -0.2500  (ok, coverage 1.0000)",
        "range     -0.2500 to -0.2500",
        "verdicts  2 = 2 judged + 0 abstained + 0 failed + 0 not applicable",
        "polite   1.0000  0.2500        0.2500",
        "shaky   -0.5000  1.0000       -0.5000",
        "manners.polite  0.2500",
        "counted",
        '"please"  (response at 6-12)',
    ):
        assert part in shown


def test_show_of_one_response_begins_with_its_texts(tmp_path: Path, run: Command):
    text = "salt, please\n" + "and pepper " * 40
    response = {"id": "a", "text": text, "labels": {"step": 3, "who": "ann\x1b"}}
    project = write_project(
        tmp_path / "project", [{"id": "salt", "query": "Ask for it.", "responses": [response]}]
    )
    run("score", project / "tasks.jsonl", "--out", project / "run")
    lines = run("show", project / "run", "--response", "a").out.splitlines()
    assert lines[2:4] == ["labels    step 3, who ann\\u001b", "query     Ask for it."]
    assert lines[4].startswith("text      salt, please and pepper and")
    assert (len(lines[4]), lines[4][-1]) == (310, "…")
    whole = run("show", project / "run", "--response", "a", "--texts").out
    assert (
        f"query\n    Ask for it.\ntext\n    {'    '.join(text.splitlines(keepends=True))}\nreward"
        in whole
    )
    run("erase", project / "run", "--response", "a")
    assert "text      erased" in run("show", project / "run", "--response", "a").out


def test_show_json_prints_one_trace_per_line_as_the_export_does(scored_folder: Path, run: Command):
    shown = run("show", scored_folder, "--json").out.splitlines(keepends=True)
    names = ["door/a", "door/b", "salt/a", "salt/b"]
    assert [Trace.model_validate_json(line).response_id for line in shown] == names
    assert [run("show", scored_folder, "--response", name, "--json").out for name in names] == shown
    assert run("export", scored_folder, "--to", "jsonl").out == "".join(shown)


def test_explain_prints_sentences(scored_folder: Path, run: Command):
    assert run("explain", scored_folder, "--response", "salt/a").out.splitlines() == [
        "Response salt/a by alice to task salt gets -0.25.",
        "Lost 0.75: polite 0.25 of 1, weight 1 (counted, as in “please”).",
        "Lost 0.5: penalty shaky 1, weight -0.5.",
        "Sum: 1 at best - 0.75 - 0.5 = -0.25.",
        "Verdicts: 2 requested; 2 judged, 0 abstained, 0 failed, 0 not applicable.",
        "All verdicts are present.",
    ]


def test_a_task_in_the_place_of_a_response_is_named_with_its_responses(
    scored_folder: Path, run: Command
) -> None:
    ended = run("explain", scored_folder, "--response", "salt")
    assert (ended.code, ended.out) == (2, "")
    assert "no response 'salt'; that is a task; its responses are salt/a, salt/b" in ended.err


def test_what_if_decides_again_with_one_verdict_changed(scored_folder: Path, run: Command):
    why = run("explain", scored_folder, "--response", "salt/a").out.splitlines()
    assert run("explain", scored_folder, "--response", "salt/a", "--what-if").out.splitlines() == [
        *why,
        "If polite were 1: 0.5 (+0.75).",
        "If shaky were not met: 0.25 (+0.5).",
        "If polite were 0: -0.5 (-0.25).",
        "2 of 3 single changes would raise it, 1 would lower it.",
    ]


@all_rows("options", [(), ("--what-if",)])
def test_explain_json_has_the_sentences_and_the_points_behind_them(
    scored_once: Path, run: Command, options: tuple[str, ...]
):
    command = ("explain", scored_once, "--response", "salt/a", *options)
    given = json.loads(run(*command, "--json").out)
    assert given["sentences"] == run(*command).out.splitlines()
    assert (given["reward"], [line["points"] for line in given["lines"]]) == (-0.25, [0.25, -0.5])
    assert ("what_if" in given) == bool(options)


def test_explain_without_a_response_is_about_the_lowest_reward(
    scored_folder: Path, run: Command
) -> None:
    lowest = run("explain", scored_folder)
    assert lowest.out == run("explain", scored_folder, "--response", "salt/b").out
    assert "the lowest one; --response ID explains another" in lowest.err
    assert "does not exist; name the folder" in run("explain", scored_folder / "no").err


def test_explain_takes_what_show_selects_and_says_how_to_narrow_it(
    scored_folder: Path, run: Command
):
    of_alice = ("explain", scored_folder, "--agent", "alice", "--sort", "reward")
    expected = [
        run("explain", scored_folder, "--response", name).out for name in ("salt/a", "door/a")
    ]
    assert run(*of_alice, "--limit", 2).out == "\n".join(expected)
    assert run(*of_alice, "--limit", 2).err == ""
    assert "--sort reward --limit 3 explains the three lowest" in run(*of_alice).err
    lines = run(*of_alice, "--json").out.splitlines()
    assert [json.loads(line)["response_id"] for line in lines] == ["salt/a", "door/a"]
    assert run(*of_alice, "--limit", 1).out == expected[0]
    assert (
        "no response has the label step=3" in run("explain", scored_folder, "--label", "step=3").err
    )


def test_explain_gives_an_overview_of_a_training_step(tmp_path: Path, run: Command) -> None:
    config = {
        "evaluators": ["maths.accuracy", "maths.format", "maths.repetition"],
        "components": {"reward": {"combiner": "mean", "inputs": {"answer": "maths.accuracy"}}},
        "reward": {"reward": 1, "format": 0.5, "repetition": 0},
        "gates": [{"kind": "must", "component": "reward"}],
    }
    folder = tmp_path / "run"
    with jg.Jury.from_config(config) as jury, jury.record(folder):
        for name, answers in {"four": "4 5", "six": "6 6", "none": "1 1"}.items():
            reference = {"four": "4", "six": "6"}.get(name)
            task = jg.Task(id=name, query=f"{name}?", reference=reference)
            labels = {"step": 7, "phase": "eval" if name == "six" else "train"}
            responses = [
                jg.Response(
                    text=f"<think>The answer is {answer}.", labels={**labels, "row": f"{name}{row}"}
                )
                for row, answer in enumerate(answers.split())
            ]
            jury.score(task, responses, step=7)
    result = run("explain", folder, "--label", "step=7")
    missing = "(missing: </think>, <answer>, </answer>, in order with nothing outside)"
    assert result.out.splitlines() == [
        "6 responses in 3 groups: 3 ok, 2 failed (maths.accuracy abstained), 1 ok (gated by must reward).",
        "They differ in labels: 4 phase=train, 2 phase=eval.",
        "Mean reward: 0.825. No signal among these responses, as no rewards differ: 2 of 3 groups.",
        "Spread within groups (mean sd of weight × value): reward 0.3889, reward 0.3536, format 0.",
        "Lowest: Response four@7/2 to task four gets 0. "
        "Lost 1: reward 0 of 1, weight 1 (the final answer '5' is not '4').",
        "Highest: Response six@7/2 to task six gets 1.1. "
        f"Lost 0.4: format 1 on a scale of 0 to 5 (0.2), weight 0.5 {missing}.",
    ]
    assert "--sort reward --limit 3" in result.err


@pytest.mark.landing
def test_on_a_terminal_explain_breaks_lines_at_its_width(
    scored_folder: Path, run: Command, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "40")
    shown = run_on_terminal("explain", scored_folder, "--response", "salt/a").splitlines()
    assert max(map(len, shown)) <= 40
    assert shown[2:4] == ["Lost 0.75: polite 0.25 of 1, weight 1", "  (counted, as in “please”)."]
    whole = run("explain", scored_folder, "--response", "salt/a").out
    assert " ".join(" ".join(shown).split()) == " ".join(whole.split())


@all_rows(
    "command",
    [
        ("show",),
        ("show", "--json"),
        ("show", "--response", "salt/b"),
        ("explain", "--response", "salt/b"),
        ("export", "--to", "jsonl"),
        ("export", "--to", "csv"),
    ],
)
def test_what_was_lost_or_damaged_is_never_shown_as_valid(
    scored_folder: Path, run: Command, command: tuple[str, ...]
):
    ledger = scored_folder / "run.sqlite"
    kept = ledger.read_bytes()
    change_ledger(scored_folder, "DELETE FROM records WHERE key = 'salt/b'")
    ended = run(command[0], scored_folder, *command[1:])
    assert ended.code == 5
    assert "record 11" in ended.err or "1 of its 4 traces" in ended.err
    ledger.write_bytes(b"no database at all")
    ended = run(command[0], scored_folder, *command[1:])
    assert (ended.code, ended.out) == (5, "")
    assert ended.err.startswith(f"error: {ledger}: ")
    assert ended.err.count("\n") == 1
    ledger.write_bytes(kept)


ONE = ("show", "--response", "salt/a")


@all_rows(
    "command, message",
    [
        (("show", "--response", "salt/aa"), "there is no response 'salt/aa'; did you mean salt/a?"),
        (
            ("explain", "--response", "salt/aa"),
            "there is no response 'salt/aa'; did you mean salt/a?",
        ),
        (("show", "--response", "\udcff"), "there is no response"),
        (("erase", "--task", "\udcff"), "there is no task"),
        (
            ("show", "--status", "nope"),
            "'nope' is not one of 'ok', 'degraded', 'failed', 'gated'.\n",
        ),
        (
            ("show", "--columns", "reward,polit"),
            "--columns: there is no column 'polit'; did you mean polite?",
        ),
        (
            ("show", "--columns", ""),
            "--columns: there is no column ''; known: response, agent, status, reward",
        ),
        (("show", "--sort", "-shakey"), "--sort: there is no column 'shakey'; did you mean shaky?"),
        (("show", "--agent", "alise"), "has no response of agent 'alise'; did you mean alice?"),
        (
            ("show", "--agent", "alise", "--json"),
            "has no response of agent 'alise'; did you mean alice?",
        ),
        (
            ("show", "--json", "--columns", "reward"),
            "--columns is about what --json does not print",
        ),
        (
            ("show", "--verdict", "polite"),
            "--verdict is about one response; name it with --response ID",
        ),
        (("show", "--call", "polite"), "--call is about one response; name it with --response ID"),
        ((*ONE, "--sort", "reward"), "--sort is about many responses"),
        ((*ONE, "--texts", "--json"), "--texts is about what --json does not print"),
        ((*ONE, "--call", "x", "--verdict", "x"), "expected one of --call and --verdict"),
        (
            (*ONE, "--call", "manners.polit"),
            "response 'salt/a' has no question 'manners.polit'; did you mean manners",
        ),
        (
            (*ONE, "--verdict", ""),
            "response 'salt/a' has no question ''; there are manners.polite, manners.shaky",
        ),
    ],
)
def test_a_wrong_option_is_refused_with_what_there_is(
    scored_once: Path, run: Command, command: tuple[str, ...], message: str
):
    ended = run(command[0], scored_once, *command[1:])
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err


PERSONALIZED = """
evaluators:
  - {use: zero-shot, params: {dimensions: {appeal: {text: How good it is., scale: [1, 5]}}, samples: 1}}
"""


@pytest.mark.usefixtures("own_cache")
def test_what_a_reviewer_would_give_is_a_row_and_a_column_on_the_reviewers_scale(
    tmp_path: Path, run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [
        {
            "id": "cats",
            "query": "Write about cats.",
            "reviewers": ["ann", "bo"],
            "responses": [{"id": "a", "text": "A cat sat."}, {"id": "b", "text": "No cat sat."}],
        }
    ]
    project = write_project(tmp_path / "project", tasks, PERSONALIZED)

    def answer(body: dict[str, Any], number: int) -> Answer:
        return prediction_reply(body, 4 if "A cat" in response_in(body) else 2)

    with run_server(answer) as server:
        model = f"openai-compatible:{server.url}#m"
        run("score", project / "tasks.jsonl", "--out", project / "run", "--model", model)
    shown = run("show", project / "run").out.splitlines()
    assert shown[0].split()[-2:] == ["predicted.ann", "predicted.bo"]
    for most, last in ((len(shown[0].split()), "predicted.bo"), (2, "zero-shot")):
        monkeypatch.setattr(rewards, "_MAX_TABLE_COLUMNS", most)
        assert run("show", project / "run").out.splitlines()[0].split()[-1] == last
    predicted = {line.split()[0]: line.split()[-2:] for line in shown[2:]}
    assert predicted == {"a": ["4", "4"], "b": ["2", "2"]}
    trace = run("show", project / "run", "--response", "a").out
    assert "reviewer  dimension  judge      predicted" in trace
    assert "ann       appeal     zero-shot   4 of 1–5" in trace
    csv = run("export", project / "run", "--to", "csv").out.splitlines()
    (first, second) = DictReader(csv)
    assert first["predicted.zero-shot/appeal@bo"] == "4.0"
    assert second["predicted.zero-shot/appeal@ann"] == "2.0"
    by_ann = run("show", project / "run", "--columns", "predicted.ann", "--sort", "predicted.ann")
    assert [line.split() for line in by_ann.out.splitlines()[2:]] == [["b", "2"], ["a", "4"]]
    missing = run("show", project / "run", "--columns", "predicted.anna")
    assert "there is no column 'predicted.anna'; did you mean predicted.ann?" in missing.err


@pytest.mark.usefixtures("own_cache")
def test_an_exported_reward_names_whose_answer_counts_as_the_worst_and_not_as_predicted(
    tmp_path: Path, run: Command
) -> None:
    """Else the reward is not the mean of the predictions beside it, and nothing says why."""
    texts = {"a": "A cat sat.", "b": "No cat sat."}
    task = {
        "id": "cats",
        "query": "Write about cats.",
        "reviewers": ["ann"],
        "responses": [{"id": name, "text": text} for name, text in texts.items()],
    }
    project = write_project(tmp_path / "project", [task], PERSONALIZED)

    def answer(body: dict[str, Any], number: int) -> Answer:
        is_misquoted = texts["a"] in response_in(body)
        return prediction_reply(body, 4, quotes=["A dog sat."] if is_misquoted else None)

    with run_server(answer) as server:
        model = f"openai-compatible:{server.url}#m"
        run("score", project / "tasks.jsonl", "--out", project / "run", "--model", model)
    rows = DictReader(run("export", project / "run", "--to", "csv").out.splitlines())
    question = "zero-shot/appeal@ann"
    columns = ("status", "reward", f"predicted.{question}", "unsupported")
    assert [[row[name] for name in columns] for row in rows] == [
        ["ok", "0.0", "", question],
        ["ok", "0.75", "4.0", ""],
    ]
    labels = project / "given.csv"
    labels.write_text("id,reviewer,label\na,ann,2\nb,ann,5\n")
    judges = ("--run", project / "run", "--judges", "own-history")
    measured = run("study", "reviewers", labels, "--id-column", "id", *judges, "--json").out
    study = project / "study.json"
    workbook = ("export", project / "run", "-o", project / "rewards.xlsx", "--study", study)
    for text, other in (("#m)", "#other)"), ("measured", "as_saved_before")):
        study.write_text(measured.replace(text, other))
        refused = run(*workbook)
        assert refused.code == 2
        assert re.search(r"study.json: does not measure zero-shot \(.*#m\); save `", refused.err)
    study.write_text(measured)
    assert run(*workbook, "--labels", labels).code == 0
    sheet = load_workbook(project / "rewards.xlsx").worksheets[0]  # opens on it
    assert sheet.title == "Reviewers"
    (legend, *_), titles, *to_hand_on = sheet.iter_rows(values_only=True)
    assert legend.startswith("Each row is a text. Under a name is what the judge predicts")
    assert (sheet.freeze_panes, sheet.column_dimensions["B"].width) == ("A3", 40)
    assert titles[1:5] == (
        "Question",
        "Text, up to 1,000 characters",
        "Mean of those predicted (1 to 5)",
        "ann (1 to 5): too few ratings to tell (1)",
    )
    assert titles[5:] == ("ann gave", "ann: difference", "ann: answers of the judge")
    *texts, now, exact, near = to_hand_on
    assert texts == [
        ("a", "Write about cats.", "A cat sat.", None, None, 2, None, "without a quotation"),
        ("b", "Write about cats.", "No cat sat.", 4, 4, 5, -1, "4"),
    ]
    assert [row[4] for row in (now, exact, near)] == [1, 0, 1]
    assert now[0] == "Judge off by on average: these texts"
    assert sheet["F3"].value == 2
    assert sheet["F3"].number_format == "General;-General", (
        "a whole number is shown without decimals"
    )


def test_a_reviewer_alone_names_what_the_judge_of_the_reward_predicts(
    tmp_path: Path, run: Command, caplog: pytest.LogCaptureFixture
) -> None:
    response = {"id": "a", "text": "A cat sat."}
    task = {"id": "cats", "query": "Write.", "reviewers": ["ann"], "responses": [response]}
    dimensions = "{dimensions: {appeal: {text: How good it is., scale: [1, 5]}}, samples: 1}"
    evaluators = f"""
evaluators:
  - {{use: zero-shot, params: {dimensions}}}
  - {{use: zero-shot, name: other, params: {dimensions}}}
"""
    for reward, code in (("{other: 1}", 0), ("{zero-shot: 2, other: 1}", 2)):
        config = f"{evaluators}reward: {reward}\n"
        project = write_project(tmp_path / str(code), [task], config)
        run("score", project / "tasks.jsonl", "--out", project / "run")
        for name, expected in (("ann", code), ("zero-shot/appeal@ann", 0)):
            assert run("show", project / "run", "--columns", f"predicted.{name}").code == expected
    error = {"n": 1, "mae": 1, "own_mean": 1, "step": 1, "exact": 0, "near": 1}
    measured = {"dimension": "appeal", "reviewer": "ann", "measured": {"other (none)": error}}
    (tmp_path / "study.json").write_text(json.dumps({"reviewers": [measured]}))
    book = tmp_path / "rewards.xlsx"
    run("export", project / "run", "-o", book, "--study", tmp_path / "study.json")
    assert (
        "does not measure zero-shot (none), but other (none): nothing is said of how" in caplog.text
    )
    sheets = load_workbook(book).sheetnames
    # numbered, as long names are cut off; who counts most in the reward comes first
    assert sheets[:2] == ["Reviewers 1 zero-shot appeal", "Reviewers 2 other appeal"]
    sent = run("assign", project / "run", "--reviewers", "bo,cy", "--out", tmp_path / "sheets")
    assert (sent.code, "--dimensions CONFIG gives them that of the run's" in sent.err) == (0, True)


@pytest.mark.usefixtures("own_cache")
def test_a_prediction_says_where_its_examples_are_and_of_a_newcomer_how_far_off_it_is_for_others(
    tmp_path: Path, run: Command
) -> None:
    tasks = [
        {"id": "cats", "query": "Write.", "reviewers": ["ann", "cy"]}
        | {"responses": [{"id": "a b", "text": "A cat sat."}]}
    ]
    config = PERSONALIZED.replace("zero-shot", "personalized").replace(
        "samples: 1", "samples: 1, shots: 1, history: ratings.csv, judge_newcomers: true"
    )
    project = write_project(tmp_path / "project", tasks, config)
    (project / "ratings.csv").write_text(
        "item,reviewer,score,text\ndogs,ann,2,A dog barked.\nowls,bo,3,An owl flew.\n"
    )
    with run_server(lambda body, number: prediction_reply(body, 4)) as server:
        model = f"openai-compatible:{server.url}#m"
        run("score", project / "tasks.jsonl", "--out", project / "run", "--model", model)
    *_, last = run("explain", project / "run", "--response", "a b").out.splitlines()
    assert last == (
        f"Examples that predictions rest on: jurygraph show {project / 'run'} --response 'a b'"
    )
    shown = run("show", project / "run", "--response", "a b").out
    assert "example dogs (ann: 2) shown" in shown
    study = {"reviewers": []}
    for name, count, error in (("ann", 6, 1.0), ("bo", 18, 2.0)):
        of_reviewer = {"n": count, "own_mean": 0.5, "step": 1, "exact": 0.5, "near": 1.0}
        measured = {
            f"personalized ({model}) with 1 example": {**of_reviewer, "mae": 0.25},
            f"aggregate ({model}) with 1 example": {**of_reviewer, "mae": error},
        }
        subject = {"subject": "personalized with 1 example", "state": "worse"}
        study["reviewers"].append(
            {"dimension": "appeal", "reviewer": name, "measured": measured, **subject}
        )
    (project / "study.json").write_text(json.dumps(study))
    ended = run(
        *("export", project / "run", "-o", project / "f.xlsx", "--study", project / "study.json")
    )
    assert ended.code == 0, ended.err
    sheet = load_workbook(project / "f.xlsx").worksheets[0]
    _, titles, *_ = sheet.iter_rows(values_only=True)
    assert titles[4:6] == (
        "ann (1 to 5): worse than own mean, do not replace this person; ± 0.25 on average over 6 ratings: 50% exact, "
        "100% within 1",
        "cy (1 to 5), judged from everybody's ± 1.75 on average over 24 ratings of the others, judged so: 50% exact, "
        "100% within 1",
    )


def test_explain_tells_what_was_looked_up_and_found(tmp_path: Path, run: Command) -> None:
    def look(request: Request, step: int) -> Any:
        return [("price", {"item": "room"})] if step == 0 else {"met": False}

    investigations.judge(investigations.Investigator(look), tmp_path / "run")
    lines = run("explain", tmp_path / "run", "--response", "trip/a").out.splitlines()
    assert 'c1, tool:1 price {"item": "room"} → The room is 120 euros a night.' in lines


def test_responses_on_which_the_samples_of_one_judge_differ_most_come_first(
    tmp_path: Path, run: Command
) -> None:
    tasks = [task(f"t{n}", ([0.5, 0.5 + n / 10, 0.5], 1.0)) for n in (1, 4, 2)]
    ended = run(
        "show", score_tasks(tmp_path, tasks), "--columns", "disagreement", "--sort", "-disagreement"
    )
    rows = [line.split() for line in ended.out.splitlines() if line.startswith("t")]
    assert rows == [["t4/0", "0.4000"], ["t2/0", "0.2000"], ["t1/0", "0.1000"]]
