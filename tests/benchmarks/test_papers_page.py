"""The pages of evidence say what the JSON files say, and nothing else."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from benchmarks.papers import page, short
from benchmarks.papers.claims import METRICS, OF_INTEREST, VERDICTS, Claim, judge, judged, sentence
from benchmarks.papers.printed import Printed
from benchmarks.papers.results import RESULTS, settings_of

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "evidence.rst", *sorted((DOCS / "evidence").glob("*.rst"))]
DRAWN = sorted(path.name for path in (DOCS / "evidence").glob("*.svg"))
CLAIMS = [claim for study in page.STUDIES.values() for claim in study.claims]


@pytest.fixture(scope="module")
def rendered():
    return page.render()


@pytest.mark.slow
def test_tables_plots_and_claims_are_those_of_the_results(rendered):
    # "python -m benchmarks.papers page" writes them anew.
    written = {name: (DOCS / "evidence" / name).read_text() for name in rendered}
    assert [name for name in rendered if written[name] != rendered[name]] == []


@pytest.mark.slow
def test_every_part_is_on_a_page_and_nothing_else_is_included(rendered):
    included = [
        Path(name).name
        for path in [*PAGES, DOCS / "measured" / "losses.rst"]
        for name in re.findall(r"\.\. (?:include|image):: (\S+)", path.read_text())
    ]
    assert sorted(included) == sorted(rendered)
    kept = [path.name for path in (DOCS / "evidence").iterdir() if path.suffix != ".rst"]
    assert sorted(kept) == sorted(rendered)


def test_no_cell_is_a_lone_dash_which_would_be_a_bullet(rendered):
    assert not [name for name, text in rendered.items() if '"-"' in text]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_prose_holds_no_figure_typed_by_hand(path):
    text = re.sub(r"<https://[^>]*>", "", path.read_text())  # the numbers of addresses
    assert not re.findall(r"\d+\.\d{2}|\d ?%|\d ±|(?<!CIFAR)[-+]\d", text)


@pytest.mark.parametrize(
    "said", [said for page in short.SHORT.values() for said in page], ids=lambda said: said.text
)
def test_a_sentence_in_short_says_no_more_than_its_rows(said):
    assert said.rows
    for verdict, *row in said.rows:
        claim, found = short.row_of(page.STUDIES, *row)
        assert found.verdict == verdict, (claim.text, sentence(claim, found))


def test_every_page_begins_with_what_its_rows_say():
    for name, said in short.SHORT.items():
        text = (DOCS / "evidence" / f"{name}.rst").read_text()
        assert f".. include:: {name}_short.inc" in text.partition(".. image::")[0]
        assert "In short" not in text
        shown = (DOCS / "evidence" / f"{name}_short.inc").read_text()
        for one in said:
            assert f"{one.text} *({one.verdicts()})*" in shown


@pytest.mark.parametrize("name", page.SCREENS)
def test_the_first_screen_shows_paper_and_ours_side_by_side(name, rendered):
    text = (DOCS / "evidence" / f"{name}.rst").read_text()
    before = text.partition(".. dropdown::")[0]
    assert f"{name}_screen.inc" in before
    assert f"{name}_beside.svg" in before
    claims = [claim for claim, _ in page.screen(name)]
    assert sum(isinstance(claim.paper, Printed) for claim in claims) >= 4
    drawn = rendered[f"{name}_beside.svg"]
    for claim, found in page.screen(name):
        if page.comparable(claim) and claim.paper.unit == claims[0].paper.unit and found.results:
            for figure in claim.paper.figures:
                assert f"paper, {figure.label}" in drawn


def test_results_are_compact():
    assert sum(path.stat().st_size for path in RESULTS.glob("*.json")) < 600_000


@pytest.mark.parametrize("name", DRAWN)
def test_plots_are_whole_and_show_every_claim(name, rendered):
    ET.fromstring(rendered[name])
    if name.removesuffix(".svg") in page.STUDIES:
        verdicts = re.findall(rf"> ?({'|'.join(VERDICTS)})</text>", rendered[name])
        study = page.STUDIES[name.removesuffix(".svg")]
        assert verdicts == [judged(claim).verdict for claim in study.claims]


@pytest.mark.parametrize("claim", [c for c in CLAIMS if not c.reason], ids=lambda c: c.text)
def test_a_verdict_follows_from_intervals_and_effect(claim):
    """Written out again: no verdict without power."""
    found = judged(claim)
    effect = claim.effect or OF_INTEREST[claim.metric]
    if (
        isinstance(claim.paper, Printed)
        and not claim.no_loss
        and (claim.paper.figures[0].before is not None or not claim.rivals)
    ):
        better = claim.better or METRICS[claim.metric].better
        gains = [better * claim.paper.change(figure) for figure in claim.paper.figures]
        effect = min([gain for gain in gains if gain > 0], default=effect)
    lows, highs = ([getattr(r, name) for r in found.results] for name in ("low", "high"))
    least, asked = (-effect, -effect) if claim.no_loss else (0, effect)
    if found.verdict == "does not hold here":
        assert max(highs) < asked
    elif found.verdict.startswith("holds") and found.verdict != "holds in part":
        assert min(lows) > least
        assert (min(highs) < asked) == (found.verdict == "holds, smaller")
    elif found.verdict == "undecided":
        assert any(low <= least and high >= asked for low, high in zip(lows, highs))
        text = sentence(claim, found)
        if claim.metric == "gain":
            assert float(re.search(r"about ([\d.]+) times as many samples", text)[1]) > 1
        else:
            needed = re.search(r"about (\d+) seeds would decide", text)
            assert int(needed[1]) > min(r.n_seeds for r in found.results)
    elif found.verdict == "not testable here":
        assert not found.results
    for r in found.results:
        assert r.low <= r.mean <= r.high


FRESH = [claim for _, claim, _ in page.repeated() if settings_of(f"fresh_{claim.part}")]


@pytest.mark.parametrize("claim", FRESH, ids=lambda claim: claim.text)
def test_fresh_seeds_have_the_options_of_the_pages_and_other_values(claim):
    before, again = (
        settings_of(name)[claim.headline] for name in (claim.part, f"fresh_{claim.part}")
    )
    for method in (claim.method, *claim.rivals):
        first, second = before[method][claim.point], again[method][claim.point]
        assert first["options"] == second["options"]
        assert len(second[claim.metric]) >= 5
        assert first[claim.metric] != second[claim.metric][: len(first[claim.metric])]


def test_claims_name_what_is_in_the_results():
    for claim in CLAIMS:
        settings = settings_of(claim.part)
        if not settings.keys() & set(claim.settings):
            continue  # these runs were not made
        known = {name for methods in settings.values() for name in methods}
        assert {claim.method, *claim.rivals} <= known | {"difficulty-aware, inverted"}, claim.text


@pytest.mark.parametrize(
    ("differences", "no_loss", "verdict"),
    [
        ([1.0, 1.2, 0.8, 1.1], False, "holds"),
        ([-1.0, -1.2, -0.8, -1.1], False, "does not hold here"),
        ([0.1, -0.1, 0.05, 0.0], False, "does not hold here"),
        ([0.3, 0.32, 0.28, 0.31], False, "holds, smaller"),
        ([3.0, -3.0, 2.0, -1.0], False, "undecided"),
        ([0.1, -0.1, 0.05, 0.0], True, "holds"),
        ([-3.0, -3.2, -3.1, -2.9], True, "does not hold here"),
        ([-1.5, -0.7, -1.2, -0.9], True, "undecided"),
        ([3.0, -3.0, 2.0, -1.0], True, "undecided"),
    ],
)
def test_verdicts_of_accuracy_with_an_effect_of_one_point(differences, no_loss, verdict):
    values = np.array(differences) / 100
    methods = {
        "a": {"last": {"accuracy": values + 0.5}},
        "b": {"last": {"accuracy": 0 * values + 0.5}},
    }
    claim = Claim("a is better", "x", "a", ("b",), "accuracy", ("s",), no_loss=no_loss)
    found = judge(claim, {"s": methods})
    assert found.verdict == verdict
    (result,) = found.results
    low, high = ttest_1samp(differences, 0).confidence_interval(0.95)
    assert (result.low, result.high) == pytest.approx((low, high))
    assert result.p == pytest.approx(ttest_1samp(differences, -1.0 if no_loss else 0).pvalue)
    assert result.after - result.before == pytest.approx(np.mean(differences))
    if verdict == "undecided":
        # With so many seeds, the interval is as long as the way from zero to the effect.
        needed = int(re.search(r"about (\d+) seeds", sentence(claim, found))[1])
        length = (high - low) * np.sqrt(len(differences) / needed)
        expected = 2 * abs(result.mean + 1.0) if no_loss else 1.0
        assert length == pytest.approx(expected, rel=0.1)
