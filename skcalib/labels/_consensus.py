"""Labels by several annotators: fit the base models and the model of the votes in turn."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from copy import copy
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted

from ..utils._compat import _num_samples, _safe_indexing, print_elapsed
from ..utils._estimators import is_list_of_folds
from ..utils._labels import (
    RelatedSamples,
    check_class_labels,
    check_several_classes,
    encode,
    encode_groups,
    find_related,
    format_labels,
)
from ..utils._numeric import compute_binomial_interval
from ..utils._output import as_table, warn
from ._agreement import estimate_alpha
from ._annotations import Read, check_weights_and_verified, read_votes
from ._base_models import (
    LARGEST_DISTANCE,
    BaseModel,
    LeaveOneOut,
    compute_new_distances,
    make_precomputed_of_votes,
)
from ._checks import label_log_odds
from ._constants import FEWEST_OF_A_CLASS, SLIGHT_ALPHA
from ._copying import Copy, find_copies, weigh_copies
from ._duplicates import VoteDuplicates, find_vote_duplicates, join_groups
from ._em import ADVICE
from ._vote_model import (
    TINY,
    VoteModel,
    Votes,
    compare_left_out,
    compute_gain_of_vote,
    estimate_accuracies,
    fit_votes,
    make_evidence,
    stack_scores,
)

_DUPLICATE_VOTES = (
    "{} samples have a near-duplicate with the same votes, such as an augmented copy; these votes "
    "count once, and near-duplicates are kept together. If you know which samples belong "
    "together, pass groups=."
)


class Consensus(NamedTuple):
    """What `fit` has learned from the votes."""

    model: VoteModel
    base_models: dict[str, BaseModel]
    novelty: NDArray[np.float64]  # (n_samples,)

    def score(
        self, X: Any, codes: NDArray[np.intp], classes: NDArray
    ) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return probabilities of the classes, margins, log-losses and novelty of new samples.

        Each label counts as the vote of an average annotator.
        """
        found, novelty = _score_new(self.base_models, X, len(codes), classes)
        scores = stack_scores(found, len(codes), len(classes))
        proba = self.model.predict(scores, codes)
        log_proba = np.log(np.maximum(self.model.prior_proba(scores) if found else proba, TINY))
        return proba, *compute_margins(log_proba, codes), novelty


def compute_margins(
    log_proba: NDArray[np.float64], codes: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return margins and log-losses of the labels by log-probabilities."""
    own = log_proba[np.arange(len(codes)), codes]
    return 2.0 * (log_proba.max(axis=1) - own), -own


def fit_consensus(
    votes: Votes,
    weight: NDArray[np.float64],
    known: NDArray[np.intp],
    classes: NDArray,
    make_base_models_of: Callable[
        [NDArray[np.intp], NDArray[np.intp]], tuple[dict[str, BaseModel], Any]
    ],
    *,
    n_refits: int,
    all_samples: bool,
    step: Callable[[str], AbstractContextManager[None]],
) -> Consensus:
    """Estimate the true labels, and refit the base models to them while votes are more likely.

    `make_base_models_of` gets the samples with a vote (all samples if `all_samples`, for
    precomputed probabilities) and their estimated labels. It returns the base models of these
    samples, and the X of the others, which are new samples to them.
    """
    voted = np.full(votes.n_samples, all_samples)
    voted[votes.sample] = True
    asked, others = np.flatnonzero(voted), np.flatnonzero(~voted)
    alone = make_evidence([], votes, weight, known)
    if all_samples:  # precomputed probabilities need no labels
        estimated = np.zeros(len(asked), dtype=np.intp)
    else:
        with step("votes alone"):
            of_votes = fit_votes(votes, alone)
            estimated = of_votes.posterior()[asked].argmax(axis=1)
    base_models, X_others = make_base_models_of(asked, estimated)
    if not base_models:
        return Consensus(of_votes, {}, np.full(votes.n_samples, np.nan))
    last: Consensus | None = None
    for number in range(1 if all_samples else n_refits + 1):
        stage = f"refit {number}" if number else "fit"
        with step(f"{stage}: base models"):
            scores, novelty = _score_asked(base_models, classes[estimated], classes)
            if len(others):
                new, far = _score_new(base_models, X_others, len(others), classes)
                order = np.argsort(np.concatenate([asked, others]))
                scores = [np.concatenate(pair)[order] for pair in zip(scores, new)]
                novelty = np.concatenate([novelty, far])[order]
        with step(f"{stage}: votes and base models"):
            model = fit_votes(votes, make_evidence(scores, votes, weight, known))
        if last is not None:
            gain, error = compare_left_out(model, last.model)
            if gain < -error:  # base models of better labels predict votes at least as well
                break
        last = Consensus(model, base_models, novelty)
        again = model.posterior()[asked].argmax(axis=1)
        outside = len(again) - np.bincount(again).max()
        if (again == estimated).all() or outside < FEWEST_OF_A_CLASS:
            break
        estimated = again
    return last  # type: ignore[return-value]  # the first fit is always kept


def _score_asked(
    base_models: dict[str, BaseModel], labels: NDArray, classes: NDArray
) -> tuple[list[NDArray], NDArray[np.float64]]:
    """Return scores of every base model, and novelty by the first one that has distances."""
    scores, novelty = [], np.full(len(labels), np.nan)
    for base_model in base_models.values():
        distances = base_model.distances(labels, classes)[:]
        if isinstance(base_model, LeaveOneOut) and np.isnan(novelty).all():
            novelty = distances.min(axis=1).astype(np.float64)
        scores.append(_score(distances))
    return scores, novelty


def _score_new(
    base_models: dict[str, BaseModel], X: Any, n_samples: int, classes: NDArray
) -> tuple[list[NDArray], NDArray[np.float64]]:
    """Return scores and novelty of samples that the base models were not fitted to."""
    distances, novelty = compute_new_distances(base_models, X, n_samples, classes)
    return [_score(raw) for raw in distances], novelty


def _score(distances: NDArray) -> NDArray[np.float64]:
    """Return log-probabilities up to a constant, capped like distances."""
    excess = distances - distances.min(axis=1, keepdims=True)
    return -0.5 * np.minimum(excess, LARGEST_DISTANCE)


def compute_agreement(votes: Votes, codes: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
    """Return the number of votes on every sample, and the fraction of them for its label."""
    number = np.bincount(votes.sample, minlength=votes.n_samples)
    same = np.bincount(votes.sample, votes.label == codes[votes.sample], votes.n_samples)
    fraction = np.full(votes.n_samples, np.nan)
    np.divide(same, number, out=fraction, where=number > 0)
    return number, fraction


class Voted(NamedTuple):
    """What a fitted finder keeps of the votes."""

    read: Read
    model: VoteModel | None  # None if every sample has one vote: that is a label


def compute_vote_matrix(
    votes: Votes, proba: NDArray, weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the fraction of the votes on samples of a class (row) that name a class (column)."""
    counts = np.zeros((votes.n_classes, votes.n_classes))
    observed = proba[votes.sample] * weight[votes.sample, None]
    for k in range(votes.n_classes):
        counts[:, k] = observed[votes.label == k].sum(axis=0)
    total = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, total, out=np.eye(votes.n_classes), where=total > 0)


def compute_consensus_interval(
    rate: float, found: Consensus, codes: NDArray[np.intp]
) -> tuple[float, float]:
    """Return an interval of the rate of wrong labels.

    How many samples people err together on is a guess: the lower end takes votes for independent,
    if that is lower, the upper end errors to be shared twice as often. Mistakes that people and
    base models share show in no vote, so the upper end also covers all labels that the base models
    (without any, most votes on the sample) do not predict.
    """
    weight, rows = found.model.evidence.weight, np.arange(len(codes))
    fraction = weight / weight.sum()

    def end(right: NDArray[np.float64], z: float) -> float:
        """Return the rate by probabilities that labels are right, plus z standard errors."""
        error = float(np.sqrt(fraction**2 @ (right * (1.0 - right))))
        return float(fraction @ (1.0 - right)) + z * error

    independent = copy(found.model)
    independent.vote_power = 1.0
    alone, surest = (
        model.posterior(share_errors=False)[rows, codes] for model in (found.model, independent)
    )
    right = found.model.posterior()[rows, codes]
    twice = np.clip(2.0 * right - alone, 0.0, 1.0)
    by_model = found.model.prior_proba if found.base_models else found.model.votes.counts
    score = by_model()
    unexpected = float(fraction @ (score[rows, codes] < score.max(axis=1)))
    size = np.asarray(1.0 / float(fraction @ fraction))
    covered = float(compute_binomial_interval(np.asarray(unexpected), size, 0.95)[1])
    low = min(rate, end(alone, -1.96), end(surest, -1.96))
    high = max(rate, end(right, 1.96), end(twice, 1.96), covered)
    return max(low, 0.0), min(high, 1.0)


def diagnose_votes(model: VoteModel, codes: NDArray[np.intp], classes: NDArray) -> tuple[str, ...]:
    """Return the sentences of `caveats_` after a fit to votes."""
    votes, caveats = model.votes, []
    # As they were given: a vote that may repeat another's counts, too.
    counts = votes._replace(power=None).counts()
    number = counts.sum(axis=1)
    same = compute_agreement(votes, codes)[1]
    several = number >= 2
    if not several.any():
        caveats.append(
            "No sample has two votes, so the votes cannot show how often people err together. "
            f"{ADVICE}"
        )
    elif (same[several] == 1.0).all():
        caveats.append(
            "No two votes on a sample differ, so they cannot show how often people err "
            f"together. {ADVICE}"
        )
    elif (found := estimate_alpha(counts)).low <= 0.0 and found.high < SLIGHT_ALPHA:
        caveats.append(
            f"Annotators hardly agree beyond chance: Krippendorff's alpha is {found.value:.2f}, "
            f"from {found.low:.2f} to {found.high:.2f}. {ADVICE}"
        )
    overruled = int(((counts.max(axis=1) == number) & several & (same == 0.0)).sum())
    if overruled and not len(model.evidence.scores):  # else base models may know better
        caveats.append(
            f"{overruled} samples on which all votes agree have another label: by the other "
            f"votes, these annotators are wrong more often than right. {ADVICE}"
        )
    lead = (counts == counts.max(axis=1, keepdims=True)) & several[:, None]
    lost = lead.any(axis=0) & (np.bincount(codes, minlength=votes.n_classes) == 0)
    if lost.any():
        caveats.append(
            f"No sample has the label {format_labels(classes[lost])}, though it has the most "
            f"votes on some. {ADVICE}"
        )
    return tuple(caveats)


class VotesMixin:
    """The methods of the finder for votes of several annotators."""

    issues_: Any
    _model: Any

    if TYPE_CHECKING:  # attributes of the finder

        def __getattr__(self, name: str) -> Any: ...

    def suggest_votes(
        self, n_samples: int = 100, *, return_gain: bool = False
    ) -> NDArray[np.intp] | tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the samples for which one more vote helps most, and how much.

        Samples are ranked by how much one more vote, by an average annotator, would raise the
        largest class probability on average. They are not a random draw, so votes on them do not
        estimate the rate of wrong labels: use `draw_samples_to_check` for that.

        Parameters
        ----------
        n_samples : int, default=100
            Number of samples to return.
        return_gain : bool, default=False
            Whether to return the gains as well.

        Returns
        -------
        positions : ndarray of shape (n_samples,)
            Positions in the `X` of `fit`, largest gain first.
        gain : ndarray of shape (n_samples,)
            Expected rise of the probability that the consensus is right, by one more vote on each
            sample, times its `sample_weight`; only with ``return_gain=True``. The sum, divided by
            the number of all samples (the sum of the weights), is the expected rise of the
            fraction of right labels. Votes also show who is right, which raises it further; where
            samples have one vote each, that is most of the gain, and hardly any is expected.

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
        >>> rows, gain = finder.suggest_votes(1, return_gain=True)
        >>> bool(0 < gain.sum() / len(votes) < finder.noise_rate_)
        True
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
            gain = compute_gain_of_vote(self.label_proba_[None], self.noise_matrix_[None])
        else:
            gain = model.gain_of_a_vote()
        gain *= self._weight
        if self._checked is not None:
            gain[self._checked[0]] = 0.0
        gain[self._weight == 0] = -np.inf
        rows = np.argsort(-gain, kind="stable")[:n_samples]
        return (rows, np.maximum(gain[rows], 0.0)) if return_gain else rows

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
            _check_n_samples(X, n_samples)
        # Without y, any labels will do to check X.
        labels = np.full(n_samples, read.classes[0]) if y is None else check_class_labels(y)
        _check_n_samples(labels, n_samples, name="y")
        if X is not None:
            X, labels = self._samples_and_labels(X, labels)
        given_weight, weight, known = check_weights_and_verified(
            sample_weight, verified, n_samples
        )
        self.classes_, self.n_duplicates_ = read.classes, 0
        check_several_classes(self.classes_, name="votes")
        counted = read.votes.used(weight > 0)
        if not len(counted.sample):
            raise ValueError("votes must hold a vote on a sample of positive weight, got none.")
        once = np.bincount(counted.sample, minlength=n_samples)[weight > 0] == 1
        copies = find_copies(counted, weight)
        if copies:
            counted = counted._replace(power=weigh_copies(counted, copies))
        codes = None if y is None else encode(labels, self.classes_)
        are_labels = codes is None or np.array_equal(codes[counted.sample], counted.label)
        if X is not None and once.all() and are_labels:
            return self._fit_labels_of_votes(X, y, read, sample_weight, verified, groups)
        known_class = np.full(n_samples, -1) if codes is None else np.where(known, codes, -1)

        duplicates = self._find_vote_duplicates(X, counted)
        given = {"given_weight": given_weight, "groups": groups, "duplicates": duplicates}
        found = fit_consensus(
            counted,
            weight if duplicates is None else weight * duplicates.weight,
            known_class,
            self.classes_,
            partial(self._base_models_of_votes, X, counted, **given),
            n_refits=self.n_refits,
            all_samples=isinstance(self.estimator, str),
            step=partial(print_elapsed, type(self).__name__, self.verbose),
        )
        self._show_consensus(found, read, codes, weight, copies)
        first: Any = next(iter(found.base_models.values()), None)
        self._show_estimator(None if first is None else first.fitted)
        return self

    def _fit_labels_of_votes(
        self, X: Any, y: Any, read: Read, sample_weight: Any, verified: Any, groups: Any
    ) -> Self:
        """Treat votes as labels: every sample has one, whoever gave it."""
        codes = np.zeros(read.votes.n_samples, dtype=np.intp)
        codes[read.votes.sample] = read.votes.label
        labels = read.classes[codes] if y is None else y
        self.fit(X, labels, sample_weight=sample_weight, verified=verified, groups=groups)
        self._show_voted(Voted(read, None))
        self._show_copies([], read)
        return self

    def _find_vote_duplicates(self, X: Any, votes: Votes) -> VoteDuplicates | None:
        """Return which samples with votes are duplicates; None if base models are not fitted."""
        if X is None or isinstance(self.estimator, str) or is_list_of_folds(self.cv):
            return None
        asked = np.unique(votes.sample)
        part = X if len(asked) == votes.n_samples else _safe_indexing(X, asked)
        found = find_vote_duplicates(part, votes.alike()[asked])
        weight = np.ones(votes.n_samples)
        weight[asked] = found.weight
        if found.group_ids is not None:
            n_duplicates = len(asked) - len(np.unique(found.group_ids))
            warn(_DUPLICATE_VOTES.format(n_duplicates))
        return VoteDuplicates(found.group_ids, weight)

    def _base_models_of_votes(
        self,
        X: Any,
        votes: Votes,
        asked: NDArray[np.intp],
        estimated: NDArray[np.intp],
        given_weight: NDArray[np.float64] | None,
        groups: Any,
        duplicates: VoteDuplicates | None,
    ) -> tuple[dict[str, Any], Any]:
        """Return the base models of the samples with votes, and the X of those without."""
        if X is None:
            return {}, None
        if isinstance(self.estimator, str):
            if groups is not None:
                raise ValueError("groups must be None for precomputed probabilities, got groups.")
            # Every vote counts as a label, to match columns with classes.
            return make_precomputed_of_votes(X, votes.sample, self.classes_[votes.label]), None
        all_samples = len(asked) == votes.n_samples
        part = X if all_samples else _safe_indexing(X, asked)
        labels = self.classes_[estimated]
        check_several_classes(np.unique(labels), name="votes")
        self._check_estimator(part, labels)
        of_asked = None if groups is None else encode_groups(groups, votes.n_samples)[1][asked]
        found = (
            RelatedSamples(None, 0) if is_list_of_folds(self.cv) else find_related(part, of_asked)
        )
        codes, self.n_duplicates_ = found
        near = None if duplicates is None else duplicates.group_ids
        if near is not None:
            codes = near if codes is None else join_groups(codes, near)
        weight = None if given_weight is None else given_weight[asked]
        models = self._make_base_models(part, labels, weight, codes, has_groups=groups is not None)
        others = np.setdiff1d(np.arange(votes.n_samples), asked)
        return models, None if all_samples else _safe_indexing(X, others)

    def _show_consensus(
        self,
        found: Consensus,
        read: Read,
        codes: NDArray[np.intp] | None,
        weight: NDArray[np.float64],
        copies: list[Copy],
    ) -> None:
        """Set the attributes of a fit to votes; ``codes=None`` takes the most probable labels."""
        proba = found.model.posterior()
        codes = proba.argmax(axis=1) if codes is None else codes
        prior = found.model.prior_proba() if found.base_models else proba
        log_odds = label_log_odds(proba, codes)
        shown = (*compute_margins(np.log(np.maximum(prior, TINY)), codes), found.novelty)
        self._show_labels(self.classes_[codes], weight, proba, log_odds, shown)
        self._show_voted(Voted(read, found.model))
        self.noise_matrix_ = compute_vote_matrix(read.votes, proba, weight)
        self.base_models_ = dict(zip(found.base_models, found.model.score_fractions().tolist()))
        self._model = found
        interval = compute_consensus_interval(self.noise_rate_, found, codes)
        caveats = diagnose_votes(found.model, proba.argmax(axis=1), self.classes_)
        self._set_unchecked(log_odds, interval, self._show_copies(copies, read) + caveats)

    def _compare_with_majority(self, rows: NDArray[np.intp], true: NDArray[np.intp]) -> str | None:
        """Return a sentence if a majority of votes is right on more of the checked samples."""
        voted = self._voted
        if voted.model is None:  # one vote a sample: it is the label
            return None
        # As they were given: a vote that may repeat another's counts, too.
        counts = voted.read.votes._replace(power=None).counts()[rows]
        asked = counts.any(axis=1)
        counts, true, rows = counts[asked], true[asked], rows[asked]
        most = counts == counts.max(axis=1, keepdims=True)
        known, index = true >= 0, np.arange(len(rows))
        # Equal votes are right as often as one of them that is drawn.
        by_majority = float((known * most[index, true] / most.sum(axis=1)).sum())
        by_consensus = int((known & (voted.model.posterior()[rows].argmax(axis=1) == true)).sum())
        if by_majority - by_consensus < 1:  # ties alone count in fractions
            return None
        return (
            f"Of {len(rows)} checked samples with votes, the consensus is right on {by_consensus} "
            f"and a majority of the votes on {by_majority:g}: the votes do not show who is right. "
            "Take the labels of the majority, or check more samples."
        )

    def _show_copies(self, copies: list[Copy], read: Read) -> tuple[str, ...]:
        """Set the table of annotators who repeat another's votes; return sentences on them."""
        names = read.annotators
        columns = {
            "copier": names[np.array([copy.copier for copy in copies], dtype=np.intp)],
            "source": names[np.array([copy.source for copy in copies], dtype=np.intp)],
            "proba": np.array([copy.proba for copy in copies]),
            "low": np.array([copy.low for copy in copies]),
            "high": np.array([copy.high for copy in copies]),
        }
        self.copying_pairs_ = as_table(columns, as_frame=False)
        return tuple(
            f"Annotator {names.tolist()[copy.copier]!r} seems to repeat the votes of "
            f"{names.tolist()[copy.source]!r} (or the reverse) with a probability of "
            f"{copy.proba:.2f}, from {copy.low:.2f} to {copy.high:.2f}: such votes count for less."
            for copy in copies
        )

    def _show_voted(self, voted: Voted) -> None:
        """Set the attributes and columns that exist only with votes."""
        self._voted = voted
        codes = encode(self.issues_["label"], self.classes_)
        number, agreed = compute_agreement(voted.read.votes, codes)
        columns = {name: self.issues_[name] for name in self.issues_.dtype.names or ()}
        columns |= {"n_votes": number, "agreement": agreed}
        self.issues_ = as_table(columns, as_frame=False)
        self._show_votes()

    def _show_votes(self) -> None:
        """Set `vote_p_correct_` and `annotators_` by the current probabilities of the classes."""
        read = self._voted.read
        p_correct = self.label_proba_[read.votes.sample, read.votes.label].astype(np.float64)
        self.vote_p_correct_ = read.in_form(p_correct)
        number, accuracy, low, high, worst = estimate_accuracies(
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


def _check_n_samples(samples: Any, n_samples: int, name: str = "X") -> None:
    if isinstance(samples, dict) and not issparse(samples):
        samples = next(iter(samples.values()), ())
    if _num_samples(samples) != n_samples:
        raise ValueError(
            f"votes must have a row for each of the {_num_samples(samples)} samples of {name}, "
            f"got {n_samples}."
        )
