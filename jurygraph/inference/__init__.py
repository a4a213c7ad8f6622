"""Statistical inference for studies and comparisons: arrays in, figures out. Nothing here decides a reward.

    clusters      intervals of means and ratios over tasks whose responses belong together (CR3)
    bounded       intervals of means of numbers with known bounds, for few tasks too
    shares        intervals of proportions, plain and over tasks (Wilson)
    sign_flips    paired tests that flip whole tasks, exact where that is feasible
    multiplicity  p-values adjusted for many tests (Holm)
    equivalence   non-inferiority, and the difference that a design can detect
    agreement     Cohen's kappa of two annotators, plain and weighted, with its interval
    krippendorff  Krippendorff's alpha of several raters, with its interval
    selections    overlap of what two raters each rate high (Jaccard), beside chance
    corrected     means of people's labels by few labels and many verdicts (PPI++, Rogan-Gladen)
    variance      variance by level: tasks, responses, samples; correlation within a task; reliability of means
    bootstrap     resamples of whole clusters
    chains        convergence of Markov chains (R-hat) and effective numbers of their draws

A cluster is what was drawn independently: mostly a task with all its responses. Intervals are of 95 % and two-sided.
Seeds are explicit. docs/statistics.md says which figure answers which question.
"""
