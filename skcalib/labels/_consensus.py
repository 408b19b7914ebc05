"""Labels by several people: fit the judges and the model of the votes in turn."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..utils._numeric import binomial_interval
from ._annotations import Read
from ._base_models import FAR, Judge, LeaveOneOut, distances_of_new
from ._constants import FEWEST_OF_A_CLASS
from ._em import ADVICE
from ._vote_model import Scale, VoteModel, Votes, evidence_of, scale_of


class Consensus(NamedTuple):
    """What `fit` has learned from the votes."""

    model: VoteModel
    scale: Scale
    judges: dict[str, Judge]
    novelty: NDArray[np.float64]  # (n_samples,)

    def judged(
        self, X: Any, codes: NDArray[np.intp], classes: NDArray
    ) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return probabilities of the classes, margins, log-losses and novelty of new samples.

        Each label counts as the vote of an average annotator.
        """
        scores, novelty = _of_new(self.judges, X, len(codes), classes)
        rows, nobody = np.arange(len(codes)), np.full(len(codes), -1)
        votes = Votes(rows, np.zeros_like(rows), codes, len(codes), 1, len(classes))
        evidence = evidence_of(scores, votes, np.ones(len(codes)), nobody, self.scale)
        model = VoteModel(votes, evidence)
        model.parameters = self.model.parameters._replace(annotators=np.zeros(1))
        model.vote_power, model.judge_power = self.model.vote_power, self.model.judge_power
        return model.posterior(), *margins(model, codes), novelty


def margins(
    model: VoteModel, codes: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return margins and log-losses of the labels by the judges; without judges, by the votes."""
    rows, judged = np.arange(len(codes)), len(model.evidence.scores)
    if judged:
        log_proba = model.judges_log_proba()
    else:
        log_proba = np.log(np.maximum(model.posterior(), 1e-300))
    own = log_proba[rows, codes]
    return 2.0 * (log_proba.max(axis=1) - own), -own


def agree(
    votes: Votes,
    weight: NDArray[np.float64],
    known: NDArray[np.intp],
    classes: NDArray,
    judges_of: Callable[[NDArray[np.intp], NDArray[np.intp]], tuple[dict[str, Judge], Any]],
    *,
    n_refits: int,
    everybody: bool,
    step: Callable[[str], AbstractContextManager[None]],
) -> Consensus:
    """Estimate the true labels, and refit the judges to them while votes become more likely.

    `judges_of` gets the samples with a vote (all samples if `everybody`, for precomputed
    probabilities) and their estimated labels. It returns the judges of these samples, and the X of
    the others, which are new samples to the judges.
    """
    voted = np.full(votes.n_samples, everybody)
    voted[votes.sample] = True
    asked, others = np.flatnonzero(voted), np.flatnonzero(~voted)
    alone = VoteModel(votes, evidence_of([], votes, weight, known))
    last = Consensus(alone, Scale((), 0.0, 1.0), {}, np.full(votes.n_samples, np.nan))
    if everybody:  # precomputed probabilities need no labels
        estimated = np.zeros(len(asked), dtype=np.intp)
    else:
        with step("votes alone"):
            # The majority vote; the model of the votes breaks ties.
            estimated = (votes.counts() + 0.5 * alone.climb().posterior())[asked].argmax(axis=1)
    judges, X_others = judges_of(asked, estimated)
    if not judges:
        alone.temper()
        return last
    for number in range(1 if everybody else n_refits + 1):
        stage = f"refit {number}" if number else "fit"
        with step(f"{stage}: judges"):
            scores, novelty = _of_asked(judges, classes[estimated], classes)
            if len(others):
                new, far = _of_new(judges, X_others, len(others), classes)
                order = np.argsort(np.concatenate([asked, others]))
                scores = [np.concatenate(pair)[order] for pair in zip(scores, new)]
                novelty = np.concatenate([novelty, far])[order]
        with step(f"{stage}: votes and judges"):
            scale = scale_of(scores, votes, weight)
            model = VoteModel(votes, evidence_of(scores, votes, weight, known, scale)).fit()
        if number and model.value <= last.model.value:
            break
        last = Consensus(model, scale, judges, novelty)
        again = model.posterior()[asked].argmax(axis=1)
        outside = len(again) - np.bincount(again).max()
        if (again == estimated).all() or outside < FEWEST_OF_A_CLASS:
            break
        estimated = again
    return last


def _of_asked(
    judges: dict[str, Judge], labels: NDArray, classes: NDArray
) -> tuple[list[NDArray], NDArray[np.float64]]:
    """Return scores of every judge, and the novelty by the first one that has distances."""
    scores, novelty = [], np.full(len(labels), np.nan)
    for judge in judges.values():
        distances = judge.distances(labels, classes)[:]
        if isinstance(judge, LeaveOneOut) and np.isnan(novelty).all():
            novelty = distances.min(axis=1).astype(np.float64)
        scores.append(_score(distances))
    return scores, novelty


def _of_new(
    judges: dict[str, Judge], X: Any, n_samples: int, classes: NDArray
) -> tuple[list[NDArray], NDArray[np.float64]]:
    """Return scores and novelty of samples that the judges have not seen."""
    distances, novelty = distances_of_new(judges, X, n_samples, classes)
    return [_score(raw) for raw in distances], novelty


def _score(distances: NDArray) -> NDArray[np.float64]:
    """Return log-probabilities up to a constant, cut like distances."""
    excess = distances - distances.min(axis=1, keepdims=True)
    return -0.5 * np.minimum(excess, FAR)


def agreement(votes: Votes, codes: NDArray[np.intp]) -> tuple[NDArray, NDArray]:
    """Return the number of votes on every sample, and the fraction of them for its label."""
    number = np.bincount(votes.sample, minlength=votes.n_samples)
    same = np.bincount(votes.sample, votes.label == codes[votes.sample], votes.n_samples)
    share = np.full(votes.n_samples, np.nan)
    np.divide(same, number, out=share, where=number > 0)
    return number, share


class Voted(NamedTuple):
    """What a fitted finder keeps of the votes."""

    read: Read
    model: VoteModel | None  # None if every sample has one vote: that is a label


def flips_of(votes: Votes, proba: NDArray, weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the fraction of the votes on samples of a class (row) that name a class (column)."""
    counts = np.zeros((votes.n_classes, votes.n_classes))
    seen = proba[votes.sample] * weight[votes.sample, None]
    for k in range(votes.n_classes):
        counts[:, k] = seen[votes.label == k].sum(axis=0)
    total = counts.sum(axis=1, keepdims=True)
    return np.divide(counts, total, out=np.eye(votes.n_classes), where=total > 0)


def rate_of_consensus(
    rate: float, found: Consensus, codes: NDArray[np.intp]
) -> tuple[float, float]:
    """Return an interval of the rate of wrong labels.

    The lower end assumes that people err together no more than the model says. Mistakes that
    people and judges share show in no vote, so the upper end covers all labels that the judges
    (without judges, most votes on the sample) do not predict.
    """
    weight, rows = found.model.evidence.weight, np.arange(len(codes))
    share = weight / weight.sum()
    right = found.model.posterior(power=False)[rows, codes]
    error = 1.96 * float(np.sqrt(share**2 @ (right * (1.0 - right))))
    low = min(float(share @ (1.0 - right)), rate) - error
    score = found.model.judges_log_proba() if found.judges else found.model.votes.counts()
    unexpected = float(share @ (score[rows, codes] < score.max(axis=1)))
    size = np.asarray(1.0 / float(share @ share))
    high = float(binomial_interval(np.asarray(unexpected), size, 0.95)[1])
    return max(low, 0.0), min(max(rate + error, high), 1.0)


def doubts_of_votes(model: VoteModel, codes: NDArray[np.intp]) -> tuple[str, ...]:
    """Return the sentences of `caveats_` after a fit to votes."""
    votes, doubts = model.votes, []
    number = np.bincount(votes.sample, minlength=votes.n_samples)
    same = agreement(votes, codes)[1]
    several = number >= 2
    if not several.any():
        doubts.append(
            "No sample has two votes, so the votes cannot show how often people err together. "
            f"{ADVICE}"
        )
    elif (same[several] == 1.0).all():
        doubts.append(
            "No two votes on a sample differ, so they cannot show how often people err "
            f"together. {ADVICE}"
        )
    return tuple(doubts)
