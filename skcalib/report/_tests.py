"""Group tests: all samples, every group and every class, with one family-wise error rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ..metrics import calibration_test
from ..metrics._groupwise import correct_by_holm
from ..metrics._intervals import compute_mean_pvalue, compute_mean_range
from ..utils._numeric import bin_index, compute_quantile_edges, compute_uniform_edges
from ._constants import FEW, FOUND, LEVEL, MOST_DRAWS, N_BINS, N_RESAMPLES, OF_RARE, SOUGHT
from ._data import ReportData, compute_mean
from ._document import (
    NONE,
    PER_CENT,
    Table,
    Text,
    count,
    format_label,
    format_means,
    format_number,
    format_points,
    format_probability,
    in_sentence,
    isolate,
)

# The family-wise error rate of the whole page.
ALPHA = 1 - LEVEL


@dataclass
class MeanTest:
    """The test of a mean prediction against the mean outcome, of some samples.

    ``of`` names what: the probability of the second of two classes ("positive"), the confidence in
    the answers ("answers"), or the probability of the group test's class ("class").
    ``observed`` is the mean outcome with an interval ("value", "low", "high"). With a
    ``proba_range``, the test is about the samples whose probabilities are within it.
    ``standard_error`` is that of the mean outcome of a calibrated model, and ``level`` that of the
    test.
    """

    of: str
    predicted: float
    observed: dict[str, float]
    pvalue: float
    standard_error: float
    level: float
    proba_range: Sequence[float] | None = None

    @property
    def ends(self) -> list[float]:
        """Differences between prediction and both ends of the interval."""
        return [abs(self.predicted - self.observed[end]) for end in ("low", "high")]

    @property
    def error(self) -> float:
        """Difference between prediction and outcome."""
        return abs(self.predicted - self.observed["value"])


@dataclass
class GroupTest:
    """The tests of all samples ("overall"), of a group or of a class.

    ``pvalue`` is the smallest of its ``tests``, corrected for all tests of the page, and
    ``significant`` is its comparison with the level. ``max_undetected_error`` is the largest error
    that the samples do not rule out. A significant error is ``negligible`` where it is surely
    below the ``tolerance``. Where no error is significant, and none above the tolerance could be
    undetected, the samples are ``calibrated``.
    """

    kind: str
    name: str
    n_samples: int
    tests: list[MeanTest]
    column: str | None = None
    code: int | None = None
    pvalue: float = np.nan
    significant: bool = False
    max_undetected_error: float = np.nan
    tolerance: float = np.nan
    negligible: bool = False
    calibrated: bool = False

    @property
    def relevant(self) -> bool:
        """Whether an error is significant, and not surely below the tolerance."""
        return self.significant and not self.negligible

    @property
    def undecided(self) -> bool:
        """Whether the samples are too few to decide."""
        return not self.significant and not self.calibrated

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Create the test from its entry in `results_`."""
        return cls(**{**values, "tests": [MeanTest(**test) for test in values["tests"]]})


def read_group_tests(results: Mapping[str, Any]) -> list[GroupTest]:
    """Return the group tests of a page, of its results."""
    return [GroupTest.from_dict(values) for values in results["group_tests"]]


def summarize_tests(
    data: ReportData, trust: dict[str, Any], recommendation: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return all group tests, and their summary.

    The first that holds decides: the model shows no knowledge of the labels ("ignorant"); a
    calibrator of the `recommendation` halves the log-loss ("costly"); an error was found. A model
    whose log-loss a calibrator lowers by more than chance is never called calibrated.
    """
    tested = run_group_tests(data)
    for entry in tested:
        of_error = trust if entry.kind == "overall" else None
        entry.max_undetected_error = _find_max_undetected_error(entry, of_error)
        entry.tolerance = _find_tolerance(entry, data.tolerance)
        within = entry.max_undetected_error <= entry.tolerance
        entry.calibrated = not entry.significant and within
        entry.negligible = entry.significant and _is_negligible(entry)
    gain = _find_gain(recommendation)
    ignorant = recommendation is not None and recommendation["ignorant"]
    kind = "ignorant" if ignorant else _choose_kind(tested, gain)
    power = _compute_power(tested)
    words = _write_summary(tested, data, kind, gain)
    if power is not None:
        words["explanation"] += " " + _describe_power(power)
    # Plain spaces, for a terminal; the page puts a no-break space before each per-cent sign.
    words = {name: text.replace("\xa0", " ") for name, text in words.items()}
    found = {"kind": kind, **words, "level": ALPHA, "gain": gain, "power": power}
    return {"summary": found, "group_tests": [asdict(entry) for entry in tested]}


def run_group_tests(data: ReportData) -> list[GroupTest]:
    """Test all samples ("overall"), every group and every class.

    Each has several tests: their smallest p-value is multiplied by their number. Then Holm's
    correction is applied to all of them, with half of the level for all samples and the other half
    divided between groups and classes.
    """
    n_groups = sum(len(groups.names) for groups in (data.by or {}).values())
    n_parts = n_groups + (len(data.classes) if len(data.classes) > 2 else 0)
    level_fraction = 0.5 / n_parts if n_parts else 0.0
    whole = 1 - n_parts * level_fraction
    overall = _test_members(data, "overall", "overall", np.ones(len(data.codes), bool), whole)
    tested = [overall, *_test_groups(data, level_fraction), *_test_classes(data, level_fraction)]
    pvalues = np.array([len(x.tests) * min(test.pvalue for test in x.tests) for x in tested])
    level_fractions = np.array([whole, *[level_fraction] * n_parts])
    for entry, pvalue in zip(tested, correct_by_holm(np.minimum(pvalues, 1), level_fractions)):
        entry.pvalue, entry.significant = float(pvalue), bool(pvalue <= ALPHA)
    return tested


def _compute_power(tested: list[GroupTest]) -> dict[str, Any] | None:
    """Return the power to find an error, if the samples are too few to decide.

    It is for all samples or, if these are decided, for the group or class with the widest range.
    """
    undecided = [entry for entry in tested if entry.undecided]
    if tested[0].significant or not undecided:
        return None
    entry = undecided[0]
    if entry.kind != "overall":
        entry = max(undecided, key=lambda part: part.max_undetected_error)
    test, error = entry.tests[0], min(SOUGHT, entry.tolerance)
    if not test.standard_error:
        return None
    # Normal approximation of the test of the average.
    quantile = -ndtri(test.level / 2)
    needed = ((quantile + ndtri(FOUND)) * test.standard_error / error) ** 2
    return {
        "error": error,
        "probability": float(ndtr(error / test.standard_error - quantile)),
        "where": _describe_place(entry),
        "n_samples": entry.n_samples,
        "n_samples_for_most": float(f"{needed * entry.n_samples:.2g}"),
    }


def _describe_power(power: dict[str, Any]) -> str:
    """Return the power of the test of an average as a sentence."""
    where = "" if power["where"] == "overall" else f" {power['where']}"
    text = (
        f"An error of {format_points(power['error'])} on average{where} would be found here with "
        f"probability {format_number(power['probability'], 2)}"
    )
    if power["probability"] >= FOUND:
        return f"{text}."
    return f"{text}; with {count(power['n_samples_for_most'])} samples, {format_number(FOUND, 1)}."


def _find_gain(recommendation: dict[str, Any] | None) -> dict[str, float] | None:
    """Return the log-loss before and after the recommended calibrator; None without one."""
    if recommendation is None or recommendation["best"] is None:
        return None
    before, after = recommendation["table"][:2]
    return {"before": before["log_loss"], "after": after["log_loss"]}


def _test_groups(data: ReportData, level_fraction: float) -> list[GroupTest]:
    return [
        _test_members(data, "group", name, groups.codes == g, level_fraction, format_label(column))
        for column, groups in (data.by or {}).items()
        for g, name in enumerate(groups.names)
    ]


def _test_members(
    data: ReportData,
    kind: str,
    name: str,
    members: NDArray[np.bool_],
    level_fraction: float,
    column: str | None = None,
) -> GroupTest:
    """Test predictions of some samples against outcomes.

    With two classes, the first test is of the probability of the second, the next of the answers.
    """
    pairs = _pair_outcomes(data)
    n_samples, sampled = int(members.sum()), members[data.sampled]
    with_ranges = sampled.sum() >= FEW
    n_tests = len(pairs) + with_ranges
    tests = [_test_mean(data, of, *pairs[of], members, level_fraction / n_tests) for of in pairs]
    if kind == "overall" and data.total is not None:
        n_samples = data.n_samples
        tests = [_use_sums(data.sums(test.of), test) for test in tests]
    if with_ranges:
        needed = ALPHA * level_fraction / n_tests
        of, (outcome, proba) = next(iter(_pair_outcomes(data.sample).items()))
        worst = _test_ranges(data.sample, of, outcome, proba, sampled, level_fraction / n_tests)
        known = min(2 * worst.pvalue, *(test.pvalue for test in tests)) <= needed
        pvalue = _test_error(data.sample, sampled, None if known else needed / 2)
        worst.pvalue = min(2 * min(worst.pvalue, pvalue), 1.0)
        tests.append(worst)
    return GroupTest(kind, name, n_samples, tests, column)


def _pair_outcomes(data: ReportData) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return outcomes and probabilities of answers and, first, of the second of two classes."""
    pairs = {"answers": (data.correct, data.confidence)}
    if data.of_one_class:
        pairs = {"positive": (data.of_class(1), data.proba[:, 1]), **pairs}
    return pairs


def _test_mean(
    data: ReportData,
    of: str,
    outcome: NDArray[Any],
    proba: NDArray[Any],
    members: NDArray[np.bool_],
    level_fraction: float,
) -> MeanTest:
    """Test the mean prediction of some samples against their mean outcome."""
    weight = None if data.weight is None else data.weight[members]
    effect = data.effect(outcome[members] - proba[members], members)
    low, high = compute_mean_range(
        outcome[members], proba[members], weight, 1 - ALPHA * level_fraction, effect
    )
    predicted, weights = proba[members].astype(np.float64), data.weights[members]
    variance = effect * (weights**2 @ (predicted * (1 - predicted)))
    return MeanTest(
        of=of,
        predicted=compute_mean(predicted, weights),
        observed={
            "value": compute_mean(outcome[members].astype(np.float64), weights),
            "low": low,
            "high": high,
        },
        pvalue=compute_mean_pvalue(outcome[members], proba[members], weight, effect),
        standard_error=float(np.sqrt(variance) / weights.sum()),
        level=ALPHA * level_fraction,
    )


def _use_sums(
    sums: tuple[NDArray[np.float64], NDArray[np.float64]] | None, test: MeanTest
) -> MeanTest:
    """Return the test computed from sums over bins, if there are any.

    All samples of a bin get their mean probability, which can only increase the variance.
    """
    if sums is None:
        return test
    (size, predicted, outcomes), count = sums
    proba, outcome, n = np.clip(predicted / size, 0, 1), outcomes / size, size.sum()
    weight = size / count  # of every sample of a bin
    low, high = compute_mean_range(outcome, proba, weight, 1 - test.level, count=count)
    return MeanTest(
        of=test.of,
        predicted=float(predicted.sum() / n),
        observed={"value": float(outcomes.sum() / n), "low": low, "high": high},
        pvalue=compute_mean_pvalue(outcome, proba, weight, count=count),
        standard_error=float(np.sqrt(size * weight @ (proba * (1 - proba))) / n),
        level=test.level,
    )


def _test_ranges(
    data: ReportData,
    of: str,
    outcome: NDArray[Any],
    proba: NDArray[Any],
    members: NDArray[np.bool_],
    level_fraction: float,
) -> MeanTest:
    """Return the range of probabilities with the smallest p-value, corrected for all ranges.

    A range is a bin of equal width or weight, or everything above one. This finds errors that the
    calibration error, which weights bins by their samples, does not: for instance that the few
    largest of many small risks are twice too high.
    """
    rows = np.flatnonzero(members)
    predicted, parts = proba[rows].astype(np.float64), []
    weight = None if data.weight is None else data.weight[rows]
    for edges in (
        compute_uniform_edges(N_BINS),
        compute_quantile_edges(predicted, N_BINS, weight),
    ):
        index = bin_index(predicted, edges)
        bins = np.unique(index)
        parts += [index == b for b in bins] + [index > b for b in bins[:-1]]
    pvalues = [_compute_mean_pvalue(data, outcome, proba, rows[part]) for part in parts]
    worst = np.zeros(len(proba), dtype=bool)
    worst[rows[parts[int(np.argmin(pvalues))]]] = True
    test = _test_mean(data, of, outcome, proba, worst, level_fraction / len(parts))
    inside = proba[worst].astype(np.float64)
    test.proba_range = [float(inside.min()), float(inside.max())]
    test.pvalue = min(len(parts) * min(pvalues), 1.0)
    return test


def _compute_mean_pvalue(
    data: ReportData, outcome: NDArray[Any], proba: NDArray[Any], rows: NDArray[np.intp]
) -> float:
    weight = None if data.weight is None else data.weight[rows]
    effect = data.effect(outcome[rows] - proba[rows], rows)
    return compute_mean_pvalue(outcome[rows], proba[rows], weight, effect)


def _test_error(data: ReportData, members: NDArray[np.bool_], needed: float | None) -> float:
    """Return the p-value of a calibration error, which may cancel on average.

    Few resamples cannot give a small p-value. So if the first ones reject, new ones are drawn, as
    many as it takes for a p-value of `needed`.
    """
    chosen = {
        name: value[members] if name != "labels" and value is not None else value
        for name, value in data.metric_kwargs.items()
    }
    draws: dict[str, Any] = {"n_bins": N_BINS, "random_state": data.seed}
    if data.groups is not None:
        draws["groups"] = data.groups[members]
    pvalue = calibration_test(**chosen, n_resamples=N_RESAMPLES, **draws).pvalue
    if needed is None or pvalue > ALPHA:
        return pvalue
    more = min(int(np.ceil(4 / needed)), max(MOST_DRAWS // int(members.sum()), N_RESAMPLES))
    draws["random_state"] = data.seed ^ 1
    return calibration_test(**chosen, n_resamples=more, **draws).pvalue


def _test_classes(data: ReportData, level_fraction: float) -> list[GroupTest]:
    """Test every class, if there are more than two.

    Both the answers that name the class and its column of probabilities are tested, on average and
    by ranges: a column may be right on average, and for the answers, and still be wrong wherever
    the class is the second guess.
    """
    if len(data.classes) == 2:
        return []
    found, sample = [], data.sample
    for k in range(len(data.classes)):
        kinds, parts = _select_class(data, k), _select_class(sample, k)
        with_ranges = [of for of in kinds if of in parts and parts[of][2].sum() >= FEW]
        of_test = level_fraction / (len(kinds) + len(with_ranges))
        tests = [_test_mean(data, of, *kinds[of], of_test) for of in kinds]
        tests += [_test_ranges(sample, of, *parts[of], of_test) for of in with_ranges]
        n_samples = int((data.predicted == k).sum()) or len(data.codes)
        found.append(GroupTest("class", format_label(data.label(k)), n_samples, tests, code=k))
    return found


def _select_class(
    data: ReportData, k: int
) -> dict[str, tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]]:
    """Return outcomes, probabilities and samples: of the answers of a class, and of its column."""
    overall, answered = np.ones(len(data.codes), bool), data.predicted == k
    kinds = {"class": (data.of_class(k), data.proba[:, k], overall)}
    if answered.any():
        return {"answers": (data.correct, data.confidence, answered), **kinds}
    return kinds


def _find_max_undetected_error(entry: GroupTest, trust: dict[str, Any] | None) -> float:
    """Return the largest error that the samples do not rule out."""
    means = [x for x in entry.tests if x.proba_range is None and x.of != "class"]
    # A class that is never predicted: use its column.
    ends = [end for test in means or entry.tests[:1] for end in test.ends]
    if trust is not None:
        errors = next(iter(trust["views"].values()))["errors"]
        ends.append(errors["expected_calibration_error"]["high"])
    return float(max(ends))


def _find_tolerance(entry: GroupTest, tolerance: float) -> float:
    """Return the largest error that does not matter; twice as large for a group or class."""
    scale = 1 if entry.kind == "overall" else 2
    first = entry.tests[0]
    if first.of != "positive":
        return scale * tolerance
    rarer = min(first.predicted, 1 - first.predicted)
    return scale * min(tolerance, OF_RARE * rarer)


def _is_negligible(entry: GroupTest) -> bool:
    """Return whether a significant error is below the tolerance (twice that in a range)."""
    ranges = [test for test in _find_significant(entry) if test.proba_range is not None]
    largest = max((end for test in ranges for end in test.ends), default=0.0)
    return bool(entry.max_undetected_error <= entry.tolerance and largest <= 2 * entry.tolerance)


def _choose_kind(tested: list[GroupTest], gain: dict[str, float] | None) -> str:
    """Return the kind of the summary."""
    overall, *parts = tested
    if gain is not None and gain["after"] < gain["before"] / 2:
        return "costly"
    if overall.relevant:
        worst = _find_worst(overall)
        if worst.proba_range is not None:
            return "uneven"
        too_high = worst.predicted > worst.observed["value"]
        if worst.of == "positive":
            return "overstated" if too_high else "understated"
        return "overconfident" if too_high else "underconfident"
    if any(part.relevant for part in parts):
        return "parts"
    if any(entry.significant for entry in tested):
        return "negligible"
    if gain is not None:
        return "gain"
    return "calibrated" if all(entry.calibrated for entry in tested) else "undecided"


def _find_significant(entry: GroupTest) -> list[MeanTest]:
    """Return the tests that are significant by themselves, always with the clearest one."""
    smallest = min(test.pvalue for test in entry.tests)
    by_itself = max(ALPHA * smallest / entry.pvalue, smallest)
    return [test for test in entry.tests if test.pvalue <= by_itself]


def _find_worst(entry: GroupTest) -> MeanTest:
    """Return the test to report: a significant average, else that of the smallest p-value."""
    found = _find_significant(entry)
    clearest = min(found, key=lambda test: test.pvalue)
    return next((test for test in found if test.proba_range is None), clearest)


def _write_summary(
    tested: list[GroupTest], data: ReportData, kind: str, gain: dict[str, float] | None
) -> dict[str, str]:
    """Return the headline and its explanation."""
    positive = f"class {in_sentence(data.label(1))}"
    overall, *parts = tested
    relevant = sorted((part for part in parts if part.relevant), key=lambda part: part.pvalue)
    undecided = [part for part in parts if part.undecided]
    largest = format_points(overall.max_undetected_error)
    where = "" if len(data.classes) == 2 else " of the predicted class"
    if kind == "ignorant":
        headline = "The model shows no knowledge of these labels: "
        headline += "labels of other samples are as probable."
    elif kind == "costly":
        headline = f"Calibration takes away most of the log-loss: {_describe_change(gain)}"
    elif overall.relevant:
        headline = _describe_error(kind, _find_worst(overall), positive)
    elif relevant:
        some = "the error is small" if overall.significant else "no error shows"
        names = join_names(relevant, len(parts))
        headline = (
            f"Overall {some}, but do not trust the model for {names} ({_format_error(relevant)})."
        )
    elif kind == "negligible":
        most = format_points(max(x.max_undetected_error for x in tested if x.significant))
        headline = "The probabilities are off by more than chance, "
        headline += f"but by no more than {most} on average."
    elif kind == "gain":
        headline = (
            "The averages are right, but there is an error: calibration brings the log-loss "
            + _describe_change(gain)
        )
    elif not overall.calibrated:
        headline = f"Too few samples to decide: an error of {largest}{where} could hide."
    elif undecided:
        who = count_undecided(len(undecided), len(parts), name_kinds(parts))
        headline = f"No error shows, but {who} too few samples to decide."
    else:
        headline = f"No error shows, and none above {largest}{where} could hide."
    sentences = _describe_overall(tested, positive, relevant)
    if not overall.significant:
        sentences += _describe_undetected(tested, undecided, relevant)
    return {"headline": headline, "explanation": " ".join(sentences)}


def _describe_change(gain: dict[str, float] | None) -> str:
    if gain is None:
        return ""
    before, after = format_number(gain["before"]), format_number(gain["after"])
    return f"from {before} to {after}, on samples left out."


def _describe_overall(
    tested: list[GroupTest], positive: str, relevant: list[GroupTest]
) -> list[str]:
    """Return sentences on all samples, and on the group or class with the clearest error."""
    overall, *parts = tested
    if overall.significant:
        text = _describe_test(overall, _find_worst(overall), positive)
        sentences = [f"{text}. {_describe_chance(overall, tested)}"]
        if relevant:
            names = join_names(relevant, len(parts))
            sentences.append(f"Also off by more than chance: {names} ({_format_error(relevant)}).")
        return sentences
    sentences = [f"{_describe_test(overall, overall.tests[0], positive)}: that may be chance."]
    if relevant:
        text = _describe_test(relevant[0], _find_worst(relevant[0]), positive)
        sentences += [f"{text}: that is not.", _describe_chance(relevant[0], tested)]
    return sentences


def _describe_undetected(
    tested: list[GroupTest], undecided: list[GroupTest], relevant: list[GroupTest]
) -> list[str]:
    """Return sentences on the errors that the samples do not rule out."""
    overall = tested[0]
    largest = format_points(overall.max_undetected_error)
    calibrated = overall.calibrated and not relevant and not undecided
    limit = f"no error above {largest}" if calibrated else f"an error of up to {largest}"
    size = f"With {count(overall.n_samples)} samples, {limit} could hide overall"
    if undecided:
        widest = max(undecided, key=lambda part: part.max_undetected_error)
        size += (
            f", and up to {format_points(widest.max_undetected_error)} {_describe_place(widest)}"
        )
        n = widest.n_samples
        size += f" ({count(n)} sample{'s' if n != 1 else ''})"
    sentences = [f"{size}."]
    clearest = min(tested, key=lambda entry: entry.pvalue)
    if ALPHA < clearest.pvalue <= 0.1:
        where = "over all samples" if clearest is overall else _describe_place(clearest)
        sentences.append(
            f"The clearest sign of an error shows {where}. {_describe_chance(clearest, tested)}"
        )
    return sentences


def _format_error(parts: list[GroupTest]) -> str:
    """Return the largest observed error of these parts."""
    largest = max(_find_worst(part).error for part in parts)
    return f"off by {'up to ' if len(parts) > 1 else ''}{format_points(largest)}"


def _describe_error(kind: str, worst: MeanTest, positive: str) -> str:
    """Return the headline on an error of all samples."""
    predicted, observed, _ = format_means(worst.predicted, worst.observed)
    if kind == "uneven":
        of = f" for {positive}" if worst.of == "positive" else ""
        are = "belong to it" if worst.of == "positive" else "are right"
        where = f"where it says {_format_range(worst)}{of}"
        return f"Right on average, but {where}, {observed} {are}."
    if kind in ("overstated", "understated"):
        verb = "overstates" if kind == "overstated" else "understates"
        it_says = f"it says {predicted} on average, and {observed} belong to it"
        return f"The model {verb} {positive}: {it_says}."
    return f"The model is {kind}: it says {predicted} and is right {observed} of the time."


def _format_range(test: MeanTest) -> str:
    """Return the range of probabilities of a test, with enough decimals to differ."""
    ends = test.proba_range or [0.0, 1.0]
    for digits in range(3):
        low, high = (f"{100 * end:.{digits}f}" for end in ends)
        if low != high:
            return f"{low} to {high}{PER_CENT}"
    return f"{100 * ends[0]:.3g}{PER_CENT}"


def _describe_test(entry: GroupTest, test: MeanTest, positive: str) -> str:
    """Return prediction and observation of a test as a sentence without its period."""
    predicted, observed, ends = format_means(test.predicted, test.observed)
    who = f"{_describe_place(entry)} it" if entry.kind == "group" else "it"
    name = isolate(entry.name)
    if test.proba_range is not None:
        text = _describe_range(entry, test, positive)
    elif test.of == "class":
        text = (
            f"it says {predicted} for class {name} on average, and {observed} of the samples "
            "belong to it"
        )
    elif test.of == "positive":
        text = f"{who} says {predicted} for {positive} on average, and "
        text += f"{observed} belong to it ({ends})"
    elif entry.kind == "class":
        text = f"when it answers {name}, it says {predicted} and is right {observed} of the time"
        text += f" ({ends})"
    else:
        text = f"{who} says {predicted} on average and is right {observed} of the time ({ends})"
    return text[0].upper() + text[1:]


def describe_worst(entry: GroupTest, positive: str) -> str:
    """Return the same of an entry's clearest error, to continue a sentence."""
    text = _describe_test(entry, _find_worst(entry), positive)
    return text[0].lower() + text[1:]


def _describe_range(entry: GroupTest, test: MeanTest, positive: str) -> str:
    predicted, observed, ends = format_means(test.predicted, test.observed)
    where = f"where it says {_format_range(test)}"
    observed = f"{predicted} on average, {observed}"
    if test.of in ("class", "positive"):
        of = positive if test.of == "positive" else f"class {entry.name}"
        text = f"{where} for {of}, {observed} belong to it ({ends})"
    else:
        text = f"{where}, {observed} are right ({ends})"
    if entry.kind == "class" and test.of == "answers":
        text = f"for the answer {entry.name}, {text}"
    return f"{_describe_place(entry)}, {text}" if entry.kind == "group" else text


def _describe_place(entry: GroupTest) -> str:
    if entry.kind == "overall":
        return "overall"
    if entry.kind == "group":
        return f"for {isolate(str(entry.column))} = {isolate(entry.name)}"
    return f"for class {isolate(entry.name)}"


def join_names(parts: list[GroupTest], n_parts: int) -> str:
    """Return up to three groups and classes by name; more as a number."""
    if len(parts) > 3:
        return f"{len(parts)} of {n_parts} {name_kinds(parts)}"
    names = [_name_row(part) for part in parts]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def count_undecided(n: int, n_parts: int, kinds: str) -> str:
    """Return "2 of 5 groups have", the beginning of a sentence."""
    return f"{n} of {n_parts} {kinds} {'has' if n == 1 else 'have'}"


def name_kinds(parts: list[GroupTest]) -> str:
    """Return "groups", "classes" or "groups and classes"."""
    kinds = {part.kind for part in parts}
    if len(kinds) > 1:
        return "groups and classes"
    return "groups" if kinds == {"group"} else "classes"


def _describe_chance(entry: GroupTest, tested: list[GroupTest]) -> str:
    """Return a sentence on the corrected p-value."""
    among = f" in one of the {len(tested)} comparisons of this page" if tested[1:] else ""
    return f"By chance, {count_models(entry.pvalue)} show an error as clear as this{among}."


def count_models(pvalue: float) -> str:
    """Return a p-value as "12 of 1 000 calibrated models"."""
    if pvalue > 0.5:
        return "most calibrated models"
    if pvalue < 0.001:
        return "fewer than 1 of 1\u00a0000 calibrated models"
    return f"{round(1000 * pvalue)} of 1\u00a0000 calibrated models"


def _name_row(entry: GroupTest) -> str:
    """Return the name of an entry, for a row of a table."""
    return _describe_place(entry).removeprefix("for ")


def make_chart_rows(results: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the rows of a chart: all samples, then groups or classes (many by p-value)."""
    overall, *others = read_group_tests(results)
    parts = [entry for entry in others if entry.kind == kind]
    if len(parts) > 12:
        parts.sort(key=lambda entry: (not entry.significant, entry.pvalue))
    rows = []
    for entry in [overall, *parts]:
        test = entry.tests[0]
        if test.of != "class":
            name = isolate(entry.name) if kind == "class" else _name_row(entry)
            rows.append(
                {
                    "name": name,
                    "predicted": test.predicted,
                    **test.observed,
                    "n": entry.n_samples,
                    "relevant": entry.relevant,
                    "negligible": entry.negligible,
                }
            )
    return rows


def make_test_table(results: dict[str, Any], kind: str, n_rows: int) -> list[Any]:
    """Return the table of tests of all samples and of the groups or classes."""
    rows, positive = [], f"class {in_sentence(results['overview']['classes'][1])}"
    for entry in read_group_tests(results):
        if entry.kind not in ("overall", kind):
            continue
        test = entry.tests[0]
        means = [NONE] * 3
        if test.of != "class":
            means = list(format_means(test.predicted, test.observed))
        result = "fits" if entry.calibrated else "too few to decide"
        if entry.significant:
            little = ", by little" if entry.negligible else ""
            result = f"off{little}: {describe_worst(entry, positive)}"
        row = [_name_row(entry), count(entry.n_samples), *means]
        row += [
            format_points(entry.max_undetected_error),
            format_probability(entry.pvalue),
            result,
        ]
        rows.append(row)
    header = ["", "samples", "predicted", "observed", "range", "could hide", "p-value", "result"]
    note = (
        "Ranges and p-values allow for all comparisons of this page: of 100 calibrated models, "
        f"{100 * ALPHA:.0f} has a p-value of {ALPHA:.2g} or less anywhere. Could hide: the "
        "largest error within the range. Off, by little: by more than chance, but too little to "
        "matter."
    )
    return [Table(header, rows[:n_rows]), Text(note, note=True)]
