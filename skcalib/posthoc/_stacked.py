"""Several calibrators, weighed by the labels of samples they were not fitted on."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ..utils.checking._groups import design_effect
from ..utils.checking._guard import told
from ..utils.meta._warnings import collecting, ignoring
from ._base import SMALLEST, PostHocCalibrator, mixture_formula, simplex_weights
from ._linear import Ridge
from ._matrix import StructuredMatrixScaling, StructuredVectorScaling
from ._temperature import TemperatureScaling

AS_IT_IS = "as it is"
_N_FOLDS = 5
# Samples up to which the folds are drawn twice and both judge: of few, one draw tells too little.
_FEW_SAMPLES = 500
# Gain in the summed log-likelihood from which a step of the stack is taken fully, and what classes
# from the third to the tenth add to it: folds of equal class frequencies flatter intercepts.
_FULL_GAIN, _GAIN_PER_CLASS, _MOST_CLASSES_OF_GAIN = 5.0, 0.5, 10
# Least part of the first step: models that are as sure as they should be are not the rule.
_FIRST_SHARE = 0.5
# Parts of a step that are tried in turn while it costs too many predictions.
_PARTS_OF_STEP = 1.0, 0.75, 0.5, 0.25
# Maps that change predictions may cost this fraction of the right ones among the samples left out,
# or two, and one more for so much gain in log-likelihood; all with standard errors included.
_MOST_LOST, _STANDARD_ERRORS, _GAIN_OF_PREDICTION = 0.01, 1.5, 3.0
# A map takes too long where a pass over all samples has more numbers than this.
_MOST_NUMBERS = 5 * 10**7
# With as many classes a matrix has gained nothing.
_MOST_CLASSES_OF_MATRIX = 100
# Samples a class from which on a matrix is drawn to its diagonal a tenth as strongly.
_SAMPLES_OF_LOOSE_MATRIX = 10


class LooseMatrixScaling(StructuredMatrixScaling):
    """Structured matrix scaling that draws the entries off the diagonal to 0 a tenth as strongly.

    Alone it overfits more often. In the stack, which leaves it out then, it repairs models that
    mix up classes and are sure of it, such as naive Bayes.
    """

    def _ridge(self) -> Ridge:
        return super()._ridge()._replace(off_diagonal=0.1)


class StackedCalibration(PostHocCalibrator):
    """Mix several calibrators and the probabilities as they are, weighed out-of-fold.

    Which calibrator is best depends on how the model errs and on how many samples there are, and
    neither is known. So every map is fitted on four fifths of the samples and judged on the rest.
    The weights of the mixture make the labels of all samples left out most likely; they are 0 or
    more and sum to 1. The maps are then fitted on all samples.

    Nothing is changed without reason. The first step leads from the probabilities as they are to
    their mixture with the maps that keep the predicted class. Every further step adds the next map
    that can change it. How far a step goes depends on the log-likelihood that it gains on the
    samples left out: from 5 nats on it is taken in full. With more classes further steps need
    more, up to 9 nats with ten classes. The first step is taken at least half.

    A further step may lose 1 % of the predictions on these samples (or two predictions, if that is
    more), plus one for every 3 nats that it gains; 1.5 standard errors are added to the loss. If
    it loses more, it is shortened to three quarters, half or a quarter, or not taken. `left_out_`
    says which maps have no part.

    Parameters
    ----------
    calibrators : list of (str, PostHocCalibrator), default=None
        Names and calibrators, simple ones first; clones are fitted, with the `input` and `classes`
        of this one. None means :class:`TemperatureScaling`, :class:`StructuredVectorScaling` and
        :class:`StructuredMatrixScaling`, as far as the size of the data allows; from ten samples a
        class on, the ridge off the diagonal of the matrix is a tenth as strong. The probabilities
        as they are take part in any case.
    input : {"logits", "proba"}, default="logits"
        What X holds. A logit of -inf is an option that does not exist for the sample; of the
        default calibrators only the temperature takes it.
    classes : of :class:`PostHocCalibrator`

    Attributes
    ----------
    calibrators_ : dict of str to PostHocCalibrator
        The calibrators that take part, fitted on all samples.
    weights_ : dict of str to float
        Their weights and that of the probabilities as they are, which sum to 1.
    log_losses_ : dict of str to float
        Mean log-loss out-of-fold of every component, of those left out after that as well, and of
        the mixture as "mixture".
    left_out_ : dict of str to str
        Calibrators that take no part, and why.
    classes_, n_features_in_, feature_names_in_ : ndarray, int and ndarray of str
        Labels, number and names of the columns of X, as for :class:`PostHocCalibrator`.

    See Also
    --------
    PostHocCalibratedClassifier : A classifier and this calibrator as one estimator.
    TemperatureScaling : The simplest of the maps.

    Notes
    -----
    The folds follow from the samples, not from their order or that of the classes, and nothing is
    random. Up to 500 samples are folded twice, and the weights are fitted to both foldings. With
    `groups`, no group is in two folds, and samples count by how much their log-losses differ
    within groups: thirty alike of one person count as one. A
    sample of weight k is in one fold, k equal samples are in several: the maps are the same, and
    the weights of the mixture differ a little.

    Examples
    --------
    >>> from skcalib.datasets import make_predictions
    >>> from skcalib.posthoc import StackedCalibration
    >>> y, proba, _ = make_predictions(2000, n_classes=3, temperature=2.0, random_state=0)
    >>> stack = StackedCalibration(input="proba").fit(proba, y)
    >>> for name, loss in stack.log_losses_.items():
    ...     print(f"{name:18}{loss:.3f}")
    as it is          0.733
    temperature       0.608
    structured_vector 0.609
    structured_matrix 0.608
    mixture           0.607
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PostHocCalibrator._parameter_constraints,
        "calibrators": [list, None],
    }
    _takes_missing_options = True
    _has_folds = True

    def __init__(
        self,
        calibrators: list[tuple[str, PostHocCalibrator]] | None = None,
        *,
        input: str = "logits",
        classes: ArrayLike | None = None,
    ) -> None:
        self.calibrators = calibrators
        self.input = input
        self.classes = classes

    def _fit(
        self,
        scores: NDArray,
        y: NDArray,
        sample_weight: NDArray | None,
        groups: NDArray[np.intp] | None = None,
    ) -> None:
        if groups is not None and len(np.unique(groups)) < 2:
            raise ValueError(
                "groups must name at least two groups of positive weight, one to fit calibrators "
                "and another one to judge them, got one."
            )
        if len(y) < 2:
            raise ValueError(
                "X must hold a sample to fit calibrators and another one to judge them, both of "
                "positive weight, got one."
            )
        weight = np.ones(len(y)) if sample_weight is None else sample_weight
        raw = self._as_proba(scores)
        if groups is not None:
            # Ten pictures of one person are not ten samples.
            of_label = np.maximum(raw[np.arange(len(y)), y], SMALLEST)
            effect = design_effect(-np.log(of_label), groups, weight)
            weight = sample_weight = weight / effect
        n_effective = weight.sum() if groups is not None else len(y)
        candidates = self._candidates(scores, n_effective)
        n_foldings = 2 if n_effective <= _FEW_SAMPLES else 1
        foldings = [folds_by_class(raw, y, weight, seed, groups) for seed in range(n_foldings)]
        proba = {AS_IT_IS: np.tile(raw, (n_foldings, 1))}
        for name, calibrator in candidates.items():
            proba[name] = np.empty_like(proba[AS_IT_IS])
            for folds, part in zip(foldings, np.split(proba[name], n_foldings)):
                for fold in range(folds.max() + 1):
                    rest = folds != fold
                    _quietly_fit(calibrator, scores[rest], y[rest], weight[rest])
                    part[~rest] = calibrator.predict_proba(scores[~rest])
        rich = [name for name, part in candidates.items() if not part._keeps_order]
        y_folded, weight_folded = np.tile(y, n_foldings), np.tile(weight / n_foldings, n_foldings)
        self.weights_, of_label, reasons = _weigh(proba, rich, y_folded, weight_folded)
        mixture = of_label @ list(self.weights_.values())
        losses = -np.log(np.column_stack([of_label, mixture]))
        means = np.average(losses, axis=0, weights=weight_folded)
        self.log_losses_ = dict(zip([*proba, "mixture"], means.tolist()))
        for name, reason in reasons.items():
            self.left_out_[name] = reason
            del candidates[name], self.weights_[name]
        self.calibrators_ = {
            name: _quietly_fit(calibrator, scores, y, sample_weight)
            for name, calibrator in candidates.items()
        }

    def _predict_proba(self, scores: NDArray) -> NDArray:
        raw = self._as_proba(scores)
        mixed = self.weights_[AS_IT_IS] * raw.astype(np.float64)
        for name, calibrator in self.calibrators_.items():
            mixed += self.weights_[name] * calibrator._predict_proba(scores)
        mixed /= mixed.sum(axis=1, keepdims=True)
        return mixed.astype(np.result_type(raw.dtype, np.float32), copy=False)

    def _formula(self) -> dict[str, Any]:
        parts = {AS_IT_IS: {"kind": "as it is"}}
        for name, calibrator in self.calibrators_.items():
            parts[name] = calibrator._formula()
        return mixture_formula([self.weights_[name] for name in parts], list(parts.values()))

    def _candidates(self, scores: NDArray, n_effective: float) -> dict[str, PostHocCalibrator]:
        """Return unfitted calibrators that the data allow, and note why others are left out."""
        k = max(2, scores.shape[1])
        loose = n_effective >= _SAMPLES_OF_LOOSE_MATRIX * k
        self.left_out_: dict[str, str] = {}
        chosen = self.calibrators
        if chosen is None:
            chosen = [("temperature", TemperatureScaling())]
            numbers = scores.shape[0] * k
            for name, kind, allowed in (
                ("structured_vector", StructuredVectorScaling, numbers <= _MOST_NUMBERS),
                (
                    "structured_matrix",
                    LooseMatrixScaling if loose else StructuredMatrixScaling,
                    numbers * k <= _MOST_NUMBERS and k < _MOST_CLASSES_OF_MATRIX,
                ),
            ):
                if np.isneginf(scores).any():
                    self.left_out_[name] = "it cannot do without the logit of a missing option"
                elif not allowed:
                    self.left_out_[name] = f"{len(scores)} samples of {k} classes are too many"
                else:
                    chosen.append((name, kind()))
        given = {"input": self.input, "classes": list(range(k))}
        return {name: clone(calibrator).set_params(**given) for name, calibrator in chosen}


def _quietly_fit(
    calibrator: PostHocCalibrator, scores: NDArray, y: NDArray, weight: NDArray | None
) -> PostHocCalibrator:
    # A temperature at its bound gets the weight that it deserves. Four fifths of the samples may
    # look like numbers to regress on; all of them were checked.
    with (
        collecting(),
        told(),
        ignoring(UserWarning, "The number of unique classes is greater"),
    ):
        return calibrator._check_and_fit(scores, y, weight)


def folds_by_class(
    proba: NDArray,
    y: NDArray,
    weight: NDArray,
    seed: int,
    groups: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Return the fold of every sample: the samples of a class take turns, in random order.

    Their order does not matter, nor that of classes unlike in count and mean squared probability.
    With groups, these take turns as wholes, each in the line of its most frequent class.
    """
    rng = np.random.default_rng(seed)
    k = proba.shape[1]
    classes = np.lexsort((np.square(proba).mean(axis=0).round(9), np.bincount(y, minlength=k)))
    rank = np.argsort(classes)
    y, key = rank[y], (proba * rng.random(len(rank))[rank]).sum(axis=1)
    if groups is not None:
        _, groups = np.unique(groups, return_inverse=True)
        size, count = np.bincount(groups), np.zeros((groups.max() + 1, k))
        np.add.at(count, (groups, y), weight)
        # A group stands for its samples by their mean; equal classes go to the frequent one.
        mean, total = (np.bincount(groups, values) for values in (key, weight))
        of_groups = (mean / size).round(9), count.argmax(axis=1), total
        return _in_turns(*of_groups, rng)[groups]
    return _in_turns(key, y, weight, rng)


def _in_turns(
    key: NDArray, y: NDArray, weight: NDArray, rng: np.random.Generator
) -> NDArray[np.intp]:
    """Return folds in which the entries of a class take turns, in an order that they determine."""
    order = np.lexsort((weight, y, key))[rng.permutation(len(y))]
    folds = np.empty(len(y), dtype=np.intp)
    folds[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % _N_FOLDS
    return folds


def _weigh(
    proba: dict[str, NDArray], rich: list[str], y: NDArray, weight: NDArray
) -> tuple[dict[str, float], NDArray[np.float64], dict[str, str]]:
    """Return the weights of the components, their probabilities of the labels, and reasons.

    They say why some of the `rich` components, which can change the predicted class, have no
    weight.
    """
    # A probability of 0 would end the sum of logarithms.
    label, floor = (np.arange(len(y)), y), np.finfo(np.float32).tiny
    of_label = np.column_stack([np.maximum(part[label], floor) for part in proba.values()])
    of_label = of_label.astype(np.float64)
    n_more_classes = min(proba[AS_IT_IS].shape[1], _MOST_CLASSES_OF_GAIN) - 2
    taking_part = np.array([name not in rich for name in proba])
    weights, reasons = np.eye(len(proba))[0], {}
    for added in ["", *rich]:
        taking_part |= np.array([name == added for name in proba])
        fitted = np.zeros_like(weights)
        fitted[taking_part] = simplex_weights(of_label[:, taking_part], weight)
        gain = float(weight @ np.log((of_label @ fitted) / (of_label @ weights)))
        full_gain = _FULL_GAIN + (_GAIN_PER_CLASS * n_more_classes if added else 0)
        share = np.interp(gain, (0, full_gain), (0 if added else _FIRST_SHARE, 1))
        if share == 0:
            reasons[added] = "it made the labels of samples left out no more likely"
            continue
        for part in _PARTS_OF_STEP:
            step = weights + part * share * (fitted - weights)
            if not added or not _loses_accuracy(proba, step, y, weight, gain):
                weights = step
                break
        else:
            reasons[added] = "it made predictions of samples left out worse"
    found = dict(zip(proba, weights.tolist()))
    reasons = {name: reason for name, reason in reasons.items() if found.get(name) == 0}
    return found, of_label, reasons


def _loses_accuracy(
    proba: dict[str, NDArray], weights: NDArray, y: NDArray, weight: NDArray, gain: float
) -> bool:
    """Tell whether the mixture may be right for fewer samples than its gain excuses."""
    mixed = sum(w * part for w, part in zip(weights, proba.values()))
    before, after = (part.argmax(axis=1) == y for part in (proba[AS_IT_IS], mixed))
    lost = float(weight @ before) - float(weight @ after)
    lost += _STANDARD_ERRORS * float(weight @ (before != after)) ** 0.5
    return lost > max(2.0, _MOST_LOST * float(weight.sum())) + gain / _GAIN_OF_PREDICTION
