"""The rooms that are mutated, and the tests that have to notice."""

from typing import NamedTuple


class Room(NamedTuple):
    """Modules (files, or folders of them) and the tests that mirror them."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS: dict[str, Room] = {
    "aggregation": Room(
        ("jurygraph/aggregation",), ("tests/aggregation", "tests/inference/test_agreement.py")
    ),
    "decide": Room(
        tuple(f"jurygraph/decision/{name}.py" for name in ("decide", "table", "recipe")),
        (
            *(
                f"tests/decision/test_{name}.py"
                for name in (
                    "decide",
                    "decide_many",
                    "table",
                    "table_reference",
                    "fusion",
                    "recipe",
                    "residual",
                    "weighting",
                )
            ),
            "tests/graphs/test_judges.py",
            "tests/judges/pairwise/test_end_to_end.py",
        ),
    ),
    "routing": Room(
        ("jurygraph/graphs/routing.py", "jurygraph/graphs/score_graph.py"),
        tuple(
            f"tests/graphs/test_{name}.py"
            for name in (
                "routing",
                "data_routing",
                "judges",
                "redacting",
                "answer_validation",
                "user_code",
                "recall",
                "gates",
                "score_graph",
                "execution",
                "calls_of_a_batch",
                "together",
                "tracing",
                "evaluator_calls",
                "first_answers",
                "time_limits",
            )
        ),
    ),
    "store": Room(("jurygraph/runs/store",), ("tests/runs/store",)),
    "gateway": Room(
        ("jurygraph/models/gateway.py", "jurygraph/models/limits.py"),
        tuple(
            f"tests/models/test_{name}.py"
            for name in (
                "gateway",
                "gateway_known",
                "outages",
                "token_limit",
                "recording",
                "retries",
                "limiter",
                "budget",
            )
        ),
    ),
    "safety": Room(("jurygraph/safety",), ("tests/safety",)),
}
