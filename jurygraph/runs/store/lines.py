"""Traces as lines of JSON."""

import json
import re

from jurygraph.safety.unseen import UNSEEN
from jurygraph.schema import Trace

_UNSEEN = re.compile(f"[{UNSEEN}]")


def line_of(trace: Trace) -> bytes:
    """Return a trace as one line of JSON without newline. Invisible characters are escaped, so that it can be
    printed."""
    text = trace.model_dump_json()
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text).encode()
