"""The families that a model writes: versions are kept if they say the same, and counted if they do not."""

import json
from pathlib import Path

import jurygraph as jg
from jurygraph.agents.presentation.rewrites import REWRITINGS, rewrite_data
from jurygraph.agents.presentation.variants import PresentationSet
from jurygraph.planner import Planner
from jurygraph.sources import read_tasks
from jurygraph.studies.presentations import generate_presentations

PLAN = {
    "itinerary": [{"time": "09:00", "what": "ferry"}],
    "tradeoffs": ["no hike", "an early start", "one museum"],
}


def passages(**changed: str) -> str:
    """Return the reply with every statement of the plan."""
    said = {
        "s1": "At 09:00 leaves the ferry.",
        "s2": "There is no hike.",
        "s3": "The start is early.",
        "s4": "There is one museum.",
    }
    return json.dumps(
        {"passages": [{"statement": name, "text": text} for name, text in (said | changed).items()]}
    )


REPLIES = {
    "to the beginning": passages(s1="At 10:00 leaves the ferry."),
    "no single stakeholder": passages(s3="The start is early as well."),
    "Use full sentences": passages(
        s1="At 09:00 goes the ferry.", s4="One of the museums is left out."
    ),
    "synonyms": passages(s4="One of the museums is left out."),
    "Begin with causes": passages(s1="At 09:00 goes the ferry."),
    "": passages(),
}
"""By what the request has in it; the second version of topic-position has another time."""


def write_versions(versions: int) -> tuple[PresentationSet, int]:
    judge = jg.testing.ScriptedJudge(REPLIES)
    with jg.Jury(model=judge, evaluators=["criteria"]) as jury:
        made = jury.run(
            Planner(jury).arun_with_client(lambda client: rewrite_data(PLAN, client, versions))
        )
    assert made is not None
    return made, len(judge.requests)


def test_versions_that_say_something_else_are_discarded_and_their_family_is_undefined() -> None:
    made, requests = write_versions(2)
    assert requests == 6, "two for each family that is defined: nobody is under-served in this plan"
    assert [(one.family, one.version) for one in made.variants] == [
        ("causal-direction", 1),
        ("causal-direction", 2),
        ("paraphrase", 1),
        ("paraphrase", 2),
    ]
    assert (
        len({one.text for one in made.variants[:2]})
        == len({one.text for one in made.variants[2:]})
        == 2
    )
    assert (made.discarded, made.broken) == ({"topic-position": 1}, {"times": 1})
    assert set(made.undefined) == {"under-served-evidence", "topic-position"}
    assert set(made.undefined) | {one.family for one in made.variants} == set(REWRITINGS)


def test_written_variants_stand_beside_those_by_code_with_their_labels(tmp_path: Path) -> None:
    pairs = [(jg.Task(id="t", query="?"), [jg.Response(id="t/a", text="-", data=PLAN)])]
    lines, _ = generate_presentations(pairs, 2, written={"t/a": write_versions(2)[0]})
    (tmp_path / "variants.jsonl").write_bytes(b"".join(lines))
    ((_, shown),) = read_tasks(tmp_path / "variants.jsonl")
    assert {"seed": "t/a", "family": "paraphrase", "version": 2} in [one.labels for one in shown]
