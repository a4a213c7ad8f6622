"""QAGS: workers' answers about sentences as votes. The rows are made for the tests: none is copied from the set."""

import json
from pathlib import Path
from typing import Any

import pytest

from jurygraph.errors import InputError
from jurygraph.interchange.readers import VOTE_READERS
from jurygraph.schema.rating import Vote
from jurygraph.sources.ratings import read_ratings
from tests.interchange.published import write_rows

Row = dict[str, Any]


def answers(**message: str) -> list[Row]:
    return [
        {"worker_id": int(worker.removeprefix("w")), "response": one}
        for worker, one in message.items()
    ]


CNN: list[Row] = [
    {
        "article": "It rained.",
        "summary_sentences": [
            {"sentence": "It rained.", "responses": answers(w0="yes", w3="yes", w25="yes")},
            {"sentence": "It snowed.", "responses": answers(w0="no", w3="yes", w25="no")},
        ],
    },
    {
        "article": "Ann won.",
        "summary_sentences": [{"sentence": "Bob won.", "responses": answers(w25="no", w3="no")}],
    },
]
XSUM: list[Row] = [
    {
        "article": "A ship left.",
        "summary_sentences": [
            {"sentence": "A ship came.", "responses": answers(w0="no", w8="yes", w3="no")}
        ],
        "bbcid": 7,  # upstream adds fields
    }
]


def votes(*paths: Path) -> list[Vote]:
    return list(VOTE_READERS["qags"](paths))


def refusal(*paths: Path) -> str:
    with pytest.raises(InputError) as raised:
        votes(*paths)
    return str(raised.value)


@pytest.fixture
def cnn(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "mturk_cnndm.jsonl", *CNN)


@pytest.fixture
def xsum(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "mturk_xsum.jsonl", *XSUM)


def test_an_item_is_a_sentence_of_a_summary_and_its_set_the_agent(cnn: Path, xsum: Path) -> None:
    assert [one.group for one in votes(cnn)] == ["cnn_1"] * 6 + ["cnn_2"] * 2
    assert [(one.item, one.agent, one.annotator, one.label) for one in votes(cnn, xsum)] == [
        ("cnn_1_sent0", "CNN", "worker_0", 1.0),
        ("cnn_1_sent0", "CNN", "worker_3", 1.0),
        ("cnn_1_sent0", "CNN", "worker_25", 1.0),
        ("cnn_1_sent1", "CNN", "worker_0", 0.0),
        ("cnn_1_sent1", "CNN", "worker_3", 1.0),
        ("cnn_1_sent1", "CNN", "worker_25", 0.0),
        ("cnn_2_sent0", "CNN", "worker_25", 0.0),
        ("cnn_2_sent0", "CNN", "worker_3", 0.0),
        ("xsum_1_sent0", "XSUM", "worker_0", 0.0),
        ("xsum_1_sent0", "XSUM", "worker_8", 1.0),
        ("xsum_1_sent0", "XSUM", "worker_3", 0.0),
    ]


def test_its_votes_are_read_again_as_ratings(xsum: Path, tmp_path: Path) -> None:
    lines = [json.loads(one.model_dump_json(exclude_defaults=True)) for one in votes(xsum)]
    found = [
        rating for _, rating in read_ratings(write_rows(tmp_path / "ratings.jsonl", *lines)).rows
    ]
    assert [(one.key, one.reviewer, one.score) for one in found] == [
        ("xsum_1_sent0_XSUM", "worker_0", 0.0),
        ("xsum_1_sent0_XSUM", "worker_8", 1.0),
        ("xsum_1_sent0_XSUM", "worker_3", 0.0),
    ]


def test_a_bad_row_is_named_with_file_line_and_field(tmp_path: Path) -> None:
    partly = [{"sentence": "s", "responses": [{"worker_id": 1, "response": "partly"}]}]
    source = write_rows(tmp_path / "xsum.jsonl", *XSUM, {**CNN[0], "summary_sentences": partly})
    field = "summary_sentences[0].responses[0].response"
    assert (
        refusal(source)
        == f"xsum.jsonl, line 2, field {field}: is the text 'partly'; write 'yes' or 'no'"
    )


def test_a_name_that_does_not_say_one_set_or_says_that_of_another_file_is_refused(
    cnn: Path,
) -> None:
    for names in (["votes.jsonl"], ["cnn_and_xsum.jsonl"], ["-"], [cnn, "more_cnn.jsonl"]):
        assert f"{names[-1]}: its name does not say which set it is of" in refusal(
            *map(Path, names)
        )


@pytest.mark.parametrize(
    "rows", [[], [{"article": "a", "summary_sentences": [{"sentence": "b", "responses": []}]}]]
)
def test_a_file_without_answers_is_refused(rows: list[Row], tmp_path: Path) -> None:
    source = write_rows(tmp_path / "cnn.jsonl", *rows)
    assert (
        refusal(source)
        == f"{source}: holds no answers; name a file of QAGS's annotations, with `summary_sentences`"
    )
