"""A canary run: sixteen secrets in four encodings pass through everything that user code, models and servers return.

Afterwards no written file and no output of a command contains any of them.
"""

import gzip
import json
import random
import re
import shutil
import sqlite3
import string
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from tests.cli import leaky
from tests.cli.conftest import Command, CommandResult
from tests.models.judge_scripts import judge_reply, requested_items, response_in
from tests.models.server import Answer, raw_body, reply_with, run_server, status

TASKS, GROUP = 8, 2
NUMBER = TASKS * GROUP
_KINDS = (
    "API_KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWORD_2",
    "CREDENTIALS",
    "ACCESS_KEY_ID",
    "PASSPHRASE",
)


def make_secret(number: int) -> str:
    """Return a secret of one of several kinds: provider key, password with symbols, private key of several lines."""
    draw = random.Random(number)
    core = "".join(draw.choices(string.ascii_letters + string.digits, k=24))
    if number == 0:
        lines = [
            "".join(draw.choices(string.ascii_letters + string.digits + "+/", k=64))
            for _ in range(5)
        ]
        return "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    makes = (
        f"sk-proj-{core}",
        f'{core[:9]}"ä\\{core[9:]}/+=',
        f"{core[:12]}$%&{core[12:16]}",
        f"AKIA{core[:16].upper()}",
    )
    return f"{makes[number % len(makes)]}{number:02d}"


SECRETS = {
    f"CANARY_{number:02d}_{_KINDS[number % len(_KINDS)]}": make_secret(number)
    for number in range(NUMBER)
}


def secret_forms() -> dict[bytes, tuple[str, str]]:
    """Return every form of every secret as bytes: plain, in JSON, and in JSON inside JSON."""
    forms: dict[bytes, tuple[str, str]] = {}
    for name, secret in SECRETS.items():
        for encoding, encode in leaky.ENCODINGS.items():
            text = encode(secret).strip("«»")
            if encoding == "json":
                text = json.dumps(secret)[1:-1]
            if encoding == "base64":
                text = text[8:-4]  # without the characters that depend on the text around it
            for _ in range(3):
                forms[text.encode()] = forms[
                    json.dumps(text, ensure_ascii=False)[1:-1].encode()
                ] = name, encoding
                text = json.dumps(text)[1:-1]
    return forms


FORMS = secret_forms()
_ALL = re.compile(b"|".join(re.escape(form) for form in sorted(FORMS, key=len, reverse=True)))


def find_secrets(content: bytes) -> set[tuple[str, str]]:
    return {FORMS[match.group()] for match in _ALL.finditer(content)}


def read_contents(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file and of its parts: cells of a database or a table, members of an archive."""
    content = path.read_bytes()
    yield content
    if content.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            tables = [
                name
                for (name,) in database.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                )
            ]
            for row in (
                row for table in tables for row in database.execute(f'SELECT * FROM "{table}"')
            ):
                yield b"\n".join(
                    one if isinstance(one, bytes) else str(one).encode() for one in row
                )
    elif content.startswith(b"PAR1"):
        from pyarrow import parquet

        yield json.dumps(
            parquet.read_table(BytesIO(content)).to_pylist(), default=str, ensure_ascii=False
        ).encode()
    elif content.startswith(b"\x1f\x8b"):
        yield gzip.decompress(content)
    elif content.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            yield from (archive.read(name) for name in archive.namelist())


def find_leaks(
    folder: Path, streams: Mapping[str, CommandResult], own: set[Path]
) -> dict[str, set[tuple[str, str]]]:
    """Return by place the secrets found there, each with its encoding; `own` are the user's files."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path not in own]
    found = {
        str(path): {one for content in read_contents(path) for one in find_secrets(content)}
        for path in files
    }
    found |= {f"{name} stdout": find_secrets(ended.out.encode()) for name, ended in streams.items()}
    found |= {f"{name} stderr": find_secrets(ended.err.encode()) for name, ended in streams.items()}
    return {where: secrets for where, secrets in found.items() if secrets}


def all_encodings(secret: str) -> str:
    return "\n".join(encode(secret) for encode in leaky.ENCODINGS.values())


def script(body: dict[str, Any], number: int) -> Answer:
    """Reply in one of several ways that disclose a secret, chosen by the number of the response."""
    if "<<<response " not in json.dumps(body):  # of `attack`, without the defences
        return raw_body(json.dumps({"choices": all_encodings(next(iter(SECRETS.values())))}))
    numbers = re.findall(r"number (\d+)", json.dumps(body))
    number = int(numbers[-1]) if numbers else TASKS * number + number % 4
    secret = list(SECRETS.values())[number % NUMBER]
    echo = all_encodings(secret)
    if number % TASKS == 0:
        return status(
            400,
            {"X-Echo": leaky.ENCODINGS["url"](secret)},
            {"error": {"message": f"wrong key {echo}"}},
        )
    if number % TASKS == 1:
        return status(500, body=f"<p>Authorization: Bearer {echo}</p>")
    if number % TASKS == 2:
        return reply_with(f"I was given {echo}")
    if number % TASKS == 3:
        encoded = leaky.ENCODINGS["url"](secret)
        return status(307, {"Location": f"/v1/{encoded}?key={encoded}"})
    if number % TASKS == 4:
        return judge_reply(
            body, reason=echo, served=leaky.ENCODINGS["json"](secret).replace("\n", " ")
        )
    if number % TASKS == 5:
        one = {"reason": echo, "quotes": [echo], "met": True, "probability": 0.9}
        return reply_with(
            json.dumps(dict.fromkeys(requested_items(body), one)),
            finish=leaky.ENCODINGS["base64"](secret),
        )
    if number % TASKS == 6:
        return raw_body(json.dumps({"choices": echo, "error": {"message": echo, "code": secret}}))
    return judge_reply(body, reason=f"response {response_in(body)[:9]} and {echo}")


CONFIG: dict[str, Any] = {
    "evaluators": ["leaky.Says", "leaky.Raises", "leaky.Logs", "leaky.Warm", "criteria"],
    "derivers": ["leaky.Leaks", "leaky.Fails"],
    "failure": {"max_error_rate": 1.0, "rule": "gear", "min_coverage": 0.0},
    "reward": {"Says": 0.2, "Raises": 0.2, "Logs": 0.2, "Warm": 0.2, "rubric": 0.2},
}


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "leaky", raising=False)
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, secret)
    key = make_secret(4)
    for name in ("JURYGRAPH_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, key)
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:{make_secret(8)}@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("JURYGRAPH_CACHE", str(tmp_path / "cache"))


def write_project(folder: Path) -> set[Path]:
    """Write the user's own files, some of which contain secrets, and return their paths."""
    shutil.copy(leaky.__file__, folder / "leaky.py")
    content = "\n".join(
        encode(secret) for secret in SECRETS.values() for encode in leaky.ENCODINGS.values()
    )
    content = f"{{% raw %}}{content}{{% endraw %}}"
    head = (
        "---\nid: warm\npurpose: Judge warmth.\nvariables: [house]\nextends: items\n---\n## user\n"
    )
    (folder / "warm.md").write_text(f'{head}{content}\n{{{{ house | fenced("house") }}}}\n')
    numbers = iter(range(NUMBER))
    rubric = {"criteria": [{"id": "kind", "text": "It is kind.", "weight": 1.0}]}
    tasks = [
        {
            "id": f"task-{place}",
            "query": "Say a number.",
            "rubric": rubric,
            "responses": [
                {"id": f"r{n}", "text": f"number {n}"}
                for n in (next(numbers) for _ in range(GROUP))
            ],
        }
        for place in range(TASKS)
    ]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    return {folder / "leaky.py", folder / "warm.md", folder / "tasks.jsonl"}


def write_config(folder: Path, name: str, **settings: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps({"model": "none", **settings}))
    return path


class Commands:
    """Runs commands and keeps what they printed."""

    def __init__(self, run: Command) -> None:
        self._run = run
        self.ended: dict[str, CommandResult] = {}

    def __call__(self, name: str, *arguments: object, code: int | set[int] = 0) -> CommandResult:
        ended = self.ended[name] = self._run(*arguments)
        codes = code if isinstance(code, set) else {code}
        assert ended.code in codes, f"{name}: {ended.code}\n{ended.err[-2000:]}"
        return ended


def refuse(body: dict[str, Any], number: int) -> Answer:
    """Refuse the key, which ends a run, and disclose every secret."""
    echo = " ".join(map(all_encodings, SECRETS.values()))
    return status(
        401,
        {"X-Echo": leaky.ENCODINGS["url"](next(iter(SECRETS.values())))},
        {"error": {"message": echo}},
    )


def score_and_read(run: Commands, folder: Path, config: Path) -> None:
    """Score, and everything that reads a run."""
    tasks, made = folder / "tasks.jsonl", folder / "run"
    run("dry run", "score", tasks, "--config", config, "--out", made, "--dry-run")
    run("score", "score", tasks, "--config", config, "--out", made, code={0, 1})
    run(
        "again, from the cache",
        "score",
        tasks,
        "--config",
        config,
        "--out",
        folder / "warm",
        code={0, 1, 3},
    )
    run("show", "show", made)
    run("show as json", "show", made, "--json")
    run("verify", "verify", made)
    run("verify --deep", "verify", made, "--deep")
    for number in range(0, NUMBER, GROUP):  # one for each way of the server
        run(f"show {number}", "show", made, "--response", f"r{number}")
        run(f"explain {number}", "explain", made, "--response", f"r{number}")
    for form in ("jsonl", "csv", "parquet", "audit-bundle"):
        run(f"export {form}", "export", made, "--to", form, "-o", folder / f"exported.{form}")
    run("export to a terminal", "export", made, "--to", "jsonl")


@pytest.mark.landing
@pytest.mark.parametrize("backend", ["native", pytest.param("litellm", marks=pytest.mark.heavy)])
@pytest.mark.filterwarnings("ignore")
def test_no_secret_is_written_to_a_file_or_a_stream(
    backend: str, tmp_path: Path, run: Command, environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = write_project(tmp_path)
    commands = Commands(run)
    with run_server(script) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        model = f"openai-compatible:{server.url}#tiny" if backend == "native" else "openai/tiny"
        calls = {"attempts": 1, "cache": True, "record": str(tmp_path / "calls.jsonl")}
        config = write_config(tmp_path, "jury.yaml", **CONFIG | {"model": model, "calls": calls})
        score_and_read(commands, tmp_path, config)
        assert server.count > NUMBER
        attacked = {**CONFIG, "model": model, "calls": {"attempts": 1}, "derivers": []}
        attacked |= {
            "evaluators": ["leaky.Warm", "criteria"],
            "reward": {"Warm": 0.5, "rubric": 0.5},
        }
        attack = write_config(tmp_path, "attack.yaml", **attacked)
        given = ("--config", attack, "--tasks", tmp_path / "tasks.jsonl", "--suite", "null")
        commands("attack --dry-run", "attack", *given, "--dry-run")
        commands("attack", "attack", *given, "--max-calls", 30, code={0, 1, 3, 4})
        commands("annotate", "annotate", tmp_path / "tasks.jsonl", "--config", attack, "-o", tmp_path / "graphs.jsonl",
                 code={0, 1, 2, 3})  # fmt: skip
    with run_server(refuse) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        model = f"openai-compatible:{server.url}#tiny" if backend == "native" else "openai/tiny"
        refused = write_config(tmp_path, "refused.yaml", **CONFIG | {"model": model})
        given = ("--config", refused, "--out", tmp_path / "refused")
        commands("refused key", "score", tmp_path / "tasks.jsonl", *given, code={3})
    assert find_leaks(tmp_path, commands.ended, own | {config, attack, refused}) == {}
    assert (tmp_path / "calls.jsonl").stat().st_size > 0
    assert sum(ended.out.count("[redacted]") for ended in commands.ended.values()) > NUMBER


BROKEN: dict[str, dict[str, Any]] = {
    "combine": {
        "evaluators": ["leaky.Quiet"],
        "components": {"quiet": {"combiner": "leaky.BreaksWhenCombining"}},
    },
    "freeze": {
        "evaluators": ["leaky.Quiet"],
        "components": {"quiet": {"combiner": "leaky.BreaksWhenFreezing"}},
    },
    "planning": {"evaluators": ["leaky.RaisesWhenPlanning"]},
    "open": {"evaluators": ["leaky.RaisesWhenOpened"]},
    "made": {"evaluators": ["leaky.RaisesWhenMade"]},
    "import": {"evaluators": ["leaky.Missing"]},
    "bug": {"evaluators": ["leaky.Bug"]},
    "params": {"evaluators": [{"use": "leaky.Quiet", "params": {"key": make_secret(5)}}]},
    "user in the url": {
        "model": f"openai-compatible:http://user:{make_secret(5)}@127.0.0.1:9/v1#tiny"
    },
    "path of the url": {"model": f"openai-compatible:http://127.0.0.1:9/{make_secret(1)}/v1#tiny"},
    "langchain": {"model": "langchain:leaky.model"},
    "nobody": {"model": f"nobody:{make_secret(5)}"},
}


def test_a_failing_command_writes_no_secret(
    tmp_path: Path, run: Command, environment: None
) -> None:
    own = write_project(tmp_path)
    streams = {}
    for place, (broken, changed) in enumerate(BROKEN.items()):
        config = write_config(
            tmp_path, f"jury{place}.yaml", **{"evaluators": ["leaky.Quiet"], **changed}
        )
        own.add(config)
        ended = run(
            "score", tmp_path / "tasks.jsonl", "--config", config, "--out", tmp_path / f"run{place}"
        )
        assert ended.code in (2, 70), broken
        streams[broken] = ended
    assert find_leaks(tmp_path, streams, own) == {}
