"""Make a small run of each kind, as users have them: `python -m tests.runs.stored_runs` stores them for later versions.

Each archive below tests/data/stored_runs was made by one version of the code, and is never made again. Whoever changes
what a run stores adds another one; the old ones must be opened, verified, gone on with and shown for good.

`hub` has no conversations. `empty-replies.zip` in the folder `early` is one run of the last code for which an empty
last message stopped a judge of the whole conversation, and every question about that turn (see `make_empty_replies`).
`chat-labels` is of the last code that read the `tools` of a file of chats as labels;
`conversations` of the first with a column for them whose archive was stored.
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
TURNS_TASK = jg.Task(
    id="hat",
    query="I need a hat.",
    rubric={"criteria": [{"id": "polite", "text": "It is polite.", "weight": 1}]},
)
CALL = {"id": "1", "function": {"name": "find_hat", "arguments": '{"colour": "red"}'}}
CHAT: list[dict[str, Any]] = [
    {"role": "assistant", "content": "Which colour, please?", "reasoning": "They want a hat."},
    {"role": "user", "content": "Red."},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "one red hat", "tool_call_id": "1"},
    {"role": "assistant", "content": "There is one; wait, please."},
]
TOOL = {
    "type": "function",
    "function": {
        "name": "find_hat",
        "parameters": {
            "type": "object",
            "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
        },
    },
}
CHATS = [
    {
        "id": name,
        "messages": [{"role": "user", "content": "A hat!"}, *CHAT[:-1], last],
        "tools": [TOOL],
        "shop": name,
    }
    for name, last in (
        ("kind", CHAT[-1]),
        ("rude", {"role": "assistant", "content": "Find it yourself."}),
    )
]
CHATS_CONFIG = """
evaluators:
  - tools.valid
  - {use: manners.kind, scope: turn, turns: min, sees: full_trace}
reward: {valid: 1, kind: 1}
failure: {min_coverage: 0.4}
"""
MANNERS = """import jurygraph as jg


@jg.evaluator(version="1")
def kind(task, response):
    met = "yourself" not in response.text
    return jg.Verdict(score=float(met), met=met, reason=response.text[-20:])
"""
TURNS = {
    "use": "criteria",
    "scope": "turn",
    "turns": "first_failure",
    "samples": 2,
    "sees": "full_trace",
}


EMPTY_REPLIES: list[dict[str, Any]] = [*CHAT, {"role": "assistant", "content": ""}]
RUDE = {"criteria": {"rude": "It is rude."}}


def empty_replies_jury(**settings: Any) -> jg.Jury:
    """Return a jury that asks about a whole conversation, and whether one of its replies is a fault."""
    judge = ScriptedJudge({"polite": True, "rude": False})
    config = {
        "evaluators": [
            "criteria",
            {"use": "criteria", "name": "rude", "scope": "turn", "params": RUDE},
        ],
        "reward": {"rubric": 1, "rude": -0.5},
        "failure": {"min_coverage": 0.5},
    }
    return jg.Jury.from_config(config, model=judge, **settings)


def make_empty_replies(folder: Path) -> None:
    """Make the run `empty-replies`; with the present code it is another one."""
    with empty_replies_jury(record=folder / "run") as jury:
        jury.score(TURNS_TASK, [jg.Response(id="chat", messages=EMPTY_REPLIES)], step=1)


def polite_jury(**settings: Any) -> jg.Jury:
    """Return a jury with a scripted judge, whose version stays."""
    judge = ScriptedJudge({"polite": lambda letter: "please" in letter})
    criteria = jg.criteria(["It is polite."])
    return jg.Jury(model=judge, evaluators=[criteria], **settings)


def turns_jury(**settings: Any) -> jg.Jury:
    """Return a jury that asks a scripted judge about each turn of a conversation."""
    judge = ScriptedJudge({"polite": lambda letter: letter.endswith("please?")})
    config = {"evaluators": [TURNS]}
    return jg.Jury.from_config(config, model=judge, **settings)


def score(folder: Path, out: str, *options: str, tasks: str = "tasks.jsonl") -> None:
    """Score a file of a folder into a run in it."""
    done = run_command("score", str(folder / tasks), "--out", str(folder / out), *options)
    assert done.code == 0, done.err


def score_chats(folder: Path, *options: str) -> None:
    """Score the chats of a folder into its run `chats`."""
    config = str(folder / "chats.yaml")
    score(folder, "chats", "--config", config, *options, tasks="chats.jsonl")


@contextmanager
def _rank(number: int) -> Iterator[None]:
    with patch.dict(os.environ, RANK=str(number)):
        yield


def make(folder: Path) -> None:
    """Make the runs: scored in part, whole and sealed, branched, re-scored, with an erasure, recorded, of ranks, of
    chats in part, and with verdicts on turns by a judge."""
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
    (folder / "chats.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in CHATS))
    (folder / "chats.yaml").write_text(CHATS_CONFIG)
    (folder / "manners.py").write_text(MANNERS)
    score_chats(folder, "--limit", "1")
    with turns_jury(record=folder / "turns") as jury:
        jury.score(TURNS_TASK, [jg.Response(id="chat", messages=CHAT)], step=1)


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
        target = ARCHIVES / f"{version('jurygraph')}-conversations.zip"
        assert not target.exists(), "an archive is made once"
        target.write_bytes(archive(Path(name)))
