"""Systematic flips: many samples of one class bear the label of one other.

With the rate c of such flips from class k to label y, and s_k the sum of the rates from k, a label
that neither a random nor a near flip has replaced is y with probability c, and right with 1 - s_k:

    P(y | k) = (1 - r) ([y = k] (1 - s_k) + c_ky) + random + near flips,    r = r_u + r_n.

A scorer that takes samples of y for k leaves the same traces as flips from k to y. What tells them
apart is how many they are: a pair of classes is believed to be one of systematic flips where that
explains the labels better than chance and the choice among all pairs make it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

# Below this belief, a sample tells nothing about flips from a class. It bounds how many classes
# of a sample are kept, at 1 / LEAST_BELIEF.
LEAST_BELIEF = 0.02
# A class, and the labels that its samples may bear by mistake, need so many samples.
_FEWEST_SAMPLES = 10
# Of rates below the least, the scorer's own confusion of two classes cannot be told (CLINC150 with
# right labels, 20 and 100 samples a class: up to .15). From the largest on, the wrong label would
# pass for the right one.
_LEAST_RATE = 0.2
_LARGEST_RATE = 0.6
_RATES = np.linspace(0.0, _LARGEST_RATE, 31)[1:]
_EM_STEPS = 30


class SystematicFlips:
    """Pairs of classes, and the fraction of the samples of one that bear the label of the other.

    Parameters
    ----------
    true, given : ndarray of shape (n_pairs,)
        Classes of the samples and of their labels.
    rate : ndarray of shape (n_pairs,)
        c above. Where those of a class add up to too much, all are made smaller.
    n_classes : int
        Number of all classes.
    n_flipped : ndarray of shape (n_pairs,), default=None
        Expected number of such labels, or their weight.
    """

    def __init__(
        self,
        true: NDArray[np.intp],
        given: NDArray[np.intp],
        rate: NDArray[np.float64],
        n_classes: int,
        n_flipped: NDArray[Any] | None = None,
    ) -> None:
        self.n_flipped = np.zeros(len(rate)) if n_flipped is None else n_flipped
        # s above. Below one, so that some labels remain right.
        lost = np.bincount(true, rate, n_classes)
        limited = rate * np.minimum(1.0, _LARGEST_RATE / np.maximum(lost, _LEAST_RATE))[true]
        self.true, self.given, self.rate = true, given, limited
        self.lost = np.bincount(true, limited, n_classes)
        source = np.flatnonzero(self.lost)
        values = np.concatenate([limited, -self.lost[source]])
        at = np.concatenate([given, source]), np.concatenate([true, source])
        self._change = csr_array((values, at), shape=(n_classes, n_classes))  # given x true

    def has_pairs_of(self, other: SystematicFlips | None) -> bool:
        """Tell whether the pairs are the same."""
        return (
            other is not None
            and np.array_equal(self.true, other.true)
            and np.array_equal(self.given, other.given)
        )

    def changes(
        self, codes: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """Return (sample, class k, change of P(y | k) / (1 - r)), where there is one."""
        changes = self._change[codes].tocoo()
        return changes.row, changes.col, changes.data


class Believed(NamedTuple):
    """The classes that samples may belong to, and how much better they explain the labels.

    Entries of a sparse (n_samples, n_classes).
    """

    sample: NDArray[np.intp]
    column: NDArray[np.intp]
    ratio: NDArray[np.float64]  # (1 - r) q_k / P(y), without systematic flips

    def where(self, mask: NDArray[np.bool_]) -> Believed:
        """Return some of the entries."""
        return Believed(self.sample[mask], self.column[mask], self.ratio[mask])


def find_systematic_flips(
    believed: Believed, codes: NDArray[np.intp], weight: NDArray[np.float64], n_classes: int
) -> SystematicFlips | None:
    """Return the pairs of classes with systematic flips, and their most likely rates.

    Each pair is judged by itself, against the noise without any. It has to raise the
    log-likelihood by half the logarithm of the size of the class, for one more parameter, and by
    that of the number of other classes, for the choice among them [1]_.

    Parameters
    ----------
    believed : Believed
        Of the samples whose labels nobody has verified.
    codes : ndarray of shape (n_samples,)
        Given labels.
    weight : ndarray of shape (n_samples,)
        Weights of the samples; 0 for those verified.
    n_classes : int
        Number of classes.

    References
    ----------
    .. [1] J. Chen, Z. Chen, "Extended Bayesian information criteria for model selection with
       large model spaces", Biometrika 2008.
    """
    own = codes[believed.sample] == believed.column
    right, wrong = believed.where(own), believed.where(~own)
    pair, place = np.unique(wrong.column * n_classes + codes[wrong.sample], return_inverse=True)
    true, given = np.divmod(pair, n_classes)
    gain = np.empty((len(pair), len(_RATES)))
    for i, rate in enumerate(_RATES):
        # What labels y gain by being flips from k, and right labels of k lose. The ratio of a
        # right label is 1 at most: (1 - r) q_y is a part of P(y).
        gained = weight[wrong.sample] * np.log1p(rate * wrong.ratio)
        lost = weight[right.sample] * np.log1p(-rate * right.ratio)
        gain[:, i] = np.bincount(place, gained, len(pair))
        gain[:, i] += np.bincount(right.column, lost, n_classes)[true]
    if not len(pair):
        return None
    count = np.bincount(codes, weight, n_classes)
    price = 0.5 * np.log(np.maximum(count[true], 1.0)) + np.log(n_classes - 1.0)
    best = _RATES[gain.argmax(axis=1)]
    enough = np.minimum(count[true], count[given]) >= _FEWEST_SAMPLES
    found = np.flatnonzero(enough & (gain.max(axis=1) > price) & (best >= _LEAST_RATE))
    if not len(found):
        return None
    number = np.full(len(pair), -1)
    number[found] = np.arange(len(found))
    flips = SystematicFlips(true[found], given[found], best[found], n_classes)
    is_flip = number[place] >= 0
    return _most_likely_rates(
        flips,
        right.where(np.isin(right.column, flips.true)),
        wrong.where(is_flip),
        number[place[is_flip]],
        weight,
    )


def _most_likely_rates(
    flips: SystematicFlips,
    right: Believed,
    wrong: Believed,
    pair: NDArray[np.intp],
    weight: NDArray[np.float64],
) -> SystematicFlips:
    """Return the pairs with their rates after steps of expectation and maximization.

    `right` are right labels of classes that lose some, `wrong` flips, and `pair` their pairs.
    """
    n_classes, n_samples = len(flips.lost), len(weight)
    for _ in range(_EM_STEPS):
        # Expected at these rates, over the likelihood without systematic flips.
        flipped = flips.rate[pair] * wrong.ratio
        kept = (1.0 - flips.lost[right.column]) * right.ratio
        likelihood = 1.0 + np.bincount(wrong.sample, flipped, n_samples)
        likelihood += np.bincount(right.sample, kept - right.ratio, n_samples)
        factor = weight / likelihood
        n_flipped = np.bincount(pair, flipped * factor[wrong.sample], len(flips.rate))
        n_kept = np.bincount(right.column, kept * factor[right.sample], n_classes)
        total = n_kept + np.bincount(flips.true, n_flipped, n_classes)
        rate = n_flipped / total[flips.true]
        flips = SystematicFlips(flips.true, flips.given, rate, n_classes, n_flipped)
    return flips
