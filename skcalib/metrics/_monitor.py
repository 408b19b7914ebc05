"""An alarm for a model in use, from e-values that restart at every step."""

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
from ._e_values import Evidence, compute_e_value, describe_change, make_log_weights

_FORMAT = "skcalib.CalibrationMonitor 1"


@dataclass
class _Stream:
    """The e-value of all samples, or of those of one group.

    An e-process starts at every step j with the weight 1 / (j (j + 1)); after step j, the weight 1
    / (j + 1) is left for later ones. The total is a weighted mean of e-processes, one of which
    starts just when the probabilities go wrong. `log_alternatives` holds the logarithms of the
    e-values against every map, each with its weight.
    """

    weight: float
    steps: list[dict[str, Any]] = field(default_factory=list)
    log_alternatives: Any = None

    def add(self, step: CalibrationAccumulator, name: str) -> _Stream:
        """Return the stream after one more step."""
        ratios = step.metric_sums_["e_value"]
        j = len(self.steps) + 1
        start = np.full_like(ratios, -np.log(j * (j + 1)))
        before = (
            start if self.log_alternatives is None else np.logaddexp(self.log_alternatives, start)
        )
        after = before + ratios
        log_e = np.logaddexp(logsumexp(after + make_log_weights(after.shape)), -np.log(j + 1))
        n, predicted, observed = step.sums_.sum(axis=1).tolist()
        entry = {"name": name, "samples": n, "predicted": predicted, "observed": observed}
        return _Stream(self.weight, [*self.steps, entry | {"log_e": float(log_e)}], after)

    @property
    def log_e(self) -> float:
        return float(self.steps[-1]["log_e"])

    def summarize(self, classes: NDArray | None, what: str) -> str:
        """Return a sentence on what is wrong, and since which step."""
        # Evidence has grown since its minimum; before the first step, its logarithm is 0.
        smallest = np.argmin([0.0, *(step["log_e"] for step in self.steps[:-1])])
        since = self.steps[int(smallest) :]
        n, predicted, observed = (
            sum(step[key] for step in since) for key in ("samples", "predicted", "observed")
        )
        return (
            f"Since {since[0]['name']} ({n:.0f} samples), the model predicts {predicted / n:.1%} "
            f"on average, and {observed / n:.1%} are {what}. "
            f"{describe_change(self.log_alternatives, classes)}"
        )


class CalibrationMonitor:
    """An alarm for the probabilities of a model in use, which may be updated every day.

    Each call of :meth:`update` is a step that adds the samples whose labels have arrived. If the
    probabilities are right, the probability that there is *ever* an alarm is at most
    `false_alarm_rate`, however many steps there are. Like the evidence of a
    :class:`CalibrationAccumulator`, it tests the probabilities against maps that would repair
    them [1]_, but the test restarts at every step, so that a hundred good days do not hide that
    the model is wrong since yesterday. The state has a fixed size, except for one entry per step.

    An alarm stays: start a new monitor once the model is repaired.

    Parameters
    ----------
    false_alarm_rate : float, default=0.01
        Probability of a false alarm, ever, in (0, 1): larger = earlier alarms, and more false
        ones.
    labels, pos_label : of :func:`expected_calibration_error`

    Attributes
    ----------
    alarm_ : str or None
        Sentence on what was wrong, and since when, at the first alarm; None if there was none.
    steps_ : list of dict
        For every step: its "name", the number of its "samples", the sum of their confidence
        ("predicted"), the number of correct (or positive) ones ("observed"), and "log_e", the
        logarithm of the e-value of all samples so far.
    classes_ : ndarray of shape (n_classes,) or None
        Labels of the columns, from the first step on.

    See Also
    --------
    CalibrationAccumulator : Its `evidence` adds up over machines, in any order.
    calibration_test : The p-value of a single test.

    Notes
    -----
    Labels may come late, if their delay does not depend on their values. The guarantee fails if
    labels depend on each other, as those of samples that belong together do.
    ``python -m skcalib monitor`` does this with one file per day.

    References
    ----------
    .. [1] A. Ramdas, P. Gruenwald, V. Vovk, G. Shafer, "Game-theoretic statistics and safe
       anytime-valid inference", Statistical Science 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import CalibrationMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = CalibrationMonitor(false_alarm_rate=0.01)
    >>> for day in range(12):
    ...     proba = rng.uniform(0.05, 0.6, 300)
    ...     y = rng.random(300) < (proba if day < 8 else 0.6 * proba)
    ...     _ = monitor.update(y.astype(int), proba, name=f"day {day}")
    >>> monitor.alarm_
    'Since day 8 (... samples), the model predicts ...'
    """

    @validate_params({"false_alarm_rate": [Interval(Real, 0, 1, closed="neither")]})
    def __init__(
        self,
        false_alarm_rate: float = 0.01,
        *,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> None:
        self.false_alarm_rate = false_alarm_rate
        self.alarm_: str | None = None
        # Without samples; it holds the options and the classes.
        self._empty = CalibrationAccumulator(
            metrics=["e_value"], labels=labels, pos_label=pos_label
        )
        self._streams: dict[str, _Stream] = {}

    @property
    def classes_(self) -> NDArray[Any] | None:
        """Labels of the columns."""
        return self._empty.classes_

    @property
    def steps_(self) -> list[dict[str, Any]]:
        """Samples, sums and evidence of every step."""
        return self._streams[""].steps if self._streams else []

    def update(
        self, y_true: ArrayLike, y_proba: ArrayLike, *, by: Any = None, name: Any = None
    ) -> Self:
        """Add the samples of one step, such as a day.

        Parameters
        ----------
        y_true, y_proba : of :meth:`CalibrationAccumulator.update`
        by : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            Groups to monitor besides all samples, in every step or in none. `false_alarm_rate` is
            split: 1/2 of it for all samples, 1 / (2 g (g + 1)) for the g-th group to appear.
        name : object, default=None
            Name of the step, such as a date; None counts the steps from 1.

        Returns
        -------
        self : CalibrationMonitor
            The monitor itself.

        Raises
        ------
        ValueError
            As :meth:`CalibrationAccumulator.update`; if the name of a group is empty, or if two
            have the same text, such as None and "None". The state then stays as it was.
        """
        if self._streams and (by is None) != (len(self._streams) == 1):
            got = "none" if by is None else "some"
            raise ValueError(f"by must be passed in every step or in none, got {got} in this one.")
        step = self._empty._empty().update(y_true, y_proba)
        if not step.sums_[0].any():
            return self  # no labels have arrived
        empty, title = step._empty(), str(len(self.steps_) + 1 if name is None else name)
        parts = {"": step} | ({} if by is None else _split_by_group(empty, y_true, y_proba, by))
        streams = dict(self._streams)
        for group, part in parts.items():
            g = len(streams)  # all samples come first
            weight = (1.0 if by is None else 0.5) if g == 0 else 0.5 / (g * (g + 1))
            streams[group] = streams.get(group, _Stream(weight)).add(part, title)
        self._streams, self._empty = streams, empty
        if self.alarm_ is None and self._log_e() >= -np.log(self.false_alarm_rate):
            self.alarm_ = self._summary()
        return self

    def evidence(self) -> Evidence:
        """Return the evidence after the last step, of all samples and groups together.

        Returns
        -------
        e_value : float
            In [0, inf]: larger = more evidence that the probabilities are wrong; there is an alarm
            from ``1 / false_alarm_rate`` on.
        pvalue : float
            ``min(1, 1 / e_value)``, valid at any time: smaller = more evidence.
        """
        return compute_e_value(self._log_e())

    def to_json(self) -> str:
        """Return the monitor as text, from which :meth:`from_json` makes an equal one.

        Returns
        -------
        text : str
            JSON, on one line. All numbers are kept to the last bit.
        """
        streams = {
            group: asdict(stream) | {"log_alternatives": stream.log_alternatives.tolist()}
            for group, stream in self._streams.items()
        }
        return json.dumps(
            {
                "format": _FORMAT,
                "false_alarm_rate": self.false_alarm_rate,
                "alarm": self.alarm_,
                "classes": json.loads(self._empty.to_json()),
                "streams": streams,
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the monitor that :meth:`to_json` has written.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        monitor : CalibrationMonitor
            An equal one, which goes on with further steps.

        Raises
        ------
        ValueError
            If the text is not that of a monitor.
        """
        try:
            state = json.loads(text)
            if state["format"] != _FORMAT:
                raise ValueError(f"the format is {state['format']!r}")
            found = cls(state["false_alarm_rate"])
            found.alarm_ = state["alarm"]
            found._empty = CalibrationAccumulator.from_json(json.dumps(state["classes"]))
            for group, values in state["streams"].items():
                logs = np.array(values["log_alternatives"], dtype=np.float64)
                if not np.isfinite(logs).all() or not values["steps"]:
                    raise ValueError("a stream has no finite evidence")
                found._streams[group] = _Stream(values["weight"], values["steps"], logs)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"text must be what to_json of a monitor returned, got {text[:60]!r}: {error}."
            ) from None
        return found

    def __repr__(self) -> str:
        alarm = "none" if self.alarm_ is None else self.alarm_.split(",")[0]
        return (
            f"CalibrationMonitor(false_alarm_rate={self.false_alarm_rate:g}, "
            f"steps={len(self.steps_)}, alarm={alarm})"
        )

    def _log_e(self) -> float:
        """Return the logarithm of the mean e-value, with the weight kept for groups to come."""
        streams = self._streams.values()
        logs = [np.log(stream.weight) + stream.log_e for stream in streams]
        if len(logs) > 1:
            logs.append(-np.log(2 * len(logs)))
        return float(logsumexp(logs)) if logs else 0.0

    def _summary(self) -> str:
        """Return the sentence of the stream with the most evidence."""
        logs = {g: np.log(stream.weight) + stream.log_e for g, stream in self._streams.items()}
        worst = max(logs, key=lambda g: logs[g])
        what = "positive" if self._empty._columns == () else "correct"
        summary = self._streams[worst].summarize(self.classes_, what)
        return f"{worst}: {summary}" if worst else summary


def _split_by_group(
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
