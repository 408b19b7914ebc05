"""Labels that are soft labels: inference, names, the accumulator, chunks, displays."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.metrics import log_loss

from skcalib.datasets import make_predictions
from skcalib.metrics import (
    CalibrationAccumulator,
    calibration_error_interval,
    calibration_test,
    classwise_calibration_error,
    compare_calibration,
    expected_calibration_error,
    generalized_brier_score,
    groupwise_calibration_error,
    misclassification_report,
    smooth_calibration_error,
)

NAMES = np.array(["ant", "bee", "cat"])


def opinions(n=300, *, n_people=7, temperature=1.0, seed=0):
    """Fractions of people who answer with true probabilities, and probabilities of a model."""
    _, proba, true = make_predictions(n, n_classes=3, temperature=temperature, random_state=seed)
    rng = np.random.default_rng(seed)
    votes = np.stack([rng.multinomial(n_people, row / row.sum()) for row in true])
    return votes / n_people, proba


def as_rows(shares):
    return np.nonzero(shares)[0], np.nonzero(shares)[1], shares[shares > 0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "metric", [expected_calibration_error, classwise_calibration_error, smooth_calibration_error]
)
def test_inference_keeps_the_opinions_on_a_sample_together(metric):
    shares, proba = opinions(temperature=1.6)
    rows, y, weight = as_rows(shares)
    options = {"metric": metric, "n_resamples": 150, "random_state": 0}
    together = {"sample_weight": weight, "groups": rows}
    found = calibration_error_interval(shares, proba, **options)
    expected = calibration_error_interval(y, proba[rows], **together, **options)
    np.testing.assert_allclose(found, expected, atol=5e-3)
    result = calibration_test(shares, proba, **options)
    expected = calibration_test(y, proba[rows], **together, **options)
    assert result.statistic == pytest.approx(expected.statistic, abs=1e-9)
    assert result.pvalue == pytest.approx(expected.pvalue, abs=0.02)
    # Of independent rows one says nothing of the others: those of a sample sum to 1.
    alone = calibration_error_interval(y, proba[rows], sample_weight=weight, **options)
    assert found[0] >= alone[0]


def test_few_samples_are_no_few_groups():
    shares, proba = opinions(12)
    calibration_test(shares, proba, n_resamples=5)  # a warning would be an error
    with pytest.warns(UserWarning, match="groups must be 20 or more"):
        calibration_test(shares, proba, n_resamples=5, groups=np.arange(12))


@pytest.mark.slow
@pytest.mark.parametrize("n_draws", [6, pytest.param(25, marks=pytest.mark.long)])
def test_the_test_keeps_its_level_and_the_interval_holds(n_draws):
    rejected, held = 0, 0
    for seed in range(n_draws):
        shares, proba = opinions(200, n_people=5, seed=seed)
        rejected += calibration_test(shares, proba, n_resamples=99, random_state=0).pvalue <= 0.1
        low, _ = calibration_error_interval(shares, proba, n_resamples=100, random_state=0)
        held += low == 0
    # A tenth is expected at most; more have a probability below .004.
    assert rejected <= binom.isf(0.004, n_draws, 0.1)
    assert n_draws - held <= binom.isf(0.004, n_draws, 0.025)


def test_groups_and_shares():
    shares, proba = opinions(200, temperature=1.6)
    groups = np.arange(200) // 4
    rows, y, weight = as_rows(shares)
    options = {"n_resamples": 100, "random_state": 0}
    found = calibration_error_interval(shares, proba, groups=groups, **options)
    expected = calibration_error_interval(
        y, proba[rows], sample_weight=weight, groups=groups[rows], **options
    )
    np.testing.assert_allclose(found, expected, atol=5e-3)


def test_a_metric_of_the_user_sees_weighted_rows():
    shares, proba = opinions(100)
    low, high = calibration_error_interval(
        shares, proba, metric=log_loss, n_resamples=20, random_state=0
    )
    assert low < -(shares * np.log(proba)).sum(axis=1).mean() < high
    with pytest.raises(ValueError, match=r"^metric must be .* soft labels are tested, got log_l"):
        calibration_test(shares, proba, metric=log_loss, n_resamples=2)


@pytest.mark.slow
def test_groupwise_and_compare():
    shares, proba = opinions(300, temperature=1.6)
    by = np.arange(300) % 2
    table = groupwise_calibration_error(shares, proba, by, n_resamples=20, random_state=0)
    np.testing.assert_array_equal(table["n_samples"], [150, 150])
    for g in (0, 1):
        error = expected_calibration_error(shares[by == g], proba[by == g])
        assert table["error"][g] == pytest.approx(error, abs=1e-9)
    models = {"sober": opinions(300)[1], "bold": proba}
    table = compare_calibration(shares, models, n_resamples=50, random_state=0)
    assert table["pvalue"][1] < 0.01
    assert table["gain"][1] > table["gain"][0]


def test_misclassification_report_of_weighted_rows():
    shares, proba = opinions(100)
    rows, y, weight = as_rows(shares)
    found = misclassification_report(shares, proba)
    expected = misclassification_report(y, proba[rows], sample_weight=weight)
    for name in ("fpr_at_tpr", "auroc", "aupr_success", "aupr_error"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-9)
    agreed = np.eye(3)[proba.argmax(axis=1)]
    with pytest.raises(ValueError, match="must give correct and wrong predictions, got only corr"):
        misclassification_report(agreed, proba)


def test_columns_are_matched_by_name():
    pd = pytest.importorskip("pandas")
    shares, proba = opinions(80)
    expected = expected_calibration_error(shares, proba)
    order = [2, 0, 1]
    named = pd.DataFrame(shares, columns=NAMES)
    moved = named[NAMES[order]]
    frame = pd.DataFrame(proba, columns=NAMES)
    for y_true, y_proba, labels in (
        (named, proba, None),
        (moved, proba, NAMES),
        (moved, frame, None),
        (named, frame[NAMES[order]], None),
        (shares, frame, None),
        (shares, frame[NAMES[order]], NAMES),
        (shares[:, order], proba[:, order], NAMES[order]),
        (pd.DataFrame(shares), frame, None),
        (pd.DataFrame(shares, columns=["p0", "p1", "p2"]), proba, None),
    ):
        found = expected_calibration_error(y_true, y_proba, labels=labels)
        assert found == pytest.approx(expected, abs=1e-12)
    with pytest.raises(ValueError, match=r"^labels must be given where the columns of y_true"):
        expected_calibration_error(moved, proba)
    with pytest.raises(ValueError, match=r"^y_true must have columns that are named by the"):
        expected_calibration_error(named, proba, labels=list("abc"))


def test_the_positive_one_of_two_classes():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    positive, proba = rng.uniform(size=60), rng.uniform(size=60)
    shares = np.column_stack([1 - positive, positive])
    expected = expected_calibration_error(shares, proba)
    bins = np.minimum((proba * 15).astype(int), 14)
    gaps = [(proba - positive)[bins == b].sum() for b in range(15)]
    assert expected == pytest.approx(np.abs(gaps).sum() / 60)
    for y_true, given in (
        (shares, {"labels": ["no", "yes"]}),
        (shares[:, ::-1], {"labels": ["yes", "no"], "pos_label": "yes"}),
        (shares[:, ::-1], {"labels": ["no", "yes"], "pos_label": "no"}),
        (pd.DataFrame(shares, columns=["no", "yes"]), {"pos_label": "yes"}),
        (pd.DataFrame(shares[:, ::-1], columns=["yes", "no"]), {"labels": ["no", "yes"]}),
    ):
        found = expected_calibration_error(y_true, proba, **given)
        assert found == pytest.approx(expected, abs=1e-12)


def test_the_accumulator_adds_shares_up():
    shares, proba = opinions(200)
    metrics = (
        "classwise_calibration_error", "smooth_calibration_error", "brier",
    )  # fmt: skip
    stream = CalibrationAccumulator(metrics=metrics)
    for part in (slice(90), slice(90, 200)):
        stream.update(shares[part], proba[part])
    assert stream.result() == pytest.approx(expected_calibration_error(shares, proba))
    for metric in (classwise_calibration_error, smooth_calibration_error):
        found = stream.result(metric.__name__)
        assert found == pytest.approx(metric(shares, proba), abs=1e-8)
    brier = generalized_brier_score(shares, proba).mean()
    assert stream.result("brier") == pytest.approx(brier)
    with pytest.raises(
        ValueError, match=r"^y_true must hold one label .* where the e-value is kept"
    ):
        CalibrationAccumulator(metrics=["e_value"]).update(shares, proba)


def test_an_accumulator_keeps_the_order_of_labels():
    rng = np.random.default_rng(0)
    positive, proba = rng.uniform(size=60), rng.uniform(size=60)
    shares = np.column_stack([positive, 1 - positive])
    stream = CalibrationAccumulator(labels=["bad", "good"], pos_label="bad")
    stream.update(shares[:30], proba[:30]).update(shares[30:], proba[30:])
    expected = expected_calibration_error(shares[:, ::-1], proba)
    assert stream.result() == pytest.approx(expected)


def test_the_brier_score_of_shares_is_a_mean_over_labels():
    shares, proba = opinions(50)
    loop = [
        sum(s * np.sum((p - np.eye(3)[k]) ** 2) for k, s in enumerate(row))
        for row, p in zip(shares, proba)
    ]
    np.testing.assert_allclose(generalized_brier_score(shares, proba), loop, atol=1e-12)


def test_chunks_of_shares():
    da = pytest.importorskip("dask.array")
    shares, proba = opinions(200)
    lazy = da.from_array(proba, chunks=(70, 2))
    for y_true in (shares, da.from_array(shares, chunks=(50, 1))):
        found = CalibrationAccumulator(labels=range(3)).update(y_true, lazy).result()
        assert found == pytest.approx(expected_calibration_error(shares, proba))
        brier = generalized_brier_score(y_true, lazy).compute()
        np.testing.assert_allclose(brier, generalized_brier_score(shares, proba))
