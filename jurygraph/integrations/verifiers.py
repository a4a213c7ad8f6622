"""A judge for verifiers (0.4, and prime-rl, which consumes its environments): one plugin for all components.

    import verifiers.v1 as vf
    from jurygraph.integrations.verifiers import JuryJudge

    class Jury(JuryJudge, vf.Judge):
        jury = "jury.yaml"

    __all__ = ["Jury"]

A judge that raises takes the results of its siblings with it, and `trace.reward` reads as 0 or a partial sum: look at
`trace.ok`. So there is one judge, and a failed reward is an error of the trace, not a number.
"""

from collections.abc import Mapping
from math import fsum
from pathlib import Path
from typing import Any, ClassVar

from jurygraph.integrations.lazy_jury import LazyJury, find_shared_jury
from jurygraph.integrations.samples import read_response, read_task, read_task_fields
from jurygraph.integrations.single_samples import judge_sample
from jurygraph.messages import find_meant_field
from jurygraph.schema import Trace

_FIELDS_HINT = (
    'name the field of the task that has it in the class of the judge, as in `reference = "answer"`'
)


class JuryJudge:
    """A judge whose rewards are what each component adds; their sum, `trace.reward`, is the jury's reward.

    Subclass it with `vf.Judge`. `jury` is a config's file, and `reference` the field of the task that has the right
    answer. With `full_trace` the whole conversation is judged, else the last reply. `failed` is `raise` or a number.
    """

    jury: ClassVar[str | Path | LazyJury] = "jury.yaml"
    record: ClassVar[str | Path | None] = None
    reference: ClassVar[str | None] = None
    rubric: ClassVar[str | None] = None
    full_trace: ClassVar[bool] = False
    failed: ClassVar[str | float] = "auto"

    async def score(self, task: Any, trace: Any) -> Mapping[str, float]:
        """Return what each component adds to the reward. Raises `NoRewardError` for a failed one."""
        jury = (
            self.jury
            if isinstance(self.jury, LazyJury)
            else find_shared_jury(self.jury, self.record)
        )
        completion = trace.last_reply
        if self.full_trace:
            completion = [message.model_dump(mode="json") for message in trace.messages]
        converted_task = read_task(_read_prompt(task), self._read_task_fields(task))
        response = read_response(completion)
        scored, value = await judge_sample(
            jury, converted_task, response, self.failed, self._suggest_field(task)
        )
        name = getattr(self, "reward_name", "jury")
        return split_reward_by_term(scored, value, name)

    def _suggest_field(self, task: Any) -> str:
        """Return where the class names the fields that are read, with a filled one that is probably meant."""
        unnamed_fields = [name for name in ("reference", "rubric") if getattr(self, name) is None]
        for name, value in vars(task).items():
            field = name if name in unnamed_fields else find_meant_field(name, unnamed_fields)
            if value and field:
                return f'did you mean `{field} = "{name}"` in the class of the judge?'
        return _FIELDS_HINT

    def _read_task_fields(self, task: Any) -> dict[str, Any]:
        fields = {"id": "id", "reference": self.reference, "rubric": self.rubric}
        row = {field: getattr(task, field) for field in fields.values() if field is not None}
        return read_task_fields(row, fields)


def _read_prompt(task: Any) -> Any:
    prompt = task.prompt
    if prompt is None or isinstance(prompt, str):
        return prompt
    return [message.model_dump(mode="json", exclude_none=True) for message in prompt]


def split_reward_by_term(trace: Trace, value: float, name: str) -> dict[str, float]:
    """Return a reward by its terms, under `name/TERM`; what gates, clips and scales changed is `name/rest`."""
    if trace.reward.value is None:
        return {name: value}
    parts = {
        f"{name}/{term.name}": term.contribution
        for term in trace.reward.terms
        if term.contribution is not None
    }
    rest = value - fsum(parts.values())
    return parts if rest == 0 else {**parts, f"{name}/rest": rest}
