import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from skcalib.datasets import flip_labels
from skcalib.labels import LabelIssueFinder
from skcalib.utils import SkcalibWarning


def _probabilities(n, scale, seed, n_classes=3):
    """Calibrated probabilities, and labels that follow them."""
    rng = np.random.default_rng(seed)
    scores = scale * rng.normal(size=(n, n_classes))
    proba = np.exp(scores - scores.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    labels = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return proba, np.minimum(labels, n_classes - 1)


def test_right_labels_of_calibrated_judges_are_left_alone():
    for seed in range(5):
        proba, labels = _probabilities(400, 3.0, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            finder = LabelIssueFinder("precomputed").fit(proba, labels)
        assert finder.issues_["is_issue"].mean() < 0.005
        assert finder.noise_rate_interval_[0] == 0
        assert finder.is_trustworthy_


def test_noise_has_to_earn_its_number():
    proba, labels = _probabilities(60, 3.0, 3)
    given, _ = flip_labels(labels, fraction=0.2, random_state=0)
    score = -2 * np.log(proba)

    def log_likelihood(weight, rate):
        q = np.exp(-0.5 * weight * score)
        q /= q.sum(axis=1, keepdims=True)
        q = (1 - rate) * q + rate / 2 * (1 - q)
        return np.log(q[np.arange(60), given]).sum()

    weights, rates = np.linspace(0.1, 3, 150), np.linspace(0, 0.5, 51)
    with_noise = max(log_likelihood(w, r) for w in weights for r in rates)
    without = max(log_likelihood(w, 0.0) for w in weights)
    expected = expit(with_noise - without - 1.0)
    finder = LabelIssueFinder("precomputed", noise="random")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        p = finder.fit(proba, given).issues_["p_label_correct"]
    # Of a sample whose label cannot be right, this is what is left.
    assert p.min() == pytest.approx(1 - expected, abs=0.17)


def test_weak_judges_that_call_many_labels_wrong_warn(monkeypatch):
    monkeypatch.setattr("skcalib.labels._rounds._MANY", 0.05)
    proba, true = _probabilities(9000, 1.7, 0, n_classes=4)
    given, _ = flip_labels(true, fraction=0.3, random_state=0)
    finder = LabelIssueFinder("precomputed")
    with pytest.warns(SkcalibWarning, match="know too little of the classes"):
        finder.fit(proba, given)
    assert not finder.is_trustworthy_
    assert len(finder.doubts_) == 1
    rows = finder.draw_samples_to_check(100, random_state=0)
    assert not clone(finder).set_params(threshold=0.5).fit(proba, true).doubts_
    assert finder.recalibrate(rows, true[rows]).is_trustworthy_


def test_confused_judges_warn():
    rng = np.random.default_rng(0)
    scores = 2.0 * rng.normal(size=(4000, 4))
    mixed = scores.copy()
    # Where these judges see class 1, half of the evidence is for class 2, and the reverse.
    mixed[:, 1], mixed[:, 2] = 1.5 * scores[:, 2] + scores[:, 1], 1.5 * scores[:, 1]
    q = np.exp(scores - scores.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    labels = np.minimum((q.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1), 3)
    p = np.exp(mixed - mixed.max(axis=1, keepdims=True))
    finder = LabelIssueFinder("precomputed")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        finder.fit(p / p.sum(axis=1, keepdims=True), labels)
    said = any("Confusions of the judges" in str(w.message) for w in caught)
    assert said or finder.issues_["is_issue"].mean() < 0.005
