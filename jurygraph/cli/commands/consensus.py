"""`jurygraph consensus`: what the labels of several people say together."""

import math
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from os.path import exists
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from jurygraph.aggregation.consensus.fitting import ConsensusMethod
from jurygraph.cli.options import (
    COLUMN_OPTION_BY_RATING_FIELD,
    AgentColumnOption,
    ColumnNamesOption,
    DimensionOption,
    GroupColumnOption,
    ItemColumnOption,
    PlotFileOption,
    RatingsFilesArgument,
    ReviewerColumnOption,
    ScoreColumnOption,
    option,
    parse_column_options,
    select_named_columns,
    with_people_options,
)
from jurygraph.cli.output_files import refuse_unwritable, write_output
from jurygraph.cli.render.report import make_report_command, read_from_each_run
from jurygraph.cli.render.text import command_line, print_message, print_messages, progress
from jurygraph.cli.table_files import refuse_other_table, write_table
from jurygraph.errors import InputError
from jurygraph.messages import (
    join_names,
    notes_on_similar_names,
    quote,
    select_known_names,
    shell_quote,
    split_names,
)
from jurygraph.schema.rating import VoteOnText, format_label
from jurygraph.sources.artifacts import confusions_to_json
from jurygraph.sources.file_rows import NameByField
from jurygraph.sources.label_words import (
    LABEL_FIELDS,
    NUMERAL_PATTERN,
    ClassesByQuestion,
    parse_classes,
    select_classes,
    warn_of_reversed_decisions,
)
from jurygraph.sources.people import PeopleChoice, leave_out_raters, select_people
from jurygraph.sources.ratings import (
    LabelWithPlace,
    VotesFile,
    iter_file_columns,
    read_gold,
    read_votes,
    select_dimension,
    split_column_subject,
)
from jurygraph.sources.table_rows import find_column, read_first_row
from jurygraph.studies import adjudication
from jurygraph.studies.adjudication import SavedConsensus, read_rounds, select_round
from jurygraph.studies.consensus import report
from jurygraph.studies.fitted_consensus import ConsensusSettings, FittedConsensus, fit_consensus
from jurygraph.studies.questions import (
    JudgedItems,
    add_judged_agents,
    list_consensus_labels,
    list_item_rows,
    list_judge_ratings,
    list_other_sheets,
    match_items,
    read_judged_answers,
    report_questions,
)
from jurygraph.studies.report import Report
from jurygraph.studies.votes import collect_votes, list_questions


@make_report_command
@with_people_options
def consensus(
    ratings: RatingsFilesArgument,
    item: ItemColumnOption = None,
    annotator: ReviewerColumnOption = None,
    label: ScoreColumnOption = None,
    agent: AgentColumnOption = None,
    group: GroupColumnOption = None,
    dimension: DimensionOption = None,
    classes: Annotated[
        list[str] | None,
        option(
            "A,B",
            "All labels, from low to high; of one question QUESTION=A,B, repeated for others. Of 1,2,3,4,5 a 3.5 is "
            "4, and a 2.5 is 2.",
            show_default="those in the data; no before yes",
        ),
    ] = None,
    values: Annotated[
        str | None,
        option(
            "V,W",
            "Credit of each class.",
            show_default="0 to 1: by number, else evenly; by adjusted-mean the numbers",
        ),
    ] = None,
    column: ColumnNamesOption = None,
    *,
    people: PeopleChoice,
    gold: Annotated[
        Path | None,
        option("F", "Items with a known label, in the same columns, or `item` and `label`."),
    ] = None,
    preset: Annotated[
        Literal["converged", "paper"] | None,
        option(None, "How to fit the model.", show_default="converged; see docs/consensus.md"),
    ] = None,
    method: Annotated[
        ConsensusMethod | None,
        option(
            None,
            "Method for scores of agents and items.",
            show_default="stableval; if the panel is too small, adjusted-mean of numbers, or majority",
        ),
    ] = None,
    compare: Annotated[
        bool, option(None, "Compare all methods, and their stability.", "--compare")
    ] = False,
    subsets: Annotated[
        int, option("N", "Subsets of annotators for stability; 0: none.", min=0)
    ] = 50,
    seed: Annotated[
        int | None,
        option(
            "S",
            "Seed of all draws.",
            show_default="0; 42 for stability by preset paper",
            min=0,
            max=2**32 - 1,
        ),
    ] = None,
    prior_mu: Annotated[
        float | None,
        option("A", "Dirichlet α_μ of the class shares.", show_default="by preset"),
    ] = None,
    prior_confusion: Annotated[
        float | None,
        option("A", "Dirichlet α_π of each row of a confusion.", show_default="by preset"),
    ] = None,
    diagonal: Annotated[
        float | None,
        option("D", "Diagonal of confusions at the start, 1-ε+ε/K.", show_default="by preset"),
    ] = None,
    tol: Annotated[
        float | None,
        option("T", "Largest change at which the fit has converged.", show_default="by preset"),
    ] = None,
    bootstrap: Annotated[
        int | None,
        option(
            "B",
            "Bootstrap resamples for intervals; 0: none.",
            show_default="200 refits; 1000 by preset paper",
            min=0,
        ),
    ] = None,
    before: Annotated[
        Path | None, option("F", "Saved --json of fewer labels: show what the new ones moved.")
    ] = None,
    artifact: Annotated[
        Path | None, option("F", "Write the confusions as JSON, for later plans.")
    ] = None,
    labels_out: Annotated[
        Path | None,
        option(
            "F",
            "Write a label of each item and question as .csv, .jsonl or .xlsx for `study judge`, none at ties, its "
            "`certainty` "
            "(by stableval its probability, by adjusted-mean that the mean is nearest to it, else its share of the "
            "labels; gold: 1), and why it is in doubt; of numbers also the "
            "mean of its `labels`, and that without each person's leniency, within the scale, lowest first, and by "
            "adjusted-mean its standard error.",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        option(
            "F",
            "Write a table for people as .xlsx or .csv: a row for each item, with the label of each question, that "
            "of --before, its certainty as in --labels-out, who said what, and which questions are in doubt.",
        ),
    ] = None,
    judged: Annotated[
        Path | None,
        option(
            "RUN", "Compare agents by the judges of a run, too, and add these to --table.", "--run"
        ),
    ] = None,
    ratings_out: Annotated[
        Path | None,
        option(
            "F",
            "Write what the judge of --run says as RATINGS (.csv, .jsonl, .xlsx), by people's ids and on their scale.",
        ),
    ] = None,
    plot: PlotFileOption = None,
) -> Report:
    """Aggregate annotators' labels, with their disagreement (STABLEVAL).

    The confusions of each annotator and the class probabilities of each item are estimated together. An agent's score
    is the mean expected credit of its items. A row of RATINGS is a label: `item`, `annotator` (or `reviewer`), `label`
    (or `score`), and optionally `agent`, `group`, `dimension`. An empty label is an abstention. Of
    several files, one that has these names in the place of the columns that options name is read by them. Several
    questions, such as dimensions or columns, have a consensus each, and one report.

    Exit codes: 0 done; 2 invalid input, such as a label that is not a class.

    \b
    Example:
        jurygraph consensus ratings.csv
        jurygraph consensus votes.csv --id-column id --classes bad,ok,good --compare --plot consensus.svg
        jurygraph consensus ratings.csv adjudicated.jsonl --before consensus.json
        jurygraph consensus people.xlsx --target-column tone,helpful --classes tone=rude,kind --table table.xlsx
    """
    _refuse_outputs(
        {
            "--artifact": artifact,
            "--labels-out": labels_out,
            "--table": table,
            "--ratings-out": ratings_out,
            "--plot": plot,
        },
        [*ratings, *filter(None, [gold])],
    )
    columns = parse_column_options(column) | select_named_columns(
        item=item, annotator=annotator, label=label, agent=agent, group=group
    )
    earlier_rounds = [] if before is None else read_rounds(before)
    scales = parse_classes(classes)
    for scale in scales.values():
        warn_of_reversed_decisions(scale)
        print_messages(notes_on_similar_names(scale))
    settings = ConsensusSettings(
        preset=preset or next((earlier.preset for earlier in earlier_rounds), None),
        method=method,
        values=_parse_credits_by_class_order(values) if values is not None else None,
        subsets=subsets,
        seed=seed,
        compare=compare,
        fit={
            "prior_mu": prior_mu,
            "prior_confusion": prior_confusion,
            "diagonal": diagonal,
            "tol": tol,
        },
        bootstrap=bootstrap,
    )
    votes = _read_votes(ratings, columns, scales, gold, people, settings.uses_paper_preset)
    questions = list_questions(votes.files, dimension)
    column_questions = list(map(_question_of_column, split_names(label)))
    # files of sheets may have others
    questions = [name for name in questions if name in column_questions] or questions
    _refuse_classes_of_none(votes, scales)
    _refuse_for_several(
        questions,
        {"--values": values, "--artifact": artifact, "--plot": plot, "--compare": compare or None},
    )
    _refuse_gold_of_none(votes, questions)
    earlier_by_question = {
        name: select_round(earlier_rounds, name, votes.label_column, len(questions) == 1)
        for name in questions
    }
    fits = [
        _fit_question(
            votes, name, select_classes(scales, name or votes.label_column), settings, earlier
        )
        for name, earlier in earlier_by_question.items()
    ]
    if not fits[0].ballots.has_order and (values or artifact):
        raise InputError(
            f"{'--values' if values else '--artifact'}: these labels have no order; name them by --classes "
            "LOWEST,…,HIGHEST"
        )
    if artifact is not None:
        _write_confusions(artifact, fits[0], method is not None)
    runs = read_from_each_run([*filter(None, [judged])], read_judged_answers)
    items = JudgedItems({}, [])
    if any((runs, labels_out, table, ratings_out)):  # else the texts of large files are not needed
        items = match_items(fits, *runs)
    if ratings_out is not None:
        write_table(ratings_out, list_judge_ratings(fits, items))
        print_message(f"wrote {ratings_out}; beside people's RATINGS, it counts as one more person")
    if labels_out is not None:
        _write_labels(labels_out, fits, items, dimension)
    rounds = earlier_by_question.values()
    rows = list_item_rows(fits, items, rounds) if table is not None else []
    result = _report_fits(fits, rounds)
    if table is not None:
        write_table(table, rows, list_other_sheets(result, fits[0].question))
        notes = dict.fromkeys(_notes_on_texts(votes.files))  # alike for files of one form
        print_messages([f"wrote {table}", *notes])
    if runs:
        result = add_judged_agents(result, fits, items)
    # `assign --ambiguous` prints it for what follows the labels that it asks for
    result.figures = {**result.figures, "command": _describe_command("--before")}
    is_written = bool(labels_out or table)
    result.notes = [*result.notes, *_suggest_next(fits, compare, gold, is_written)]
    if any(fit.doubts for fit in fits):
        result.notes = [*result.notes, _suggest_round(votes.files, fits)]
    return result


def _suggest_next(
    fits: Sequence[FittedConsensus], compare: bool, gold: Path | None, is_written: bool
) -> Iterator[str]:
    """Yield the options that show more of these labels, unless they are written."""
    if is_written:
        return
    text = "next: add --labels-out F for a label of each item, --table F for a table of all"
    if fits[0].ballots.agent and len(fits) == 1 and not compare:
        text += ", --compare for other methods"
    if gold is None:
        text += ", --gold F of known labels for which method is right"
    yield text


def _suggest_round(files: Sequence[VotesFile], fits: Sequence[FittedConsensus]) -> str:
    """Return the commands by which people label again what is in doubt, of a file that has the texts, if any has."""
    doubtful_items = set().union(*(fit.doubts for fit in fits))
    texts = "ITEMS_WITH_TEXTS"
    for file in files:
        if doubtful_items <= {vote.key for _, vote in file.rows if getattr(vote, "text", None)}:
            texts = shell_quote(file.path)
    command = _describe_command()
    # what is there may be named as `--before`: the shell empties it before it is read
    ends = chain([""], (f"-{number}" for number in count(2)))
    names = ((f"consensus{end}.json", f"again{end}") for end in ends)
    saved, folder = next(pair for pair in names if not any(map(exists, pair)))
    return (
        f"to label again what is in doubt: `{command} --json > {saved}`, then `jurygraph assign {texts} --ambiguous "
        f"{saved} --reviewers A,B --out {folder}`; a tie has no label until then, or until "
        "an expert decides it: --gold FILE"
    )


class _VoteFiles(NamedTuple):
    """The votes of files without the people who are left out, by item who those are, and gold by question."""

    files: Sequence[VotesFile]
    left_out: Mapping[str, Sequence[str]]
    gold: Mapping[str, Mapping[str, LabelWithPlace]]

    @property
    def label_column(self) -> str:
        return self.files[0].columns.get("label", "label")

    @property
    def question_names(self) -> list[str]:
        return [name or self.label_column for name in list_questions(self.files, None)]

    def find_gold(self, question: str | None) -> Mapping[str, LabelWithPlace]:
        """Return the gold labels of a question, or those that name none, which are of the only one."""
        name = question or self.label_column
        nameless_labels = (self.gold[field] for field in LABEL_FIELDS if field in self.gold)
        return self.gold.get(name) or next(nameless_labels, {})


def _refuse_classes_of_none(votes: _VoteFiles, scales: ClassesByQuestion) -> None:
    """Raise `InputError` for classes of a question that no label is of, and no column that is not read."""
    names = votes.question_names + [name for file in votes.files for name in file.unread_columns]
    scaled_questions = [name.casefold() for name in filter(None, scales)]
    folded_names = list(map(str.casefold, names))
    select_known_names("--classes: no label is of the question", scaled_questions, folded_names)


def _refuse_gold_of_none(votes: _VoteFiles, questions: Sequence[str | None]) -> None:
    """Raise `InputError` for gold labels of which nobody knows the question, or that are of none."""
    names = votes.question_names
    for name in votes.gold:
        if name in LABEL_FIELDS and len(questions) > 1:
            raise InputError(
                f"--gold: its labels name no question; call their column by one of {join_names(names)}, or choose one "
                "by --dimension"
            )
        if name not in (*LABEL_FIELDS, *names):
            raise InputError(
                f"--gold: has labels of {name!r}, and the ratings are of {join_names(names)}"
            )


def _fit_question(
    votes: _VoteFiles,
    question: str | None,
    classes: Sequence[str],
    settings: ConsensusSettings,
    earlier: SavedConsensus | None,
) -> FittedConsensus:
    """Return the consensus of a question: as an earlier one in the method and the scale that no option names."""
    changes: dict[str, Any] = {"left_out": votes.left_out}
    if earlier is not None:
        settings = settings._replace(method=settings.method or earlier.method)
        if not classes:
            classes = list(map(format_label, earlier.classes))
            changes |= {"values": earlier.values, "has_order": bool(earlier.values)}
    ballots = collect_votes(votes.files, question, classes, votes.find_gold(question))
    return fit_consensus(ballots._replace(**changes), settings)


def _refuse_for_several(
    questions: Sequence[str | None], options_of_one_question: Mapping[str, object]
) -> None:
    """Raise `InputError` for options that are of one question, where there are several."""
    for name, value in options_of_one_question.items():
        if value is not None and len(questions) > 1:
            questions_text = join_names(map(str, questions))
            raise InputError(
                f"{name}: is of one question, and these are {questions_text}; choose it by --dimension"
            )


def _report_fits(
    fits: Sequence[FittedConsensus],
    earlier_rounds: Iterable[SavedConsensus | None],
) -> Report:
    """Return the reports of all questions as one, each compared with an earlier consensus if there is one."""
    reports = []
    estimates = sum(fit.estimates for fit in fits)
    with progress("estimating again", estimates, "resamples") as advance:
        for fit, earlier in zip(fits, earlier_rounds, strict=True):
            if earlier is None:
                reports.append(report(fit, advance))
            else:
                reports.append(adjudication.report(fit, earlier, advance))
    return report_questions(reports, fits)


_MIN_TEXT_LENGTH = 40
_OUTPUT_OPTIONS = (
    "--table",
    "--run",
    "--labels-out",
    "--ratings-out",
    "--plot",
    "--html",
    "--artifact",
)


def _describe_command(*others: str) -> str:
    """Return the command without what it writes, which another round would write over, nor `others` of its options."""
    left_out = (*_OUTPUT_OPTIONS, *others)
    words = shlex.split(command_line.get())
    kept_words = []
    is_value_of_output = False
    for word in words:
        if not (is_value_of_output or word == "--json" or word.startswith(left_out)):
            kept_words.append(word)
        is_value_of_output = word in left_out
    return shlex.join(kept_words)


def _write_confusions(path: Path, fitted: FittedConsensus, is_method_chosen: bool) -> None:
    """Write the confusions of a model, or say that the fallback has none."""
    if fitted.method in ("majority", "adjusted-mean") and not is_method_chosen:
        print_message(
            f"{path}: not written, because {fitted.method} has no confusions; use --method stableval"
        )
        return
    from jurygraph.judges.panel import to_confusions  # few calls need it

    confusions = to_confusions(fitted.model, fitted.ballots.classes)
    write_output(path, [confusions_to_json(confusions)])


def _write_labels(
    path: Path,
    fits: Sequence[FittedConsensus],
    items: JudgedItems,
    dimension: str | None,
) -> None:
    """Write the labels of all items, and say which column to use; each has its question, if there are several."""
    rows = []
    for fit in fits:
        question = dimension if len(fits) == 1 else fit.ballots.dimension
        rows += list_consensus_labels(fit, items.texts, question)
    write_table(path, rows)
    advice = ""
    if all(fit.method == "adjusted-mean" for fit in fits):
        advice = (
            ": the best estimate is `adjusted_mean`, and `label` the class nearest to it; jurygraph study judge "
            f"RUN --labels {shell_quote(path)} --target-column adjusted_mean"
        )
    print_message(f"wrote {path}{advice}")


def _refuse_outputs(path_by_option: Mapping[str, Path | None], sources: Sequence[Path]) -> None:
    """Raise `InputError` if two options name the same file, or if one cannot be written, or not in its format."""
    options: dict[Path, str] = {}
    for option_name, path in path_by_option.items():
        if path is None:
            continue
        other = options.setdefault(path.resolve(), option_name)
        if other != option_name:
            raise InputError(
                f"{path}: {other} and {option_name} name the same file; name two files"
            )
        refuse_unwritable(path, *sources)
        if option_name in ("--labels-out", "--table", "--ratings-out"):
            refuse_other_table(path)


def _read_votes(
    ratings: Sequence[Path],
    columns: NameByField,
    scales: ClassesByQuestion,
    gold: Path | None,
    people: PeopleChoice,
    counts_repeats: bool,
) -> _VoteFiles:
    paths = [*ratings, *filter(None, [gold])]
    file_column_pairs = list(iter_file_columns(paths, columns, "group"))
    gold_columns = file_column_pairs.pop()[1] if gold is not None else {}
    files = [
        read_votes(path, file_columns, COLUMN_OPTION_BY_RATING_FIELD, scales, VoteOnText)
        for path, file_columns in file_column_pairs
    ]
    print_messages(chain.from_iterable(map(_notes_on_file, files)))
    files = select_people(
        select_dimension(files, None), "annotator", replace(people, without=None), counts_repeats
    )
    kept_files = leave_out_raters(files, "annotator", people.without)
    kept_people = {vote.annotator for file in kept_files for _, vote in file.rows}
    left_out: dict[str, list[str]] = {}
    for file in files:
        for _, vote in file.rows:
            if vote.annotator not in kept_people:
                left_out.setdefault(vote.key, []).append(vote.annotator)
    votes = _VoteFiles(kept_files, left_out, {})
    if gold is None:
        return votes
    return votes._replace(gold=_read_gold_labels(gold, gold_columns, votes.question_names))


def _read_gold_labels(
    path: Path, columns: NameByField, questions: Sequence[str]
) -> dict[str, Mapping[str, LabelWithPlace]]:
    """Read the gold labels of each of the `questions`, by columns that votes have, or that are called as these are;
    gold need not name agents."""
    header = read_first_row(path)
    gold_columns = {}
    if "agent" in columns and find_column(columns["agent"], header):
        gold_columns["agent"] = columns["agent"]
    gold_columns["item"] = _find_gold_column(header, columns.get("item", "item"), "id")
    pairs = []
    for text in [*split_names(columns.get("label", "label").removesuffix(",")), *questions]:
        column = split_column_subject(text)[0]
        question = _question_of_column(text)
        pairs.append((question, _find_gold_column(header, column, question)))
    pairs_in_file = [pair for pair in pairs if pair[1] in header]
    gold_by_question: dict[str, dict[str, LabelWithPlace]] = {}
    for question, column in pairs_in_file or pairs:
        for dimension, labels in read_gold(path, {**gold_columns, "label": column}).items():
            # without a column of dimensions, it is the name of the column
            is_unnamed = dimension.casefold() == column.casefold()
            gold_labels = gold_by_question.setdefault(question if is_unnamed else dimension, {})
            for item, label in labels.items():
                if gold_labels.setdefault(item, label).label != label.label:
                    raise InputError(
                        f"{label.location}: {quote(item)} has another gold label of {question}"
                    )
    return dict(gold_by_question)


def _question_of_column(text: str) -> str:
    """Return the question of COLUMN, QUESTION=COLUMN or PERSON:QUESTION=COLUMN."""
    column, first, second = split_column_subject(text)
    return second or first or column


def _find_gold_column(header: Collection[str], column: str, name: str) -> str:
    """Return the column of gold labels for a column of ratings; the latter itself without one.

    It is called the same, perhaps without a prefix that ends with a dot, such as `Input.`, or by the `name`.
    """
    for candidate in (column, column.rpartition(".")[2], name):
        gold_column = find_column(candidate, header)
        if gold_column is not None:
            return gold_column
    return column


def _notes_on_texts(files: Sequence[VotesFile]) -> Iterator[str]:
    """Yield which unread column may have the texts of a table that has none."""
    for file in files:
        first_row = read_first_row(file.path)
        for column in file.unread_columns:
            is_long = len(str(first_row.get(column))) >= _MIN_TEXT_LENGTH
            if is_long and "text" not in file.columns:
                option = shell_quote(f"text={column}")
                yield f"the table has no texts; those of {quote(column)} are added by --column {option}"


def _notes_on_file(file: VotesFile) -> Iterator[str]:
    """Yield how many rows have no label, and which columns that are not read may be meant."""
    if file.empty:
        yield (
            f"{file.path}: {file.empty} rows have no label (n/a, NA, unsure, ? or -, unless "
            "--classes names it)"
        )
    for column, hint in file.unread_columns.items():
        if hint is not None:
            yield f"{file.path}: column {column!r} is not read; {hint}"


def _parse_credits_by_class_order(text: str) -> list[float]:
    values = []
    for value in split_names(text):
        if NUMERAL_PATTERN.fullmatch(value) is None or not math.isfinite(float(value)):
            raise InputError(
                f"--values: expected the credit of each class, such as 0,0.5,1, got {value!r}"
            )
        values.append(float(value))
    return values
