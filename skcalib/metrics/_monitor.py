"""An alarm for a model in use, from e-values that restart at every step."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from numbers import Real
from threading import RLock
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from ..utils._backends import is_chunked, to_host
from ..utils._compat import Interval, _safe_indexing, validate_params
from ..utils._labels import encode_groups, format_labels, shorten
from ..utils._proba import TOLERANCE, check_predictions
from ._accumulator import CalibrationAccumulator
from ._e_values import (
    LIMITS_OF_DECIMALS,
    LOG_SLOPES,
    SHIFTS,
    Evidence,
    Written,
    are_answers,
    compute_e_value,
    describe_change,
    find_decimals,
    make_log_weights,
    sum_log_ratios_of_written,
)
from ._states import get_field, read_count, read_number, read_numbers, read_state, read_text

# Format 1 had exact steps alone.
_FORMAT, _EXACT_FORMAT = (f"skcalib.CalibrationMonitor {version}" for version in (2, 1))
# Of numbers of samples, and of the logarithms of their e-values: more than any state has.
_MOST = 1e15


@dataclass(frozen=True)
class _EProcess:
    """The e-value of some steps, all exact or all rounded.

    An e-process starts at every step j with the weight 1 / (j (j + 1)); after step j, the weight 1
    / (j + 1) is left for later ones. The total is a weighted mean of e-processes, one of which
    starts just when the probabilities go wrong. `log_alternatives` holds the logarithms of the
    e-values against every map.
    """

    n_steps: int = 0
    log_alternatives: Any = None
    log_e: float = 0.0

    def add(self, log_ratios: NDArray[np.float64], log_weights: NDArray[np.float64]) -> _EProcess:
        """Return the e-process after one more step; the weights are those of the maps."""
        j = self.n_steps + 1
        start = np.full_like(log_ratios, -np.log(j * (j + 1)))
        before = self.log_alternatives
        logs = (start if before is None else np.logaddexp(before, start)) + log_ratios
        log_e = np.logaddexp(logsumexp(logs + log_weights), -np.log(j + 1))
        return _EProcess(j, logs, float(log_e))


@dataclass
class _Stream:
    """The e-value of all samples, or of those of one group.

    It is the product of those of the exact and of the rounded steps.
    """

    weight: float
    steps: list[dict[str, Any]] = field(default_factory=list)
    exact: _EProcess = _EProcess()
    rounded: _EProcess = _EProcess()

    def add(
        self, step: CalibrationAccumulator, name: str, of_rounded: NDArray[np.float64] | None
    ) -> _Stream:
        """Return the stream after one more step; rounded ones have log-ratios of their own."""
        after = replace(self)
        if of_rounded is None:
            ratios = step.metric_sums_["e_value"]
            after.exact = self.exact.add(ratios, make_log_weights(ratios.shape))
        else:
            equal = np.full_like(of_rounded, -np.log(of_rounded.size))
            after.rounded = self.rounded.add(of_rounded, equal)
        n, predicted, observed = step.sums_.sum(axis=1).tolist()
        entry = {"name": name, "samples": n, "predicted": predicted, "observed": observed}
        log_e = after.exact.log_e + after.rounded.log_e
        after.steps = [*self.steps, entry | {"log_e": log_e}]
        return after

    @property
    def log_e(self) -> float:
        return float(self.steps[-1]["log_e"])

    def _describe(self, classes: NDArray | None) -> str:
        """Return the change of the probabilities that fits the labels best."""
        if self.rounded.n_steps == 0:
            return describe_change(self.exact.log_alternatives, classes)
        of_columns = self.rounded.log_alternatives
        k, row = np.unravel_index(of_columns.max(axis=2).argmax(), of_columns.shape[:2])
        named = classes if classes is None or len(of_columns) == 1 else classes[[k]]
        return describe_change(of_columns[k, row], named)

    def summarize(self, classes: NDArray | None, what: str) -> str:
        """Return a sentence on what is wrong, and since which step."""
        since = self.steps[_find_start([step["log_e"] for step in self.steps]) :]
        n, predicted, observed = (
            sum(step[key] for step in since) for key in ("samples", "predicted", "observed")
        )
        of_answers = are_answers(classes)
        model = "the confidence in the answers is" if of_answers else "the model predicts"
        return (
            f"Since {since[0]['name']} ({n:.0f} samples), {model} {predicted / n:.1%} on average, "
            f"and {observed / n:.1%} are {'right' if of_answers else what}. "
            f"{self._describe(classes)}"
        )


@dataclass(frozen=True)
class _Rounding:
    """How the probabilities of the rounded steps are written."""

    decimals: int
    half_width: float
    n_values: int
    n_at_ends: int  # written as 0 or 1

    @classmethod
    def from_written(cls, written: Written) -> _Rounding:
        at_ends = np.isin(written.values, (0, 10**written.decimals))
        return cls(written.decimals, written.half_width, at_ends.size, int(at_ends.sum()))

    def merge(self, other: _Rounding) -> _Rounding:
        return _Rounding(
            max(self.decimals, other.decimals),
            max(self.half_width, other.half_width),
            self.n_values + other.n_values,
            self.n_at_ends + other.n_at_ends,
        )


def _find_start(log_e: list[float]) -> int:
    """Return the step since which evidence has grown, by its logarithms after every step."""
    # Before the first step, the logarithm is 0.
    return int(np.argmin([0.0, *log_e[:-1]]))


class Trace(NamedTuple):
    """Names and evidence of all steps, and the positions of the alarm and of its first step."""

    names: list[str]
    log_e: NDArray[np.float64]
    alarm: int | None
    since: int | None


class CalibrationMonitor:
    """An alarm for the probabilities of a model in use, which may be updated every day.

    Each call of :meth:`update` is a step that adds the samples whose labels have arrived. If the
    probabilities are right, the probability that there is *ever* an alarm is at most
    `false_alarm_rate`, however many steps there are. Like the evidence of a
    :class:`CalibrationAccumulator`, it tests the probabilities against maps that would repair
    them [1]_, but the test restarts at every step, so that a hundred good days do not hide that
    the model is wrong since yesterday. The state has a fixed size, except for one entry per step.

    Probabilities with two to five decimals, as in a file, are taken for what they are: any that
    round to the written ones. What the decimals hide stays unseen, see `caveats_`.

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
    decimals_ : int or None
        Largest number of decimals of the steps whose probabilities are rounded; None if all are
        exact.
    caveats_ : list of str
        Sentences on errors that the written decimals hide; empty if there are none.
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

    Rounded probabilities are found by themselves: all of a step have two to five decimals, also
    if rows were divided by their sum afterwards. A map is then compared with the probability
    nearest to its own that rounds to the written one: no valid comparison finds the map's error
    sooner [2]_. Every map is tried with and without the samples written as 0 or 1. Of several
    classes, each is tested against the rest. Dask arrays count as exact.
    ``python -m skcalib monitor`` does this with one file per day.

    References
    ----------
    .. [1] A. Ramdas, P. Gruenwald, V. Vovk, G. Shafer, "Game-theoretic statistics and safe
       anytime-valid inference", Statistical Science 2023.
    .. [2] P. Gruenwald, R. de Heide, W. Koolen, "Safe testing", Journal of the Royal Statistical
       Society B 2024.

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
        self._rounding: _Rounding | None = None
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    @property
    def classes_(self) -> NDArray[Any] | None:
        """Labels of the columns."""
        return self._empty.classes_

    @property
    def steps_(self) -> list[dict[str, Any]]:
        """Samples, sums and evidence of every step."""
        return self._streams[""].steps if self._streams else []

    @property
    def decimals_(self) -> int | None:
        """Number of decimals of rounded probabilities."""
        return None if self._rounding is None else self._rounding.decimals

    @property
    def caveats_(self) -> list[str]:
        """Sentences on errors that the written decimals hide."""
        rounding = self._rounding
        if rounding is None:
            return []
        text = (
            f"The probabilities have {rounding.decimals} decimals, so an error of up to "
            f"{rounding.half_width:g} cannot be seen: it could be rounding"
        )
        if rounding.n_at_ends:
            text += (
                f"; {rounding.n_at_ends / rounding.n_values:.0%} of them are written as 0 or 1, "
                "where this may be most of the risk"
            )
        return [f"{text}. Write more decimals to see more."]

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

        Notes
        -----
        Threads may update the same monitor: one waits for the other.
        """
        with self._lock, np.errstate(under="ignore"):
            return self._update(y_true, y_proba, by, name)

    def _update(self, y_true: ArrayLike, y_proba: ArrayLike, by: Any, name: Any) -> Self:
        if self._streams and (by is None) != (len(self._streams) == 1):
            got = "none" if by is None else "some"
            raise ValueError(f"by must be passed in every step or in none, got {got} in this one.")
        in_memory = not is_chunked(y_true) and not is_chunked(y_proba)
        y_proba = _divide_rounded(y_proba) if in_memory else y_proba
        step = self._empty._empty().update(y_true, y_proba)
        if not step.sums_[0].any():
            return self  # no labels have arrived
        empty, title = step._empty(), str(len(self.steps_) + 1 if name is None else name)
        parts = {"": step} | ({} if by is None else _split_by_group(empty, y_true, y_proba, by))
        streams, rounding = dict(self._streams), self._rounding
        rounded = _read_rounded(step, y_true, y_proba) if in_memory else None
        groups = None
        if rounded is not None:
            of_step = _Rounding.from_written(rounded.written)
            rounding = of_step if rounding is None else rounding.merge(of_step)
            groups = None if by is None else _name_of_groups(by, len(rounded.is_label))
        for group, part in parts.items():
            rows = slice(None) if groups is None or group == "" else groups == group
            ratios = None if rounded is None else sum_log_ratios_of_written(*rounded, rows)
            g = len(streams)  # all samples come first
            stream = streams.get(group, _Stream(_weigh_stream(g, has_groups=by is not None)))
            streams[group] = stream.add(part, title, ratios)
        self._streams, self._empty, self._rounding = streams, empty, rounding
        if self.alarm_ is None and self._log_e() >= -np.log(self.false_alarm_rate):
            self.alarm_ = self._summary()
        return self

    @np.errstate(under="ignore")
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
        with self._lock:
            state = {
                "format": _FORMAT,
                "false_alarm_rate": self.false_alarm_rate,
                "alarm": self.alarm_,
                "rounding": None if self._rounding is None else asdict(self._rounding),
                "classes": json.loads(self._empty.to_json()),
                "streams": {
                    group: _convert_stream(stream) for group, stream in self._streams.items()
                },
            }
        return json.dumps(state, allow_nan=False)

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
            state = read_state(text, (_FORMAT, _EXACT_FORMAT))
            rate = read_number(get_field(state, "false_alarm_rate"), "false_alarm_rate")
            found = cls(rate)
            found._take(state)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"text must be what to_json of a monitor returned, got {shorten(text)}: "
                f"{str(error)[:200].rstrip('.')}."
            ) from None
        return found

    def _take(self, state: dict[str, Any]) -> None:
        """Set all that a state of plain values holds."""
        alarm, streams = get_field(state, "alarm"), get_field(state, "streams")
        self.alarm_ = None if alarm is None else read_text(alarm, "alarm")
        is_exact = state["format"] == _EXACT_FORMAT
        self._rounding = None if is_exact else _read_rounding(get_field(state, "rounding"))
        self._empty = CalibrationAccumulator.from_json(json.dumps(get_field(state, "classes")))
        if list(self._empty.metric_sums_) != ["e_value"] or self._empty.sums_.any():
            raise ValueError("'classes' must be an accumulator of e-values without samples")
        if not isinstance(streams, dict) or (streams and next(iter(streams)) != ""):
            raise ValueError("'streams' must begin with that of all samples")
        if streams and self._empty._columns is None:
            raise ValueError("'classes' must be known after the first step")
        maps = self._empty._shape_of("e_value") if streams else ()
        for g, (group, values) in enumerate(streams.items()):
            weight = _weigh_stream(g, has_groups=len(streams) > 1)
            self._streams[group] = _read_stream(values, weight, maps, is_exact=is_exact)
        if len(self.steps_) < max((len(s.steps) for s in self._streams.values()), default=0):
            raise ValueError("no group may have more steps than all samples")
        for stream in self._streams.values():
            _find_steps([step["name"] for step in self.steps_], stream.steps)
        if any(s.rounded.n_steps for s in self._streams.values()) != (self._rounding is not None):
            raise ValueError("'rounding' must be known of rounded steps, and null without them")
        if self.alarm_ is None and self._log_e() >= -np.log(self.false_alarm_rate):
            raise ValueError("'alarm' must be a text with so much evidence")

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

    def _trace(self) -> Trace:
        """Return the evidence after every step, of all samples and groups together."""
        with self._lock:
            streams = list(self._streams.values())
        names = [step["name"] for step in streams[0].steps]
        places = [_find_steps(names, stream.steps) for stream in streams]
        logs = np.full((len(streams), len(names)), -np.inf)
        for row, at, stream in zip(logs, places, streams):
            for place, step in zip(at, stream.steps):
                row[place:] = np.log(stream.weight) + step["log_e"]
        log_e = logsumexp(logs, axis=0)
        if len(streams) > 1:
            log_e = np.logaddexp(log_e, -np.log(2 * np.isfinite(logs).sum(axis=0)))
        reached = np.flatnonzero(log_e >= -np.log(self.false_alarm_rate))
        if self.alarm_ is None or not len(reached):
            return Trace(names, log_e, None, None)
        alarm, worst = int(reached[0]), int(logs[:, reached[0]].argmax())
        until = [step["log_e"] for at, step in zip(places[worst], streams[worst].steps)
                 if at <= alarm]  # fmt: skip
        return Trace(names, log_e, alarm, places[worst][_find_start(until)])

    def _summary(self) -> str:
        """Return the sentence of the stream with the most evidence."""
        logs = {g: np.log(stream.weight) + stream.log_e for g, stream in self._streams.items()}
        worst = max(logs, key=lambda g: logs[g])
        what = "positive" if self._empty._columns == () else "correct"
        summary = self._streams[worst].summarize(self.classes_, what)
        return f"{worst}: {summary}" if worst else summary


def _find_steps(names: list[str], steps: list[dict[str, Any]]) -> list[int]:
    """Return the positions of the steps of a group among those of all samples."""
    places: list[int] = []
    for step in steps:
        try:
            places.append(names.index(step["name"], places[-1] + 1 if places else 0))
        except ValueError:
            raise ValueError("the steps of a group must be among those of all samples") from None
    return places


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


def _name_of_groups(by: Any, n_samples: int) -> NDArray[Any]:
    """Return the name of every sample's group as text."""
    names, codes = encode_groups(by, n_samples, name="by")
    return np.array([str(name) for name in names], dtype=object)[codes]


def _divide_rounded(y_proba: Any) -> Any:
    """Return rows of three or more rounded probabilities divided by their sum, others as given."""
    proba = np.asarray(to_host(y_proba))
    if proba.dtype.kind != "f" or proba.ndim != 2 or proba.shape[1] < 3 or not proba.size:
        return y_proba
    if not ((proba >= 0) & (proba <= 1)).all():
        return y_proba  # the accumulator says what is wrong
    written = find_decimals(proba)
    if written is None:
        return y_proba
    total, unit = written.values.sum(axis=1), 10**written.decimals
    # Rounding changes the sum of K values by less than K / 2 units.
    if (total == unit).all() or (2 * np.abs(total - unit) > proba.shape[1]).any():
        return y_proba
    divided = written.values / total[:, np.newaxis]
    if hasattr(y_proba, "columns") and hasattr(y_proba, "index"):  # a frame keeps its names
        return type(y_proba)(divided, columns=y_proba.columns, index=y_proba.index)
    return divided


class _Rounded(NamedTuple):
    """Rounded probabilities of one step, and for every column whether it is the label's."""

    written: Written
    is_label: NDArray[np.bool_]


def _read_rounded(step: CalibrationAccumulator, y_true: Any, y_proba: Any) -> _Rounded | None:
    """Return the probabilities of a step as written; None if they are exact."""
    known = step.classes_ is not None
    checked = check_predictions(
        y_true,
        y_proba,
        labels=step.classes_ if known else step.labels,
        pos_label=None if known else step.pos_label,
    )
    written = find_decimals(checked.proba.reshape(len(checked.proba), -1))
    if written is None:
        return None
    if written.values.shape[1] <= 2:  # of two classes the second
        written = written._replace(values=written.values[:, -1:])
        return _Rounded(written, (checked.codes == 1)[:, np.newaxis])
    return _Rounded(written, checked.codes[:, np.newaxis] == np.arange(checked.proba.shape[1]))


def _convert_stream(stream: _Stream) -> dict[str, Any]:
    """Return a stream as JSON holds it."""
    return {
        "weight": stream.weight,
        "steps": stream.steps,
        "exact": _process_as_plain(stream.exact),
        "rounded": _process_as_plain(stream.rounded),
    }


def _process_as_plain(process: _EProcess) -> dict[str, Any]:
    logs = process.log_alternatives
    return {
        "n_steps": process.n_steps,
        "log_alternatives": None if logs is None else logs.tolist(),
        "log_e": process.log_e,
    }


def _weigh_stream(g: int, *, has_groups: bool) -> float:
    """Return the weight of the g-th stream to appear; all samples come first."""
    if g == 0:
        return 0.5 if has_groups else 1.0
    return 0.5 / (g * (g + 1))


def _read_stream(
    values: dict[str, Any], weight: float, maps: tuple[int, ...], *, is_exact: bool
) -> _Stream:
    """Return the stream that JSON holds; its alternatives have the shape `maps`."""
    if not np.isclose(read_number(get_field(values, "weight"), "weight"), weight):
        raise ValueError(f"'weight' must be {weight:g}")
    steps = get_field(values, "steps")
    if not isinstance(steps, list) or not steps:
        raise ValueError("'steps' must be a list of at least one step")
    for step in steps:
        read_text(get_field(step, "name"), "name")
        n = read_number(get_field(step, "samples"), "samples", 1, _MOST)
        for name in ("predicted", "observed"):
            read_number(get_field(step, name), name, -TOLERANCE * n, (1 + TOLERANCE) * n)
        read_number(get_field(step, "log_e"), "log_e", -_MOST, _MOST)
    if is_exact:
        n, log_e = len(steps), steps[-1]["log_e"]
        logs = get_field(values, "log_alternatives")
        of_steps = {"n_steps": n, "log_alternatives": logs, "log_e": log_e}
        return _Stream(weight, steps, _read_process(of_steps, maps))
    of_column = 1 if len(maps) == 1 else maps[0] - 1, 2, len(LOG_SLOPES) * len(SHIFTS)
    exact = _read_process(get_field(values, "exact"), maps)
    rounded = _read_process(get_field(values, "rounded"), of_column)
    if exact.n_steps + rounded.n_steps != len(steps):
        raise ValueError("'steps' must all have evidence")
    return _Stream(weight, steps, exact, rounded)


def _read_process(values: Any, maps: tuple[int, ...]) -> _EProcess:
    """Return the e-process that JSON holds; its alternatives have the shape `maps`."""
    n_steps = read_count(get_field(values, "n_steps"), "n_steps")
    log_e = read_number(get_field(values, "log_e"), "log_e", -_MOST, _MOST)
    logs = get_field(values, "log_alternatives")
    if (logs is None) != (n_steps == 0) or (logs is None and log_e != 0):
        raise ValueError("'log_alternatives' must be null without steps alone")
    if logs is not None:
        logs = read_numbers(logs, "log_alternatives", maps, -_MOST, _MOST)
    return _EProcess(n_steps, logs, log_e)


def _read_rounding(values: Any) -> _Rounding | None:
    """Return how probabilities are written, as JSON holds it."""
    if values is None:
        return None
    decimals = read_count(get_field(values, "decimals"), "decimals", *LIMITS_OF_DECIMALS)
    half_width = read_number(get_field(values, "half_width"), "half_width", 0, _MOST)
    n_values = read_count(get_field(values, "n_values"), "n_values", 1, _MOST)
    n_at_ends = read_count(get_field(values, "n_at_ends"), "n_at_ends", 0, n_values)
    return _Rounding(decimals, half_width, n_values, n_at_ends)
