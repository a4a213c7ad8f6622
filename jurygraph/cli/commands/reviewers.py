"""`jurygraph study reviewers`: judges of reviewers, with a model and without, on the same ratings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from json import dumps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jurygraph.cli.options import (
    AgentColumn,
    AsJson,
    AsMarkdown,
    DryRun,
    ItemColumn,
    MaxCalls,
    MaxCost,
    PlotFile,
    ReviewerColumn,
    ScoreColumn,
    choose_names,
    named_columns,
    option,
    split_names,
)
from jurygraph.cli.render.progress import progress
from jurygraph.cli.render.report import ReportOutput, read_runs
from jurygraph.errors import InputError
from jurygraph.inference.agreement import AlphaLevel
from jurygraph.sources.ratings import read_ratings, read_texts
from jurygraph.studies.report import Report

if TYPE_CHECKING:
    from jurygraph.cli.scoring import ScoreOptions


def reviewers(
    ratings: Annotated[Path, typer.Argument(metavar="RATINGS", help="A CSV, JSONL or Parquet file, .gz too.")],
    items: Annotated[Path | None, option("TEXTS", "File with the items' texts, if RATINGS has none.")] = None,
    judges: Annotated[str | None, option("A,B", "Judges to compare.", show_default="all that need no model")] = None,
    shots: Annotated[str, typer.Option(metavar="N,M", help="Numbers of examples.")] = "0,1,2,5,10",
    seeds: Annotated[int, typer.Option(metavar="N", help="Draws of examples.", min=1)] = 3,
    run: Annotated[list[Path] | None, option("RUN", "Run with judges of reviewers; repeat it for several.")] = None,
    min_confidence: Annotated[
        float, typer.Option(metavar="C", help="Leave out less confident predictions, 0 to 100.", min=0, max=100)
    ] = 0.0,
    out: Annotated[Path | None, option("DIR", "Folder for runs of the judges with a model.", "-o", "--out")] = None,
    model: Annotated[str | None, option("M", "Model of these runs.")] = None,
    config: Annotated[Path | None, option("F", "Config of these runs, with a judge of reviewers.")] = None,
    dry_run: DryRun = False,
    max_cost: MaxCost = None,
    max_calls: MaxCalls = None,
    embedder: Annotated[str | None, option("E", "Embedder of texts.", show_default="TF-IDF")] = None,
    item: ItemColumn = None,
    reviewer: ReviewerColumn = None,
    score: ScoreColumn = None,
    agent: AgentColumn = None,
    level: Annotated[
        Literal["ordinal", "interval"], typer.Option(help="What the difference of two scores means.")
    ] = "ordinal",
    plot: PlotFile = None,
    markdown: AsMarkdown = False,
    json: AsJson = False,
) -> None:
    """Measure how well judges predict each reviewer's scores, and whether a judge for each reviewer is worth it.

    Every score is predicted from other ratings: never from one of the judged item or its group. `own-history` is the
    mean of the reviewer's own scores, and `neighbours` that of the own scores of the items with the most similar texts.
    `item-mean` and `rater-offset` use what others gave the item: their mean, and that mean with the reviewer's usual
    distance from it. None of the four needs a model. The predictions of `zero-shot`, `aggregate` and `personalized` are
    taken from scored runs (--run), whose responses have the ids of the rated items, or of runs made for the study
    (--judges with --model and --out): one for each judge, number of examples and seed. What they cost is printed first;
    the same command continues them. Dimensions are described as in --config, or else by their names.

    Exit codes: 0 done; 2 invalid input; 3 the model could not be reached; 4 budget reached; 130 interrupted.

    \b
    Example:
        jurygraph study reviewers ratings.csv --items texts.jsonl
        jurygraph study reviewers votes.csv --item id --judges item-mean,rater-offset --json
        jurygraph study reviewers ratings.csv --run scored --min-confidence 80
        jurygraph study reviewers ratings.csv --judges zero-shot,personalized --model M --out runs --dry-run
    """
    from jurygraph.cli.scoring import ScoreOptions

    output = ReportOutput(json, markdown, plot, (str(ratings),))
    columns = named_columns(item=item, reviewer=reviewer, score=score, agent=agent)
    study = _Study(ratings, items, columns, judges, shots, seeds)
    options = ScoreOptions("", out or Path(), config=config, dry_run=dry_run, max_cost=max_cost, max_calls=max_calls)
    folders = [*(run or ()), *study.score(options, model, out is not None, json)]
    if not dry_run:
        output.write(study.report(folders, min_confidence / 100.0, embedder, level))


class _Study:
    """The ratings, the judges to compare, and the runs of those that ask a model. Raises `InputError`."""

    def __init__(
        self,
        ratings: Path,
        items: Path | None,
        columns: Mapping[str, str],
        judges: str | None,
        shots: str,
        seeds: int,
    ) -> None:
        from jurygraph.studies.agreement import read_parts
        from jurygraph.studies.reviewers import plan_runs, texts_of

        self._file = read_ratings(ratings, columns)
        self._texts = texts_of(self._file, {} if items is None else read_texts(items))
        self._shots = [_parse_count(count) for count in split_names(shots)]
        self._seeds = seeds
        self._judges = _choose_judges(judges, self._texts)
        self._parts = read_parts([self._file])
        self._designs = plan_runs(self._judges, self._shots, seeds)
        source = {"history": str(ratings), "texts": items and str(items), "columns": columns}
        self._source = {name: value for name, value in source.items() if value}

    def score(self, options: "ScoreOptions", model: str | None, has_folder: bool, as_json: bool) -> list[Path]:
        """Score the runs of the judges with a model, and return them; none in a dry run."""
        from jurygraph.cli.scoring import StudyRun, score_study
        from jurygraph.studies.reviewers import default_config, tasks_of

        if not self._designs:
            if options.dry_run or has_folder:
                raise InputError("--out and --dry-run: are for judges with a model; name some with --judges")
            return []
        if not has_folder and not options.dry_run:
            raise InputError(f"--judges {self._designs[0].judge}: asks a model; name a folder for its runs with --out")
        if model is None and options.config is None:
            raise InputError(f"--judges {self._designs[0].judge}: asks a model; name it with --model")
        tasks = tasks_of(self._file, self._texts)
        with TemporaryDirectory() as place:
            if options.config is None:
                path = Path(place, "jury.yaml")
                path.write_text(dumps(default_config(self._parts)), encoding="utf-8")
                options = replace(options, config=path)
            runs = [StudyRun(one.name, tasks, partial(one.revise, source=self._source)) for one in self._designs]
            return score_study(options.run, runs, replace(options, model=model), as_json)

    def report(self, folders: Sequence[Path], least: float, embedder: str | None, level: AlphaLevel) -> Report:
        """Compare the judges without a model and those of the runs, whose predictions have the `least` confidence."""
        from jurygraph.models.embedding import open_embedder
        from jurygraph.studies.reviewers import EmbeddedTexts, join_runs, predict, read_run, tf_idf, unrated_notes
        from jurygraph.studies.reviewers import report as compare_judges

        runs = list(chain.from_iterable(read_runs(folders, read_run)))
        joined = join_runs(runs, self._parts, least)
        unrated = list(unrated_notes(runs, self._parts))
        with progress("embedding", len(self._texts), "texts") as advance:
            vectorize = tf_idf if embedder is None else EmbeddedTexts(open_embedder(embedder), advance)
            counts = (self._shots, self._seeds, self._texts, vectorize)
            judged = [
                (part, [*predict(part, self._judges, *counts), *predicted])
                for part, predicted in zip(self._parts, joined, strict=True)
            ]
            report = compare_judges(judged, level, vectorize)
        report.notes = [*report.notes, *unrated]
        return report


def _choose_judges(judges: str | None, texts: Mapping[str, str]) -> Sequence[str]:
    from jurygraph.studies.reviewers import MODEL_JUDGES, NO_MODEL

    if judges is None:
        return [name for name in NO_MODEL if texts or name != "neighbours"]
    names = choose_names("--judges: unknown judge", split_names(judges), (*NO_MODEL, *MODEL_JUDGES))
    if "neighbours" in names and not texts:
        raise InputError("--judges neighbours: compares texts; name a file of them with --items")
    return names


def _parse_count(text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"--shots: {text!r} is not a number of examples; write numbers such as 0,1,2,5,10")
    return int(text)
