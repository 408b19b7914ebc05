"""Laws of meta-estimators with all defaults, around a tree, neighbors and a Pipeline.

Sparse rows are dense ones, names of labels and of groups are names, weights are ratios, and what
belongs together stays on one side of a fold.
"""

from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.tree import DecisionTreeClassifier

from skcalib.labels import LabelIssueFinder
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.selection import SelectiveClassifier

X, CODES = make_blobs(60, n_features=3, centers=3, cluster_std=1.5, random_state=0)
X[np.abs(X) < 1] = 0  # something for a sparse matrix to leave out
Y = np.array([3, 5, 8])[CODES]
TEXTS = np.array(["a", "b", "c"])[CODES]
GROUPS = np.arange(len(Y)) // 3

MODELS = {
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "neighbors": KNeighborsClassifier(7),
    "pipeline": make_pipeline(MaxAbsScaler(), LogisticRegression()),
}
ESTIMATORS = {
    "calibrated": PostHocCalibratedClassifier,
    "selective": SelectiveClassifier,
    "finder": LabelIssueFinder,
}
# Few samples: not every model may answer.
pytestmark = pytest.mark.filterwarnings("ignore:No threshold keeps:skcalib.utils.SkcalibWarning")

CALIBRATED = [(name, model) for name in ("calibrated", "selective") for model in MODELS]
PAIRS = [*CALIBRATED, ("finder", "neighbors")]


@cache
def found(name, model, *, sparse=False, texts=False, groups="", scale=None):
    """Return the classes, and what the estimator says of the rows that it was fitted to."""
    rows, options = csr_array(X) if sparse else X, {}
    if groups:
        names = {"numbers": GROUPS, "texts": np.array([f"ward {k:02d}" for k in GROUPS])}
        options["groups"] = names[groups]
    if scale:
        options["sample_weight"] = scale * np.random.default_rng(0).lognormal(size=len(Y))
    fitted = ESTIMATORS[name](clone(MODELS[model])).fit(rows, TEXTS if texts else Y, **options)
    if name == "finder":
        return fitted.classes_, fitted.label_proba_
    said = [fitted.predict_proba(rows)]
    if name == "selective":
        said.append(fitted.accept(rows)[:, np.newaxis])
    return fitted.classes_, np.hstack(said)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model"), CALIBRATED)
def test_sparse_rows_are_dense_ones(name, model):
    # The finder takes a scorer of dense rows beside its model.
    expected = found(name, model)[1]
    np.testing.assert_allclose(found(name, model, sparse=True)[1], expected, atol=1e-6)
    if (name, model) == ("selective", "pipeline"):
        assert expected[:, -1].mean() > 0.5  # it does answer


@pytest.mark.parametrize(("name", "model"), PAIRS)
def test_names_of_labels_are_names(name, model):
    classes, said = found(name, model, texts=True)
    assert classes.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(said, found(name, model)[1], atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model"), [pair for pair in CALIBRATED if pair[1] != "pipeline"])
def test_names_of_groups_are_names(name, model):
    of_texts = found(name, model, groups="texts")[1]
    np.testing.assert_allclose(of_texts, found(name, model, groups="numbers")[1], atol=1e-12)


@pytest.mark.slow
def test_weights_are_ratios():
    # Of a tree: the penalty of a regression fades with the sum of weights.
    first, other = (found("calibrated", "tree", scale=scale)[1] for scale in (1, 1e3))
    np.testing.assert_allclose(first, other, atol=1e-6)
    assert np.abs(first - found("calibrated", "tree")[1]).max() > 1e-3  # and they do count


@pytest.mark.slow
def test_what_belongs_together_stays_on_one_side_of_a_fold():
    # Near copies share a label that their features say nothing about.
    rng, model = np.random.default_rng(1), KNeighborsClassifier(2)
    groups = rng.permutation(np.repeat(np.arange(40), 3))
    rows = rng.normal(size=(40, 3))[groups] + 0.01 * rng.normal(size=(120, 3))
    y, fresh = rng.integers(0, 2, 40)[groups], rng.normal(size=(400, 3))
    apart, together = (
        PostHocCalibratedClassifier(model).fit(rows, y, groups=given).predict_proba(fresh)
        for given in (None, groups)
    )
    assert apart.max(axis=1).mean() > 0.9
    assert together.max(axis=1).mean() < 0.65
    assert SelectiveClassifier(model).fit(rows, y).accept(fresh).mean() > 0.9
    assert not SelectiveClassifier(model).fit(rows, y, groups=groups).accept(fresh).any()
