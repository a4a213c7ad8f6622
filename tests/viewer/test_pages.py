"""What a page says is what the run has."""

import html
import json
import random
import re
from pathlib import Path
from urllib.parse import urlencode

import jurygraph as jg
from tests.command import run_command
from tests.examples import some_or_all
from tests.viewer.conftest import SETTINGS, Browser


@some_or_all("count", 40, 200)
def test_every_page_says_what_show_says(count: int, tmp_path: Path, browser: Browser) -> None:
    draw = random.Random(0)
    folder = tmp_path / "run"
    words = ("please", "come", "now", "quixotic", "tomorrow", "or never")
    with jg.Jury(**SETTINGS) as jury, jury.record(folder):
        for task in range(count // 4):
            texts = [" ".join(draw.choices(words, k=draw.randint(1, 20))) for _ in range(4)]
            responses = [
                jg.Response(id=f"{task}/{number}", text=text) for number, text in enumerate(texts)
            ]
            jury.score(jg.Task(id=f"t{task}", query="Write."), responses)
    lines = run_command("show", folder, "--json").out.splitlines()
    traces = [json.loads(line) for line in lines]
    paths = [f"/a/response?{urlencode({'id': trace['response_id']})}" for trace in traces]
    pages = browser.open_all(paths, folder)
    assert len(pages) == count
    statuses = set()
    for trace, page in zip(traces, pages, strict=True):
        reward = trace["reward"]
        statuses.add(reward["status"])
        (shown,) = re.findall(r'class="big">([^<]+)</span>', page)
        value = reward["value"]
        assert shown == ("no reward" if value is None else f"{value:.4f}")
        scores = re.findall(r'question=([^"]+)">[^<]*</a>\s*<span class="score">([^<]+)<', page)
        assert sorted(scores) == sorted(
            (
                verdict["question"],
                verdict["status"].replace("_", " ")
                if verdict["score"] is None
                else f"{verdict['score']:.4f}",
            )
            for verdict in trace["verdicts"]
        )
        text = html.unescape(page)
        assert all(note in text for note in reward["notes"])
        for verdict in trace["verdicts"]:
            assert verdict["reason"][:60] in text
    assert statuses == {"ok", "failed"} or statuses == {"ok", "degraded", "failed"}
