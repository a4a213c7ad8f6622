"""Config files: how they are read, and errors with file, line, key and a remedy."""

from pathlib import Path

import pytest

from jurygraph import ConfigError
from jurygraph.sources import parse_config_mapping, read_config
from jurygraph.sources.config import apply_settings, line_number_of_key
from tests.rows import all_rows

WHOLE = """\
# what is measured, and what it counts for
version: 1
model: none
evaluators:
  - maths.accuracy
  - use: my_package.tone
    name: tone
    params: {strict: true, words: [a, b]}
reward: {accuracy: 1.0, tone: -0.2}
clip: [0, 1]
gates:
  - kind: format
    below: 0.5
failure: {rule: strict, min_coverage: 1}
"""


def test_a_config_is_read_from_yaml(tmp_path: Path):
    (tmp_path / "jury.yaml").write_text(WHOLE)
    config = read_config(tmp_path / "jury.yaml")
    assert [use.use for use in config.evaluators] == ["maths.accuracy", "my_package.tone"]
    assert config.evaluators[1].params == {"strict": True, "words": ["a", "b"]}
    assert config.reward == {"accuracy": 1.0, "tone": -0.2}
    assert config.gates[0].below == 0.5
    assert config.failure.rule == "strict"


def test_words_and_dates_are_text_as_in_yaml_1_2(tmp_path: Path):
    (tmp_path / "jury.yaml").write_text(
        "evaluators: [{use: a, params: {no: on, day: 2026-11-01, n: 0x10, e: 1e-3}}]"
    )
    config = read_config(tmp_path / "jury.yaml")
    params = config.evaluators[0].params
    assert params == {"no": "on", "day": "2026-11-01", "n": 16, "e": 0.001}
    changed = apply_settings(config, ["evaluators.0.params.day=2026-11-02"])
    assert changed.evaluators[0].params["day"] == "2026-11-02"
    with pytest.raises(ConfigError, match="the next entry of 'evaluators' is 1, counted from 0"):
        apply_settings(config, ["evaluators.9.params.day=2026-11-02"])
    with pytest.raises(ConfigError, match="'evaluators' is a list, whose entries are counted"):
        apply_settings(config, ["evaluators.²=x"])


BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)

BAD = [
    ("model: none\nevaluatorz: [a]", "line 2, key evaluatorz: unknown; did you mean evaluators?"),
    (
        "evaluators: [a]\nfailure:\n  rule: gear\n  min_coverag: 1",
        "line 4, key failure.min_coverag: unknown; did",
    ),
    (
        "evaluators: [a]\ngates:\n  - kind: format\n    belo: 1",
        "line 4, key gates[0].belo: unknown; did you mean",
    ),
    (
        "evaluators: [a]\ngates: [{kind: repetition}]",
        "line 2, key gates[0].above: is missing; every repetition",
    ),
    ("evaluators: [a]\ngates: [{below: 1}]", "line 2, key gates[0].kind: is missing"),
    (
        "evaluators: [a]\ntask_defaults: {rubric: {criteria: [{id: a, text: Kind, and short}]}}",
        "line 2, key task_defaults.rubric.criteria[0].and short: unknown; ",
    ),
    (
        "evaluators: [a]\ngates:\n  - {kind: fromat, below: 1}",
        "line 3, key gates[0].kind: is the text 'fromat'; did",
    ),
    ("model: none", "line 1, key evaluators: is missing; every config needs it"),
    ("evaluators: []", "line 1, key evaluators: has 0 entries; give it at least 1"),
    (
        'evaluators: [a]\nreward:\n  a: "1"',
        "line 3, key reward.a: is the text '1'; write a number, without quotes",
    ),
    (
        "evaluators: [a]\nlangsmith: yes",
        "line 2, key langsmith: is the text 'yes'; write true or false, without",
    ),
    ("evaluators: [a]\nreward: {a: NaN}", "key reward.a: is 'NaN', not a finite number; write one"),
    ("evaluators: [a]\nreward: {a: .nan}", "line 2, key reward.a: is not a finite number"),
    (
        f"evaluators: [a]\nscale: {'9' * 400}",
        "line 2, key scale: is a number too large for a 64-bit float",
    ),
    (
        f"evaluators: [a]\nreward: {{{'k' * 600}: 1}}",
        f"line 2, key reward.{'k' * 59}…: has 600 characters; write at m",
    ),
    ("evaluators: [a]\nscale: 0", "line 2, key scale: is the number 0; write a number above 0"),
    (
        "evaluators: [a]\nclip: [1, 0]",
        "line 2, key clip: does not rise; write the lower end first, such as [0, 1]",
    ),
    (
        "evaluators: [a]\nversion: 2",
        "line 2, key version: is the number 2; this jurygraph reads configs of version 1",
    ),
    ("# nothing\n", ": the file is empty; it needs `evaluators: [...]`"),
    ("- a\n- b", "line 1: is a list; write lines such as `evaluators: [maths.accuracy]`"),
    (
        "evaluators:\n\t- a",
        "line 2: is not valid YAML: a tab is used where spaces belong; indent with spaces",
    ),
    (
        "evaluators: [a",
        "line 1: is not valid YAML: expected ',' or ']', but got '<stream end>'; indent lines",
    ),
    (
        "evaluators: [a]\nmodel: none\nevaluators: [b]",
        "line 3, key evaluators: is already in line 1",
    ),
    (
        "evaluators: [a]\n1: b",
        "line 2: 1 is not text, as a key must be; put it in quotes",
    ),
    (
        "evaluators: [a]\nreward: {a: 2,5}",
        "line 2, key reward.a: is '2,5', with a decimal comma; write 2.5",
    ),
    (
        "evaluators: !!python/object/apply:os.system ['true']",
        "tag '!!python/object/apply:os.system'; write a plain value",
    ),
    (BOMB, "its aliases expand without end; write the values out"),
    ("evaluators: [*x]", "line 1: is not valid YAML: found undefined alias 'x'"),
    ("evaluators: !!bool perhaps", ": is not valid YAML: 'perhaps'; "),
    (
        "evaluators: !!binary aGk=",
        ": is not valid YAML: could not determine a constructor for the tag '!!binary'; ",
    ),
    ("a: " + "[" * 1000, ": is nested too deeply"),
    (
        "evaluators: [a]\n---\nevaluators: [b]",
        "line 2: is not valid YAML: a second document begins; a config",
    ),
    (
        "evaluators: [a]\x00",
        ", line 1: holds the control character #x00, which YAML does not; take it out",
    ),
]


@all_rows(("content", "message"), BAD)
def test_a_bad_config_is_named_with_line_and_key(tmp_path: Path, content: str, message: str):
    (tmp_path / "jury.yaml").write_text(content)
    with pytest.raises(ConfigError) as caught:
        read_config(tmp_path / "jury.yaml")
    assert str(caught.value).startswith("jury.yaml")
    assert message in str(caught.value)


def test_a_bad_mapping_is_named_by_its_key():
    with pytest.raises(
        ConfigError, match=r"^config, key evaluatorz: unknown; did you mean evaluators\?$"
    ):
        parse_config_mapping({"evaluatorz": ["a"]})


def test_a_byte_that_is_not_utf_8_is_named_with_its_line(tmp_path: Path):
    (tmp_path / "jury.yaml").write_bytes(b"evaluators: [a]\n# \xe9\n")
    with pytest.raises(ConfigError, match=r"^jury.yaml, line 2: byte 3 \(0xe9\) is not UTF-8"):
        read_config(tmp_path / "jury.yaml")


@pytest.mark.parametrize(
    ("name", "message"), [("", "is a folder"), ("no.yaml", "there is no such file")]
)
def test_a_path_that_is_not_a_file_is_refused(tmp_path: Path, name: str, message: str):
    with pytest.raises(ConfigError, match=message):
        read_config(tmp_path / name)


def test_a_file_of_megabytes_is_refused(tmp_path: Path):
    (tmp_path / "jury.yaml").write_text("#" * (2 << 20))
    with pytest.raises(ConfigError, match="is larger than 1 MB"):
        read_config(tmp_path / "jury.yaml")


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("reward", 9),
        ("reward.tone", 9),
        ("reward.unknown", 9),
        ("evaluators[1]", 6),
        ("evaluators[1].params.words[0]", 8),
        ("gates[0].below", 13),
        ("gates[0].component", 12),
        ("weights.fixed", None),
        ("rewards", None),
        ("evaluator 'x' cannot be imported", None),
    ],
)
def test_a_key_is_located_by_its_line_or_that_of_its_parent(
    tmp_path: Path, key: str, line: int | None
):
    (tmp_path / "jury.yaml").write_text(WHOLE)
    assert line_number_of_key(tmp_path / "jury.yaml", key) == line


def test_a_name_with_a_dot_is_one_key(tmp_path: Path):
    (tmp_path / "jury.yaml").write_text("evaluators: [a]\nreward:\n  b: 1\n  b.c: 1\n")
    assert line_number_of_key(tmp_path / "jury.yaml", "reward.b.c") == 4


def test_files_next_to_the_config_are_named_by_absolute_paths_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    use = "{use: personalized, params: {dimensions: ideas, history: ratings.csv, texts: none.csv, choice: similar}}"
    (tmp_path / "jury.yaml").write_text(f"evaluators: [{use}]\n")
    (tmp_path / "ratings.csv").write_text("")
    (read,) = read_config(tmp_path / "jury.yaml").evaluators
    assert read.params["history"] == str(tmp_path / "ratings.csv")
    assert (read.params["texts"], read.params["choice"]) == ("none.csv", "similar")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("ratings.csv", "none.csv"):
        (elsewhere / name).write_text("")
    for folder, path in (
        (tmp_path, "jury.yaml"),
        (elsewhere, "../jury.yaml"),
        (tmp_path.parent, tmp_path / "jury.yaml"),
    ):
        monkeypatch.chdir(folder)
        assert read_config(path).evaluators == (read,)


@pytest.mark.parametrize("named", ["", ".", "a" * 5000, "nul\\0", "7", "[a]", "loop", "gone/../x"])
def test_a_value_that_is_not_a_file_next_to_the_config_is_unchanged(tmp_path: Path, named: str):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "jury.yaml").write_text(
        f'evaluators: [{{use: personalized, params: {{history: "{named}"}}}}]\n'
    )
    (read,) = read_config(tmp_path / "jury.yaml").evaluators
    assert read.params["history"] == named.replace("\\0", "\0")


def test_a_file_of_rows_is_no_config(tmp_path: Path) -> None:
    (tmp_path / "tasks.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match="is no config but a file of rows; name the YAML file"):
        read_config(tmp_path / "tasks.jsonl")
