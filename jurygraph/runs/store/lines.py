"""A trace as one line of JSON."""

import json
import re

from jurygraph.safety.unseen import UNSEEN
from jurygraph.schema import Trace

_UNSEEN = re.compile(f"[{UNSEEN}]")


def line_of(trace: Trace) -> bytes:
    """A trace as one line of JSON, without its end. Unseen characters stand as escapes, so that it can be printed."""
    text = trace.model_dump_json()
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text).encode()
