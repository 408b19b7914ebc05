"""Agreement of annotators, by counts of its own."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score, recall_score

from skcalib.labels import annotator_agreement, votes_from_long

# Krippendorff's own example (2011): four observers, twelve units, missing values.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def draw(seed=0, n=120, n_classes=3, missing=0.2):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    right = rng.random((n, 4)) < [0.95, 0.9, 0.8, 0.6]
    votes = np.where(right, y[:, None], rng.integers(n_classes, size=(n, 4))).astype(float)
    votes[rng.random(votes.shape) < missing] = np.nan
    return votes, y


def count_alpha(votes):
    """Krippendorff's alpha, pair of votes by pair."""
    pairs, weights = [], []
    for row in votes:
        given = row[~np.isnan(row)]
        for i in range(len(given)):
            for j in range(len(given)):
                if i != j:
                    pairs.append((given[i], given[j]))
                    weights.append(1 / (len(given) - 1))
    pairs, weights = np.array(pairs), np.array(weights)
    classes, n = np.unique(pairs), weights.sum()
    of_class = np.array([weights[pairs[:, 0] == k].sum() for k in classes])
    expected = 1 - (of_class * (of_class - 1)).sum() / (n * (n - 1))
    return 1 - weights[pairs[:, 0] != pairs[:, 1]].sum() / n / expected


def test_alpha_of_krippendorffs_example():
    found = annotator_agreement(np.array(OBSERVERS, dtype=object).T)
    assert found.alpha == pytest.approx(0.743, abs=5e-4)
    assert found.alpha_low < 0.743 < found.alpha_high < 1


@pytest.mark.slow
def test_alpha_and_its_interval_are_those_of_pairs_and_samples_left_out():
    votes, _ = draw()
    found = annotator_agreement(votes, confidence_level=0.9)
    assert found.alpha == pytest.approx(count_alpha(votes))
    several = votes[(~np.isnan(votes)).sum(axis=1) > 1]
    n = len(several)
    logs = [np.log(1 - count_alpha(np.delete(several, i, axis=0))) for i in range(n)]
    error = np.sqrt((n - 1) * np.var(logs))
    low, high = 1 - (1 - found.alpha) * np.exp(np.array([1, -1]) * 1.6578 * error)  # t of n - 1
    assert [found.alpha_low, found.alpha_high] == pytest.approx([low, high], abs=1e-3)


def test_kappa_of_every_pair():
    votes, _ = draw(1)
    pairs = annotator_agreement(votes).pairs
    assert len(pairs) == 6
    assert (np.diff(pairs["kappa"]) <= 0).all()
    for row in pairs:
        both = votes[:, [row["annotator"], row["other"]]]
        both = both[~np.isnan(both).any(axis=1)].astype(int)
        assert row["n_samples"] == len(both)
        assert row["agreement"] == (both[:, 0] == both[:, 1]).mean()
        assert row["kappa"] == pytest.approx(cohen_kappa_score(*both.T))
        assert row["kappa_low"] < row["kappa"] < row["kappa_high"]


@pytest.mark.slow
def test_sensitivity_and_specificity_against_known_labels():
    votes, y = draw(2)
    table = annotator_agreement(votes, y, as_frame=True).annotators
    for (annotator, label), row in table.set_index(["annotator", "label"]).iterrows():
        given = ~np.isnan(votes[:, annotator])
        mine, true = votes[given, annotator] == label, y[given] == label
        assert row["sensitivity"] == pytest.approx(recall_score(true, mine))
        assert row["specificity"] == pytest.approx(recall_score(~true, ~mine))
        ends = binomtest(int((mine & true).sum()), int(true.sum())).proportion_ci()
        assert (row["sensitivity_low"], row["sensitivity_high"]) == pytest.approx(tuple(ends))
        assert row["n_with"] + row["n_without"] == given.sum()


def test_without_labels_the_majority_of_the_others_stands_for_them():
    votes = [["a", "a", "b"], ["b", "b", "b"], ["a", "b", None], ["b", "b", "a"]]
    table = annotator_agreement(votes).annotators
    first, last = table[table["annotator"] == 0], table[table["annotator"] == 2]
    # Of the first: the others are a tie in samples 0 and 3, b in 1, and b in 2.
    assert first["n_with"].tolist() == [0, 2]
    assert first["sensitivity"][1] == 0.5
    assert last["n_with"].tolist() == [1, 2]
    assert last["sensitivity"].tolist() == [0, 0.5]


def test_who_always_agrees_may_yet_disagree():
    same = np.array([[0, 0], [1, 1]] * 10)
    found = annotator_agreement(same)
    assert found.alpha == found.alpha_high == 1
    most = binomtest(0, 20).proportion_ci().high
    assert found.pairs["kappa"] == 1
    assert found.pairs["kappa_low"] == pytest.approx(1 - most / 0.5)
    assert found.alpha_low < 1


@pytest.mark.parametrize("votes", [[[1, 1], [1, 1]], [[1, None], [None, 2]]])
def test_without_anything_to_compare_there_is_no_alpha(votes):
    found = annotator_agreement(votes)
    assert np.isnan([found.alpha, found.alpha_low, found.alpha_high]).all()


def test_long_votes_names_and_booleans():
    votes, y = draw(3, n_classes=2)
    sample, annotator = np.nonzero(~np.isnan(votes))
    names = np.array(["ann", "bob", "cy", "di"])
    labels = votes[sample, annotator] == 1
    long = votes_from_long(sample, names[annotator], labels, index=range(len(votes)))
    found, other = annotator_agreement(long, y == 1), annotator_agreement(votes, y)
    assert found[:3] == other[:3]
    assert found.annotators["label"].dtype == bool
    assert set(found.annotators["annotator"]) == set(names)
    np.testing.assert_array_equal(found.annotators["sensitivity"], other.annotators["sensitivity"])


def test_true_labels_must_fit_the_votes():
    with pytest.raises(ValueError, match="y_true must have one label for each of the 2 samples"):
        annotator_agreement([[0, 1], [1, 1]], [0, 1, 1])
    never = annotator_agreement([[0, 1], [1, 1]], [2, 1]).annotators
    assert never["sensitivity"][never["label"] == 2].tolist() == [0, 0]
