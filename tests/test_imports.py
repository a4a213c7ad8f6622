"""Modules import downwards: no circle at any level, and the arithmetic of rewards needs no graph library."""

import graphlib
import json
import subprocess
import sys
from functools import cache

import grimp
import pytest

from jurygraph.cli.app import COMMANDS, command_module
from tests.graphs.scripted import evaluator_use, jury, response, task

DECIDE = """
import json, sys
sys.modules["langgraph"] = None  # an import of it fails
from jurygraph.decision.combiners import Mean
from jurygraph.decision.decide import compute_rewards
from jurygraph.schema import Plan, Trace
given = json.load(sys.stdin)
plan, traces = Plan.model_validate(given["plan"]), [Trace.model_validate(one) for one in given["traces"]]
verdicts = [verdict for trace in traces for verdict in trace.verdicts]
names = [trace.response_id for trace in traces]
rewards = compute_rewards(plan.decision, plan.survey.questions, names, verdicts, {"mean": Mean()})
print(json.dumps([reward.model_dump(mode="json") for reward in rewards]))
assert not [name for name in sys.modules if name.startswith(("langgraph.", "langchain"))]
"""


@cache
def imports() -> dict[str, set[str]]:
    """The modules that each module imports: at its head, in a function, for type checkers, or as a command by name."""
    graph = grimp.build_graph("jurygraph")
    found = {name: set(graph.find_modules_directly_imported_by(name)) for name in graph.modules}
    found["jurygraph.cli.app"] |= set(map(command_module, COMMANDS))
    return found


def test_no_module_imports_itself_through_others() -> None:
    graphlib.TopologicalSorter(imports()).prepare()


def test_the_walk_counts_imports_inside_functions_and_commands_by_name() -> None:
    found = imports()
    assert "jurygraph.runs.integrity.verification" in found["jurygraph.interchange.traces"]
    assert "jurygraph.cli.commands.score" in found["jurygraph.cli.app"]
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter(found | {"jurygraph.errors": {"jurygraph.cli.app"}}).prepare()


@pytest.mark.landing
def test_a_group_is_decided_without_the_graph_library() -> None:
    with jury(evaluator_use("tone")) as made:
        plan = made.prepare(task())
        traces = made.score(
            task(), [response("a", tone=0.5), response("b", tone="abstained")], plan=plan
        )
    given = {
        "plan": plan.model_dump(mode="json"),
        "traces": [trace.model_dump(mode="json") for trace in traces],
    }
    done = subprocess.run(
        [sys.executable, "-c", DECIDE],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [trace.reward.model_dump(mode="json") for trace in traces]


@pytest.mark.landing
def test_commands_on_stored_runs_start_without_the_graph_library() -> None:
    names = ", ".join(f"jurygraph.cli.commands.{name}" for name in ("audit", "rescore", "show"))
    code = f"import sys; sys.modules['langgraph'] = None; import {names}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
