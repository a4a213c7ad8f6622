"""The deriver of contrasts: variants of a response that one edit each makes worse, by rule or by a model.

A model proposes contrasts and confirms them in a second call: a single statement of the model is not enough.
"""

import hashlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, create_model

from jurygraph.agents.data_synthesizer import edits as rules
from jurygraph.agents.data_synthesizer.edits import CorrectAnswer, Edit, Kind
from jurygraph.agents.roles import Deriver, DeriverInput, shared_prompt_variables
from jurygraph.concurrency import each_answered
from jurygraph.prompts import load_prompt
from jurygraph.schema import FrozenModel, Material, TaskView
from jurygraph.schema.frozen_model import ParamsModel
from jurygraph.schema.task import query_text

CONTRASTS = "contrasts"
# ids of the prompts
PROPOSE = "contrast"
COMPARE = "contrast-check"
KINDS: tuple[Kind, ...] = get_args(Kind)
MAX_EDITS = 50  # the largest number of contrasts per kind from which some are chosen
MAX_CHARACTERS = 20_000  # the longest response, in characters, of which contrasts are made


class Synthesizer(Deriver):
    """Make contrasts of a response: variants known to be worse in a known way (MACRM, 3.2; ours).

    By rule: a right calculation with another result (`number`), and a name that the task's tables contradict
    (`entity`). Only for a response with the reference's answer: the answer replaced by another number (`answer`), or a
    needed step left out (`step`). A response with another answer than the reference gets no contrast: it is unknown if
    an edit makes it worse, and being wrong should gain nothing.

    By a model: it proposes edits, each of one passage of the response, and judges each again without knowing which text
    is edited; unconfirmed edits are dropped.
    """

    class Params(ParamsModel):
        by: Literal["rule", "model"] = "rule"
        """Who makes the edits: `rule`, or `model`."""
        kinds: tuple[Kind, ...] = Field(KINDS, min_length=1)
        """The kinds to make; all by default."""
        each: int = Field(1, strict=True, ge=1, le=10)
        """The largest number of contrasts per kind."""
        seed: int = Field(0, strict=True)
        """Determines which are chosen if there are more."""

    name = "synthesizer"
    version = "1"
    gives = CONTRASTS
    bounds_its_time = True

    settings: Params

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._kinds = tuple(kind for kind in KINDS if kind in self.settings.kinds)
        self.uses_model = self.settings.by == "model"
        if self.uses_model:
            self.version = f"1 prompts {load_prompt(PROPOSE).full_version} {load_prompt(COMPARE).full_version}"

    async def derive(self, inputs: DeriverInput) -> Material:
        text = inputs.response.text
        if len(text) > MAX_CHARACTERS:
            note = f"of {len(text)} characters no contrast is made, but of {MAX_CHARACTERS}"
            return Material(name=CONTRASTS, note=note)
        answered = rules.matching_answer(text, inputs.task.reference)
        if answered is False:
            return Material(name=CONTRASTS, note="its answer is not known to be right: no edit surely makes it worse")
        if not self.uses_model or not text.strip():
            return self._material(inputs, list(edits_by_rule(text, inputs.task, answered, self._kinds)))
        return self._material(inputs, *await propose_edits(inputs, self._kinds))

    def _material(
        self, inputs: DeriverInput, edits: Sequence[Edit], note: str = "", call: str | None = None
    ) -> Material:
        """Return material with some edits of each kind, named by the kind, in the order of the kinds."""
        ordered = sorted((edit for edit in edits if edit.kind in self._kinds), key=lambda edit: KINDS.index(edit.kind))
        parent = inputs.response.id
        text = inputs.response.text
        mark = "~" * (1 + len(parent) - len(parent.lstrip("~")))  # no variant has its parent's id
        seed = self.settings.seed
        variants = [
            edit.variant(f"{mark}{kind}-{number}", inputs.response)
            for kind, found in groupby(ordered, key=lambda edit: edit.kind)
            for number, edit in enumerate(rules.choose_some([*found], self.settings.each, f"{seed} {kind} {text}"), 1)
        ]
        none_found = "nothing in the response could be made worse by a known edit"
        return Material(
            name=CONTRASTS, variants=tuple(variants), note=note or ("" if variants else none_found), call=call
        )


def edits_by_rule(text: str, view: TaskView, answered: CorrectAnswer | bool, kinds: Sequence[Kind]) -> Iterator[Edit]:
    """Yield the contrasts that can be made by rule, the first 50 of each kind. `answered` is from `matching_answer`."""
    found: dict[Kind, Iterator[Edit]] = {
        "number": rules.wrong_result_edits(text),
        "entity": rules.other_name_edits(text, view),
    }
    if isinstance(answered, CorrectAnswer):
        query = query_text(view.query)
        found["step"] = rules.missing_step_edits(text, query, answered)
        found["answer"] = rules.other_answer_edits(text, query, answered)
    for kind in kinds:
        yield from islice(found.get(kind, ()), MAX_EDITS)


_Passage = Annotated[str, Field(min_length=1, max_length=1000)]
_Sentence = Annotated[str, Field(max_length=1000)]


async def propose_edits(inputs: DeriverInput, kinds: Sequence[Kind]) -> tuple[list[Edit], str, str]:
    """Return the edits that the model proposes and, without knowing which text is edited, confirms to make it worse.

    With a note on the other proposals, and the call that proposed them. Every passage must occur in the response
    exactly once: other proposals are shown to the model once for repair, then dropped. Raises Fault.
    """
    assert inputs.client is not None, "a model is required"
    text = inputs.response.text
    reply_model = _proposals(tuple(kinds))
    variables = {**shared_prompt_variables(inputs), "edits": tuple(kinds)}
    request = inputs.client.request(load_prompt(PROPOSE), reply_model, variables)
    result = await inputs.client.judge(request, reply_model, lambda reply: _flaw(text, reply))
    proposed: Sequence[Any] = result.value.contrasts  # type: ignore[attr-defined]
    edits = [_edit(text, proposal) for proposal in proposed if not _proposal_flaw(text, proposal)]
    worse = await each_answered(_is_worse(inputs, edit) for edit in edits)
    confirmed = [edit for edit, is_worse in zip(edits, worse, strict=True) if is_worse]
    dropped = {"changes no passage": len(proposed) - len(edits), "is no worse": len(edits) - len(confirmed)}
    note = "; ".join(f"{number} proposed that {problem}" for problem, number in dropped.items() if number)
    return confirmed, note, result.call.id


async def _is_worse(inputs: DeriverInput, edit: Edit) -> bool:
    """Return true if the model finds the edited text worse; the order of the texts depends on the edited one."""
    assert inputs.client is not None, "a model is required"
    edited = edit.apply(inputs.response.text)
    is_first = hashlib.sha256(edited.encode()).digest()[0] % 2 == 1
    texts = (edited, inputs.response.text) if is_first else (inputs.response.text, edited)
    responses = [{"name": name, "text": text} for name, text in zip("AB", texts, strict=True)]
    variables = {key: value for key, value in shared_prompt_variables(inputs).items() if key != "response"}
    request = inputs.client.request(load_prompt(COMPARE), ContrastComparison, {**variables, "responses": responses})
    result = await inputs.client.judge(request, ContrastComparison)
    return result.value.worse == ("A" if is_first else "B")


def _edit(text: str, proposal: Any) -> Edit:
    start = text.index(proposal.passage)
    return rules.replace_passage(proposal.kind, start, start + len(proposal.passage), proposal.instead, proposal.says)


def _proposal_flaw(text: str, proposal: Any) -> str | None:
    times = text.count(proposal.passage)
    if times != 1:
        return f"the passage {proposal.passage!r} stands in the response {times} times, and has to stand there once"
    return f"the passage {proposal.passage!r} is put in its own place" if proposal.instead == proposal.passage else None


def _flaw(text: str, reply: Any) -> str | None:
    flaws = [flaw for proposal in reply.contrasts if (flaw := _proposal_flaw(text, proposal))]
    return f"{'; '.join(flaws)}. So copy each `passage` letter by letter from the response" if flaws else None


# No docstrings below: they would be part of the JSON schema that a model is given.


@lru_cache(maxsize=64)
def _proposals(kinds: tuple[Kind, ...]) -> type[FrozenModel]:
    fields: Any = {
        "kind": (Literal[kinds], ...),
        "passage": (_Passage, ...),
        "instead": (_Sentence, ...),
        "says": (_Sentence, ...),
    }
    contrast_model = create_model("Contrast", __base__=FrozenModel, **fields)
    contrasts_field: Any = Annotated[tuple[contrast_model, ...], Field(max_length=12)]
    return create_model("Contrasts", __base__=FrozenModel, contrasts=(contrasts_field, ...))


class ContrastComparison(FrozenModel):
    reason: _Sentence
    worse: Literal["A", "B", "neither"]
