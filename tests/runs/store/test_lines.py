"""A trace as one printable line of JSON."""

from jurygraph.runs.export import trace_to_json_line
from jurygraph.schema import Trace
from tests.runs.store.test_packing import trace


def test_a_line_is_the_trace_with_invisible_characters_escaped() -> None:
    written = trace(labels={"note": "a\u202eb\u200bc ü"})
    line = trace_to_json_line(written)
    assert b"a\\u202eb\\u200bc \xc3\xbc" in line
    assert b"\n" not in line
    assert Trace.model_validate_json(line) == written
