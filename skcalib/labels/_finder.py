"""Turn user input into arrays; refuse what numpy would silently misread."""

from __future__ import annotations

from copy import copy
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
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ..difficulty import RelativeMahalanobisScorer
from ..utils._arrays import (
    check_mask,
    check_readable,
    check_weights,
    warn_if_normalized,
    warn_of_total,
    with_index_of,
)
from ..utils._backends import aligned, is_chunked, map_chunks
from ..utils._compat import (
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
    _num_samples,
    _safe_indexing,
    all_or_nothing_of,
    print_elapsed,
)
from ..utils._estimators import (
    common_input_tags,
    joint_classes,
    last_step,
    lists_folds,
    samples_and_labels,
    show_inner,
    takes,
    warn_if_fitted,
)
from ..utils._labels import (
    RelatedSamples,
    check_class_labels,
    check_several_classes,
    count_duplicates,
    encode,
    encode_groups,
    find_related,
    warn_of_duplicates,
)
from ..utils._numeric import binomial_interval
from ..utils._output import as_table, row_index, warn
from ..utils._proba import check_proba_matrix
from ._annotations import Read, read_votes
from ._base_models import blocks_of, judges_of, precomputed_of_votes, remarks_on, warn_of_order
from ._checks import (
    Draw,
    Line,
    Rate,
    answers,
    drawn,
    draws_among,
    inclusion,
    informative_size,
    log_odds_of,
    mostly_among,
    rank_z,
    rate_of,
    stands_for,
)
from ._consensus import (
    Consensus,
    Voted,
    agree,
    agreement,
    doubts_of_votes,
    flips_of,
    margins,
    rate_of_consensus,
)
from ._constants import FEWEST_CHECKS, FEWEST_OF_A_CLASS, STANDARD_ERRORS
from ._dask import Labels, LabelsInChunks, judge_of, refuse_in_chunks
from ._duplicates import Copied, copied_votes, distinct_of, joined, with_twins
from ._em import Explanation, Given, Judged, doubts_of, judge, mix_with_none_wrong
from ._noise_model import rate_interval
from ._vote_model import Votes, accuracies, gain_of_a_vote

if TYPE_CHECKING:
    import pandas as pd


def effective_weights(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights that sum to the effective number of samples, (sum w)^2 / sum w^2.

    Tests and intervals count with these: equal weights are all 1, whatever their size.
    """
    scaled = weight / weight.max()
    return scaled * (scaled.sum() / np.square(scaled).sum())


_TWINS = (
    "{} samples have a near twin, such as an augmented copy, with the same unexpected label; "
    "twins are kept together and do not judge each other. If you know which samples belong "
    "together, pass groups=."
)
_COPIED_VOTES = (
    "{} samples have a near twin with the same votes, such as an augmented copy; these votes "
    "count once, and twins do not judge each other. If you know which samples belong together, "
    "pass groups=."
)
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


class LabelIssueFinder(MetaEstimatorMixin, BaseEstimator):
    """Find wrong labels, with the probability that each label is right.

    Several models, the judges, predict the label of every sample without having seen it
    (leave-one-out, out-of-fold or out-of-bag). A noise model combines them: how much each judge
    counts, and how often labels are wrong, are estimated from the given labels by maximum
    likelihood. The rate of wrong labels may differ between pairs of classes (`noise_matrix_`) or
    be higher between similar classes, if the data support that. Bayes' rule then gives the
    probability that a label is right. There is no distance threshold to choose and no network to
    train.

    From labels alone, a wrong label of a hard sample looks like a right one. So `noise_rate_` is a
    lower bound where people gave the labels. Checking about a hundred randomly drawn labels
    settles the rate: `draw_samples_to_check` and `update_with_checks`.

    If several people labeled the same samples (``fit(X, votes=votes)``), the finder also estimates
    how often each of them is right, how much they err together, and how much one more vote is
    worth. Mistakes that people and judges share show only in checks.

    Parameters
    ----------
    estimator : scorer, Pipeline, classifier, list of them or "precomputed", default=None
        The judges.

        - None: several judges of standardized features, as the size of the data allows: distances
          to Gaussian classes (:class:`~skcalib.difficulty.RelativeMahalanobisScorer` with
          ``shrinkage="auto"``), an out-of-fold logistic regression, nearest neighbors and, for
          small tables, an out-of-bag random forest.
        - "precomputed": `X` holds class probabilities from a model that was not trained on the
          sample, such as out-of-fold ones. Columns are in the order of the sorted labels, or named
          after the labels in a DataFrame. Nothing is fitted; a memory map stays on disk, and a
          dask array in its chunks (see `fit`). A dict of probabilities, keyed by name, is several
          judges. Do not pass probabilities of training samples: their model has learned the wrong
          labels, and the finder cannot notice that.
        - A :class:`~skcalib.difficulty.RelativeMahalanobisScorer`, or a Pipeline that ends in
          one: leave-one-out distances in closed form.
        - A classifier with `predict_proba`: its out-of-fold probabilities over `cv`. One in a
          FrozenEstimator is used without fitting; if X holds numbers, `caveats_` says when it
          seems to have been trained on these labels.
        - A list of them: each is a judge.
    noise : {"mixed", "random"}, default="mixed"
        "random" assumes one rate of wrong labels for all classes. "mixed" also tries rates that
        differ between pairs of classes, and wrong labels that go to similar classes.
    threshold : float in (0, 1), default=0.5
        A sample is an issue if the probability that its label is right is below this.
    n_refits : int, default=2
        How often, at most, the judges are fitted again to corrected labels: judges fitted to wrong
        labels recognize them less well. A refit is kept only if it makes the given labels more
        likely. With few samples per class, the probabilities before and after refits are averaged
        (with five, equally).
    cv : int, cross-validation generator or iterable, default=5
        Folds of classifiers; an int is a number of stratified folds. The logistic regression of
        ``estimator=None`` shuffles them, and uses at most as many as the largest class has
        samples.
    verbose : int, default=0
        Whether to print every step, such as a judge or a refit, and its seconds; 0 prints nothing.

    Attributes
    ----------
    issues_ : structured array or dask array of shape (n_samples,)
        One row per sample, in the order of `X`:

        - ``label``: the given label;
        - ``suggested_label``: the most probable label;
        - ``p_label_correct``: the probability that the label is right;
        - ``margin``: pooled squared distance to the class of the label, less that to the nearest
          class; 0 if the judges predict the label, larger = harder;
        - ``difficulty``: log-loss of the label by the pooled judges, larger = harder;
        - ``novelty``: squared distance to the nearest class by the first judge with distances,
          large for samples that belong to no class; NaN without such a judge;
        - ``is_issue``: whether ``p_label_correct`` is below `threshold`.

        With votes also ``n_votes`` and ``agreement``, the fraction of the votes on the sample for
        ``label`` (NaN without votes).
    label_proba_ : ndarray or dask array of shape (n_samples, n_classes)
        Probability of every class to be the true one.
    noise_rate_ : float
        Estimated fraction of wrong labels. **A lower bound if labels of hard samples are wrong
        more often than those of easy ones**, as labels by people are: these look like right
        labels that are hard to predict. With ``noise="mixed"``, a tenth of the labels is assumed
        to say nothing beyond the judges' predictions, so the rate is above 0 even if all labels
        are right, where samples are hard. After `update_with_checks` the estimate is unbiased.
    noise_rate_interval_ : tuple of two floats
        95 % interval of the fraction of wrong labels. After `fit`, the lower end comes from the
        profile likelihood and holds if the noise model does (for precomputed probabilities also
        from the probabilities as they are, if that is lower). The upper end covers all labels that
        the judges do not predict, because people and models err on the same hard samples; for
        precomputed probabilities also the fraction of mistakes that they expect themselves. After
        `update_with_checks`, the interval does not depend on the model.
    is_trustworthy_ : bool
        Whether the probabilities were checked: True after `update_with_checks` with at least 50
        drawn checks. Without checks, `caveats_` says what speaks against the probabilities.
    n_duplicates_ : int
        Number of rows of X that equal an earlier row and have the same label: they are judged
        once. Equal rows with unlike labels are different samples. 0 with `groups`, which say what
        belongs together.
    caveats_ : tuple of str
        Reasons not to trust the probabilities, a sentence each; `fit` warns of them.
    base_models_ : dict of str to float
        Name of every judge, and its share in the pooled prediction; the shares sum to one.
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
        what the other annotators and the judges say; ``worst_class``, the class with the largest
        fraction of wrong votes.
    vote_p_correct_ : ndarray of shape (n_samples, n_annotators) or (n_votes,)
        Only with votes: the probability that each vote is right, in the form of `votes`, NaN
        where nobody voted; for :func:`votes_from_long`, in the order of its list.
    class_noise_rate_ : ndarray of shape (n_classes,)
        Estimated fraction of wrong labels among the labels of each class; NaN for a class with
        fewer than ten.
    draws_ : list of ndarray
        Positions of the samples of every `draw_samples_to_check` since `fit`, the latest last.
    classes_ : ndarray of shape (n_classes,)
        Class labels: those of `y` and of the votes. What a judge predicts for other classes is
        ignored.
    estimator_ : estimator or None
        The first judge that is an estimator, fitted to the labels of the last refit.
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
    Let q_k(x) be the probability of class k by the pooled judges, and T_ky the fraction of samples
    of class k that have the label y. A label then has the likelihood
    ``P(y | x) = sum_k q_k(x) T_ky`` [1]_; here the weights of the judges are fitted too, and T is
    shrunk toward one common rate. In place of a full T, wrong labels may also be drawn from the
    predicted probabilities of the other classes, ``q_y / (1 - q_k)``. Either is used only if it
    makes labels left out more likely, by two thirds of a standard error (odds of three to one),
    than a common rate does, and than judges that confuse classes.

    With more than half a million distances, the noise model is fitted to a random part of the
    samples, the same one in every call; all samples are judged. With more than 256 classes, wrong
    labels have a common rate.

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
            Their labels. None, with votes, judges the most probable class by the votes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight k stands for k copies of a sample. A sample of weight 0 is judged, and counts
            for nothing.
        verified : array-like of shape (n_samples,), dtype bool, default=None
            True for samples whose label is known to be right. They are never issues, and help a
            little to weight the judges. They do not say how many labels are wrong: for that, check
            a random draw, wrong labels included (`update_with_checks`).
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together, such as those of a patient. No sample is judged by
            others of its group: folds keep groups together, a forest uses the trees without the
            group, and neighbors are of other groups. Gaussian distances leave out single samples,
            so they are not used by ``estimator=None`` and an error otherwise. Without groups,
            equal rows of X with equal labels are judged once, and near twins are kept together.
            `groups` is also passed to a classifier whose `fit` takes it.
        votes : array-like of shape (n_samples, n_annotators), default=None
            Labels that several people gave each sample, NaN or None where somebody was not asked.
            A DataFrame has one column for each annotator; :func:`votes_from_long` reads a long
            list. The estimated true labels then come from votes and judges alone; `y` is judged by
            them, and is no evidence. A sample without votes gets its estimate from the judges. If
            every sample has one vote, and `y` is None or equals the votes, the votes are treated
            as labels. Equal rows, and near twins, with the same votes count once.

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
            features; if scales of columns differ by a factor above 1000 and the estimator does
            not scale them; if weights sum to less than half the number of samples; if near twins
            are found.
        """
        if is_chunked(X):
            refuse_in_chunks(self.estimator, y, groups, votes)
            return self._fit_chunks(LabelsInChunks(X, y, sample_weight, verified))
        if votes is not None:
            return self._fit_votes(X, y, votes, sample_weight, verified, groups)
        X, labels = self._samples_and_labels(X, y)
        given_weight, weight, known = _given(sample_weight, verified, len(labels))
        check_several_classes(np.unique(labels[weight > 0]))
        self._check_judges(X, labels)
        self.classes_ = np.unique(labels)
        given, of_sample = self._judge_once(X, labels, given_weight, known, groups)
        if isinstance(self.estimator, str):  # "precomputed"
            warn_of_order(X, with_index_of(y, labels))
        judged = judge(given, self.n_refits)
        with given.step("probabilities of the labels"):
            self._show(judged, labels, weight, of_sample)
        first: Any = next(iter(given.judges.values()))
        self._show_estimator(first.fitted)
        return self

    def _fit_chunks(self, chunks: LabelsInChunks) -> Self:
        """Fit to precomputed probabilities in chunks, by the same search as in memory."""
        step = partial(print_elapsed, type(self).__name__, self.verbose)
        with step("labels of all chunks"):
            found = chunks.labels()
        if not found.sums[0]:
            raise ValueError("sample_weight must not be zero everywhere.")
        check_several_classes(found.classes[found.size > 0])
        warn_of_total(float(found.sums[0]), sum(found.n_counted))
        self.classes_, self.n_duplicates_ = found.classes, 0
        with step("samples to fit the noise model to"):
            drawn, others = chunks.rows(found)
        _, labels, weight, known = drawn
        scale = found.sums[0] / found.sums[1]  # as effective_weights
        counted = encode(labels, found.classes), found.classes, scale * weight, known
        judges: dict[str, Any] = {str(self.estimator): judge_of(drawn, others)}
        mixed = self.noise == "mixed"
        judged = judge(Given(*counted, judges, mixed, refits=False, step=step), 0)
        with step("probabilities of the labels"):
            self._show_chunks(judged, chunks, found)
        self._show_estimator(None)
        return self

    def _show_chunks(self, judged: Judged, chunks: LabelsInChunks, found: Labels) -> None:
        """Set the attributes of a fit in chunks: rates now, rows of tables lazily."""
        total, _, verified = found.sums
        last, fit = judged.last, judged.fit
        fitted: dict[str, Any] = last.given.judges
        judges = {name: judge.without_samples() for name, judge in fitted.items()}
        self._explanation: Explanation | Consensus = Explanation(
            judges, last.distances[-1], fit, judged.p_any_wrong, last.given.hidden
        )
        explained: Any = self._explanation
        flipped, n_issues, *wrong = chunks.sums(explained, self.classes_, self.threshold)
        self._set_rates(found.size, np.array(wrong))
        self.noise_rate_ = float(np.sum(wrong) / total)
        self._forget_earlier("_weight")
        interval = self._interval_of(judged, float(flipped / total), 1.0 - float(verified / total))
        self.noise_matrix_, self.base_models_ = last.likelihood.flip_matrix(fit), last.shares(fit)
        self._set_unchecked(np.empty(0), interval, doubts_of(judged, int(n_issues)))
        X, y, _, known = chunks.lazily
        proba: Any = np.float32 if X.dtype in (np.float16, np.float32) else np.float64
        of_issues, of_proba = self._table_dtype(), np.dtype(proba)
        sent = self._to_send()
        self.issues_ = map_chunks(_fitted_chunk, (sent, of_issues), X, y, known, dtype=of_issues)
        self.label_proba_ = map_chunks(
            _fitted_chunk, (sent, of_proba), X, y, known,
            dtype=of_proba, n_columns=len(self.classes_),
        )  # fmt: skip

    def _to_send(self) -> Self:
        """Return a copy that can judge labels, without the arrays of single samples."""
        sent = copy(self)
        for name in ("issues_", "label_proba_", "_weight", "_of_model", "_voted"):
            sent.__dict__.pop(name, None)
        return sent

    def _table_dtype(self) -> np.dtype:
        """Return the dtype of `issues_` in chunks: texts have the length of the longest class."""
        n_classes = len(self.classes_)
        return self._table(self.classes_, np.eye(n_classes), *np.zeros((4, n_classes))).dtype

    def _check_in_memory(self, method: str) -> None:
        check_is_fitted(self)
        if not hasattr(self, "_weight"):
            raise TypeError(
                f"{method} needs a finder that was fitted in memory, got one of a collection of "
                "dask: fit another to a sample, X[::100].compute() and y[::100].compute(). After "
                "its checks, its score_labels(X, y) takes all chunks."
            )

    def _fit_labels_of_votes(
        self, X: Any, y: Any, read: Read, sample_weight: Any, verified: Any, groups: Any
    ) -> Self:
        """Treat votes as labels: every sample has one, whoever gave it."""
        codes = np.zeros(read.votes.n_samples, dtype=np.intp)
        codes[read.votes.sample] = read.votes.label
        labels = read.classes[codes] if y is None else y
        self.fit(X, labels, sample_weight=sample_weight, verified=verified, groups=groups)
        self._show_voted(Voted(read, None))
        return self

    def _samples_and_labels(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        # (A scipy DOK matrix is a dict too.)
        models = self.estimator == "precomputed" and isinstance(X, dict) and not issparse(X)
        if models and X:
            X = {str(name): samples_and_labels(m, y)[0] for name, m in X.items()}
            return X, samples_and_labels(next(iter(X.values())), y)[1]
        return samples_and_labels(X, y)

    def _check_judges(self, X: Any, labels: NDArray[Any]) -> None:
        several = self.estimator if isinstance(self.estimator, list) else [self.estimator]
        if len(several) > 1 and (text := next((e for e in several if isinstance(e, str)), None)):
            raise ValueError(
                f"estimator must be a list of scorers and classifiers, got {text!r} in it; for "
                'several matrices of probabilities, pass estimator="precomputed" and a dict as X.'
            )
        for estimator in several:
            warn_if_fitted(estimator=estimator)
            if isinstance(estimator, FrozenEstimator):  # raises if it does not know a label
                joint_classes(estimator, labels)
        for remark in remarks_on(self.estimator, X, labels):
            warn(remark)

    def _show_estimator(self, fitted: Any) -> None:
        self.estimator_ = fitted
        show_inner(self, self.estimator_)
        for doubt in self.caveats_:
            warn(doubt)

    def _fit_votes(
        self, X: Any, y: Any, votes: Any, sample_weight: Any, verified: Any, groups: Any
    ) -> Self:
        """Fit to the votes of several people."""
        if y is None and verified is not None:
            raise ValueError(
                "verified must be None without y: it says which labels in y are right."
            )
        if X is None and groups is not None:
            raise ValueError(
                "groups must be None without X: votes alone have no folds to keep together."
            )
        read = read_votes(votes, None if y is None else check_class_labels(y), X, y)
        n_samples = read.votes.n_samples
        if X is not None:
            _check_rows(X, n_samples)
        # Without y, any labels will do to check X.
        labels = np.full(n_samples, read.classes[0]) if y is None else check_class_labels(y)
        _check_rows(labels, n_samples, name="y")
        if X is not None:
            X, labels = self._samples_and_labels(X, labels)
        given_weight, weight, known = _given(sample_weight, verified, n_samples)
        self.classes_, self.n_duplicates_ = read.classes, 0
        check_several_classes(self.classes_, name="votes")
        counted = read.votes.used(weight > 0)
        if not len(counted.sample):
            raise ValueError("votes must hold a vote on a sample of positive weight, got none.")
        once = np.bincount(counted.sample, minlength=n_samples)[weight > 0] == 1
        codes = None if y is None else encode(labels, self.classes_)
        are_labels = codes is None or np.array_equal(codes[counted.sample], counted.label)
        if X is not None and once.all() and are_labels:
            return self._fit_labels_of_votes(X, y, read, sample_weight, verified, groups)
        known_class = np.full(n_samples, -1) if codes is None else np.where(known, codes, -1)

        copied = self._copied(X, counted)
        given = {"given_weight": given_weight, "groups": groups, "copied": copied}
        found = agree(
            counted,
            weight if copied is None else weight * copied.share,
            known_class,
            self.classes_,
            partial(self._judges_of_votes, X, counted, **given),
            n_refits=self.n_refits,
            everybody=isinstance(self.estimator, str),
            step=partial(print_elapsed, type(self).__name__, self.verbose),
        )
        self._show_consensus(found, read, codes, weight)
        first: Any = next(iter(found.judges.values()), None)
        self._show_estimator(None if first is None else first.fitted)
        return self

    def _copied(self, X: Any, votes: Votes) -> Copied | None:
        """Return which samples with votes are copies; None if copies cannot judge each other."""
        if X is None or isinstance(self.estimator, str) or lists_folds(self.cv):
            return None
        asked = np.unique(votes.sample)
        everybody = len(asked) == votes.n_samples
        part = X if everybody else _safe_indexing(X, asked)
        found = copied_votes(part, votes.alike()[asked])
        share = np.ones(votes.n_samples)
        share[asked] = found.share
        if found.twins is not None:
            n_twins = len(asked) - len(np.unique(found.twins))
            warn(_COPIED_VOTES.format(n_twins))
        return Copied(found.twins, share)

    def _judges_of_votes(
        self,
        X: Any,
        votes: Votes,
        asked: NDArray[np.intp],
        estimated: NDArray[np.intp],
        given_weight: NDArray[np.float64] | None,
        groups: Any,
        copied: Copied | None,
    ) -> tuple[dict[str, Any], Any]:
        """Return the judges of the samples with votes, and the X of those without."""
        if X is None:
            return {}, None
        if isinstance(self.estimator, str):
            if groups is not None:
                raise ValueError("groups must be None for precomputed probabilities, got groups.")
            # Every vote counts as a label, to match columns with classes.
            return precomputed_of_votes(X, votes.sample, self.classes_[votes.label]), None
        everybody = len(asked) == votes.n_samples
        part = X if everybody else _safe_indexing(X, asked)
        labels = self.classes_[estimated]
        check_several_classes(np.unique(labels), name="votes")
        self._check_judges(part, labels)
        of_asked = None if groups is None else encode_groups(groups, votes.n_samples)[1][asked]
        found = RelatedSamples(None, 0) if lists_folds(self.cv) else find_related(part, of_asked)
        codes, self.n_duplicates_ = found
        if copied is not None and copied.twins is not None:
            codes = copied.twins if codes is None else joined(codes, copied.twins)
        judges = judges_of(
            self.estimator,
            part,
            labels,
            None if given_weight is None else given_weight[asked],
            self.cv,
            codes,
            asked=groups is not None,
        )
        others = np.setdiff1d(np.arange(votes.n_samples), asked)
        return judges, None if everybody else _safe_indexing(X, others)

    def _judge_once(
        self,
        X: Any,
        labels: NDArray,
        sample_weight: NDArray[np.float64] | None,
        known: NDArray[np.bool_],
        groups: Any,
    ) -> tuple[Given, NDArray[np.intp] | None]:
        """Return what is judged, and the row of every sample in it (None: the same rows).

        Without groups, equal rows with equal labels are judged once, and near twins are kept
        together.
        """
        codes = encode(labels, self.classes_)
        # Precomputed probabilities need no search; folds in a list are of all samples.
        as_it_is = isinstance(self.estimator, str) or lists_folds(self.cv)
        once = distinct_of(None if as_it_is else X, codes, groups)
        self.n_duplicates_ = count_duplicates(once.duplicates)
        if groups is None:
            warn_of_duplicates(once.duplicates)
        rows, together = once.rows, once.groups
        X = X if once.duplicates is None else _safe_indexing(X, rows)
        if sample_weight is None:  # so that a table given twice counts as much as once
            weight = effective_weights(once.total(np.ones(len(labels))))
        else:
            weight = once.total(sample_weight)
        # Copies become weights of the judges' fits if all of them take weights; if the user gave
        # weights, all have to.
        several = self.estimator if isinstance(self.estimator, list) else [self.estimator]
        takes_weights = all(
            judge is None or takes(last_step(judge)[0].fit, "sample_weight")
            for judge in several
            if not isinstance(judge, str)
        )
        weigh_copies = self.n_duplicates_ > 0 and (takes_weights or sample_weight is not None)
        counted = weight.copy()
        search = groups is None and not as_it_is
        if search and (twins := with_twins(X, codes[rows], together)) is not None:
            together = twins
            counted /= np.bincount(twins)[twins]  # a copy is no further evidence
            warn(_TWINS.format(len(twins) - len(np.unique(twins))))
        judges = judges_of(
            self.estimator,
            X,
            labels[rows],
            weight if weigh_copies else sample_weight,
            self.cv,
            together,
            asked=groups is not None,
        )
        counted, known = effective_weights(counted), once.any(known)
        mixed, refits = self.noise == "mixed", not isinstance(self.estimator, str)
        step = partial(print_elapsed, type(self).__name__, self.verbose)
        given = Given(codes[rows], self.classes_, counted, known, judges, mixed, refits, step)
        return given, once.of_sample if self.n_duplicates_ else None

    def _show(
        self, judged: Judged, labels: NDArray, weight: NDArray, of_sample: NDArray[np.intp] | None
    ) -> None:
        """Set the attributes of a fit; sample i is row ``of_sample[i]`` of what was judged."""
        last, fit, proba = judged.last, judged.fit, judged.proba.filled()
        given = last.given
        # There may be no wrong label at all.
        proba = mix_with_none_wrong(proba, given.codes, judged.p_any_wrong)
        flipped = 1.0 - proba[np.arange(len(proba)), given.codes].astype(np.float64)
        if given.hidden:
            last.add_hidden(proba, fit)
        columns = (*last.judged(fit), log_odds_of(proba, given.codes))
        if of_sample is not None:
            columns, proba = tuple(c[of_sample] for c in columns), proba[of_sample]
            flipped = flipped[of_sample]
        *shown, log_odds = columns
        self._show_labels(labels, weight, proba, log_odds, shown)
        # The model's rate is that among unverified labels.
        unverified = float(given.weight[~given.verified].sum() / given.weight.sum())
        ends = self._interval_of(judged, float(np.average(flipped, weights=weight)), unverified)
        self.noise_matrix_, self.base_models_ = last.likelihood.flip_matrix(fit), last.shares(fit)
        self._explanation = Explanation(
            given.judges, last.distances[-1], fit, judged.p_any_wrong, given.hidden
        )
        doubts = doubts_of(judged, int(self.issues_["is_issue"].sum()))
        self._set_unchecked(log_odds, ends, doubts)

    def _interval_of(
        self, judged: Judged, flipped: float, unverified: float
    ) -> tuple[float, float]:
        """Return the interval of the rate; `flipped` is the rate before `add_hidden`."""
        last, fit = judged.last, judged.fit
        ends = unverified * np.array(rate_interval(last.likelihood, fit))
        # The interval is around the rate of the last fit; shift it to that of the probabilities.
        low, high = np.clip(ends + flipped - unverified * fit.rate, 0, 1)
        high = max(high, self.noise_rate_, unverified * last.upper_rate(fit))
        low = min(low, self.noise_rate_, unverified * last.lower_rate())
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
        for name in ("annotators_", "vote_p_correct_", "_voted", *names):
            self.__dict__.pop(name, None)

    def _set_unchecked(
        self,
        log_odds: NDArray[np.float64],
        interval: tuple[float, float],
        doubts: tuple[str, ...],
    ) -> None:
        """Set interval and doubts by the model, and forget earlier draws and checks."""
        self.noise_rate_interval_, self.caveats_ = interval, doubts
        self.is_trustworthy_, self.n_checks_ = False, 0
        self._of_model = log_odds, interval, doubts
        self._line, self._rate = Line(), None  # type: tuple[Line, Rate | None]
        self._draws: list[Draw] = []
        self._checked: tuple[NDArray, NDArray] | None = None
        # Drawn checks: positions, whether the label is wrong, and how many samples it stands for.
        self._counting: tuple[NDArray, NDArray, NDArray] | None = None

    def _show_consensus(
        self,
        found: Consensus,
        read: Read,
        codes: NDArray[np.intp] | None,
        weight: NDArray[np.float64],
    ) -> None:
        """Set the attributes of a fit to votes; ``codes=None`` judges the most probable labels."""
        proba = found.model.posterior()
        codes = proba.argmax(axis=1) if codes is None else codes
        log_odds, shown = log_odds_of(proba, codes), (*margins(found.model, codes), found.novelty)
        self._show_labels(self.classes_[codes], weight, proba, log_odds, shown)
        self._show_voted(Voted(read, found.model))
        self.noise_matrix_ = flips_of(read.votes, proba, weight)
        self.base_models_ = dict(zip(found.judges, found.model.judge_shares().tolist()))
        self._explanation = found
        interval = rate_of_consensus(self.noise_rate_, found, codes)
        self._set_unchecked(log_odds, interval, doubts_of_votes(found.model, codes))

    def _show_voted(self, voted: Voted) -> None:
        """Set the attributes and columns that exist only with votes."""
        self._voted = voted
        codes = encode(self.issues_["label"], self.classes_)
        number, agreed = agreement(voted.read.votes, codes)
        columns = {name: self.issues_[name] for name in self.issues_.dtype.names or ()}
        columns |= {"n_votes": number, "agreement": agreed}
        self.issues_ = as_table(columns, as_frame=False)
        self._show_votes()

    def _show_votes(self) -> None:
        """Set `vote_p_correct_` and `annotators_` by the current probabilities of the classes."""
        read = self._voted.read
        p_correct = self.label_proba_[read.votes.sample, read.votes.label].astype(np.float64)
        self.vote_p_correct_ = read.in_form(p_correct)
        number, accuracy, low, high, worst = accuracies(
            read.votes, p_correct, self.label_proba_, self._weight, self._voted.model
        )
        columns = {
            "annotator": read.annotators,
            "n_votes": number,
            "accuracy": accuracy,
            "accuracy_low": low,
            "accuracy_high": high,
            "worst_class": self.classes_[worst],
        }
        self.annotators_ = as_table(columns, as_frame=False)

    def suggest_votes(self, n_samples: int = 100) -> NDArray[np.intp]:
        """Return the samples for which one more vote helps most.

        Samples are ranked by how much one more vote, by an average annotator, would raise the
        largest class probability on average. They are not a random draw, so votes on them do not
        estimate the rate of wrong labels: use `draw_samples_to_check` for that.

        Parameters
        ----------
        n_samples : int, default=100
            Number of samples to return.

        Returns
        -------
        positions : ndarray of shape (n_samples,)
            Positions in the `X` of `fit`, largest gain first. With `sample_weight`, gains are
            multiplied by it.

        Raises
        ------
        ValueError
            If `fit` had no votes, or if `n_samples` exceeds the number of samples.

        Examples
        --------
        >>> from skcalib.labels import LabelIssueFinder
        >>> votes = [[0, 0, 0], [1, 1, 1], [0, 1, None], [1, 1, 0], [0, 0, None], [1, 1, 1]]
        >>> finder = LabelIssueFinder().fit(None, votes=votes)
        >>> finder.suggest_votes(1).tolist()
        [2]
        """
        check_is_fitted(self)
        if not hasattr(self, "_voted"):
            raise ValueError("votes must have been given to fit, got labels alone.")
        n_all = int(np.count_nonzero(self._weight))
        if not isinstance(n_samples, Integral) or not 1 <= n_samples <= n_all:
            raise ValueError(
                f"n_samples must be an int from 1 to the {n_all} samples, got {n_samples!r}."
            )
        model = self._voted.model
        if model is None:  # votes were labels: the next vote is wrong as often as they are
            gain = gain_of_a_vote(self.label_proba_[None], self.noise_matrix_[None])
        else:
            gain = model.gain_of_a_vote()
        gain *= self._weight
        if self._checked is not None:
            gain[self._checked[0]] = 0.0
        gain[self._weight == 0] = -np.inf
        return np.argsort(-gain, kind="stable")[:n_samples]

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
            excluded = np.sort(_positions(exclude, len(weight), "exclude"))
            weight[excluded] = 0.0
        n_all = int(np.count_nonzero(weight))
        if not isinstance(n_samples, Integral) or not 2 <= n_samples <= n_all:
            raise ValueError(
                f"n_samples must be an int from 2 to the {n_all} samples, got {n_samples!r}."
            )
        if design == "informative":
            log_odds = self._line(self._of_model[0])
            weight = informative_size(log_odds, weight, int(n_samples))
        proba = inclusion(weight, int(n_samples))
        rows = drawn(proba, check_random_state(random_state))
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
        rows = _positions(positions, len(self._weight), "positions", fewest=2)
        if (self._weight[rows] == 0).any():
            raise ValueError(
                "positions must be of samples of positive weight, which draw_samples_to_check "
                f"returns, got {int(rows[np.argmax(self._weight[rows] == 0)])}."
            )
        true, none = answers(true_labels, self.classes_, len(rows))
        if none.any():
            warn(_NONE_OF_THEM.format(int(none.sum()), len(rows)))
        is_wrong = true != encode(self.issues_["label"], self.classes_)[rows]
        likely = None if inclusion is None else _inclusion(inclusion, len(rows))
        with all_or_nothing_of(self):
            # The copies are changed in place below; an error leaves the originals.
            self.issues_, self.label_proba_ = self.issues_.copy(), self.label_proba_.copy()
            self._set_checked(rows, true, is_wrong, likely)
            if hasattr(self, "_voted"):
                self._show_votes()
        return self

    def _set_checked(
        self,
        rows: NDArray[np.intp],
        true: NDArray[np.intp],
        is_wrong: NDArray[np.bool_],
        likely: NDArray[np.float64] | None,
    ) -> None:
        """Set probabilities, rate, interval and doubts by the checks."""
        self._rate, doubt = self._rate_of_checks(rows, is_wrong, likely)
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
        if doubt:
            self.caveats_ = (*self.caveats_, doubt)

    def _rate_of_checks(
        self,
        rows: NDArray[np.intp],
        is_wrong: NDArray[np.bool_],
        likely: NDArray[np.float64] | None,
    ) -> tuple[Rate | None, str | None]:
        """Return the rate by the checks (None without a random draw), and a doubt or None."""
        log_odds, weight, doubt = self._of_model[0], self._weight, None
        self._counting = None
        draws = draws_among(self._draws, rows)
        if likely is not None:
            order = np.argsort(rows)
            draws = [Draw(rows[order], likely[order], rows[:0])]
        if not draws:
            z = rank_z(log_odds, weight, rows)
            whole = mostly_among(self._draws, rows)
            if whole is not None:  # a draw with missing answers
                given = np.isin(whole.positions, rows)
                chance = whole.inclusion[given] * given.mean()
                draws = [Draw(whole.positions[given], chance, whole.excluded)]
                doubt = _UNANSWERED.format(int((~given).sum()), len(given))
            elif abs(z) <= STANDARD_ERRORS:
                draws = [
                    Draw(np.sort(rows), inclusion(weight, len(rows))[np.sort(rows)], rows[:0])
                ]
            else:
                doubt = _NOT_RANDOM.format("more" if z < 0 else "less", z)
        if doubt:
            warn(doubt)
        if not draws:
            return None, doubt
        number = stands_for(draws, rows)
        drawn = number > 0
        self._counting = rows[drawn], is_wrong[drawn], number[drawn]
        return rate_of(log_odds, weight, *self._counting), doubt

    def _show_checks(self, rows: NDArray[np.intp], true: NDArray[np.intp]) -> None:
        """Set the probabilities by the checks; a true label of -1 means none of the classes."""
        codes = encode(self.issues_["label"], self.classes_)
        if self._checked is not None:  # undo the previous checks first
            self.label_proba_[self._checked[0]] = self._checked[1]
        self._checked = rows, self.label_proba_[rows]
        self._line = Line() if self._rate is None else self._rate.line
        p_correct = expit(self._line(self._of_model[0]))
        p_correct[rows] = true == codes[rows]
        _give_label(self.label_proba_, codes, p_correct)
        self.label_proba_[rows] = 0.0
        known = true >= 0
        self.label_proba_[rows[known], true[known]] = 1.0
        suggested = self.label_proba_.argmax(axis=1)
        suggested[rows[~known]] = codes[rows[~known]]
        self.issues_["p_label_correct"] = p_correct
        self.issues_["is_issue"] = p_correct < self.threshold
        self.issues_["suggested_label"] = self.classes_[suggested]
        self._set_class_rates(1.0 - p_correct)

    def score_labels(self, X: Any, y: ArrayLike) -> NDArray[Any]:
        """Judge the labels of new samples, by the fitted model and the checks so far.

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
        if is_chunked(X):
            X, y = aligned(X=X, y=y)
            dtype = self._table_dtype()
            return map_chunks(_judged_chunk, (self._to_send(), dtype), X, y, dtype=dtype)
        if isinstance(X, dict) and not issparse(X):
            X = {str(name): samples_and_labels(matrix, y)[0] for name, matrix in X.items()}
            labels = samples_and_labels(next(iter(X.values())), y)[1]
        else:
            X, labels = samples_and_labels(X, y)
        codes = encode(labels, self.classes_)
        proba, *shown = self._explanation.judged(X, codes, self.classes_)
        p_correct = expit(self._line(log_odds_of(proba, codes)))
        _give_label(proba, codes, p_correct)
        return self._table(labels, proba, p_correct, *shown)

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
            ``group``; ``n_samples``; ``n_issues``; ``noise_rate``, the weighted mean of
            1 - ``p_label_correct``; ``low`` and ``high``, a 95 % interval for each group alone.
            Without checks, the interval begins at 0, because the noise model has no groups, and
            covers all labels that the judges do not predict. After drawn checks, it is based on
            the checks in the group, and is (0, 1) with fewer than two of them.

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
        ends = np.array([self._ends_of(codes == code) for code in range(len(names))])
        columns["low"] = np.minimum(ends[:, 0], rate)
        columns["high"] = np.maximum(ends[:, 1], rate)
        return as_table({k: v[order] for k, v in columns.items()}, as_frame=as_frame)

    def _ends_of(self, group: NDArray[np.bool_]) -> tuple[float, float]:
        """Return the interval of the rate in a group of samples."""
        weight = self._weight[group]
        if self._counting is not None:
            rows, is_wrong, number = self._counting
            here = group[rows]
            if here.sum() < 2:
                return 0.0, 1.0
            position_in_group = np.cumsum(group) - 1
            checks = position_in_group[rows[here]], is_wrong[here], number[here]
            return rate_of(self._of_model[0][group], weight, *checks).interval
        share = weight / max(weight.sum(), np.finfo(float).tiny)
        count = weight.sum() ** 2 / max(weight @ weight, np.finfo(float).tiny)
        unexpected = np.asarray(share @ (self.issues_["margin"][group] > 0))
        high = binomial_interval(unexpected, np.asarray(count), 0.95)[1]
        return 0.0, float(high)

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
            Before any checks, the number for the least favorable rate in `noise_rate_interval_`.

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
        if rate is None:
            low, high = self.noise_rate_interval_
            # A binomial fraction has the widest interval at 0.5.
            one, worst = np.ones(1), min(max(low, 0.5), high)
            rate = Rate(Line(), worst, (low, high), one, one, one, worst, 1.0)
        elif np.diff(rate.interval)[0] <= width:
            return 0
        few, enough = n_now, n_all  # bisection
        while enough - few > 1:
            middle = (few + enough) // 2
            few, enough = (
                (few, middle) if 2.0 * rate.half_width(middle) <= width else (middle, enough)
            )
        return enough - n_now

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inside = self.estimator if isinstance(self.estimator, list) else [self.estimator]
        if self.estimator is None or isinstance(self.estimator, str):
            inside = [RelativeMahalanobisScorer()]
        tags.input_tags = common_input_tags(*inside)
        tags.target_tags.required = True
        return tags


def _judged_chunk(state: tuple[LabelIssueFinder, Any], X: NDArray, y: NDArray) -> NDArray[Any]:
    finder, dtype = state
    return finder.score_labels(X, y).astype(dtype)  # texts of one length in all chunks


def _fitted_chunk(
    state: tuple[LabelIssueFinder, np.dtype], X: Any, y: Any, verified: Any = None
) -> NDArray[Any]:
    """Return the rows of `issues_` of a chunk or, if the dtype has no names, of `label_proba_`."""
    finder, dtype = state
    proba, labels, classes = (
        check_proba_matrix(X, name="X"),
        check_class_labels(y),
        finder.classes_,
    )
    codes, is_table = encode(labels, classes), dtype.names is not None
    explanation: Any = finder._explanation
    result = np.empty(codes.shape if is_table else (len(codes), len(classes)), dtype=dtype)
    for rows in blocks_of(proba.shape):
        known = None if verified is None else np.asarray(verified[rows])
        found, *shown = explanation.judged(proba[rows], codes[rows], classes, known)
        p_correct = expit(log_odds_of(found, codes[rows]))
        found[np.arange(len(found)), codes[rows]] = p_correct
        result[rows] = finder._table(labels[rows], found, p_correct, *shown) if is_table else found
    return result


def _given(
    sample_weight: Any, verified: Any, n_samples: int
) -> tuple[NDArray[np.float64] | None, NDArray[np.float64], NDArray[np.bool_]]:
    """Return weights as given, weights, and which labels are verified."""
    given = check_weights(sample_weight, n_samples)
    weight = np.ones(n_samples) if given is None else given
    warn_if_normalized(weight)
    known = np.zeros(n_samples, dtype=bool)
    return given, weight, known if verified is None else check_mask(
        verified, known.shape, "verified")  # fmt: skip


def _check_rows(samples: Any, n_samples: int, name: str = "X") -> None:
    if isinstance(samples, dict) and not issparse(samples):
        samples = next(iter(samples.values()), ())
    if _num_samples(samples) != n_samples:
        raise ValueError(
            f"votes must have a row for each of the {_num_samples(samples)} samples of {name}, "
            f"got {n_samples}."
        )


def _positions(values: Any, n_samples: int, name: str, fewest: int = 0) -> NDArray[np.intp]:
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


def _inclusion(values: Any, n_checks: int) -> NDArray[np.float64]:
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


def _give_label(proba: NDArray, codes: NDArray[np.intp], p_correct: NDArray[np.float64]) -> None:
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
        Their labels. None, with `votes`, judges the most probable class by the votes.
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
    index = row_index(X, y, votes)
    return as_table(columns, as_frame=as_frame, index=order if index is None else index[order])
