"""The evidence behind every finding, against its definition, case by case.

The parts are private: a sentence shows neither the gain nor the variance that decide about it.
"""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from scipy.special import softmax

from skcalib.metrics import _alignment
from skcalib.metrics._alignment import (
    _LEAST_GAIN,
    FALSE_ALARM,
    _Associations,
    _draw_half,
    _find_cycles,
    diagnose_rows,
    draw_rows,
    is_confidence,
    is_surely_positive,
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
        assert is_surely_positive(least * 1.001, variance, largest, n_ways)
        assert not is_surely_positive(least * 0.999, variance, largest, n_ways)
        assert not is_surely_positive(roots.min() * 1.001, variance, largest, n_ways)  # negative
    assert not is_surely_positive(0.0, 0.0, 0.0)


@pytest.mark.parametrize("n_columns", [1, 5, 100])
@pytest.mark.parametrize("most", [4, 50])
def test_drawn_rows_hold_no_more_numbers_than_asked_for(n_columns, most, monkeypatch):
    monkeypatch.setattr(_alignment, "_MOST_NUMBERS", most)
    for n_rows in (1, 9, 10, 11, 500):
        rows = np.arange(n_rows)[draw_rows(n_rows, n_columns)]
        assert (np.diff(rows) > 0).all()
        assert 1 <= len(rows) <= max(most / n_columns, 1)
        assert len(rows) == n_rows or n_rows * n_columns > most


def test_drawn_rows_are_from_everywhere(monkeypatch):
    monkeypatch.setattr(_alignment, "_MOST_NUMBERS", 2000)
    rows = draw_rows(10**6, 2)
    assert len(rows) > 990  # drawn with replacement
    assert 4e5 < rows.mean() < 6e5


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
        whole = _Associations(proba, codes)
        expected = self.matrix(proba, codes)
        np.testing.assert_allclose(whole.matrix, expected, atol=1e-12)
        order = whole.order()
        best = max(sum(expected[range(5), p]) for p in permutations(range(5)))
        assert expected[range(5), order].sum() == pytest.approx(best)

    def evidence(self, monkeypatch, whole, classes, columns):
        """What the inequality gets; None where the gain is too small for a word."""
        seen = []
        monkeypatch.setattr(_alignment, "is_surely_positive", lambda *given: seen.append(given))
        whole.surely_gain(np.array(classes), None if columns is None else np.array(columns), 7)
        return seen[0] if seen else None

    def gain(self, proba, codes, classes, columns):
        matrix = self.matrix(proba, codes)
        own = matrix[classes, classes].sum()
        return -own if columns is None else matrix[classes, columns].sum() - own

    @pytest.mark.slow
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
            monkeypatch, _Associations(proba, codes), [0, 1, 2], columns
        )
        assert gain == pytest.approx(gains.max())
        assert variance == pytest.approx(gains.var())
        assert largest == pytest.approx(np.abs(terms).max())
        assert n_ways == 7

    @pytest.mark.slow
    def test_gains_too_small_for_a_word(self, monkeypatch):
        proba, codes = self.draw(0, n=2000, k=2)
        wrong = proba[:, ::-1]
        for share in np.linspace(0, 1, 21):
            mixed = share * wrong + (1 - share) / 2
            whole = _Associations(mixed, codes)
            gain = self.gain(mixed, codes, [0, 1], [1, 0])
            found = self.evidence(monkeypatch, whole, [0, 1], [1, 0]) is not None
            assert found == (gain >= 2 * _LEAST_GAIN)
        # Of few samples, each alone moves its class by 1 / n.
        for n in range(4, 60, 4):
            codes = np.arange(n) % 2
            for share in np.linspace(0.51, 0.99, 13):
                proba = np.where(codes[:, None] == [1, 0], share, 1 - share)
                whole = _Associations(proba, codes)
                gain = self.gain(proba, codes, [0, 1], [1, 0])
                found = self.evidence(monkeypatch, whole, [0, 1], [1, 0]) is not None
                assert found == (gain >= 2 * max(_LEAST_GAIN, 3 / n))


def test_halves_are_of_every_class():
    codes = np.random.default_rng(0).integers(0, 5, 203)
    half = _draw_half(codes)
    for k in range(5):
        assert abs(half[codes == k].sum() - (~half)[codes == k].sum()) <= 1
    assert 0.3 < half[: len(half) // 2].mean() < 0.7  # at random


def test_cycles_of_all_permutations_of_five():
    for order in permutations(range(5)):
        expected = set()
        for start in range(5):
            orbit = [start]
            while order[orbit[-1]] != start:
                orbit.append(order[orbit[-1]])
            if len(orbit) > 1 and min(orbit) == start:
                expected.add(tuple(orbit))
        assert {tuple(c.tolist()) for c in _find_cycles(np.array(order))} == expected


def _rows_by_definition(proba, codes):
    """Labels of other rows, sample by sample, as the docstring of `diagnose_rows` has it."""
    n, k = proba.shape
    mean = [proba[:, j].mean() for j in range(k)]
    frequency = [(codes == j).mean() for j in range(k)]
    adapted = np.array([[p[j] * frequency[j] / mean[j] for j in range(k)] for p in proba])
    adapted = adapted / adapted.sum(axis=1)[:, None]
    centered = adapted - adapted.mean(axis=0)
    observed = np.array([centered[i, codes[i]] for i in range(n)])
    implied = np.array([sum(adapted[i] * centered[i]) for i in range(n)])
    missing = _alignment._LEAST_SHOWN * implied - observed
    error = observed.std() / np.sqrt(n)
    if observed.mean() > 2 * error or implied.mean() < _LEAST_GAIN:
        return None
    if not is_surely_positive(missing.mean(), missing.var() / n, np.abs(missing).max() / n):
        return None
    label = np.mean([proba[i, codes[i]] for i in range(n)])
    others = np.dot(frequency, mean)
    return "rows" if observed.mean() > -2 * error else "rows or columns", label, others


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3])
def test_rows_are_found_as_the_definition_has_it(k):
    rng = np.random.default_rng(k)
    n_found = {None: 0, "rows": 0, "rows or columns": 0}
    for number in range(240):
        n = int(np.exp(rng.uniform(np.log(10), np.log(1200))))
        logits = rng.uniform(0.3, 4) * rng.normal(size=(n, k)) + rng.normal(size=k)
        proba = softmax(logits, axis=1)
        codes = drawn(proba, rng)
        moved = rng.random(n) < rng.choice([0.7, 1.0])
        codes[moved] = rng.permutation(codes[moved])
        if number % 3 == 0:  # rows that say the contrary
            proba = np.roll(proba, 1, axis=1)
        given = proba[:, 1] if k == 2 and number % 2 else proba
        got, expected = diagnose_rows(given, codes), _rows_by_definition(proba, codes)
        assert (got is None) == (expected is None)
        if expected is not None:
            assert got.kind == "rows"
            lines, label, others = expected
            assert got.values["lines"] == lines
            assert got.values["label"] == pytest.approx(label)
            assert got.values["others"] == pytest.approx(others)
        n_found[expected and expected[0]] += 1
    assert min(n_found.values()) >= 5


def test_the_confidence_is_found_as_the_definition_has_it():
    rng = np.random.default_rng(0)
    n_found = 0
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
            and is_surely_positive(gains.mean(), gains.var() / n, np.abs(gains).max() / n)
            and of.mean() - rest.mean() < 2 * error
        )
        assert is_confidence(p, codes) == expected
        n_found += expected
    assert 50 < n_found < 350
    assert not is_confidence(np.full(40, 0.9), np.arange(40) % 2)  # the same for all
    for codes in (np.zeros(40, dtype=int), np.ones(40, dtype=int)):  # of one class
        assert not is_confidence(np.linspace(0.5, 1, 40), codes)
