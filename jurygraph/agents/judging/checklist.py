"""A short residual checklist, the same for every stakeholder: quality beyond facts, checks, preferences (DecompR)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from jurygraph.agents.judging.evaluator import JudgeEvaluator, Profile
from jurygraph.agents.judging.forms import PartialCredit
from jurygraph.agents.judging.items import Item
from jurygraph.agents.roles import EvaluatorInput
from jurygraph.errors import ConfigError
from jurygraph.prompts import load_prompt
from jurygraph.schema import Stakeholder

ChecklistAudience = Literal["stakeholder", "task"]
DEFAULT_ITEMS = (
    "It answers what was asked, and leaves nothing out that whoever asked would have to ask for again.",
    "It can be acted on as it is written, without guessing who does what, where or when.",
    "Its parts agree with each other.",
    "Where not everything could be had, it says what was given up and why.",
)
_MAX_ITEMS = 20


class Checklist(JudgeEvaluator):
    """Score the share of checklist items that hold. Its layer `residual` may make up a fifth of û_i at most.

    Args:
        items: sentences that hold or do not; four general ones by default.
        audience: `stakeholder`, for each one's utility, or `task`, for a separate component `checklist`.
        profile: `full` or `compact`, as for every evaluator that asks a model.
    """

    name = "checklist"
    prompt = load_prompt("checklist")
    layer = "residual"
    item_name = "checklist"

    def __init__(
        self,
        items: Sequence[str] = DEFAULT_ITEMS,
        audience: ChecklistAudience = "stakeholder",
        profile: Profile = "full",
    ) -> None:
        if audience not in get_args(ChecklistAudience):
            raise ConfigError(
                f"checklist: audience is one of {', '.join(get_args(ChecklistAudience))}, not {audience!r}"
            )
        is_list = isinstance(items, Sequence) and not isinstance(items, str)
        if (
            not is_list
            or not 0 < len(items) <= _MAX_ITEMS
            or not all(isinstance(sentence, str) and sentence.strip() for sentence in items)
        ):
            raise ConfigError(f"checklist: items is a list of 1 to {_MAX_ITEMS} sentences, not {items!r}")
        super().__init__(profile)
        self.audience = audience
        self._items = tuple(items)

    def item(self, inputs: EvaluatorInput) -> Item:
        return Item("Each part is asked about by itself.", PartialCredit((1.0,) * len(self._items)), self._items)

    def prompt_variables(self, inputs: EvaluatorInput) -> Mapping[str, Any]:
        about = inputs.task.about
        return {"profile": about.profile if isinstance(about, Stakeholder) else ""}

    def batch_key(self, inputs: EvaluatorInput) -> str:
        return inputs.task.member or ""
