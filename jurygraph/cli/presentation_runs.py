"""The runs of `study stability --config`: models read and write presentations of responses, which are scored."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from jurygraph.agents.presentation.prose import Prose
from jurygraph.agents.presentation.rewrites import REWRITINGS
from jurygraph.agents.presentation.variants import PresentationSet
from jurygraph.cli.interrupts import exit_on_interrupt, run_interruptible
from jurygraph.cli.jury_loading import disable_langsmith_tracing, open_jury
from jurygraph.cli.render.summary import format_request_lines
from jurygraph.cli.render.text import print_message, print_messages, progress
from jurygraph.cli.scoring import ScoreOptions, StudyRun, reduce_request_limits, score_study
from jurygraph.errors import InputError
from jurygraph.models.factory import open_backend
from jurygraph.schema import Config
from jurygraph.sources.tasks import read_tasks, refuse_table_file
from jurygraph.studies.presentations import (
    TasksWithResponses,
    ask_about_each_response,
    check_response,
    generate_presentations,
    prose_responses_by_task,
    read_response,
    repeating,
    rewrite_response,
)
from jurygraph.studies.report import Report

T = TypeVar("T")


@dataclass
class PresentationModels:
    """Models that read responses without data, and write variants, before the scoring; None for no model.

    `options` are those of the scoring, with what is left of their limits.
    """

    reader: str | None
    writer: str | None
    options: ScoreOptions

    def read_prose(self, texts: TasksWithResponses) -> dict[str, Prose]:
        """Return the responses that a model could read."""
        if self.reader is None or not texts:
            return {}
        number = _count_responses(texts)
        what = "reads responses without data"
        read: dict[str, Prose | str] = self._ask_or_estimate(
            self.reader, what, texts, number, read_response
        )
        prose = {}
        for name, found in read.items():
            if isinstance(found, str):
                print_message(f"{name} is left out: {found}")
            else:
                prose[name] = found
                if found.note:
                    print_message(f"{name}, not in the text: {found.note}")
        return prose

    def write_presentation_variants(
        self, pairs: TasksWithResponses, versions: int, prose: dict[str, Prose]
    ) -> dict[str, PresentationSet]:
        """Return what a model writes of each response; that of responses in prose is read back by the reader."""
        if self.writer is None:
            return {}
        requests = _count_responses(pairs) * len(REWRITINGS) * versions
        request_rewritings = partial(rewrite_response, versions=versions, prose=prose)
        written = self._ask_or_estimate(
            self.writer, "writes variants", pairs, requests, request_rewritings
        )
        if not written or self.reader is None or not prose:
            return written
        requests = sum(len(written[name].variants) for name in prose)
        check = partial(check_response, prose=prose, written=written)
        what = "reads what was written"
        return written | self._ask_or_estimate(self.reader, what, pairs, requests, check)

    def _ask_or_estimate(
        self,
        model: str,
        what: str,
        pairs: TasksWithResponses,
        requests: int,
        ask: Callable[..., Awaitable[T | None]],
    ) -> dict[str, T]:
        """Return what `ask` gives for each response, by its id, with so many requests at most.

        Replies stay in the cache for the next time. A dry run says how much it is, and gives nothing.
        """
        limit = f"at most {requests} requests, and a repair of each"
        config = Config.model_validate({"model": model, "evaluators": ["criteria"]})
        if self.options.dry_run:
            # An unknown name is refused before anything is paid for.
            open_backend(model, config.calls)
            print_message(f"{model} first {what}: {limit}; that is not in the estimate")
            return {}
        disable_langsmith_tracing()
        # after that: it loads LangGraph
        from jurygraph.jury import Jury
        from jurygraph.planner import Planner
        from jurygraph.runs.reports.bill import count_requests

        print_message(f"{model} {what}: {limit}")
        jury = Jury(config, max_cost=self.options.max_cost, max_calls=self.options.max_calls)
        with jury, asyncio.Runner() as runner:
            with progress(what, _count_responses(pairs), "responses") as advance:
                ask_all = partial(ask_about_each_response, pairs, ask, advance=advance)
                request = Planner(jury).arun_with_client(ask_all)
                try:
                    with exit_on_interrupt(
                        "interrupted; run the same command again: it continues from the cache"
                    ):
                        result = run_interruptible(runner, request, jury.context.threads)
                finally:
                    runner.run(jury.gateways.close())
            sent_requests = count_requests(jury)
        print_messages(format_request_lines(sent_requests))
        self.options = reduce_request_limits(self.options, sent_requests)
        return result


def score_presentation_variants(
    models: PresentationModels, config: Path, repeats: int, versions: int, as_json: bool
) -> tuple[Report, list[Path]]:
    """Make and score the variants of tasks and exact repeats; return what was made, and the runs, none in a dry run."""
    options = models.options
    refuse_table_file(options.tasks)
    pairs = list(read_tasks(options.tasks))
    texts = [] if models.reader is None else prose_responses_by_task(pairs)
    if not texts:
        generate_presentations(pairs, 0)
    # What is wrong with the responses or the config is said before a reader or writer is paid for.
    with open_jury(config, options.model, dry_run=True):
        pass
    prose = models.read_prose(texts)
    model_written_presentations = models.write_presentation_variants(pairs, versions, prose)
    if options.dry_run and texts:
        return Report({}, [], []), []
    if texts and not prose and _count_responses(texts) == _count_responses(pairs):
        raise InputError(
            f"--reader: {models.reader} could read no response; the lines above say why"
        )
    original_response_lines, _ = generate_presentations(pairs, 0, prose=prose)
    lines, presentations = generate_presentations(
        pairs, versions, repeats == 1, model_written_presentations, prose
    )
    folder = config.resolve().parent
    revise_for_one_sample = partial(repeating, samples=1, folder=folder)
    runs = [StudyRun("variants", lines, revise_for_one_sample)]
    if repeats > 1:
        revise_for_repeats = partial(repeating, samples=repeats, folder=folder)
        runs.append(StudyRun("repeats", original_response_lines, revise_for_repeats))
    return presentations, score_study(options.run, runs, models.options, as_json)


def _count_responses(pairs: TasksWithResponses) -> int:
    return sum(len(responses) for _, responses in pairs)
