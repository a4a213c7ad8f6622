"""Makes the archives of this folder by the code of an earlier commit, and records what that code reads from them.

    git worktree add --detach ../before 9155f839
    make -C ../before .venv/.demo
    PYTHONPATH=../before ../before/.venv/bin/python tests/data/old_runs/make.py

Each archive is a project with one to three runs. Of each run, `recorded.json` has the digest of its ledger, what
`verify --deep` prints, and digests of what other commands print. Paths are relative. The only address is that of a
judge on the same machine, which is no model.
"""

import asyncio
import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

import jurygraph
from examples.panel.scripted_judge import Unscripted, replied
from jurygraph import Config, Jury
from jurygraph.runs.workflows.scoring_session import ScoringSession
from jurygraph.sources import open_tasks
from tests.judges.pairwise import comparisons
from tests.models.judge_scripts import quotable, response_in
from tests.models.server import Answer, reply_with, run_server, status

HERE = Path(__file__).parent
EXAMPLES = Path(jurygraph.__file__).parents[1] / "examples"
JURYGRAPH = str(Path(sys.executable).with_name("jurygraph"))
PORT = 8011
MODEL = f"openai-compatible:http://127.0.0.1:{PORT}/v1#tiny"
READ = ("show {run} --json", "export {run} --to csv --questions", "export {run} --to verdicts --texts")
"""Commands whose output is recorded as a digest."""

Settings = Mapping[str, Any]
Lines = Sequence[Mapping[str, Any]]


# A judge whose replies depend on nothing but the request


def judge(body: dict[str, Any], number: int) -> Answer:
    """Answer as the example's scripted judge does, or else with a valid reply; one text gets a reply of no use, and
    one an error."""
    prompt = "\n".join(message["content"] for message in body["messages"][1:])
    if "GARBLE" in prompt:
        return reply_with("I would rather not say.")
    if "CRASH" in prompt:
        return status(503)
    schema = body["response_format"]["json_schema"]["schema"]
    if {"preferred", "ranking"} & schema["properties"].keys():
        return reply_with(json.dumps(comparisons.reply(body, comparisons.longest)))
    try:
        reply = replied({**body, "messages": [{"role": "user", "content": prompt}]})
    except Unscripted:
        drawn = int(sha256(prompt.encode()).hexdigest()[:8], 16)
        reply = example_value(schema, schema.get("$defs", {}), drawn, quotable(response_in(body)))
    return reply_with(json.dumps(reply, ensure_ascii=False))


def example_value(schema: Any, definitions: Any, drawn: int, quotes: Sequence[str]) -> Any:
    """Return a value for a schema, which depends on a drawn number."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in schema:
        return example_value(schema["anyOf"][0], definitions, drawn, quotes)
    match schema["type"]:
        case "object":
            parts = enumerate(schema["properties"].items())
            found = {name: example_value(part, definitions, drawn >> place, quotes) for place, (name, part) in parts}
            return found | ({"probability": 0.9 if found["met"] else 0.1} if "met" in found else {})
        case "array":
            return list(quotes) if schema["items"]["type"] == "string" else []
        case "boolean":
            return drawn % 2 == 0
        case "number" | "integer":
            return schema["maximum"] if drawn % 2 else schema["minimum"]
    return "so it is"


# Projects: files, and commands that make runs of them


def letters(*names: str, texts: Sequence[str] = ("do come at nine.", "come."), **more: Any) -> Lines:
    """Return tasks with a rubric of two criteria and these responses."""
    criteria = [
        {"id": one, "text": f"It is {one}.", "weight": weight} for one, weight in (("kind", 2.0), ("rude", -1.0))
    ]
    return [
        {
            "id": name,
            "query": f"Write to {name}.",
            "rubric": {"criteria": criteria},
            "responses": [
                {"id": f"{name}/{place}", "text": f"Dear {name}, {text}\nYours, Émile", "agent": f"agent-{place}"}
                for place, text in enumerate(texts)
            ],
            **more,
        }
        for name in names
    ]


def write(name: str, content: Lines | Settings | str) -> None:
    """Write lines of JSON, a config, or a text."""
    if isinstance(content, Mapping):
        content = json.dumps(content, indent=1)
    elif not isinstance(content, str):
        content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in content)
    Path(name).write_text(content, encoding="utf-8")


def run(*arguments: str, codes: Sequence[int] = (0,)) -> str:
    """Run a command of jurygraph here and return its output."""
    finished = subprocess.run([JURYGRAPH, *arguments], capture_output=True, text=True, check=False)
    assert finished.returncode in codes, (arguments, finished.returncode, finished.stderr)
    return finished.stdout


def score(name: str = "run", *more: str, tasks: str = "tasks.jsonl", codes: Sequence[int] = (0,)) -> None:
    run("score", tasks, "--out", name, *more, codes=codes)


def with_model(*evaluators: Any, **more: Any) -> Settings:
    return {"model": MODEL, "evaluators": evaluators or ("criteria",), "calls": {"cache": False, "attempts": 1}, **more}


def example_tasks(name: str, tasks: int, responses: int) -> Lines:
    """Return the first tasks of an example, each with its first responses."""
    content = (EXAMPLES / name).read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    found = [json.loads(line) for line in text.splitlines()[:tasks]]
    return [{**task, "responses": task["responses"][:responses]} for task in found]


def example_file(name: str) -> str:
    return (EXAMPLES / name).read_text(encoding="utf-8")


def checks() -> None:
    write("jury.yaml", example_file("maths/jury.yaml"))
    write("tasks.jsonl", example_tasks("maths/tasks.jsonl", 3, 4))
    score()


def own_code() -> None:
    """Score by functions of a module of the project: of a response, and of a pair."""
    write(
        "own.py",
        "import jurygraph as jg\n\n\n"
        "async def polite(task, response):\n"
        "    return jg.Verdict(score=0.25 * min(4, len(response.text) // 12), reason=f'about {response.text!r}')\n\n\n"
        '@jg.evaluator(scope="pair", pairs="unordered")\n'
        "def longer(task, first, second):\n"
        "    return len(first.text) > len(second.text)\n",
    )
    write("jury.yaml", {"evaluators": ["own.polite", "own.longer"], "reward": {"polite": 1.0, "longer": 0.5}})
    write("tasks.jsonl", letters("Ann", "Bob", "Cleo", texts=("come.", "do come.", "please do come at nine.")))
    score()


def rubric_graph() -> None:
    write("jury.yaml", {**with_model(), "rubric": {"aggregation": "gear", "kappa": 1}})
    write("tasks.jsonl", example_tasks("rubric/tasks.jsonl.gz", 3, 2))
    score()


def stakeholders() -> None:
    write("jury.yaml", example_file("group_trip/jury.yaml"))
    write("tasks.jsonl", example_tasks("group_trip/tasks.jsonl.gz", 1, 3))
    score()


def specialists() -> None:
    """Score by the four agents of MACRM, with contrasts and a model."""
    config = example_file("maths/macrm.yaml")
    config = config.replace("model: none\n", f"model: {MODEL}\ncalls: {{cache: false}}\n", 1)
    config = config.replace("  - optimizer.efficiency ", "  - quality.reasoning\n  - optimizer.efficiency ", 1)
    write("jury.yaml", config)
    write("tasks.jsonl", example_tasks("maths/tasks.jsonl", 2, 4))
    score()


def panel() -> None:
    """Score by everything at once: travellers, an annotated graph, specialists, and judges of reviewers.

    It is scored from Python, because a run of the command contains the absolute paths of the files about reviewers.
    """
    for name in ("ratings.csv", "texts.jsonl"):
        write(name, example_file(f"panel/{name}"))
    write("tasks.jsonl", example_tasks("panel/tasks.jsonl", 1, 3))
    config = YAML(typ="safe").load(example_file("panel/jury.yaml"))

    async def prepare_and_score() -> None:
        await session.prepare(lambda count: None)
        await session.score(lambda count: None)

    with (
        Jury(Config.model_validate({**config, "model": MODEL, "calls": {"cache": False}})) as jury,
        open_tasks("tasks.jsonl") as work,
        closing(ScoringSession(Path("run"), jury, work)) as session,
    ):
        asyncio.run(prepare_and_score())


def samples() -> None:
    """Score by several samples of a judge, by comparisons, and by a gate on an earlier answer."""
    gated = {"use": "maths.length", "when": {"question": "criteria@kind", "threshold": 0.5}}
    config = with_model({"use": "criteria", "samples": 3}, "pairwise", "listwise", gated)
    write("jury.yaml", {**config, "reward": {"rubric": 1.0, "pairwise": 0.5, "listwise": 0.5}})
    write("tasks.jsonl", letters("Ann", "Bob", texts=("come.", "do come.", "please do come at nine.")))
    score()


def one_response() -> None:
    write("jury.yaml", with_model())
    write("tasks.jsonl", letters(*(f"friend {number}" for number in range(12)), texts=("do come at nine.",)))
    score()


def canaries() -> None:
    write("jury.yaml", with_model(canary={"rate": 0.8}))
    write("tasks.jsonl", letters("Ann", "Bob", "Cleo", "Dan", texts=("do come at nine.",)))
    score(codes=(0, 1))


def failed() -> None:
    """Score with verdicts that fail, for good and in passing, and with responses that a gate stops."""
    write("jury.yaml", {**with_model(), "failure": {"rule": "conservative", "max_error_rate": 1.0}})
    write("tasks.jsonl", letters("Ann", "Bob", "Cleo", texts=("come.", "GARBLE", "CRASH", " ")))
    score(codes=(0, 1))


def erased() -> None:
    write("jury.yaml", with_model())
    write("tasks.jsonl", letters("Ann", "Bob", "Cleo"))
    score()
    run("erase", "run", "--response", "Bob/0", "--reason", "asked for by its author", codes=(0, 1))


def resumed() -> None:
    write("jury.yaml", with_model())
    write("tasks.jsonl", letters("Ann", "Bob", "Cleo", "Dan"))
    score("run", "--max-calls", "5", codes=(4,))
    score()


def branched() -> None:
    write("jury.yaml", with_model())
    write("tasks.jsonl", letters("Ann", "Bob", "Cleo"))
    score()
    write("more.jsonl", [*letters("Ann", "Cleo"), *letters("Bob", "Dan", texts=("I have thought again.", "come."))])
    score("branch", "--branch", "run", tasks="more.jsonl")
    run("rescore", "branch", "--out", "rescored", "--set", "rubric.aggregation=flat")


PROJECTS = (
    checks,
    own_code,
    rubric_graph,
    stakeholders,
    specialists,
    panel,
    samples,
    one_response,
    canaries,
    failed,
    erased,
    resumed,
    branched,
)


# Archives, and what is recorded of them


def record(folder: Path) -> dict[str, Any]:
    """Return what the code reads from each run of a project."""
    return {ledger.parent.name: record_run(ledger) for ledger in sorted(folder.glob("*/run.sqlite"))}


def record_run(ledger: Path) -> dict[str, Any]:
    name = ledger.parent.name
    commands = [command.format(run=name) for command in READ]
    verified = json.loads(run("verify", name, "--deep", "--json"))
    return {
        "ledger": digest(ledger.read_bytes()),
        "verify": {field: value for field, value in verified.items() if field != "base"},  # an absolute path
        "printed": {command: digest(run(*command.split()).encode()) for command in commands},
    }


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def pack(folder: Path) -> bytes:
    """Return a project as an archive without times and owners."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix != ".lock" and "__pycache__" not in path.parts:
                content = path.read_bytes()
                about = tarfile.TarInfo(str(path.relative_to(folder)))
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))
    return packed.getvalue()


def require_relative_paths(folder: Path) -> None:
    """Require that no file contains the path of the project, or of the code that made it."""
    for path in filter(Path.is_file, folder.rglob("*")):
        for absolute in (folder, EXAMPLES.parent):
            assert str(absolute).encode() not in path.read_bytes(), f"{path} contains {absolute}"


def main() -> None:
    recorded = {}
    os.environ |= {"JURYGRAPH_FENCE_KEY": "", "NO_COLOR": "1"}
    with run_server(judge, PORT), tempfile.TemporaryDirectory() as place:
        for make in PROJECTS:
            folder = Path(place, make.__name__)
            folder.mkdir()
            os.chdir(folder)
            make()
            recorded[make.__name__] = record(folder)
            require_relative_paths(folder)
            (HERE / f"{make.__name__}.tar.gz").write_bytes(pack(folder))
            print(make.__name__, json.dumps([one["verify"]["deep"] for one in recorded[make.__name__].values()]))
        os.chdir(HERE)
    (HERE / "recorded.json").write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
