"""`study reviewers`: with a model, one run for each judge, shots and seed, and no request is sent twice.

How the predictions are joined and compared is tested in `tests/studies/reviewers`.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Command, folder_contents
from tests.judges.few_shot.reviewers import examples_shown, rows, write_history
from tests.models.judge_scripts import quotable, response_in
from tests.models.server import Answer, reply_with, run_server
from tests.rows import all_rows

pytestmark = pytest.mark.usefixtures("own_cache")

SCORES = {"ann": (1, 2, 1, 2), "bob": (4, 5, 4, 5), "cy": (5, 1, 5, 1)}
JUDGES = "zero-shot,aggregate,personalized,item-mean"


@pytest.fixture
def asked() -> list[str]:
    """The requests so far."""
    return []


def answering(asked: list[str], odd_every: int = 0) -> Any:
    """Predict 3, with confidence where examples are shown; of so many answers one is 4."""

    def answer(body: dict[str, Any], number: int) -> Answer:
        asked.append(json.dumps(body["messages"]))
        found = {
            "reason": "so",
            "quotes": quotable(response_in(body)),
            "value": 4 if odd_every and len(asked) % odd_every == 0 else 3,
            "confidence": 60 + 30 * bool(examples_shown(body)),
        }
        return reply_with(json.dumps({"score": found}))

    return answer


ONE_PANEL = ("--shots", "0,1", "--seeds", 1)


def study(run: Command, folder: Path, url: str, *options: object) -> Any:
    history = folder / "history.jsonl"
    model = ("--model", f"openai-compatible:{url}#tiny")
    shots = ("--shots", "0,1,2", "--seeds", 2, "--min-confidence", 0)
    return run(
        "study", "reviewers", history, "--judges", JUDGES, *model, *shots, *options, "--json"
    )


def test_the_runs_are_made_read_and_continued(
    run: Command, tmp_path: Path, asked: list[str]
) -> None:
    write_history(tmp_path, rows(SCORES))
    before = folder_contents(tmp_path)
    with run_server(answering(asked)) as server:
        dry = study(run, tmp_path, server.url, "--dry-run")
        assert dry.code == 0, dry.err
        assert (asked, folder_contents(tmp_path)) == ([], before)
        out = tmp_path / "out"
        stopped = study(run, tmp_path, server.url, "--out", out, "--max-calls", 20)
        assert (stopped.code, len(asked)) == (4, 20)
        made = study(run, tmp_path, server.url, "--out", out)
        assert made.code == 0, made.err
        assert len(asked) == len(set(asked)), (
            "no request is repeated between shots, seeds and judges"
        )
        number = len(asked)
        assert study(run, tmp_path, server.url, "--out", out).out == made.out
        assert len(asked) == number
    runs = {path.name for path in out.iterdir() if path.is_dir()}
    pairs = [(shots, seed) for shots in (1, 2) for seed in (0, 1)]
    assert runs == {
        "zero-shot-0-0",
        *(f"{kind}-{n}-{s}" for kind in ("aggregate", "personalized") for n, s in pairs),
    }
    assert set(json.loads(dry.out)["runs"]) == runs
    found = json.loads(made.out)
    assert {one["judge"]: (one["shots"], one["n"]) for one in found["judges"]} == {
        "own-history": (None, 12),  # what each judge has to beat
        "item-mean": (None, 12),
        "zero-shot": (0, 12),
        "aggregate": (2, 12),
        "personalized": (2, 12),
    }
    options = [option for name in sorted(runs) for option in ("--run", out / name)]
    least = ("--min-confidence", 80)
    without_texts = [{**row, "text": None} for row in rows(SCORES)]
    ratings = write_history(tmp_path, without_texts, "ratings.jsonl")
    sure = run("study", "reviewers", ratings, *options, *least, "--json")
    judged = {one["judge"]: one for one in json.loads(sure.out)["judges"]}
    unsure = judged["zero-shot"]
    assert (unsure["answered"], unsure["left_out"]) == (0, {"confidence below 80": 12})
    assert judged["neighbours"]["answered"] == 12, "the runs have the texts"
    named = [{**row, "dimension": "score"} for row in rows(SCORES)]
    ended = run("study", "reviewers", write_history(tmp_path, named, "named.jsonl"), *options)
    assert ("study judge" in sure.err, "study judge" in ended.err) == (True, True)


def test_ratings_are_read_by_the_columns_of_the_config_and_on_its_scale(
    run: Command, tmp_path: Path, asked: list[str]
) -> None:
    history = tmp_path / "history.csv"
    rated = "".join(
        f"{row['item']},{row['reviewer']},{row['score']},{row['text']},Which bus?\n"
        for row in rows(SCORES)
    )
    history.write_text(f"item,reviewer,score,answer,task\n{rated}")
    judge = """{use: zero-shot, params: {shots: 0, columns: {text: answer, prompt: task},
      dimensions: {score: {text: How good it is., scale: [1, 5]}}}}"""
    config = tmp_path / "jury.yaml"
    config.write_text(f"evaluators: [{judge}]\nreward: {{zero-shot: 1.0}}\n")
    with run_server(answering(asked)) as server:
        model = ("--model", f"openai-compatible:{server.url}#tiny", "--config", config)
        options = ("--judges", "zero-shot,item-mean", *model, "--out", tmp_path / "out")
        made = run("study", "reviewers", history, *options, "--min-confidence", 0, "--json")
    assert made.code == 0, made.err
    assert asked
    assert all("Which bus?" in request for request in asked)
    counts = {one["judge"]: one["answered"] for one in json.loads(made.out)["judges"]}
    assert counts == {"own-history": 12, "zero-shot": 12, "item-mean": 12}


def test_another_panel_continues_the_runs_of_a_study(
    run: Command, tmp_path: Path, asked: list[str]
) -> None:
    history = write_history(tmp_path, rows(SCORES))
    config = tmp_path / "jury.yaml"
    judge = (
        "{use: zero-shot, params: {samples: 2, dimensions: {score: {text: Good., scale: [1, 6]}}}}"
    )
    folds = []
    with run_server(answering(asked, odd_every=5)) as server:
        model = ("--model", f"openai-compatible:{server.url}#tiny", "--config", config)
        for panel in ("{min_confidence: 0}", "{min_confidence: 0, reduce: mean}"):
            config.write_text(f"evaluators: [{judge}]\npanel: {panel}\n")
            options = ("--judges", "zero-shot,item-mean", *model, "--out", tmp_path / "out")
            made = run("study", "reviewers", history, *options, "--json")
            assert made.code == 0, made.err
            assert ("often have no majority" in made.err) == ("mean" not in panel)
            assert "rewards have no value by its own panel, though every answer came" in made.err
            assert "remove" not in made.err, "to repeat them would change nothing"
            folds.append((json.loads(made.out)["judges"][-1]["fold"], len(asked)))
    assert folds == [("majority of 2 answers", folds[0][1]), ("mean of 2 answers", folds[0][1])]


def test_judges_see_the_prompt_of_a_table_as_the_question(
    run: Command, tmp_path: Path, asked: list[str]
) -> None:
    for question, count in (("Which bus?", 4), ("", 0)):
        more = {"prompt": question} if question else {}
        write_history(tmp_path, [row | more for row in rows(SCORES)])
        with run_server(answering(asked)) as server:
            made = study(run, tmp_path, server.url, *ONE_PANEL, "--out", tmp_path / f"out{count}")
        assert f"judges will see a question (`prompt`) with {count} of 4 texts" in made.err
        assert "0 responses to 0 groups" not in made.err, "they are no rows of a table"
        assert re.search(
            r"next: jurygraph study judge .* --labels .* --target-column score", made.err
        )
        assert all("Which bus?" in request for request in asked) == bool(question)
        asked.clear()


def test_an_empty_prompt_hides_none_of_the_texts_and_two_prompts_of_an_item_are_refused(
    run: Command, tmp_path: Path, asked: list[str]
) -> None:
    history = [one | {"agent": "alpha", "prompt": ""} for one in rows(SCORES)]
    texts = []
    for one in history:
        texts.append({**one, "prompt": f"Which bus is {one['item']}?"})
    items = write_history(tmp_path, texts, "items.jsonl")
    write_history(tmp_path, history)
    with run_server(answering(asked)) as server:
        made = study(
            run, tmp_path, server.url, "--items", items, *ONE_PANEL, "--out", tmp_path / "out"
        )
        assert "(`prompt`) with 4 of 4 texts" in made.err
        assert all("Which bus is " in request for request in asked)
        other = [one | {"agent": "beta", "prompt": "Which tram?"} for one in rows(SCORES)]
        write_history(tmp_path, [*history, *other])
        refused = study(run, tmp_path, server.url, "--items", items, "--out", tmp_path / "other")
    assert refused.code == 2
    assert "has two prompts; give each item one" in refused.err


def test_texts_of_an_item_are_counted_that_see_the_prompt_of_one_of_them(
    run: Command, tmp_path: Path
) -> None:
    history = tmp_path / "history.csv"
    history.write_text(
        "item,agent,reviewer,score,text,prompt\na,m,x,1,A,\na,n,x,2,A2,Q2\nb,m,x,1,B,p3\nc,m,x,2,C,\n"
    )
    judges = ("--judges", "zero-shot", "--model", "openai-compatible:http://127.0.0.1:9/v1#unasked")
    planned = run("study", "reviewers", history, *judges, "--dry-run")
    assert "judges will see a question (`prompt`) with 3 of 4 texts" in planned.err


def test_each_row_may_have_the_prompt_of_its_item_or_none(run: Command, tmp_path: Path) -> None:
    history = tmp_path / "history.csv"
    history.write_text("item,reviewer,score\na,x,1\nb,x,2\n")
    texts = [{"item": "a", "text": "A", "prompt": "Q?"}, {"item": "b", "text": "B"}]
    judges = ("--judges", "zero-shot", "--model", "openai-compatible:http://127.0.0.1:9/v1#unasked")
    for item_texts in (texts, texts[::-1]):
        items = write_history(tmp_path, item_texts, "items.jsonl")
        planned = run("study", "reviewers", history, "--items", items, *judges, "--dry-run")
        assert planned.code == 0, planned.err
        assert "(`prompt`) with 1 of 2 texts" in planned.err


def test_without_a_model_the_chosen_judges_are_compared(run: Command, tmp_path: Path) -> None:
    history = write_history(tmp_path, rows(SCORES))
    ended = run("study", "reviewers", history, "--shots", "1,2", "--json")
    assert ended.code == 0
    judges = [one["judge"] for one in json.loads(ended.out)["judges"]]
    assert judges == ["own-history", "neighbours", "item-mean", "rater-offset"]
    chosen = run("study", "reviewers", history, "--judges", "item-mean, own-history", "--markdown")
    assert "| all | own-history | all |" in chosen.out
    assert "rater-offset" not in chosen.out


@all_rows(
    "options, problem",
    [
        (("--judges", "other"), "unknown judge 'other'"),
        (("--shots", "other"), "'other' is not a number of examples"),
        (
            ("--judges", "zero-shot"),
            "--judges zero-shot: asks a model; name a folder for its runs with --out",
        ),
        (
            ("--judges", "zero-shot", "--out", "o"),
            "--judges zero-shot: asks a model; name it with --model",
        ),
        (
            ("--out", "o"),
            "--out and --dry-run: are for judges with a model; name some with --judges",
        ),
        (
            ("--min-confidence", "0.8"),
            "--min-confidence: is 0.8 of 100; write 80 for the share 0.8",
        ),
        (("--judges", "neighbours"), "compares texts; name a file of them with --items"),
        (
            ("--judges", "zero-shot", "--model", "none", "--out", "o"),
            "call the column of texts `text`, or name a file of them with --items (columns not read: blurb)",
        ),
    ],
)
def test_wrong_input_is_refused_without_a_result(
    run: Command, tmp_path: Path, options: tuple[str, ...], problem: str
) -> None:
    history = write_history(tmp_path, rows(SCORES))
    if "neighbours" in options or "--model" in options:
        Path(history).write_text('{"item": "i", "reviewer": "a", "score": 1, "blurb": "A pen."}\n')
    ended = run("study", "reviewers", history, *options)
    assert (ended.code, ended.out) == (2, "")
    assert problem in ended.err
