"""`make pictures`: the pictures in docs/, taken anew.

Brings up the demo on a directory that is thrown away, lets it run for a while, kills a worker with the page's own
button, and looks at every page of the rail in a real Chromium. Nothing in the pictures is made up.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
WARM_UP = 150  # seconds, until the charts have something to show
WIDTH, HEIGHT, TALLEST = 1440, 900, 1500  # pixels
LARGEST = 300_000  # bytes of a picture
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, demo(Path(place) / "data") as address, sync_playwright() as playwright:
        time.sleep(WARM_UP)
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=QUIET)
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        sign_in(page, address, (Path(place) / "data" / "password-admin").read_text())
        the_kill(page, address)
        every_page(page, address)
        chromium.close()


@contextmanager
def demo(directory: Path) -> Iterator[str]:
    """Its address, while it is up."""
    said = directory.with_suffix(".txt")
    environment = {name: text for name, text in os.environ.items() if name != "DATABASE_URL"}
    with said.open("wb") as out:
        up = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", "0"],
            cwd=ROOT,
            env=environment | {"REKINDLE_DATA": str(directory), "REKINDLE_RELEASE": "2.3.1"},
            stdout=out,
            stderr=out,
        )
    try:
        while not (found := re.search(r"Rekindle is at (\S+)/", said.read_text())):
            if up.poll() is not None:
                sys.exit(said.read_text())
            time.sleep(0.1)
        yield found[1]
    finally:
        up.send_signal(signal.SIGINT)
        up.wait()


def sign_in(page: Page, address: str, password: str) -> None:
    page.goto(f"{address}/login/")
    page.fill("[name=username]", "admin")
    page.fill("[name=password]", password)
    page.press("[name=password]", "Enter")
    page.wait_for_url(f"{address}/")


def the_kill(page: Page, address: str) -> None:
    """A worker with a video in hand, the dialog, and the video's page just after it was taken over."""
    page.goto(f"{address}/workers/")
    busy = "#alive tr:has(.hand a[title^=video]) .btn.bad"
    page.wait_for_selector(busy, timeout=60_000)
    page.click(busy)
    page.wait_for_selector("#dialog[open] button.do")
    keep(page, "kill", whole=False)
    page.click("#dialog button.do")
    left = page.wait_for_selector(".went li:has(.state.running) a:has-text('video')", timeout=20_000)
    assert left
    keep(page, "workers")
    page.goto(f"{address}{left.get_attribute('href')}")
    page.wait_for_selector(".mark.recovery", state="attached")
    time.sleep(2)  # until the second run can be seen
    page.reload()
    keep(page, "workflow", whole=False)


def every_page(page: Page, address: str) -> None:
    names = page.eval_on_selector_all(".pages a", "all => all.map(a => [a.id.replace('rail-', ''), a.pathname])")
    for name, path in [*names, ("name", "/names/video/")]:
        if name != "workers":  # was taken when it had the most to tell
            page.goto(f"{address}{path}?range=15m" if name in ("overview", "recovery") else f"{address}{path}")
            keep(page, name)


def keep(page: Page, name: str, *, whole: bool = True) -> None:
    page.wait_for_load_state("networkidle")
    page.evaluate("document.fonts.ready")
    tall = min(page.evaluate("document.documentElement.scrollHeight"), TALLEST) if whole else HEIGHT
    page.set_viewport_size({"width": WIDTH, "height": max(tall, HEIGHT)})
    page.wait_for_timeout(400)
    picture = PICTURES / f"{name}.png"
    page.screenshot(path=picture)
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    size = picture.stat().st_size
    print(f"{picture.relative_to(ROOT)}  {size // 1000} KB")
    if size > LARGEST:
        sys.exit(f"{picture.name} is larger than {LARGEST // 1000} KB: make the page shorter, or the picture.")


if __name__ == "__main__":
    main()
