"""An alarm for a model in use, from e-values that restart at every step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
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
    Evidence,
    Written,
    WrittenCounts,
    are_answers,
    compute_e_value,
    count_written,
    describe_change,
    find_decimals,
    log_ratios_of_written,
    make_log_weights,
)
from ._states import get_field, read_count, read_number, read_numbers, read_state, read_text

# Format 1 had exact steps alone.
_FORMAT, _EXACT_FORMAT = (f"skcalib.CalibrationMonitor {version}" for version in (2, 1))
# Of numbers of samples, and of the logarithms of their e-values: more than any state has.
_MOST = 1e15


@dataclass
class _Stream:
    """The e-value of all samples, or of those of one group.

    An e-process starts at every step j with the weight 1 / (j (j + 1)); after step j, the weight 1
    / (j + 1) is left for later ones. The total is a weighted mean of e-processes, one of which
    starts just when the probabilities go wrong. `log_alternatives` holds the logarithms of the
    e-values against every map, each with its weight.

    Steps of rounded probabilities are `counts`, for every column. Their e-value is computed anew
    from all of them, and multiplied by that of the exact steps.
    """

    weight: float
    steps: list[dict[str, Any]] = field(default_factory=list)
    log_alternatives: Any = None
    n_exact: int = 0
    log_exact: float = 0.0
    counts: list[list[WrittenCounts]] = field(default_factory=list)

    def add(
        self,
        step: CalibrationAccumulator,
        name: str,
        counts: list[WrittenCounts] | None,
        half_width: float,
    ) -> _Stream:
        """Return the stream after one more step, of `counts` if its probabilities are rounded."""
        after = replace(self) if counts is None else replace(self, counts=[*self.counts, counts])
        if counts is None:
            ratios = step.metric_sums_["e_value"]
            after.n_exact = j = self.n_exact + 1
            start = np.full_like(ratios, -np.log(j * (j + 1)))
            before = self.log_alternatives
            before = start if before is None else np.logaddexp(before, start)
            after.log_alternatives = before + ratios
            log_e = logsumexp(after.log_alternatives + make_log_weights(ratios.shape))
            after.log_exact = float(np.logaddexp(log_e, -np.log(j + 1)))
        log_e = after.log_exact
        if after.counts:
            of_maps = after.alternatives_of_written(half_width)
            weighted = logsumexp(of_maps) - np.log(of_maps.size)
            log_e += float(np.logaddexp(weighted, -np.log(len(after.counts) + 1)))
        n, predicted, observed = step.sums_.sum(axis=1).tolist()
        entry = {"name": name, "samples": n, "predicted": predicted, "observed": observed}
        after.steps = [*self.steps, entry | {"log_e": float(log_e)}]
        return after

    def alternatives_of_written(self, half_width: float) -> NDArray[np.float64]:
        """Return the logarithms of the e-values of rounded steps, (n_columns, n_maps)."""
        j = np.arange(1, len(self.counts) + 1)
        start = -np.log(j * (j + 1))[:, np.newaxis]
        return np.array(
            [
                logsumexp(log_ratios_of_written(column, half_width) + start, axis=0)
                for column in zip(*self.counts)
            ]
        )

    @property
    def log_e(self) -> float:
        return float(self.steps[-1]["log_e"])

    def _describe(self, classes: NDArray | None, half_width: float) -> str:
        """Return the change of the probabilities that fits the labels best."""
        if not self.counts:
            return describe_change(self.log_alternatives, classes)
        of_maps = self.alternatives_of_written(half_width)
        if len(of_maps) == 1:
            return describe_change(of_maps[0], classes)
        k = int(of_maps.max(axis=1).argmax())
        return describe_change(of_maps[k], None if classes is None else classes[[k]])

    def summarize(self, classes: NDArray | None, what: str, half_width: float) -> str:
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
            f"{self._describe(classes, half_width)}"
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
    if rows were divided by their sum afterwards. Labels are then counted by written value, and
    the e-value compares the likelihood of a map with the largest one under probabilities that
    round to these values (universal inference [2]_). Of several classes, each is tested against
    the rest. Dask arrays count as exact.
    ``python -m skcalib monitor`` does this with one file per day.

    References
    ----------
    .. [1] A. Ramdas, P. Gruenwald, V. Vovk, G. Shafer, "Game-theoretic statistics and safe
       anytime-valid inference", Statistical Science 2023.
    .. [2] L. Wasserman, A. Ramdas, S. Balakrishnan, "Universal inference", Proceedings of the
       National Academy of Sciences 2020.

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
        self._half_width = 0.0
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
        if not self._streams:
            return None
        counts = self._streams[""].counts
        return max((columns[0].decimals for columns in counts), default=None)

    @property
    def caveats_(self) -> list[str]:
        """Sentences on errors that the written decimals hide."""
        decimals = self.decimals_
        if decimals is None:
            return []
        columns = [column for step in self._streams[""].counts for column in step]
        total = sum(column.n_samples.sum() for column in columns)
        at_ends = sum(
            column.n_samples[np.isin(column.values, (0, 10**column.decimals))].sum()
            for column in columns
        )
        text = (
            f"y_proba have {decimals} decimals: an error that rounding could make, of up to "
            f"{self._half_width:g}, is not seen"
        )
        if at_ends:
            text += (
                f"; {at_ends / total:.0%} of them are written as 0 or 1, where this may be most "
                "of the probability"
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
        streams, half_width = dict(self._streams), self._half_width
        rounded = _read_rounded(step, y_true, y_proba) if in_memory else None
        groups = None
        if rounded is not None:
            half_width = max(half_width, rounded.written.half_width)
            groups = None if by is None else _name_of_groups(by, len(rounded.is_label))
        for group, part in parts.items():
            rows = slice(None) if groups is None or group == "" else groups == group
            counts = None if rounded is None else rounded.count_rows(rows)
            g = len(streams)  # all samples come first
            stream = streams.get(group, _Stream(_weigh_stream(g, has_groups=by is not None)))
            streams[group] = stream.add(part, title, counts, half_width)
        self._streams, self._empty, self._half_width = streams, empty, half_width
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
                "half_width": self._half_width,
                "classes": json.loads(self._empty.to_json()),
                "streams": {
                    group: _stream_as_plain(stream) for group, stream in self._streams.items()
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
        self._half_width = read_number(state.get("half_width", 0.0), "half_width", 0, 0.5)
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
            is_exact = state["format"] == _EXACT_FORMAT
            self._streams[group] = _read_stream(values, weight, maps, is_exact=is_exact)
        if len(self.steps_) < max((len(s.steps) for s in self._streams.values()), default=0):
            raise ValueError("no group may have more steps than all samples")
        for stream in self._streams.values():
            _find_steps([step["name"] for step in self.steps_], stream.steps)
        if any(stream.counts for stream in self._streams.values()) and not self._half_width:
            raise ValueError("'half_width' must be positive for rounded steps")
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
        summary = self._streams[worst].summarize(self.classes_, what, self._half_width)
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

    def count_rows(self, rows: Any) -> list[WrittenCounts]:
        """Return the counts of some samples, for every column."""
        return [
            count_written(values[rows], is_label[rows], self.written.decimals)
            for values, is_label in zip(self.written.values.T, self.is_label.T)
        ]


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


def _stream_as_plain(stream: _Stream) -> dict[str, Any]:
    """Return a stream as JSON holds it."""
    logs = stream.log_alternatives
    counts = [
        [[int(c.decimals), *(values.tolist() for values in c[1:])] for c in columns]
        for columns in stream.counts
    ]
    return {
        "weight": stream.weight,
        "steps": stream.steps,
        "log_alternatives": None if logs is None else logs.tolist(),
        "n_exact": stream.n_exact,
        "log_exact": stream.log_exact,
        "counts": counts,
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
    logs, steps = get_field(values, "log_alternatives"), get_field(values, "steps")
    if not isinstance(steps, list) or not steps:
        raise ValueError("'steps' must be a list of at least one step")
    for step in steps:
        read_text(get_field(step, "name"), "name")
        n = read_number(get_field(step, "samples"), "samples", 1, _MOST)
        for name in ("predicted", "observed"):
            read_number(get_field(step, name), name, -TOLERANCE * n, (1 + TOLERANCE) * n)
        read_number(get_field(step, "log_e"), "log_e", -_MOST, _MOST)
    if logs is not None:
        logs = read_numbers(logs, "log_alternatives", maps, -_MOST, _MOST)
    if is_exact:
        n_exact, log_exact, counts = len(steps), steps[-1]["log_e"], []
    else:
        n_exact = read_count(get_field(values, "n_exact"), "n_exact")
        log_exact = read_number(get_field(values, "log_exact"), "log_exact", -_MOST, _MOST)
        n_columns = 1 if len(maps) == 1 else maps[0] - 1
        counts = [_read_counts(step, n_columns) for step in _as_list(values, "counts")]
    if n_exact + len(counts) != len(steps) or (logs is None) != (n_exact == 0):
        raise ValueError("'steps' must all have evidence")
    return _Stream(weight, steps, logs, n_exact, float(log_exact), counts)


def _as_list(values: dict[str, Any], name: str) -> list[Any]:
    found = get_field(values, name)
    if not isinstance(found, list):
        raise ValueError(f"{name!r} must be a list")
    return found


def _read_counts(columns: Any, n_columns: int) -> list[WrittenCounts]:
    """Return the counts of one step, for every column."""
    if not isinstance(columns, list) or len(columns) != n_columns:
        raise ValueError(f"'counts' must have {n_columns} columns in every step")
    found = []
    for column in columns:
        if not isinstance(column, list) or len(column) != 4:
            raise ValueError("'counts' must be decimals, values, samples and positive ones")
        decimals = read_count(column[0], "decimals", *LIMITS_OF_DECIMALS)
        at = read_numbers(column[1], "counts", low=0, high=10**decimals)
        n, n_positive = (read_numbers(sums, "counts", at.shape, 0, _MOST) for sums in column[2:])
        if at.ndim != 1 or not at.size or (at % 1 > 0).any() or (np.diff(at) <= 0).any():
            raise ValueError("'counts' must be of integers that increase")
        if (n < 1).any() or (n_positive > n).any():
            raise ValueError("'counts' must be of at least one sample, and no more positive ones")
        found.append(WrittenCounts(decimals, at.astype(np.int64), n, n_positive))
    return found
