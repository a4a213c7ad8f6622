"""A judge with a short prompt, for small models: a grade from A to E, weighed by how likely each letter was.

The grade is the mean of the letters by their probabilities, from 0 (E) to 1 (A), as in G-Eval: a model that always
writes the same letter still shows how sure it is of it.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import jurygraph as jg
from jurygraph.agents.roles import ask_model, failed_verdict
from jurygraph.models.request import Token
from jurygraph.schema import FrozenModel

LETTERS = "ABCDE"


class GradeReply(FrozenModel):
    grade: Literal["A", "B", "C", "D", "E"]


class Grade(jg.Evaluator):
    """Ask a model for the grade of a response, in one short request."""

    class Params(jg.ParamsModel):
        rotate: bool = False
        """There is nothing to rotate: samples repeat the identical input."""

    name = "grade"
    version = "1"
    layer = "model"
    uses_model = True
    bounds_its_time = True
    prompt = jg.read_prompt(Path(__file__).with_name("grade.md"))

    async def answer(self, inputs: jg.EvaluatorInput) -> jg.Verdict:
        client = inputs.client
        assert client is not None, "a model is required"
        variables = {"response": inputs.response.text}
        request = client.request(
            self.prompt, GradeReply, variables, sample=inputs.sample, logprobs=True
        )
        return await ask_model(
            client,
            request,
            GradeReply,
            read=lambda reply: jg.Verdict(
                score=mean_grade(reply.value.grade, reply.reply.tokens),
                reason=reply.value.grade,
                call=reply.call.id,
            ),
            fail=failed_verdict,
        )


def mean_grade(letter: str, tokens: Sequence[Token]) -> float:
    """Return the mean grade in [0, 1] by the probabilities of the letters; that of the letter alone without any."""
    for token in tokens:
        if token.text == letter:
            likely = {
                text: math.exp(logprob)
                for text, logprob in ((token.text, token.logprob), *token.others)
            }
            shares = [likely.get(other, 0.0) for other in LETTERS]
            points = math.fsum(share * (4 - place) for place, share in enumerate(shares))
            return points / 4.0 / math.fsum(shares)
    return (4 - LETTERS.index(letter)) / 4.0
