"""Few-shot examples in prompts: langchain-core's template over `example.md`, with each text inside a fence."""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from jurygraph.safety.fence import Fence


class Shot(NamedTuple):
    """An example as shown: the reviewer's pseudonym, the text, the score, and optionally the reason."""

    reviewer: str
    text: str
    score: str
    reason: str = ""


def render_examples(shots: Sequence[Shot], fence: Fence, template: str) -> str:
    """Render the examples one after another by `template` (Jinja)."""
    return "\n\n".join(_render_shot(template, *_fence_shot(shot, fence)) for shot in shots)


def _fence_shot(shot: Shot, fence: Fence) -> Shot:
    reason = fence.enclose(shot.reason, "reason") if shot.reason else ""
    return shot._replace(text=fence.enclose(shot.text, "example"), reason=reason)


@lru_cache(maxsize=1024)
def _render_shot(template: str, *values: str) -> str:
    """Render one example. Cached, since it is part of many prompts, and langchain-core compiles the template each time.

    Uses the message of langchain-core's few-shot template: its template for a single text would parse the shown values
    as a template again.
    """
    from langchain_core.prompts import FewShotChatMessagePromptTemplate  # imported lazily: only needed with examples

    example = dict(zip(Shot._fields, values, strict=True))
    few_shot = FewShotChatMessagePromptTemplate(examples=[example], example_prompt=_chat_template(template))
    (message,) = few_shot.format_messages()
    return str(message.content)


@cache
def _chat_template(template: str) -> Any:
    from langchain_core.prompts import ChatPromptTemplate

    return ChatPromptTemplate.from_messages([("human", template)], template_format="jinja2")
