"""When the probabilities cannot be trusted, and why."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._noise_model import no_flips
from ._rounds import Judged

# Below, the labels are about as likely without any wrong one.
SURE = 0.9
# Weak judges that call many labels wrong: the rate, and how often they agree with right labels.
_MANY, _SELDOM = 0.3, 0.7
_SEVERAL = 5  # issues that may all be right
_ADVICE = "Check some labels (draw_samples_to_check, recalibrate), or leave them as they are."


def belief_in_noise(judged: Judged) -> float:
    """Return the probability that there are wrong labels at all, in (0, 1).

    By Akaike's weights: flips are one number more, which has to gain one unit of log-likelihood.
    (Half a logarithm of the number of samples is too strict: flexible judges foretell wrong
    labels in part, and hide them.)
    """
    gain = judged.last.likelihood.total * (_gain(judged) + max(judged.gain, 0.0)) - 1.0
    return float(1.0 / (1.0 + np.exp(-np.clip(gain, -700.0, 700.0))))


def _gain(judged: Judged) -> float:
    """Return what flips at a common rate gain in mean log-likelihood over none."""
    common = judged.last.choice.common
    return common.log_likelihood - no_flips(judged.last.likelihood, common).log_likelihood


def doubts_of(judged: Judged, believed: float, is_issue: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the reasons to doubt the probabilities, where some labels are called wrong."""
    if not is_issue.any():
        return ()
    last, doubts = judged.last, []
    if believed < SURE and is_issue.sum() >= _SEVERAL:
        doubts.append(
            f"The {is_issue.sum()} issues may all be right: the labels are about as likely "
            f"without any wrong one (probability of any {believed:.2f}). {_ADVICE}"
        )
    rate, agreement = judged.fit.rate, last.agreement(judged.fit)
    if rate > _MANY and agreement < _SELDOM * (1.0 - rate):
        doubts.append(
            f"The judges call {rate:.0%} of the labels wrong, but expect only {agreement:.0%}: "
            f"they know too little of the classes. {_ADVICE}"
        )
    if last.choice.gain_of_doubt > _gain(judged) + max(judged.gain, 0.0):
        doubts.append(
            "Confusions of the judges explain the labels better than wrong labels do, so that "
            f"many issues may be right; other features or judges could help. {_ADVICE}"
        )
    return tuple(doubts)
