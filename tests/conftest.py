"""What holds for every test.

Property tests draw the same examples every time, so that a run says the same of the same code on any machine: 8 of
each at most, and in `make test-exhaustive` 100 or as many as a test asks for (HYPOTHESIS_PROFILE=thorough);
HYPOTHESIS_PROFILE=explore draws others each time.
The home is empty, and each process of a run has another: what an earlier run left behind changes nothing.
"""

import atexit
import json
import math
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import settings

from jurygraph.models import gateway
from jurygraph.models.limits import RetryPolicy
from jurygraph.runs.store import folder
from jurygraph.runs.store.folder import to_yaml
from jurygraph.schema.frozen_model import JsonFields
from tests.examples import QUICK_EXAMPLES
from tests.home import home_variables

pytest_plugins = ["tests.gate"]

settings.register_profile("quick", derandomize=True, deadline=None, max_examples=QUICK_EXAMPLES)
settings.register_profile("thorough", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

_HOME = Path(tempfile.mkdtemp(prefix="jurygraph-home-"))
os.environ.update(home_variables(_HOME))
atexit.register(shutil.rmtree, _HOME, ignore_errors=True)


_stored_configs: dict[str, str] = {}


def _to_yaml_once(mapping: JsonFields) -> str:
    """Return a config as the store writes it; the same few configs are stored by a thousand tests."""
    key = json.dumps(mapping)
    if key not in _stored_configs:
        _stored_configs[key] = to_yaml(mapping)
    return _stored_configs[key]


folder.to_yaml = _to_yaml_once


@pytest.fixture(autouse=True)
def report_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no command print how far it is because the machine is slow; what it prints is tested with no wait at all."""
    monkeypatch.setattr("jurygraph.cli.render.text._MIN_SECONDS_BETWEEN_REPORTS", math.inf)


@pytest.fixture(autouse=True)
def retry_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a retry of a whole jury wait for no time; how long one waits is tested in `models/test_retries.py`."""
    monkeypatch.setattr(gateway, "RetryPolicy", partial(RetryPolicy, first=0.0, longest=0.0))
