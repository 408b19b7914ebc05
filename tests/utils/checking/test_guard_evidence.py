"""The evidence behind every warning, against its definition, case by case."""

import warnings
from itertools import combinations, permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from skcalib.utils.checking import _guard
from skcalib.utils.checking._guard import (
    _LEAST_GAIN,
    FALSE_ALARM,
    IN_PASSING,
    _Associations,
    _cycles,
    _half,
    doubt_of_columns,
    doubt_of_rows,
    drawn_rows,
    fits_better,
    knows_labels,
    refuse_negative_name,
    seems_confidence,
    surely_positive,
)


def drawn(proba, rng):
    """Labels that are drawn from the probabilities."""
    edges = proba.cumsum(axis=1)[:, :-1]
    return (edges < rng.random((len(proba), 1))).sum(axis=1)


@pytest.mark.parametrize("n_ways", [1, 5])
def test_the_least_sure_gain_solves_the_inequality_of_bernstein(n_ways):
    for variance, largest in product((1e-4, 0.3), (1e-3, 2.0)):
        # P(sum >= g) <= exp(-g^2 / (2 variance + 2 largest g / 3)), for each of the ways.
        log_odds = np.log(n_ways / FALSE_ALARM)
        roots = np.roots([1, -2 * largest * log_odds / 3, -2 * variance * log_odds])
        least = roots.max()
        assert surely_positive(least * 1.001, variance, largest, n_ways)
        assert not surely_positive(least * 0.999, variance, largest, n_ways)
        assert not surely_positive(roots.min() * 1.001, variance, largest, n_ways)  # negative
    assert not surely_positive(0.0, 0.0, 0.0)


def test_drawn_rows_hold_no_more_numbers_than_asked_for():
    for n_rows, n_columns, most in product((1, 9, 10, 11, 500), (1, 5, 100), (4, 50)):
        rows = np.arange(n_rows)[drawn_rows(n_rows, n_columns, most)]
        assert (np.diff(rows) > 0).all()
        assert 1 <= len(rows) <= max(most / n_columns, 1)
        assert len(rows) == n_rows or n_rows * n_columns > most
    rows = drawn_rows(10**6, 2, 2000)
    assert len(rows) > 990  # drawn with replacement
    assert 4e5 < rows.mean() < 6e5


def test_rows_are_drawn_in_proportion_to_their_weights():
    weight = np.tile([0.0, 0.3, 1.5, 3.0], 20_000)
    for most in (10**6, 4000):
        rows = drawn_rows(len(weight), 2, most, weight)
        assert (np.diff(rows) > 0).all()
        assert len(rows) <= most / 2
        part = np.bincount(rows % 4, minlength=4) / len(rows)
        np.testing.assert_allclose(part, [0, 1 / 16, 5 / 16, 10 / 16], atol=0.03)
    assert len(drawn_rows(9, 2, 100, np.full(9, 0.7))) == 9  # equal weights: all rows
    assert len(drawn_rows(9, 2, 100, np.zeros(9))) == 0
    # Samples without weight are as if they were not there, also among many columns.
    rare = np.zeros(100_000)
    rare[::500] = np.tile([1.0, 0.5], 100)
    rows = drawn_rows(len(rare), 2000, 2**14, rare)
    np.testing.assert_array_equal(rows // 500, drawn_rows(200, 2000, 2**14, rare[::500]))
    assert len(rows) > 4


class TestAssociations:
    def draw(self, seed, n=40, k=4):
        rng = np.random.default_rng(seed)
        proba = softmax(rng.normal(size=(n, k)), axis=1)
        return proba, drawn(proba, rng)

    def matrix(self, proba, codes):
        n, k = proba.shape
        found = np.zeros((k, k))
        for j, column in product(range(k), range(k)):
            mean, of_class = proba[:, column].mean(), codes == j
            if mean > 0 and of_class.any():
                z = (proba[of_class, column] - mean) / np.sqrt(mean)
                found[j, column] = z.sum() / (n * np.sqrt(of_class.mean()))
        return found

    @pytest.mark.parametrize("seed", range(3))
    def test_the_matrix_is_its_definition(self, seed):
        proba, codes = self.draw(seed)
        codes[codes == 3] = 0  # a class that does not occur
        proba = np.column_stack([proba, np.zeros(len(proba))])  # and a column of none
        whole = _Associations(proba, codes, None)
        expected = self.matrix(proba, codes)
        np.testing.assert_allclose(whole.matrix, expected, atol=1e-12)
        order = whole.order()
        best = max(sum(expected[range(5), p]) for p in permutations(range(5)))
        assert expected[range(5), order].sum() == pytest.approx(best)

    def evidence(self, monkeypatch, whole, classes, columns):
        """What the inequality gets; None where the gain is too small for a word."""
        seen = []
        monkeypatch.setattr(_guard, "surely_positive", lambda *given: seen.append(given))
        whole.surely_gain(np.array(classes), None if columns is None else np.array(columns), 7)
        return seen[0] if seen else None

    def gain(self, proba, codes, classes, columns):
        matrix = self.matrix(proba, codes)
        own = matrix[classes, classes].sum()
        return -own if columns is None else matrix[classes, columns].sum() - own

    @pytest.mark.parametrize("columns", [[1, 2, 0], [2, 0, 1], None])
    def test_variance_and_mean_over_all_orders_of_the_labels(self, columns, monkeypatch):
        # Four of each class, and columns of one mean.
        rows = np.array(
            [[0.9, 0.08, 0.02], [0.96, 0.03, 0.01], [0.85, 0.1, 0.05], [0.99, 0.01, 0]]
        )
        proba = np.concatenate([np.roll(rows, k, axis=1) for k in range(3)])
        z = (proba - 1 / 3) / np.sqrt(1 / 3)
        terms = (-z if columns is None else z[:, columns] - z) / (12 * np.sqrt(1 / 3))
        orders = []
        for zeros in combinations(range(12), 4):
            rest = np.setdiff1d(np.arange(12), zeros)
            for ones in combinations(rest, 4):
                orders.append(np.full(12, 2))
                orders[-1][list(zeros)], orders[-1][list(ones)] = 0, 1
        gains = np.array([terms[np.arange(12), order].sum() for order in orders])
        assert gains.mean() == pytest.approx(0, abs=1e-12)
        codes = orders[gains.argmax()]
        gain, variance, largest, n_ways = self.evidence(
            monkeypatch, _Associations(proba, codes, None), [0, 1, 2], columns
        )
        assert gain == pytest.approx(gains.max())
        assert variance == pytest.approx(gains.var())
        assert largest == pytest.approx(np.abs(terms).max())
        assert n_ways == 7

    @pytest.mark.parametrize("columns", [[3, 1], None])
    def test_samples_of_a_group_are_one(self, columns, monkeypatch):
        proba, codes = self.draw(5, n=60)
        if columns is None:
            proba = 0.5 - proba / 2  # far below chance
        else:
            proba[:, [1, 3]] = proba[:, [3, 1]]
        groups = np.repeat([0, 1, 2, 4, 5], 12)  # of six, one is not here
        classes = [1, 3]
        given = self.evidence(monkeypatch, _Associations(proba, codes, groups), classes, columns)
        frequency, mean = np.bincount(codes) / 60, proba.mean(axis=0)
        terms = np.zeros(60)
        for i, code in enumerate(codes):
            if code in classes:
                own = (proba[i, code] - mean[code]) / np.sqrt(mean[code])
                other = 0.0
                if columns is not None:
                    column = columns[classes.index(code)]
                    other = (proba[i, column] - mean[column]) / np.sqrt(mean[column])
                terms[i] = (other - own) / (60 * np.sqrt(frequency[code]))
        of_group = np.array([terms[groups == g].sum() for g in np.unique(groups)])
        assert given[0] == pytest.approx(of_group.sum())
        assert given[1] == pytest.approx(5 * of_group.var(ddof=1))
        apart = np.abs(of_group - of_group.mean()) * np.sqrt(5 / 4)
        assert given[2] == pytest.approx(apart.max())

    def test_gains_too_small_for_a_word(self, monkeypatch):
        proba, codes = self.draw(0, n=2000, k=2)
        wrong = proba[:, ::-1]
        for share in np.linspace(0, 1, 21):
            mixed = share * wrong + (1 - share) / 2
            whole = _Associations(mixed, codes, None)
            gain = self.gain(mixed, codes, [0, 1], [1, 0])
            told = self.evidence(monkeypatch, whole, [0, 1], [1, 0]) is not None
            assert told == (gain >= 2 * _LEAST_GAIN)
        # Of few samples, each alone moves its class by 1 / n.
        for n in range(4, 60, 4):
            codes = np.arange(n) % 2
            for share in np.linspace(0.51, 0.99, 13):
                proba = np.where(codes[:, None] == [1, 0], share, 1 - share)
                whole = _Associations(proba, codes, None)
                gain = self.gain(proba, codes, [0, 1], [1, 0])
                told = self.evidence(monkeypatch, whole, [0, 1], [1, 0]) is not None
                assert told == (gain >= 2 * max(_LEAST_GAIN, 3 / n))


def test_halves_are_of_every_class_and_of_whole_groups():
    codes = np.random.default_rng(0).integers(0, 5, 203)
    half = _half(codes, None)
    for k in range(5):
        assert abs(half[codes == k].sum() - (~half)[codes == k].sum()) <= 1
    assert 0.3 < half[: len(half) // 2].mean() < 0.7  # at random
    groups = codes * 7 % 11
    of_groups = [np.unique(_half(codes, groups)[groups == g]) for g in np.unique(groups)]
    assert all(len(values) == 1 for values in of_groups)
    assert {bool(values[0]) for values in of_groups} == {True, False}


def test_cycles_of_all_permutations_of_five():
    for order in permutations(range(5)):
        expected = set()
        for start in range(5):
            orbit = [start]
            while order[orbit[-1]] != start:
                orbit.append(order[orbit[-1]])
            if len(orbit) > 1 and min(orbit) == start:
                expected.add(tuple(orbit))
        assert {tuple(c.tolist()) for c in _cycles(np.array(order))} == expected


def _doubt_by_definition(proba, codes, groups):
    """Labels of other rows, sample by sample, as the docstring of `doubt_of_rows` has it."""
    n, k = proba.shape
    mean = [proba[:, j].mean() for j in range(k)]
    frequency = [(codes == j).mean() for j in range(k)]
    adapted = np.array([[p[j] * frequency[j] / mean[j] for j in range(k)] for p in proba])
    adapted = adapted / adapted.sum(axis=1)[:, None]
    apart = adapted - adapted.mean(axis=0)
    known = np.array([apart[i, codes[i]] for i in range(n)])
    stated = np.array([sum(adapted[i] * apart[i]) for i in range(n)])
    missing = _guard._LEAST_SHOWN * stated - known
    if groups is not None:
        missing = np.array([missing[groups == g].sum() for g in np.unique(groups)])
        known = np.array([known[groups == g].sum() for g in np.unique(groups)])
    error = known.std() / np.sqrt(len(known))
    if known.mean() > 2 * error or stated.mean() < _LEAST_GAIN:
        return None
    m = len(missing)
    sure = surely_positive(missing.mean(), missing.var() / m, np.abs(missing).max() / m)
    if not sure:
        return None
    label = np.mean([proba[i, codes[i]] for i in range(n)])
    others = np.dot(frequency, mean)
    words = "rows" if known.mean() > -2 * error else "rows or columns"
    return f"{label:.2f}, those of other samples have {others:.2f}. Look for {words} in"


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("k", [2, 3])
def test_rows_are_told_as_the_definition_has_it(k, grouped):
    rng = np.random.default_rng(k)
    n_told = {None: 0, "rows in": 0, "rows or columns in": 0}
    for number in range(240):
        n = int(np.exp(rng.uniform(np.log(10), np.log(1200))))
        logits = rng.uniform(0.3, 4) * rng.normal(size=(n, k)) + rng.normal(size=k)
        proba = softmax(logits, axis=1)
        codes = drawn(proba, rng)
        moved = rng.random(n) < rng.choice([0.7, 1.0])
        codes[moved] = rng.permutation(codes[moved])
        if number % 3 == 0:  # rows that say the contrary
            proba = np.roll(proba, 1, axis=1)
        groups = rng.integers(0, max(2, n // 2), n) if grouped else None
        given = proba[:, 1] if k == 2 and number % 2 else proba
        got = doubt_of_rows(given, codes, groups=groups)
        expected = _doubt_by_definition(proba, codes, groups)
        assert (got is None) == (expected is None)
        if expected is not None:
            assert expected in got
        ending = None if expected is None else expected.partition("Look for ")[2]
        n_told[ending] += 1
    assert min(n_told.values()) >= 5


def test_the_confidence_is_told_as_the_definition_has_it():
    rng = np.random.default_rng(0)
    n_told = 0
    for _ in range(400):
        n = int(rng.integers(20, 400))
        p = rng.uniform(rng.choice([0.5, 0.49]), 1, n) ** rng.choice([1.0, 0.3])
        codes = (rng.random(n) < rng.choice([0.45, 0.55, 0.7]) + 0.2 * (p - p.mean())).astype(int)
        of, rest = p[codes == 1], p[codes == 0]
        error = np.sqrt(of.var() / len(of) + rest.var() / len(rest))
        gains = p - codes
        expected = (
            p.min() >= 0.5
            and codes.mean() <= 0.5 + 2 * np.sqrt(0.25 / n)
            and surely_positive(gains.mean(), gains.var() / n, np.abs(gains).max() / n)
            and of.mean() - rest.mean() < 2 * error
        )
        assert seems_confidence(p, codes) == expected
        n_told += expected
    assert 50 < n_told < 350
    assert not seems_confidence(np.full(40, 0.9), np.arange(40) % 2)  # the same for all
    for codes in (np.zeros(40, dtype=int), np.ones(40, dtype=int)):  # of one class
        assert not seems_confidence(np.linspace(0.5, 1, 40), codes)


def test_labels_that_show_most_of_what_is_claimed_are_known():
    # A part `share` of the knowledge is there: labels of the mix of p and its mean.
    rng = np.random.default_rng(0)
    proba = softmax(3 * rng.normal(size=(40_000, 6)) + rng.normal(size=6), axis=1)
    for share, known in ((1.0, True), (0.85, True), (0.65, False), (0.2, False), (0.0, False)):
        codes = drawn(share * proba + (1 - share) * proba.mean(axis=0), rng)
        assert knows_labels(proba, codes) == known
    # Too few samples to be sure of anything.
    assert not knows_labels(proba[:8], drawn(proba[:8], rng))


def test_columns_that_fit_better_are_those_of_the_labels():
    rng = np.random.default_rng(0)
    for n in (50, IN_PASSING):  # all samples, and some of them
        proba = softmax(3 * rng.normal(size=(n, 4)), axis=1)
        codes = drawn(proba, rng)
        others = np.where(rng.random(n) < 0.5, codes, (codes + 1) % 4)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fits_better(proba, codes, others)
            assert not fits_better(proba, others, codes)
            assert not fits_better(proba, codes, codes)
    proba[0] = np.nan
    assert not fits_better(proba[:1], np.array([0]), np.array([1]))


def test_a_series_called_after_the_negative_class_is_taken_where_the_other_would_be_told():
    rng = np.random.default_rng(0)
    taken = 0
    for _ in range(200):
        n = int(rng.integers(20, 200))
        p = rng.beta(*rng.uniform(0.5, 4, 2), size=n)
        y = (rng.random(n) < p).astype(int)
        if not 0 < y.sum() < n:
            continue
        told = doubt_of_columns(1 - p, y, np.arange(2))
        expected = told is not None and "probability of 0, not of 1" in told
        try:
            refuse_negative_name(pd.Series(p, name="prob_0"), p, y, np.arange(2))
        except ValueError:
            assert not expected
        else:
            assert expected
        taken += expected
    assert 40 < taken < 160
