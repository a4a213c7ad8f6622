"""An empty home for every run of the tests, and for `.ci/run`: what passes there, passes on a new machine.

Caches and settings of package tools are excepted: without them an index may be out of reach.
`python3 -m tests.home FOLDER` prints the variables as a shell sets them. It needs the standard library alone.
"""

import os
import shlex
import sys
from pathlib import Path

LOCATIONS = {
    "HOME": ".",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
    "MPLCONFIGDIR": ".config/matplotlib",
    "JURYGRAPH_CACHE": ".cache/jurygraph/replies",
}
"""The variables that say where a user's files lie, each with the path below an empty home."""


def home_variables(folder: Path) -> dict[str, str]:
    """Return the environment variables that make a folder the home, and lead package tools to their files."""
    home = Path(os.path.expanduser("~"))
    caches = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    excepted = [
        ("PIP_CACHE_DIR", caches / "pip"),
        ("PIP_CONFIG_FILE", settings / "pip" / "pip.conf"),
        ("PIP_CONFIG_FILE", home / ".pip" / "pip.conf"),
        ("UV_CACHE_DIR", caches / "uv"),
        ("UV_CONFIG_FILE", settings / "uv" / "uv.toml"),
        ("NETRC", home / ".netrc"),
    ]
    variables = {name: str(folder / path) for name, path in LOCATIONS.items()}
    for name, path in excepted:
        if name not in os.environ and path.exists():
            variables.setdefault(name, str(path))
    return variables


if __name__ == "__main__":
    for name, value in home_variables(Path(sys.argv[1])).items():
        print(f"export {name}={shlex.quote(value)}")
