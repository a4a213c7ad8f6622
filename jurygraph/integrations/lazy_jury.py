"""A jury for trainers, which pickle their reward functions, start processes, and await in event loops of their own.

Only how to open the jury is pickled: each process opens one when it scores first, and keeps it. The work runs in the
jury's own event loop, because some trainers begin a new loop at every step, and connections belong to one loop.
"""

import asyncio
import atexit
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Any

from jurygraph.errors import InputError
from jurygraph.graphs.groups import Group
from jurygraph.integrations.failed_rewards import (
    OutageGuard,
    describe_first_failure,
    is_power_of_ten,
)
from jurygraph.jury import Jury
from jurygraph.messages import quote
from jurygraph.runs.open_ended_recorder import list_recording_folders, resolve_recording_folder
from jurygraph.runs.recorder import refuse_other_run
from jurygraph.runs.run import Run, read_group_labels
from jurygraph.runs.workflows.plans_file import PlansFile
from jurygraph.schema import Call, Config, Trace
from jurygraph.schema.plan import FailureRule
from jurygraph.sources.files import close_on_error, explain_unreadable_file

log = logging.getLogger(__name__)

ConfigSource = str | Path | Mapping[str, Any] | Config
"""A config as `Jury.from_config` takes it: a file, its content, or a whole config."""


def set_training_rule(config: Config, record: str | Path | None = None) -> Config:
    """Return a config for a training: a failure that could change a reward fails it, if the config names no rule.

    A policy would learn from the 0 that the `conservative` rule puts in its place. A record that was begun under
    another rule goes on with it, in the folders of new processes, too, so that its rewards stay comparable.
    """
    failure = config.failure
    if "rule" in failure.model_fields_set or failure.group_rule is not None:
        return config
    folders = [] if record is None else list_recording_folders(record)
    rule: FailureRule = "decisive"
    for folder in folders:
        if run := Run.open_if_begun(folder):
            with run:
                rule = run.config.failure.rule
            break
    return config.with_failure_rule(rule)


class MissingStepWarning:
    """Logs once that a training stores responses whose step nobody can tell later."""

    def __init__(self) -> None:
        self._is_logged = False

    def observe(self, groups: Iterable[Group]) -> None:
        """Look at groups that are to be stored."""
        for group in groups:
            has_step = any("step" in response.labels for response in group.responses)
            if not (has_step or self._is_logged):
                self._is_logged = True
                log.warning(
                    "responses to task %s have no step, so that the record cannot tell this training's steps apart "
                    "(logged once); give each its `step` (TRL: `trainer_state`), or watch it by `--every N`",
                    quote(group.task.id),
                )


class LazyJury:
    """The jury of a config, for whatever process needs it; `record` is the folder that its groups are stored in.

    `plans` is the path of a file of plans. `outages` counts the groups without a reward, in this process. Raises as
    `Jury.from_config` and `PlansFile`, and InputError for a record that is a file, before a trainer has loaded its
    policy; nothing is sent or written until a group is scored.
    """

    def __init__(
        self,
        config: ConfigSource,
        record: str | Path | None = None,
        plans: str | Path | None = None,
    ) -> None:
        self._config = Path(config).resolve() if isinstance(config, str | Path) else config
        self._record = record
        self._plans_path = None if plans is None else Path(plans).resolve()
        if isinstance(self._config, Path) and not self._config.is_file():
            with explain_unreadable_file(str(config)):
                self._config.stat()
            raise InputError(f"{config}: is no file; name a config")
        self._reset_process_state()
        self.open()

    def _reset_process_state(self) -> None:
        self._guard = Lock()
        self._jury: Jury | None = None
        self._plans: PlansFile | None = None
        self._process = os.getpid()
        self.outages = OutageGuard()
        self._session = 1
        self._degraded_count = 0
        self._missing_step_warning = MissingStepWarning()

    def __getstate__(self) -> dict[str, Any]:
        names = ("_config", "_record", "_plans_path")
        return {name: self.__dict__[name] for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset_process_state()

    def open(self) -> Jury:
        """Return the jury of this process. Raises as `Jury.from_config`."""
        if self._process != os.getpid():
            self._reset_process_state()  # after a fork: the threads and connections are the parent's
        with self._guard:
            if self._jury is None:
                if self._record is not None:
                    # only now, as a worker may get its rank after it was made
                    self.outages.record = resolve_recording_folder(self._record)
                revise = partial(set_training_rule, record=self._record)
                jury = Jury.from_config(self._config, record=self._record, revise=revise)
                with close_on_error(jury.close):
                    if self._plans_path is not None:
                        self._plans = PlansFile(self._plans_path, jury)
                    if self.outages.record is not None:
                        self._session = _begin_session(self.outages.record, jury)
                self._jury = jury
                # A trainer that ends says nothing to its reward functions. This runs before the connections say that
                # nobody closed them, because they registered earlier.
                atexit.register(self.close)
            return self._jury

    @property
    def session(self) -> int:
        """Return the number of this session: 1 where it begins the record, else counted on from the last group's there.

        It is counted when the jury is opened. Raises as `Jury.from_config`.
        """
        self.open()
        return self._session

    @property
    def plans(self) -> PlansFile | None:
        """Return the file of plans of this process, None without one. Raises as `Jury.from_config`."""
        self.open()
        return self._plans

    def count_records(self) -> int:
        """Return the number of records of the run so far, 0 without one."""
        recorder = self.open().open_recorder()
        return 0 if recorder is None else recorder.count_records()

    def is_answered_without_request(self, call: Call, record_count: int) -> bool:
        """Return whether a reply was in the cache, or in the run when it had this many records."""
        recorder = self.open().open_recorder()
        return call.cache_hit or (recorder is not None and recorder.has_reply(call, record_count))

    async def score(self, groups: Sequence[Group]) -> list[list[Trace]]:
        """Return the traces of groups, in their order. Raises as `Jury.ascore_many`."""
        return await asyncio.wrap_future(self.open().loop.submit(self._score(groups)))

    async def _score(self, groups: Sequence[Group]) -> list[list[Trace]]:
        if self._record is not None:
            self._missing_step_warning.observe(groups)
        scored = [traces async for traces in self.open().ascore_many(groups)]
        for trace in chain.from_iterable(scored):
            self._warn_of_degraded_reward(trace)
        return scored

    def _warn_of_degraded_reward(self, trace: Trace) -> None:
        """Log a reward that lacks a verdict: the first, the tenth and so on."""
        if trace.reward.status != "degraded":
            return
        self._degraded_count += 1
        if is_power_of_ten(self._degraded_count):
            log.warning(
                "the reward of response %s has a value and lacks a verdict%s; %s (number %d of its kind: the first, "
                "the tenth and so on are said)",
                *(trace.response_id, describe_first_failure([trace])),
                *("; ".join(trace.reward.notes), self._degraded_count),
            )

    def close(self) -> None:
        """Close the jury of this process, as its end does, too; it is opened again when it is needed."""
        atexit.unregister(self.close)
        if self._process != os.getpid():
            self._reset_process_state()  # after a fork, whose end must not close what the parent uses
        with self._guard:
            jury = self._jury
            self._jury = None
            if self._plans is not None:
                self._plans.close()
        if jury is not None:
            jury.close()


def _begin_session(folder: Path, jury: Jury) -> int:
    """Return the number of a session that records in a folder, from 1 on, and log that it goes on with others.

    A training that goes on means it; one that starts anew is mixed with the one before. Raises as `refuse_other_run`.
    """
    run = Run.open_if_begun(folder)
    if run is None:
        return 1
    with run:
        refuse_other_run(run, jury)
        last_group_number = max(run.ledger.record_numbers("group"), default=None)
        if last_group_number is None:
            return 1
        last_group = run.group(run.ledger.record_at(last_group_number))
    last_session = read_group_labels(last_group).get("session")
    session = last_session + 1 if isinstance(last_session, int) else 2
    log.warning(
        "%s contains a run already, and this training continues it: where a step recurs, `--label step=N` has the "
        "responses of both trainings, and by TRL `--label session=%d` those of this one; for a new training, name "
        "another folder",
        *(folder, session),
    )
    return session


def find_shared_jury(config: str | Path, record: str | Path | None = None) -> LazyJury:
    """Return the jury of a file, one for each process, for trainers that call a plain function with its path."""
    return _make_shared_jury(str(config), None if record is None else str(record))


@lru_cache(maxsize=64)
def _make_shared_jury(config: str, record: str | None) -> LazyJury:
    return LazyJury(config, record)


def compares_responses(jury: Jury) -> bool:
    """Return whether a reward depends on the other responses of its group."""
    evaluator_scopes = {evaluator.scope for evaluator in jury.evaluators.values()}
    uses_other_rows = any(combiner.uses_other_rows for combiner in jury.combiners.values())
    return (
        not evaluator_scopes.isdisjoint(("pair", "group"))
        or uses_other_rows
        or jury.config.failure.group_rule is not None
    )
