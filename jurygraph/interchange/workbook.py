"""Write a run as a workbook for Excel: sheets that anybody can read, who is better first, and one with everything.

No spreadsheet evaluates a text of a run; one that looks like a formula is marked as text for who edits it, too.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from openpyxl import Workbook
from openpyxl.cell import WriteOnlyCell
from openpyxl.styles import Alignment, Font
from openpyxl.utils import get_column_letter
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.properties import PageSetupProperties
from pydantic import JsonValue

from jurygraph.display import ignore_progress
from jurygraph.errors import InputError
from jurygraph.explanation.terms import ExplainedVerdict
from jurygraph.inference.clusters import MIN_TESTED_ITEMS
from jurygraph.messages import (
    escape_multiline_text,
    format_count,
    shorten,
)
from jurygraph.runs.export_table import ExportTable, json_value_to_text
from jurygraph.runs.reports.bill import CallBill, source_of_reply
from jurygraph.runs.reports.gates import GateCounts
from jurygraph.runs.reports.units import unit_name_of_task
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import ERASED_PLACEHOLDER
from jurygraph.runs.stored_groups import TraceWithoutTexts, read_stored_groups
from jurygraph.runs.table_reader import MeasuredError, TableOptions
from jurygraph.schema import Call, Task
from jurygraph.schema.rating import format_label
from jurygraph.schema.task import last_request_text
from jurygraph.sources.csv_text import escape_formulas
from jurygraph.views.agents import (
    RankedAgent,
    agent_label,
    conclude_ranking,
    rank_agents,
    reward_limits_of_decisions,
    unit_rewards,
)
from jurygraph.views.components import JudgedValues, compare_components
from jurygraph.views.juries import describe_jury_votes
from jurygraph.views.labels import compare_by_label
from jurygraph.views.trace import criterion_texts, describe_lost_points

MAX_SHEET_ROWS = 1_048_576
_MAX_SHEET_COLUMNS = 16_384
_MAX_CELL_TEXT_LENGTH = 32_767  # UTF-16 units in a cell
_MAX_EXACT_INTEGER = 2**53  # whole numbers above are rounded, which an id must not be
_NON_XML_CHARACTERS_PATTERN = re.compile("[\ud800-\udfff\ufffe\uffff]")
_LITERAL_ESCAPE_PATTERN = re.compile("_(?=x[0-9A-Fa-f]{4}_)")
"""What Excel would read as a character that cannot be written, such as `_x003D_`."""
_FORBIDDEN_TITLE_PATTERN = re.compile(r"[\\/?*:\[\]]")
_MAX_TITLE_LENGTH = 31


class SheetColumn(NamedTuple):
    """A column of a sheet: its title, its width in characters, and the form of its numbers."""

    title: str
    width: int
    number_format: str = "General"


_MAX_QUESTION_LENGTH = 300
_MAX_ANSWER_LENGTH = 1000
_FOUR_DECIMALS_FORMAT = "0.0000"
"""As on pages and in the terminal."""
_RESPONSE_SHEET_COLUMNS = (
    SheetColumn("Response", 28),
    SheetColumn("Task", 18),
    SheetColumn("Question", 40),
    SheetColumn(f"Answer, up to {_MAX_ANSWER_LENGTH:,} characters", 60),
    SheetColumn("Agent", 18),
    SheetColumn("Reward", 10, _FOUR_DECIMALS_FORMAT),
    SheetColumn("Judged, or set by a gate", 14, "0%"),
    SheetColumn("What was lost, or why there is no reward", 90),
)
_AGENT_SHEET_COLUMNS = (
    SheetColumn("Agent", 28),
    SheetColumn("Mean reward", 12, _FOUR_DECIMALS_FORMAT),
    SheetColumn("From (95 %)", 12, _FOUR_DECIMALS_FORMAT),
    SheetColumn("To (95 %)", 12, _FOUR_DECIMALS_FORMAT),
    SheetColumn("Responses", 11),
    SheetColumn("Tasks", 11),
    SheetColumn("Failed", 11),
    SheetColumn("Is it better than the next?", 70),
    SheetColumn("Is the best better than it?", 70),
)

_TEXT_TITLES = (
    "prompt",
    "text",
    "first",
    "second",
    "reason",
    "definition",
    "anchors",
    "in doubt",
    "warning",
)
_MAX_CHOICES_LENGTH = 255
"""What Excel takes as the list of a drop-down, in characters; a choice cannot have a comma or a quotation mark."""
SheetRow = Sequence[JsonValue]
SheetRows = Sequence[SheetRow]


class Sheet(NamedTuple):
    """The columns of a sheet, its rows, with a value for each of the first columns, and a line above the titles."""

    columns: Sequence[SheetColumn]
    rows: SheetRows
    legend: str = ""


def read_sheets(run: Run, options: TableOptions) -> dict[str, Sheet]:
    """Return the sheets to read, by title. Raises `InputError` for a label that no response has."""
    label_sheets = {}
    if options.by:  # first, so that a wrong label is refused before the rest is read
        title = _FORBIDDEN_TITLE_PATTERN.sub(" ", f"By {options.by}")[:_MAX_TITLE_LENGTH]
        label_sheets[title] = read_label_sheet(run, options.by)
    response_sheet = read_response_sheet(run, options)
    agent_sheet = read_agent_sheet(run, len(response_sheet.rows))
    sheets = read_reviewer_sheets(
        run, replace(options, report=ignore_progress)
    )  # first, as these runs are made for them
    if "Agents" in agent_sheet:  # before the others, so that the file opens on who is better
        sheets |= agent_sheet
    # a sheet that is there already keeps its place
    return sheets | label_sheets | {"Rewards": response_sheet} | agent_sheet


def read_agent_sheet(run: Run, listed_responses: int) -> dict[str, Sheet]:
    """Return the sheet `Agents`, with a row for each agent, the best first; of a single one, the sheet `Run`.

    The interval is over tasks, or groups of tasks. The components come last, those in which agents differ most first.
    Below the agents stand what the ranking concludes, what the run cost, its models, and how many responses the other
    sheets list, if not all.
    """
    rewards = []
    values: list[JudgedValues] = []
    gate_counts = GateCounts.begin(run)
    bill = CallBill()
    for call in run.planning_calls():
        bill.add(call, source_of_reply(run, call))
    for group in read_stored_groups(run):
        unit = unit_name_of_task(run, group.record.key)
        for trace in group.traces:
            rewards.append(unit_rewards(trace, unit))
            gate_counts.add(trace)
            values += _judged_values(trace, unit)
            for call in map(Call.model_validate, trace.body.get("calls", ())):
                bill.add(call, source_of_reply(run, call))
    lowest_reward = min((row.least for row in rewards), default=0.0)
    agents = rank_agents(rewards, reward_limits_of_decisions(list(run.decisions()), lowest_reward))
    components = compare_components(agents, values, run.config)
    columns = [*_AGENT_SHEET_COLUMNS]
    for name, *_ in components:
        columns += [
            SheetColumn(f"{name}: mean of the judged", 16, _FOUR_DECIMALS_FORMAT),
            SheetColumn(f"{name}: points behind", 16, _FOUR_DECIMALS_FORMAT),
            SheetColumn(f"{name}: left out", 11),
        ]
    rows: list[SheetRow] = []
    for number, row in enumerate(agents):
        cells = [*_agent_cells(row)]
        for component in components:
            mean = component.agents[number]
            cells += (mean.mean, mean.points, mean.left_out)
        rows.append(cells)
    sentences = (
        *conclude_ranking(agents),
        *gate_counts.describe(),
        describe_jury_votes(run),
    )
    for sentence in filter(None, sentences):
        rows.append((sentence,))
    rows += _list_run_facts(run, bill, listed_responses, len(rewards))
    if len(agents) < 2:  # the last two of these columns compare
        return {"Run": Sheet(_AGENT_SHEET_COLUMNS[:-2], rows)}
    return {"Agents": Sheet(columns, rows)}


def _list_run_facts(run: Run, bill: CallBill, listed: int, responses: int) -> Iterator[SheetRow]:
    """Yield what stands below the agents: what is missing, what it cost, and who judged."""
    if not run.is_closed:
        count = format_count(run.tasks_scored, "group" if run.header.is_open_ended else "task")
        yield (f"Not finished: {count} so far",)
    if listed < responses:
        yield (f"The other sheets have {listed} of {responses} responses",)
    yield "Cost", bill.describe()
    yield "Models", ", ".join(run.header.model_names) or "none"


def _judged_values(trace: TraceWithoutTexts, unit: str) -> Iterator[JudgedValues]:
    for name in trace.names:
        judged, _ = trace.component(name)
        is_in_mean = trace.value is not None and judged is not None
        yield JudgedValues(name, trace.agent or "", unit, is_in_mean, is_in_mean * (judged or 0.0))


def _agent_cells(row: RankedAgent) -> SheetRow:
    cells: list[JsonValue] = [agent_label(row.agent)]
    if row.mean is None:
        cells += [None, None, None]
    else:
        cells += [row.mean.value, row.missing_interval or row.mean.low, row.mean.high]
    cells += [row.responses, row.units, row.responses - row.scored]
    for difference in (row.lead, row.gap):
        cells.append(None if difference is None else difference.sentence)
    return cells


def read_response_sheet(run: Run, options: TableOptions) -> Sheet:
    """Return the columns of the readable sheet, and a row for every response that the options choose.

    The lowest reward comes first, and those without one last; components have their values as they count.
    """
    components = [*run.config.reward] or run.components()
    columns = [SheetColumn(name, 12, _FOUR_DECIMALS_FORMAT) for name in components]
    rows = []
    for trace, response, task in options.read_responses(run):
        criteria = criterion_texts(run.decision_of(trace.task_id), task)
        reward = trace.reward
        values = {term.name: term.value for term in reward.terms}
        cells = (
            trace.response_id,
            trace.task_id,
            _shorten_question(task),
            ERASED_PLACEHOLDER if response is None else response.excerpt(_MAX_ANSWER_LENGTH),
            trace.agent,
            # This sheet is for reading: the other one has 16 digits.
            None if reward.value is None else round(reward.value, 4),
            round(reward.coverage, 4),
            describe_lost_points(run.explain_trace(trace), criteria),
            *map(values.get, components),
        )
        rows.append((reward.value, cells))
    rows.sort(key=lambda row: (row[0] is None, row[0] or 0.0))
    return Sheet([*_RESPONSE_SHEET_COLUMNS, *columns], [cells for _, cells in rows])


def _shorten_question(task: Task | None) -> str:
    if task is None:
        return ERASED_PLACEHOLDER
    return shorten(last_request_text(task.query), _MAX_QUESTION_LENGTH)


def read_reviewer_sheets(run: Run, options: TableOptions) -> dict[str, Sheet]:
    """Return a sheet for each judge of reviewers and dimension, by title: what each reviewer would give.

    A sheet has a row for each response, in the order of the run; numbers are on the scale of the dimension. The mean is
    that of the predictions that there are, while the reward counts what is missing as the worst. What reviewers gave
    themselves, and the difference, stand next to it where the options have people's labels, and how far off the
    predictions for a reviewer are where they have measured errors. How sure the judge says it is would be read as
    such a measurement, and is in the table of verdicts.
    """
    reviewers_by_judge = _name_reviewers(run)
    if not reviewers_by_judge:
        return {}
    personalized = {use.known_as for use in run.config.evaluators if use.use == "personalized"}
    newcomers: set[str] = set()
    scales: dict[str, str] = {}
    rows_by_judge: dict[str, list[SheetRow]] = defaultdict(list)
    for trace, response, task in options.read_responses(run):
        predictions = run.predicted_scores(trace)
        ratings = options.numbers.get(trace.response_id, {})
        verdicts = defaultdict(list)
        for explained in run.explain_trace(trace).explained.verdicts:
            verdict = explained.verdict
            verdicts[verdict.question].append(explained)
            if verdict.scale is not None:
                judge = verdict.question.rpartition("@")[0]
                scales[judge] = " ({:g} to {:g})".format(*verdict.scale)
            if {use.reviewer for use in verdict.examples} - {verdict.reviewer}:
                newcomers.add(verdict.question)
        text = ERASED_PLACEHOLDER if response is None else response.excerpt(_MAX_ANSWER_LENGTH)
        for judge, reviewers in reviewers_by_judge.items():
            predicted = [predictions[name] for name in reviewers if name in predictions]
            cells: list[JsonValue] = [
                trace.response_id,
                trace.agent,
                _shorten_question(task) or None,
                text,
                fmean(predicted) if predicted else None,
            ]
            for question in reviewers:
                prediction: Any = predictions.get(question)
                rating: Any = ratings.get(f"people.{question}")
                has_both = None not in (prediction, rating)
                cells += [prediction, rating, prediction - rating if has_both else None]
            cells += [", ".join(map(_describe_answer, verdicts[name])) for name in reviewers]
            rows_by_judge[judge].append(cells)
    sheets = {}
    for number, (judge, reviewers) in enumerate(reviewers_by_judge.items(), start=1):
        # long names of judges may begin alike
        title = "Reviewers" if len(reviewers_by_judge) == 1 else f"Reviewers {number} {judge}"
        title = _FORBIDDEN_TITLE_PATTERN.sub(" ", title)[:_MAX_TITLE_LENGTH]
        scale = scales.get(judge, "")
        subjects = []
        for question, name in reviewers.items():
            is_newcomer = question in newcomers and judge.partition("/")[0] in personalized
            error_name = f"{judge}@" if is_newcomer else question
            error = options.errors.get(question) or options.errors.get(error_name)
            subjects.append(_ReviewerSubject(name, scale, is_newcomer, error))
        sheets[title] = _lay_out_reviewers(subjects, rows_by_judge[judge])
    return sheets


def _name_reviewers(run: Run) -> dict[str, dict[str, str]]:
    """Return the reviewers of each judge and dimension, by the name of their question; first who makes the reward."""
    reviewers_by_judge: dict[str, dict[str, str]] = defaultdict(dict)
    for question in run.reviewer_questions():
        judge, _, reviewer = question.rpartition("@")
        reviewers_by_judge[judge][question] = reviewer
    weights = run.config.reward
    judges = sorted(
        reviewers_by_judge, key=lambda judge: -weights.get(judge.partition("/")[0], 0.0)
    )
    return {judge: reviewers_by_judge[judge] for judge in judges}


class _ReviewerSubject(NamedTuple):
    """A reviewer of a sheet: a newcomer has no ratings, and is judged from everybody's."""

    name: str
    scale: str
    is_newcomer: bool
    error: MeasuredError | None

    @property
    def title(self) -> str:
        error = self.error
        title = f"{self.name}{self.scale}"
        if self.is_newcomer:
            title += ", judged from everybody's"
        if error is None:
            return title
        if error.n < MIN_TESTED_ITEMS:
            return f"{title}: too few ratings to tell ({error.n})"
        if error.conclusion:
            title += f": {error.conclusion};"
        title += f" ± {error.mae:.2f} on average over {format_count(error.n, 'rating')}"
        if self.is_newcomer:
            title += " of the others, judged so"
        return f"{title}: {error.exact:.0%} exact, {error.near:.0%} within {error.step:g}"


_ERROR_TITLES = (
    "Judge off by on average: these texts",
    "Judge exact: share of these texts",
    "Judge within one step: share of these texts",
    "Judge off by on average: as the study measured",
    "Own mean off by on average: as the study measured",
)
_REVIEWER_LEGEND = (
    "Each row is a text. Under a name is what the judge predicts that this person gives; difference is this less what "
    "the person gave. What a name's title says, ± and shares, are of a study of ratings that were known; without one "
    "nothing was measured."
)


def _lay_out_reviewers(subjects: Sequence[_ReviewerSubject], rows: SheetRows) -> Sheet:
    """Return the columns that are not empty, and the rows with those below: how far off these predictions are, and
    those of the study."""
    columns = [
        SheetColumn("Response", 28),
        SheetColumn("Agent", 18),
        SheetColumn("Question", 40),
        SheetColumn(f"Text, up to {_MAX_ANSWER_LENGTH:,} characters", 60),
        SheetColumn(f"Mean of those predicted{subjects[0].scale}", 14, "0.0"),
    ]
    means: list[list[JsonValue]] = [[title, *[None] * 4] for title in _ERROR_TITLES]
    for subject in subjects:
        columns += [
            SheetColumn(subject.title, 18, "0.0#"),
            # unlike "General", which has four decimals here, without decimals for whole numbers
            SheetColumn(f"{subject.name} gave", 12, "General;-General"),
            SheetColumn(f"{subject.name}: difference", 12, "+0.0;-0.0;0"),
        ]
        differences: list[Any] = [row[len(columns) - 1] for row in rows]
        # without the last bits of a mean, which decide whether it is within a step
        distances = [round(abs(value), 9) for value in differences if value is not None]
        error = subject.error
        values: list[JsonValue] = [fmean(distances) if distances else None, *[None] * 4]
        if error is not None:
            if error.n >= MIN_TESTED_ITEMS:
                values[3:] = (error.mae, error.own_mean)
            if distances:
                values[1] = fmean(distance < error.step / 2.0 for distance in distances)
                values[2] = fmean(distance <= error.step for distance in distances)
        for row, value in zip(means, values, strict=True):
            row += [value, None, None]
    columns += [SheetColumn(f"{subject.name}: answers of the judge", 26) for subject in subjects]
    rows = [*rows, *(row + [None] * len(subjects) for row in means if {*row[1:]} != {None})]
    kept = [index for index in range(len(columns)) if any(row[index] is not None for row in rows)]
    return Sheet(
        [columns[index] for index in kept],
        [[row[index] for index in kept] for row in rows],
        _REVIEWER_LEGEND,
    )


def _describe_answer(explained: ExplainedVerdict) -> str:
    """Return what a judge said, and whether that counts in the prediction."""
    verdict = explained.verdict
    if verdict.native is None or verdict.is_worst_case:
        return "without a quotation" if verdict.is_worst_case else verdict.status
    answer = format_label(verdict.native)
    return f"{answer} (too unsure)" if explained.effect == "discarded" else answer


def read_label_sheet(run: Run, label: str) -> Sheet:
    """Return a row for each value of a label: which agent leads, by how much, and over how many tasks of both.

    Raises `InputError` where no response has the label.
    """
    columns = [SheetColumn(label, 28), SheetColumn("Tasks", 11), SheetColumn("Mean rewards", 40)]
    columns += [SheetColumn(title, 12) for title in ("Lead", "From (95 %)", "To (95 %)", "Of both")]
    columns.append(SheetColumn("That is", 60))
    rows: list[SheetRow] = []
    comparison = compare_by_label(run, label)
    for row in comparison.rows:
        cells: list[JsonValue] = [row.value, row.units, row.means]
        if row.lead is None:
            cells += [None, None, None, None]
        else:
            cells += [row.lead.difference, row.lead.low, row.lead.high, row.lead.count]
        rows.append([*cells, row.outcome])
    for sentence in (comparison.conclusion, *comparison.notes):
        rows.append((sentence,))
    return Sheet(columns, rows)


def write_workbook(sheets: Mapping[str, Sheet], table: ExportTable, path: Path) -> None:
    """Write sheets to read, by name, and the table. Raises `InputError` where there is no room for its columns."""
    names = list(table.columns)
    if len(names) > _MAX_SHEET_COLUMNS:
        raise InputError(
            f"{len(names)} columns: {_MAX_SHEET_COLUMNS} are all that a sheet has; "
            "use --to parquet, or leave out columns"
        )
    row_values = ([row.get(name) for name in names] for rows in table.batches() for row in rows)
    workbook = Workbook(write_only=True)
    to_read = Alignment(vertical="top", wrap_text=True)
    for title, sheet in sheets.items():
        _add_sheet(workbook, title, sheet.columns, sheet.rows, to_read, sheet.legend)
    rewards = sheets["Rewards"]
    _filter_sheet(workbook, "Rewards", len(rewards.columns), len(rewards.rows))
    titles = [SheetColumn(name, 16) for name in names]
    _add_sheet(workbook, "Everything", titles, row_values, Alignment())
    workbook.save(path)


def write_sheets(
    sheets: Mapping[str, Sequence[Mapping[str, JsonValue]]],
    path: Path,
    choices: Sequence[Sequence[str]] = (),
) -> None:
    """Write sheets to read and filter, by name; columns are as wide as their titles, and wide for texts.

    With `choices`, [rows], the cells of `score` in a single sheet have them as a drop-down, as far as Excel can.
    """
    workbook = Workbook(write_only=True)
    for name, rows in sheets.items():
        titles = list(dict.fromkeys(title for row in rows for title in row))
        columns = [
            SheetColumn(title, 60 if title in _TEXT_TITLES else max(10, len(title) + 3))
            for title in titles
        ]
        cells = [[row.get(title) for title in titles] for row in rows]
        _add_sheet(workbook, name, columns, cells, Alignment(vertical="top", wrap_text=True))
        _filter_sheet(workbook, name, len(columns), len(rows))
    if choices:
        _add_drop_downs(workbook[name], get_column_letter(titles.index("score") + 1), choices)
    workbook.save(path)


def _add_drop_downs(sheet: Any, letter: str, choices: Sequence[Sequence[str]]) -> None:
    """Let cells of a column be chosen from the choices of their row, [rows], as far as Excel can list them."""
    cells_by_list = defaultdict(list)
    for row, words in enumerate(choices, start=2):
        text = ",".join(words)
        has_plain_words = text.count(",") + text.count('"') == len(words) - 1
        if has_plain_words and len(text) <= _MAX_CHOICES_LENGTH:
            cells_by_list[f'"{text}"'].append(f"{letter}{row}")
    for text, cells in cells_by_list.items():
        drop_down = DataValidation("list", text, showErrorMessage=True, sqref=" ".join(cells))
        sheet.data_validations.append(drop_down)


def _filter_sheet(workbook: Workbook, title: str, columns: int, rows: int) -> None:
    """Let who reads a sheet filter it by its titles; `rows` are those below them."""
    workbook[title].auto_filter.ref = f"A1:{get_column_letter(columns)}{rows + 1}"


def _add_sheet(
    workbook: Workbook,
    title: str,
    columns: Sequence[SheetColumn],
    rows: Iterable[SheetRow],
    alignment: Alignment,
    legend: str = "",
) -> None:
    """Add a sheet whose cells have this alignment; a row has a value for each of the first columns, None: empty."""
    sheet = workbook.create_sheet(title)
    sheet.freeze_panes = "A3" if legend else "A2"  # the titles stay in sight
    sheet.page_setup.orientation = "landscape"
    sheet.page_setup.fitToHeight = 0  # as many pages as it takes, each of the whole width
    sheet.sheet_properties.pageSetUpPr = PageSetupProperties(fitToPage=True)
    titles = []
    for number, column in enumerate(columns, start=1):
        sheet.column_dimensions[get_column_letter(number)].width = column.width
        cell = _make_cell(sheet, column.title)
        cell.font = Font(bold=True)
        cell.alignment = alignment
        titles.append(cell)
    if legend:  # after the widths, which stand before all rows
        sheet.append([legend])
    sheet.append(titles)
    for row in rows:
        cells = []
        for column, value in zip(columns, row, strict=False):
            cell = _make_cell(sheet, value)
            is_plain_float = isinstance(value, float) and column.number_format == "General"
            cell.number_format = _FOUR_DECIMALS_FORMAT if is_plain_float else column.number_format
            cell.alignment = alignment
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
    cell.quotePrefix = escape_formulas(text) != text
    return cell
