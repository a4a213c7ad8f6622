"""Rewards for verl: `compute_score` for its reward loop, and a reward manager that knows prompt and group size.

verl's workers get samples of a group at random (verl 0.9.1, agent_loop.py: `random.choice`), and nothing it has says
that a sample is without a reward: NaN spreads to the group's mean, and None drops all scores. A failed reward is
therefore an error here, unless the server fills in the group's mean.

    reward.custom_reward_function.path=pkg://jurygraph.integrations.verl
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.config=jury.yaml     # or .url=http://127.0.0.1:7577
"""

import inspect
import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from jurygraph.errors import InputError, NoRewardError
from jurygraph.integrations.client import RewardClient
from jurygraph.integrations.lazy_jury import find_shared_jury
from jurygraph.integrations.samples import (
    DEFAULT_COLUMN_BY_FIELD,
    read_response,
    read_task,
    read_task_fields,
)
from jurygraph.integrations.single_samples import judge_sample, read_components
from jurygraph.messages import describe_value

_get_cached_client = lru_cache(maxsize=64)(RewardClient)


async def compute_score(
    data_source: Any,
    solution_str: str,
    ground_truth: Any,
    extra_info: Mapping[str, Any] | None = None,
    *,
    config: str | Path | None = None,
    url: str | None = None,
    token: str | None = None,
    record: str | Path | None = None,
    failed: str | float = "auto",
    cohort_size: int | None = None,
    **others: Any,
) -> dict[str, Any]:
    """Return the reward of a sample as `score`, with the id of its task and, in process, its components.

    The task is in `extra_info`: by `query` (else `question`) with `task_id`, `rubric` and `stakeholders`; or as `task`,
    a mapping or its JSON, which they complete. Its reference is `ground_truth`. With a `url` the `task_id` of a plan of
    the server is enough, and `cohort_size` is the number of samples of a prompt. The label `step` is `step` or
    `global_step` in `extra_info`, else the step that verl itself is at (0.8 and later). `failed` is `raise` (`auto`) or
    a number; the server has a setting of its own.

    Raises `NoRewardError` for a failed reward, `InputError` for wrong settings or samples.
    """
    if (config is None) == (url is None):
        raise InputError(
            "reward_kwargs: give `config`, a file, or `url`, that of `jurygraph serve`"
        )
    extra_info_fields = dict(extra_info or {})
    if url is not None:
        return await _ask_server(
            _get_cached_client(url, token),
            solution_str,
            ground_truth,
            extra_info_fields,
            cohort_size,
        )
    assert config is not None
    jury = find_shared_jury(config, record)
    task = read_task(*_read_extra_fields(extra_info_fields, ground_truth))
    response = read_response(solution_str, _read_labels(extra_info_fields))
    trace, value = await judge_sample(jury, task, response, failed, _FIELDS_HINT)
    return {"score": value, "jury_task": task.id, **read_components(jury.open(), trace)}


async def _ask_server(
    client: RewardClient,
    solution: str,
    ground_truth: Any,
    extra_info_fields: Mapping[str, Any],
    cohort_size: int | None,
) -> dict[str, Any]:
    task: dict[str, Any] | None = None
    task_id = extra_info_fields.get("task_id")
    if "task" in extra_info_fields or _read_query(extra_info_fields) is not None:
        query, parts = _read_extra_fields(extra_info_fields, ground_truth)
        task = read_task(query, parts).model_dump(mode="json", exclude_defaults=True)
        task_id = task["id"]
    elif task_id is None:
        raise _missing_task_error(extra_info_fields)
    reply = await client.score(
        [{"text": solution, "labels": _read_labels(extra_info_fields)}],
        task=task,
        task_id=None if task is not None else task_id,
        step=extra_info_fields.get("global_step"),
        cohort_size=cohort_size,
    )
    (reward,) = reply.rewards
    if reward is None:
        problem = f"task {task_id!r}: the judge failed, and verl has no mask"
        raise NoRewardError(f"{problem}; start the server with `--failed neutral`")
    return {"score": reward, "jury_task": task_id}


def _read_labels(extra_info_fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the label `step` of a sample; none where neither its row nor verl has one.

    verl tells which weights answered, `global_steps`: step 1 has those of step 0 (0.9.0, ray_trainer.py). That names no
    group: members of an asynchronous training may have others.
    """
    step = extra_info_fields.get("step", extra_info_fields.get("global_step"))
    weights_step = extra_info_fields.get("global_steps")
    if step is None and weights_step is not None:
        step = weights_step + 1
    return {} if step is None else {"step": step}


_FIELDS_HINT = "give the reference as `ground_truth`, and a rubric as `rubric` in `extra_info`"


def _read_query(extra_info_fields: Mapping[str, Any]) -> Any:
    query = extra_info_fields.get("query")
    return extra_info_fields.get("question") if query is None else query


def _read_extra_fields(
    extra_info_fields: Mapping[str, Any], ground_truth: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the query of a sample, and the other parts of its task."""
    content = extra_info_fields.get("task")
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except ValueError as error:
            raise InputError(f"extra_info.task: is no JSON ({error})") from None
    query = _read_query(extra_info_fields)
    parts = read_task_fields(extra_info_fields, DEFAULT_COLUMN_BY_FIELD)
    if isinstance(content, Mapping):
        parts |= content
        query = parts.pop("query", query)
    if query is None:
        raise _missing_task_error(extra_info_fields)
    if not isinstance(ground_truth, str | int | float | None):
        problem = f"ground_truth: is {describe_value(ground_truth)}"
        raise InputError(f"{problem}; write the reference as text, or `extra_info.task`")
    if ground_truth not in (None, ""):
        parts.setdefault("reference", str(ground_truth))
    return query, parts


def _missing_task_error(extra_info_fields: Mapping[str, Any]) -> InputError:
    field_names_text = ", ".join(sorted(extra_info_fields)) or "nothing"
    return InputError(
        f"extra_info: has no `task` and no `query` of the sample; it has {field_names_text}"
    )


class JuryRewardManager:
    """A reward manager that gives `compute_score` the prompt of a sample, and the number of samples of a prompt.

    reward.reward_manager.source=importlib
    reward.reward_manager.name=JuryRewardManager
    reward.reward_manager.module.path=pkg://jurygraph.integrations.verl

    Only with it does the server know a group's size, which is the rollout's `n`.
    """

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any, **others: Any) -> None:
        self._tokenizer = tokenizer
        if not inspect.iscoroutinefunction(compute_score):
            raise InputError("reward.custom_reward_function: name `compute_score` of this module")
        self._compute_score = compute_score
        rollout_config = config["actor_rollout_ref"]["rollout"]
        size = int(rollout_config.get("n") or 1)
        reward_kwargs = config["reward"]["custom_reward_function"].get("reward_kwargs") or {}
        self._cohort_size = size if size > 1 and reward_kwargs.get("url") else None

    async def run_single(self, data: Any) -> dict[str, Any]:
        """Return the reward of one sample, the last of its sequences, in verl's form."""
        sample = data[-1:][0]
        columns = sample.non_tensor_batch
        response = sample.batch["responses"]
        length = int(sample.batch["attention_mask"][-response.shape[-1] :].sum())
        # as verl's own managers add what the rollout says
        extra_info_fields = {
            **(columns.get("extra_info") or {}),
            **columns.get("tool_extra_fields", {}),
        }
        if (
            extra_info_fields.get("task") is None
            and _read_query(extra_info_fields) is None
            and "raw_prompt" in columns
        ):
            extra_info_fields["query"] = [dict(message) for message in columns["raw_prompt"]]
        result = await self._compute_score(
            data_source=columns.get("data_source"),
            solution_str=self._tokenizer.decode(response[:length], skip_special_tokens=True),
            ground_truth=columns["reward_model"]["ground_truth"],
            extra_info=extra_info_fields,
            cohort_size=self._cohort_size,
        )
        return {"reward_score": result["score"], "reward_extra_info": result}

    @classmethod
    def assemble_rm_scores(cls, data: Any, scores: list[float]) -> Any:
        """Return the scores at the last token of each response, as verl's own managers do."""
        from verl.experimental.reward_loop.reward_manager.base import (  # type: ignore[import-not-found]
            RewardManagerBase,
        )

        return RewardManagerBase.assemble_rm_scores(data, scores)
