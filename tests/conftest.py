"""What holds for every test.

Property tests draw the same examples every time, so that a run says the same of the same code on any machine;
HYPOTHESIS_PROFILE=explore draws others each time. Replies of models are kept in a folder of the run's own.
"""

import atexit
import os
import shutil
import tempfile

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

_REPLIES = tempfile.mkdtemp(prefix="jurygraph-replies-")
os.environ["JURYGRAPH_CACHE"] = _REPLIES
atexit.register(shutil.rmtree, _REPLIES, ignore_errors=True)
