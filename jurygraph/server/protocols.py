"""The protocols of trainers: a body becomes submissions, and scored ones become a reply.

    /v1/score    our own: a task and its responses, traces in reply
    /get_reward  OpenRLHF's remote reward model
    /rm          slime's `remote_rm`
    /verify      NeMo Gym's resources server

Only our own has a mask for a reward that failed: `null`. For the others `auto` fills in the mean of the cohort, or
refuses the request. NeMo Gym has a flag, which not every trainer of it honours, so that it is taken only on demand.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import fsum, nan
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue

from jurygraph.integrations.failed_rewards import FailedRewardRule, first_failure
from jurygraph.integrations.samples import (
    DEFAULT_COLUMN_BY_FIELD,
    complete_task_content,
    read_label_fields,
    read_response,
    read_task,
    read_task_fields,
)
from jurygraph.interchange.traces import trace_to_json_line
from jurygraph.messages import Problem, describe_value, validate
from jurygraph.schema import Response, Task, Trace
from jurygraph.schema.frozen_model import Count, FrozenModel, Id, JsonMapping, JsonObject
from jurygraph.server.reward_service import RewardService, ScoredSubmission, Submission
from jurygraph.server.settings import RequestRefusedError


class CohortBody(FrozenModel):
    """The group to which the responses belong, if they are not all of it."""

    size: int = Field(strict=True, ge=1)


def _to_response(item: Any) -> Any:
    return {"text": item} if isinstance(item, str) else item


_TextOrResponse = Annotated[
    Response, BeforeValidator(_to_response, json_schema_input_type=str | Response)
]


class ScoreBody(FrozenModel):
    """Responses to a task, which comes whole or is one of the server's tasks.

    Without a `cohort` the responses are a whole group. `step` and `policy` tell its groups apart: they are the step
    and the phase of the recorded run, and labels of the responses that have none of these names.
    """

    task: Annotated[Task, BeforeValidator(complete_task_content)] | None = None
    task_id: Id | None = None
    responses: tuple[_TextOrResponse, ...] = Field(min_length=1)
    step: Count | None = None
    policy: Id | None = None
    cohort: CohortBody | None = None


class _TrainerBody(FrozenModel):
    """A body whose other fields are the trainer's, and are not read."""

    model_config = ConfigDict(extra="ignore")


class GetRewardBody(_TrainerBody):
    """Samples of OpenRLHF: `query` is the prompt and what follows; `labels` name tasks of the server, or references."""

    query: tuple[str, ...] = Field(min_length=1)
    prompts: tuple[str, ...]
    labels: tuple[JsonValue, ...] | None = None


class RmBody(_TrainerBody):
    """A sample of slime; `label` names a task of the server, or is the reference."""

    prompt: str | list[JsonObject]
    response: str
    label: JsonValue = None


class VerifyBody(_TrainerBody):
    """A sample of NeMo Gym. `task_id` names a task of the server; else its parts may be fields of the row."""

    model_config = ConfigDict(extra="allow")

    responses_create_params: JsonObject
    response: JsonObject
    task_id: Id | None = None
    reference: str | None = None
    rubric: JsonObject | list[JsonValue] | str | None = None
    stakeholders: list[JsonValue] | None = None


class EndpointProtocol(ABC):
    """One endpoint: reads bodies, and writes replies. `masking_rules` are the rules that it can express."""

    path: ClassVar[str]
    body: ClassVar[type[FrozenModel]]
    automatic_rule: ClassVar[FailedRewardRule] = "raise"
    automatic_cohort_rule: ClassVar[FailedRewardRule] = "neutral"
    masking_rules: ClassVar[tuple[FailedRewardRule, ...]] = ()

    def __init__(self, service: RewardService) -> None:
        self._settings = service.settings
        self._plans = service.plans
        self._component_names = service.component_names

    @abstractmethod
    def read(self, content: Any) -> list[Submission]:
        """Return what a body submits. Raises `RequestRefusedError` with status 422 that names the field."""

    @abstractmethod
    def write(self, content: Any, scored: Sequence[ScoredSubmission]) -> bytes:
        """Return the reply to a body whose submissions are scored."""

    def names_cohort(self, content: Any) -> bool:
        """Return whether a body, which may be wrong, has members of a cohort: two of them may be equal."""
        return self._settings.group_size is not None

    def choose_failed_reward_rule(self, submission: Submission) -> FailedRewardRule:
        """Return what a failed reward of a submission becomes; a mask that the protocol does not have refuses it."""
        rule = self._settings.failed
        if rule is None:
            belongs_to_cohort = submission.cohort_size is not None
            return self.automatic_cohort_rule if belongs_to_cohort else self.automatic_rule
        if rule in ("none", "mask") and rule not in self.masking_rules:
            return "raise"
        return rule

    def _to_submission(self, prompt: Any, label: Any, response: Response, field: str) -> Submission:
        """Return one sample. Its label names a task of the server that has a file of tasks; else it is the reference of
        the prompt, or has the parts of a task in JSON. Raises `RequestRefusedError` for the id of no task, or of
        another prompt's.
        """
        size = self._settings.group_size
        if self._plans.has_tasks_file:
            name = label if isinstance(label, str) else json.dumps(label, ensure_ascii=False)
            planned_task = self._plans.find(name, field)
            _require_query_in_prompt(planned_task.task, prompt)
            return Submission(task_id=planned_task.task.id, responses=[response], cohort_size=size)
        parts = read_label_fields(label)
        task = read_task(parts.pop("query", prompt), parts)
        return Submission(task=task, responses=[response], cohort_size=size)


class ScoreProtocol(EndpointProtocol):
    """Our own protocol."""

    path = "/v1/score"
    body = ScoreBody
    automatic_rule = automatic_cohort_rule = "none"
    masking_rules = ("none", "mask")

    def names_cohort(self, content: Any) -> bool:
        """Return whether a body names its cohort itself."""
        return isinstance(content, dict) and content.get("cohort") is not None

    def read(self, content: Any) -> list[Submission]:
        """Return the submission of a body."""
        if isinstance(content, dict) and "task" in content:
            # before the model does it, so that a message is about the fields that are validated
            content = {**content, "task": complete_task_content(content["task"])}
        body = _validate_body(ScoreBody, content)
        if (body.task is None) == (body.task_id is None):
            problem = "is given, and so is `task_id`" if body.task else "is missing"
            raise RequestRefusedError(422, f"task: {problem}; give one of `task` and `task_id`")
        names = {"step": body.step, "policy": body.policy}
        labels = {name: value for name, value in names.items() if value is not None}
        responses = [
            response.model_copy(update={"labels": {**labels, **response.labels}})
            for response in body.responses
        ]
        submission = Submission(
            responses=responses if labels else body.responses,
            task=body.task,
            task_id=body.task_id,
            step=body.step,
            policy=body.policy,
            cohort_size=None if body.cohort is None else body.cohort.size,
        )
        return [submission]

    def write(self, content: Any, scored: Sequence[ScoredSubmission]) -> bytes:
        """Return traces as `show --json` has them, and the rewards."""
        (group,) = scored
        traces = b",".join(trace_to_json_line(trace) for trace in group.traces)
        rest = {"rewards": group.rewards, "filled": group.filled, "factor": group.factor}
        return b'{"traces":[' + traces + b"]," + _to_json_bytes(rest)[1:]


class OpenRlhfProtocol(EndpointProtocol):
    """OpenRLHF's remote reward model."""

    path = "/get_reward"
    body = GetRewardBody

    def read(self, content: Any) -> list[Submission]:
        """Return a submission for each sample."""
        body = _validate_body(GetRewardBody, content)
        labels = [None] * len(body.query) if body.labels is None else body.labels
        if not len(body.query) == len(body.prompts) == len(labels):
            raise RequestRefusedError(
                422,
                f"query has {len(body.query)}, prompts {len(body.prompts)}, labels {len(labels)} entries; "
                "give each sample one of each",
            )
        submissions = []
        for index, query in enumerate(body.query):
            prompt = body.prompts[index]
            if not query.startswith(prompt):
                raise RequestRefusedError(
                    422,
                    f"query[{index}]: does not begin with its prompt; send both decoded in the same way",
                )
            response = Response(text=query[len(prompt) :])
            submissions.append(
                self._to_submission(prompt, labels[index], response, f"labels[{index}]")
            )
        return submissions

    def write(self, content: Any, scored: Sequence[ScoredSubmission]) -> bytes:
        """Return rewards, and as logs the coverage, whether a reward was filled in, and every component.

        OpenRLHF batches logs by the names of the first sample, so that each has all: NaN where there is no value, which
        its client reads, while a null would stop it.
        """
        traces = [trace for sample in scored for trace in sample.traces]
        rewards = [reward for sample in scored for reward in sample.rewards]
        logged_values = {
            "coverage": [trace.reward.coverage for trace in traces],
            "filled": [float(trace.reward.value is None) for trace in traces],
        }
        for name in self._component_names:
            values = [trace.reward.components.get(name) for trace in traces]
            logged_values[name] = [nan if value is None else value for value in values]
        reply = {"rewards": rewards, "scores": rewards, "extra_logs": logged_values}
        return _to_json_bytes(reply, allow_nan=True)


class SlimeProtocol(EndpointProtocol):
    """slime's remote reward model."""

    path = "/rm"
    body = RmBody

    def read(self, content: Any) -> list[Submission]:
        """Return the submission of a sample."""
        body = _validate_body(RmBody, content)
        return [self._to_submission(body.prompt, body.label, Response(text=body.response), "label")]

    def write(self, content: Any, scored: Sequence[ScoredSubmission]) -> bytes:
        """Return the reward alone: slime takes the whole reply as the reward."""
        return _to_json_bytes(scored[0].rewards[0])


class NemoGymProtocol(EndpointProtocol):
    """NeMo Gym's resources server."""

    path = "/verify"
    body = VerifyBody
    masking_rules = ("mask",)

    def read(self, content: Any) -> list[Submission]:
        """Return the submission of a row."""
        body = _validate_body(VerifyBody, content)
        response = _read_openai_output(body.response)
        size = self._settings.group_size
        if body.task_id is not None and self._plans.has_tasks_file:
            task_id = self._plans.find(body.task_id).task.id
            return [Submission(task_id=task_id, responses=[response], cohort_size=size)]
        prompt = body.responses_create_params.get("input")
        if not isinstance(prompt, str | list):
            raise RequestRefusedError(
                422,
                f"responses_create_params.input: is {describe_value(prompt)}; "
                "write text, or a list of messages",
            )
        instructions = body.responses_create_params.get("instructions")
        if isinstance(instructions, str) and instructions:
            messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
            prompt = [{"role": "system", "content": instructions}, *(messages or [])]
        task = read_task(prompt, read_task_fields(dict(body), DEFAULT_COLUMN_BY_FIELD))
        return [Submission(task=task, responses=[response], cohort_size=size)]

    def write(self, content: Any, scored: Sequence[ScoredSubmission]) -> bytes:
        """Return the row with the reward and its components; a failed judge is named, and masked by that rule."""
        trace = scored[0].traces[0]
        reward = scored[0].rewards[0]
        is_failed = trace.reward.value is None
        value = 0.0 if reward is None else reward
        # NeMo Gym requires the same names of every row, and reads no NaN: a failed reward has the means of its group,
        # which are no other's loss
        source_traces = scored[0].group_traces if is_failed else [trace]
        judged_traces = [source for source in source_traces if source.reward.value is not None]
        components = {
            name: _mean_of_component(name, judged_traces) if judged_traces else value
            for name in self._component_names
        }
        reply = {**content, "reward": value, "reward_components": components}
        if is_failed:
            reason = first_failure([trace]) or "the judge gave no reward"
            reply["failure_reason"] = reason
            reply["_ng_failure_class"] = "judge_failed"
            reply["_ng_failure_judge_error"] = reason
        if reward is None:
            config = content.get("instance_config")
            settings = config if isinstance(config, dict) else {}
            reply["instance_config"] = {**settings, "mask_sample": True}
        return _to_json_bytes(reply)


PROTOCOL_CLASSES = (
    ScoreProtocol,
    OpenRlhfProtocol,
    SlimeProtocol,
    NemoGymProtocol,
)


def _mean_of_component(name: str, traces: Sequence[Trace]) -> float:
    """Return the mean of a component, 0 where it does not apply: there it adds nothing to the reward."""
    return fsum(trace.reward.components.get(name) or 0.0 for trace in traces) / len(traces)


def _to_json_bytes(value: Any, allow_nan: bool = False) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=allow_nan).encode()


def _validate_body(model: Any, content: Any) -> Any:
    """Return a body as its model. Raises `RequestRefusedError` that names the field."""
    body = validate(model, content)
    if isinstance(body, Problem):
        raise RequestRefusedError(422, f"{body.field or 'the body'}: {body}")
    return body


def _require_query_in_prompt(task: Task, prompt: Any) -> None:
    """Raise `RequestRefusedError` where a prompt, which may have a chat's template around it, does not hold the task's
    query."""
    if not isinstance(task.query, str) or not isinstance(prompt, str):
        return
    if "".join(task.query.split()) not in "".join(prompt.split()):
        raise RequestRefusedError(
            422,
            f"label: task {task.id!r} has another query than the prompt; "
            "with --tasks a label is the id of the prompt's task",
        )


def _read_openai_output(reply: JsonMapping) -> Response:
    """Return the output of OpenAI's Responses as a response: its text, or messages where tools were called."""
    messages = []
    output = reply.get("output")
    if not isinstance(output, list):
        raise RequestRefusedError(
            422, f"response.output: is {describe_value(output)}; send OpenAI's Responses object"
        )
    for item in output:
        kind = item.get("type", "message") if isinstance(item, Mapping) else None
        if kind == "message":
            content = item.get("content")
            if not isinstance(content, str | list):
                raise RequestRefusedError(
                    422,
                    f"response.output: a message's content is {describe_value(content)}; "
                    "write text, or a list of parts",
                )
            messages.append({"role": item.get("role", "assistant"), "content": content})
        elif kind == "function_call":
            function = {"name": item.get("name"), "arguments": item.get("arguments", "{}")}
            call = {"id": item.get("call_id") or "", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif kind == "function_call_output":
            name = item.get("call_id")
            messages.append({"role": "tool", "tool_call_id": name, "content": item.get("output")})
    if not messages:
        raise RequestRefusedError(
            422, "response.output: has no message; send OpenAI's Responses object"
        )
    (first, *others) = messages
    texts = [] if others else [_text_of_message_part(part) for part in first["content"] or ()]
    if texts and None not in texts:
        return Response(text="".join(str(text) for text in texts))
    return read_response(messages)


def _text_of_message_part(part: Any) -> str | None:
    """Return the text of a part of a message; None for anything else."""
    if isinstance(part, str):
        return part
    is_text_part = isinstance(part, Mapping) and part.get("type") == "output_text"
    text = part.get("text") if is_text_part else None
    return text if isinstance(text, str) else None
