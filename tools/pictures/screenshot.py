"""Take a screenshot of a page with a headless browser, and cut off the empty space below it."""

import io
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from PIL import Image, ImageChops

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDTH = 760  # pixels
HEIGHT = 2_400  # pixels of the window; longer pages are cut
COLOURS = 128
_SECONDS = 60


class NoBrowser(Exception):
    """No browser is installed; `str()` says what to install."""


def find_browser(folders: str | None = None) -> str:
    """Return the path of a browser in `folders`, which default to those of `PATH`. Raises `NoBrowser`."""
    if path := next(filter(None, (shutil.which(name, path=folders) for name in BROWSERS)), None):
        return path
    raise NoBrowser("Pictures need Chromium, which was not found: install it with `apt-get install chromium`.")


def take_screenshot(page: str, program: str) -> bytes:
    """Return a screenshot of an HTML page as PNG. Raises `NoBrowser`, `subprocess.TimeoutExpired`."""
    with TemporaryDirectory(prefix="picture-") as folder:
        source, made = Path(folder, "page.html"), Path(folder, "page.png")
        source.write_text(page, encoding="utf-8")
        # Containers offer no sandbox. The page is our own, runs no script, and fetches nothing.
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1"]
        where = [f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={made}"]
        command = [program, *flags, *where, source.as_uri()]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        if not made.exists():
            raise NoBrowser(f"{program} drew nothing: {done.stderr.strip().splitlines()[-1:]}")
        return _crop(made)


def _crop(made: Path) -> bytes:
    """Return a picture without the blank space at its bottom, in few colours."""
    with Image.open(made) as opened:
        whole = opened.convert("RGB")
    box = ImageChops.difference(whole, Image.new("RGB", whole.size, "white")).getbbox() or (0, 0, WIDTH, 1)
    out = io.BytesIO()
    cropped = whole.crop((0, 0, WIDTH, box[3]))
    # These parameters keep the colours of both large areas and small signs.
    few = cropped.quantize(COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE)
    few.save(out, "PNG", optimize=True)
    return out.getvalue()
