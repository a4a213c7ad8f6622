"""What a sitting came to, or would come to, as lines: rewards, canaries, a gate, and what a model costs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jurygraph.cli.text import number, out, out_json, say, table

if TYPE_CHECKING:
    from jurygraph.runs.canary import CanaryTally
    from jurygraph.runs.figures.bill import Bill, Source, Tally
    from jurygraph.runs.figures.estimate import Estimate
    from jurygraph.runs.figures.forecast import Forecast
    from jurygraph.runs.figures.gate import Miss
    from jurygraph.runs.figures.summary import Summary


def result_lines(summary: "Summary") -> list[str]:
    """Rewards by agent, what became of everything that was asked, and where replies came from."""
    rows = [
        [
            row.agent or "(no agent named)",
            str(row.responses),
            number(row.mean),
            number(row.coverage),
            str(row.ok),
            str(row.degraded),
            str(row.failed),
        ]
        for row in summary.agents.values()
    ]
    header = ["agent", "responses", "mean reward", "coverage", "ok", "degraded", "failed"]
    asked = (
        f"verdicts: {summary.judged} judged + {summary.abstained} abstained + {summary.unanswered} failed"
        f" + {summary.not_applicable} not applicable = {summary.asked} asked"
    )
    return [*table(header, rows), asked, *_canary_lines(summary.canaries), *_call_lines(summary.bill)]


def _canary_lines(tally: "CanaryTally | None") -> list[str]:
    """How often a model's verdict on a known-bad response gave credit, where such were mixed in."""
    if tally is None:
        return []
    told = f"canaries: {tally.items} known-bad responses, {tally.fooled} of {tally.judged} verdicts on them gave credit"
    share = tally.share
    if share.rate is None:
        return [told]
    return [f"{told} ({share.rate:.1%}; 95 % interval {share.low:.1%} to {share.high:.1%})"]


_ORIGINS: dict["Source", tuple[str, str]] = {
    "sent": ("answered by the model", "{}"),
    "cached": ("from the cache", "{} once"),
    "carried": ("carried over from another run", "{} there"),
    "replayed": ("replayed", "sent to nobody"),
}
"""How a reply came, and how its cost is told."""


def _call_lines(bill: "Bill") -> list[str]:
    """Where the replies behind the verdicts came from, and what they cost, where there are any."""
    told = [
        f"{bill.tallies[source].number} {origin} ({_cost(bill.tallies[source], how)})"
        for source, (origin, how) in _ORIGINS.items()
        if bill.tallies[source].number
    ]
    return [f"calls: {', '.join(told)}"] if told else []


def request_lines(requests: "Tally | None") -> list[str]:
    """What this command sent, and the most that it costs, where it could send anything."""
    if requests is None:
        return []
    cost = f" ({_cost(requests, 'at most {}')})" if requests.number else ""
    return [f"requests: {requests.number or 'none'} in this sitting{cost}"]


def _cost(tally: "Tally", how: str) -> str:
    """In US dollars, told like that; what is not known is not left out unseen."""
    if tally.unpriced == tally.number:
        return "cost unknown"
    dollars = how.format("under $0.0001" if 0 < tally.cost < 0.0001 else f"${tally.cost:.4f}")
    return f"{dollars}, and {tally.unpriced} of unknown cost" if tally.unpriced else dollars


def say_inconclusive(error_rate: float, most: float) -> None:
    """That too much failed which is no fault of the responses."""
    share = f"{error_rate:.1%} of the verdicts failed, by no fault of the responses"
    say(f"inconclusive: {share}; failure.max_error_rate is {most:.1%}")


def say_missed(missed: "Sequence[Miss]") -> None:
    """Which conditions of a gate do not hold, and what was seen."""
    for one in missed:
        name = one.condition.name
        seen = f"there is no {name} here" if one.seen is None else f"{name} is {one.seen!r}"
        say(f"gate missed: {one.condition}, but {seen}")


def say_dry() -> None:
    """That a dry run has no effect."""
    say("nothing was sent or written")


def print_forecast(expected: "Forecast", unread: int, as_json: bool) -> None:
    """What is still to be asked; `unread` are the tasks of which a model must tell something first."""
    say_dry()
    if as_json:
        out_json({**expected.plain(), **({"tasks_to_read": unread} if unread else {})})
        return
    rows = [
        ["tasks", expected.tasks],
        ["responses", expected.responses],
        ["questions", expected.questions],
        ["verdicts, at most", expected.verdicts],
        [f"... of a model{'' if expected.model else ', which abstain under model none'}", expected.asked_of_model],
    ]
    for line in table(["still to do", ""], [[str(cell) for cell in row] for row in rows]):
        out(line)
    if expected.model is not None:
        print_estimate(expected.model)
    if unread:
        first = f"the model must first read profiles, or tell roles of criteria, of {unread} tasks"
        out(f"{first}: that is in it, and nothing that hangs on it")


def print_estimate(model: "Estimate") -> None:
    """What asking a model would come to, and on what assumptions."""
    from jurygraph.runs.figures.estimate import ASSUMED

    loads = (model.low, model.expected, model.worst)
    rows = [
        ["calls", *(str(load.calls) for load in loads)],
        ["tokens that it reads", *(str(load.tokens_in) for load in loads)],
        ["tokens that it writes", *(str(load.tokens_out) for load in loads)],
        ["US dollars", *("unknown" if load.cost is None else number(load.cost) for load in loads)],
    ]
    out("")
    for line in table(["to ask the model", "low", "expected", "worst"], rows):
        out(line)
    out(ASSUMED)
