"""Columns of any kind reach the estimator inside every meta-estimator that takes them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags

from skcalib.difficulty import (
    DifficultyAwareClassifier,
    LossScorer,
    NoveltyDetector,
    RMDScorer,
    cross_val_difficulty,
)
from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder, find_label_issues
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.selection import (
    DifficultySelector,
    MinimumCostClassifier,
    SelectiveClassifier,
    SubsetClassifier,
)

RNG = np.random.default_rng(0)
N = 120
A = RNG.normal(size=N)
HALF = slice(N // 2)
REST = slice(N // 2, N)

# What the transformer inside makes of a column: numbers of which the labels follow.
COLUMNS = {
    "date": (pd.date_range("2020-01-01", periods=N, freq="7h"), lambda x: x.dt.hour),
    "zone": (
        pd.date_range("2020-01-01", periods=N, freq="7h", tz="Asia/Tokyo"),
        lambda x: x.dt.hour,
    ),
    "duration": (pd.to_timedelta(np.arange(N) % 24, unit="h"), lambda x: x.dt.total_seconds()),
    "category": (pd.Categorical(RNG.choice(["u", "v"], N)), lambda x: x.cat.codes),
    "text": (RNG.choice(np.array(["u", "vv"], object), N), lambda x: x.str.len()),
}


class Reads:
    """A function that can be pickled and cloned by identity."""

    def __init__(self, name):
        self.name = name

    def __deepcopy__(self, memo):
        return self

    def __call__(self, frame):
        return np.asarray(COLUMNS[self.name][1](frame["x"]), dtype=float)[:, None]


def data(name):
    X = pd.DataFrame({"a": A, "x": COLUMNS[name][0]})
    of_column = Reads(name)(X)[:, 0]
    score = 2 * (of_column - of_column.mean()) / of_column.std() + A
    return X, np.where(score + np.random.default_rng(1).normal(size=N) > 0, "yes", "no")


def steps(name):
    read = FunctionTransformer(Reads(name))
    return ColumnTransformer(
        [("x", make_pipeline(read, StandardScaler()), ["x"]), ("a", "passthrough", ["a"])]
    )


METAS = {
    "calibrated": lambda m, s, f: PostHocCalibratedClassifier(m, "temperature", cv=2),
    "calibrated frozen": lambda m, s, f: PostHocCalibratedClassifier(f, "temperature"),
    "selective": lambda m, s, f: SelectiveClassifier(m, risk=0.4, cv=2),
    "selective frozen": lambda m, s, f: SelectiveClassifier(f, risk=0.4),
    "finder": lambda m, s, f: LabelIssueFinder(m, cv=2),
    "cleaning": lambda m, s, f: LabelCleaningClassifier(m),
    "cost": lambda m, s, f: MinimumCostClassifier(m, [[0, 1], [5, 0]]),
    "cost frozen": lambda m, s, f: MinimumCostClassifier(f, [[0, 1], [5, 0]]),
    "aware": lambda m, s, f: DifficultyAwareClassifier(
        m, s, fit_param="logisticregression__sample_weight"
    ),
    "subset": lambda m, s, f: SubsetClassifier(m, DifficultySelector(s)),
    "loss": lambda m, s, f: LossScorer(m, cv=2),
    "novelty": lambda m, s, f: NoveltyDetector(s),
    "selector": lambda m, s, f: DifficultySelector(s),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("meta", METAS)
def test_a_column_that_the_estimator_inside_takes_reaches_it(meta, name):
    X, y = data(name)
    model = make_pipeline(steps(name), LogisticRegression())
    scorer = make_pipeline(steps(name), RMDScorer())
    frozen = FrozenEstimator(clone(model).fit(X[HALF], y[HALF]))
    part = REST if "frozen" in meta else slice(None)
    fitted = METAS[meta](model, scorer, frozen).fit(X[part], y[part])
    plain = clone(model).fit(X, y) if "frozen" not in meta else frozen
    if meta in ("calibrated", "calibrated frozen"):
        # A temperature keeps the predictions, which need the column.
        np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))
    elif hasattr(fitted, "predict_proba"):
        assert np.mean(fitted.predict_proba(X).argmax(axis=1) == (y == "yes")) > 0.75
    elif meta in ("finder", "selector"):
        assert len(getattr(fitted, "issues_", y)) == N
    else:
        ranked = fitted.predict if hasattr(fitted, "predict") else fitted.score_samples
        assert len(ranked(X)) == N


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("name", COLUMNS)
def test_functions_pass_columns_on(name):
    X, y = data(name)
    model = make_pipeline(steps(name), LogisticRegression())
    assert len(find_label_issues(model, X, y)) == N
    assert len(cross_val_difficulty(LossScorer(model, cv=2), X, y, cv=2)) == N


@pytest.mark.parametrize("dtype", ["datetime64[s]", "timedelta64[s]"])
def test_who_computes_with_the_columns_refuses_dates(dtype):
    X = np.arange(N).astype(dtype).reshape(-1, 2)
    y = np.arange(N // 2) % 2
    for model in (RMDScorer(), NoveltyDetector(RMDScorer())):
        with pytest.raises(TypeError, match="X must hold numbers, got dtype"):
            model.fit(X, y)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix, sp.csc_array])
def test_sparse_samples_find_their_issues_as_dense_ones_do(kind):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    X = np.where(rng.random((150, 12)) < 0.4, rng.normal(size=(150, 12)), 0.0)
    X[np.arange(150), y] += 2
    given = np.where(np.arange(150) % 15 == 0, (y + 1) % 3, y)
    found = LabelIssueFinder(LogisticRegression(), cv=3).fit(kind(X), given)
    dense = LabelIssueFinder(LogisticRegression(), cv=3).fit(X, given)
    np.testing.assert_allclose(found.label_proba_, dense.label_proba_, atol=1e-5)
    cleaned = LabelCleaningClassifier(LogisticRegression()).fit(kind(X), given)
    assert np.mean(cleaned.predict(kind(X)) == y) > 0.85
    assert get_tags(cleaned).input_tags.sparse


@pytest.mark.parametrize("meta", METAS)
def test_no_tag_promises_several_labels_a_sample(meta):
    tree, scorer = DecisionTreeClassifier(), RMDScorer()
    tags = get_tags(METAS[meta](tree, scorer, FrozenEstimator(tree)))
    assert tags.classifier_tags is None or not tags.classifier_tags.multi_label
    assert not tags.target_tags.multi_output
