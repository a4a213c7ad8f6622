"""What a test finds, an empty home, and what its commands leave behind: no module of a project."""

import os
import pwd
import sys
import tempfile
from pathlib import Path

import pytest

from tests.command import run_script
from tests.home import LOCATIONS, home_variables


def test_all_that_says_where_a_user_keeps_files_names_the_folder_of_the_run() -> None:
    home = Path.home()
    assert home != Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert all(Path(os.environ[name]).is_relative_to(home) for name in LOCATIONS)


def test_package_tools_find_their_files_in_the_home_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_CONFIG_FILE", "PIP_CACHE_DIR", "UV_CONFIG_FILE", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setenv("UV_CACHE_DIR", "/elsewhere")
    for path in (".pip/pip.conf", ".config/pip/pip.conf", "caches/pip/one", "caches/uv/one"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    found = home_variables(tmp_path / "empty")
    assert found["PIP_CONFIG_FILE"] == str(tmp_path / ".config" / "pip" / "pip.conf")
    assert found["PIP_CACHE_DIR"] == str(tmp_path / "caches" / "pip")
    assert not found.keys() & {"UV_CACHE_DIR", "UV_CONFIG_FILE"}, (
        "one is set, the other names a file that is not there"
    )


def test_a_command_forgets_the_modules_of_its_project_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as if the checkout lay below it
    monkeypatch.setattr(tempfile, "tempdir", Path(sys.prefix).anchor)
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    (tmp_path / "module_of_a_project.py").touch()
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys\nsys.path.append({str(tmp_path)!r})\nimport colorsys, module_of_a_project\n"
    )
    assert run_script(script).code == 0
    assert "colorsys" in sys.modules
    assert "module_of_a_project" not in sys.modules
