"""Write a run as a workbook for Excel: two sheets that anybody can read, who is better first, and one with everything.

Below the agents stand the date of the run, its models, their cost, and what counted with which weight.

No spreadsheet evaluates a text of a run; one that looks like a formula is marked as text for who edits it, too.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Alignment, Font
from openpyxl.utils import get_column_letter
from pydantic import JsonValue

from jurygraph.display import ProgressCallback
from jurygraph.errors import InputError
from jurygraph.messages import (
    escape_multiline_text,
    format_count,
    format_number_for_sentence,
    format_time,
    shorten,
)
from jurygraph.runs.export_table import ExportTable, json_value_to_text
from jurygraph.runs.reports.bill import CallBill, ReplySource, source_of_reply
from jurygraph.runs.reports.summary import mean_without_none
from jurygraph.runs.reports.units import unit_name_of_task
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import ERASED_PLACEHOLDER
from jurygraph.runs.stored_groups import read_stored_groups
from jurygraph.schema import Call
from jurygraph.schema.task import chat_to_prompt_text
from jurygraph.views.agents import (
    RankedAgent,
    UnitRewards,
    agent_label,
    conclude_ranking,
    rank_agents,
    reward_limits_of_decisions,
)
from jurygraph.views.components import compare_components
from jurygraph.views.trace import criterion_texts, describe_lost_points

MAX_SHEET_ROWS = 1_048_576
_MAX_SHEET_COLUMNS = 16_384
_MAX_CELL_TEXT_LENGTH = 32_767  # UTF-16 units in a cell
_MAX_EXACT_INTEGER = 2**53  # whole numbers above are rounded, which an id must not be
_NON_XML_CHARACTERS_PATTERN = re.compile("[\ud800-\udfff\ufffe\uffff]")
_LITERAL_ESCAPE_PATTERN = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
"""What Excel would read as a character that cannot be written, such as `_x003D_`."""


class SheetColumn(NamedTuple):
    """A column of a sheet: its title, its width in characters, the form of its numbers, and whether it wraps texts."""

    title: str
    width: int
    number_format: str = "General"
    has_wrapped_text: bool = False


_MAX_QUESTION_LENGTH = 300
_MAX_ANSWER_LENGTH = 1000
_MAX_WEIGHTS_LISTED = 40
"""Weights that are listed: of tasks with rubrics of their own there may be thousands."""
_FOUR_DECIMALS_FORMAT = "0.0000"
"""As on pages and in the terminal."""
_RESPONSE_SHEET_COLUMNS = (
    SheetColumn("Response", 28, has_wrapped_text=True),
    SheetColumn("Question", 40, has_wrapped_text=True),
    SheetColumn(f"Answer, up to {_MAX_ANSWER_LENGTH:,} characters", 60, has_wrapped_text=True),
    SheetColumn("Agent", 18, has_wrapped_text=True),
    SheetColumn("Reward", 10, _FOUR_DECIMALS_FORMAT),
    SheetColumn("Judged", 10, "0%"),
    SheetColumn("What was lost, or why there is no reward", 90, has_wrapped_text=True),
)
_AGENT_SHEET_COLUMNS = (
    SheetColumn("Agent", 28, has_wrapped_text=True),
    SheetColumn("Mean reward", 12, _FOUR_DECIMALS_FORMAT),
    SheetColumn("From (95 %)", 12, _FOUR_DECIMALS_FORMAT),
    SheetColumn("To (95 %)", 12, _FOUR_DECIMALS_FORMAT),
    SheetColumn("Responses", 11),
    SheetColumn("Tasks", 11),
    SheetColumn("Failed", 11),
    SheetColumn("Is it better than the next?", 70, has_wrapped_text=True),
    SheetColumn("Is the best better than it?", 70, has_wrapped_text=True),
)

_LEGEND_ROWS = (
    (
        "Mean reward, From, To",
        "the mean of what did not fail, and its 95 % interval over the tasks",
    ),
    ("Judged", "the share of the weight that was judged; without the rest a reward is degraded"),
    (
        "Weight in Rewards",
        "of a criterion: its share of the weights that apply, penalties left out",
    ),
    (
        "0.9 of 1, 0.1 of 1",
        "of a criterion: the judge's probability that it is met; few models state 1 or 0",
    ),
    (
        "component.NAME, term.NAME",
        "the score of what was judged, and what counts, with what the failure rule puts for the rest",
    ),
    ("Not applicable", "adds nothing, so that means of agents may rest on different components"),
)
"""What is said in few words on the sheets, below the agents."""
SheetRow = Sequence[JsonValue]
SheetRows = Sequence[SheetRow]


def read_agent_sheet(run: Run) -> tuple[Sequence[SheetColumn], SheetRows]:
    """Return the columns of the sheet of agents, and a row for each agent, the best first.

    The interval is over tasks, or groups of tasks. The components come last, those in which agents differ most first.
    What the run was, cost and counted follows after an empty row.
    """
    bill = CallBill()
    times = []
    rewards = []
    values: dict[tuple[str, str], list[float | None]] = defaultdict(list)
    for group in read_stored_groups(run):
        unit = unit_name_of_task(run, group.record.key)
        for trace in group.traces:
            agent = trace.agent or ""
            scored = int(trace.value is not None)
            rewards.append(UnitRewards(agent, unit, 1, scored, trace.value or 0.0, *trace.span))
            for name in trace.names:
                judged, _ = trace.component(name)
                values[name, agent].append(None if trace.value is None else judged)
            times.append(trace.current_run_record.at)
            for call in map(Call.model_validate, trace.body.get("calls", ())):
                bill.add(call, source_of_reply(run, call))
    for call in run.planning_calls():
        bill.add(call, source_of_reply(run, call))
    rows: list[SheetRow] = []
    limits = reward_limits_of_decisions(
        list(run.decisions()), min((row.least for row in rewards), default=0.0)
    )
    agents = rank_agents(rewards, limits)
    means = {
        key: (mean_without_none(judged), len(judged) - judged.count(None))
        for key, judged in values.items()
    }
    components = compare_components(agents, means, run.config)
    titles = [f"{row.component}: mean of the judged (points behind)" for row in components]
    columns = [*_AGENT_SHEET_COLUMNS, *(SheetColumn(title, 30) for title in titles)]
    for number, row in enumerate(agents):
        means_of_agent = [str(component.agents[number]) for component in components]
        rows.append((*_agent_cells(row), *means_of_agent))
    conclusion_rows: list[SheetRow] = [(sentence,) for sentence in conclude_ranking(agents)]
    if not run.is_closed:
        count = format_count(run.tasks_scored, "group" if run.header.is_open_ended else "task")
        conclusion_rows.append((f"Not finished: {count} so far",))
    conclusion_rows.append(())
    if times:
        scoring_time_texts = dict.fromkeys(map(format_time, (min(times), max(times))))
        conclusion_rows.append(("Scored", " to ".join(scoring_time_texts) + " UTC"))
    conclusion_rows.append(("Models", ", ".join(run.judges) or "none"))
    conclusion_rows.append(("Cost", _format_bill(bill)))
    conclusion_rows += _read_weights(run)
    if all(map(math.isfinite, limits)):
        conclusion_rows.append(
            ("Rewards can be", " to ".join(map(format_number_for_sentence, limits)))
        )
    conclusion_rows += _LEGEND_ROWS
    rows += (
        (*conclusion_row, *[None] * (len(columns) - len(conclusion_row)))
        for conclusion_row in conclusion_rows
    )
    return columns, rows


def _agent_cells(row: RankedAgent) -> SheetRow:
    ends: SheetRow = (None, None, None) if row.mean is None else row.mean[:3]
    if row.mean is not None and row.missing_interval is not None:
        ends = (row.mean.value, row.missing_interval, None)
    failed_response_count = row.responses - row.scored
    differences = [
        None if difference is None else difference.sentence for difference in (row.lead, row.gap)
    ]
    return (
        agent_label(row.agent),
        *ends,
        row.responses,
        row.units,
        failed_response_count,
        *differences,
    )


def _format_bill(bill: CallBill) -> str:
    billed_tallies = [bill.costs_by_source["sent"], bill.costs_by_source["unanswered"]]
    requests = sum(call_costs.number for call_costs in billed_tallies)
    unpriced_count = sum(call_costs.unpriced for call_costs in billed_tallies)
    is_cost_unknown = 0 < requests == unpriced_count
    cost_amount_text = (
        "unknown"
        if is_cost_unknown
        else f"${sum(call_costs.cost for call_costs in billed_tallies):.4f}"
    )
    parts = [f"{cost_amount_text}, {format_count(requests, 'request')} to models"]
    if unpriced_count and not is_cost_unknown:
        parts.append(f"{unpriced_count} of them without a known price")
    origin_text_by_source: dict[ReplySource, str] = {
        "cached": "from the cache",
        "carried": "from another run",
    }
    for source, origin in origin_text_by_source.items():
        number = bill.costs_by_source[source].number
        if number:
            parts.append(f"{number} more {origin}")
    return ", ".join(parts)


def _read_weights(run: Run) -> Iterator[tuple[str, JsonValue]]:
    """Yield what counted, with its weight: each component, and its criteria or evaluators where it has several."""
    weights = defaultdict(set)
    for decision in run.decisions():
        for spec in decision.effective_specs:
            weights[f"Weight of {spec.name}"].add(spec.weight)
            if len(spec.inputs) > 1:
                for name, use in spec.inputs.items():
                    label = f"Weight of {spec.name}: {name}"
                    weights[label].add(use.signed_weight)
    for label, values in list(weights.items())[:_MAX_WEIGHTS_LISTED]:
        low, *others = sorted(values)
        yield (
            label,
            f"{format_number_for_sentence(low)} to {format_number_for_sentence(others[-1])}"
            if others
            else low,
        )
    if len(weights) > _MAX_WEIGHTS_LISTED:
        yield f"and {len(weights) - _MAX_WEIGHTS_LISTED} more weights", None


def read_response_rows(run: Run, report: ProgressCallback) -> list[SheetRow]:
    """Return a row of the readable sheet for every response: those without a reward, then the lowest reward first."""
    rows = []
    for trace, response, task in run.responses_with_tasks():
        criteria = criterion_texts(run.decision_of(trace.task_id), task)
        reward = trace.reward
        cells = (
            trace.response_id,
            ERASED_PLACEHOLDER
            if task is None
            else shorten(chat_to_prompt_text(task.query), _MAX_QUESTION_LENGTH),
            ERASED_PLACEHOLDER if response is None else shorten(response.text, _MAX_ANSWER_LENGTH),
            trace.agent,
            # This sheet is for reading: the other one has 16 digits.
            None if reward.value is None else round(reward.value, 4),
            round(reward.coverage, 4),
            describe_lost_points(run.explain_trace(trace), criteria),
        )
        rows.append((reward.value, cells))
        report(1)
    rows.sort(key=lambda row: (row[0] is not None, row[0] or 0.0))
    return [cells for _, cells in rows]


def write_workbook(
    losses: SheetRows,
    agents: tuple[Sequence[SheetColumn], SheetRows],
    table: ExportTable,
    path: Path,
) -> None:
    """Write the three sheets. Raises `InputError` where a sheet has no room for the columns."""
    names = list(table.columns)
    if len(names) > _MAX_SHEET_COLUMNS:
        raise InputError(
            f"{len(names)} columns: {_MAX_SHEET_COLUMNS} are all that a sheet has; "
            "use --to parquet, or leave out columns"
        )
    row_values = ([row.get(name) for name in names] for rows in table.batches() for row in rows)
    workbook = Workbook(write_only=True)
    _add_sheet(workbook, "Agents", *agents)  # first, so that the file opens on who is better
    _add_sheet(workbook, "Rewards", _RESPONSE_SHEET_COLUMNS, losses)
    _add_sheet(workbook, "Everything", [SheetColumn(name, 16) for name in names], row_values)
    workbook.save(path)


def _add_sheet(
    workbook: Workbook,
    title: str,
    columns: Sequence[SheetColumn],
    rows: Iterable[SheetRow],
) -> None:
    """Add a sheet; a row has a value for each column, None for an empty cell."""
    sheet = workbook.create_sheet(title)
    sheet.freeze_panes = "A2"  # the titles stay in sight
    titles = []
    for number, column in enumerate(columns, start=1):
        sheet.column_dimensions[get_column_letter(number)].width = column.width
        cell = _make_cell(sheet, column.title)
        cell.font = Font(bold=True)
        titles.append(cell)
    sheet.append(titles)
    top_alignment = Alignment(vertical="top")
    wrapped_alignment = Alignment(vertical="top", wrap_text=True)
    for row in rows:
        cells = []
        for column, value in zip(columns, row, strict=True):
            cell = _make_cell(sheet, value)
            if column.number_format != "General":
                cell.number_format = column.number_format
                cell.alignment = top_alignment
            elif column.has_wrapped_text:
                cell.alignment = wrapped_alignment
            cells.append(cell)
        sheet.append(cells)


def _make_cell(sheet: Any, value: JsonValue) -> Any:
    is_exact = isinstance(value, int) and abs(value) < _MAX_EXACT_INTEGER
    if value is None or is_exact or isinstance(value, float):
        return WriteOnlyCell(sheet, value)
    text = _NON_XML_CHARACTERS_PATTERN.sub(
        lambda match: json.dumps(match[0])[1:-1], escape_multiline_text(json_value_to_text(value))
    )
    units = text.encode("utf-16-le")
    if len(units) > 2 * _MAX_CELL_TEXT_LENGTH:
        text = units[: 2 * (_MAX_CELL_TEXT_LENGTH - 1)].decode("utf-16-le", "ignore") + "…"
    cell = WriteOnlyCell(sheet, _LITERAL_ESCAPE_PATTERN.sub("_x005F_", text))
    cell.data_type = "s"  # also of what the library takes for a formula, or an error such as #N/A
    cell.quotePrefix = text.startswith(("=", "+", "-", "@"))
    return cell
