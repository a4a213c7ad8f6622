"""docs/composing.md is followed: its files are saved, its commands typed, and what it shows is what comes out.

Every message of its tables is provoked by the mistake that it stands beside.
"""

import importlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import jurygraph as jg
from jurygraph.agents.functions import REGISTERED
from jurygraph.cli import main
from jurygraph.models.request import Reply
from jurygraph.runs.run import Run
from tests.models.judge_scripts import response_in
from tests.models.server import Answer, reply_with, run_server, status

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "composing.md").read_text(encoding="utf-8")
MODEL = "http://127.0.0.1:8000/v1"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
SAVED = re.compile(r"Save this as `([\w.]+)`[^`]*```\w+\n(.*?)```", re.DOTALL)
FILES = dict(SAVED.findall(PAGE))
"""What the page says to save, by name."""
PACKAGE = "letters"
OWN_MODULES = {
    "again",
    *(name.removesuffix(".py") for name in FILES if name.endswith(".py")),
    *(f"{PACKAGE}{part}" for part in ("", ".sentences", ".warm", ".words")),
}

QUOTE = "I am sorry that your parcel is late."
PROMISE = "If it is not there on Saturday, write to me and I will send another."


def warm_where_sorry(body: dict[str, Any], number: int) -> Answer:
    """The model of the page: it finds a letter warm that is sorry, clear, and with the promise of its last sentence."""
    text = body["messages"][-1]["content"]
    asked = body["response_format"]["json_schema"]["schema"]["properties"] if "response_format" in body else {}
    if not asked:
        return reply_with("The parcel is late.")
    if "yes" in asked:
        return reply_with(json.dumps({"reason": "It says so.", "yes": QUOTE in text}))
    if "promises" in asked:
        return reply_with(json.dumps({"promises": [PROMISE] if PROMISE in text else []}))
    if "names_a_day" in asked:
        return reply_with(json.dumps({"reason": "It names one.", "names_a_day": "Saturday" in text}))
    met = QUOTE in response_in(body)
    reason = "It is sorry about this parcel." if met else "It speaks of customers, not to one."
    reply = {"reason": reason, "quotes": [QUOTE] if met else [], "met": met, "probability": 0.9 if met else 0.1}
    return reply_with(json.dumps({"item_1": reply}))


class Typed(NamedTuple):
    """A command of the page, what it printed and its exit code."""

    line: str
    printed: str
    code: int


class Shown(NamedTuple):
    """What the page shows, and the command before it."""

    text: str
    typed: Typed


def typed(line: str, folder: Path, url: str = MODEL) -> Typed:
    """Type a line in a folder, whose modules are read anew; `|| true` says that it may end with exit code 1."""
    words = shlex.split(line.removesuffix(" || true").replace(MODEL, url))
    before, registered, printed = set(sys.modules), dict(REGISTERED), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed), redirect_stderr(printed):
        patch.chdir(folder)
        patch.setattr(sys, "path", list(sys.path))
        patch.setenv("JURYGRAPH_CACHE", str(folder / "cache"))
        for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):  # a command sets them: its process is its own
            patch.setenv(name, "false")
        importlib.invalidate_caches()
        with pytest.raises(SystemExit) as ended:
            main(words[1:])
    for name in OWN_MODULES & (set(sys.modules) - before):
        del sys.modules[name]
    REGISTERED.clear()
    REGISTERED.update(registered)
    return Typed(line, printed.getvalue(), int(ended.value.code or 0))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the page."""
    folder = tmp_path_factory.mktemp("letters")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def followed(saved: Path) -> list[Typed | Shown]:
    """The page from top to bottom: its commands as they ended, and what it shows after them."""
    found: list[Typed | Shown] = []
    last = Typed("", "", 0)
    with run_server(warm_where_sorry) as server:
        for language, text in BLOCK.findall(PAGE):
            if language == "sh":
                for line in text.splitlines():
                    last = typed(line, saved, server.url)
                    found.append(last)
            elif language == "text":
                found.append(Shown(text, last))
    return found


def test_the_page_saves_every_file_that_it_shows() -> None:
    shown = [text for language, text in BLOCK.findall(PAGE) if language not in ("sh", "text", "toml")]
    assert sorted(shown) == sorted(FILES.values())


@pytest.mark.landing
def test_every_command_ends_as_the_page_says(followed: list[Typed | Shown]) -> None:
    commands = [one for one in followed if isinstance(one, Typed)]
    assert len(commands) == 27
    assert [one for one in commands if one.code != (1 if one.line.endswith("|| true") else 0)] == []


def test_what_the_page_shows_is_what_comes_out(followed: list[Typed | Shown]) -> None:
    shown = [one for one in followed if isinstance(one, Shown)]
    assert len(shown) == 14
    for text, command in shown:
        for part in re.split(r"^…\n", text, flags=re.MULTILINE):
            assert part in command.printed, f"{command.line}\n{command.printed}"


def test_the_combiner_of_the_page_leaves_out_an_input_without_verdicts() -> None:
    names: dict[str, Any] = {"__name__": "weakest"}
    exec(FILES["weakest.py"], names)
    cells, yes, one = np.array([[0.5]]), np.array([[True]]), np.ones(1)
    inputs = {"a": jg.ScoreMatrix(cells, yes, yes, yes, one), "b": jg.ScoreMatrix(cells * 0, ~yes, ~yes, ~yes, one)}
    component = names["Weakest"]().combine(inputs, {})
    assert (component.value.tolist(), component.present.tolist()) == ([0.5], [True])


def test_the_entry_points_shown_are_those_of_the_package(saved: Path, followed: list[Typed | Shown]) -> None:
    (toml,) = (text for language, text in BLOCK.findall(PAGE) if language == "toml")
    assert toml in (saved / "letters" / "pyproject.toml").read_text(encoding="utf-8")


def test_a_function_gets_the_material_that_it_names(tmp_path: Path) -> None:
    folder = copied(
        tmp_path, "short.yaml", "sentences.Short, name: short, params: {most: 15}", "brief.brief, name: short"
    )
    score = "jurygraph score tasks.jsonl --config short.yaml --out run"
    assert typed(score, folder).code == 0
    short = {trace.response_id: trace.reward.components["short"] for trace in Run.open(folder / "run").traces()}
    assert short == {"parcel/kind": 1.0, "parcel/stiff": 1.0, "parcel/silent": 0.0}


FORMS = {"Binary": jg.Binary(), "Scale": jg.Scale(1, 10), "PartialCredit": jg.PartialCredit((1.0, 2.0))}


@pytest.mark.parametrize("form", FORMS)
def test_the_reply_shown_for_a_form_comes_to_the_score_beside_it(form: str) -> None:
    ((reply, score),) = re.findall(rf"^\| `jg\.{form}\(.*\)` \| `(.*)` \| ([\d.]+): ", PAGE, flags=re.MULTILINE)
    stated = FORMS[form].reply_model(compact=False).model_validate_json(reply)
    assert round(FORMS[form].measure(stated, Reply(text=reply), "item_1").score, 4) == float(score)


def test_a_reply_is_kept_for_the_same_address_unless_the_config_says_no(tmp_path: Path) -> None:
    folder = copied(tmp_path, "warm.yaml", "model: none", f"model: openai-compatible:{MODEL}#tiny")
    score = "jurygraph score tasks.jsonl --config warm.yaml --out"
    with run_server(warm_where_sorry) as server:
        config = folder / "warm.yaml"
        config.write_text(config.read_text(encoding="utf-8").replace(MODEL, server.url), encoding="utf-8")
        typed(f"{score} first", folder)
        again = typed(f"{score} second", folder)
        assert (server.count, "calls: 2 from the cache" in again.printed) == (2, True)
        with config.open("a", encoding="utf-8") as file:
            file.write("calls: {cache: false}\n")
        typed(f"{score} third", folder)
        assert server.count == 4
    assert "`calls: 2 from the cache`, but you changed the server" in PAGE


def test_a_server_without_log_probabilities_is_asked_for_none(tmp_path: Path) -> None:
    def refuses(body: dict[str, Any], number: int) -> Answer:
        return status(400) if "logprobs" in body else warm_where_sorry(body, number)

    folder = copied(tmp_path, "warm.yaml", "model: none", "calls: {parameters: {logprobs: false}, record: calls.jsonl}")
    model = f"--model openai-compatible:{MODEL}#tiny"
    with run_server(refuses) as server:
        assert typed(f"jurygraph score tasks.jsonl --config warm.yaml --out run {model}", folder, server.url).code == 0
        (folder / "warm.yaml").write_text(FILES["warm.yaml"], encoding="utf-8")
        refused = typed(f"jurygraph score tasks.jsonl --config warm.yaml --out refused {model}", folder, server.url)
    assert (refused.code, "of kind rejected" in refused.printed) == (3, True)
    assert "`calls: {parameters: {logprobs: false}}`" in PAGE


def test_a_recording_lies_where_the_command_was_typed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    copied(tmp_path, "warm.yaml", "model: none", "model: none\ncalls: {record: calls.jsonl}")
    score = f"jurygraph score ../tasks.jsonl --config ../warm.yaml --out run --model openai-compatible:{MODEL}#tiny"
    with run_server(warm_where_sorry) as server:
        assert typed(score, tmp_path / "elsewhere", server.url).code == 0
    assert (tmp_path / "elsewhere" / "calls.jsonl").is_file()


def test_a_quotation_that_is_made_up_is_lost_and_the_verdict_rests_on_the_others(tmp_path: Path) -> None:
    reply = {"reason": "so it is", "quotes": [QUOTE, "We feel for you."], "met": True, "probability": 0.9}
    folder = copied(tmp_path, "warm.yaml", "model: none\n", "")
    score = f"jurygraph score tasks.jsonl --config warm.yaml --out run --model openai-compatible:{MODEL}#tiny"
    with run_server(lambda body, number: reply_with(json.dumps({"item_1": reply}))) as server:
        typed(score, folder, server.url)
    shown = typed("jurygraph show run --response parcel/kind", folder).printed
    assert "so it is [lost: 'We feel for you.' (not in the response)]" in " ".join(shown.split())
    assert "`[lost: '…' (not in the response)]`" in PAGE


@pytest.mark.exhaustive
def test_the_tests_of_the_page_pass(saved: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_letters.py"]
    env = {**os.environ, "JURYGRAPH_CACHE": str(saved / "cache")}
    done = subprocess.run(command, cwd=saved, env=env, capture_output=True, text=True, check=False)
    assert "4 passed" in done.stdout, done.stdout


class Mistake(NamedTuple):
    """What somebody gets wrong: in a file of the page this stands for that; then what is scored says the message."""

    message: str
    file: str
    right: str
    wrong: str
    config: str
    tasks: str = "tasks.jsonl"


MISTAKES = [
    Mistake(
        "evaluator 'plain.plan': module 'plain' has no 'plan'; did you mean 'plain'?",
        "plain.yaml",
        "plain.plain",
        "plain.plan",
        "plain.yaml",
    ),
    Mistake(
        "unknown evaluator 'plane.plain'; name one as package.module.evaluator",
        "plain.yaml",
        "plain.plain",
        "plane.plain",
        "plain.yaml",
    ),
    Mistake(
        "evaluator 'email.plain': module 'email' has no 'plain'",
        "plain.yaml",
        "plain.plain",
        "email.plain",
        "plain.yaml",
    ),
    Mistake("a score lies in [0, 1], not at 7", "plain.py", "    text = ", "    return 7\n    text = ", "plain.yaml"),
    Mistake(
        "plain.yaml, line 1, key evaluators[0]: 'sentences.Short' needs material 'sentences', which no deriver gives; "
        "list one that does under `derivers`",
        "plain.yaml",
        "plain.plain",
        "sentences.Short",
        "plain.yaml",
    ),
    Mistake(
        "evaluator 'sentences.Short' with params ['least']: got an unexpected keyword argument 'least'; "
        "its params: most",
        "short.yaml",
        "most:",
        "least:",
        "short.yaml",
    ),
    Mistake(
        "reward: say how the components count, for instance {Short: 1.0}; there are ['Short', 'plain']",
        "short.yaml",
        "name: short, params: {most: 15}}\nreward: {plain: 1.0, short: 0.5}",
        "params: {most: 15}}",
        "short.yaml",
    ),
    Mistake(
        "evaluator 'sentences.Short' is abstract: subclass it and write `answer`",
        "sentences.py",
        "def answer",
        "def anwser",
        "short.yaml",
    ),
    Mistake(
        "prompt warm.md: it uses 'house' and does not state it; write `variables: [house]`",
        "warm.md",
        "variables: [house]\n",
        "",
        "warm.yaml",
    ),
    Mistake(
        "prompt warm.md: a section is headed 'The letter'; each is one of system, user, assistant, tool",
        "warm.md",
        "# The letter",
        "## The letter",
        "warm.yaml",
    ),
    Mistake(
        "prompt 'warm' shows no items; write `extends: items` in its front matter",
        "warm.md",
        "extends: items",
        "extends: judge",
        "warm.yaml",
    ),
    Mistake(
        "evaluator 'warm.Warm' is abstract: subclass it and write `prompt`",
        "warm.py",
        "    prompt = ",
        "    promt = ",
        "warm.yaml",
    ),
    Mistake(
        "expected `verdict` or `score` in the result, found ['promises', 'text']",
        "promises.py",
        '"verdict": jg.Verdict(score=len(with_day) / len(promises), reason=reason)',
        '"promises": with_day',
        "promises.yaml",
    ),
    Mistake(
        "evaluator 'kept' is a Runnable and takes no params: bind them to it instead",
        "promises.yaml",
        "promises.kept",
        "{use: promises.kept, params: {most: 3}}",
        "promises.yaml",
    ),
    Mistake(
        "material 'sentences' is missing: expected material 'sentences', got 'sentence'",
        "sentences.py",
        'Material(name="sentences"',
        'Material(name="sentence"',
        "short.yaml",
    ),
    Mistake(
        "deriver 'sentences.Sentences' gives 'sentences', which another source gives already; leave it out, or let it "
        "give another name",
        "short.yaml",
        "[sentences.Sentences]",
        "[{use: sentences.Sentences, name: first}, sentences.Sentences]",
        "short.yaml",
    ),
    Mistake(
        "'sentences.Sentences' is not an evaluator: ", "plain.yaml", "plain.plain", "sentences.Sentences", "plain.yaml"
    ),
    Mistake(
        "combiner 'weakest.Weakest' failed: ZeroDivisionError: division by zero; fix it, or use another one",
        "weakest.py",
        "        means = ",
        "        1 / 0\n        means = ",
        "weakest.yaml",
    ),
    Mistake(
        "combiner 'weakest.Weakest' failed: every array of a component has one number for each response",
        "weakest.py",
        "for value, has_value in means.values()], axis=0)",
        "for value, has_value in means.values()], axis=1)",
        "weakest.yaml",
    ),
    Mistake(
        "components.style.inputs.plain: task 'parcel' has no question or evaluator 'plain'; "
        "did you mean 'plain.plain'?",
        "weakest.yaml",
        "{verdicts_of: plain.plain}",
        "{verdicts_of: plain}",
        "weakest.yaml",
    ),
    Mistake(
        "unknown combiner 'weakest'; name one as package.module.combiner",
        "weakest.yaml",
        "weakest.Weakest",
        "weakest",
        "weakest.yaml",
    ),
]


def copied(tmp_path: Path, changed: str, right: str, wrong: str) -> Path:
    """A folder with the files of the page, of which one holds a mistake."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert FILES[changed].count(right) == 1
    (tmp_path / changed).write_text(FILES[changed].replace(right, wrong), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda one: one.message[:40])
def test_a_mistake_says_what_the_page_says(mistake: Mistake, tmp_path: Path) -> None:
    folder = copied(tmp_path, mistake.file, mistake.right, mistake.wrong)
    ended = typed(f"jurygraph score {mistake.tasks} --config {mistake.config} --out run", folder)
    assert ended.code in (1, 2, 3)
    assert mistake.message in ended.printed
    assert mistake.message in PAGE


def test_changed_code_is_refused_by_the_run_that_was_begun_with_the_old(tmp_path: Path) -> None:
    folder = copied(tmp_path, "plain.py", "STIFF = (", "STIFF = (")
    score = "jurygraph score tasks.jsonl --config plain.yaml --out plain-run"
    assert typed(score, folder).code == 0
    copied(tmp_path, "plain.py", '"utilize"', '"utilise"')
    refused = typed(score, folder)
    message = "plain-run: was started with other settings: evaluator plain.plain has version "
    assert (refused.code, message in refused.printed, message in PAGE) == (2, True, True)
    assert typed(score.replace("--out", "--branch plain-run --out NEW --out"), folder).code != 0
    branched = "jurygraph score tasks.jsonl --config plain.yaml --branch plain-run --out NEW"
    assert "--branch plain-run --out NEW" in PAGE
    assert typed(branched, folder).code == 0


PARAPHRASED = json.dumps(
    {"item_1": {"reason": "so it is", "quotes": ["We feel for you."], "met": True, "probability": 0.9}}
)


def score_with_replies(folder: Path, reply: str) -> Typed:
    """Score the letters with a model that always replies so."""
    folder = copied(folder, "warm.yaml", "model: none", f"model: openai-compatible:{MODEL}#tiny")
    with run_server(lambda body, number: reply_with(reply)) as server:
        config = folder / "warm.yaml"
        config.write_text(config.read_text(encoding="utf-8").replace(MODEL, server.url), encoding="utf-8")
        return typed("jurygraph score tasks.jsonl --config warm.yaml --out run", folder)


def test_a_reply_of_no_use_says_what_the_page_says(tmp_path: Path) -> None:
    message = "the reply is not valid JSON: "
    ended = score_with_replies(tmp_path, "Surely! It is warm.")
    assert (ended.code, message in ended.printed, message in PAGE) == (1, True, True)


def test_a_judge_that_paraphrases_is_told_at_the_end_of_a_run_as_the_page_says(tmp_path: Path) -> None:
    message = "the judge says met, and quotes 'We feel for you.' (not in the response)"
    ended = score_with_replies(tmp_path, PARAPHRASED)
    assert (ended.code, message in PAGE) == (0, True)
    assert "2 of 2 findings that need a quotation have none that is in the response" in ended.printed
    assert "if your judge paraphrases, write `preferred`" in ended.printed
    assert message in " ".join(typed("jurygraph show run --response parcel/kind", tmp_path).printed.split())


def test_a_variable_that_is_stated_and_not_given_says_what_the_page_says(tmp_path: Path) -> None:
    folder = copied(tmp_path, "warm.py", 'return {"house": self.house}', "return {}")
    with run_server(warm_where_sorry) as server:
        score = f"jurygraph score tasks.jsonl --config warm.yaml --out run --model openai-compatible:{MODEL}#tiny"
        ended = typed(score, folder, server.url)
    assert "'house' is undefined" in ended.printed
    assert "`'house' is undefined`" in PAGE


def test_two_functions_of_one_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    folder = copied(tmp_path, "plain.yaml", "[plain.plain]", "[plain.plain, {use: again.plain, name: again}]")
    shutil.copy(folder / "plain.py", folder / "again.py")
    ended = typed("jurygraph score tasks.jsonl --config plain.yaml --out run", folder)
    assert "say how the components count" in ended.printed
    (folder / "plain.yaml").write_text((folder / "plain.yaml").read_text() + "reward: {plain: 1, again: 1}\n")
    assert typed("jurygraph score tasks.jsonl --config plain.yaml --out run", folder).code == 0


def test_a_package_is_not_called_like_another_module(tmp_path: Path) -> None:
    message = "a module named 'email' exists already; name another folder"
    ended = typed("jurygraph init email --template evaluator", tmp_path)
    assert (ended.code, message in ended.printed, message in PAGE) == (2, True, True)
