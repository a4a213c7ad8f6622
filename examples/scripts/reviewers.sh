#!/bin/sh -e
# A judge for each reviewer: is it worth it, what does it take, what does it predict, and where do reviewers differ?
jurygraph init kettles --template reviewers
jurygraph study agreement kettles/ratings.jsonl
jurygraph study reviewers kettles/ratings.jsonl
jurygraph score kettles/tasks.jsonl --model openai-compatible:http://127.0.0.1:8000/v1#qwen --dry-run
jurygraph score kettles/tasks.jsonl --model openai-compatible:http://127.0.0.1:8000/v1#qwen --out kettles/run
jurygraph show kettles/run
jurygraph show kettles/run --response headlamp/borrowed
jurygraph explain kettles/run --response headlamp/borrowed
jurygraph export kettles/run --to verdicts -o kettles/predictions.csv
