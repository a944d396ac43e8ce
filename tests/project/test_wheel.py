"""The wheel carries the two apps with their pages, and nothing of this repository's own project."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_wheel_holds_both_apps_with_templates_and_static_files(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)

    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()

    tops = {name.split("/")[0] for name in names}
    assert tops == {"workflows", "recovery", next(top for top in tops if top.endswith(".dist-info"))}
    for page in (ROOT / "templates" / "rekindle").rglob("*.html"):
        assert f"recovery/templates/rekindle/{page.relative_to(ROOT / 'templates' / 'rekindle')}" in names
    for file in (ROOT / "static" / "rekindle").rglob("*.css"):
        assert f"recovery/static/rekindle/{file.relative_to(ROOT / 'static' / 'rekindle')}" in names
