"""`jurygraph import`: other people's data as TASKS, or as RATINGS where it is what people said."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from jurygraph.cli.options import AsJson
from jurygraph.cli.text import out, out_json, say, word

if TYPE_CHECKING:
    from jurygraph.schema import TaskLine
    from jurygraph.sources.importers import Imported, Note

TRAVELPLANNER = "travelplanner"
TASK_FORMATS = (TRAVELPLANNER, "healthbench", "plawbench", "writingbench", "rewardbench", "judgebench")
VOTE_FORMATS = ("qags",)
FORMATS = (*TASK_FORMATS, *VOTE_FORMATS)
_MOST_TOLD = 5


class Only(StrEnum):
    """Which part of the data is wanted."""

    tasks = "tasks"
    answered = "answered"


Travellers = Annotated[
    str | None,
    typer.Option(
        metavar="F", help="Who travels (travelplanner): lines of {task, stakeholders, tensions}.", show_default=False
    ),
]
Wanted = Annotated[
    Only | None,
    typer.Option(
        help="`tasks`: without responses, to score your own; `answered`: without the tasks that have none, which "
        "`score` refuses.",
        show_default=False,
    ),
]


def import_tasks(
    form: Annotated[str, typer.Argument(metavar="FORMAT", help=f"{', '.join(FORMATS)}.", show_default=False)],
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE", help="The file, for qags one of each set; - for stdin.", show_default=False),
    ],
    target: Annotated[
        str, typer.Option("-o", "--out", metavar="F", help="Where to write; - for stdout.", show_default=False)
    ],
    stakeholders: Travellers = None,
    only: Wanted = None,
    json: AsJson = False,
) -> None:
    """Read a file of another project as TASKS or RATINGS.

    It is written whole, or nothing is.

    travelplanner: each query with its tables as facts, its plan as the one response, and its own constraints as those
    of one stakeholder, or the stakeholders of `--stakeholders`, joined by the ids of the tasks.

    healthbench, plawbench, writingbench: each conversation, case or query with its rubric, whose criteria are scored by
    a probability, by partial credit, and on a scale from 1 to 10. HealthBench's ideal and reference completions are
    responses.

    rewardbench (RewardBench 2 too), judgebench: each prompt with its responses, labelled `preferred` or not.

    qags: RATINGS, what each worker said of each sentence of a summary (1 supported by the article, 0 not), from both
    files or one.

    Run on whole files as published: travelplanner, plawbench (the 250 case analyses), judgebench (all 620 pairs), qags
    (both files); on 484 of its rows: writingbench. healthbench and rewardbench were written after the published schema,
    and never run on the published data. docs/importing.md has every field.

    \b
    Example:
        jurygraph import travelplanner train.jsonl --out tasks.jsonl
        jurygraph score tasks.jsonl --config jury.yaml --out run
        jurygraph import qags mturk_cnndm.jsonl mturk_xsum.jsonl --out ratings.jsonl
    """
    from jurygraph.cli.delivery import refuse_source

    _check(form, files, stakeholders, only)
    refuse_source(target, *files, *([stakeholders] if stakeholders else []))
    if form in VOTE_FORMATS:
        _import_votes(form, files, target, json)
    else:
        _import_tasks(form, files[0], target, stakeholders, only, json)


def _check(form: str, files: list[str], stakeholders: str | None, only: Only | None) -> None:
    """Refuse what does not go together. Raises `InputError`."""
    from jurygraph.errors import InputError
    from jurygraph.sources import nearest

    if form not in FORMATS:
        hint = nearest(form, FORMATS) or "known: " + ", ".join(FORMATS)
        raise InputError(f"there is no format {form!r}; {hint}")
    if stakeholders is not None and form != TRAVELPLANNER:
        raise InputError(f"--stakeholders: goes with {TRAVELPLANNER}; leave it out for {form}")
    if only is not None and form in VOTE_FORMATS:
        raise InputError(f"--only: says which tasks are wanted, and {form} has none; leave it out")
    if len(files) > 1 and form not in VOTE_FORMATS:
        raise InputError(f"{files[1]}: {form} is read from one file; import each by itself")


def _import_votes(form: str, files: list[str], target: str, json: bool) -> None:
    from jurygraph.errors import InputError
    from jurygraph.sources.importers import VOTE_READERS

    name = target.removesuffix(".gz")
    if target != "-" and Path(name).suffix not in ("", ".jsonl"):
        raise InputError(f"{target}: RATINGS are written as JSON lines; name it {Path(name).with_suffix('.jsonl')}")
    votes = list(VOTE_READERS[form](files))
    _write(target, (vote.model_dump_json(exclude_defaults=True).encode() + b"\n" for vote in votes))
    told = {
        "votes": len(votes),
        "items": len({vote.key for vote in votes}),
        "annotators": len({vote.annotator for vote in votes}),
    }
    if json and target != "-":
        out_json({"ratings_file": target, **told})
    say(f"{told['votes']} votes of {told['annotators']} annotators on {told['items']} items")
    if target != "-":
        say(f"next: jurygraph consensus {word(target)}")


def _import_tasks(form: str, file: str, tasks: str, stakeholders: str | None, only: Only | None, json: bool) -> None:
    read = _Read(only)
    _write(tasks, read.lines(_imported(form, file, stakeholders)))
    if json and tasks != "-":
        out_json({"tasks_file": tasks, **read.counted()})
    for line in read.told():
        say(line)
    if tasks != "-" and Path(tasks).suffix and not read.partly_answered:
        apart = "" if read.responses else " --responses RESPONSES"
        say(f"next: jurygraph score {word(tasks)} --config jury.yaml{apart} --out run")


def _imported(form: str, file: str, stakeholders: str | None) -> "Iterator[Imported]":
    from jurygraph.sources.importers import READERS, Imported, Note
    from jurygraph.sources.travelplanner import UNREAD, read_travelplanner

    if form != TRAVELPLANNER:
        yield from READERS[form](file)
        return
    what = "things that queries speak of in words that no rule reads are no constraints"
    for task in read_travelplanner(file, stakeholders):
        unread = cast(list[str], task.metadata.get(UNREAD, []))
        yield Imported(task, tuple(Note(what, f"{task.id}: {words}") for words in unread))


class _Read:
    """What was read, counted as it goes by."""

    def __init__(self, only: Only | None) -> None:
        self._only = only
        self.tasks = self.responses = self.answered = self.passed_over = 0
        self._notes: Counter[str] = Counter()
        self._first: defaultdict[str, list[str]] = defaultdict(list)

    @property
    def partly_answered(self) -> bool:
        """Whether some tasks have responses and some do not, which `score` takes neither way."""
        return 0 < self.answered < self.tasks

    def lines(self, imported: "Iterable[Imported]") -> Iterator[bytes]:
        """The tasks that are wanted, each as a line. Raises `InputError` where none is."""
        from jurygraph.errors import InputError

        for task, notes in imported:
            self._note(notes)
            if task is not None and (wanted := self._wanted(task)) is not None:
                yield wanted.model_dump_json(exclude_defaults=True).encode() + b"\n"
        if self.passed_over and not self.tasks:
            raise InputError(f"none of the {self.passed_over} tasks has a response; leave out --only answered")

    def _note(self, notes: "Iterable[Note]") -> None:
        for what, where in notes:
            self._notes[what] += 1
            if len(self._first[what]) < _MOST_TOLD:
                self._first[what].append(where)

    def _wanted(self, task: "TaskLine") -> "TaskLine | None":
        if self._only is Only.answered and not task.responses:
            self.passed_over += 1
            return None
        if self._only is Only.tasks:
            task = task.model_copy(update={"responses": ()})
        self.tasks += 1
        self.responses += len(task.responses)
        self.answered += bool(task.responses)
        return task

    def counted(self) -> dict[str, object]:
        """How much it was, and how often what was told."""
        return {
            "tasks": self.tasks,
            "responses": self.responses,
            "answered": self.answered,
            "passed_over": self.passed_over,
            "told": dict(self._notes),
        }

    def told(self) -> Iterator[str]:
        """How much it was, and the first few of what was left out or is odd."""
        yield f"{_several(self.tasks, 'task')} with {_several(self.responses, 'response')}"
        if self.passed_over:
            yield f"tasks without a response are left out, as --only answered asks: {self.passed_over}"
        for what, first in self._first.items():
            yield f"{what}: {self._notes[what]}"
            yield from (f"  {where}" for where in first)
        if self.partly_answered:
            yield (
                f"tasks without a response: {self.tasks - self.answered}; `score` wants one for each: import with "
                "--only answered, or with --only tasks to score responses of your own"
            )


def _several(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"


def _write(tasks: str, content: Iterator[bytes]) -> None:
    from jurygraph.cli.delivery import deliver, packed

    content = chain(list(islice(content, 1)), content)  # a file that cannot be read is found before a draft is made
    if tasks == "-":
        for line in list(content):
            out(line.removesuffix(b"\n"))
    else:
        deliver(tasks, packed(tasks, content))
