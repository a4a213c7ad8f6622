"""verl, OpenRLHF and verifiers get the reward of one sample a call, or an error, and never a 0 that nobody gave."""

import asyncio
import json
from collections.abc import Iterator
from math import isnan
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jurygraph.errors import InputError, NoRewardError
from jurygraph.integrations import openrlhf, verifiers
from jurygraph.integrations.failed_rewards import (
    MAX_WITHOUT_REWARD,
)
from jurygraph.integrations.lazy_jury import find_shared_jury
from jurygraph.integrations.samples import read_label_fields
from jurygraph.integrations.verl import JuryRewardManager, compute_score
from tests.rows import all_rows

GRADED = "evaluators: [tests.integrations.trainers.graded]\n"
PAIRS = "evaluators: [tests.integrations.trainers.longer]\nsafety: {gates: []}\n"
EXTRA = {"task_id": "sum", "query": "2 + 2?", "index": 3}


@pytest.fixture
def config(tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "jury.yaml"
    path.write_text(GRADED, encoding="utf-8")
    yield str(path)
    find_shared_jury(str(path)).close()


def verl_score(config: str, text: str, extra: Any = EXTRA, **settings: Any) -> dict[str, Any]:
    return asyncio.run(compute_score("math", text, "4", extra, config=config, **settings))


def test_verl_gets_the_score_with_the_same_keys_for_each_sample(config: str) -> None:
    assert verl_score(config, "it is 0.5") == {
        "score": 0.5,
        "jury_task": "sum",
        "jury_degraded": 0.0,
        "jury_graded": 0.5,
    }
    failed = verl_score(config, "x", failed=-1)
    assert (failed["score"], isnan(failed["jury_graded"])) == (-1.0, True)
    whole = {"task": json.dumps({"id": "mine", "query": "2 + 2?"})}
    assert verl_score(config, "it is 1.0", whole)["jury_task"] == "mine"
    completed = {"task": {"query": "2 + 2?"}, "task_id": "named", "rubric": "Shows the sum."}
    assert verl_score(config, "it is 1.0", completed)["jury_task"] == "named"


def test_a_failed_reward_is_an_error_and_a_mean_needs_the_server(
    config: str, tmp_path: Path
) -> None:
    with pytest.raises(NoRewardError, match="1 of 1 rewards failed"):
        verl_score(config, "x")
    for rule in ("neutral", "mask", "none"):
        with pytest.raises(InputError, match=f"failed: is `{rule}`, but one sample comes"):
            verl_score(config, "it is 1.0", failed=rule)
    pairs = tmp_path / "pairs.yaml"
    pairs.write_text(PAIRS, encoding="utf-8")
    with pytest.raises(InputError, match="compares the responses of a group, and this trainer"):
        verl_score(str(pairs), "it is 1.0")
    find_shared_jury(str(pairs)).close()


def test_a_prompt_that_the_judge_cannot_take_stops_no_trainer_of_samples_but_an_outage_does(
    config: str,
) -> None:
    """They count as the server's do, by the same guard, since members of a group come apart."""
    assert MAX_WITHOUT_REWARD["samples"] == 8 * MAX_WITHOUT_REWARD["groups"]
    for _ in range(2):
        for _ in range(MAX_WITHOUT_REWARD["samples"] - 1):
            assert verl_score(config, "x", failed=-1)["score"] == -1
        verl_score(config, "it is 0.5", failed=-1)
    failed = openrlhf.reward_func(
        *(["2 + 2? x"] * 23, ["2 + 2?"] * 23, ["4"] * 23), config=config, failed=-1
    )
    assert failed["rewards"] == [-1.0] * 23
    with pytest.raises(NoRewardError, match="24 samples in a row got no reward at all: there"):
        verl_score(config, "x", failed=-1)


def test_wrong_samples_of_verl_are_named(config: str) -> None:
    with pytest.raises(InputError, match="no `task` and no `query` of the sample; it has index"):
        verl_score(config, "it is 1.0", {"index": 3})
    with pytest.raises(InputError, match="give `config`, a file, or `url`"):
        asyncio.run(compute_score("math", "x", "4", EXTRA))


def test_what_the_data_lack_is_named_with_where_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "needs.yaml"
    path.write_text("evaluators: [maths.accuracy]\n")
    with pytest.raises(NoRewardError, match="no reference to be judged by; give the reference as"):
        asyncio.run(compute_score("math", "4", None, EXTRA, config=str(path)))
    with pytest.raises(NoRewardError, match="no reference to be judged by; a label is the ref"):
        openrlhf.reward_func(["2 + 2? 4"], ["2 + 2?"], [""], config=str(path))
    find_shared_jury(str(path)).close()


class Sample:
    """A DataProto of one sample, as verl 0.9.1 hands it to `run_single`."""

    def __init__(self, text: str) -> None:
        tokens = np.array([ord(letter) for letter in text] + [0, 0])
        mask = np.array([1] * (3 + len(text)) + [0, 0])
        self.batch = {"responses": tokens, "attention_mask": mask}
        self.non_tensor_batch = {
            "data_source": "math",
            "reward_model": {"ground_truth": "4"},
            "raw_prompt": np.array([{"role": "user", "content": "2 + 2?"}], dtype=object),
            "extra_info": {"index": 3},
            "tool_extra_fields": {"turn_scores": [], "global_steps": 6},
        }

    def __getitem__(self, index: Any) -> "Sample":
        return self


class Tokenizer:
    def decode(self, tokens: Any, skip_special_tokens: bool) -> str:
        return "".join(map(chr, tokens))


def test_the_manager_of_verl_adds_the_prompt_and_the_size_of_the_group() -> None:
    seen: dict[str, Any] = {}

    async def record(**sample: Any) -> dict[str, Any]:
        seen.update(sample)
        return {"score": 0.5, "jury_task": "sum"}

    settings = {
        "actor_rollout_ref": {"rollout": {"n": 8}},
        "reward": {"custom_reward_function": {"reward_kwargs": {"url": "http://127.0.0.1:1"}}},
    }
    manager = JuryRewardManager(settings, Tokenizer(), record, reward_router_address=None)
    result = asyncio.run(manager.run_single(Sample("it is 0.5")))
    assert result["reward_score"] == 0.5
    assert (seen["solution_str"], seen["cohort_size"], seen["ground_truth"]) == (
        "it is 0.5",
        8,
        "4",
    )
    assert seen["extra_info"]["query"] == [{"role": "user", "content": "2 + 2?"}]
    assert seen["extra_info"]["global_steps"] == 6
    with pytest.raises(InputError, match="name `compute_score` of this module"):
        JuryRewardManager(settings, Tokenizer(), lambda **sample: 0.0)


@all_rows(
    "label, task",
    [("4", None), ("", None), (None, None), ('{"id": "sum", "reference": "4"}', "sum")],
)
def test_openrlhf_gets_rewards_of_what_follows_the_prompt(
    label: Any, task: str | None, config: str
) -> None:
    read, response = openrlhf.read_sample("2 + 2? it is 0.5", "2 + 2?", label)
    assert response.text == " it is 0.5"
    assert read.reference == (None if label in ("", None) else "4")
    assert task is None or read.id == task
    scored = openrlhf.reward_func(["2 + 2? it is 0.5"], ["2 + 2?"], [label], config=config)
    logs = {"jury_degraded": [0.0], "jury_graded": [0.5]}
    assert scored == {"rewards": [0.5], "scores": [0.5], "extra_logs": logs}


def test_samples_whose_tasks_have_other_components_have_the_same_keys(tmp_path: Path) -> None:
    path = tmp_path / "mixed.yaml"
    path.write_text(
        "evaluators:\n- tests.integrations.trainers.graded\n"
        "- {use: tests.integrations.trainers.met, if_missing: not_applicable}\n"
        "reward: {graded: 1.0, rubric: 0.5}\n"
    )
    labels = ["4", '{"rubric": {"criteria": [{"id": "a", "text": "It is a sum.", "weight": 1}]}}']
    scored = openrlhf.reward_func(
        ["2 + 2? it is 0.5"] * 2, ["2 + 2?"] * 2, labels, config=str(path)
    )
    missing, met = scored["extra_logs"]["jury_rubric"]
    assert (isnan(missing), met) == (True, 1.0)
    assert isnan(verl_score(str(path), "it is 0.5")["jury_rubric"])
    find_shared_jury(str(path)).close()


def test_openrlhf_gets_an_error_for_a_failed_reward(config: str) -> None:
    with pytest.raises(NoRewardError, match="1 of 1 rewards failed"):
        openrlhf.reward_func(["2 + 2? x"], ["2 + 2?"], ["4"], config=config)
    with pytest.raises(InputError, match="does not begin with its prompt"):
        openrlhf.reward_func(["it is 0.5"], ["2 + 2?"], ["4"], config=config)


def test_a_reward_that_lacks_coverage_says_how_much_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(
        "evaluators: [tests.integrations.trainers.graded, tests.integrations.trainers.stated]\n"
        "reward: {graded: 0.25, stated: 0.75}\n"
    )
    coverage = "0.75 of the weight was judged, and 0.8 is asked for (failure.min_coverage)"
    with pytest.raises(NoRewardError) as failed:
        openrlhf.reward_func(["2 + 2? x"], ["2 + 2?"], ["4"], config=str(path))
    assert str(failed.value) == (
        f"1 of 1 rewards failed, and `failed` is `raise`, by `auto`: there is no number; {coverage}"
    )
    filled = openrlhf.reward_func(["2 + 2? x"], ["2 + 2?"], ["4"], config=str(path), failed=-1.0)
    assert filled["rewards"] == [-1.0]
    assert isnan(filled["extra_logs"]["jury_stated"][0])
    find_shared_jury(str(path)).close()


@pytest.mark.parametrize("label", ['{"reference": "4"', '{"messages": []}'])
def test_a_label_that_begins_as_an_object_and_is_no_task_is_refused(
    config: str, label: str
) -> None:
    with pytest.raises(InputError, match="begins as a JSON object and is none of a task's fields"):
        openrlhf.reward_func(["2 + 2? it is 0.5"], ["2 + 2?"], [label], config=config)


@pytest.mark.parametrize(
    "label", ["{1, 2}", r"{\frac{1}{2}}", "{4", r"{}^{14}\mathrm{C}", '{"x", "y"}']
)
def test_a_label_in_braces_that_is_no_object_is_a_reference(label: str) -> None:
    assert read_label_fields(label) == {"reference": label}


TASK = SimpleNamespace(id="sum", prompt="2 + 2?", answer="4")


def test_verifiers_gets_what_each_component_adds_up_to_the_reward(tmp_path: Path) -> None:
    path = tmp_path / "jury.yaml"
    path.write_text(f"{GRADED}reward: {{graded: 2.0}}\nclip: [0, 1]\n", encoding="utf-8")

    class Judge(verifiers.JuryJudge):
        jury = path
        reference = "answer"

    judged = asyncio.run(Judge().score(TASK, SimpleNamespace(last_reply="it is 0.25")))
    assert judged == {"jury/graded": 0.5}
    clipped = asyncio.run(Judge().score(TASK, SimpleNamespace(last_reply="it is 0.75")))
    assert clipped == {"jury/graded": 1.5, "jury/rest": -0.5}, "the sum is the reward"
    with pytest.raises(NoRewardError, match="1 of 1 rewards failed"):
        asyncio.run(Judge().score(TASK, SimpleNamespace(last_reply="x")))
    find_shared_jury(path).close()


@pytest.mark.parametrize("field", ["answer", "reference"])
def test_a_filled_field_that_a_judge_of_verifiers_does_not_name_is_suggested(
    field: str, tmp_path: Path
) -> None:
    path = tmp_path / "needs.yaml"
    path.write_text("evaluators: [maths.accuracy]\n")

    class Judge(verifiers.JuryJudge):
        jury = path

    task = SimpleNamespace(id="sum", prompt="2 + 2?", name=None, **{field: "4"})
    problem = f'no reference to be judged by; did you mean `reference = "{field}"` in the class'
    with pytest.raises(NoRewardError, match=problem):
        asyncio.run(Judge().score(task, SimpleNamespace(last_reply="4")))
    find_shared_jury(path).close()
