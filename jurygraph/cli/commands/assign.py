"""`jurygraph assign`: who rates what, as sheets."""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from string import digits
from typing import Annotated, Literal, NamedTuple

from jurygraph.cli.options import (
    COLUMN_OPTION_BY_RATING_FIELD,
    ColumnNamesOption,
    ItemColumnOption,
    JsonOption,
    argument,
    option,
    parse_column_options,
    select_named_columns,
)
from jurygraph.cli.output_files import write_output
from jurygraph.cli.render.text import print_message, print_messages, print_report
from jurygraph.cli.table_files import refuse_other_table, write_table
from jurygraph.errors import InputError
from jurygraph.messages import (
    did_you_mean,
    fold_name,
    join_names,
    quote,
    select_known_names,
    shell_quote,
    split_names,
)
from jurygraph.runs.run import Run
from jurygraph.schema.rating import Label, format_label
from jurygraph.schema.task import chat_to_prompt_text
from jurygraph.sources.file_rows import NameByField
from jurygraph.sources.files import TextFile
from jurygraph.sources.label_words import parse_classes, parse_scale, select_classes
from jurygraph.sources.ratings import iter_file_columns
from jurygraph.sources.sheets import (
    ReviewerAssignment,
    SheetItem,
    SheetQuestion,
    make_sheets,
    read_gold_for_sheets,
    read_items_for_sheets,
    shared_item_counts,
)
from jurygraph.studies.adjudication import (
    SavedConsensus,
    list_raters,
    read_rounds,
    select_ambiguous,
)
from jurygraph.studies.agreement import MIN_SHARED_ITEMS
from jurygraph.studies.consensus import conclude_annotators

_SLIP_SIMILARITY = 0.8
"""From this on, a name is taken for a slip; numbers at the end, as of p1 and p2, tell people apart."""
_NO_FILE_NAME_PATTERN = re.compile(r"^\W|[^\w.@+ -]")
"""What a file name is not to have in any system."""


def assign(
    items: Annotated[
        Path, argument("ITEMS", "Items: a CSV, JSONL or Parquet file, or the folder of a run.")
    ],
    reviewers: Annotated[str, option("A,B", "Names of reviewers, or a file with one a line.")],
    out: Annotated[Path, option("DIR", "New folder for the sheets and their key.", "-o", "--out")],
    per_item: Annotated[int, option("K", "Reviewers of each item.", min=1)] = 2,
    gold: Annotated[
        Path | None, option("F", "Items that every reviewer gets: with texts, or ids alone.")
    ] = None,
    to: Annotated[
        Literal["csv", "xlsx"],
        option(None, "Form of the sheets; those of Excel offer the classes of a score.", "--to"),
    ] = "csv",
    dimensions: Annotated[
        str | None,
        option(
            "A,B",
            "Dimensions, each with a score: names, `ideas`, or the config (.yaml) of a judge.",
        ),
    ] = None,
    classes: Annotated[
        list[str] | None,
        option("A,B", "All scores, low to high; of one dimension NAME=A,B, repeated for others."),
    ] = None,
    ambiguous: Annotated[
        Path | None,
        option("CONSENSUS", "Only the ambiguous items of a saved `consensus --json`."),
    ] = None,
    above: Annotated[
        float | None,
        option(
            "X",
            "The ambiguity, from 0 to 1, or of adjusted means the standard error, in units of the labels, that these "
            "items exceed; of one question, as units differ (save it by --dimension).",
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
    sheet (DIR/sheets/NAME.csv, or .xlsx) has the texts in an order of its own under ids that say nothing, of half of
    the pairs the second text first, and columns for score and reason.
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
        jurygraph assign items.csv --reviewers ann,bob --classes bad,ok,good --to xlsx --out assigned
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
    refuse_other_table(out / f"sheets.{to}")
    sheet_items, common_items = _read_sheet_items(
        items, gold, {**select_named_columns(item=item), **parse_column_options(column)}
    )
    questions = _read_sheet_questions(dimensions or "", classes, ambiguous)
    if items.is_dir() and not (dimensions or classes or ambiguous):
        _suggest_scale(items)
    has_classes = classes or questions[0].classes
    if has_classes and any(entry.is_pair for entry in [*sheet_items, *common_items]):
        raise InputError(
            "--dimensions: pairs have scores of their own; write bare names, without --classes"
        )
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
    answer_key = assignment.key
    raters = sheet_round.raters
    command = sheet_round.questions[0].consensus or ""
    is_rated_again = any(row.reviewer in raters.get(row.key, ()) for row in answer_key)
    if is_rated_again and "--keep-last" not in command:  # else that person would count twice
        command += " --keep-last"
        answer_key = [row.model_copy(update={"consensus": command}) for row in answer_key]
    sheets = out / "sheets"
    key = out / "key.jsonl"
    sheets.mkdir(parents=True, exist_ok=True)
    answer_key_lines = (
        row.model_dump_json(exclude_defaults=True).encode() + b"\n" for row in answer_key
    )
    write_output(key, answer_key_lines)
    _write_sheets(sheets, to, assignment)
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
        lines.append(f"last: {command} {target}")
    print_report(json, figures, lines)


def _write_sheets(folder: Path, suffix: str, assignment: ReviewerAssignment) -> None:
    """Write the sheets to files of distinct names, in systems that ignore case, too."""
    file_names: set[str] = set()
    for name, rows in assignment.sheets.items():
        if rows:
            file_name = _NO_FILE_NAME_PATTERN.sub("_", name)
            while file_name.casefold() in file_names:
                file_name += "_"
            file_names.add(file_name.casefold())
            # rows of the key are in the order of the sheets
            choices = [row.choices for row in assignment.key if row.reviewer == name]
            write_table(folder / f"{file_name}.{suffix}", rows, choices=choices)


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
    dimension = consensus.subject
    if dimensions and dimensions != dimension:
        raise InputError(
            f"--dimensions: --ambiguous items are labelled as in {path}, by {dimension or 'no dimension'}; leave it out"
        )
    command = f"{consensus.command} --before {shell_quote(path)}"
    return _make_question(dimension, consensus.classes, command)


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
        # a warning of half of the people or more has no part about leaving them out
        if sentence.startswith("Warning: "):
            warning = sentence.partition("; to leave out: ")[0]
            yield f"{warning}; name others in --reviewers"
    raters = consensus.annotator_names
    left_out = frozenset().union(*(item.left_out for item in consensus.items.values()))
    folded_left_out = set(map(fold_name, left_out))
    for name in names:
        if name not in raters and fold_name(name) in folded_left_out:
            raise InputError(
                f"--reviewers: {quote(name)} was left out of {path} by --without, and so are new labels; name others"
            )
        if raters and name not in raters:
            # Names that differ only in a letter or number at the end, such as coder A and coder B, are of two people.
            stem = name.rstrip(digits)[:-1]
            candidates = [
                rater
                for rater in raters
                if rater not in names and rater.rstrip(digits)[:-1] != stem
            ]
            slip = did_you_mean(name, candidates, _SLIP_SIMILARITY)
            if slip:
                raise InputError(
                    f"--reviewers: {quote(name)} has rated nothing in {path}; {slip} Whoever is new needs a name that "
                    "is less alike"
                )
            yield f"{quote(name)} has rated nothing in {path}; check the name, unless somebody is new"


def _read_sheet_items(
    items: Path, gold: Path | None, columns: NameByField
) -> tuple[Sequence[SheetItem], Sequence[SheetItem]]:
    """Return the items of a file or a run, and those of the file that every reviewer gets."""
    sheet_items: list[SheetItem] = []
    gold_items: Sequence[SheetItem] = []
    paths = list(filter(None, [gold]))
    if not items.is_dir():
        paths.insert(0, items)
    elif columns:
        raise InputError(
            "--id-column and --column: the responses of a run have no columns; leave them out"
        )
    else:
        sheet_items = list(_read_responses_as_items(items))
    for path, file_columns in iter_file_columns(paths, columns):
        if path == gold:
            gold_items = read_gold_for_sheets(
                path, sheet_items, file_columns, COLUMN_OPTION_BY_RATING_FIELD
            )
            continue
        file = read_items_for_sheets(path, file_columns, COLUMN_OPTION_BY_RATING_FIELD)
        if file.unread_columns:
            unread_column_names = join_names(map(quote, file.unread_columns))
            print_message(
                f"{path}: reviewers do not see {unread_column_names}, but `prompt` (or `question`) "
                "and the texts"
            )
        sheet_items = [row for _, row in file.rows]
    return sheet_items, gold_items


def _read_sheet_questions(
    dimensions: str, classes: Sequence[str] | None, ambiguous: Path | None
) -> Sequence[SheetQuestion]:
    is_of_judge = dimensions == "ideas" or dimensions.endswith((".yaml", ".yml"))
    if classes and (is_of_judge or ambiguous):
        raise InputError("--classes: a judge, or a consensus, has its own; leave it out")
    if is_of_judge:
        from jurygraph.judges.reviewers import read_sheet_questions  # bare names do not need it

        return read_sheet_questions(dimensions)
    scales = parse_classes(classes)
    names = split_names(dimensions or None) or list(filter(None, scales))
    for name in names:
        if ";" in name:
            raise InputError(f"--dimensions: is {quote(name)}; separate names by commas")
        if not name or names.count(name) > 1:
            problem = f"names {quote(name)} twice" if name else "has an empty name"
            raise InputError(f"--dimensions: {problem}; name each dimension once")
    select_known_names("--classes: no dimension is", [*filter(None, scales)], names)
    command = None
    if classes:
        command = " --classes ".join(["jurygraph consensus", *map(shell_quote, classes)])
    questions = []
    for name in names or [""]:
        scale = select_classes(scales, name)
        questions.append(_make_question(name or None, parse_scale(scale) if scale else (), command))
    return questions


def _make_question(
    dimension: str | None, scale: Sequence[Label], command: str | None
) -> SheetQuestion:
    """Return a question whose scores are the classes of a scale, or numbers; the command takes its labels."""
    cells = {"scale": ", ".join(map(format_label, scale))} if command else {}
    return SheetQuestion(dimension=dimension, classes=scale, consensus=command, cells=cells)


def _format_assignment_lines(figures: Mapping[str, int], sparse_pair_count: int) -> Iterator[str]:
    """Return lines on the items of a reviewer and of two; `sparse_pair_count` is that of pairs that share too few."""
    items_per_reviewer_text = _format_count_range(figures["least_items"], figures["most_items"])
    yield (
        f"{figures['items']} items for {figures['reviewers']} reviewers, each item "
        f"{figures['per_item']} times; {items_per_reviewer_text} for each, and {figures['gold']} "
        f"gold items for everybody; labels to give: {figures['labels']}"
    )
    shared_item_count_text = _format_count_range(figures["least_shared"], figures["most_shared"])
    if figures["reviewers"] > 1 and figures["per_item"] > 1:
        yield (
            f"two reviewers share {shared_item_count_text} items; pairs with fewer than "
            f"{MIN_SHARED_ITEMS}: {sparse_pair_count}"
        )
    if figures["repeated"]:
        yield f"rated again by who rated the item before, for want of others: {figures['repeated']}"


def _format_count_range(minimum: int, maximum: int) -> str:
    return f"{minimum} to {maximum}" if minimum < maximum else str(maximum)


def _read_reviewer_names(text: str) -> list[str]:
    """Return the names of reviewers."""
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
        if re.search(r"[,;\x00-\x1f]", name):
            raise InputError(
                f"{location}: {quote(name)} cannot be a name; a comma separates names, or a line in a file"
            )
        if name.casefold() in name_by_folded_name:
            raise InputError(f"{location}: {quote(name)} is there twice; name each reviewer once")
        name_by_folded_name[name.casefold()] = name
    if not name_by_folded_name:
        raise InputError("--reviewers: names nobody; write names, such as ann,bob")
    return list(name_by_folded_name.values())


def _suggest_scale(folder: Path) -> None:
    """Print how sheets of a run get the scale of its judges of reviewers, if it has any."""
    with Run.open(folder) as run:
        if run.reviewer_questions():
            print_message(
                "the sheets name no scale; --dimensions CONFIG gives them that of the run's judges of reviewers, "
                "and `import sheets` then refuses other scores"
            )


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
