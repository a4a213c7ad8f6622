"""A pytest plugin that collects the tests once and tries every mutant in a forked process.

A mutant exists only in the memory of its process: the bytecode of the live functions is exchanged, so no file is ever
changed. First every test runs once under coverage; a mutant is then tried on the tests that reach its statement, and
after them on the quickest others of the same files.
"""

import ast
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from importlib.machinery import SourceFileLoader
from itertools import accumulate
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings

JOB = "JURYGRAPH_MUTANTS"
"""The environment variable with the path of a job: {"modules", "mutants", "results", "processes"}."""
IMPORTED = f"{JOB}_IMPORTED"
"""That with the path of a mutant which is imported in place of its module."""
PYTEST = [sys.executable, "-m", "pytest", "-q"]
PYTEST += ["-p", "tests.mutants.server", "-p", "no:cacheprovider", "-p", "no:tests.gate"]
"""The command that runs tests; a mutant is not to be killed by the gate's rules, which are about tests."""
MEMORY = 8 << 30
OTHERS = 10.0
"""Seconds for tests that do not reach a mutant themselves: something cached may have reached it for them."""

settings.register_profile(
    "mutants", derandomize=True, deadline=None, max_examples=25, database=None, phases=(Phase.explicit, Phase.generate)
)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the baseline, then every mutant; exit with an error where a test fails without any mutant."""
    if os.environ.get(IMPORTED):
        return None  # the tests run as ever
    job = json.loads(Path(os.environ[JOB]).read_text(encoding="utf-8"))
    results = Path(job["results"])
    baseline = results.with_suffix(".baseline")
    if _wait(_start(lambda: _measure(session, job["modules"], baseline)), 3600.0) != 0:
        raise pytest.UsageError(f"it fails without any mutant: {baseline.read_text(encoding='utf-8')}")
    reached = Reached(session.items, json.loads(baseline.read_text(encoding="utf-8")))
    with results.open("a", encoding="utf-8") as out:
        for mutant, outcome in _try_all(session, job["mutants"], reached, job["processes"]):
            out.write(json.dumps({"mutant": mutant, "outcome": outcome}) + "\n")
            out.flush()
    return True


class Reached:
    """Which tests reach which lines, and how long each takes."""

    def __init__(self, items: Sequence[pytest.Item], baseline: dict[str, Any]) -> None:
        self._items = items
        self.seconds: dict[str, float] = baseline["seconds"]
        self._tests: dict[str, dict[str, list[str]]] = baseline["tests"]

    def select(self, mutant: dict[str, Any]) -> list[pytest.Item]:
        """Return the tests that reach the statement, the quickest first, then the quickest others of their files."""
        by_line = self._tests.get(mutant["module"], {})
        first, last = mutant["lines"]
        reaching = {test for line in range(first, last + 1) for test in by_line.get(str(line), ())}
        files = {item.path for item in self._items if item.nodeid in reaching}
        quickest = sorted(self._items, key=lambda item: self.seconds[item.nodeid])
        others = [item for item in quickest if item.path in files and item.nodeid not in reaching]
        spent = accumulate(self.seconds[item.nodeid] for item in others)
        affordable = [item for item, seconds in zip(others, spent, strict=True) if seconds <= OTHERS]
        return [*(item for item in quickest if item.nodeid in reaching), *affordable]


def _measure(session: pytest.Session, modules: Sequence[str], baseline: Path) -> int:
    """Run every test once under coverage, and write which lines it reaches."""
    from coverage import Coverage  # of the extra `mutants`

    coverage = Coverage(data_file=None, include=[str(Path(module).resolve()) for module in modules], config_file=False)
    coverage.start()
    seconds: dict[str, float] = {}
    caches = _caches(modules)
    for before, item, following in zip([None, *session.items], session.items, [*session.items[1:], None], strict=False):
        if before is None or before.path != item.path:  # else one file alone would reach what is cached for all
            _clear(caches)
        coverage.switch_context(item.nodeid)
        start = time.monotonic()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        seconds[item.nodeid] = time.monotonic() - start
        if session.testsfailed:
            baseline.write_text(item.nodeid, encoding="utf-8")
            return 1
    coverage.stop()
    data = coverage.get_data()
    names = {str(Path(module).resolve()): module for module in modules}
    tests = {names[path]: data.contexts_by_lineno(path) for path in data.measured_files()}
    baseline.write_text(json.dumps({"seconds": seconds, "tests": tests}), encoding="utf-8")
    return 0


def _try_all(
    session: pytest.Session, mutants: Sequence[dict[str, Any]], reached: Reached, processes: int
) -> Iterator[tuple[int, str]]:
    """Try the mutants, so many at a time; give the place of each and what became of it."""
    running: dict[int, tuple[int, float]] = {}
    waiting = list(enumerate(mutants))
    while waiting or running:
        while waiting and len(running) < processes:
            place, mutant = waiting.pop(0)
            items = reached.select(mutant)
            limit = 15.0 + 3.0 * sum(reached.seconds[item.nodeid] for item in items or session.items)
            tried = partial(_try, session, mutant, items) if items else partial(_try_from_import, session, mutant)
            running[_start(tried)] = place, time.monotonic() + limit
        for process, (place, until) in list(running.items()):
            code = _wait(process, 0.0 if time.monotonic() < until else -1.0)
            if code is not None:
                del running[process]
                yield place, _OUTCOMES.get(code, "killed")
        time.sleep(0.02)


_SURVIVED, _KILLED, _NOT_APPLIED, _TIMEOUT = 0, 1, 3, 4
_OUTCOMES = {_SURVIVED: "survived", _KILLED: "killed", _NOT_APPLIED: "not applied", _TIMEOUT: "timeout"}
"""By exit status; a process that ends otherwise has been killed by what its mutant did, or is broken itself."""


def _start(run: Callable[[], int]) -> int:
    """Fork a process of its own group that runs this, without a word, and exits with what it returns."""
    process = os.fork()
    if process:
        return process
    code = _NOT_APPLIED
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(silent, stream)
        code = run()
    finally:
        os._exit(code)


def _wait(process: int, seconds: float) -> int | None:
    """Wait so long for a process; None where it still runs. A negative time ends it, and its whole group."""
    until = time.monotonic() + seconds
    while True:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if seconds < 0:
            os.killpg(process, signal.SIGKILL)
            os.waitpid(process, 0)
            return _TIMEOUT
        if time.monotonic() >= until:
            return None
        time.sleep(0.05)


def _try(session: pytest.Session, mutant: dict[str, Any], items: Sequence[pytest.Item]) -> int:
    if not _apply(mutant):
        return _NOT_APPLIED
    _clear(_caches([mutant["module"]]))  # collecting the tests may have filled them
    try:
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return _KILLED
    except BaseException:  # noqa: BLE001 - what a mutant does to pytest itself is noticed
        return _KILLED
    return _SURVIVED


def _caches(modules: Sequence[str]) -> list[Any]:
    """Return the functions of these modules that keep what they have returned."""
    paths = {str(Path(module).resolve()) for module in modules}
    kept = [one for one in gc.get_objects() if type(one) is _CACHED and type(one.__wrapped__) is FunctionType]
    return [one for one in kept if one.__wrapped__.__code__.co_filename in paths]


_CACHED = type(lru_cache(lambda: None))


def _clear(caches: Sequence[Any]) -> None:
    for one in caches:
        one.cache_clear()


def _try_from_import(session: pytest.Session, mutant: dict[str, Any]) -> int:
    """Run every test in a new process that imports the mutant: what no test reaches may run at import alone."""
    with NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(mutant, file)
        file.flush()
        environment = {**os.environ, IMPORTED: file.name}
        code = subprocess.run([*PYTEST, "-x", *session.config.args], env=environment, check=False).returncode
        return {0: _SURVIVED, 1: _KILLED, 2: _KILLED}.get(code, _NOT_APPLIED)  # 2: a test file cannot be imported


def _import_mutant(mutant: dict[str, Any]) -> None:
    """Have the import of one module compile its mutant, whatever its file says."""
    path = str(Path(mutant["module"]).resolve())
    compiled = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        return compile(mutant["source"], path, "exec") if loader.path == path else compiled(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]


if os.environ.get(IMPORTED):
    _import_mutant(json.loads(Path(os.environ[IMPORTED]).read_text(encoding="utf-8")))


def _apply(mutant: dict[str, Any]) -> bool:
    """Give the live functions of a module the bytecode and the defaults of its mutant; False where none differs."""
    path = str(Path(mutant["module"]).resolve())
    original = compile(Path(path).read_text(encoding="utf-8"), path, "exec")
    changed = dict(_changed(original, compile(mutant["source"], path, "exec")))
    defaults = _literal_defaults(mutant["source"])
    applied = False
    for function in [one for one in gc.get_objects() if type(one) is FunctionType]:  # isinstance may run a test's code
        code = function.__code__
        if code.co_filename != path:
            continue
        place = (code.co_qualname, code.co_firstlineno)
        if place in changed:
            function.__code__ = changed[place]
            applied = True
        applied |= _set_defaults(function, defaults.get(place[1], {}))
    return applied


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[tuple[str, int], CodeType]]:
    """Give the new code of every function that is not as before, by its name and first line."""
    inside = [one for one in old.co_consts if isinstance(one, CodeType)]
    for one, other in zip(inside, [one for one in new.co_consts if isinstance(one, CodeType)], strict=False):
        if one != other:
            yield (one.co_qualname, one.co_firstlineno), other
        yield from _changed(one, other)


def _literal_defaults(source: str) -> dict[int, dict[str, Any]]:
    """Return the defaults of every function that are plain literals, by the function's first line."""
    found: dict[int, dict[str, Any]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            named = node.args.posonlyargs + node.args.args
            pairs = [*zip(named[len(named) - len(node.args.defaults) :], node.args.defaults, strict=True)]
            pairs += [(a, d) for a, d in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if d is not None]
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            found[first] = {a.arg: ast.literal_eval(d) for a, d in pairs if _is_literal(d)}
    return found


def _is_literal(node: ast.expr) -> bool:
    signed = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub)
    return isinstance(node.operand if signed else node, ast.Constant)


def _set_defaults(function: FunctionType, literals: dict[str, Any]) -> bool:
    """Set what differs; mutants of defaults are of literals only."""
    code, applied = function.__code__, False
    positional = code.co_varnames[: code.co_argcount]
    defaults = list(function.__defaults__ or ())
    for place, name in enumerate(positional[len(positional) - len(defaults) :]):
        if name in literals and _differs(literals[name], defaults[place]):
            defaults[place] = literals[name]
            applied = True
    function.__defaults__ = tuple(defaults) or None
    for name in function.__kwdefaults__ or {}:
        if name in literals and _differs(literals[name], function.__kwdefaults__[name]):
            function.__kwdefaults__[name] = literals[name]
            applied = True
    return applied


def _differs(one: Any, other: Any) -> bool:
    return type(one) is not type(other) or one != other
