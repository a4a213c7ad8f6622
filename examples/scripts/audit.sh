#!/bin/sh -e
# Audit a run: the lowest reward, its verdicts and quotations, whether anything was changed, and what another rule would say.
jurygraph init sums --template maths
jurygraph score sums/tasks.jsonl --out sums/run --gate "mean>=0.5, failed<=0"
jurygraph show sums/run --sort reward --limit 3
jurygraph explain sums/run --response train/hasty --what-if
jurygraph show sums/run --response train/hasty --verdict maths.calculation
jurygraph verify sums/run --deep
jurygraph rescore sums/run --out sums/strict --set failure.rule=strict --set reward.accuracy=2
jurygraph compare sums/run sums/strict --markdown
jurygraph study ranking sums/run
jurygraph report sums/run -o sums/report.html
jurygraph report sums/run --response train/hasty -o sums/hasty.html
jurygraph close sums/run
jurygraph export sums/run --to audit-bundle -o sums/run.zip
