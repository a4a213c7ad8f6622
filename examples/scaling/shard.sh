#!/bin/sh
# Score one shard, the one numbered $1 (from 1), of TASKS into RUN.shards. The same command resumes it.
set -eu
# 1 is the exit code where some rewards failed; the shard is complete.
jurygraph score "$TASKS" --shard "$1/$SHARDS" --out "$RUN.shards/$1" ${SCORE_OPTIONS:-} || [ $? -eq 1 ]
