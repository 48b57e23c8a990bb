"""A browser for pages: Debian's Chromium, driven by Playwright; without it the tests are skipped with one line."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from opened import Opened

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = shutil.which("chromium")
    if path is None or importlib.util.find_spec("playwright") is None:
        leave = pytest.fail if os.environ.get("SSGE_TEST_PAGES") else pytest.skip
        leave("pages are not tested: chromium or Playwright is not installed")
    from playwright import sync_api as sync

    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def show(file: Path, width: int = 1280, height: int = 900, scheme: str = "light") -> Opened:
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
        )
        context.set_default_timeout(180_000)  # a busy machine is slow, not wrong
        contexts.append(context)
        found = Opened(context.new_page(), file)
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.on("pageerror", lambda error: found.errors.append(str(error)))
        found.page.on("console", lambda said: found.errors.append(said.text) if said.type == "error" else None)
        found.page.goto(file.as_uri())
        found.page.wait_for_selector("#plot[data-ready=true]")
        return found

    yield show
    for context in contexts:
        context.close()
