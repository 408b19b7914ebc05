"""Sphinx configuration; the API pages are written here from every package's ``__all__``."""

import inspect
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
os.environ.setdefault("OMP_NUM_THREADS", "2")

import skcalib  # noqa: E402

project = "skcalib"
author = "The skcalib developers"
copyright = "2026, the skcalib developers"
release = skcalib.__version__
version = release

extensions = [
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "literal"

html_theme = "pydata_sphinx_theme"
html_title = f"skcalib {release}"
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": False, "show_toc_level": 2}

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "ignore_pattern": r"__init__\.py",
    "download_all_examples": False,
    "show_memory": False,
    "doc_module": ("skcalib",),
    "backreferences_dir": None,
    "plot_gallery": "True",
    "abort_on_example_error": True,
}
# Functions in the configuration (matplotlib's scraper) cannot be pickled between builds.
suppress_warnings = ["config.cache"]

_INVENTORIES = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "sklearn": "https://scikit-learn.org/stable/",
    "skorch": "https://skorch.readthedocs.io/en/stable/",
}


def _reachable(url: str) -> bool:
    try:
        with urlopen(f"{url}objects.inv", timeout=3):
            return True
    except (URLError, OSError):
        return False


# A missing inventory is a warning, and warnings are errors: without a network, no links.
intersphinx_mapping = {name: (url, None) for name, url in _INVENTORIES.items() if _reachable(url)}


def _write_api_pages() -> None:
    """One page for every package, one row for every public name."""
    folder = HERE / "api"
    folder.mkdir(exist_ok=True)
    packages = [
        name for name in sorted(skcalib._SUBPACKAGES) if import_module(f"skcalib.{name}").__all__
    ]
    index = ["API reference", "=============", "", ".. toctree::", "   :maxdepth: 1", ""]
    index += [f"   {name}" for name in packages]
    _write(folder / "index.rst", index)
    for package in packages:
        module = import_module(f"skcalib.{package}")
        title = f"skcalib.{package}"
        lines = [title, "=" * len(title), "", inspect.getdoc(module) or "", ""]
        kinds = {"Classes": inspect.isclass, "Functions": inspect.isfunction}
        for heading, belongs in kinds.items():
            names = [name for name in module.__all__ if belongs(getattr(module, name))]
            if names:
                template = "class.rst" if heading == "Classes" else "base.rst"
                lines += [heading, "-" * len(heading), "", f".. currentmodule:: skcalib.{package}"]
                lines += ["", ".. autosummary::", "   :toctree: generated/", "   :nosignatures:"]
                lines += [f"   :template: {template}", "", *(f"   {name}" for name in names), ""]
        _write(folder / f"{package}.rst", lines)


def _write(path: Path, lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


_write_api_pages()


def _skip_foreign(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool:
    """Leave the methods inherited from scikit-learn, torch and skorch to their documentation."""
    owner = getattr(getattr(member, "fget", member), "__module__", None) or "skcalib"
    return skip or owner.partition(".")[0] != "skcalib"


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", _skip_foreign)
