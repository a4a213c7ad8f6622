"""Long sentences, as a class: a deriver finds the sentences once, for every evaluator that needs them."""

import re

import jurygraph as jg


class Sentences(jg.Deriver):
    """The sentences of a response, as material `sentences`: a list of texts."""

    gives = "sentences"

    def derive(self, inputs: jg.DeriverInput) -> jg.Material:
        return jg.Material(name="sentences", data=re.findall(r"[^\s.!?][^.!?]*[.!?]*", inputs.response.text))


class Short(jg.Evaluator):
    """The share of the sentences that have at most `most` words."""

    needs = ("sentences",)

    def __init__(self, most: int = 20) -> None:
        if most < 1:
            raise jg.ConfigError(f"most is 1 or more, not {most}")
        self.most = most

    def answer(self, inputs: jg.EvaluatorInput) -> jg.Verdict:
        sentences = inputs.material[0]["sentences"].data
        assert isinstance(sentences, list)
        if not sentences:
            return jg.Verdict(score=0.0, reason="there is no sentence in it")
        long = [str(one) for one in sentences if len(str(one).split()) > self.most]
        return jg.Verdict(
            score=1.0 - len(long) / len(sentences),
            reason=f"{len(long)} of {len(sentences)} sentences have more than {self.most} words",
            evidence=tuple(jg.Evidence(quote=one) for one in long),
        )
