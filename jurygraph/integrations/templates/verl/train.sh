#!/bin/sh
# The server judges the samples of a prompt as one group, and fills in its mean where the judge failed.
# First, in another terminal:  jurygraph serve --config jury.yaml --failed neutral --out run
# Without the server: replace the line of `url` by  +reward.custom_reward_function.reward_kwargs.config=jury.yaml
python -m verl.trainer.main_ppo \
    data.train_files=train.parquet data.val_files=train.parquet trainer.val_before_train=False \
    algorithm.adv_estimator=grpo actor_rollout_ref.rollout.n=8 \
    reward.custom_reward_function.path=pkg://jurygraph.integrations.verl \
    reward.custom_reward_function.name=compute_score \
    +reward.custom_reward_function.reward_kwargs.url=http://127.0.0.1:7577 \
    reward.reward_manager.source=importlib \
    reward.reward_manager.name=JuryRewardManager \
    reward.reward_manager.module.path=pkg://jurygraph.integrations.verl \
    "$@"
