"""Tables of rewards and verdicts: rows, columns and types, as CSV, Arrow and pandas give them."""

import csv
import io
import json
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jurygraph as jg
from jurygraph.interchange.tables import table_to_csv
from jurygraph.interchange.traces import trace_to_json_line
from jurygraph.runs import export_table
from jurygraph.runs.export_table import ExportTable, json_value_to_text
from jurygraph.runs.run import Run
from jurygraph.runs.table_reader import TableOptions, open_export_table
from jurygraph.sources.csv_text import unescape_formulas
from tests.runs.sample_runs import FULL_CONFIG, make_tasks, score, write_tasks


@pytest.fixture
def rich_run(rich: Path) -> Iterator[Run]:
    with Run.open(rich) as run:
        yield run


@pytest.fixture
def described(tmp_path: Path) -> Iterator[Run]:
    """A run of one task with metadata and three responses, with other metadata and labels."""
    (task,) = make_tasks(tasks=1)
    task["metadata"] = {"source": "a book", "page": 7}
    facts = [{"page": 8.5}, {"tags": ["x", {"y": 1}]}, {"source": "a letter", "tags": "x"}]
    labels: list[dict[str, Any]] = [{"gold": True}, {"gold": False, "step": 2}, {}]
    for response, metadata, label in zip(task["responses"], facts, labels, strict=True):
        response |= {"metadata": metadata, "labels": label}
    score(tmp_path / "described", write_tasks(tmp_path / "given", [task]), FULL_CONFIG)
    with Run.open(tmp_path / "described") as run:
        yield run


def column(run: Run, name: str, of: Any = "rewards", texts: bool = False) -> list[Any]:
    found: list[Any] = run.to_arrow(of, texts).column(name).to_pylist()
    return found


class TestVerdicts:
    def test_every_verdict_comes_once_with_its_trace_response_and_task(self, rich_run: Run) -> None:
        found = list(rich_run.verdicts())
        keys = [verdict.key for verdict, *_ in found]
        in_traces = {verdict.key for trace in rich_run.traces() for verdict in trace.verdicts}
        assert len(keys) == len(set(keys))
        assert set(keys) == in_traces
        for verdict, trace, response, task in found:
            assert response is not None
            assert verdict.about == trace.response_id == response.id
            assert task == rich_run.task(trace.task_id)

    def test_the_table_has_a_row_for_each(self, rich_run: Run) -> None:
        rows = rich_run.to_arrow("verdicts").to_pylist()
        for row, (verdict, trace, *_) in zip(rows, rich_run.verdicts(), strict=True):
            assert (row["task"], row["response"], row["agent"]) == (
                trace.task_id,
                trace.response_id,
                trace.agent,
            )
            same = "question evaluator layer subject stakeholder reviewer sample score met confidence status"
            for name in (*same.split(), "gated_by", "reason", "call"):
                assert row[name] == getattr(verdict, name), name
            quotes = [evidence.quote for evidence in verdict.evidence]
            assert (row["quote"], row["quotes"]) == (next(iter(quotes), None), len(quotes))
            assert row["label.gold"] == trace.labels["gold"]
        assert {row["status"] for row in rows} > {"ok", "abstained"}

    def test_a_verdict_about_a_pair_names_the_other_response(self, rich_run: Run) -> None:
        rows = rich_run.to_arrow("verdicts").to_pylist()
        pairs = {
            (row["response"], row["compared_with"]) for row in rows if row["question"] == "rank"
        }
        about = {v.responses for v, *_ in rich_run.verdicts() if v.question == "rank"}
        assert pairs == about
        assert {row["compared_with"] for row in rows if row["question"] != "rank"} == {None}


class TestRewards:
    def test_questions_have_the_mean_of_their_verdicts_on_the_response(self, rich_run: Run) -> None:
        found: dict[tuple[str, str], list[float]] = {}
        for verdict, trace, *_ in rich_run.verdicts():
            is_own = not verdict.responses or trace.response_id in verdict.responses
            if verdict.score is not None and is_own and verdict.question != "rank":  # about pairs
                found.setdefault((trace.response_id, f"question.{verdict.question}"), []).append(
                    verdict.score
                )
        rows = {row["response"]: row for row in rich_run.to_arrow(questions=True).to_pylist()}
        names = {name for row in rows.values() for name in row if name.startswith("question.")}
        assert names == {f"question.{name}" for name in rich_run.questions()}
        assert "question.rank" not in names
        scores = {(response, name): row[name] for response, row in rows.items() for name in names}
        assert {key: score for key, score in scores.items() if score is not None} == {
            key: pytest.approx(sum(each) / len(each)) for key, each in found.items()
        }
        assert not any(name.startswith("question.") for name in rich_run.to_arrow().column_names)

    def test_parts_are_what_components_are_made_of(self, rich_run: Run) -> None:
        with closing(open_export_table(rich_run, options=TableOptions(parts=True))) as table:
            rows = {row["response"]: row for batch in table.batches() for row in batch}
        made_of_parts = 0
        for trace in rich_run.traces():
            row = rows[trace.response_id]
            specs = rich_run.plan_of(trace.task_id).decision.specs
            parts = {
                f"{spec.name}.{name}": (value, spec.inputs[name].signed_weight)
                for spec in specs
                for name, value in trace.reward.parts.get(spec.name, {}).items()
            }
            made_of_parts += bool(parts)
            for name, numbers in parts.items():
                assert (row[f"part.{name}"], row[f"weight.{name}"]) == numbers
        assert made_of_parts

    def test_reasons_are_those_of_the_verdicts_on_the_response(self, rich_run: Run) -> None:
        reasons: dict[tuple[str, str], dict[str, None]] = {}
        for verdict, trace, *_ in rich_run.verdicts():
            is_own = not verdict.responses or trace.response_id in verdict.responses
            if verdict.reason and is_own and verdict.question != "rank":  # about pairs
                reasons.setdefault((trace.response_id, f"reason.{verdict.question}"), {})[
                    verdict.reason
                ] = None
        with closing(open_export_table(rich_run, options=TableOptions(reasons=True))) as table:
            rows = [row for batch in table.batches() for row in batch]
        found = {
            (r["response"], name): r[name] for r in rows for name in r if name.startswith("reason.")
        }
        assert found == {key: "\n".join(each) for key, each in reasons.items()}
        assert not any(name.startswith("question.") for row in rows for name in row)

    def test_terms_have_the_values_that_count(self, tmp_path: Path) -> None:
        (task,) = make_tasks(tasks=1, size=1)
        task["responses"][0]["data"]["same"] = "failed"
        score(tmp_path / "run", write_tasks(tmp_path / "given", [task]))
        with Run.open(tmp_path / "run") as run:
            (trace,) = run.traces()
            (row,) = run.to_arrow().to_pylist()
        terms = {f"term.{term.name}": term.value for term in trace.reward.terms}
        components = {f"component.{name}": value for name, value in trace.reward.components.items()}
        assert list(terms.values()) != list(components.values())
        assert {
            name: value for name, value in row.items() if name.startswith(("term.", "component."))
        } == {
            **components,
            **terms,
        }


class TestMetadataLabelsAndTexts:
    def test_values_keep_their_type_unless_they_differ_in_it(self, described: Run) -> None:
        assert column(described, "metadata.page") == [8.5, 7.0, 7.0]
        assert column(described, "label.gold") == [True, False, None]
        assert column(described, "label.step") == [None, 2, None]
        assert column(described, "metadata.tags") == [None, '["x", {"y": 1}]', "x"]

    @pytest.mark.parametrize("name", ["rewards", "verdicts"])
    def test_labels_then_metadata_follow_the_fixed_columns(self, described: Run, name: Any) -> None:
        last = ["label.gold", "label.step", "metadata.source", "metadata.page", "metadata.tags"]
        assert described.to_arrow(name).column_names[-5:] == last
        assert described.to_arrow(name, texts=True).column_names[-7:] == [
            "prompt",
            "text",
            *last,
        ]

    def test_texts_are_added_on_request(self, described: Run) -> None:
        scored = {trace.response_id: response for trace, response in described.scored_responses()}
        table = described.to_arrow("verdicts", texts=True)
        for row in table.to_pylist():
            response, task = scored[row["response"]], described.task(row["task"])
            assert response is not None
            assert task is not None
            assert (row["text"], row["prompt"]) == (response.text, task.query)

    def test_a_chat_is_one_prompt(self, tmp_path: Path) -> None:
        (task,) = make_tasks(tasks=1, size=1)
        task["query"] = [
            {"role": "user", "content": "Hello?"},
            {"role": "assistant", "content": "Yes."},
        ]
        score(tmp_path / "run", write_tasks(tmp_path / "given", [task]))
        with Run.open(tmp_path / "run") as run:
            assert column(run, "prompt", texts=True) == ["user: Hello?\n\nassistant: Yes."]


CELLS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.text(alphabet="=+-@;\n\t' ,\"a", max_size=6),
    st.lists(st.text(alphabet="=;a", max_size=2), max_size=2),
)
ROWS = st.lists(
    st.dictionaries(st.sampled_from(["label.a", "label.b", "metadata.\n=c"]), CELLS), max_size=6
)


def filled_table(rows: list[Mapping[str, Any]]) -> ExportTable:
    table = ExportTable({"task_id": "string"})
    for number, row in enumerate(rows):
        table.add({"task_id": f"-{number}", **row})
    return table


def to_arrow(table: ExportTable) -> pa.Table:
    schema, batches = table.arrow_batches()
    return pa.Table.from_batches(batches, schema)


class TestAnyValues:
    @given(ROWS)
    def test_arrow_gives_every_value_back_in_the_type_of_its_column(
        self, rows: list[Mapping[str, Any]]
    ) -> None:
        with closing(filled_table(rows)) as table:
            columns, found = table.columns, to_arrow(table).to_pylist()
        for row, given_row in zip(found, rows, strict=True):
            for name in columns.keys() - {"task_id"}:
                value = given_row.get(name)
                is_text = value is not None and columns[name] == "string"
                assert row[name] == (json_value_to_text(value) if is_text else value)

    @given(ROWS)
    def test_csv_gives_every_value_back_and_no_formula(self, rows: list[Mapping[str, Any]]) -> None:
        with closing(filled_table(rows)) as table:
            content = b"".join(table_to_csv(table)).decode()
        header, *lines = csv.reader(io.StringIO(content, newline=""))
        for line, given_row in zip(lines, rows, strict=True):
            for name, cell in zip(map(unescape_formulas, header), line, strict=True):
                value = given_row.get(name)
                if name == "task_id" or isinstance(value, str):
                    assert not cell.lstrip("\0 ").startswith(("=", "+", "-", "@", "\t", "\n", ";"))
                    assert unescape_formulas(cell) == given_row.get(name, unescape_formulas(cell))
                else:
                    assert unescape_formulas(cell) == (
                        "" if value is None else json_value_to_text(value)
                    )

    def test_rows_that_do_not_fit_into_memory_wait_on_disk(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(export_table, "_MAX_BYTES_IN_MEMORY", 100)
        monkeypatch.setattr(export_table, "_BATCH_BYTES", 50)
        rows: list[Mapping[str, Any]] = [{"label.a": number} for number in range(100)]
        with closing(filled_table(rows)) as table:
            assert len(list(table.batches())) > 10
            assert to_arrow(table).column("label.a").to_pylist() == list(range(100))


class TestPandas:
    def test_the_frame_has_the_cells_of_the_arrow_table(self, described: Run) -> None:
        pandas = pytest.importorskip("pandas")
        for name in ("rewards", "verdicts"):
            frame, table = (
                described.to_pandas(name, texts=True),
                described.to_arrow(name, texts=True),
            )
            assert list(frame.columns) == table.column_names
            for title in table.column_names:
                cells = [None if pandas.isna(cell) else cell for cell in frame[title]]
                assert cells == table.column(title).to_pylist(), title
        assert str(frame["score"].dtype) == "float64"
        assert frame[frame["label.gold"]]["response"].unique().tolist() == ["t0/r0"]

    @pytest.mark.parametrize(
        ("library", "method", "message"),
        [
            ("pyarrow", "to_pandas", "this needs pyarrow: pip install 'jurygraph[parquet]'"),
            ("pandas", "to_pandas", "this needs pandas: pip install 'jurygraph[pandas]'"),
            ("pyarrow", "to_arrow", "this needs pyarrow: pip install 'jurygraph[parquet]'"),
        ],
    )
    def test_a_missing_library_is_named_with_its_extra(
        self,
        rich_run: Run,
        monkeypatch: pytest.MonkeyPatch,
        library: str,
        method: str,
        message: str,
    ) -> None:
        # installed, unless it is the missing one
        monkeypatch.setitem(sys.modules, "pandas", types.ModuleType("pandas"))
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(jg.InputError) as refused:
            getattr(rich_run, method)()
        assert str(refused.value) == message


def test_an_unknown_table_is_refused(rich_run: Run) -> None:
    with pytest.raises(
        jg.InputError, match="name: expected 'rewards' or 'verdicts', got the text 'reward'"
    ):
        rich_run.to_arrow("reward")  # type: ignore[arg-type]


def test_a_trace_as_a_dictionary_is_the_line_that_show_prints(rich_run: Run) -> None:
    for trace in rich_run.traces():
        assert trace.to_dict() == json.loads(trace_to_json_line(trace))
