"""What the pages say of a paper is what the paper prints, or follows from it."""

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t

from benchmarks.papers import page
from benchmarks.papers.claims import comparable, judge
from benchmarks.papers.printed import Figure, Printed, columns, rows, tables
from benchmarks.papers.results import settings_of
from benchmarks.papers.statistics import ratio_interval

DOCS = Path(__file__).parents[2] / "docs" / "evidence"
CLAIMS = [
    (study.name[1:].split("]")[0], claim)
    for study in page.STUDIES.values()
    for claim in study.claims
    if isinstance(claim.paper, Printed)
]


def test_tables_are_whole_and_hold_plausible_figures():
    for paper in tables().values():
        for table in paper.values():
            for name, row in table["rows"].items():
                assert len(row) == len(table["columns"]) == len(set(table["columns"]))
                if name.endswith("accuracy") and table["unit"] == "%":
                    assert 20 <= min(row) <= max(row) < 100
                if "ECE" in name.split(", ")[-1] and table["unit"] == "%":
                    assert 0 < min(row) <= max(row) < 35


def test_figures_that_stand_twice_in_a_paper_agree():
    rmd, gra, prio = (tables()[name] for name in ("RMD", "GRA", "PRIO"))
    for metric in ("accuracy", "ECE"):
        imagenet, others = f"ImageNet, {metric}", rmd["Table 9"]["rows"][f"ResNet-34, {metric}"]
        ce, *_, er, _, ours = rmd["Table 2"]["rows"][imagenet]
        assert [ce, er, ours] == others
        assert rmd["Table 7"]["rows"][imagenet][1] == ours
        assert rmd["Table 6"]["rows"][imagenet][-1] == ours
        assert rmd["Table 5"]["rows"][f"proposed, {metric}"][4] == ours
        for name, values in prio["Table 1"]["rows"].items():
            assert values[0] == prio["Table 2"]["rows"][name][0]
    of_both = gra["Table 2"]["rows"]["CIFAR-10, ECE"]
    assert [of_both[i] for i in (0, 1, 4, 5, 8, 9, 10, 11)] == (
        gra["Table 1"]["rows"]["CIFAR-10, ResNet-50, ECE"][6:]
    )


def test_most_testable_claims_have_the_figure_of_the_paper():
    assert len(CLAIMS) >= 100


def _cells():
    """Yield (paper, what its column says) of all tables of claims."""
    for study in page.STUDIES:
        paper = page.STUDIES[study].name[1:].split("]")[0]
        for line in (DOCS / f"{study}_claims.inc").read_text().splitlines():
            if line.startswith('   "'):
                (row,) = csv.reader([line.strip()], skipinitialspace=True)
                yield paper, row[1]


PAIR = re.compile(r"([A-Z][\w -]*?) ([\d./-]+) → ([\d./-]+) \(([-+\d./]+)( %| powers of ten)?\)")


def test_every_change_on_the_pages_follows_from_two_figures_that_the_paper_prints():
    """Read off the pages, without the code that wrote them."""
    n_read = 0
    for paper, text in _cells():
        for label, before, after, changes, unit in PAIR.findall(text):
            printed = {
                abs(value)
                for table in tables().get(paper, {}).values()
                for row in table["rows"].values()
                for value in row
            }
            for a, b, change in zip(*(part.split("/") for part in (before, after, changes))):
                a, b = float(a), float(b)
                if "range" not in text:
                    scale = 100 if "ambiguous" in text else 1
                    assert {round(scale * a, 4), round(scale * b, 4)} <= printed, (label, text)
                expected = {
                    " %": 100 * (b - a) / a, "": b - a, " powers of ten": np.log10(b / a),
                }[unit]  # fmt: skip
                digits = {" %": 0, "": 2, " powers of ten": 1}[unit]
                assert float(change) == pytest.approx(expected, abs=0.51 * 10**-digits), text
                n_read += 1
    assert n_read >= 250


def test_a_percentage_about_a_paper_stands_behind_its_two_figures():
    for _, text in _cells():
        assert "%" not in re.sub(r"\d[\d.]* %(?=/|:|$)", "", PAIR.sub("", text)), text


@pytest.mark.parametrize(
    ("figures", "changes"),
    [
        # Each typed from its table once more.
        (columns("GRA", "Table 1", "ECE", "BSCE-GRA", "CE", of="ResNet-50"), (-83, -91, -69)),
        (columns("GRA", "Table 1", "ECE", "BSCE-GRA, T", "CE, T", of="ResNet-50"),
         (-44, -48, -72)),
        (columns("GRA", "Table 1", "ECE", "BSCE-GRA", "BSCE", of="ResNet-50"), (-16, -16, 14)),
        (columns("GRA", "Table 1", "ECE", "BSCE-GRA, T", "BSCE, T", of="Tiny"), (-16,)),
        (columns("RMD", "Table 2", "accuracy", "proposed", "CE"), (1.88, 1.79, 0.55)),
        (columns("RMD", "Table 2", "ECE", "proposed", "CE"), (-70, -53, -70)),
        (rows("PRIO", "Table 1", "ECE", "focal", "CE", ("30 %", "20 %", "10 %")),
         (-77, -69, -73, -84, -75, -87)),
        (rows("PRIO", "Table 1", "accuracy", "mixup", "CE", ("30 %", "20 %", "10 %")),
         (0.79, -0.51, -0.06, 0.44, 0.48, -0.55)),
        (rows("PRIO", "Table 1", "accuracy", "LS", "CE", ("30 %", "20 %", "10 %")),
         (-1.86, -2.38, -1.51, -0.92, -0.61, -1.02)),
        (rows("PRIO", "Table 2", "ECE", "LS", "LS", ("20 %",), other="Table 1"), (-7, -54)),
    ],
)  # fmt: skip
def test_changes_are_those_computed_by_hand(figures, changes):
    found = [figures.change(figure) for figure in figures.figures]
    assert found == pytest.approx(changes, abs=0.501 if figures.unit == "%" else 0.005)


def test_the_effect_is_the_smallest_gain_and_a_loss_of_the_paper_is_none():
    figures = (Figure("a", 4.0, 1.0), Figure("b", 2.0, 1.8), Figure("c", 1.0, 1.5))
    printed = Printed("Table 0", figures, "%")
    assert printed.effect(-1) == pytest.approx(10)
    assert Printed("Table 0", figures[2:], "%").effect(-1) == 0
    assert printed.text() == "Table 0: a 4 → 1 (-75 %), b 2 → 1.8 (-10 %), c 1 → 1.5 (+50 %)"


@pytest.mark.slow
def test_a_relative_change_has_the_interval_of_a_linearized_ratio():
    rng = np.random.default_rng(0)
    other = rng.normal(5, 0.3, 2000)
    values = 0.6 * other + rng.normal(0, 0.2, 2000)
    mean, low, high, _ = ratio_interval(values[:12], other[:12])
    a, b = values[:12], other[:12]
    ratio = a.mean() / b.mean()
    variance = (a.var(ddof=1) - 2 * ratio * np.cov(a, b)[0, 1] + ratio**2 * b.var(ddof=1)) / (
        12 * b.mean() ** 2
    )  # the delta method
    assert mean == pytest.approx(ratio - 1)
    assert (high - low) / 2 == pytest.approx(t.ppf(0.975, 11) * np.sqrt(variance))
    # How often it holds what 2000 pairs have.
    truth = values.mean() / other.mean() - 1
    held = [
        low < truth < high
        for rows in rng.integers(0, 2000, (400, 12))
        for _, low, high, _ in [ratio_interval(values[rows], other[rows])]
    ]
    assert 0.92 < np.mean(held) < 0.98


@pytest.mark.slow
def test_calibration_errors_with_a_figure_are_judged_in_percent_of_the_rival():
    for paper, claim in CLAIMS:
        found = judge(claim, settings_of(claim.part))
        if found.results and comparable(claim) and claim.rivals:
            assert found.in_percent == (claim.paper.unit == "%"), claim.text
            for r in found.results:
                sign = found.column.better * (100 / r.before if found.in_percent else 1)
                assert r.mean == pytest.approx(sign * (r.after - r.before)), (paper, claim.text)
