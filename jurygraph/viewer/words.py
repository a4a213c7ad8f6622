"""Our words in a sentence each, as the pages explain them; docs/glossary.md begins its rows with the same sentences."""

from collections.abc import Mapping

TERM_TOOLTIPS: Mapping[str, str] = {
    "abstained": "the judge gave no verdict: it could not tell",
    "component": "one named part of a reward, with a signed weight",
    "coverage": "the share of a reward's weight that was judged, or set by a response gate, between 0 and 1",
    "degraded": "the status of a reward with missing verdicts that still has a value",
    "difficulty": "how hard a stakeholder is to serve, any number from 0 on: it raises the stakeholder's weight",
    "discarded": "a verdict below the confidence that its component asks for: it counts as not given",
    "failed": "without a value: the verdict was not given, or the reward has none and is in no mean",
    "gate": "a threshold with a named effect",
    "kappa": "κ: how strictly an unmet prerequisite counts against what depends on it; 0 is not at all",
    "not applicable": "the question does not concern this response, so that it is in no sum",
    "p": "what a criterion scored, before its prerequisites",
    "q": "what is left of a criterion's score when its prerequisites are taken into account",
    "retention": "λ: the share of a criterion's credit that stays where its prerequisite is not met",
    "tau": "τ: how alike stakeholders count; the larger, the more alike",
    "unsupported": "a finding that no quotation from the response bears out",
    "utility": "how well a response serves one stakeholder, between 0 and 1",
}
