"""docs/composing.md is followed: its files are saved, its commands typed, and what it shows is what comes out.

Every message of its tables is provoked by the mistake that it stands beside.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jurygraph as jg
from jurygraph.models.request import Reply
from jurygraph.runs.run import Run
from tests.models.judge_scripts import response_in
from tests.models.server import Answer, Script, reply_with, run_server
from tests.pages import SERVER, Typed, blocks, commands, follow, read_page, type_line

PAGE = read_page("docs/composing.md")
FILES = dict(re.findall(r"Save this as\s`([\w.]+)`[^`]*```\w+\n(.*?)```", PAGE, re.DOTALL))
"""What the page says to save, by name."""
QUOTE = "I am sorry that your parcel is late."
PROMISE = "If it is not there on Saturday, write to me and I will send another."
MODEL = f"--model openai-compatible:{SERVER}#tiny"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


def warm_where_sorry(body: dict[str, Any], number: int) -> Answer:
    """The model of the page: it finds a letter warm that is sorry, and with the promise of its last sentence."""
    text = body["messages"][-1]["content"]
    if "promises" in body["response_format"]["json_schema"]["schema"]["properties"]:
        return reply_with(json.dumps({"promises": [PROMISE] if PROMISE in text else []}))
    met = QUOTE in response_in(body)
    reason = "It is sorry about this parcel." if met else "It speaks of customers, not to one."
    return reply_with(warm_reply(reason, *[QUOTE] * met, met=met, probability=0.9 if met else 0.1))


def warm_reply(reason: str, *quotes: str, met: bool = True, probability: float = 0.9) -> str:
    return json.dumps(
        {"item_1": {"reason": reason, "quotes": quotes, "met": met, "probability": probability}}
    )


def save(folder: Path, changed: str = "plain.py", right: str = "", wrong: str = "") -> Path:
    """Save the files of the page in a folder; in one of them something else stands for what is right."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    assert not right or FILES[changed].count(right) == 1
    (folder / changed).write_text(
        FILES[changed].replace(right, wrong) if right else FILES[changed], encoding="utf-8"
    )
    return folder


def score(
    folder: Path, config: str, more: str = "", script: Script = warm_where_sorry, out: str = "run"
) -> Typed:
    """Score the letters of the page by a config, where a model answers by a script."""
    with run_server(script) as server:
        line = f"jurygraph score tasks.jsonl --config {config} --out {out} {more}"
        return type_line(line.replace(SERVER, server.url), folder)


def test_a_function_and_criteria_make_one_reward(tmp_path: Path) -> None:
    def judge(body: dict[str, Any], number: int) -> Answer:
        (name,) = body["response_format"]["json_schema"]["schema"]["properties"]
        met = QUOTE in response_in(body)
        reply = warm_reply("It is sorry.", *[QUOTE] * met, met=met, probability=0.9 if met else 0.1)
        return reply_with(reply.replace("item_1", name))

    ended = score(save(tmp_path), "both.yaml", MODEL, judge)
    assert ended.code == 0, ended.printed
    printed = type_line("jurygraph show run --response parcel/kind", tmp_path).printed
    assert "criteria  2.0000" in printed


def test_the_page_is_followed(tmp_path: Path) -> None:
    """Its files are all saved, and its package is the template's."""
    shown = blocks(PAGE, "json", "python", "yaml", "markdown")
    assert sorted(shown) == sorted(FILES.values())
    followed = follow(PAGE, save(tmp_path), warm_where_sorry)
    assert len(followed) == 22
    assert {line for line, typed in followed.items() if typed.code} == {
        line for line in commands(PAGE) if line.endswith("|| true")
    }
    (toml,) = blocks(PAGE, "toml")
    assert toml in (tmp_path / "letters" / "pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.exhaustive
def test_the_tests_of_the_page_pass(tmp_path: Path) -> None:
    done = type_line("python -m pytest -p no:cacheprovider test_letters.py", save(tmp_path))
    assert "4 passed" in done.printed


def test_the_combiner_of_the_page_leaves_out_an_input_without_verdicts() -> None:
    names: dict[str, Any] = {"__name__": "weakest"}
    exec(FILES["weakest.py"], names)
    cells, yes, one = np.array([[0.5]]), np.array([[True]]), np.ones(1)
    inputs = {
        "a": jg.ScoreMatrix(cells, yes, yes, yes, one),
        "b": jg.ScoreMatrix(cells * 0, ~yes, ~yes, ~yes, one),
    }
    component = names["Weakest"]().combine(inputs, {})
    assert (component.value.tolist(), component.present.tolist()) == ([0.5], [True])


def test_a_function_gets_the_material_that_it_names(tmp_path: Path) -> None:
    brief = ("sentences.Short, name: short, params: {most: 15}", "brief.brief, name: short")
    assert score(save(tmp_path, "short.yaml", *brief), "short.yaml").code == 0
    short = {
        trace.response_id: trace.reward.components["short"]
        for trace in Run.open(tmp_path / "run").traces()
    }
    assert short == {"parcel/kind": 1.0, "parcel/stiff": 1.0, "parcel/silent": 0.0}


FORMS = {
    "Binary": jg.Binary(),
    "Scale": jg.Scale(1, 10),
    "PartialCredit": jg.PartialCredit((1.0, 2.0)),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_reply_shown_for_a_form_comes_to_the_score_beside_it(form: str) -> None:
    ((reply, shown),) = re.findall(
        rf"^\| `jg\.{form}\(.*\)` \| `(.*)` \| ([\d.]+): ", PAGE, flags=re.MULTILINE
    )
    stated = FORMS[form].reply_model(compact=False).model_validate_json(reply)
    assert round(
        FORMS[form].find(stated, "item_1", Reply(text=reply)).judged_value.score, 4
    ) == float(shown)


MISTAKES = [
    (
        "evaluator 'email.plain': module 'email' has no 'plain'",
        "plain.yaml",
        "plain.plain",
        "email.plain",
    ),
    (
        "expected a Verdict, a number or a boolean, got NoneType",
        "plain.py",
        "    text = ",
        "    return None\n    text = ",
    ),
    ("a score lies in [0, 1], not at 7", "plain.py", "    text = ", "    return 7\n    text = "),
    (
        "a section is headed 'The letter'; each is one of system",
        "warm.md",
        "# The letter",
        "## The letter",
    ),
    (
        "expected `verdict` or `score` in the result, found ['promises', 'text']",
        "promises.py",
        '"verdict": jg.Verdict(score=len(with_day) / len(promises), reason=reason)',
        '"promises": with_day',
    ),
    (
        "evaluator 'kept' is a Runnable and takes no params: bind them to it instead",
        *("promises.yaml", "promises.kept", "{use: promises.kept, params: {most: 3}}"),
    ),
    (
        "combiner 'weakest.Weakest' failed: every array of a component has one number for each response",
        *(
            "weakest.py",
            "for value, has_value in means.values()], axis=0\n",
            "for value, has_value in means.values()], axis=1\n",
        ),
    ),
    ("'house' is undefined", "warm.py", 'return {"house": self.house}', "return {}"),
]
"""By the message: in a file of the page one thing stands for another, and then a config is scored that uses it."""
USED_BY = {"warm.md": "warm.yaml"}


@pytest.mark.parametrize(("message", "file", "right", "wrong"), MISTAKES, ids=lambda one: one[:40])
def test_a_mistake_says_what_the_page_says(
    message: str, file: str, right: str, wrong: str, tmp_path: Path
) -> None:
    save(tmp_path, file, right, wrong)
    config = USED_BY.get(file, file.replace(".py", ".yaml"))
    ended = score(tmp_path, config, MODEL if file == "warm.py" else "")
    assert ended.code in (1, 2, 3)
    assert message in ended.printed
    assert message in PAGE


def test_changed_code_is_refused_by_the_run_that_was_begun_with_the_old(tmp_path: Path) -> None:
    assert score(save(tmp_path), "plain.yaml", out="plain-run").code == 0
    save(tmp_path, "plain.py", '"utilize"', '"utilise"')
    refused = score(tmp_path, "plain.yaml", out="plain-run")
    message = "plain-run: was started with other settings: evaluator plain.plain has version "
    assert (refused.code, message in refused.printed, message in PAGE) == (2, True, True)
    assert "--branch plain-run --out NEW" in PAGE
    assert score(tmp_path, "plain.yaml", "--branch plain-run", out="NEW").code == 0


def test_a_reply_of_no_use_says_what_the_page_says(tmp_path: Path) -> None:
    message = "the reply is not valid JSON: "
    ended = score(save(tmp_path), "warm.yaml", MODEL, lambda *_: reply_with("Surely! It is warm."))
    assert (ended.code, message in ended.printed, message in PAGE) == (1, True, True)


def test_a_judge_that_paraphrases_is_told_as_the_page_says(tmp_path: Path) -> None:
    """A made-up quotation is lost; the verdict rests on the others, and is unsupported where there are none."""
    for quotes, shown in (
        (
            ["We feel for you."],
            "the judge says met, and quotes 'We feel for you.' (not in the response)",
        ),
        ([QUOTE, "We feel for you."], "so it is [lost: 'We feel for you.' (not in the response)]"),
    ):
        reply = warm_reply("so it is", *quotes)
        ended = score(
            save(tmp_path),
            "warm.yaml",
            MODEL,
            lambda *_, reply=reply: reply_with(reply),
            f"run-{len(quotes)}",
        )
        assert ended.code == 0
        printed = type_line(
            f"jurygraph show run-{len(quotes)} --response parcel/kind", tmp_path
        ).printed
        assert shown in " ".join(printed.split())
        if len(quotes) == 1:
            assert "2 of 2 findings had no quotation that counts" in ended.printed
            first = type_line("jurygraph show run-1 --limit 1", tmp_path).printed
            assert "1 of 1 findings had no quotation" in first, "of what is shown"
            assert (
                "if your judge paraphrases, or judges a tone, write `safety: {evidence: preferred}`"
                in ended.printed
            )
            assert shown in PAGE
            config = tmp_path / "warm.yaml"
            config.write_text(config.read_text() + "\nsafety: {evidence: preferred}\n")
            changed = score(
                tmp_path,
                "warm.yaml",
                f"{MODEL} --branch run-1",
                lambda *_, reply=reply: reply_with(reply),
                "set",
            )
            assert changed.code == 0
            assert "write `safety" not in changed.printed, "what is set is not advised"
    assert "`[lost: '…' (not in the response)]`" in PAGE
