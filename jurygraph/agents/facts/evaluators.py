"""The deriver that looks up claims, and the evaluator that scores the share confirmed."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from jurygraph.agents import notation
from jurygraph.agents.facts.loader import load_facts
from jurygraph.agents.facts.lookup import Finding, claim_key, describe_finding, look_up
from jurygraph.agents.facts.tables import ToolTable
from jurygraph.agents.facts.values import to_text
from jurygraph.agents.roles import CodeEvaluator, Deriver, DeriverInput, EvaluatorInput
from jurygraph.errors import InputError, PlanError, name_part
from jurygraph.messages import did_you_mean, quote
from jurygraph.schema import Audience, Evidence, Material, Question, TaskView, Verdict
from jurygraph.schema.frozen_model import ParamsModel, PlainParams

CLAIMS = "claims"


class Claims(Deriver):
    """Read all claims of the kinds in the task's `facts` from a response's data, and look them up in its tables."""

    class Params(ParamsModel):
        tools: dict[str, str] = Field(default_factory=dict)
        """langchain-core tools by the names that tasks use for them, each as package.module.tool: a task is data, so it
        cannot name code by itself."""

    name = "facts.claims"
    version = "1"
    gives = CLAIMS
    reads_data = True
    bounds_its_time = True

    settings: Params

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        tool = "a langchain-core tool, such as one made with @tool"
        self._tools = notation.import_named("facts.claims: params.tools", self.settings.tools, "ainvoke", tool)

    def params_for(self, view: TaskView) -> PlainParams:
        if view.facts is None:
            return self.params
        facts = load_facts(view)
        for name, table in facts.tables.items():
            if table.spec.tool is not None and table.spec.tool not in self._tools:
                hint = did_you_mean(table.spec.tool, self._tools) or "list it in the params of facts.claims"
                tool = f"there is no tool {quote(table.spec.tool)} in the config; {hint}"
                with name_part("facts"):
                    problem = f"facts.tables.{name}.tool: {tool}, as tools: {{name: package.tool}}"
                    raise PlanError(f"task {view.id!r}: {problem}")
        return {**self.params, **facts.marks}

    async def derive(self, inputs: DeriverInput) -> Material:
        facts = load_facts(inputs.task)
        data = inputs.response.data
        tables = {
            name: table if (tool := table.spec.tool) is None else ToolTable(name, table.spec, self._tools.get(tool))
            for name, table in facts.tables.items()
        }
        results: Any = {kind: await look_up(claim_kind, tables, data) for kind, claim_kind in facts.claims.items()}
        marks = facts.marks.get("files", {})
        files = tuple(Evidence(quote=sha256, source=table) for table, sha256 in marks.items())
        return Material.model_construct(name=CLAIMS, data=results, evidence=files)  # validated by the caller


def claim_findings(inputs: EvaluatorInput) -> Mapping[str, Sequence[Finding]]:
    """Return the looked-up claims by kind.

    Raises InputError if a table file is not the one that the question was planned with.
    """
    planned: Any = inputs.question.params.get("files", {})
    material: Any = inputs.material[0][CLAIMS]
    used = {evidence.source: evidence.quote for evidence in material.evidence}
    for table, sha256 in planned.items():
        if used.get(table) != sha256:
            raise InputError(f"facts.tables.{table}.file: changed since the plan was made; prepare the task again")
    findings: Mapping[str, Sequence[Finding]] = material.data
    return findings


_MAX_WRONG = 20
"""The largest number of claims that a verdict shows with their evidence; the material has all of them."""


class Confirmed(CodeEvaluator):
    """Score the share of the claims of a kind that are confirmed, each counted once even if repeated.

    A response that claims nothing of the kind, or has no data, is not judged; data without any claim at all scores 0.
    """

    class Params(ParamsModel):
        audience: Audience = "task"
        """`task`, or `stakeholder` if each one's utility should depend on the facts too."""

    name = "facts.confirmed"
    layer = "fact"
    reads_data = True
    needs = (CLAIMS,)

    settings: Params

    def __init__(self, **params: Any) -> None:
        super().__init__(**params)
        self.audience = self.settings.audience

    def questions(self, view: TaskView) -> Sequence[Question]:
        facts = load_facts(view)
        return [self.question(view, kind, params={**self.params, "kind": kind, **facts.marks}) for kind in facts.claims]

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        kind = str(inputs.question.params["kind"])
        claimed = claim_findings(inputs)
        if not claimed[kind] and (inputs.response.data is None or any(claimed.values())):
            return Verdict.abstain(f"the response's data claims no {kind}")
        return _verdict_on_kind(claimed[kind], kind)


def _verdict_on_kind(claimed: Sequence[Finding], kind: str) -> Verdict:
    findings = list({claim_key(finding): finding for finding in reversed(claimed)}.values())[::-1]
    if not findings:
        return Verdict(score=0.0, met=False, reason="the response's data claims nothing that could be looked up")
    unconfirmed = [finding for finding in findings if finding["found"] != "confirmed"]
    shown = unconfirmed[:_MAX_WRONG]
    right = len(findings) - len(unconfirmed)
    reasons = [f"{right} of {len(findings)} {kind} are confirmed", *map(describe_finding, shown)]
    if len(unconfirmed) > _MAX_WRONG:
        reasons.append(f"and {len(unconfirmed) - _MAX_WRONG} more")
    return Verdict(
        score=right / len(findings),
        met=not unconfirmed,
        native=right,
        scale=(0, len(findings)),
        reason="; ".join(reasons),
        evidence=tuple(part for finding in shown or findings[:1] for part in claim_evidence(finding)),
    )


def claim_evidence(finding: Finding) -> Sequence[Evidence]:
    """Return the claim as evidence from the response's data, and the table row it was compared with, if any."""
    claim = Evidence(quote=finding["text"], source=f"data {', '.join(finding['at'])}", verified=True)
    if finding["row"] is None:
        return (claim,)
    row = to_text({column: value for column, value in finding["values"].items() if column not in finding["own"]})
    return claim, Evidence(quote=row, source=f"{finding['table']}, row {finding['row']}", verified=True)
