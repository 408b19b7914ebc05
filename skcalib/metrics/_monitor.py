"""An alarm for a model in use: bets that restart, so that good days do not hide bad ones."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ..utils._backends import is_chunked
from ..utils._compat import Interval, _safe_indexing, validate_params
from ..utils._labels import encode_groups, format_labels
from ._accumulator import CalibrationAccumulator
from ._e_values import Evidence, evidence_of, explanation, log_weights

_FORMAT = "skcalib.CalibrationWatch 1"


@dataclass
class _Stream:
    """The bets on all samples, or on those of one group.

    A bet starts at every look j with the fraction 1 / (j (j + 1)) of the money; after look j, 1 /
    (j + 1) is not yet bet. The total is a weighted mean of fair bets, and one of them starts just
    when the probabilities go wrong. `wealth` is the logarithm of the money on every map.
    """

    share: float
    looks: list[dict[str, Any]] = field(default_factory=list)
    wealth: Any = None

    def add(self, day: CalibrationAccumulator, name: str) -> _Stream:
        """Return the stream after one more look."""
        ratios = day.metric_sums_["evidence"]
        j = len(self.looks) + 1
        start = np.full_like(ratios, -np.log(j * (j + 1)))
        before = start if self.wealth is None else np.logaddexp(self.wealth, start)
        wealth = before + ratios
        log_e = np.logaddexp(logsumexp(wealth + log_weights(wealth.shape)), -np.log(j + 1))
        n, stated, seen = day.sums_.sum(axis=1).tolist()
        look = {"name": name, "samples": n, "stated": stated, "seen": seen, "log_e": float(log_e)}
        return _Stream(self.share, [*self.looks, look], wealth)

    @property
    def log_e(self) -> float:
        return float(self.looks[-1]["log_e"])

    def story(self, classes: NDArray | None, what: str) -> str:
        """Return a sentence on what is wrong, and since which look."""
        # Evidence has grown since its minimum; before the first look, its logarithm is 0.
        smallest = np.argmin([0.0, *(look["log_e"] for look in self.looks[:-1])])
        since = self.looks[int(smallest) :]
        n, stated, seen = (
            sum(look[key] for look in since) for key in ("samples", "stated", "seen")
        )
        return (
            f"Since {since[0]['name']} ({n:.0f} samples), the model says {stated / n:.1%} on "
            f"average, and {seen / n:.1%} are {what}. {explanation(self.wealth, classes)}"
        )


class CalibrationWatch:
    """An alarm for the probabilities of a model in use, which may be looked at every day.

    Each call of :meth:`update` adds the samples whose labels have arrived. If the probabilities
    are right, the probability that it *ever* raises an alarm is at most `alpha`, however many
    looks there are. Like the evidence of a :class:`CalibrationAccumulator`, it bets on maps that
    would repair the probabilities [1]_, but its bets restart at every look, so that a hundred good
    days do not hide that the model is wrong since yesterday. The state has a fixed size, except
    for one entry per look.

    An alarm stays: start a new watch once the model is repaired.

    Parameters
    ----------
    alpha : float, default=0.01
        Probability of a false alarm, ever, in (0, 1): larger = earlier alarms, and more false
        ones.
    labels, pos_label : of :func:`expected_calibration_error`

    Attributes
    ----------
    alarm_ : str or None
        Sentence on what was wrong, and since when, at the first alarm; None if there was none.
    looks_ : list of dict
        For every look: its "name", the number of its "samples", the sum of their confidence
        ("stated"), the number of right (or positive) ones ("seen"), and "log_e", the logarithm of
        the e-value of all samples so far.
    classes_ : ndarray of shape (n_classes,) or None
        Labels of the columns, from the first look on.

    See Also
    --------
    CalibrationAccumulator : Its `evidence` adds up over machines, in any order.
    calibration_test : The p-value of one look.

    Notes
    -----
    Labels may come late, if their delay does not depend on their values. The guarantee fails if
    labels depend on each other, as those of samples that belong together do.
    ``python -m skcalib watch`` does this with one file per day.

    References
    ----------
    .. [1] A. Ramdas, P. Gruenwald, V. Vovk, G. Shafer, "Game-theoretic statistics and safe
       anytime-valid inference", Statistical Science 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import CalibrationWatch
    >>> rng = np.random.default_rng(0)
    >>> watch = CalibrationWatch(alpha=0.01)
    >>> for day in range(12):
    ...     proba = rng.uniform(0.05, 0.6, 300)
    ...     y = rng.random(300) < (proba if day < 8 else 0.6 * proba)
    ...     _ = watch.update(y.astype(int), proba, name=f"day {day}")
    >>> watch.alarm_
    'Since day 8 (... samples), the model says ...'
    """

    @validate_params({"alpha": [Interval(Real, 0, 1, closed="neither")]})
    def __init__(
        self, alpha: float = 0.01, *, labels: ArrayLike | None = None, pos_label: Any = None
    ) -> None:
        self.alpha = alpha
        self.alarm_: str | None = None
        # Without samples; it holds the options and the classes.
        self._empty = CalibrationAccumulator(
            metrics=["evidence"], labels=labels, pos_label=pos_label
        )
        self._streams: dict[str, _Stream] = {}

    @property
    def classes_(self) -> NDArray[Any] | None:
        """Labels of the columns."""
        return self._empty.classes_

    @property
    def looks_(self) -> list[dict[str, Any]]:
        """Samples, sums and evidence of every look."""
        return self._streams[""].looks if self._streams else []

    def update(
        self, y_true: ArrayLike, y_proba: ArrayLike, *, by: Any = None, name: Any = None
    ) -> Self:
        """Add the samples of one look, such as a day.

        Parameters
        ----------
        y_true, y_proba : of :meth:`CalibrationAccumulator.update`
        by : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            Groups to watch besides all samples, in every look or in none. `alpha` is split: 1/2 of
            it for all samples, 1 / (2 g (g + 1)) for the g-th group to appear.
        name : object, default=None
            Name of the look, such as a date; None counts the looks from 1.

        Returns
        -------
        self : CalibrationWatch
            The watch itself.

        Raises
        ------
        ValueError
            As :meth:`CalibrationAccumulator.update`; if the name of a group is empty, or if two
            have the same text, such as None and "None". The state then stays as it was.
        """
        if self._streams and (by is None) != (len(self._streams) == 1):
            got = "none" if by is None else "some"
            raise ValueError(f"by must be passed in every look or in none, got {got} in this one.")
        day = self._empty._empty().update(y_true, y_proba)
        if not day.sums_[0].any():
            return self  # no labels have arrived
        empty, title = day._empty(), str(len(self.looks_) + 1 if name is None else name)
        parts = {"": day} | ({} if by is None else _parts(empty, y_true, y_proba, by))
        streams = dict(self._streams)
        for group, part in parts.items():
            g = len(streams)  # all samples come first
            share = (1.0 if by is None else 0.5) if g == 0 else 0.5 / (g * (g + 1))
            streams[group] = streams.get(group, _Stream(share)).add(part, title)
        self._streams, self._empty = streams, empty
        if self.alarm_ is None and self._log_e() >= -np.log(self.alpha):
            self.alarm_ = self._story()
        return self

    def evidence(self) -> Evidence:
        """Return the evidence after the last look, of all samples and groups together.

        Returns
        -------
        e_value : float
            In [0, inf]: larger = more evidence that the probabilities are wrong; there is an alarm
            from ``1 / alpha`` on.
        pvalue : float
            ``min(1, 1 / e_value)``, valid at any time: smaller = more evidence.
        """
        return evidence_of(self._log_e())

    def to_json(self) -> str:
        """Return the watch as text, from which :meth:`from_json` makes an equal one.

        Returns
        -------
        text : str
            JSON, on one line. All numbers are kept to the last bit.
        """
        streams = {
            group: asdict(stream) | {"wealth": np.asarray(stream.wealth).tolist()}
            for group, stream in self._streams.items()
        }
        return json.dumps(
            {
                "format": _FORMAT,
                "alpha": self.alpha,
                "alarm": self.alarm_,
                "classes": json.loads(self._empty.to_json()),
                "streams": streams,
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the watch that :meth:`to_json` has written.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        watch : CalibrationWatch
            An equal one, which goes on with further looks.

        Raises
        ------
        ValueError
            If the text is not that of a watch.
        """
        try:
            state = json.loads(text)
            if state["format"] != _FORMAT:
                raise ValueError(f"the format is {state['format']!r}")
            found = cls(state["alpha"])
            found.alarm_ = state["alarm"]
            found._empty = CalibrationAccumulator.from_json(json.dumps(state["classes"]))
            for group, values in state["streams"].items():
                wealth = np.array(values["wealth"], dtype=np.float64)
                if not np.isfinite(wealth).all() or not values["looks"]:
                    raise ValueError("a stream has no finite evidence")
                found._streams[group] = _Stream(values["share"], values["looks"], wealth)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"text must be what to_json of a watch returned, got {text[:60]!r}: {error}."
            ) from None
        return found

    def __repr__(self) -> str:
        alarm = "none" if self.alarm_ is None else self.alarm_.split(",")[0]
        return f"CalibrationWatch(alpha={self.alpha:g}, looks={len(self.looks_)}, alarm={alarm})"

    def _log_e(self) -> float:
        """Return the logarithm of the mean return, with the share kept for groups to come."""
        streams = self._streams.values()
        logs = [np.log(stream.share) + stream.log_e for stream in streams]
        if len(logs) > 1:
            logs.append(-np.log(2 * len(logs)))
        return float(logsumexp(logs)) if logs else 0.0

    def _story(self) -> str:
        """Return the sentence of the stream with the most evidence."""
        returns = {g: np.log(stream.share) + stream.log_e for g, stream in self._streams.items()}
        worst = max(returns, key=lambda g: returns[g])
        what = "positive" if self._empty._columns == () else "right"
        story = self._streams[worst].story(self.classes_, what)
        return f"{worst}: {story}" if worst else story


def _parts(
    empty: CalibrationAccumulator, y_true: ArrayLike, y_proba: ArrayLike, by: Any
) -> dict[str, CalibrationAccumulator]:
    """Return the accumulators of all groups by name."""
    if is_chunked(y_true) or is_chunked(y_proba):
        raise TypeError("by must be None where y_true or y_proba is a dask array, got groups.")
    names, codes = encode_groups(by, len(y_true), name="by")  # type: ignore[arg-type]
    texts = [str(name) for name in names]
    if "" in texts or len(set(texts)) < len(texts):
        raise ValueError(
            "by must hold groups whose names are not empty and differ as text, got "
            f"{format_labels(names.tolist())}."
        )
    rows = [np.flatnonzero(codes == g) for g in range(len(names))]
    return {
        text: empty._empty().update(
            _safe_indexing(y_true, of_group), _safe_indexing(y_proba, of_group)
        )
        for text, of_group in zip(texts, rows)
    }
