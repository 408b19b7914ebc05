"""Agreement with other libraries where they are right, and the cases where they are not.

Each test needs its library and is skipped without it; the numbers of the cases are documented in
the user guide.
"""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from skcalib.metrics import (
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    ks_calibration_error,
    maximum_calibration_error,
    reliability_curve,
    smooth_calibration_error,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # of the peers


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(5, 0.5), size=2000)
    return rng.integers(5, size=2000), proba


@pytest.fixture
def multiclass():
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")

    def measure(y, proba, norm="l1", n_bins=15):
        preds, target = torch.tensor(proba), torch.tensor(y)
        error = functional.multiclass_calibration_error(
            preds, target, proba.shape[1], n_bins, norm
        )
        return error.item()

    return measure


@pytest.fixture
def netcal():
    return pytest.importorskip("netcal.metrics")


@pytest.fixture
def kumar():
    module = pytest.importorskip("calibration.utils")
    if not hasattr(module, "lower_bound_scaling_ce"):
        pytest.skip("another package of the name calibration")
    return module


@pytest.fixture
def relplot():
    return pytest.importorskip("relplot")


def test_scikit_learn():
    rng = np.random.default_rng(0)
    p, y = rng.random(500), rng.integers(2, size=500)
    expected = calibration_curve(y, p, n_bins=10)
    curve = reliability_curve(y, p, n_bins=10)
    np.testing.assert_allclose(curve[:2], expected, rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
def test_torchmetrics(data, multiclass, norm):
    y, proba = data
    found = expected_calibration_error(y, proba, norm=norm)
    assert found == pytest.approx(multiclass(y, proba.astype(np.float32), norm), abs=1e-6)


@pytest.mark.parametrize("n_bins", [5, 15])
def test_netcal(data, netcal, n_bins):
    y, proba = data
    options = {"n_bins": n_bins}
    peer = netcal.ECE(n_bins)
    assert expected_calibration_error(y, proba, **options) == pytest.approx(peer.measure(proba, y))
    columns = [peer.measure(proba[:, k], (y == k).astype(int)) for k in range(5)]
    found = classwise_calibration_error(y, proba, average=None, **options)
    np.testing.assert_allclose(found, columns)
    expected = netcal.MCE(n_bins).measure(proba, y)
    assert maximum_calibration_error(y, proba, **options) == pytest.approx(expected)


def test_netcal_on_bins_of_equal_mass(data, netcal):
    # Its edges lie between observed values, which moves single rows.
    y, proba = data
    found = expected_calibration_error(y, proba, strategy="quantile")
    expected = netcal.ECE(15, equal_intervals=False).measure(proba, y)
    assert found == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_uncertainty_calibration(data, kumar, strategy):
    # With 2000 rows in 16 bins, its edges between values and ours on them part rows alike.
    y, proba = data
    scheme = kumar.get_equal_prob_bins if strategy == "uniform" else kumar.get_equal_bins

    def peer(**options):
        return kumar.lower_bound_scaling_ce(
            proba, y, num_bins=16, binning_scheme=scheme, **options
        )

    options = {"n_bins": 16, "strategy": strategy}
    found = expected_calibration_error(y, proba, **options)
    assert found == pytest.approx(peer(p=1, debias=False, mode="top-label"))
    found = expected_calibration_error(y, proba, norm="l2", **options)
    assert found == pytest.approx(peer(p=2, debias=False, mode="top-label"))
    found = classwise_calibration_error(y, proba, **options)
    assert found == pytest.approx(peer(p=1, debias=False, mode="marginal"))
    found = debiased_calibration_error(y, proba, **options)
    assert found == pytest.approx(peer(p=2, debias=True, mode="top-label"))


@pytest.mark.parametrize("bandwidth", [0.02, 0.1])
def test_relplot_away_from_the_ends(relplot, bandwidth):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.7, size=3000)
    y = (rng.random(3000) < p**1.3).astype(int)
    found = smooth_calibration_error(y, p, bandwidth=bandwidth)
    assert found == pytest.approx(relplot.smECE_sigma(p, y, bandwidth), abs=2e-4)
    # Its bandwidth comes from ten bisections.
    assert smooth_calibration_error(y, p) == pytest.approx(relplot.smECE(p, y), abs=1e-3)


def test_probmetrics():
    torch = pytest.importorskip("torch")
    metrics = pytest.importorskip("probmetrics.metrics")
    distributions = pytest.importorskip("probmetrics.distributions")
    rng = np.random.default_rng(0)
    p, y = rng.random(500), rng.integers(2, size=500)
    target = distributions.CategoricalProbs(
        torch.nn.functional.one_hot(torch.tensor(y), 2).double()
    )
    preds = distributions.CategoricalProbs(torch.tensor(np.column_stack([1 - p, p])))
    expected = metrics.KolmogorovSmirnovCalibrationMetric()._compute_mean(target, preds).item()
    assert ks_calibration_error(y, p) == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
def test_torchmetrics_gives_certain_predictions_a_bin_beyond_the_last(multiclass):
    y, proba = np.array([0, 0, 0, 1]), np.array([[0.97, 0.03], [1, 0], [1, 0], [1, 0]])
    assert multiclass(y, proba, n_bins=10) == pytest.approx(0.2575)
    assert expected_calibration_error(y, proba, n_bins=10) == pytest.approx(0.2425)
    assert pytest.approx((0.97 + 3) / 4 - 3 / 4) == 0.2425


@pytest.mark.slow
def test_torchmetrics_stops_counting_in_float32():
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("torchmetrics.functional.classification")
    # Sums of float32 stop growing at 2**24.
    p = np.full(20_000_000, 0.92, dtype=np.float32)
    y = np.arange(len(p)) % 10 != 0
    peer = functional.binary_calibration_error(torch.from_numpy(p), torch.from_numpy(y).int(), 15)
    assert peer.item() == pytest.approx(0, abs=1e-4)
    assert expected_calibration_error(y, p) == pytest.approx(0.02, abs=1e-6)


@pytest.mark.slow
def test_torchmetrics_takes_rounding_for_logits(multiclass):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(4, 0.1), size=500).astype(np.float32)
    y = np.array([rng.choice(4, p=row / row.sum()) for row in proba.astype(np.float64)])
    proba[0] = [0, 0, 0, 1.00001]
    exact = proba.copy()
    exact[0, 3] = 1
    assert multiclass(y, exact) < 0.06
    assert multiclass(y, proba) > 0.3
    found = expected_calibration_error(y, proba)
    assert found == pytest.approx(expected_calibration_error(y, exact), abs=1e-7)


def test_netcal_fails_on_ties_in_bins_of_equal_mass(netcal):
    y, p = (np.arange(100) < 90).astype(int), np.full(100, 0.9)
    with pytest.raises(ValueError, match="edge difference is numerically 0"):
        netcal.ECE(15, equal_intervals=False).measure(p, y)
    assert expected_calibration_error(y, p, strategy="quantile") == pytest.approx(0, abs=1e-12)


def test_relplot_loses_half_of_the_mass_at_an_end(relplot):
    p = np.repeat([0.0, 0.5], 50)
    y = np.concatenate([np.arange(50) < 10, np.arange(50) < 25]).astype(int)
    # The gap is .2 for half of the rows and 0 for the others.
    assert smooth_calibration_error(y, p) == pytest.approx(0.1, abs=1e-9)
    assert relplot.smECE(p, y) == pytest.approx(0.068, abs=1e-3)
