"""DifficultyAwareClassifier: what reaches the classifier, and where it comes from."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_digits, make_classification
from sklearn.decomposition import PCA
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skcalib.datasets import flip_labels
from skcalib.difficulty import (
    DifficultyAwareClassifier,
    DifficultyMixin,
    LossScorer,
    RelativeMahalanobisScorer,
    difficulty_weights,
)
from skcalib.utils import SkcalibWarning


class RecordingScorer(RelativeMahalanobisScorer):
    """Remembers the rows it was fitted on."""

    def fit(self, X, y, sample_weight=None):
        self.rows_ = np.array(X)
        return super().fit(X, y, sample_weight)


class RecordingClassifier(ClassifierMixin, BaseEstimator):
    """Remembers what its fit was given."""

    def fit(self, X, y, difficulty_weight=None, sample_weight=None, note=None):
        self.classes_ = np.unique(y)
        self.n_features_in_ = X.shape[1]
        self.seen_ = {
            "X": X,
            "difficulty_weight": difficulty_weight,
            "sample_weight": sample_weight,
            "note": note,
        }
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(120, 6, n_informative=4, n_classes=3, random_state=0)
    return X, np.array(["ant", "bee", "cat"])[y]


def test_weights_reach_the_estimator(data):
    X, y = data
    clf = DifficultyAwareClassifier(RecordingClassifier(), temperature=0.5).fit(X, y)
    difficulty = RelativeMahalanobisScorer().fit(X, y).difficulty(X, y)
    np.testing.assert_array_equal(clf.difficulty_, difficulty)
    np.testing.assert_array_equal(clf.weights_, difficulty_weights(difficulty, temperature=0.5))
    np.testing.assert_array_equal(clf.estimator_.seen_["difficulty_weight"], clf.weights_)
    assert clf.estimator_.seen_["sample_weight"] is None
    assert clf.n_features_in_ == 6
    assert clf.score(X, y) == pytest.approx(np.mean(y == "ant"))


def test_plain_estimator_equals_a_fit_by_hand(data):
    X, y = data
    clf = DifficultyAwareClassifier(LogisticRegression(), fit_param="sample_weight").fit(X, y)
    by_hand = LogisticRegression().fit(X, y, sample_weight=clf.weights_)
    np.testing.assert_array_equal(clf.predict_proba(X), by_hand.predict_proba(X))
    np.testing.assert_array_equal(clf.predict_log_proba(X), by_hand.predict_log_proba(X))
    np.testing.assert_array_equal(clf.decision_function(X), by_hand.decision_function(X))
    np.testing.assert_array_equal(clf.predict(X), by_hand.predict(X))


def test_hard_samples_can_be_weighed_down(data):
    X, y = data
    clf = DifficultyAwareClassifier(
        RecordingClassifier(), fit_param="sample_weight", direction="down"
    ).fit(X, y)
    np.testing.assert_array_equal(clf.weights_, 1 - difficulty_weights(clf.difficulty_))
    np.testing.assert_array_equal(clf.estimator_.seen_["sample_weight"], clf.weights_)
    assert clf.weights_.argmin() == clf.difficulty_.argmax()
    assert 0 < clf.weights_.min() < clf.weights_.max() < 1
    weight = np.arange(len(X)) % 3
    clf.fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(clf.estimator_.seen_["sample_weight"], clf.weights_ * weight)
    assert not clf.weights_[weight == 0].any()


def test_weighing_down_takes_away_the_fraction_that_the_temperature_tells():
    X, y = make_classification(2000, 6, n_informative=4, random_state=0)
    for temperature in [0.1, 0.3]:
        clf = DifficultyAwareClassifier(
            LogisticRegression(), fit_param="sample_weight", direction="down",
            temperature=temperature,
        ).fit(X, y)  # fmt: skip
        # The mean of exp((r - 1) / T) over ranks r in [0, 1].
        taken = temperature * (1 - np.exp(-1 / temperature))
        assert clf.weights_.mean() == pytest.approx(1 - taken, abs=2e-3)


def test_weighing_down_withstands_wrong_labels():
    X, y = load_digits(return_X_y=True)
    X = PCA(20, random_state=0).fit_transform(X / 16)
    given, _ = flip_labels(y[:900], fraction=0.2, random_state=0)
    model = LogisticRegression(C=100, max_iter=2000)
    score = {}
    for direction in ["up", "down"]:
        clf = DifficultyAwareClassifier(model, fit_param="sample_weight", direction=direction)
        score[direction] = clf.fit(X[:900], given).score(X[900:], y[900:])
    plain = clone(model).fit(X[:900], given).score(X[900:], y[900:])
    assert score["down"] > plain + 0.02
    assert plain > score["up"]


@pytest.mark.slow
def test_grid_search_sees_training_folds_alone(data):
    X, y = data
    pipeline = Pipeline(
        [
            ("scale", StandardScaler()),
            (
                "clf",
                DifficultyAwareClassifier(
                    LogisticRegression(), RecordingScorer(), fit_param="sample_weight"
                ),
            ),
        ]
    )
    scored = []

    def training_rows(estimator, X, y):
        scaled = estimator[0].transform(X)
        rows = estimator[1].scorer_.rows_
        shared = (rows[:, None, :] == scaled[None, :, :]).all(axis=2).any()
        assert len(rows) == len(estimator[1].weights_)
        return float(len(rows)) if not shared else np.nan

    grid = GridSearchCV(
        pipeline,
        {"clf__temperature": [0.3, 0.7], "clf__estimator__C": [0.1, 1.0]},
        scoring=training_rows,
        cv=3,
        error_score="raise",
    ).fit(X, y)
    scored = [grid.cv_results_[f"split{i}_test_score"] for i in range(3)]
    np.testing.assert_array_equal(scored, np.full((3, 4), 80.0))


def test_pipeline_as_scorer(data):
    X, y = data
    scorer = make_pipeline(StandardScaler(), RelativeMahalanobisScorer())
    clf = DifficultyAwareClassifier(RecordingClassifier(), scorer).fit(X, y)
    alone = RelativeMahalanobisScorer().fit(X, y).difficulty(X, y)
    np.testing.assert_allclose(clf.difficulty_, alone, atol=1e-8)
    # The classifier gets the rows as they came.
    np.testing.assert_array_equal(clf.estimator_.seen_["X"], X)
    assert isinstance(clf.scorer_[-1], RelativeMahalanobisScorer)
    np.testing.assert_allclose(clf.scorer_.transform(X).shape, (120, 3))


class CountingEmbedder(FunctionTransformer):
    """Writes one line a call to the file given."""

    def __init__(self, log=None):
        super().__init__()
        self.log = log

    def transform(self, X):
        with open(self.log, "a") as stream:
            stream.write("called\n")
        return np.asarray(X) * 2.0


@pytest.mark.slow
def test_embedding_is_cached_across_a_grid_over_temperature(data, tmp_path):
    X, y = data
    log = tmp_path / "calls"
    scorer = Pipeline(
        [("embed", CountingEmbedder(str(log))), ("score", RelativeMahalanobisScorer())],
        memory=str(tmp_path / "cache"),
    )
    clf = DifficultyAwareClassifier(LogisticRegression(), scorer, fit_param="sample_weight")
    GridSearchCV(clf, {"temperature": [0.1, 0.5, 1.0, 2.0]}, cv=3, refit=False).fit(X, y)
    assert len(log.read_text().splitlines()) == 3


def test_sample_weight_reaches_both(data):
    X, y = data
    weight = np.arange(len(X)) % 3
    clf = DifficultyAwareClassifier(RecordingClassifier()).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(clf.estimator_.seen_["sample_weight"], weight)
    kept = weight > 0
    scorer = RelativeMahalanobisScorer().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(clf.difficulty_[kept], scorer.difficulty(X, y)[kept])
    assert np.isnan(clf.difficulty_[~kept]).all()
    assert not clf.weights_[~kept].any()

    clf = DifficultyAwareClassifier(RecordingClassifier(), fit_param="sample_weight")
    clf.fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(clf.estimator_.seen_["sample_weight"], clf.weights_ * weight)
    assert clf.estimator_.seen_["difficulty_weight"] is None


def test_weights_are_repetition_for_the_whole_chain(data):
    X, y = data
    count = np.random.default_rng(0).integers(0, 3, len(X))
    for scale in ["rank", "minmax", "std"]:
        clf = DifficultyAwareClassifier(
            LogisticRegression(), scale=scale, fit_param="sample_weight"
        )
        weighted = clone(clf).fit(X, y, sample_weight=count)
        repeated = clone(clf).fit(np.repeat(X, count, axis=0), np.repeat(y, count))
        np.testing.assert_allclose(np.repeat(weighted.weights_, count), repeated.weights_)
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)


def test_pipeline_as_estimator(data):
    X, y = data
    weight = np.arange(len(X)) % 3
    pipeline = make_pipeline(StandardScaler(), RecordingClassifier())
    clf = DifficultyAwareClassifier(pipeline, fit_param="recordingclassifier__difficulty_weight")
    seen = clf.fit(X, y, sample_weight=weight).estimator_[-1].seen_
    np.testing.assert_array_equal(seen["difficulty_weight"], clf.weights_)
    np.testing.assert_array_equal(seen["sample_weight"], weight)
    clf.set_params(fit_param="recordingclassifier__sample_weight").fit(X, y, sample_weight=weight)
    seen = clf.estimator_[-1].seen_
    np.testing.assert_array_equal(seen["sample_weight"], clf.weights_ * weight)


def test_further_fit_parameters_reach_the_estimator(data):
    X, y = data
    note = np.arange(len(X))
    clf = DifficultyAwareClassifier(RecordingClassifier()).fit(X, y, note=note)
    np.testing.assert_array_equal(clf.estimator_.seen_["note"], note)


@pytest.mark.slow
def test_metadata_routing(data):
    X, y = data
    weight = np.arange(len(X)) % 3
    expected = DifficultyAwareClassifier(LogisticRegression(), fit_param="sample_weight").fit(
        X, y, sample_weight=weight
    )
    with config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        clf = DifficultyAwareClassifier(inner, fit_param="sample_weight")
        routed = clone(clf).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(routed.predict_proba(X), expected.predict_proba(X))
        clf.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        grid = GridSearchCV(clf, {"temperature": [0.3]}, cv=3, error_score="raise")
        grid.fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(
            grid.best_estimator_.predict_proba(X), expected.predict_proba(X)
        )
        # What the estimator does not request does not reach it; the scorer still has it.
        inner = RecordingClassifier().set_fit_request(sample_weight=False, note=True)
        routed = DifficultyAwareClassifier(inner).fit(X, y, sample_weight=weight, note=weight)
        assert routed.estimator_.seen_["sample_weight"] is None
        np.testing.assert_array_equal(routed.estimator_.seen_["note"], weight)
        np.testing.assert_allclose(routed.scorer_.class_count_.sum(), weight.sum())
        with pytest.raises(UnsetMetadataPassedError):
            DifficultyAwareClassifier(RecordingClassifier()).fit(X, y, sample_weight=weight)


@pytest.mark.slow
def test_out_of_fold_scores_are_used(data):
    X, y = data
    scorer = LossScorer(LogisticRegression(), cv=4)
    expected = clone(scorer).fit_difficulty(X, y)
    for candidate in [scorer, make_pipeline("passthrough", scorer)]:
        clf = DifficultyAwareClassifier(RecordingClassifier(), candidate).fit(X, y)
        np.testing.assert_allclose(clf.difficulty_, expected)


def test_objects_as_rows(data):
    texts = ["a cat", "a dog", "the cat", "the dog", "cat dog", "a a", "dog", "cat"] * 3
    y = [0, 1] * 12
    scorer = make_pipeline(
        CountVectorizer(), FunctionTransformer(lambda X: X.toarray()),
        RelativeMahalanobisScorer(shrinkage=0.5),
    )  # fmt: skip
    classifier = make_pipeline(CountVectorizer(), LogisticRegression())
    clf = DifficultyAwareClassifier(
        classifier, scorer, fit_param="logisticregression__sample_weight"
    )
    weight = [0, 0] + [1] * 22
    assert clf.fit(texts, y, sample_weight=weight).predict(texts).shape == (24,)
    assert np.isnan(clf.difficulty_[:2]).all()


def test_a_class_of_one_sample_that_is_infinitely_hard_gets_a_finite_weight(data):
    class LeftOut(RelativeMahalanobisScorer):
        def fit_difficulty(self, X, y, sample_weight=None):
            return self.fit(X, y).leave_one_out_difficulty(X, y)

    X, y = data
    y = np.append(y[:-1], "dog")
    clf = DifficultyAwareClassifier(RecordingClassifier(), LeftOut())
    with pytest.warns(SkcalibWarning, match="have a single sample"):
        clf.fit(X, y)
    assert clf.difficulty_[-1] == np.inf
    assert np.isfinite(clf.weights_).all()
    assert clf.weights_.argmax() == len(y) - 1


def test_methods_follow_the_estimator(data):
    clf = DifficultyAwareClassifier(RecordingClassifier())
    assert not hasattr(clf, "predict_proba")
    assert not hasattr(clf.fit(*data), "decision_function")
    assert hasattr(DifficultyAwareClassifier(LogisticRegression()), "predict_proba")


class PlainScorer(DifficultyMixin, BaseEstimator):
    """Knows no sample weights."""

    def fit(self, X, y=None):
        return self

    def difficulty(self, X, y=None):
        return np.where(X[:, 0] > 5, np.nan, X[:, 0])


def test_bad_input(data):
    X, y = data
    clf = DifficultyAwareClassifier(RecordingClassifier(), PlainScorer()).fit(X, y)
    with pytest.raises(
        ValueError, match=r"scorer must have the parameter 'sample_weight' .*PlainScorer"
    ):
        clf.fit(X, y, sample_weight=np.ones(len(X)))
    with pytest.raises(ValueError, match="difficulty must be finite"):
        clf.fit(X + 10, y)
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative"):
        clf.fit(X, y, sample_weight=-np.ones(len(X)))
    with pytest.raises(
        ValueError,
        match=r"must have the parameter 'difficulty_weight' .*fit_param names.*got LogisticReg",
    ):
        DifficultyAwareClassifier(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="difficulty_weight must not be passed to fit"):
        DifficultyAwareClassifier(RecordingClassifier()).fit(
            X, y, difficulty_weight=np.ones(len(X))
        )
    with pytest.raises(ValueError, match="'scorer' parameter"):
        DifficultyAwareClassifier(RecordingClassifier(), StandardScaler()).fit(X, y)
    with pytest.raises(ValueError, match="Unknown label type"):
        DifficultyAwareClassifier(RecordingClassifier()).fit(X, X[:, 0])
