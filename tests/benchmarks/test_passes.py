"""The table of paths beside a bound shows the results."""

import json

from benchmarks.passes import PAGE, RESULTS, page

ROWS = json.loads(RESULTS.read_text())
# The most times the bound.
LIMITS = {
    ("``refined_log_loss``", "50000 x 1000"): 12,
    ("``refined_log_loss``", "200000 x 10"): 12,
    ("``score_decomposition``", "50000 x 1000"): 20,
    ("``score_decomposition``", "200000 x 10"): 20,
    ("``expected_calibration_error``", "50000 x 1000"): 1.5,
    ("``expected_calibration_error``", "200000 x 10"): 1.5,
    ("``BetaCalibration.fit``", "500 x 10"): 300,
    ("``BetaCalibration.fit``", "1000 x 10"): 250,
    ("``BetaCalibration.fit``", "2000 x 10"): 250,
    ("``BetaCalibration.fit``", "30000 x 10"): 250,
    ("``EnsembleTemperatureScaling.fit``", "2000 x 10"): 300,
    ("``EnsembleTemperatureScaling.fit``", "30000 x 10"): 300,
    ("``LabelIssueFinder.fit``, ready probabilities", "30000 x 10"): 600,
    ("``compare_calibration`` by log-loss", "1000 x 10, 99 resamples"): 120,
    ("``CalibrationAccumulator.update``", "256 x 10"): 5,
    ("``PostHocCalibratedClassifier.predict_proba``", "one row"): 3,
    ("``IsotonicCalibration.predict_proba``", "one row, K = 1000"): 4,
}


def test_the_page_shows_the_results():
    assert PAGE.read_text() == page(ROWS)


def test_the_metric_keeps_few_copies():
    copies = [row["memory"] for row in ROWS if "refined_log_loss" in row["path"]]
    assert max(copies) <= 2.5


def test_fits_keep_few_copies():
    copies = {(row["path"], row["size"]): row["memory"] for row in ROWS}
    linear = ("VectorScaling", "MatrixScaling", "StructuredVectorScaling")
    for name in (*linear, "StackedCalibration"):
        assert copies[f"``{name}.fit``", "100000 x 10"] <= 6
    assert copies["``StackedCalibration.fit``", "2000 x 1000"] <= 6
    finder = "``LabelIssueFinder.fit``, ready probabilities"
    for size in ("100000 x 10", "1000000 x 10", "2000 x 1000"):
        assert copies[finder, size] <= 6


def test_paths_keep_their_limits():
    ratios = {(row["path"], row["size"]): row["ratio"] for row in ROWS}
    over = {path: ratios[path] for path, limit in LIMITS.items() if ratios[path] > limit}
    assert not over
