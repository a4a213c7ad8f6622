"""Make a small run of each kind, as users have them: `python -m tests.runs.stored_runs` stores them for later versions.

Each archive below tests/data/stored_runs was made by one version of the code, and is never made again. Whoever changes
what a run stores adds another one; the old ones must be opened, verified, gone on with and shown for good.
"""

import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import jurygraph as jg
from jurygraph.testing import ScriptedJudge
from tests.command import run_command

ARCHIVES = Path(__file__).parent.parent / "data" / "stored_runs"
TASKS = [
    {
        "id": name,
        "query": f"What is {total - 2} + 2?",
        "reference": str(total),
        "responses": [
            {"id": f"{name}/{agent}", "agent": agent, "text": f"The answer is {value}."}
            for agent, value in (("right", total), ("wrong", total + 1))
        ],
    }
    for name, total in (("four", 4), ("five", 5), ("six", 6))
]
CONFIG = "evaluators: [maths.accuracy]\n"
RECORDED_TASK = jg.Task(id="letter", query="Write to Ann.")


def polite_jury(**settings: Any) -> jg.Jury:
    """Return a jury with a scripted judge, whose version stays."""
    judge = ScriptedJudge({"polite": lambda letter: "please" in letter})
    criteria = jg.criteria(["It is polite."])
    return jg.Jury(model=judge, evaluators=[criteria], **settings)


def score(folder: Path, out: str, *options: str) -> None:
    """Score the tasks of a folder into a run in it."""
    tasks = folder / "tasks.jsonl"
    done = run_command("score", str(tasks), "--out", str(folder / out), *options)
    assert done.code == 0, done.err


@contextmanager
def _rank(number: int) -> Iterator[None]:
    with patch.dict(os.environ, RANK=str(number)):
        yield


def make(folder: Path) -> None:
    """Make the runs: scored in part, whole and sealed, branched, re-scored, with an erasure, recorded, and of ranks."""
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in TASKS))
    (folder / "jury.yaml").write_text(CONFIG)
    score(folder, "part", "--limit", "1")
    score(folder, "whole")
    score(folder, "branched", "--branch", str(folder / "part"))
    score(folder, "erased")
    key = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "key.pem").write_bytes(key)
    commands = [
        ("seal", str(folder / "whole"), "--key", str(folder / "key.pem")),
        (
            "rescore",
            str(folder / "whole"),
            "--out",
            str(folder / "rescored"),
            "--set",
            "clip=[0, 0.5]",
        ),
        ("erase", str(folder / "erased"), "--response", "four/wrong", "--reason", "asked for"),
    ]
    for command in commands:
        done = run_command(*command)
        assert done.code == 0, done.err
    with polite_jury(record=folder / "recorded") as jury:
        jury.score(RECORDED_TASK, ["Ann, please wait.", "Wait."], step=1)
        jury.score(RECORDED_TASK, ["Ann, please wait."], step=1, phase="test")
    for number in range(2):
        with _rank(number), polite_jury(record=f"{folder}/ranks/{{rank}}") as jury:
            jury.score(RECORDED_TASK, ["Ann, please wait.", "Wait."])


def archive(folder: Path) -> bytes:
    """Return the files of a folder as a zip, in order, without their times and the locks."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.name != "run.lock":
                entry = zipfile.ZipInfo(str(path.relative_to(folder)))
                entry.compress_type = zipfile.ZIP_DEFLATED
                file.writestr(entry, path.read_bytes())
    return content.getvalue()


if __name__ == "__main__":
    from importlib.metadata import version

    with TemporaryDirectory() as name:
        make(Path(name))
        ARCHIVES.mkdir(exist_ok=True)
        target = ARCHIVES / f"{version('jurygraph')}-hub.zip"
        assert not target.exists(), "an archive is made once"
        target.write_bytes(archive(Path(name)))
