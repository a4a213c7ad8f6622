"""What is left once facts, checks and preferences are judged: a short checklist, the same for everybody (DecompR)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from jurygraph.agents.judging.evaluator import Judging, Profile
from jurygraph.agents.judging.forms import InParts
from jurygraph.agents.judging.items import Item
from jurygraph.agents.roles import Ask
from jurygraph.errors import ConfigError
from jurygraph.prompts import load_prompt
from jurygraph.schema import Stakeholder

Asked = Literal["stakeholder", "task"]
USUAL = (
    "It answers what was asked, and leaves nothing out that whoever asked would have to ask for again.",
    "It can be acted on as it is written, without guessing who does what, where or when.",
    "Its parts agree with each other.",
    "Where not everything could be had, it says what was given up and why.",
)
_MOST = 20


class Checklist(Judging):
    """The share of a checklist that holds, of layer `residual`: of û_i it may hold a fifth at most.

    Args:
        items: what is asked, in sentences that hold or do not; four general ones unless given.
        audience: `stakeholder`, for each one's utility, or `task`, for a component `checklist` of its own.
        profile: `full` or `compact`, as for all who ask a model.
    """

    name = "checklist"
    prompt = load_prompt("checklist")
    layer = "residual"
    noun = "checklist"

    def __init__(
        self, items: Sequence[str] = USUAL, audience: Asked = "stakeholder", profile: Profile = "full"
    ) -> None:
        if audience not in get_args(Asked):
            raise ConfigError(f"checklist: audience is one of {', '.join(get_args(Asked))}, not {audience!r}")
        listed = isinstance(items, Sequence) and not isinstance(items, str)
        if not listed or not 0 < len(items) <= _MOST or not all(isinstance(one, str) and one.strip() for one in items):
            raise ConfigError(f"checklist: items is a list of 1 to {_MOST} sentences, not {items!r}")
        super().__init__(profile)
        self.audience = audience
        self._items = tuple(items)

    def item(self, ask: Ask) -> Item:
        return Item("Each part is asked about by itself.", InParts((1.0,) * len(self._items)), self._items)

    def beside(self, ask: Ask) -> Mapping[str, Any]:
        about = ask.task.about
        return {"profile": about.profile if isinstance(about, Stakeholder) else ""}

    def company(self, ask: Ask) -> str:
        return ask.task.member or ""
