"""Statistical inference for studies and comparisons: arrays in, figures out. Nothing here decides a reward.

    clusters      intervals of means, ratios (CR3) and proportions (Wilson) over tasks whose responses belong together;
                  non-inferiority, and the difference that a design can detect; resamples of whole clusters
    crossed       means whose values are of two kinds of clusters, such as reviewers and items (two-way clustering)
    sign_flips    paired tests that flip whole tasks, exact where that is feasible; p-values for many tests (Holm)
    agreement     Cohen's kappa and Krippendorff's alpha with intervals; overlap of what two raters rate high
    corrected     means of people's labels by few labels and many verdicts (PPI++, Rogan-Gladen)
    variance      variance by level: tasks, responses, samples; correlation within a task; reliability of means

A cluster is what was drawn independently: mostly a task with all its responses. Intervals are of 95 % and two-sided.
Seeds are explicit. docs/statistics.md says which figure answers which question.
"""
