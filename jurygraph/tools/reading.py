"""`search` and `read`: the response, the query and the context that a judge sees, by lines."""

import re
from typing import Annotated, Any

from pydantic import StringConstraints

from jurygraph.messages import shorten
from jurygraph.schema.frozen_model import Count, PositiveInt
from jurygraph.schema.task import chat_to_prompt_text
from jurygraph.tools.documents import TextDocument
from jurygraph.tools.tool import RowTool, ToolArguments, ToolError, ToolInput

SearchWords = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_RESPONSE_NAME_PATTERN = re.compile(r"response(?:_([1-9]\d*))?", re.ASCII)


class DocumentArguments(ToolArguments):
    document: str = "response"
    """`response`, `query` or `context`; with a number for one of several, such as `response_2` or `context_1`."""


class SearchArguments(DocumentArguments):
    text: SearchWords
    """Words as they stand in the document; letter case and white space do not matter."""
    first_match: PositiveInt = 1
    """The number of the first match that is shown."""


class LineArguments(ToolArguments):
    from_line: PositiveInt = 1
    to_line: PositiveInt | None = None
    from_character: Count = 0
    """Where to begin in the first line, if it is long."""


class ReadArguments(DocumentArguments, LineArguments):
    pass


class DocumentTool(RowTool):
    """Base class of the tools that read what a prompt shows or outlines, and passages that it may not show."""

    reads_documents = True

    def needs_gate(self, arguments: DocumentArguments) -> bool:
        # gates have read the response, and exempt the query
        return arguments.document.startswith("context")

    def response_number_of_call(self, arguments: Any) -> int | None:
        match = _RESPONSE_NAME_PATTERN.fullmatch(arguments.document)
        return None if match is None else int(match[1] or 1)


class SearchTool(DocumentTool):
    """Return the lines with some words, and the lines around them."""

    name = "search"
    description = "Search a document for words. Returns the matching lines with their numbers, and a line around each."
    Arguments = SearchArguments

    def run(self, inputs: ToolInput, arguments: SearchArguments) -> str:
        return open_document(inputs, arguments.document).search(
            arguments.text, arguments.first_match
        )


class ReadDocumentTool(DocumentTool):
    """Return lines of a document by their numbers."""

    name = "read"
    description = (
        "Read lines of a document by their numbers, up to 200 lines or 7,500 characters at once. "
        "Quote the words after the bar, without the number."
    )
    Arguments = ReadArguments

    def run(self, inputs: ToolInput, arguments: ReadArguments) -> str:
        return open_document(inputs, arguments.document).read(
            arguments.from_line, arguments.to_line, arguments.from_character
        )


def open_document(inputs: ToolInput, name: str) -> TextDocument:
    """Return a document that the judge sees. Raises ToolError, which lists them, if there is none of that name."""
    texts = {
        f"response_{number}": response.text for number, response in enumerate(inputs.responses, 1)
    }
    if len(texts) == 1:
        texts = {"response": inputs.responses[0].text}
        name = "response" if name == "response_1" else name
    texts["query"] = chat_to_prompt_text(inputs.task.query)
    passages = inputs.task.passages_by_name
    if passages:
        texts["context"] = ""  # all of them, which are one document with its parts
    for number, passage in enumerate(passages.values(), 1):
        texts[f"context_{number}"] = passage
    if name not in texts:
        raise ToolError(f"there is no such document; there are {shorten(', '.join(texts), 400)}")
    if name == "context":
        return TextDocument.from_passages(passages.items())
    return TextDocument.from_text(texts[name])
