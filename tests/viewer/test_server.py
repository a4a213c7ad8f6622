"""Who may ask the server of `jurygraph view`, and what a page lets a browser do."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest

import jurygraph as jg
from jurygraph.errors import TraceMismatch
from jurygraph.runs.run import Run
from jurygraph.runs.workflows.rescoring import rescore
from jurygraph.sources import read_config
from jurygraph.sources.config import apply_settings
from jurygraph.viewer.notebook import draw_run
from jurygraph.viewer.words import TERM_TOOLTIPS
from tests.rows import all_rows
from tests.runs.sample_runs import FULL_CONFIG, make_tasks, score, write_tasks
from tests.viewer.conftest import HOSTILE, LETTERS, SETTINGS, Browser, polite, record

PAGES = (
    "/a/",
    "/a/responses",
    "/a/responses?search=quixotic&sort=-brief&columns=polite",
    "/a/response?id=bob/0",
    "/a/response?id=bob/1&set=reward.brief%3D0",
    "/a/verdict?id=bob/0&question=polite",
    "/a/ranking?set=reward.polite%3D0.1",
    "/a/ranking?far=1&scan=reward.brief",
    "/a/response?id=bob/0&score=polite%3D1",
    "/a/responses?grid=polite",
    "/a/verify",
)


def test_every_page_shows_what_others_wrote_as_text_and_asks_nobody_else(
    letters: Path, browser: Browser
) -> None:
    for path in PAGES:
        page = browser.open(path, letters)
        assert browser.status == 200, path
        for markup in ("<script>alert", "<img", "<b hx-get", "\u202e", "\u200b", " 49"):
            assert markup not in page, (path, markup)
        for foreign in ("http:", "https:", "style="):
            assert foreign not in page, (path, foreign)
    assert "&lt;script&gt;alert(1)" in browser.open("/a/response?id=bob/0", letters)
    policy = browser.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


@all_rows(
    "headers, status",
    [
        ({}, 200),
        ({"Host": "evil.example:80"}, 403),  # another name of this machine: DNS rebinding
        ({"Origin": "http://evil.example"}, 403),
    ],
)
def test_only_its_own_pages_may_ask(
    headers: dict[str, str], status: int, letters: Path, browser: Browser
) -> None:
    browser.open("/a/", letters, **headers)
    assert browser.status == status


def test_beyond_loopback_a_token_is_needed_once(letters: Path) -> None:
    browser = Browser(token="secret")
    assert "Agents" not in browser.open("/a/", letters)
    assert browser.status == 403
    assert "Agents" in browser.open("/a/?token=secret", letters)
    cookie = browser.headers["Set-Cookie"]
    assert cookie.endswith("HttpOnly; Path=/; SameSite=Strict")
    assert "Agents" in browser.open("/a/", letters, Cookie="jurygraph=secret")
    browser.open("/a/", letters, Cookie="jurygraph=secreT")
    assert browser.status == 403
    assert "Agents" in browser.open("/a/?token=secret", letters, Host="192.0.2.2:80")


@all_rows(
    "path, message",
    [
        ("/a/response?id=cas/0", "there is no response"),
        ("/a/response", "the address has no"),
        ("/a/response?id=ann/0&set=evaluators.0.name%3Dx", "changes the questions"),
        ("/a/response?id=ann/0&score=polite%3D2", "expected a number from 0 to 1"),
        ("/a/responses?sort=politeness", "no column"),
        ("/a/responses?after=x", "no key of a page"),
        ("/a/responses?after=%5B1,%7B%7D%5D", "no key of a page"),
        ("/a/responses?after=%5B1,99999999999999999999999%5D", "no key of a page"),
        (f"/a/responses?after={'%5B' * 2000}", "no key of a page"),
        ("/a/responses?after=%5B%22%5Cud800%22,1%5D", "no key of a page"),
        ("/a/responses?status=fine", "no status"),
        ("/a/ranking?scan=reward.politeness", "no setting"),
        (f"/a/response?id=ann/0&edge={'%5B' * 2000}", "expected [&#34;parent&#34;"),
        ("/a/responses?grid=politeness", "no component"),
        ("/a/response?id=ann/0&score=politeness%3D1", "no question"),
        ("/a/response?id=ann/0&edge=x", "expected [&#34;parent&#34;"),
        ("/a/response?id=ann/0&edge=%5B%22a%22,%22b%22,null%5D", "the rubric has none from"),
        ("/a/config.yaml?score=polite%3D1", "no parameter &#39;score&#39;; there are set"),
        ("/a/compare", "name two runs"),
    ],
)
def test_what_cannot_be_shown_says_why(
    path: str, message: str, letters: Path, browser: Browser
) -> None:
    page = browser.open(path, letters)
    assert (browser.status, message in page) == (400, True)
    assert "Traceback" not in page


def test_two_runs_begin_with_their_comparison(
    letters: Path, browser: Browser, tmp_path: Path
) -> None:
    browser.open("/", letters, letters)
    assert (browser.status, browser.headers["Location"]) == (302, "/a/compare")
    again = tmp_path / "again"
    record(again, {**LETTERS, "ann": ("please come", "please come", "come")})
    page = browser.open("/a/compare", letters, again)
    assert "B is " in page
    assert "up past half" in page
    assert "by the settings" not in page
    weights = tmp_path / "weights"
    with closing(Run.open(again)) as run:
        changed = apply_settings(run.config, ["reward.polite=1.4"])
        rescore(run, weights, changed, lambda count: None)
    page = browser.open("/a/compare", again, weights)
    assert re.search(r", of which \+0\.\d{4} by the settings \(A&#39;s verdicts", page)
    assert (
        page.count("changed between the runs") == 2
    )  # once to be seen, and once for who hears the page
    assert "<td >reward.polite</td><td >A</td><td >0.7</td>" in page
    assert "<summary>2 questions without a changed verdict" in page


def test_a_damaged_run_is_named_and_not_shown(letters: Path, browser: Browser) -> None:
    with closing(sqlite3.connect(letters / "run.sqlite")) as ledger, ledger:
        ledger.execute(
            "UPDATE records SET body = replace(body, '\"value\":0', '\"value\":1') WHERE kind = 'trace'"
        )
    page = browser.open("/a/response?id=ann/0", letters)
    assert browser.status == 400
    assert "record" in page
    page, overview = browser.open_all(["/a/verify", "/a/"], letters)
    assert "Damaged." in page
    assert "Unchanged" not in page
    assert "This run was changed." in overview
    with closing(sqlite3.connect(letters / "run.sqlite")) as ledger, ledger:
        ledger.execute("UPDATE records SET body = substr(body, 1, 40) WHERE key = 'ann/0'")
    _, overview, table = browser.open_all(["/a/verify", "/a/", "/a/responses"], letters)
    for page in overview, table:
        assert "This run was changed." in page
    assert table.count("cannot be read: it was changed") == 1
    page = browser.open("/a/response?id=ann/0", letters)
    assert browser.status == 400
    assert "it has been changed" in page
    (letters / "index.sqlite").unlink()
    for _ in "made", "opened":
        overview, table = browser.open_all(["/a/", "/a/responses?search=please"], letters)
        for page in overview, table:
            assert "This run was changed." in page
            assert "(trace &#39;ann/0&#39;)" in page
        assert ("id=bob%2F0" in table, "id=ann%2F1" in table) == (True, False)
    with Run.open(letters) as run, pytest.raises(TraceMismatch, match="ann/0"):
        draw_run(run)


def test_the_overview_of_a_changed_run_with_unsupported_findings_says_so(
    tmp_path: Path, browser: Browser
) -> None:
    def misquotes(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=0.0, met=False, unsupported="worst-case")

    with jg.Jury(evaluators=[misquotes], record=tmp_path / "run") as jury:
        jury.score(jg.Task(id="t", query="Write."), ["please"])
    overview = browser.open("/a/", tmp_path / "run")
    assert re.search(
        r"responses\?status=unsupported[^>]*>1 of 1 findings had no quotation", overview
    )
    with closing(sqlite3.connect(tmp_path / "run" / "run.sqlite")) as ledger, ledger:
        ledger.execute("UPDATE records SET at = at + 1 WHERE kind = 'trace'")
        ledger.execute("UPDATE texts SET content = CAST('thanks' AS BLOB) WHERE content = 'please'")
    _, overview = browser.open_all(["/a/verify", "/a/"], tmp_path / "run")
    assert browser.status == 200
    assert "This run was changed." in overview


def test_a_verdict_has_every_field_that_has_a_value(tmp_path: Path, browser: Browser) -> None:
    def rude(task: jg.TaskView, response: jg.Response) -> jg.Verdict:
        return jg.Verdict(score=0.0, met=False, confidence=0.0)

    with jg.Jury(evaluators=[rude], record=tmp_path / "run") as jury:
        jury.score(jg.Task(id="t", query="Write."), ["please"])
    page = browser.open("/a/verdict?id=t@1/1&question=rude", tmp_path / "run")
    facts = dict(re.findall('<th scope="row">([a-z]+)</th><td>([^<]+)</td>', page))
    assert (facts["score"], facts["met"], facts["confidence"]) == ("0.0", "false", "0.0")
    assert "judge" not in facts


def test_a_run_is_verified_for_a_head_that_stands_behind_the_proof(
    letters: Path, browser: Browser
) -> None:
    page = browser.open("/a/verify", letters)
    with closing(Run.open(letters)) as run:
        head = run.ledger.head.hex()
        records = run.ledger.count
    assert f"Unchanged: {records} records" in page
    assert head in page.partition("<summary>The proof")[2]


def test_settings_that_were_tried_are_a_config_to_take_along(
    rubrics: Path, browser: Browser, tmp_path: Path
) -> None:
    text = browser.open("/a/config.yaml?set=reward.place%3D0.25", rubrics)
    assert browser.headers["Content-Disposition"].startswith("attachment")
    assert "null" not in text
    assert "calls: {}" not in text
    (tmp_path / "jury.yaml").write_text(text)
    with closing(Run.open(rubrics)) as run:
        expected = apply_settings(run.config, ["reward.place=0.25"])
    assert read_config(tmp_path / "jury.yaml") == expected


def test_responses_without_an_agent_are_selected_by_their_row(
    browser: Browser, tmp_path: Path
) -> None:
    with jg.Jury(**SETTINGS) as jury, jury.record(tmp_path / "run"):
        named = jg.Response(id="t/named", agent="a", text="please")
        jury.score(jg.Task(id="t", query="?"), [named, jg.Response(id="t/unnamed", text="please")])
    overview = browser.open("/a/", tmp_path / "run")
    (path,) = re.findall(r'href="(/a/responses\?agent=%28no[^"]*)"', overview)
    page = browser.open(path.replace("&amp;", "&"), tmp_path / "run")
    assert "t/unnamed" in page
    assert "t/named" not in page


def test_a_grid_has_the_scores_of_the_questions_of_a_component(
    rubrics: Path, browser: Browser
) -> None:
    page = browser.open("/a/responses?grid=rubric&sort=-met@core", rubrics)
    cells = re.findall(r'aria-label="(met@core|met@more): ([^"]+)"', page)
    with closing(Run.open(rubrics)) as run:
        scores = sorted(
            (run.question_scores(trace)["met@core"] for trace in run.traces()), reverse=True
        )
    shown = [float(value) for question, value in cells if question == "met@core"]
    assert shown == [pytest.approx(score, abs=5e-4) for score in scores]
    assert len(cells) == 2 * len(scores)
    assert '<th scope="col" class="asked" aria-sort="descending">' in page


def test_the_strip_of_a_penalty_in_a_grid_has_its_score_as_lost(
    tmp_path: Path, browser: Browser
) -> None:
    (task,) = make_tasks(tasks=1)
    task["rubric"] = {
        "criteria": [
            {"id": "core", "text": "It is right.", "weight": 2.0},
            {"id": "rude", "text": "It is rude.", "weight": -1.0},
        ]
    }
    score(tmp_path / "run", write_tasks(tmp_path, [task]), FULL_CONFIG)
    penalties = {"met@core": False, "met@rude": True, "late": True}
    found = set()
    for component in ("rubric", "late"):
        page = browser.open(f"/a/responses?grid={component}", tmp_path / "run")
        for question, shown, width in re.findall(
            r'aria-label="([^":]+): ([^"]+)">\s*<svg.*?class="kept" width="([^"]+)"', page, re.S
        ):
            found.add(question)
            kept = 1.0 - float(shown) if penalties[question] else float(shown)
            assert float(width) == pytest.approx(100 * kept, abs=0.1), question
    assert found == set(penalties)


def test_every_word_of_ours_has_the_meaning_of_the_glossary() -> None:
    glossary = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text()
    meanings = dict(re.findall(r"^\| (.+?) \| (.+) \|$", glossary, re.M))
    for word, tip in TERM_TOOLTIPS.items():
        assert meanings[word].replace("*", "").startswith(tip), word


@pytest.mark.parametrize(
    "word", ["please", HOSTILE[-9:], "ann/0", "e-mail_x", '"', "*", "☃", "NEAR(a b)"]
)
def test_search_takes_words_as_words(word: str, letters: Path, browser: Browser) -> None:
    browser.open(f"/a/responses?search={quote(word)}", letters)
    assert browser.status == 200


def draw_strips(markup: str) -> list[dict[str, tuple[float, float]]]:
    """Return the parts of each strip: where they begin, and how wide they are, in percent of its scale."""
    strips = []
    for strip in re.findall(r'class="strip".*?</svg>', markup, re.S):
        parts = re.findall(r'class="(\w+)" width="([^"]+)" x="([^"]+)"', strip)
        strips.append({name: (float(x), float(width)) for name, width, x in parts})
    return strips


def test_a_strip_is_drawn_on_the_scale_from_the_least_to_the_best_possible(
    letters: Path, browser: Browser, tmp_path: Path
) -> None:
    changed = ["scale=2", "reward.brief=-0.3"]
    with closing(Run.open(letters)) as run:
        rescore(run, tmp_path / "changed", apply_settings(run.config, changed), lambda count: None)
    page = browser.open("/a/responses", tmp_path / "changed")
    assert "Drawn from -0.6 to 1.4" in page
    rewards = re.findall(r'class="figure">([^<]+)<', page)
    assert len(rewards) == 5
    assert float(rewards[0]) < 0.0 < float(rewards[3])
    for reward, drawn in zip(rewards, draw_strips(page), strict=True):
        assert drawn["tick"][0] == pytest.approx(30.0)
        if reward == "–":
            assert drawn.keys() == {"tick"}
            continue
        value = 30.0 + 50.0 * float(reward)
        assert drawn["loss"] == pytest.approx((value, 100.0 - value), abs=0.1)
        start, width = drawn["kept"]
        assert (start, start + width) == pytest.approx(sorted((30.0, value)), abs=0.1)


def test_without_a_best_possible_reward_nothing_is_drawn_as_lost(
    tmp_path: Path, browser: Browser
) -> None:
    settings = {
        "components": {
            "polite": {
                "combiner": "tests.explanation.test_explain.Lowest",
                "inputs": {"polite": "polite"},
            }
        },
        "reward": {"polite": 1.0},
    }
    with jg.Jury(evaluators=[polite], **settings) as jury, jury.record(tmp_path / "run"):
        jury.score(jg.Task(id="t", query="?"), ["please", "please please", "come"])
    page = browser.open("/a/responses", tmp_path / "run")
    assert "the ends of this run" in page
    assert len(draw_strips(page)) == 3
    assert all("loss" not in drawn for drawn in draw_strips(page))


@all_rows("path", ["/a/response?id=cas/0", "/a/nowhere", "/c/", "/static/nothing.css"])
def test_an_error_leads_back_to_a_page_that_is_there(
    path: str, letters: Path, browser: Browser
) -> None:
    page = browser.open(path, letters)
    assert '<a href="/a/">' in page
    is_missing = "There is no page at this address." in page
    assert browser.status == (404 if is_missing else 400)
    assert is_missing is ("response" not in path)
