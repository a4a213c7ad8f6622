"""What recorded replies show: the judge beside people, its preference for a place, what both orders do, its speed.

    python examples/real_judge/summary.py [FOLDER]

FOLDER holds calls.jsonl.gz and recorded.json, as record.py writes them; this folder, unless another is named. Nothing
is asked: the replies are replayed. The intervals, of 95 %, keep the pairs of an instruction together.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jurygraph import Jury
from jurygraph.inference.clusters import share_interval
from jurygraph.models.recording import read_recording
from jurygraph.models.request import Reply
from jurygraph.sources import read_config, read_tasks

HERE = Path(__file__).parent
FIRST, SECOND, TIE = "first", "second", "tie"
SWAPPED = {FIRST: SECOND, SECOND: FIRST, TIE: TIE}


@dataclass(frozen=True)
class JudgedPair:
    """A pair, what people prefer of it, and what the judge says.

    `as_given` is the preference where the first response is shown first, `swapped` that where it is shown second; None
    without a usable reply. `lean` is the probability of the first response's letter among A and B, the mean of both
    orders; None where a reply has no log probabilities of both.
    """

    instruction: str
    people: str
    as_given: str | None
    swapped: str | None
    lean: float | None

    @property
    def in_both_orders(self) -> str | None:
        """The preference of both orders: a tie where they differ."""
        if self.as_given is None or self.swapped is None:
            return None
        return self.as_given if self.as_given == self.swapped else TIE

    @property
    def by_letters(self) -> str | None:
        """The response to which the letters' probabilities lean."""
        if self.lean is None:
            return None
        return FIRST if self.lean > 0.5 else SECOND


def main(folder: str = str(HERE)) -> None:
    facts = json.loads((Path(folder) / "recorded.json").read_text(encoding="utf-8"))
    for line in lines(read_pairs(Path(folder) / "calls.jsonl.gz"), facts):
        print(line)


def read_pairs(calls: Path) -> list[JudgedPair]:
    """Replay the calls, and return what is said of each pair."""
    replies = {key: call.reply for key, call in read_recording(calls).calls.items()}
    config = read_config(HERE / "jury.yaml").model_copy(update={"model": f"replay:{calls}"})
    pairs = []
    with Jury.from_config(config) as jury:
        for task, responses in read_tasks(HERE / "tasks.jsonl.gz"):
            [shown_first, shown_second] = [
                trace.verdicts[0] for trace in jury.score(task, responses)
            ]
            shares = [
                _share_of_a(replies.get(verdict.call or ""))
                for verdict in (shown_first, shown_second)
            ]
            pair = JudgedPair(
                instruction=task.group or task.id,
                people=str(responses[0].labels["people"]),
                as_given=_preference(shown_first.native),
                swapped=SWAPPED.get(_preference(shown_second.native) or ""),
                lean=_lean(*shares),
            )
            pairs.append(pair)
    return pairs


def _preference(native: Any) -> str | None:
    return native if native in SWAPPED else None


def _share_of_a(reply: Reply | None) -> float | None:
    """Return P(A) / (P(A) + P(B)) of the letter of a reply, from the alternatives of its token."""
    for token in reply.tokens if reply is not None else ():
        if token.text in ("A", "B"):
            probability = {
                text: math.exp(logprob)
                for text, logprob in (*token.others, (token.text, token.logprob))
            }
            if "A" in probability and "B" in probability:
                return probability["A"] / (probability["A"] + probability["B"])
    return None


def _lean(as_given: float | None, swapped: float | None) -> float | None:
    return None if as_given is None or swapped is None else (as_given + 1.0 - swapped) / 2.0


def lines(pairs: Sequence[JudgedPair], facts: Mapping[str, Any]) -> Iterator[str]:
    """The figures, from what the judge says of every pair."""
    people = Counter(pair.people for pair in pairs)
    instructions = len({pair.instruction for pair in pairs})
    yield f"{len(pairs)} pairs of {instructions} instructions, each judged in both orders by {facts['model']}"
    yield f"people prefer: {_counts(people)}"
    said = [
        answer for pair in pairs for answer in (pair.as_given, pair.swapped) if answer is not None
    ]
    yield f"replies: {len(said)} of {2 * len(pairs)} usable"
    shown_first = [(pair, pair.as_given == FIRST) for pair in pairs if pair.as_given is not None]
    shown_first += [(pair, pair.swapped == SECOND) for pair in pairs if pair.swapped is not None]
    yield f"prefers the response shown first     {_share(shown_first)}"
    both = [
        (pair, pair.as_given == pair.swapped) for pair in pairs if pair.in_both_orders is not None
    ]
    yield f"prefers the same in both orders      {_share(both)}"
    yield "agrees with most of three people:"
    [(usual, _)] = people.most_common(1)
    always = f"always '{usual}'"
    yield f"  {always:<35}{_share([(pair, pair.people == usual) for pair in pairs])}"
    yield f"  the judge, in the order given      {_agreement(pairs, [pair.as_given for pair in pairs])}"
    yield f"  the judge, in both orders          {_agreement(pairs, [pair.in_both_orders for pair in pairs])}"
    decided = [pair for pair in pairs if pair.people != TIE]
    yield "where people prefer one of the two:"
    usual_side = [(pair, pair.people == usual) for pair in decided]
    yield f"  {always:<35}{_share(usual_side)}"
    yield f"  the judge, in the order given      {_agreement(decided, [pair.as_given for pair in decided])}"
    yield f"  its letters' probabilities, both   {_agreement(decided, [pair.by_letters for pair in decided])}"
    seconds = facts["seconds"] / facts["calls"]
    tokens = facts["tokens_in"] / facts["calls"]
    yield (
        f"speed on {facts['day']}, {facts['cores']} core(s): {facts['calls']} calls in {facts['seconds']} s, "
        f"{seconds:.1f} s each, of {tokens:.0f} tokens"
    )


def _counts(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {counts[name]}" for name in SWAPPED)


def _agreement(pairs: Sequence[JudgedPair], answers: Sequence[str | None]) -> str:
    """The share of pairs with an answer on which it is that of people."""
    compared = [
        (pair, answer) for pair, answer in zip(pairs, answers, strict=True) if answer is not None
    ]
    return _share([(pair, answer == pair.people) for pair, answer in compared])


def _share(hits: Sequence[tuple[JudgedPair, bool]]) -> str:
    """The share of hits with its interval over instructions, and its count."""
    clusters = np.unique([pair.instruction for pair, _ in hits], return_inverse=True)[1]
    found = (
        share_interval(np.bincount(clusters, [hit for _, hit in hits]), np.bincount(clusters))
        if hits
        else None
    )
    if found is None or found.low is None or found.high is None:
        return "none"
    return f"{found.value:6.1%} ({found.low:.1%} to {found.high:.1%}), n {len(hits)}"


if __name__ == "__main__":
    main(*sys.argv[1:])
