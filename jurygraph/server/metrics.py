"""The figures of a server in Prometheus' text format, which is small enough to be written here."""

from collections import Counter
from collections.abc import Iterable, Iterator

from jurygraph.runs.reports.bill import count_requests
from jurygraph.server.reward_service import RewardService

LATENCY_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Upper ends of the intervals into which the seconds of requests fall."""

_Sample = tuple[dict[str, str], float]


class RequestMetrics:
    """Counts requests by path and status, and how long those with an answer took."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self._buckets: Counter[float] = Counter()
        self._seconds = 0.0
        self._answered = 0

    def observe(self, path: str, status: int, seconds: float) -> None:
        """Count a request. The path is one of the server's, so that no client can make the table grow."""
        self.requests[path, status] += 1
        if status == 200:
            self._answered += 1
            self._seconds += seconds
            self._buckets.update(bound for bound in LATENCY_BUCKETS if seconds <= bound)

    def render(self, service: RewardService, in_work: int) -> str:
        """Return all figures as text."""
        counts = service.counts
        calls = count_requests(service.jury)
        by_status: list[_Sample] = [
            ({"path": path, "status": str(status)}, count)
            for (path, status), count in sorted(self.requests.items())
        ]
        lines: list[str] = []
        lines += _metric("requests_total", "counter", "Requests.", by_status)
        for name, kind, text, value in (
            ("groups_total", "counter", "Groups scored.", counts.groups),
            ("rewards_total", "counter", "Rewards, failed ones too.", counts.rewards),
            ("failed_rewards_total", "counter", "Rewards that failed.", counts.failed),
            ("filled_rewards_total", "counter", "Failed rewards with a value.", counts.filled),
            ("findings_total", "counter", "Findings that need a quotation.", counts.findings),
            (
                "unsupported_findings_total",
                "counter",
                "Findings without a quotation that counts.",
                counts.unsupported,
            ),
            ("calls_total", "counter", "Requests to models.", calls.number if calls else 0),
            (
                "cost_dollars_total",
                "counter",
                "US dollars, where known.",
                calls.cost if calls else 0,
            ),
            ("requests_in_work", "gauge", "Requests in work.", in_work),
            ("groups_in_work", "gauge", "Groups at judges.", service.scorer.groups_in_work),
            ("members_waiting", "gauge", "Members of open cohorts.", service.cohorts.waiting),
            ("judge_outage", "gauge", "1 without a judge.", service.outage is not None),
        ):
            lines += _metric(name, kind, text, [({}, value)])
        lines += self._histogram()
        return "\n".join(lines) + "\n"

    def _histogram(self) -> Iterator[str]:
        name = "jurygraph_request_seconds"
        yield f"# HELP {name} Seconds of requests with rewards in reply."
        yield f"# TYPE {name} histogram"
        for bound in LATENCY_BUCKETS:
            yield f'{name}_bucket{{le="{bound:g}"}} {self._buckets[bound]}'
        yield f'{name}_bucket{{le="+Inf"}} {self._answered}'
        yield f"{name}_sum {self._seconds:g}"
        yield f"{name}_count {self._answered}"


def _metric(name: str, kind: str, text: str, samples: Iterable[_Sample]) -> Iterator[str]:
    full_name = f"jurygraph_{name}"
    yield f"# HELP {full_name} {text}"
    yield f"# TYPE {full_name} {kind}"
    for labels, value in samples:
        labels_text = ",".join(f'{label}="{content}"' for label, content in labels.items())
        yield f"{full_name}{f'{{{labels_text}}}' if labels_text else ''} {float(value):g}"
