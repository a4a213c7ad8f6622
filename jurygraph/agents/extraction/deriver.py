"""The deriver that extracts records from a response's prose with a model, and keeps only what the prose contains."""

from functools import partial
from typing import TYPE_CHECKING, Any

from jurygraph.agents.extraction.grounding import (
    DUPLICATE_MESSAGE,
    Grounded,
    IndexedText,
    add_unknown_records,
    describe_left_out,
    ground,
)
from jurygraph.agents.extraction.spec import MAX_RECORDS, QUOTE, Kinds, RecordParams, reply_model
from jurygraph.agents.judging.ask import ask_model
from jurygraph.agents.judging.evaluator import shared_prompt_variables
from jurygraph.agents.roles import Deriver, DeriverInput
from jurygraph.prompts import load_prompt
from jurygraph.safety.evidence import search_off_loop
from jurygraph.schema import Evidence, Failure, FrozenModel, Material

if TYPE_CHECKING:
    from jurygraph.models.judge_client import ParsedReply

DATA = "data"
_RECORD_TOKENS = 48
"""Tokens of a record with a short quotation: so many that a list which a small model repeats to its end is a reply."""

_HINT = "quote and copy letter by letter from the response, and leave out what is not there"


class Extract(Deriver):
    """Extract a response's `data` from its text: records of the kinds that the config defines, each with its evidence.

    Every record is based on a passage of the response, and every value on words in it (or, for `context`, before it).
    So facts and checks can work on prose, and a response that addresses the model can only make it record what the
    response itself contains. Values that are not found are shown to the model once for repair. After that their record
    becomes an unknown one, whether the model invented it, misspelt it, or took it from the task or a reference: a
    possible statement of the response is counted against it rather than forgotten.

    Evidence cannot verify the meaning of the surrounding words. These errors remain possible:

    - context of another record: the wrong day, or a place named earlier (facts may find nothing there);
    - statements that the response excludes ("we skip it"), or only mentions;
    - words of the passage in the wrong field, too few or too many of them (facts do not know such a name);
    - a record of the wrong kind, and the wrong one of `one_of` (facts look it up in another table);
    - omissions by the model. A check that requires nothing more passes without them: require what must be there;
    - unknown records: a check that counts by JSONPath counts them too. One that counts a kind of claims counts only
      those in a table.

    An empty response has no records, and the model is not called. If the config's `safety.evidence` is `off`, the
    reply is not checked.
    """

    name = "extract"
    gives = DATA
    uses_model = True
    bounds_its_time = True
    Params = RecordParams
    settings: RecordParams

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self._kinds: Kinds = self.settings.records
        self._reply = reply_model(self._kinds)
        self._prompt = load_prompt("extract")
        self.version = f"1 prompt {self._prompt.full_version}"

    async def derive(self, inputs: DeriverInput) -> Material:
        response = inputs.response
        if not response.text.strip():
            return Material(name=DATA, data={kind: [] for kind in self._kinds})
        client = inputs.client
        assert client is not None, "a model is required"
        letters = len(response.text)
        text: IndexedText | None = None
        if client.safety.evidence != "off":
            text = await search_off_loop(lambda: IndexedText(response.text), letters)
        variables = {**shared_prompt_variables(inputs), "kinds": self._kinds}
        return await ask_model(
            client,
            client.request(self._prompt, self._reply, variables, max_reply_tokens=MAX_RECORDS * _RECORD_TOKENS),
            self._reply,
            read=partial(self._read, text),
            fail=lambda fault: _failed_material(fault.failure, fault.call),
            find_flaw=partial(self._flaw, text),
            letters=letters,
        )

    def _read(self, text: IndexedText | None, reply: "ParsedReply[Any]") -> Material:
        grounded = self._ground_reply(text, reply.value)
        note = describe_left_out(grounded.left_out)
        if grounded.left_out and not any(grounded.data.values()):
            return _failed_material(Failure(cause="response", kind="unsupported", message=note), reply.call.id)
        data = add_unknown_records(grounded, self._kinds)
        return Material(name=DATA, data=data, evidence=grounded.evidence, note=note, call=reply.call.id)

    def _ground_reply(self, text: IndexedText | None, reply: FrozenModel) -> Grounded:
        values = reply.model_dump(by_alias=True)
        if text is not None:
            return ground(text, self._kinds, values)
        evidence = tuple(Evidence(quote=record.pop(QUOTE)) for records in values.values() for record in records)
        data = {
            kind: [{name: value for name, value in record.items() if value is not None} for record in records]
            for kind, records in values.items()
        }
        return Grounded(data, evidence)

    def _flaw(self, text: IndexedText | None, reply: FrozenModel) -> str | None:
        """Return the problems of a reply for its repair. Records listed twice need no second call."""
        left_out = self._ground_reply(text, reply).left_out
        problems = [problem for problem in left_out if problem.reason != DUPLICATE_MESSAGE]
        return f"{describe_left_out(problems)}. So {_HINT}" if problems else None


def _failed_material(failure: Failure, call: str | None) -> Material:
    return Material(name=DATA, status="failed", failure=failure, call=call)
