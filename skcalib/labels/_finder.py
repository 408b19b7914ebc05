"""Find wrong labels: the estimator, and a table in one call."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..difficulty import RelativeMahalanobisScorer
from ..utils._arrays import (
    check_readable,
    keep_index,
)
from ..utils._backends import send_chunks_to
from ..utils._compat import (
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
    _safe_indexing,
    print_elapsed,
)
from ..utils._estimators import (
    VersionMixin,
    combine_input_tags,
    get_last_step,
    has_argument,
    is_list_of_folds,
    join_classes,
    read_samples,
    show_inner,
    warn_if_fitted,
)
from ..utils._labels import (
    check_several_classes,
    count_duplicates,
    encode,
    warn_of_duplicates,
)
from ..utils._output import as_table, get_row_index, warn
from ._annotations import check_weights_and_verified
from ._base_models import (
    diagnose_features,
    make_base_models,
    warn_of_order,
)
from ._checks import (
    ChecksMixin,
    label_log_odds,
    set_label_proba,
)
from ._consensus import (
    VotesMixin,
)
from ._constants import FEWEST_OF_A_CLASS
from ._dask import ChunksMixin
from ._duplicates import (
    find_distinct,
    find_near_duplicates,
)
from ._em import EMState, diagnose, run_em
from ._noise_model import compute_rate_interval, mix_with_none_wrong

if TYPE_CHECKING:
    import pandas as pd


def compute_effective_weights(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights that sum to the effective number of samples, (sum w)^2 / sum w^2.

    Tests and intervals count with these: equal weights are all 1, whatever their size.
    """
    scaled = weight / weight.max()
    return scaled * (scaled.sum() / np.square(scaled).sum())


_NEAR_DUPLICATES = (
    "{} samples have a near-duplicate, such as an augmented copy, with the same unexpected label; "
    "near-duplicates are kept together, so that none predicts the label of another. If you know "
    "which samples belong together, pass groups=."
)


class LabelIssueFinder(
    ChecksMixin, VotesMixin, ChunksMixin, MetaEstimatorMixin, VersionMixin, BaseEstimator
):
    """Find wrong labels, with the probability that each label is right.

    Several base models predict the label of every sample without it (leave-one-out, out-of-fold or
    out-of-bag). A noise model combines them: how much each base model counts, and how often labels
    are wrong, are estimated from the given labels by maximum likelihood. The rate of wrong labels
    may differ between pairs of classes (`noise_matrix_`) or be higher between similar classes, if
    the data support that. Bayes' rule then gives the
    probability that a label is right. There is no distance threshold to choose and no network to
    train.

    From labels alone, a wrong label of a hard sample looks like a right one. So `noise_rate_` is a
    lower bound where people gave the labels. Checking about a hundred randomly drawn labels
    settles the rate: `draw_samples_to_check` and `update_with_checks`.

    If several people labeled the same samples (``fit(X, votes=votes)``), the finder also estimates
    how often each of them is right, how much they err together, and how much one more vote is
    worth. Mistakes that people and base models share show only in checks.

    Parameters
    ----------
    estimator : scorer, Pipeline, classifier, list of them or "precomputed", default=None
        The base models.

        - None: several of standardized features, as the size of the data allows: distances
          to Gaussian classes (:class:`~skcalib.difficulty.RelativeMahalanobisScorer` with
          ``shrinkage="auto"``), an out-of-fold logistic regression, nearest neighbors and, for
          small tables, an out-of-bag random forest.
        - "precomputed": `X` holds class probabilities from a model that was not trained on the
          sample, such as out-of-fold ones. Columns are in the order of the sorted labels, or named
          after the labels in a DataFrame. Nothing is fitted; a memory map stays on disk, and a
          dask array in its chunks (see `fit`). A dict of probabilities, keyed by name, is several
          base models. Do not pass probabilities of training samples: their model has learned the
          wrong labels, and the finder cannot notice that.
        - A :class:`~skcalib.difficulty.RelativeMahalanobisScorer`, or a Pipeline that ends in
          one: leave-one-out distances in closed form.
        - A classifier with `predict_proba`: its out-of-fold probabilities over `cv`. One in a
          FrozenEstimator is used without fitting; if X holds numbers, `caveats_` says when it
          seems to have been trained on these labels.
        - A list of them: each is a base model.
    noise : {"mixed", "random"}, default="mixed"
        "random" assumes one rate of wrong labels for all classes. "mixed" also tries rates that
        differ between pairs of classes, and wrong labels that go to similar classes.
    threshold : float in (0, 1), default=0.5
        A sample is an issue if the probability that its label is right is below this.
    n_refits : int, default=2
        How often, at most, the base models are fitted again to corrected labels: those fitted to
        wrong labels recognize them less well. A refit is kept only if it makes the given labels
        more likely. With few samples per class, the probabilities before and after refits are
        averaged (with five, equally).
    cv : int, cross-validation generator or iterable, default=5
        Folds of classifiers; an int is a number of stratified folds. The logistic regression of
        ``estimator=None`` shuffles them, and uses at most as many as the largest class has
        samples.
    verbose : int, default=0
        Whether to print every step, such as a base model or a refit, and its seconds; 0 prints
        nothing.

    Attributes
    ----------
    issues_ : structured array or dask array of shape (n_samples,)
        One row per sample, in the order of `X`:

        - ``label``: the given label;
        - ``suggested_label``: the most probable label;
        - ``p_label_correct``: the probability that the label is right;
        - ``margin``: pooled squared distance to the class of the label, less that to the nearest
          class; 0 if the base models predict the label, larger = harder;
        - ``difficulty``: log-loss of the label by the log-linear pool, larger = harder;
        - ``novelty``: squared distance to the nearest class by the first base model with
          distances, large for samples that belong to no class; NaN without such a base model;
        - ``is_issue``: whether ``p_label_correct`` is below `threshold`.

        With votes also ``n_votes`` and ``agreement``, the fraction of the votes on the sample for
        ``label`` (NaN without votes).
    label_proba_ : ndarray or dask array of shape (n_samples, n_classes)
        Probability of every class to be the true one.
    noise_rate_ : float
        Estimated fraction of wrong labels. **A lower bound if labels of hard samples are wrong
        more often than those of easy ones**, as labels by people are: these look like right labels
        that are hard to predict. With ``noise="mixed"``, a tenth of the labels is assumed to say
        nothing beyond the base models' predictions, so the rate is above 0 even if all labels are
        right, where samples are hard. After `update_with_checks` the estimate is unbiased.
    noise_rate_interval_ : tuple of two floats
        95 % interval of the fraction of wrong labels. After `fit`, the lower end comes from the
        profile likelihood and holds if the noise model does (for precomputed probabilities also
        from the probabilities as they are, if that is lower). The upper end covers all labels that
        the base models do not predict, because people and models err on the same hard samples; for
        precomputed probabilities also the fraction of mistakes that they expect themselves. With
        votes, the lower end takes people to err independently, and the upper end to err together
        on twice as many samples as is usual. After `update_with_checks`, the interval does not
        depend on the model.
    is_trustworthy_ : bool
        Whether the probabilities were checked: True after `update_with_checks` with at least 50
        drawn checks. Without checks, `caveats_` says what speaks against the probabilities.
    n_duplicates_ : int
        Number of rows of X that equal an earlier row and have the same label: they count
        once. Equal rows with unlike labels are different samples. 0 with `groups`, which say what
        belongs together.
    caveats_ : tuple of str
        Reasons not to trust the probabilities, a sentence each; `fit` warns of them.
    base_models_ : dict of str to float
        Name of every base model, and its part in the log-linear pool; the parts sum to one.
    n_checks_ : int
        Number of drawn checks that the probabilities and the rate are based on; 0 before
        `update_with_checks`, and if the checks were not drawn at random.
    noise_matrix_ : ndarray of shape (n_classes, n_classes)
        Estimated fraction of the samples of a class (row) that have a label (column). All entries
        off the diagonal are equal if the data support no differences between them. With votes,
        the fraction of the votes on samples of a class (row) for a label (column).
    annotators_ : structured array of shape (n_annotators,)
        Only with votes: ``annotator``, the name, or the column in `votes`; ``n_votes``;
        ``accuracy``, the estimated fraction of right votes, shrunk toward the mean of all
        annotators by five votes; ``accuracy_low`` and ``accuracy_high``, its 95 % interval, from
        what the other annotators and the base models predict; ``worst_class``, the class with the
        largest fraction of wrong votes.
    copying_pairs_ : structured array of shape (n_pairs,)
        Only with votes: annotators who repeat the votes of another more often than their classes
        explain, among pairs with 30 common samples or more. Three others must have as many in
        common with both; where only two do, the pair must explain more than these two would.
        Fields: ``copier``; ``source`` (the votes hardly show who copies whom); ``proba``, the
        probability that a vote is repeated, with its 95 % interval ``low`` and ``high``. Repeated
        votes count for less.
    vote_p_correct_ : ndarray of shape (n_samples, n_annotators) or (n_votes,)
        Only with votes: the probability that each vote is right, in the form of `votes`, NaN
        where nobody voted; for :func:`votes_from_long`, in the order of its list.
    class_noise_rate_ : ndarray of shape (n_classes,)
        Estimated fraction of wrong labels among the labels of each class; NaN for a class with
        fewer than ten.
    draws_ : list of ndarray
        Positions of the samples of every `draw_samples_to_check` since `fit`, the latest last.
    classes_ : ndarray of shape (n_classes,)
        Class labels: those of `y` and of the votes. What a base model predicts for other classes
        is ignored.
    estimator_ : estimator or None
        The first base model that is an estimator, fitted to the labels of the last refit.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number and names of features, if `estimator_` has them.

    See Also
    --------
    find_label_issues : The table in one call, most suspicious label first.
    votes_from_long : Votes of several people from a long list.
    LabelCleaningClassifier : Train a classifier on cleaned labels.
    skcalib.report.LabelReviewPage : A page on which people check the labels.
    skcalib.difficulty.RelativeMahalanobisScorer : The distances, for every class.
    skcalib.plots.HardestSamplesDisplay : Show images with given and suggested labels.

    Notes
    -----
    Let q_k(x) be the probability of class k by the log-linear pool of the base models, and T_ky
    the fraction of samples of class k that have the label y. A label then has the likelihood
    ``P(y | x) = sum_k q_k(x) T_ky`` [1]_; here the weights of the base models are fitted too, and
    T is shrunk toward a uniform rate. In place of a full T, wrong labels may also be drawn from
    the predicted probabilities of the other classes, ``q_y / (1 - q_k)``. Either is used only if
    it makes labels left out more likely, by two thirds of a standard error (odds of three to one),
    than a uniform rate does, and than base models that confuse classes.

    With more than half a million distances, the noise model is fitted to a random part of the
    samples, the same one in every call; all samples are scored. With more than 256 classes, noise
    is uniform.

    References
    ----------
    .. [1] A. P. Dawid, A. M. Skene, "Maximum Likelihood Estimation of Observer Error-Rates Using
       the EM Algorithm", Applied Statistics 1979.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from skcalib.datasets import flip_labels
    >>> from skcalib.labels import LabelIssueFinder
    >>> X, y = load_wine(return_X_y=True)
    >>> given, flipped = flip_labels(y, fraction=0.1, random_state=0)
    >>> finder = LabelIssueFinder().fit(X, given)
    >>> found = finder.issues_["is_issue"]
    >>> int(flipped.sum()), int(found.sum()), int((found & flipped).sum())
    (18, 17, 17)

    People check thirty of them, drawn at random:

    >>> rows = finder.draw_samples_to_check(30, random_state=0)
    >>> low, high = finder.update_with_checks(rows, y[rows]).noise_rate_interval_
    >>> bool(low < flipped.mean() < high)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [
            HasMethods(["fit", "predict_proba"]),
            RelativeMahalanobisScorer,
            Pipeline,
            list,
            StrOptions({"precomputed"}),
            None,
        ],
        "noise": [StrOptions({"mixed", "random"})],
        "threshold": [Interval(Real, 0, 1, closed="neither")],
        "n_refits": [Interval(Integral, 0, None, closed="left")],
        "cv": ["cv_object"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        noise: str = "mixed",
        threshold: float = 0.5,
        n_refits: int = 2,
        cv: Any = 5,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.noise = noise
        self.threshold = threshold
        self.n_refits = n_refits
        self.cv = cv
        self.verbose = verbose

    # The parameters of the estimator are its own to validate.
    @_fit_context(prefer_skip_nested_validation=False)
    @send_chunks_to("_fit_chunks")
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        verified: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        votes: Any = None,
    ) -> Self:
        """Find the wrong labels among `y`.

        With "precomputed", X may be a dask array, and so may y, `sample_weight` and `verified`.
        The results are the same up to rounding: rates, interval, `noise_matrix_` and `caveats_`
        are computed in `fit`, `issues_` and `label_proba_` are lazy dask arrays. Memory holds one
        chunk and the samples that the noise model is fitted to. Votes, and a dict of several
        probabilities, are not supported then, nor are the methods that need all samples in memory:
        `draw_samples_to_check`, `update_with_checks`, `noise_rate_by` and `n_more_checks`. To
        check labels, fit a finder to a part of the samples in memory; after its checks, its
        `score_labels` takes all chunks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or whatever the estimator takes
            Samples; class probabilities with "precomputed". None uses the votes alone.
        y : array-like of shape (n_samples,), default=None
            Their labels. None, with votes, takes the most probable class by the votes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight k stands for k copies of a sample. A sample of weight 0 is scored, and counts
            for nothing.
        verified : array-like of shape (n_samples,), dtype bool, default=None
            True for samples whose label is known to be right. They are never issues, and help a
            little to weight the base models. They do not say how many labels are wrong: for that,
            check a random draw, wrong labels included (`update_with_checks`).
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together, such as those of a patient. No sample is scored by
            others of its group: folds keep groups together, a forest uses the trees without the
            group, and neighbors are of other groups. Gaussian distances leave out single samples,
            so they are not used by ``estimator=None`` and an error otherwise. Without groups,
            equal rows of X with equal labels count once, and near-duplicates are kept together.
            `groups` is also passed to a classifier whose `fit` takes it.
        votes : array-like of shape (n_samples, n_annotators), default=None
            Labels that several people gave each sample, NaN or None where somebody was not asked.
            A DataFrame has one column for each annotator; :func:`votes_from_long` reads a long
            list. The estimated true labels then come from votes and base models alone; `y` is
            scored by them, and is no evidence. A sample without votes gets its estimate from the
            base models. If every sample has one vote, and `y` is None or equals the votes, the
            votes are treated as labels. Equal rows, and near-duplicates, with the same votes count
            once.

        Returns
        -------
        self : LabelIssueFinder
            The fitted finder.

        Raises
        ------
        ValueError
            If there is only one class, if `verified` holds other values than True and False, or if
            votes and samples differ in number, or in the index of a DataFrame.
        TypeError
            If X is a dask array and `estimator` is not "precomputed", or votes are given.

        Warns
        -----
        SkcalibWarning
            For every sentence in `caveats_`; if X looks like class probabilities but is used as
            features; if scales of columns differ by a factor above 1000 and the estimator does not
            scale them; if weights sum to less than half the number of samples; if near-duplicates
            are found.
        """
        if votes is not None:
            return self._fit_votes(X, y, votes, sample_weight, verified, groups)
        X, labels = self._samples_and_labels(X, y)
        given_weight, weight, known = check_weights_and_verified(
            sample_weight, verified, len(labels)
        )
        check_several_classes(np.unique(labels[weight > 0]))
        self._check_estimator(X, labels)
        self.classes_ = np.unique(labels)
        given, of_sample = self._prepare(X, labels, given_weight, known, groups)
        if isinstance(self.estimator, str):  # "precomputed"
            warn_of_order(X, keep_index(y, labels))
        state = run_em(given, self.n_refits)
        with state.step("probabilities of the labels"):
            self._show(state, labels, weight, of_sample)
        first: Any = next(iter(state.base_models.values()))
        self._show_estimator(first.fitted)
        return self

    def _samples_and_labels(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        # (A scipy DOK matrix is a dict too.)
        models = self.estimator == "precomputed" and isinstance(X, dict) and not issparse(X)
        if models and X:
            X = {str(name): read_samples(m, y)[0] for name, m in X.items()}
            return X, read_samples(next(iter(X.values())), y)[1]
        return read_samples(X, y)

    def _check_estimator(self, X: Any, labels: NDArray[Any]) -> None:
        several = self.estimator if isinstance(self.estimator, list) else [self.estimator]
        if len(several) > 1 and (text := next((e for e in several if isinstance(e, str)), None)):
            raise ValueError(
                f"estimator must be a list of scorers and classifiers, got {text!r} in it; for "
                'several matrices of probabilities, pass estimator="precomputed" and a dict as X.'
            )
        for estimator in several:
            warn_if_fitted(estimator=estimator)
            if isinstance(estimator, FrozenEstimator):  # raises if it does not know a label
                join_classes(estimator, labels)
        for remark in diagnose_features(self.estimator, X, labels):
            warn(remark)

    def _show_estimator(self, fitted: Any) -> None:
        self.estimator_ = fitted
        show_inner(self, self.estimator_)
        for caveat in self.caveats_:
            warn(caveat)

    def _make_base_models(
        self,
        X: Any,
        labels: NDArray,
        weight: NDArray[np.float64] | None,
        group_ids: NDArray[np.intp] | None,
        *,
        has_groups: bool,
    ) -> dict[str, Any]:
        return make_base_models(
            self.estimator, X, labels, weight, self.cv, group_ids, has_groups=has_groups
        )

    def _prepare(
        self,
        X: Any,
        labels: NDArray,
        sample_weight: NDArray[np.float64] | None,
        known: NDArray[np.bool_],
        groups: Any,
    ) -> tuple[EMState, NDArray[np.intp] | None]:
        """Return labels and base models, and the row of every sample in them (None: the same).

        Without groups, equal rows with equal labels count once, and near-duplicates are kept
        together.
        """
        codes = encode(labels, self.classes_)
        # Precomputed probabilities need no search; folds in a list are of all samples.
        as_it_is = isinstance(self.estimator, str) or is_list_of_folds(self.cv)
        once = find_distinct(None if as_it_is else X, codes, groups)
        self.n_duplicates_ = count_duplicates(once.duplicates)
        if groups is None:
            warn_of_duplicates(once.duplicates)
        rows, group_ids = once.rows, once.groups
        X = X if once.duplicates is None else _safe_indexing(X, rows)
        if sample_weight is None:  # so that a table given twice counts as much as once
            weight = compute_effective_weights(once.total(np.ones(len(labels))))
        else:
            weight = once.total(sample_weight)
        # Duplicates become weights of the base models' fits if all of them take weights; if the
        # user gave weights, all have to.
        several = self.estimator if isinstance(self.estimator, list) else [self.estimator]
        takes_weights = all(
            model is None or has_argument(get_last_step(model)[0].fit, "sample_weight")
            for model in several
            if not isinstance(model, str)
        )
        weigh_duplicates = self.n_duplicates_ > 0 and (takes_weights or sample_weight is not None)
        counted = weight.copy()
        search = groups is None and not as_it_is
        near = find_near_duplicates(X, codes[rows], group_ids) if search else None
        if near is not None:
            group_ids = near
            counted /= np.bincount(near)[near]  # a duplicate is no further evidence
            warn(_NEAR_DUPLICATES.format(len(near) - len(np.unique(near))))
        model_weight = weight if weigh_duplicates else sample_weight
        models = self._make_base_models(
            X, labels[rows], model_weight, group_ids, has_groups=groups is not None
        )
        counted, known = compute_effective_weights(counted), once.any(known)
        mixed, is_fitted = self.noise == "mixed", not isinstance(self.estimator, str)
        step = partial(print_elapsed, type(self).__name__, self.verbose)
        given = EMState(codes[rows], self.classes_, counted, known, models, mixed, is_fitted, step)
        return given, once.of_sample if self.n_duplicates_ else None

    def _show(
        self, state: EMState, labels: NDArray, weight: NDArray, of_sample: NDArray[np.intp] | None
    ) -> None:
        """Set the attributes of a fit; sample i is row ``of_sample[i]`` of the state."""
        # First the interval, then the memory of the likelihood is free for the results.
        ends = compute_rate_interval(state.likelihood, state.model)
        state.likelihood.forget_prior()
        # There may be no wrong label at all.
        proba = mix_with_none_wrong(state.proba.filled(), state.codes, state.model.p_any_wrong)
        informative = 1.0 - proba[np.arange(len(proba)), state.codes].astype(np.float64)
        if state.noninformative:
            state.add_noninformative(proba)
        columns = (*state.scores(), label_log_odds(proba, state.codes))
        if of_sample is not None:
            columns, proba = tuple(c[of_sample] for c in columns), proba[of_sample]
            informative = informative[of_sample]
        *shown, log_odds = columns
        rate = float(np.average(informative, weights=weight))
        self._show_labels(labels, weight, proba, log_odds, shown)
        del proba, informative, shown, columns  # for memory
        # The model's rate is that among unverified labels.
        unverified = float(state.weight[~state.verified].sum() / state.weight.sum())
        interval = self._compute_interval(state, ends, rate, unverified)
        self._set_model(state)
        self._model = state.model
        caveats = diagnose(state, int(self.issues_["is_issue"].sum()))
        self._set_unchecked(log_odds, interval, caveats)

    def _set_model(self, state: EMState) -> None:
        self.noise_matrix_ = state.likelihood.noise_matrix(state.model)
        self.base_models_ = state.fractions()

    def _compute_interval(
        self, state: EMState, of_fit: tuple[float, float], rate: float, unverified: float
    ) -> tuple[float, float]:
        """Return the interval of the rate; `rate` is that before `add_noninformative`."""
        ends = unverified * np.array(of_fit)
        # The interval is around the rate of the last fit; shift it to that of the probabilities.
        low, high = np.clip(ends + rate - unverified * state.model.rate, 0, 1)
        high = max(high, self.noise_rate_, unverified * state.upper_rate())
        low = min(low, self.noise_rate_, unverified * state.lower_rate())
        return float(low), float(high)

    def _show_labels(
        self,
        labels: NDArray,
        weight: NDArray[np.float64],
        proba: NDArray,
        log_odds: NDArray[np.float64],
        shown: Any,
    ) -> None:
        """Set probabilities and issues; `shown` are margins, log-losses and novelty."""
        p_correct, codes = expit(log_odds), encode(labels, self.classes_)
        proba[np.arange(len(codes)), codes] = p_correct
        self.label_proba_, self._weight = proba, weight
        self.issues_ = self._table(labels, proba, p_correct, *shown)
        wrong = 1.0 - p_correct
        self._set_class_rates(wrong)
        self.noise_rate_ = float(np.average(wrong, weights=weight))
        self._forget_earlier()

    def _forget_earlier(self, *names: str) -> None:
        """Remove the attributes that an earlier fit to votes has set, and those in `names`."""
        for name in ("annotators_", "copying_pairs_", "vote_p_correct_", "_voted", *names):
            self.__dict__.pop(name, None)

    def _table(
        self,
        labels: NDArray,
        proba: NDArray,
        p_correct: NDArray[np.float64],
        margin: NDArray,
        difficulty: NDArray,
        novelty: NDArray,
    ) -> NDArray:
        columns = {
            "label": labels,
            "suggested_label": self.classes_[proba.argmax(axis=1)],
            "p_label_correct": p_correct,
            "margin": margin,
            "difficulty": difficulty,
            "novelty": novelty,
            "is_issue": p_correct < self.threshold,
        }
        return as_table(columns, as_frame=False)

    def _set_class_rates(self, wrong: NDArray[np.float64]) -> None:
        codes = encode(self.issues_["label"], self.classes_)
        count = np.bincount(codes, self._weight, len(self.classes_))
        self._set_rates(count, np.bincount(codes, self._weight * wrong, len(self.classes_)))

    def _set_rates(self, count: NDArray[Any], total: NDArray[Any]) -> None:
        rates = total / np.maximum(count, FEWEST_OF_A_CLASS)
        self.class_noise_rate_ = np.where(count >= FEWEST_OF_A_CLASS, rates, np.nan)

    @send_chunks_to("_score_chunks")
    def score_labels(self, X: Any, y: ArrayLike) -> NDArray[Any]:
        """Score the labels of new samples, by the fitted model and the checks so far.

        Use it to find wrong labels in data that come in later, without fitting again.

        Parameters
        ----------
        X : array-like or dask array of shape (n_new, n_features), or whatever the estimator takes
            New samples in the form of `fit`; their class probabilities with "precomputed".
        y : array-like or dask array of shape (n_new,)
            Their labels, which must be in `classes_`.

        Returns
        -------
        issues : structured array or dask array of shape (n_new,)
            The columns of `issues_` (without those of votes); lazy if X is a dask array.

        Raises
        ------
        ValueError
            If a label is not in `classes_`.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from skcalib.datasets import flip_labels
        >>> from skcalib.labels import LabelIssueFinder
        >>> X, y = load_wine(return_X_y=True)
        >>> given, _ = flip_labels(y[::2], fraction=0.1, random_state=0)
        >>> finder = LabelIssueFinder().fit(X[::2], given)
        >>> new = y[1::2].copy()
        >>> new[0] = 2
        >>> issues = finder.score_labels(X[1::2], new)
        >>> bool(issues["is_issue"][0]), int(issues["suggested_label"][0])
        (True, 0)
        """
        check_is_fitted(self)
        if isinstance(X, dict) and not issparse(X):
            X = {str(name): read_samples(matrix, y)[0] for name, matrix in X.items()}
            labels = read_samples(next(iter(X.values())), y)[1]
        else:
            X, labels = read_samples(X, y)
        codes = encode(labels, self.classes_)
        proba, *shown = self._model.score(X, codes, self.classes_)
        p_correct = expit(self._line(label_log_odds(proba, codes)))
        set_label_proba(proba, codes, p_correct)
        return self._table(labels, proba, p_correct, *shown)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inside = self.estimator if isinstance(self.estimator, list) else [self.estimator]
        if self.estimator is None or isinstance(self.estimator, str):
            inside = [RelativeMahalanobisScorer()]
        tags.input_tags = combine_input_tags(*inside)
        tags.target_tags.required = True
        return tags


def find_label_issues(
    estimator: Any,
    X: Any,
    y: ArrayLike | None = None,
    *,
    noise: str = "mixed",
    threshold: float = 0.5,
    n_refits: int = 2,
    cv: Any = 5,
    verbose: int = 0,
    sample_weight: ArrayLike | None = None,
    verified: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    votes: Any = None,
    checks: tuple[ArrayLike, ArrayLike] | None = None,
    as_frame: bool = False,
) -> pd.DataFrame | NDArray[Any]:
    """Find wrong labels: return all samples, the most suspicious label first.

    Parameters
    ----------
    estimator : of :class:`LabelIssueFinder`
    X : array-like of shape (n_samples, n_features), or whatever the estimator takes
        Samples; class probabilities with "precomputed". None uses the votes alone.
    y : array-like of shape (n_samples,), default=None
        Their labels. None, with `votes`, takes the most probable class by the votes.
    noise, threshold, n_refits, cv, verbose : of :class:`LabelIssueFinder`
    sample_weight, verified, groups, votes : of :meth:`LabelIssueFinder.fit`
    checks : tuple of two array-like of shape (n_checks,), default=None
        Positions of samples drawn at random, and their true labels, for
        :meth:`LabelIssueFinder.update_with_checks`.
    as_frame : bool, default=False
        Whether to return a DataFrame (needs pandas). Its index is that of X, y or `votes`; if none
        has one, it is the position. So ``y[issues.index]`` are the labels of its rows.

    Returns
    -------
    issues : structured array of shape (n_samples,), or DataFrame
        One row per sample, sorted by ``p_label_correct`` (rising), ties by ``margin`` (falling).
        ``sample``, the position in X; ``label``; ``suggested_label``, the most probable label;
        ``p_label_correct``, the probability that the label is right; ``margin``, ``difficulty``
        and ``novelty``, as in `issues_` of :class:`LabelIssueFinder`; ``is_issue``. With `votes`
        also ``n_votes`` and ``agreement``.

    Raises
    ------
    ValueError
        If there is only one class, if lengths differ, if `checks` is not a pair, or if its
        positions or labels are invalid.

    See Also
    --------
    LabelIssueFinder : Also gives the noise rate and the probabilities of all classes.
    LabelCleaningClassifier : Train a classifier on cleaned labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.labels import find_label_issues
    >>> X, y = load_iris(return_X_y=True)
    >>> y[7] = 2
    >>> issues = find_label_issues(None, X, y)
    >>> int(issues["sample"][0]), int(issues["suggested_label"][0])
    (7, 0)

    Labels of three people, without features:

    >>> votes = [[0, 0, 0], [1, 1, 1], [0, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]]
    >>> issues = find_label_issues(None, None, [0, 1, 0, 1, 0, 1], votes=votes)
    >>> int(issues["sample"][0]), int(issues["suggested_label"][0])
    (2, 1)
    """
    check_readable(X, name="X")
    if checks is not None and len(checks) != 2:
        raise ValueError(
            "checks must be a pair, positions and their true labels, got "
            f"{len(checks)} values; pass None if nothing was checked."
        )
    finder = LabelIssueFinder(
        estimator, noise=noise, threshold=threshold, n_refits=n_refits, cv=cv, verbose=verbose
    )
    given: Any = {"sample_weight": sample_weight, "verified": verified, "groups": groups}
    finder.fit(X, y, votes=votes, **given)
    if checks is not None:
        finder.update_with_checks(checks[0], checks[1])
    issues = finder.issues_
    # lexsort sorts by its last key first.
    order = np.lexsort([-issues["margin"], issues["p_label_correct"]])
    columns = {"sample": order, **{name: issues[name][order] for name in issues.dtype.names or ()}}
    index = get_row_index(X, y, votes)
    return as_table(columns, as_frame=as_frame, index=order if index is None else index[order])
