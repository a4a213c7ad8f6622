"""Meanings of Greek letters, and of ICC, in reports: each is explained once, where it is first used
(`Report.symbol_meanings`).

A letter has one meaning in a report, and may have another one in the next, as in the papers.
"""

_ALPHA_MEANING = "agreement beyond chance (Krippendorff); 1 is full agreement, 0 what chance gives"
_ICC_MEANING = (
    "intraclass correlation, one-way: where a whole sample is higher, as by a draw of examples that its texts share, "
    "that counts as noise"
)
AGREEMENT_SYMBOL_MEANINGS = {
    "alpha": _ALPHA_MEANING,
    "α": _ALPHA_MEANING,
    "ICC": _ICC_MEANING,
}
_KAPPA_MEANING = "agreement beyond chance (Cohen); 1 is full agreement, 0 what chance gives, 0.6 and more is good"
RELIABILITY_SYMBOL_MEANINGS = AGREEMENT_SYMBOL_MEANINGS | {"κ": _KAPPA_MEANING}
JUDGE_STUDY_SYMBOL_MEANINGS = {
    "ω": "share of the persons whom the judge beats, tested at 5 %",
    "ρ": "chance that the judge is as near to the other people as a person is, or nearer",
    "ε": "what the judge may be worse than a person, in this chance",
    "κ": f"{_KAPPA_MEANING}; on scales the farther is the worse (weights: squared distance)",
    "λ": "how far the mean label follows the judge; 0 takes the labels alone",
}
CREDIT_SYMBOL_MEANINGS = {
    "κ": "how strictly a criterion's prerequisites count; 0 is not at all",
    "λ": "what is left of a criterion whose prerequisite is not met",
}
WORDING_SYMBOL_MEANINGS = {
    "σ²_Sem": "variance of a response's score over its wordings",
    "σ²_Rep": "variance of a response's score over exact repeats of one input",
    "σ²_ξ": "variance of a response's reward over its wordings",
    "σ": "standard deviation of a response's scores over its wordings",
    "ΔR_w": "change of a score by the drift of weights alone",
    "Δw": "change of a stakeholder's weight from its mean over wordings",
    "τ": "temperature of the weights: the higher, the more alike stakeholders count",
}
_DECOMPR_SYMBOL_MEANINGS = WORDING_SYMBOL_MEANINGS | {
    "η": "drift of a weight, with the variance σ²_η",
    "δ": "error of a utility",
    "ε": "error that all stakeholders share",
}
_TAU_B_MEANING = (
    "rank correlation of two orders of the agents (Kendall); 1 is the same order, 0 none in common, "
    "-1 the reverse"
)
CONSENSUS_SYMBOL_MEANINGS = {
    "τ_b": _TAU_B_MEANING,
    "Δ": "difference of an agent's scores",
    "κ": _KAPPA_MEANING,
}
SIMULATION_SYMBOL_MEANINGS = _DECOMPR_SYMBOL_MEANINGS | CONSENSUS_SYMBOL_MEANINGS
RANKING_SYMBOL_MEANINGS = CREDIT_SYMBOL_MEANINGS | {"τ": WORDING_SYMBOL_MEANINGS["τ"]}
DISAGREEMENT_SYMBOL_MEANINGS = {"τ": "distance of components from which they are in conflict"}
CERTIFICATE_SYMBOL_MEANINGS = AGREEMENT_SYMBOL_MEANINGS | WORDING_SYMBOL_MEANINGS
