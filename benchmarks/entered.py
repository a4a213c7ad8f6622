"""The modules of jurygraph that a judged question enters: `python -m benchmarks.entered`.

One response is scored on one criterion, with a model behind a server. Counted are the functions that scoring calls,
until the trace is stored; not those that plan, and not what runs while a module is imported.
"""

import asyncio
import json
import os
import sys
from collections import defaultdict
from inspect import CO_NEWLOCALS
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import jurygraph
from benchmarks.jobs import open_job
from benchmarks.judging_server import QUOTED, run_judging_server

PACKAGE = f"{Path(jurygraph.__file__).parent}{os.sep}"
TASK = {
    "id": "letter",
    "query": "Invite a friend.",
    "rubric": {"criteria": [{"id": "date", "text": "It names a date.", "weight": 1}]},
    "responses": [{"id": "one", "text": QUOTED}],
}


class EnteredModules(defaultdict[str, set[str]]):
    """The functions that are called, by module: a profile function."""

    def __init__(self) -> None:
        super().__init__(set)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        # the body of a module or a class has no such flag
        is_function = code.co_flags & CO_NEWLOCALS
        if event == "call" and is_function and code.co_filename.startswith(PACKAGE):
            self[code.co_filename.removeprefix(PACKAGE)].add(code.co_qualname)


def score_one() -> EnteredModules:
    """Score the response, and return what was entered."""
    entered = EnteredModules()
    with run_judging_server(0.0) as url, TemporaryDirectory() as name:
        tasks = Path(name) / "tasks.jsonl"
        tasks.write_text(json.dumps(TASK) + "\n")
        settings: dict[str, Any] = {
            "model": f"openai-compatible:{url}#judge",
            "evaluators": ["criteria"],
        }

        async def score() -> None:
            with open_job(Path(name) / "run", jury, tasks) as opened:
                scoring = await opened.plan()
                sys.setprofile(entered)
                try:
                    await scoring.score(lambda _: None)
                finally:
                    sys.setprofile(None)

        with jurygraph.Jury.from_config(settings) as jury:
            asyncio.run(score())
    return entered


if __name__ == "__main__":
    modules = score_one()
    for module, functions in modules.items():
        print(f"{len(functions):4}  {module}")
    print(f"{len(modules)} modules")
