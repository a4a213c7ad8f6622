"""Imported tasks can be judged, each benchmark's criteria in the form in which GEAR scores them (Table 9 and D.2)."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph import Response, Task
from jurygraph.schema import TaskLine
from tests.interchange.published import (
    HEALTHBENCH,
    JUDGEBENCH,
    PLAWBENCH,
    REWARDBENCH,
    import_rows,
    tasks,
)
from tests.interchange.test_writingbench import REAL
from tests.judges.criteria.scripted_judge import (
    binary_reply,
    find_everything,
    parts_reply,
    scale_reply,
    score_by_script,
    user_message,
)
from tests.judges.pairwise import comparisons
from tests.models.judge_scripts import items_of
from tests.models.server import Answer, reply_with


def split(line: TaskLine) -> tuple[Task, list[Response]]:
    task, responses = line.split()
    return task, list(responses)


def test_healthbench_is_scored_by_probabilities_and_its_penalties_count_against(
    tmp_path: Path,
) -> None:
    (line,) = tasks("healthbench", tmp_path / "in.jsonl", HEALTHBENCH[0])
    task, group = split(line)
    traces, bodies = score_by_script(find_everything, task, group)
    assert {tuple(item["properties"]) for body in bodies for item in items_of(body).values()} == {
        ("reason", "quotes", "met", "probability")
    }
    assert [verdict.score for verdict in traces[0].verdicts] == [0.9, 0.9, 0.9]
    assert len(traces) == 3
    assert [one.reward.value for one in traces] == pytest.approx([(7 - 5 + 2.5) * 0.9 / 9.5] * 3)


def test_writingbench_is_scored_on_its_scale_with_its_anchors_before_the_judge() -> None:
    line = import_rows("writingbench", REAL)[0].task
    assert line is not None
    assert line.rubric is not None
    task, _ = split(line)
    (trace,), bodies = score_by_script(eight, task, [Response(id="a", text="A story.")])
    assert [(v.native, v.scale) for v in trace.verdicts] == [(8.0, (1.0, 10.0))] * 5
    assert trace.reward.value == pytest.approx(7 / 9)
    shown = "\n".join(map(user_message, bodies))
    for criterion in line.rubric.criteria:
        assert criterion.text in shown
        assert all(f"{ends}: {text}" in shown for ends, text in criterion.anchors.items())


def eight(body: dict[str, Any], number: int) -> Answer:
    """Answer as a judge that gives 8 to every item."""
    return reply_with(json.dumps({name: scale_reply(8, "A story.") for name in items_of(body)}))


def test_plawbench_gives_partial_credit_by_sub_items(tmp_path: Path) -> None:
    (line,) = tasks("plawbench", tmp_path / "in.jsonl", PLAWBENCH[0])
    task, _ = split(line)
    (trace,), _ = score_by_script(first_part, task, [Response(id="a", text="甲借款给乙。")])
    scores = {verdict.subject: verdict.score for verdict in trace.verdicts}
    assert scores == pytest.approx(
        {"criterion-1": 0.1, "criterion-2": 5 / 15, "criterion-3": 5 / 7.5, "criterion-4": 0.1}
    )
    assert trace.reward.value == pytest.approx((5 * 0.1 + 5 + 5 + 15 * 0.1) / 42.5)


def first_part(body: dict[str, Any], number: int) -> Answer:
    """Answer as a judge for whom only the first part of each criterion is met."""
    fields = {name: item["properties"] for name, item in items_of(body).items()}
    partial = parts_reply(["甲借款给乙。"], None)
    return reply_with(
        json.dumps(
            {
                name: partial if "part_1" in properties else binary_reply(False)
                for name, properties in fields.items()
            }
        )
    )


@pytest.mark.parametrize(
    ("form", "row"), [("judgebench", JUDGEBENCH[0]), ("rewardbench", REWARDBENCH[2])]
)
def test_verdicts_on_pairs_can_be_compared_with_the_labels(
    form: str, row: dict[str, Any], tmp_path: Path
) -> None:
    (line,) = tasks(form, tmp_path / "in.jsonl", row)
    task, group = split(line)
    good = {response.text for response in group if response.labels["preferred"]}
    traces, _ = comparisons.score_by_script(
        comparisons.judge_script(
            lambda shown: sorted(shown, key=lambda name: shown[name] not in good)
        ),
        group,
        task=task,
    )
    assert [(t.response_id, t.agent, t.labels) for t in traces] == [
        (r.id, r.agent, r.labels) for r in group
    ]
    values = {
        wanted: [t.reward.value for t in traces if t.labels["preferred"] is wanted]
        for wanted in (True, False)
    }
    assert min(values[True]) > max(values[False])  # type: ignore[type-var]
