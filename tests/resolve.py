"""Show what jurygraph can be installed with, and what an installation brings, by resolving alone: `make resolve`.

Prints the Markdown tables of `docs/installing.md`. Nothing is installed; the package index is queried.
"""

import datetime
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

PYTHON = "3.12"
PEERS = (
    "trl[vllm]",
    "verl",
    "openrlhf",
    "verifiers",
    "nemo-gym",
    "ms-swift",
    "deepeval>=4",
    "ragas>=0.4",
    "mlflow",
    "inspect-ai",
    "langfuse",
    "autorubric",
    "openevals",
    "ray",
)
EXTRAS = ("pandas", "parquet", "plot")
SHOWN = ("litellm", "openai", "numpy", "pydantic")


class Unresolvable(Exception):
    """Raised where no versions go together; the message says why."""


def resolve(requirements: Sequence[str]) -> dict[str, str]:
    """Return the version of every distribution that these requirements bring. Raises `Unresolvable`."""
    with TemporaryDirectory() as folder:
        wanted = Path(folder, "requirements.in")
        wanted.write_text("\n".join(requirements), encoding="utf-8")
        options = ("--python-version", PYTHON, "--no-annotate", "--no-header", "--quiet")
        command = [sys.executable, "-m", "uv", "pip", "compile", str(wanted), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unresolvable(" ".join(done.stderr.split()))
    pinned = (line.split("==") for line in done.stdout.splitlines() if "==" in line)
    return {name.strip(): version.split(";")[0].strip() for name, version in pinned}


def main() -> int:
    """Print both tables; return 1 if there is a peer with which it cannot be installed."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = project["dependencies"]
    extras = project["optional-dependencies"]
    with_extras = [*own, *(wanted for extra in EXTRAS for wanted in extras[extra])]
    today = datetime.date.today().isoformat()
    print(f"Resolved on {today} for Python {PYTHON}, with the extras {', '.join(EXTRAS)}.\n")
    impossible = print_peers(with_extras)
    print_dependencies(own)
    return int(impossible)


def name_of(requirement: str) -> str:
    """Return the name of a distribution as the index spells it."""
    name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def print_peers(own: Sequence[str]) -> bool:
    """Print a row for each peer; return whether one cannot be installed with jurygraph."""
    print(f"| with | its version | {' | '.join(SHOWN)} | distributions |")
    print("|---" * (len(SHOWN) + 3) + "|")
    impossible = False
    for peer in PEERS:
        try:
            versions = resolve([*own, peer])
        except Unresolvable as error:
            print(f"| {peer} | impossible: {error} |" + " |" * (len(SHOWN) + 1), flush=True)
            impossible = True
            continue
        shown = (versions.get(name, "-") for name in (name_of(peer), *SHOWN))
        print(f"| {peer} | {' | '.join(shown)} | {len(versions)} |", flush=True)
    return impossible


def print_dependencies(own: Sequence[str]) -> None:
    """Print what an installation without extras brings, and how many distributions it needs for each dependency."""
    whole = resolve(own)
    print(f"\nAn installation without extras brings {len(whole)} distributions.\n")
    print("| dependency | version | brings alone |")
    print("|---|---|---|")
    for dependency in own:
        name = name_of(dependency)
        others = resolve([other for other in own if other != dependency])
        added = sorted(whole.keys() - others.keys())
        print(f"| {name} | {whole[name]} | {', '.join(added) or '-'} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
