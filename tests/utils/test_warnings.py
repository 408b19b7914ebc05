import inspect
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skcalib.difficulty import DifficultyAwareClassifier, NoveltyDetector, RMDScorer
from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder
from skcalib.posthoc import PostHocCalibratedClassifier, TemperatureScaling
from skcalib.selection import MaxEntropySelector, SelectiveClassifier, SubsetClassifier
from skcalib.utils import SkcalibWarning
from skcalib.utils._output import ignoring

RNG = np.random.default_rng(0)
Y = np.arange(90) % 3
X = RNG.normal(size=(90, 3)) + 4 * np.eye(3)[Y]
FITTED = GaussianNB().fit(X, Y)
SCORER = RMDScorer().fit(X, Y)


@pytest.mark.parametrize(
    "outer",
    [
        PostHocCalibratedClassifier(FITTED),
        SelectiveClassifier(FITTED, risk=0.4),
        SubsetClassifier(FITTED, MaxEntropySelector(GaussianNB(), fraction=0.9)),
        LabelCleaningClassifier(FITTED),
        LabelIssueFinder(FITTED),
        DifficultyAwareClassifier(FITTED, fit_param="sample_weight"),
        NoveltyDetector(SCORER),
        make_pipeline(PostHocCalibratedClassifier(FITTED)),
    ],
    ids=lambda outer: type(outer).__name__,
)
def test_a_fitted_estimator_is_trained_again_with_one_warning_at_the_line_of_the_user(outer):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outer.fit(X, Y)
        line = inspect.currentframe().f_lineno - 1
    caught = [w for w in caught if "will be trained again" in str(w.message)]
    assert len(caught) == 1
    assert caught[0].category is SkcalibWarning
    assert "FrozenEstimator" in str(caught[0].message)
    assert (caught[0].filename, caught[0].lineno) == (__file__, line)


def test_other_warnings_point_there_too():
    separable = np.array([[5.0, 0.0], [0.0, 5.0]] * 5)
    # The temperature of a calibrator, five frames down.
    for fit in (
        lambda: SelectiveClassifier(LogisticRegression(), risk=1e-3).fit(X, Y),
        lambda: TemperatureScaling().fit(-separable, [0, 1] * 5),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit()
        ours = [w for w in caught if issubclass(w.category, SkcalibWarning)]
        assert ours
        assert {w.filename for w in ours} == {__file__}


def test_warnings_of_others_are_ignored_for_a_while():
    def raised(text, category=UserWarning):
        with pytest.raises(category, match=text):  # filters make errors of warnings
            warnings.warn(text, category, stacklevel=1)

    before = list(warnings.filters)
    with ignoring(UserWarning, "Some"):
        warnings.warn("Some words", UserWarning, stacklevel=1)
        raised("Other words")
        raised("Some words", FutureWarning)
    raised("Some words")
    assert warnings.filters == before
