"""Which requirements no test cites: `python -m tests.requirements REQUIREMENTS.md S3-014..S3-021 C I …`

A requirement is a line that begins with its id. A test cites it by writing the id, or a range such as S3-014..S3-021,
into its docstring. What a seed only tells of its own world has nothing to prove and is printed apart. Exit code 1 if
any other is cited nowhere.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ID = re.compile(r"^\W*([A-Z]\d*-\d{3}|[CI]\d+)\b", re.MULTILINE)
CITED = re.compile(r"\b([A-Z]\d*-\d{3}|[CI]\d+)(?:\.\.([A-Z]\d*-\d{3}|[CI]\d+))?\b")
TESTS = Path(__file__).parent

NARRATIVE = {  # id: why there is nothing to test
    "S0-066": "advice on the order in which that project should ship; the start-up look and the watch are both here",
    "S1-039": "names a function of that project's code; that status, alarm and event are one commit is S1-038",
    "S1-044": "the order in which that project should mend its five faults; each of the five is cited for itself",
    "S2-086": "says which layer of that project's architecture owns the document",
    "S2-087": "says how far that project had come",
    "S3-133": "a speed: `make bench` measures how soon work runs again, no test waits for a clock",
    "S3-135": "a list of further reading",
}


def split(name: str) -> tuple[str, int]:
    head, number = re.fullmatch(r"(.*?)(\d+)", name).groups()  # type: ignore[union-attr]
    return head, int(number)


def expand(first: str, last: str = "") -> Iterator[str]:
    head, low = split(first)
    width = len(first) - len(head)
    for number in range(low, split(last or first)[1] + 1):
        yield f"{head}{number:0{width}}"


def cited(folder: Path = TESTS) -> set[str]:
    found: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Module)):
                for first, last in CITED.findall(ast.get_docstring(node) or ""):
                    found |= set(expand(first, last))
    return found


def wanted(text: str, which: list[str]) -> list[str]:
    """The ids of the document that fall under one of the prefixes or ranges; all, if none is given."""
    ranges = {name for part in which if ".." in part for name in expand(*part.split("..", 1))}
    prefixes = tuple(part for part in which if ".." not in part)
    ids = dict.fromkeys(ID.findall(text))
    return [name for name in ids if not which or name in ranges or name.startswith(prefixes or ("?",))]


def main(document: str, *which: str) -> int:
    proven = cited()
    uncited = [name for name in wanted(Path(document).read_text(), list(which)) if name not in proven]
    missing = [name for name in uncited if name not in NARRATIVE]
    print("\n".join(missing) or "Every one is cited.")
    for name in uncited:
        if name in NARRATIVE:
            print(f"({name}: {NARRATIVE[name]})")
    return 1 if missing else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
