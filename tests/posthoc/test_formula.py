"""The JSON of a map, read by a program of numpy alone, gives the same probabilities."""

import json

import numpy as np
import pytest

from skcalib import posthoc
from skcalib.posthoc import PostHocCalibrator
from tests.posthoc._sample import sample

MAPS = [
    name
    for name in posthoc.__all__
    if name not in ("PostHocCalibratedClassifier", "PostHocCalibrator", "GroupwiseCalibration")
]
EDGES = np.array([[0.0, 1, 0, 0], [0.5, 0.5, 0, 0], [1e-9, 1 - 1e-9, 0, 0], [0.25] * 4])


def read(text, X):
    """Return the probabilities of the docstring of `to_json`, line by line."""
    found = json.loads(text)
    assert found["format"] == "skcalib.calibrator 2"
    if found["input"] in ("logits", "scores"):
        z = X / found["unit"]
        z = np.column_stack([np.zeros(len(z)), z]) if z.ndim == 1 else z
        p = softmax(z)
    else:
        p = np.column_stack([1 - X, X]) if X.ndim == 1 else X
        z = np.log(np.maximum(p, found["zero"]))
    return mapped(found["map"], z, p)


def softmax(z):
    terms = np.exp(z - z.max(axis=1, keepdims=True))
    return terms / terms.sum(axis=1, keepdims=True)


def log_sum(z):
    top = z.max(axis=1)
    return top + np.log(np.exp(z - top[:, None]).sum(axis=1))


def mapped(formula, z, p):
    kind = formula["kind"]
    if kind == "identity":
        return p
    if kind == "uniform":
        return np.isfinite(z) / np.isfinite(z).sum(axis=1, keepdims=True)
    if kind == "mixture":
        parts = (w * mapped(f, z, p) for w, f in zip(formula["weights"], formula["parts"]))
        mixed = np.where(np.isfinite(z), sum(parts), 0)
        return mixed / mixed.sum(axis=1, keepdims=True)
    if kind == "shifted":
        shifted = mapped(formula["part"], z, p) * np.exp(formula["intercept"])
        return shifted / shifted.sum(axis=1, keepdims=True)
    if kind == "linear":
        f = z / formula["temperature"]
        if formula["least"] is not None:
            below = f - f.max(axis=1, keepdims=True)
            log_p = below - np.log(np.exp(below).sum(axis=1, keepdims=True))
            f = np.maximum(log_p, formula["least"])
        coef = np.array(formula["coef"])
        f = f @ coef.T if coef.ndim == 2 else f * coef
        return softmax(f + formula["intercept"])
    if kind == "confidence":
        return of_confidence(formula, mapped(formula["part"], z, p))
    assert kind == "one_vs_rest"
    v = p
    if formula["of"] == "log_odds":
        others = [np.delete(z, j, axis=1) for j in range(z.shape[1])]
        v = np.column_stack([z[:, j] - log_sum(other) for j, other in enumerate(others)])
    columns = v[:, 1:] if p.shape[1] == 2 else v
    values = [curve(part, q, p.shape[1]) for part, q in zip(formula["curves"], columns.T)]
    if p.shape[1] == 2:
        return np.column_stack([1 - values[0], values[0]])
    values = np.column_stack(values)
    total = values.sum(axis=1, keepdims=True)
    return np.where(total > 0, values / np.where(total > 0, total, 1), 1 / p.shape[1])


def of_confidence(formula, proba):
    zero, latest = formula["zero"], []
    for q in proba:
        largest = q[1] if len(q) == 2 else q.max()
        sure = min(max(largest, zero), 1 - zero)
        m = 1 / (1 + np.exp(-np.interp(np.log(sure / (1 - sure)), formula["x"], formula["y"])))
        if len(q) == 2:
            latest.append([1 - m, m])
            continue
        top = q >= largest * (1 - formula["equal"])
        c, r = top.sum(), max(1 - top.sum() * largest, zero)
        s = (1 + zero) * max(q[~top], default=0.0)
        m = min(max(m, s / (r + c * s)), (1 - zero) / c)
        row = q * np.where(top, m / largest, (1 - c * m) / r)
        latest.append(row / row.sum())
    return np.array(latest)


def curve(part, p, k):
    if part["kind"] == "line":
        return np.interp(p, part["x"], part["y"])
    if part["kind"] == "steps":
        return np.array([part["y"][sum(x < q for x in part["x"])] for q in p])
    assert part["kind"] == "beta"
    if part["zero"] is None:
        logs = -np.logaddexp(0, -p), -np.logaddexp(0, p)
    else:
        q = np.clip(p, part["zero"], 1 - part["zero"])
        logs = np.log(q), np.log(1 - q)
    score = part["a"] * logs[0] - part["b"] * logs[1] + part["c"]
    return (1 - part["w"]) / (1 + np.exp(-score)) + part["w"] / k


def fitted(name, X, y, **options):
    if name == "PriorShift":
        options["training_priors"] = np.full(
            2 if X.ndim == 1 else X.shape[1], 1 / max(2, X[0].size)
        )
    return getattr(posthoc, name)(**options).fit(X, y)


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("name", MAPS)
def test_numpy_reads_what_was_fitted(name):
    logits, y = sample(600)
    proba = softmax(logits)
    # A forest says exactly 0 and 1.
    proba[:40] = np.eye(4)[y[:40]]
    stated = fitted(name, proba, y, input="proba")
    for X in (proba, EDGES):
        np.testing.assert_allclose(read(stated.to_json(), X), stated.predict_proba(X), atol=1e-9)
    named = fitted(name, logits, np.array(["a", "b", "c", "d"])[y])
    np.testing.assert_allclose(
        read(named.to_json(), logits), named.predict_proba(logits), atol=1e-9
    )
    assert json.loads(named.to_json())["classes"] == ["a", "b", "c", "d"]
    single = logits[:, 1] - logits[:, 0]
    of_two = fitted(name, single, y > 1)
    np.testing.assert_allclose(
        read(of_two.to_json(), single), of_two.predict_proba(single), atol=1e-9
    )
    if name == "PriorShift":
        return
    for X, labels in ((1000 * logits, y), (1000 * single, y > 1)):
        scored = fitted(name, X, labels, input="scores")
        np.testing.assert_allclose(read(scored.to_json(), X), scored.predict_proba(X), atol=1e-9)


@pytest.mark.parametrize(
    "name", ["TemperatureScaling", "EnsembleTemperatureScaling", "StackedCalibration"]
)
def test_options_that_do_not_exist(name):
    logits, y = sample(600)
    missing = (np.arange(4) == 3) & (y[:, None] < 3)
    logits[missing] = -np.inf
    scaling = fitted(name, logits, y)
    found = read(scaling.to_json(), logits)
    assert (found[missing] == 0).all()
    np.testing.assert_allclose(found, scaling.predict_proba(logits), atol=1e-9)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_stack_that_was_fitted_to_all_options(k):
    rng = np.random.RandomState(k)
    y = rng.randint(k, size=300)
    logits = rng.randn(300, k) * 2 + 2 * np.eye(k)[y]
    stack = fitted("StackedCalibration", logits, y)
    for columns in ([0], range(1, k)):
        missing = np.tile(np.isin(np.arange(k), columns), (300, 1))
        z = np.where(missing, -np.inf, logits)
        proba = stack.predict_proba(z)
        assert (proba[missing] == 0).all()
        np.testing.assert_allclose(proba.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_allclose(read(stack.to_json(), z), proba, atol=1e-9)


def test_the_options_of_a_map():
    logits, y = sample(600)
    for options in (
        {"strategy": "uniform"},
        {"n_bins": 1},
    ):
        binning = fitted("HistogramBinning", logits, y, **options)
        np.testing.assert_allclose(
            read(binning.to_json(), logits), binning.predict_proba(logits), atol=1e-9
        )
    beta = fitted("BetaCalibration", logits, y, parameters="am")
    np.testing.assert_allclose(read(beta.to_json(), logits), beta.predict_proba(logits), atol=1e-9)


def test_a_map_without_a_formula_says_so():
    class Doubled(PostHocCalibrator):
        def _fit(self, scores, y, sample_weight):
            self.factor_ = 2

        def _predict_proba(self, scores):
            return softmax(self.factor_ * self._as_logits(scores))

    logits, y = sample(100)
    with pytest.raises(NotImplementedError, match="Doubled has no formula for other programs"):
        Doubled().fit(logits, y).to_json()
    Doubled._formula = lambda self: {"kind": "linear", "temperature": np.nan}  # is no JSON
    with pytest.raises(ValueError, match="Out of range float values"):
        Doubled().fit(logits, y).to_json()
    grouped = posthoc.GroupwiseCalibration("temperature").fit(logits, y)
    with pytest.raises(NotImplementedError, match="that of the common map is calibrator_"):
        grouped.to_json()
    text = grouped.calibrator_.to_json()
    np.testing.assert_allclose(read(text, logits), grouped.predict_proba(logits), atol=1e-9)
