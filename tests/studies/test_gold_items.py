"""Items with a known label, held out in turn, tell which method is right more often."""

from typing import Any

import pytest

from jurygraph.aggregation.consensus.fitting import held_out_posteriors
from jurygraph.sources.ratings import LabelWithPlace
from jurygraph.studies import consensus as consensus_study
from jurygraph.studies.fitted_consensus import ConsensusSettings, FittedConsensus, fit_consensus
from jurygraph.studies.gold_items import HeldOutGold, HeldOutLabels, hold_out_gold
from jurygraph.studies.votes import collect_votes
from tests.studies.consensus.made import NAMES, votes_file

QUICK = ConsensusSettings(bootstrap=0, subsets=0)


def fit_labels(
    labels: dict[str, list[Any]], gold: list[Any], settings: ConsensusSettings = QUICK
) -> FittedConsensus:
    """Return the consensus of people whose labels are of the same items, of which the first have the gold labels."""
    rows = [
        (f"i{item}", person, label)
        for person, column in labels.items()
        for item, label in enumerate(column)
    ]
    known = {f"i{item}": LabelWithPlace("g", NAMES, label) for item, label in enumerate(gold)}
    return fit_consensus(collect_votes([votes_file(*rows)], gold=known), settings)


def held_out(fitted: FittedConsensus) -> HeldOutGold:
    found = hold_out_gold(fitted)
    assert found is not None
    return found


def test_who_is_right_on_gold_comes_first_and_who_is_so_more_often_is_not_blamed() -> None:
    """Three people make one mistake in four, the same ones; a fourth makes none, and a fifth no other."""
    truth = [item % 3 for item in range(48)]
    wrong = [(label + 1) % 3 if item % 4 == 0 else label for item, label in enumerate(truth)]
    lost = [(label + 1) % 3 for label in truth]
    labels: dict[str, list[Any]] = dict.fromkeys(("ann", "bo", "cy"), wrong)
    labels |= {"careful": truth, "emeka": lost}
    found = consensus_study.report(fit_labels(labels, truth[:24]))
    sentences = list(map(str, found.conclusion))
    assert sentences[0] == (
        "Warning: right on gold, least often first: emeka 0 of 24, ann 18 of 24, bo 18 of 24, cy 18 of 24, careful 24 "
        "of 24; surely less often than the others: emeka; to leave out: --without emeka"
    )
    assert not any("careful" in sentence for sentence in sentences[1:])


@pytest.mark.parametrize("known_count", [12, 24])
def test_a_model_that_is_told_of_two_liars_is_right_where_their_majority_is_wrong(
    known_count: int,
) -> None:
    truth = [float(item % 2) for item in range(30)]
    lies = [1.0 - label for label in truth]
    fitted = fit_labels({"ada": truth, "bo": lies, "cy": lies}, truth[:known_count])
    found = held_out(fitted)
    assert (found.majority, found.stableval) == ((known_count, 0, 0), (0, 0, known_count))
    assert found.p == pytest.approx(2.0 ** (1 - known_count))
    report = consensus_study.report(fitted)
    assert (
        f"of {known_count} known items, held out in up to ten parts: majority right 0, tied 0, wrong {known_count}; "
        f"model (stableval) right {known_count}, tied 0, wrong 0; surely right more often (exact paired test, p = "
        f"{found.p:.2g}): --method stableval"
    ) in report.conclusion
    assert report.to_json()["held_out"]["stableval"]["right"] == known_count
    assert fitted.method == "majority", "the items inform, and choose nothing"


def test_ties_are_said_apart_and_few_items_tell_nothing() -> None:
    fitted = fit_labels({"ada": [0.0, 1.0, 0.0], "bo": [0.0, 0.0, 1.0]}, [0.0, 1.0])
    found = held_out(fitted)
    assert found.majority == HeldOutLabels(right=1, wrong=0, tied=1)
    assert found.describe().startswith(
        "of 2 known items, held out in up to ten parts: majority right 1, tied 1, wrong 0; model (stableval) "
    )
    assert found.describe().endswith("; too few to tell which is right more often")


def test_adjusted_means_are_held_out_as_well_where_they_are_the_labels() -> None:
    """Of three people of whom one is lenient and one strict, each label is another one."""
    truth = [2.0 + item % 3 for item in range(12)]
    lenient = [label + 1.0 for label in truth]
    strict = [label - 1.0 for label in truth]
    fitted = fit_labels({"ann": truth, "bo": lenient, "cy": strict}, truth[:6])
    found = held_out(fitted)
    assert fitted.method == "adjusted-mean"
    assert found.adjusted_mean == HeldOutLabels(right=6, wrong=0, tied=0)
    assert found.majority == HeldOutLabels(right=0, wrong=0, tied=6)
    assert (found.stableval, found.p) == (found.adjusted_mean, None)
    assert "; adjusted-mean right 6, tied 0, wrong 0; too few to tell" in found.describe()
    other = fit_labels({"ann": truth, "bo": lenient, "cy": strict}, [5.0])
    assert other.item_posteriors.posterior[1:].tolist() == (
        fitted.item_posteriors.posterior[1:].tolist()
    ), "known items do not move others"


def test_an_item_that_is_held_out_does_not_tell_its_own_class() -> None:
    fitted = fit_labels({"ada": [0.0, 1.0] * 6, "bo": [0.0, 1.0] * 6}, [1.0])
    (posterior,) = held_out_posteriors(fitted.model, fitted.model.votes.item[:1])
    assert fitted.model.posterior[0].tolist() == [0.0, 1.0]
    assert posterior[0] > 0.9
    assert held_out(fitted).stableval == HeldOutLabels(right=0, wrong=1, tied=0)


def test_nothing_is_held_out_without_known_items_or_if_fits_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    labels = {"ada": [0.0, 1.0], "bo": [0.0, 1.0]}
    assert hold_out_gold(fit_labels(labels, [])) is None
    monkeypatch.setattr("jurygraph.studies.fitted_consensus.MAX_LABEL_STEPS_FOR_REFITS", 1)
    slow = fit_labels(labels, [0.0], ConsensusSettings(subsets=0))
    assert hold_out_gold(slow) is None
    assert "known items are not held out, as fits" in str(consensus_study.report(slow).notes)
