#!/bin/sh -e
# Compose: evaluators of your own beside built-in ones, a model for one of them, other weights, and what that changes.
# The model is one of your own server; name another with all of litellm's names, such as openai/gpt-5-mini.
jurygraph init letters --template evaluator
jurygraph doctor --config letters/jury.yaml
jurygraph score letters/tasks.jsonl --config letters/jury.yaml --model openai-compatible:http://127.0.0.1:8000/v1#qwen --dry-run
jurygraph score letters/tasks.jsonl --config letters/jury.yaml --model openai-compatible:http://127.0.0.1:8000/v1#qwen --max-calls 50 --out letters/run
jurygraph show letters/run --sort reward
jurygraph explain letters/run --response parcel/stiff --what-if
jurygraph rescore letters/run --out letters/warmer --set reward.warm=2
jurygraph compare letters/run letters/warmer
jurygraph export letters/warmer --to csv --questions -o letters/rewards.csv
