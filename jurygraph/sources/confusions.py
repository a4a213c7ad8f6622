"""Confusions in a file: a JSON object with the digest of the rest, so that no one changes them unseen."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from jurygraph.errors import InputError
from jurygraph.schema.confusions import Confusions
from jurygraph.sources.complaint import complaint, described
from jurygraph.sources.limits import read_whole

_LARGEST = 64 << 20
_TOO_LARGE = "has over 64 MB, which no confusions have; name the file that `jurygraph consensus --artifact` wrote"
_AGAIN = "have `jurygraph consensus --artifact` write it again"


def written(confusions: Confusions) -> bytes:
    """The file: the noun's fields, and its digest."""
    return json.dumps({**confusions.model_dump(mode="json"), "digest": confusions.digest}).encode() + b"\n"


def read_confusions(path: str | Path) -> Confusions:
    """What `written` wrote. Raises `InputError` with file and field where it is something else, or was changed."""
    content = _object(Path(path))
    stated = content.pop("digest", None)
    if stated is None:
        raise InputError(f"{path}, field digest: is missing; {_AGAIN}")
    try:
        confusions = Confusions.model_validate(content)
    except ValidationError as error:
        wrong = complaint(error, Confusions, content)
        raise InputError(f"{path}, field {wrong.field}: {wrong}") from None
    if stated != confusions.digest:
        raise InputError(f"{path}, field digest: is not that of the rest, which was changed; {_AGAIN}")
    return confusions


def _object(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = from_json(read_whole(str(path), file, _LARGEST, _TOO_LARGE), allow_inf_nan=False)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}); name a file that can be read") from None
    except ValueError as error:
        raise InputError(f"{path}: is not valid JSON ({error}); {_AGAIN}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: is {described(content)}; confusions are a JSON object; {_AGAIN}")
    return content
