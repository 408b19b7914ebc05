"""What the tasks share: noise in labels, difficulties by source, the finder of wrong labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from skcalib.datasets import flip_labels
from skcalib.difficulty import difficulty_weights
from skcalib.labels import LabelIssueFinder

from .sources import DIFFICULTIES


def rivals_of(model, X, y):
    """Return the most probable wrong class of every sample, out of fold, and how probable."""
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    wrong = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
    wrong[np.arange(len(y)), y] = -1.0
    return wrong.argmax(axis=1), wrong.max(axis=1)


def noisy_labels(y, noise, seed, rivals=None):
    """Return labels with noise such as "U20", "I20" or "clean".

    `rivals` holds the wrong class that noise I flips to, and the probability of it.
    """
    if noise == "clean":
        return y
    fraction = int(noise[1:]) / 100
    if noise[0] == "U":
        return flip_labels(y, fraction=fraction, random_state=seed)[0]
    wrong, proba = rivals
    # In proportion to the probability, without replacement.
    order = np.log(proba) + np.random.default_rng([seed, 1]).gumbel(size=len(y))
    flipped = np.argsort(-order)[: round(fraction * len(y))]
    given = y.copy()
    given[flipped] = wrong[flipped]
    return given


@dataclass(kw_only=True)
class Scored:
    """Training samples with the labels given, the true ones, and features that score them."""

    given: np.ndarray
    true: np.ndarray
    features: np.ndarray | None
    seed: int
    _difficulty: dict = field(default_factory=dict)

    def difficulty(self, source):
        if source not in self._difficulty:
            self._difficulty[source] = DIFFICULTIES[source](self)
        return self._difficulty[source]

    def weights(self, source, *, temperature, scale="rank", control=None):
        """Difficulty weights; "shuffled" hands them to other samples, "inverted" turns them."""
        difficulty = self.difficulty(source)
        if control == "shuffled":
            difficulty = np.random.default_rng([self.seed, 2]).permutation(difficulty)
        elif control == "inverted":
            difficulty = -difficulty
        return difficulty_weights(difficulty, temperature=temperature, scale=scale)

    @cached_property
    def finder(self):
        return LabelIssueFinder().fit(self.features, self.given)


@dataclass(kw_only=True)
class Task(Scored):
    """Samples to learn from, to validate and to test on.

    `human` holds label distributions, `rotation` features that no label has shaped, `pretrained`
    those of a network that learned other images.
    """

    inputs: dict
    val_labels: dict
    test_labels: np.ndarray
    make_net: Callable
    human: np.ndarray | None = None
    rotation: np.ndarray | None = None
    pretrained: np.ndarray | None = None

    def net(self, **params):
        return self.make_net(**params)
