"""`jurygraph report`: a run, or one response, as a page that can be handed on."""

from contextlib import closing
from typing import Annotated

from jurygraph.cli.commands.show import print_if_run_unfinished
from jurygraph.cli.options import ByLabelOption, RunFolderArgument, option
from jurygraph.cli.output_files import refuse_unwritable, refuse_unwritable_page, write_output
from jurygraph.cli.render.text import print_message, progress
from jurygraph.errors import InputError
from jurygraph.messages import shell_quote
from jurygraph.runs.integrity.record_check import require_records_as_written
from jurygraph.runs.run import Run

_BRIEF_EXAMPLES = 3


def report(
    run: RunFolderArgument,
    output: Annotated[
        str, option("F.html", "File to write; F.md, of one --response, is Markdown.", "-o", "--out")
    ],
    response: Annotated[
        str | None, option("ID", "Write this response: prompts, replies, evidence and sums.")
    ] = None,
    most: Annotated[
        int | None,
        option(
            "N",
            "Draw the N lowest rewards whole; with --brief, examples.",
            show_default="10, or 3",
            min=1,
        ),
    ] = None,
    brief: Annotated[
        bool, option(None, "Write one page of paper, in plain words.", "--brief")
    ] = False,
    by: ByLabelOption = None,
    title: Annotated[str | None, option("TEXT", "Heading of --brief.")] = None,
) -> None:
    """Write a run, or one response, as a page that stands alone.

    The page is one file of HTML, without a script, that asks nothing of a server: to be mailed, printed or kept. It
    says which agent is better and how sure that is, then what each lost by what, what failed, and the responses, the
    lowest reward first: ten with what they lost and why, the others in a line each. With --response it has one
    response with its exact prompts, raw replies, evidence, and the sums behind its reward. In a file that ends in .md
    it is Markdown for an issue: question, answer, sums and verdicts. With --brief it has one page for whoever decides:
    who is better, how sure that is, why, what was judged by what, and examples; with --by LABEL also who is
    better in each value of a label. Nothing is written of a run whose records, or texts that they name, were changed;
    `verify` also recomputes the rewards.

    \b
    Example:
        jurygraph report run -o report.html
        jurygraph report run --brief --by language -o brief.html
        jurygraph report run -o response.html --response task-1/a
        jurygraph report run -o issue.md --response task-1/a
    """
    from jurygraph.viewer import report as pages  # lazily: it loads Jinja
    from jurygraph.viewer.markdown import response_to_markdown

    if response is not None and most is not None:
        raise InputError("--most is about many responses; leave it out, or leave out --response")
    if brief and response is not None:
        raise InputError("--brief is a page of a whole run; leave out --response")
    if by is not None and not brief:
        raise InputError("--by is for a page of paper; add --brief, or `jurygraph study ranking`")
    if title is not None and not brief:
        raise InputError("--title is for a page of paper; add --brief")
    is_markdown_file = output.endswith(".md")
    if is_markdown_file and response is None:
        raise InputError(f"{output}: Markdown is of one response; add --response ID")
    if output.endswith(".xlsx"):
        raise InputError(
            f"{output}: a report is HTML; `jurygraph export {shell_quote(run)} -o "
            f"{shell_quote(output)}` writes a workbook"
        )
    with Run.open(run) as stored_run:
        if is_markdown_file:
            refuse_unwritable(output)
        else:
            refuse_unwritable_page(output)
        if response is None:
            print_if_run_unfinished(stored_run)
            template = "brief.html" if brief else "report.html"
            number = most or (_BRIEF_EXAMPLES if brief else pages.DRAWN_RESPONSES)
            page = _render_run_report(stored_run, number, template, by, title)
        elif is_markdown_file:
            page = response_to_markdown(stored_run, response)
        else:
            page = pages.render_response_report(stored_run, response)
    write_output(output, [page.encode()])
    print_message(f"wrote {output}")


def _render_run_report(
    run: Run, most: int, template: str, by: str | None, title: str | None
) -> str:
    from jurygraph.viewer import report as pages
    from jurygraph.viewer.index import RunIndex

    responses = run.ledger.count_records("trace")
    with progress("checking", run.ledger.count, "records") as advance:
        require_records_as_written(run, advance)
    with closing(RunIndex(run)) as index:
        with progress("indexing", responses, "responses") as advance:
            index.update(advance)
        with progress("explaining", responses, "responses") as advance:
            return pages.render_run_report(run, index, most, advance, template, by, title)
