"""`context`: the ready rubric for answers from retrieved passages."""

import re
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

import jurygraph as jg
from jurygraph import InputError
from jurygraph.explanation.terms import describe_unsupported
from jurygraph.judges.context import CONTEXT_ITEM_BY_NAME
from jurygraph.runs.run import Run
from jurygraph.schema import RecordedVerdict
from jurygraph.sources import TableColumns, read_tasks
from jurygraph.testing import ScriptedJudge
from jurygraph.views.verdict import find_words_by_question
from tests.command import run_command
from tests.rows import all_rows

PASSAGES = [
    {"text": "The tower is 330 metres high.", "source": "tower.md"},
    {"text": "It opened in the year 1889.", "source": "history.md"},
]
ANSWER = "The tower is 330 m high."


def judge(
    quotes: dict[str, list[str]],
    context: object = PASSAGES,
    requests: list[str] | None = None,
    answer: str = ANSWER,
    **settings: object,
) -> dict[str, RecordedVerdict]:
    """Return the verdicts of a judge that finds every item met, and gives these quotations."""
    keys = {"borne out": "faithful", "all of it": "answers", "have all": "sufficient"}
    answers = {
        key: {"met": True, "probability": 0.9, "reason": "so", "quotes": quotes[name]}
        for key, name in keys.items()
    }
    config = {"evaluators": [{"use": "context", **settings}], "model": "scripted"}
    task = jg.Task(id="t", query="How high is the tower?", context=context)
    scripted_judge = ScriptedJudge(answers)
    with jg.Jury.from_config(config, model=scripted_judge) as jury:
        (trace,) = jury.score(task, [jg.Response(id="r", text=answer)])
    if requests is not None:
        requests += [str(request.messages[-1].content) for request in scripted_judge.requests]
    return {verdict.subject: verdict for verdict in trace.verdicts}


def test_findings_quote_the_answer_and_the_context_with_their_sources() -> None:
    high = PASSAGES[0]["text"]
    verdicts = judge({"faithful": [ANSWER, high], "answers": [ANSWER], "sufficient": [high]})
    assert {verdict.score for verdict in verdicts.values()} == {0.9}
    assert [(item.source, item.quote, item.verified) for item in verdicts["faithful"].evidence] == [
        ("response", ANSWER, True),
        ("passage 1 (tower.md)", high, True),
    ]


def test_what_the_answer_takes_from_a_passage_word_for_word_is_evidence_from_the_passage() -> None:
    words, quotes = "330 metres high", ["330 metres high"]
    verdicts = judge(
        {"faithful": quotes, "answers": quotes, "sufficient": quotes}, answer=f"It is {words}."
    )
    sources = {
        name: [item.source for item in verdict.evidence] for name, verdict in verdicts.items()
    }
    assert sources == {
        "faithful": ["response", "passage 1 (tower.md)"],
        "answers": ["response"],
        "sufficient": ["passage 1 (tower.md)"],
    }


def test_a_finding_without_a_quotation_from_each_text_is_unsupported() -> None:
    verdicts = judge({"faithful": [ANSWER], "answers": [ANSWER], "sufficient": [ANSWER]})
    assert (verdicts["faithful"].score, verdicts["faithful"].unsupported) == (0.0, "worst-case")
    assert "does not quote context" in verdicts["faithful"].reason
    assert (verdicts["sufficient"].score, verdicts["answers"].score) == (0.0, 0.9)
    effect = describe_unsupported(verdicts["sufficient"])
    assert effect.endswith(
        "from the response, or from the context where it is about that, supports it"
    )


def test_a_quotation_that_is_too_weak_comes_with_what_one_needs() -> None:
    verdicts = judge({"faithful": [ANSWER, "330"], "answers": [ANSWER], "sufficient": ["330"]})
    for name in ("faithful", "sufficient"):
        effect = describe_unsupported(verdicts[name])
        assert (
            "; a quotation has eight letters or digits at least, or is a line, and cuts" in effect
        )


def test_the_weights_of_the_template_put_an_honest_refusal_above_an_invention() -> None:
    """Which comes with passages that would have been enough, and the refusal with others."""
    template = files("jurygraph.cli") / "templates" / "rag" / "jury.yaml"
    settings_of_template = yaml.safe_load(template.read_text(encoding="utf-8"))
    keys = ("borne out", "all of it", "have all")
    findings = {"It closed in 1921.": (0, 1, 1), "The passages do not say.": (1, 0, 0)}
    rewards = []
    for settings in ({"evaluators": ["context"]}, settings_of_template):
        for text, decisions in findings.items():
            quotes = [text, PASSAGES[0]["text"]]
            answers = {
                key: {"met": bool(met), "probability": met, "reason": "so", "quotes": quotes}
                for key, met in zip(keys, decisions, strict=True)
            }
            task = jg.Task(id="t", query="When did it close?", context=PASSAGES)
            config = {**settings, "model": "scripted"}
            with jg.Jury.from_config(config, model=ScriptedJudge(answers)) as jury:
                (trace,) = jury.score(task, [text])
            rewards.append(trace.reward.value)
    assert rewards == pytest.approx([2 / 3, 1 / 3, 0.33, 0.67])


def test_the_template_gives_an_answer_without_passages_what_its_readme_says() -> None:
    template = files("jurygraph.cli") / "templates" / "rag"
    settings = yaml.safe_load((template / "jury.yaml").read_text(encoding="utf-8"))
    answer = {"met": True, "probability": 1.0, "reason": "so", "quotes": [ANSWER]}
    config = {**settings, "model": "scripted"}
    with jg.Jury.from_config(config, model=ScriptedJudge({"all of it": answer})) as jury:
        (trace,) = jury.score(jg.Task(id="t", query="High?", context=[]), [ANSWER])
    assert (trace.reward.status, trace.reward.value) == ("ok", pytest.approx(0.33))
    assert "and gets 0.33 at most" in (template / "README.md").read_text(encoding="utf-8")


def test_a_question_in_other_words_is_the_only_new_one_and_leaves_the_others_as_they_are() -> None:
    words = "Every claim has all of it borne out."
    questions = {}
    for name, params in (("ready", {}), ("reworded", {"questions": {"faithful": words}})):
        config = {"evaluators": [{"use": "context", "params": params}], "model": "scripted"}
        with jg.Jury.from_config(config, model=ScriptedJudge({})) as jury:
            survey = jury.prepare(jg.Task(id="t", query="High?", context=PASSAGES)).survey
            questions[name] = {question.subject: question for question in survey.questions}
    ready, reworded = questions["ready"], questions["reworded"]
    assert ready["faithful"].params == {}
    assert reworded["faithful"].params == {"question": words}
    for name in ("answers", "sufficient"):
        assert reworded[name] == ready[name]
    requests: list[str] = []
    quotes = {name: [ANSWER] for name in ("faithful", "answers", "sufficient")}
    judge(quotes, requests=requests, params={"questions": {"faithful": words}})
    assert words in requests[0]
    assert CONTEXT_ITEM_BY_NAME["faithful"].text not in requests[0]
    assert CONTEXT_ITEM_BY_NAME["sufficient"].text in requests[0]


def test_a_comparison_names_the_questions_that_differ(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"id": "t", "query": "High?", "context": ["High."], "responses": [{"id": "r", "text": ""}]}\n'
        '{"id": "u", "query": "Low?", "context": null, "responses": [{"id": "s", "text": ""}]}\n'
    )
    for name, params in (("ready", "{}"), ("other", "{questions: {faithful: So it is.}}")):
        config = f"model: none\nevaluators: [{{use: context, params: {params}}}]\n"
        (tmp_path / f"{name}.yaml").write_text(config)
        run_command(
            "score", tmp_path / "t.jsonl", "--config", tmp_path / f"{name}.yaml", "--out", tmp_path / name
        )  # fmt: skip
    compared = run_command("compare", tmp_path / "ready", tmp_path / "other").out
    key = "evaluators.context.params.questions"
    assert re.search(rf'{key} +A +none\n +B +{{"faithful": "So it is."}}\n', compared)
    with Run.open(tmp_path / "other") as run:
        assert find_words_by_question(run, "t")["context/faithful"] == "So it is."


def test_without_context_it_abstains() -> None:
    verdicts = judge({name: [ANSWER] for name in ("faithful", "answers", "sufficient")}, None)
    assert {verdict.status for verdict in verdicts.values()} == {"abstained"}


def test_passages_come_from_a_column(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text(
        'q,a,c\nHigh?,330 m,"[""One."", {""text"": ""Two."", ""source"": ""b""}]"\nOld?,1889,[sic] Old.\n'
    )
    columns = TableColumns(prompt="q", response=("a",), context="c")
    contexts = [task.context for task, _ in read_tasks(table, columns=columns)]
    assert [[(p.text, p.source) for p in context or ()] for context in contexts] == [
        [("One.", None), ("Two.", "b")],
        [("[sic] Old.", None)],
    ]


@all_rows(
    ("cell", "expected"),
    [
        ("['a', \"it's\"]", ["a", "it's"]),
        ("[{'text': 'a', 'source': None}]", ["a"]),
        ('[{"page_content": "a", "metadata": {"source": "b.md"}, "type": "Document"}]', ["a"]),
        (
            '[{"page_content": "a", "metadata": {"source": 5}}, {"page_content": "b", "metadata": null}]',
            ["a", "b"],
        ),
        ("['a' 'b']", "column c: is not valid JSON (.*; write a list of passages as json.dumps"),
        ('["The AquaPro', "column c: is not valid JSON (EOF .*; write a list of passages"),
        ('[{"txt": "a"}]', r"column c\[0\].txt: unknown"),
        ("[1] The tower.", ["[1] The tower."]),
        ('["Foo"](a.html) as he said', ['["Foo"](a.html) as he said']),
        (r"['\ud800']", "column c: is not valid JSON (.*; write a list of passages"),
        (
            "nan",
            "is nan, .*; leave the cell of a response empty, fill another, or leave the row out",
        ),
    ],
)
def test_a_cell_has_a_list_as_programs_print_it(
    cell: str, expected: list[str] | str, tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    quoted = cell.replace('"', '""')
    table.write_text(f'q,a,c\nHigh?,330 m,"{quoted}"\n')
    columns = TableColumns(prompt="q", response=("a",), context="c")
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected.replace("JSON (", r"JSON \(")):
            read_tasks(table, columns=columns)
    else:
        ((task, _),) = read_tasks(table, columns=columns)
        assert [passage.text for passage in task.context or ()] == expected


def test_an_empty_cell_is_refused_and_an_empty_list_is_that_nothing_was_found(
    tmp_path: Path,
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("q,a,c\nHigh?,330 m,\n")
    columns = TableColumns(prompt="q", response=("a",), context="c")
    with pytest.raises(
        InputError, match=r"column c: is empty; fill it, .*; write \[\] where nothing was found"
    ):
        read_tasks(table, columns=columns)
    table.write_text("q,a,c\nHigh?,330 m,[]\n")
    lines = tmp_path / "t.jsonl"
    lines.write_text('{"q": "High?", "a": "330 m", "c": []}\n')
    for path in (table, lines):
        ((task, _),) = read_tasks(path, columns=columns)
        assert task.context == ()


def test_where_nothing_was_found_the_answer_alone_is_judged() -> None:
    quotes = {name: [ANSWER] for name in ("faithful", "answers", "sufficient")}
    verdicts = judge(quotes, [])
    assert {name: verdict.status for name, verdict in verdicts.items()} == {
        "answers": "ok",
        "faithful": "abstained",
        "sufficient": "abstained",
    }
    assert verdicts["faithful"].reason == "the task has no passages in its context"
    verdicts = judge(quotes, [], if_missing="not_applicable")
    assert [verdicts[name].status for name in ("answers", "faithful", "sufficient")] == [
        "ok",
        "not_applicable",
        "not_applicable",
    ]
    verdicts = judge(quotes, None, if_missing="not_applicable")
    assert {verdict.status for verdict in verdicts.values()} == {"not_applicable"}


def test_a_summary_says_that_passages_are_missing(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"id": "t", "query": "High?", "responses": [{"id": "r", "text": "330 m"}]}\n'
    )
    (tmp_path / "jury.yaml").write_text(
        "model: openai-compatible:http://127.0.0.1:9/v1#unasked\nevaluators: [context]\n"
    )
    arguments = ("--config", tmp_path / "jury.yaml", "--out", tmp_path / "run")
    scored = run_command("score", tmp_path / "t.jsonl", *arguments)
    assert "context: abstained on 1 of 1 tasks (first r: " in scored.out
    assert "(`if_missing: not_applicable`), or take context out" in scored.out


@all_rows(
    ("faithful", "sufficient", "problem"),
    [
        (
            [ANSWER],
            [ANSWER],
            "item_2: met, and does not quote context; item_3: met, and does not quote context; "
            "quote from a passage of the context letter",
        ),
        (
            [PASSAGES[0]["text"]],
            [ANSWER],
            "item_2: met, and does not quote response; item_3: met, and does not quote context; "
            "quote from the response and from a passage of the context letter",
        ),
        (
            [PASSAGES[0]["text"]],
            [PASSAGES[0]["text"]],
            "item_2: met, and does not quote response; quote from the response letter",
        ),
    ],
)
def test_a_repair_asks_for_a_quotation_of_the_text_that_lacks_one(
    faithful: list[str], sufficient: list[str], problem: str
) -> None:
    requests: list[str] = []
    quotes = {"faithful": faithful, "answers": [ANSWER], "sufficient": sufficient}
    judge(quotes, requests=requests)
    assert any(problem in request for request in requests)


@all_rows(
    ("evaluators", "is_told"),
    [
        ("criteria, params: {criteria: {a: It is so.}}", True),
        ("criteria, params: {criteria: {a: It is so.}}, tools: [read]", False),
        ("context", False),
        ("maths.format", False),
        ("own.Own", False),
    ],
)
def test_a_context_that_no_model_is_shown_is_told_before_the_run(
    evaluators: str, is_told: bool, tmp_path: Path
) -> None:
    (tmp_path / "t.jsonl").write_text(
        '{"id": "t", "query": "High?", "context": ["High."], "responses": [{"id": "r", "text": ""}]}\n'
        '{"id": "u", "query": "Low?", "context": null, "responses": [{"id": "s", "text": ""}]}\n'
    )
    (tmp_path / "own.py").write_text(
        "import jurygraph as jg\n\n\nclass Own(jg.JudgeEvaluator):\n    prompt = jg.read_prompt('x.md')\n"
        "    def item(self, inputs):\n        return jg.Item('x', jg.Binary())\n".replace(
            "'x.md'", repr(str(tmp_path / "x.md"))
        )
    )
    (tmp_path / "x.md").write_text("---\nid: x\npurpose: p\nextends: items\n---\n## user\nRead.\n")
    (tmp_path / "jury.yaml").write_text(
        f"model: openai-compatible:http://127.0.0.1:9/v1#unasked\nevaluators: [{{use: {evaluators}}}]\n"
    )
    arguments = ("--config", tmp_path / "jury.yaml", "--out", tmp_path / evaluators[-7:])
    note = (
        "criteria: 1 task with a context, which no model is shown; to judge by it, take `context`"
    )
    for more in (["--dry-run"], []):
        printed = run_command("score", tmp_path / "t.jsonl", *arguments, *more).err
        assert printed.count("which no model is shown") == printed.count(note) == is_told, printed
        assert not printed.startswith("error: ")
        assert "0 responses to 0 groups" not in printed  # which is of tables
