"""The published verdicts of PandaLM's two judges, as evaluators of pairs."""

import jurygraph as jg


@jg.evaluator(scope="pair", pairs="unordered")
def gpt35(task: jg.TaskView, first: jg.Response, second: jg.Response) -> jg.Verdict:
    return published(task, "gpt35", first)


@jg.evaluator(scope="pair", pairs="unordered")
def pandalm7b(task: jg.TaskView, first: jg.Response, second: jg.Response) -> jg.Verdict:
    return published(task, "pandalm7b", first)


def published(task: jg.TaskView, judge: str, first: jg.Response) -> jg.Verdict:
    """What a judge said of a pair, from the side of the response that is first here."""
    preference = task.metadata[judge]
    if not isinstance(preference, float):
        return jg.Verdict.fail(
            "no-code", "the reply has no code that could be read", cause="response"
        )
    return jg.Verdict(score=preference if first.id.endswith("-1") else 1.0 - preference)
