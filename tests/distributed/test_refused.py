"""What does not work in chunks says so: no estimator computes a dask array without a word."""

import numpy as np
import pytest

from skcalib.posthoc import PostHocCalibratedClassifier, PostHocCalibrator, TemperatureScaling
from skcalib.posthoc._linear import LinearCalibrator
from skcalib.posthoc._one_vs_rest import OneVsRestCalibrator
from skcalib.utils._estimators import DelegatingClassifier
from tests.test_common import CASES, Case, _estimator_classes

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

RNG = np.random.default_rng(0)
Y = np.repeat([0, 1, 2], 20)
# Features, probabilities and logits in one.
X = np.exp(RNG.normal(size=(60, 3)) + 3 * np.eye(3)[Y])
X = (X / X.sum(axis=1, keepdims=True)).astype(np.float32)
FIT = ("fit", "partial_fit", "fit_transform", "fit_difficulty")
SCORE = (
    "predict", "predict_proba", "transform", "difficulty", "score_samples", "decision_function",
    "accept", "select", "probe_predict", "middle_probe_predict",
)  # fmt: skip
IN_CHUNKS = {
    ("MaxEntropySelector", "select"),
    *(("RelativeMahalanobisScorer", name) for name in (*FIT[:3], *SCORE)),
    *(("NoveltyDetector", name) for name in SCORE),
}


# tests/distributed/test_sums.py has those whose fit is a sum over chunks.
SUMS = (LinearCalibrator, OneVsRestCalibrator, TemperatureScaling)
ROW_BY_ROW = (PostHocCalibrator, PostHocCalibratedClassifier, DelegatingClassifier)


def _fail(block):
    raise AssertionError("computed")


LAZY = da.from_array(X).map_blocks(_fail, dtype=X.dtype, meta=X[:0])


def _instances():
    for cls in _estimator_classes():
        case = CASES.get(cls.__name__, Case())
        estimators = [cls()] if case.instances is None else case.instances()
        for estimator in estimators[:1]:
            yield pytest.param(estimator, id=cls.__name__)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("estimator", list(_instances()))
def test_estimators_take_chunks_or_refuse_them(estimator):
    estimator.fit(X, Y)
    name = type(estimator).__name__
    # tests/distributed/test_rows.py has those of rows.
    by_row = isinstance(estimator, ROW_BY_ROW) and name != "GroupwiseCalibration"
    for method in (*([] if by_row else SCORE), *([] if isinstance(estimator, SUMS) else FIT)):
        if hasattr(estimator, method) and (name, method) not in IN_CHUNKS:
            arguments = (LAZY, Y) if method in FIT else (LAZY,)
            with pytest.raises(TypeError, match=r"^X must be in memory here, got a collection"):
                getattr(estimator, method)(*arguments)
