"""`jurygraph show`, `explain` and `export`: print or convert the contents of a run."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import Annotated, Literal, cast

from jurygraph.cli.options import (
    LABEL_COLUMN_OPTIONS,
    AgentColumnOption,
    AgentOption,
    ByLabelOption,
    ClassWordsOption,
    ItemColumnOption,
    JsonOption,
    LabelFilesOption,
    LabelFilterOption,
    ReviewerColumnOption,
    RunFolderArgument,
    ScoreColumnOption,
    SortColumnOption,
    StatusOption,
    WhereOption,
    option,
    select_named_columns,
    with_people_options,
)
from jurygraph.cli.output_files import (
    compress_lines,
    refuse_unwritable,
    write_output,
    write_output_with,
)
from jurygraph.cli.render.reward_table import print_reward_table
from jurygraph.cli.render.text import (
    escape_line,
    print_message,
    print_messages,
    print_report,
    print_result,
    print_result_lines,
    progress,
    wrap_lines,
)
from jurygraph.display import ignore_progress
from jurygraph.errors import InputError
from jurygraph.interchange.traces import trace_to_json_line
from jurygraph.interchange.writers import EXPORTERS, ExportContent, Exporter, read_advantages
from jurygraph.messages import shell_quote, split_names
from jurygraph.runs.calls import read_lookups
from jurygraph.runs.export_table import import_library, json_value_to_text
from jurygraph.runs.reports.summary import find_lowest_reward
from jurygraph.runs.run import Run
from jurygraph.runs.store.folder import SEAL_FILE
from jurygraph.runs.table_reader import TableOptions
from jurygraph.sources.people import PeopleChoice
from jurygraph.views.rewards import (
    ResponseSelection,
    build_reward_table,
    make_trace_reader,
    stored_response_location,
)

OptionValues = Mapping[str, object]


def show(
    run: RunFolderArgument,
    response: Annotated[str | None, option("ID", "Show the full trace of this response.")] = None,
    call: Annotated[
        str | None, option("QUESTION", "Show prompt and reply of each call for this question.")
    ] = None,
    verdict: Annotated[
        str | None, option("QUESTION", "Show every field of the verdicts on this question.")
    ] = None,
    status: StatusOption = None,
    agent: AgentOption = None,
    sort: SortColumnOption = None,
    label: LabelFilterOption = None,
    where: WhereOption = None,
    limit: Annotated[int | None, option("N", "Show the first N responses.", min=1)] = None,
    columns: Annotated[
        str | None,
        option(
            "A,B",
            "Columns of the table, texts first: reward, a component, a question, label.NAME, …",
        ),
    ] = None,
    texts: Annotated[
        bool, option(None, "Show query and text of the response whole.", "--texts")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show the rewards of a run, the full trace of a response, or the calls behind it.

    On a terminal the table is fitted to its width; a pipe gets it whole. An asterisk marks values that the failure rule
    filled in; a dash means that there is no value. --call and --verdict take the name of a question as the trace
    prints it, or its last part. `--json` prints the traces as stored, one per line.

    \b
    Example:
        jurygraph show run --sort -reward --status ok --columns reward,accuracy
        jurygraph show run --label step=312 --label session=1
        jurygraph show run --where "faithful<0.5" --where "answers>=0.5" --columns text
        jurygraph show run --response task-1/a
        jurygraph show run --response task-1/a --call criteria@kind
        jurygraph show run --json | jq .reward.value
    """
    response_selection = ResponseSelection(status, agent, sort, limit, label, where)
    details = {"call": call, "verdict": verdict, "texts": texts or None}
    _refuse_contradictory_options(
        response, details, {"columns": columns, **response_selection._asdict()}, json
    )
    question = verdict if call is None else call
    with Run.open(run) as stored_run:
        if response is not None and question is not None:
            _show_question(stored_run, response, question, call is not None, json)
        elif response is not None and json:
            print_result(trace_to_json_line(stored_run.find_trace(response)))
        elif response is not None:
            _show_response(stored_run, response, texts)
        elif json:
            read = make_trace_reader(stored_run)
            for address in response_selection.select(stored_run, stored_response_location):
                print_result(trace_to_json_line(read(address)))
        else:
            names = None if columns is None else ["response", *split_names(columns)]
            print_reward_table(build_reward_table(stored_run, response_selection, names))
            print_if_run_unfinished(stored_run)
            if (run / SEAL_FILE).exists():  # somebody is to rely on what it holds
                print_message(
                    f"its seal is not checked here: `jurygraph verify {shell_quote(run)}`"
                )


def _show_response(run: Run, response: str, texts: bool) -> None:
    from jurygraph.cli.render.trace import (  # lazily: they load NumPy
        format_query_response_lines,
        format_trace_lines,
    )
    from jurygraph.views.trace import build_task_and_response_view, build_trace_view

    scored = run.find_scored_response(response)
    view = build_trace_view(run.explain_trace(scored.trace))
    lookups = read_lookups(run, view.trace, view.trace.verdicts)
    words = format_query_response_lines(view, build_task_and_response_view(run, scored), texts)
    print_result_lines(format_trace_lines(view, words, lookups.values()))


def print_if_run_unfinished(run: Run) -> None:
    if run.is_closed:
        return
    if run.header.is_open_ended:
        print_message(
            f"{run.tasks_scored} groups of {run.planned_task_count} tasks are in the whole run "
            f"so far; `jurygraph close {shell_quote(run.folder)}` ends the run"
        )
    else:
        print_message(
            f"{run.tasks_scored} of {run.header.extent.tasks} tasks of the whole run are scored "
            "so far; the same score command continues, without --limit if it has one"
        )


def _refuse_contradictory_options(
    response: str | None,
    single_response_options: OptionValues,
    many_response_options: OptionValues,
    json: bool,
) -> None:
    """Raise `InputError` for options about one response together with options about many, or without a response."""
    single_response_names = [
        f"--{name}" for name, value in single_response_options.items() if value is not None
    ]
    many_response_names = [
        f"--{name}" for name, value in many_response_options.items() if value is not None
    ]
    if single_response_names and response is None:
        raise InputError(
            f"{single_response_names[0]} is about one response; name it with --response ID"
        )
    if len(single_response_names) > 1:
        raise InputError(f"expected one of {' and '.join(single_response_names)}")
    if many_response_names and response is not None:
        raise InputError(
            f"{many_response_names[0]} is about many responses; leave it out, or leave out --response"
        )
    for name in (*single_response_names, *many_response_names):
        if json and name in ("--columns", "--texts"):
            raise InputError(f"{name} is about what --json does not print; leave it out")


def _show_question(run: Run, response: str, question: str, shows_calls: bool, json: bool) -> None:
    """Print the verdicts on a question about a response, or the calls behind them."""
    from jurygraph.cli.render.trace import (  # lazily: they load NumPy
        format_call_lines,
        format_verdict_lines,
    )
    from jurygraph.views.verdict import build_question_view

    view = build_question_view(run, response, question)
    lines = format_call_lines(view) if shows_calls else format_verdict_lines(view)
    print_report(json, view.to_json(shows_calls) if json else {}, lines)


_MAX_PROMPT_LENGTH = 200
"""So many characters of a prompt `explain` prints: more than most have of a system message before the question."""


def explain(
    run: RunFolderArgument,
    response: Annotated[
        str | None, option("ID", "Explain this response.", show_default="the lowest reward")
    ] = None,
    what_if: Annotated[
        bool,
        option(
            None,
            "Show the single changes that would raise or lower the reward.",
            show_default=False,
        ),
    ] = False,
    status: StatusOption = None,
    agent: AgentOption = None,
    sort: SortColumnOption = None,
    label: LabelFilterOption = None,
    where: WhereOption = None,
    limit: Annotated[int | None, option("N", "Explain the first N responses.", min=1)] = None,
    json: JsonOption = False,
) -> None:
    """Explain a reward: the points gained and lost, in order of cost. Without options, the lowest one.

    `--label`, `--where`, `--status` and `--agent` select responses, as those of `show` do; several, such as those of a
    training step, get an overview. With `--limit`, `--what-if` or `--json` each is explained.

    `--what-if` decides again, each time with one verdict at its best value, one decision turned, or one gate passed; no
    model is called. On a terminal lines are broken at its width; a pipe gets them whole. `--json` prints a line for
    each response.

    \b
    Example:
        jurygraph explain run --response task-1/a
        jurygraph explain run --response task-1/a --what-if
        jurygraph explain run --label step=312
        jurygraph explain run --label step=312 --sort reward --limit 3
    """
    response_selection = ResponseSelection(status, agent, sort, limit, label, where)
    _refuse_contradictory_options(response, {}, response_selection._asdict(), json)
    with Run.open(run) as stored_run:
        if response is None and response_selection == ResponseSelection():
            lowest = find_lowest_reward(stored_run)
            if lowest is not None:
                description = ", ".join(filter(None, (lowest.name, lowest.tie)))
                print_message(f"{description}; --response ID explains another")
                response = lowest.response_id
        if response is None:
            _explain_selected(stored_run, response_selection, what_if, json)
        else:
            _print_explanation(stored_run, response, what_if, json)


def _explain_selected(
    run: Run, response_selection: ResponseSelection, what_if: bool, json: bool
) -> None:
    """Explain each response, or describe several unless each is wanted."""
    response_ids = list(response_selection.select(run, lambda trace: trace.response_id))
    if not response_ids:
        print_message("no response matches")
    wants_each = what_if or json or response_selection.limit
    if len(response_ids) > 1 and not wants_each:
        from jurygraph.views.selection import describe_selection  # lazily: few need it

        sentences = describe_selection(run, response_selection)
        print_result_lines(wrap_lines(map(escape_line, sentences)))
        print_message(
            "--sort reward --limit 3 explains the three lowest, --sort -reward the highest"
        )
        return
    for index, response_id in enumerate(response_ids):
        if index and not json:
            print_result("")
        _print_explanation(run, response_id, what_if, json)


def _print_explanation(run: Run, response_id: str, what_if: bool, json: bool) -> None:
    """Print why a response has its reward; of a recorded one also its labels and its prompt."""
    explanation = run.explain(response_id)
    content = explanation.to_dict(what_if) if json else {}
    reward, *reasons = explanation.sentences(what_if)
    if run.header.is_open_ended:
        labels = run.labels_with_session(explanation.trace).items()
        labels_text = ", ".join(f"{name} {json_value_to_text(value)}" for name, value in labels)
        prompt = run.short_query(explanation.trace.task_id, _MAX_PROMPT_LENGTH)
        reasons.insert(0, f"Labels: {labels_text or 'none'}. Prompt: {prompt}")
    lookups = read_lookups(run, explanation.trace, explanation.trace.verdicts)
    for verdict in explanation.explained.verdicts:
        for name in verdict.verdict.lookups:
            if name in lookups:  # else another verdict of its investigation has shown it
                reasons.append(f"{verdict.label}, {lookups.pop(name).summary}")
    if any(verdict.examples for verdict in explanation.trace.verdicts):
        reasons.append(
            f"Examples that predictions rest on: jurygraph show {shell_quote(run.folder)} --response "
            f"{shell_quote(response_id)}"
        )
    print_report(json, content, wrap_lines(map(escape_line, (reward, *reasons))))


@with_people_options
def export(
    run: RunFolderArgument,
    to: Annotated[
        Literal["jsonl", "csv", "parquet", "xlsx", "verdicts", "ratings", "audit-bundle"] | None,
        option(
            None,
            "By default what the ending of -o says. jsonl: the traces; csv, parquet: one row per response; xlsx: two "
            "sheets to read, and one with everything; verdicts: one row per verdict, as CSV, or Parquet with -o "
            "F.parquet; ratings: one row per vote of a judge (by people's ids: `consensus --run RUN --ratings-out F`); "
            "audit-bundle: a self-verifying zip.",
        ),
    ] = None,
    output: Annotated[
        str | None, option("F", "File to write.", "-o", "--out", show_default="standard output")
    ] = None,
    texts: Annotated[
        bool, option(None, "Add the columns prompt and text to a table.", "--texts")
    ] = False,
    where: WhereOption = None,
    by: ByLabelOption = None,
    questions: Annotated[
        bool,
        option(
            None,
            "Add the score of each question, as it counts, to the rows of responses.",
            "--questions",
        ),
    ] = False,
    reasons: Annotated[
        bool,
        option(None, "Add the reason for each question to the rows of responses.", "--reasons"),
    ] = False,
    parts: Annotated[
        bool,
        option(
            None,
            "Add what each component is made of, such as q of a criterion and û of a stakeholder, and its weight.",
            "--parts",
        ),
    ] = False,
    advantages: Annotated[
        bool,
        option(
            None,
            "Add how far each reward is above its group's mean, in standard deviations (ddof 1).",
            "--advantages",
        ),
    ] = False,
    labels: LabelFilesOption = None,
    item: ItemColumnOption = None,
    target: ScoreColumnOption = None,
    reviewer: ReviewerColumnOption = None,
    agent: AgentColumnOption = None,
    classes: ClassWordsOption = None,
    study: Annotated[
        Path | None,
        option("F", "Saved `study reviewers --json`: xlsx says how far off predictions are."),
    ] = None,
    *,
    people: PeopleChoice,
) -> None:
    """Export a run in another format.

    Tables have a component as component.NAME, the value of what was judged, and as term.NAME, which counts and has what
    the failure rule filled in; the labels of responses as label.NAME, and the metadata of responses and tasks as
    metadata.NAME. With --labels, as for `study judge`, people.QUESTION is the mean of people's labels, and
    judge.QUESTION what the judge gave, in the units of its scale (question.NAME is from 0 to 1). In csv a missing
    value is an empty cell, and a text that a spreadsheet would run as a formula (= + - or @ at its start, or after a
    line break, tab or semicolon) gets an apostrophe in front, which commands that read ratings and texts from csv
    remove; other formats keep texts unchanged. On a terminal, control characters are escaped. An audit-bundle contains
    the ledger with all texts and `verify.py`, a small file that verifies it with Python alone; there is none of a run
    whose records or texts were changed. audit-bundle, parquet
    and xlsx need `-o`, which replaces a file. A name that ends in .gz is compressed. csv is UTF-8 without a mark, so
    that Excel garbles letters such as ü of a file that is opened, not imported: give it xlsx.

    The first sheet of xlsx says which agent is better, what it cost, and names the run's models (of one agent, the
    sheet Run, after Rewards); with --by LABEL the next one says so in each value of a label. Rewards has question,
    answer, agent, reward, judged share (both to four decimals) and what was lost in words, with the sum, the lowest
    first, failed ones last. The last has the columns of csv. A text is never a formula there, whatever it begins with;
    control characters are escaped, and texts are cut at 32,767 characters. With --where, the first sheet still has all
    responses.

    \b
    Example:
        jurygraph export run --questions --reasons -o rewards.csv
        jurygraph export run --by category -o rewards.xlsx
        jurygraph export run --where "faithful<0.5" --texts -o doubtful.csv
        jurygraph export run --to verdicts --texts -o verdicts.parquet
        jurygraph export run --to audit-bundle -o run.zip
    """
    output = None if output == "-" else output
    if not labels and (item or target or reviewer or agent):
        raise InputError(
            "--agent and --label name columns of --labels F here; choose responses with --where label.NAME=VALUE"
        )
    exporter = _choose_exporter(to, output)
    requested_export_options = {
        "texts": texts,
        "where": where,
        "by": by,
        "questions": questions,
        "reasons": reasons,
        "parts": parts,
        "advantages": advantages,
        "labels": labels,
        "study": study,
    }
    for name, is_option_requested in requested_export_options.items():
        if is_option_requested and name not in exporter.option_names:
            names = dict.fromkeys(form.name for form in EXPORTERS if name in form.option_names)
            raise InputError(f"--{name}: is not for --to {exporter.name}; use {', '.join(names)}")
    if output is None and exporter.needs_file:
        raise InputError(f"--to {exporter.name}: needs an output file; name one with -o")
    if exporter.required_library:
        import_library(exporter.required_library)  # before a large run is read
    with Run.open(run) as stored_run:
        if output is not None:
            refuse_unwritable(output, *(labels or ()))
        print_if_run_unfinished(stored_run)
        responses = stored_run.ledger.count_records("trace")
        selected = None
        if where:
            select = ResponseSelection(where=where).select
            selected = set(select(stored_run, lambda trace: trace.response_id))
            print_message(f"{len(selected)} of {responses} responses")
        shows_progress = bool(exporter.option_names)
        reading = progress("reading", responses, "responses") if shows_progress else nullcontext()
        with ExitStack() as stack:
            with reading as report:
                numbers = read_advantages(stored_run) if advantages else {}
                if labels:
                    from jurygraph.studies.judge import (  # lazily: it loads NumPy
                        add_mean_labels,
                        read_labels,
                        unpredicted_label_notes,
                    )
                    from jurygraph.studies.judgements import read_judgements

                    judgements = read_judgements(stored_run)
                    columns = select_named_columns(
                        id=item, target=target, reviewer=reviewer, agent=agent
                    )
                    people_labels = read_labels(
                        labels,
                        [judgements],
                        columns,
                        LABEL_COLUMN_OPTIONS,
                        classes=classes,
                        people=people,
                    )
                    add_mean_labels(numbers, people_labels, judgements)
                    print_messages(unpredicted_label_notes([judgements], people_labels))
                errors = {}
                if study is not None:
                    from jurygraph.studies.measured_errors import read_measured_errors

                    errors = read_measured_errors(study, stored_run)
                options = TableOptions(
                    texts=texts,
                    questions=questions,
                    reasons=reasons,
                    parts=parts,
                    numbers=numbers,
                    report=report or ignore_progress,
                    responses=selected,
                    by=by,
                    errors=errors,
                )
                content = exporter.read(stored_run, options, stack)
            _write_or_print_lines(output, content)


_UNSUPPORTED_SUFFIXES = {".json", ".tsv", ".xls", ".ods", ".html", ".md", ".yaml", ".yml"}
"""Endings of formats that no export writes: a program that goes by the ending could not read the file."""


def _choose_exporter(to: str | None, output: str | None) -> Exporter:
    """Return the form that the names of a format and a file mean. Raises `InputError` where they do not fit."""
    suffix = Path((output or "").lower().removesuffix(".gz")).suffix
    forms = [form for form in EXPORTERS if to in (None, form.name)]
    for form in forms:
        if form.suffix == suffix:
            return form
    suffixes = dict.fromkeys(form.suffix for form in EXPORTERS)
    if to is None and output is None:
        names = ", ".join(dict.fromkeys(form.name for form in EXPORTERS))
        raise InputError(f"--to: is missing; name one of {names}, or a file with -o")
    if to is None:
        hint = f"end it in {', '.join(suffixes)}, or use --to"
        if suffix in (".html", ".pdf"):
            hint = f"{hint}; `jurygraph report` writes a page that can be printed"
        raise InputError(f"{output}: its ending names no format; {hint}")
    if suffix in suffixes.keys() | _UNSUPPORTED_SUFFIXES:
        raise InputError(
            f"{output}: --to {to} writes {forms[0].suffix.removeprefix('.')}; "
            f"name a file that ends in {forms[0].suffix}"
        )
    return forms[0]


def _write_or_print_lines(output: str | None, content: ExportContent) -> None:
    """Write lines, or what a library writes to a path. Without a path, print the lines."""
    if output is None:
        for line in cast(Iterable[bytes], content):
            print_result(line.removesuffix(b"\n"))
        return
    if callable(content):
        write_output_with(output, content)
    else:
        write_output(output, compress_lines(output, content))
    print_message(f"wrote {output}")
