"""The verdict: all samples, every group and every class, with one family-wise error rate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from ..metrics import calibration_test
from ..metrics._groupwise import holm
from ..metrics._intervals import mean_range, mean_test
from ..utils._numeric import bin_index, quantile_edges, uniform_edges
from ._constants import FEW, FOUND, LEVEL, MOST_DRAWS, N_BINS, N_RESAMPLES, OF_RARE, SOUGHT
from ._data import ReportData, mean
from ._document import (
    NONE,
    PER_CENT,
    Table,
    Text,
    count,
    in_sentence,
    isolated,
    label,
    number,
    points,
    probability,
    said_and_observed,
)

# The family-wise error rate of the whole page.
ALPHA = 1 - LEVEL


def results(
    data: ReportData, trust: dict[str, Any], repair: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the verdict and all tests.

    The first that holds decides: the model shows no knowledge of the labels ("ignorant"); a
    calibrator of `repair` halves the log-loss ("costly"); an error was found. A model whose
    log-loss a calibrator lowers by more than chance is never called calibrated.
    """
    tested = judge(data)
    for entry in tested:
        entry["hidden"] = _hidden(entry, trust if entry["kind"] == "everybody" else None)
        entry["tolerance"] = _tolerance(entry, data.tolerance)
        entry["clear"] = not entry["off"] and entry["hidden"] <= entry["tolerance"]
        entry["small"] = entry["off"] and _is_small(entry)
    gain = _gain(repair)
    kind = "ignorant" if repair is not None and repair["ignorant"] else _kind(tested, gain)
    power = _power(tested)
    words = _words(tested, data, kind, gain)
    if power is not None:
        words["explanation"] += " " + _could_find(power)
    # Plain spaces, for a terminal; the page puts a no-break space before each per-cent sign.
    words = {name: text.replace("\xa0", " ") for name, text in words.items()}
    found = {"tested": tested, "level": ALPHA, "kind": kind, "gain": gain, "power": power}
    return {**found, **words}


def judge(data: ReportData) -> list[dict[str, Any]]:
    """Test all samples ("everybody"), every group and every class.

    Each is tested in several ways ("views"): the smallest p-value is multiplied by their number.
    Then Holm's correction is applied to all of them, with half of the level for all samples and
    the other half shared by groups and classes.
    """
    n_groups = sum(len(groups.names) for groups in (data.by or {}).values())
    n_parts = n_groups + (len(data.classes) if len(data.classes) > 2 else 0)
    share = 0.5 / n_parts if n_parts else 0.0
    whole = 1 - n_parts * share
    everybody = _tested(data, "everybody", "everybody", np.ones(len(data.codes), bool), whole)
    tested = [everybody, *_groups(data, share), *_classes(data, share)]
    pvalues = np.array([len(t["views"]) * min(v["pvalue"] for v in t["views"]) for t in tested])
    shares = np.array([whole, *[share] * n_parts])
    for entry, pvalue in zip(tested, holm(np.minimum(pvalues, 1), shares)):
        entry["pvalue"], entry["off"] = float(pvalue), bool(pvalue <= ALPHA)
    return tested


def _power(tested: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the power to find an error, if the samples are too few for a verdict.

    It is for all samples or, if these are clear, for the group or class with the widest range.
    """
    unclear = [entry for entry in tested if not entry["clear"] and not entry["off"]]
    if tested[0]["off"] or not unclear:
        return None
    entry = unclear[0]
    if entry["kind"] != "everybody":
        entry = max(unclear, key=lambda part: part["hidden"])
    view, error = entry["views"][0], min(SOUGHT, entry["tolerance"])
    if not view["spread"]:
        return None
    # Normal approximation of the test of the average.
    quantile = -ndtri(view["level"] / 2)
    needed = ((quantile + ndtri(FOUND)) * view["spread"] / error) ** 2
    return {
        "error": error,
        "probability": float(ndtr(error / view["spread"] - quantile)),
        "where": _where(entry),
        "n_samples": entry["n_samples"],
        "n_samples_for_most": float(f"{needed * entry['n_samples']:.2g}"),
    }


def _could_find(power: dict[str, Any]) -> str:
    """Return the power of the test of an average as a sentence."""
    where = "" if power["where"] == "overall" else f" {power['where']}"
    text = (
        f"An error of {points(power['error'])} on average{where} would be found here with "
        f"probability {number(power['probability'], 2)}"
    )
    if power["probability"] >= FOUND:
        return f"{text}."
    return f"{text}; with {count(power['n_samples_for_most'])} samples, {number(FOUND, 1)}."


def _gain(repair: dict[str, Any] | None) -> dict[str, float] | None:
    """Return the log-loss before and after the recommended calibrator; None without one."""
    if repair is None or repair["best"] is None:
        return None
    before, after = repair["table"][:2]
    return {"before": before["log_loss"], "after": after["log_loss"]}


def _groups(data: ReportData, share: float) -> list[dict[str, Any]]:
    return [
        {**_tested(data, "group", name, groups.codes == g, share), "column": label(column)}
        for column, groups in (data.by or {}).items()
        for g, name in enumerate(groups.names)
    ]


def _tested(
    data: ReportData, kind: str, name: str, members: NDArray[np.bool_], share: float
) -> dict[str, Any]:
    """Return predictions against outcomes of some samples, with tests.

    With two classes, the first view is the probability of the second, the next one the answers.
    """
    pairs = _pairs(data)
    n_samples, sampled = int(members.sum()), members[data.sampled]
    shaped = sampled.sum() >= FEW
    n_tests = len(pairs) + shaped
    views = [_view(data, what, *pairs[what], members, share / n_tests) for what in pairs]
    if kind == "everybody" and data.total is not None:
        n_samples = data.n_samples
        views = [_of_sums(data.sums(view["view"]), view) for view in views]
    if shaped:
        needed = ALPHA * share / n_tests
        what = next(iter(pairs))
        shape = _shape(data.sample, what, *_pairs(data.sample)[what], sampled, share / n_tests)
        known = min(2 * shape["pvalue"], *(view["pvalue"] for view in views)) <= needed
        pvalue = _shape_pvalue(data.sample, sampled, None if known else needed / 2)
        views.append({**shape, "pvalue": min(2 * min(shape["pvalue"], pvalue), 1.0)})
    return {"kind": kind, "name": name, "n_samples": n_samples, "views": views}


def _pairs(data: ReportData) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Return outcomes and probabilities of answers and, first, of the second of two classes."""
    pairs = {"answers": (data.correct, data.confidence)}
    if len(data.classes) == 2:
        pairs = {"positive": (data.of_class(1), data.proba[:, 1]), **pairs}
    return pairs


def _view(
    data: ReportData,
    what: str,
    outcome: NDArray[Any],
    proba: NDArray[Any],
    members: NDArray[np.bool_],
    share: float,
) -> dict[str, Any]:
    """Return the test of an average, with mean prediction ("says") and mean outcome ("is")."""
    weight = None if data.weight is None else data.weight[members]
    effect = data.effect(outcome[members] - proba[members], members)
    low, high = mean_range(outcome[members], proba[members], weight, 1 - ALPHA * share, effect)
    said, mass = proba[members].astype(np.float64), data.mass[members]
    return {
        "view": what,
        "says": mean(said, mass),
        "is": {
            "value": mean(outcome[members].astype(np.float64), mass),
            "low": low,
            "high": high,
        },
        "pvalue": mean_test(outcome[members], proba[members], weight, effect),
        # Standard deviation of the mean outcome of a calibrated model; level of the test.
        "spread": float(np.sqrt(effect * (mass**2 @ (said * (1 - said)))) / mass.sum()),
        "level": ALPHA * share,
    }


def _of_sums(sums: NDArray[np.float64] | None, view: dict[str, Any]) -> dict[str, Any]:
    """Return the view computed from sums over bins, if there are any.

    All samples of a bin get their mean probability, which can only increase the variance.
    """
    if sums is None:
        return view
    size, said, outcomes = sums
    proba, outcome, n = np.clip(said / size, 0, 1), outcomes / size, size.sum()
    low, high = mean_range(outcome, proba, None, 1 - view["level"], count=size)
    return {
        **view,
        "says": float(said.sum() / n),
        "is": {"value": float(outcomes.sum() / n), "low": low, "high": high},
        "pvalue": mean_test(outcome, proba, None, count=size),
        "spread": float(np.sqrt(size @ (proba * (1 - proba))) / n),
    }


def _shape(
    data: ReportData,
    of: str,
    outcome: NDArray[Any],
    proba: NDArray[Any],
    members: NDArray[np.bool_],
    share: float,
) -> dict[str, Any]:
    """Return the range of probabilities with the smallest p-value, corrected for all ranges.

    A range is a bin of equal width or weight, or everything above one. This finds errors that the
    calibration error, which weights bins by their samples, does not: for instance that the few
    largest of many small risks are twice too high.
    """
    rows = np.flatnonzero(members)
    said, parts = proba[rows].astype(np.float64), []
    weight = None if data.weight is None else data.weight[rows]
    for edges in (uniform_edges(N_BINS), quantile_edges(said, N_BINS, weight)):
        index = bin_index(said, edges)
        bins = np.unique(index)
        parts += [index == b for b in bins] + [index > b for b in bins[:-1]]
    pvalues = [_mean_pvalue(data, outcome, proba, rows[part]) for part in parts]
    worst = np.zeros(len(proba), dtype=bool)
    worst[rows[parts[int(np.argmin(pvalues))]]] = True
    view = _view(data, "shape", outcome, proba, worst, share / len(parts))
    inside = proba[worst].astype(np.float64)
    ends = {"from": float(inside.min()), "to": float(inside.max())}
    return {**view, "of": of, **ends, "pvalue": min(len(parts) * min(pvalues), 1.0)}


def _mean_pvalue(
    data: ReportData, outcome: NDArray[Any], proba: NDArray[Any], rows: NDArray[np.intp]
) -> float:
    weight = None if data.weight is None else data.weight[rows]
    effect = data.effect(outcome[rows] - proba[rows], rows)
    return mean_test(outcome[rows], proba[rows], weight, effect)


def _shape_pvalue(data: ReportData, members: NDArray[np.bool_], needed: float | None) -> float:
    """Return the p-value of a calibration error, which may cancel on average.

    Few resamples cannot give a small p-value. So if the first ones reject, new ones are drawn, as
    many as it takes for a p-value of `needed`.
    """
    chosen = {
        name: value[members] if name != "labels" and value is not None else value
        for name, value in data.judged.items()
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


def _classes(data: ReportData, share: float) -> list[dict[str, Any]]:
    """Test every class, if there are more than two.

    Both the answers that name the class and its column of probabilities are tested, on average and
    by ranges: a column may be right on average, and for the answers, and still be wrong wherever
    the class is the second guess.
    """
    if len(data.classes) == 2:
        return []
    found, sample = [], data.sample
    for k in range(len(data.classes)):
        kinds, parts = _of_class(data, k), _of_class(sample, k)
        shaped = [name for name in kinds if name in parts and parts[name][2].sum() >= FEW]
        of_test = share / (len(kinds) + len(shaped))
        views = [_view(data, name, *kinds[name], of_test) for name in kinds]
        views += [_shape(sample, name, *parts[name], of_test) for name in shaped]
        answered = data.predicted == k
        found.append(
            {
                "kind": "class",
                "name": label(data.label(k)),
                "code": k,
                "n_samples": int(answered.sum()) or len(data.codes),
                "views": views,
            }
        )
    return found


def _of_class(
    data: ReportData, k: int
) -> dict[str, tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]]:
    """Return outcomes, probabilities and samples: of the answers of a class, and of its column."""
    everybody, answered = np.ones(len(data.codes), bool), data.predicted == k
    kinds = {"class": (data.of_class(k), data.proba[:, k], everybody)}
    if answered.any():
        return {"answers": (data.correct, data.confidence, answered), **kinds}
    return kinds


def _hidden(entry: dict[str, Any], trust: dict[str, Any] | None) -> float:
    """Return the largest error that the samples do not rule out."""
    views = [view for view in entry["views"] if view["view"] not in ("shape", "class")]
    if not views:  # a class that is never predicted: use its column
        views = entry["views"][:1]
    ends = [abs(view["says"] - view["is"][end]) for view in views for end in ("low", "high")]
    if trust is not None:
        judged = next(iter(trust["views"].values()))
        ends.append(judged["errors"]["expected_calibration_error"]["high"])
    return float(max(ends))


def _tolerance(entry: dict[str, Any], tolerance: float) -> float:
    """Return the largest error that does not matter; twice as large for a group or class."""
    scale = 1 if entry["kind"] == "everybody" else 2
    first = entry["views"][0]
    if first["view"] != "positive":
        return scale * tolerance
    rarer = min(first["says"], 1 - first["says"])
    return scale * min(tolerance, OF_RARE * rarer)


def _is_small(entry: dict[str, Any]) -> bool:
    """Return whether a significant error is below the tolerance (twice that in a range)."""
    parts = [view for view in _found_in(entry) if view["view"] == "shape"]
    ends = [abs(view["says"] - view["is"][end]) for view in parts for end in ("low", "high")]
    return bool(
        entry["hidden"] <= entry["tolerance"] and max(ends, default=0.0) <= 2 * entry["tolerance"]
    )


def _kind(tested: list[dict[str, Any]], gain: dict[str, float] | None) -> str:
    everybody, *parts = tested
    if gain is not None and gain["after"] < gain["before"] / 2:
        return "costly"
    if matters(everybody):
        worst = _worst_view(everybody)
        if worst["view"] == "shape":
            return "uneven"
        too_high = worst["says"] > worst["is"]["value"]
        if worst["view"] == "positive":
            return "overstated" if too_high else "understated"
        return "overconfident" if too_high else "underconfident"
    if any(matters(part) for part in parts):
        return "parts"
    if any(entry["off"] for entry in tested):
        return "small"
    if gain is not None:
        return "gain"
    return "calibrated" if all(entry["clear"] for entry in tested) else "undecided"


def matters(entry: dict[str, Any]) -> bool:
    """Return whether an error is significant, and not surely below the tolerance."""
    return bool(entry["off"] and not entry["small"])


def _found_in(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the views that are significant by themselves, always with the clearest one."""
    smallest = min(view["pvalue"] for view in entry["views"])
    by_itself = max(ALPHA * smallest / entry["pvalue"], smallest)
    return [view for view in entry["views"] if view["pvalue"] <= by_itself]


def _worst_view(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the view to report: a significant average, else that of the smallest p-value."""
    found = _found_in(entry)
    clearest = min(found, key=lambda view: view["pvalue"])
    return next((view for view in found if view["view"] != "shape"), clearest)


def _words(
    tested: list[dict[str, Any]], data: ReportData, kind: str, gain: dict[str, float] | None
) -> dict[str, str]:
    """Return the headline and its explanation."""
    positive = f"class {in_sentence(data.label(1))}"
    everybody, *parts = tested
    off = sorted((part for part in parts if matters(part)), key=lambda part: part["pvalue"])
    unclear = [part for part in parts if not part["clear"] and not part["off"]]
    hidden = points(everybody["hidden"])
    where = "" if len(data.classes) == 2 else " of the predicted class"
    if kind == "ignorant":
        headline = "It shows no knowledge of these labels: those of other samples are as probable."
    elif kind == "costly":
        headline = "Its probabilities hide most of what it knows: " + _lowered(gain)
    elif matters(everybody):
        headline = _accusation(kind, _worst_view(everybody), positive)
    elif off:
        some = "no error shows" if not everybody["off"] else "the error is small"
        headline = f"Overall {some}, but do not trust it for {names_of(off, len(parts))}"
        headline += f" ({_size(off)})."
    elif kind == "small":
        headline = f"Off by more than chance, but by no more than {_largest(tested)} on average."
    elif kind == "gain":
        headline = f"No error shows on average, but there is one: {_lowered(gain)}"
    elif not everybody["clear"]:
        headline = f"Too few samples to tell: an error of {hidden}{where} could hide."
    elif unclear:
        who = few(len(unclear), len(parts), parts_called(parts))
        headline = f"No error shows, but {who} too few samples to tell."
    else:
        headline = f"No error shows, and none above {hidden}{where} could hide."
    said = _about_everybody(tested, positive, off)
    if not everybody["off"]:
        said += _could_hide(tested, unclear, off)
    return {"headline": headline, "explanation": " ".join(said)}


def _lowered(gain: dict[str, float] | None) -> str:
    if gain is None:
        return ""
    return (
        f"calibrating brings the log-loss from {number(gain['before'])} to "
        f"{number(gain['after'])}, on samples left out."
    )


def _about_everybody(
    tested: list[dict[str, Any]], positive: str, off: list[dict[str, Any]]
) -> list[str]:
    """Return sentences on all samples, and on the group or class with the clearest error."""
    everybody, *parts = tested
    if everybody["off"]:
        worst = _worst_view(everybody)
        sentences = [f"{_phrase(everybody, worst, positive)}. {_by_chance(everybody, tested)}"]
        if off:
            names = names_of(off, len(parts))
            sentences.append(f"Also off by more than chance: {names} ({_size(off)}).")
        return sentences
    sentences = [f"{_phrase(everybody, everybody['views'][0], positive)}: that may be chance."]
    if off:
        sentences.append(f"{_phrase(off[0], _worst_view(off[0]), positive)}: that is not.")
        sentences.append(_by_chance(off[0], tested))
    return sentences


def _could_hide(
    tested: list[dict[str, Any]], unclear: list[dict[str, Any]], off: list[dict[str, Any]]
) -> list[str]:
    """Return sentences on the errors that the samples do not rule out."""
    everybody = tested[0]
    hidden = points(everybody["hidden"])
    calibrated = everybody["clear"] and not off and not unclear
    limit = f"no error above {hidden}" if calibrated else f"an error of up to {hidden}"
    size = f"With {count(everybody['n_samples'])} samples, {limit} could hide overall"
    if unclear:
        largest = max(unclear, key=lambda part: part["hidden"])
        size += f", and up to {points(largest['hidden'])} {_where(largest)}"
        n = largest["n_samples"]
        size += f" ({count(n)} sample{'s' if n != 1 else ''})"
    sentences = [f"{size}."]
    doubt = min(tested, key=lambda entry: entry["pvalue"])
    if ALPHA < doubt["pvalue"] <= 0.1:
        sentences.append(
            f"The strongest sign of one is {_where(doubt)}. {_by_chance(doubt, tested)}"
        )
    return sentences


def _size(parts: list[dict[str, Any]]) -> str:
    """Return the largest observed error of these parts."""
    sizes = [abs(view["says"] - view["is"]["value"]) for view in map(_worst_view, parts)]
    return f"off by {'up to ' if len(parts) > 1 else ''}{points(max(sizes))}"


def _largest(tested: list[dict[str, Any]]) -> str:
    return points(max(entry["hidden"] for entry in tested if entry["off"]))


def _accusation(kind: str, worst: dict[str, Any], positive: str) -> str:
    says, observed, _ = said_and_observed(worst)
    if kind == "uneven":
        of = f" for {positive}" if worst["of"] == "positive" else ""
        are = "are" if worst["of"] == "positive" else "are right"
        return f"Right on average, but where it says {_between(worst)}{of}, {observed} {are}."
    if kind in ("overstated", "understated"):
        verb = "overstates" if kind == "overstated" else "understates"
        return f"It {verb} {positive}: it says {says}, and {observed} are."
    return f"It is {kind}: it says {says} and is right {observed} of the time."


def _between(view: dict[str, Any]) -> str:
    """Return the range of probabilities of a view."""
    for digits in range(3):
        low, high = (f"{100 * view[end]:.{digits}f}" for end in ("from", "to"))
        if low != high:
            return f"{low} to {high}{PER_CENT}"
    return f"{100 * view['from']:.3g}{PER_CENT}"


def _phrase(entry: dict[str, Any], view: dict[str, Any], positive: str) -> str:
    """Return prediction and observation of a view as a sentence without its period."""
    says, observed, ends = said_and_observed(view)
    who = f"{_where(entry)} it" if entry["kind"] == "group" else "it"
    what, name = view["view"], isolated(entry["name"])
    if what == "shape":
        text = _phrase_of_part(entry, view, positive)
    elif what == "class":
        text = f"it says {says} for class {name} on average, and {observed} of the samples are"
    elif what == "positive":
        text = f"{who} says {says} for {positive} on average, and {observed} are ({ends})"
    elif entry["kind"] == "class":
        text = f"when it answers {name}, it says {says} and is right {observed} of the time"
        text += f" ({ends})"
    else:
        text = f"{who} says {says} on average and is right {observed} of the time ({ends})"
    return text[0].upper() + text[1:]


def phrase(entry: dict[str, Any], positive: str) -> str:
    """Return the same of an entry's clearest error, to continue a sentence."""
    text = _phrase(entry, _worst_view(entry), positive)
    return text[0].lower() + text[1:]


def _phrase_of_part(entry: dict[str, Any], view: dict[str, Any], positive: str) -> str:
    says, observed, ends = said_and_observed(view)
    said = f"it says {_between(view)}"
    observed = f"{says} on average, {observed}"
    if view["of"] in ("class", "positive"):
        of = positive if view["of"] == "positive" else f"class {entry['name']}"
        text = f"where {said} for {of}, {observed} are ({ends})"
    else:
        text = f"where {said}, {observed} are right ({ends})"
    if entry["kind"] == "class" and view["of"] == "answers":
        text = f"for the answer {entry['name']}, {text}"
    return f"{_where(entry)}, {text}" if entry["kind"] == "group" else text


def _where(entry: dict[str, Any]) -> str:
    if entry["kind"] == "everybody":
        return "overall"
    if entry["kind"] == "group":
        return f"for {isolated(entry['column'])} = {isolated(entry['name'])}"
    return f"for class {isolated(entry['name'])}"


def names_of(parts: list[dict[str, Any]], n_parts: int) -> str:
    """Return up to three groups and classes by name; more as a number."""
    if len(parts) > 3:
        return f"{len(parts)} of {n_parts} {parts_called(parts)}"
    names = [_named(part) for part in parts]
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def few(n: int, n_parts: int, called: str) -> str:
    """Return "2 of 5 groups have", the beginning of a sentence."""
    return f"{n} of {n_parts} {called} {'has' if n == 1 else 'have'}"


def parts_called(parts: list[dict[str, Any]]) -> str:
    """Return "groups", "classes" or "groups and classes"."""
    kinds = {part["kind"] for part in parts}
    if len(kinds) > 1:
        return "groups and classes"
    return "groups" if kinds == {"group"} else "classes"


def _by_chance(entry: dict[str, Any], tested: list[dict[str, Any]]) -> str:
    """Return a sentence on the corrected p-value."""
    among = f"Among the {len(tested)} comparisons of this page, chance" if tested[1:] else "Chance"
    return f"{among} makes an error as clear as this in {of_models(entry['pvalue'])}."


def of_models(pvalue: float) -> str:
    """Return a p-value as "12 of 1 000 calibrated models"."""
    if pvalue > 0.5:
        return "most calibrated models"
    if pvalue < 0.001:
        return "fewer than 1 of 1\u00a0000 calibrated models"
    return f"{round(1000 * pvalue)} of 1\u00a0000 calibrated models"


def _named(entry: dict[str, Any]) -> str:
    """Return the name of an entry, for a row of a table."""
    return entry["name"] if entry["kind"] == "everybody" else _where(entry).removeprefix("for ")


def chart_rows(results: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Return the rows of a chart: all samples, then groups or classes (many by p-value)."""
    found = results["verdict"]["tested"]
    parts = [entry for entry in found if entry["kind"] == kind]
    if len(parts) > 12:
        parts.sort(key=lambda entry: (not entry["off"], entry["pvalue"]))
    rows = []
    for entry in [found[0], *parts]:
        view = entry["views"][0]
        if view["view"] != "class":
            name = isolated(entry["name"]) if kind == "class" else _named(entry)
            size = {"n": entry["n_samples"], "off": matters(entry), "small": entry["small"]}
            rows.append({"name": name, "says": view["says"], **view["is"], **size})
    return rows


def tested_table(results: dict[str, Any], kind: str, n_rows: int) -> list[Any]:
    """Return the table of tests of all samples and of the groups or classes."""
    rows, positive = [], f"class {in_sentence(results['overview']['classes'][1])}"
    for entry in results["verdict"]["tested"]:
        if entry["kind"] not in ("everybody", kind):
            continue
        view = entry["views"][0]
        said = [NONE] * 3 if view["view"] == "class" else list(said_and_observed(view))
        verdict = "fits" if entry["clear"] else "too few to tell"
        if entry["off"]:
            small = ", by little" if entry["small"] else ""
            verdict = f"off{small}: {phrase(entry, positive)}"
        row = [_named(entry), count(entry["n_samples"]), *said, points(entry["hidden"])]
        rows.append([*row, probability(entry["pvalue"]), verdict])
    header = ["", "samples", "says", "observed", "range", "could hide", "p-value", "verdict"]
    note = (
        "Ranges and p-values allow for all comparisons of this page: of 100 calibrated models, "
        f"{100 * ALPHA:.0f} has a p-value of {ALPHA:.2g} or less anywhere. Could hide: the "
        "largest error within the range. Off, by little: more than chance does, and too little to "
        "matter."
    )
    return [Table(header, rows[:n_rows]), Text(note, note=True)]
