"""The demo's report as a reader sees it, light and dark: `python docs/hooks/report_pictures.py [FOLDER]`.

Needs `chromium` and Pillow. The home page shows the two files that this writes, `report_light.png` and `report_dark.png`.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

SCHEMES = {"dark": 0, "light": 1}  # as chromium counts them
COLOURS = 200  # text and lines need no more, and the files have half of the size


def photograph(page: Path, scheme: str, to: Path) -> None:
    """The first screen of a page, as sharp as on a good display."""
    with tempfile.TemporaryDirectory() as folder:
        raw = Path(folder) / "raw.png"
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}"]
        options += [f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}", "--force-device-scale-factor=1.5"]
        command = ["chromium", *options, "--window-size=1060,1270", f"--screenshot={raw}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        Image.open(raw).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(to, optimize=True)


def main(folder: Path) -> None:
    """Run the demo, photograph its report twice."""
    with tempfile.TemporaryDirectory() as out:
        subprocess.run([sys.executable, "-m", "supermodel", "demo", "--out", out], check=True, capture_output=True)
        report = (Path(out) / "report.html").resolve(strict=True)  # chromium would photograph its own error page
        for scheme in SCHEMES:
            photograph(report, scheme, folder / f"report_{scheme}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[1] / "pictures")
