"""The plug-in that keeps the gate free of clocks, processes and engines, and the choice of what `make check` runs."""

from pathlib import Path

import pytest

from tests.changed import CONTRACTS, TESTS, mirrored_tests

pytest_plugins = ["pytester"]

BREAKS = {
    "slept for 0.001 s": "import time\n\ndef test(): time.sleep(0.001)",
    "a coroutine slept for 0.001 s": "import asyncio\n\ndef test(): asyncio.run(asyncio.sleep(0.001))",
    "it started a process": "import subprocess\n\ndef test(): subprocess.run(['true'], check=True)",
    "it imported xllamacpp": (
        "from contextlib import suppress\n\ndef test():\n    with suppress(ImportError): import xllamacpp"
    ),
}
"""A test that breaks each rule, by what is said of it."""
MARKS = "[pytest]\nmarkers =\n    landing: x\n    exhaustive: x\n    heavy: x\n"


@pytest.mark.parametrize("said", BREAKS)
def test_a_test_that_waits_forks_or_loads_an_engine_fails(
    pytester: pytest.Pytester, said: str
) -> None:
    pytester.makepyfile(BREAKS[said])
    ended = pytester.runpytest_inprocess("-p", "tests.gate", "-p", "no:cacheprovider")
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines([f"*belongs to no gate*{said}*"])


@pytest.mark.parametrize("mark", ["landing", "exhaustive", "heavy"])
def test_a_marked_test_may(pytester: pytest.Pytester, mark: str) -> None:
    pytester.makeini(MARKS)
    source = BREAKS["slept for 0.001 s"].replace(
        "def test", f"import pytest\n\n@pytest.mark.{mark}\ndef test"
    )
    pytester.makepyfile(source)
    pytester.runpytest_inprocess("-p", "tests.gate").assert_outcomes(passed=1)


def test_a_fixture_is_held_to_the_rules_of_its_test(pytester: pytest.Pytester) -> None:
    late = (
        "import time, pytest\n\n@pytest.fixture\ndef late():\n    yield\n    time.sleep(0.001)\n\n"
    )
    pytester.makepyfile(f"{late}def test(late): pass")
    pytester.runpytest_inprocess("-p", "tests.gate").assert_outcomes(passed=1, errors=1)


def test_more_cpu_than_allowed_fails_where_a_limit_is_given(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test(): sum(range(300_000))")
    pytester.runpytest_inprocess("-p", "tests.gate").assert_outcomes(passed=1)
    ended = pytester.runpytest_inprocess("-p", "tests.gate", "--cpu-limit", "0.000001")
    ended.assert_outcomes(passed=1, errors=1)
    ended.stdout.fnmatch_lines(["*s of CPU; 1e-06 s are allowed*"])


def test_changed_files_name_the_tests_that_mirror_them() -> None:
    changed = {
        "jurygraph/decision/decide.py": "decision/test_decide.py",
        "jurygraph/models/backends/gguf.py": "models/test_gguf.py",  # its folder has no tests of its own
        "jurygraph/agents/registry.toml": "agents/test_registry.py",
        "jurygraph/jury.py": "test_jury.py",
        "jurygraph/cli/commands/study.py": "cli/commands/test_study.py",
        "jurygraph/agents/maths/evaluators/jury.py": "agents/maths",  # no test_jury.py of that folder
        "tests/schema/test_trace.py": "schema/test_trace.py",
        "tests/bad_input/built.py": "bad_input",
        "tests/gate.py": "test_gate.py",
    }
    for path, expected in changed.items():
        assert mirrored_tests([Path(path)]) == {TESTS / expected}, path
    assert mirrored_tests(map(Path, ["README.md", "tests/conftest.py", "docs/models.md"])) == set()


def test_at_most_twelve_contracts_are_tested_always() -> None:
    assert len(CONTRACTS) <= 12
    assert [name for name in CONTRACTS if not (TESTS / name).exists()] == []
