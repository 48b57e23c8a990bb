"""Screenshots of the pages in docs/, in Debian's Chromium: a report on a desk, and in the dark on a phone.

    python benchmarks/screenshots.py airports/report.html --find Honolulu --out docs

The report is that of examples/airports.py.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

FLAGS = ("--no-sandbox", "--disable-gpu", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
LOOKS: dict[str, dict[str, Any]] = {
    "report": {"viewport": {"width": 1280, "height": 860}, "color_scheme": "light"},
    "report-phone": {"viewport": {"width": 390, "height": 860}, "color_scheme": "dark"},
}


def main(page: Path, find: str, out: Path) -> None:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or sys.exit("chromium is not installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        for name, look in LOOKS.items():
            shown = browser.new_context(**look).new_page()
            shown.goto(page.resolve().as_uri())
            shown.wait_for_selector("#plot[data-ready=true]")
            shown.fill("#find", find)
            shown.press("#find", "Enter")
            shown.evaluate("document.activeElement.blur(); document.getElementById('map').scrollIntoView()")
            shown.wait_for_timeout(800)  # smooth scrolling
            shown.screenshot(path=out / f"{name}.png")
            print(out / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Take screenshots of a report.")
    parser.add_argument("page", type=Path, help="the report")
    parser.add_argument("--find", required=True, help="node to select")
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of the pictures")
    given = parser.parse_args()
    main(given.page, given.find, given.out)
