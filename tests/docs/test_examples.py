"""The examples of the documentation do what the page says: each chapter is run, block by block, on a real database."""

import re
import sys
from pathlib import Path

import pytest
from django.db import connection

from workflows import definitions
from workflows.models import Workflow
from workflows.testing import Rehearsal

from . import shop

DOCS = Path(__file__).resolve().parents[2] / "docs"
ELSEWHERE = "install.md"  # its lines are for a project that is not ours: tests/adoption follows them
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return [page for page in sorted(DOCS.rglob("*.md")) if page.name != ELSEWHERE]


def chapters() -> list[tuple[Path, str, int, str]]:
    """Page, heading, line of the heading and text of every chapter that has examples."""
    found = []
    for page in pages():
        text = page.read_text()
        for heading in re.finditer(r"^## (.*)\n((?:(?!^## ).*\n)*)", text, re.MULTILINE):
            if BLOCK.search(heading[2]):
                found.append((page, heading[1], text.count("\n", 0, heading.start(2)), heading[2]))
    return found


CHAPTERS = chapters()


def run(page: Path, line: int, text: str) -> None:
    """Compiled where they stand, so that a failure names the page and its line."""
    names = {"__name__": f"docs.{page.stem}"}
    for block in BLOCK.finditer(text):
        before = line + text.count("\n", 0, block.start(1))
        exec(compile("\n" * before + block[1], page, "exec"), names)


@pytest.fixture
def a_shop(db, monkeypatch):
    monkeypatch.setattr(definitions, "_known", dict(definitions.discover()))
    monkeypatch.setattr(definitions, "duplicates", [])
    for name, module in shop.opened().items():
        monkeypatch.setitem(sys.modules, name, module)
    with connection.schema_editor(atomic=False) as editor:
        for model in (shop.Invoice, shop.Stock, shop.OrderItem):
            editor.create_model(model)
    connection.cursor().execute("SET CONSTRAINTS ALL IMMEDIATE")


@pytest.mark.parametrize(
    ("page", "line", "text"),
    [(page, line, text) for page, _, line, text in CHAPTERS],
    ids=[f"{page.stem}: {heading}" for page, heading, _, _ in CHAPTERS],
)
@pytest.mark.usefixtures("a_shop")
def test_the_examples_of_a_chapter_run(page, line, text):
    """S3-014..S3-021, S3-059..S3-063, S3-084..S3-091, S3-096..S3-100, S3-103..S3-108."""
    run(page, line, text)


@pytest.mark.usefixtures("a_shop")
def test_idempotency_is_logged_both_ways_with_the_id(caplog):
    """S3-087."""
    page, _, line, text = next(chapter for chapter in CHAPTERS if chapter[1].startswith("Idempotent steps"))

    with caplog.at_level("INFO", logger="shop"):
        run(page, line, text)

    told = [record.getMessage() for record in caplog.records if "mail of" in record.getMessage()]
    assert [message.partition(": ")[2] for message in told] == [
        "executing for first time",
        "already executed, skipping",
    ]
    assert len({message.partition(": ")[0] for message in told}) == 1


@pytest.mark.usefixtures("a_shop")
def test_the_example_of_the_readme_runs():
    def load_customer(order_id):
        return f"customer of {order_id}"

    def charge_card(customer):
        return f"{customer} paid"

    text = (DOCS.parent / "README.md").read_text()
    exec(BLOCK.search(text)[1], {"load_customer": load_customer, "charge_card": charge_card, "__name__": "docs.readme"})

    assert Rehearsal(Workflow.objects.get()).to_end().output == "customer of A1 paid"


def test_every_block_of_code_is_in_a_chapter_that_is_run():
    """An example that nobody runs is a promise that nobody keeps."""
    written = sum(len(BLOCK.findall(page.read_text())) for page in pages())

    assert written == sum(len(BLOCK.findall(text)) for _, _, _, text in CHAPTERS) > 20


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))], ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize(
    "word", ["HTTP request", "transaction", "message", "local variables", "thread-local storage", "caches"]
)
def test_the_page_says_what_does_not_come_back(word):
    """S3-109..S3-114."""
    chapter = (DOCS / "workflows.md").read_text().partition("| does not come back |")[2].partition("\n## ")[0]

    assert any(line.startswith("| ") and word in line.split("|")[1] for line in chapter.splitlines())


@pytest.mark.parametrize("word", ["pend_again", "lazy", "outside the database", "aggressive"])
def test_the_page_says_where_a_step_must_be_idempotent(word):
    """S3-055..S3-058: where it is a must, and why it is a good habit everywhere else."""
    chapter = (DOCS / "workflows.md").read_text().partition("## Idempotent steps")[2].partition("**1.")[0]

    assert word in chapter


PAGES = [DOCS.parent / "README.md", DOCS.parent / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
TEMPLATES = sorted((DOCS.parent / "templates").rglob("*.html"))


@pytest.mark.parametrize("page", [*PAGES, *TEMPLATES], ids=lambda page: page.name)
def test_exactly_once_is_promised_of_atomic_steps_and_of_nothing_else(page):
    """S2-065, C21: for the rest it is at least once, recorded once, with a key that stays the same."""
    for paragraph in page.read_text().split("\n\n"):
        assert not re.search(r"exactly[ -]once", paragraph, re.IGNORECASE) or "atomic" in paragraph, paragraph


def test_what_is_promised_is_said_in_these_words():
    """S2-065, C21."""
    said = " ".join((DOCS / "guarantees.md").read_text().split())

    assert "a step runs *at least once* and is recorded once" in said
    assert "a step declared `atomic` has its database effects *exactly once*" in said
    assert "for the rest there is a stable idempotency key" in said
