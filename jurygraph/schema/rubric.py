"""Rubrics: criteria, the graph of their prerequisites, and the record of how that graph was annotated (GEAR)."""

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, JsonValue, model_validator

from jurygraph.messages import quote
from jurygraph.schema.frozen_model import Count, FrozenModel, Id, Number, Positive, Unit, require_unique, suggest_name

Role = Literal["core", "additional", "penalty", "applicability"]
Kind = Literal["weak", "strong", "activation"]


class Part(FrozenModel):
    """One part of a criterion with partial credit, with its weight among the parts."""

    text: str
    weight: Positive = 1.0


class Criterion(FrozenModel):
    """One criterion of a rubric. A negative weight makes it a penalty: its score is that of the violation.

    It is binary, or scored on a `scale`, of which `anchors` describe values or ranges ("7-8"), or by its `parts`.
    """

    id: Id
    text: str
    weight: Number
    role: Role | None = None
    scale: tuple[Number, Number] | None = None
    anchors: dict[Id, str] = Field(default_factory=dict, exclude_if=lambda anchors: not anchors)
    parts: tuple[Part, ...] = Field(default=(), max_length=20, exclude_if=lambda parts: not parts)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not all(text.strip() for text in (self.text, *(part.text for part in self.parts))):
            raise ValueError("`text` is empty; write what must hold of a response")
        if self.weight == 0:
            raise ValueError("`weight` is 0, so it would not count; give it a weight, or leave the criterion out")
        if self.scale is not None and not self.scale[0] < self.scale[1]:
            raise ValueError("`scale` does not rise; write the lower end first, such as [1, 10]")
        if self.scale is not None and self.parts:
            raise ValueError("it has both a `scale` and `parts`; keep one of them")
        if self.anchors and self.scale is None:
            raise ValueError("`anchors` describe values of a `scale`, and there is none; add one, or leave them out")
        return self

    @property
    def content(self) -> list[JsonValue]:
        """Return its text, the texts of its parts, and whether its weight is positive; the size is left out."""
        return [self.text, [part.text for part in self.parts], self.weight > 0]


def require_different_texts(field: str, criteria: Iterable[tuple[str, str]]) -> None:
    """Raise ValueError for two criteria with the same text: it would be judged, and count, twice.

    `criteria` are pairs of id and text; `field` is the path of a text, with `{}` for its index.
    """
    ids: dict[str, str] = {}
    for place, (name, text) in enumerate(criteria):
        other = ids.setdefault(text.strip(), name)
        if other != name:
            problem = f"`{field.format(place)}` is the same for {quote(other)} and {quote(name)}"
            raise ValueError(f"{problem}; leave one of them out, or write how they differ")


class Edge(FrozenModel):
    """`child` counts only as far as `parent` holds (GEAR); `retention` λ overrides the default of its kind.

    The other fields explain the edge and have no effect on rewards: a `reason`, and on an edge from an annotator its
    `confidence`, the `votes` (samples for it, all samples), the `model`, and the digest of the `prompt`.
    """

    parent: Id
    child: Id
    kind: Kind
    retention: Unit | None = None
    reason: str = Field(default="", exclude_if=lambda reason: not reason)
    confidence: Unit | None = Field(default=None, exclude_if=lambda confidence: confidence is None)
    votes: tuple[Count, Count] | None = Field(default=None, exclude_if=lambda votes: votes is None)
    model: str = Field(default="", exclude_if=lambda model: not model)
    prompt: str = Field(default="", exclude_if=lambda prompt: not prompt)


class RejectedEdge(FrozenModel):
    """An edge that an annotator proposed and that is not in the graph; `why` is the reason.

    `stage` is what rejected it: the check of an answer, the vote among several, or the projection that removes cycles.
    """

    stage: Literal["check", "vote", "projection"]
    parent: str
    child: str
    kind: str
    reason: str = ""
    confidence: Unit | None = None
    model: str = ""
    prompt: str = ""
    why: str


class UnansweredPair(FrozenModel):
    """A pair of criteria for which the annotator gave no answer, and `why`. It has no edge until a later answer."""

    parent: Id
    child: Id
    why: str


class Annotation(FrozenModel):
    """The record of how an annotator made a rubric's graph: its input, and the answers that give no edge.

    `seen` has the digest of each criterion as it was shown: a pair of unchanged criteria is not asked about again.
    `roles` are the annotator's; a role in the criterion itself overrides them. `unassigned` has the reason for each
    criterion without a role. `candidates` is the number of pairs that can have an edge given their roles.
    """

    domain: str
    candidates: Count
    roles: dict[Id, Role] = Field(default_factory=dict)
    unassigned: dict[Id, str] = Field(default_factory=dict)
    seen: dict[Id, str]
    rejected: tuple[RejectedEdge, ...] = ()
    unanswered: tuple[UnansweredPair, ...] = ()


class Rubric(FrozenModel):
    """Criteria, and edges that give no credit beyond an unmet prerequisite.

    `annotation` records how an annotator made the edges, if one did; it has no effect on rewards.
    """

    criteria: tuple[Criterion, ...] = Field(min_length=1)
    edges: tuple[Edge, ...] = ()
    annotation: Annotation | None = Field(default=None, exclude_if=lambda annotation: annotation is None)

    @model_validator(mode="after")
    def _check_edges(self) -> Self:
        known = {c.id for c in self.criteria}
        require_unique("criterion", "criteria[{}].id", [c.id for c in self.criteria])
        require_different_texts("criteria[{}].text", [(c.id, c.text) for c in self.criteria])
        joined: set[tuple[str, str]] = set()
        for place, edge in enumerate(self.edges):
            for end, name in (("parent", edge.parent), ("child", edge.child)):
                if name not in known:
                    problem = f"`edges[{place}].{end}` names {quote(name)}, which is not a criterion"
                    raise ValueError(f"{problem}; {suggest_name(name, known)}")
            if edge.parent == edge.child:
                problem = f"`edges[{place}]` joins {quote(edge.parent)} to itself"
                raise ValueError(f"{problem}; name two criteria, or leave it out")
            if (edge.parent, edge.child) in joined:
                pair = f"{quote(edge.parent)} -> {quote(edge.child)}"
                raise ValueError(f"`edges[{place}]` joins {pair} again; keep one of them")
            joined.add((edge.parent, edge.child))
        return self
