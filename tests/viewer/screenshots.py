"""Make the screenshots of docs/viewing.md: `python -m tests.viewer.screenshots RUN RESPONSE`."""

import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from tests.viewer.test_browser import CHROMIUM, viewing

FOLDER = Path(__file__).parents[2] / "docs" / "images"
SCHEMES: Any = ("light", "dark")


def main(run: str, response: str) -> None:
    pages = {"run": "a/", "response": f"a/response?id={response}"}
    with viewing(Path(run)) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for width, height in ((1440, 1000), (360, 740)):
            for scheme in SCHEMES:
                size: Any = {"width": width, "height": height}
                page = browser.new_page(viewport=size, color_scheme=scheme)
                for name, path in pages.items():
                    page.goto(address + path)
                    page.screenshot(path=FOLDER / f"{name}-{width}-{scheme}.png")


if __name__ == "__main__":
    main(*sys.argv[1:])
