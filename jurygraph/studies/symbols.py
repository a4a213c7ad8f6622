"""Meanings of the Greek letters in reports: each is explained once, below its first use (`Report.symbols`).

A letter has one meaning in a report, and may have another one in the next, as in the papers.
"""

_ALPHA_TEXT = "agreement beyond chance (Krippendorff); 1 is full agreement, 0 what chance gives"
AGREEMENT = {"alpha": _ALPHA_TEXT, "α": _ALPHA_TEXT}
ALTERNATIVE_ANNOTATOR = {
    "ω": "share of the persons whom the judge beats, tested at 5 %",
    "ρ": "chance that the judge is as near to the other people as a person is, or nearer",
    "ε": "what the judge may be worse than a person, in this chance",
}
JUDGES = ALTERNATIVE_ANNOTATOR | {
    "κ": "agreement beyond chance (Cohen); 1 is full agreement, 0 what chance gives",
    "λ": "how far the mean label follows the judge; 0 takes the labels alone",
}
REVIEWERS = AGREEMENT | ALTERNATIVE_ANNOTATOR
CREDIT = {
    "κ": "how strictly a criterion's prerequisites count; 0 is not at all",
    "λ": "what is left of a criterion whose prerequisite is not met",
}
WORDING = {
    "σ²_Sem": "variance of a response's score over its wordings",
    "σ²_Rep": "variance of a response's score over exact repeats of one input",
    "σ²_ξ": "variance of a response's reward over its wordings",
    "σ": "standard deviation of a response's scores over its wordings",
    "ΔR_w": "change of a score by the drift of weights alone",
    "Δw": "change of a stakeholder's weight from its mean over wordings",
    "τ": "temperature of the weights: the higher, the more alike stakeholders count",
}
_SIMULATED = WORDING | {
    "η": "drift of a weight, with the variance σ²_η",
    "δ": "error of a utility",
    "ε": "error that all stakeholders share",
}
_TAU_B = "rank correlation of two orders of the agents (Kendall); 1 is the same order"
VOTES = {"τ_b": _TAU_B, "Δ": "difference of an agent's scores"}
SIMULATION = _SIMULATED | VOTES
RANKING = CREDIT | {"τ": WORDING["τ"]}
DISAGREEMENT = {"τ": "distance of components from which they are in conflict"}
CERTIFICATE = AGREEMENT | WORDING
