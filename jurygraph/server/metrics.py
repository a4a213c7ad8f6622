"""The figures of a server in Prometheus' text format, which is small enough to be written here."""

from collections import Counter
from collections.abc import Iterable, Iterator

from jurygraph.runs.reports.bill import CallCosts, count_requests
from jurygraph.server.reward_service import RewardService

LATENCY_BUCKET_SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Upper ends of the intervals into which the seconds of requests fall."""

_MetricSample = tuple[dict[str, str], float]


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
            self._buckets.update(
                bucket_bound for bucket_bound in LATENCY_BUCKET_SECONDS if seconds <= bucket_bound
            )

    def render(self, service: RewardService, open_request_count: int) -> str:
        """Return all figures as text."""
        calls = count_requests(service.jury) or CallCosts()
        status_samples = [
            ({"path": path, "status": str(status)}, count)
            for (path, status), count in sorted(self.requests.items())
        ]
        lines = [*_render_metric("requests_total", "Requests.", status_samples)]
        for name, text, value in (
            *(
                (f"{name}_total", f"{name.replace('_', ' ').capitalize()}.", value)
                for name, value in vars(service.counts).items()
            ),
            (
                "reward_sum",
                "Sum of the rewards that have a value: all but the failed ones.",
                service.reward_sum,
            ),
            (
                "incomplete_cohorts_total",
                "Cohorts scored without all members.",
                service.cohorts.incomplete_count,
            ),
            ("calls_total", "Requests to models.", calls.number),
            (
                "cost_dollars_total",
                "US dollars, where known.",
                calls.cost,
            ),
            ("requests_in_work", "Requests in work.", open_request_count),
            ("groups_in_work", "Groups at judges.", service.scorer.groups_in_work),
            (
                "members_waiting",
                "Members of open cohorts.",
                service.cohorts.waiting_member_count,
            ),
            ("judge_outage", "1 without a judge.", service.outage is not None),
        ):
            lines += _render_metric(name, text, [({}, value)])
        failures = [
            ({"evaluator": evaluator, "cause": cause, "kind": kind}, count)
            for (evaluator, cause, kind), count in sorted(service.failure_counts.items())
        ]
        lines += _render_metric("failed_judgements_total", "Judgements that failed.", failures)
        lines += self._render_histogram()
        return "\n".join(lines) + "\n"

    def _render_histogram(self) -> Iterator[str]:
        name = "jurygraph_request_seconds"
        yield f"# HELP {name} Seconds of requests with rewards in reply."
        yield f"# TYPE {name} histogram"
        for bucket_bound in LATENCY_BUCKET_SECONDS:
            yield f'{name}_bucket{{le="{bucket_bound:g}"}} {self._buckets[bucket_bound]}'
        yield f'{name}_bucket{{le="+Inf"}} {self._answered}'
        yield f"{name}_sum {self._seconds:g}"
        yield f"{name}_count {self._answered}"


def _render_metric(name: str, text: str, samples: Iterable[_MetricSample]) -> Iterator[str]:
    metric_name = f"jurygraph_{name}"
    kind = "counter" if name.endswith("_total") else "gauge"
    yield f"# HELP {metric_name} {text}"
    yield f"# TYPE {metric_name} {kind}"
    for labels, value in samples:
        labels_text = ",".join(f'{label}="{content}"' for label, content in labels.items())
        yield f"{metric_name}{f'{{{labels_text}}}' if labels_text else ''} {float(value):.15g}"
