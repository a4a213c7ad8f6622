"""What a test of the gate may not do: wait in real time, start a process, or import an engine.

`make test` and `.ci/run` decide whether a change lands, on machines that are slow, busy or both. So a test of theirs
depends on no clock and on no scheduler, and costs little. Tests that must do more carry a mark:

- `landing`: runs in `.ci/run`; it may start processes and wait for them, never for a time, or is dear;
- `exhaustive`: runs in `make test-exhaustive` alone;
- `heavy`: exhaustive, too, and needs the extra `heavy` (torch, sentence-transformers, xllamacpp) or litellm.

The seconds of CPU of each test that takes more than one are listed at the end of a run. With `--cpu-limit N`, one
that takes more than N fails.
"""

import asyncio
import gc
import resource
import sys
import time
from collections.abc import Generator
from typing import Any

import pytest

ENGINES = ("litellm", "torch", "xllamacpp", "sentence_transformers", "transformers")
FREE_MARKS = ("landing", "exhaustive", "heavy")
LISTED_ABOVE = 1.0  # seconds of CPU

_PROCESS_EVENTS = (
    "subprocess.Popen",
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.system",
    "_posixsubprocess",
)
_broken_rules: list[str] = []


def _lists_fonts() -> bool:
    """Return whether matplotlib is being imported: in an empty home it starts `fc-list` to build its list of fonts."""
    module = sys.modules.get("matplotlib.font_manager")
    return module is not None and not hasattr(module, "fontManager")  # the last thing that it makes


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Note what the interpreter is about to do; it is an audit hook, and sees every thread."""
    if event in _PROCESS_EVENTS and not _lists_fonts():
        _broken_rules.append(f"it started a process ({event})")
    elif event == "import" and arguments[0] in ENGINES and arguments[0] not in sys.modules:
        _broken_rules.append(f"it imported {arguments[0]}")


_real_sleep = time.sleep
_real_coroutine_sleep = asyncio.sleep


def _watched_sleep(seconds: float) -> None:
    if seconds > 0:
        _broken_rules.append(f"it slept for {seconds:g} s: wait for an event, or inject the clock")
    _real_sleep(seconds)


async def _watched_coroutine_sleep(delay: float, result: Any = None) -> Any:
    """Sleep as asyncio does; a loop that skips its waiting says so by `skips_time`."""
    if delay > 0 and not getattr(asyncio.get_running_loop(), "skips_time", False):
        _broken_rules.append(
            f"a coroutine slept for {delay:g} s: wait for an event, or use a loop that skips time"
        )
    return await _real_coroutine_sleep(delay, result)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cpu-limit", type=float, default=0.0, help="fail a test that takes more seconds of CPU"
    )


def pytest_configure(config: pytest.Config) -> None:
    if time.sleep is _watched_sleep:
        return  # the tests of this plug-in run pytest within pytest
    gc.disable()  # while tests are collected, the heap only grows
    time.sleep = _watched_sleep
    asyncio.sleep = _watched_coroutine_sleep
    asyncio.tasks.sleep = _watched_coroutine_sleep
    sys.addaudithook(_watch)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.enable()
    gc.freeze()  # thousands of collected tests are not searched again and again
    gc.set_threshold(100_000, 50, 100)


def _is_free(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(mark) for mark in FREE_MARKS)


def _refuse(item: pytest.Item) -> None:
    found = list(dict.fromkeys(_broken_rules))
    _broken_rules.clear()
    if found and not _is_free(item):
        pytest.fail(
            f"this test belongs to no gate (see tests/gate.py): {'; '.join(found)}", pytrace=False
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _broken_rules.clear()
    item.stash[_STARTED] = _cpu_seconds()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    yield
    _refuse(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    yield
    _refuse(item)
    seconds = _cpu_seconds() - item.stash[_STARTED]
    item.user_properties.append(("cpu", seconds))
    limit = item.config.getoption("--cpu-limit")
    if limit and seconds > limit and not _is_free(item):
        pytest.fail(f"it took {seconds:.1f} s of CPU; {limit:g} s are allowed", pytrace=False)


_STARTED = pytest.StashKey[float]()


def _cpu_seconds() -> float:
    """Return what this process and its ended children have used."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    dear: dict[str, float] = {}
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        seconds = dict(getattr(report, "user_properties", ())).get("cpu", 0.0)
        if seconds > LISTED_ABOVE:
            dear[report.nodeid] = seconds
    if dear:
        terminalreporter.section(f"tests above {LISTED_ABOVE:g} s of CPU")
        for name, seconds in sorted(dear.items(), key=lambda pair: -pair[1]):
            terminalreporter.line(f"{seconds:6.1f} s  {name}")
