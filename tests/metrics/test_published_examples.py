"""Figures that R packages for risk models print, from their own examples, without R.

- rms 6, ``val.prob``: the example of its manual page; its slope and intercept are printed in
  https://stats.stackexchange.com/q/459358.
- dcurves, ``dca(cancer ~ famhistory, df_binary)``: https://github.com/MSKCC-Epi-Bio/dcurves keeps
  the output of R (r_dca_famhistory.csv, interventions_avoided.csv).
- pmvalsampsize 0.1.0: its tests (test_bin.R, and of the Python package, test_pmvalsampsize.py).
- sampsizeval 1.0: the example of its README.
"""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import beta, norm
from sklearn.linear_model import LogisticRegression

from skcalib.metrics import (
    decision_curve,
    net_benefit,
    samples_for_validation,
    validation_summary,
)


def uniforms_of_r(seed, n):
    """Return what runif(n) of R gives after set.seed(seed), with its Mersenne Twister."""
    key = []
    for k in range(675):
        seed = (69069 * seed + 1) % 2**32
        if k > 50:
            key.append(seed)
    source = np.random.MT19937()
    source.state = {
        "bit_generator": "MT19937",
        "state": {"key": np.array(key, dtype=np.uint32), "pos": 624},
    }
    return source.random_raw(n) * 2.3283064365386963e-10


def test_val_prob_of_rms():
    drawn = uniforms_of_r(1, 800).reshape(4, 200)
    # As every introduction to R prints them.
    np.testing.assert_allclose(drawn[0, :3], [0.2655087, 0.3721239, 0.5728534], atol=5e-8)
    y = (drawn[3] <= expit(2 * (drawn[0] - 0.5))).astype(int)
    x = drawn[:3].T
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x[:100], y[:100])
    proba = model.predict_proba(x[100:])[:, 1]
    table = validation_summary(y[100:], proba, n_resamples=1, random_state=0)
    value = dict(zip(table["statistic"].tolist(), table["value"].tolist()))
    assert value["slope"] == pytest.approx(0.95651781, abs=2e-6)


def test_dca_of_dcurves():
    # 24 of the 105 cancers have a family history, and 91 of the 645 others.
    y = np.repeat([1, 1, 0, 0], [24, 81, 91, 554])
    history = np.repeat([1, 0, 1, 0], [24, 81, 91, 554]).astype(float)
    thresholds = np.array([0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5])
    benefit = [
        0.030774410774410774, 0.025614035087719297, 0.018518518518518517, 0.010588235294117645,
        0.0016666666666666635, -0.008444444444444449, -0.02000000000000001, -0.08933333333333335,
    ]  # fmt: skip
    of_all = [
        0.13131313131313133, 0.09473684210526317, 0.04444444444444445, -0.011764705882352927,
        -0.07499999999999998, -0.1466666666666666, -0.2285714285714286, -0.72,
    ]  # fmt: skip
    avoided = [
        -995.3333333333334, -131.33333333333337, -23.333333333333353, 12.666666666666652,
        30.666666666666657, 41.46666666666667, 48.666666666666664, 63.06666666666666,
    ]  # fmt: skip
    np.testing.assert_allclose(net_benefit(y, history, thresholds), benefit, atol=1e-12)
    curve = decision_curve(y, history, thresholds=thresholds, n_resamples=9, random_state=0)
    np.testing.assert_allclose(curve["net_benefit"], benefit, atol=1e-12)
    np.testing.assert_allclose(curve["act_on_all"], of_all, atol=1e-12)
    np.testing.assert_allclose(100 * curve["interventions_avoided"], avoided, atol=1e-9)


def of_normal(mean, spread, n=2000):
    return mean + spread * norm.ppf((np.arange(n) + 0.5) / n)


def test_formulas_give_the_numbers_of_pmvalsampsize():
    formula = pytest.importorskip("benchmarks.risk_models").samples_by_formula
    # prevalence=.018, oeciwidth=1; lpbeta=c(.5, .5); lpnormal=c(-5, 2.5), of a million draws
    assert np.ceil(formula("o_e_ratio", 0.018, np.zeros(1), 1.0)) == pytest.approx(905, abs=1)
    halves = logit(beta.ppf((np.arange(100_000) + 0.5) / 100_000, 0.5, 0.5))
    assert np.ceil(formula("slope", 0.018, halves, 0.2)) == 1644
    score = of_normal(-5, 2.5, 100_000)
    assert formula("slope", 0.018, score, 0.2) == pytest.approx(4544, rel=0.01)
    # prevalence=.2, lpnormal=c(-1.75, 1.22)
    score = of_normal(-1.75, 1.22, 100_000)
    assert formula("slope", 0.2, score, 0.2) == pytest.approx(2958, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "width", "published"),
    [
        ({"rate": 0.018, "auroc": 0.8}, {"o_e_ratio": 1.0}, 905),
        ({"rate": 0.018, "auroc": 0.8}, {"auroc": 0.1}, 4252),
        ({"y_proba": expit(of_normal(-5, 2.5))}, {"slope": 0.2}, 4544),
        # Standard errors of .025, .1 and .1.
        (
            {"rate": 0.1, "auroc": 0.75},
            {"auroc": 0.098, "slope": 0.392, "calibration_in_the_large": 0.392},
            1536,
        ),
    ],
)
def test_samples_for_validation_beside_published_numbers(given, width, published):
    n = 20 if "slope" in width else 400
    table = samples_for_validation(width=width, n_simulations=n, random_state=0, **given)
    # Reached with probability .9, where the published ones are of expected widths.
    assert 0.95 < table["n_samples"].max() / published < 1.4
