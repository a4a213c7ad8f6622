"""The evaluators `tools.*` and `trajectory.*`, through a jury as users have them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

import jurygraph as jg
from jurygraph.agents.trajectory.evaluators import (
    _find_numbers_and_codes,
    _read_source,
    _select_missing_figures,
)
from jurygraph.errors import ConfigError, PlanError
from jurygraph.schema import RecordedVerdict
from tests.rows import all_rows

TOOLS = (
    {
        "type": "function",
        "function": {
            "name": "book",
            "parameters": {
                "type": "object",
                "properties": {"n": {"type": "integer", "minimum": 1}},
                "required": ["n"],
            },
        },
    },
)
PAY = {"name": "pay"}
Message = dict[str, Any]


def call(arguments: str, name: str = "book", number: int = 1) -> Message:
    made = {"id": str(number), "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [made]}


def result(text: str, number: int = 1) -> Message:
    return {"role": "tool", "content": text, "tool_call_id": str(number)}


def say(text: str) -> Message:
    return {"role": "assistant", "content": text}


def judge(
    name: str,
    response: Sequence[Message] | str,
    *,
    params: Mapping[str, Any] | None = None,
    **task: Any,
) -> RecordedVerdict:
    evaluator = {"use": name, "params": dict(params or {})}
    with jg.Jury.from_config({"evaluators": [evaluator]}) as jury:
        answer = {"text": response} if isinstance(response, str) else {"messages": response}
        query = task.pop("query", "Book two.")
        scored = jury.score(jg.Task(id="t", query=query, **task), [jg.Response(id="r", **answer)])
    return scored[0].verdicts[0]


ACTIONS = [{"name": "book", "arguments": {"n": 2}}, {"name": "pay", "arguments": {}}]
BOOKED = [call('{"n": 2}'), result("ok"), call("{}", "pay", 2), result("ok", 2), say("Done.")]
SWAPPED = [call("{}", "pay", 2), result("ok", 2), call('{"n": 2}'), result("ok"), say("Done.")]
MATCHES: Mapping[str, tuple[str, Any, float, str]] = {
    "in order": ("strict", BOOKED, 1.0, "2 calls match"),
    "another order": ("strict", SWAPPED, 0.0, "in another order"),
    "any order": ("unordered", SWAPPED, 1.0, "2 calls match"),
    "one is missing": ("superset", BOOKED[2:], 0.0, 'not called: book({"n":2})'),
    "no more": ("subset", BOOKED[2:], 1.0, "1 calls match"),
    "nothing is no subset": ("subset", "Done.", 0.0, "nothing is called"),
    "no JSON": (
        "unordered",
        [call("{n: 2}"), result("ok"), *BOOKED[2:]],
        0.0,
        "messages[0].tool_calls[0].function.arguments: is no JSON of an object",
    ),
}


@all_rows(("mode", "response", "score", "reason"), MATCHES.values())
def test_calls_are_compared_with_actions(
    mode: str, response: Any, score: float, reason: str
) -> None:
    params = {"trajectory_match_mode": mode}
    verdict = judge("tools.match", response, params=params, reference_actions=ACTIONS)
    assert verdict.score == score
    assert reason in verdict.reason


def test_other_tools_are_left_out_with_only() -> None:
    params = {"trajectory_match_mode": "unordered", "only": ["book"]}
    verdict = judge("tools.match", BOOKED[:2], params=params, reference_actions=ACTIONS)
    assert verdict.score == 1.0
    assert judge("tools.match", BOOKED).status == "abstained"


def test_a_wrong_call_is_quoted_with_its_message() -> None:
    params = {"trajectory_match_mode": "unordered"}
    wrong = [say("Well."), call('{"n": 3}'), result("ok"), *BOOKED[2:]]
    verdict = judge("tools.match", wrong, params=params, reference_actions=ACTIONS)
    (evidence,) = verdict.evidence
    assert (evidence.quote, evidence.message, evidence.verified) == ('book({"n":3})', 1, True)


VALID: Mapping[str, tuple[Any, float | None, str]] = {
    "valid": ([call('{"n": 2}')], 1.0, "1 of 1 calls are valid"),
    "too small": ([call('{"n": 0}')], 0.0, "function.arguments: n: 0 is less than the minimum"),
    "missing": ([call("{}")], 0.0, "the arguments: 'n' is a required property"),
    "no JSON": ([call("{")], 0.0, "is no JSON of an object"),
    "no such tool": ([call("{}", "fly")], 0.0, "there is no tool 'fly'"),
    "nothing called": ("Done.", None, "no tool is called"),
}


@all_rows(("response", "score", "reason"), VALID.values())
def test_arguments_are_validated_by_the_schema_of_their_tool(
    response: Any, score: float | None, reason: str
) -> None:
    verdict = judge("tools.valid", response, tools=TOOLS)
    assert verdict.score == score
    assert reason in verdict.reason


SLOW = "^(a+)+$"


def test_a_pattern_of_a_schema_takes_linear_time() -> None:
    schema = {"properties": {"n": {"pattern": SLOW}}}
    tools = [{"function": {"name": "book", "parameters": schema}}]
    arguments = json.dumps({"n": "a" * 5_000 + "!"})
    assert judge("tools.valid", [call(arguments)], tools=tools).score == 0.0


@all_rows(
    ("schema", "problem"),
    [
        ({"allOf": [{"pattern": "(?=x)"}]}, r"the pattern '\(\?=x\)' is not a valid RE2 pattern"),
        ({"patternProperties": {"a": {}}}, "cannot be checked in time; name the properties"),
    ],
)
def test_patterns_that_cannot_be_searched_in_time_are_refused(
    schema: dict[str, Any], problem: str
) -> None:
    with pytest.raises(PlanError, match=problem):
        judge("tools.valid", BOOKED, tools=[{"name": "book", "input_schema": schema}])


def test_a_bad_schema_is_an_error_of_the_plan() -> None:
    tool = {"function": {"name": "book", "parameters": {"type": "number of seats"}}}
    with pytest.raises(PlanError, match=r"tools\[0\]: `parameters` is no JSON Schema"):
        judge("tools.valid", BOOKED, tools=[tool])


def test_a_budget_is_the_least_share_of_its_limits() -> None:
    params = {"max_calls": 1, "max_turns": 3}
    assert judge("trajectory.budget", BOOKED, params=params).score == 0.5
    assert judge("trajectory.budget", BOOKED[:2], params=params).score == 1.0
    with pytest.raises(ConfigError, match="set a limit, one of max_calls"):
        judge("trajectory.budget", BOOKED)


def test_a_loop_is_a_call_that_brought_nothing_new() -> None:
    again = [call("{}", "look", 1), result("no", 1), call("{}", "look", 2), result("no", 2)]
    assert judge("trajectory.loops", again).score == 0.5
    news = [*again[:2], call("{}", "look", 2), result("yes", 2)]
    assert judge("trajectory.loops", news).score == 1.0
    assert judge("trajectory.loops", [say("Hm."), say("Hm. ")]).score == 0.5


def test_a_result_without_an_id_is_that_of_the_next_call_before_it() -> None:
    """Such results counted as none, so that honest polling was a loop."""
    asking = call("{}", "look")
    del asking["tool_calls"][0]["id"]
    both = {**asking, "tool_calls": asking["tool_calls"] * 2}
    results = [{"role": "tool", "content": text} for text in ("wait", "wait more", "ok")]
    polling = [message for one in results for message in (asking, one)]
    assert judge("trajectory.loops", polling).score == 1.0
    assert judge("trajectory.loops", [both, *results[:2]]).score == 1.0
    assert judge("trajectory.loops", [*polling[:2], *polling[:2]]).score == 0.5
    # nobody answers the second call, and the third one's result is no news
    assert judge("trajectory.loops", [*polling[:2], asking, *polling[:2]]).score == 2 / 3
    asked = {"role": "assistant", "function_call": {"name": "look", "arguments": "{}"}}
    former = [
        asked if one is asking else {**one, "role": "function", "name": "look"} for one in polling
    ]
    assert judge("trajectory.loops", former).score == 1.0
    with jg.Jury.from_config({"evaluators": ["trajectory.loops"]}) as jury:
        task = jg.Task(id="t", query="?")
        plan = jury.prepare(task).model_dump_json().replace('"version":"2"', '"version":"1"')
        earlier = jg.Plan.model_validate_json(plan)
        (trace,) = jury.score(task, [jg.Response(id="r", messages=polling)], plan=earlier)
    assert trace.reward.value == pytest.approx(1 / 3)


def test_a_long_result_is_read_in_pieces_that_cut_no_number_and_no_code() -> None:
    words = "+49 30 1234567, ORD-77-b, 12 500, 07:45, 2024-05-11, 3.14, 1.234,50 and HAT170"
    for separator in ("\n", '"', " "):
        for length in range(65_536 - len(words) - 2, 65_538):
            source = "x" * length + separator + words
            assert not _select_missing_figures(_find_numbers_and_codes(words, {0}), [source])
            _read_source.cache_clear()


def test_numbers_and_codes_of_the_answer_are_looked_up_in_results() -> None:
    work = [call("{}", "look"), result('{"flight": "HAT170", "price": 1200.0, "at": "07:00:00"}')]
    grounded = judge("tools.grounded", [*work, say("HAT170 at 07:00 costs $1,200 for 2.")])
    assert grounded.score == 0.75  # two of whom nobody spoke: the query writes it as a word
    assert "not there: '2'" in grounded.reason
    assert judge("tools.grounded", [*work, say("Done.")]).status == "not_applicable"


def test_codes_that_begin_with_zero_decimal_commas_and_hours_are_figures_of_the_answer() -> None:
    found = result(
        '{"order": "T-004512", "zip": "01067", "price": 47.9, "at": "7 pm", "day": "12.05.2024"}'
    )
    right = "T-004512 to 01067 costs 47,90 and comes at 7pm on 12.05.2024."
    grounded = judge("tools.grounded", [call("{}"), found, say(right)])
    assert (grounded.score, grounded.native) == (1.0, 5)
    wrong = "T-004599 to 01099 costs 1.247,90 and comes at 9pm on 13.05.2024, not at 10:30am."
    invented = judge("tools.grounded", [call("{}"), found, say(wrong)])
    assert (invented.score, invented.native) == (0.0, 7)
    times = say("Trains leave at 9am, 10AM and 11:30am.")
    assert judge("tools.grounded", [call("{}"), result("9:00, 10:00, 11:30"), times]).score == 1.0


def test_a_code_with_a_hyphen_is_found_only_as_a_whole() -> None:
    found = [call("{}"), result("V-5521 and W-5521-A in 30 days of 2024")]
    other = judge("tools.grounded", [*found, say("It is W-5521.")])
    assert (other.score, other.native) == (0.0, 1)
    same = judge("tools.grounded", [*found, say("V\u20115521: 5521, a 30-day ticket of mid-2024.")])
    assert (same.score, same.native) == (1.0, 4)


@all_rows(
    "answer, found, score",
    [
        ("Departs 2024-05-12T10:00Z", "2024-05-12T10:00Z", 1.0),
        ("W-5521", json.dumps({"text": "Tracking:\nW-5521"}), 1.0),
        ("inv-5521 and W-5521", "INV-5521, w-5521", 1.0),
        ("INV-5521", "inv-5521-A", 0.0),
        ("A 365-Day pass, 500-MB, of January-2024", "365 days, 500 MB, January 2024", 1.0),
    ],
)
def test_what_stands_in_a_result_in_another_form_is_found(
    answer: str, found: str, score: float
) -> None:
    assert judge("tools.grounded", [call("{}"), result(found), say(answer)]).score == score


def test_numbers_of_a_lists_items_are_no_claims() -> None:
    listed = "1. HAT170\n**2)** HAT170\n7. is no item\n\n1. 2 seats"
    verdict = judge("tools.grounded", [call("{}"), result("HAT170"), say(listed)])
    assert verdict.native == 3
    assert verdict.reason.endswith("; not there: '7', '2'")


def test_numbers_of_steps_are_no_claims() -> None:
    listed = "Step 1: HAT170\n**Step 2:**\n2 seats\nStep 7: 3"
    verdict = judge("tools.grounded", [call("{}"), result("HAT170"), say(listed)])
    assert verdict.reason.endswith("; not there: '2', '7', '3'")


@all_rows(
    "answer, found, score, figures",
    [
        ("0800-5550100", "5550100", 0.0, 1),
        ("0800-5550100", "0800-5550100", 1.0, 1),
        ("0800-5550100", "08005550100", 1.0, 1),
        ("+49 30 1234567", "30, 49 and 1234567", 0.0, 1),
        ("+49 30 1234567 or +1 (212) 555-0123", "+49301234567, +1 212 555 0123", 1.0, 2),
        ("5550100", "0800-5550100", 1.0, 1),
        ("+1 200 000, 30-45 of 05-12", "1200000, 30, 45, 30-45, 05-12", 1.0, 6),
        ("+12345678 and +12 500 000 (2024)", "12345678, 12500000, 2024", 1.0, 3),
        ("+1234567.89, +3.14159265", "1234567.89 and 3.14159265", 1.0, 2),
    ],
)
def test_a_number_of_a_telephone_counts_whole(
    answer: str, found: str, score: float, figures: int
) -> None:
    verdict = judge("tools.grounded", [call("{}"), result(found), say(answer)])
    assert (verdict.score, verdict.native) == (score, figures)


def test_the_reason_says_what_only_the_user_or_the_system_said() -> None:
    query = [
        {"role": "system", "content": "Refunds in 30 days."},
        {"role": "user", "content": "9?"},
    ]
    messages = [call("{}"), result("at 2024-05-12T10:00Z, 7"), say("7, 9, 10:00 in 30 days, 88")]
    verdict = judge("tools.grounded", messages, query=query)
    assert verdict.score == 0.8
    assert verdict.reason == (
        "2 of 5 numbers and codes are in the results of tools, "
        "2 only in the words of the user or the system: '9', '30'; not there: '88'"
    )


HUGE = '{"x": 1' + "0" * 400 + "}"


def test_a_number_that_cannot_be_validated_is_no_way_out() -> None:
    properties = {"x": {"type": "number", "multipleOf": 0.1}}
    tool = {"function": {"name": "book", "parameters": {"properties": properties}}}
    assert judge("tools.valid", [call(HUGE)], tools=[tool]).score == 0.0


@pytest.mark.parametrize("reference", ["http://example.com/x", "#/nope", "#"])
def test_a_schema_whose_references_lead_nowhere_is_an_error_of_the_plan(reference: str) -> None:
    tool = {"function": {"name": "book", "parameters": {"$ref": reference}}}
    with pytest.raises(PlanError, match=r"tools\[0\]: `parameters` is no JSON Schema"):
        judge("tools.valid", BOOKED, tools=[tool])


def test_a_name_in_only_that_is_no_tool_is_refused() -> None:
    with pytest.raises(
        ConfigError,
        match=r"evaluators\[0\]\.params\.only: task 't': there is no tool 'bok'; did you mean book",
    ):
        judge(
            "tools.match", "Done.", params={"only": ["bok"]}, tools=TOOLS, reference_actions=ACTIONS
        )


def test_an_action_that_is_no_tool_is_refused() -> None:
    actions = [{"name": "bok", "arguments": {}}]
    with pytest.raises(
        PlanError, match=r"reference_actions\[0\]: there is no tool 'bok'; did you mean"
    ):
        judge("tools.match", BOOKED, tools=TOOLS, reference_actions=actions)


@all_rows(
    "action, params, problem",
    [
        ({"name": "reserve"}, {}, r"there is no tool 'reserve'; there are book$"),
        ({"name": "book", "arguments": {"n": "2"}}, {}, "a call of book: n: '2' is not of type"),
        (
            {"name": "book", "arguments": {"n": 0}},
            {"tool_args_match_mode": "superset"},
            "a call of book: n: 0 is less than the minimum of 1; no valid call has it",
        ),
    ],
)
def test_an_action_that_no_valid_call_matches_is_refused(
    action: Mapping[str, Any], params: Mapping[str, Any], problem: str
) -> None:
    actions = [ACTIONS[0], {"arguments": {}, **action}]
    with pytest.raises(PlanError, match=rf"reference_actions\[1\]: {problem}"):
        judge("tools.match", BOOKED, params=params, tools=TOOLS, reference_actions=actions)


def test_an_action_that_is_only_allowed_may_be_of_another_tool() -> None:
    params = {"trajectory_match_mode": "subset"}
    verdict = judge("tools.match", BOOKED, params=params, tools=TOOLS, reference_actions=ACTIONS)
    assert verdict.score == 1.0


def test_an_argument_of_an_action_that_its_tool_excludes_is_refused() -> None:
    schema = {**TOOLS[0]["function"]["parameters"], "additionalProperties": False}
    tools = [{"function": {"name": "book", "parameters": schema}}, PAY]
    assert judge("tools.match", BOOKED, tools=tools, reference_actions=ACTIONS).score == 1.0
    actions = [{"name": "book", "arguments": {"m": 2}}]
    for described in (tools, [{"name": "book", "input_schema": schema}]):  # Anthropic's form, too
        for mode in ("exact", "superset"):
            params = {"tool_args_match_mode": mode}
            with pytest.raises(
                PlanError,
                match=r"reference_actions\[0\]: a call of book: the arguments: Additional prop.*'m' was",
            ):
                judge(
                    "tools.match", BOOKED, params=params, tools=described, reference_actions=actions
                )


def test_an_action_without_an_argument_that_its_tool_requires_is_refused() -> None:
    actions = [{"name": "book", "arguments": {"cabn": 2}}, ACTIONS[1]]
    schema = {"properties": {"cabin": {}}, "required": ["cabin"]}
    tools = [{"function": {"name": "book", "parameters": schema}}, PAY]
    problem = (
        r"reference_actions\[0\]: a call of book: the arguments: 'cabin' is a required property"
    )
    with pytest.raises(PlanError, match=problem):
        judge("tools.match", BOOKED, tools=tools, reference_actions=actions)
    params = {"tool_args_match_mode": "superset"}
    messages = [call('{"cabn": 2, "cabin": 1}'), *BOOKED[1:]]
    verdict = judge("tools.match", messages, params=params, tools=tools, reference_actions=actions)
    assert verdict.score == 1.0


@all_rows(
    "schema, params",
    [
        ({"patternProperties": {"^[mn]$": {}}}, {}),
        ({"properties": 1}, {}),
        ({}, {"tool_args_match_mode": "ignore"}),
        ({}, {"tool_args_match_mode": "subset"}),
        ({}, {"tool_args_match_overrides": {"book": ["n"]}}),
        ({}, {"only": ["pay"]}),
    ],
)
def test_an_argument_that_a_call_may_have_or_need_not_have_is_not_refused(
    schema: Mapping[str, Any], params: Mapping[str, Any]
) -> None:
    closed = {"properties": {"n": {}}, "additionalProperties": False, **schema}
    actions = [{"name": "book", "arguments": {"n": 2, "m": 1}}, ACTIONS[1]]
    messages = [call('{"n": 2, "m": 1}'), *BOOKED[1:]] if schema else BOOKED
    tools = [{"function": {"name": "book", "parameters": closed}}, PAY]
    verdict = judge("tools.match", messages, params=params, tools=tools, reference_actions=actions)
    assert verdict.score == 1.0


def test_results_are_those_of_their_calls_where_ids_come_again() -> None:
    again = [call("{}"), result("pending"), call("{}"), result("done")]
    assert judge("trajectory.loops", again).score == 1.0


def test_the_assistants_own_words_ground_nothing_and_parts_of_longer_ones_neither() -> None:
    query = [say("It is 77."), {"role": "user", "content": "Sure?"}]
    verdict = judge("tools.grounded", [say("It is 77.")], query=query, tools=TOOLS)
    assert verdict.score == 0.0
    # there was nothing to look in
    assert judge("tools.grounded", [say("It is 77.")], query=query).status == "not_applicable"
    longer = [call("{}"), result("HAT1701 at 3.14"), say("HAT170, 14 or 3")]
    verdict = judge("tools.grounded", longer)
    assert verdict.score == 0.0
    assert {evidence.message for evidence in verdict.evidence} == {2}


POLICY = ["Breakfast is from 07:00.", {"text": "Cancel 14 days before.", "source": "rules"}]
PASSAGES = say("From 07:00; cancel 14 days before, or pay 20.")
CUT = [call("{}"), result("from 06-19")]
GROUNDS: Mapping[str, tuple[Any, dict[str, Any], float | None, str]] = {
    "passages": ([PASSAGES], {"context": POLICY}, 2 / 3, "2 of 3 numbers and codes are in the r"),
    "nothing found": ([PASSAGES], {"context": []}, None, "no result of a tool and no passage to"),
    "not looked up": ([PASSAGES], {"tools": TOOLS}, 0.0, "not there: '14', '20', '07:00'"),
    "no answer": (CUT, {}, 0.0, "it ends without an answer to the user"),
    "a word before": ([{**CUT[0], "content": "06-19"}, CUT[1]], {}, 0.0, "without an answer"),
    "user": ([*CUT, say("It is RB-18.")], {"query": "RB-18?"}, 1.0, "1 only in the words"),
    "no user": (
        [*CUT, say("It is RB-18.")],
        {"query": "RB-18?", "params": {"user": False}},
        0.0,
        "only in the words of the user or the system: 'RB-18'",
    ),
}


@all_rows(("response", "task", "score", "reason"), GROUNDS.values())
def test_an_answer_is_grounded_in_results_passages_and_words(
    response: Any, task: dict[str, Any], score: float | None, reason: str
) -> None:
    verdict = judge("tools.grounded", response, **task)
    assert verdict.score == score
    assert reason in verdict.reason


def test_a_plan_of_an_earlier_version_has_the_verdicts_of_then() -> None:
    task = jg.Task(id="t", query="?", context=POLICY)
    answers = [
        jg.Response(id=f"r{n}", messages=messages) for n, messages in enumerate(([PASSAGES], CUT))
    ]
    with jg.Jury.from_config({"evaluators": ["tools.grounded"]}) as jury:
        plan = jury.prepare(task).model_dump_json().replace('"version":"5"', '"version":"4"')
        traces = jury.score(task, answers, plan=jg.Plan.model_validate_json(plan))
    verdicts = [trace.verdicts[0] for trace in traces]
    assert [(verdict.version, verdict.score) for verdict in verdicts] == [("4", 0.0), ("4", None)]
