"""`jurygraph import`: convert data of other projects to TASKS, or to RATINGS if it consists of people's labels."""

import json as json_module
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal

from jurygraph.cli.options import (
    COLUMN_OPTION_BY_RATING_FIELD,
    ColumnNamesOption,
    ItemColumnOption,
    JsonOption,
    ReviewerColumnOption,
    ScoreColumnOption,
    argument,
    option,
    parse_column_options,
    select_named_columns,
    with_people_options,
)
from jurygraph.cli.output_files import compress_lines, refuse_unwritable, write_output
from jurygraph.cli.render.text import print_message, print_messages, print_report, print_result
from jurygraph.errors import InputError
from jurygraph.interchange.exports import OTHER_FIELDS, ExportColumns, read_export
from jurygraph.interchange.rated_table import read_rated_table
from jurygraph.interchange.readers import (
    EXPORT_READERS,
    GRAPH_READERS,
    READERS,
    SCALED_READERS_BY_FORMAT,
    TRIAL_READERS,
    VOTE_READERS,
    naming_trial_format,
)
from jurygraph.interchange.rows import ImportNote, ImportResult, describe_notes
from jurygraph.messages import (
    did_you_mean,
    join_names,
    notes_on_similar_names,
    select_known_names,
    shell_quote,
    split_names,
)
from jurygraph.schema import FrozenModel, TaskLine
from jurygraph.schema.rating import Vote, format_label
from jurygraph.sources.file_rows import FileRows, NameByField
from jurygraph.sources.files import TextFile
from jurygraph.sources.label_words import is_negative, read_decision
from jurygraph.sources.people import PeopleChoice
from jurygraph.sources.ratings import NO_LABEL_DESCRIPTION, is_no_label
from jurygraph.sources.sheets import SheetVote
from jurygraph.sources.task_tables import is_table
from jurygraph.studies.report import group_by
from jurygraph.studies.votes import collect_votes, list_spellings, split_far_labels

RATINGS_FORMAT = "ratings"
TASK_READERS = {**READERS, **GRAPH_READERS, **TRIAL_READERS}
RATING_FORMATS = (*VOTE_READERS, *EXPORT_READERS)
IMPORT_FORMATS = (*TASK_READERS, *RATING_FORMATS, RATINGS_FORMAT)
FORMATS_WITH_COLUMNS = (*EXPORT_READERS, RATINGS_FORMAT)
"""Formats whose columns a user may name."""
_MIN_LABELS_PER_WORD = 5
"""Words among numbers are slips if there are no more than one in so many labels."""
_MIN_LABELS_PER_FRACTION = 20
"""Fractions among whole numbers are: on a scale of halves there are more."""
ImportSelection = Literal["tasks", "answered"]


@with_people_options
def import_(
    form: Annotated[str, argument("FORMAT", f"{', '.join(IMPORT_FORMATS)}.")],
    files: Annotated[
        list[str],
        argument(
            "FILE",
            "Input file, for qags one or both, for sheets the key first, for gear the graphs and perhaps scores; - for "
            "stdin.",
        ),
    ],
    target: Annotated[str, option("F", "Output file; - for stdout.", "-o", "--out")],
    only: Annotated[
        ImportSelection | None,
        option(
            None,
            "`tasks`: tasks without responses, to score your own; `answered`: only tasks that have responses, as "
            "`score` requires.",
        ),
    ] = None,
    scale: Annotated[
        str | None,
        option(
            "S",
            "Lowest and highest label (RATINGS), such as 1,7. Score of a value v from 1 to 10 (writingbench): "
            "`position`, (v - 1) / 9, is the default; `tenths`, v / 10, is that of GEAR's authors.",
        ),
    ] = None,
    ratings: Annotated[
        str | None, option("F", "Second output file (ratings): the ratings themselves.")
    ] = None,
    column: ColumnNamesOption = None,
    item: ItemColumnOption = None,
    label: ScoreColumnOption = None,
    annotator: ReviewerColumnOption = None,
    raters: Annotated[
        str | None,
        option(
            "A,B",
            "Columns of the raters (wide), each as COLUMN, PERSON=COLUMN or PERSON:DIMENSION=COLUMN.",
            "--rater-columns",
        ),
    ] = None,
    reasons: Annotated[
        str | None,
        option(
            "A=C,B=D",
            "Columns of the raters' reasons (wide), each as PERSON=COLUMN or PERSON:DIMENSION=COLUMN.",
            "--reason-columns",
        ),
    ] = None,
    json: JsonOption = False,
    *,
    people: PeopleChoice,
) -> None:
    """Convert a file of another project to TASKS or RATINGS.

    The output is written completely or not at all.

    healthbench, plawbench, writingbench: each conversation, case or query with its rubric; criteria are scored by a
    probability, by partial credit, and on a scale from 1 to 10. HealthBench's ideal and reference completions are
    responses.

    rewardbench (also RewardBench 2), judgebench: each prompt with its responses, labelled `preferred` or not.
    grouptravelbench: each trip with its travellers as stakeholders.

    gear: rubrics with graphs that GEAR's authors' `rubric_graph.py` wrote (Parquet or JSON lines), and, as a second
    file, verl's dump of a validation: its responses, with the scores of their criteria for the evaluator `scores`.

    chats: lines with `messages`, and perhaps `tools`; what follows the last message of a user is the response.

    langsmith, inspect, verifiers, taubench: recorded conversations; trials of one task are its responses, and a
    published outcome is their label `reward`.

    qags: RATINGS, each worker's label of each sentence of a summary (1 supported by the article, 0 not), from one or
    both files.

    label-studio (JSON), argilla (records as JSON), qualtrics (CSV): RATINGS, each person's answer to each
    question. wide: RATINGS, from a table with a row for each item, the columns of --rater-columns, and perhaps `agent`,
    `domain`, `group`, `text` and `prompt`.

    sheets: RATINGS, from the key that `jurygraph assign` wrote and the sheets that reviewers filled in.

    ratings: a table with a row for each rating (item, text, annotator, label; optionally prompt, agent, group, domain,
    dimension) makes TASKS with the texts as responses, and RATINGS in the file of `--ratings`. It alone takes
    --without, --same-names, --same-person, --keep-last and --last-by; `jurygraph consensus` takes them for the others.

    docs/importing.md says for each format what it was tested on, and what becomes of each field.

    \b
    Example:
        jurygraph import judgebench gpt.jsonl --out tasks.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --out run
        jurygraph import qags mturk_cnndm.jsonl mturk_xsum.jsonl --out ratings.jsonl
        jurygraph import sheets assigned/key.jsonl assigned/sheets/ann.csv --out ratings.jsonl
        jurygraph import wide table.csv --id-column answer --rater-columns "Ann=ann stars,bo" --out ratings.jsonl
        jurygraph import ratings people.csv --column label=stars --out tasks.jsonl --ratings ratings.jsonl
    """
    other_columns = parse_column_options(column)
    named_columns_by_role = select_named_columns(item=item, label=label, annotator=annotator)
    value_and_formats_by_option = {
        "--scale": (scale, (*SCALED_READERS_BY_FORMAT, *RATING_FORMATS, RATINGS_FORMAT)),
        "--ratings": (ratings, (RATINGS_FORMAT,)),
        "--column": (column, (RATINGS_FORMAT, "wide")),
        "--rater-columns": (raters, ("wide",)),
        "--reason-columns": (reasons, ("wide",)),
        "--id-column": (item, FORMATS_WITH_COLUMNS),
        "--target-column": (label, FORMATS_WITH_COLUMNS),
        "--reviewer-column": (annotator, ("qualtrics", RATINGS_FORMAT)),
    }
    value_and_formats_by_option |= {
        name: (value, (RATINGS_FORMAT,)) for name, value in people.value_by_option.items()
    }
    _check_options(form, files, only, scale)
    for name, (value, forms) in value_and_formats_by_option.items():
        if value and form not in forms:
            raise InputError(f"{name}: only for {', '.join(forms)}; remove it for {form}")
    if form in (*RATING_FORMATS, RATINGS_FORMAT):
        _refuse_non_jsonl_suffix(target)
    if target != "-":
        refuse_unwritable(target, *files)
    if form == RATINGS_FORMAT:
        _import_ratings(
            files,
            target,
            ratings,
            {**named_columns_by_role, **other_columns},
            people,
            json,
            scale,
        )
    elif form in VOTE_READERS:
        _import_votes(files, target, json, list(VOTE_READERS[form](files)), scale)
    elif form in EXPORT_READERS:
        if "reason" in other_columns:
            raise InputError(
                "--column reason: each person has reasons of their own; name their columns with "
                "--reason-columns PERSON=COLUMN,PERSON=COLUMN"
            )
        select_known_names(f"--column: {form} has no field", list(other_columns), OTHER_FIELDS)
        columns = ExportColumns(
            item=item,
            label=label,
            annotator=annotator,
            raters=split_names(raters),
            others=other_columns,
            reasons=split_names(reasons),
        )
        votes: list[Vote] = []
        for file in files:
            votes += read_export(EXPORT_READERS[form], Path(file), columns)
        _import_votes(files, target, json, votes, scale)
    else:
        reader = TASK_READERS[form] if not scale else SCALED_READERS_BY_FORMAT[form][scale]
        with naming_trial_format(form, files[0]):
            _import_tasks(reader(*files), target, only, json)


def _check_options(
    form: str, files: Sequence[str], only: ImportSelection | None, scale: str | None
) -> None:
    """Raise InputError for an unknown format, or what it does not take."""
    if form not in IMPORT_FORMATS:
        known_formats_text = f"known: {', '.join(IMPORT_FORMATS)} (OpenAI's messages are chats)"
        hint = did_you_mean(form, IMPORT_FORMATS) or known_formats_text
        raise InputError(f"unknown format {form!r}; {hint}")
    if only is not None and form in RATING_FORMATS:
        raise InputError(f"--only: selects tasks, and {form} has none; remove it")
    if scale and form in SCALED_READERS_BY_FORMAT:
        select_known_names("--scale: there is no", [scale], [*SCALED_READERS_BY_FORMAT[form]])
    if form == "chats" and is_table(files[0]):
        raise InputError(
            f"{files[0]}: is a table, and not JSON lines; score it as it is: "
            f"jurygraph score {shell_quote(files[0])} --messages-column COLUMN"
        )
    max_files = 2 if form in GRAPH_READERS else 1
    if len(files) > max_files and form not in (*RATING_FORMATS, RATINGS_FORMAT):
        allowed_files_text = "graphs and scores" if form in GRAPH_READERS else "one file"
        raise InputError(
            f"{files[max_files]}: {form} takes {allowed_files_text}; import each by itself"
        )


def _import_ratings(
    files: Sequence[str],
    tasks: str,
    ratings: str | None,
    columns: NameByField,
    people: PeopleChoice,
    json: bool,
    scale: str | None,
) -> None:
    """Write the tasks and the votes of tables; all are read whole before one is written."""
    options = {**COLUMN_OPTION_BY_RATING_FIELD, "text": "--column text=C"}
    table = read_rated_table(list(map(Path, files)), columns, options, people)
    if ratings is None or "-" in (tasks, ratings) or tasks == ratings:
        raise InputError(
            "--ratings: name a second output file; tasks and ratings are written to a file each"
        )
    _refuse_non_jsonl_suffix(ratings)
    refuse_unwritable(ratings, *files)
    votes = [vote for vote in table.votes if vote.label is not None]
    _refuse_odd_labels(votes, scale)
    lines_by_path = {
        tasks: list(_to_json_lines(table.tasks)),
        ratings: list(_to_json_lines(votes)),
    }
    for path, lines in lines_by_path.items():  # before either is written
        _refuse_lost_rows(path, lines)
    for path, lines in lines_by_path.items():
        _write_lines(path, lines)
    counts = {
        "tasks": len(table.tasks),
        "responses": sum(len(task.responses) for task in table.tasks),
        "votes": len(votes),
        "annotators": len({vote.annotator for vote in table.votes}),
        "omitted": len(table.votes) - len(votes),
    }
    print_report(json, {"tasks_file": tasks, "ratings_file": ratings, **counts}, ())
    _print_label_counts(counts, votes)
    _print_reviewers_command(ratings, votes)
    _print_consensus_commands(ratings, votes, ())
    print_message(f"next: jurygraph score {shell_quote(tasks)} --config CONFIG --out run")


def _print_label_counts(counts: Mapping[str, int], votes: Sequence[Vote]) -> None:
    """Print the counts of an import, and what is odd about its `votes`."""
    print_message(_format_counts(counts))
    print_messages(notes_on_similar_names(vote.annotator for vote in votes))
    print_messages(notes_on_similar_names(vote.agent or "" for vote in votes))
    if counts["omitted"]:
        print_message(f"omitted answers have no label ({NO_LABEL_DESCRIPTION}), or several")
    label_counts = Counter(vote.subject for vote in votes)
    repeated = len(votes) - len(label_counts)
    if repeated:
        names = [
            f"{item} by {annotator}"
            for (item, annotator, _), count in label_counts.items()
            if count > 1
        ]
        remedy = "keep one of each, or import the file of each person by itself"
        if all(vote.agent is None for vote in votes):
            remedy += ", or name the column of agents (--column agent=C)"
        print_message(
            f"votes that repeat an item and annotator, and count, too, unless they repeat all else: {repeated}, on "
            f"{join_names(names)}; {remedy}"
        )


def _refuse_odd_labels(votes: Iterable[Vote], scale: str | None) -> None:
    """Raise `InputError` for words among numbers, and for numbers off the scale, or without one unlike all others.

    Words make classes of what was a scale, but for yes among 1 and 0, and the others move every figure. A `scale` is
    "LOWEST,HIGHEST".
    """
    problems = []
    for labels in group_by(votes, attrgetter("dimension")).values():
        words = [vote for vote in labels if isinstance(vote.label, str)]
        numbers = [vote for vote in labels if not isinstance(vote.label, str)]
        min_labels_per_word = _MIN_LABELS_PER_WORD
        if None not in {read_decision(vote.label) for vote in labels}:
            words = []  # yes and 1 are one class
        elif numbers and {read_decision(vote.label) for vote in words} != {None}:
            min_labels_per_word = 1  # no scale has both yes and 5
        values: list[Any] = [vote.label for vote in numbers]
        odd_values: Collection[Any]
        fractions = [vote for vote in numbers if vote.label and vote.label % 1]
        number_finding = "far from all other labels"
        _, odd_values = split_far_labels(sorted(set(values)), values)
        if scale:
            fractions = []
            number_finding = f"not on the scale {scale}"
            lowest, highest = _parse_scale(scale)
            odd_values = {value for value in values if not lowest <= value <= highest}
        for finding, odd_votes, min_labels in (
            ("words among numbers, without a place on the scale", words, min_labels_per_word),
            ("fractions among whole numbers", fractions, _MIN_LABELS_PER_FRACTION),
            (number_finding, [vote for vote in numbers if vote.label in odd_values], 1),
        ):
            if 0 < min_labels * len(odd_votes) <= len(labels):
                problems.append(f"{finding}: {_name_votes(odd_votes)}")
    if problems:
        raise InputError(
            f"{'; '.join(problems)}; write another number, or nothing, and import again; "
            "numbers that are right pass with --scale LOWEST,HIGHEST"
        )


def _parse_scale(scale: str) -> tuple[float, float]:
    try:
        lowest, highest = map(float, split_names(scale))
        if not lowest < highest:
            raise ValueError
    except ValueError:
        raise InputError(
            "--scale: expected the lowest label and the highest, such as 1,7"
        ) from None
    return lowest, highest


def _name_votes(votes: Iterable[Vote]) -> str:
    """Return the labels, each with what it is of, whose it is, and its place in the file."""
    names = []
    for vote in votes:
        label = repr(vote.label) if isinstance(vote.label, str) else f"{vote.label:g}"
        place = getattr(vote, "location", "")
        names.append(f"{label} ({', '.join(filter(None, (vote.key, vote.annotator, place)))})")
    return join_names(names)


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in counts.items())


def _to_json_lines(entries: Iterable[FrozenModel]) -> Iterator[bytes]:
    return (entry.model_dump_json(exclude_defaults=True).encode() + b"\n" for entry in entries)


def _refuse_non_jsonl_suffix(target: str) -> None:
    name = target.removesuffix(".gz")
    if target != "-" and Path(name).suffix not in ("", ".jsonl"):
        jsonl_path = Path(name).with_suffix(".jsonl")
        raise InputError(f"{target}: is written as JSONL; name the file {jsonl_path}")


def _import_votes(
    files: list[str], target: str, json: bool, read: Sequence[Vote], scale: str | None
) -> None:
    answers = [vote for vote in read if vote.label is not None]
    votes = [vote for vote in answers if not is_no_label(vote.label)]
    if not votes:
        raise InputError(f"{', '.join(files)}: no row has a label; fill in at least one")
    repeated = len(votes) - len({vote.subject for vote in votes})
    if 2 * repeated > len(votes):
        raise InputError(
            f"{', '.join(files)}: {repeated} of {len(votes)} votes repeat an item and annotator; "
            "a file with a row for each label needs no import: `jurygraph consensus` reads it"
        )
    _refuse_odd_labels(votes, scale)
    sheet_votes = [vote for vote in read if isinstance(vote, SheetVote)]
    _write_tasks(target, _to_json_lines(answers), is_of_sheets=bool(sheet_votes))
    counts = {
        "votes": len(votes),
        "items": len({vote.key for vote in votes}),
        "annotators": len({vote.annotator for vote in votes}),
    }
    rows = [vote for vote in sheet_votes if vote.is_returned]
    missing_count = len(sheet_votes) - len(rows)
    screened_out_counts = Counter(str(row.dimension) for row in rows if row.is_due is False)
    counts["omitted"] = len(read) - missing_count - len(votes) - screened_out_counts.total()
    figures = {"ratings_file": target, **counts, "screened_out": screened_out_counts}
    print_report(json and target != "-", figures, ())
    _print_label_counts(counts, votes)
    if screened_out_counts:
        print_message(f"screened out, and not omitted: {_format_counts(screened_out_counts)}")
    for row in rows:
        if row.is_due and row.label is None:
            print_message(
                f"{row.location}: is empty, and was not to be skipped; write a score, "
                "unless you abstain"
            )
    print_messages(_notes_on_gaps(sheet_votes))
    if target != "-":
        if rows and not rows[0].row.consensus:
            _print_reviewers_command(target, votes)
            predictions = f"jurygraph export RUN -o F.xlsx --labels {shell_quote(target)}"
            print_message(f"next, beside the predictions of a run: {predictions}")
        _print_consensus_commands(target, votes, rows)


def _print_reviewers_command(ratings: str, votes: Iterable[Vote]) -> None:
    """Print the command that compares judges of reviewers with votes that are numbers."""
    if not any(isinstance(vote.label, str) for vote in votes):
        print_message(f"next: jurygraph study reviewers {shell_quote(ratings)}")


def _notes_on_gaps(votes: Sequence[SheetVote]) -> Iterator[str]:
    """Yield which rows of the key each reviewer did not return or left empty, and which items nobody labelled."""
    votes_by_reviewer = defaultdict(list)
    for vote in votes:
        votes_by_reviewer[vote.annotator].append(vote)
    for reviewer, sheet in votes_by_reviewer.items():
        missing = [vote.key for vote in sheet if not vote.is_returned]
        returned = [vote for vote in sheet if vote.is_returned and vote.is_due is None]
        empty = [vote.key for vote in returned if vote.label is None]
        for problem, items in {"missing": missing, "empty": empty}.items():
            if items:
                yield f"{reviewer}: {len(items)} of {len(sheet)} rows are {problem}: {join_names(items)}"
    labelled_items = {vote.key for vote in votes if vote.label is not None}
    all_items = dict.fromkeys(vote.key for vote in votes)
    unlabelled_items = [item for item in all_items if item not in labelled_items]
    if unlabelled_items:
        yield (
            f"items without a label: {len(unlabelled_items)} of {len(all_items)}: "
            f"{join_names(unlabelled_items)}"
        )


def _print_consensus_commands(
    target: str, votes: Sequence[Vote], rows: Sequence[SheetVote]
) -> None:
    """Print the `jurygraph consensus` of each question of these votes, of which some may be `rows` of sheets.

    None of a question whose labels it would refuse, as one label alone.
    """
    comparison = rows[0].row.consensus if rows else None
    if comparison:
        if not comparison.startswith("jurygraph "):
            # a key of an earlier version names the file alone
            comparison = f"jurygraph consensus RATINGS --before {shell_quote(comparison)}"
        print_message(f"next: {comparison} {shell_quote(target)}")
        return
    votes_by_dimension = group_by(votes, attrgetter("dimension"))
    for dimension, dimension_votes in votes_by_dimension.items():
        step = "next"
        classes: str | None = None
        command = f"jurygraph consensus {shell_quote(target)}"
        if len(votes_by_dimension) > 1:
            # rows without a dimension are of the one that the written column is called by
            command += f" --dimension {shell_quote(dimension or 'label')}"
        if any(vote.agent and isinstance(vote.label, str) for vote in dimension_votes):
            labels = [vote.label for vote in dimension_votes if vote.label is not None]
            words = sorted(set(map(format_label, list_spellings(labels))))
            classes = ",".join(sorted(words, key=is_negative, reverse=True))
            command += f" --classes {shell_quote(classes)}"
            step = "next (put the classes in order, the lowest first)"
        file = FileRows(target, tuple(("", vote) for vote in dimension_votes))
        with suppress(InputError):
            collect_votes([file], None, split_names(classes))
            print_message(f"{step}: {command}")


def _import_tasks(
    rows: Iterable[ImportResult], target: str, only: ImportSelection | None, json: bool
) -> None:
    counts = {"tasks": 0, "responses": 0, "tasks_with_responses": 0, "omitted": 0}
    notes: list[ImportNote] = []
    _write_tasks(target, _to_json_lines(_select_tasks(rows, only, counts, notes)))
    counts_by_note = Counter(note.what for note in notes)
    print_report(
        json and target != "-", {"tasks_file": target, **counts, "notes": counts_by_note}, ()
    )
    print_message(_format_counts(counts))
    print_messages(describe_notes(notes))
    if 0 < counts["tasks_with_responses"] < counts["tasks"]:
        print_message(
            "some tasks have no response, and `score` needs one for each: "
            "import with --only answered, or with --only tasks to score your own responses"
        )
    elif target != "-":
        command = f"jurygraph score {shell_quote(target)} --config jury.yaml"
        if not counts["responses"]:
            command += " --responses RESPONSES"
        print_message(f"next: {command} --out run")


def _select_tasks(
    rows: Iterable[ImportResult],
    only: ImportSelection | None,
    counts: dict[str, int],
    notes: list[ImportNote],
) -> Iterator[TaskLine]:
    """Yield the selected tasks, and count them. Raises `InputError` if none is selected."""
    for task, task_notes in rows:
        notes += task_notes
        if task is None:
            continue
        if only == "answered" and not task.responses:
            counts["omitted"] += 1
            continue
        if only == "tasks":
            task = task.model_copy(update={"responses": ()})
        counts["tasks"] += 1
        counts["responses"] += len(task.responses)
        counts["tasks_with_responses"] += bool(task.responses)
        yield task
    if counts["omitted"] and not counts["tasks"]:
        raise InputError(
            f"none of the {counts['omitted']} tasks has a response; remove --only answered"
        )


_IDENTIFYING_FIELDS = ("id", "item", "annotator", "dimension")
"""What says which task, or whose label of what, a written row is; agents may be named at last."""


def _refuse_lost_rows(path: str, lines: Iterable[bytes], is_of_sheets: bool = False) -> None:
    """Raise `InputError` if a file exists that is of another import: none of its tasks, or labels by somebody of
    something, is among these lines. Of sheets, which come one after another, this holds for each rater and dimension.
    """
    if not Path(path).is_file():
        return
    with TextFile(path, path) as file:
        old_rows = {_identify_row(line.text) for line in file.lines()}
    kept_rows = old_rows.intersection(map(_identify_row, lines))
    start = 2 if is_of_sheets else 4  # whose label of which dimension, or nothing
    if {row[start:] for row in kept_rows} != {row[start:] for row in old_rows}:
        raise InputError(
            f"{path}: exists, and has rows that would be lost; name another file (`jurygraph consensus` takes "
            "several), or delete it first"
        )


def _identify_row(line: str | bytes) -> Sequence[object]:
    try:
        row = json_module.loads(line)
        return tuple(str(row.get(field)) for field in _IDENTIFYING_FIELDS)
    except (ValueError, AttributeError, RecursionError):  # no line of ours
        return line


def _write_tasks(tasks: str, content: Iterator[bytes], is_of_sheets: bool = False) -> None:
    first = list(islice(content, 1))  # an unreadable file fails before a draft is created
    lines: Iterable[bytes] = chain(first, content)
    if Path(tasks).is_file():
        lines = list(lines)
        _refuse_lost_rows(tasks, lines, is_of_sheets)
    _write_lines(tasks, lines)


def _write_lines(path: str, lines: Iterable[bytes]) -> None:
    if path == "-":
        for line in list(lines):
            print_result(line.removesuffix(b"\n"))
    else:
        write_output(path, compress_lines(path, lines))
