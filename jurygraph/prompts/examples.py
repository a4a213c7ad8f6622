"""Few-shot examples as prompts show them: langchain-core's template over `example.md`, each text within a fence."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

from jurygraph.safety.fence import Fence


class Shot(NamedTuple):
    """An example as it is shown: who scored, known by a pseudonym, what, with which score, and perhaps why."""

    reviewer: str
    text: str
    score: str
    reason: str = ""


def lay_out(shots: Sequence[Shot], fence: Fence, template: str) -> str:
    """The examples one after another, as `template` (Jinja) writes each.

    The messages of langchain-core's few-shot template are joined here: its template for one text would read the
    examples as a template again.
    """
    from langchain_core.prompts import FewShotChatMessagePromptTemplate  # nobody pays for it who shows no example

    shown = [
        {
            "reviewer": shot.reviewer,
            "text": fence.around(shot.text, "example"),
            "score": shot.score,
            "reason": fence.around(shot.reason, "reason") if shot.reason else "",
        }
        for shot in shots
    ]
    few_shot = FewShotChatMessagePromptTemplate(examples=shown, example_prompt=_one(template))
    return "\n\n".join(str(message.content) for message in few_shot.format_messages())


@cache
def _one(template: str) -> Any:
    from langchain_core.prompts import ChatPromptTemplate

    return ChatPromptTemplate.from_messages([("human", template)], template_format="jinja2")
