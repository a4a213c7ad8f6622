"""jurygraph: rewards from LLM judges, programmatic checks and people that can be trusted, explained and defended.

Public names load when they are first used, so that `import jurygraph` is quick and `jurygraph.aggregation` needs NumPy
alone.
"""

# ruff: noqa: F403, F405 - type checkers know which names `errors` and `schema` export

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jurygraph import testing
    from jurygraph.agents.functions import criteria, evaluator
    from jurygraph.agents.roles import Deriver, DeriverInput, Evaluator, EvaluatorInput
    from jurygraph.decision.combiners import Combiner, Component, ScoreMatrix
    from jurygraph.errors import *
    from jurygraph.explanation import Explanation, explain
    from jurygraph.graphs.events import JuryEvent, QuestionSent, RewardGiven, VerdictGiven
    from jurygraph.graphs.groups import Group
    from jurygraph.judges.criteria import Binary, Item, JudgeEvaluator, PartialCredit, Scale
    from jurygraph.jury import Jury
    from jurygraph.planner import Planner
    from jurygraph.prompts import Prompt, read_prompt
    from jurygraph.runs.reports.estimate import estimate_costs
    from jurygraph.runs.run import Run
    from jurygraph.schema import *
    from jurygraph.tools.tool import Tool, ToolArguments, ToolInput

__version__ = "0.1.0"

__all__ = [
    "Binary",
    "BudgetExceeded",
    "Combiner",
    "Component",
    "Condition",
    "Config",
    "ConfigError",
    "Constraint",
    "Criterion",
    "Decision",
    "Deriver",
    "DeriverInput",
    "Edge",
    "Evaluator",
    "EvaluatorError",
    "EvaluatorInput",
    "Evidence",
    "Explanation",
    "Failure",
    "GraphCycleError",
    "GraphError",
    "Group",
    "InputError",
    "Item",
    "JudgeEvaluator",
    "Jury",
    "JuryEvent",
    "JurygraphError",
    "Material",
    "Message",
    "ModelAccessError",
    "ModelError",
    "ModelOutageError",
    "NoRewardError",
    "ParamsModel",
    "PartialCredit",
    "Plan",
    "PlanError",
    "Planner",
    "Prompt",
    "Question",
    "QuestionSent",
    "RecordedVerdict",
    "Response",
    "Reviewer",
    "Reward",
    "RewardGiven",
    "Rubric",
    "Run",
    "Scale",
    "ScoreMatrix",
    "Stakeholder",
    "Survey",
    "Task",
    "TaskView",
    "Tension",
    "TimeLimitExceeded",
    "Tool",
    "ToolArguments",
    "ToolError",
    "ToolInput",
    "Trace",
    "TraceMismatch",
    "UnusableRepliesError",
    "Variant",
    "Verdict",
    "VerdictGiven",
    "criteria",
    "estimate_costs",
    "evaluator",
    "explain",
    "read_prompt",
    "testing",
]


_EXPORTING_MODULES = (
    "errors schema decision.combiners agents.roles agents.functions prompts runs.run explanation judges.criteria "
    "graphs.events jury planner runs.reports.estimate tools.tool"
)
"""Where public names live, the quickest to load first; each needs those before it anyway."""


def __getattr__(name: str) -> Any:
    if name == "testing":  # a module, loaded where it is used
        return import_module("jurygraph.testing")
    if name in __all__:
        for module_name in _EXPORTING_MODULES.split():
            module = import_module(f"{__name__}.{module_name}")
            if hasattr(module, name):
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
