"""Per-epoch sample prioritization: which rows the next epoch trains on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_array, check_is_fitted

from ..selection import MaxEntropySelector
from ..utils._blocks import top_rows
from ..utils._private import validate_parameters


@dataclass
class Prioritizer:
    """The choice of rows for every epoch of one fit.

    Parameters
    ----------
    selector : MaxEntropySelector
        Criterion and number of the rows.
    warmup_epochs : int
        Number of first epochs that train on all rows.
    refresh_every : int
        Number of epochs that share one choice.
    scores : ndarray of shape (n_rows,) or (n_epochs, n_rows), or None
        Scores that guide the choice; None for the probabilities of the net in training.
    """

    selector: MaxEntropySelector
    warmup_epochs: int
    refresh_every: int
    scores: NDArray[np.floating] | None
    chosen: NDArray[np.intp] | None = None

    def choose(
        self, rows: NDArray[np.intp], epoch: int, predict: Callable[[], NDArray[np.floating]]
    ) -> NDArray[np.intp]:
        """Return those of the training `rows` that epoch number `epoch`, from 0, trains on.

        `predict` gives the probabilities of `rows`; it is called only if they are needed.
        """
        late = epoch - self.warmup_epochs
        if late < 0:
            return rows
        if self.chosen is None or late % self.refresh_every == 0:
            scores, wanted = self._score(rows, epoch, predict), self.selector
            top = top_rows(scores, fraction=wanted.fraction, n_samples=wanted.n_samples)
            self.chosen = rows[top]
        return self.chosen

    def _score(
        self, rows: NDArray[np.intp], epoch: int, predict: Callable[[], NDArray[np.floating]]
    ) -> NDArray[np.floating]:
        if self.selector.criterion == "random":  # needs no model, and differs between epochs
            return torch.rand(len(rows)).numpy()
        if self.scores is None:
            return clone(self.selector).fit(predict()).scores_
        return (self.scores if self.scores.ndim == 1 else self.scores[epoch])[rows]


def make_prioritizer(net: Any, X: Any, n_rows: int, n_epochs: int) -> Prioritizer | None:
    """Return the prioritizer of a fit that ends after `n_epochs`, None without a selector."""
    if net.selector is None:
        if net.target is not None:
            raise ValueError("target guides the choice of rows: it needs a selector, got None.")
        return None
    if net.selector.estimator is not None:
        raise ValueError(
            "selector must have estimator=None, for the net gives the probabilities; pass a model "
            f"to rank by as target. Got {type(net.selector.estimator).__name__}."
        )
    validate_parameters(net.selector)
    if net.target is not None and net.selector.criterion == "random":
        raise ValueError("target has no use where the criterion of the selector is 'random'.")
    scores = None if net.target is None else _target_scores(net, X, n_rows, n_epochs)
    return Prioritizer(net.selector, net.warmup_epochs, net.refresh_every, scores)


def _target_scores(net: Any, X: Any, n_rows: int, n_epochs: int) -> NDArray[np.floating]:
    target = net.target
    if hasattr(target, "predict_proba"):
        check_is_fitted(target)
        return clone(net.selector).fit(target.predict_proba(X)).scores_
    scores = check_array(target, ensure_2d=False, dtype="numeric", input_name="target")
    if scores.ndim > 2 or scores.shape[-1] != n_rows:
        raise ValueError(
            "target must hold one score for every row of X, shape "
            f"({n_rows},) or (n_epochs, {n_rows}); got shape {scores.shape}."
        )
    if scores.ndim == 2 and len(scores) < n_epochs:
        raise ValueError(
            f"target must hold a row for each of the {n_epochs} epochs; got {len(scores)} rows."
        )
    return scores
