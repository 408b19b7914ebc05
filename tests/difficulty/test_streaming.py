"""Scorers of Gaussians add up: any tree over any chunks is one fit on all samples."""

import copy
import pickle
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import Normalizer
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalib.difficulty import RMDScorer

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 4, 120)
X = RNG.normal(size=(120, 5)) + 3 * np.eye(4, 5)[Y] + 7
NAMES = np.array(["ant", "bee", "cat", "dog"])[Y]
WEIGHT = RNG.integers(1, 4, 120).astype(float)


def _equal(scorer, expected, rows=slice(None)):
    np.testing.assert_array_equal(scorer.classes_, expected.classes_)
    for name in ("class_count_", "means_", "mean_", "covariance_", "background_covariance_"):
        np.testing.assert_allclose(getattr(scorer, name), getattr(expected, name), atol=1e-9)
    np.testing.assert_allclose(scorer.transform(X[rows]), expected.transform(X[rows]), atol=1e-7)


@st.composite
def _chunks(draw):
    """Cut the shuffled samples into chunks, some of them empty."""
    cuts = draw(st.lists(st.integers(0, 120), max_size=6))
    order = np.random.default_rng(draw(st.integers(0, 99))).permutation(120)
    return np.split(order, np.sort(cuts).astype(int))


def _tree(draw, parts):
    """Add parts in any order and with any parentheses."""
    while len(parts) > 1:
        i = draw(st.integers(0, len(parts) - 1))
        j = draw(st.integers(0, len(parts) - 2))
        left = parts.pop(i)
        parts.append(left + parts.pop(j))
    return parts[0]


@pytest.mark.slow
@settings(max_examples=40)
@given(chunks=_chunks(), data=st.data())
@pytest.mark.parametrize("normalize", [False, True])
def test_any_tree_over_any_chunks_is_one_fit(normalize, chunks, data):
    empty = RMDScorer(normalize=normalize)
    expected = clone(empty).fit(X, NAMES, sample_weight=WEIGHT)
    parts = [
        clone(empty).partial_fit(X[rows], NAMES[rows], sample_weight=WEIGHT[rows])
        for rows in chunks
    ]
    before = [copy.deepcopy(part) for part in parts]
    _equal(_tree(data.draw, list(parts)), expected)
    # Nothing that was added has changed.
    for part, old in zip(parts, before):
        assert vars(part).keys() == vars(old).keys()
        if hasattr(old, "classes_"):
            np.testing.assert_array_equal(part.means_, old.means_)


def test_sum_takes_any_number_and_the_unfitted_scorer_stands_for_no_samples():
    halves = [RMDScorer().fit(X[rows], Y[rows]) for rows in (slice(0, 60), slice(60, None))]
    expected = RMDScorer().fit(X, Y)
    _equal(sum(halves), expected)
    _equal(sum([RMDScorer(), *halves, RMDScorer()]), expected)
    _equal(reduce(RMDScorer.merge, halves, RMDScorer()), expected)
    alone = sum(halves[:1])
    assert alone is not halves[0]
    alone.partial_fit(X[60:], Y[60:])
    _equal(halves[0], RMDScorer().fit(X[:60], Y[:60]))
    assert not hasattr(RMDScorer() + RMDScorer(), "classes_")
    assert not hasattr(sum([RMDScorer()]), "classes_")


def test_the_parameters_are_those_of_the_left_one():
    left, right = RMDScorer(shrinkage=0.1), RMDScorer().fit(X, Y)
    total = left + right
    assert total.shrinkage == 0.1
    _equal(total, RMDScorer(shrinkage=0.1).fit(X, Y))
    assert (right + left).shrinkage is None
    total.merge(right)
    assert right.class_count_.sum() == 120


def test_names_of_features_come_along():
    frame = pd.DataFrame(X, columns=list("abcde"))
    total = sum([RMDScorer(), RMDScorer().fit(frame[:60], Y[:60])])
    assert total.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="other must have the features of this scorer"):
        total + RMDScorer().fit(X, Y)
    for other in (3, 0.5, "a", None, [1]):
        with pytest.raises(TypeError, match="unsupported operand"):
            total + other
    with pytest.raises(TypeError, match="unsupported operand"):
        1 + total


def test_chunks_without_samples():
    scorer = RMDScorer().partial_fit(X[:0], Y[:0]).partial_fit(X, Y).partial_fit(X[:0], Y[:0])
    _equal(scorer, RMDScorer().fit(X, Y))
    with pytest.raises(ValueError, match="features"):
        scorer.partial_fit(X[:0, :3], Y[:0])
    announced = RMDScorer().partial_fit(X[:0], Y[:0], classes=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="X must have held samples in some call of partial_fit"):
        announced.difficulty(X)
    with pytest.raises(ValueError, match="y must hold labels among"):
        announced.partial_fit(X[:2], [7, 8])
    _equal(announced.partial_fit(X, Y), RMDScorer().fit(X, Y))
    with pytest.raises(ValueError, match="classes must be those of the first call"):
        announced.partial_fit(X[:0], Y[:0], classes=[0, 1])
    with pytest.raises(ValueError, match="0 sample"):
        RMDScorer().fit(X[:0], Y[:0])


def test_state_in_read_only_buffers_can_be_updated():
    scorer = RMDScorer().fit(X[:60], Y[:60])
    scorer.difficulty(X)
    buffers = []
    state = pickle.dumps(scorer, protocol=5, buffer_callback=buffers.append)
    frozen = [memoryview(bytes(buffer.raw())) for buffer in buffers]
    assert frozen
    for update in (
        lambda restored: restored.partial_fit(X[60:], Y[60:]),
        lambda restored: restored.merge(RMDScorer().fit(X[60:], Y[60:])),
        lambda restored: restored + RMDScorer().fit(X[60:], Y[60:]),
        lambda restored: RMDScorer().fit(X[60:], Y[60:]) + restored,
    ):
        restored = pickle.loads(state, buffers=frozen)
        np.testing.assert_array_equal(restored.transform(X), scorer.transform(X))
        _equal(update(restored), RMDScorer().fit(X, Y))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("relative", [True, False])
def test_normalize_is_a_normalizer_before_the_scorer(relative, dtype):
    samples = X.astype(dtype)
    scorer = RMDScorer(relative=relative, normalize=True).fit(samples, NAMES, WEIGHT)
    unit = Normalizer().fit_transform(samples.astype(np.float64))
    by_hand = RMDScorer(relative=relative).fit(unit, NAMES, WEIGHT)
    tolerance = (
        {"rtol": 1e-6, "atol": 1e-8} if dtype is np.float64 else {"rtol": 0.02, "atol": 0.05}
    )
    np.testing.assert_allclose(
        scorer.difficulty(samples, NAMES), by_hand.difficulty(unit, NAMES), **tolerance
    )
    np.testing.assert_allclose(scorer.transform(samples), by_hand.transform(unit), **tolerance)
    np.testing.assert_allclose(
        scorer.leave_one_out_difficulty(samples, NAMES, WEIGHT),
        by_hand.leave_one_out_difficulty(unit, NAMES, WEIGHT),
        **tolerance,
    )
    # The length of a sample plays no part.
    np.testing.assert_allclose(
        scorer.difficulty(samples * dtype(8)), scorer.difficulty(samples), rtol=1e-4, atol=1e-3
    )


@pytest.mark.filterwarnings("ignore:The samples are too few")
@parametrize_with_checks(
    [RMDScorer(normalize=True)],
    expected_failed_checks=lambda _: {
        "check_estimators_dtypes": "X of the check, in integers, has a sample of zeros",
        "check_fit2d_1feature": "of one feature, unit length leaves the sign: no variance",
    },
)
def test_checks_of_scikit_learn_with_normalized_samples(estimator, check):
    check(estimator)


def test_normalized_scorers_stream_and_merge_among_themselves():
    whole = RMDScorer(normalize=True).fit(X, Y)
    stream = RMDScorer(normalize=True)
    for rows in np.array_split(np.arange(120), 7):
        stream.partial_fit(X[rows], Y[rows])
    _equal(stream, whole)
    with pytest.raises(ValueError, match="other must have normalize=True, as this scorer has"):
        stream + RMDScorer()


def test_a_sample_without_direction_is_refused():
    spoiled = X.copy()
    spoiled[17] = 0
    with pytest.raises(
        ValueError, match="0 everywhere where normalize is True, got one in row 17"
    ):
        RMDScorer(normalize=True).fit(spoiled, Y)
    scorer = RMDScorer(normalize=True).fit(X, Y)
    for call in (scorer.difficulty, scorer.transform, scorer.predict):
        with pytest.raises(ValueError, match="got one in row 17"):
            call(spoiled)
    with pytest.raises(ValueError, match="got one in row 17"):
        scorer.partial_fit(spoiled, Y)
    _equal(scorer, RMDScorer(normalize=True).fit(X, Y))


def test_a_memory_map_is_normalized_in_pieces(tmp_path):
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    scorer = RMDScorer(normalize=True).fit(mapped, Y)
    _equal(scorer, RMDScorer(normalize=True).fit(X.astype(np.float32), Y))


def test_finalized_scorers_are_pickled_with_what_scoring_needs(monkeypatch):
    scorer = RMDScorer().partial_fit(X, Y)
    expected = [copy.deepcopy(scorer).difficulty(X, Y), copy.deepcopy(scorer).difficulty(X)]
    sent = pickle.loads(pickle.dumps(scorer.finalize()))

    def computed(*_, **__):
        raise AssertionError("computed again")

    with monkeypatch.context() as patch:
        patch.setattr("skcalib.difficulty._mahalanobis.compute_class_distances", computed)
        patch.setattr("skcalib.difficulty._distances._Polynomial", computed)
        for values, other in zip([sent.difficulty(X, Y), sent.difficulty(X)], expected):
            np.testing.assert_array_equal(values, other)
    # More samples: other distances.
    sent.partial_fit(3 * X, Y)
    assert not np.allclose(sent.difficulty(X, Y), expected[0])


def test_unfitted_scorers_cannot_be_finalized():
    with pytest.raises(NotFittedError):
        RMDScorer().finalize()


def test_numbers_and_text_do_not_mix():
    scorer = RMDScorer().partial_fit(X, Y)
    with pytest.raises(ValueError, match=r"^y must hold labels of the type of those before, \[0,"):
        scorer.partial_fit(X, NAMES)
    with pytest.raises(ValueError, match=r"^other must hold labels of the type of those before"):
        scorer.merge(RMDScorer().partial_fit(X, NAMES))
    _equal(scorer, RMDScorer().fit(X, Y))
