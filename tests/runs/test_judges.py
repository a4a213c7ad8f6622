"""Runs of several judges: resumed, branched, replayed, verified, decided again, compared and billed."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.cli.render.trace import format_trace_lines
from jurygraph.errors import InputError
from jurygraph.interchange.votes import export_votes
from jurygraph.runs.integrity.deep_verification import verify_deep
from jurygraph.runs.run import Run
from jurygraph.runs.store.packing import compare_judges_by_question
from jurygraph.runs.table_reader import TableOptions, open_export_table
from jurygraph.runs.workflows.erasure import erase
from jurygraph.runs.workflows.rescoring import learn_confusion_matrices, rescore
from jurygraph.runs.writable_run import CallStore
from jurygraph.sources import read_tasks
from jurygraph.sources.config import apply_settings
from jurygraph.sources.ratings import read_votes
from jurygraph.studies.compared_responses import iter_compared_responses
from jurygraph.studies.comparison import compare
from jurygraph.testing import ScriptedJudge
from jurygraph.viewer.index import RunIndex
from jurygraph.viewer.table import column_sql_expression
from jurygraph.views.rewards import ResponseSelection, build_reward_table
from jurygraph.views.trace import build_trace_view
from tests.runs.sample_runs import scored_session, traces_of, verify_run, write_tasks

WEIGHTS = {"clear": 2.0, "rude": -1.0}
CRITERIA = [
    {"id": name, "text": f"It is {name}.", "weight": weight} for name, weight in WEIGHTS.items()
]
ANSWERS: Mapping[str, Mapping[str, Any]] = {
    "kind": {"It is clear.": 0.9, "It is rude.": 0.2},
    "mild": {"It is clear.": 0.6, "It is rude.": 0.4},
    "strict": {"It is clear.": 0.1, "It is rude.": 0.9},
}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    texts = ["One text of some length.", "Another text, which is longer."]
    content = [
        {
            "id": f"t{number}",
            "query": f"Write about {number}.",
            "rubric": {"criteria": CRITERIA},
            "responses": [
                {"id": f"t{number}/{place}", "text": text} for place, text in enumerate(texts)
            ],
        }
        for number in range(3)
    ]
    return write_tasks(tmp_path, content)


class Clients(dict[str, ScriptedJudge]):
    """The judges of a config, to count what each was asked."""

    def __init__(self, **changed: Mapping[str, Any]) -> None:
        super().__init__(
            {name: ScriptedJudge(answers, name) for name, answers in (ANSWERS | changed).items()}
        )

    def config(self, fold: str = "mean", **calls: Any) -> dict[str, Any]:
        models = {name: {"model": judge, "calls": calls} for name, judge in self.items()}
        use = {"use": "criteria", "judges": list(self), "fold": fold}
        return {"models": models, "evaluators": [use], "rubric": {"aggregation": "flat"}}

    @property
    def asked(self) -> dict[str, int]:
        return {name: len(judge.requests) for name, judge in self.items()}


def score(folder: Path, tasks: Path, config: Mapping[str, Any], **settings: Any) -> Any:
    with scored_session(folder, tasks, config, **settings) as scored:
        return scored.summary


def test_each_judge_has_its_own_bill_and_record_and_the_run_is_verified(
    tmp_path: Path, tasks: Path
) -> None:
    clients = Clients()
    summary = score(tmp_path / "run", tasks, clients.config(record=str(tmp_path / "calls.jsonl")))
    assert clients.asked == {"kind": 6, "mild": 6, "strict": 6}
    assert {
        name: bill.costs_by_source["sent"].number for name, bill in summary.bill.models.items()
    } == clients.asked
    assert summary.bill.costs_by_source["sent"].number == 18
    verify_run(tmp_path / "run")
    with Run.open(tmp_path / "run") as run:
        deep = verify_deep(run, lambda count: None)
        assert run.judges == ("kind", "mild", "strict")
        assert sorted(run.header.models) == sorted(ANSWERS)
    assert (deep.recomputed, deep.needing_model) == (36, 0)
    replayed = {name: f"replay:{tmp_path / 'calls.jsonl'}#scripted#{name}" for name in ANSWERS}
    again = score(tmp_path / "again", tasks, clients.config() | {"models": replayed})
    assert [one.reward for one in traces_of(tmp_path / "again")] == [
        one.reward for one in traces_of(tmp_path / "run")
    ]
    assert again.bill.models["mild"].costs_by_source["replayed"].number == 6


def test_a_text_is_erased_from_the_recording_of_each_judge(tmp_path: Path, tasks: Path) -> None:
    config = Clients().config()
    files = [tmp_path / f"{name}.jsonl" for name in ANSWERS]
    for model, file in zip(config["models"].values(), files, strict=True):
        model["calls"] = {"record": str(file)}
    score(tmp_path / "run", tasks, config)
    erased = erase(tmp_path / "run", "response", "t0/1", "asked for")
    assert (erased.calls, erased.unreached) == (9, []), "each of three tasks has this text"
    for file in files:
        assert len(file.read_text().splitlines()) == 3
        assert "Another text, which is longer." not in file.read_text()


def test_after_a_kill_between_two_judges_nothing_recorded_is_asked_again(
    tmp_path: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Clients()
    score(tmp_path / "whole", tasks, whole.config())

    kept: list[str] = []
    are_kept = asyncio.Event()
    store = CallStore.store

    async def store_and_count(sink: CallStore, request: Any, answered: Any) -> None:
        await store(sink, request, answered)
        kept.append(answered.call.model)
        if len(kept) == 12:  # all of the two other judges
            are_kept.set()

    class Killed(ScriptedJudge):
        async def complete(self, request: Any, timeout: float) -> Any:
            await are_kept.wait()
            raise KeyboardInterrupt

    monkeypatch.setattr(CallStore, "store", store_and_count)
    first = Clients()
    first["strict"] = Killed(ANSWERS["strict"], "strict")
    with pytest.raises((KeyboardInterrupt, asyncio.CancelledError)):
        score(tmp_path / "run", tasks, first.config())
    assert Counter(kept) == {"kind": 6, "mild": 6}
    second = Clients()
    score(tmp_path / "run", tasks, second.config())
    assert second.asked == {"kind": 0, "mild": 0, "strict": 6}
    for one, uninterrupted in zip(
        traces_of(tmp_path / "run"), traces_of(tmp_path / "whole"), strict=True
    ):
        assert (one.reward, one.verdicts) == (uninterrupted.reward, uninterrupted.verdicts)


def test_a_branch_asks_a_new_judge_alone_and_another_model_is_refused(
    tmp_path: Path, tasks: Path
) -> None:
    two = Clients()
    two.pop("strict")
    score(tmp_path / "two", tasks, two.config())
    three = Clients()
    score(tmp_path / "three", tasks, three.config(), branch=tmp_path / "two")
    assert three.asked == {"kind": 0, "mild": 0, "strict": 6}
    assert [one.reward for one in traces_of(tmp_path / "three")] == _rewards_of_three(
        tmp_path, tasks
    )
    other = Clients()
    other["kind"] = ScriptedJudge(ANSWERS["kind"], "kinder")
    with pytest.raises(
        InputError, match=r"config models.kind.model is \"kind\" in the run and \"kinder\" here"
    ):
        score(tmp_path / "three", tasks, other.config())


def _rewards_of_three(tmp_path: Path, tasks: Path) -> list[Any]:
    score(tmp_path / "plain", tasks, Clients().config())
    return [one.reward for one in traces_of(tmp_path / "plain")]


def test_rescoring_may_change_the_fold_and_asks_nobody(tmp_path: Path, tasks: Path) -> None:
    clients = Clients()
    score(tmp_path / "run", tasks, clients.config())
    expected = {"mean": (1.6 / 3 * 2 - 0.5) / 2, "median": (1.2 - 0.4) / 2, "majority": 1.0}
    with closing(Run.open(tmp_path / "run")) as run:
        for fold, value in expected.items():
            rescore(
                run,
                tmp_path / fold,
                apply_settings(run.config, [f"evaluators.0.fold={fold}"]),
                lambda count: None,
            )
            assert [one.reward.value for one in traces_of(tmp_path / fold)] == [
                pytest.approx(value)
            ] * 6
            verify_run(tmp_path / fold)
        with pytest.raises(InputError, match=r"evaluators\[0\].samples changes the questions"):
            rescore(
                run,
                tmp_path / "x",
                apply_settings(run.config, ["evaluators.0.samples=2"]),
                lambda count: None,
            )


@pytest.mark.parametrize("fold", ["mean", "median", "majority"])
def test_columns_of_questions_have_what_the_reward_counts(
    fold: str, tmp_path: Path, tasks: Path
) -> None:
    score(tmp_path / "run", tasks, Clients().config(fold))
    names = [f"criteria@{name}" for name in WEIGHTS]
    with closing(Run.open(tmp_path / "run")) as run:
        shown = build_reward_table(run, ResponseSelection(), ["reward", *names])
        with closing(open_export_table(run, options=TableOptions(questions=True))) as table:
            (exported, *_) = [row for rows in table.batches() for row in rows]
        with closing(RunIndex(run, is_index_temporary=True)) as index:
            index.update()
            columns = ", ".join(column_sql_expression(index, name) for name in ["reward", *names])
            paged = index.fetch_rows(f"SELECT {columns} FROM responses")
    assert [tuple(row) for row in shown.rows] == paged
    reward, *values = paged[0]
    weighed = zip(WEIGHTS.values(), values, strict=True)
    assert reward == pytest.approx(sum(weight * value for weight, value in weighed) / 2.0)
    assert [exported[f"question.{name}"] for name in names] == values


def test_rescoring_learns_how_each_judge_errs_and_weighs_their_votes_by_it(tmp_path: Path) -> None:
    wrong_at_every = {"kind": 10, "mild": 5, "strict": 3}

    def answers_of(name: str) -> Mapping[str, Any]:
        def answer(text: str) -> bool:
            number = int(text.split()[-1])
            return (number % 2 == 0) != (number % wrong_at_every[name] == 1)

        return {"It is clear.": answer, "It is rude.": False}

    rubric = {"criteria": CRITERIA}
    texts = [{"id": f"r{number}", "text": f"Text {number}"} for number in range(200)]
    task = {"query": "Write.", "rubric": rubric}
    tasks = write_tasks(
        tmp_path,
        [
            {**task, "id": "t", "responses": texts[:150]},
            {**task, "id": "u", "responses": texts[150:]},
        ],
    )
    component = {"combiner": "consensus", "inputs": {"clear": {"verdicts_of": "criteria@clear"}}}
    config = Clients(**{name: answers_of(name) for name in wrong_at_every}).config()
    score(
        tmp_path / "run",
        tasks,
        config | {"components": {"clear": component}, "reward": {"clear": 1.0}},
    )
    with closing(Run.open(tmp_path / "run")) as run:
        learned = learn_confusion_matrices(run, run.config, "clear", lambda count: None)
        accuracy = {name: quality.accuracy for name, quality in learned.judges.items()}
        assert accuracy["kind"] > accuracy["mild"] > accuracy["strict"] > 0.5
        rescore(run, tmp_path / "learned", learned.config, lambda count: None)
    by_vote, weighed = (
        [one.reward.value for one in traces_of(tmp_path / name)] for name in ("run", "learned")
    )
    assert set(by_vote) == {0.0, 1.0}  # more than half
    assert set(by_vote).isdisjoint(weighed)
    verify_run(tmp_path / "learned")
    # an erased task keeps its decision, of other levels
    erase(tmp_path / "run", "task", "t", "")
    with closing(Run.open(tmp_path / "run")) as run:
        other = apply_settings(run.config, ["components.clear.params.levels=[0, 0.5, 1]"])
        learned = learn_confusion_matrices(run, other, "clear", lambda count: None)
    assert learned.responses == 50


def test_a_comparison_names_the_judge_that_moved_and_votes_are_exported(
    tmp_path: Path, tasks: Path
) -> None:
    score(tmp_path / "a", tasks, Clients().config())
    score(tmp_path / "b", tasks, Clients(mild={"It is clear.": 0.3, "It is rude.": 0.4}).config())
    with closing(Run.open(tmp_path / "a")) as a, closing(Run.open(tmp_path / "b")) as b:
        compared = compare(iter_compared_responses(a), iter_compared_responses(b)).figures
        (tmp_path / "votes.jsonl").write_bytes(b"".join(export_votes(a)))
        with closing(open_export_table(a, "verdicts")) as table:
            columns = table.columns
        lines = [line.split() for line in format_trace_lines(build_trace_view(a.explain("t0/0")))]
    moved = {
        row["question"]: row["to_unmet"] for row in compared["questions"] if row["largest_delta"]
    }
    assert moved == {"criteria@clear, jury": 6, "criteria@clear by mild": 6}
    assert (compared["judged_both"], compared["flips"]) == (12, 6)  # the votes are in the folded
    votes = [vote for _, vote in read_votes(tmp_path / "votes.jsonl").rows]
    assert len(votes) == 36
    assert {(one.annotator, one.label) for one in votes if "clear" in one.item} == {
        ("kind", 1.0),
        ("mild", 1.0),
        ("strict", 0.0),
    }
    assert "judge" in columns
    assert [
        "clear",
        "met",
        "(0.5333)",
        "met",
        "(0.9)",
        "met",
        "(0.6)",
        "not",
        "met",
        "(0.1)",
    ] in lines


def test_juries_are_compared_by_the_value_that_counts(tmp_path: Path, tasks: Path) -> None:
    """Without a judge nobody votes otherwise, but there may be no majority; and one judge alone has a probability."""
    jury = Clients().config("majority")
    for name, judges in (("three", [*ANSWERS]), ("two", ["kind", "strict"]), ("one", ["kind"])):
        use = {**jury["evaluators"][0], "judges": judges}
        score(tmp_path / name, tasks, {**jury, "evaluators": [use]})
    with ExitStack() as stack:
        three, two, one = (
            list(iter_compared_responses(stack.enter_context(Run.open(tmp_path / name))))
            for name in ("three", "two", "one")
        )
    split = compare(three, two)
    assert (split.figures["judged_both"], split.figures["flips"]) == (12, 12)
    assert {
        (flip["question"], flip["before"], flip["after"], flip["undecided_in"])
        for flip in split.figures["flipped_verdicts"]
    } == {("criteria@clear, jury", 1.0, 0.0, "B"), ("criteria@rude, jury", 0.0, 1.0, "B")}
    assert split.conclusion[0].endswith("; 12 verdicts judged in A, undecided in B")
    assert (
        "undecided: the votes on a question have no majority, so the worst case counts"
        in split.notes
    )
    shown = split.to_markdown()
    assert "by mild" not in shown
    assert "no verdict differs" not in shown
    alone = compare(one, three)
    assert (alone.figures["judged_both"], alone.figures["flips"]) == (12, 0)
    assert alone.conclusion[0].endswith(
        "; with another fold or number of judges, in 2 questions: met counts 1 in B, and its probability in A"
    )
    assert "another fold" not in compare(three, two).conclusion[0]


def test_what_no_quotation_bears_out_is_no_answer_that_differs() -> None:
    met = {"judge": "kind", "question": 0, "score": 0.9, "met": True}
    unsupported = {"judge": "strict", "question": 0, "score": 0.0, "met": False}
    assert compare_judges_by_question([met, unsupported]) == [(0.9, True)]
    assert compare_judges_by_question([met, unsupported | {"unsupported": "worst-case"}]) == []


def test_responses_are_sorted_by_the_largest_difference_of_two_judges(
    tmp_path: Path, tasks: Path
) -> None:
    longer = {"It is clear.": lambda text: 0.9 if "longer" in text else 0.6, "It is rude.": 0.4}
    clients = Clients(kind=longer, strict=ANSWERS["mild"])
    summary = score(tmp_path / "run", tasks, clients.config())
    # 0.6 and 0.9 are one answer: met
    assert (summary.judged_differently, summary.judged_by_several) == (0, 12)
    harsher = {"It is clear.": lambda text: 0.4 if "longer" in text else 0.9, "It is rude.": 0.4}
    clients = Clients(kind=harsher, strict=ANSWERS["mild"])
    differing = score(tmp_path / "differing", tasks, clients.config())
    assert (differing.judged_differently, differing.judged_by_several) == (3, 12)
    with closing(Run.open(tmp_path / "run")) as run:
        names = ["response", "disagreement", "unsupported"]
        rows = build_reward_table(run, ResponseSelection(sort="-disagreement"), names).rows
    assert [row[0] for row in rows] == ["t0/1", "t1/1", "t2/1", "t0/0", "t1/0", "t2/0"]
    assert [row[1] for row in rows] == [pytest.approx(0.3)] * 3 + [0.0] * 3
    assert {row[2] for row in rows} == {0}


class TestEscalation:
    def config(self, clients: Clients) -> dict[str, Any]:
        config = clients.config()
        escalate = {"first": ["kind", "mild"], "then": "strict", "when": "disagree"}
        return {**config, "evaluators": [{"use": "criteria", "escalate": escalate}]}

    def clients(self) -> Clients:
        return Clients(mild={"It is clear.": 0.3, "It is rude.": 0.4})

    def test_a_run_keeps_superseded_verdicts_and_is_verified_and_resumed_without_a_call(
        self, tmp_path: Path, tasks: Path
    ) -> None:
        clients = self.clients()
        summary = score(tmp_path / "run", tasks, self.config(clients))
        assert clients.asked == {"kind": 6, "mild": 6, "strict": 6}
        assert (summary.superseded, summary.judged) == (12, 6 + 12)
        values = [one.reward.value for one in traces_of(tmp_path / "run")]
        assert values == [pytest.approx((2 * 0.1 - 0.3) / 2)] * 6
        verify_run(tmp_path / "run")
        with Run.open(tmp_path / "run") as run:
            deep = verify_deep(run, lambda count: None)
            with closing(open_export_table(run, "verdicts")) as table:
                rows = [row for batch in table.batches() for row in batch]
        assert deep.recomputed == 30
        assert Counter(row["superseded"] for row in rows) == {True: 12, False: 18}
        again = self.clients()
        score(tmp_path / "branch", tasks, self.config(again), branch=tmp_path / "run")
        assert again.asked == {"kind": 0, "mild": 0, "strict": 0}
        for one, before in zip(
            traces_of(tmp_path / "branch"), traces_of(tmp_path / "run"), strict=True
        ):
            assert (one.reward, one.verdicts) == (before.reward, before.verdicts)

    def test_a_dry_run_ranges_from_none_to_all_escalated(self, tmp_path: Path, tasks: Path) -> None:
        clients = self.clients()
        with jg.Jury.from_config(self.config(clients)) as jury:
            estimate = jg.estimate_costs(
                jury, [(task, responses) for task, responses in read_tasks(tasks)]
            )
        cases = {name: [load.calls for load in loads] for name, loads in estimate.by_model.items()}
        assert cases == {"kind": [6, 6, 12], "mild": [6, 6, 12], "strict": [0, 6, 12]}
        assert (estimate.low.calls, estimate.worst.calls) == (12, 36)
        shown = str(estimate).splitlines()  # as `score --dry-run` prints it
        assert shown[0].split() == ["model", "requests", "low", "expected", "worst"]
        assert shown[2].split() == ["calls", "12", "18", "36"]
        assert "model='kind, mild, strict'" in repr(jury)
        assert sum(clients.asked.values()) == 0
