"""A pickle of another version of skcalib is loaded with a warning."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import skcalib
from skcalib import difficulty, embeddings, labels, nets, posthoc, selection
from skcalib.utils import SkcalibWarning

MADE = {
    "calibrator": posthoc.TemperatureScaling(),
    "calibrated classifier": posthoc.PostHocCalibratedClassifier(LogisticRegression()),
    "scorer": difficulty.RMDScorer(),
    "neighbors": difficulty.KNNScorer(),
    "depth": difficulty.PredictionDepthScorer(),
    "novelty": difficulty.NoveltyDetector(difficulty.RMDScorer()),
    "finder": labels.LabelIssueFinder(),
    "selector": selection.MaxEntropySelector(),
    "selective classifier": selection.SelectiveClassifier(LogisticRegression()),
    "embedder": embeddings.TimmEmbedder("resnet18"),
    "net": nets.CalibratedNetClassifier(nets.MLP),
}


@pytest.mark.parametrize("name", MADE)
def test_another_version_warns(name, monkeypatch):
    sent = pickle.dumps(MADE[name])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vars(pickle.loads(sent)).keys() == vars(clone(MADE[name])).keys()
    version = skcalib.__version__
    monkeypatch.setattr(skcalib, "__version__", "9.9.9")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pickle.loads(sent)
    start = f"{type(MADE[name]).__name__} was pickled by skcalib {version} and is loaded by 9.9.9,"
    assert [str(w.message) for w in caught if str(w.message).startswith(start)]
    assert {w.category for w in caught} == {SkcalibWarning}


def test_a_pickle_without_a_version_warns():
    scaling = posthoc.TemperatureScaling()
    with pytest.warns(SkcalibWarning, match="pickled by an unknown version of skcalib"):
        scaling.__setstate__({"input": "proba", "temperature_": np.float64(2)})
    assert scaling.temperature_ == 2
