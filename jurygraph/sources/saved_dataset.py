"""Read the Arrow files of a folder that `save_to_disk` of the library `datasets` wrote; the library is not needed."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from jurygraph.errors import InputError
from jurygraph.schema import digest_of
from jurygraph.sources.files import FileDigest
from jurygraph.sources.table_rows import PlacedRow, sha256_of, to_json_values

_STATE = "state.json"
_SPLITS = "dataset_dict.json"


def is_saved_dataset(folder: Path) -> bool:
    """Return True for a folder that `save_to_disk` wrote, of one dataset or of several splits."""
    return any((folder / name).is_file() for name in (_STATE, _SPLITS))


def read_saved_dataset(folder: Path) -> Iterator[PlacedRow]:
    """Yield the rows of a saved dataset with JSON values, each with its place. Raises `InputError` naming the file."""
    try:
        arrow: Any = importlib.import_module("pyarrow")
    except ImportError:
        raise InputError(f"{folder}: reading Arrow files needs pyarrow: pip install 'jurygraph[parquet]'") from None
    number = 0
    for path in _arrow_files(folder):
        try:
            with arrow.memory_map(str(path)) as file, arrow.ipc.open_stream(file) as batches:
                for row in (row for batch in batches for row in batch.to_pylist()):
                    number += 1
                    yield f"row {number}", to_json_values(row)
        except (OSError, ValueError, NotImplementedError) as error:
            raise InputError(f"{path}: cannot be read as an Arrow stream ({error}); save the dataset again") from None


def digest_saved_dataset(folder: Path) -> FileDigest:
    """Return the folder's name, and a digest of its Arrow files. Raises `InputError` as `read_saved_dataset` does."""
    digests = [sha256_of(path) for path in _arrow_files(folder)]
    return FileDigest(name=folder.resolve().name, sha256=digest_of(digests))


def _arrow_files(folder: Path) -> list[Path]:
    if (folder / _SPLITS).is_file():
        splits = sorted(path.parent.name for path in folder.glob(f"*/{_STATE}"))
        raise InputError(
            f"{folder}: holds the splits {', '.join(splits)}; name the folder of one: {folder / splits[0]}"
        )
    if not (folder / _STATE).is_file():
        raise InputError(f"{folder}: has no {_STATE}; name a file, or a folder that `save_to_disk` wrote")
    try:
        state = from_json((folder / _STATE).read_bytes())
        names = [Path(file["filename"]).name for file in state["_data_files"]]
    except (OSError, ValueError, TypeError, KeyError) as error:
        problem = f"does not list the dataset's files ({type(error).__name__}: {error})"
        raise InputError(f"{folder / _STATE}: {problem}; save the dataset again") from None
    if state.get("_indices_data_files"):
        raise InputError(f"{folder}: selects rows by an index; save the dataset again after `flatten_indices()`")
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise InputError(f"{folder / missing[0]}: there is no such file; save the dataset again")
    return [folder / name for name in names]
