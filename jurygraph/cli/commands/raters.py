"""`jurygraph assign`, `consensus`, `power`: who rates what, what ratings say together, and how many are needed."""

import math
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from jurygraph.aggregation.consensus.fitting import ConsensusMethod
from jurygraph.cli.options import (
    COLUMN_OPTION_BY_RATING_FIELD,
    AgentColumnOption,
    ClassWordsOption,
    ColumnNamesOption,
    DimensionOption,
    GroupColumnOption,
    ItemColumnOption,
    JsonOption,
    KeepLastOption,
    PlotFileOption,
    RatingsFilesArgument,
    ReviewerColumnOption,
    ScoreColumnOption,
    WithoutOption,
    argument,
    option,
    parse_column_options,
    select_named_columns,
)
from jurygraph.cli.output_files import refuse_unwritable, write_output
from jurygraph.cli.render.report import make_report_command, read_from_each_run
from jurygraph.cli.render.text import (
    command_line,
    print_message,
    print_messages,
    print_report,
    progress,
)
from jurygraph.cli.table_files import refuse_other_table, write_table
from jurygraph.errors import InputError
from jurygraph.inference.agreement import MeasurementLevel
from jurygraph.messages import (
    did_you_mean,
    join_names,
    notes_on_similar_names,
    quote,
    shell_quote,
    split_names,
)
from jurygraph.runs.run import Run
from jurygraph.schema.rating import VoteOnText, format_label
from jurygraph.schema.task import chat_to_prompt_text
from jurygraph.sources.files import TextFile
from jurygraph.sources.ratings import (
    NUMERAL_PATTERN,
    ClassesByQuestion,
    LabelWithPlace,
    NameByField,
    VotesFile,
    confusions_to_json,
    drop_repeated_labels,
    iter_file_columns,
    keep_last_labels,
    leave_out_raters,
    parse_classes,
    read_gold,
    read_rating_files,
    read_votes,
    select_classes,
)
from jurygraph.sources.sheets import (
    SheetItem,
    SheetQuestion,
    make_sheets,
    read_items_for_sheets,
    shared_item_counts,
    sheet_rows_to_csv,
)
from jurygraph.sources.table_rows import read_first_row
from jurygraph.studies import adjudication
from jurygraph.studies.adjudication import (
    SavedConsensus,
    list_raters,
    read_rounds,
    select_ambiguous,
    select_round,
)
from jurygraph.studies.agreement import MIN_SHARED_ITEMS, read_parts
from jurygraph.studies.consensus import (
    ConsensusSettings,
    FittedConsensus,
    conclude_annotators,
    fit_consensus,
    report,
)
from jurygraph.studies.judgements import read_judgements
from jurygraph.studies.questions import list_consensus_labels, list_item_rows, report_questions
from jurygraph.studies.report import Report
from jurygraph.studies.votes import VoteColumns, collect_votes, list_questions


@make_report_command
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
    without: WithoutOption = None,
    keep_last: KeepLastOption = False,
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
            "Write a label of each item and question as .csv or .xlsx for `study judge`, none at ties, and why it is "
            "in doubt; of numbers also the mean of its `labels`, and that without each person's leniency, within the "
            "scale, lowest first, and by adjusted-mean its standard error.",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        option(
            "F",
            "Write a table for people as .xlsx or .csv: a row for each item, with the label of each question, how sure "
            "it is, who said what, and which questions are in doubt.",
        ),
    ] = None,
    judged: Annotated[
        Path | None, option("RUN", "Add what the judge of each question said to --table.", "--run")
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
    path_by_option = {
        "--artifact": artifact,
        "--labels-out": labels_out,
        "--table": table,
        "--plot": plot,
    }
    _refuse_output_conflicts(path_by_option, ratings if gold is None else [*ratings, gold])
    columns = select_named_columns(
        item=item, annotator=annotator, label=label, agent=agent, group=group
    )
    for path in filter(None, (labels_out, table)):
        refuse_other_table(path)
    if judged is not None and table is None:
        raise InputError("--run: is for --table; name the file to write")
    earlier_rounds = [] if before is None else read_rounds(before)
    scales = parse_classes(classes)
    for names in scales.values():
        print_messages(notes_on_similar_names(names))
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
    votes = _read_votes(
        ratings, columns, scales, gold, without, keep_last, settings.uses_paper_preset
    )
    questions = list_questions(votes.files, dimension)
    for_one_question = {"--values": values, "--artifact": artifact, "--plot": plot, "--gold": gold}
    _refuse_of_several(for_one_question, questions)
    fits = list(_fit_questions(votes, questions, scales, settings, earlier_rounds))
    if not fits[0][0].ballots.has_order and (values or artifact):
        raise InputError(
            f"{'--values' if values else '--artifact'}: these labels have no order; name them by --classes "
            "LOWEST,…,HIGHEST"
        )
    if artifact is not None:
        _write_confusions(artifact, fits[0][0], method is not None)
    if labels_out is not None:
        _write_labels(labels_out, [fit for fit, _ in fits], dimension)
    if table is not None:
        run = None if judged is None else read_from_each_run([judged], read_judgements)[0]
        write_table(table, list_item_rows([fit for fit, _ in fits], run))
        print_message(f"wrote {table}")
    result = _report_fits(fits)
    # `assign --ambiguous` prints it for what follows the labels that it asks for
    result.figures = {
        **result.figures,
        "command": command_line.get().replace(" --json", ""),
    }
    if labels_out is None and table is None:
        result.notes = [
            *result.notes,
            "next: add --labels-out F for a label of each item, --table F for a table of all, --compare for other "
            "methods",
        ]
    return result


@dataclass(frozen=True)
class _VoteFiles:
    """The votes of files without the people who are left out, by item who those are, and the gold labels."""

    files: Sequence[VotesFile]
    left_out: Mapping[str, Sequence[str]]
    gold: Mapping[str, LabelWithPlace]

    def collect(
        self, question: str | None, classes: Sequence[str], earlier: SavedConsensus | None
    ) -> VoteColumns:
        """Return the votes on a question, on the scale of an earlier consensus where no classes are named."""
        if earlier is None or classes:
            ballots = collect_votes(self.files, question, classes, self.gold)
        else:
            classes = list(map(format_label, earlier.classes))
            ballots = collect_votes(self.files, question, classes, self.gold)
            ballots = ballots._replace(values=earlier.values, has_order=bool(earlier.values))
        return ballots._replace(left_out=self.left_out)


def _fit_questions(
    votes: _VoteFiles,
    questions: Sequence[str | None],
    scales: ClassesByQuestion,
    settings: ConsensusSettings,
    earlier_rounds: Sequence[SavedConsensus],
) -> Iterator[tuple[FittedConsensus, SavedConsensus | None]]:
    """Yield the consensus of each question, by the method of an earlier one if that is there, and this."""
    for question in questions:
        earlier = select_round(earlier_rounds, question)
        ballots = votes.collect(question, select_classes(scales, question), earlier)
        if earlier is not None and settings.method is None:
            yield fit_consensus(ballots, settings._replace(method=earlier.method)), earlier
        else:
            yield fit_consensus(ballots, settings), earlier


def _refuse_of_several(
    options_of_one_question: Mapping[str, object], questions: Sequence[str | None]
) -> None:
    """Raise `InputError` for options that are of one question, where there are several."""
    for name, value in options_of_one_question.items():
        if value is not None and len(questions) > 1:
            questions_text = join_names(map(str, questions))
            raise InputError(
                f"{name}: is of one question, and these are {questions_text}; choose it by --dimension"
            )


def _report_fits(fits: Sequence[tuple[FittedConsensus, SavedConsensus | None]]) -> Report:
    """Return the reports of all questions as one, each compared with an earlier consensus if there is one."""
    reports = []
    estimates = sum(fit.estimates for fit, _ in fits)
    with progress("estimating again", estimates, "resamples") as advance:
        for fit, earlier in fits:
            if earlier is None:
                reports.append(report(fit, advance))
            else:
                reports.append(adjudication.report(fit, earlier, advance))
    return report_questions(reports, [fit for fit, _ in fits])


def _write_confusions(path: Path, fitted: FittedConsensus, is_method_chosen: bool) -> None:
    """Write the confusions of a model, or say that the fallback has none."""
    if fitted.method in ("majority", "adjusted-mean") and not is_method_chosen:
        print_message(
            f"{path}: not written, because {fitted.method} has no confusions; use --method stableval"
        )
        return
    from jurygraph.judges.panel import to_confusions  # `assign` and `power` do not need it

    confusions = to_confusions(fitted.model, fitted.ballots.classes)
    write_output(path, [confusions_to_json(confusions)])


def _write_labels(path: Path, fits: Sequence[FittedConsensus], dimension: str | None) -> None:
    """Write the labels of all items, and say which column to use; each has its question, if there are several."""
    rows = []
    for fit in fits:
        question = dimension if len(fits) == 1 else fit.ballots.dimension
        rows += list_consensus_labels(fit, question)
    write_table(path, rows)
    advice = ""
    if all(fit.method == "adjusted-mean" for fit in fits):
        advice = (
            ": the best estimate is `adjusted_mean`, and `label` the class nearest to it; jurygraph study judge "
            f"RUN --labels {shell_quote(path)} --target-column adjusted_mean"
        )
    print_message(f"wrote {path}{advice}")


def _refuse_output_conflicts(
    path_by_option: Mapping[str, Path | None], sources: Sequence[Path]
) -> None:
    """Raise `InputError` if two options name the same file, or if one cannot be written."""
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


def _read_votes(
    ratings: Sequence[Path],
    columns: NameByField,
    scales: ClassesByQuestion,
    gold: Path | None,
    without: str | None,
    keep_last: bool,
    counts_repeats: bool,
) -> _VoteFiles:
    paths = [*ratings, *filter(None, [gold])]
    file_column_pairs = list(iter_file_columns(paths, columns, "group"))
    gold_columns = file_column_pairs.pop()[1] if gold is not None else {}
    classes = list(chain.from_iterable(scales.values()))
    files = [
        read_votes(path, file_columns, COLUMN_OPTION_BY_RATING_FIELD, classes, VoteOnText)
        for path, file_columns in file_column_pairs
    ]
    print_messages(chain.from_iterable(map(_notes_on_file, files)))
    if keep_last:
        files = keep_last_labels(files)
    elif not counts_repeats:  # which the published tables do
        files = list(map(drop_repeated_labels, files))
    kept_files = leave_out_raters(files, "annotator", without)
    gold_labels: Mapping[str, LabelWithPlace] = {}
    if gold is not None:
        present_columns = read_first_row(gold)
        gold_columns = {
            name: column
            for name, column in gold_columns.items()
            if name in ("item", "label") or (name == "agent" and column in present_columns)
        }
        gold_labels = read_gold(gold, gold_columns)
    kept_people = {vote.annotator for file in kept_files for _, vote in file.rows}
    left_out: dict[str, list[str]] = {}
    for file in files:
        for _, vote in file.rows:
            if vote.annotator not in kept_people:
                left_out.setdefault(vote.key, []).append(vote.annotator)
    return _VoteFiles(kept_files, left_out, gold_labels)


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


_JUDGES_WITH_POWER_ANALYSIS = ("own-history", "item-mean", "rater-offset")


@make_report_command
def power(
    ratings: RatingsFilesArgument,
    width: Annotated[float, option("W", "Wanted half-width of alpha's interval.", min=0.001)] = 0.1,
    difference: Annotated[
        float | None, option("D", "Difference of two judges to find, in units of scores.")
    ] = None,
    judges: Annotated[
        str | None,
        option(
            "A,B",
            f"The two judges: {', '.join(_JUDGES_WITH_POWER_ANALYSIS)}.",
            show_default="own-history,item-mean",
        ),
    ] = None,
    chance: Annotated[float, option("P", "Wanted probability of finding it.", "--power")] = 0.8,
    level: Annotated[
        MeasurementLevel, option(None, "What the difference of two scores means.")
    ] = "ordinal",
    item: ItemColumnOption = None,
    reviewer: ReviewerColumnOption = None,
    score: ScoreColumnOption = None,
    agent: AgentColumnOption = None,
    group: GroupColumnOption = None,
    dimension: DimensionOption = None,
    classes: ClassWordsOption = None,
    without: WithoutOption = None,
    keep_last: KeepLastOption = False,
    seed: Annotated[int, option("S", "Seed of the draws.", min=0)] = 0,
) -> Report:
    """Estimate how many items or reviewers a study needs, from ratings of a first one.

    Items are drawn again from RATINGS, with two, three, … of their ratings each: as many as are needed until half of
    such studies have an interval of Krippendorff's alpha that is narrow enough. With --difference, reviewers and their
    ratings are drawn again, with that difference between the mean absolute errors of two judges without a model, until
    the interval over reviewers shows it in a share P of the studies. More ratings do not help if reviewers differ.

    Exit codes: 0 done, also where the ratings are too few to draw from, which it says; 2 invalid input, such as a judge
    that does not exist.

    \b
    Example:
        jurygraph power ratings.csv --width 0.05
        jurygraph power ratings.csv --difference 0.1 --judges rater-offset,item-mean --seed 1 --json
    """
    from jurygraph.studies.power import PowerStudy

    names = split_names(judges) or ["own-history", "item-mean"]
    if judges is not None and difference is None:
        raise InputError(
            "--judges: needs --difference, the difference of the two that a study is to find"
        )
    if len(names) != 2 or len(set(names) & set(_JUDGES_WITH_POWER_ANALYSIS)) != 2:
        raise InputError(
            f"--judges: is {judges!r}; name two of {', '.join(_JUDGES_WITH_POWER_ANALYSIS)}"
        )
    if not 0.0 < chance < 1.0:
        raise InputError(f"--power: is {chance:g}; write a number between 0 and 1")
    if difference is not None and not 0.0 < difference < math.inf:
        raise InputError(f"--difference: is {difference:g}; write a finite number above 0")
    columns = select_named_columns(
        item=item, reviewer=reviewer, score=score, agent=agent, group=group
    )
    options = COLUMN_OPTION_BY_RATING_FIELD
    files = read_rating_files(
        ratings, columns, options, without, dimension, classes, level, keep_last
    )
    parts = read_parts(files)
    power_study = PowerStudy(
        width=width,
        difference=difference,
        judges=(names[0], names[1]),
        power=chance,
        level=level,
        seed=seed,
    )
    with progress("resampling", len(parts) * (1 + bool(difference)), "questions") as advance:
        return power_study.report(parts, advance)


_FILE_NAME_PATTERN = re.compile(r"\w[\w.@+ -]*")


def assign(
    items: Annotated[
        Path, argument("ITEMS", "Items: a CSV, JSONL or Parquet file, or the folder of a run.")
    ],
    reviewers: Annotated[str, option("A,B", "Names of reviewers, or a file with one a line.")],
    out: Annotated[Path, option("DIR", "New folder for the sheets and their key.", "-o", "--out")],
    per_item: Annotated[int, option("K", "Reviewers of each item.", min=1)] = 2,
    gold: Annotated[Path | None, option("F", "File of items that every reviewer gets.")] = None,
    dimensions: Annotated[
        str | None,
        option(
            "A,B",
            "Dimensions, each with a score: names, `ideas`, or the config (.yaml) of a judge.",
        ),
    ] = None,
    ambiguous: Annotated[
        Path | None,
        option("CONSENSUS", "Only the ambiguous items of a saved `consensus --json`."),
    ] = None,
    above: Annotated[
        float | None,
        option(
            "X",
            "The ambiguity, or of adjusted means the standard error, that these items exceed.",
            show_default="0.3, or 3/4 of the error of a single label",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        option(
            "N", "At most so many of these items, the most doubtful.", min=1, show_default="all"
        ),
    ] = None,
    item: ItemColumnOption = None,
    column: ColumnNamesOption = None,
    seed: Annotated[int, option("S", "Seed of the assignment.", min=0)] = 0,
    json: JsonOption = False,
) -> None:
    """Assign items to reviewers, as balanced and blinded sheets.

    An item has `item` and `text`, or `first` and `second` for a pair, and may have `prompt` (or `question`), `agent`,
    `domain` and `group`, as RATINGS with texts do; those of a run are its responses. Each item gets K reviewers, and
    two reviewers' numbers of items differ by at most one: of all, of each agent, and of each domain of an agent. A
    sheet (DIR/sheets/NAME.csv) has the texts in an order of its own under ids that say nothing, of half of the pairs
    the second text first, and columns for score and reason.
    Dimensions of a judge come with their scale, and with `skip_if` where they depend on the score of another one.
    DIR/key.jsonl maps the ids to items, agents and reviewers: do not send it. `jurygraph import sheets` reads the
    filled sheets with the key. A pair's score is first, second or tie, or a number: below 0 for the first text.

    With --ambiguous the items are those that a consensus of earlier ratings leaves in doubt. Their scores are its
    classes, and `jurygraph consensus RATINGS NEW --before CONSENSUS` shows what they changed. Name people who rated
    before: whoever is known from doubtful items alone counts too much, unless --gold items tell how they err. An item
    goes to those who have not rated it, as far as there are any; loads are then as even as that allows.

    Exit codes: 0 done; 2 invalid input, such as fewer reviewers than K.

    \b
    Example:
        jurygraph assign items.csv --reviewers ann,bob,cy --per-item 2 --out assigned
        jurygraph assign run --reviewers names.txt --gold gold.csv --out assigned --seed 7
        jurygraph assign items.csv --ambiguous consensus.json --reviewers dee,eli --out doubtful
        jurygraph import sheets assigned/key.jsonl assigned/sheets/ann.csv --out ratings.jsonl
    """
    names = _read_reviewer_names(reviewers)
    if per_item > len(names):
        raise InputError(
            f"--per-item: is {per_item}, and --reviewers names {len(names)}; name more, or lower it"
        )
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: exists; name a new folder, so that no sheet is replaced")
    sheet_items, common_items = _read_sheet_items(
        items, gold, {**select_named_columns(item=item), **parse_column_options(column)}
    )
    questions = _read_sheet_questions(dimensions)
    if questions[0].classes and any(entry.is_pair for entry in sheet_items + common_items):
        raise InputError("--dimensions: pairs have scores of their own; write bare names")
    sheet_round = _SheetRound(sheet_items, questions)
    if ambiguous is not None:
        sheet_round = _select_doubts(ambiguous, above, limit, dimensions, sheet_items, names)
    elif above is not None or limit is not None:
        raise InputError("--above and --limit: need a saved consensus; name it with --ambiguous")
    assignment = make_sheets(
        sheet_round.items,
        common_items,
        names,
        per_item,
        sheet_round.questions,
        seed,
        sheet_round.raters,
        sheet_round.questions_by_item,
    )
    sheets = out / "sheets"
    key = out / "key.jsonl"
    sheets.mkdir(parents=True, exist_ok=True)
    answer_key_lines = (
        row.model_dump_json(exclude_defaults=True).encode() + b"\n" for row in assignment.key
    )
    write_output(key, answer_key_lines)
    for name, rows in assignment.sheets.items():
        if rows:
            write_output(sheets / f"{name}.csv", sheet_rows_to_csv(rows))
    items_per_reviewer = assignment.assigned.sum(axis=0)
    shared_counts_by_pair = list(shared_item_counts(assignment.assigned, len(common_items))) or [0]
    figures = {
        "items": len(assignment.assigned),
        "gold": len(common_items),
        "reviewers": len(names),
        "per_item": per_item,
        "least_items": int(items_per_reviewer.min()),
        "most_items": int(items_per_reviewer.max()),
        "seed": seed,
        "least_shared": min(shared_counts_by_pair),
        "most_shared": max(shared_counts_by_pair),
        "repeated": assignment.repeated,
        "labels": len(assignment.key),
    }
    sparse_pair_count = sum(count < MIN_SHARED_ITEMS for count in shared_counts_by_pair)
    target = shell_quote(out / "adjudicated.jsonl") if ambiguous else "ratings.jsonl"
    lines = list(_format_assignment_lines(figures, sparse_pair_count))
    lines.append(
        f"next: send the sheets in {sheets}, not the key; then jurygraph import sheets "
        f"{shell_quote(key)} SHEET... --out {target}"
    )
    if ambiguous:
        for question in sheet_round.questions:
            subject = (
                f"scores of {question.dimension}" if len(sheet_round.questions) > 1 else "scores"
            )
            lines.append(f"{subject}: {question.cells['scale']}")
        lines.append(f"last: {sheet_round.questions[0].consensus} {target}")
    print_report(json, figures, lines)


class _SheetRound(NamedTuple):
    """Items and questions of sheets; by item who rated it before, and its questions where it has not all."""

    items: Sequence[SheetItem]
    questions: Sequence[SheetQuestion]
    raters: Mapping[str, Collection[str]] = {}
    questions_by_item: Mapping[str, Sequence[SheetQuestion]] = {}


def _select_doubts(
    path: Path,
    above: float | None,
    limit: int | None,
    dimensions: str | None,
    items: Sequence[SheetItem],
    reviewers: Sequence[str],
) -> _SheetRound:
    """Return the items that a saved consensus leaves in doubt, each with the questions of which it does."""
    rounds = read_rounds(path)
    for earlier in rounds:
        print_messages(_notes_on_consensus(earlier, path, reviewers))
    questions = [_make_adjudication_question(earlier, path, dimensions) for earlier in rounds]
    doubtful_items = select_ambiguous(rounds, above, items)
    if limit is not None and limit < len(doubtful_items):
        print_message(f"--limit: the {limit} most doubtful of {len(doubtful_items)} items")
    doubtful_items = doubtful_items[:limit]
    questions_by_item = {
        item.key: [question for question in questions if question.dimension in names]
        for item, names in doubtful_items
    }
    return _SheetRound(
        [item for item, _ in doubtful_items], questions, list_raters(rounds), questions_by_item
    )


def _make_adjudication_question(
    consensus: SavedConsensus, path: Path, dimensions: str | None
) -> SheetQuestion:
    """Return what sheets ask about items of a consensus: a label of its classes, for the same dimension."""
    dimension = consensus.dimension
    if dimensions and dimensions != dimension:
        raise InputError(
            f"--dimensions: --ambiguous items are labelled as in {path}, by {dimension or 'no dimension'}; leave it out"
        )
    return SheetQuestion(
        dimension=dimension,
        classes=consensus.classes,
        consensus=f"{consensus.command} --before {shell_quote(path)}",
        cells={
            **({"question": consensus.question} if consensus.question and not dimension else {}),
            "scale": ", ".join(map(format_label, consensus.classes)),
        },
    )


def _notes_on_consensus(
    consensus: SavedConsensus, path: Path, names: Sequence[str]
) -> Iterator[str]:
    """Yield which items are in doubt by one vote, and who of `names` has no label, perhaps by a slip."""
    if consensus.doubtful_items:
        yield (
            f"{path}: by majority vote, items that one vote decides are in doubt, too: {len(consensus.doubtful_items)}"
            "; the widest spread of labels comes first"
        )
    figures = consensus.model_dump(include={"classes", "values"})
    figures["annotators"] = {
        name: row for name, row in consensus.annotators.items() if name in names
    }
    for sentence in conclude_annotators(figures):
        warning, is_warning, _ = sentence.partition("; to leave out: ")
        if is_warning:
            yield f"{warning}; name others in --reviewers"
    raters = consensus.annotator_names
    left_out = frozenset().union(*(item.left_out for item in consensus.items.values()))
    for name in names:
        if name in left_out:
            yield f"{quote(name)} was left out of {path} by --without, and so are new labels; name others"
        elif raters and name not in raters:
            hint = did_you_mean(name, raters) or "check the name, unless somebody is new"
            yield f"{quote(name)} has rated nothing in {path}; {hint}"


def _read_sheet_items(
    items: Path, gold: Path | None, columns: NameByField
) -> tuple[list[SheetItem], list[SheetItem]]:
    """Return the items of a file or a run, and those of the file that every reviewer gets."""
    found = {}
    paths = list(filter(None, [gold]))
    if not items.is_dir():
        paths.insert(0, items)
    elif columns:
        raise InputError(
            "--id-column and --column: the responses of a run have no columns; leave them out"
        )
    else:
        found[items] = list(_read_responses_as_items(items))
    for path, file_columns in iter_file_columns(paths, columns):
        file = read_items_for_sheets(path, file_columns, COLUMN_OPTION_BY_RATING_FIELD)
        if file.unread_columns:
            unread_column_names = join_names(map(quote, file.unread_columns))
            print_message(
                f"{path}: reviewers do not see {unread_column_names}, but `prompt` (or `question`) "
                "and the texts"
            )
        found[path] = [row for _, row in file.rows]
    return found[items], [] if gold is None else found[gold]


def _read_sheet_questions(dimensions: str | None) -> Sequence[SheetQuestion]:
    if not dimensions:
        return [SheetQuestion()]
    if dimensions == "ideas" or dimensions.endswith((".yaml", ".yml")):
        from jurygraph.judges.reviewers import read_sheet_questions  # bare names do not need it

        return read_sheet_questions(dimensions)
    names = split_names(dimensions)
    for name in names:
        if ";" in name:
            raise InputError(f"--dimensions: is {quote(name)}; separate names by commas")
        if not name or names.count(name) > 1:
            problem = f"names {quote(name)} twice" if name else "has an empty name"
            raise InputError(f"--dimensions: {problem}; name each dimension once")
    return [SheetQuestion(dimension=name) for name in names]


def _format_assignment_lines(figures: Mapping[str, int], sparse_pair_count: int) -> Iterator[str]:
    """Return lines on the items of a reviewer and of two; `sparse_pair_count` is that of pairs that share too few."""
    items_per_reviewer_text = _format_count_range(figures["least_items"], figures["most_items"])
    yield (
        f"{figures['items']} items for {figures['reviewers']} reviewers, each item "
        f"{figures['per_item']} times; {items_per_reviewer_text} for each, and {figures['gold']} "
        f"gold items for everybody; labels to give: {figures['labels']}"
    )
    shared_item_count_text = _format_count_range(figures["least_shared"], figures["most_shared"])
    if figures["reviewers"] > 1:
        yield (
            f"two reviewers share {shared_item_count_text} items; pairs with fewer than "
            f"{MIN_SHARED_ITEMS}: {sparse_pair_count}"
        )
    if figures["repeated"]:
        yield f"rated again by who rated the item before, for want of others: {figures['repeated']}"


def _format_count_range(minimum: int, maximum: int) -> str:
    return f"{minimum} to {maximum}" if minimum < maximum else str(maximum)


def _read_reviewer_names(text: str) -> list[str]:
    """Return the names of reviewers, which are names of files, too."""
    # Unlike `Path.is_file`, `isfile` is also false for what is too long to be a path.
    if os.path.isfile(text) or text.endswith((".txt", ".csv")):
        with TextFile(text, text) as file:
            located_names = [
                (f"{text}, line {line.number}", line.text.strip()) for line in file.lines()
            ]
    else:
        located_names = [
            ("--reviewers", name) for name in split_names(text.replace("\n", ",")) if name
        ]
    name_by_folded_name = {}
    for location, name in located_names:
        if not _FILE_NAME_PATTERN.fullmatch(name):
            raise InputError(
                f"{location}: {quote(name)} cannot name a sheet; use letters, digits, spaces, . _ @ "
                "+ and -; a comma separates names, or a line in a file"
            )
        if name.casefold() in name_by_folded_name:
            raise InputError(f"{location}: {quote(name)} is there twice; name each reviewer once")
        name_by_folded_name[name.casefold()] = name
    if not name_by_folded_name:
        raise InputError("--reviewers: names nobody; write names, such as ann,bob")
    return list(name_by_folded_name.values())


def _read_responses_as_items(folder: Path) -> Iterator[SheetItem]:
    """Yield the responses of a run as items under their ids, which name them for `study judge`, too."""
    with Run.open(folder) as run:
        for trace, response, task in run.responses_with_tasks():
            if response is not None:
                yield SheetItem(
                    item=trace.response_id,
                    prompt=None if task is None else chat_to_prompt_text(task.query),
                    text=response.text,
                    group=trace.task_id,
                    author=trace.agent,
                )
