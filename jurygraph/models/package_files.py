"""Find a model inside an installed package: `package:NAME/FILE`, with the name by which the package is imported."""

import hashlib
import shutil
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

from jurygraph.errors import ConfigError
from jurygraph.messages import did_you_mean
from jurygraph.models.cache import default_folder

PREFIX = "package:"


def find_file(named: str) -> Path:
    """Return the file of `NAME/FILE` in an installed package, whose code is not run. Raises `ConfigError`."""
    name, _, inner = named.partition("/")
    folder = _package_folder(name)
    path = folder / inner
    if not inner or not path.is_file():
        files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
        hint = did_you_mean(inner, files) or f"it has {', '.join(files[:10])}"
        raise ConfigError(f"package:{named}: package {name!r} has no such file; {hint}")
    return path


def find_model_folder(name: str) -> Path:
    """Return the folder of the model in a package: the package's own, or its zip file, unpacked to the cache once.

    Raises `ConfigError` where there is neither, or several zip files.
    """
    folder = _package_folder(name)
    if (folder / "modules.json").is_file():
        return folder
    archives = sorted(folder.glob("*.zip"))
    if len(archives) != 1:
        problem = f"package {name!r} holds no model: it has no modules.json, and {len(archives)} zip files"
        raise ConfigError(f"package:{name}: {problem}; name a package with a sentence-transformers model")
    with archives[0].open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    unpacked = default_folder().parent / "models" / f"{name}-{digest[:16]}"
    if not unpacked.is_dir():
        _unpack(archives[0], unpacked)
    return unpacked


def _package_folder(name: str) -> Path:
    spec = find_spec(name) if name.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        problem = f"no package is imported as {name!r}"
        raise ConfigError(f"package:{name}: {problem}; install it, and write its import name, with underscores")
    return Path(next(iter(spec.submodule_search_locations)))


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive to a folder, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix="unpacking-", dir=folder.parent))
    try:
        with zipfile.ZipFile(archive) as content:
            content.extractall(partial)  # leaves out absolute paths and `..`
        if not folder.is_dir():
            partial.rename(folder)
    except (zipfile.BadZipFile, OSError) as error:
        raise ConfigError(f"{archive}: cannot be unpacked ({error}); install its package again") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
