"""Other packages, each in its own environment."""

import subprocess
import venv
from pathlib import Path


def python_with(package: str, folder: Path) -> Path | None:
    """A Python in a new environment under `folder` that has a package; None where it cannot be installed, and a line
    that says so."""
    python = folder / "peer" / "bin" / "python"
    venv.create(folder / "peer", with_pip=True)
    command = [str(python), "-m", "pip", "install", "-q", package]
    if subprocess.run(command, capture_output=True, text=True, check=False).returncode:
        print(f"  {package} cannot be installed here, so it is not measured", flush=True)
        return None
    return python
