"""Files of what was learned from labels, which a config names: how judges err, and how their scores are calibrated."""

import json
from collections.abc import Mapping
from pathlib import Path

from pydantic_core import from_json

from jurygraph.errors import InputError
from jurygraph.messages import describe_value
from jurygraph.schema import ScoreCalibration
from jurygraph.schema.frozen_model import JsonFields, StrPath
from jurygraph.schema.rating import Confusions
from jurygraph.sources.files import TextFile, validate_at_location

_MAX_ARTIFACT_BYTES = 64 << 20
_REWRITE_ARTIFACT_HINT = "have `jurygraph consensus --artifact` write it again"


def confusions_to_json(confusions: Confusions) -> bytes:
    """Return the content of the file: the model's fields, and its digest."""
    content = {**confusions.model_dump(mode="json"), "digest": confusions.digest}
    return json.dumps(content).encode() + b"\n"


def read_confusions(path: StrPath) -> Confusions:
    """Read what `confusions_to_json` wrote. Raises `InputError` with file and field for any other file."""
    content = read_json_object(path, "confusions are", _REWRITE_ARTIFACT_HINT)
    digest = content.pop("digest", None)
    if digest is None:
        raise InputError(f"{path}, field digest: is missing; {_REWRITE_ARTIFACT_HINT}")
    confusions = validate_at_location(str(path), Confusions, content)
    if digest != confusions.digest:
        raise InputError(
            f"{path}, field digest: is not that of the rest, which was changed; {_REWRITE_ARTIFACT_HINT}"
        )
    return confusions


def calibrations_to_json(calibrations: Mapping[str, ScoreCalibration]) -> bytes:
    """Return the content of a file of calibrations by question, each with its digest."""
    content = {
        name: {**calibration.model_dump(mode="json"), "digest": calibration.digest}
        for name, calibration in calibrations.items()
    }
    return json.dumps(content).encode() + b"\n"


def read_calibrations(path: StrPath) -> JsonFields:
    """Return the object that `calibrations_to_json` wrote, unchecked. Raises `InputError` if the file has none."""
    return read_json_object(
        path, "calibrations are", "have `jurygraph rescore --calibrate --artifact` write it again"
    )


def read_json_object(path: StrPath, subject: str, hint: str) -> JsonFields:
    """Return the object in a JSON file. An `InputError` says `subject`, with its verb, and `hint` if there is none."""
    if Path(path).suffix.lower() in (".xlsx", ".parquet"):
        raise InputError(f"{path}: is a table; {subject} a JSON object; {hint}")
    with TextFile(path, str(path)) as file:
        try:
            content = from_json(file.read_whole(_MAX_ARTIFACT_BYTES, hint), allow_inf_nan=False)
        except ValueError as error:
            raise InputError(f"{path}: is not valid JSON ({error}); {hint}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: is {describe_value(content)}; {subject} a JSON object; {hint}")
    return content
