"""Read and write confusion matrices: a JSON object with the digest of its content, so that changes are detected."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from jurygraph.errors import InputError
from jurygraph.messages import describe_validation_error, describe_value
from jurygraph.schema.rating import Confusions
from jurygraph.sources.limits import read_whole

_MAX_BYTES = 64 << 20
_TOO_LARGE = "has over 64 MB, which no confusions have; name the file that `jurygraph consensus --artifact` wrote"
_REWRITE_HINT = "have `jurygraph consensus --artifact` write it again"


def confusions_to_json(confusions: Confusions) -> bytes:
    """Return the content of the file: the model's fields, and its digest."""
    return json.dumps({**confusions.model_dump(mode="json"), "digest": confusions.digest}).encode() + b"\n"


def read_confusions(path: str | Path) -> Confusions:
    """Read a file of `written`. Raises `InputError` with file and field if it is another file, or was changed."""
    content = _read_object(Path(path))
    digest = content.pop("digest", None)
    if digest is None:
        raise InputError(f"{path}, field digest: is missing; {_REWRITE_HINT}")
    try:
        confusions = Confusions.model_validate(content)
    except ValidationError as error:
        problem = describe_validation_error(error, Confusions, content)
        raise InputError(f"{path}, field {problem.field}: {problem}") from None
    if digest != confusions.digest:
        raise InputError(f"{path}, field digest: is not that of the rest, which was changed; {_REWRITE_HINT}")
    return confusions


def _read_object(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = from_json(read_whole(str(path), file, _MAX_BYTES, _TOO_LARGE), allow_inf_nan=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); name a file that can be read") from None
    except ValueError as error:
        raise InputError(f"{path}: is not valid JSON ({error}); {_REWRITE_HINT}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: is {describe_value(content)}; confusions are a JSON object; {_REWRITE_HINT}")
    return content
