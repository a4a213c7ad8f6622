"""Invalid TASKS and RESPONSES files are refused with file, line, field and a remedy."""

import gzip
import json
from pathlib import Path

import pytest

from jurygraph import InputError
from jurygraph.sources import files, read_tasks
from tests.rows import all_rows

GOOD = '{"id": "a", "query": "?", "responses": [{"id": "r", "text": "x"}]}'
HEAD = '{"id": "a", "query": "?", "responses": [{"id": "r", "text": "x"}], '


def deep(levels: int) -> str:
    return HEAD + '"metadata": ' + '{"a": ' * levels + "1" + "}" * levels + "}"


CRITERION = '"rubric": {"criteria": [{"id": "c", "text": "t", "weight": 0}]'
BAD_LINES = [
    (
        '{"id": "a", "query": "?',
        "line 1: is not valid JSON: Unterminated string",
        "one whole JSON object",
    ),
    ('["a"]', "line 1: is a list", "each line is one JSON object"),
    ('{"id": "a", "qeury": "?"}', "field qeury: unknown", "did you mean query?"),
    (GOOD.replace("text", "txt"), "field responses[0].txt: unknown", "did you mean text?"),
    (HEAD + '"completion": "x"}', "field completion: unknown", "did you mean responses?"),
    (HEAD + '"zzzzzz": 1}', "field zzzzzz: unknown", "known here: id, query"),
    ('{"query": "?"}', "field id: is missing", "every task needs it"),
    (GOOD.replace('"x"', "5"), "field responses[0].text: is the number 5", "write text, in quotes"),
    (GOOD.replace('"?"', "[]"), "field query: is an empty list", "give it one message at least"),
    (
        HEAD + CRITERION.replace("0", '"1"') + "}}",
        "weight: is the text '1'",
        "write a number, without quotes",
    ),
    (
        HEAD + CRITERION + "}}",
        "field rubric.criteria[0].weight: is 0, so it would not count",
        "give it a weight, or",
    ),
    (
        HEAD + '"rubric": "' + "[" * 100_000 + '"}',
        "field rubric: is the text '[[[",
        "a criterion in",
    ),
    (
        HEAD + r'"rubric": "[\"\\ud800 x\"]"}',
        "field rubric: is the text",
        "a criterion in each line",
    ),
    (HEAD + '"rubric": 7}', "field rubric: is the number 7", "a criterion in each line, or a list"),
    (
        HEAD + '"rubric": "[\\"It is far"}',
        "field rubric: is the text",
        "an object with `criteria`, a",
    ),
    (
        HEAD + '"rubric": ["It is far.", " "]}',
        "field rubric.criteria[1].text: is ",
        "write what must hold",
    ),
    (
        HEAD + '"metadata": {"w": [1, -Infinity]}}',
        "field metadata.w[1]: -Infinity is not JSON",
        "write",
    ),
    (HEAD + '"metadata": {"w": 1e999}}', "field metadata.w: 1e999 is too large", "a 64-bit float"),
    (
        HEAD + '"metadata": {"w": ' + "9" * 10**6 + "}}",
        "999… has 1000000 digits",
        "write so long a number as text",
    ),
    (HEAD + '"metadata": {"w": NaN', "is not valid JSON", "one whole JSON object"),
    (
        HEAD + '"metadata": {"' + "k" * 10**6 + '": NaN}}',
        "field metadata.kkkkkkkkkkkkkkk",
        "…: NaN is not JSON; write",
    ),
    (
        GOOD.replace('"text": "x"', '"text": "x", "text": "y"'),
        "field responses[0].text: occurs twice",
        "keep one",
    ),
    (GOOD + ",", "line 1: has a trailing comma", "take it away"),
    (GOOD[:-1] + ",}", "line 1: has a trailing comma", "take it away"),
    (GOOD + " " + GOOD, "line 1: goes on at column 68 after its JSON object", "a line of its own"),
    (
        HEAD + '"group": "\0"}',
        "line 1: is not valid JSON: Invalid control character at column 78",
        "one whole",
    ),
    (GOOD.replace('"a"', '"' + "a" * 10**6 + '"'), "field id: has 1000000", "at most 512"),
    ('{"id": "", "query": "?"}', "field id: is empty", "write at least one character"),
    ('{"id": "a", "query": "\\ud800"}', "field query: holds half of a surrogate pair", "the whole"),
    (deep(100), "line 1: is nested too deeply", "within 100 levels"),
    (deep(200_000), "line 1: is nested too deeply", "within 100 levels"),
    (
        '{"id": "a", "query": "?", "responses": [5]}',
        "field responses[0]: is the number 5",
        "write an object",
    ),
    (
        '{"id": "a", "query": "?", "responses": ["x", {"id": "a/1", "text": "y"}]}',
        "field responses[1].id: response 'a/1' is already in line 1",
        "give each response an id of its own",
    ),
    ('{"id": "a", "query": "?"}', "field responses: task 'a' has no responses", "give it one"),
]

BAD_FILES = {
    "empty": (b"", "tasks.jsonl: the file is empty", "write one task per line, each a JSON object"),
    "blank": (b"\n \r\n\n", "tasks.jsonl: the file is empty", "write one task per line"),
    "task twice": (
        f"{GOOD}\n\n{GOOD}\n".encode(),
        "line 3, field id: task 'a' is already in line 1",
        "of its own",
    ),
    "response twice": (
        (GOOD + "\n" + GOOD.replace('"a"', '"b"')).encode(),
        "line 2, field responses[0].id: response 'r' is already in line 1",
        "give each response an id of its own",
    ),
    "response twice in a line": (
        GOOD.replace('"x"}', '"x"}, {"id": "r", "text": "y"}').encode(),
        "line 1, field responses[1].id: response 'r' is already in line 1",
        "of its own",
    ),
    "not UTF-8": (
        (GOOD + "\n").encode() + b'{"id": "\xe9"}',
        "line 2: byte 9 (0xe9) is not UTF-8",
        "save the file",
    ),
    "UTF-16": (
        GOOD.encode("utf-16"),
        "line 1: is UTF-16",
        "save the file as UTF-8",
    ),
    "a cut gzip": (
        gzip.compress(f"{GOOD}\n".encode() * 3)[:-8],
        "tasks.jsonl: the gzip file is cut short or damaged (",
        "copy it again",
    ),
    "a damaged gzip": (
        b"\x1f\x8bnonsense",
        "tasks.jsonl: the gzip file is cut short or damaged (Unkn",
        "copy it again",
    ),
    "UTF-16 in a gzip": (
        gzip.compress(GOOD.encode("utf-16")),
        "line 1: is UTF-16",
        "save the file",
    ),
    "zstd": (
        b"\x28\xb5\x2f\xfd\x24",
        "line 1: byte 2 (0xb5) is not UTF-8",
        "save the file as UTF-8, gzipped or not",
    ),
}


def refusal(path: Path, responses: Path | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read_tasks(path, responses)
    return str(caught.value)


@all_rows(("line", "problem", "remedy"), BAD_LINES)
def test_an_invalid_line_is_named_with_its_field_and_the_remedy(
    tmp_path: Path, line, problem, remedy
):
    path = tmp_path / "tasks.jsonl"
    path.write_text(line + "\n")
    message = refusal(path)
    assert message.startswith("tasks.jsonl, line 1")
    assert problem in message
    assert remedy in message
    assert len(message) < 600


@pytest.mark.parametrize(("content", "problem", "remedy"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_an_invalid_file_is_named_with_the_remedy(tmp_path: Path, content, problem, remedy):
    path = tmp_path / "tasks.jsonl"
    path.write_bytes(content)
    message = refusal(path)
    assert problem in message
    assert remedy in message


def test_the_line_is_counted_in_the_file_not_among_the_tasks(tmp_path: Path):
    path = tmp_path / "tasks.jsonl"
    path.write_text(GOOD + "\n\n\n" + '{"id": 7, "query": "?"}' + "\n")
    assert refusal(path).startswith(
        "tasks.jsonl, line 4, field id: is the number 7; write text, in quotes"
    )


def test_a_line_of_a_million_characters_is_read(tmp_path: Path):
    path = tmp_path / "tasks.jsonl"
    path.write_text(
        json.dumps({"id": "a", "query": "?", "responses": [{"id": "r", "text": "x" * 10**6}]})
    )
    assert len(read_tasks(path)[0][1][0].text) == 10**6


def test_a_missing_file_is_refused_with_the_nearest_name(tmp_path: Path):
    assert refusal(tmp_path / "taks.jsonl").endswith(
        "taks.jsonl: there is no such file; name one that is there"
    )
    (tmp_path / "tasks.jsonl").write_text(GOOD)
    assert refusal(tmp_path / "taks.jsonl").endswith(
        "there is no such file; did you mean tasks.jsonl?"
    )
    (tmp_path / "taks.txt").write_text("")
    assert refusal(tmp_path / "tsaks.jsonl").endswith("did you mean tasks.jsonl?")


def test_an_equal_suffix_makes_no_two_names_of_files_alike(tmp_path: Path):
    (tmp_path / "empty.jsonl").write_text(GOOD)
    (tmp_path / "tasks.csv").write_text("id,query\n")
    assert refusal(tmp_path / "histroy.jsonl").endswith("name one that is there")
    assert refusal(tmp_path / "taks.jsonl").endswith("did you mean tasks.csv?")
    (tmp_path / "mine.py").write_text("")
    assert refusal(tmp_path / "nope.jsonl").endswith("name one that is there")
    assert refusal(tmp_path / "taskz").endswith("did you mean tasks.csv?")


def test_a_line_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 100)
    (tmp_path / "tasks.jsonl").write_text(f"{GOOD}\n{GOOD.replace('x', 'x' * 100)}\n")
    assert refusal(tmp_path / "tasks.jsonl") == (
        "tasks.jsonl, line 2: is longer than 0 MB; write one object a line, ended with LF"
    )


def test_permission_is_named_as_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def open_denied(*_: object, **__: object) -> None:
        raise PermissionError

    (tmp_path / "tasks.jsonl").write_text(GOOD)
    monkeypatch.setattr(Path, "open", open_denied)
    assert "may not be read; ask for permission" in refusal(tmp_path / "tasks.jsonl")


class TestResponsesInASeparateFile:
    @pytest.fixture
    def tasks(self, tmp_path: Path) -> Path:
        path = tmp_path / "tasks.jsonl"
        path.write_text('{"id": "eggs", "query": "?"}\n{"id": "train", "query": "?"}\n')
        return path

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (
                '{"task": "egs", "id": "r", "text": "x"}',
                "answers.jsonl, line 1, field task: there is no task 'egs'; did you mean eggs?",
            ),
            (
                '{"task": "zzzzz", "id": "r", "text": "x"}',
                "answers.jsonl, line 1, field task: there is no task 'zzzzz'; name a task of the tasks file",
            ),
            (
                '{"id": "r", "text": "x"}',
                "answers.jsonl, line 1, field task: is missing; every response needs it",
            ),
            (
                '{"task": "eggs", "id": "r", "text": "x"}\n{"task": "train", "id": "r", "text": "x"}',
                "answers.jsonl, line 2, field id: response 'r' is already in line 1",
            ),
            (
                '{"task": "eggs", "id": "r", "text": "x"}',
                "tasks.jsonl, line 2, field responses: task 'train' has no responses",
            ),
            ("", "answers.jsonl: the file is empty; write one response a line, each a JSON object"),
        ],
        ids=[
            "unknown task",
            "unknown, nothing near",
            "no task",
            "id twice",
            "a task without any",
            "empty",
        ],
    )
    def test_the_file_that_is_wrong_is_named(
        self, tasks: Path, tmp_path: Path, content: str, message: str
    ):
        (tmp_path / "answers.jsonl").write_text(content)
        assert refusal(tasks, tmp_path / "answers.jsonl").startswith(message)

    def test_responses_in_both_places_are_refused(self, tmp_path: Path):
        (tmp_path / "tasks.jsonl").write_text(GOOD)
        (tmp_path / "answers.jsonl").write_text('{"task": "a", "id": "r", "text": "x"}')
        message = refusal(tmp_path / "tasks.jsonl", tmp_path / "answers.jsonl")
        assert message.startswith(
            "tasks.jsonl, line 1, field responses: is set although --responses"
        )

    def test_both_from_standard_input_are_refused(self):
        with pytest.raises(InputError, match="cannot both come from standard input"):
            read_tasks("-", "-")


def test_a_hundred_levels_and_many_brackets_are_read(tmp_path: Path):
    path = tmp_path / "tasks.jsonl"
    path.write_text(deep(99).replace('"x"', '"' + "{[" * 1000 + '"') + "\n")
    assert read_tasks(path)[0][0].id == "a"
