"""A trace as one line of JSON."""

import json
import re

from jurygraph.schema import Trace

UNSEEN = "\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f"
"""Characters, as a regex class, that a terminal or a reader of lines may act on and a person cannot see."""

_UNSEEN = re.compile(f"[{UNSEEN}]")


def line_of(trace: Trace) -> bytes:
    """A trace as one line of JSON, without its end. Unseen characters stand as escapes, so that it can be printed."""
    text = trace.model_dump_json()
    return _UNSEEN.sub(lambda found: json.dumps(found[0])[1:-1], text).encode()
