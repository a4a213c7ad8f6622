"""JudgeBench: pairs of which one is right."""

from pathlib import Path

from tests.interchange.published import JUDGEBENCH, notes_of, tasks


def test_a_pair_is_two_responses_of_one_model_of_which_the_label_prefers_one(
    tmp_path: Path,
) -> None:
    found = tasks("judgebench", tmp_path / "in.jsonl", *JUDGEBENCH)
    assert [(task.id, task.query, task.rubric) for task in found] == [
        ("e1-a", "Which?", None),
        ("e1-b", "Which?", None),
        ("3", "Who?", None),
    ]
    assert [
        [(r.id, r.text, r.agent, r.labels["preferred"]) for r in task.responses] for task in found
    ] == [
        [
            ("e1-a/A", "The first.", "gpt-4o-2024-05-13", False),
            ("e1-a/B", "The second.", "gpt-4o-2024-05-13", True),
        ],
        [
            ("e1-b/A", "The same.", "gpt-4o-2024-05-13", True),
            ("e1-b/B", "The same.", "gpt-4o-2024-05-13", False),
        ],
        [("3/A", "", None, False), ("3/B", "Ann", None, True)],
    ]


def test_its_source_is_kept_and_nothing_is_left_out(tmp_path: Path) -> None:
    first, second, third = tasks("judgebench", tmp_path / "in.jsonl", *JUDGEBENCH)
    assert first.metadata == {"source": "mmlu-pro-law", "original_id": 1420}
    assert second.metadata == {"source": "livecodebench", "judge": {"votes": 3}}
    assert third.metadata == {}
    assert notes_of("judgebench", tmp_path / "in.jsonl", *JUDGEBENCH) == []
