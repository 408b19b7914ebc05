"""The recipes of the guide stay recipes: one problem, one picture, what can go wrong."""

import ast
import builtins
import doctest
import re
import textwrap
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.glob("how_to/*.rst"))
# Without the list of all recipes, the lines by case, and the page for other libraries.
RECIPES = [path for path in PAGES if path.stem not in ("index", "stack", "five_lines")]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_has_a_picture_and_says_what_can_go_wrong(path):
    text = path.read_text()
    assert text.count(".. figure::") == 1
    assert "\nWhat can go wrong\n------" in text


def test_every_recipe_is_listed_by_its_problem(repository):
    index = (repository / "docs" / "how_to" / "index.rst").read_text()
    assert [p.stem for p in RECIPES if f":doc:`{p.stem}`" not in index] == []


# What people type: `docs/search_words.py` asks the built site for every one of these.
def test_every_recipe_can_be_found_by_other_words():
    for path in PAGES:
        if path.stem != "index":
            assert path.read_text().count("\n   ! single: ") >= 2, path.name


# What a page asks its readers to bring.
YOURS = {
    "check_labels": {"texts"},
    "embeddings": {"files", "y"},
    "five_lines": {"X_train", "y_train", "X_new", "y_new", "X_test"}
    | {"model", "proba", "old", "new", "sites"},
}
UNDERSTAND = sorted(DOCS.glob("understand/*.rst"))
PAGES_WITH_CODE = PAGES + sorted(DOCS.glob("reference/*.rst")) + sorted(DOCS.glob("*.rst"))


@pytest.mark.parametrize("path", PAGES_WITH_CODE, ids=lambda path: path.stem)
def test_code_that_is_copied_from_a_page_knows_its_names(path):
    # A comment may prepare the code for the tests, but no reader sees it.
    hidden = r"(?m)^( *)\.\. (?![\w-]+::|_|\[|\|)[^\n]*\n((?:\1 +[^\n]*\n|\s*\n)*)"
    text = re.sub(hidden, lambda found: "\n" * found[0].count("\n"), path.read_text())
    blocks = [(e.lineno, e.source) for e in doctest.DocTestParser().get_examples(text)]
    for found in re.finditer(
        r"(?m)^( *)\.\. code-block:: python\n\n((?:\1 +[^\n]*\n|\s*\n)*)", text
    ):
        blocks.append((text[: found.start()].count("\n"), textwrap.dedent(found[2])))
    known = set(dir(builtins)) | YOURS.get(path.stem, set())
    unknown = []
    for _, source in sorted(blocks):
        nodes = list(ast.walk(ast.parse(source)))
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                known.add(node.name)
            elif isinstance(node, ast.arg):
                known.add(node.arg)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                known |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        names = [node for node in nodes if isinstance(node, ast.Name)]
        known |= {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        unknown += [name.id for name in names if name.id not in known]
    assert unknown == []


def test_every_example_has_its_place_in_the_gallery(repository):
    places = re.findall(r'"(\w+\.py)"', (repository / "docs/conf.py").read_text())
    shown = [path.name for path in (repository / "examples").rglob("*.py")]
    assert sorted(places) == sorted(shown)


@pytest.mark.parametrize("path", PAGES_WITH_CODE + UNDERSTAND, ids=lambda path: path.stem)
def test_bold_text_holds_no_code(path):
    """Markup does not nest: the backquotes would be printed."""
    bold = re.findall(r"(?<![\w*])\*\*(?=\S)((?:[^*\n]|\n(?!\n))+?)\*\*", path.read_text())
    assert [text for text in bold if "``" in text] == []


def test_no_example_begins_with_an_empty_box(repository):
    """A gallery draws a box for every block of code, also where settings are all that is in it."""
    for path in (repository / "examples").rglob("plot_*.py"):
        _, _, first = path.read_text(encoding="utf-8").split("# %%")[0].split('"""', 2)
        lines = [line for line in first.splitlines() if line]
        assert not lines or any(not line.startswith("#") for line in lines), path


def test_settings_of_the_gallery_are_no_text(repository):
    """Below a title, a comment is a paragraph of the page."""
    for path in (repository / "examples").rglob("plot_*.py"):
        for cell in path.read_text(encoding="utf-8").split("# %%\n")[1:]:
            text = cell[: re.search(r"^(?!#)", cell, re.MULTILINE).start()]
            assert "sphinx_gallery" not in text, path
