"""The example's plans in words before a whole jury whose extractor errs: no error that is caught raises a reward."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from jurygraph import Jury, Task
from jurygraph.schema import Response
from jurygraph.sources import read_config, read_tasks
from tests.agents.extraction.errors import ERRORS
from tests.agents.extraction.extractor import Reader, Reply, read_perfectly, reader_script
from tests.agents.extraction.plans import CONFIG
from tests.models.server import run_server

CONFIG_FIELDS: Any = read_config(CONFIG).model_dump(mode="json", exclude_defaults=True)
DECIDED = {
    "derivers": CONFIG_FIELDS["derivers"],
    "evaluators": [one for one in CONFIG_FIELDS["evaluators"] if one["use"] != "preferences"],
    "weights": {"layers": {"fact": 0.4, "check": 0.6}, "temperature": 2, "cap": 0.5},
}
"""The example without the wishes that a model judges."""

INVISIBLE = "\u2060"

Group = tuple[Task, tuple[Response, ...]]


@pytest.fixture(scope="module")
def groups() -> list[Group]:
    """Three groups of the example; of each traveller what a check decides."""
    found = list(read_tasks(CONFIG.parent / "prose.jsonl.gz"))
    return [(_checked(task), responses) for task, responses in found[::4]]


def _checked(task: Task) -> Task:
    travellers = tuple(
        one.model_copy(update={"constraints": tuple(c for c in one.constraints if c.check is not None)})
        for one in task.stakeholders
    )
    return task.model_copy(update={"stakeholders": travellers})


@pytest.fixture(autouse=True, scope="module")
def _alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JURYGRAPH_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def rewards(reader: Reader, groups: Sequence[Group]) -> dict[str, float]:
    """The reward of each response, read like that."""
    calls = {"cache": False}
    with run_server(reader_script(reader)) as server:
        config = {**DECIDED, "calls": calls, "model": f"openai-compatible:{server.url}#tiny"}
        with Jury.from_config(config) as jury:
            traces = [trace for group in groups for trace in jury.score(*group)]
    found = {trace.response_id: trace.reward.value for trace in traces}
    assert None not in found.values()
    return {name: value for name, value in found.items() if value is not None}


def read_visible(text: str, query: str) -> Reply:
    """Return the reply of a perfect reader who sees no invisible characters."""
    return read_perfectly(text.replace(INVISIBLE, ""))


@pytest.fixture(scope="module")
def plain_rewards(groups: list[Group]) -> dict[str, float]:
    return rewards(read_visible, groups)


@pytest.mark.exhaustive
@pytest.mark.parametrize("error", [name for name, error in ERRORS.items() if error.caught])
def test_no_error_that_is_caught_raises_a_reward(
    error: str, groups: list[Group], plain_rewards: dict[str, float]
) -> None:
    damaged: list[str] = []

    def make_errors(text: str, query: str) -> Reply:
        reply = read_perfectly(text)
        damaged.extend([text] * (ERRORS[error].damage(reply, text, query) is not None))
        return reply

    found = rewards(make_errors, groups)
    assert {name: value for name, value in found.items() if value > plain_rewards[name]} == {}
    assert (found == plain_rewards) is (error == "written down twice")
    assert damaged


@pytest.mark.exhaustive
def test_an_invisible_character_in_an_invented_name_raises_no_reward(
    groups: list[Group], plain_rewards: dict[str, float]
) -> None:
    hidden = [(task, tuple(map(_with_an_invisible_character, responses))) for task, responses in groups]
    changed = [one.id for _, responses in hidden for one in responses if INVISIBLE in one.text]
    assert len(changed) == len(groups)
    found = rewards(read_visible, hidden)
    assert all(found[name] <= plain_rewards[name] for name in changed)
    assert all(found[name] == plain_rewards[name] for name in found.keys() - set(changed))


def _with_an_invisible_character(response: Response) -> Response:
    if response.labels.get("fault") != "invented restaurant":
        return response
    return response.model_copy(update={"text": response.text.replace("Gilded", f"Gil{INVISIBLE}ded")})
