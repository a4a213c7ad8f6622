"""The journeys of people who did not run the judge, in a real Chromium; axe looks at every page that they open."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.command import JURYGRAPH, run_command

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.landing

EXAMPLES = Path(__file__).parents[2] / "examples"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SERIOUS = ("serious", "critical")


@contextmanager
def viewing(*folders: Path) -> Iterator[str]:
    """Run `jurygraph view` for runs, and yield its address."""
    command = [JURYGRAPH, "view", *map(str, folders), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()  # Ctrl-C is ignored below a shell's background job


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the trips, with the trips under uniform weights, and with an agent's conversations."""
    folder = tmp_path_factory.mktemp("runs")
    for example, run in (("group_trip", "trips"), ("agent", "conversations")):
        project = EXAMPLES / example
        options = ("--config", project / "jury.yaml", "--out", folder / run)
        assert run_command("score", project / "tasks.jsonl.gz", *options).code == 0
    settings = ("--out", folder / "uniform", "--set", "weights.method=uniform")
    assert run_command("rescore", folder / "trips", *settings).code == 0
    return folder


@pytest.fixture(scope="module")
def trips(runs: Path) -> Iterator[str]:
    """The address of a server that shows the trips: one for all journeys, because it takes seconds to start."""
    with viewing(runs / "trips") as address:
        yield address


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        if os.environ.get("JURYGRAPH_NEEDS_CHROMIUM"):
            pytest.fail("there is no chromium; `.ci/run` installs Debian's")
        pytest.skip("NO BROWSER WAS TESTED: there is no chromium; apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator["Page"]:
    """A page that reports what scripts and requests do wrong."""
    opened = chromium.new_page(viewport={"width": 1280, "height": 900})
    faults: list[str] = []
    opened.on("console", lambda message: faults.append(message.text))
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("request", lambda request: _note_foreign(request.url, faults))
    yield opened
    assert faults == []
    opened.close()


def _note_foreign(url: str, faults: list[str]) -> None:
    if not url.startswith(("http://127.0.0.1:", "file:")):
        faults.append(f"request to {url}")


def check_access(page: "Page") -> None:
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in SERIOUS] == []


def test_somebody_finds_the_trip_whose_budget_broke_and_what_proves_it(
    trips: str, page: "Page"
) -> None:
    page.goto(trips)
    check_access(page)
    page.get_by_role("link", name="budget-broken").click()
    check_access(page)
    page.locator("tbody tr").first.get_by_role("link").first.click()
    check_access(page)
    first_loss = page.locator(".waterfall li").nth(1)
    assert re.search(r"budget of \w+", first_loss.inner_text())
    page.locator(".verdicts").get_by_role("link", name=re.compile("budget of")).first.click()
    check_access(page)
    assert "at most $" in page.locator("main").inner_text()  # the reason, with its sums


def test_a_setting_that_is_tried_moves_the_reward_and_the_address_keeps_it(
    trips: str, page: "Page"
) -> None:
    page.goto(f"{trips}a/response?id=travelplanner-train-28/impossible-leg")
    reward = page.locator(".big").first.inner_text()
    page.get_by_text("Change a weight").click()
    check_access(page)
    page.get_by_label(re.compile("τ")).fill("0.5")
    page.get_by_label(re.compile("τ")).blur()
    page.locator("#what-if .big").wait_for()
    changed = page.locator("#what-if .big").inner_text()
    assert changed != reward
    assert "weights.temperature%3D0.5" in page.url
    page.goto(page.url)  # a deep link
    assert page.locator("#what-if .big").inner_text() == changed


def test_two_agents_change_places_where_a_setting_turns_the_ranking(
    trips: str, page: "Page"
) -> None:
    page.goto(f"{trips}a/ranking")
    page.get_by_label(re.compile("change places")).select_option("weights.temperature")
    page.locator("#ranking li").first.wait_for()
    check_access(page)
    assert re.search(
        r"(From [\d.]+ on|Below [\d.]+) [\w-]+ leads [\w-]+ \(2 today\)\.",
        page.locator("#ranking li").first.inner_text(),
    )


def test_a_verdict_that_is_tried_moves_the_reward_and_no_config_can_have_it(
    trips: str, page: "Page"
) -> None:
    page.goto(f"{trips}a/response?id=travelplanner-train-28/impossible-leg")
    reward = page.locator(".big").first.inner_text()
    page.get_by_label("what if budget of lara were").select_option(label="1.0")
    page.locator("#what-if .big").wait_for()
    assert float(page.locator("#what-if .big").inner_text()) > float(reward)
    assert "score=" in page.url
    assert "No config can do this" in page.locator("#what-if").inner_text()
    check_access(page)
    page.get_by_text("Change a weight").click()
    page.get_by_label(re.compile("τ")).fill("0.5")
    page.get_by_label(re.compile("τ")).blur()
    page.get_by_role("link", name="Download the config with these settings").wait_for()
    with page.expect_download() as downloading:
        page.get_by_role("link", name="Download the config with these settings").click()
    assert "temperature: 0.5" in Path(downloading.value.path()).read_text()


def test_the_text_stays_in_sight_beside_the_waterfall_and_follows_it_on_a_small_screen(
    trips: str, page: "Page"
) -> None:
    page.goto(f"{trips}a/response?id=travelplanner-train-28/impossible-leg")
    text, losses = page.locator("section.text"), page.locator(".waterfall").first
    text_box, losses_box = text.bounding_box(), losses.bounding_box()
    assert text_box is not None
    assert losses_box is not None
    assert text_box["x"] >= losses_box["x"] + losses_box["width"]
    page.evaluate("scrollTo(0, document.querySelector('#h-verdicts').offsetTop)")
    text_box = text.bounding_box()
    assert text_box is not None
    assert text_box["y"] == pytest.approx(0, abs=1)
    page.set_viewport_size({"width": 360, "height": 800})
    texts = page.locator("main h2").all_inner_texts()
    assert texts[:3] == ["What was lost, and why", "Response", "What if"]
    check_access(page)


def test_a_reason_is_read_whole_and_a_key_opens_its_sums_which_paper_has(
    trips: str, page: "Page"
) -> None:
    page.goto(f"{trips}a/response?id=travelplanner-train-28/impossible-leg")
    loss = page.locator(".waterfall details").first
    assert "Lost " not in loss.inner_text()
    loss.locator("summary").press("Enter")
    assert "Lost " in loss.inner_text()
    check_access(page)


def test_how_far_the_order_is_from_turning_is_said_in_sentences(trips: str, page: "Page") -> None:
    page.goto(f"{trips}a/ranking")
    page.get_by_label("how far is the order from turning").select_option("1")
    page.locator("#ranking .pairs li").first.wait_for()
    check_access(page)
    sentences = page.locator("#ranking .pairs").inner_text()
    assert "They change places with τ at" in sentences
    assert "which may be chance" in sentences
    assert "far=1" in page.url


def test_the_grid_leads_to_a_verdict_and_a_head_to_the_order_of_its_question(
    trips: str, page: "Page"
) -> None:
    page.goto(f"{trips}a/responses?task=travelplanner-train-28")
    page.get_by_label("grid of the questions of").select_option("stakeholders")
    page.get_by_role("button", name="Show").click()
    check_access(page)
    assert "task=travelplanner-train-28" in page.url
    page.get_by_role("link", name="checks.constraints/budget@lara", exact=True).click()
    order = page.locator("tbody tr td.asked:nth-child(5)").all_inner_texts()
    assert order == sorted(order)
    page.locator("td.asked a").first.click()
    assert "Verdict 1 of" in page.locator("main").inner_text()


def test_a_run_is_verified_on_request_and_a_word_is_explained_to_the_keyboard(
    trips: str, page: "Page"
) -> None:
    page.goto(f"{trips}a/")
    page.get_by_role("link", name="Verify this run").click()
    page.locator("#integrity .intact").wait_for()
    assert "Unchanged" in page.locator("#integrity").inner_text()
    assert page.url.endswith("/a/")
    check_access(page)
    word = page.locator(".tip").first
    word.focus()
    assert word.locator("[role=tooltip]").bounding_box()["width"] > 50  # type: ignore[index]


def test_two_runs_are_compared_with_a_sentence_first(runs: Path, page: "Page") -> None:
    with viewing(runs / "trips", runs / "uniform") as address:
        page.goto(address)
        check_access(page)
        assert re.match(
            r"Agents are in .* order; .* B is .* (higher|lower)", page.locator(".lede").inner_text()
        )
        assert "weights.method" in page.locator("main").inner_text()
        page.get_by_role("link", name="in B").first.click()
        assert "/b/response" in page.url


def test_a_conversation_is_read_message_by_message_on_a_small_screen(
    runs: Path, page: "Page"
) -> None:
    page.set_viewport_size({"width": 360, "height": 800})
    with viewing(runs / "conversations") as address:
        page.goto(f"{address}a/responses?sort=reward")
        page.locator("tbody tr").first.get_by_role("link").first.click()
        check_access(page)
        assert page.locator(".message").count() > 3
        assert "assistant" in page.locator(".message").nth(1).inner_text()
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360


def write_answers(folder: Path, agents: int) -> Path:
    """Score the answers of agents to eight questions by two components, and return the run."""
    answers = [
        {"id": f"{number}-{agent}", "query": f"What is {number}?", "group": f"question {number}"}
        | {"responses": [{"id": f"{number}-{agent}", "agent": name, "text": text}]}
        for number in range(8)
        for agent in range(agents)
        for name in [f"a system with a long name, which is the {agent}. of them"]
        for text in ["It is that. " * 40 if (number + agent) % (agent + 2) else "So."]
    ]
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, answers)))
    (folder / "lengths.py").write_text(
        "def long(task, response):\n    return len(response.text) > 60\n\n\n"
        "def brief(task, response):\n    return 1 / len(response.text)\n"
    )
    (folder / "jury.yaml").write_text(
        "evaluators: [lengths.long, lengths.brief]\nreward: {long: 0.8, brief: -0.2}\n"
    )
    command = [JURYGRAPH, "score", "answers.jsonl", "--out", "rag"]
    subprocess.run(
        command, cwd=folder, check=True, capture_output=True
    )  # the browser has a loop here
    return folder / "rag"


@pytest.mark.usefixtures("runs")  # which cannot be scored once a browser is open
@pytest.mark.parametrize("agents", [2, 5])
def test_a_brief_is_one_page_of_paper_that_says_who_is_better_why_and_with_examples(
    agents: int, page: "Page", tmp_path: Path
) -> None:
    brief = tmp_path / "brief.html"
    run = write_answers(tmp_path, agents)
    assert run_command("report", run, "--brief", "-o", brief).code == 0
    page.goto(brief.as_uri())
    check_access(page)
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4"))) == 1
    text = page.locator("main").inner_text()
    assert "better than a system with a long name, which is the" in text
    assert re.search(r"better in \d, equal in \d, worse in \d", text)
    assert re.search(r"long\s+\d of 8\s+\d of 8", text)  # fall short
    assert re.search(r"brief\s+0 of 8\s+0 of 8", text)  # of a fault: have it
    assert f"{8 * agents} answers to 8 tasks, by rules, without a model" in text
    assert page.locator("li").count() == 3
    assert not re.search(r"\d\.\d{3}|group", text)
    refused = run_command("report", run, "--brief", "--response", "x", "-o", brief)
    assert (refused.code, "--brief is a page of a whole run" in refused.err) == (2, True)


def test_a_report_opens_from_a_file_and_can_be_read_by_everybody(
    runs: Path, page: "Page", tmp_path: Path
) -> None:
    report = tmp_path / "report.html"
    response = tmp_path / "response.html"
    assert run_command("report", runs / "trips", "-o", report).code == 0
    name = "travelplanner-train-28/impossible-leg"
    assert run_command("report", runs / "trips", "-o", response, "--response", name).code == 0
    certificate = tmp_path / "certificate.html"
    ended = run_command("study", "certify", runs / "trips", "--html", certificate, "--json")
    assert ended.code == 0
    page.goto(certificate.as_uri())
    check_access(page)
    assert "cannot be concluded" in page.locator(".lede").first.inner_text()
    assert page.locator("svg.interval").count() > 0
    page.set_viewport_size({"width": 360, "height": 800})
    for written in (certificate, report, response):
        page.goto(written.as_uri())
        check_access(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert "The sums" in page.locator("main").inner_text()
    page.goto(report.as_uri())
    rewards = page.locator(".entry .big").all_inner_texts()
    assert len(rewards) == 10
    assert rewards == sorted(rewards)
