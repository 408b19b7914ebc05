"""What is exported answers in onnxruntime as it does in Python, to 1e-5."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits, make_blobs, make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skcalib import posthoc
from skcalib.difficulty import DifficultyAwareClassifier, RMDScorer
from skcalib.posthoc import PostHocCalibratedClassifier, PostHocCalibrator
from skcalib.selection import (
    MaxEntropySelector,
    MinimumCostClassifier,
    SelectiveClassifier,
    SubsetClassifier,
)
from tests.posthoc._sample import sample
from tests.posthoc.test_formula import EDGES, MAPS, fitted, softmax

rt = pytest.importorskip("onnxruntime")
skl2onnx = pytest.importorskip("skl2onnx")
pytest.importorskip("skcalib.onnx")

pytestmark = [
    pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning"),
    # skl2onnx reads attributes of SVC that scikit-learn will remove.
    pytest.mark.filterwarnings("ignore:Attribute `prob:FutureWarning"),
]
NO_DICTS = {"zipmap": False}


def open_session(model, X, **options):
    options = {id(model): {**NO_DICTS, **options}}
    exported = skl2onnx.to_onnx(model, X[:1], options=options)
    settings = rt.SessionOptions()
    settings.intra_op_num_threads, settings.log_severity_level = 1, 3
    return rt.InferenceSession(exported.SerializeToString(), settings)


def run(model, X, **options):
    """Return what onnxruntime makes of the exported model, by the names of the outputs."""
    session = open_session(model, X, **options)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X})))


def check(model, X, atol=1e-5):
    found = run(model, X)
    proba = model.predict_proba(X)
    assert found["probabilities"].dtype == X.dtype
    np.testing.assert_allclose(found["probabilities"], proba, atol=atol, rtol=0)
    # The predicted class is free where two are as likely.
    top = np.sort(proba, axis=1)[:, -2:]
    clear = top[:, 1] - top[:, 0] > 2 * atol
    np.testing.assert_array_equal(found["label"][clear], model.predict(X)[clear])
    assert clear.mean() > 0.5
    return found


def data(k=3, n=400, dtype=np.float32):
    X, y = make_blobs(n, n_features=4, centers=k, cluster_std=3, random_state=0)
    return X.astype(dtype), y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, np.float32) for name in MAPS), ("StackedCalibration", np.float64)],
)
def test_every_map(name, dtype):
    logits, y = sample(600)
    proba = softmax(logits)
    proba[:40] = np.eye(4)[y[:40]]
    stated = fitted(name, proba.astype(dtype), y, input="proba")
    check(stated, np.vstack([proba, EDGES]).astype(dtype))
    named = fitted(name, logits.astype(dtype), np.array(["a", "b", "c", "d"])[y])
    check(named, np.vstack([logits, 1e4 * EDGES, -1e4 * EDGES]).astype(dtype))
    single = (logits[:, :1] - logits[:, 1:2]).astype(dtype)
    check(fitted(name, single[:, 0], y > 1), single)


@pytest.mark.parametrize(
    "name", ["TemperatureScaling", "EnsembleTemperatureScaling", "StackedCalibration"]
)
def test_options_that_do_not_exist(name):
    logits, y = sample(600)
    missing = (np.arange(4) == 3) & (y[:, None] < 3)
    logits[missing] = -np.inf
    found = check(fitted(name, logits, y), logits.astype(np.float32))
    assert (found["probabilities"][missing] == 0).all()


@pytest.mark.parametrize("k", [2, 4])
def test_options_that_a_stack_has_not_seen_missing(k):
    rng = np.random.RandomState(k)
    y = rng.randint(k, size=300)
    logits = (rng.randn(300, k) * 2 + 2 * np.eye(k)[y]).astype(np.float32)
    stack = fitted("StackedCalibration", logits, y)
    logits[:, 0] = -np.inf
    found = run(stack, logits)["probabilities"]
    np.testing.assert_allclose(found, stack.predict_proba(logits), atol=1e-6)
    assert (found[:, 0] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["IsotonicCalibration", "BetaCalibration", "StackedCalibration"])
@pytest.mark.parametrize("k", [2, 3])
def test_a_row_that_overflows_in_float32_is_nan_alone(name, k):
    X, y = data(k)
    model = PostHocCalibratedClassifier(GaussianNB(), getattr(posthoc, name)(), cv=2).fit(X, y)
    large = X[:20].copy()
    large[3] = 1e30
    found = run(model, large)["probabilities"]
    assert np.isnan(found[3]).all()
    others = np.arange(20) != 3
    np.testing.assert_array_equal(found[others], run(model, X[:20])["probabilities"][others])
    single = fitted(name, X[:, 0], y > 0)
    found = run(single, np.array([[0.5], [np.nan], [np.inf], [1.0]], dtype=np.float32))
    assert np.isnan(found["probabilities"]).all(axis=1).tolist() == [False, True, True, False]


HOSTILE = [np.nan, np.inf, -np.inf, 3e38, -3e38, 2.0, -0.5]


@pytest.mark.parametrize("form", ["proba", "logits", "single"])
@pytest.mark.parametrize("name", MAPS)
def test_rows_that_python_refuses_are_nan_alone(name, form):
    logits, y = sample(200)
    X = {"proba": softmax(logits), "logits": logits, "single": logits[:, :1] - logits[:, 1:2]}[
        form
    ]
    X = X.astype(np.float32)
    single = form == "single"
    kind = {"input": "proba"} if form == "proba" else {}
    model = fitted(name, X[:, 0] if single else X, y > 1 if single else y, **kind)
    rows = np.repeat(X[:1], 2 * len(HOSTILE) + 1, axis=0)
    rows[: len(HOSTILE), 0] = HOSTILE
    # Beside equal logits of 3e38, rounding hides all that a map adds.
    whole = [0.0 if abs(value) == 3e38 else value for value in HOSTILE]
    rows[len(HOSTILE) : -1] = np.reshape(whole, (-1, 1))
    found = run(model, rows)["probabilities"]
    for row, answer in zip(rows, found):
        try:
            expected = model.predict_proba(row[None])[0]
        except ValueError:
            assert np.isnan(answer).all(), row
        else:
            np.testing.assert_allclose(answer, expected, atol=1e-5)
    assert np.isfinite(found[-1]).all()


def test_no_rows_are_no_answers_and_other_shapes_and_types_are_refused():
    logits, y = sample(200)
    X = logits.astype(np.float32)
    session = open_session(fitted("TemperatureScaling", X, y), X)
    label, proba = session.run(None, {"X": X[:0]})
    assert label.shape == (0,)
    assert proba.shape == (0, 4)
    for wrong in (X[:, :3], X[0], X.astype(np.float16), logits):
        with pytest.raises(
            Exception, match=r"(?i)invalid (dimensions|rank)|unexpected input data"
        ):
            session.run(None, {"X": wrong})


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), SGDClassifier())),
        GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
        RandomForestClassifier(10, max_depth=3, random_state=0),
        GradientBoostingClassifier(n_estimators=5, random_state=0),
        make_pipeline(StandardScaler(), MLPClassifier((5,), tol=1e3, random_state=0)),
        SVC(C=0.1),
        LinearSVC(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_calibrated_classifiers(model, k):
    X, y = data(k)
    y = np.array(["ant", "bee", "cat"])[y]
    check(PostHocCalibratedClassifier(model, cv=3).fit(X, y), X)
    frozen = FrozenEstimator(clone(model).fit(X[:200], y[:200]))
    check(PostHocCalibratedClassifier(frozen, "structured_vector").fit(X[200:], y[200:]), X)


@pytest.mark.slow
def test_equal_votes_of_trees_are_equal_in_the_graph_too():
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    forest = RandomForestClassifier(20, random_state=0)
    model = make_pipeline(StandardScaler(), PCA(5, random_state=0), forest)
    check(PostHocCalibratedClassifier(model).fit(X[::2], y[::2]), X)


@pytest.mark.slow
@pytest.mark.parametrize("calibrator", ["auto", "temperature", "beta", "none"])
def test_pipelines_around_it(calibrator):
    X, y = data()
    calibrated = PostHocCalibratedClassifier(LogisticRegression(), calibrator, cv=3)
    check(Pipeline([("scale", StandardScaler()), ("model", calibrated)]).fit(X, y), X)


@pytest.mark.slow
def test_dicts_of_probabilities_are_the_default_as_everywhere():
    X, y = data()
    model = PostHocCalibratedClassifier(GaussianNB(), cv=3).fit(X, y)
    found = run(model, X, zipmap=True)["output_probability"]
    np.testing.assert_allclose(
        [[row[k] for k in range(3)] for row in found], model.predict_proba(X), atol=1e-5
    )


def test_classes_that_a_frozen_classifier_alone_knows():
    X, y = data()
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    check(PostHocCalibratedClassifier(frozen, "temperature").fit(X[y < 2], y[y < 2]), X)


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("confidence", ["msp", "entropy", "margin", "max_logit", "energy"])
def test_answers_and_whether_there_is_one(confidence, k):
    X, y = data(k)
    if k == 2 and confidence in ("max_logit", "energy"):
        pytest.skip("needs a score for every class")
    for labels in (y, np.array(["ant", "bee", "cat"])[y]):
        model = SelectiveClassifier(LogisticRegression(), confidence=confidence, risk=0.05)
        model.fit(X, labels)
        found = run(model, X)
        assert 0 < model.accept(X).mean() < 1
        np.testing.assert_array_equal(found["accepted"], model.accept(X))
        np.testing.assert_array_equal(found["label"], model.predict(X))
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize(
    ("model", "risk"),
    [
        (DecisionTreeClassifier(max_depth=3), 0.12),
        (KNeighborsClassifier(7), 0.06),
        (GaussianNB(), 0.06),
    ],
    ids=lambda value: type(value).__name__,
)
def test_samples_at_the_threshold_are_declined_there_too(model, risk):
    # Many confidences of trees and neighbors are equal to the threshold.
    X, y = data(3, 800)
    selective = SelectiveClassifier(FrozenEstimator(model.fit(X[:200], y[:200])), risk=risk)
    selective.fit(X[200:], y[200:])
    np.testing.assert_array_equal(run(selective, X)["accepted"], selective.accept(X))
    assert 0 < selective.coverage_ < 1


def test_all_are_declined():
    X, y = data(3, 100)
    selective = SelectiveClassifier(GaussianNB(), risk=0.001).fit(X, y)
    found = run(selective, X)
    assert not found["accepted"].any()
    assert (found["label"] == -1).all()


@pytest.mark.slow
def test_selective_around_calibrated_around_a_pipeline():
    X, y = data()
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    model = SelectiveClassifier(PostHocCalibratedClassifier(inner, cv=3), risk=0.2, cv=3).fit(X, y)
    found = run(model, X)
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=1e-5)
    np.testing.assert_array_equal(found["label"], model.predict(X))


@pytest.mark.slow
def test_classifiers_that_answer_by_the_one_inside():
    X, y = data()
    for model in (
        SubsetClassifier(LogisticRegression(), MaxEntropySelector(LogisticRegression())),
        PostHocCalibratedClassifier(
            SubsetClassifier(LogisticRegression(), MaxEntropySelector(LogisticRegression())), cv=3
        ),
        DifficultyAwareClassifier(LogisticRegression(), RMDScorer(), fit_param="sample_weight"),
    ):
        check(model.fit(X, y), X)


@pytest.mark.slow
def test_what_has_no_graph_says_so():
    X, y = data()

    class Doubled(PostHocCalibrator):
        def _fit(self, scores, y, sample_weight):
            self.factor_ = 2

        def _predict_proba(self, scores):
            return softmax(self.factor_ * self._as_logits(scores))

    for model, message in (
        (PostHocCalibratedClassifier(GaussianNB(), Doubled()), "Doubled has no formula"),
        (
            PostHocCalibratedClassifier(GaussianNB(), "temperature", by_columns=3),
            "by_columns must be None in ONNX",
        ),
        (SelectiveClassifier(GaussianNB(), confidence=RMDScorer()), "got RelativeMahalanobis"),
        (posthoc.GroupwiseCalibration("temperature"), "a map for every group"),
    ):
        fitted_model = model.fit(X[:, :3] if isinstance(model, PostHocCalibrator) else X, y)
        with pytest.raises(NotImplementedError, match=message):
            run(fitted_model, X)


@pytest.mark.slow
def test_an_ensemble_of_folds():
    X, y = make_classification(300, n_features=5, n_informative=4, n_redundant=0, random_state=0)
    for estimator in (DecisionTreeClassifier(max_depth=4, random_state=0), LogisticRegression()):
        model = PostHocCalibratedClassifier(estimator, ensemble=True).fit(X, y)
        check(model, X.astype(np.float64))


@pytest.mark.parametrize("method", ["decision_function", "predict_proba"])
def test_a_fold_that_lacks_a_class(method):
    X, y = data()
    rows = np.concatenate([np.flatnonzero(y < 2), np.flatnonzero(y == 2)[:20]])
    options = {"response_method": method, "ensemble": True, "cv": KFold(3)}
    model = PostHocCalibratedClassifier(LogisticRegression(), "temperature", **options)
    with pytest.raises(ValueError, match=r"lacks class \[2\] in fold 2 of cv"):
        model.fit(X[rows], y[rows])


@pytest.mark.parametrize("decisions", [None, ["act", "wait"], [7, 3, 5]])
def test_decisions_of_least_cost(decisions):
    X, y = data(2)
    model = PostHocCalibratedClassifier(GaussianNB(), "temperature", cv=2)
    costs = [[0, 5], [100, 0], [3, 3]][: len(decisions or y[:2])]
    clf = MinimumCostClassifier(model, costs, decisions=decisions).fit(X, y)
    found = run(clf, X)
    np.testing.assert_allclose(found["probabilities"], clf.estimator_.predict_proba(X), atol=1e-5)
    expected = np.sort(clf.expected_costs(X), axis=1)
    clear = expected[:, 1] - expected[:, 0] > 1e-2  # decisions as good as each other are free
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(found["label"][clear], clf.predict(X)[clear])
    assert len(np.unique(found["label"])) == len(costs)


def test_costs_of_every_sample_are_no_graph():
    X, y = data(2)
    clf = MinimumCostClassifier(GaussianNB(), lambda X: [[0, 5], [100, 0]]).fit(X, y)
    with pytest.raises(NotImplementedError, match="costs must be a table in ONNX"):
        run(clf, X)
