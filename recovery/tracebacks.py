"""A stored traceback, with the frames of the author's own code in front: that is where he has to look."""

import re
from dataclasses import dataclass

FRAME = re.compile(
    r'^  File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)\n(?:    (?P<code>.+)\n)?', re.MULTILINE
)
FOREIGN = re.compile(
    r"site-packages|dist-packages|/lib/python\d|^<|/workflows/(attempt|executing|run|paths|atomic|retry|crew|worker)\.py$"
)


@dataclass(frozen=True, slots=True)
class Frame:
    file: str
    line: int
    function: str
    code: str


def own_frames(traceback: str, most: int = 6) -> list[Frame]:
    """The last ones first."""
    found = [
        Frame("/".join(match["file"].split("/")[-3:]), int(match["line"]), match["function"], match["code"] or "")
        for match in FRAME.finditer(traceback)
        if not FOREIGN.search(match["file"])
    ]
    return found[::-1][:most]
