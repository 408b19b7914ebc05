"""Rounds: judges are fitted, the noise is explained, labels are believed, judges are refitted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ._judges import Judge
from ._noise_model import (
    Choice,
    Explained,
    LabelLikelihood,
    NoiseFit,
    choose,
    explain,
    pool,
    rows_to_fit,
    spread_of,
)

# Samples a class at which the probabilities before all refits count as much as those after.
# CLINC150, 5 samples a class, calibration error after, and of the mean: 40 % random flips .101,
# .051; 20 % nearest-class flips .075, .048. With 20 samples, 40 % random: .006, .010.
_WEIGHT_OF_FIRST = 5.0
# A refit to labels that have hardly changed would say the same.
_FEWEST_CHANGED = 0.002
_LEAST_OF_RATE = 0.9
# Stands for an infinite distance: beyond it no probability is left, and 0 times it is 0.
_FAR = 1e6
_BLOCK_ELEMENTS = 2**19


class Given(NamedTuple):
    """What is to be judged, and who judges."""

    codes: NDArray[np.intp]  # labels as positions among the classes
    classes: NDArray
    weight: NDArray[np.float64]
    verified: NDArray[np.bool_]
    judges: dict[str, Judge]


class Round:
    """What the judges say after a fit to the labels believed, and what explains those given."""

    def __init__(self, given: Given, believed: NDArray[np.intp], *, mixed: bool) -> None:
        self.given, self.believed, classes = given, believed, given.classes
        labels = classes[believed]
        self.distances = [
            _excess(judge.distances(labels, classes)) for judge in given.judges.values()
        ]
        # Distances take all classes for equally frequent; how far frequencies count is fitted.
        size = np.bincount(given.codes, given.weight, len(classes))
        frequency = (size + 1.0) / (size.sum() + len(classes))
        self.distances.append(-2.0 * np.log(frequency)[None])
        rows = rows_to_fit(given.weight, len(classes))
        self.likelihood = LabelLikelihood(
            self._some(rows), given.codes[rows], given.weight[rows], given.verified[rows]
        )
        self.choice: Choice = choose(self.likelihood, mixed=mixed)

    def posterior(self, fit: NoiseFit) -> NDArray:
        """Return the probability of every class to be the true one, (n_samples, n_classes)."""
        result = np.empty_like(self.distances[0])
        for rows in self._blocks():
            result[rows] = self._explained(rows, fit).posterior
        return result

    def judged(self, fit: NoiseFit) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return margins of the pooled distances, and log-losses of the pooled belief."""
        margin, loss = np.empty((2, len(self.given.codes)))
        for rows in self._blocks():
            pooled = pool(self._some(rows), fit.weights)
            own = np.take_along_axis(pooled, self.given.codes[rows, None], axis=1)[:, 0]
            smallest = pooled.min(axis=1, keepdims=True)
            margin[rows] = own - smallest[:, 0]
            total = np.exp(-0.5 * (pooled - smallest)).sum(axis=1)
            loss[rows] = 0.5 * margin[rows] + np.log(total)
        return margin, loss

    def shares(self, fit: NoiseFit) -> dict[str, float]:
        """Return how much every judge moves the pooled distances; the sum is one."""
        n_rows = 1 + _BLOCK_ELEMENTS // len(self.given.classes)
        spread = []
        for judge, weight in zip(self.distances[:-1], fit.weights):
            spread.append(weight * spread_of(judge[:n_rows]))
        total = sum(spread) or 1.0
        return {name: part / total for name, part in zip(self.given.judges, spread)}

    def agreement(self, fit: NoiseFit) -> float:
        """Return how often the pooled judges believe in the given label most."""
        part = self.likelihood
        nearest = pool(part.distances, fit.weights).argmin(axis=1)
        return float(part.weight @ (nearest == part.codes)) / part.total

    def _blocks(self) -> Iterator[slice]:
        n_samples, n_classes = self.distances[0].shape
        step = max(1, _BLOCK_ELEMENTS // n_classes)
        return (slice(start, start + step) for start in range(0, n_samples, step))

    def _some(self, rows: slice | NDArray[np.intp]) -> list[NDArray]:
        return [d if len(d) == 1 else d[rows] for d in self.distances]

    def _explained(self, rows: slice, fit: NoiseFit) -> Explained:
        given = self.given
        return explain(
            self._some(rows), given.codes[rows], given.verified[rows], fit.weights, fit.flips
        )


def _excess(distances: NDArray) -> NDArray:
    """Return how much farther the classes are than the nearest one: all that counts."""
    return np.minimum(distances - distances.min(axis=1, keepdims=True), _FAR)


class Judged(NamedTuple):
    """The last round that was kept."""

    last: Round
    fit: NoiseFit
    proba: NDArray  # (n_samples, n_classes)
    gain: float  # of flips between classes over a common rate; 0 without such flips


def judge(given: Given, n_refits: int, *, mixed: bool) -> Judged:
    """Judge the labels, and refit the judges to the labels believed.

    A flexible judge learns flips between classes and then foretells them; only judges that are
    fitted to believed labels show them. So the refits believe in flips first, and flips have to
    explain the labels better than doubt after them. Where they do not, the refits begin anew with
    flips at a common rate.
    """
    first = Round(given, given.codes, mixed=mixed)
    judged, won = _refitted(first, n_refits, mixed=first.choice.flips is not None)
    return judged if won else _refitted(first, n_refits, mixed=False)[0]


def _refitted(first: Round, n_refits: int, *, mixed: bool) -> tuple[Judged, bool]:
    """Refit the judges to the labels believed while that explains the given ones better.

    Also tells whether flips between classes, if there are to be any, win over doubt.
    """
    last, fit, value = first, *_explanation(first, mixed=mixed)
    before = proba = first.posterior(fit)
    lost = False
    for _ in range(n_refits):
        believed = proba.argmax(axis=1)
        if np.mean(believed != last.believed) < _FEWEST_CHANGED:
            break
        after = Round(first.given, believed, mixed=mixed)
        lost = mixed and not after.choice.flips_win
        if lost:
            break
        fit_after, value_after = _explanation(after, mixed=mixed)
        # A refit makes judges surer. One that finds fewer flips has traded flips for doubt.
        traded = not mixed and fit_after.rate < _LEAST_OF_RATE * fit.rate
        if value_after <= value or traded:
            break
        last, fit, value = after, fit_after, value_after
        proba = after.posterior(fit)
    if proba is not before:
        # A refit believes its own mistakes, the more the fewer samples a class has.
        given = first.given
        n_each = given.weight.sum() / len(np.unique(given.codes[given.weight > 0]))
        part = float(_WEIGHT_OF_FIRST / (_WEIGHT_OF_FIRST + n_each))
        before -= proba
        before *= part
        proba += before
    won = not lost and (not mixed or last.choice.flips_win)
    return Judged(last, fit, proba, last.choice.gain_of_flips if mixed else 0.0), won


def _explanation(judged: Round, *, mixed: bool) -> tuple[NoiseFit, float]:
    """Return what explains the labels, and the likelihood that refits have to raise."""
    choice = judged.choice
    if not mixed or choice.flips is None:
        return choice.common, choice.common.log_likelihood
    return choice.flips, choice.left_out + choice.gain_of_flips
