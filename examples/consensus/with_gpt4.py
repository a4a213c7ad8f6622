"""GPT-4 as one more annotator of MT-Bench: 3,355 votes of people and 2,400 verdicts of GPT-4 in one consensus.

    python -m examples.consensus.with_gpt4

What GPT-4 is like among the people, and where the agents' scores go once it has a voice. No model is asked: the
verdicts are those that MT-Bench published.
"""

from collections.abc import Iterator
from typing import NamedTuple

from examples.consensus.votes import GPT4, pairwise
from jurygraph.aggregation import consensus
from jurygraph.aggregation.consensus import AgentScore, AnnotatorQuality

BUSY = 50
"""Labels from which on an annotator is compared with GPT-4: of the others too little is known."""


class Panel(NamedTuple):
    """What a panel says: of the agents, and of each annotator; `repeated` as of its votes."""

    agents: dict[str, AgentScore]
    annotators: dict[str, AnnotatorQuality]
    labels: int
    repeated: int


def main() -> None:
    for line in lines(panel("mtbench_human"), panel("mtbench_human", "mtbench_gpt4")):
        print(line)


def panel(*names: str) -> Panel:
    """The consensus of the votes in these files, by the preset `converged`. Intervals are over questions, of which an
    agent answered both turns."""
    rows = [
        (vote.question, *row) for name in names for vote in pairwise(name) for row in vote.ratings()
    ]
    question, of, agent, annotator, label = zip(*rows, strict=True)
    item = [f"{one}_{whose}" for one, whose in zip(of, agent, strict=True)]
    fitted = consensus.fit(item, annotator, label, n_classes=3)
    agents = {str(one): score for one, score in fitted.agent_scores(agent, prompt=question).items()}
    annotators = {str(one): quality for one, quality in fitted.annotators().items()}
    return Panel(agents, annotators, len(label), fitted.votes.repeated_rows)


def lines(people: Panel, together: Panel) -> Iterator[str]:
    """The figures: GPT-4 among the people, and the agents without it and with it."""
    model = together.annotators[GPT4]
    busy = {one: quality for one, quality in together.annotators.items() if quality.labels >= BUSY}
    yield f"{together.labels} labels by {len(together.annotators)} annotators, {model.labels} of them by GPT-4"
    yield f"Among the {len(busy)} annotators with {BUSY} labels or more:"
    yield f"  {'':<12}{'GPT-4':>8}{'lowest':>9}{'median':>9}{'highest':>9}  GPT-4's place"
    for name in ("accuracy", "leniency", "strictness"):
        values = sorted((getattr(one, name) for one in busy.values()), reverse=True)
        own = getattr(model, name)
        spread = f"{values[-1]:>9.3f}{values[len(values) // 2]:>9.3f}{values[0]:>9.3f}"
        yield f"  {name:<12}{own:>8.3f}{spread}  {values.index(own) + 1}"
    yield "Scores of the agents:"
    yield f"  {'':<18}{'people':>8}{'95 %':>17}{'with GPT-4':>13}{'95 %':>17}{'moves':>9}"
    for agent, score in sorted(people.agents.items(), key=lambda one: -one[1].score):
        after = together.agents[agent]
        yield f"  {agent:<18}{_shown(score, 8)}{_shown(after, 13)}{after.score - score.score:>+9.3f}"


def _shown(score: AgentScore, width: int) -> str:
    return f"{score.score:>{width}.3f}{f'{score.low:.3f} to {score.high:.3f}':>17}"


if __name__ == "__main__":
    main()
