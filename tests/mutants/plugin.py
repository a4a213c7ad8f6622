"""A pytest plugin that measures which tests reach which lines, or runs the tests on a mutant.

A mutant is compiled in place of its module when a process of its own imports that, so no file is ever changed.
"""

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings

JOB = "JURYGRAPH_MUTANTS"
"""The environment variable with the path of a job: {"modules", "baseline"} or {"module", "source", "tests"}."""
PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not exhaustive and not heavy"]
PYTEST += [
    "-p",
    "tests.mutants.plugin",
    "-p",
    "no:xdist",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:tests.gate",
]
"""The command that runs tests; a mutant is not to be killed by the gate's rules, which are about tests."""
MEMORY = 8 << 30

settings.register_profile(
    "mutants",
    derandomize=True,
    deadline=None,
    max_examples=25,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)


def import_mutant(module: str, source: str) -> None:
    """Have the import of one module compile its mutant, whatever its file says."""
    path = str(Path(module).resolve())
    compiled = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return compile(source, path, "exec") if loader.path == path else compiled(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


_job: dict[str, Any] = (
    json.loads(Path(os.environ[JOB]).read_text(encoding="utf-8")) if JOB in os.environ else {}
)
if "source" in _job:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    import_mutant(_job["module"], _job["source"])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the tests of the job, in its order; all of them where it names none."""
    if wanted := _job.get("tests"):
        named = {item.nodeid: item for item in items}
        items[:] = [named[test] for test in wanted if test in named]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run every test once under coverage, and write which lines it reaches and how long it takes."""
    if "baseline" not in _job:
        return None  # the tests run as ever
    from coverage import Coverage  # of the extra `mutants`

    names = {str(Path(module).resolve()): module for module in _job["modules"]}
    coverage = Coverage(data_file=None, include=list(names), config_file=False)
    coverage.start()
    seconds: dict[str, float] = {}
    kept = cached_functions(list(names))
    for before, item, following in zip(
        [None, *session.items], session.items, [*session.items[1:], None], strict=False
    ):
        # else one file alone would reach what is cached for all
        if before is None or before.path != item.path:
            for one in kept:
                one.cache_clear()
        coverage.switch_context(item.nodeid)
        start = time.monotonic()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        seconds[item.nodeid] = time.monotonic() - start
        if session.testsfailed:
            return True
    coverage.stop()
    data = coverage.get_data()
    tests = {names[path]: data.contexts_by_lineno(path) for path in data.measured_files()}
    Path(_job["baseline"]).write_text(
        json.dumps({"seconds": seconds, "tests": tests}), encoding="utf-8"
    )
    return True


def cached_functions(paths: Sequence[str]) -> list[Any]:
    """Return the functions of these modules that keep what they have returned."""
    kept = [
        one
        for one in gc.get_objects()
        if type(one) is _CACHED and type(one.__wrapped__) is FunctionType
    ]
    return [one for one in kept if one.__wrapped__.__code__.co_filename in paths]


_CACHED = type(lru_cache(lambda: None))
