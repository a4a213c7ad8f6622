"""Files in the folder of a run."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.store.test_lock import FULL


@pytest.mark.landing
def test_a_file_that_cannot_be_written_is_named_and_absent(tmp_path: Path) -> None:
    write = "from pathlib import Path; from jurygraph.runs.store.atomic_files import write_atomically\ntry:\n"
    write += "    write_atomically(Path(sys.argv[1]), b'text')\nexcept OSError as error:\n    print(error.filename)"
    words = [sys.executable, "-B", "-c", f"{FULL}{write}", tmp_path / "seal.json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == f"{tmp_path / 'seal.json'}\n"
    assert list(tmp_path.iterdir()) == []
