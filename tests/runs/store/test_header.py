"""The first record of a run, and its differences from the current inputs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import TraceMismatch
from jurygraph.runs.store.header import (
    ModelIdentity,
    RunExtent,
    RunHeader,
    RunOrigin,
    changes,
    differences,
    draft_header_record,
    format_value,
    model_settings,
    read_run_header,
    sends_same_requests,
)
from jurygraph.runs.store.ledger import MAX_TEXTS_PER_RECORD, Ledger, RecordDraft
from jurygraph.runs.store.packing import ERASED_PLACEHOLDER
from jurygraph.schema import EvaluatorRecord
from jurygraph.sources import FileDigest, TableColumns, parse_config_mapping
from tests.rows import all_rows

MODEL = ModelIdentity(provider="p", endpoint="http://one.example", model="m", form="native")
FILES = {
    name: FileDigest(name=f"{name}.jsonl", sha256=name[0] * 64) for name in ("tasks", "responses")
}


def header(config: Mapping[str, Any] | None = None, **fields: Any) -> RunHeader:
    settings = {
        "evaluators": ["criteria"],
        "model": "openai-compatible:http://here.example#m",
        **(config or {}),
    }
    seats = {"criteria": EvaluatorRecord(version="1", audience="criterion")}
    return RunHeader(
        **{
            "config": parse_config_mapping(settings),
            "evaluators": seats,
            "model": MODEL,
            **FILES,
            **fields,
        }
    )


def origin_of(run: str, folder: str) -> RunOrigin:
    return RunOrigin(run=run, folder=folder, records=1, head="00")


def test_equal_headers_have_no_differences() -> None:
    assert list(differences(header(), header())) == []


TASKS = FileDigest(name="new.jsonl", sha256="9" * 64)


@all_rows(
    ("fields", "sentence"),
    [
        (
            {"tasks": TASKS},
            f"the tasks file is tasks.jsonl ({'t' * 12}) in the run and new.jsonl ({'9' * 12}) here",
        ),
        (
            {"responses": None},
            f"the responses file is responses.jsonl ({'r' * 12}) in the run and none here",
        ),
        (
            {"profiles": TASKS},
            f"the profiles file is none in the run and new.jsonl ({'9' * 12}) here",
        ),
        (
            {"edges": TASKS},
            f"the file of reviewed graphs is none in the run and new.jsonl ({'9' * 12}) here",
        ),
        ({"domain": "law"}, "the domain of the annotator is None in the run and law here"),
        (
            {"model": MODEL.model_copy(update={"endpoint": "http://two.example"})},
            "the model behind openai-compatible:http://here.example#m has the endpoint "
            '"http://one.example" in the run and "http://two.example" here',
        ),
        (
            {"evaluators": {"criteria": EvaluatorRecord(version="2", audience="criterion")}},
            'evaluator criteria has version "1" in the run and "2" here',
        ),
        (
            {"derivers": {"extract": "1"}},
            'deriver extract has version none in the run and "1" here',
        ),
        (
            {
                "evaluators": {
                    "criteria": EvaluatorRecord(
                        version="1", audience="criterion", depends_on="a history"
                    )
                }
            },
            "additional input of evaluator criteria, such as a history, differs from that of the run",
        ),
        (
            {"branch": origin_of("r1", "../first")},
            "the run was branched from no other, and this one would be branched from ../first",
        ),
    ],
)
def test_each_difference_is_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    assert list(differences(header(), header(**fields))) == [sentence]


def test_another_column_of_a_table_is_a_difference() -> None:
    there, here = (
        header(columns=TableColumns(prompt="question", response=(name,)))
        for name in ("answer", "split")
    )
    assert list(differences(there, here)) == [
        'the response column is ["answer"] in the run and ["split"] here'
    ]


def test_lists_of_different_lengths_are_shown_from_where_they_differ() -> None:
    (there, here) = (
        header({"evaluators": [{"use": "criteria", "tools": tools}], "model": "none"})
        for tools in (["search"], ["search", "read"])
    )
    (sentence,) = differences(there, here)
    assert sentence.startswith(
        'config evaluators[0].tools[1] is none in the run and {"use": "read"'
    )


def test_of_judges_the_lists_are_shown_since_the_one_that_left_has_no_counterpart() -> None:
    models = {name: f"openai:{name}" for name in "abc"}
    there, here = (
        header({"models": models, "evaluators": [{"use": "criteria", "judges": judges}]})
        for judges in (["a", "b", "c"], ["a", "c"])
    )
    assert next(differences(there, here)) == (
        'config evaluators[0].judges is ["a", "b", "c"] in the run and ["a", "c"] here'
    )


def test_only_settings_that_affect_verdicts_or_rewards_are_differences() -> None:
    here = {"calls": {"timeout": 7, "concurrency": 3, "attempts": 9, "cache": False, "deadline": 9}}
    assert list(differences(header(), header(here))) == []
    prices = {"calls": {"prices": {"tiny": {"input": 1.0, "output": 2.0}}}}
    assert list(differences(header(), header(prices))) == []
    model = "openai-compatible:http://here.example#m"
    named, patient = (
        {"models": {"mini": {"model": model, "calls": {"timeout": time}}}} for time in (5, 7)
    )
    assert list(differences(header(named), header(patient))) == []
    assert list(differences(header(), header({"failure": {"min_coverage": 0.5}}))) == [
        "config failure.min_coverage is 0.8 in the run and 0.5 here"
    ]


def test_the_models_of_a_run_are_its_model_and_those_that_the_config_names() -> None:
    mini = MODEL.model_copy(update={"model": "mini"})
    assert header(models={"mini": mini}).model_identities == [MODEL, mini]
    assert header(model=None, models={"mini": mini}).model_identities == [mini]


def test_models_are_compared_only_if_both_are_known_and_the_settings_equal() -> None:
    other = MODEL.model_copy(update={"endpoint": "http://two.example"})
    assert list(differences(header(model=None), header(model=other))) == []
    (only,) = differences(header(), header({"calls": {"max_tokens": 77}}, model=other))
    assert only.startswith("config calls.max_tokens is ")


def test_a_combiner_used_by_one_run_only_is_no_difference() -> None:
    there = header(combiners={"mean": "1", "gear": "1"})
    assert list(differences(there, header(combiners={"mean": "1", "flat": "1"}))) == []
    assert list(differences(there, header(combiners={"mean": "2"}))) == [
        'combiner mean has version "1" in the run and "2" here'
    ]


def test_an_erased_digest_agrees_with_any_file() -> None:
    erased = header(tasks=FileDigest(name="tasks.jsonl", sha256=ERASED_PLACEHOLDER))
    assert list(differences(erased, header(tasks=TASKS))) == []


def test_a_difference_in_a_list_is_named_with_its_index() -> None:
    safe, unsafe = (
        header({"evaluators": ["criteria"], "safety": {"gates": ["empty-response", gate]}})
        for gate in ("punctuation-only", "bare-opener")
    )
    sentence = 'config safety.gates[1] is "punctuation-only" in the run and "bare-opener" here'
    assert list(differences(safe, unsafe)) == [sentence]


def test_gates_do_not_change_requests() -> None:
    assert model_settings(header({"safety": {"gates": []}}).config) == model_settings(
        header().config
    )
    assert sorted(model_settings(header().config)) == ["calls", "model", "safety"]


def test_the_same_settings_and_model_give_the_same_requests() -> None:
    other = MODEL.model_copy(update={"endpoint": "http://two.example"})
    assert sends_same_requests(header(), header().config, MODEL)
    assert sends_same_requests(header(), header().config, None)
    assert not sends_same_requests(header(), header().config, other)
    assert not sends_same_requests(header(), header({"calls": {"max_tokens": 77}}).config, MODEL)


class TestChanges:
    def test_changes_are_the_innermost_differing_places(self) -> None:
        there = {"a": {"b": 1, "same": 0}, "list": [1, {"c": 2}], "gone": 1}
        here = {"a": {"b": 2, "same": 0}, "list": [1, {"c": 3}], "new": None}
        assert [
            (path, format_value(one), format_value(other))
            for path, one, other in changes(there, here)
        ] == [
            ("a.b", "1", "2"),
            ("list[1].c", "2", "3"),
            ("gone", "1", "none"),
            ("new", "none", "null"),
        ]

    def test_lists_of_different_lengths_differ_as_a_whole(self) -> None:
        assert list(changes({"x": [1, 2]}, {"x": [1]})) == [("x", [1, 2], [1])]
        assert list(changes([1], {"x": 1})) == [("", [1], {"x": 1})]


class TestRecord:
    def store_header(self, path: Path, written: RunHeader) -> Ledger:
        ledger = Ledger.create(path / "run.sqlite")
        ledger.append(draft_header_record(written, "run-1"))
        ledger.commit()
        return ledger

    def test_a_header_survives_storage_with_its_digests_as_a_text(self, tmp_path: Path) -> None:
        written = header(extent=RunExtent(tasks=2, responses=5), edges=TASKS)
        ledger = self.store_header(tmp_path, written)
        assert read_run_header(ledger) == written
        (record,) = ledger.records()
        assert (record.kind, record.key) == ("run", "run-1")
        assert "t" * 64 not in record.body
        assert (read_run_header(ledger).extent.tasks, read_run_header(ledger).extent.responses) == (
            2,
            5,
        )

    def test_erased_digests_are_marked(self, tmp_path: Path) -> None:
        ledger = self.store_header(tmp_path, header())
        ledger.append(RecordDraft("erasure", "", {"ids": [MAX_TEXTS_PER_RECORD]}))
        ledger.erase([MAX_TEXTS_PER_RECORD])
        ledger.commit()
        found = read_run_header(ledger)
        assert found.responses is not None
        assert (found.tasks.sha256, found.responses.sha256) == (
            ERASED_PLACEHOLDER,
            ERASED_PLACEHOLDER,
        )
        assert (found.tasks.name, found.profiles) == ("tasks.jsonl", None)

    def test_a_run_with_a_base_stores_no_digests(self, tmp_path: Path) -> None:
        ledger = self.store_header(tmp_path, header(base=origin_of("r0", "../base")))
        assert list(ledger.stored_texts(1, 1)) == []
        assert read_run_header(ledger).tasks.sha256 == ERASED_PLACEHOLDER

    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            ({}, "ValidationError"),
            ({"tasks": 1}, "TypeError"),
            ({"tasks": {"name": "x"}, "evaluators": {}, "config": {"x": 1}}, "ValidationError"),
        ],
    )
    def test_an_invalid_first_record_is_refused(
        self, tmp_path: Path, body: dict[str, Any], kind: str
    ) -> None:
        ledger = Ledger.create(tmp_path / "run.sqlite")
        ledger.append(RecordDraft("run", "run-1", body))
        ledger.commit()
        with pytest.raises(
            TraceMismatch,
            match=rf"(?s)record 1: cannot be read \({kind}: .*\); it has been changed",
        ):
            read_run_header(ledger)
