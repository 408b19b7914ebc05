"""Sphinx configuration; the API pages are written here from every package's ``__all__``."""

import inspect
import os
import re
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
os.environ.setdefault("OMP_NUM_THREADS", "1")

from api_groups import GROUPS  # noqa: E402
from skorch import NeuralNet  # noqa: E402
from sphinx.ext.autosummary import Autosummary  # noqa: E402

import skcalib  # noqa: E402

project = "skcalib"
author = "The skcalib developers"
copyright = "2026, the skcalib developers"
release = skcalib.__version__
version = release

extensions = [
    "notfound.extension",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx_llms_txt",
    "sphinx_sitemap",
    "sphinxext.opengraph",
]
exclude_patterns = ["_build", "auto_examples/**/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
default_role = "literal"

html_theme = "pydata_sphinx_theme"
html_title = f"skcalib {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
# Recipes and the API before long pages of results.
html_search_scorer = str(HERE / "search_scorer.js")
html_favicon = html_logo = "_static/favicon.svg"
html_baseurl = "https://skcalib.readthedocs.io/en/stable/"
html_show_sourcelink = False
# Pages without a list of neighbors.
_WIDE = ("getting_started",)
_GUIDE = ("how_to/**", "understand/**", "measured/**", "reference/**", "changelog", "development")
html_sidebars: dict[str, list[str]] = {page: [] for page in _WIDE}
html_context = {
    "github_user": "skcalib",
    "github_repo": "skcalib",
    "github_version": "main",
    "doc_path": "docs",
    "default_mode": "auto",
}
html_theme_options = {
    "github_url": "https://github.com/skcalib/skcalib",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "logo": {"text": "skcalib", "alt_text": "skcalib: home"},
    "use_edit_page_button": True,
    "secondary_sidebar_items": {
        "index": [],
        "api/**": ["page-toc"],
        "auto_examples/**": ["page-toc", "sg_download_links"],
        **{
            page: ["page-toc", "edit-this-page"]
            for page in (*_GUIDE, "evidence", "evidence/**", *_WIDE)
        },
    },
}
# Found: addresses for search engines, a picture where a link is shared, a page where one is wrong.
sitemap_url_scheme = "{link}"
ogp_site_url = html_baseurl
ogp_image = "_static/before_after.png"
ogp_image_alt = "Accuracy against confidence of a classifier, before and after calibration."
ogp_social_cards = {"enable": False}
ogp_custom_meta_tags = ['<meta name="twitter:card" content="summary_large_image">']
notfound_urls_prefix = "/en/stable/"
# Some sites refuse programs; what stands in examples of output is no address.
linkcheck_ignore = [r"https://doi\.org/", r"https://openreview\.net/"]
linkcheck_anchors = False
# Formulas are drawn by the copy that is shipped with the pages.
mathjax_path = "mathjax/tex-chtml.js"
llms_txt_summary = (
    "skcalib measures, repairs and uses the confidence of scikit-learn and torch classifiers: "
    "calibration errors with intervals, post-hoc calibrators, abstention with a guarantee, sample "
    "difficulty, wrong labels, losses."
)

# Without prompts and output, what is copied runs.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autosummary_generate = True
# Class -> its short names, whose examples stand on its page too.
SHORT_NAMES: dict[str, list[str]] = {}
autosummary_context = {"short_names": SHORT_NAMES}
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
toc_object_entries_show_parents = "hide"

# Inside a section, the first question comes first.
_EXAMPLES = [
    *("plot_is_it_calibrated.py", "plot_trust_an_ece.py", "plot_which_class.py", "plot_people.py"),
    *("plot_report.py", "plot_which_error_sees_what.py", "plot_brier_score.py"),
    *("plot_risk_model.py", "plot_batches.py", "plot_compare_models.py"),
    *("plot_pipeline.py", "plot_which_calibrator.py", "plot_stack.py", "plot_simplex.py"),
    "plot_several_people.py",
    *("plot_answer_when_sure.py", "plot_digits_never_seen.py", "plot_fraud_costs.py"),
    *("plot_wrong_labels.py", "plot_difficulty.py", "plot_hardest_patches.py"),
    *("plot_pretrained.py", "plot_why_hard.py"),
    *("plot_training_map.py", "plot_prediction_depth.py", "hardest_images.py"),
    *("plot_losses.py", "plot_what_losses_aim_at.py", "plot_which_samples.py"),
    *("plot_prioritized.py", "plot_losses_of_gra.py", "plot_input_margin.py"),
    *("plot_ai_judge.py", "plot_risk_model_in_use.py", "plot_three_annotators.py"),
    "plot_find_repair_calibrate.py",
]
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "subsection_order": [
        f"../examples/{section}"
        for section in ("measure", "repair", "abstain", "difficulty", "train", "whole")
    ],
    "within_subsection_order": _EXAMPLES.index,
    "thumbnail_size": (560, 400),
    "filename_pattern": r"plot_",
    "ignore_pattern": r"__init__\.py",
    "download_all_examples": False,
    "show_memory": False,
    # Times of a busy machine say nothing about the reader's.
    "min_reported_time": 1e9,
    # What a drawing function returns is no result.
    "ignore_repr_types": r"matplotlib\.(text|axes|legend|collections|lines)",
    "doc_module": ("skcalib",),
    "backreferences_dir": "api/backreferences",
    "remove_config_comments": True,
    "plot_gallery": "True",
    # Two examples at a time, each on one thread.
    "parallel": 2,
    "abort_on_example_error": True,
}
# Functions in the configuration (matplotlib's scraper) cannot be pickled between builds.
suppress_warnings = ["config.cache"]

_INVENTORIES = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "sklearn": "https://scikit-learn.org/stable/",
    "skorch": "https://skorch.readthedocs.io/en/stable/",
    "torch": "https://docs.pytorch.org/docs/stable/",
    "matplotlib": "https://matplotlib.org/stable/",
    "joblib": "https://joblib.readthedocs.io/en/stable/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "pandas": "https://pandas.pydata.org/docs/",
}


def _reachable(url: str) -> bool:
    try:
        with urlopen(f"{url}objects.inv", timeout=3):
            return True
    except (URLError, OSError):
        return False


# A missing inventory is a warning, and warnings are errors: without a network, no links.
intersphinx_mapping = {name: (url, None) for name, url in _INVENTORIES.items() if _reachable(url)}


# Every reference must lead somewhere; those into other libraries need their inventories.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", rf"{library}\..*") for library in _INVENTORIES if library not in intersphinx_mapping
]


def _write_api_pages() -> None:
    """One page for every package, one row for every public name, under the headings of GROUPS."""
    (HERE / "api" / "backreferences").mkdir(parents=True, exist_ok=True)
    modules = {name: getattr(skcalib, name) for name in sorted(skcalib.__all__)}
    names = {name for name, m in modules.items() if inspect.ismodule(m) and m.__all__}
    packages = [name for name in GROUPS if name.partition(".")[0] in names]
    index = ["API reference", "=============", ""]
    for package in packages:
        sentence = (inspect.getdoc(import_module(f"skcalib.{package}")) or "").partition("\n\n")[0]
        index += [f":doc:`skcalib.{package} <{package}>`", f"   {' '.join(sentence.split())}", ""]
    index += [".. toctree::", "   :hidden:", "", *(f"   {name}" for name in packages)]
    _write(HERE / "api" / "index.rst", index)
    for package in packages:
        module = import_module(f"skcalib.{package}")
        title = f"skcalib.{package}"
        lines = [title, "=" * len(title), "", f".. module:: skcalib.{package}", ""]
        lines += [inspect.getdoc(module) or "", ""]
        for heading, names in GROUPS[package].items():
            lines += [heading, "-" * len(heading), ""]
            values = {name: getattr(module, name) for name in names}
            short = {name for name in names if values[name].__name__ != name}
            for name in sorted(short):
                SHORT_NAMES.setdefault(values[name].__name__, []).append(name)
            for template, wanted in (("class.rst", True), ("base.rst", False)):
                members = [n for n in names if inspect.isclass(values[n]) == wanted]
                members = [name for name in members if name not in short]
                if members:
                    lines += [".. autosummary::", "   :toctree: generated/", "   :nosignatures:"]
                    lines += [f"   :template: {template}", ""]
                    lines += [*(f"   {name}" for name in members), ""]
            for name in sorted(short):  # a line, not a second page
                lines += [f".. class:: {name}", ""]
                lines += [f"   Short name of :class:`{values[name].__name__}`.", ""]
        _write(HERE / "api" / f"{package}.rst", lines)


def _write(path: Path, lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


_write_api_pages()


# What a user calls on a net; what else a net or a callback shares with skorch is a hook.
_NET_METHODS = {"fit", "partial_fit", "predict", "predict_proba"}


def _skip_foreign(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool:
    """Leave the methods inherited from scikit-learn, torch and skorch to their documentation."""
    owner = getattr(getattr(member, "fget", member), "__module__", None) or "skcalib"
    hook = owner.startswith("skcalib.nets") and hasattr(NeuralNet, name) and what == "class"
    hook = (hook and name not in _NET_METHODS) or name == "extra_repr"  # of torch
    return skip or hook or owner.partition(".")[0] != "skcalib"


def _copy_mathjax(app: Any, error: Exception | None) -> None:
    """The formulas' script and its fonts; the rest of the package (20 MB) is not needed."""
    if error is not None or app.builder.format != "html":
        return
    source = Path(import_module("sphinx-mathjax-offline").__file__).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    fonts = Path("output") / "chtml" / "fonts" / "woff-v2"
    shutil.copytree(source / fonts, target / fonts, dirs_exist_ok=True)
    shutil.copy2(source / "tex-chtml.js", target)


class _Summaries(Autosummary):
    """Tables of names without the keys of citations, which belong to the pages of the names."""

    def get_items(self, names: list[str]) -> list[tuple[str, str | None, str, str]]:
        return [
            (name, signature, re.sub(r",? ?\[(R[0-9a-f]+-)?\d+\]_", "", summary), real)
            for name, signature, summary, real in super().get_items(names)
        ]


# What the theme leaves without a name for a screen reader, or under two names.
_NAMED = {
    '<summary><span class="toctree-toggle"': (
        '<summary aria-label="Pages below"><span class="toctree-toggle"'
    ),
    '<th class="head"></th>': "<td></td>",
    'search-button-field search-button__button pst-js-only" title="Search" aria-label="Search"': (
        'search-button-field search-button__button pst-js-only" title="Search" '
        'aria-label="Search Ctrl+K"'
    ),
    # A role that is no longer one, in a list that then has no items.
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry">': ">",
}


def _name_controls(app: Any, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        text = named = path.read_text(encoding="utf-8")
        for found, better in _NAMED.items():
            named = named.replace(found, better)
        if named != text:
            path.write_text(named, encoding="utf-8")


def setup(app: Any) -> None:
    app.add_directive("autosummary", _Summaries, override=True)
    app.connect("build-finished", _copy_mathjax)
    app.connect("build-finished", _name_controls)
    app.connect("autodoc-skip-member", _skip_foreign)
