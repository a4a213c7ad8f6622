"""A judge for runs: equal requests get equal replies, and different ones differ."""

import json
import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from tests.models.judge_scripts import judge_reply, quotable, response_in
from tests.models.server import Answer, reply_with


def judge_by_request(body: dict[str, Any], number: int) -> Answer:
    likely = int(sha256(request_identity(body).encode()).hexdigest()[:8], 16) / 2**32
    if "response_format" in body:
        return judge_reply(body, met=likely >= 0.5, probability=likely)
    quotes = quotable(response_in(body)) if likely >= 0.5 else []
    one = {"reason": "so it is", "quotes": quotes, "met": likely >= 0.5, "probability": likely}
    names = set(re.findall(r"criterion_\d", body["messages"][-1]["content"]))
    return reply_with(json.dumps(dict.fromkeys(sorted(names), one)))


def request_identity(body: Mapping[str, Any]) -> str:
    """Return what distinguishes requests."""
    return json.dumps(
        [body["model"], body["messages"], body.get("temperature"), body.get("max_tokens")]
    )
