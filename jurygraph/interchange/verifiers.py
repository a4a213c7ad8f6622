"""Traces of verifiers: the episodes that 0.4 writes (`traces.jsonl`).

An episode has the traces of its agents: graphs of messages, of which the path to the last message is read. Episodes of
one task are trials.
"""

from collections.abc import Sequence

from pydantic import Field

from jurygraph.interchange.rows import ImportedRow, ImportNote, nonempty_fields
from jurygraph.interchange.trials import (
    FileLocation,
    Trial,
    TrialsAndNotes,
    make_trials_reader,
    read_located_lines,
)
from jurygraph.schema.frozen_model import (
    EMPTY_OBJECT,
    Count,
    JsonFields,
    JsonObject,
    Number,
    StrPath,
    digest_of,
)

OMITTED_BRANCHES_IMPORT_NOTE = "messages off the path to the last one are left out"
NO_MESSAGES_IMPORT_NOTE = "traces without messages are left out"
NO_REWARD_IMPORT_NOTE = "traces that failed, or have no complete reward, have no label `reward`"


class Node(ImportedRow):
    message: JsonFields
    parent: Count | None = None
    sampled: bool = False


class WeightedReward(ImportedRow):
    score: Number
    weight: Number = 1.0


class Agent(ImportedRow):
    name: str | None = None


class TaskData(ImportedRow):
    answer: str | None = None
    id: str | None = None
    idx: int | None = None


class TracedTask(ImportedRow):
    data: TaskData
    key: str | None = None


class AgentTrace(ImportedRow):
    id: str
    task: TracedTask
    agent: Agent = Field(default_factory=Agent)
    nodes: tuple[Node, ...] = ()
    tools: tuple[JsonFields, ...] = ()
    rewards: dict[str, WeightedReward | None] = EMPTY_OBJECT
    ok: bool = False


class Episode(ImportedRow):
    traces: tuple[AgentTrace, ...] = Field(
        description="the episodes of 0.4 are read, and not its older rows of `prompt` and `completion`"
    )


def _read_verifiers_trials(path: StrPath) -> TrialsAndNotes:
    for location, episode in read_located_lines(path, Episode):
        for index, trace in enumerate(episode.traces):
            yield _to_trial(location, index, trace, episode.other)


def _to_trial(
    location: FileLocation, index: int, trace: AgentTrace, episode_metadata: JsonFields
) -> Trial | ImportNote:
    path = _find_path_to_last_node(location, index, trace.nodes)
    if not path:
        return ImportNote(NO_MESSAGES_IMPORT_NOTE, trace.id)
    nodes = [trace.nodes[number] for number in path]
    messages = location.messages([node.message for node in nodes], "traces", index, "messages")
    sampled_node_indices = (number for number, node in enumerate(nodes) if node.sampled)
    start = next(sampled_node_indices, len(nodes))
    notes = (
        [ImportNote(OMITTED_BRANCHES_IMPORT_NOTE, trace.id)] if len(path) < len(trace.nodes) else []
    )
    labels = {name: reward and reward.score for name, reward in trace.rewards.items()}
    rewards = list(trace.rewards.values())
    if trace.ok and rewards and None not in rewards:
        labels["reward"] = sum(reward.score * reward.weight for reward in rewards if reward)
    else:
        notes.append(ImportNote(NO_REWARD_IMPORT_NOTE, trace.id))
    data = trace.task.data
    position = None if data.idx is None else str(data.idx)
    task = trace.task.key or data.id or position or f"task-{digest_of(data.other)[:12]}"
    tools = [_to_openai_tool(tool) for tool in trace.tools]
    weights = {name: reward.weight for name, reward in trace.rewards.items() if reward is not None}
    metadata = {**trace.other, "episode": episode_metadata, "weights": weights}
    return Trial(
        location=location,
        task=task,
        query=messages[:start],
        answer=messages[start:],
        name=trace.id,
        about={"reference": data.answer, "tools": tools or None, "metadata": data.other},
        response={
            "agent": trace.agent.name,
            "labels": nonempty_fields(**labels),
            "metadata": nonempty_fields(**metadata),
        },
        notes=notes,
    )


def _find_path_to_last_node(location: FileLocation, index: int, nodes: Sequence[Node]) -> list[int]:
    """Return the indices of the nodes from the root to the last one. Raises InputError for a wrong parent."""
    path = []
    number = len(nodes) - 1 if nodes else None
    while number is not None:
        path.append(number)
        parent = nodes[number].parent
        if parent is not None and parent >= number:
            field = ("traces", index, "nodes", number, "parent")
            location.refuse(field, f"is {parent}", "a parent comes before its node")
        number = parent
    return path[::-1]


def _to_openai_tool(tool: JsonFields) -> JsonObject:
    function = {name: value for name, value in tool.items() if name != "type"}
    return tool if "function" in tool else {"type": "function", "function": function}


read_verifiers_traces = make_trials_reader(_read_verifiers_trials, "verifiers' traces.jsonl")
