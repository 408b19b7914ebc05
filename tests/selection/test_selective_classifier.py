"""Answers with a guarantee: what is accepted, what predict returns, what is refused."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skcalib.difficulty import RMDScorer
from skcalib.metrics import predictive_entropy
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.selection import SelectiveClassifier
from skcalib.selection._risk_control import control_risk
from skcalib.utils import SkcalibWarning

X, Y = make_classification(
    3000, n_features=8, n_informative=5, n_classes=3, class_sep=1.5, flip_y=0.02, random_state=0
)
TRAIN, CALIBRATION, TEST = slice(0, 1000), slice(1000, 2000), slice(2000, 3000)
MODEL = LogisticRegression().fit(X[TRAIN], Y[TRAIN])


def frozen(**options):
    options = {"risk": 0.1, **options}
    return SelectiveClassifier(FrozenEstimator(MODEL), **options).fit(
        X[CALIBRATION], Y[CALIBRATION]
    )


@pytest.mark.parametrize("confidence", ["msp", "entropy", "margin", "max_logit", "energy"])
def test_accepts_the_most_confident(confidence):
    clf = frozen(confidence=confidence)
    accepted = clf.accept(X[CALIBRATION])
    scores = clf.confidence_samples(X[CALIBRATION])
    assert 0 < accepted.mean() < 1
    assert scores[accepted].min() > clf.threshold_ >= scores[~accepted].max()
    wrong = MODEL.predict(X[CALIBRATION]) != Y[CALIBRATION]
    assert clf.coverage_ == accepted.mean()
    assert clf.error_rate_ == wrong[accepted].mean() < clf.risk_bound_ <= 0.1


def test_confidence_of_a_name_is_that_of_metrics():
    clf = frozen(confidence="entropy")
    np.testing.assert_allclose(
        clf.confidence_samples(X[TEST]), -predictive_entropy(MODEL.predict_proba(X[TEST]))
    )
    clf = frozen(confidence="energy", risk=0.2)
    np.testing.assert_allclose(
        clf.confidence_samples(X[TEST]), logsumexp(MODEL.decision_function(X[TEST]), axis=1)
    )


def test_confidence_of_a_scorer_is_how_normal_a_sample_is():
    scorer = make_pipeline(StandardScaler(), RMDScorer())
    clf = frozen(confidence=scorer, risk=0.3)
    expected = clone(scorer).fit(X[CALIBRATION], Y[CALIBRATION]).score_samples(X[TEST])
    np.testing.assert_allclose(clf.confidence_samples(X[TEST]), expected)
    assert not hasattr(scorer[-1], "classes_")


@pytest.mark.parametrize(("classes", "label"), [((1, 2), -1), ((-3, 5), -4), ((0, 7), -1)])
def test_the_reject_label_is_below_all_classes_and_0(classes, label):
    X, y = make_classification(200, class_sep=2.0, random_state=0)
    clf = SelectiveClassifier(GaussianNB(), risk=0.3).fit(X, np.array(classes)[y])
    assert clf.reject_label_ == label


def test_declined_samples_get_the_reject_label():
    clf = frozen()
    accepted, predicted = clf.accept(X[TEST]), clf.predict(X[TEST])
    np.testing.assert_array_equal(predicted[accepted], MODEL.predict(X[TEST])[accepted])
    assert set(predicted[~accepted]) == {-1}
    np.testing.assert_array_equal(clf.predict_proba(X[TEST]), MODEL.predict_proba(X[TEST]))
    np.testing.assert_array_equal(clf.decision_function(X[TEST]), MODEL.decision_function(X[TEST]))
    assert clf.score(X[TEST], Y[TEST]) == np.mean(accepted & (predicted == Y[TEST]))


@pytest.mark.parametrize("dtype", [str, object])
def test_text_labels(dtype):
    names = np.array(["a", "b", "c"], dtype=dtype)
    clf = SelectiveClassifier(LogisticRegression(), risk=0.1).fit(X[TRAIN], names[Y[TRAIN]])
    predicted = clf.predict(X[TEST])
    assert set(predicted) == {"a", "b", "c", "reject"}
    np.testing.assert_array_equal(predicted == "reject", ~clf.accept(X[TEST]))


def test_a_negative_class_is_not_taken_for_declined():
    clf = SelectiveClassifier(LogisticRegression(), risk=0.1).fit(X[TRAIN], Y[TRAIN] - 1)
    assert set(clf.predict(X[TEST])) == {-2, -1, 0, 1}


@pytest.mark.slow
def test_out_of_fold_confidence_and_a_classifier_of_all_samples():
    clf = SelectiveClassifier(LogisticRegression(), risk=0.1).fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_array_equal(clf.estimator_.coef_, MODEL.coef_)
    proba = cross_val_predict(
        LogisticRegression(), X[TRAIN], Y[TRAIN], cv=5, method="predict_proba"
    )
    accepted = proba.max(axis=1) > clf.threshold_
    assert clf.coverage_ == accepted.mean()
    assert clf.error_rate_ == (proba.argmax(axis=1) != Y[TRAIN])[accepted].mean()


def test_fit_params_are_cut_to_the_folds():
    class Recording(LogisticRegression):
        def fit(self, X, y, tag=None):
            assert len(tag) == len(X)
            np.testing.assert_array_equal(tag, X[:, 0])
            return super().fit(X, y)

    SelectiveClassifier(Recording(), risk=0.1).fit(X[TRAIN], Y[TRAIN], tag=X[TRAIN, 0])


@pytest.mark.slow
def test_works_in_a_grid_search_and_at_the_end_of_a_pipeline():
    clf = SelectiveClassifier(LogisticRegression(), risk=0.2)
    pipe = make_pipeline(StandardScaler(), clf)
    search = GridSearchCV(pipe, {"selectiveclassifier__estimator__C": [1e-3, 1.0]}, cv=3)
    search.fit(X[TRAIN], Y[TRAIN])
    assert search.best_params_ == {"selectiveclassifier__estimator__C": 1.0}


def test_decision_values_alone_are_enough():
    clf = SelectiveClassifier(LinearSVC(), risk=0.2, confidence="max_logit")
    clf.fit(X[TRAIN], Y[TRAIN])
    assert not hasattr(clf, "predict_proba")
    with pytest.raises(ValueError, match=r"^estimator must have predict_proba .*max_logit"):
        SelectiveClassifier(LinearSVC()).fit(X[TRAIN], Y[TRAIN])


@pytest.mark.slow
@pytest.mark.parametrize("confidence", ["msp", "entropy", "margin", "max_logit", "energy"])
def test_what_has_one_score_for_two_classes_is_calibrated_first(confidence):
    two = Y == 0
    needs = "a logit for every class" if confidence in ("max_logit", "energy") else "predict_proba"
    message = (
        rf"^estimator must have {needs} .* got LinearSVC, which has none; PostHocCali\w+\(Lin"
    )
    with pytest.raises(ValueError, match=message) as caught:
        SelectiveClassifier(LinearSVC(), confidence=confidence).fit(X[TRAIN], two[TRAIN])
    assert "max_logit takes" not in str(caught.value)
    answered = SelectiveClassifier(PostHocCalibratedClassifier(LinearSVC()), risk=0.2)
    assert answered.fit(X[TRAIN], two[TRAIN]).coverage_ > 0.8


@pytest.mark.parametrize("model", [GaussianNB(), LogisticRegression()])
def test_logits_must_be_there_for_every_class(model):
    two = Y[TRAIN] == 0
    clf = SelectiveClassifier(model, confidence="energy")
    with pytest.raises(ValueError, match=r"^confidence must be 'msp', 'entropy', 'margin'"):
        clf.fit(X[TRAIN], two)


def test_nothing_is_answered_where_the_limit_cannot_be_kept():
    with pytest.warns(SkcalibWarning, match="No threshold keeps the error rate below risk=0.001"):
        clf = frozen(risk=0.001)
    assert not clf.accept(X[TEST]).any()
    assert (clf.threshold_, clf.coverage_, clf.risk_bound_) == (np.inf, 0, 1)
    assert np.isnan(clf.error_rate_)


# Labels that alternate have nothing to do with the probabilities.
@pytest.mark.filterwarnings("ignore:predict_proba of LogisticRegression seems to belong to rows")
@pytest.mark.parametrize(("risk", "least"), [(0.05, 45), (0.02, 114), (0.01, 230)])
def test_as_many_samples_as_a_warning_asks_for_are_enough_where_none_is_wrong(risk, least):
    X = np.linspace(-1, 1, 1000)[:, None]
    y = (X[:, 0] > 0).astype(int)
    clf = SelectiveClassifier(FrozenEstimator(LogisticRegression().fit(X, y)), risk=risk)
    some = np.random.default_rng(0).choice(1000, least, replace=False)
    with pytest.warns(SkcalibWarning, match=f"declined; use at least {least} samples"):
        clf.fit(X[some[1:]], y[some[1:]])
    assert clf.fit(X[some], y[some]).coverage_ > 0
    with pytest.warns(SkcalibWarning, match="declined; use more samples, a larger risk, or"):
        clf.fit(X, np.arange(1000) % 2)


@pytest.mark.parametrize(
    ("options", "fit_params", "message"),
    [
        ({}, {"sample_weight": np.ones(1000)}, "sample_weight must be None, got weights"),
        ({"reject_label": 2}, {}, "reject_label must not be one of the classes, got 2"),
        ({"reject_label": "no"}, {}, "reject_label must be of the type of the labels, int64"),
        ({"risk": 0.0}, {}, "risk"),
        ({"confidence_level": 1}, {}, "confidence_level"),
        ({"confidence": "loud"}, {}, "confidence"),
        ({"cv": []}, {}, "cv must leave out samples, got folds that leave out none"),
    ],
)
def test_bad_input(options, fit_params, message):
    clf = SelectiveClassifier(LogisticRegression(), **options)
    with pytest.raises(ValueError, match=message):
        clf.fit(X[TRAIN], Y[TRAIN], **fit_params)


def test_groups_count_with_a_frozen_classifier_too():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (rng.random(80) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int)
    trained = LogisticRegression().fit(X[:20], y[:20])
    groups = np.repeat([None, *(f"patient {i}" for i in range(1, 60))], 10)
    rows, labels = X[20:].repeat(10, axis=0), y[20:].repeat(10)
    near = rows + 0.01 * rng.normal(size=rows.shape)
    model = SelectiveClassifier(FrozenEstimator(trained), risk=0.2)
    blind = model.fit(near, labels).coverage_
    assert model.fit(near, labels, groups=groups).coverage_ < blind
    # Copies of a table are no further evidence.
    once = model.fit(X[20:], y[20:])
    expected = once.coverage_, once.risk_bound_
    with pytest.warns(SkcalibWarning, match="540 of the 600 rows of X equal"):
        copied = model.fit(rows, labels)
    assert (copied.coverage_, copied.risk_bound_) == pytest.approx(expected, abs=0.05)


def test_a_confidence_that_is_fitted_is_judged_on_samples_it_has_not_seen():
    class Memory(BaseEstimator):
        """Sure of the samples that it was fitted on, which says nothing of others."""

        def fit(self, X, y=None):
            self.right_ = {row.tobytes() for row in X[y == (X[:, 0] > 0)]}
            return self

        def score_samples(self, X):
            return np.array([float(row.tobytes() in self.right_) for row in X])

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(rng.random(400) < 0.6, X[:, 0] > 0, X[:, 0] <= 0)
    trained = FrozenEstimator(LogisticRegression().fit(X[:, :1].repeat(2, 1), X[:, 0] > 0))
    with pytest.warns(SkcalibWarning, match="every sample is declined"):
        SelectiveClassifier(trained, risk=0.1, confidence=Memory()).fit(X, y)


class Stated(ClassifierMixin, BaseEstimator):
    """Says of a sample what its first columns say."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.asarray(X)[:, : len(self.classes_)]

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def rare_population(n, seed):
    """Two classes, one of them rare, and a model that is too sure of the rare one."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-2.0, 2.0, n)
    p, said = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-1.5 * z - 0.5))
    return np.column_stack([1 - said, said]), np.array(["no", "yes"])[(rng.random(n) < p) * 1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No threshold keeps")
def test_a_limit_for_every_answer_holds_for_all_of_them_together():
    limits, delta = {"no": 0.05, "yes": 0.2}, 0.1
    new, y_new = rare_population(60_000, 0)
    exceeded, answered = 0, []
    for seed in range(200):
        X, y = rare_population(800, 1 + seed)
        frozen = FrozenEstimator(Stated().fit(X, y))
        careful = SelectiveClassifier(frozen, risk=limits, confidence_level=1 - delta).fit(X, y)
        taken, said = careful.accept(new), frozen.predict(new)
        rates = [
            np.mean(y_new[taken & (said == name)] != name) if (taken & (said == name)).any() else 0
            for name in limits
        ]
        exceeded += any(rate > limit for rate, limit in zip(rates, limits.values()))
        answered.append(taken.mean())
        assert (careful.risk_bound_ <= [0.05, 0.2]).all() or np.isinf(careful.threshold_).any()
    # Binomial(200, .1) is above 32 in 1 of 200 cases.
    assert exceeded <= 32
    assert np.mean(answered) > 0.2


def test_thresholds_of_classes_by_hand():
    """Each class is a problem of its own at its share of delta."""
    X, y = rare_population(800, 7)
    frozen = FrozenEstimator(Stated().fit(X, y))
    careful = SelectiveClassifier(frozen, risk={"yes": 0.3, "no": 0.04}, confidence_level=0.8).fit(
        X, y
    )
    said = frozen.predict(X)
    for k, (name, limit) in enumerate((("no", 0.04), ("yes", 0.3))):
        rows = said == name
        found = control_risk(X[rows].max(axis=1), y[rows] == name, risk=limit, delta=0.1)
        assert careful.threshold_[k] == found.threshold
        assert careful.risk_bound_[k] == found.bound
        np.testing.assert_array_equal(
            careful.accept(X)[rows], X[rows].max(axis=1) > found.threshold
        )
    assert careful.coverage_ == np.mean(careful.accept(X))
    assert careful.error_rate_ == np.mean(said[careful.accept(X)] != y[careful.accept(X)])
    cloned = clone(careful).fit(X, y)
    np.testing.assert_array_equal(cloned.predict(X), careful.predict(X))


def test_a_class_that_is_never_said_is_never_answered():
    X, y = rare_population(800, 7)
    X = np.column_stack([X, np.zeros(800)])
    y[:20] = "zoo"
    careful = SelectiveClassifier(
        FrozenEstimator(Stated().fit(X, y)), risk={"no": 0.2, "yes": 0.3, "zoo": 0.1}
    )
    with pytest.warns(SkcalibWarning, match=r"for the answers \['zoo'\] with the 800 samples"):
        careful.fit(X, y)
    assert np.isinf(careful.threshold_[2])
    assert careful.risk_bound_[2] == 1
    assert "zoo" not in careful.predict(X)


def test_a_class_that_is_left_out_is_never_answered():
    rng = np.random.default_rng(0)
    confidence = rng.beta(2, 1, 2000)
    right = rng.uniform(size=2000) < confidence
    X = np.column_stack([1 - confidence, confidence])
    model = FrozenEstimator(Stated().fit(X, right))
    careful = SelectiveClassifier(model, risk={True: 0.1}).fit(X, right)
    found = control_risk(
        confidence[confidence > 0.5], right[confidence > 0.5], risk=0.1, delta=0.1
    )
    assert careful.threshold_.tolist() == [np.inf, found.threshold]
    np.testing.assert_array_equal(careful.accept(X), confidence > found.threshold)
    assert careful.error_rate_ == np.mean(~right[careful.accept(X)]) < 0.1
    # One number answers "this is wrong" as well, and all answers together keep it.
    assert SelectiveClassifier(model, risk=0.1).fit(X, right).accept(X)[confidence < 0.1].any()


def test_limits_that_do_not_fit_the_classes():
    X, y = rare_population(100, 7)
    frozen = FrozenEstimator(Stated().fit(X, y))
    for risk in ({"no": 0.1, "maybe": 0.1}, {}):
        with pytest.raises(
            ValueError, match=r"risk must name one or more .* \['no', 'yes'\], got"
        ):
            SelectiveClassifier(frozen, risk=risk).fit(X, y)
    with pytest.raises(ValueError, match=r"risk must hold numbers in \(0, 1\), got 1.5 for 'yes'"):
        SelectiveClassifier(frozen, risk={"no": 0.1, "yes": 1.5}).fit(X, y)


def test_limits_of_classes_out_of_fold():
    X, y = make_classification(600, n_classes=3, n_informative=6, random_state=0)
    limits = {0: 0.3, 1: 0.3, 2: 0.3}
    careful = SelectiveClassifier(LogisticRegression(), risk=limits)
    with pytest.warns(SkcalibWarning, match=r"No threshold keeps .* for the answers \[1\]"):
        careful.fit(X, y)
    assert np.isinf(careful.threshold_).tolist() == [False, True, False]
    answered = careful.predict(X)
    assert 0 < np.mean(answered != careful.reject_label_) <= 1


def shares_of(labels, seed=0, n_people=5):
    """One label in ten is an opinion: some of five people say another class."""
    rng = np.random.default_rng(seed)
    votes = n_people * np.eye(3)[labels]
    differ = np.flatnonzero(rng.random(len(labels)) < 0.1)
    votes[differ] = rng.multinomial(n_people, [1 / 3] * 3, len(differ))
    return votes / n_people


def test_shares_of_people_count_those_who_disagree():
    shares = shares_of(Y[CALIBRATION])
    clf = SelectiveClassifier(FrozenEstimator(MODEL), risk=0.15)
    clf.fit(X[CALIBRATION], shares)
    accepted = clf.accept(X[CALIBRATION])
    agree = shares[np.arange(1000), MODEL.predict(X[CALIBRATION])]
    assert 0.5 < clf.coverage_ == accepted.mean() < 1
    assert clf.error_rate_ == pytest.approx(1 - agree[accepted].mean())
    assert clf.error_rate_ < clf.risk_bound_ <= 0.15
    new = shares_of(Y[TEST], seed=1)[np.arange(1000), MODEL.predict(X[TEST])]
    assert 1 - new[clf.accept(X[TEST])].mean() < 0.15


def test_shares_on_which_all_agree_are_labels():
    labels, certain = frozen(), SelectiveClassifier(FrozenEstimator(MODEL), risk=0.1)
    certain.fit(X[CALIBRATION], np.eye(3)[Y[CALIBRATION]])
    for name in ("threshold_", "coverage_", "error_rate_", "risk_bound_", "n_duplicates_"):
        assert getattr(certain, name) == getattr(labels, name)


def test_shares_have_the_columns_of_the_classes():
    pd = pytest.importorskip("pandas")
    shares = shares_of(Y[CALIBRATION])
    plain = SelectiveClassifier(FrozenEstimator(MODEL), risk=0.15).fit(X[CALIBRATION], shares)
    frame = pd.DataFrame(shares[:, [2, 0, 1]], columns=[2, 0, 1])
    named = SelectiveClassifier(FrozenEstimator(MODEL), risk=0.15).fit(X[CALIBRATION], frame)
    assert named.threshold_ == plain.threshold_
    assert named.error_rate_ == pytest.approx(plain.error_rate_)
    with pytest.raises(
        ValueError, match="y must hold a fraction for every class of the classifier"
    ):
        plain.fit(X[CALIBRATION], np.full((1000, 2), 0.5))
    assert plain.threshold_ == named.threshold_


@pytest.mark.slow
def test_shares_with_a_limit_for_every_answer_and_in_groups():
    shares, limits = shares_of(Y[CALIBRATION]), {0: 0.2, 1: 0.25, 2: 0.3}
    frozen = FrozenEstimator(MODEL)
    clf = SelectiveClassifier(frozen, risk=limits, confidence_level=0.7).fit(
        X[CALIBRATION], shares
    )
    said, sure = MODEL.predict(X[CALIBRATION]), MODEL.predict_proba(X[CALIBRATION]).max(axis=1)
    for k, limit in limits.items():
        rows = said == k
        found = control_risk(sure[rows], shares[rows, k], risk=limit, delta=0.1)
        assert clf.threshold_[k] == found.threshold
        assert clf.risk_bound_[k] == found.bound
    apart = SelectiveClassifier(frozen, risk=0.2).fit(X[CALIBRATION], shares)
    together = clone(apart)
    with pytest.warns(SkcalibWarning, match="every sample is declined"):
        together.fit(X[CALIBRATION], shares, groups=np.arange(1000) // 100)
    assert together.coverage_ == 0 < apart.coverage_


@pytest.mark.parametrize(
    "options", [{"estimator": LogisticRegression()}, {"confidence": RMDScorer()}]
)
def test_nothing_is_fitted_to_shares(options):
    clf = SelectiveClassifier(**{"estimator": FrozenEstimator(MODEL), **options})
    with pytest.raises(ValueError, match="y must hold one label for every sample to fit"):
        clf.fit(X[CALIBRATION], shares_of(Y[CALIBRATION]))


@pytest.mark.slow
@pytest.mark.parametrize("trained", [True, False])
def test_a_threshold_on_the_samples_of_the_calibrator_brings_a_warning(trained, recwarn):
    model = FrozenEstimator(MODEL) if trained else LogisticRegression()
    calibrated = PostHocCalibratedClassifier(model, "temperature")
    calibrated.fit(X[CALIBRATION], Y[CALIBRATION])
    clf = SelectiveClassifier(FrozenEstimator(calibrated), risk=0.1)
    clf.fit(X[TEST], Y[TEST])
    assert len(recwarn) == 0
    with pytest.warns(SkcalibWarning, match="100% of the samples of fit are those that the froz"):
        clf.fit(X[CALIBRATION][::-1], Y[CALIBRATION][::-1])
    stored = pickle.loads(pickle.dumps(calibrated))
    with pytest.warns(SkcalibWarning, match="Pass other samples, or the classifier without Froz"):
        SelectiveClassifier(FrozenEstimator(stored), risk=0.1).fit(X[1000:1300], Y[1000:1300])
    # Out-of-fold, every sample is left out.
    SelectiveClassifier(
        PostHocCalibratedClassifier(LogisticRegression(), "temperature"), risk=0.1
    ).fit(X[CALIBRATION], Y[CALIBRATION])
    assert len(recwarn) == 0


@pytest.mark.filterwarnings("ignore:.* rows of X equal an earlier one")
@pytest.mark.parametrize("n_columns", [3, 8])
def test_equal_answers_of_other_people_are_no_samples_seen_before(n_columns):
    rng = np.random.default_rng(0)
    answers = rng.integers(3, size=(900, n_columns)).astype(float)
    y = (answers.sum(axis=1) + rng.normal(size=900) > n_columns).astype(int)
    model = LogisticRegression().fit(answers[:300], y[:300])
    calibrated = PostHocCalibratedClassifier(FrozenEstimator(model), "sigmoid")
    calibrated.fit(answers[300:700], y[300:700])
    clf = SelectiveClassifier(FrozenEstimator(calibrated), risk=0.3)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*samples of fit are those")
        clf.fit(answers[700:], y[700:])
    assert clf.coverage_ > 0


def test_a_rare_class_that_is_never_the_answer_is_named():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 2))
    y = np.where(rng.random(4000) < expit(1.5 * x[:, 0] - 6), "fraud", "other")
    assert 5 <= (y == "fraud").sum() < 80
    message = "'fraud' is never the answer: .* MinimumCostClassifier weighs the costs"
    with pytest.warns(SkcalibWarning, match=message):
        clf = SelectiveClassifier(LogisticRegression(), risk=0.05).fit(x, y)
    assert set(clf.predict(x)) == {"other"}
