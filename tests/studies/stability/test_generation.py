"""Tasks of presentations: facts and checks judge the data that each text gives, and find the same to the last bit."""

import gzip
import json
from contextlib import closing
from pathlib import Path

import pytest

from jurygraph.errors import InputError
from jurygraph.runs.run import Run
from jurygraph.schema import Response, Task
from jurygraph.sources import read_tasks
from jurygraph.studies.presentations import generate_presentations, read_run
from jurygraph.studies.stability import measure_stability
from tests.command import run_command
from tests.studies.figures import figures_of

TRIP = Path(__file__).parents[3] / "examples" / "group_trip"


def check_rewards(folder: Path, tasks: int) -> None:
    lines = gzip.decompress((TRIP / "tasks.jsonl.gz").read_bytes()).splitlines(keepends=True)[
        :tasks
    ]
    (folder / "tasks.jsonl").write_bytes(b"".join(lines))
    made, _ = generate_presentations(list(read_tasks(str(folder / "tasks.jsonl"))))
    (folder / "variants.jsonl").write_bytes(b"".join(made))
    for name in ("tasks", "variants"):
        config = ("--config", TRIP / "jury.yaml")
        assert (
            run_command("score", folder / f"{name}.jsonl", *config, "--out", folder / name).code
            == 0
        )
    with closing(Run.open(folder / "tasks")) as run:
        rewards = {trace.response_id: trace.reward for trace in run.traces()}
    with closing(Run.open(folder / "variants")) as run:
        traces = list(run.traces())
        scores = read_run(run)
    assert len(traces) == 16 * len(rewards) == 16 * 6 * tasks
    for trace in traces:
        seed = rewards[str(trace.labels["seed"])]
        assert (trace.reward.value, trace.reward.parts) == (seed.value, seed.parts)
    report = figures_of(measure_stability(scores))
    assert {unit.semantic for unit in report.units} == {0.0}
    assert {unit.variants for unit in report.units} == {15}


def test_variants_have_the_rewards_of_their_seed_bit_for_bit(tmp_path: Path) -> None:
    check_rewards(tmp_path, 1)


@pytest.mark.exhaustive
def test_so_have_the_variants_of_all_plans(tmp_path: Path) -> None:
    check_rewards(tmp_path, 10)


def test_what_is_undefined_is_counted_and_labels_lead_to_the_seed(tmp_path: Path) -> None:
    plan = {
        "itinerary": [{"day": 1, "what": "ferry"}],
        "tradeoffs": ["no hike", "early start", "one museum less"],
    }
    responses = [
        Response(id="a", text="x", data=plan, labels={"quality": "high"}),
        Response(id="b", text="no data"),
    ]
    lines, report = generate_presentations([(Task(id="t", query="?"), responses)])
    figures = figures_of(report)
    assert (figures.structured, figures.left_out) == (1, 1)
    assert figures.undefined == dict.fromkeys(
        ("stakeholder-section-order", "satisfaction-summary-order", "shared-benefit-attribution"), 1
    )
    assert figures.variants["trade-off-order"] == 5
    path = tmp_path / "variants.jsonl"
    path.write_bytes(b"".join(lines))
    ((_, shown),) = read_tasks(path)
    assert json.loads(lines[0])["responses"][0]["labels"] == {"quality": "high", "seed": "a"}
    assert shown[1].labels == {
        "quality": "high",
        "seed": "a",
        "family": "trade-off-order",
        "version": 1,
    }
    originals, _ = generate_presentations([(Task(id="t", query="?"), responses)], versions=0)
    assert len(json.loads(originals[0])["responses"]) == 1
    with pytest.raises(InputError, match="none of 1 responses has structured data"):
        generate_presentations([(Task(id="t", query="?"), responses[1:])])
