"""The page of evidence says what the JSON files say, and nothing else."""

import re
from pathlib import Path

import pytest

from benchmarks.papers import page
from benchmarks.papers.summary import RESULTS

DOCS = Path(__file__).parents[2] / "docs"
RENDERED = page.render()


@pytest.mark.parametrize("name", sorted(RENDERED))
def test_tables_and_claims_are_those_of_the_results(name):
    # "python -m benchmarks.papers page" writes them anew.
    assert (DOCS / "evidence" / name).read_text() == RENDERED[name]


def test_every_part_is_on_the_page_and_nothing_else_is_included():
    text = (DOCS / "evidence.rst").read_text()
    included = re.findall(r"\.\. include:: evidence/(\S+)", text)
    assert sorted(included) == sorted(RENDERED)
    assert sorted(included) == sorted(path.name for path in (DOCS / "evidence").iterdir())


def test_no_cell_is_a_lone_dash_which_would_be_a_bullet():
    assert not [name for name, text in RENDERED.items() if '"-"' in text]


def test_prose_holds_no_figure_typed_by_hand():
    text = (DOCS / "evidence.rst").read_text()
    assert not re.findall(r"\d+\.\d{2}|\d ?%|\d ±|(?<!CIFAR)[-+]\d", text)


def test_results_are_compact():
    assert sum(path.stat().st_size for path in RESULTS.glob("*.json")) < 330_000
