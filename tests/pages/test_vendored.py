import hashlib
import json
from pathlib import Path

VENDOR = Path(__file__).parents[2] / "static/rekindle/vendor"


def test_what_is_vendored_is_what_the_list_says():
    listed = {entry["file"]: entry for entry in json.loads((VENDOR / "VENDORED.json").read_text())}

    assert set(listed) == {file.name for file in VENDOR.iterdir()} - {"VENDORED.json"}
    for name, entry in listed.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == entry["sha256"], name
        assert entry["package"]
        assert entry["version"]
        assert entry["licence"]
