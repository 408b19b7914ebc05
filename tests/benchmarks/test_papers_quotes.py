"""The claims in the words of the papers: quotations, and rows computed again from the results."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm, ttest_1samp, ttest_rel

from benchmarks.papers import page, quotes
from benchmarks.papers.results import RESULTS

DOCS = Path(__file__).parents[2] / "docs"
AWARE, DECAY = "difficulty-aware", "cross-entropy, weight decay"


def rows_of(paper):
    """Return the rows of the table of a paper, as they are on the page."""
    lines = (DOCS / "evidence" / f"{paper}_said.inc").read_text().splitlines()
    return [
        next(csv.reader([line.strip()], skipinitialspace=True))
        for line in lines
        if line.startswith('   "')
    ]


def values_of(part, setting, method, metric):
    found = json.loads((RESULTS / f"{part}.json").read_text())["settings"]
    return np.array(found[setting][method]["last"][metric])


def difference(part, setting, method, rival, metric, factor, digits):
    """Return both means and the paired difference with its interval, as text."""
    after, before = (values_of(part, setting, name, metric) for name in (method, rival))
    n = min(len(after), len(before))
    test = ttest_rel(factor * after[:n], factor * before[:n])
    low, high = test.confidence_interval(0.95)
    means = [f"{factor * v[:n].mean():.{digits}f}" for v in (before, after)]
    change = factor * (after[:n] - before[:n]).mean()
    return f"{setting} {means[0]} → {means[1]}, " + ends(change, low, high, digits)


def ends(mean, low, high, digits, unit=""):
    return f"{mean:+.{digits}f}{unit} [{low:+.{digits}f}, {high:+.{digits}f}]"


def percentage(part, setting, method, rival, metric):
    """Return the relative change of means with the interval of a linearized ratio, as text."""
    after, before = (values_of(part, setting, name, metric) for name in (method, rival))
    n = min(len(after), len(before))
    after, before = after[:n], before[:n]
    ratio = after.mean() / before.mean()
    around = ttest_1samp((after - ratio * before) / before.mean(), 0).confidence_interval(0.95)
    change = [100 * (ratio - 1 + shift) for shift in (0, *around)]
    means = f"{100 * before.mean():.1f} → {100 * after.mean():.1f}"
    return f"{setting} {means}, " + ends(*change, 0, " %")


def mean_alone(part, setting, method, metric, digits):
    values = values_of(part, setting, method, metric)
    low, high = ttest_1samp(values, 0).confidence_interval(0.95)
    return f"{setting} " + ends(values.mean(), low, high, digits)


def bootstrapped(part, setting, method):
    mean, error = values_of(part, setting, method, "gain")
    half = norm.ppf(0.975) * error
    return f"{setting} " + ends(mean, mean - half, mean + half, 3)


@pytest.mark.parametrize(
    ("paper", "claim", "expected", "verdict"),
    [
        ("rmd", "*Texts.* With weight decay in both, difficulty-aware regularization is more",
         difference("decay20", "I20", AWARE, DECAY, "accuracy", 100, 1), "holds in part"),
        ("rmd", "*Texts.* With weight decay in both, difficulty-aware regularization has the",
         percentage("decay20", "U20", AWARE, DECAY, "ece"), "holds in part"),
        ("rmd", "*Images.* Without decay. Difficulty-aware regularization lowers",
         percentage("rmd_images", "clean", AWARE, "cross-entropy", "ece"), "holds"),
        ("rmd", "*Images.* By EfficientNet-Lite, RMD agrees",
         bootstrapped("guides_human", "differences",
                      "RMD, EfficientNet-Lite minus Mahalanobis, EfficientNet-Lite"), "holds"),
        ("rmd", "*Images.* By a pre-trained guide, the hardest hundredth",
         difference("guides_groups", "images", "RMD, EfficientNet-Lite",
                    "Mahalanobis, EfficientNet-Lite", "hardest", 100, 1), "holds"),
        ("rmd", "*Images.* By a pre-trained guide, RMD rises",
         mean_alone("guides_severity", "contrast", "severity 5", "rise", 2), "holds"),
        ("rmd", "*Images.* Guided by a pre-trained network, decay in both, the student is better",
         percentage("guided_losses", "clean", f"{AWARE} by EfficientNet-Lite", DECAY, "ece"),
         "holds in part"),
        ("rmd", "*Images.* Guided by a pre-trained network, decay in both, the student is more",
         difference("guided_losses", "U20", f"{AWARE} by EfficientNet-Lite", DECAY, "accuracy",
                    100, 1), "does not hold here"),
        ("rmd", "*Training images.* Guided by a pre-trained network, decay in both, the student "
         "is bet", percentage("guided_train_losses", "clean", f"{AWARE} by EfficientNet-Lite",
                              DECAY, "ece"), "does not hold here"),
        ("prio", "*Texts.* Calibrating by focal lowers",
         percentage("prio_losses", "20 %", "focal", "cross-entropy", "ece"), "holds"),
        ("prio", "*Texts.* Calibrating by mixup costs",
         difference("prio_losses", "10 %", "mixup", "cross-entropy", "accuracy", 100, 1),
         "does not hold here"),
        ("prio", "*Images.* With a target, calibrating by mixup",
         percentage("prio_images", "20 %", "mixup, target", "cross-entropy, target", "ece"),
         "holds"),
        ("depth", "Deeper predictions are learned later",
         mean_alone("depth", "queries", "depth and iteration learned", "value", 3), "holds"),
        ("depth", "Deeper predictions are less accurate",
         mean_alone("depth", "digits", "depth and correct", "value", 3), "holds"),
        ("gra", "*Images.* BSCE-GRA is better calibrated than cross-entropy.",
         percentage("gra_images", "clean", "BSCE-GRA", "cross-entropy", "ece"), "holds"),
        ("gra", "*Texts.* Weighting gradients beats weighting the loss: BSCE.",
         percentage("gra_texts", "U20", "BSCE-GRA", "BSCE", "ece"), "does not hold here"),
        ("gra", "*Images.* BSCE-GRA costs less than a point",
         difference("gra_images", "clean", "BSCE-GRA", "cross-entropy", "accuracy", 100, 1),
         "does not hold here"),
    ],
)  # fmt: skip
def test_rows_are_those_of_the_stored_runs(paper, claim, expected, verdict):
    """Computed from the JSON files by scipy, without the code that wrote the page."""
    (row,) = (row for row in rows_of(paper) if row[2].startswith(claim))
    assert expected in row[2]
    assert row[3] == verdict


@pytest.mark.parametrize("paper", quotes.QUOTES)
def test_every_quotation_says_where_and_has_a_verdict(paper):
    said, rows = quotes.QUOTES[paper], rows_of(paper)
    shown = [row[0] for row in rows if row[0]]
    assert shown == [f"“{one.words}” ({one.where})" for one in said]
    verdicts = {*page.VERDICTS, quotes.UNTESTED}
    for one in said:
        assert bool(one.rows) != bool(one.reason), one.words
    for _, printed, found, verdict in rows:
        assert verdict in verdicts
        assert printed
        decided = verdict not in ("not testable here", quotes.UNTESTED)
        assert decided == bool(re.search(r"\[[-+][\d.]+, [-+][\d.]+\]", found)), found


def test_the_papers_stand_by_title_before_any_count():
    """On the landing page, and on the page in their words, with authors, venue and link."""
    titles = {
        "rmd": "Learning Sample Difficulty from Pre-trained Models for Reliable Prediction",
        "prio": "Can Calibration Improve Sample Prioritization?",
        "depth": "Deep Learning Through the Lens of Example Difficulty",
        "gra": "Uncertainty Weighted Gradients for Model Calibration",
    }
    before = " ".join((DOCS / "index.rst").read_text().partition("in_numbers.inc")[0].split())
    assert all(title in before for title in titles.values())
    assert list(titles) == list(quotes.QUOTES)
    text = (DOCS / "evidence" / "in_their_words.rst").read_text()
    for paper, title in titles.items():
        section = text.partition(f"{title}\n{'-' * len(title)}\n")[2]
        assert "<https://arxiv.org/abs/" in section.partition(f"{paper}_said.inc")[0]
