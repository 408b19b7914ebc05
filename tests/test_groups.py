"""Samples that belong together: `groups` reach every fold, with and without metadata routing."""

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skcalib.difficulty import (
    DifficultyAwareClassifier,
    KNNScorer,
    LossScorer,
    NoveltyDetector,
    cross_val_difficulty,
)
from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder
from skcalib.posthoc import PostHocCalibratedClassifier, TemperatureScaling
from skcalib.selection import MaxEntropySelector, SelectiveClassifier, SubsetClassifier

RNG = np.random.default_rng(0)
# Every patient has five samples, which are the same but for a little noise.
PATIENTS = np.repeat(np.arange(60), 5)
Y = np.repeat(RNG.integers(0, 2, 60), 5)
X = np.repeat(RNG.normal(size=(60, 2)), 5, axis=0) + 0.01 * RNG.normal(size=(300, 2))
# It knows a patient whom it has seen, and nothing else: the labels do not depend on X.
MEMORY = KNeighborsClassifier(1)


def temperature(**options):
    return PostHocCalibratedClassifier(MEMORY, TemperatureScaling(), **options)


# What each learns of samples left out: near 0 where it has seen their patients.
LEARNERS = {
    "PostHoc": (temperature, lambda m: np.log(m.calibrator_.temperature_)),
    "Selective": (
        lambda **options: SelectiveClassifier(MEMORY, risk=0.6, **options),
        lambda m: m.error_rate_,
    ),
    "Finder": (
        lambda **options: LabelIssueFinder(MEMORY, n_refits=0, **options),
        lambda m: m.issues_["difficulty"].mean(),
    ),
    "Cleaning": (
        lambda **options: LabelCleaningClassifier(
            GaussianNB(), LabelIssueFinder(MEMORY, n_refits=0, **options)
        ),
        lambda m: m.finder_.issues_["difficulty"].mean(),
    ),
    "Aware": (
        lambda **options: DifficultyAwareClassifier(
            GaussianNB(), LossScorer(MEMORY, **options), fit_param="sample_weight"
        ),
        lambda m: m.difficulty_.mean() / 100,
    ),
    "Novelty": (
        lambda **options: NoveltyDetector(KNNScorer(1), contamination=0.5, **options),
        lambda m: -m.offset_,
    ),
}


@pytest.mark.filterwarnings("ignore:The temperature is at its:skcalib.utils.SkcalibWarning")
@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("cv", [3, GroupKFold(3)], ids=["number", "splitter"])
@pytest.mark.parametrize("name", LEARNERS)
def test_groups_reach_the_folds(name, cv, routing):
    build, learned = LEARNERS[name]
    # By patients in order, the folds of a number without groups: they separate no patient here.
    shuffled = RNG.permutation(len(X))
    rows = (X[shuffled], Y[shuffled])
    with sklearn.config_context(enable_metadata_routing=routing):
        # Listed folds are taken as they are; else the finder finds the twins by itself.
        listed = list(StratifiedKFold(3).split(*rows))
        blind = learned(build(cv=listed).fit(*rows))
        grouped = learned(build(cv=cv).fit(*rows, groups=PATIENTS[shuffled]))
    assert grouped > blind + 0.05


class Asks(ClassifierMixin, BaseEstimator):
    """A classifier that asks for groups, as if for folds of its own, and keeps what it got."""

    fits = []

    def fit(self, X, y, sample_weight=None, groups=None):
        self.fits.append((np.asarray(X)[:, -1].astype(int), groups))
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(X)

    def predict(self, X):
        return self.model_.predict(X)


OUTER = {
    "PostHoc": lambda inner: PostHocCalibratedClassifier(inner, TemperatureScaling(), cv=3),
    "Ensemble": lambda inner: PostHocCalibratedClassifier(
        inner, TemperatureScaling(), cv=3, ensemble=True
    ),
    "Selective": lambda inner: SelectiveClassifier(inner, risk=0.6, cv=3),
    "Subset": lambda inner: SubsetClassifier(inner, MaxEntropySelector(GaussianNB())),
    "Cleaning, soft": LabelCleaningClassifier,
    "Cleaning, drop": lambda inner: LabelCleaningClassifier(inner, action="drop"),
    "Cleaning, by it": lambda inner: LabelCleaningClassifier(
        GaussianNB(), LabelIssueFinder(inner, n_refits=1)
    ),
    "Aware": lambda inner: DifficultyAwareClassifier(inner, fit_param="sample_weight"),
    "Aware, by it": lambda inner: DifficultyAwareClassifier(
        GaussianNB(), LossScorer(inner, cv=3), fit_param="sample_weight"
    ),
    "Two levels": lambda inner: SelectiveClassifier(
        PostHocCalibratedClassifier(inner, TemperatureScaling(), cv=2), risk=0.6, cv=2
    ),
    "A search": lambda inner: PostHocCalibratedClassifier(
        GridSearchCV(inner, {}, cv=GroupKFold(2)), TemperatureScaling(), cv=2
    ),
}


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("in_pipeline", [False, True])
@pytest.mark.parametrize("name", OUTER)
def test_groups_reach_an_estimator_inside_that_asks_for_them(name, in_pipeline):
    Asks.fits.clear()
    rows = np.column_stack([X, np.arange(len(X))])
    of_pipeline = in_pipeline and name not in ("Subset", "Aware")  # they name the step
    inner = make_pipeline(FunctionTransformer(), Asks()) if of_pipeline else Asks()
    OUTER[name](inner).fit(rows, Y, groups=PATIENTS)
    assert Asks.fits
    for samples, groups in Asks.fits:
        if name != "A search" or groups is not None:  # a search needs them for its folds alone
            np.testing.assert_array_equal(groups, PATIENTS[samples])


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize(
    "difficulty",
    [
        lambda *rows, **groups: LossScorer(Asks(), cv=3).fit_difficulty(*rows, **groups),
        lambda *rows, **groups: cross_val_difficulty(LossScorer(Asks()), *rows, cv=3, **groups),
    ],
)
def test_scores_of_folds_hand_groups_on(difficulty):
    Asks.fits.clear()
    difficulty(np.column_stack([X, np.arange(len(X))]), Y, groups=PATIENTS)
    assert len(Asks.fits) >= 3
    for samples, groups in Asks.fits:
        np.testing.assert_array_equal(groups, PATIENTS[samples])


@pytest.mark.slow
def test_the_labels_that_a_sample_may_have_stay_together_without_a_warning():
    X, y = make_classification(300, flip_y=0.3, class_sep=0.5, random_state=0)
    inner = PostHocCalibratedClassifier(GaussianNB(), TemperatureScaling(), cv=3)
    LabelCleaningClassifier(inner).fit(X, y)  # every warning is an error


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
def test_with_metadata_routing_nothing_is_passed_that_nobody_gave():
    Asks.fits.clear()
    with sklearn.config_context(enable_metadata_routing=True):
        asks = Asks().set_fit_request(sample_weight=True)
        inner = PostHocCalibratedClassifier(asks, TemperatureScaling(), cv=3)
        LabelCleaningClassifier(inner).fit(X, Y)
    assert [groups for _, groups in Asks.fits] == [None] * 4


# By hand, the calibrator does not know of the groups.
@pytest.mark.filterwarnings("ignore:X seems to belong to rows")
def test_folds_by_hand():
    model = temperature(cv=3).fit(X, Y, groups=PATIENTS)
    scores = np.empty((len(X), 2))
    for train, test in StratifiedGroupKFold(3).split(X, Y, PATIENTS):
        scores[test] = KNeighborsClassifier(1).fit(X[train], Y[train]).predict_proba(X[test])
    by_hand = TemperatureScaling(input="proba").fit(scores, Y)
    assert model.calibrator_.temperature_ == by_hand.temperature_


def test_scorers():
    shuffled = RNG.permutation(len(X))
    rows, groups = (X[shuffled], Y[shuffled]), PATIENTS[shuffled]
    blind = LossScorer(MEMORY, cv=3).fit_difficulty(*rows)
    grouped = LossScorer(MEMORY, cv=3).fit_difficulty(*rows, groups=groups)
    assert grouped.mean() > blind.mean() + 5
    scorer = LossScorer(MEMORY)
    assert cross_val_difficulty(scorer, *rows, cv=3, groups=groups).mean() > blind.mean() + 5


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
def test_a_search_routes_groups_to_both_kinds_of_folds():
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            temperature(cv=GroupKFold(3)), {"response_method": ["auto"]}, cv=GroupKFold(2)
        ).fit(X, Y, groups=PATIENTS)
        assert np.log(search.best_estimator_.calibrator_.temperature_) > 1


def test_groups_that_nothing_reads_are_refused():
    folds = list(GroupKFold(3).split(X, Y, PATIENTS))
    with pytest.raises(ValueError, match=r"^groups must be None where cv lists the folds"):
        temperature(cv=folds).fit(X, Y, groups=PATIENTS)
    aware = DifficultyAwareClassifier(GaussianNB(), fit_param="sample_weight")
    with pytest.raises(ValueError, match=r"^groups must be None for a scorer without folds"):
        aware.fit(X, Y, groups=PATIENTS)


@pytest.mark.parametrize("estimator", [temperature(cv=3), LabelIssueFinder()])
def test_groups_of_another_length_are_refused(estimator):
    expected = rf"^groups must have one entry for every sample, {len(Y)}, got {len(Y) - 1}\.$"
    with pytest.raises(ValueError, match=expected):
        estimator.fit(X, Y, groups=PATIENTS[:-1])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_folds_in_processes_and_threads(backend):
    apart = X + 2 * Y[:, np.newaxis]
    model = PostHocCalibratedClassifier(GaussianNB(), TemperatureScaling(), cv=2)
    alone = model.fit(apart, Y).calibrator_.temperature_
    with joblib.parallel_backend(backend, n_jobs=2):
        assert model.fit(apart, Y).calibrator_.temperature_ == alone
        selective = SelectiveClassifier(GaussianNB(), risk=0.4, cv=2).fit(apart, Y)
        assert selective.accept(apart).any()


def test_a_frozen_scorer_is_not_trained():
    frozen = FrozenEstimator(LossScorer(GaussianNB()).fit(X[:100], Y[:100]))
    before = frozen.estimator.estimator_
    NoveltyDetector(frozen).fit(X, Y)
    assert frozen.estimator.estimator_ is before
