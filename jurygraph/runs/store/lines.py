"""Traces as lines of JSON."""

import json
import re

from jurygraph.safety.text_folding import UNSEEN
from jurygraph.schema import Trace

_UNSEEN = re.compile(f"[{UNSEEN}]")


def trace_to_json_line(trace: Trace) -> bytes:
    """Return a trace as one printable line of JSON, with invisible characters escaped and without newline."""
    text = trace.model_dump_json()
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text).encode()
