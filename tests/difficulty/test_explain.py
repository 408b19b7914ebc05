"""explain_difficulty: rank correlation within class, against scipy and against permutations."""

import math
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata, spearmanr
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize

from skcalib.difficulty import explain_difficulty


class Given:
    """An embedder whose features are the images, and whose texts are given."""

    def __init__(self, **texts):
        self.texts = texts

    def transform(self, X):
        return np.asarray(X)

    def encode_text(self, texts):
        return np.array([self.texts[text] for text in texts])


RNG = np.random.default_rng(1)
TEXTS = {name: RNG.normal(size=4) for name in ("blurry", "dark", "crowd")}


def _similarity(X, name):
    return normalize(X) @ normalize(TEXTS[name][None])[0]


def _row(table, prompt):
    return table[table["prompt"] == prompt][0]


def test_one_class_is_spearman():
    X, difficulty = RNG.normal(size=(60, 4)), RNG.normal(size=60)
    difficulty += 3 * _similarity(X, "dark")
    table = explain_difficulty(Given(**TEXTS), difficulty, X, ["cat"] * 60, list(TEXTS))
    assert (np.diff(table["correlation"]) <= 0).all()
    assert table["prompt"][0] == "dark"
    for name in TEXTS:
        want = spearmanr(_similarity(X, name), difficulty)
        assert _row(table, name)["correlation"] == pytest.approx(want.statistic)
        if want.pvalue > 1e-3:
            assert _row(table, name)["p_value"] == pytest.approx(want.pvalue, abs=0.01)


def test_classes_are_compared_within_themselves():
    """A prompt that names the hard class, and nothing else, correlates only without classes."""
    X, y = RNG.normal(size=(400, 4)), np.repeat([0, 1], 200)
    X[y == 1] += 4 * TEXTS["crowd"]
    difficulty = RNG.normal(size=400) + 5 * y
    assert spearmanr(_similarity(X, "crowd"), difficulty).statistic > 0.5
    table = explain_difficulty(Given(**TEXTS), difficulty, X, y, ["crowd"])
    assert abs(table["correlation"][0]) < 0.12
    assert table["p_value"][0] > 0.05


def test_formula_and_p_value_against_all_permutations():
    """Two classes of 5 and 3 and one of 1: all 5! 3! permutations within class."""
    y = np.array(["a"] * 5 + ["b"] * 3 + ["c"])
    X, difficulty = RNG.normal(size=(9, 4)), RNG.normal(size=9).round(0)
    similarity = _similarity(X, "blurry")

    def ranks(values, label):
        r = rankdata(values[y == label]) / np.sum(y == label)
        return r - r.mean()

    a = np.concatenate([ranks(similarity, label) for label in "ab"])
    b = {label: ranks(difficulty, label) for label in "ab"}
    observed = np.corrcoef(a, np.concatenate(list(b.values())))[0, 1]
    null = [
        a @ np.array([*first, *second])
        for first in permutations(b["a"])
        for second in permutations(b["b"])
    ]
    table = explain_difficulty(Given(**TEXTS), difficulty, X, y, ["blurry"])
    assert table["correlation"][0] == pytest.approx(observed)
    z = a @ np.concatenate(list(b.values())) / np.std(null)
    assert table["p_value"][0] == pytest.approx(math.erfc(abs(z) / math.sqrt(2)))


def test_p_values_are_uniform_under_no_relation():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [30, 10, 20])
    p_values = [
        explain_difficulty(
            Given(**TEXTS), rng.exponential(size=60), rng.normal(size=(60, 4)), y, ["dark"]
        )["p_value"][0]
        for _ in range(200)
    ]
    assert 0.01 < np.mean(np.array(p_values) < 0.05) < 0.1
    assert abs(np.median(p_values) - 0.5) < 0.08


def test_a_scorer_sees_the_features_and_the_classes():
    X, y = RNG.normal(size=(30, 4)), np.arange(30) % 3

    class Scorer:
        def difficulty(self, features, labels):
            return features[:, 0] + labels

    given = explain_difficulty(Given(**TEXTS), X[:, 0] + y, X, y, list(TEXTS))
    np.testing.assert_array_equal(
        explain_difficulty(Given(**TEXTS), Scorer(), X, y, list(TEXTS)), given
    )


def test_a_structured_array_unless_a_frame_is_asked_for():
    X = RNG.normal(size=(10, 4))
    args = (Given(**TEXTS), RNG.normal(size=10), X, [0] * 10, list(TEXTS))
    table, frame = explain_difficulty(*args), explain_difficulty(*args, as_frame=True)
    assert table.dtype.names == ("prompt", "correlation", "p_value")
    pd.testing.assert_frame_equal(frame, pd.DataFrame(table))


@pytest.mark.parametrize(
    ("difficulty", "y", "prompts", "error", "message"),
    [
        (np.arange(5), [0] * 6, ["dark"], ValueError, r"shape \(6,\), .* got shape \(5,\)"),
        (np.ones((6, 1)), [0] * 6, ["dark"], ValueError, r"got shape \(6, 1\)"),
        (np.arange(6), [0] * 5, ["dark"], ValueError, "must have the same number of samples"),
        (np.full(6, np.nan), [0] * 6, ["dark"], ValueError, "difficulty contains NaN"),
        (np.ones(6), [0] * 6, ["dark"], ValueError, "got difficulties that are constant"),
        (np.arange(6), range(6), ["dark"], ValueError, "constant within every class"),
        (np.arange(6), [0] * 6, "dark", TypeError, "prompts must be a sequence of str"),
        (np.arange(6), [0] * 6, [], ValueError, "prompts must hold at least one"),
    ],
)
def test_bad_input(difficulty, y, prompts, error, message):
    X = RNG.normal(size=(6, 4))
    with pytest.raises(error, match=message):
        explain_difficulty(Given(**TEXTS), difficulty, X, list(y), prompts)


def test_constant_similarity():
    with pytest.raises(ValueError, match="got similarities that are constant"):
        explain_difficulty(Given(**TEXTS), np.arange(6), np.ones((6, 4)), [0] * 6, ["dark"])


def test_an_embedder_without_texts_is_named():
    pca = PCA(2).fit(RNG.normal(size=(6, 4)))
    with pytest.raises(TypeError, match=r"embedder must be .* got PCA, which has no encode_text"):
        explain_difficulty(pca, np.arange(6), np.ones((6, 4)), [0] * 6, ["dark"])
