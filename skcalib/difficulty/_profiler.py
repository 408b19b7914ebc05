"""The example-difficulty study: many networks on random splits, one row for every sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from math import ceil
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Memory, Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..utils._arrays import check_has, check_weights
from ..utils._backends import is_on_accelerator, to_host
from ..utils._compat import HasMethods, Interval, _fit_context, _safe_indexing, validate_parameters
from ..utils._estimators import VersionMixin, get_last_step
from ..utils._labels import as_labels, check_labels_like, encode, encode_groups
from ..utils._output import as_table, get_row_index
from ._base import RequiresLabels
from ._networks import (
    check_network,
    check_samples,
    clone_with_seed,
    is_torch_module,
    make_default_network,
    train_recorded,
)
from ._prediction_depth import PredictionDepthScorer
from .training_dynamics import (
    consensus_class,
    consensus_consistency,
    consistency_score,
    corner_distances,
    difficulty_quadrant,
    iteration_learned,
    prediction_entropy,
    quotient,
)


class Plan(NamedTuple):
    """One repeat: the samples that it holds out (n,), and its seed."""

    held_out: NDArray
    seed: int


class Repeat(NamedTuple):
    """The results of a network for every sample, (n,), and the classes by its probes, (n, L).

    Class probabilities of the probes, (n_held_out, L, K), are those of the held-out samples, if
    they are kept.
    """

    predictions: NDArray
    depth: NDArray
    iteration_learned: NDArray
    probe_votes: NDArray
    held_out_proba: NDArray | None
    layer_names: list[str]


def plan_repeats(
    n_samples: int, n_test: int, random_state: np.random.RandomState
) -> Iterator[Plan]:
    """Yield plans without end; every sample is held out equally often, give or take one.

    Each single split is uniformly random.
    """
    waiting = random_state.permutation(n_samples)  # not held out in this round so far
    while True:
        chosen, waiting = waiting[:n_test], waiting[n_test:]
        if len(chosen) < n_test:
            # The next round starts with samples that are not already in this split.
            others = random_state.permutation(np.setdiff1d(np.arange(n_samples), chosen))
            n_missing = n_test - len(chosen)
            # `chosen` belongs to the old round: the new one has to hold it out again.
            waiting = random_state.permutation(np.concatenate([others[n_missing:], chosen]))
            chosen = np.concatenate([chosen, others[:n_missing]])
        held_out = np.zeros(n_samples, dtype=bool)
        held_out[chosen] = True
        yield Plan(held_out, int(random_state.randint(np.iinfo(np.int32).max)))


def run_repeat(
    plan: Plan,
    scorer: Any,
    n_probe_samples: int | None,
    X: Any,
    y: NDArray,
    sample_weight: Any,
    *,
    keep_proba: bool = False,
) -> Repeat:
    """Train a network on the samples that are not held out, and return its results for all."""
    train = np.flatnonzero(~plan.held_out)
    X_train, y_train = _safe_indexing(X, train), y[train]
    weight = None if sample_weight is None else sample_weight[train]
    network = make_default_network(plan.seed) if scorer.estimator is None else scorer.estimator
    model = clone_with_seed(network, plan.seed)
    history = train_recorded(model, X_train, y_train, X, sample_weight=weight, seed=plan.seed)
    predictions = as_labels(model.predict(X), name="predictions")
    # The probes are fitted to training samples only, and then applied to all.
    fitted = clone(scorer).set_params(estimator=FrozenEstimator(model), random_state=plan.seed)
    if n_probe_samples is not None:
        drawn = np.sort(np.random.RandomState(plan.seed).permutation(len(train))[:n_probe_samples])
        X_train, y_train = _safe_indexing(X_train, drawn), y_train[drawn]
    fitted._fit_probes(X_train, y_train, None)
    by_probe, final = fitted._answers(X, y)
    depth = fitted._depth(by_probe, final, y)
    classes = np.unique(y)
    proba = None
    if keep_proba:
        rows, layers = np.flatnonzero(plan.held_out), len(fitted.layer_names_)
        proba = np.zeros((len(rows), layers, len(classes)), dtype=np.float32)
        known = np.searchsorted(classes, fitted.classes_)  # all but classes without a probe sample
        proba[..., known] = fitted.probe_predict_proba(_safe_indexing(X, rows), y[rows])
    # One byte for each vote, up to 256 classes.
    votes = np.searchsorted(classes, by_probe).astype(np.min_scalar_type(len(classes) - 1))
    # Without a record of epochs the iteration is NaN.
    unknown = np.full(len(y), np.nan)
    learned = iteration_learned(history, final=predictions) if history else unknown
    return Repeat(predictions, depth, learned, votes, proba, fitted.layer_names_)


class DifficultyProfiler(RequiresLabels, VersionMixin, BaseEstimator):
    """Profile of every sample by an ensemble of networks trained on random splits.

    Every repeat trains a network on a random part of the samples. For each sample, the networks
    that trained on it are compared with those that did not [1]_.

    Parameters
    ----------
    estimator : MLPClassifier, skorch net, Pipeline or PredictionDepthScorer
        The network to train; in a :class:`PredictionDepthScorer`, together with the probes to
        measure depth with. Every repeat sets all its ``random_state`` parameters.
    n_repeats : int, default=25
        Number of networks.
    test_size : float or int, default=0.1
        Fraction or number of samples that a repeat holds out, or of groups if `fit` gets them. All
        are held out equally often, give or take one, and at least once: a fraction times
        `n_repeats` must be at least 1.
    n_probe_samples : int, default=None
        Number of training samples that the probes of a repeat are fitted to, drawn anew for each.
        None takes all; search times then grow as n_samples squared. A class that is not drawn gets
        no votes, and its samples no depth.
    keep_proba : bool, default=False
        Whether the class probabilities of the probes are kept for held-out samples, which
        :meth:`layer_confidence` needs: 4 bytes for each layer, class, and time that a sample is
        held out, and one more pass over these. A `folder` keeps them for themselves.
    n_jobs : int, default=None
        Number of repeats that run at the same time, in the active joblib backend.
    random_state : int, RandomState instance or None, default=None
        Draws the splits and the seeds of the networks.
    threshold : float, default=None
        Depths above it are high in `difficulty_type`; None as in
        :func:`~skcalib.difficulty.training_dynamics.difficulty_quadrant`.
    folder : str or path, default=None
        Where finished repeats are kept, by :class:`joblib.Memory`. A study that is fitted again,
        after an interruption or with more repeats, reads them instead of training; other studies
        may share the folder. Needs an integer `random_state`. A repeat with a damaged file runs
        again. The files are pickles: only use a folder that you trust.
    as_frame : bool, default=False
        Whether `profile_` is a DataFrame, with the index of X where it has one.
    verbose : int, default=0
        Progress, as in :class:`joblib.Parallel`: 10 and more reports every repeat.

    Attributes
    ----------
    profile_ : structured ndarray of shape (n_samples,), or DataFrame
        One row for every sample, with the columns:

        - ``depth_trained``, ``depth_held_out``: mean prediction depth in networks that trained on
          the sample and in those that did not; larger = harder; NaN where none has a depth.
        - ``iteration_learned_trained``, ``iteration_learned_held_out``: mean epoch from which the
          prediction stays the final one; larger = harder; NaN where epochs cannot be observed:
          L-BFGS or early stopping of an ``MLPClassifier``, or callbacks disabled.
        - ``consensus_class``: majority vote of the networks that held the sample out.
        - ``consistency``, ``consensus_consistency``: fraction of those networks that are correct,
          and that vote for the consensus class; larger = easier.
        - ``prediction_entropy``: entropy of those votes in nats; larger = harder.
        - ``n_held_out``: number of those networks.
        - ``difficulty_type``: "easy", "looks_like_other_class", "ambiguous_without_label",
          "ambiguous", or "undefined" where a depth is NaN.
        - ``corner_distance``: from the nearest corner of the plane of the two depths, in layers,
          as in :func:`~skcalib.difficulty.training_dynamics.corner_distances`; the smallest are
          the clearest samples of a form.
    predictions_ : ndarray of shape (n_repeats, n_samples)
        Labels predicted by every network.
    depth_ : ndarray of shape (n_repeats, n_samples)
        Prediction depths; NaN where the last probe disagrees with the network.
    iteration_learned_ : ndarray of shape (n_repeats, n_samples)
        Epochs from which the prediction stays the final one.
    probe_votes_ : ndarray of unsigned int of shape (n_repeats, n_samples, n_layers)
        Predictions of every probe of every network, as positions in `classes_`.
    held_out_proba_ : ndarray of shape (n_samples, n_layers, n_classes), float32
        Mean class probabilities of the probes, fractions of votes, in the networks that held the
        sample out. Only with `keep_proba`.
    layer_names_ : list of str
        The probes, as in :class:`PredictionDepthScorer`.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    held_out_ : ndarray of bool of shape (n_repeats, n_samples)
        True where the network did not train on the sample: the ``mask`` of
        :func:`~skcalib.difficulty.training_dynamics.consistency_score` and its like.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of features and, where the input has them, their names.

    See Also
    --------
    PredictionDepthScorer : The depth in one trained network.
    skcalib.difficulty.training_dynamics.difficulty_quadrant : The four forms of difficulty.
    skcalib.plots.DifficultyPlaneDisplay : Draws the profile.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Secs. 2.2 and 4. Calls: :ref:`paper-depth`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neural_network import MLPClassifier
    >>> from skcalib.difficulty import DifficultyProfiler, PredictionDepthScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> net = MLPClassifier((8, 8), learning_rate_init=0.02, max_iter=40)
    >>> scorer = PredictionDepthScorer(net, n_neighbors=10)
    >>> profiler = DifficultyProfiler(scorer, n_repeats=4, test_size=0.25, random_state=0)
    >>> profile = profiler.fit(X, y).profile_
    >>> int((profile["n_held_out"] >= 1).sum())
    150
    >>> float(profile["consistency"].mean()) > 0.8
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit"])],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "test_size": [
            Interval(Real, 0, 1, closed="neither"),
            Interval(Integral, 1, None, closed="left"),
        ],
        "n_probe_samples": [Interval(Integral, 1, None, closed="left"), None],
        "keep_proba": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "threshold": [Interval(Real, None, None, closed="neither"), None],
        "folder": [str, PathLike, None],
        "as_frame": ["boolean"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        n_repeats: int = 25,
        test_size: float = 0.1,
        n_probe_samples: int | None = None,
        keep_proba: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        threshold: float | None = None,
        folder: str | PathLike | None = None,
        as_frame: bool = False,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_repeats = n_repeats
        self.test_size = test_size
        self.n_probe_samples = n_probe_samples
        self.keep_proba = keep_proba
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.threshold = threshold
        self.folder = folder
        self.as_frame = as_frame
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Train the networks and profile the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Passed to the training of the networks.
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together, such as those of a patient: a repeat holds out all
            samples of a group or none.

        Returns
        -------
        self : DifficultyProfiler
            The fitted profiler.
        """
        index = get_row_index(X)
        scorer = self._scorer()
        if self.keep_proba and not isinstance(scorer.probe, str):
            check_has(
                scorer.probe, "predict_proba", name="probe", what="a classifier with probabilities"
            )
        X, labels = check_samples(self, scorer.estimator, X, y)
        if self.folder is not None and is_on_accelerator(X):
            X = to_host(X)  # joblib hashes the values of arrays, but not of tensors
        if isinstance(X, np.ndarray):
            # The order of a product's terms, and so its last digit, follows the layout.
            X = np.ascontiguousarray(X)
        weight = check_weights(sample_weight, len(labels))
        # Without groups, every sample is a group.
        codes = np.arange(len(labels)) if groups is None else encode_groups(groups, len(labels))[1]
        n_groups = int(codes.max()) + 1
        n_test = self._n_test(n_groups, "n_samples" if groups is None else "n_groups")
        plans = plan_repeats(n_groups, n_test, check_random_state(self.random_state))
        planned = [
            plan._replace(held_out=plan.held_out[codes]) for plan in islice(plans, self.n_repeats)
        ]
        fewest = scorer.n_neighbors + scorer.exclude_self if scorer._votes() else 1
        n_train = min((~plan.held_out).sum() for plan in planned)
        if self.n_probe_samples is not None and not fewest <= self.n_probe_samples <= n_train:
            raise ValueError(
                f"n_probe_samples must be at least {fewest}, for the probes, and at most the "
                f"{n_train} samples that a repeat trains on, got {self.n_probe_samples}."
            )
        # Only if asked for: a folder knows a repeat by its arguments.
        run, kept = self._remembered(), {"keep_proba": True} if self.keep_proba else {}
        # Without n_repeats: a longer study begins with the repeats of a shorter one.
        repeats = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
            delayed(run)(plan, scorer, self.n_probe_samples, X, labels, weight, **kept)
            for plan in planned
        )
        self.held_out_ = np.stack([plan.held_out for plan in planned])
        self.__dict__.pop("held_out_proba_", None)  # of an earlier fit
        if self.keep_proba:
            total = np.zeros((len(labels), *repeats[0].held_out_proba.shape[1:]), dtype=np.float32)
            for plan, repeat in zip(planned, repeats):
                total[plan.held_out] += repeat.held_out_proba
            total /= self.held_out_.sum(axis=0)[:, np.newaxis, np.newaxis]
            self.held_out_proba_ = total
        self.predictions_, self.depth_, self.iteration_learned_, self.probe_votes_ = (
            np.stack(values) for values in list(zip(*repeats))[:4]
        )
        self.layer_names_, self.classes_ = repeats[0].layer_names, np.unique(labels)
        columns = self._columns(labels)
        self.profile_ = as_table(columns, as_frame=self.as_frame, index=index)
        return self

    def _scorer(self) -> PredictionDepthScorer:
        """Return the scorer with its network, which must be one that can be trained."""
        scorer = self.estimator
        if not isinstance(scorer, PredictionDepthScorer):
            scorer = PredictionDepthScorer(scorer)
        if isinstance(scorer.estimator, FrozenEstimator) or is_torch_module(scorer.estimator):
            raise TypeError(
                "estimator must be a network that can be trained again, got "
                f"{type(scorer.estimator).__name__}."
            )
        validate_parameters(scorer)
        if scorer.estimator is not None:
            check_network(get_last_step(scorer.estimator)[0])
        return scorer

    def layer_agreement(
        self, labels: ArrayLike, *, held_out: bool = True, n_closest: int | None = None
    ) -> dict[str, NDArray[np.float64]]:
        """Fraction of probes that agree with `labels`, by layer and by form of difficulty.

        If `labels` are those of the samples, this is the accuracy of the probes. If they are the
        column ``consensus_class`` of `profile_`, it is the agreement with the consensus (Fig. 8 of
        the paper, dotted).

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            A label for every sample of `fit`.
        held_out : bool, default=True
            Whether to use the networks that held a sample out, or those that trained on it.
        n_closest : int, default=None
            Number of samples of each form, those with the smallest ``corner_distance``: 100 in the
            paper. None takes all.

        Returns
        -------
        agreement : dict of str to ndarray of shape (n_layers,)
            For every form of difficulty that some sample has, in the order of `layer_names_`.
            In [0, 1].
        """
        codes = self._codes(labels)
        agree = self.probe_votes_ == codes[:, np.newaxis]
        asked = self.held_out_ if held_out else ~self.held_out_
        return {
            form: agree[:, rows][asked[:, rows]].mean(axis=0)
            for form, rows in self._samples_of_forms(n_closest).items()
            if asked[:, rows].any()
        }

    def layer_confidence(
        self, labels: ArrayLike, *, n_closest: int | None = None
    ) -> dict[str, NDArray[np.float64]]:
        """Mean confidence of held-out probes in `labels`, by layer and by form of difficulty.

        Of a vote, the confidence is the fraction of neighbors with that label (Fig. 8 of the
        paper, solid: with the labels of the samples on the left, and with the column
        ``consensus_class`` of `profile_` on the right).

        Parameters
        ----------
        labels, n_closest : of :meth:`layer_agreement`

        Returns
        -------
        confidence : dict of str to ndarray of shape (n_layers,)
            For every form of difficulty that some sample has, in the order of `layer_names_`.
            In [0, 1].

        Raises
        ------
        ValueError
            Without `keep_proba`.
        """
        codes = self._codes(labels)
        if not hasattr(self, "held_out_proba_"):
            raise ValueError("keep_proba must be True in `fit` for layer_confidence, got False.")
        confidence = self.held_out_proba_[np.arange(len(codes)), :, codes]
        return {
            form: confidence[rows].mean(axis=0, dtype=np.float64)
            for form, rows in self._samples_of_forms(n_closest).items()
        }

    def _codes(self, labels: ArrayLike) -> NDArray[np.intp]:
        """Return labels, one for every sample, as positions in `classes_`."""
        check_is_fitted(self)
        n_samples = self.held_out_.shape[1]
        checked = check_labels_like(labels, name="labels", n_samples=n_samples, like=self.classes_)
        return encode(checked, self.classes_, name="labels")

    def _samples_of_forms(self, n_closest: int | None) -> dict[str, NDArray[np.intp]]:
        """Return the samples of every form, the closest to its corner first."""
        whole = isinstance(n_closest, Integral) and not isinstance(n_closest, bool)
        if n_closest is not None and not (whole and n_closest >= 1):
            raise ValueError(f"n_closest must be an integer >= 1 or None, got {n_closest!r}.")
        forms = np.asarray(self.profile_["difficulty_type"])
        order = np.argsort(np.asarray(self.profile_["corner_distance"]), kind="stable")
        return {
            form: order[forms[order] == form][:n_closest]
            for form in np.unique(forms).tolist()
            if form != "undefined"
        }

    def _n_test(self, n_samples: int, what: str) -> int:
        """Return how many samples or groups a repeat holds out; `what` names them in errors."""
        if isinstance(self.test_size, Integral):
            n_test = int(self.test_size)
        else:
            # Rounded up, as in train_test_split.
            n_test = ceil(self.test_size * n_samples)
        if n_test >= n_samples:
            raise ValueError(
                f"test_size must leave samples to train on, got {self.test_size} with "
                f"{what}={n_samples}."
            )
        if n_test * self.n_repeats < n_samples:
            raise ValueError(
                f"n_repeats must be at least {ceil(n_samples / n_test)} with "
                f"test_size={self.test_size}, so that every sample is held out once, got "
                f"{self.n_repeats}."
            )
        return n_test

    def _remembered(self) -> Callable[..., Repeat]:
        """Return :func:`run_repeat`, cached in the folder if there is one."""
        if self.folder is None:
            return run_repeat
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                "random_state must be an integer where a folder is given, so that splits can be "
                f"repeated, got {self.random_state!r}."
            )
        # Compressed files have a checksum, by which joblib notices damage.
        return Memory(fspath(self.folder), compress=True, verbose=0).cache(run_repeat)

    def _columns(self, y: NDArray) -> dict[str, NDArray]:
        """Return the columns of `profile_`."""
        held_out, votes = self.held_out_, self.predictions_
        columns = {
            "depth_trained": _compute_mean(self.depth_, ~held_out),
            "depth_held_out": _compute_mean(self.depth_, held_out),
            "iteration_learned_trained": _compute_mean(self.iteration_learned_, ~held_out),
            "iteration_learned_held_out": _compute_mean(self.iteration_learned_, held_out),
            "consensus_class": consensus_class(votes, y, mask=held_out),
            "consistency": consistency_score(votes, y, mask=held_out),
            "consensus_consistency": consensus_consistency(votes, mask=held_out),
            "prediction_entropy": prediction_entropy(votes, mask=held_out),
            "n_held_out": held_out.sum(axis=0),
        }
        columns["difficulty_type"] = difficulty_quadrant(
            columns["depth_held_out"], columns["depth_trained"], threshold=self.threshold
        )
        distances = corner_distances(columns["depth_held_out"], columns["depth_trained"])
        columns["corner_distance"] = distances.min(axis=1)
        return columns


def _compute_mean(values: NDArray, where: NDArray) -> NDArray:
    """Return the mean (n,) of the values (n_repeats, n) that count and are not NaN."""
    counted = where & ~np.isnan(values)
    return quotient(np.where(counted, values, 0.0).sum(axis=0), counted.sum(axis=0))
