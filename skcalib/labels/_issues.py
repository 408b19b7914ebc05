"""Find wrong labels, and say how sure that is."""

from __future__ import annotations

from copy import copy
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
from ..utils.checking._arrays import (
    check_weights,
    effective_weights,
    is_chunked,
    refuse_unreadable,
    warn_if_normalized,
    warn_of_total,
)
from ..utils.checking._groups import (
    Together,
    group_codes,
    n_copies,
    together,
    warn_of_copies,
)
from ..utils.checking._guard import refuse_other_positions
from ..utils.checking._labels import check_class_labels, check_several_classes, encode
from ..utils.checking._proba import binomial_interval, check_proba_matrix
from ..utils.checking._validation import check_mask
from ..utils.computing._chunked import aligned, map_chunks
from ..utils.meta._estimators import (
    common_input_tags,
    joint_classes,
    last_step,
    lists_folds,
    samples_and_labels,
    show_inner,
    takes,
    warn_if_fitted,
)
from ..utils.meta._private import (
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
    _num_samples,
    _safe_indexing,
    all_or_nothing_of,
)
from ..utils.meta._progress import telling
from ..utils.meta._tables import as_table, row_index
from ..utils.meta._warnings import warn
from ._annotations import Read, read_votes
from ._annotators import accuracies
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
from ._distinct import Copied, copied_votes, distinct_of, joined, with_twins
from ._in_chunks import Labels, LabelsInChunks, judge_of, refuse_in_chunks
from ._judges import blocks_of, judges_of, precomputed_of_votes, remarks_on
from ._limits import FEWEST_CHECKS, FEWEST_OF_A_CLASS, STANDARD_ERRORS
from ._noise_model import rate_interval
from ._rounds import Explanation, Given, Judged, judge, with_none_wrong
from ._trust import doubts_of
from ._votes import Votes, gain_of_a_vote

if TYPE_CHECKING:
    import pandas as pd

_TWINS = (
    "{} samples have a near twin with the same surprising label, such as an augmented copy; twins "
    "are kept together and do not judge one another. If you know which belong together, pass "
    "groups=."
)
_COPIED_VOTES = (
    "{} samples have a near twin with the same votes, such as an augmented copy; these votes "
    "count once, and twins do not judge one another. If you know which belong together, pass "
    "groups=."
)
_NONE_OF_THEM = (
    "{} of the {} answers are missing values: they count as labels that are wrong, of samples "
    "that belong to none of the classes. Leave out positions that nobody has answered."
)
_UNANSWERED = (
    "{} of the {} samples that were drawn have no answer. The rate holds if those are no harder "
    "than the others; ask for the best guess where it is hard to tell."
)
_OF_CHOICE = (
    "The checked labels are {} suspicious than a random draw would be (z = {:.1f}). They are "
    "taken as known, and say nothing of the others: the rate of wrong labels stays unchecked. "
    "Check some that draw_samples_to_check has drawn, and keep the finder that drew them."
)


_DRAWN_AGAIN = (
    "All {} samples that were drawn have been checked before: pass them as exclude=, or draw with "
    "another random_state."
)


class LabelIssueFinder(MetaEstimatorMixin, BaseEstimator):
    """Find wrong labels by a model of how labels go wrong.

    Several models (the judges) say how far every training sample is from every class, each sample
    left out of its own judgment. How much each model counts, and how often labels go wrong,
    follow from the given labels by maximum likelihood. Where labels of some classes turn into
    some others, and a model that confuses classes does not explain it as well, every pair of
    classes has a rate of its own (`flip_matrix_`); or labels may go to near classes. Bayes' rule
    then gives the probability that a label is right. There is no threshold on distances to
    choose, and no network to train.

    Labels alone cannot tell a wrong label of a hard sample from a right one. Where people gave
    the labels, `noise_rate_` is a lower bound for that reason, and a hundred random checks settle
    the rest: `draw_samples_to_check` and `recalibrate`.

    Several people who label the same samples (``fit(X, votes=votes)``) tell more: how often each
    of them is right, how far they err together, and how much one more vote is worth. What people
    and judges get wrong together, only checks can tell.

    Parameters
    ----------
    estimator : scorer, Pipeline, classifier, list of them or "precomputed", default=None
        Who judges.

        - None: several judges of standardized features, as far as the size of the data allows.
          Distances of class Gaussians (:class:`~skcalib.difficulty.RelativeMahalanobisScorer`
          with ``shrinkage="auto"``), a logistic regression out-of-fold, the votes of the nearest
          neighbors, and a random forest out-of-bag for small tables.
        - "precomputed": `X` holds class probabilities of a model that has not seen the sample,
          such as out-of-fold ones. Columns are in the order of the sorted labels, or those of a
          DataFrame that are named after the labels. Nothing is fitted; a memory map stays on disk.
          A dict of them, by names of the models, is several judges. Probabilities of samples that
          the model was trained on defend wrong labels, and nobody can tell from them alone.
          A dask array stays in its chunks, see `fit`.
        - A :class:`~skcalib.difficulty.RelativeMahalanobisScorer`, or a Pipeline that ends in
          one: leave-one-out distances in closed form.
        - A classifier with `predict_proba`: its out-of-fold probabilities over `cv`. One in a
          FrozenEstimator is asked as it is; where X holds numbers, `doubts_` tells of one that
          seems to have been trained on these labels.
        - A list of them: each is a judge.
    noise : {"mixed", "random"}, default="mixed"
        "mixed" looks for classes whose labels turn into certain others, and for flips to classes
        that are near; "random" takes all flips for equally frequent.
    threshold : float in (0, 1), default=0.5
        A sample is an issue where its label is right with less probability than this.
    n_refits : int, default=2
        How often the judges are fitted again, to the repaired labels, at most: without it, wrong
        labels blur the classes that judge them. A refit is kept only where the given labels are
        more likely after it. With few samples per class, the probabilities are a mean of those
        before and after (with five, both count alike).
    cv : int, cross-validation generator or iterable, default=5
        Folds of classifiers; an int is a number of stratified folds. The logistic regression among
        the judges of ``estimator=None`` has them shuffled, and no more of them than the largest
        class has samples.
    verbose : int, default=0
        Whether to print every step and its seconds, such as a judge or a refit; 0 prints nothing.

    Attributes
    ----------
    issues_ : structured array or dask array of shape (n_samples,)
        ``label``; ``suggested_label``, the most probable one; ``p_label_correct``; ``margin``,
        by how much farther the class of the label is than the nearest class; ``difficulty``, the
        log-loss of the label by the pooled judges; ``novelty``, the squared distance to the
        nearest class by the first judge with distances, large for samples that belong to none of
        the classes, NaN without such a judge; ``is_issue``. Larger margin and difficulty =
        harder. With votes also ``n_votes``, and ``agreement``, the fraction of the votes on the
        sample for ``label``, NaN without any.
    label_proba_ : ndarray or dask array of shape (n_samples, n_classes)
        Probability of every class to be the true one.
    noise_rate_ : float
        Estimated fraction of wrong labels. **A lower bound where labels are wrong on hard samples
        more often than on easy ones**, as those that people give: these look like right labels
        that are hard to tell. With ``noise="mixed"``, a tenth of the labels are taken to tell
        nothing beyond what the judges believe, so that it is above 0 for right labels that are
        hard. After `recalibrate` the estimate is unbiased.
    noise_rate_interval_ : tuple of two floats
        95 % interval of the fraction of wrong labels. After `fit`, its lower end is that of the
        profile likelihood, if labels went wrong as the model has it; ready probabilities are
        taken at their word, if that is less. Its upper end reaches up to
        all labels that the judges do not expect: mistakes of people on hard samples look like
        mistakes of the model. Mistakes that the model has learned it covers as far as ready
        probabilities say themselves that they are unsure. After
        `recalibrate`, an interval that holds whatever the model.
    is_trustworthy_ : bool
        Whether the probabilities were checked: True after `recalibrate` with 50 drawn checks or
        more.
        Labels alone cannot tell; `doubts_` says what speaks against the probabilities before.
    n_copies_ : int
        How many rows of X are equal to an earlier one. Equal rows with equal labels are judged
        once, and equal rows do not judge one another.
    doubts_ : tuple of str
        Reasons not to trust the probabilities, a sentence each; `fit` warns of them.
    judges_ : dict of str to float
        Who judged, and their part of the pooled judgement; the parts add up to one.
    n_checks_ : int
        Number of drawn checks behind the probabilities and the rate; 0 before `recalibrate`, and
        where the checks were chosen.
    flip_matrix_ : ndarray of shape (n_classes, n_classes)
        Estimated fraction of the samples of a class (row) that have a label (column). Equal
        outside the diagonal where neither a pair of classes nor near classes stand out.
        With votes, the fraction of the votes on samples of a class that name another.
    annotators_ : structured array of shape (n_annotators,)
        With votes alone: ``annotator``, the name, or the column in `votes`; ``n_votes``;
        ``accuracy``, the estimated fraction of right votes, drawn to the mean of all annotators
        as by five more votes; ``accuracy_low`` and ``accuracy_high``, its 95 % interval,
        by what the others and the judges say without the annotator's votes; ``worst_class``, the
        class of which the annotator gets most wrong.
    vote_p_correct_ : ndarray of shape (n_samples, n_annotators) or (n_votes,)
        With votes alone: the probability that each vote is right, in the form of `votes`, NaN
        where nobody voted; in the order of the list for :func:`votes_from_long`.
    class_noise_rate_ : ndarray of shape (n_classes,)
        Estimated fraction of wrong ones among the labels of each class; NaN for a class with less
        than ten.
    classes_ : ndarray of shape (n_classes,)
        Class labels: those of `y`, and of the votes. What a judge says of other classes is left
        out.
    estimator_ : estimator or None
        The first judge that is an estimator, fitted to the labels of the last refit.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Of `estimator_`, where it has them.

    See Also
    --------
    find_label_issues : The table in one call, most suspicious label first.
    votes_from_long : Votes of several people, from a list of who said what.
    LabelCleaningClassifier : Train a classifier on cleaned labels.
    skcalib.difficulty.RelativeMahalanobisScorer : A difficulty of every class.
    skcalib.plots.HardestSamplesDisplay : Shows given and suggested labels.

    Notes
    -----
    With q_k the probability of class k by the pooled judges and T the matrix of flips, labels
    have the likelihood ``P(y | x) = sum_k q_k(x) T_ky`` [1]_, here with weights of the judges, and
    with T shrunk toward a common rate. Without a matrix, some of the labels may be drawn from the
    probabilities of the other classes, ``q_y / (1 - q_k)``. A matrix or near flips are taken
    where labels left out are more likely by two thirds of a standard error (odds of three to one)
    than with a common rate, and than with judges that confuse classes.

    Of more than half a million distances, a random part enters the likelihood, the same at every
    call; all samples are judged. More than 256 classes have a common rate of flips.

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

    Somebody looks at thirty of them, drawn at random:

    >>> rows = finder.draw_samples_to_check(30, random_state=0)
    >>> low, high = finder.recalibrate(rows, y[rows]).noise_rate_interval_
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
        """Judge the labels of the samples.

        With "precomputed", X may be a dask array, and y, `sample_weight` and `verified` with it.
        What is learned is then the same, up to rounding: rates, interval, flips and doubts now,
        `issues_` and `label_proba_` as lazy dask arrays. One process holds a chunk and the part
        of the samples that the search looks at. Methods that need every sample in memory
        (`draw_samples_to_check`, `recalibrate`, `noise_rate_by`, `n_more_checks`) are errors then:
        check labels of a sample in memory, whose finder judges all chunks by `judge_labels`. One
        matrix of probabilities is judged, and no votes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or whatever the estimator takes
            Samples; a dask array of class probabilities with "precomputed". None judges by the
            votes alone.
        y : array-like of shape (n_samples,), default=None
            Their labels. None takes the most probable class by the votes for the label.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight k stands for k copies of a sample; one of weight 0 is judged and counts
            nowhere.
        verified : array-like of shape (n_samples,), dtype bool, default=None
            Samples whose label is known to be right. They are no issues and tell the model how
            far the judges can be trusted, which changes little. It learns nothing from them of
            how many labels are wrong: that takes samples drawn at random, wrong ones among them
            (`recalibrate`).
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together, such as those of a patient. A classifier is asked about
            groups that it was not fitted on, a forest by the trees that have not seen the group,
            neighbors are those of other groups. Distances, which leave out single samples, do not
            take part then. Equal rows of X are a group without being asked. Passed to the `fit`
            of a classifier that takes groups as well.
        votes : array-like of shape (n_samples, n_annotators), default=None
            What several people said of each sample, NaN or None where somebody was not asked; a
            DataFrame has a column for each annotator, :func:`votes_from_long` reads a long list.
            A sample without a vote is judged by the others. `y` is then what is judged, and no
            evidence. Where every sample has one vote, and `y` is None or these votes, the model is
            that of labels. Samples that repeat with the same votes, or nearly, count once.

        Returns
        -------
        self : LabelIssueFinder
            The fitted finder.

        Raises
        ------
        ValueError
            If there is one class alone, or if `verified` holds other values than True and False;
            if votes and samples differ in number or in the index of a frame.
        TypeError
            If X is a dask array, and the judges take features or votes.

        Warns
        -----
        SkcalibWarning
            If the probabilities cannot be trusted; if class probabilities are taken for features;
            if columns differ in scale a thousandfold, and the estimator does not scale them; if
            weights sum to less than half of the number of samples.
        """
        if is_chunked(X):
            refuse_in_chunks(self.estimator, y, groups, votes)
            return self._fit_chunks(LabelsInChunks(X, y, sample_weight, verified))
        if votes is not None:
            return self._fit_votes(X, y, votes, sample_weight, verified, groups)
        of_rows = {"sample_weight": sample_weight, "verified": verified, "groups": groups}
        X, labels = self._samples_and_labels(X, y, **of_rows)
        given_weight, weight, known = _given(sample_weight, verified, len(labels))
        check_several_classes(np.unique(labels[weight > 0]))
        self._check_judges(X, labels)
        self.classes_ = np.unique(labels)
        given, of_sample = self._judge_once(X, labels, given_weight, known, groups)
        judged = judge(given, self.n_refits)
        with given.step("probabilities of the labels"):
            self._show(judged, labels, weight, of_sample)
        first: Any = next(iter(given.judges.values()))
        self._show_estimator(first.fitted)
        return self

    def _fit_chunks(self, chunks: LabelsInChunks) -> Self:
        """Judge labels by probabilities in chunks: the search is that of memory."""
        step = telling(type(self).__name__, self.verbose)
        with step("labels of all chunks"):
            found = chunks.labels()
        if not found.sums[0]:
            raise ValueError("sample_weight must not be zero everywhere.")
        check_several_classes(found.classes[found.size > 0])
        warn_of_total(float(found.sums[0]), sum(found.n_counted))
        self.classes_, self.n_copies_ = found.classes, 0
        with step("samples that the search looks at"):
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
        """Set what `fit` has learned of chunks: sums now, and rows when they are asked for."""
        total, _, verified = found.sums
        last, fit = judged.last, judged.fit
        given: dict[str, Any] = last.given.judges
        judges = {name: judge.without_samples() for name, judge in given.items()}
        self._explanation: Explanation | Consensus = Explanation(
            judges, last.distances[-1], fit, judged.believed, last.given.hidden
        )
        explained: Any = self._explanation
        flipped, n_issues, *wrong = chunks.sums(explained, self.classes_, self.threshold)
        self._set_rates(found.size, np.array(wrong))
        self.noise_rate_ = float(np.sum(wrong) / total)
        self._forget_earlier("_weight")
        interval = self._interval_of(judged, float(flipped / total), 1.0 - float(verified / total))
        self.flip_matrix_, self.judges_ = last.likelihood.flip_matrix(fit), last.shares(fit)
        self._unchecked(np.empty(0), interval, doubts_of(judged, int(n_issues)))
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
        """Return a finder that judges labels, without what it knows of single samples."""
        sent = copy(self)
        for name in ("issues_", "label_proba_", "_weight", "_of_model", "_voted"):
            sent.__dict__.pop(name, None)
        return sent

    def _table_dtype(self) -> np.dtype:
        """Return the dtype of `issues_` in chunks: texts are as long as the longest class."""
        n_classes = len(self.classes_)
        return self._table(self.classes_, np.eye(n_classes), *np.zeros((4, n_classes))).dtype

    def _check_in_memory(self, method: str) -> None:
        check_is_fitted(self)
        if not hasattr(self, "_weight"):
            raise TypeError(
                f"{method} needs a finder that was fitted in memory, got one of a collection of "
                "dask: fit another to a sample, X[::100].compute() and y[::100].compute(). After "
                "its checks, judge_labels(X, y) of it judges all chunks."
            )

    def _fit_labels_of_votes(
        self, X: Any, y: Any, read: Read, sample_weight: Any, verified: Any, groups: Any
    ) -> Self:
        """Judge votes that are labels: one for each sample, whoever gave it."""
        codes = np.zeros(read.votes.n_samples, dtype=np.intp)
        codes[read.votes.sample] = read.votes.label
        labels = read.classes[codes] if y is None else y
        self.fit(X, labels, sample_weight=sample_weight, verified=verified, groups=groups)
        self._show_voted(Voted(read, None))
        return self

    def _samples_and_labels(self, X: Any, y: Any, **of_rows: Any) -> tuple[Any, NDArray[Any]]:
        # A sparse matrix by keys is a dict as well.
        models = self.estimator == "precomputed" and isinstance(X, dict) and not issparse(X)
        if models and X:
            X = {str(name): samples_and_labels(m, y, **of_rows)[0] for name, m in X.items()}
            return X, samples_and_labels(next(iter(X.values())), y)[1]
        return samples_and_labels(X, y, **of_rows)

    def _check_judges(self, X: Any, labels: NDArray[Any]) -> None:
        several = self.estimator if isinstance(self.estimator, list) else [self.estimator]
        if len(several) > 1 and (text := next((e for e in several if isinstance(e, str)), None)):
            raise ValueError(
                f"estimator must be a list of scorers and classifiers, got {text!r}; several "
                'matrices of probabilities are judged as estimator="precomputed" with a dict X.'
            )
        for estimator in several:
            warn_if_fitted(estimator=estimator)
            if isinstance(estimator, FrozenEstimator):  # an error if it does not know a label
                joint_classes(estimator, labels)
        for remark in remarks_on(self.estimator, X, labels):
            warn(remark)

    def _show_estimator(self, fitted: Any) -> None:
        self.estimator_ = fitted
        show_inner(self, self.estimator_)
        for doubt in self.doubts_:
            warn(doubt)

    def _fit_votes(
        self, X: Any, y: Any, votes: Any, sample_weight: Any, verified: Any, groups: Any
    ) -> Self:
        """Judge labels by what several people said."""
        if y is None and verified is not None:
            raise ValueError("verified must be None without y, whose labels it is about.")
        if X is None and groups is not None:
            raise ValueError("groups must be None without X, whose samples it is about.")
        read = read_votes(votes, None if y is None else check_class_labels(y), X, y)
        n_samples = read.votes.n_samples
        if X is not None:
            _check_rows(X, n_samples)
        # Without y, any labels will do to look at X.
        labels = np.full(n_samples, read.classes[0]) if y is None else check_class_labels(y)
        _check_rows(labels, n_samples, name="y")
        if X is not None:
            X, labels = self._samples_and_labels(X, labels)
        given_weight, weight, known = _given(sample_weight, verified, n_samples)
        self.classes_, self.n_copies_ = read.classes, 0
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

        def judges(asked: NDArray[np.intp], believed: NDArray[np.intp]) -> tuple[dict, Any]:
            return self._judges_of_votes(X, counted, asked, believed, given_weight, groups, copied)

        found = agree(
            counted,
            weight if copied is None else weight * copied.share,
            known_class,
            self.classes_,
            judges,
            n_refits=self.n_refits,
            everybody=isinstance(self.estimator, str),
            step=telling(type(self).__name__, self.verbose),
        )
        self._show_consensus(found, read, codes, weight)
        first: Any = next(iter(found.judges.values()), None)
        self._show_estimator(None if first is None else first.fitted)
        return self

    def _copied(self, X: Any, votes: Votes) -> Copied | None:
        """Return which samples with votes are copies, None where copies are no judges."""
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
        believed: NDArray[np.intp],
        given_weight: NDArray[np.float64] | None,
        groups: Any,
        copied: Copied | None,
    ) -> tuple[dict[str, Any], Any]:
        """Return the judges of the samples with votes, and the X of those without."""
        if X is None:
            return {}, None
        if isinstance(self.estimator, str):
            if groups is not None:
                raise ValueError("groups must be None for probabilities at hand, got groups.")
            # Every vote is a label of the probabilities.
            return precomputed_of_votes(X, votes.sample, self.classes_[votes.label]), None
        everybody = len(asked) == votes.n_samples
        part = X if everybody else _safe_indexing(X, asked)
        said = self.classes_[believed]
        check_several_classes(np.unique(said), name="votes")
        self._check_judges(part, said)
        of_asked = None if groups is None else group_codes(groups, votes.n_samples)[1][asked]
        found = Together(None, 0) if lists_folds(self.cv) else together(part, of_asked)
        codes, self.n_copies_ = found
        if copied is not None and copied.twins is not None:
            codes = copied.twins if codes is None else joined(codes, copied.twins)
        judges = judges_of(
            self.estimator,
            part,
            said,
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
        """Return what is judged, and where the samples are in it; None where all are.

        Equal rows with equal labels are judged once, and near twins are kept together.
        """
        codes = encode(labels, self.classes_)
        # Ready probabilities have not seen a copy, and listed folds are of all samples.
        as_it_is = isinstance(self.estimator, str) or lists_folds(self.cv)
        once = distinct_of(None if as_it_is else X, codes, groups)
        self.n_copies_ = n_copies(once.copies)
        if groups is None:
            warn_of_copies(once.copies, labels)
        rows, together = once.rows, once.groups
        X = X if once.copies is None else _safe_indexing(X, rows)
        if sample_weight is None:  # a table that comes twice is the table
            weight = effective_weights(once.total(np.ones(len(labels))))
        else:
            weight = once.total(sample_weight)
        # Judges that take no weights judge every distinct row alike, unless weights were given.
        several = self.estimator if isinstance(self.estimator, list) else [self.estimator]
        takes_weights = all(
            judge is None or takes(last_step(judge)[0].fit, "sample_weight")
            for judge in several
            if not isinstance(judge, str)
        )
        counted_twice = self.n_copies_ > 0 and (takes_weights or sample_weight is not None)
        counted = weight.copy()
        if not as_it_is and (twins := with_twins(X, codes[rows], together)) is not None:
            together = twins
            counted /= np.bincount(twins)[twins]  # a copy is no further evidence
            warn(_TWINS.format(len(twins) - len(np.unique(twins))))
        judges = judges_of(
            self.estimator,
            X,
            labels[rows],
            weight if counted_twice else sample_weight,
            self.cv,
            together,
            asked=groups is not None,
        )
        counted, known = effective_weights(counted), once.any(known)
        mixed, refits = self.noise == "mixed", not isinstance(self.estimator, str)
        step = telling(type(self).__name__, self.verbose)
        given = Given(codes[rows], self.classes_, counted, known, judges, mixed, refits, step)
        return given, once.of_sample if self.n_copies_ else None

    def _show(
        self, judged: Judged, labels: NDArray, weight: NDArray, of_sample: NDArray[np.intp] | None
    ) -> None:
        """Set what `fit` has learned; sample i is row ``of_sample[i]`` of what was judged."""
        last, fit, proba = judged.last, judged.fit, judged.proba.filled()
        given = last.given
        # Where the labels are as likely without any flips, there may be none.
        proba = with_none_wrong(proba, given.codes, judged.believed)
        flipped = 1.0 - proba[np.arange(len(proba)), given.codes].astype(np.float64)
        if given.hidden:
            last.add_hidden(proba, fit)
        columns = (*last.judged(fit), log_odds_of(proba, given.codes))
        if of_sample is not None:
            columns, proba = tuple(c[of_sample] for c in columns), proba[of_sample]
            flipped = flipped[of_sample]
        *shown, log_odds = columns
        self._show_labels(labels, weight, proba, log_odds, shown)
        # The rate of the model is that among labels nobody has verified.
        unverified = float(given.weight[~given.verified].sum() / given.weight.sum())
        ends = self._interval_of(judged, float(np.average(flipped, weights=weight)), unverified)
        self.flip_matrix_, self.judges_ = last.likelihood.flip_matrix(fit), last.shares(fit)
        self._explanation = Explanation(
            given.judges, last.distances[-1], fit, judged.believed, given.hidden
        )
        doubts = doubts_of(judged, int(self.issues_["is_issue"].sum()))
        self._unchecked(log_odds, ends, doubts)

    def _interval_of(
        self, judged: Judged, flipped: float, unverified: float
    ) -> tuple[float, float]:
        """Return the interval of the rate; `flipped` is the model's mean before hidden ones."""
        last, fit = judged.last, judged.fit
        ends = unverified * np.array(rate_interval(last.likelihood, fit))
        # Moved to the mean of the probabilities before and after refits.
        low, high = np.clip(ends + flipped - unverified * fit.rate, 0, 1)
        high = max(high, self.noise_rate_, unverified * last.surprising(fit))
        low = min(low, self.noise_rate_, unverified * last.least_wrong())
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
        """Remove what an earlier fit has learned of votes, and these attributes."""
        for name in ("annotators_", "vote_p_correct_", "_voted", *names):
            self.__dict__.pop(name, None)

    def _unchecked(
        self,
        log_odds: NDArray[np.float64],
        interval: tuple[float, float],
        doubts: tuple[str, ...],
    ) -> None:
        """Set what holds until somebody has checked labels."""
        self.noise_rate_interval_, self.doubts_ = interval, doubts
        self.is_trustworthy_, self.n_checks_ = False, 0
        self._of_model = log_odds, interval, doubts
        self._line, self._rate = Line(), None  # type: tuple[Line, Rate | None]
        self._draws: list[Draw] = []
        self._checked: tuple[NDArray, NDArray] | None = None
        # Checks that were drawn: positions, which were wrong, and what each stands for.
        self._counting: tuple[NDArray, NDArray, NDArray] | None = None

    def _show_consensus(
        self,
        found: Consensus,
        read: Read,
        codes: NDArray[np.intp] | None,
        weight: NDArray[np.float64],
    ) -> None:
        """Set what votes have told; without given labels, the most probable ones are judged."""
        proba = found.model.posterior()
        codes = proba.argmax(axis=1) if codes is None else codes
        log_odds, shown = log_odds_of(proba, codes), (*margins(found.model, codes), found.novelty)
        self._show_labels(self.classes_[codes], weight, proba, log_odds, shown)
        self._show_voted(Voted(read, found.model))
        self.flip_matrix_ = flips_of(read.votes, proba, weight)
        self.judges_ = dict(zip(found.judges, found.model.judge_shares().tolist()))
        self._explanation = found
        interval = rate_of_consensus(self.noise_rate_, found, codes)
        self._unchecked(log_odds, interval, doubts_of_votes(found.model, codes))

    def _show_voted(self, voted: Voted) -> None:
        """Set what there is with votes alone."""
        self._voted = voted
        codes = encode(self.issues_["label"], self.classes_)
        number, agreed = agreement(voted.read.votes, codes)
        columns = {name: self.issues_[name] for name in self.issues_.dtype.names or ()}
        columns |= {"n_votes": number, "agreement": agreed}
        self.issues_ = as_table(columns, as_frame=False)
        self._show_votes()

    def _show_votes(self) -> None:
        """Set what depends on the probabilities of the classes: of votes, and of annotators."""
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

    def draw_votes_to_ask(self, n_samples: int = 100) -> NDArray[np.intp]:
        """Return the samples for which one more vote helps most.

        That is by how much it would raise the largest probability of a class on average. The vote
        is that of an average annotator, and it counts as votes do in `label_proba_`. These are
        no random samples: votes on them say nothing of the rate of wrong labels, for which there
        is `draw_samples_to_check`.

        Parameters
        ----------
        n_samples : int, default=100
            How many samples.

        Returns
        -------
        positions : ndarray of shape (n_samples,)
            Positions in the `X` of `fit`, the sample that gains most first; by weight, where
            samples have any.

        Raises
        ------
        ValueError
            If `fit` had no votes, or if there are fewer samples than this.

        Examples
        --------
        >>> from skcalib.labels import LabelIssueFinder
        >>> votes = [[0, 0, 0], [1, 1, 1], [0, 1, None], [1, 1, 0], [0, 0, None], [1, 1, 1]]
        >>> finder = LabelIssueFinder().fit(None, votes=votes)
        >>> finder.draw_votes_to_ask(1).tolist()
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
        if model is None:  # one vote for every sample: the next one goes wrong as labels do
            gain = gain_of_a_vote(self.label_proba_[None], self.flip_matrix_[None])
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
        """Draw samples, whose labels somebody should check for `recalibrate`.

        Parameters
        ----------
        n_samples : int, default=100
            How many to check. The error of the rate falls with the square root of them.
        design : {"random", "informative"}, default="random"
            "random": all samples are equally likely. "informative": samples whose label may be
            right or wrong are drawn more often, all others still now and then; the finder
            keeps how likely each was drawn, and `recalibrate` counts it by that. Where
            wrong labels are ranked well, the rate is then as sure with six tenths of the checks,
            and more wrong labels are found on the way; where not, it is as sure as by random
            ones.
        exclude : array-like of int, default=None
            Positions that are not drawn, such as those that were checked already. Pass all checks
            together to `recalibrate`, those of earlier draws too.
        random_state : int, RandomState instance or None, default=None
            Which samples are drawn.
        return_inclusion : bool, default=False
            Whether to return how likely each was drawn as well, to be stored with the positions:
            a finder that did not draw them, such as one that was fitted again, needs it.

        Returns
        -------
        positions : ndarray of shape (n_samples,)
            Positions in the `X` of `fit`, in rising order. With `sample_weight` they are drawn in
            proportion to it, and none of weight 0.
        inclusion : ndarray of shape (n_samples,)
            Probabilities in (0, 1]; only with ``return_inclusion=True``.

        Raises
        ------
        ValueError
            If there are fewer samples than this, or if there is no such design.
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

    def recalibrate(
        self,
        positions: ArrayLike,
        true_labels: ArrayLike,
        *,
        inclusion: ArrayLike | None = None,
    ) -> Self:
        """Correct all probabilities and the noise rate by labels that somebody has checked.

        The checked samples have to be drawn (`draw_samples_to_check`): of suspicious ones alone,
        more are wrong than of all. Their true labels are taken as known; `p_label_correct` of all
        others is corrected by a line on the log-odds, so that their ranking stays, and
        `label_proba_`, ``is_issue``, ``suggested_label``, `noise_rate_` and `class_noise_rate_`
        follow. The rate and its interval are prediction-powered; with fewer than five wrong or
        right labels among the checks, the interval is that of Clopper and Pearson.

        Positions that this finder has drawn count by how likely they were drawn, and others among
        them are taken as known, no more. Positions that it has not drawn count as a random draw,
        unless they are more or less suspicious than one would be: then they are taken as known,
        and the rate of all others stays unchecked.

        A second call replaces the first: pass all checks so far.

        Parameters
        ----------
        positions : array-like of shape (n_checks,)
            Positions of the checked samples in the `X` of `fit`.
        true_labels : array-like of shape (n_checks,)
            Their true labels. A missing value (None, NaN) says that the label is wrong and that
            the sample belongs to none of the classes: its row of `label_proba_` is 0, and its
            ``suggested_label`` is the label that it has.
        inclusion : array-like of shape (n_checks,), default=None
            How likely each of the positions was drawn, in (0, 1], for a single draw by another
            finder (`draw_samples_to_check` with ``return_inclusion=True``). None means what this
            finder knows of its draws.

        Returns
        -------
        self : LabelIssueFinder
            The finder.

        Raises
        ------
        ValueError
            If there are fewer than two positions, if they repeat or lie outside the samples or are
            of samples of weight 0, if a label is not in `classes_` or blank, or if all are missing
            values: nobody has answered then.

        Warns
        -----
        SkcalibWarning
            If the checks are no random draw; if samples that were drawn have no answer; if
            answers are missing values.
        """
        self._check_in_memory("recalibrate")
        rows = _positions(positions, len(self._weight), "positions", fewest=2)
        if (self._weight[rows] == 0).any():
            raise ValueError(
                "positions must be of samples of positive weight, as draw_samples_to_check gives "
                f"them, got {int(rows[np.argmax(self._weight[rows] == 0)])}."
            )
        refuse_other_positions(rows, true_labels=true_labels, inclusion=inclusion)
        true, none = answers(true_labels, self.classes_, len(rows))
        if none.any():
            warn(_NONE_OF_THEM.format(int(none.sum()), len(rows)))
        is_wrong = true != encode(self.issues_["label"], self.classes_)[rows]
        likely = None if inclusion is None else _inclusion(inclusion, len(rows))
        with all_or_nothing_of(self):
            # Changed in place below, of these copies.
            self.issues_, self.label_proba_ = self.issues_.copy(), self.label_proba_.copy()
            self._take(rows, true, is_wrong, likely)
            if hasattr(self, "_voted"):
                self._show_votes()
        return self

    def _take(
        self,
        rows: NDArray[np.intp],
        true: NDArray[np.intp],
        is_wrong: NDArray[np.bool_],
        likely: NDArray[np.float64] | None,
    ) -> None:
        """Set probabilities, rate and doubts by checks."""
        self._rate, doubt = self._counted(rows, is_wrong, likely)
        self._show_checks(rows, true)
        _, (low, high), self.doubts_ = self._of_model
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
            self.doubts_ = ()
        if doubt:
            self.doubts_ = (*self.doubts_, doubt)

    def _counted(
        self,
        rows: NDArray[np.intp],
        is_wrong: NDArray[np.bool_],
        likely: NDArray[np.float64] | None,
    ) -> tuple[Rate | None, str | None]:
        """Return what the checks say of the rate, and the text of a warning or None."""
        log_odds, weight, doubt = self._of_model[0], self._weight, None
        self._counting = None
        draws = draws_among(self._draws, rows)
        if likely is not None:
            order = np.argsort(rows)
            draws = [Draw(rows[order], likely[order], rows[:0])]
        if not draws:
            z = rank_z(log_odds, weight, rows)
            whole = mostly_among(self._draws, rows)
            if whole is not None:  # some have no answer; rows that were not drawn are known
                given = np.isin(whole.positions, rows)
                chance = whole.inclusion[given] * given.mean()
                draws = [Draw(whole.positions[given], chance, whole.excluded)]
                doubt = _UNANSWERED.format(int((~given).sum()), len(given))
            elif abs(z) <= STANDARD_ERRORS:
                draws = [
                    Draw(np.sort(rows), inclusion(weight, len(rows))[np.sort(rows)], rows[:0])
                ]
            else:
                doubt = _OF_CHOICE.format("more" if z < 0 else "less", z)
        if doubt:
            warn(doubt)
        if not draws:
            return None, doubt
        number = stands_for(draws, rows)
        of = number > 0
        self._counting = rows[of], is_wrong[of], number[of]
        return rate_of(log_odds, weight, *self._counting), doubt

    def _show_checks(self, rows: NDArray[np.intp], true: NDArray[np.intp]) -> None:
        """Set the probabilities by the checks; a true label of -1 is none of the classes."""
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

    def judge_labels(self, X: Any, y: ArrayLike) -> NDArray[Any]:
        """Judge labels of new samples by what `fit` has learned, and by the checks since.

        Parameters
        ----------
        X : array-like or dask array of shape (n_new, n_features), or whatever the estimator takes
            New samples, as for `fit`; their class probabilities with "precomputed".
        y : array-like or dask array of shape (n_new,)
            Their labels, among `classes_`.

        Returns
        -------
        issues : structured array or dask array of shape (n_new,)
            The columns of `issues_`; lazy where X is a dask array.

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
        >>> issues = finder.judge_labels(X[1::2], new)
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
        """Return the estimated rate of wrong labels of parts of the samples, highest first.

        Wrong labels come in blocks: of one annotator, one batch, one source.

        Parameters
        ----------
        by : array-like of shape (n_samples,) or (n_samples, n_columns)
            What the rate is broken down by, of any kind; several columns are combined.
        as_frame : bool, default=False
            Whether to return a DataFrame (needs pandas).

        Returns
        -------
        rates : structured array of shape (n_groups,), or DataFrame
            ``group``; ``n_samples``; ``n_issues``; ``noise_rate``, the weighted mean of
            1 - ``p_label_correct``; ``low`` and ``high``, the ends of a 95 % interval of each
            group by itself. As long as nobody has checked labels, the interval reaches up to all
            labels that the judges do not expect, as `noise_rate_interval_` does, from 0: the model
            knows of no groups. After checks that were drawn, it is that of the checks in the
            group; with fewer than two of them, nothing is known.

        Raises
        ------
        ValueError
            If `by` does not have one entry for every sample.
        """
        self._check_in_memory("noise_rate_by")
        names, codes = group_codes(by, len(self.issues_), name="by")
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
        """Return the ends of the interval of the rate of some samples."""
        weight = self._weight[group]
        if self._counting is not None:
            rows, is_wrong, number = self._counting
            here = group[rows]
            if here.sum() < 2:
                return 0.0, 1.0
            place = np.cumsum(group) - 1
            checks = place[rows[here]], is_wrong[here], number[here]
            return rate_of(self._of_model[0][group], weight, *checks).interval
        share = weight / max(weight.sum(), np.finfo(float).tiny)
        count = weight.sum() ** 2 / max(weight @ weight, np.finfo(float).tiny)
        unexpected = np.asarray(share @ (self.issues_["margin"][group] > 0))
        high = binomial_interval(unexpected, np.asarray(count), 0.95)[1]
        return 0.0, float(high)

    def n_more_checks(self, width: float = 0.05) -> int:
        """Return how many more checks make the interval of the noise rate this narrow.

        Parameters
        ----------
        width : float in (0, 1), default=0.05
            Distance between the ends of `noise_rate_interval_` after `recalibrate`.

        Returns
        -------
        n_checks : int
            How many checks of the same kind are missing, 0 if the interval is that narrow. Before
            any check, what is enough for the least favorable rate in `noise_rate_interval_`.

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
        >>> finder.recalibrate(rows, y[rows]).n_more_checks(width=0.1)
        0
        """
        self._check_in_memory("n_more_checks")
        if not 0 < width < 1:
            raise ValueError(f"width must be between 0 and 1, got {width!r}.")
        n_now, n_all = self.n_checks_, int(np.count_nonzero(self._weight))
        rate = self._rate
        if rate is None:
            low, high = self.noise_rate_interval_
            one, worst = np.ones(1), min(max(low, 0.5), high)
            rate = Rate(Line(), worst, (low, high), one, one, one, worst, 1.0)
        elif np.diff(rate.interval)[0] <= width:
            return 0
        few, enough = n_now, n_all
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
    return finder.judge_labels(X, y).astype(dtype)  # texts of one length in all chunks


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
    """Return distinct positions of samples."""
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
    """Return how likely positions were drawn."""
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
    impossible = others <= 0  # so far: all other classes are as likely now
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
    """Return all samples, the one with the most suspicious label first.

    Parameters
    ----------
    estimator : of :class:`LabelIssueFinder`
    X : array-like of shape (n_samples, n_features), or whatever the estimator takes
        Samples. None judges by the votes alone.
    y : array-like of shape (n_samples,), default=None
        Their labels. None, with `votes`, takes the most probable class by the votes.
    noise, threshold, n_refits, cv, verbose : of :class:`LabelIssueFinder`
    sample_weight, verified, groups, votes : of :meth:`LabelIssueFinder.fit`
    checks : tuple of two array-like of shape (n_checks,), default=None
        Positions drawn at random, and the true labels of these samples, for
        :meth:`LabelIssueFinder.recalibrate`.
    as_frame : bool, default=False
        Whether to return a DataFrame (needs pandas). Its index names the samples: it is that of X,
        y or `votes` or, without one, the position, so that ``y[issues.index]`` are labels of these
        rows.

    Returns
    -------
    issues : structured array of shape (n_samples,), or DataFrame
        The columns of ``issues_`` in rising order of ``p_label_correct``,
        ties in falling order of ``margin``. The first column, ``sample``, is the position in X.
        With `votes` also ``n_votes`` and ``agreement``.

    Raises
    ------
    ValueError
        As :meth:`LabelIssueFinder.fit` and :meth:`LabelIssueFinder.recalibrate`, or if `checks`
        are no pair.

    See Also
    --------
    LabelIssueFinder : The same, with the noise rate and the probabilities of all classes.
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

    Three people, and nothing else:

    >>> votes = [[0, 0, 0], [1, 1, 1], [0, 1, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0]]
    >>> issues = find_label_issues(None, None, [0, 1, 0, 1, 0, 1], votes=votes)
    >>> int(issues["sample"][0]), int(issues["suggested_label"][0])
    (2, 1)
    """
    refuse_unreadable(X, name="X")
    if checks is not None and len(checks) != 2:
        raise ValueError(
            "checks must be positions and true labels, a pair of the same length, got "
            f"{len(checks)} values; None means that nothing was checked."
        )
    finder = LabelIssueFinder(
        estimator, noise=noise, threshold=threshold, n_refits=n_refits, cv=cv, verbose=verbose
    )
    given: Any = {"sample_weight": sample_weight, "verified": verified, "groups": groups}
    finder.fit(X, y, votes=votes, **given)
    if checks is not None:
        finder.recalibrate(checks[0], checks[1])
    issues = finder.issues_
    # lexsort sorts by its last key first.
    order = np.lexsort([-issues["margin"], issues["p_label_correct"]])
    columns = {"sample": order, **{name: issues[name][order] for name in issues.dtype.names or ()}}
    index = row_index(X, y, votes)
    return as_table(columns, as_frame=as_frame, index=order if index is None else index[order])
