"""Readers of benchmarks in their published form: each row becomes a task, or people's votes.

Rubrics are scored as GEAR's profiles do (its Table 9 and D.2): HealthBench's by a probability, WritingBench's on its
scale, PLawBench's by partial credit. In RewardBench's and JudgeBench's pairs, one response is preferred.
GroupTravelBench's travellers become stakeholders, as in DecompR. QAGS's answers are votes, as STABLEVAL reads them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from jurygraph.schema.rating import Vote
from jurygraph.sources.importers.benchmarks import (
    Case,
    GroupTrip,
    ImportedComparison,
    ImportedExample,
    ImportedPair,
    Query,
)
from jurygraph.sources.importers.rows import Imported, Note
from jurygraph.sources.importers.votes import read_qags
from jurygraph.sources.sheets import read_sheets

READERS: Mapping[str, Callable[[str | Path], Iterator[Imported]]] = {
    "healthbench": ImportedExample.read,
    "plawbench": Case.read,
    "writingbench": Query.read,
    "rewardbench": ImportedComparison.read,
    "judgebench": ImportedPair.read,
    "grouptravelbench": GroupTrip.read,
}
"""Readers of tasks by the name of the format. A reader raises `InputError` naming file, line and field."""

VOTE_READERS: Mapping[str, Callable[[Sequence[str | Path]], Iterator[Vote]]] = {
    "qags": read_qags,
    "sheets": read_sheets,
}
"""Readers of votes by the name of the format. A reader raises `InputError` as those of tasks do."""

__all__ = ["READERS", "VOTE_READERS", "Imported", "Note"]
