"""Few-shot examples as prompts show them: langchain-core's template over `example.md`, each text within a fence."""

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from jurygraph.safety.fence import Fence


class Shot(NamedTuple):
    """An example as it is shown: who scored, known by a pseudonym, what, with which score, and perhaps why."""

    reviewer: str
    text: str
    score: str
    reason: str = ""


def lay_out(shots: Sequence[Shot], fence: Fence, template: str) -> str:
    """The examples one after another, as `template` (Jinja) writes each."""
    return "\n\n".join(_written(template, *_fenced(shot, fence)) for shot in shots)


def _fenced(shot: Shot, fence: Fence) -> Shot:
    reason = fence.around(shot.reason, "reason") if shot.reason else ""
    return shot._replace(text=fence.around(shot.text, "example"), reason=reason)


@lru_cache(maxsize=1024)
def _written(template: str, *shown: str) -> str:
    """One example. It is kept, for it stands in many prompts, and langchain-core compiles the template each time.

    The message of langchain-core's few-shot template is taken: its template for one text would read what is shown as a
    template again.
    """
    from langchain_core.prompts import FewShotChatMessagePromptTemplate  # nobody pays for it who shows no example

    example = dict(zip(Shot._fields, shown, strict=True))
    few_shot = FewShotChatMessagePromptTemplate(examples=[example], example_prompt=_one(template))
    (message,) = few_shot.format_messages()
    return str(message.content)


@cache
def _one(template: str) -> Any:
    from langchain_core.prompts import ChatPromptTemplate

    return ChatPromptTemplate.from_messages([("human", template)], template_format="jinja2")
