"""EM iterations that fit base models and noise model in turn, and caveats of the result."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from scipy.stats import entropy
from sklearn.frozen import FrozenEstimator

from ..utils._numeric import compute_binomial_interval
from ._base_models import (
    BaseModel,
    ByRows,
    LeaveOneOut,
    OutOfFold,
    find_neighbors,
    get_features,
    iter_blocks,
)
from ._constants import (
    FEW,
    FEWEST_OF_A_CLASS,
    FIRST_FIT_WEIGHT,
    KEPT_ELEMENTS,
    MIN_ACCURACY,
    MIN_GAIN_Z,
    MIN_INFORMATION,
    MIN_P_ANY_WRONG,
    MOST_CLASSES_OF_A_MATRIX,
    NONINFORMATIVE,
    NUMBERS_OF_NEIGHBORS,
    SOME_SAMPLES,
)
from ._noise_model import (
    Choice,
    FittedNoiseModel,
    LabelLikelihood,
    choose_noise_model,
    choose_rows_to_fit,
    compute_excess,
    compute_least_rate,
    compute_prior,
    compute_spread,
    fit_without_noise,
    log_linear_pool,
    take_rows,
    update_prior,
)

# Kinds of noise to try before uniform noise (see `_noise_model`). Class-dependent noise comes
# first: it has to win once more after the iterations, which it does not where noise is
# confusion-dependent.
_KINDS = ("class-dependent", "confusion-dependent")

# Caveats: reasons not to trust the probabilities, a sentence each.
ADVICE = (
    "Check some labels (draw_samples_to_check, update_with_checks), or leave them as they are."
)


@dataclass(eq=False)
class EMState:
    """The labels, and the base models and noise model of one iteration.

    Base models are fitted to estimated true labels, and noise models to the given labels.
    """

    codes: NDArray[np.intp]  # labels as positions among the classes
    classes: NDArray
    weight: NDArray[np.float64]
    verified: NDArray[np.bool_]
    base_models: dict[str, BaseModel]
    mixed: bool  # whether rates of wrong labels may differ between classes
    is_fitted: bool = True  # whether base models are fitted: False for precomputed probabilities
    step: Callable[[str], Any] = nullcontext  # a context that prints the seconds of a step

    # Set by `iterate`:
    fitted_to: NDArray[np.intp] = field(init=False)  # the estimated true labels
    distances: list[Any] = field(init=False)
    raw_distances: NDArray | ByRows | None = field(init=False)  # of the first LeaveOneOut
    likelihood: LabelLikelihood = field(init=False)
    choice: Choice = field(init=False)

    # Set by `run_em`, in the last iteration that is kept:
    model: FittedNoiseModel = field(init=False)
    proba: ByRows = field(init=False)  # (n_samples, n_classes)
    accuracy: float = field(init=False)  # of the first base models, on right labels

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of classes."""
        return len(self.codes), len(self.classes)

    @property
    def noninformative(self) -> float:
        """Fraction of labels that say nothing beyond the prior; 0 for ``noise="random"``."""
        return NONINFORMATIVE if self.mixed else 0.0

    def iterate(
        self,
        estimated: NDArray[np.intp],
        kinds: tuple[str, ...],
        *,
        compare: bool,
        number: int = 0,
    ) -> EMState:
        """Return the state with base models fitted to `estimated`, and these kinds of noise."""
        stage = f"refit {number}" if number else "fit"
        state, classes = copy(self), self.classes
        labels = classes[estimated]
        state.fitted_to, state.distances, state.raw_distances = estimated, [], None
        for name, base_model in self.base_models.items():
            with self.step(f"{stage}: {name}"):
                raw = base_model.distances(labels, classes)
                if state.raw_distances is None and isinstance(base_model, LeaveOneOut):
                    state.raw_distances = raw
                found = ByRows(partial(compute_excess, raw), self.shape)
                # Those of ready probabilities, their logarithms, take little time.
                is_kept = self.is_fitted and len(labels) * len(classes) <= KEPT_ELEMENTS
                state.distances.append(found.filled() if is_kept else found)
        # Distances ignore class frequencies; their weight is fitted like that of a base model.
        # Precomputed probabilities know them already: all frequencies are equal then.
        size = np.bincount(self.codes, self.weight, len(classes)) * float(self.is_fitted)
        frequency = (size + 1.0) / (size.sum() + len(classes))
        state.distances.append(-2.0 * np.log(frequency)[None])
        del labels
        with self.step(f"{stage}: how labels go wrong"):
            state.likelihood = LabelLikelihood(
                state.distances,
                self.codes,
                self.weight,
                self.verified,
                choose_rows_to_fit(self.weight, len(classes)),
            )
            state.choice = choose_noise_model(state.likelihood, kinds, compare=compare)
        return state

    def posterior(self, fit: FittedNoiseModel) -> ByRows:
        """Return the probability of every class to be the true one, (n_samples, n_classes)."""
        codes, verified = self.codes, self.verified

        def of_rows(rows: slice) -> NDArray:
            prior = compute_prior(take_rows(self.distances, rows), fit.weights)
            noise = fit.matrix, fit.confusion_rate
            return update_prior(prior, codes[rows], verified[rows], *noise)[0]

        return ByRows(of_rows, self.shape)

    def add_noninformative(self, proba: NDArray) -> None:
        """Mix the posterior with the prior, in place: some labels carry no information."""
        for rows in iter_blocks(self.shape):
            prior = compute_prior(take_rows(self.distances, rows), self.model.weights)
            unknown = ~self.verified[rows, None]
            proba[rows] += self.noninformative * unknown * (prior - proba[rows])

    def scores(self) -> tuple[NDArray[np.float64], ...]:
        """Return margins, log-losses of the labels by the prior, and novelty.

        Novelty is the distance to the nearest class; NaN without distances.
        """
        margin, loss, novelty = np.full((3, len(self.codes)), np.nan)
        for rows in iter_blocks(self.shape):
            if self.raw_distances is not None:
                novelty[rows] = self.raw_distances[rows].min(axis=1)
            pooled = log_linear_pool(take_rows(self.distances, rows), self.model.weights)
            own = np.take_along_axis(pooled, self.codes[rows, None], axis=1)[:, 0]
            smallest = pooled.min(axis=1, keepdims=True)
            margin[rows] = own - smallest[:, 0]
            total = np.exp(-0.5 * (pooled - smallest)).sum(axis=1)
            loss[rows] = 0.5 * margin[rows] + np.log(total)
        return margin, loss, novelty

    def fractions(self) -> dict[str, float]:
        """Return the fraction of the pooled distances' spread that comes from each base model."""
        pairs = zip(self.distances[:-1], self.model.weights)
        spread = [weight * compute_spread(distance) for distance, weight in pairs]
        total = sum(spread) or 1.0
        return {name: float(part / total) for name, part in zip(self.base_models, spread)}

    def agreement(self, fit: FittedNoiseModel) -> float:
        """Return how often the pooled base models predict the given label."""
        part = self.likelihood
        return float(part.weight @ (part.predict(fit.weights) == part.codes)) / part.total

    def estimate_accuracy(self, kind: str) -> float:
        """Return an estimate of how often the base models predict a label that is right.

        Their agreement with the given labels over the fraction of right ones, 1 - rate, would be
        exact if they never predicted a wrong label and `rate` were true. Weak base models count
        their own mistakes into the rate, and the quotient is too high: the square root goes
        halfway.
        """
        fit = self.choice.fits[kind]
        return self.agreement(fit) / float(np.sqrt(1.0 - fit.rate))

    def upper_rate(self) -> float:
        """Return the highest plausible fraction of wrong labels among unverified ones.

        It is the upper end of the interval of how many labels the base models do not predict.
        People err on hard samples, where base models err as well. Labels alone cannot separate
        these mistakes, so every label that is not predicted may be wrong. Precomputed
        probabilities may expect more mistakes than that, 1 - p on average: then this counts. A fit
        that makes them surer may only show that their model has learned wrong labels.
        """
        part = self.likelihood
        weight = part.weight * ~part.verified
        if not weight.any():
            return 0.0
        weight /= weight.sum()
        fraction = weight @ (part.predict(self.model.weights) != part.codes)
        if not self.is_fitted:
            fraction = max(fraction, weight @ (1.0 - self._predicted_proba()))
        n_samples = np.asarray(part.total * np.average(~part.verified, weights=part.weight))
        return float(compute_binomial_interval(np.asarray(fraction), n_samples, 0.95)[1])

    def lower_rate(self) -> float:
        """Return the lowest plausible fraction of wrong labels if precomputed probabilities hold.

        The fit may make them surer, and find more wrong labels: but so do right labels that their
        model misfits. 1, which is no limit, for base models that are fitted.
        """
        if self.is_fitted:
            return 1.0
        return compute_least_rate(self.likelihood, self._predicted_proba())

    def _predicted_proba(self) -> NDArray[np.float64]:
        """Return the probability of each label by the base models as they are, on average."""
        part = self.likelihood
        rows = np.arange(len(part.codes))
        of_label = [compute_prior([d], np.ones(1))[rows, part.codes] for d in part.distances[:-1]]
        return np.mean(of_label, axis=0, dtype=np.float64)


def run_em(labels: EMState, n_refits: int) -> EMState:
    """Choose the kind of noise, and refit the base models to the estimated true labels.

    Class- and confusion-dependent noise have to make labels left out more likely than uniform
    noise and matrix scaling do, by MIN_GAIN_Z standard errors. A flexible base model has learned
    some of the wrong labels and predicts them; only base models fitted to the estimated labels
    show all. But a refit confirms its own mistakes: weak base models then find wrong labels among
    right ones. So class-dependent noise has to win after the refits too.
    """
    has_matrix = len(labels.classes) <= MOST_CLASSES_OF_A_MATRIX
    kinds = _KINDS if labels.mixed and has_matrix else ()
    first = labels.iterate(labels.codes, kinds, compare=True)
    gain_z = first.choice.gain_z
    for kind in _KINDS:
        # Weak base models would explain all their mistakes by wrong labels.
        if gain_z.get(kind, 0.0) <= MIN_GAIN_Z or first.estimate_accuracy(kind) < MIN_ACCURACY:
            continue
        last = _refit(first, n_refits, kind)
        if kind != "class-dependent" or last.choice.gain_z.get(kind, 0.0) > MIN_GAIN_Z:
            return last
    return _refit(first, n_refits, "uniform")


def _refit(first: EMState, n_refits: int, kind: str) -> EMState:
    """Refit the base models to estimated labels while that makes the given ones more likely."""
    last, compare = first, kind == "class-dependent"
    before = proba = first.posterior(first.choice.fits[kind])
    estimated = _find_most_probable(before)
    for number in range(n_refits if first.is_fitted else 0):
        outside = len(estimated) - np.bincount(estimated).max()
        # Stop where nothing has changed, or where a fold could lack a second class.
        if (estimated == last.fitted_to).all() or outside < FEWEST_OF_A_CLASS:
            break
        after = first.iterate(estimated, (kind,), compare=compare, number=number + 1)
        if kind not in after.choice.fits or _compute_objective(after, kind) <= _compute_objective(
            last, kind
        ):
            break
        found = after.posterior(after.choice.fits[kind])
        again = _find_most_probable(found)
        if _reverts_most_changes(first.codes, estimated, again):
            break
        last, proba, estimated = after, found, again
    if proba is not before:
        # A refit confirms its own mistakes, the more so the fewer samples a class has.
        n_each = first.weight.sum() / len(np.unique(first.codes[first.weight > 0]))
        part, later = FIRST_FIT_WEIGHT / (FIRST_FIT_WEIGHT + n_each), proba
        proba = ByRows(lambda rows: part * before[rows] + (1.0 - part) * later[rows], first.shape)
    result = copy(last)
    result.proba, result.accuracy = proba, first.estimate_accuracy(kind)
    result.model = replace(
        last.choice.fits[kind],
        base_models=first.base_models,
        frequency=last.distances[-1],
        p_any_wrong=_estimate_p_any_wrong(first, last, kind),
        noninformative=first.noninformative,
    )
    return result


def _estimate_p_any_wrong(first: EMState, last: EMState, kind: str) -> float:
    """Return the probability that there are wrong labels at all, in (0, 1)."""
    compared = kind == "class-dependent"
    simple = last.choice.fits["uniform" if compared else kind]
    gain = simple.log_likelihood - _log_likelihood_without_noise(first, kind)
    gain += max(last.choice.gain_of_matrix, 0.0) if compared else 0.0
    # Akaike's weights: the rate of wrong labels is one parameter more, and has to gain one unit.
    # (BIC is too strict: flexible base models predict some of the wrong labels, which hides them.)
    return float(expit(last.likelihood.total * gain - 1.0))


def _find_most_probable(proba: ByRows) -> NDArray[np.intp]:
    return np.concatenate([proba[rows].argmax(axis=1) for rows in iter_blocks(proba.shape)])


def _log_likelihood_without_noise(first: EMState, kind: str) -> float:
    """Return the log-likelihood if no label is wrong, by base models fitted to the given labels.

    The base models of the last iteration, fitted to other labels, would put "no label is wrong" at
    a disadvantage.
    """
    return fit_without_noise(first.likelihood, first.choice.fits[kind]).log_likelihood


def _reverts_most_changes(
    given: NDArray[np.intp], fitted_to: NDArray[np.intp], estimated: NDArray[np.intp]
) -> bool:
    """Return whether a refit restores most of the labels that were changed for it.

    Base models fitted to labels without any wrong one may explain the wrong ones by being less
    sure of all samples, and not by noise. But then they should not have been fitted to changed
    labels.
    """
    moved = fitted_to != given
    return bool((estimated[moved] == given[moved]).mean() > 0.5)


def _compute_objective(state: EMState, kind: str) -> float:
    """Return the log-likelihood that a refit has to raise."""
    if kind == "class-dependent":  # that of labels left out
        return state.choice.left_out[kind]
    return state.choice.fits[kind].log_likelihood


def diagnose(last: EMState, n_issues: int) -> tuple[str, ...]:
    """Return the sentences of `caveats_` after `fit`."""
    part, caveats = last.likelihood, []
    # Every sample counts once here: a weight need not be a number of samples.
    entropy_of_labels = float(entropy(np.bincount(part.codes, part.weight)))
    if len(part.codes) * (entropy_of_labels + last.model.log_likelihood) < MIN_INFORMATION:
        inputs, better = (
            ("features", "other features")
            if last.is_fitted
            else ("probabilities", "those of another model")
        )
        caveats.append(
            f"The {inputs} hardly predict the labels, no better than class frequencies do, so "
            f"wrong labels cannot be found; {better} could help. {ADVICE}"
        )
    caveats += diagnose_leakage(last)
    if n_issues < FEW:
        return tuple(caveats)
    if last.model.p_any_wrong < MIN_P_ANY_WRONG:
        caveats.append(
            f"The {n_issues} issues may all be right: the probability that any label is wrong is "
            f"only {last.model.p_any_wrong:.2f}. {ADVICE}"
        )
    if last.accuracy < MIN_ACCURACY:
        caveats.append(
            f"The model predicts only {last.agreement(last.model):.0%} of the labels: it knows "
            f"too little about the classes, so that many issues may be right. {ADVICE}"
        )
    caveats += diagnose_misfit(last)
    return tuple(caveats)


def diagnose_leakage(last: EMState) -> list[str]:
    """Return a caveat for every frozen classifier that seems to have been trained on these labels.

    A label that differs from those of most neighbors is wrong, or the sample is hard. A classifier
    that has not seen the label predicts it now and then; one trained on it, nearly always.
    """
    rows, caveats = _choose_rows_to_test(last), []
    codes = last.codes[rows]
    for (name, model), distances in zip(last.base_models.items(), last.distances):
        is_frozen = isinstance(model, OutOfFold) and isinstance(model.estimator, FrozenEstimator)
        around = _find_neighbors_label(last, {name: model}, rows) if is_frozen else None
        if around is None:
            continue
        predicted = (distances[rows].argmin(axis=1) == codes)[around != codes]
        if len(predicted) and _compute_lower_end(predicted) > MIN_ACCURACY:
            caveats.append(
                f"{name} predicts {predicted.mean():.0%} of the {len(predicted)} labels that "
                "differ from those of their neighbors: it has probably been trained on these "
                "labels, and then it predicts wrong ones too. Pass the classifier without "
                "FrozenEstimator, to fit it out-of-fold, or one trained on other samples."
            )
    return caveats


def diagnose_misfit(last: EMState) -> list[str]:
    """Return a caveat if too many labels that the model calls wrong agree with their neighbors.

    A wrong label differs from those of its neighbors. A right label that a base model gets wrong
    because the class has another shape, such as two clusters, agrees with them. Nothing is tested
    if neighbors are among the base models.
    """
    rows, models = _choose_rows_to_test(last), last.base_models
    around = None if "neighbors" in models else _find_neighbors_label(last, models, rows)
    if around is None:
        return []
    codes, proba = last.codes[rows], last.proba[rows]
    p_correct = proba[np.arange(len(rows)), codes]
    wrong = proba.argmax(axis=1) != codes
    if not wrong.any():
        return []
    agree = (around == codes)[wrong]
    if _compute_lower_end(agree) <= p_correct[wrong].mean():
        return []
    return [
        f"Of the labels that the model calls wrong, {agree.mean():.0%} are those of most "
        f"neighbors; by its probabilities, only {p_correct[wrong].mean():.0%} are right. It may "
        f"misfit the classes there, as a Gaussian misfits two clusters. {ADVICE}"
    ]


def _choose_rows_to_test(last: EMState) -> NDArray[np.intp]:
    """Return the samples that the tests look at: all, or a random part of very many."""
    rows = np.flatnonzero((last.weight > 0) & ~last.verified)
    return np.random.default_rng(0).permutation(rows)[:SOME_SAMPLES]


def _find_neighbors_label(
    last: EMState, models: dict[str, BaseModel], rows: NDArray[np.intp]
) -> NDArray | None:
    """Return the most frequent label among each sample's neighbors; None without features."""
    number = NUMBERS_OF_NEIGHBORS[1]
    features = get_features(models, rows) if len(rows) > number else None
    if features is None:
        return None
    votes = np.zeros((len(rows), len(last.classes)))
    for column in find_neighbors(features, number).T:
        votes[np.arange(len(rows)), last.codes[rows][column]] += 1.0
    return votes.argmax(axis=1)


def _compute_lower_end(flags: NDArray[np.bool_]) -> float:
    """Return the lower end of the 95 % interval of how often a flag is set."""
    return float(compute_binomial_interval(flags.mean(), np.asarray(len(flags)), 0.95)[0])
