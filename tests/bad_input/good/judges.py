"""Evaluators for every audience that a reward may count; none asks a model."""

import jurygraph as jg


def polite(task, response):
    return "please" in response.text


def brief(task, response):
    return len(response.text) < 100


@jg.evaluator(audience="criterion")
def met(task, response):
    return task.about.id in response.text


@jg.evaluator(audience="stakeholder")
def content(task, response):
    return task.about.id in response.text
