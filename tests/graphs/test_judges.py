"""A jury of models: each answers the same questions, and a fold makes one value of their answers."""

import random
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.errors import BudgetExceeded, ConfigError
from jurygraph.schema import Question, Trace
from jurygraph.testing import ScriptedJudge

CRITERIA = {"clear": 1.0, "kind": 2.0, "rude": -1.0}
RUBRIC = {
    "criteria": [
        {"id": name, "text": f"It is {name}.", "weight": weight}
        for name, weight in CRITERIA.items()
    ]
}
TASK = jg.Task.model_validate({"id": "t", "query": "Write.", "rubric": RUBRIC})
TEXTS = [f"Text {number}." for number in range(12)]
QUALITY = {"best": 0.95, "middling": 0.8, "weak": 0.65}
"""The probability that a judge tells the truth about an item."""
UNUSABLE = "no JSON"


def scripted(name: str, quality: float, failing: float = 0.0) -> ScriptedJudge:
    """A judge that is right as often as its quality says, and sends something unusable in a share of all cases."""

    def answer_about(criterion: str) -> Any:
        def answer(text: str) -> Any:
            drawn = random.Random(f"{name} {criterion} {text}")
            truth = random.Random(f"{criterion} {text}").random() < 0.5
            if drawn.random() < failing:
                return UNUSABLE
            return truth if drawn.random() < quality else not truth

        return answer

    return ScriptedJudge(
        {f"It is {criterion}.": answer_about(criterion) for criterion in CRITERIA}, name
    )


def models() -> dict[str, Any]:
    failing = {"model": scripted("failing", 0.9, failing=0.3), "calls": {"parameters": {"seed": 1}}}
    return {
        **{name: scripted(name, quality) for name, quality in QUALITY.items()},
        "failing": failing,
    }


def score(
    fold: str | None, judges: Mapping[str, Any], texts: Sequence[str] = TEXTS, **settings: Any
) -> list[Trace]:
    use = {"use": "criteria", "judges": list(judges), "fold": fold}
    with jg.Jury(
        models=judges, evaluators=[use], rubric={"aggregation": "flat"}, **settings
    ) as jury:
        return jury.score(TASK, texts)


def folded(fold: str, scores: Sequence[float | None], weight: float) -> float:
    """The value of a criterion by hand: a judge without a score counts as the worst case."""
    worst = float(weight < 0)
    if fold == "majority":
        met = [one for one in scores if one is not None]
        return next((value for value in (0.0, 1.0) if 2 * met.count(value) > len(scores)), worst)
    filled = [worst if one is None else one for one in scores]
    return fmean(filled) if fold == "mean" else median(filled)


@pytest.mark.parametrize("fold", ["mean", "median", "majority"])
def test_a_fold_is_that_of_all_seats_and_a_failed_judge_never_votes(fold: str) -> None:
    traces = score(fold, models(), failure={"rule": "conservative", "min_coverage": 0.0})
    failed = 0
    for trace in traces:
        total = 0.0
        seats = {name: [one for one in trace.verdicts if one.subject == name] for name in CRITERIA}
        for name, weight in CRITERIA.items():
            assert [one.judge for one in seats[name]] == sorted(models())
            total += weight * folded(fold, [one.score for one in seats[name]], weight)
        missing = [one for one in trace.verdicts if one.status == "failed"]
        failed += len(missing)
        assert {one.judge for one in missing} <= {"failing"}
        assert trace.reward.range is not None
        low, high = trace.reward.range
        assert low == pytest.approx(total / 3.0)
        assert trace.reward.value == (low if trace.reward.coverage else None)
        if fold != "majority":
            weighed = sum(abs(CRITERIA[one.subject]) / 4 for one in missing)
            assert trace.reward.coverage == pytest.approx(1 - weighed / 4)
            assert (low < high) == bool(missing)
    assert failed > 5


def test_a_consensus_weighs_each_judge_by_how_it_errs_and_a_missing_vote_counts_at_its_worst() -> (
    None
):
    errs = {"careful": 0.1, "careless": 0.4}
    matrices = {name: [[1 - share, share], [share, 1 - share]] for name, share in errs.items()}
    confusions = {"classes": [0, 1], "prior": [0.7, 0.3], "annotators": matrices}
    votes = {"A": (True, False), "B": (False, True), "C": (True, UNUSABLE)}

    def judge(place: int, name: str) -> ScriptedJudge:
        return ScriptedJudge({"It is": lambda text: votes[text[0]][place]}, name)

    component = {
        "combiner": "consensus",
        "inputs": {"clear": {"verdicts_of": "criteria@clear"}},
        "params": {"confusions": confusions},
    }
    judges = {name: judge(place, name) for place, name in enumerate(errs)}
    counted = {
        "components": {"clear": component},
        "reward": {"clear": 1.0},
        "failure": {"min_coverage": 0.0},
    }
    traces = score(None, judges, list(votes), **counted)
    divided = 0.3 * 0.9 * 0.4 / (0.3 * 0.9 * 0.4 + 0.7 * 0.1 * 0.6)  # careful says yes, careless no
    other = 0.3 * 0.1 * 0.6 / (0.3 * 0.1 * 0.6 + 0.7 * 0.9 * 0.4)
    assert [trace.reward.value for trace in traces] == [
        pytest.approx(one) for one in (divided, other, divided)
    ]
    assert traces[0].reward.parts["clear"] == {"careful": 1.0, "careless": 0.0}
    assert "careful 1, careless 0" in str(traces[0].explain())


def test_judges_that_disagree_give_no_credit_and_lack_nothing() -> None:
    judges = {
        name: ScriptedJudge({"It is": met}, name) for name, met in (("yes", 0.9), ("no", 0.2))
    }
    (trace,) = score("majority", judges, ["A text."])
    assert trace.reward.coverage == 1.0
    assert trace.reward.value == -1 / 3  # clear and kind count 0, rude in full
    agreeing = {
        name: ScriptedJudge({"It is rude.": 0.1, "It is": met}, name)
        for name, met in (("a", 0.9), ("b", 0.7))
    }
    (trace,) = score("majority", agreeing, ["A text."])
    assert trace.reward.value == 1.0  # they vote on `met`, whatever their probabilities


@pytest.mark.parametrize(
    ("scale", "met_from", "answers", "opens"),
    [
        (None, 0.5, (0.68, 0.66, 0.06), True),  # a mean of 0.47, and two of three votes
        (None, 0.5, (0.95, 0.45, 0.45), False),  # a mean of 0.62, and one vote
        ((1, 5), 0.5, (3, 3, 1), True),
        ((1, 5), 0.8, (4, 4, 1), False),  # 4 of 1 to 5 is 0.75
    ],
)
def test_under_a_hard_rule_most_judges_decide_what_opens_and_not_their_mean(
    scale: tuple[int, int] | None, met_from: float, answers: Sequence[float], opens: bool
) -> None:
    gate = {"id": "gate", "text": "It opens.", "weight": 1.0, "scale": scale}
    gated = {"id": "gated", "text": "It is kind.", "weight": 1.0}
    edge = {"parent": "gate", "child": "gated", "kind": "strong", "reason": "It opens."}
    rubric = {"criteria": [gate, gated], "edges": [edge]}
    task = jg.Task.model_validate({"id": "t", "query": "Write.", "rubric": rubric})
    judges: Mapping[str, Any] = {
        name: ScriptedJudge({"It opens.": answer, "It is kind.": 1.0}, name)
        for name, answer in zip("abc", answers, strict=True)
    }
    use = {"use": "criteria", "judges": list(judges)}
    hard = {"aggregation": "hard-local", "met_from": met_from}
    with jg.Jury(models=judges, evaluators=[use], rubric=hard) as jury:
        (trace,) = jury.score(task, ["A text."])
    low, high = scale or (0, 1)
    mean = (fmean(answers) - low) / (high - low)
    assert trace.reward.value == pytest.approx((mean + opens) / 2.0)


def test_a_question_that_all_judges_fail_follows_the_failure_rule() -> None:
    judges = {name: ScriptedJudge({"It is": UNUSABLE}, name) for name in ("a", "b")}
    for fold in ("mean", "median", "majority"):
        (trace,) = score(fold, judges, ["A text."])
        assert (trace.reward.status, trace.reward.coverage) == ("failed", 0.0)


def test_one_judge_alone_counts_as_the_model_does() -> None:
    alone = score(None, {"best": scripted("best", 0.9)})
    use = {"use": "criteria"}
    with jg.Jury(
        model=scripted("best", 0.9), evaluators=[use], rubric={"aggregation": "flat"}
    ) as jury:
        plain = jury.score(TASK, TEXTS)
    assert [trace.reward for trace in alone] == [trace.reward for trace in plain]
    assert {one.judge for trace in plain for one in trace.verdicts} == {None}


def test_judges_and_model_share_one_budget_and_batches_ask_one_model() -> None:
    judges = models()
    with jg.Jury(models=judges, evaluators=[{"use": "criteria", "judges": list(judges)}]) as jury:
        jury.score(TASK, TEXTS[:2])
        assert {
            name: len(jury.gateways[name].backend.requests) for name in QUALITY
        } == dict.fromkeys(QUALITY, 2)
        calls = sum(len(gateway.backend.requests) for gateway in jury.gateways.values())
        assert jury.gateways.budget.calls == calls
    with pytest.raises(BudgetExceeded, match="limit of 5 calls"):
        score("mean", models(), max_calls=5)


def test_the_order_of_judges_in_the_config_changes_nothing() -> None:
    digests = {
        tuple(trace.digest for trace in score("mean", dict(order)))
        for order in (models().items(), reversed(models().items()))
    }
    assert len(digests) == 1


def test_each_judge_answers_each_sample() -> None:
    question = Question(id="q", evaluator="e", version="1", subject="s", view="v")
    assert (
        question.seats,
        question.model_copy(update={"judges": ("a", "b"), "samples": 3}).seats,
    ) == (1, 6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"judges": ["beest"]},
            r"evaluators\[0\].judges: there is no model 'beest'; did you mean best\?",
        ),
        ({"judges": ["best", "best"]}, "names 'best' twice"),
        (
            {"use": "maths.length", "judges": ["best"]},
            "'maths.length' asks no model, so leave them out",
        ),
    ],
)
def test_judges_that_cannot_judge_are_refused(settings: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        jg.Jury(
            models={"best": scripted("best", 1.0)}, evaluators=[{"use": "criteria", **settings}]
        )


def test_two_judges_whose_requests_could_not_be_told_apart_are_refused() -> None:
    same = {name: ScriptedJudge({"It is": True}) for name in ("a", "b")}
    with pytest.raises(
        ConfigError, match=r"models.b: is the same model as models.a, with the same parameters"
    ):
        score("mean", same)
    hot = {"model": same["b"], "calls": {"parameters": {"temperature": 1.0}}}
    assert len(score("mean", {"a": same["a"], "b": hot}, TEXTS[:1])[0].calls) == 2


class TestEscalation:
    """A dearer judge is asked where the first ones are not enough, and its answers count there."""

    def score(
        self, first: Mapping[str, Any], then: Any, when: str, **settings: Any
    ) -> tuple[Trace, ScriptedJudge]:
        judges = {name: ScriptedJudge(answers, name) for name, answers in first.items()}
        last = ScriptedJudge(then, "last")
        use = {
            "use": "criteria",
            "escalate": {"first": list(judges), "then": "last", "when": when, **settings},
        }
        models: Mapping[str, Any] = {**judges, "last": last}
        with jg.Jury(models=models, evaluators=[use], rubric={"aggregation": "flat"}) as jury:
            (trace,) = jury.score(TASK, ["A text."])
        return trace, last

    def test_an_unsure_judge_is_followed_by_another_on_that_question_alone(self) -> None:
        first = {"tiny": {"It is clear.": 0.65, "It is kind.": 0.75, "It is rude.": 0.0}}
        trace, last = self.score(first, {"It is": 1.0}, "unsure")
        found = {(one.subject, one.judge): (one.score, one.superseded) for one in trace.verdicts}
        assert found == {
            ("clear", "last"): (1.0, False),
            ("clear", "tiny"): (0.65, True),
            ("kind", "tiny"): (0.75, False),
            ("rude", "tiny"): (0.0, False),
        }
        assert len(last.requests) == 1
        assert "It is kind." not in last.requests[0].messages[-1].content
        assert trace.reward.value == (1.0 + 2 * 0.75) / 3
        assert (trace.reward.coverage, trace.reward.counts.judged) == (1.0, 3)
        narrow, unasked = self.score(first, {"It is": 1.0}, "unsure", band=0.1)
        assert (len(narrow.verdicts), unasked.requests) == (3, [])

    @pytest.mark.parametrize(
        ("answer", "status"),
        [(UNUSABLE, "failed"), ({"met": None, "probability": None}, "abstained")],
    )
    def test_a_judge_without_an_answer_is_followed_and_costs_no_coverage(
        self, answer: Any, status: str
    ) -> None:
        trace, last = self.score({"tiny": {"It is": answer}}, {"It is": 0.75}, "unsure")
        assert [one.status for one in trace.verdicts if one.superseded] == [status] * 3
        assert (trace.reward.coverage, trace.reward.status, len(last.requests)) == (1.0, "ok", 1)

    def test_only_judges_that_disagree_are_followed_by_another(self) -> None:
        first = {
            "a": {"It is clear.": 0.9, "It is kind.": 0.6, "It is rude.": 0.4},
            "b": {"It is clear.": 0.7, "It is kind.": 0.3, "It is rude.": 0.1},
        }
        trace, last = self.score(first, {"It is": 1.0}, "disagree")
        assert {one.subject for one in trace.verdicts if one.superseded} == {"kind"}
        assert trace.reward.value == pytest.approx((0.8 + 2 * 1.0 - 0.25) / 3)
        assert len(last.requests) == 1

    def test_one_judge_that_cannot_disagree_and_judges_named_twice_are_refused(self) -> None:
        with pytest.raises(
            ConfigError, match=r"evaluators\[0\].escalate: one judge cannot disagree"
        ):
            self.score({"a": {"It is": 1.0}}, {"It is": 1.0}, "disagree")
        with pytest.raises(ConfigError, match="names a judge twice"):
            self.score({"last": {"It is": 1.0}}, {"It is": 1.0}, "unsure")

    def test_a_wave_that_depends_on_a_question_waits_for_its_last_judge(self) -> None:
        tiny = ScriptedJudge({"It is": 0.6, "": {"met": True, "probability": 0.6}}, "tiny")
        last = ScriptedJudge({"It is": 0.9}, "last")
        escalate = {"first": "tiny", "then": "last", "when": "unsure"}
        own = {"criteria": {"gate": "It is clear."}}
        late = {"criteria": {"late": "It is kind."}}
        uses = [
            {"use": "criteria", "name": "gate", "params": own, "escalate": escalate},
            {
                "use": "criteria",
                "name": "late",
                "params": late,
                "judges": ["tiny"],
                "when": {"question": "gate/gate", "op": ">=", "threshold": 0.8},
            },
        ]
        reward = {"gate": 1.0, "late": 1.0}
        components = {
            name: {"inputs": {name: {"verdicts_of": name, "if_skipped": "left-out"}}}
            for name in ("gate", "late")
        }
        with jg.Jury(
            models={"tiny": tiny, "last": last},
            evaluators=uses,
            reward=reward,
            components=components,
        ) as jury:
            (trace,) = jury.score(jg.Task(id="t", query="Write."), ["A text."])
        asked = {(one.subject, one.judge): one.status for one in trace.verdicts}
        assert asked == {("gate", "tiny"): "ok", ("gate", "last"): "ok", ("late", "tiny"): "ok"}
