"""The formats that `jurygraph import` reads, by their names.

A format is a module next to this one, and an entry here. What reads raises `InputError` naming file, line and field.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from jurygraph.errors import InputError
from jurygraph.interchange.argilla import read_argilla_answers
from jurygraph.interchange.chats import Chat
from jurygraph.interchange.exports import AnswerReader, read_wide_table_answers
from jurygraph.interchange.gear_graphs import read_gear_graphs
from jurygraph.interchange.grouptravelbench import GroupTrip
from jurygraph.interchange.healthbench import HealthBenchRow
from jurygraph.interchange.inspect_logs import read_inspect_log
from jurygraph.interchange.judgebench import ImportedPair
from jurygraph.interchange.label_studio import read_label_studio_answers
from jurygraph.interchange.langsmith import read_langsmith
from jurygraph.interchange.plawbench import Case
from jurygraph.interchange.qags import read_qags
from jurygraph.interchange.qualtrics import read_qualtrics_answers
from jurygraph.interchange.rewardbench import ImportedComparison
from jurygraph.interchange.rows import ImportResult
from jurygraph.interchange.taubench import read_taubench
from jurygraph.interchange.verifiers import read_verifiers_traces
from jurygraph.interchange.writingbench import ImportedQuery, QueryInTenths
from jurygraph.messages import shell_quote
from jurygraph.schema.frozen_model import StrPath
from jurygraph.schema.rating import Vote
from jurygraph.sources.sheets import read_sheet_votes

TaskReader = Callable[..., Iterator[ImportResult]]
"""Reads the rows of a file; those of `gear` may come with a second one, of scores."""

READERS: Mapping[str, TaskReader] = {
    "healthbench": HealthBenchRow.read,
    "plawbench": Case.read,
    "writingbench": ImportedQuery.read,
    "rewardbench": ImportedComparison.read,
    "judgebench": ImportedPair.read,
    "grouptravelbench": GroupTrip.read,
    "chats": Chat.read,
}
"""Readers of tasks by the name of the format; a row is a task."""

GRAPH_READERS: Mapping[str, TaskReader] = {"gear": read_gear_graphs}
"""Readers of rubrics whose graphs were made elsewhere, by the name of the format."""

TRIAL_READERS: Mapping[str, TaskReader] = {
    "langsmith": read_langsmith,
    "inspect": read_inspect_log,
    "verifiers": read_verifiers_traces,
    "taubench": read_taubench,
}
"""Readers of recorded conversations by the name of the format; several may be trials of one task."""

SCALED_READERS_BY_FORMAT: Mapping[str, Mapping[str, TaskReader]] = {
    "writingbench": {"position": ImportedQuery.read, "tenths": QueryInTenths.read},
}
"""Readers of formats whose values are scored in several ways, by format and way."""


@contextmanager
def naming_trial_format(form: str, path: StrPath) -> Iterator[None]:
    """Add to an `InputError` the other format of recorded conversations by which a file has a task, if there is one."""
    try:
        yield
    except InputError as error:
        for name, read in TRIAL_READERS.items():
            with suppress(InputError):
                if name != form and any(result.task for result in read(path)):
                    command = f"jurygraph import {name} {shell_quote(path)}"
                    error.add_note(f"it has the form of {name}: {command}")
        raise


VOTE_READERS: Mapping[str, Callable[[Sequence[StrPath]], Iterator[Vote]]] = {
    "qags": read_qags,
    "sheets": read_sheet_votes,
}
"""Readers of votes by the name of the format."""

EXPORT_READERS: Mapping[str, AnswerReader] = {
    "label-studio": read_label_studio_answers,
    "argilla": read_argilla_answers,
    "qualtrics": read_qualtrics_answers,
    "wide": read_wide_table_answers,
}
"""Readers of answers that annotation tools and surveys export, by the name of the format."""
