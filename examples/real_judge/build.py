"""Writes tasks.jsonl.gz from PandaLM's test set, which lies in examples/reviewers/pandalm.

    python -m examples.real_judge.build

A task is an instruction, and its responses are the two of a pair. Short pairs are taken, because a small model on a
processor reads slowly: of each instruction the two shortest, and of these the 200 shortest. Pairs in which there is
nothing to compare, of equal texts or with an empty one, are left out, and so is a pair that was there before.
"""

import gzip
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from examples.reviewers.build import Pair, pairs

HERE = Path(__file__).parent
PAIRS = 200
OF_AN_INSTRUCTION = 2
PREFERRED = {-1: "first", 0: "tie", 1: "second"}


def main() -> None:
    by_instruction: dict[str, list[Pair]] = defaultdict(list)
    shown = set()
    for pair in pairs():
        texts = (pair.query, pair.first, pair.second)
        if (
            texts not in shown
            and pair.first.strip()
            and pair.second.strip()
            and pair.first != pair.second
        ):
            by_instruction[pair.group].append(pair)
        shown.add(texts)
    short = [
        pair
        for group in by_instruction.values()
        for pair in sorted(group, key=_letters)[:OF_AN_INSTRUCTION]
    ]
    chosen = sorted(sorted(short, key=_letters)[:PAIRS], key=lambda pair: pair.item)
    lines = "".join(json.dumps(_task(pair), ensure_ascii=False) + "\n" for pair in chosen)
    with (
        (HERE / "tasks.jsonl.gz").open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
    ):
        packed.write(lines.encode())


def _letters(pair: Pair) -> int:
    return len(pair.query) + len(pair.first) + len(pair.second)


def _task(pair: Pair) -> dict[str, Any]:
    """Return the line of a pair; what most of the three annotators prefer is a label, which no judge sees."""
    [(score, _)] = Counter(pair.scores.values()).most_common(1)
    labels = {"people": PREFERRED[score]}
    first = {"id": f"{pair.item}-1", "text": pair.first, "labels": labels}
    second = {"id": f"{pair.item}-2", "text": pair.second, "labels": labels}
    return {"id": pair.item, "query": pair.query, "group": pair.group, "responses": [first, second]}


if __name__ == "__main__":
    main()
