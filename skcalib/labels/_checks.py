"""What checked labels say about all others: corrected probabilities, and the noise rate."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata, t
from sklearn.utils import check_random_state

from ..utils._arrays import as_array, is_missing
from ..utils._compat import restore_on_failure
from ..utils._labels import as_labels, encode, encode_groups
from ..utils._numeric import compute_binomial_interval
from ..utils._output import as_table, warn
from ._constants import (
    FEW,
    FEWEST_CHECKS,
    INTERCEPT,
    LOG_SLOPE,
    N_FOLDS,
    PSEUDO_RESIDUAL,
    STANDARD_ERRORS,
)

if TYPE_CHECKING:
    import pandas as pd


# Log-odds are clipped here: exp(-80) is about the smallest probability of single precision.
LARGEST_LOG_ODDS = 80.0

_NONE_OF_THEM = (
    "{} of the {} answers are missing values: they say that the label is wrong and the sample "
    "belongs to no class. Leave out positions that nobody has answered."
)
_UNANSWERED = (
    "{} of the {} samples that were drawn have no answer. The rate holds if they are no harder "
    "than the others; ask for a best guess where it is hard to tell."
)
_NOT_RANDOM = (
    "The checked labels are {} suspicious than a random draw would be (z = {:.1f}). They count as "
    "known, and say nothing about the others: the rate of wrong labels stays unchecked. Check "
    "samples drawn by draw_samples_to_check, and keep the finder that drew them."
)
_DRAWN_AGAIN = (
    "All {} samples that were drawn have been checked before: pass them as exclude=, or draw with "
    "another random_state."
)


def label_log_odds(proba: NDArray, codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return log-odds of the labels, exact also where the probability rounds to 1."""
    rows = np.arange(len(codes))
    own = proba[rows, codes]
    proba[rows, codes] = 0.0
    others = proba.sum(axis=1, dtype=np.float64)
    proba[rows, codes] = own
    least = np.exp(-LARGEST_LOG_ODDS)
    odds = np.log(np.maximum(own, least, dtype=np.float64)) - np.log(np.maximum(others, least))
    return np.clip(odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)


class Draw(NamedTuple):
    """Samples that were drawn to be checked, with their inclusion probabilities."""

    positions: NDArray[np.intp]
    inclusion: NDArray[np.float64]
    excluded: NDArray[np.intp]  # samples that could not be drawn


class Line(NamedTuple):
    """``logit p' = intercept + slope logit p`` with slope > 0, which keeps the ranking."""

    intercept: float = 0.0
    slope: float = 1.0

    def __call__(self, log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.intercept + self.slope * log_odds


class Rate(NamedTuple):
    """The rate of wrong labels, estimated from drawn checks."""

    line: Line
    rate: float
    interval: tuple[float, float]
    # For `half_width`: the residuals, or a binomial fraction where few checks are wrong or right.
    residuals: NDArray[np.float64]
    weight: NDArray[np.float64]  # of each check, 1 on average
    inclusion: NDArray[np.float64]
    fraction: float
    n_effective: float | None  # None: the interval is that of the residuals

    def half_width(self, n_checks: int) -> float:
        """Return half the width of the interval with `n_checks` checks of this kind."""
        times = n_checks / len(self.residuals)
        if self.n_effective is not None:
            return 0.5 * float(
                np.diff(_compute_binomial_ends(self.fraction, self.n_effective * times))[0]
            )
        return _compute_half_width_of_mean(self.residuals, self.weight, self.inclusion, times)


def _compute_binomial_ends(fraction: float, count: float) -> tuple[float, float]:
    low, high = compute_binomial_interval(np.asarray(fraction), np.asarray(count), 0.95)
    return float(low), float(high)


def _compute_half_width_of_mean(
    residuals: NDArray[np.float64],
    weight: NDArray[np.float64],
    inclusion: NDArray[np.float64],
    times: float = 1.0,
) -> float:
    """Return half the width of a t interval of the mean, with `times` as many residuals."""
    n_now, n_then = len(residuals), len(residuals) * times
    left = 1.0 - np.minimum(inclusion * times, 1.0)  # finite population: 0 if all are checked
    variance = float(left @ (residuals - residuals.mean()) ** 2) / (n_now - 1)
    n_drawn = max(int(np.count_nonzero(inclusion < 1.0)), 1)  # the others are certain
    variance += PSEUDO_RESIDUAL / n_then * float(left @ weight**2) / n_drawn
    return float(t.ppf(0.975, n_now - 1) * np.sqrt(variance / n_then))


def compute_inclusion(size: NDArray[np.float64], n_checks: int) -> NDArray[np.float64]:
    """Return inclusion probabilities in proportion to `size`, at most 1, with sum `n_checks`."""
    proba = np.zeros_like(size)
    sure = np.zeros(len(size), dtype=bool)
    while True:
        left = n_checks - int(sure.sum())
        proba[~sure] = left * size[~sure] / max(size[~sure].sum(), np.finfo(float).tiny)
        beyond = (proba > 1.0) & ~sure
        if not beyond.any():
            return np.where(sure, 1.0, proba)
        sure |= beyond


def draw_samples(proba: NDArray[np.float64], rng: np.random.RandomState) -> NDArray[np.intp]:
    """Draw samples with these inclusion probabilities, which sum to an integer.

    Systematic sampling: the samples lie in random order on a line, each as long as its
    probability. Points one unit apart, from a random start, draw the samples that they hit.
    """
    order = rng.permutation(len(proba))
    ends = np.cumsum(proba[order])
    points = rng.uniform() + np.arange(round(float(ends[-1])))
    hit = np.minimum(np.searchsorted(ends, points, side="right"), len(order) - 1)
    return np.sort(order[hit])


def compute_informative_size(
    log_odds: NDArray[np.float64], weight: NDArray[np.float64], n_checks: int
) -> NDArray[np.float64]:
    """Return sizes for `inclusion` that make the error of the rate small.

    It is smallest if samples are drawn in proportion to the standard deviation of the residual.
    Its square is p (1 - p), plus UNSEEN / n_checks for mistakes of the model.
    """
    variance = expit(log_odds) * expit(-log_odds) + PSEUDO_RESIDUAL / n_checks
    return weight * np.sqrt(variance)


def rank_z(
    log_odds: NDArray[np.float64], weight: NDArray[np.float64], checked: NDArray[np.intp]
) -> float:
    """Return by how many standard errors the mean rank of the checks differs from that of all."""
    rank, fraction = rankdata(log_odds), weight / weight.sum()
    mean = float(fraction @ rank)
    checked_part = fraction[checked].sum()
    error = np.sqrt(fraction @ (rank - mean) ** 2 * max(1.0 - checked_part, 0.0) / len(checked))
    # All are checked, or all ranks are equal (and rounding would decide).
    no_choice = len(checked) == np.count_nonzero(weight) or np.ptp(rank) == 0
    return 0.0 if no_choice else float((rank[checked].mean() - mean) / error)


def find_complete_draws(draws: list[Draw], rows: NDArray[np.intp]) -> list[Draw]:
    """Return the draws whose samples are all among `rows`, the latest first.

    A draw without new samples, such as a repeated one, is left out.
    """
    found: list[Draw] = []
    seen = np.array([], dtype=np.intp)
    for draw in reversed(draws):
        if np.isin(draw.positions, rows).all() and not np.isin(draw.positions, seen).all():
            found.append(draw)
            seen = np.union1d(seen, draw.positions)
    return found


def find_partial_draw(draws: list[Draw], rows: NDArray[np.intp]) -> Draw | None:
    """Return the latest draw that holds all of `rows`, or has most of its samples among them."""
    for draw in reversed(draws):
        if np.isin(rows, draw.positions).all() or np.isin(draw.positions, rows).mean() > 0.5:
            return draw
    return None


def count_represented(draws: list[Draw], rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return how many samples each of `rows` stands for in an unbiased sum over all samples.

    In one draw (Horvitz-Thompson) that is one over the inclusion probability for a drawn sample,
    1 for a sample that could not be drawn. Draws are averaged by their number of samples.
    """
    total, n_all = np.zeros(len(rows)), sum(len(draw.positions) for draw in draws)
    for draw in draws:
        number = np.isin(rows, draw.excluded).astype(float)
        index = np.searchsorted(draw.positions, rows).clip(max=len(draw.positions) - 1)
        drawn = draw.positions[index] == rows
        number[drawn] = 1.0 / draw.inclusion[index[drawn]]
        total += number * len(draw.positions) / n_all
    return total


def estimate_rate(
    log_odds: NDArray[np.float64],
    weight: NDArray[np.float64],
    checked: NDArray[np.intp],
    is_wrong: NDArray[np.bool_],
    number: NDArray[np.float64],
) -> Rate:
    """Return the line that corrects the probabilities, and the prediction-powered rate.

    The line is fitted to the log-odds of the checks, each weighted by the number of samples that
    it stands for. The rate is the mean of 1 - p' over all samples, plus the weighted mean residual
    w - (1 - p') of the checks, which removes the bias of the model [1]_. The standard error is
    that of the mean residual, with UNSEEN added to the squares. `log_odds` and `weight` are of all
    samples; `checked` are positions, `is_wrong` says whether the labels there are wrong, and
    `number` is how many samples each check stands for.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan, T. Zrnic, "Prediction-powered
       inference", Science 2023.
    """
    relative = number * weight[checked]
    relative = relative / relative.mean()
    line = fit_line(log_odds[checked], ~is_wrong, relative)
    # Cross-fitting: a check is predicted by the line of the other folds, all other samples by the
    # mean of these lines. So the rate is exact once all labels are checked.
    fold, predicted = np.arange(len(checked)) % N_FOLDS, np.zeros(len(log_odds))
    of_checked = np.empty(len(checked))
    for own in (fold == k for k in range(min(N_FOLDS, len(checked)))):
        other = fit_line(log_odds[checked[~own]], ~is_wrong[~own], relative[~own])
        by_other = expit(-other(log_odds))
        predicted += own.mean() * by_other
        of_checked[own] = by_other[checked[own]]
    predicted[checked] = of_checked
    residuals = relative * (is_wrong - of_checked)
    rate = float(np.average(predicted, weights=weight) + residuals.mean())
    inclusion = 1.0 / np.maximum(number, 1.0)
    # Checks that stand only for themselves are certain: they are no sample of others.
    drawn, part = number > 1.0, weight[checked] / weight.sum()
    known_wrong, known_right = float(part @ is_wrong), float(part @ ~is_wrong)
    fraction, n_effective = 0.0, None
    if min(np.sum(is_wrong & drawn), np.sum(~is_wrong & drawn)) < FEW and drawn.any():
        fraction = float(np.average(is_wrong[drawn], weights=relative[drawn]))
        n_effective = float(relative[drawn].sum() ** 2 / np.square(relative[drawn]).sum())
        others = 1.0 - part[~drawn].sum()
        alone = float(part[~drawn] @ is_wrong[~drawn])
        low, high = (alone + others * end for end in _compute_binomial_ends(fraction, n_effective))
    else:
        error = _compute_half_width_of_mean(residuals, relative, inclusion)
        low, high = rate - error, rate + error
    low, high = max(low, known_wrong), min(high, 1.0 - known_right)
    high = max(low, high)
    rate = float(np.clip(rate, low, high))
    ends = float(low), float(high)
    return Rate(line, rate, ends, residuals, relative, inclusion, fraction, n_effective)


def fit_line(
    log_odds: NDArray[np.float64], is_right: NDArray[np.bool_], count: NDArray[np.float64]
) -> Line:
    """Return the most probable line: a logistic regression with a normal prior.

    It is fitted to the log of the slope, so the slope is positive and the ranking stays.
    """
    sign = np.where(is_right, 1.0, -1.0)

    def of(x: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        slope = np.exp(x[1])
        score = -sign * (x[0] + slope * log_odds)
        loss = count @ np.logaddexp(0.0, score)
        change = -count * sign * expit(score)
        prior = x / np.array([INTERCEPT, LOG_SLOPE])
        gradient = np.array([change.sum(), slope * (change @ log_odds)])
        gradient += prior / np.array([INTERCEPT, LOG_SLOPE])
        return float(loss + 0.5 * prior @ prior), gradient

    intercept, log_slope = minimize(of, np.zeros(2), jac=True, method="BFGS").x
    return Line(float(intercept), float(np.exp(log_slope)))


def read_answers(
    true_labels: Any, classes: NDArray[Any], n_checks: int
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the classes of the answers (-1: none of them), and which answers are missing."""
    if not hasattr(true_labels, "dtype"):  # numpy would turn a NaN among texts into 'nan'
        given = [x.item() if isinstance(x, np.generic) else x for x in true_labels]
        true_labels = np.empty(len(given), dtype=object)
        true_labels[:] = given
    array = as_array(true_labels, name="true_labels")
    if array.shape != (n_checks,):
        raise ValueError(
            f"true_labels must have one label for each of the {n_checks} positions, got shape "
            f"{array.shape}."
        )
    entries: NDArray[Any] = array.astype(object)
    blank = np.array([isinstance(x, str) and not x.strip() for x in entries], dtype=bool)
    if blank.all() and not np.isin("", classes):
        raise ValueError(
            f"true_labels must have an answer for every position, got {n_checks} blanks: nobody "
            "has answered yet."
        )
    if blank.any() and not np.isin("", classes):
        raise ValueError(
            "true_labels must have an answer for every position, got a blank in "
            f"{int(blank.sum())} of {n_checks}; leave these positions out, or answer NaN where "
            "the label is wrong and no class is right."
        )
    none = is_missing(entries)
    if none.all():
        raise ValueError(
            f"true_labels must have an answer, got {n_checks} missing values, each of which says "
            "that the label is wrong and no class is right. If nobody has answered yet, wait with "
            "the update; if no class is right for any of them, check one more sample, of a class."
        )
    entries[none] = entries[np.argmin(none)]  # any class; marked below
    known = as_labels(entries if none.any() else array, name="true_labels")
    codes = encode(known, classes, name="true_labels")
    return np.where(none, -1, codes), none


class ChecksMixin:
    """The methods of the finder for checked labels."""

    issues_: Any
    label_proba_: Any
    caveats_: tuple[str, ...]

    if TYPE_CHECKING:  # attributes of the finder

        def __getattr__(self, name: str) -> Any: ...

    @property
    def draws_(self) -> list[NDArray[np.intp]]:
        """Positions of the samples of every draw since `fit`, the latest last."""
        return [draw.positions for draw in self._draws]

    def draw_samples_to_check(
        self,
        n_samples: int = 100,
        *,
        design: str = "random",
        exclude: ArrayLike | None = None,
        random_state: Any = None,
        return_inclusion: bool = False,
    ) -> Any:
        """Draw samples whose labels people should check, for `update_with_checks`.

        Parameters
        ----------
        n_samples : int, default=100
            Number of samples to check. The error of the rate falls with its square root.
        design : {"random", "informative"}, default="random"
            "random" draws all samples with equal probability. "informative" draws samples with
            uncertain labels more often, and all others now and then; the finder keeps the
            probabilities, and `update_with_checks` weights the checks by them. Where the finder
            ranks wrong labels well, that gives the same error of the rate with six tenths of the
            checks, and finds more wrong labels; otherwise it does no worse than a random draw.
        exclude : array-like of int, default=None
            Positions not to draw, such as those that were already checked. `update_with_checks`
            still needs all checks, including those of earlier draws.
        random_state : int, RandomState instance or None, default=None
            Pass an int to draw the same samples in every call.
        return_inclusion : bool, default=False
            Whether to return the inclusion probabilities too. Store them with the positions if
            another finder (one that was fitted again, say) will get the checks.

        Returns
        -------
        positions : ndarray of shape (n_samples,)
            Positions in the `X` of `fit`, in rising order. With `sample_weight`, samples are drawn
            in proportion to it, and never with weight 0.
        inclusion : ndarray of shape (n_samples,)
            Probability with which each sample was drawn, in (0, 1]; only with
            ``return_inclusion=True``.

        Raises
        ------
        ValueError
            If `n_samples` exceeds the number of samples, or if `design` is unknown.
        """
        self._check_in_memory("draw_samples_to_check")
        if design not in ("random", "informative"):
            raise ValueError(f"design must be 'random' or 'informative', got {design!r}.")
        weight, excluded = self._weight.copy(), np.array([], dtype=np.intp)
        if exclude is not None and np.size(exclude):
            excluded = np.sort(_check_positions(exclude, len(weight), "exclude"))
            weight[excluded] = 0.0
        n_all = int(np.count_nonzero(weight))
        if not isinstance(n_samples, Integral) or not 2 <= n_samples <= n_all:
            raise ValueError(
                f"n_samples must be an int from 2 to the {n_all} samples, got {n_samples!r}."
            )
        if design == "informative":
            log_odds = self._line(self._of_model[0])
            weight = compute_informative_size(log_odds, weight, int(n_samples))
        proba = compute_inclusion(weight, int(n_samples))
        rows = draw_samples(proba, check_random_state(random_state))
        if self._checked is not None and np.isin(rows, self._checked[0]).all():
            warn(_DRAWN_AGAIN.format(len(rows)))
        self._draws.append(Draw(rows, proba[rows], excluded))
        return (rows, proba[rows]) if return_inclusion else rows

    def update_with_checks(
        self,
        positions: ArrayLike,
        true_labels: ArrayLike,
        *,
        inclusion: ArrayLike | None = None,
    ) -> Self:
        """Correct the probabilities and the noise rate by labels that people have checked.

        The samples should be drawn by `draw_samples_to_check`: among the most suspicious samples,
        more labels are wrong than among all. The checked labels count as known. For all other
        samples, a line corrects the log-odds of ``p_label_correct`` and keeps their ranking;
        `label_proba_`, ``is_issue``, ``suggested_label``, `noise_rate_` and `class_noise_rate_`
        change with it. The rate and its interval are prediction-powered; with fewer than five
        wrong, or fewer than five right, labels among the checks, the interval is the one of
        Clopper and Pearson.

        Positions drawn by this finder are weighted by the inverse of their inclusion
        probabilities; other positions passed with them only count as known. If this finder drew
        none of the positions, they count as a random draw, unless they are clearly more or less
        suspicious than one: then they only count as known, and the rate stays unchecked.

        A second call replaces the first: pass all checks so far.

        Parameters
        ----------
        positions : array-like of shape (n_checks,)
            Positions of the checked samples in the `X` of `fit`.
        true_labels : array-like of shape (n_checks,)
            Their true labels. A missing value (None, NaN) says that the label is wrong and the
            sample belongs to no class: its row of `label_proba_` becomes 0, and its
            ``suggested_label`` stays the given label.
        inclusion : array-like of shape (n_checks,), default=None
            Probability with which each position was drawn, in (0, 1], for a draw by another finder
            (`draw_samples_to_check` with ``return_inclusion=True``). None uses the draws of this
            finder.

        Returns
        -------
        self : LabelIssueFinder
            The corrected finder.

        Raises
        ------
        ValueError
            If there are fewer than two positions; if positions repeat, are out of range, or are of
            samples of weight 0; if a label is blank or not in `classes_`; or if all labels are
            missing values.

        Warns
        -----
        SkcalibWarning
            If the checks are not a random draw, if drawn samples have no answer, or if answers are
            missing values.
        """
        self._check_in_memory("update_with_checks")
        rows = _check_positions(positions, len(self._weight), "positions", fewest=2)
        if (self._weight[rows] == 0).any():
            raise ValueError(
                "positions must be of samples of positive weight, which draw_samples_to_check "
                f"returns, got {int(rows[np.argmax(self._weight[rows] == 0)])}."
            )
        true, none = read_answers(true_labels, self.classes_, len(rows))
        if none.any():
            warn(_NONE_OF_THEM.format(int(none.sum()), len(rows)))
        is_wrong = true != encode(self.issues_["label"], self.classes_)[rows]
        likely = None if inclusion is None else _check_inclusion(inclusion, len(rows))
        with restore_on_failure(self):
            # The copies are changed in place below; an error leaves the originals.
            self.issues_, self.label_proba_ = self.issues_.copy(), self.label_proba_.copy()
            self._set_checked(rows, true, is_wrong, likely)
            if hasattr(self, "_voted"):
                self._show_votes()
                if majority := self._compare_with_majority(rows, true):
                    self.caveats_ = (*self.caveats_, majority)
                    warn(majority)
        return self

    def n_more_checks(self, width: float = 0.05) -> int:
        """Return how many more checks `noise_rate_interval_` needs to be this narrow.

        Parameters
        ----------
        width : float in (0, 1), default=0.05
            Distance between the ends of `noise_rate_interval_` after `update_with_checks`.

        Returns
        -------
        n_checks : int
            Number of further checks of the same design, 0 if the interval is narrow enough.
            Before the first check, the number that is expected of a random draw if the
            probabilities of the model are right: a plan, which the first checks correct.

        Raises
        ------
        ValueError
            If the width is not between 0 and 1.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from skcalib.datasets import flip_labels
        >>> from skcalib.labels import LabelIssueFinder
        >>> X, y = load_wine(return_X_y=True)
        >>> given, _ = flip_labels(y, fraction=0.1, random_state=0)
        >>> finder = LabelIssueFinder().fit(X, given)
        >>> rows = finder.draw_samples_to_check(50, random_state=0)
        >>> finder.update_with_checks(rows, y[rows]).n_more_checks(width=0.1)
        0
        """
        self._check_in_memory("n_more_checks")
        if not 0 < width < 1:
            raise ValueError(f"width must be between 0 and 1, got {width!r}.")
        n_now, n_all = self.n_checks_, int(np.count_nonzero(self._weight))
        rate = self._rate
        if rate is not None and np.diff(rate.interval)[0] <= width:
            return 0
        half_width = self._expect_half_width if rate is None else rate.half_width
        too_few, enough = max(n_now, 1), n_all  # bisection
        while enough - too_few > 1:
            middle = (too_few + enough) // 2
            if 2.0 * half_width(middle) <= width:
                enough = middle
            else:
                too_few = middle
        return enough - n_now

    def _expect_half_width(self, n_checks: int) -> float:
        """Return half the width that is expected of the first checks, drawn at random."""
        weight, is_wrong = self._weight / self._weight.sum(), expit(-self._of_model[0])
        rate = float(weight @ is_wrong)
        if n_checks * min(rate, 1.0 - rate) < FEW:
            return 0.5 * float(np.diff(_compute_binomial_ends(rate, n_checks))[0])
        variance = float(weight @ (is_wrong * (1.0 - is_wrong))) + PSEUDO_RESIDUAL / n_checks
        left = 1.0 - n_checks / np.count_nonzero(weight)
        return float(t.ppf(0.975, n_checks - 1) * np.sqrt(left * variance / n_checks))

    def noise_rate_by(self, by: Any, *, as_frame: bool = False) -> pd.DataFrame | NDArray[Any]:
        """Estimate the rate of wrong labels in groups of samples, highest first.

        Wrong labels often come from one annotator, one batch or one source: this finds it.

        Parameters
        ----------
        by : array-like of shape (n_samples,) or (n_samples, n_columns)
            The groups: names or numbers of any type; several columns are combined.
        as_frame : bool, default=False
            Whether to return a DataFrame (needs pandas).

        Returns
        -------
        rates : structured array of shape (n_groups,), or DataFrame
            ``group``; ``n_samples``; ``n_issues``; ``noise_rate``, the weighted mean of 1 -
            ``p_label_correct``; ``low`` and ``high``, a 95 % interval for each group alone.
            Without checks, the interval begins at 0, because the noise model has no groups, and
            covers all labels that the base models do not predict. After drawn checks, it is based
            on the checks in the group, and is (0, 1) with fewer than two of them.

        Raises
        ------
        ValueError
            If `by` does not have one entry for every sample.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from skcalib.datasets import flip_labels
        >>> from skcalib.labels import LabelIssueFinder
        >>> X, y = load_wine(return_X_y=True)
        >>> given = y.copy()
        >>> given[::2], _ = flip_labels(y[::2], fraction=0.2, random_state=0)
        >>> finder = LabelIssueFinder().fit(X, given)
        >>> annotator = ["Ann", "Bob"] * 89
        >>> rates = finder.noise_rate_by(annotator)
        >>> str(rates["group"][0])
        'Ann'
        """
        self._check_in_memory("noise_rate_by")
        names, codes = encode_groups(by, len(self.issues_), name="by")
        wrong = self._weight * (1.0 - self.issues_["p_label_correct"])
        weight = np.maximum(np.bincount(codes, self._weight, len(names)), np.finfo(float).tiny)
        rate = np.bincount(codes, wrong, len(names)) / weight
        order = np.argsort(-rate, kind="stable")
        columns = {
            "group": names,
            "n_samples": np.bincount(codes, minlength=len(names)),
            "n_issues": np.bincount(codes, self.issues_["is_issue"], len(names)).astype(np.intp),
            "noise_rate": rate,
        }
        ends = np.array(
            [self._compute_group_interval(codes == code) for code in range(len(names))]
        )
        columns["low"] = np.minimum(ends[:, 0], rate)
        columns["high"] = np.maximum(ends[:, 1], rate)
        return as_table({k: v[order] for k, v in columns.items()}, as_frame=as_frame)

    def _set_unchecked(
        self,
        log_odds: NDArray[np.float64],
        interval: tuple[float, float],
        caveats: tuple[str, ...],
    ) -> None:
        """Set interval and caveats by the model, and forget earlier draws and checks."""
        self.noise_rate_interval_, self.caveats_ = interval, caveats
        self.is_trustworthy_, self.n_checks_ = False, 0
        self._of_model = log_odds, interval, caveats
        self._line, self._rate = Line(), None  # type: tuple[Line, Rate | None]
        self._draws: list[Draw] = []
        self._checked: tuple[NDArray, NDArray] | None = None
        # Drawn checks: positions, whether the label is wrong, and how many samples it stands for.
        self._counting: tuple[NDArray, NDArray, NDArray] | None = None

    def _set_checked(
        self,
        rows: NDArray[np.intp],
        true: NDArray[np.intp],
        is_wrong: NDArray[np.bool_],
        likely: NDArray[np.float64] | None,
    ) -> None:
        """Set probabilities, rate, interval and caveats by the checks."""
        self._rate, caveat = self._estimate_rate(rows, is_wrong, likely)
        self._show_checks(rows, true)
        _, (low, high), self.caveats_ = self._of_model
        if self._rate is None:
            wrong, part = 1.0 - self.issues_["p_label_correct"], self._weight / self._weight.sum()
            self.noise_rate_ = float(part @ wrong)
            known_wrong, known_right = part[rows] @ is_wrong, part[rows] @ ~is_wrong
            self.noise_rate_interval_ = (
                float(max(low, known_wrong)),
                float(min(max(high, self.noise_rate_), 1.0 - known_right)),
            )
        else:
            self.noise_rate_, self.noise_rate_interval_ = self._rate.rate, self._rate.interval
        self.n_checks_ = 0 if self._rate is None else len(self._rate.residuals)
        self.is_trustworthy_ = self.n_checks_ >= FEWEST_CHECKS
        if self.is_trustworthy_:
            self.caveats_ = ()
        if caveat:
            self.caveats_ = (*self.caveats_, caveat)

    def _estimate_rate(
        self,
        rows: NDArray[np.intp],
        is_wrong: NDArray[np.bool_],
        likely: NDArray[np.float64] | None,
    ) -> tuple[Rate | None, str | None]:
        """Return the rate by the checks (None without a random draw), and a caveat or None."""
        log_odds, weight, caveat = self._of_model[0], self._weight, None
        self._counting = None
        draws = find_complete_draws(self._draws, rows)
        if likely is not None:
            order = np.argsort(rows)
            draws = [Draw(rows[order], likely[order], rows[:0])]
        if not draws:
            z = rank_z(log_odds, weight, rows)
            whole = find_partial_draw(self._draws, rows)
            if whole is not None:  # a draw with missing answers
                given = np.isin(whole.positions, rows)
                chance = whole.inclusion[given] * given.mean()
                draws = [Draw(whole.positions[given], chance, whole.excluded)]
                caveat = _UNANSWERED.format(int((~given).sum()), len(given))
            elif abs(z) <= STANDARD_ERRORS:
                draws = [
                    Draw(
                        np.sort(rows),
                        compute_inclusion(weight, len(rows))[np.sort(rows)],
                        rows[:0],
                    )
                ]
            else:
                caveat = _NOT_RANDOM.format("more" if z < 0 else "less", z)
        if caveat:
            warn(caveat)
        if not draws:
            return None, caveat
        number = count_represented(draws, rows)
        drawn = number > 0
        self._counting = rows[drawn], is_wrong[drawn], number[drawn]
        return estimate_rate(log_odds, weight, *self._counting), caveat

    def _show_checks(self, rows: NDArray[np.intp], true: NDArray[np.intp]) -> None:
        """Set the probabilities by the checks; a true label of -1 means none of the classes."""
        codes = encode(self.issues_["label"], self.classes_)
        if self._checked is not None:  # undo the previous checks first
            self.label_proba_[self._checked[0]] = self._checked[1]
        self._checked = rows, self.label_proba_[rows]
        self._line = Line() if self._rate is None else self._rate.line
        p_correct = expit(self._line(self._of_model[0]))
        p_correct[rows] = true == codes[rows]
        set_label_proba(self.label_proba_, codes, p_correct)
        self.label_proba_[rows] = 0.0
        known = true >= 0
        self.label_proba_[rows[known], true[known]] = 1.0
        suggested = self.label_proba_.argmax(axis=1)
        suggested[rows[~known]] = codes[rows[~known]]
        self.issues_["p_label_correct"] = p_correct
        self.issues_["is_issue"] = p_correct < self.threshold
        self.issues_["suggested_label"] = self.classes_[suggested]
        self._set_class_rates(1.0 - p_correct)

    def _compute_group_interval(self, group: NDArray[np.bool_]) -> tuple[float, float]:
        """Return the interval of the rate in a group of samples."""
        weight = self._weight[group]
        if self._counting is not None:
            rows, is_wrong, number = self._counting
            here = group[rows]
            if here.sum() < 2:
                return 0.0, 1.0
            position_in_group = np.cumsum(group) - 1
            checks = position_in_group[rows[here]], is_wrong[here], number[here]
            return estimate_rate(self._of_model[0][group], weight, *checks).interval
        fraction = weight / max(weight.sum(), np.finfo(float).tiny)
        count = weight.sum() ** 2 / max(weight @ weight, np.finfo(float).tiny)
        unexpected = np.asarray(fraction @ (self.issues_["margin"][group] > 0))
        high = compute_binomial_interval(unexpected, np.asarray(count), 0.95)[1]
        return 0.0, float(high)


def _check_positions(values: Any, n_samples: int, name: str, fewest: int = 0) -> NDArray[np.intp]:
    """Return valid, distinct positions of samples; an error names the argument."""
    rows = np.asarray(values)
    if fewest and rows.shape == (0,):
        raise ValueError(f"{name} must be at least two integers, got none: nothing was checked.")
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) < fewest:
        got = f"shape {rows.shape} and dtype {rows.dtype}"
        least = "at least two integers" if fewest else "integers"
        raise ValueError(f"{name} must be {least}, got {got}.")
    distinct = np.unique(rows)
    if len(distinct) < len(rows) or distinct[0] < 0 or distinct[-1] >= n_samples:
        raise ValueError(
            f"{name} must be distinct and from 0 to {n_samples - 1}, got {len(distinct)} distinct "
            f"ones of {len(rows)}, from {distinct[0]} to {distinct[-1]}."
        )
    return rows.astype(np.intp)


def _check_inclusion(values: Any, n_checks: int) -> NDArray[np.float64]:
    """Return valid inclusion probabilities."""
    likely = np.asarray(values, dtype=np.float64)
    if likely.shape != (n_checks,) or not ((likely > 0) & (likely <= 1)).all():
        raise ValueError(
            f"inclusion must be a probability in (0, 1] for each of the {n_checks} positions, got "
            f"shape {likely.shape} and values from {likely.min():.3g} to {likely.max():.3g}."
            if likely.size
            else f"inclusion must have {n_checks} probabilities, got none."
        )
    return likely


def set_label_proba(
    proba: NDArray, codes: NDArray[np.intp], p_correct: NDArray[np.float64]
) -> None:
    """Set the probabilities of the labels, in place; those of other classes keep their ratios."""
    rows = np.arange(len(proba))
    proba[rows, codes] = 0.0
    others = proba.sum(axis=1)
    impossible = others <= 0  # no ratios to keep: make all other classes equally likely
    proba[impossible] = 1.0
    proba[rows[impossible], codes[impossible]] = 0.0
    others[impossible] = proba.shape[1] - 1
    proba *= ((1.0 - p_correct) / others)[:, None].astype(proba.dtype)
    proba[rows, codes] = p_correct
