"""From doubt to a refit: MT-Bench's votes with a label of each answer held back, and sheets of what is ambiguous."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.consensus.votes import ratings
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import HIGH_AMBIGUITY
from jurygraph.errors import InputError
from jurygraph.schema.rating import Vote
from jurygraph.sources.ratings import VotesFile
from jurygraph.sources.sheets import (
    SheetItem,
    SheetQuestion,
    make_sheets,
    read_sheet_votes,
    sheet_rows_to_csv,
)
from jurygraph.studies import adjudication
from jurygraph.studies import consensus as consensus_study
from jurygraph.studies.adjudication import SavedConsensus, read_rounds, select_ambiguous
from jurygraph.studies.fitted_consensus import ConsensusSettings, FittedConsensus, fit_consensus
from jurygraph.studies.votes import collect_votes
from tests.rows import all_rows
from tests.studies.consensus.made import NAMES
from tests.studies.figures import figures_of

PAPER = ConsensusSettings(preset="paper", subsets=0, bootstrap=0)


@dataclass(frozen=True)
class _Split:
    """MT-Bench's votes, and by key of the item one that is held back: the last of those with five or more."""

    kept: list[Vote]
    held: dict[str, Vote]


@cache
def split_votes() -> _Split:
    rows = ratings("mtbench")
    counts = Counter(rows.item)
    kept: list[Vote] = []
    held: dict[str, Vote] = {}
    columns = zip(rows.item, rows.agent, rows.annotator, rows.label, strict=True)
    for key, agent, annotator, label in reversed(list(columns)):
        item = key.removesuffix(f"_{agent}")
        vote = Vote(item=item, agent=agent, annotator=annotator, label=float(label))
        if key not in held and counts[key] >= 5:
            held[key] = vote
        else:
            kept.append(vote)
    return _Split(kept[::-1], held)


def fit_votes(*files: list[Vote], settings: ConsensusSettings = PAPER) -> FittedConsensus:
    placed = []
    for number, votes in enumerate(files):
        rows = tuple((f"line {index + 2}", vote) for index, vote in enumerate(votes))
        placed.append(VotesFile(f"{number}.csv", rows, NAMES))
    return fit_consensus(collect_votes(placed), settings)


def save(fitted: FittedConsensus, path: Path) -> SavedConsensus:
    path.write_text(json.dumps(consensus_study.report(fitted).to_json()), encoding="utf-8")
    return read_rounds(path)[0]


def adjudicate(items: list[SheetItem], folder: Path, classes: Any) -> list[Vote]:
    """Write sheets, have each reviewer write the label that was held back, if there is one, and read them."""
    made = make_sheets(items, (), ["dee", "eli"], 1, [SheetQuestion(classes=classes)])
    key_of_row = {row.id: row.key for row in made.key}
    key = folder / "key.jsonl"
    key.write_text("\n".join(row.model_dump_json() for row in made.key), encoding="utf-8")
    paths = [key]
    for name, rows in made.sheets.items():
        filled = []
        for row in rows:
            vote = split_votes().held.get(key_of_row[row["item"]])
            filled.append({**row, "score": "" if vote is None else f"{vote.label:g}"})
        paths.append(folder / f"{name}.csv")
        paths[-1].write_bytes(b"".join(sheet_rows_to_csv(filled)))
    return [vote for vote in read_sheet_votes(paths) if vote.label is not None]


def test_doubtful_answers_are_found_labelled_again_and_refitted(tmp_path: Path) -> None:
    split = split_votes()
    first = fit_votes(split.kept)
    saved = save(first, tmp_path / "consensus.json")
    ambiguity = dict(zip(map(str, first.model.items), first.model.ambiguity(), strict=True))
    texts = {vote.key: SheetItem(item=vote.item, agent=vote.agent, text="A") for vote in split.kept}

    chosen = [item for item, _ in select_ambiguous([saved], 0.3, list(texts.values()))]
    assert {item.key for item in chosen} == {key for key, value in ambiguity.items() if value > 0.3}
    answers = adjudicate(chosen, tmp_path, saved.classes)
    assert {vote.key: vote.label for vote in answers} == {
        item.key: split.held[item.key].label for item in chosen if item.key in split.held
    }

    second = fit_votes(split.kept, answers)
    result = figures_of(adjudication.report(second, saved))
    rows = [*split.kept, *answers]
    columns: Any = [(vote.key, vote.annotator, vote.label, vote.agent) for vote in rows]
    item, annotator, label, agents = map(list, zip(*columns, strict=True))
    whole = consensus.fit(item, annotator, label, "paper")
    scores = whole.agent_scores(agents, bootstrap=0)

    moved = result.moved
    assert moved.labels == len(answers) > 50
    for agent in moved.agents:
        assert agent.score_before == saved.agents[agent.agent].score
        assert agent.score == scores[agent.agent].score
    assert [agent.rank for agent in moved.agents] == [1, 2, 3, 4, 5, 6]
    now = dict(zip(whole.items, whole.ambiguity(), strict=True))
    likeliest = dict(zip(whole.items, whole.likeliest_labels().tolist(), strict=True))
    before = dict(zip(first.model.items, first.model.likeliest_labels().tolist(), strict=True))
    for item in moved["items"]:
        key = item.item
        assert (item.ambiguity_before, item.ambiguity) == (ambiguity[key], now[key])
        assert (item.label_before, item.label) == (str(before[key]), str(likeliest[key]))
    other = [item for item in moved["items"] if item.label != item.label_before]
    assert {item.item for item in other} == {
        key for key in likeliest if likeliest[key] != before[key]
    }
    assert moved["items"][: len(other)] == other
    assert result.conclusion[:2] == [
        f"labels more than before: {len(answers)}; likeliest labels that changed: {len(other)}, ties that "
        "are resolved: 0, new ties: 0",
        f"items in doubt: {len(chosen)} before, "
        f"{sum(value > HIGH_AMBIGUITY for value in now.values())} now; of those before, "
        f"{sum(now[item.key] > HIGH_AMBIGUITY for item in chosen)} still are",
    ]


def test_one_more_real_label_leaves_as_much_ambiguity_as_was_expected() -> None:
    """With the confusions as they were fitted, by those who gave the labels."""
    split = split_votes()
    model = fit_votes(split.kept).model
    chosen = []
    left = []
    for index in np.flatnonzero(model.ambiguity() > HIGH_AMBIGUITY).tolist():
        vote = split.held.get(str(model.items[index]))
        if vote is not None and vote.annotator in model.votes.annotators:
            annotator = model.votes.annotators.index(vote.annotator)
            likelihood = model.confusion[annotator, :, model.classes.index(vote.label)]
            joint = model.posterior[index] * likelihood
            chosen.append(index)
            left.append(1.0 - joint.max() / joint.sum())
    expected = consensus.expected_ambiguity(model, np.array(chosen), max_further_labels=1)[1]
    assert len(left) > 50
    assert abs(np.mean(left) - expected.ambiguity) < 3.0 * np.std(left, ddof=1) / len(left) ** 0.5


VOTES = [
    Vote(item=f"i{item}", annotator=who, label=float((item + (item % 4 == slip)) % 2))
    for item in range(12)
    for slip, who in enumerate(("ann", "bob", "cy"))
]
NEW = [Vote(item="i0", annotator="dee", label=1.0)]
OTHER = [Vote(item="j", annotator="dee", label=1.0)]


@all_rows(
    "files, settings, problem",
    [
        ([VOTES], PAPER, "--before: these ratings are not those of that consensus and new ones; "),
        ([VOTES[3:], OTHER * 9], PAPER, "--before: these ratings are not those of that consensus"),
        (
            [[vote for vote in VOTES if vote.annotator != "bob"], OTHER * 30],
            PAPER,
            "--before: that consensus has labels of bob, and this one has none; ",
        ),
        (
            [VOTES, NEW],
            ConsensusSettings(subsets=0, method="stableval"),
            "--before: has other preset; give",
        ),
        (
            [VOTES, NEW],
            ConsensusSettings(preset="paper", subsets=0, fit={"prior_mu": 2.0}),
            "--before: has other settings; give the options of that consensus",
        ),
        (
            [VOTES, NEW],
            ConsensusSettings(preset="paper", subsets=0, values=(0.0, 2.0)),
            "--before: has other values; ",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, files: list[list[Vote]], settings: ConsensusSettings, problem: str
) -> None:
    saved = save(fit_votes(VOTES, settings=PAPER), tmp_path / "consensus.json")
    fitted = fit_votes(*files, settings=settings)
    with pytest.raises(InputError) as raised:
        adjudication.report(fitted, saved)
    assert str(raised.value).startswith(problem)


@all_rows(
    "above, items, problem",
    [
        (
            0.99,
            ["i0"],
            "--above: no item has an ambiguity, which is from 0 to 1, above 0.99; here it is",
        ),
        (0.0, ["i0"], "--ambiguous: ITEMS have no text of 'i1' (the item, "),
    ],
)
def test_items_that_cannot_be_chosen_are_refused(
    tmp_path: Path, above: float, items: list[str], problem: str
) -> None:
    saved = save(fit_votes(VOTES, settings=PAPER), tmp_path / "consensus.json")
    with pytest.raises(InputError) as raised:
        select_ambiguous([saved], above, [SheetItem(item=name, text="A") for name in items])
    assert str(raised.value).startswith(problem)
    voted = saved.model_copy(update={"method": "majority", "decided_by_one": ()})
    with pytest.raises(InputError, match="only ties and items decided by one vote are in doubt; "):
        select_ambiguous([voted], 1.0, [])
    close = voted.model_copy(update={"decided_by_one": ("i1",)})
    assert select_ambiguous([close], 0.49, [SheetItem(item="i1", text="A")])[0][0].item == "i1"
    with pytest.raises(InputError, match="as are items that one vote decides; write less"):
        select_ambiguous([close], 0.5, [SheetItem(item="i1", text="A")])


def test_ties_are_as_doubtful_as_what_one_vote_decides_and_come_first(tmp_path: Path) -> None:
    votes = [("one", "x", 0.0), ("clear", "x", 1.0), ("tie", "x", 0.0), ("tie", "y", 1.0)]
    votes += [("clear", name, 1.0) for name in ("y", "z")]
    rows = [Vote(item=item, annotator=name, label=label) for item, name, label in votes]
    saved = save(fit_votes(rows, settings=ConsensusSettings(bootstrap=0)), tmp_path / "c.json")
    texts = [SheetItem(item=name, text="A") for name in ("clear", "one", "tie")]
    assert saved.method == "majority"
    assert [item.item for item, _ in select_ambiguous([saved], 0.3, texts)] == ["tie", "one"]
    agents = [SheetItem(item="one", text="A", agent="m"), *texts[2:]]
    with pytest.raises(InputError, match="ITEMS name the agent of 'one', and its labels do not; "):
        select_ambiguous([saved], 0.3, agents)
    with pytest.raises(InputError, match=r"ITEMS have no text of 'tie' .*, but of clear, one; add"):
        select_ambiguous([saved], 0.3, texts[:2])


SAVED = (
    '{"classes": [%s], "values": [0, 1], "preset": "paper", "method": "stableval", "settings": {}, '
    '"counts": {"rows": 1}, "agents": {}, "items": {"a": {"posterior": [0.5, 0.5], "ambiguity": 0.5}}}'
)


@all_rows(
    "content, problem",
    [
        ("[]", "c.json: is a list; a saved consensus is a JSON object; save it with"),
        ('{"classes": [0, 1]}', "c.json, field items: is missing; save it with `jurygraph"),
        (SAVED % "0", "c.json, field items: has other classes than `classes`; save it with"),
        (SAVED.replace('"rows": 1', "") % "0, 1", "c.json, field counts.rows: is missing; "),
        ('{"items": {"a": {"posterior": [2], "ambiguity": 0}}}', "c.json, field "),
    ],
)
def test_a_file_that_is_no_saved_consensus_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, problem: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("c.json")
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_rounds(path)
    assert str(raised.value).startswith(problem)
