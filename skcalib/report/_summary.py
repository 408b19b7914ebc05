"""The report as a document: the first screen, and the sections below it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtri

from . import _costs, _recommendation, _samples, _sections
from ._constants import FEWEST_OF_PART, FOUND, LEVEL
from ._document import (
    Advice,
    Document,
    Section,
    Tile,
    count,
    format_interval,
    format_number,
    format_percent,
    format_points,
    format_threshold,
    in_sentence,
    isolate,
)
from ._tests import (
    GroupTest,
    count_models,
    count_undecided,
    describe_worst,
    join_names,
    name_kinds,
    read_group_tests,
)

# Tones of the kinds of summaries; all other kinds are bad.
TONES = {"calibrated": "good", "undecided": "open", "negligible": "open", "gain": "open"}


def make_document(results: dict[str, Any]) -> Document:
    """Return the report of these results."""
    sections = [
        _sections.make_trust_section(results),
        _costs.make_validation_section(results),
        _costs.make_costs_section(results),
        _sections.make_selective_section(results),
        _sections.make_classes_section(results),
        _sections.make_groups_section(results),
        _samples.make_section(results),
        _sections.make_wrong_label_section(results),
        _recommendation.make_section(results),
        _sections.make_warnings_section(results),
        _sections.make_method_section(results),
    ]
    summary, overview = results["summary"], results["overview"]
    tested = read_group_tests(results)
    return Document(
        title=overview["title"] or overview["model"] or "Calibration report",
        subtitle=_make_subtitle(results),
        tone=TONES.get(summary["kind"], "bad"),
        headline=summary["headline"],
        explanation=summary["explanation"],
        tiles=[
            _make_error_tile(results),
            _make_parts_tile(tested) if len(tested) > 1 else _make_accuracy_tile(overview),
            _make_declining_tile(results),
        ],
        overview=_sections.make_chart(results) or _sections.make_diagram(results),
        # No advice if the labels or columns may be others than they seem.
        advice=[]
        if summary["kind"] in ("alignment", "predictions")
        else [step for step in _list_advice(results) if step is not None],
        sections=[section for section in sections if isinstance(section, Section)],
    )


def _make_subtitle(results: dict[str, Any]) -> str:
    overview, method = results["overview"], results["method"]
    parts = [overview["model"]] if overview["model"] and overview["title"] else []
    if overview.get("of_answers"):
        parts.append(f"{count(overview['n_samples'])} answers")
    else:
        parts += [f"{count(overview['n_samples'])} samples", f"{overview['n_classes']} classes"]
    parts += [method["created"][:10], f"data {method['data_sha256'][:8]}"]
    return " · ".join([*parts, f"skcalib {method['versions']['skcalib']}"])


def _make_error_tile(results: dict[str, Any]) -> Tile:
    overall = read_group_tests(results)[0]
    view = next(iter(results["calibration"]["views"].values()))
    error = view["errors"]["expected_calibration_error"]
    answer, tone = ("no", "bad") if overall.relevant else ("unclear", "open")
    if overall.calibrated:
        answer, tone = "yes", "good"
    if overall.negligible:
        answer, tone = f"within {format_points(overall.max_undetected_error)}", "good"
    low, high = (100 * error[end] for end in ("low", "high"))
    detail = (
        f"calibration error {format_points(error['value'])}, 99 % interval "
        f"{format_number(low, 1)} to {format_number(high, 1)}; "
        f"{count_models(overall.pvalue)} are as far off by chance"
    )
    return Tile("Are the numbers believable?", answer, detail, tone)


def _make_parts_tile(tested: list[GroupTest]) -> Tile:
    parts = tested[1:]
    kinds = name_kinds(parts)
    questions = {"groups": "For every group?", "classes": "For every class?"}
    question = questions.get(kinds, "For every group and class?")
    relevant = [part for part in parts if part.relevant]
    undecided = [part for part in parts if part.undecided]
    if relevant:
        detail = join_names(relevant, len(parts)) if len(relevant) < 4 else "named below"
        if undecided:
            detail += f"; {len(undecided)} more with too few samples to decide"
        elif len(relevant) < len(parts):
            by_little = any(part.significant for part in parts if not part.relevant)
            detail += "; the rest off by little, or fit" if by_little else "; the rest fit"
        return Tile(question, f"no: {len(relevant)} of {len(parts)} {kinds} off", detail, "bad")
    if undecided:
        who = count_undecided(len(undecided), len(parts), kinds)
        limit = format_points(max(part.tolerance for part in undecided))
        detail = f"{who} too few samples: an error above {limit} could hide"
        return Tile(question, "unclear", detail, "open")
    worst = max(part.max_undetected_error for part in parts)
    return Tile(question, "yes", f"no average is off by more than {format_points(worst)}", "good")


def _make_accuracy_tile(overview: dict[str, Any]) -> Tile:
    accuracy, largest = overview["accuracy"], overview["largest_class"]
    low, high = (100 * accuracy[end] for end in ("low", "high"))
    detail = f"99 % interval {format_number(low, 1)} to {format_number(high, 1)}"
    if not overview.get("of_answers"):
        detail += (
            f"; always answering {in_sentence(largest['label'])} is right "
            f"{format_percent(largest['value'])} of the time"
        )
    return Tile("How often is it right?", format_percent(accuracy["value"]), detail)


def _choose_selective(results: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the results on declining, after calibration if it is advised, and a word for it."""
    after = results["after_calibration"]
    return (results["selective"], "") if after is None else (after["selective"], "calibrated ")


def _make_declining_tile(results: dict[str, Any]) -> Tile:
    selective, calibrated = _choose_selective(results)
    promise = selective["promise"]
    if promise is None:
        detail = "of all samples; declining promises no lower error rate here"
        return Tile("How often is it wrong?", format_percent(selective["error_rate"]), detail)
    first = "Once calibrated, if" if calibrated else "If"
    question = f"{first} it may decline, at most {_format_rate(promise['risk'])} wrong"
    if promise["kept"]:
        detail = (
            f"of the samples: those with a {calibrated}confidence above "
            f"{format_threshold(promise['threshold'])}. "
            f"Kept on new samples of the same kind, with {format_percent(LEVEL, 0)} certainty"
        )
        return Tile(question, f"{format_percent(promise['coverage'], 0)} answered", detail)
    detail = "the samples are too few to show that a threshold keeps this limit on new ones"
    return Tile(question, "not promised", detail)


def _format_rate(risk: float) -> str:
    return format_percent(risk, 0 if risk >= 0.01 else 1)


def _list_advice(results: dict[str, Any]) -> list[Advice | None]:
    return [
        *_advise_on_parts(results),
        _advise_on_size(results),
        _recommendation.advise(results),
        _advise_on_parts_later(results),
        _advise_on_declining(results),
        *_advise_on_small_groups(read_group_tests(results)),
        _advise_on_labels(results["issues"]),
    ]


def _advise_on_parts(results: dict[str, Any]) -> list[Advice]:
    """Return advice on groups and classes, unless a calibrator for all samples comes first."""
    overall, *parts = read_group_tests(results)
    if overall.relevant or results["after_calibration"] is not None:
        return []
    found = []
    for kind in ("group", "class"):
        relevant = [part for part in parts if part.relevant and part.kind == kind]
        if not relevant:
            continue
        name = join_names(relevant, sum(part.kind == kind for part in parts))
        found.append(
            Advice(f"Do not rely on the probabilities of {name}", f": {_describe_fix(relevant)}.")
        )
    return found


def _describe_fix(parts: list[GroupTest]) -> str:
    if parts[0].kind == "class":
        return "look for the cause, and test again"
    return (
        "look for the cause, or calibrate every group by itself "
        "(skcalib.posthoc.GroupwiseCalibration), and test again"
    )


def _advise_on_parts_later(results: dict[str, Any]) -> Advice | None:
    """Return advice on groups and classes after the calibrator for all samples, if any."""
    overall, *parts = read_group_tests(results)
    after = results["after_calibration"]
    if after is not None:
        parts = read_group_tests(after)[1:]
        found = sorted((part for part in parts if part.significant), key=lambda part: part.pvalue)
        if not found:
            return None
        positive = f"class {in_sentence(results['overview']['classes'][-1])}"
        fix = _describe_fix(found)
        return Advice(
            f"Then look at {join_names(found, len(parts))} again",
            f": after calibration, on samples left out, {describe_worst(found[0], positive)}. "
            f"{fix[0].upper()}{fix[1:]}.",
        )
    found = [part for part in parts if part.relevant]
    if not overall.relevant or not found:
        return None
    verb = "is" if len(found) == 1 else "are"
    return Advice(
        f"Then test the {name_kinds(found)} again",
        f": {join_names(found, len(parts))} {verb} off now, and may need a calibrator of their "
        "own.",
    )


def _advise_on_small_groups(tested: list[GroupTest]) -> list[Advice]:
    """Return advice on columns of groups with too few samples to test."""
    overall, found = tested[0], []
    for column in dict.fromkeys(part.column for part in tested if part.kind == "group"):
        sizes = [part.n_samples for part in tested if part.column == column]
        if max(sizes) < FEWEST_OF_PART <= overall.n_samples / 2:
            found.append(
                Advice(
                    f"Join the values of {isolate(str(column))}",
                    f": none of its {count(len(sizes))} groups has {FEWEST_OF_PART} samples. Bin "
                    "numbers, for example by pandas.qcut; where the values say which samples "
                    "belong together, pass them as groups instead of by.",
                )
            )
    return found


def _advise_on_size(results: dict[str, Any]) -> Advice | None:
    overall, *parts = read_group_tests(results)
    undecided = [part for part in parts if part.undecided]
    if overall.significant or (overall.calibrated and not undecided):
        return None  # more samples help only if something is undecided
    what, least = "it", overall
    if overall.calibrated:
        least = max(undecided, key=lambda part: part.max_undetected_error)
        what = f"its {name_kinds(undecided)}"
        if len(undecided) == 1:
            what = join_names([least], 1)
    needed = _count_needed(least)
    return Advice(
        f"Collect more samples before you rely on {what}",
        f": if the probabilities are right, about {count(float(f'{needed:.2g}'))} samples instead "
        f"of {count(least.n_samples)} show it, with probability {format_number(FOUND, 1)}.",
    )


def _count_needed(entry: GroupTest) -> float:
    """Return the number of samples that decide about a calibrated model with probability `FOUND`.

    An undetected error is the observed one, |error|, and half of a range: z standard errors. It
    varies here as it will among more samples, and has to be below the tolerance in all but 1 -
    `FOUND` of the draws. A range is half as wide with four times as many samples.
    """
    test = entry.tests[0]
    z, reached = -ndtri(test.level / 2), ndtri((1 + FOUND) / 2)
    # The mean of |N(0, 1)|; two independent draws differ by sqrt(2) times as much as one varies.
    mean = np.sqrt(2 / np.pi)
    excess = 1 + np.sqrt(2) * (reached - mean) / (z + mean)
    largest = max((z + reached) * test.standard_error, excess * entry.max_undetected_error)
    return entry.n_samples * float(largest / entry.tolerance) ** 2


def _advise_on_declining(results: dict[str, Any]) -> Advice | None:
    selective, calibrated = _choose_selective(results)
    promise = selective["promise"]
    if promise is None or not promise["kept"]:
        return None
    then = "Then decline" if calibrated else "Decline"
    found = " One half calibrated, the other gave the threshold." if calibrated else ""
    return Advice(
        f"{then} below a {calibrated}confidence of {format_threshold(promise['threshold'])}",
        f" to be wrong in at most {_format_rate(promise['risk'])} of the answers, with "
        f"{format_percent(LEVEL, 0)} certainty, instead of "
        f"{format_percent(selective['error_rate'])}; "
        f"{format_percent(promise['coverage'], 0)} of the samples are answered then.{found}",
    )


def _advise_on_labels(issues: dict[str, Any]) -> Advice:
    if issues["table"] is None:
        return Advice(
            "Labels: not assessed", f". {issues['reason'][0].upper()}{issues['reason'][1:]}."
        )
    if not issues["table"]:
        return Advice("Labels: no suspects", f", by {issues['source']}.")
    low, high = issues["noise_rate_interval"]
    n = issues["n_issues"]
    return Advice(
        f"Check {count(n)} suspected label{'s' if n > 1 else ''}",
        f": by {issues['source']}, {format_percent(issues['noise_rate'])} of the labels are wrong "
        f"({format_interval({'low': 100 * low, 'high': 100 * high}, 1)}). Shown below.",
    )
