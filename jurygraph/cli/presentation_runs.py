"""The runs of `study stability --config`: models read and write presentations of responses, which are scored."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from jurygraph.agents.presentation.prose import Prose
from jurygraph.agents.presentation.rewrites import REWRITINGS
from jurygraph.agents.presentation.variants import PresentationSet
from jurygraph.cli.interrupts import exit_if_interrupted, run_interruptible
from jurygraph.cli.jury_loading import disable_tracing, open_jury
from jurygraph.cli.render.summary import request_lines
from jurygraph.cli.render.text import print_message, progress
from jurygraph.cli.scoring import ScoreOptions, StudyRun, reduce_limits, score_study
from jurygraph.errors import InputError
from jurygraph.models.factory import open_backend
from jurygraph.schema import Config
from jurygraph.sources import read_tasks
from jurygraph.studies.presentations import (
    AnsweredTasks,
    check_responses,
    generate_presentations,
    read_responses,
    repeating,
    responses_without_data,
    rewrite_responses,
)
from jurygraph.studies.report import Report

T = TypeVar("T")


class PresentationModels(NamedTuple):
    """Models that read responses without data, and write variants; None for no model."""

    reader: str | None
    writer: str | None


class ModelWork(NamedTuple):
    """The work of a model before the scoring: how many responses that is, and at most how many requests."""

    model: str
    what: str
    responses: int
    requests: int


def score_presentations(
    options: ScoreOptions,
    config: Path,
    repeats: int,
    versions: int,
    authors: PresentationModels,
    as_json: bool,
) -> tuple[Report, list[Path]]:
    """Make and score the variants of tasks and exact repeats; return what was made, and the runs, none in a dry run."""
    pairs = list(read_tasks(options.tasks))
    texts = [] if authors.reader is None else responses_without_data(pairs)
    if not texts:
        generate_presentations(pairs, 0)
    # What is wrong with the responses or the config is said before a reader or writer is paid for.
    open_jury(config, options.model, dry_run=True).close()
    prose, options = _read_prose(texts, authors.reader, options)
    written_presentations, options = _write_presentations(pairs, authors, versions, options, prose)
    if options.dry_run and texts:
        return Report({}, [], []), []
    if texts and not prose and _count_responses(texts) == _count_responses(pairs):
        raise InputError(
            f"--reader: {authors.reader} could read no response; the lines above say why"
        )
    originals, _ = generate_presentations(pairs, 0, prose=prose)
    lines, presentations = generate_presentations(
        pairs, versions, repeats == 1, written_presentations, prose
    )
    folder = config.resolve().parent
    score_once = partial(repeating, samples=1, folder=folder)
    runs = [StudyRun("variants", lines, score_once)]
    if repeats > 1:
        score_repeatedly = partial(repeating, samples=repeats, folder=folder)
        runs.append(StudyRun("repeats", originals, score_repeatedly))
    return presentations, score_study(options.run, runs, options, as_json)


def _count_responses(pairs: AnsweredTasks) -> int:
    return sum(len(responses) for _, responses in pairs)


def _read_prose(
    texts: AnsweredTasks, reader: str | None, options: ScoreOptions
) -> tuple[dict[str, Prose], ScoreOptions]:
    """Return the responses that a model could read, and the options with what that leaves of their limits."""
    if reader is None or not texts:
        return {}, options
    number = _count_responses(texts)
    work = ModelWork(reader, "reads responses without data", number, number)
    read, options = _ask_first(work, partial(read_responses, texts), options)
    prose = {}
    for name, found in read.items():
        if isinstance(found, str):
            print_message(f"{name} is left out: {found}")
        else:
            prose[name] = found
            if found.note:
                print_message(f"{name}, not in the text: {found.note}")
    return prose, options


def _write_presentations(
    pairs: AnsweredTasks,
    authors: PresentationModels,
    versions: int,
    options: ScoreOptions,
    prose: dict[str, Prose],
) -> tuple[dict[str, PresentationSet], ScoreOptions]:
    """Return what a model writes of each response, and the options with what that leaves of their limits.

    What it writes of responses in prose is read back by the reader.
    """
    if authors.writer is None:
        return {}, options
    number = _count_responses(pairs)
    variants_per_response = len(REWRITINGS) * versions
    work = ModelWork(authors.writer, "writes variants", number, number * variants_per_response)
    rewrite = partial(rewrite_responses, pairs, versions=versions, prose=prose)
    written_presentations, options = _ask_first(work, rewrite, options)
    if not written_presentations or authors.reader is None or not prose:
        return written_presentations, options
    requests = sum(len(written_presentations[name].variants) for name in prose)
    work = ModelWork(authors.reader, "reads what was written", number, requests)
    check = partial(check_responses, pairs, prose=prose, written=written_presentations)
    return _ask_first(work, check, options)


def _ask_first(
    work: ModelWork, ask: Callable[..., Awaitable[dict[str, T]]], options: ScoreOptions
) -> tuple[dict[str, T], ScoreOptions]:
    """Return what `ask(client, advance=…)` makes of a model before scoring, and what it leaves of the limits.

    Replies stay in the cache for the next time. A dry run says how much it is, and gives nothing.
    """
    limit = f"at most {work.requests} requests, and a repair of each"
    config = Config.model_validate({"model": work.model, "evaluators": ["criteria"]})
    if options.dry_run:
        # An unknown name is refused before anything is paid for.
        open_backend(work.model, config.calls)
        print_message(f"{work.model} first {work.what}: {limit}; that is not in the estimate")
        return {}, options
    disable_tracing()
    # after that: it loads LangGraph
    from jurygraph.jury import Jury
    from jurygraph.planner import Planner
    from jurygraph.runs.reports.bill import count_requests

    print_message(f"{work.model} {work.what}: {limit}")
    jury = Jury(config, max_cost=options.max_cost, max_calls=options.max_calls)
    with jury, asyncio.Runner() as runner:
        with progress(work.what, work.responses, "responses") as advance:
            request = Planner(jury).amake(partial(ask, advance=advance))
            advice = "run the same command again: it continues from the cache"
            try:
                with exit_if_interrupted(f"interrupted; {advice}"):
                    result = run_interruptible(runner, request, jury.context.threads)
            finally:
                runner.run(jury.gateways.close())
        sent_requests = count_requests(jury)
    for line in request_lines(sent_requests):
        print_message(line)
    return result, reduce_limits(options, sent_requests)
