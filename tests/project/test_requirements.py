"""The script that tells which requirements no test cites."""

from tests.requirements import NARRATIVE, cited, main, wanted

DOCUMENT = "- S9-001 (A) one\n- S9-002 (A) two\n- **C1. three** → *four*\ntext S9-003 in a line\n- S9-010 (B) five\n"


def test_a_requirement_is_a_line_that_begins_with_its_id():
    assert wanted(DOCUMENT, []) == ["S9-001", "S9-002", "C1", "S9-010"]
    assert wanted(DOCUMENT, ["S9-002..S9-010", "C"]) == ["S9-002", "C1", "S9-010"]


def test_docstrings_cite_single_ids_and_ranges(tmp_path):
    (tmp_path / "test_x.py").write_text('def test_a():\n    """S9-001..S9-003, C1: words."""\n    x = "S9-009"\n')

    assert cited(tmp_path) == {"S9-001", "S9-002", "S9-003", "C1"}


def test_what_is_cited_nowhere_is_printed(tmp_path, capsys):
    document = tmp_path / "requirements.md"
    document.write_text("- X8-001 (A) nobody proves this\n")

    assert main(str(document), "X8") == 1
    assert capsys.readouterr().out == "X8-001\n"


def test_what_has_nothing_to_prove_is_printed_apart(tmp_path, capsys):
    document = tmp_path / "requirements.md"
    document.write_text("- S2-087 (Status) how far they had come\n")

    assert main(str(document), "S2-087") == 0
    said = capsys.readouterr().out
    assert said == f"Every one is cited.\n(S2-087: {NARRATIVE['S2-087']})\n"


def test_nothing_is_called_narrative_that_a_test_proves():
    assert not NARRATIVE.keys() & cited()
