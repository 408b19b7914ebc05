"""Calibration errors of resampled samples, and of labels drawn from the probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from ..utils._arrays import is_normalized, warn_if_normalized
from ..utils._compat import Interval
from ..utils._estimators import has_argument
from ..utils._labels import encode_groups, order_columns
from ..utils._output import collecting, warn
from ..utils._proba import add_unseen, as_two_columns, check_predictions
from ._binned_draws import (
    OneSeed,
    ResidualError,
    count_reached,
    cumulate,
    draw_counts,
    draw_labels,
    merge_rows,
    prepare_residual_error,
)
from ._calibration_error import compute_top_label, get_kind
from ._registry import find_losses, find_metric, get_metric

RESAMPLING_CONSTRAINTS: dict[str, list[Any]] = {
    "metric": [callable, str],
    "n_resamples": [Interval(Integral, 1, None, closed="left")],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
}
VERBOSE_CONSTRAINTS = RESAMPLING_CONSTRAINTS | {"verbose": ["verbose"]}


# How the warning of normalized weights begins.
_OF_WEIGHTS = "sample_weight sums to"
# With fewer groups, intervals are too narrow.
_FEWEST_GROUPS = 20
# Entries that distinguish a calibration error from a score; an error below this is rounding.
_EXPECTED_LABELS_AT_ONCE = 2**20
_NOTHING = 1e-6
# The mean of losses differs from the metric by rounding in float32 at most.
_ROUNDING_OF_LOSSES = 1e-5
# Lists of errors of a calibrated model, one for each way to draw them.
ByChance = list[list[float]]


class AnyError(NamedTuple):
    """A metric of the user, which is evaluated again for every resample.

    With `losses` under every label, (n, K), it is known to be their weighted mean, and that is
    evaluated.
    """

    metric: Callable[..., float]
    options: dict[str, Any]
    codes: NDArray[np.intp]
    proba: NDArray[Any]
    weight: NDArray[np.float64] | None
    groups: NDArray[np.intp] | None
    losses: NDArray[np.float64] | None = None

    def with_losses(self, estimate: float) -> AnyError:
        """Return the same with the losses whose mean the metric is, if it is known to be one."""
        losses = find_losses(self.metric, self.options, self.proba)
        if losses is None:
            return self
        error = self._replace(losses=losses)
        # Other options, or another version of the metric: then it is evaluated itself.
        same = np.isclose(error.value(), estimate, rtol=_ROUNDING_OF_LOSSES)
        return error if same else self

    def value(
        self,
        codes: NDArray[np.intp] | None = None,
        count: NDArray[np.intp] | None = None,
        *,
        names_weights: bool = False,
    ) -> float:
        """Return the metric with other labels, or of samples counted as often as `count`.

        Only with `names_weights` it warns of weights that were normalized.
        """
        weight = self.weight
        if count is not None:
            weight = count.astype(np.float64) if weight is None else weight * count
        classes = np.arange(2 if self.proba.ndim == 1 else self.proba.shape[1])
        codes = self.codes if codes is None else codes
        if self.losses is not None:
            return float(np.average(self.losses[np.arange(len(codes)), codes], weights=weight))
        # Weights are passed only if they are given: most metrics are faster without.
        with collecting() as notes:
            value = self.metric(
                codes, self.proba, sample_weight=weight, labels=classes, **self.options
            )
        for note in notes:
            if names_weights or not note.startswith(_OF_WEIGHTS):
                warn(note)
        return as_number(value)

    def is_zero_of_expected_labels(self) -> bool:
        """Return whether the metric is a calibration error, not a score such as the log-loss.

        A calibration error is 0 if every sample has all labels, each weighted by its probability.
        """
        columns = self.columns()
        n_classes = columns.shape[1]
        step = -(-columns.size // _EXPECTED_LABELS_AT_ONCE)
        proba, weight = self.proba[::step].astype(np.float64), columns[::step].ravel()
        codes = np.tile(np.arange(n_classes), len(proba))
        proba = np.repeat(proba, n_classes, axis=0)
        expected = self._replace(codes=codes, proba=proba, weight=weight.astype(np.float64))
        if self.losses is not None:
            expected = expected._replace(losses=np.repeat(self.losses[::step], n_classes, axis=0))
        return abs(expected.value()) < _NOTHING

    def has_both_signs(self, values: list[float]) -> bool:
        """Return whether the metric is known to have both signs, or one of its values is negative.

        Values are looked at for functions that this package does not know.
        """
        known = find_metric(self.metric)
        return min(values) < -_NOTHING if known is None else known.greater_is_better is None

    def turn(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return values of the metric so that larger = worse, as far as its direction is known."""
        known, turned = find_metric(self.metric), np.asarray(values, np.float64)
        if known is None or known.greater_is_better is False:
            return turned
        return -turned if known.greater_is_better else np.abs(turned)

    def bootstrap(self, seeds: NDArray[np.int64]) -> list[float]:
        """Return the metric of samples, or of groups, drawn with replacement."""
        return [
            self.value(count=draw_counts(seed, len(self.codes), self.groups)) for seed in seeds
        ]

    def by_chance(self, seeds: NDArray[np.int64]) -> list[float]:
        """Return the metric of labels drawn from the probabilities: larger = worse."""
        values = [self.value(codes) for codes in draw_labels(self.proba, seeds)]
        return self.turn(values).tolist()

    def columns(self) -> NDArray[Any]:
        """Return the probabilities of all classes, also of two."""
        if self.proba.ndim == 2:
            return self.proba
        return np.stack([1 - self.proba, self.proba], axis=1)

    def of_drawn_labels(self, proba: NDArray[Any], seeds: NDArray[np.int64]) -> list[float]:
        """Return the metric of samples drawn with replacement, with labels drawn for them.

        Labels are drawn from `proba` (n_samples, n_classes) with four pseudo-samples spread evenly
        over the classes: labels that did not occur still may. Labels of a group are drawn
        together as often as those of the data correlate.
        """
        n_samples = len(self.codes)
        weight = np.ones(n_samples) if self.weight is None else self.weight
        groups, correlation, squares = self.groups, 0.0, float(weight @ weight)
        if groups is not None:
            correlation = compute_intraclass_correlation(proba, self.codes, weight, groups)
            squares += correlation * (np.square(np.bincount(groups, weight)).sum() - squares)
        below = cumulate(add_unseen(proba, weight.sum() ** 2 / squares))
        values = []
        for seed in seeds:
            count = draw_counts(seed, n_samples, groups)
            rng = np.random.default_rng((seed, 1))
            # A sample that is drawn twice has two labels.
            layers = [np.flatnonzero(count > k) for k in range(count.max())]
            rows = np.concatenate(layers)
            of_layers = [None if groups is None else groups[layer] for layer in layers]
            u = np.concatenate(
                [
                    draw_uniform(rng, len(layer), of_layer, correlation)
                    for layer, of_layer in zip(layers, of_layers)
                ]
            )
            codes = count_reached(below, u, rows)
            if self.losses is not None:
                of_labels = self.losses[rows, codes]
                values.append(float(np.average(of_labels, weights=weight[rows])))
                continue
            drawn = self._replace(proba=self.proba[rows], weight=weight[rows])
            values.append(drawn.value(codes))
        return values


def compute_intraclass_correlation(
    proba: NDArray[Any],
    codes: NDArray[np.intp],
    weight: NDArray[np.float64],
    groups: NDArray[np.intp],
) -> float:
    """Return the correlation of the labels of a group, given their probabilities: from 0 to 1.

    It is that of the residuals of two samples of a group, over all pairs and four pseudo-pairs of
    equal labels, spread evenly over the classes. So it is near 0 if labels are drawn independently
    from the probabilities, near 1 if they are copies, and 1 as well if next to none came of those
    that the probabilities hold possible: too few to say.
    """
    residual = -proba.astype(np.float64)
    residual[np.arange(len(codes)), codes] += 1
    residual *= weight[:, np.newaxis]
    size = np.sqrt(np.square(residual).sum(axis=1))
    of_groups = np.array([np.bincount(groups, column) for column in residual.T])
    squares = float(size @ size)
    largest = float(np.square(np.bincount(groups, size)).sum()) - squares
    if largest <= 1e-9 * squares:  # groups of one sample
        return 0.0
    # The mean over classes of their squared residuals from the mean probabilities.
    mean = weight @ proba / weight.sum()
    pseudo = 4 * (1 + mean @ mean - 2 * mean.mean()) * (weight @ weight / weight.sum()) ** 2
    alike = float(np.square(of_groups).sum()) - squares + pseudo
    return float(np.clip(alike / (largest + pseudo), 0, 1))


def draw_uniform(
    rng: np.random.Generator, n: int, groups: NDArray[np.intp] | None, correlation: float
) -> NDArray[np.float64]:
    """Return n numbers from [0, 1); with the probability `correlation` a group shares one."""
    own = rng.uniform(size=n)
    if groups is None:
        return own
    n_groups = int(groups.max()) + 1
    shares = rng.uniform(size=n_groups) < correlation
    return np.where(shares[groups], rng.uniform(size=n_groups)[groups], own)


class Resampled(NamedTuple):
    """The value of a metric, and the metric in a form that can be resampled.

    ``statistic`` is compared with the errors by chance: larger = worse. ``groups`` are those of
    the user, not those of several labels of one sample.
    """

    estimate: float
    statistic: float
    error: ResidualError | AnyError
    groups: NDArray[np.intp] | None = None

    @classmethod
    def of(
        cls,
        metric: Any,
        options: dict[str, Any],
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        groups: Any = None,
        **given: Any,
    ) -> Resampled:
        """Validate the input and evaluate the metric; `given` are weights and labels."""
        metric, options = _unwrap(metric, options)
        check_metric(metric, "sample_weight", "labels")
        predictions = check_predictions(y_true, y_proba, **given)
        if "costs" in options and find_metric(metric) is not None:
            # From here on classes are numbers.
            costs = order_columns(options["costs"], predictions.classes, name="costs")
            options = options | {"costs": costs}
        given_groups = groups is not None
        if given_groups:
            groups = encode_groups(groups, len(predictions.truth), name="groups")[1]
        kind = get_kind(metric)
        if kind is not None and kind.top_label:
            # From here on two classes: the confidence is the probability of "correct".
            proba, correct = compute_top_label(predictions)
            predictions = predictions._replace(truth=as_two_columns(correct), proba=proba)
        if predictions.is_soft:
            # The labels that several people gave a sample belong together.
            predictions, samples = predictions.as_rows()
            groups = samples if groups is None else groups[samples]
        codes, proba, weight = predictions.codes, predictions.proba, predictions.counts
        if weight is not None:
            # Drop samples of weight 0, which would only waste draws.
            kept = weight > 0
            codes, proba, weight = codes[kept], proba[kept], weight[kept]
            if groups is not None:
                groups = np.unique(groups[kept], return_inverse=True)[1]
        any_error = AnyError(metric, options, codes, proba, weight, groups)
        # Invalid options raise an error here.
        estimate = any_error.value(names_weights=True)
        own = prepare_residual_error(metric, options, estimate, codes, proba, weight, groups)
        if own is None:
            any_error = any_error.with_losses(estimate)
        turned = float(any_error.turn(estimate))
        statistic, error = (turned, any_error) if own is None else (own.statistic, own)
        return cls(estimate, statistic, error, error.groups if given_groups else None)

    def alone(self) -> Resampled:
        """Return a faster equivalent, for use if no other model shares the resamples."""
        error = self.error
        return self._replace(error=merge_rows(error)) if isinstance(error, ResidualError) else self

    def by_chance(
        self, seeds: NDArray[np.int64] | OneSeed, n_jobs: int | None, verbose: int = 0
    ) -> ByChance:
        """Return errors under the null hypothesis, one list for every way to draw them.

        Labels are drawn from the probabilities independently. With groups, random signs of their
        residuals give a second list: it allows for dependence within groups, but not for errors
        that a calibrated model would make and that did not occur.
        """
        by_chance = [run(self.error.by_chance, seeds, n_jobs, verbose)]
        if self.error.groups is None:
            return by_chance
        if not isinstance(self.error, ResidualError):
            raise ValueError(
                "metric must be one of ['ece', 'mce', 'debiased_ece', 'classwise_ece', "
                "'smooth_ece', 'ks'] where groups or soft labels are tested, "
                f"got {getattr(self.error.metric, '__name__', self.error.metric)}."
            )
        return [*by_chance, run(self.error.by_signs, seeds, n_jobs, verbose)]


def _unwrap(metric: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the function of a metric, given by name or in a partial, and all of its options."""
    metric = get_metric(metric)
    while isinstance(metric, partial) and not metric.args:
        metric, options = metric.func, metric.keywords | options
    return metric, options


def warn_of_few_groups(*codes: NDArray[np.intp] | None) -> None:
    """Warn where one of several sets of samples has few groups, numbered from 0."""
    fewest = min((int(groups.max()) + 1 for groups in codes if groups is not None), default=None)
    if fewest is not None and fewest < _FEWEST_GROUPS:
        warn(
            f"groups must be {_FEWEST_GROUPS} or more for an interval or a test to be trusted, "
            f"got {fewest}: so few say little of others. Collect samples of more groups."
        )


@contextmanager
def warning_once(weight: NDArray[np.float64] | None = None) -> Iterator[None]:
    """Warn once of what many calls within warn of, such as those for groups or for models.

    A warning of weights that were normalized is about `weight`, those of all samples, if given.
    """
    with collecting() as notes:
        yield
    of_weights = [note for note in notes if note.startswith(_OF_WEIGHTS)]
    for note in dict.fromkeys(note for note in notes if note not in of_weights):
        warn(note)
    if of_weights and weight is not None and is_normalized(weight):
        warn_if_normalized(weight)
    elif of_weights:
        warn(of_weights[0])


def check_metric(metric: Callable[..., float], *needed: str) -> None:
    """Raise unless a metric takes the parameters `needed`."""
    try:
        missing = [name for name in needed if not has_argument(metric, name)]
    except ValueError:  # some functions written in C have no signature
        return
    if missing:
        raise TypeError(
            f"metric must be a function of (y_true, y_proba) that takes {' and '.join(needed)}, "
            f"got {getattr(metric, '__name__', metric)}, which has no {missing[0]}."
        )


def as_number(value: Any) -> float:
    """Return the value of a metric as a float; raise unless it is one number."""
    if np.ndim(value) or not np.issubdtype(np.asarray(value).dtype, np.number):
        raise TypeError(f"metric must return a number, got {type(value).__name__}.")
    return float(value)


def draw_seeds(random_state: Any, n: int) -> NDArray[np.int64]:
    """Return a seed for every resample: results do not depend on the number of jobs."""
    return check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n)


def run(
    draw: Callable[[Any], list[Any]],
    seeds: NDArray[np.int64] | OneSeed,
    n_jobs: int | None,
    verbose: int = 0,
) -> list[Any]:
    """Return the values of `draw` for all seeds, computed in parallel."""
    if isinstance(seeds, OneSeed):
        return draw(seeds)
    # Several chunks a job, so that a slow one does not keep the others waiting.
    chunks = np.array_split(seeds, min(len(seeds), 4 * effective_n_jobs(n_jobs)))
    parts = Parallel(n_jobs=n_jobs, verbose=verbose)(delayed(draw)(chunk) for chunk in chunks)
    return [value for part in parts for value in part]
