"""The evaluators `tools.*` and `trajectory.*`, which need no model.

They read the messages of a response; a response that is a text is one message that calls no tool. Arguments that are
no JSON of an object are a mistake of the response: such a call matches none, and is not valid.
"""

import re
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, MutableSet, Sequence
from functools import lru_cache
from itertools import chain, product
from typing import Any, Literal

import jsonschema
from jsonschema import Draft202012Validator, SchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from pydantic_core import from_json
from referencing import Registry
from referencing.exceptions import Unresolvable

from jurygraph.agents.extraction import IndexedText
from jurygraph.agents.notation import compile_pattern, require_known_names
from jurygraph.agents.roles import CodeEvaluator, EvaluatorInput
from jurygraph.agents.trajectory.calls import (
    AgentToolCall,
    ArgumentsMode,
    ArgumentsRule,
    find_unmatched_calls,
    first_difference,
    list_messages,
    list_tool_calls,
)
from jurygraph.errors import ConfigError, PlanError
from jurygraph.messages import format_field_path, join_names, nearest_name, quote, shorten
from jurygraph.safety.evidence import Passage
from jurygraph.schema import Evidence, Question, Response, TaskView, Verdict
from jurygraph.schema.conversation import ChatMessage, RenderedText, is_left_unanswered
from jurygraph.schema.frozen_model import (
    EMPTY_OBJECT,
    Count,
    Id,
    ParamsModel,
    StrictBool,
    canonical_json,
    iter_json_values,
)
from jurygraph.schema.task import ReferenceCall

_MAX_LISTED_ITEMS = 5


class TrajectoryEvaluator(CodeEvaluator):
    """Base class of evaluators that read all messages of a response."""

    sees = "without_reasoning"


def _make_evidence_of_calls(
    response: Response, calls: Sequence[AgentToolCall]
) -> tuple[Evidence, ...]:
    """Return calls of the response as evidence."""
    turns = getattr(response.text, "turns", ())
    call_turns = [turn for turn in turns if turn.kind == "call" and turn.role == "assistant"]
    all_calls = list_tool_calls(list_messages(response))
    evidence = [
        Evidence(quote=response.text[turn.start : turn.end], start=turn.start, end=turn.end)
        for call, turn in zip(all_calls, call_turns, strict=False)
        if call in calls
    ]
    return tuple(evidence[:_MAX_LISTED_ITEMS])


def _calls_to_text(calls: Sequence[AgentToolCall]) -> str:
    return join_names([shorten(call.text, 120) for call in calls])


class ToolsMatch(TrajectoryEvaluator):
    """1 if the calls of tools match those of the task's reference by openevals' rules, else 0.

    The reference is the task's `reference_messages`, or `reference_actions`. `strict` compares message by message, or
    with actions call by call, in order; `unordered` wants the same calls in any order; `superset` wants all calls of
    the reference, and `subset` none beyond them. Unlike openevals, no call at all is no subset of some, because a
    policy that calls nothing must not pass.
    """

    class Params(ParamsModel):
        trajectory_match_mode: Literal["strict", "unordered", "subset", "superset"] = "strict"
        """The way in which calls are compared."""
        tool_args_match_mode: ArgumentsMode = "exact"
        """The way in which the arguments of two calls of one tool are compared."""
        tool_args_match_overrides: dict[Id, ArgumentsMode | tuple[Id, ...]] = EMPTY_OBJECT
        """Other ways for some tools, by name: a mode, or the arguments that count, such as `user.id`."""
        only: tuple[Id, ...] = ()
        """The only tools whose calls are compared; all without any."""

    name = "tools.match"
    judges_whole_conversation = True
    task_fields = ("reference_messages", "reference_actions")
    settings: Params

    def questions(self, view: TaskView) -> Sequence[Question]:
        """Refuse a name in `only` that is no tool of the task, and an action that no valid call matches.

        The first would compare nothing and match everything; the other would match nothing.
        """
        if view.tools:
            functions = [tool.get("function", tool) for tool in view.tools]
            tool_names = {str(f.get("name")) for f in functions if isinstance(f, Mapping)}
            for index, action in enumerate(view.reference_actions or ()):
                error_location = f"task {view.id!r}: {self.name}: reference_actions[{index}]"
                self._refuse_unmatchable_action(error_location, action, tool_names, view)
            tool_names |= {call.name for call in self._list_reference_calls(view, ())}
            try:
                error_location = f"params.only: task {view.id!r}"
                require_known_names(error_location, self.settings.only, tool_names, "tool")
            except PlanError as error:  # the slip is the config's, for any task
                raise ConfigError(str(error)) from None
        return super().questions(view)

    def _refuse_unmatchable_action(
        self, where: str, action: ReferenceCall, tool_names: Collection[str], view: TaskView
    ) -> None:
        """Raise PlanError for an action of no tool, or with arguments that its tool excludes, lacks or refuses.

        What is not compared, or only allowed, may be of a tool that the task does not name, but not nearly of one.
        """
        settings = self.settings
        mode = None
        if not settings.only or action.name in settings.only:
            overrides = settings.tool_args_match_overrides
            mode = overrides.get(action.name) or settings.tool_args_match_mode
        has_to_be_called = mode is not None and settings.trajectory_match_mode != "subset"
        if has_to_be_called or nearest_name(action.name, tool_names, min_similarity=0.8):
            require_known_names(where, [action.name], tool_names, "tool")
        if mode not in ("exact", "superset") or action.name not in tool_names:
            return
        try:
            validators = _load_argument_validators(view)
        except PlanError:  # `tools.valid` tells it, which needs the schemas
            return
        call = AgentToolCall(-1, 0, action.name, action.arguments, "")
        problem = _find_call_problem(call, validators, are_complete=mode == "exact")
        if problem is not None:
            raise PlanError(
                f"{where}: a call of {action.name}: {problem}; no valid call has it: correct it, or the tool's schema"
            )

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        settings = self.settings
        messages = list_messages(inputs.response)
        reference = inputs.task.reference_messages
        if reference is None and inputs.task.reference_actions is None:
            return Verdict.abstain("the task has neither reference_messages nor reference_actions")
        calls = list_tool_calls(messages, settings.only)
        reference_calls = self._list_reference_calls(inputs.task, settings.only)
        rule = ArgumentsRule(settings.tool_args_match_mode, settings.tool_args_match_overrides)
        unparsable_calls = [call for call in calls if call.arguments is None]
        missing_calls = find_unmatched_calls(
            reference_calls, calls, lambda reference, call: rule.matches(call, reference)
        )
        extra_calls = find_unmatched_calls(calls, reference_calls, rule.matches)
        problems = []
        mode = settings.trajectory_match_mode
        if mode == "strict" and reference is not None:
            difference = first_difference(messages, reference, rule, settings.only)
            if difference:
                problems.append(difference)
        elif mode == "strict" and not (missing_calls or extra_calls):
            is_in_order = all(map(rule.matches, calls, reference_calls))
            if not is_in_order:
                problems.append("the calls are in another order")
        if mode != "subset" and missing_calls:
            problems.append(f"not called: {_calls_to_text(missing_calls)}")
        if mode != "superset" and extra_calls:
            problems.append(f"not in the reference: {_calls_to_text(extra_calls)}")
        if mode == "subset" and reference_calls and not calls:
            problems.append("nothing is called")
        problems += [
            f"{call.path}: is no JSON of an object" for call in unparsable_calls[:_MAX_LISTED_ITEMS]
        ]
        success = f"{len(calls)} calls match the reference's {len(reference_calls)} ({mode})"
        wrong_calls = extra_calls if mode != "superset" else unparsable_calls
        return Verdict(
            score=not problems,
            met=not problems,
            native=len(calls),
            reason="; ".join(problems) or success,
            evidence=_make_evidence_of_calls(inputs.response, wrong_calls),
        )

    def _list_reference_calls(self, task: TaskView, only: Sequence[str]) -> list[AgentToolCall]:
        if task.reference_messages is not None:
            return list_tool_calls(task.reference_messages, only)
        return [
            AgentToolCall(
                -1, index, call.name, call.arguments, canonical_json(call.arguments).decode()
            )
            for index, call in enumerate(task.reference_actions or ())
            if not only or call.name in only
        ]


class ToolsValid(TrajectoryEvaluator):
    """Share of the calls that are valid: of one of the task's `tools`, with arguments that its JSON Schema takes.

    It does not apply where nothing is called.
    """

    name = "tools.valid"
    task_fields = ("tools",)

    def questions(self, view: TaskView) -> Sequence[Question]:
        if view.tools:
            _load_argument_validators(view)
        return super().questions(view)

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        if not inputs.task.tools:
            return Verdict.abstain("neither the task nor `task_defaults` of the config has `tools`")
        calls = list_tool_calls(list_messages(inputs.response))
        if not calls:
            return Verdict.not_applicable("no tool is called")
        validators = _load_argument_validators(inputs.task)
        invalid_calls = []
        reasons = []
        for call in calls:
            problem = _find_call_problem(call, validators)
            if problem is not None:
                invalid_calls.append(call)
                reasons.append(f"{call.path}: {problem}")
        valid_call_count = len(calls) - len(invalid_calls)
        reasons.insert(0, f"{valid_call_count} of {len(calls)} calls are valid")
        return Verdict(
            score=valid_call_count / len(calls),
            met=not invalid_calls,
            native=valid_call_count,
            reason="; ".join(reasons[: 1 + _MAX_LISTED_ITEMS]),
            evidence=_make_evidence_of_calls(inputs.response, invalid_calls),
        )


def _load_argument_validators(view: TaskView) -> Mapping[str, Validator]:
    """Return the validator of each tool's arguments. Raises PlanError for a tool without name or with a bad schema."""
    return _compile_argument_validators(
        view.id, tuple(canonical_json(tool) for tool in view.tools or ())
    )


@lru_cache(maxsize=256)
def _compile_argument_validators(task_id: str, tools: tuple[bytes, ...]) -> Mapping[str, Validator]:
    validators = {}
    for number, text in enumerate(tools):
        tool = from_json(text)
        function = tool.get("function", tool)
        error_location = f"task {task_id!r}: tools[{number}]"
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise PlanError(
                f"{error_location}: has no name; write OpenAI's form, with `function.name`"
            )
        # in OpenAI's form or Anthropic's
        schema = function.get("parameters", function.get("input_schema")) or {}
        try:
            validator_class = validator_for(schema, default=Draft202012Validator)
            validator_class.check_schema(schema)
            _refuse_unsafe_patterns(schema, error_location)
            validator_class = extend(validator_class, {"pattern": _validate_pattern_keyword})
            # An empty registry: no schema is fetched from elsewhere. A call shows references that lead nowhere.
            validator = validator_class(schema, registry=Registry())
            next(validator.iter_errors({}), None)
        except (SchemaError, Unresolvable, RecursionError, TypeError, AttributeError) as error:
            problem = getattr(error, "message", str(error))
            raise PlanError(
                f"{error_location}: `parameters` is no JSON Schema: {shorten(problem)}"
            ) from None
        validators[function["name"]] = validator
    return validators


def _refuse_unsafe_patterns(schema: Any, error_location: str) -> None:
    """Refuse a pattern that RE2 cannot search, and a keyword whose patterns Python's engine would search."""
    for _, part in iter_json_values(schema):
        if not isinstance(part, dict):
            continue
        if "patternProperties" in part:
            raise PlanError(
                f"{error_location}: `parameters`: `patternProperties` cannot be checked in time; name the properties"
            )
        pattern = part.get("pattern")
        if isinstance(pattern, str):
            try:
                compile_pattern(pattern)
            except ValueError as error:
                raise PlanError(
                    f"{error_location}: `parameters`: the pattern {quote(pattern)} {error}"
                ) from None


def _validate_pattern_keyword(
    validator: Validator, pattern: str, value: Any, _: Any
) -> Iterator[jsonschema.ValidationError]:
    """Search a pattern, which authors of tools write, in linear time as those of configs and tasks are."""
    if validator.is_type(value, "string") and not compile_pattern(pattern).search(value):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


def _find_call_problem(
    call: AgentToolCall, validators: Mapping[str, Validator], *, are_complete: bool = True
) -> str | None:
    """Return what is wrong with a call; None if it is valid.

    Of arguments that may be more, only values and names can be wrong.
    """
    validator = validators.get(call.name)
    if validator is None:
        return f"there is no tool {quote(call.name)}"
    if call.arguments is None:
        return "is no JSON of an object"
    try:
        errors = validator.iter_errors(call.arguments)
        if not are_complete:
            errors = (e for e in errors if e.path or e.validator == "additionalProperties")
        error = next(errors, None)
    # of a number, depth or letter that no tool takes
    except (OverflowError, RecursionError, UnicodeError) as beyond:
        return f"cannot be validated: {shorten(str(beyond))}"
    if error is None:
        return None
    where = format_field_path(tuple(error.path)) or "the arguments"
    return f"{where}: {shorten(error.message, 150)}"


class TrajectoryBudget(TrajectoryEvaluator):
    """1 within all limits; else the least of limit / number, over the limits that are set."""

    class Params(ParamsModel):
        max_calls: Count | None = None
        """The most calls of tools."""
        max_turns: Count | None = None
        """The most messages of the assistant."""
        max_characters: Count | None = None
        """The most characters that the assistant writes, in texts and calls."""

    name = "trajectory.budget"
    settings: Params

    def _set_up_from_settings(self) -> None:
        if not self.settings.model_dump(exclude_none=True):
            names = ", ".join(type(self.settings).model_fields)
            raise ConfigError(f"{self.name}: params: set a limit, one of {names}")

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        messages = list_messages(inputs.response)
        texts = [message.text for message in messages if message.role == "assistant"]
        calls = [call.text for call in list_tool_calls(messages)]
        counts = {
            "max_calls": len(calls),
            "max_turns": len(texts),
            "max_characters": sum(map(len, texts + calls)),
        }
        score = 1.0
        reasons = []
        for name, limit in self.settings.model_dump(exclude_none=True).items():
            count = counts[name]
            reasons.append(f"{count} {name.removeprefix('max_')}, at most {limit}")
            if count > limit:
                score = min(score, limit / count)
        return Verdict(score=score, met=score == 1.0, reason="; ".join(reasons))


def _group_results_by_call(
    messages: Sequence[ChatMessage], pairs_by_order: bool
) -> Mapping[Any, deque[str]]:
    """Return the results by the id of their call; with `pairs_by_order` those without one by the indices of theirs.

    It is the next call of the message before the result.
    """
    results: dict[Any, deque[str]] = defaultdict(deque)
    waiting_calls: Iterator[tuple[int, int]] = iter(())
    for index, message in enumerate(messages):
        if message.tool_calls:
            waiting_calls = product([index], range(len(message.tool_calls)))
        if message.role == "tool":
            call = message.tool_call_id
            has_next_call = pairs_by_order and call is None
            results[next(waiting_calls, None) if has_next_call else call].append(message.text)
    return results


class TrajectoryLoops(TrajectoryEvaluator):
    """Share of the assistant's calls and texts that are no repetition.

    A call repeats an earlier one with the same arguments and the same result; a text, an equal one. To ask again what
    may have changed is no loop, as long as the answer is another.
    """

    name = "trajectory.loops"
    version = "2"
    # results without an id counted as no result
    earlier_versions = ("1",)

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        messages = list_messages(inputs.response)
        is_earlier_version = inputs.question.version in self.earlier_versions
        results = _group_results_by_call(messages, not is_earlier_version)
        earlier_steps = set()
        count = 0
        repetition_texts = []
        for index, message in enumerate(messages):
            if message.role != "assistant":
                continue
            text = message.text.strip()
            steps: list[tuple[str, str | None]] = [(text, None)] if text else []
            for number, call in enumerate(message.tool_calls):
                results_of_call = results[index, number] or results[call.id]
                result = results_of_call.popleft() if results_of_call else ""
                steps.append((call.normalized_text, result))
            for step in steps:
                count += 1
                if step in earlier_steps:
                    repetition_texts.append(f"message {index}: {shorten(step[0], 80)}")
                earlier_steps.add(step)
        if not count:
            return Verdict.not_applicable("the assistant wrote nothing")
        share = f"{len(repetition_texts)} of {count} calls and texts are repetitions"
        score = (count - len(repetition_texts)) / count
        return Verdict(
            score=score,
            met=not repetition_texts,
            native=len(repetition_texts),
            reason="; ".join([share, *repetition_texts[:_MAX_LISTED_ITEMS]]),
        )


_Figures = Mapping[float | str, Passage]
"""Numbers and codes, each with the first passage that has it."""


class GroundedAnswer(TrajectoryEvaluator):
    """Share of the numbers and codes in the final answer that a source has: tools' results, context, or others' words.

    A code is a word of at least 4 letters and digits, such as HAT170, or of digits after a 0, such as 01067; with
    hyphens, such as W-5521, it is found only as a whole, as is the number of a telephone, such as 0800-5550100 or
    +49 30 1234567. Numbers are compared as numbers: 1,200 is 1200.0, and 47,90 is 47.9. Numbers of a list's items and
    steps are no claims. It does not apply where the answer has neither, or there was nothing to look in: no result, no
    passage and no tool to call. A conversation that ends without an answer gets 0.
    """

    class Params(ParamsModel):
        user: StrictBool = True
        """Whether what only the user or the system said is grounded; a result may contradict it."""

    name = "tools.grounded"
    version = "5"
    # it took no passages, and did not apply without an answer, nor asked whether there was anything to look in
    earlier_versions = ("4",)
    settings: Params

    def answer(self, inputs: EvaluatorInput) -> Verdict:
        is_earlier_version = inputs.question.version in self.earlier_versions
        response = inputs.response
        if inputs.question.scope != "turn" or len(response.assistant_turn_indices) == 1:
            _read_source.cache_clear()  # it is another conversation
        answer = response.view("last_reply").text
        query = inputs.task.query
        if isinstance(query, str):
            query = (ChatMessage(role="user", content=query),)
        messages = [*query, *list_messages(response)]
        is_unanswered = is_left_unanswered(messages) or not answer.strip()
        if is_unanswered and not is_earlier_version:
            return Verdict(score=0.0, met=False, reason="it ends without an answer to the user")
        figures = _find_numbers_and_codes(answer, {0})
        if not figures:
            return Verdict.not_applicable("the answer has no number and no code")
        results = [message.text for message in messages if message.role == "tool"]
        passages = [] if is_earlier_version else [item.text for item in inputs.task.context or ()]
        # a task's tools could have been called: who invents is not let off
        if not (results or passages or inputs.task.tools or is_earlier_version):
            return Verdict.not_applicable("there is no result of a tool and no passage to look in")
        words_of_others = [
            message.text for message in messages if message.role not in ("assistant", "tool")
        ]
        not_in_texts = _select_missing_figures(figures, results + passages)
        unsaid = _select_missing_figures(not_in_texts, words_of_others)
        ungrounded = unsaid if self.settings.user else not_in_texts
        only_said = [not_in_texts[value] for value in not_in_texts if value not in unsaid]
        sources = "the results of tools or the context" if passages else "the results of tools"
        found_count = len(figures) - len(not_in_texts)
        reason = f"{found_count} of {len(figures)} numbers and codes are in {sources}"
        if only_said:
            reason += f", {len(only_said)} only in the words of the user or the system: "
            reason += _quote_passages(only_said)
        if unsaid:
            reason += f"; not there: {_quote_passages(list(unsaid.values()))}"
        return Verdict(
            score=(len(figures) - len(ungrounded)) / len(figures),
            met=not ungrounded,
            native=len(figures),
            reason=reason,
            evidence=tuple(
                _build_evidence(answer, passage)
                for passage in list(ungrounded.values())[:_MAX_LISTED_ITEMS]
            ),
        )


def _quote_passages(passages: Sequence[Passage]) -> str:
    return ", ".join(quote(passage.text) for passage in passages[:_MAX_LISTED_ITEMS])


def _build_evidence(answer: str, passage: Passage) -> Evidence:
    """Return a passage of the last reply as evidence in the text of all messages."""
    turn = (
        answer.find_enclosing_turn(passage.start, passage.end)
        if isinstance(answer, RenderedText)
        else None
    )
    turn_offset = 0 if turn is None else turn.origin - turn.start
    return Evidence(
        quote=answer[passage.start : passage.end],
        start=passage.start + turn_offset,
        end=passage.end + turn_offset,
    )


def _select_missing_figures(figures: _Figures, sources: Sequence[str]) -> _Figures:
    """Return the numbers and codes that no source has; a code with hyphens has to be one there, too."""
    # words may follow an escape; a folder of Windows may look like one
    unescaped_sources = (_ESCAPED_SPACE_PATTERN.sub(" ", source) for source in sources)
    list_numbers = frozenset({0})
    for source in chain(sources, unescaped_sources):
        if not figures:
            break
        text, found, list_numbers = _read_source(source, list_numbers)
        figures = {
            value: passage
            for value, passage in figures.items()
            if value not in found and not _occurs_in_text(passage.text, text)
        }
    return figures


@lru_cache(maxsize=4096)
def _read_source(
    source: str, list_numbers: frozenset[int]
) -> tuple[str, Collection[float | str], frozenset[int]]:
    """Return a text as figures are looked up in it, its numbers and codes, and the numbers of lists up to its end.

    `list_numbers` are those up to its start. Cached because the turns of a conversation share most of their sources.
    """
    text = _separate_words(source)
    numbers = set(list_numbers)
    found: set[float | str] = set()
    for piece in _PIECE_PATTERN.finditer(text):
        found.update(_find_numbers_and_codes(piece[0], numbers))
    return text, frozenset(found), frozenset(numbers)


_PIECE_PATTERN = re.compile(
    r"""(?s).{65536}.*?(?:\n|(?<=\S)(?=["{}\[\];=|])|(?<=[A-Za-z0-9][ ])(?=[A-RT-Za-rt-z]))|.+"""
)
"""A piece of a text that ends where no number, code or marker of a list goes on; in pieces, a long text takes little
memory."""


def _occurs_in_text(figures: str, text: str) -> bool:
    """Return whether a text has these letters and digits, not in a longer word or number: 07:00 is in 07:00:00."""
    if figures not in text and "-" not in figures:
        return False
    pattern = rf"(?<![^\W_])(?<!\d\.){re.escape(figures)}(?![^\W_]|\.\d)"
    if _HYPHENATED_CODE_PATTERN.fullmatch(figures):
        pattern = rf"(?i)(?<![\w-]){re.escape(figures)}(?!-?\w|\.\d)"
    return re.search(pattern, text) is not None


_CODE_WORD_PATTERN = re.compile(
    r"\b(?!\d\d?[ap]m\b)(?=\w*\d)(?=\w*[^\W\d_])\w{4,}\b|\b\d+(?:[-:/]\d+)+(?=(?:[ap]m)?\b)"
    r"|\b\d+(?:\.\d+){2,}\b|\b0\d{3,}\b",
    re.IGNORECASE,
)
"""A word of letters and digits, a date, a time, a version, or digits after a 0, as of a postcode."""
_LOCALISED_NUMBER_PATTERN = re.compile(
    r"(?<![\w.,])\d+(?:\.\d{3})*,\d\d?(?![\w.,]?\d)|(?<![\w:.])\d\d?(?=[ap]m\b)", re.IGNORECASE
)
"""A number as the prose of some languages writes it, such as 1.234,50, or the hour of 7pm."""


_NUMBER_OR_WORD = r"(?:\d+|(?=[^\W\d_]{2})[A-Z]*[^\W\d_A-Z][^\W\d_]*)"
_HYPHENATED_CODE_PATTERN = re.compile(
    r"(?<![\w-])(?!(?i:all|early|late|mid|non|over|post|pre|sub|top|under)-|[\w-]*\d(?i:[ap]m)\b)"
    rf"(?!(?:{_NUMBER_OR_WORD}-)*{_NUMBER_OR_WORD}(?!-?\w)|\d+-(?:[KMGT]B|[CKM]M|KG|ML|[KMG]HZ|KWH?)\b)"
    r"(?=[\w-]{4})(?=[\w-]*\d)(?:[^\W\d_]\w*|\d{3,}(?=-[A-Z])|\w{8}(?=-\w{4}-))(?:-\w+)+\b(?!\.\d)"
)
"""Letters and digits with hyphens, such as W-5521 or a UUID; not 30-day, May-2024, 500-MB or 9am-5pm: numbers."""
_TELEPHONE_PATTERN = re.compile(
    r"(?<![\w+-])(?:\+\d{1,3}(?: ?\(\d+\))?(?:[ /-]?\d){5,12}|0\d\d+(?:-\d+)+)\b(?!\.\d)"
)
"""An international number, or one with hyphens after a 0."""
_LIST_MARKER_PATTERN = re.compile(
    r"^([ \t>#*_-]*(?:\(?(?=\d\d?[.)][*_]*[ \t]+\S)|(?i:step )))(\d\d?)(?!\d)", re.MULTILINE
)
_TIMESTAMP_LETTER_PATTERN = re.compile(r"(?<=\d)T(?=\d\d:\d\d)|(?<=:\d\d)Z\b")
_ESCAPED_SPACE_PATTERN = re.compile(r"\\[nrt]")


def _separate_words(text: str) -> str:
    """Return a text of the same length with plain hyphens, and timestamps as a day and a time."""
    return _TIMESTAMP_LETTER_PATTERN.sub(" ", text.replace("\u2011", "-"))


def _find_numbers_and_codes(text: str, list_numbers: MutableSet[int]) -> _Figures:
    """Return the numbers and codes of a text, each once; those within a code and the numbers of a list are none.

    `list_numbers` are 0 and the numbers of lists before the text, and get those of the text.
    """
    figures: dict[float | str, Passage] = {}
    text = _blank_list_markers(_separate_words(text), list_numbers)
    codes: list[re.Match[str]] = []
    for pattern in (_TELEPHONE_PATTERN, _HYPHENATED_CODE_PATTERN):
        codes += pattern.finditer(text)
        text = pattern.sub(lambda code: " " * len(code[0]), text)
    for value, passages in IndexedText(text).numerals.items():
        figures[value] = passages[0]
    for match in _LOCALISED_NUMBER_PATTERN.finditer(text):
        value = float(match[0].replace(".", "").replace(",", "."))
        figures.setdefault(value, Passage(*match.span(), match[0]))
    for match in [*_CODE_WORD_PATTERN.finditer(text), *codes]:
        code: float | str = match[0]
        if match.re is _TELEPHONE_PATTERN:
            code = re.sub(r"\D", "", match[0])
        if match[0].startswith("+"):  # it may be a sum, such as +12 500 000
            code = float(code)
        figures.setdefault(code, Passage(*match.span(), match[0]))
    return figures


def _blank_list_markers(text: str, numbers: MutableSet[int]) -> str:
    """Return a text without the numbers of its lists' items, such as "2)": those that follow one, which join these."""

    def blank_marker(match: re.Match[str]) -> str:
        number = int(match[2])
        if number - 1 not in numbers:
            return match[0]
        numbers.add(number)
        return match[1] + " " * len(match[2])

    return _LIST_MARKER_PATTERN.sub(blank_marker, text)
