"""The recipes of the guide stay recipes: one problem, one picture, at most 500 words."""

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[1] / "docs/how_to").glob("*.rst"))
# The list of all recipes, and one page that gathers those for other libraries.
RECIPES = [path for path in PAGES if path.stem not in ("index", "stack")]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_is_short_and_says_what_can_go_wrong(path):
    # Words of the index are for the search.
    text = re.sub(r"\.\. index::\n(   .*\n)+", "", path.read_text())
    assert len(text.split()) <= 500
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
