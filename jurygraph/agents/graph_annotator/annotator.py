"""The annotator: batches of questions to a model about a rubric, from whose answers a graph is built.

It sees the query, the rubric and the field of the task, and never a response.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jurygraph.agents.graph_annotator import validation
from jurygraph.agents.graph_annotator.domains import Domain, field_metadata
from jurygraph.agents.graph_annotator.graph import Batch, EdgeSource
from jurygraph.agents.graph_annotator.validation import (
    CheckedEdges,
    CheckedRoles,
    CriterionPair,
    EdgesReply,
    RolesReply,
)
from jurygraph.agents.judging.ask import ask_model
from jurygraph.concurrency import each_answered
from jurygraph.errors import ModelError
from jurygraph.messages import quote, shorten
from jurygraph.models.faults import Fault
from jurygraph.prompts import load_prompt
from jurygraph.schema import Criterion, Rubric, Task, digest_of
from jurygraph.schema.task import Role, query_text, sort_by_id

if TYPE_CHECKING:
    from jurygraph.models.judge_client import JudgeClient
    from jurygraph.models.request import Request

MAX_ROLES_PER_CALL = 60  # the largest number of criteria whose roles one request asks for
_TOKENS_A_ROLE = 80
_TOKENS_AN_EDGE = 110
_TOKENS_BASE = 200

T = TypeVar("T")
Reply = TypeVar("Reply", RolesReply, EdgesReply)
Checked = TypeVar("Checked", CheckedRoles, CheckedEdges)


class GraphAnnotator:
    def __init__(self, task: Task, rubric: Rubric, domain: Domain, client: "JudgeClient") -> None:
        self._task = task
        self._domain = domain
        self._client = client
        self._by_id = {criterion.id: criterion for criterion in sort_by_id(rubric.criteria)}
        about = _lines({name: value} for name, value in field_metadata(task).items())
        self._shared_variables = {"domain": domain.text, "about": about, "query": query_text(task.query)}

    async def roles(self, names: Sequence[str]) -> CheckedRoles:
        """Return the roles of these criteria. Raises `ModelError` or `BudgetExceeded` if the model gave no answer."""
        parts = await each_answered(self._ask_roles(batch) for batch in _batches(sorted(names), MAX_ROLES_PER_CALL))
        return CheckedRoles(
            {name: role for part in parts for name, role in part.roles.items()},
            {name: why for part in parts for name, why in part.unassigned.items()},
            tuple(why for part in parts for why in part.unknown_names),
        )

    async def edges(
        self, pairs: Sequence[CriterionPair], roles: Mapping[str, Role], batch: int, votes: int
    ) -> list[Batch]:
        """Return the answers about these pairs, `batch` pairs per request, `votes` samples each.

        The order of a request's pairs says nothing of their ids, so that a model that favours the first favours no
        criterion. Every sample has another order: a model that always answers the same question alike would be a panel
        of one. Raises `ModelError` or `BudgetExceeded` if the model gave no answer.
        """
        query = self._shared_variables["query"]
        batches = [sorted(one, key=lambda pair: digest_of([query, *pair])) for one in _batches(pairs, batch)]
        firsts = [(batch, sample, sample * len(batch) // votes) for batch in batches for sample in range(votes)]
        rotated = (([*batch[first:], *batch[:first]], sample) for batch, sample, first in firsts)
        results = await each_answered(self._ask_edges(batch, roles, sample) for batch, sample in rotated)
        return [Batch(*entry) for entry in zip(batches, _batches(results, votes), strict=True)]

    @property
    def source(self) -> EdgeSource:
        """Return the source of the edges: the model, and the digest of the prompt with its domain."""
        prompt = load_prompt("graph-edges")
        texts = [*map(list, prompt.sections), self._domain.text, self._domain.examples]
        prompt_digest = digest_of([prompt.id, prompt.full_version, *texts])
        return EdgeSource(self._client.model, prompt_digest[:16])

    async def _ask_roles(self, names: Sequence[str]) -> CheckedRoles:
        criteria = {name: self._by_id[name] for name in names}
        listed = _lines({"id": criterion.id, **_criterion_fields(criterion)} for criterion in self._by_id.values())
        variables = {**self._shared_variables, "rubric": listed, "asked": _lines(names)}
        room = _TOKENS_BASE + _TOKENS_A_ROLE * len(names) + _tokens(names)
        form = validation.roles_reply_model(tuple(names))
        request = self._client.request(load_prompt("graph-roles"), form, variables, max_reply_tokens=room)
        return await self._ask(
            request,
            RolesReply,
            lambda reply: validation.check_roles(reply.roles, criteria),
            lambda problem: CheckedRoles(unassigned=dict.fromkeys(names, f"was given no role: {problem}")),
            "the roles of its criteria",
        )

    async def _ask_edges(self, pairs: Sequence[CriterionPair], roles: Mapping[str, Role], sample: int) -> CheckedEdges:
        """Ask about pairs. The request shows only these and their criteria, so other changes do not affect it."""
        criteria = [self._by_id[name] for name in sorted({name for pair in pairs for name in pair})]
        shown = ({"id": each.id, "role": roles[each.id], **_criterion_fields(each)} for each in criteria)
        listed = ({**pair._asdict(), "relations": validation.kinds_between(roles, pair)} for pair in pairs)
        variables = {
            **self._shared_variables,
            "worked_examples": self._domain.examples,
            "criteria": _lines(shown),
            "pairs": _lines(listed),
        }
        room = _TOKENS_BASE + _TOKENS_AN_EDGE * len(pairs) + _tokens(name for pair in pairs for name in pair)
        prompt = load_prompt("graph-edges")
        form = validation.edges_reply_model(tuple(pairs))
        request = self._client.request(prompt, form, variables, sample=sample, max_reply_tokens=room)
        return await self._ask(
            request,
            EdgesReply,
            lambda reply: validation.check_edges(reply.pairs, pairs, roles, self._by_id),
            lambda problem: CheckedEdges(unanswered=dict.fromkeys(pairs, problem)),
            "pairs of its criteria",
        )

    async def _ask(
        self,
        request: "Request",
        reply_model: type[Reply],
        check: Callable[[Reply], Checked],
        without_reply: Callable[[str], Checked],
        subject: str,
    ) -> Checked:
        """Return the checked reply, after one repair; or, for a problem, the result if none can be read."""

        def find_flaw(reply: Reply) -> str | None:
            problems = check(reply).problems[:12]
            return f"{'; '.join(problems)}; answer again for everything that was asked, each once" if problems else None

        def fail(fault: Fault) -> Checked:
            if fault.cause != "infrastructure":
                return without_reply(shorten(str(fault), 200))
            message = f"task {quote(self._task.id)}: {subject} could not be annotated: {fault}"
            raise ModelError(message) from fault

        return await ask_model(
            self._client,
            request,
            reply_model,
            read=lambda reply: check(reply.value),
            fail=fail,
            find_flaw=find_flaw,
        )


def _criterion_fields(criterion: Criterion) -> dict[str, Any]:
    parts = {"parts": [part.text for part in criterion.parts]} if criterion.parts else {}
    return {"points": criterion.weight, "text": criterion.text, **parts}


def _tokens(ids: Iterable[str]) -> int:
    """Return the largest number of tokens needed to write ids: one per byte."""
    return sum(len(name.encode()) for name in ids)


def _lines(entries: Iterable[Any]) -> str:
    return "\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)


def _batches(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
