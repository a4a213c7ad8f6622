#!/bin/sh
# The recipes for clusters, on this machine: local.sh TASKS RUN SHARDS [AT_ONCE]
set -eu
export TASKS="$1" RUN="$2" SHARDS="$3"
seq "$SHARDS" | xargs -P "${4:-2}" -n 1 "$(dirname "$0")/shard.sh"
jurygraph merge "$RUN.shards" --out "$RUN"
