"""Facts: claims read from a response's data, looked up in the tables or tools of its task, and the share confirmed."""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import chain
from operator import getitem
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypedDict, TypeVar, cast

from jurygraph.agents import notation
from jurygraph.agents.facts.tables import (
    ClaimPattern,
    ClaimsSpec,
    FactsSpec,
    FactTableSpec,
    ReferenceFactTable,
    RowTable,
    ToolTable,
    claimed_value_matches,
    normalise_text,
    split_list,
    value_sort_key,
    value_to_text,
)
from jurygraph.agents.registry import import_objects_by_name
from jurygraph.agents.roles import CodeEvaluator, Deriver, DeriverInput, EvaluatorInput
from jurygraph.errors import InputError, PlanError, add_part_to_plan_errors
from jurygraph.messages import (
    Problem,
    did_you_mean,
    list_first,
    nearest_name,
    quote,
    shorten,
    validate,
)
from jurygraph.schema import Audience, Evidence, Material, Question, TaskView, Verdict, digest_of
from jurygraph.schema.frozen_model import (
    EMPTY_OBJECT,
    JsonFields,
    ParamsModel,
    RawParams,
    ReadOnlyFields,
)
from jurygraph.sources.files import searched_folders_text

CachedEntry = TypeVar("CachedEntry", "Facts", RowTable)

_MAX_CACHED_ENTRIES = 256
_CACHE_LOCK = threading.Lock()


class Facts(NamedTuple):
    """The tables and kinds of claims of a task, by name.

    `digest_params` are the parts of the facts outside the task (digests of files); they belong in the params of every
    question that depends on the facts.
    """

    tables: Mapping[str, ReferenceFactTable]
    claims: Mapping[str, ClaimsSpec]
    digest_params: RawParams

    @property
    def is_up_to_date(self) -> bool:
        return all(table.is_up_to_date for table in self.tables.values())


def load_facts(view: TaskView) -> Facts:
    """Return the facts of a view's task, with its files as they are now. Raises PlanError naming the field."""
    if view.facts is None:
        raise PlanError(
            f"task {view.id!r}: has no facts, but an evaluator needs them; give the task `facts` with "
            "`tables` and `claims`, or leave those evaluators out"
        )

    def get_shared_facts() -> Facts:
        with add_part_to_plan_errors("facts"):
            return _get_cached_or_open(
                _FACTS_CACHE, digest_of(view.facts), lambda: _open_facts(view)
            )

    with _CACHE_LOCK:
        return _get_cached_or_open(_FACTS_CACHE, view.digest, get_shared_facts)


def table_file_digests(view: TaskView) -> Mapping[str, str]:
    """Return the SHA-256 of each file of the tables of a view's facts, by its field; other facts are not read.

    Raises PlanError naming what is wrong with a table.
    """
    if view.facts is None:
        return {}
    # Other facts may be called anything.
    slip = nearest_name("tables", view.facts, min_similarity=0.8)
    if slip is not None and "tables" not in view.facts:
        raise PlanError(
            f"task {view.id!r}: facts.{slip}: is not a known field here; did you mean tables?"
        )
    tables = view.facts.get("tables", {})
    facts = load_facts(view.model_copy(update={"facts": {"tables": tables}}))
    sha256_by_name = facts.digest_params.get("files", {})
    return {f"facts.tables.{name}.file": sha256 for name, sha256 in sha256_by_name.items()}


_FACTS_CACHE: dict[str, Facts] = {}
"""By the digests of views and of facts, since every response and every member of an audience needs the same ones."""

_TABLE_FILE_CACHE: dict[tuple[str, str, str], RowTable] = {}
"""By name, digest and path: a file is indexed once, as long as it is unchanged."""


def _get_cached_or_open(
    cache: dict[Any, CachedEntry], key: Any, load_entry: Callable[[], CachedEntry]
) -> CachedEntry:
    """Return the entry of a key, opened anew if it is not fresh; the oldest is dropped beyond the limit."""
    entry = cache.get(key)
    if entry is None or not entry.is_up_to_date:
        cache.pop(key, None)
        cache[key] = entry = load_entry()
        if len(cache) > _MAX_CACHED_ENTRIES:
            del cache[next(iter(cache))]
    return entry


def _open_facts(view: TaskView) -> Facts:
    facts = validate(FactsSpec, view.facts)
    if isinstance(facts, Problem):
        field = f"facts.{facts.field}" if facts.path else "facts"
        raise PlanError(f"task {view.id!r}: {field}: {facts}")
    try:
        tables = {name: _open_table(name, table) for name, table in sorted(facts.tables.items())}
    except PlanError as error:
        raise PlanError(f"task {view.id!r}: {error}") from error
    for name, kind in facts.claims.items():
        error_location = f"task {view.id!r}: facts.claims.{name}"
        for index, form in enumerate(kind.forms):
            notation.require_known_names(
                f"{error_location}.forms[{index}].table", [form.table], tables, "table"
            )
            table = tables[form.table]
            if kind.merged is not None and kind.merged in (table.columns or ()):
                raise PlanError(
                    f"{error_location}.merged: is {quote(kind.merged)}, which is a column of {form.table}; "
                    "give the number another name"
                )
            _check_claim_pattern(f"{error_location}.forms[{index}]", kind, form, table)
    sha256_by_name = {
        name: table.digest for name, table in tables.items() if table.digest is not None
    }
    return Facts(
        tables,
        dict(sorted(facts.claims.items())),
        {"files": sha256_by_name} if sha256_by_name else {},
    )


def _open_table(name: str, spec: FactTableSpec) -> ReferenceFactTable:
    table: ReferenceFactTable
    if spec.tool is not None:
        table = ToolTable(name, spec)
    elif spec.file is not None:
        key = name, spec.digest, str(Path(spec.file).absolute())
        try:
            table = _get_cached_or_open(_TABLE_FILE_CACHE, key, lambda: RowTable(name, spec))
        except InputError as error:
            folder_note = searched_folders_text(spec.file, "TASKS or config")
            raise PlanError(f"facts.tables.{name}.file: {error}{folder_note}") from error
    else:
        table = RowTable(name, spec)
    error_location = f"facts.tables.{name}"
    notation.require_known_names(f"{error_location}.key", spec.key, table.columns)
    notation.require_known_names(f"{error_location}.lists", spec.lists, table.columns)
    if spec.order:
        notation.require_known_names(f"{error_location}.order", [spec.order], table.columns)
    return table


def _check_claim_pattern(
    error_location: str, kind: ClaimsSpec, form: ClaimPattern, table: ReferenceFactTable
) -> None:
    name, *_ = table.spec.key
    groups = {form.columns.get(group, group) for group in form.groups}
    if form.compiled_pattern is None:
        groups = {name}
    claimed_columns = {*groups, *kind.beside, *form.states}
    for column in table.spec.key:
        if column not in claimed_columns:
            raise PlanError(
                f"{error_location}: has no value for {quote(column)}, which is part of the key of {table.name}; "
                "name a group of the pattern so, or set it in `beside` or `states`"
            )
    notation.require_known_names(f"{error_location}.pattern", sorted(groups), table.columns)
    notation.require_known_names(
        f"{error_location}.within", form.within, claimed_columns, "claimed column"
    )


_MAX_RECORD_VALUE_CHARACTERS = 1000


class FactClaim(NamedTuple):
    """One claim: its path, its text, the form that it matches, and its values by column.

    `form` is None if it matches none, so that nothing can be looked up. `record_values` are values of the record that
    holds the claim, None if the record has none, and `order` is the sort key among the claims.
    """

    at: str
    text: str
    form: ClaimPattern | None
    values: Mapping[str, str]
    record_values: ReadOnlyFields
    order: tuple[Any, ...]


def read_claims(kind: ClaimsSpec, data: Any) -> list[FactClaim]:
    """Return the claims of one kind in a response's data, in their order; two paths to one value give one claim."""
    nodes = chain.from_iterable(path.find(data) for path in kind.paths)
    node_by_location = {node.location: node for node in nodes}
    claims = []
    for location, node in node_by_location.items():
        parent = reduce(getitem, location[:-1], data)
        record = parent if isinstance(parent, dict) else {}
        order_key = value_sort_key(None if kind.order is None else record.get(kind.order))
        path, steps = _to_path_and_sort_key(location)
        record_values = {}
        for name, record_field in kind.beside.items():
            value = record.get(record_field.field)
            is_long_text = isinstance(value, str) and len(value) > _MAX_RECORD_VALUE_CHARACTERS
            # every claim would repeat lists, objects and long texts
            if is_long_text or isinstance(value, list | dict):
                value = None
            if record_field.map is not None:
                value = record_field.map.get(value_to_text(value))
            record_values[name] = value
        parts = map(str.strip, split_list(value_to_text(node.value), kind.split))
        for number, text in enumerate(part for part in parts if part not in ("", "-")):
            form, values = kind.match_claim_form(text)
            order = (*order_key, steps, number)
            claims.append(FactClaim(path, text, form, values, record_values, order))
    return sorted(claims, key=lambda claim: claim.order)


def are_adjacent_claims(before: FactClaim, after: FactClaim) -> bool:
    """Return true if the orders of two claims are numbers that are equal or follow each other."""
    (type_rank, first, *_), (other_type_rank, second, *_) = before.order, after.order
    return bool(type_rank == other_type_rank == 0 and second - first <= 1)


@lru_cache(maxsize=1 << 14)
def _to_path_and_sort_key(location: tuple[str | int, ...]) -> tuple[str, tuple[Any, ...]]:
    """Return a location as a JSONPath and as a sort key.

    Cached: the responses of a group share most locations, and 10 of the 25 µs that a claim takes to read would go here.
    """
    return notation.location_to_jsonpath(location), notation.location_sort_key(location)


FindingStatus = Literal["confirmed", "differs", "elsewhere", "unknown", "unread"]
_MAX_SUGGESTED_PLACES = 5
_MAX_SHOWN_CHARACTERS = 200


class FactFinding(TypedDict):
    """The result of looking up a claim, as JSON.

    `confirmed`: the row exists and agrees. `differs`: the row exists, but disagrees or has no value in the columns
    `differs`. `elsewhere`: rows of that name exist at other `places`. `unknown`: no row has that name. `unread`: the
    claim matches none of the task's forms.

    `at` are JSONPaths. `row` is the number of the row in `table`, from 1, or None without a row. `values` are the row's
    values, those of the claim that no column holds, and the number of merged claims; without a row, all claimed values.
    `own` are the columns of `values` that come from the response, whatever the row.
    """

    at: list[str]
    text: str
    found: FindingStatus
    table: str | None
    row: int | None
    values: JsonFields
    own: list[str]
    claimed: dict[str, str]
    differs: list[str]
    places: list[str]


def describe_finding(finding: FactFinding) -> str:
    where = f" in {finding['table']}" if finding["table"] else ""
    text = repr(shorten(finding["text"], _MAX_SHOWN_CHARACTERS))
    differences = []
    for column in finding["differs"]:
        actual_text = value_to_text(finding["values"].get(column))
        claimed_text = shorten(finding["claimed"][column], _MAX_SHOWN_CHARACTERS)
        differences.append(
            f"{column} is {actual_text or 'not told'}, not {claimed_text or 'left open'}"
        )
    descriptions = {
        "confirmed": f"is there{where}",
        "differs": f"is there{where}, but {', '.join(differences)}",
        "elsewhere": f"is not there{where}, but in {'; '.join(finding['places'])}",
        "unknown": f"is not there{where}",
        "unread": f"cannot be read{where}",
    }
    return f"{text} {descriptions[finding['found']]}"


async def look_up(
    kind: ClaimsSpec, tables: Mapping[str, ReferenceFactTable], data: Any
) -> list[FactFinding]:
    claims = read_claims(kind, data)
    findings = [await _look_up_claim(claim, tables) for claim in claims]
    if kind.merged is None:
        return findings
    merged_findings: list[FactFinding] = []
    for index, finding in enumerate(findings):
        previous = merged_findings[-1] if merged_findings else None
        if (
            previous is not None
            and compute_claim_key(previous) == compute_claim_key(finding)
            and are_adjacent_claims(claims[index - 1], claims[index])
        ):
            previous["at"] += finding["at"]
            previous["values"][kind.merged] += 1
        else:
            finding["values"][kind.merged] = 1
            finding["own"] = sorted({*finding["own"], kind.merged})
            merged_findings.append(finding)
    return merged_findings


async def _look_up_claim(claim: FactClaim, tables: Mapping[str, ReferenceFactTable]) -> FactFinding:
    if claim.form is None:
        own_columns = sorted(claim.record_values)
        return _build_finding(claim, "unread", values=dict(claim.record_values), own=own_columns)
    table = tables[claim.form.table]
    claimed_values = claim.values
    if claim.form.compiled_pattern is None:
        claimed_values = {table.spec.key[0]: claim.text}
    record_and_form_values = {**claim.record_values, **claim.form.states}
    values = {**record_and_form_values, **claimed_values}
    key = table.build_row_key(values)
    # A claim without a part of the key matches no row.
    rows = await table.find(key) if all(key) else ()
    columns = table.columns or (rows[0].values.keys() if rows else ())
    response_columns = sorted(name for name in record_and_form_values if name not in columns)
    if not rows:
        places = table.places(key[0]) if key[0] else ()
        place_texts = {", ".join(filter(None, parts)) for parts in places} - {""}
        places_with_name = sorted(place_texts)[:_MAX_SUGGESTED_PLACES]
        return _build_finding(
            claim,
            "elsewhere" if places_with_name else "unknown",
            table=table.name,
            values=values,
            own=response_columns,
            places=places_with_name,
        )
    first = rows[0]
    row_values = {
        name: None if name in columns else value for name, value in record_and_form_values.items()
    }
    compared_values = {
        name: value_to_text(value)
        for name, value in values.items()
        if name not in table.spec.key and (name in columns or name in claimed_values)
    }
    tolerances = claim.form.within
    differs = [
        name
        for name, value in sorted(compared_values.items())
        if not claimed_value_matches(value, first.values.get(name), tolerances.get(name, 0.0))
    ]
    return _build_finding(
        claim,
        "differs" if differs else "confirmed",
        table=table.name,
        row=first.number,
        values={**row_values, **first.values},
        own=response_columns,
        claimed=compared_values,
        differs=differs,
    )


def _build_finding(claim: FactClaim, status: FindingStatus, **fields: Any) -> FactFinding:
    return {
        "at": [claim.at],
        "text": claim.text,
        "found": status,
        "table": None,
        "row": None,
        "claimed": {},
        "differs": [],
        "places": [],
        **fields,  # type: ignore[typeddict-item]
    }


def compute_claim_key(finding: FactFinding) -> tuple[Any, ...]:
    """Return a key that is equal for findings of the same claim made twice."""
    claimed_column_values = tuple(sorted(finding["claimed"].items()))
    return (
        normalise_text(finding["text"]),
        finding["found"],
        finding["table"],
        finding["row"],
        claimed_column_values,
        *finding["places"],
    )


CLAIMS_MATERIAL_NAME = "claims"


class Claims(Deriver):
    """Read all claims of the kinds in the task's `facts` from a response's data, and look them up in its tables."""

    class Params(ParamsModel):
        tools: dict[str, str] = EMPTY_OBJECT
        """langchain-core tools by the names that tasks use for them, each as package.module.tool: a task is data, so it
        cannot name code by itself."""

    name = "facts.claims"
    version = "1"
    gives = CLAIMS_MATERIAL_NAME
    reads_data = True
    bounds_its_time = True

    settings: Params

    def _set_up_from_settings(self) -> None:
        self._tools = import_objects_by_name(
            "facts.claims: params.tools",
            self.settings.tools,
            "ainvoke",
            "a langchain-core tool, such as one made with @tool",
        )

    def params_for(self, view: TaskView) -> RawParams:
        if view.facts is None:
            return self.params
        facts = load_facts(view)
        for name, table in facts.tables.items():
            tool = table.spec.tool
            if tool is not None and tool not in self._tools:
                hint = did_you_mean(tool, self._tools) or "list it in the params of facts.claims"
                with add_part_to_plan_errors("facts"):
                    raise PlanError(
                        f"task {view.id!r}: facts.tables.{name}.tool: there is no tool {quote(tool)} in the config; "
                        f"{hint}, as tools: {{name: package.tool}}"
                    )
        return {**self.params, **facts.digest_params}

    async def derive(self, inputs: DeriverInput) -> Material:
        facts = load_facts(inputs.task)
        tables = dict(facts.tables)
        for name, table in facts.tables.items():
            if table.spec.tool is not None:
                tables[name] = ToolTable(name, table.spec, self._tools.get(table.spec.tool))
        results: Any = {
            kind: await look_up(claims_spec, tables, inputs.response.data)
            for kind, claims_spec in facts.claims.items()
        }
        sha256_by_name = facts.digest_params.get("files", {})
        file_hash_evidence = tuple(
            Evidence(quote=sha256, source=table) for table, sha256 in sha256_by_name.items()
        )
        # Validated by the caller.
        return Material.model_construct(
            name=CLAIMS_MATERIAL_NAME, data=results, evidence=file_hash_evidence
        )


def get_claim_findings(inputs: EvaluatorInput) -> Mapping[str, Sequence[FactFinding]]:
    """Return the looked-up claims by kind.

    Raises InputError if a table file is not the one that the question was planned with.
    """
    planned_file_digests: Any = inputs.question.params.get("files", {})
    material = inputs.material[0][CLAIMS_MATERIAL_NAME]
    used_file_digests = {evidence.source: evidence.quote for evidence in material.evidence}
    for table, sha256 in planned_file_digests.items():
        if used_file_digests.get(table) != sha256:
            raise InputError(
                f"facts.tables.{table}.file: changed since the plan was made; prepare the task again"
            )
    return cast("Mapping[str, Sequence[FactFinding]]", material.data)


_MAX_SHOWN_CLAIMS = 20
"""The largest number of claims that a verdict shows with their evidence; the material has all of them."""


class ConfirmedClaims(CodeEvaluator):
    """Score the share of the claims of a kind that are confirmed, each counted once even if repeated.

    A response that claims nothing of the kind, or has no data, is not judged; data without any claim at all scores 0.
    """

    class Params(ParamsModel):
        audience: Audience = "task"
        """`task`, or `stakeholder` if each one's utility should depend on the facts too."""

    name = "facts.confirmed"
    layer = "fact"
    reads_data = True
    needs = (CLAIMS_MATERIAL_NAME,)

    settings: Params

    def _set_up_from_settings(self) -> None:
        self.audience = self.settings.audience

    def questions(self, view: TaskView) -> Sequence[Question]:
        facts = load_facts(view)
        return [
            self.question(view, kind, params={**self.params, "kind": kind, **facts.digest_params})
            for kind in facts.claims
        ]

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        kind = str(inputs.question.params["kind"])
        findings_by_kind = get_claim_findings(inputs)
        if not findings_by_kind[kind] and (
            inputs.response.data is None or any(findings_by_kind.values())
        ):
            return Verdict.abstain(f"the response's data claims no {kind}")
        finding_by_key = {
            compute_claim_key(finding): finding for finding in reversed(findings_by_kind[kind])
        }
        findings = [*reversed(finding_by_key.values())]
        if not findings:
            reason = "the response's data claims nothing that could be looked up"
            return Verdict(score=0.0, met=False, reason=reason)
        unconfirmed_findings = [finding for finding in findings if finding["found"] != "confirmed"]
        confirmed_claim_count = len(findings) - len(unconfirmed_findings)
        reasons = [f"{confirmed_claim_count} of {len(findings)} {kind} are confirmed"]
        reasons += list_first([*map(describe_finding, unconfirmed_findings)], _MAX_SHOWN_CLAIMS)
        shown_findings = unconfirmed_findings[:_MAX_SHOWN_CLAIMS] or findings[:1]
        evidence = chain.from_iterable(map(make_claim_evidence, shown_findings))
        return Verdict(
            score=confirmed_claim_count / len(findings),
            met=not unconfirmed_findings,
            native=confirmed_claim_count,
            scale=(0, len(findings)),
            reason="; ".join(reasons),
            evidence=tuple(evidence),
        )


def make_claim_evidence(finding: FactFinding) -> Sequence[Evidence]:
    """Return the claim as evidence from the response's data, and the table row it was compared with, if any."""
    path = f"data {', '.join(finding['at'])}"
    claim = Evidence(quote=finding["text"], source=path, verified=True)
    if finding["row"] is None:
        return (claim,)
    row_values = {
        column: value for column, value in finding["values"].items() if column not in finding["own"]
    }
    source = f"{finding['table']}, row {finding['row']}"
    return claim, Evidence(quote=value_to_text(row_values), source=source, verified=True)
