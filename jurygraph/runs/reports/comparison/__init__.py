"""Compare two runs: the differences of their rewards and verdicts, and how far they can be told from chance.

figures       the models of a comparison
pairing       responses and verdicts that are in both runs
differences   paired differences over tasks: means, intervals, tests, rank correlations
verdicts      differences by question, and decisions that flipped
margins       non-inferiority and equivalence as conditions of `--gate`
notes         other differences of the runs, and limits of the figures
report        `compare`, which puts them together
"""

from jurygraph.runs.reports.comparison.figures import Comparison
from jurygraph.runs.reports.comparison.report import compare

__all__ = ["Comparison", "compare"]
