"""Tasks that lack what evaluators need of them, as their plans show before anything is judged."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from jurygraph.jury import Jury
from jurygraph.schema import ComponentSpec, Decision, Plan


class LackingTasks:
    """The tasks of the plans so far that lack what an evaluator needs, and those whose rewards will fail for it."""

    def __init__(self, jury: Jury) -> None:
        self._evaluators = jury.evaluators
        self._tasks = 0
        self._lacking_task_counts: Counter[tuple[str, str]] = Counter()
        self._failing_tasks = 0

    def add(self, plan: Plan) -> None:
        self._tasks += 1
        questions = plan.survey.questions
        left_out = {question.id for question in questions if question.missing is not None}
        self._failing_tasks += _will_fail(plan.decision, left_out)
        missing_fields: set[tuple[str, str]] = set()
        for question in questions:
            if question.id in left_out:
                continue
            evaluator = self._evaluators[question.evaluator]
            view = plan.survey.views[question.view]
            missing = evaluator.describe_missing_fields(view, question.subject)
            if missing is not None:
                missing_fields.add((question.evaluator, missing))
        self._lacking_task_counts.update(sorted(missing_fields))

    def describe(self) -> Iterator[str]:
        """Yield a sentence on each evaluator that lacks something, and one on the rewards that will fail."""
        for (name, needs), number in self._lacking_task_counts.items():
            yield (
                f"{name}: {number} of {self._tasks} tasks lack what it needs ({needs}); give it to them, or take "
                f"{name} out; or leave them out: `if_missing: not_applicable`; else their rewards may fail"
            )
        if self._failing_tasks:
            yield (
                f"rewards of {self._failing_tasks} of {self._tasks} tasks will fail: they lack what each question "
                "that counts needs (`if_missing: not_applicable`)"
            )


def _will_fail(decision: Decision, left_out: Collection[str]) -> bool:
    """Return whether no component with a weight applies, or one that a gate reads does not, without these questions."""
    gates = {gate.component for gate in decision.gates}
    weighted = [spec for spec in decision.specs if spec.weight]
    needed = [weighted, *([spec] for spec in decision.specs if spec.name in gates)]
    return any(_lack_questions(specs, left_out) for specs in needed)


def _lack_questions(specs: Sequence[ComponentSpec], left_out: Collection[str]) -> bool:
    uses = [use for spec in specs for use in spec.inputs.values()]
    questions = {name for use in uses for name in use.questions}
    counts_as_zero = any(use.if_skipped == "zero" for use in uses)
    return bool(questions) and not counts_as_zero and questions <= set(left_out)
