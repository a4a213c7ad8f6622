"""The deriver that makes records of a response's prose with a model's help, and believes none that is not there."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from jurygraph.agents.extraction.grounding import TWICE, Grounded, Places, ground, told, with_unknown
from jurygraph.agents.extraction.stated import QUOTE, Kinds, read_kinds, reply_noun
from jurygraph.agents.judging.evaluator import shared
from jurygraph.agents.judging.quotations import off_loop
from jurygraph.agents.roles import Deriver, DeriverAsk
from jurygraph.models.faults import Fault
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import search_off_loop
from jurygraph.schema import Evidence, Failure, Material, Noun

DATA = "data"
_HINT = "quote and copy letter by letter from the response, and leave out what is not there"


class Extract(Deriver):
    """A response's `data` from its text: records of the kinds that the config states, each with its evidence.

    Every record rests on a passage that stands in the response, and every value on words in it (or, for `context`,
    before it), so that facts and checks can work on prose, and a response that talks to the model makes it write down
    nothing but what it says itself. What is not found there is told to the model once. After that its record is one of
    which nothing is known, whether the model made it up, misspelt it, or took it from the task or a reference: what the
    response may have said is held against it rather than forgotten.

    No evidence can tell what the words around mean. These it lets pass:

    - context of another record: the wrong day, or a place that was named before (facts may find nothing there);
    - what the response rules out ("we skip it"), or only mentions;
    - words of the passage in the wrong field, too few or too many of them (facts do not know such a name);
    - a record of the wrong kind, and the wrong one of `one_of` (facts look for it in another table);
    - what the model never wrote down. A check that asks for nothing more is met without it: ask for what must be there;
    - that of a record nothing is known: a check that counts by JSONPath counts it too. One that counts a kind of claims
      counts those alone that are in a table.

    An empty response has no records, and no model is asked. Where the config's
    `safety.evidence` is down, all is taken as the model says it.

    Args:
        records: kinds of records, each with its fields: what each is about, or `about` with `number`, `context`,
            `optional` or `one_of` (see `FieldStated`).
    """

    name = "extract"
    gives = DATA
    asks_model = True

    def __init__(self, records: Mapping[str, Mapping[str, Any]]) -> None:
        self._kinds: Kinds = read_kinds(records)
        self._reply = reply_noun(self._kinds)
        self._prompt = load_prompt("extract")
        self.version = f"1 prompt {self._prompt.edition}"

    async def derive(self, ask: DeriverAsk) -> Material:
        response = ask.response
        if not response.text.strip():
            return Material(name=DATA, data={kind: [] for kind in self._kinds})
        assert ask.gateway is not None, "asked without a model"
        letters = len(response.text)
        sought = ask.gateway.safety.evidence
        text = await search_off_loop(lambda: Places(response.text), letters) if sought else None
        request = ask.gateway.request(self._prompt, self._reply, {**shared(ask), "kinds": self._kinds})
        try:
            flaw = off_loop(partial(self._flaw, text), letters)
            judged = await ask.gateway.judge(request, self._reply, flaw)
        except Fault as fault:
            return Material(name=DATA, status="failed", failure=fault.failure, call=fault.call)
        grounded = await search_off_loop(lambda: self._taken(text, judged.value), letters)
        return self._material(grounded, judged.call.id)

    def _taken(self, text: Places | None, reply: Noun) -> Grounded:
        """What of a reply stands in the response; all of it where nothing is to be found there."""
        said = reply.model_dump(by_alias=True)
        return _as_said(said) if text is None else ground(text, self._kinds, said)

    def _flaw(self, text: Places | None, reply: Noun) -> str | None:
        """What is to be mended in a reply. A record that was written down twice needs no second call."""
        wrong = [one for one in self._taken(text, reply).left_out if one.why != TWICE]
        return f"{told(wrong)}. So {_HINT}" if wrong else None

    def _material(self, grounded: Grounded, call: str) -> Material:
        """The data; a failure where the model wrote something down, and nothing of it stands in the response."""
        note = told(grounded.left_out)
        if grounded.left_out and not any(grounded.data.values()):
            failure = Failure(cause="response", kind="unsupported", message=note)
            return Material(name=DATA, status="failed", failure=failure, call=call)
        data = with_unknown(grounded, self._kinds)
        return Material(name=DATA, data=data, evidence=grounded.evidence, note=note, call=call)


def _as_said(reply: Mapping[str, Any]) -> Grounded:
    evidence = tuple(Evidence(quote=record[QUOTE]) for records in reply.values() for record in records)
    return Grounded({kind: [_values(record) for record in records] for kind, records in reply.items()}, evidence, ())


def _values(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != QUOTE and value is not None}
