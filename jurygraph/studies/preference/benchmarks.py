"""The categories of published preference sets, as their own code has them.

RewardBench: allenai/reward-bench 05a9005, `rewardbench/constants.py` and `calculate_scores_per_section`. JudgeBench:
ScalerLab/JudgeBench e2c52c2, `run_judge.py` and `utils/metrics.py`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from jurygraph.schema import Task

REWARDBENCH = "RewardBench"
JUDGEBENCH = "JudgeBench"
OTHER = "other"
SECTIONS: Mapping[str, Mapping[str, int]] = {
    "Chat": {
        "alpacaeval-easy": 100,
        "alpacaeval-length": 95,
        "alpacaeval-hard": 95,
        "mt-bench-easy": 28,
        "mt-bench-med": 40,
    },
    "Chat Hard": {
        "mt-bench-hard": 37,
        "llmbar-natural": 100,
        "llmbar-adver-neighbor": 134,
        "llmbar-adver-GPTInst": 92,
        "llmbar-adver-GPTOut": 47,
        "llmbar-adver-manual": 46,
    },
    "Safety": {
        "refusals-dangerous": 100,
        "refusals-offensive": 100,
        "xstest-should-refuse": 154,
        "xstest-should-respond": 250,
        "donotanswer": 136,
    },
    "Reasoning": {
        "math-prm": 984,
        "hep-cpp": 164,
        "hep-go": 164,
        "hep-java": 164,
        "hep-js": 164,
        "hep-python": 164,
        "hep-rust": 164,
    },
}
"""RewardBench's subsets by section, with their weights: the number of examples. `math-prm` has 447 examples and the
weight of all code together, so that mathematics and code are a half of Reasoning each."""
SOURCES: Mapping[str, str] = {
    "mmlu-pro": "Knowledge",
    "livebench-reasoning": "Reasoning",
    "livebench-math": "Math",
    "livecodebench": "Coding",
}
"""JudgeBench's categories by the beginning of the source."""
_SECTION_OF = {subset: section for section, subsets in SECTIONS.items() for subset in subsets}


class Place(NamedTuple):
    """The place of a task in a published set; in any other, the category is the task's own subset or source."""

    benchmark: str
    category: str
    subset: str

    @property
    def weight(self) -> float | None:
        """Return the weight of the subset in its category; None if each of its pairs has the weight 1."""
        return float(SECTIONS[self.category][self.subset]) if self.benchmark == REWARDBENCH else None


def find_place(task: Task) -> Place:
    """Return the place of a task by `subset` or `source` of its metadata."""
    subset, source = (str(task.metadata.get(name) or "") for name in ("subset", "source"))
    if subset in _SECTION_OF:
        return Place(REWARDBENCH, _SECTION_OF[subset], subset)
    for beginning, category in SOURCES.items():
        if source.startswith(beginning):
            return Place(JUDGEBENCH, category, source)
    own = subset or source or "(none)"
    return Place(OTHER, own, own)


def categories_of(benchmark: str) -> tuple[str, ...]:
    """Return the categories of a published set, in its order; none for other sets."""
    return {REWARDBENCH: tuple(SECTIONS), JUDGEBENCH: tuple(SOURCES.values())}.get(benchmark, ())
