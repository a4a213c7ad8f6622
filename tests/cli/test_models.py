"""`jurygraph score` with a model: the bill that it prints, exit codes of limits and refusals, and what to do then."""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from jurygraph.sources.config import read_config
from tests.cli.conftest import Command, CommandResult
from tests.models.judge_scripts import config, judge_reply, requested_items, rubric
from tests.models.server import (
    TOKENS_IN,
    TOKENS_OUT,
    Answer,
    Script,
    Server,
    nobody,
    reply_with,
    run_server,
    status,
)
from tests.models.test_replies import CASES, PROSE, answer
from tests.rows import all_rows

CALLS = 6
"""What the project needs: two for each of three responses, as four criteria fit into one."""

PRICES = {"tiny": {"input": 2.0, "output": 10.0}}
BILL = (TOKENS_IN * 2.0 + TOKENS_OUT * 10.0) / 1e6
KEY = "sk-canary-0123456789abcdef"
TEXTS = {"ann": "Dear Ann,", "bob": "Dear Bob, hello", "cas": "Dear Cas, hello, and so on"}


def judge(body: dict[str, Any], number: int) -> Answer:
    return judge_reply(body)


@pytest.fixture
def server() -> Iterator[Server]:
    with run_server(judge) as running:
        yield running


class Project:
    """A project in a folder, and the command on it."""

    def __init__(self, folder: Path, run: Command, texts: Mapping[str, str] = TEXTS) -> None:
        self.folder, self._run = folder, run
        lines = []
        for name, text in texts.items():
            task = rubric(
                "kind", "short", "clear", "right", "new", name=name, query=f"Write to {name}."
            )
            lines.append(
                {**task.model_dump(mode="json"), "responses": [{"id": f"{name}/a", "text": text}]}
            )
        (folder / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    def write_config(self, url: str, **calls: Any) -> None:
        settings = {**config(url, **{"cache": False, **calls}), "failure": {"max_error_rate": 1.0}}
        (self.folder / "jury.yaml").write_text(json.dumps(settings))

    def score(self, name: str, *more: object) -> CommandResult:
        return self._run("score", self.folder / "tasks.jsonl", "--out", self.folder / name, *more)


@pytest.fixture
def project(tmp_path: Path, run: Command) -> Project:
    return Project(tmp_path, run)


def cost_lines(ended: CommandResult) -> list[str]:
    assert ended.code == 0, ended.err
    return [line for line in ended.out.splitlines() if line.startswith(("calls", "requests: "))]


def test_a_misquoting_judge_is_told_how_long_a_quotation_is_and_how_it_is_called_anew(
    project: Project,
) -> None:
    def misquote(body: dict[str, Any], number: int) -> Answer:
        finding = {"reason": "so", "quotes": ["Dear"], "met": True, "probability": 0.75}
        return reply_with(json.dumps(dict.fromkeys(requested_items(body), finding)))

    with run_server(misquote) as server:
        project.write_config(server.url, cache=True)
        first, again = project.score("run"), project.score("again")
        anew = project.score("anew", "--set", "calls.cache=false")
    remedy = "to call a changed judge: add `--set calls.cache=false` and name another --out\n"
    assert "eight letters, or a whole line" in first.err
    assert [remedy in ended.err for ended in (first, again, anew)] == [False, True, False]


def test_a_judge_of_several_that_is_down_fails_rewards_by_a_limit_that_is_named(
    project: Project, run: Command
) -> None:
    def answer(body: dict[str, Any], number: int) -> Answer:
        return status(400) if body["model"] == "down" else judge_reply(body)

    with run_server(answer) as server:
        names = ("mild", "fair", "down")
        content = {
            "models": {name: f"openai-compatible:{server.url}#{name}" for name in names},
            "evaluators": [{"use": "criteria", "judges": list(names), "fold": "median"}],
            "failure": {"max_error_rate": 1.0},
        }
        (project.folder / "jury.yaml").write_text(json.dumps(content))
        ended = project.score("run")
    assert ended.code == 1
    (advice,) = [line for line in ended.err.splitlines() if "fold=majority" in line]
    assert "leaves less of the weight judged than failure.min_coverage, 0.8; lower it" in advice
    command = shlex.split(advice.partition(":  jurygraph ")[2])
    assert run(*command).code == 0
    explained = run("explain", project.folder / "run", "--response", "ann/a").out
    assert "(failure.min_coverage)" in explained
    assert "cannot change the reward" not in explained


def test_score_says_how_many_votes_had_no_majority_and_count_as_the_worst_case(
    project: Project,
) -> None:
    def answer(body: dict[str, Any], number: int) -> Answer:
        finding = {"reason": "so", "quotes": [], "met": False, "probability": 0.25}
        unquoted = finding | {"met": True, "probability": 0.75}
        found = finding if body["model"] == "strict" else unquoted
        return reply_with(json.dumps(dict.fromkeys(requested_items(body), found)))

    with run_server(answer) as server:
        names = ("mild", "strict")
        jury = {"use": "criteria", "judges": list(names)}
        content = {
            "models": {name: f"openai-compatible:{server.url}#{name}" for name in names},
            "evaluators": [jury],
            "safety": {"evidence": "off"},
        }
        for fold, lines in (("majority", 1), ("mean", 0)):
            jury["fold"] = fold
            (project.folder / "jury.yaml").write_text(json.dumps(content))
            ended = project.score(fold)
            told = "Judges voted on 15 questions: 15 had no majority (15 count as the worst case)\n"
            assert ended.err.count(told) == ended.err.count("Judges voted") == lines, ended.err
            assert ended.err.lower().count("the judges answered 15 of 15 questions") == 1


def test_a_run_without_any_reply_is_made_anew_by_a_mended_config_and_no_other_is(
    project: Project, server: Server
) -> None:
    def unknown(body: dict[str, Any], number: int) -> Answer:
        return status(404)

    with run_server(unknown) as wrong:
        project.write_config(wrong.url)
        assert project.score("run").code != 0
    project.write_config(server.url)
    dry = project.score("run", "--dry-run")
    assert (dry.code, server.count) == (0, 0), dry.err
    mended = project.score("run")
    assert (mended.code, server.count) == (0, CALLS), mended.err
    project.write_config(server.url, max_tokens=500)
    refused = project.score("run")
    assert (refused.code, server.count) == (2, CALLS)
    assert "was started with other settings" in refused.err


def test_the_bill_stands_below_the_result_and_this_commands_requests_below_it(
    project: Project, server: Server
):
    project.write_config(server.url, prices=PRICES)
    cost = f"${CALLS * BILL:.4f}"
    calls = f"calls of tiny: {CALLS} answered by the model ({cost})"
    assert cost_lines(project.score("run")) == [
        calls,
        f"requests: {CALLS} by this command (at most {cost})",
    ]
    assert cost_lines(project.score("run")) == [calls, "requests: none by this command"]
    printed = json.loads(project.score("run", "--json").out)
    assert printed["calls"]["sent"] == {
        "number": CALLS,
        "cost": pytest.approx(CALLS * BILL),
        "unpriced": 0,
    }
    assert printed["requests"] == {"number": 0, "cost": 0.0, "unpriced": 0}


def test_a_dry_run_counts_the_requests_that_are_answered_without_being_sent(
    project: Project, server: Server
):
    project.write_config(server.url, concurrency=1)
    project.score("run", "--max-calls", 3)
    estimate = json.loads(project.score("run", "--dry-run", "--json").out)["model"]
    assert (estimate["expected"]["calls"], estimate["from_cache"], estimate["from_run"]) == (
        CALLS - 3,
        0,
        1,
    )
    assert (
        "\nanswered without a request: 0 from the cache, 1 from recorded calls\n"
        in project.score("run", "--dry-run").out
    )
    assert server.count == 3


KEPT = "tasks); run the same command again"
MENDED = f"{KEPT} once that is mended; another model needs another --out"
UNUSABLE = "such as 'Certainly.'; set calls.form (native or instructed), raise calls.max_tokens, or name another model"
ENDS: dict[str, tuple[Script, tuple[str, ...], int, list[str]]] = {
    "calls": (
        judge,
        ("--max-calls", "3"),
        4,
        [
            "the limit of 3 calls is reached (3 ended, 0 in flight); raise `max_calls` (--max-calls) to go on",
            KEPT,
        ],
    ),
    "cost": (
        judge,
        ("--max-cost", "0.1"),
        4,
        ["might be passed", "raise `max_cost` (--max-cost) to go on"],
    ),
    "wrong key": (
        lambda body, number: status(401) if number > 3 else judge(body, number),
        (),
        3,
        ["does not accept the key for model 'tiny': check JURYGRAPH_API_KEY; ", MENDED],
    ),
    "wrong model": (
        lambda body, number: status(404) if number > 3 else judge(body, number),
        (),
        3,
        ["does not offer model 'tiny' to this key: check the name and JURYGRAPH_API_KEY; ", MENDED],
    ),
    "server away": (
        lambda body, number: status(503) if number > 2 else judge(body, number),
        (),
        3,
        [
            "the model server of 'tiny' has not answered for",
            "finished groups are kept (",
            f"{KEPT} to continue",
        ],
    ),
    "some replies in no form": (
        lambda body, number: reply_with("Certainly."),
        ("--limit", "2"),
        1,
        [UNUSABLE],
    ),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_run_that_ends_early_has_its_exit_code_and_says_how_to_go_on(
    end: str, project: Project, monkeypatch: pytest.MonkeyPatch
):
    script, options, code, messages = ENDS[end]
    monkeypatch.setenv("JURYGRAPH_API_KEY", KEY)
    with run_server(script) as server:
        prices = {"tiny": {"input": 0.001, "output": 100.0}}
        project.write_config(
            server.url, concurrency=1, prices=prices, outage={"after": 1, "wait": 0.01}
        )
        ended = project.score("run", *options)
    assert ended.code == code, ended.err
    assert [message for message in messages if message not in ended.err] == []
    assert (ended.out == "", KEY in ended.err) == (code > 1, False)
    assert (project.folder / "run").exists()


def test_a_run_without_responses_has_every_label_as_a_column(tmp_path: Path, run: Command) -> None:
    project = Project(tmp_path, run, {"1": "Text."})
    project.write_config("http://127.0.0.1:9/v1")
    project.score("run", "--max-calls", 0)
    shown = run("show", project.folder / "run", "--columns", "label.step")
    assert (shown.code, "label.step" in shown.out) == (0, True), shown.err
    assert "no response matches" in shown.err


def test_twenty_replies_in_no_form_end_a_run_and_leave_nothing_behind(
    tmp_path: Path, run: Command
) -> None:
    project = Project(tmp_path, run, {str(number): f"Text {number}." for number in range(12)})
    with run_server(lambda body, number: reply_with("Certainly.")) as server:
        project.write_config(server.url)
        ended = project.score("run")
    assert (ended.code, ended.out, UNUSABLE in ended.err) == (3, "", True)
    assert not (project.folder / "run").exists()


@all_rows(
    "name, code, message",
    [
        ("gemini-list", 3, "does not accept the key for model 'tiny': check JURYGRAPH_API_KEY"),
        (
            "logprobs-400",
            3,
            "in the config; write `calls: {parameters: {logprobs: false}}` in the config; nothing was scored",
        ),
        (
            "system-role",
            3,
            "in the config; write `calls: {system: joined}` in the config; nothing was scored",
        ),
        ("chatty", 3, "; write `calls: {reply: one-object}` in the config, or set calls.form"),
        (
            "reasoning-only",
            3,
            "`reasoning_content` has some; the server's reasoning parser took all of it for a thought",
        ),
        ("tool-call", 3, "the model called a tool (`tool_calls`) where text is expected"),
        ("cut-prompt", 1, "what is judged once their cause is mended, to ask anew for the 60 that"),
    ],
)
def test_a_run_says_what_its_server_sends(
    tmp_path_factory: pytest.TempPathFactory, run: Command, name: str, code: int, message: str
) -> None:
    text = PROSE * 600 if name == "cut-prompt" else "Text"
    project = Project(
        tmp_path_factory.mktemp(name),
        run,
        {str(number): f"{text} {number}." for number in range(12)},
    )
    with run_server(lambda body, number: answer(CASES[name])) as server:
        project.write_config(server.url, concurrency=4)
        ended = project.score("run")
    assert (ended.code, "may succeed now" in ended.err) == (code, False), ended.err
    assert message in " ".join(ended.err.split()), ended.err
    assert server.count <= (4 if name == "gemini-list" else 60)


def test_a_key_that_is_not_set_is_reported_as_such(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("JURYGRAPH_API_KEY", raising=False)
    with run_server(lambda body, number: status(401)) as server:
        project.write_config(server.url, concurrency=1)
        error = project.score("run").err
    # what is missing comes first, and nothing is said to be kept where nothing is finished
    missing = (
        "does not accept the key for model 'tiny': check JURYGRAPH_API_KEY, which is not set; "
    )
    assert error.partition(missing)[0].count(";") == 0
    assert missing in error
    assert "are kept" not in error
    assert server.count == 1


@pytest.mark.heavy
# litellm's
@pytest.mark.filterwarnings(
    "ignore:.*ReadOnly.*:UserWarning", "ignore:Pydantic serializer.*:UserWarning"
)
def test_a_refused_key_of_another_provider_is_named_by_its_variable(
    project: Project, monkeypatch: pytest.MonkeyPatch
):
    with run_server(lambda body, number: status(401)) as server:
        project.write_config(server.url)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ended = project.score("run", "--model", "openai/tiny")
    assert (ended.code, KEY in ended.err) == (3, False)
    assert "does not accept the key for model 'openai/tiny': check OPENAI_API_KEY; " in ended.err


NO_LIMIT = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."


class TestFailures:
    """Failures are reported with their reason and the command that repeats them."""

    def test_the_reason_for_failed_verdicts_is_printed_every_time(self, project: Project):
        with run_server(
            lambda body, number: status(400, body={"error": {"message": NO_LIMIT}})
        ) as server:
            project.write_config(server.url, attempts=1)
            ended = [project.score("run"), project.score("run")]
        failure = (
            f"rejected (criteria 15), for example: {server.url}: 400: {NO_LIMIT}; "
            "try calls.parameters: {max_tokens: null, max_completion_tokens: 1024} in the config"
        )
        assert "is complete; only failures are left to repeat" in ended[1].err
        assert (
            f"every request to the model failed alike: {server.url}: 400: {NO_LIMIT}"
            in ended[0].err
        )
        for one in ended:
            assert "may succeed now" not in one.err
            assert one.err.count("failed verdicts: ") == 1
            assert f"failed verdicts: 15 of kind {failure}\n" in one.err

    def test_a_server_that_cannot_be_reached_is_named(self, project: Project):
        with nobody() as url:
            project.write_config(url, attempts=1)
            ended = project.score("run")
        assert (
            f"failed verdicts: 15 of kind connection (criteria 15), for example: {url}: "
            in ended.err
        )
        assert "to repeat the 15 failures that may succeed now:  jurygraph score " in ended.err

    def test_the_retry_command_repeats_the_failed_verdicts_alone(
        self, project: Project, run: Command
    ):
        mended = False

        def script(body: dict[str, Any], number: int) -> Answer:
            return (
                judge(body, number)
                if mended or "to ann." not in body["messages"][1]["content"]
                else status(400)
            )

        with run_server(script) as server:
            project.write_config(server.url)
            ended = project.score("a run", "--limit", 2)
            lead = "once what they name is changed, to repeat the 5 failures:  "
            command = ended.err.partition(lead)[2].splitlines()[0]
            assert "may succeed now" not in ended.err
            assert (
                json.loads(project.score("a run", "--limit", 2, "--json").out)["retry_command"]
                == command
            )
            before, mended = server.count, True
            repeated = run(*shlex.split(command)[1:])
            assert (repeated.code, server.count - before) == (0, 2), repeated.err
        assert "verdicts: 5 reused" in repeated.err

    def test_the_command_after_unusable_replies_asks_again_and_takes_the_others_from_the_cache(
        self, project: Project, run: Command
    ):
        mended = False

        def script(body: dict[str, Any], number: int) -> Answer:
            is_wrong = not mended and "to ann." in body["messages"][1]["content"]
            return reply_with("All are met.") if is_wrong else judge(body, number)

        with run_server(script) as server:
            project.write_config(server.url, cache=True)
            assert "could be used" not in project.score("run").err
            ended = project.score("again")
            (line,) = (line for line in ended.err.splitlines() if "could not be used" in line)
            problem, _, command = line.partition("; to ask for these again: jurygraph ")
            assert "4 of 8 replies of the model could not be used: " in problem
            assert problem.endswith("; such as 'All are met.'")
            assert "--branch" not in command
            mended = True
            before = server.count
            repeated = run(*shlex.split(command))
            assert (repeated.code, server.count - before) == (0, 2), repeated.err

    def test_failures_caused_by_a_response_have_no_retry_command(self, project: Project):
        with run_server(lambda body, number: reply_with("a lot", finish="length")) as server:
            project.write_config(server.url)
            ended = project.score("run", "--json")
        assert "failed verdicts: 15 of kind truncated" in ended.err
        assert "to repeat" not in ended.err
        assert json.loads(ended.out)["retry_command"] is None


def test_a_model_may_be_named_as_in_models_and_one_that_judges_nothing_is_a_note(
    project: Project, server: Server
) -> None:
    settings = {**config(server.url), "model": "none"}
    model = config(server.url)["model"]

    def score_with(models: Mapping[str, Any], *options: str) -> CommandResult:
        (project.folder / "jury.yaml").write_text(json.dumps({**settings, "models": models}))
        return project.score("run", "--model", "strong", *options)

    spare = {"strong": model, "spare": f"{model}-2"}
    dry = score_with(spare, "--dry-run")
    ended = score_with(spare)
    assert (ended.code, server.count) == (0, CALLS), ended.err
    assert "models." not in ended.err
    notes = [line for line in dry.err.splitlines() if line.startswith("models.")]
    assert notes == ["models.spare: is a judge of no evaluator; to ask it, list it in `judges`"]
    jury = {"use": "criteria", "params": {"criteria": {"good": "It is good."}}, "fold": "majority"}
    for names, notes in ((["strong", "spare"], 1), (["strong", "spare", "third"], 0)):
        models = {name: f"{model}-{name}" for name in names}
        evaluators = [{**jury, "judges": names}]
        (project.folder / "jury.yaml").write_text(
            json.dumps({"models": models, "evaluators": evaluators})
        )
        dry = project.score("jury", "--dry-run")
        assert dry.err.count("criteria: 2 judges can tie, and a tie counts as") == notes, dry.err
    for samples, high, reduce, notes in (
        (3, 7, "majority", 1),
        (3, 7, "mean", 0),
        (1, 7, "majority", 0),
        (3, 4, "majority", 0),
    ):
        stars = {"text": "How good it is.", "scale": [1, high]}
        params = {"dimensions": {"stars": stars}, "samples": samples}
        reviewer_jury = {
            "model": model,
            "evaluators": [{"use": "zero-shot", "params": params}],
            "panel": {"reduce": reduce},
            "task_defaults": {"reviewers": ["ann"]},
        }
        (project.folder / "jury.yaml").write_text(json.dumps(reviewer_jury))
        dry = project.score("stars", "--dry-run")
        assert dry.err.count("zero-shot: samples on a scale of many steps often") == notes, dry.err
    # `none` is no model, whatever is called so.
    (project.folder / "jury.yaml").write_text(json.dumps({**settings, "models": {"none": model}}))
    assert read_config(project.folder / "jury.yaml").judges == ()
    refused = score_with({"strong": {"model": model, "calls": {"timeout": 3}}})
    assert refused.code == 2
    assert f"is models.strong, whose `calls` are not those of all models; write {model}" in (
        refused.err
    )
