"""`jurygraph import`: convert data of other projects to TASKS, or to RATINGS if it consists of people's labels."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from json import dumps
from pathlib import Path
from typing import Annotated, Literal

from jurygraph.cli.options import AsJson, argument, option
from jurygraph.cli.output_files import compress_lines, refuse_unwritable, write_output
from jurygraph.cli.render.text import print_message, print_report, print_result, shell_quote
from jurygraph.errors import InputError
from jurygraph.messages import did_you_mean
from jurygraph.schema import FrozenModel
from jurygraph.schema.rating import RatedText
from jurygraph.sources.importers import READERS, VOTE_READERS, Imported
from jurygraph.sources.importers.rated_table import read_rated_table

RATINGS = "ratings"
FORMATS = (*READERS, *VOTE_READERS, RATINGS)
_MAX_EXAMPLES = 5
Selection = Literal["tasks", "answered"]

Only = Annotated[
    Selection | None,
    option(
        None,
        "`tasks`: tasks without responses, to score your own; `answered`: only tasks that have responses, as `score` "
        "requires.",
    ),
]
RatingsFile = Annotated[str | None, option("F", "Second output file (ratings): the ratings themselves.")]
ColumnNames = Annotated[
    list[str] | None, option("NAME=C", "Column of the file (ratings) for item, text, annotator, label, ….")
]


def import_(
    form: Annotated[str, argument("FORMAT", f"{', '.join(FORMATS)}.")],
    files: Annotated[
        list[str],
        argument("FILE", "Input file, for qags one or both, for sheets the key first; - for stdin."),
    ],
    target: Annotated[str, option("F", "Output file; - for stdout.", "-o", "--out")],
    only: Only = None,
    ratings: RatingsFile = None,
    column: ColumnNames = None,
    json: AsJson = False,
) -> None:
    """Convert a file of another project to TASKS or RATINGS.

    The output is written completely or not at all.

    healthbench, plawbench, writingbench: each conversation, case or query with its rubric; criteria are scored by a
    probability, by partial credit, and on a scale from 1 to 10. HealthBench's ideal and reference completions are
    responses.

    rewardbench (also RewardBench 2), judgebench: each prompt with its responses, labelled `preferred` or not.
    grouptravelbench: each trip with its travellers as stakeholders.

    qags: RATINGS, each worker's label of each sentence of a summary (1 supported by the article, 0 not), from one or
    both files.

    sheets: RATINGS, from the key that `jurygraph assign` wrote and the sheets that reviewers filled in.

    ratings: a table with a row for each rating (item, text, annotator, label; optionally prompt, agent, group, domain,
    dimension) makes TASKS with the texts as responses, and RATINGS in the file of `--ratings`.

    Tested on the complete published files: plawbench (the 250 case analyses), judgebench (all 620 pairs), qags (both);
    on 484 of its rows: writingbench. healthbench, rewardbench and grouptravelbench follow the published schema and were
    never run on published data. docs/importing.md has all.

    \b
    Example:
        jurygraph import judgebench gpt.jsonl --out tasks.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --out run
        jurygraph import qags mturk_cnndm.jsonl mturk_xsum.jsonl --out ratings.jsonl
        jurygraph import sheets assigned/key.jsonl assigned/sheets/ann.csv --out ratings.jsonl
        jurygraph import ratings people.csv --column label=stars --out tasks.jsonl --ratings ratings.jsonl
    """
    if form not in FORMATS:
        hint = did_you_mean(form, FORMATS) or "known: " + ", ".join(FORMATS)
        raise InputError(f"unknown format {form!r}; {hint}")
    if only is not None and form in VOTE_READERS:
        raise InputError(f"--only: selects tasks, and {form} has none; remove it")
    if len(files) > 1 and form not in VOTE_READERS:
        raise InputError(f"{files[1]}: {form} takes one file; import each by itself")
    if form != RATINGS and (ratings or column):
        raise InputError(f"--{'ratings' if ratings else 'column'}: only for {RATINGS}; remove it for {form}")
    if target != "-":
        refuse_unwritable(target, *files)
    if form == RATINGS:
        _import_ratings(files[0], target, ratings, column or (), json)
    elif form in VOTE_READERS:
        _import_votes(form, files, target, json)
    else:
        _import_tasks(form, files[0], target, only, json)


def _import_ratings(file: str, tasks: str, ratings: str | None, columns: Sequence[str], json: bool) -> None:
    """Write the tasks and the votes of one table; both are read whole before one is written."""
    pairs = [name.partition("=") for name in columns]
    for name, equals, value in pairs:
        if not (name and equals and value):
            raise InputError(f"--column {name}: expected NAME=COLUMN, such as label=stars")
    table = read_rated_table(file, {name: value for name, _, value in pairs})
    if ratings is None or "-" in (tasks, ratings) or tasks == ratings:
        raise InputError("--ratings: name a second output file; tasks and ratings are written to a file each")
    refuse_unwritable(ratings, file)
    _write(tasks, _json_lines(table.tasks))
    _write(ratings, _json_lines(table.votes))
    responses = sum(len(task.responses) for task in table.tasks)
    annotators = {vote.annotator for vote in table.votes}
    counts = {"tasks": len(table.tasks), "responses": responses, "votes": len(table.votes)}
    content = {"tasks_file": tasks, "ratings_file": ratings, **counts, "annotators": len(annotators)}
    print_report(json, content, ())
    print_message(f"{_format_count(len(table.tasks), 'task')} with {_format_count(responses, 'response')}")
    print_message(f"{_format_count(len(table.votes), 'vote')} of {_format_count(len(annotators), 'annotator')}")
    if disputed := _count_contradictions(table.votes):
        print_message(f"contradictory: {_format_count(disputed, 'vote')} of an annotator who gave another one before")
    print_message(f"next: jurygraph score {shell_quote(tasks)} --config jury.yaml --out run")
    print_message(f"next: jurygraph consensus {shell_quote(ratings)}")
    if all(isinstance(vote.label, int | float | None) for vote in table.votes):
        params = dumps({"history": ratings}, ensure_ascii=False)
        print_message(f"for a judge that predicts reviewers: params: {params}")
    else:
        print_message("no history for a judge that predicts reviewers: it needs numbers, and there are words as labels")


def _count_contradictions(votes: Iterable[RatedText]) -> int:
    """Return the number of votes that differ from the annotator's first one on the same text and dimension."""
    labels: dict[tuple[object, ...], object] = {}
    return sum(labels.setdefault((v.key, v.annotator, v.dimension), v.label) != v.label for v in votes)


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _json_lines(entries: Iterable[FrozenModel]) -> Iterator[bytes]:
    return (entry.model_dump_json(exclude_defaults=True).encode() + b"\n" for entry in entries)


def _import_votes(form: str, files: list[str], target: str, json: bool) -> None:
    name = target.removesuffix(".gz")
    if target != "-" and Path(name).suffix not in ("", ".jsonl"):
        raise InputError(f"{target}: RATINGS are written as JSONL; name the file {Path(name).with_suffix('.jsonl')}")
    read = list(VOTE_READERS[form](files))
    votes = [vote for vote in read if vote.label is not None]
    _write(target, _json_lines(votes))
    items = len({vote.key for vote in votes})
    annotators = len({vote.annotator for vote in votes})
    content = {"ratings_file": target, "votes": len(votes), "items": items, "annotators": annotators}
    if len(read) > len(votes):
        content["omitted"] = len(read) - len(votes)
    print_report(json and target != "-", content, ())
    counts = _format_count(len(votes), "vote"), _format_count(annotators, "annotator"), _format_count(items, "item")
    print_message("{} of {} on {}".format(*counts))
    if "omitted" in content:
        print_message(f"rows without a score, omitted: {content['omitted']}")
    if target != "-":
        print_message(f"next: jurygraph consensus {shell_quote(target)}")


def _import_tasks(form: str, file: str, tasks: str, only: Selection | None, json: bool) -> None:
    counter = _ImportCounter(only)
    _write(tasks, counter.lines(READERS[form](file)))
    print_report(json and tasks != "-", {"tasks_file": tasks, **counter.totals()}, ())
    for line in counter.summary_lines():
        print_message(line)
    if tasks != "-" and Path(tasks).suffix and not counter.is_partly_answered:
        responses_option = "" if counter.responses else " --responses RESPONSES"
        print_message(f"next: jurygraph score {shell_quote(tasks)} --config jury.yaml{responses_option} --out run")


class _ImportCounter:
    """Counts of what was read, updated while lines are written."""

    def __init__(self, only: Selection | None) -> None:
        self._only = only
        self.tasks = self.responses = self.answered = self.omitted = 0
        self._notes: Counter[str] = Counter()
        self._first: defaultdict[str, list[str]] = defaultdict(list)

    @property
    def is_partly_answered(self) -> bool:
        """Return True if some tasks have responses and some do not; `score` refuses such a file."""
        return 0 < self.answered < self.tasks

    def lines(self, imported: Iterable[Imported]) -> Iterator[bytes]:
        """Return the selected tasks as JSON lines. Raises `InputError` if none is selected."""
        for task, notes in imported:
            for text, place in notes:
                self._notes[text] += 1
                if len(self._first[text]) < _MAX_EXAMPLES:
                    self._first[text].append(place)
            if task is None:
                continue
            if self._only == "answered" and not task.responses:
                self.omitted += 1
                continue
            if self._only == "tasks":
                task = task.model_copy(update={"responses": ()})
            self.tasks += 1
            self.responses += len(task.responses)
            self.answered += bool(task.responses)
            yield task.model_dump_json(exclude_defaults=True).encode() + b"\n"
        if self.omitted and not self.tasks:
            raise InputError(f"none of the {self.omitted} tasks has a response; remove --only answered")

    def totals(self) -> dict[str, object]:
        """Return the counts, and how often each note occurred."""
        return {
            "tasks": self.tasks,
            "responses": self.responses,
            "tasks_with_responses": self.answered,
            "omitted": self.omitted,
            "notes": dict(self._notes),
        }

    def summary_lines(self) -> Iterator[str]:
        """Return a summary: the counts, and the first few notes on omitted or unusual data."""
        yield f"{_format_count(self.tasks, 'task')} with {_format_count(self.responses, 'response')}"
        if self.omitted:
            yield f"tasks without a response, omitted by --only answered: {self.omitted}"
        for text, first in self._first.items():
            yield f"{text}: {self._notes[text]}"
            yield from (f"  {place}" for place in first)
        if self.is_partly_answered:
            yield (
                f"tasks without a response: {self.tasks - self.answered}; `score` needs one for each: import with "
                "--only answered, or with --only tasks to score your own responses"
            )


def _write(tasks: str, content: Iterator[bytes]) -> None:
    content = chain(list(islice(content, 1)), content)  # an unreadable file fails before a draft is created
    if tasks == "-":
        for line in list(content):
            print_result(line.removesuffix(b"\n"))
    else:
        write_output(tasks, compress_lines(tasks, content))
