"""Readers of benchmarks in their published form: each row becomes a task, or people's votes.

Rubrics are scored as GEAR's profiles do (its Table 9 and D.2): HealthBench's by a probability, WritingBench's on its
scale, PLawBench's by partial credit. In RewardBench's and JudgeBench's pairs, one response is preferred.
GroupTravelBench's travellers become stakeholders, as in DecompR. QAGS's answers are votes, as STABLEVAL reads them."""

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    field_validator,
)

from jurygraph.errors import InputError
from jurygraph.messages import Problem, did_you_mean, quote, validate
from jurygraph.schema import FrozenModel, TaskLine
from jurygraph.schema.frozen_model import Number, digest_of
from jurygraph.schema.rating import RatedText, Rating, Vote
from jurygraph.sources.files import TextFile, raise_line_error, read_lines, validate_line
from jurygraph.sources.ratings import read_rated_texts, read_texts
from jurygraph.sources.sheets import read_sheets

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?", re.ASCII)


def _text_to_number(value: Any) -> Any:
    return float(value) if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) else value


Name = Annotated[str, StringConstraints(max_length=240)]
"""Part of an id: two of them, and the number of a response, are no longer than an id may be."""

Key = Annotated[
    Name,
    Field(min_length=1),
    BeforeValidator(lambda value: str(value) if type(value) is int else value),
]
"""Id of a published row: text, or a whole number, which is read as text."""

Points = Annotated[Number, BeforeValidator(_text_to_number)]
"""A finite number; PLawBench writes it as text."""


class ImportedRow(FrozenModel):
    """A row of a published file, or a part of one. Publishers may add fields: those that are not read are kept."""

    model_config = ConfigDict(extra="allow")

    @property
    def other(self) -> dict[str, Any]:
        return nonempty_fields(**(self.model_extra or {}))


class ImportedTurn(ImportedRow):
    role: Literal["system", "user", "assistant", "tool"]
    content: str

    def message(self) -> dict[str, str]:
        return {"role": self.role, "content": self.content}


class Note(NamedTuple):
    """A row or part that was left out or is odd: what it is, in the plural, and its location."""

    what: str
    where: str


class Imported(NamedTuple):
    """A row as a task, or None if it is left out, and notes about it."""

    task: TaskLine | None
    notes: tuple[Note, ...] = ()


Content = tuple[Mapping[str, Any] | None, Sequence[Note]]
"""The fields of a row's task line, or None if the row is left out, for the reason in the last note; and the notes."""


class TaskRow(ImportedRow):
    KEY: ClassVar[str | None]
    """The field with the id of a row; None if the id is computed from the whole row."""
    EXPECTED: ClassVar[str]
    """The expected content of a file in words, for the error about an empty one."""

    @abstractmethod
    def to_content(self) -> Content:
        """Convert the row to the content of a task."""

    @classmethod
    def read(cls, path: str | Path) -> Iterator[Imported]:
        """Yield every row of a file of JSON lines (`.gz` too; `-` is standard input).

        Raises `InputError` if a line is not a valid row, if an id occurs twice, or if no row makes a task.
        """
        seen: dict[str, int] = {}
        reason = "holds no rows"
        with closing(TextFile(path)) as file:
            for line, row in read_lines(file, cls):
                fields, notes = row.to_content()
                task = (
                    None
                    if fields is None
                    else validate_line(file.name, line.number, TaskLine, fields)
                )
                if task is None:
                    reason = f"has no row that makes a task ({notes[-1].what}: {notes[-1].where})"
                elif seen.setdefault(task.id, line.number) != line.number:
                    problem = (
                        f"makes the task {quote(task.id)}, which is already in line {seen[task.id]}"
                    )
                    path_of_key = () if cls.KEY is None else (cls.KEY,)
                    raise_line_error(
                        file.name, line.number, Problem(path_of_key, problem, "keep one of them")
                    )
                yield Imported(task, tuple(notes))
        if not seen:
            raise InputError(f"{file.name}: {reason}; name a file of {cls.EXPECTED}")


def nonempty_fields(**fields: Any) -> dict[str, Any]:
    """Return the fields that are neither null nor empty, as JSON values."""
    nonempty = {
        name: value for name, value in fields.items() if value not in (None, "", [], {}, ())
    }
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in nonempty.items()
    }


# Rubrics: HealthBench, PLawBench and WritingBench

WORTHLESS = "criteria without words, or of 0 points, are left out"
NO_GAIN = "tasks whose rubric has no criterion of positive weight are left out, since no reward can be formed from it"
TEXTLESS = "completions without text are left out"
WHOLE = "criteria are judged as one, since they mark no sub-items whose points add up to their own"


def _with_rubric(
    task: Mapping[str, Any], items: Iterable[Mapping[str, Any]], notes: Sequence[Note] = ()
) -> Content:
    """Return the task with a rubric of these items, each the fields of a criterion.

    The task is left out if no weight is above 0. An item's `about`, with other published fields, goes to the task's
    metadata, by the id of the criterion. Ids count the published items, so that leaving one out renames no other.
    """
    all_notes = list(notes)
    criteria = []
    about: dict[str, Any] = {}
    for number, item in enumerate(items, 1):
        name = f"criterion-{number}"
        if not item["text"].strip() or item["weight"] == 0:
            all_notes.append(Note(WORTHLESS, f"{task['id']}: {name}"))
            continue
        criteria.append(
            {"id": name, **{field: value for field, value in item.items() if field != "about"}}
        )
        about |= nonempty_fields(**{name: item["about"]})
    if not any(criterion["weight"] > 0 for criterion in criteria):
        return None, [*all_notes, Note(NO_GAIN, task["id"])]
    metadata = {**task["metadata"], **nonempty_fields(criteria=about)}
    return {**task, "metadata": metadata, "rubric": {"criteria": criteria}}, all_notes


class ScoredItem(ImportedRow):
    """A criterion for a response, or the required content of a section of it, and its points, possibly negative."""

    criterion: str
    points: Points

    def criterion_fields(self) -> dict[str, Any]:
        return {"text": self.criterion, "weight": self.points, "about": self.other}


class IdealCompletions(ImportedRow):
    """Physicians' completions, and the models' completions that they were shown."""

    ideal_completion: str | None = None
    ideal_completions_ref_completions: tuple[str | None, ...] | None = None


class ImportedExample(TaskRow):
    """HealthBench (openai/simple-evals): a conversation that ends with the user, with a physician's rubric."""

    KEY = "prompt_id"
    EXPECTED = "HealthBench's examples"

    prompt_id: Key
    prompt: tuple[ImportedTurn, ...] = Field(min_length=1)
    rubrics: tuple[ScoredItem, ...]
    ideal_completions_data: IdealCompletions | None = None

    def to_content(self) -> Content:
        """Return the example with its rubric, and with the ideal and reference completions as responses."""
        data = self.ideal_completions_data or IdealCompletions()
        completions = {"ideal": data.ideal_completion} if self.ideal_completions_data else {}
        for number, text in enumerate(data.ideal_completions_ref_completions or (), 1):
            completions[f"reference-{number}"] = text
        responses = []
        notes = []
        for name, text in completions.items():
            if text and text.strip():
                identity = {"id": f"{self.prompt_id}/{name}", "agent": name.partition("-")[0]}
                responses.append({**identity, "text": text, "metadata": data.other})
            else:
                notes.append(Note(TEXTLESS, f"{self.prompt_id}: {name}"))
        query = [turn.message() for turn in self.prompt]
        task = {
            "id": self.prompt_id,
            "query": query,
            "responses": responses,
            "metadata": self.other,
        }
        return _with_rubric(task, (item.criterion_fields() for item in self.rubrics), notes)


RANGES = ("1-2", "3-4", "5-6", "7-8", "9-10")


class Entry(ImportedRow):
    """An entry of a checklist, and the meaning of each of the `RANGES` of its scale."""

    name: str
    criteria_description: str | None = None

    def criterion_fields(self, lowest: float) -> dict[str, Any]:
        """Return the fields of a criterion on a scale up to 10; its anchors are the described ranges, by their ends."""
        text = ": ".join(part for part in (self.name, self.criteria_description) if part)
        about = self.other
        anchors = {ends: about.pop(ends) for ends in RANGES if ends in about}
        return {
            "text": text,
            "weight": 1.0,
            "scale": (lowest, 10.0),
            "anchors": anchors,
            "about": about,
        }


class Query(TaskRow):
    """WritingBench (X-PLUG/WritingBench): a writing task and its checklist.

    A checklist has five entries, or one or two in the sets about a requirement.
    """

    KEY = "index"
    EXPECTED = "WritingBench's queries"
    LOWEST: ClassVar[float] = 1.0
    """The end of the scale that counts 0: a value v scores (v - LOWEST) / (10 - LOWEST)."""

    index: Key
    query: str = Field(min_length=1)
    checklist: tuple[Entry, ...]

    def to_content(self) -> Content:
        """Return the query with its checklist as a rubric of criteria on a scale up to 10, each of weight 1."""
        task = {"id": self.index, "query": self.query, "metadata": self.other}
        return _with_rubric(task, (entry.criterion_fields(self.LOWEST) for entry in self.checklist))


class QueryInTenths(Query):
    """A query whose values score v / 10, as in the code of GEAR's authors, instead of their position on the scale."""

    LOWEST = 0.0


class Case(TaskRow):
    """PLawBench's practical case analyses (skylenage/PLawbench): a case, a question, and the rubric of the analysis.

    An item of the rubric has its sub-items in one text, each with its points in a mark such as (+5分).
    """

    KEY = None
    EXPECTED = "PLawBench's practical case analyses"

    context: str | None = None
    question: str = Field(min_length=1)
    rubrics: tuple[ScoredItem, ...]
    reference: str | None = None

    def to_content(self) -> Content:
        """Return the case with its rubric; an item has parts if its sub-items' points add up to its own.

        Rows have no ids: the id of a task contains the digest of its row.
        """
        rubric = [[item.criterion, item.points] for item in self.rubrics]
        name = f"case-{digest_of([self.context, self.question, rubric])[:12]}"
        query = (
            f"## 案例\n{self.context}\n\n## 问题\n{self.question}"
            if self.context
            else self.question
        )
        task = {"id": name, "query": query, "reference": self.reference, "metadata": self.other}
        items = []
        notes = []
        for number, item in enumerate(self.rubrics, 1):
            parts = _weighted_parts(item)
            if parts is None:
                notes.append(Note(WHOLE, f"{name}: criterion-{number}"))
            items.append(
                item.criterion_fields() | ({"parts": parts} if parts and len(parts) > 1 else {})
            )
        return _with_rubric(task, items, notes)


_MARK = re.compile(r"[(（]\s*[+＋]\s*(\d+(?:\.\d+)?)\s*分?\s*[)）]+")
_HEADING = re.compile(r"【[^】]*】|\d+\s*分")
_MAX_PARTS = 20
_NUMBERING = re.compile(r"[\W\d_一二三四五六七八九十第步]*")


def _weighted_parts(item: ScoredItem) -> list[dict[str, Any]] | None:
    """Return the sub-items of an item; None if they do not give all of its points, or if one has no words."""
    parts = sub_items(item.criterion)
    weights = [part["weight"] for part in parts]
    have_words = all(
        re.search(r"\w", _HEADING.sub("", _MARK.sub("", part["text"]))) for part in parts
    )
    is_complete = (
        math.isclose(sum(weights), item.points) and 0 not in weights and len(parts) <= _MAX_PARTS
    )
    return parts if is_complete and have_words else None


def sub_items(text: str) -> list[dict[str, Any]]:
    """Return the marked sub-items of a text, each with its points.

    A mark is either before its sub-item, or at the end of the line that begins it; in both cases the sub-item continues
    until the next one. Text before the first sub-item belongs to none.
    """
    marks = list(_MARK.finditer(text))
    starts = [
        _sub_item_start(text, earlier, mark)
        for earlier, mark in zip([None, *marks], marks, strict=False)
    ]
    return [
        {"text": text[start:end].strip(), "weight": float(mark[1])}
        for mark, (start, end) in zip(marks, pairwise([*starts, len(text)]), strict=True)
    ]


def _sub_item_start(text: str, earlier: re.Match[str] | None, mark: re.Match[str]) -> int:
    """Return the start of a mark's sub-item.

    It is the start of its line or, if the line has an earlier mark, the position at or behind a mark.
    """
    line = text.rfind("\n", 0, mark.start()) + 1
    if earlier is None or earlier.start() < line:
        return line
    return mark.start() if _NUMBERING.fullmatch(text, line, earlier.start()) else earlier.end()


# Preferred responses: RewardBench (1, 2) and JudgeBench

ONE_SIDED = "rows without both a chosen and a rejected response are left out"
UNNAMED = "rows do not name one model for each response, so that their responses have no agent"


class ImportedComparison(TaskRow):
    """RewardBench and RewardBench 2 (allenai/reward-bench): a prompt with chosen and rejected responses.

    RewardBench has one of each, whose models it names separately; RewardBench 2 has lists, and `models` has the models
    of the chosen, then those of the rejected responses.
    """

    KEY = "id"
    EXPECTED = "RewardBench's or RewardBench 2's rows"

    id: Key
    prompt: str | tuple[ImportedTurn, ...]
    chosen: str | tuple[str, ...]
    rejected: str | tuple[str, ...]
    chosen_model: str | None = None
    rejected_model: str | None = None
    models: tuple[str, ...] | None = None
    subset: Name | None = None

    @field_validator("prompt")
    @classmethod
    def _require_messages(
        cls, prompt: str | tuple[ImportedTurn, ...]
    ) -> str | tuple[ImportedTurn, ...]:
        if prompt == ():
            raise ValueError("is an empty list; give it one message at least")
        return prompt

    def to_content(self) -> Content:
        """Return the prompt with its responses.

        Neither the ids of the responses nor their order reveal which is preferred: they are in the order of their
        digests, and if a chosen and a rejected one have the same text, a digest of id and text decides which is first.
        """
        name = self.id if self.subset is None else f"{self.subset}/{self.id}"
        chosen, rejected = (
            (texts,) if isinstance(texts, str) else texts for texts in (self.chosen, self.rejected)
        )
        if not chosen or not rejected:
            return None, [Note(ONE_SIDED, name)]
        agents: list[str | None] = list(self.models or ())
        if len(agents) != len(chosen) + len(rejected):
            agents = [self.chosen_model] * len(chosen) + [self.rejected_model] * len(rejected)
        labelled = [(text, True) for text in chosen] + [(text, False) for text in rejected]
        shuffled = sorted(
            zip(labelled, agents, strict=True), key=lambda entry: _sort_key(name, *entry[0])
        )
        responses = [
            {
                "id": f"{name}/{number}",
                "agent": agent,
                "text": text,
                "labels": {"preferred": preferred},
            }
            for number, ((text, preferred), agent) in enumerate(shuffled, 1)
        ]
        query = (
            self.prompt
            if isinstance(self.prompt, str)
            else [turn.message() for turn in self.prompt]
        )
        about = self.other | nonempty_fields(subset=self.subset, models=self.models)
        notes = [Note(UNNAMED, name)] if self.models is not None and None in agents else []
        return {"id": name, "query": query, "responses": responses, "metadata": about}, notes


def _sort_key(name: str, text: str, preferred: bool) -> tuple[str, bool]:
    rejected_first = int(digest_of([name, text]), 16) % 2 == 1
    return digest_of(text), preferred is rejected_first


class ImportedPair(TaskRow):
    """JudgeBench (ScalerLab/JudgeBench): two responses of one model to a question, and a label for the right one."""

    KEY = "pair_id"
    EXPECTED = "JudgeBench's pairs"

    pair_id: Key
    question: str = Field(min_length=1)
    response_A: str
    response_B: str
    label: Literal["A>B", "B>A"]
    response_model: str | None = None

    def to_content(self) -> Content:
        responses = [
            {
                "id": f"{self.pair_id}/{name}",
                "agent": self.response_model,
                "text": text,
                "labels": {"preferred": self.label.startswith(name)},
            }
            for name, text in (("A", self.response_A), ("B", self.response_B))
        ]
        return {
            "id": self.pair_id,
            "query": self.question,
            "responses": responses,
            "metadata": self.other,
        }, ()


# GroupTravelBench (small-xiangcheng/GroupTravelbench, arXiv 2605.25200) scores its strong tier (must, reject, budget,
# intensity) with 2 points and the weak one (prefer, avoid, kinds of places and hotels) with 1: here hard and soft.

UNREAD = "preferences in fields that are not read are left out"
NOBODY = "tasks in which nobody states a preference are left out"

_WORDS: Mapping[str, tuple[Literal["hard", "soft"], str]] = {
    "avg_budget": ("hard", "The trip costs this person {} yuan at most."),
    "transport.must": ("hard", "Travel between cities is by {}."),
    "transport.prefer": ("soft", "Travel between cities is preferably by {}."),
    "transport.avoid": ("soft", "Travel between cities is preferably not by {}."),
    "transport.reject": ("hard", "Travel between cities is never by {}."),
    "intensity.max_poi_per_day": ("hard", "There are at most {} attractions a day."),
    "intensity.max_active_hours": (
        "hard",
        "Attractions and travel within a city take at most {} hours a day.",
    ),
    "hotel_preference.prefer": ("soft", "Hotels are preferably of the kind {}."),
    "hotel_preference.avoid": ("soft", "Hotels are preferably not of the kind {}."),
    "attractions.must_visit": ("hard", "{city}: {} is visited."),
    "attractions.reject_visit": ("hard", "{city}: {} is not visited."),
    "attractions.category_pref.positive": (
        "soft",
        "{city}: attractions of the kind {} are preferred.",
    ),
    "attractions.category_pref.negative": (
        "soft",
        "{city}: attractions of the kind {} are preferably avoided.",
    ),
    "food.must_eat": ("hard", "{city}: there is a meal of the kind {}."),
    "food.prefer_eat": ("soft", "{city}: meals of the kind {} are preferred."),
    "food.avoid_eat": ("soft", "{city}: meals of the kind {} are preferably avoided."),
    "food.reject_eat": ("hard", "{city}: there is no meal of the kind {}."),
}
"""The kind and the words of a preference, by its field; the fields of a city hold for that city."""


class Traveller(ImportedRow):
    """A person: a role in the group, and what the person wants."""

    role: str
    preference: dict[str, JsonValue]


class Opening(ImportedRow):
    """The statement with which a person opens the conversation."""

    role: Name
    content: str


class GroupTrip(TaskRow):
    """A task of `datas/test.jsonl`. Files of results have other rows, and are not read."""

    KEY = "task_id"
    EXPECTED = "GroupTravelBench's tasks"

    task_id: Key
    query: Annotated[str, Field(min_length=1)]
    user_preferences: dict[Annotated[Name, Field(min_length=1)], Traveller]
    context: str | None = None
    time: str | None = None
    initial_messages: tuple[Opening, ...] = ()

    def to_content(self) -> Content:
        """Return the trip with a stakeholder for each person who states a preference; the query has nobody's words."""
        stakeholders = []
        notes = []
        for name, user in self.user_preferences.items():
            constraints, unread = _read_constraints(user.preference)
            notes += [Note(UNREAD, f"{self.task_id}: {name} {field}") for field in unread]
            if constraints:
                statements = (one.content for one in self.initial_messages if one.role == name)
                profile = "\n".join(filter(None, (user.role, *statements)))
                stakeholders.append({"id": name, "profile": profile, "constraints": constraints})
        if not stakeholders:
            return None, [*notes, Note(NOBODY, self.task_id)]
        date = None if self.time and self.time in (self.context or "") else self.time
        query = "\n".join(filter(None, (self.query, self.context, date)))
        return {
            "id": self.task_id,
            "query": query,
            "stakeholders": stakeholders,
            "metadata": self.other,
        }, notes


def _read_constraints(preference: dict[str, JsonValue]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the fields of a person's constraints, and the paths of preferences in fields that are not read."""
    constraints: dict[str, dict[str, Any]] = {}
    unread: dict[str, None] = {}
    for path, value in _entries(preference):
        part, _, field = path.partition(".")
        city = ""
        if part == "city_specific_preferences":  # whose own name may hold a dot
            city, field = next(
                ((field[: -len(one) - 1], one) for one in _WORDS if field.endswith(f".{one}")),
                ("", ""),
            )
        kind, words = _WORDS.get(field, ("", ""))
        if kind and ("{city}" in words) == bool(city) and (city or part == "global_constraints"):
            name = f"{path}: {value}"
            constraints[name] = {"id": name, "kind": kind, "text": words.format(value, city=city)}
        else:
            unread[path] = None
    return list(constraints.values()), list(unread)


def _entries(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every entry of a list and every limit above 0, as the benchmark counts them, each after its field."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _entries(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for entry in value:
            yield from _entries(entry, path)
    elif value:  # a limit of 0 is none
        yield path, str(int(value) if isinstance(value, float) and value.is_integer() else value)


# QAGS (W4ngatang/qags): workers' votes on whether an article supports each sentence of its summary


class Answer(ImportedRow):
    worker_id: Key
    response: Literal["yes", "no"]


class Sentence(ImportedRow):
    sentence: str
    responses: tuple[Answer, ...]


class ImportedSummary(ImportedRow):
    article: str
    summary_sentences: tuple[Sentence, ...] = Field(min_length=1)


def read_qags(paths: Sequence[str | Path]) -> Iterator[Vote]:
    """Yield each worker's vote on each sentence, as STABLEVAL reads it: 1 supported, 0 not.

    Sentence 0 of the first summary is the item `cnn_1_sent0` of the agent `CNN`, and belongs to the group `cnn_1`. The
    files, of one set each (`.gz` too), are named after it: `mturk_cnndm.jsonl`, `mturk_xsum.jsonl`.

    Raises `InputError` for a name of neither set, or two files of one; for an invalid row, with file, line and field;
    or for a file without answers.
    """
    seen: set[str] = set()
    for path in paths:
        names = [name for name in ("cnn", "xsum") if name in Path(path).name.lower()]
        if len(names) != 1 or names[0] in seen:
            hint = "have either `cnn` or `xsum` in it, as in mturk_xsum.jsonl, and name one file of each set"
            raise InputError(
                f"{path}: its name does not say which set it is of, or that of another file; {hint}"
            )
        seen.update(names)
        votes = 0
        with closing(TextFile(path)) as file:
            for number, (_, summary) in enumerate(read_lines(file, ImportedSummary), start=1):
                for vote in _votes(f"{names[0]}_{number}", names[0].upper(), summary):
                    votes += 1
                    yield vote
        if not votes:
            raise InputError(
                f"{path}: holds no answers; name a file of QAGS's annotations, with `summary_sentences`"
            )


def _votes(group: str, agent: str, summary: ImportedSummary) -> Iterator[Vote]:
    for index, sentence in enumerate(summary.summary_sentences):
        for answer in sentence.responses:
            annotator = f"worker_{answer.worker_id}"
            label = float(answer.response == "yes")
            yield Vote(
                item=f"{group}_sent{index}",
                agent=agent,
                annotator=annotator,
                label=label,
                group=group,
            )


# Tables of rated texts

COLUMNS = (*RatedText.model_fields, "reviewer", "score", "prompt")
"""What the columns of such a table may be called, or be mapped to."""


class RatedTable(NamedTuple):
    """The tasks and the votes of a table, both in its order."""

    tasks: list[TaskLine]
    votes: list[RatedText]


def read_rated_table(path: str | Path, columns: Mapping[str, str]) -> RatedTable:
    """Read a table with a text in each row, and a label that an annotator gave to it.

    `columns` maps our names (`COLUMNS`) to those of the file. The response to a task has the key of its vote as id; the
    task's reviewers are the annotators. Raises `InputError` with file, line and field, also if an item has two prompts.
    """
    for name in columns:
        if name not in COLUMNS:
            hint = did_you_mean(name, COLUMNS) or f"known: {', '.join(COLUMNS)}"
            raise InputError(f"--column {name}: is not a column of ratings; {hint}")
    named = {name: column for name, column in columns.items() if name != "prompt"}
    file = read_rated_texts(path, named)
    votes = [vote for _, vote in file.rows]
    keys = {name: columns[name] for name in ("item", "agent") if name in columns}
    texts = read_texts(path, keys | {"text": columns.get("text", "text")})
    prompt = columns.get("prompt", "prompt" if "prompt" in file.unread else None)
    prompts = {} if prompt is None else read_texts(path, keys | {"text": prompt})
    by_item: dict[str, list[RatedText]] = {}
    for vote in votes:
        by_item.setdefault(vote.item, []).append(vote)
    for item, rated in by_item.items():
        if len({prompts.get(vote.key) for vote in rated}) > 1:
            raise InputError(
                f"{path}, field {prompt}: item {quote(item)} has two prompts; give each item one"
            )
    tasks = [
        item_to_task(str(path), item, rated, [vote.annotator for vote in rated], texts, prompts)
        for item, rated in by_item.items()
    ]
    return RatedTable(tasks, votes)


def item_to_task(
    path: str,
    item: str,
    rated: Sequence[Vote] | Sequence[Rating],
    people: Iterable[str],
    texts: Mapping[str, str],
    prompts: Mapping[str, str] = {},
) -> TaskLine:
    """Return the task of an item that people rated. Raises `InputError` where it cannot be one."""
    first = rated[0]
    agents = {one.key: one.agent for one in rated}
    content = {
        "id": item,
        "query": prompts.get(first.key, ""),
        "reviewers": sorted(set(people)),
        "group": first.group,
        "metadata": {} if first.domain is None else {"domain": first.domain},
        "responses": [
            {"id": key, "text": texts[key], "agent": agent} for key, agent in agents.items()
        ],
    }
    task = validate(TaskLine, content)
    if isinstance(task, Problem):
        raise InputError(f"{path}, item {quote(item)}, field {task.field}: {task}")
    return task


READERS: Mapping[str, Callable[[str | Path], Iterator[Imported]]] = {
    "healthbench": ImportedExample.read,
    "plawbench": Case.read,
    "writingbench": Query.read,
    "rewardbench": ImportedComparison.read,
    "judgebench": ImportedPair.read,
    "grouptravelbench": GroupTrip.read,
}
"""Readers of tasks by the name of the format. A reader raises `InputError` naming file, line and field."""

VOTE_READERS: Mapping[str, Callable[[Sequence[str | Path]], Iterator[Vote]]] = {
    "qags": read_qags,
    "sheets": read_sheets,
}
"""Readers of votes by the name of the format. A reader raises `InputError` as those of tasks do."""
