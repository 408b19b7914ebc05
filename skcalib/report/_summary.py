"""The report as a document: the first screen, and the sections below it."""

from __future__ import annotations

from typing import Any

from . import _recommendation, _samples, _sections
from ._constants import FEWEST_TO_JUDGE, LEVEL
from ._document import (
    Advice,
    Document,
    Section,
    Tile,
    count,
    in_sentence,
    interval,
    isolated,
    percent,
    points,
    threshold,
)
from ._tests import few, matters, names_of, of_models, parts_called, phrase

# Tones of the kinds of verdicts; all other kinds are bad.
TONES = {"calibrated": "good", "undecided": "open", "small": "open", "gain": "open"}


def document(results: dict[str, Any]) -> Document:
    """Return the report of these results."""
    sections = [
        _sections.trust_section(results),
        _sections.selective_section(results),
        _sections.classes_section(results),
        _sections.groups_section(results),
        _samples.section(results),
        _sections.wrong_label_section(results),
        _recommendation.section(results),
        _sections.warnings_section(results),
        _sections.method_section(results),
    ]
    verdict, overview = results["verdict"], results["overview"]
    tested = verdict["tested"]
    return Document(
        title=overview["title"] or overview["model"] or "Calibration report",
        subtitle=_subtitle(results),
        tone=TONES.get(verdict["kind"], "bad"),
        headline=verdict["headline"],
        explanation=verdict["explanation"],
        tiles=[
            _believable(results),
            _for_everybody(tested) if len(tested) > 1 else _accurate(overview),
            _declining(results),
        ],
        overview=_sections.chart(results) or _sections.diagram(results),
        # No advice if the labels or columns may be others than they seem.
        advice=[]
        if verdict["kind"] in ("alignment", "predictions")
        else [step for step in _advice(results) if step is not None],
        sections=[section for section in sections if isinstance(section, Section)],
    )


def _subtitle(results: dict[str, Any]) -> str:
    overview, method = results["overview"], results["method"]
    parts = [overview["model"]] if overview["model"] and overview["title"] else []
    parts += [f"{count(overview['n_samples'])} samples", f"{overview['n_classes']} classes"]
    parts += [method["created"][:10], f"data {method['data_sha256'][:8]}"]
    return " · ".join([*parts, f"skcalib {method['versions']['skcalib']}"])


def _believable(results: dict[str, Any]) -> Tile:
    everybody = results["verdict"]["tested"][0]
    judged = next(iter(results["calibration"]["views"].values()))
    error = judged["errors"]["expected_calibration_error"]
    answer, tone = ("no", "bad") if matters(everybody) else ("unclear", "open")
    if everybody["clear"]:
        answer, tone = "yes", "good"
    if everybody["small"]:
        answer, tone = f"within {points(everybody['hidden'])}", "good"
    low, high = (100 * error[end] for end in ("low", "high"))
    detail = (
        f"calibration error {points(error['value'])}, 99 % interval {low:.1f} to {high:.1f}; "
        f"chance does as much in {of_models(everybody['pvalue'])}"
    )
    return Tile("Are the numbers believable?", answer, detail, tone)


def _for_everybody(tested: list[dict[str, Any]]) -> Tile:
    parts = tested[1:]
    called = parts_called(parts)
    questions = {"groups": "For everybody?", "classes": "For every class?"}
    question = questions.get(called, "For every group and class?")
    off = [part for part in parts if matters(part)]
    unclear = [part for part in parts if not part["off"] and not part["clear"]]
    if off:
        detail = names_of(off, len(parts)) if len(off) < 4 else "named below"
        if unclear:
            detail += f"; {len(unclear)} more with too few samples to tell"
        elif len(off) < len(parts):
            detail += "; the rest fit"
        return Tile(question, f"no: {len(off)} of {len(parts)} {called} off", detail, "bad")
    if unclear:
        detail = (
            f"{few(len(unclear), len(parts), called)} too few samples: an error above "
            f"{points(max(part['tolerance'] for part in unclear))} could hide"
        )
        return Tile(question, "unclear", detail, "open")
    worst = max(part["hidden"] for part in parts)
    return Tile(question, "yes", f"no average is off by more than {points(worst)}", "good")


def _accurate(overview: dict[str, Any]) -> Tile:
    accuracy, largest = overview["accuracy"], overview["largest_class"]
    low, high = (100 * accuracy[end] for end in ("low", "high"))
    detail = (
        f"99 % interval {low:.1f} to {high:.1f}; always answering "
        f"{in_sentence(largest['label'])} is right {percent(largest['value'])} of the time"
    )
    return Tile("How often is it right?", percent(accuracy["value"]), detail)


def _followed(results: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the results on declining, after calibration if it is advised, and a word for it."""
    after = results["after_calibration"]
    return (results["selective"], "") if after is None else (after["selective"], "calibrated ")


def _declining(results: dict[str, Any]) -> Tile:
    selective, calibrated = _followed(results)
    promise = selective["promise"]
    if promise is None:
        detail = "of all samples; declining promises no lower error rate here"
        return Tile("How often is it wrong?", percent(selective["error_rate"]), detail)
    first = "Once calibrated, if" if calibrated else "If"
    question = f"{first} it may decline, at most {_rate(promise['risk'])} wrong"
    if promise["kept"]:
        detail = (
            f"of the samples: those with a {calibrated}confidence above "
            f"{threshold(promise['threshold'])}. "
            f"Kept on new samples of the same kind, with {percent(LEVEL, 0)} certainty"
        )
        return Tile(question, f"{percent(promise['coverage'], 0)} answered", detail)
    detail = "no threshold keeps that on new samples, as far as so few samples can tell"
    return Tile(question, "not promised", detail)


def _rate(risk: float) -> str:
    return percent(risk, 0 if risk >= 0.01 else 1)


def _advice(results: dict[str, Any]) -> list[Advice | None]:
    return [
        *_about_parts(results),
        _about_size(results),
        _recommendation.advice(results),
        _about_parts_later(results),
        _about_declining(results),
        *_about_fine_columns(results["verdict"]["tested"]),
        _about_labels(results["issues"]),
    ]


def _about_parts(results: dict[str, Any]) -> list[Advice]:
    """Return advice on groups and classes, unless a calibrator for all samples comes first."""
    everybody, *parts = results["verdict"]["tested"]
    if matters(everybody) or results["after_calibration"] is not None:
        return []
    found = []
    for kind in ("group", "class"):
        off = [part for part in parts if matters(part) and part["kind"] == kind]
        if not off:
            continue
        name = names_of(off, sum(part["kind"] == kind for part in parts))
        found.append(
            Advice(f"Do not rely on the probabilities of {name}", f": {_repair_of(off)}.")
        )
    return found


def _repair_of(off: list[dict[str, Any]]) -> str:
    if off[0]["kind"] == "class":
        return "look for the cause, and judge again"
    return (
        "look for the cause, or calibrate every group by itself "
        "(skcalib.posthoc.GroupwiseCalibration), and judge again"
    )


def _about_parts_later(results: dict[str, Any]) -> Advice | None:
    """Return advice on groups and classes after the calibrator for all samples, if any."""
    everybody, *parts = results["verdict"]["tested"]
    after = results["after_calibration"]
    if after is not None:
        parts = after["tested"][1:]
        off = sorted((part for part in parts if part["off"]), key=lambda part: part["pvalue"])
        if not off:
            return None
        positive = f"class {in_sentence(results['overview']['classes'][-1])}"
        return Advice(
            f"Then look at {names_of(off, len(parts))} again",
            f": after calibration, judged on samples left out, {phrase(off[0], positive)}. "
            f"{_repair_of(off)[0].upper()}{_repair_of(off)[1:]}.",
        )
    off = [part for part in parts if matters(part)]
    if not matters(everybody) or not off:
        return None
    verb = "is" if len(off) == 1 else "are"
    return Advice(
        f"Then judge the {parts_called(off)} again",
        f": {names_of(off, len(parts))} {verb} off now, and may need a repair of their own.",
    )


def _about_fine_columns(tested: list[dict[str, Any]]) -> list[Advice]:
    """Return advice on columns of groups with too few samples to test."""
    everybody, found = tested[0], []
    for column in dict.fromkeys(part["column"] for part in tested if part["kind"] == "group"):
        sizes = [part["n_samples"] for part in tested if part.get("column") == column]
        if max(sizes) < FEWEST_TO_JUDGE <= everybody["n_samples"] / 2:
            found.append(
                Advice(
                    f"Join the values of {isolated(column)}",
                    f": none of its {count(len(sizes))} groups has {FEWEST_TO_JUDGE} samples. Bin "
                    "numbers, for example by pandas.qcut; where the values say which samples "
                    "belong together, pass them as groups instead of by.",
                )
            )
    return found


def _about_size(results: dict[str, Any]) -> Advice | None:
    everybody, *parts = results["verdict"]["tested"]
    unclear = [part for part in parts if not part["clear"] and not part["off"]]
    if everybody["off"] or (everybody["clear"] and not unclear):
        return None  # more samples help only if something is undecided
    what, least = ("", everybody)
    if everybody["clear"]:
        least = max(unclear, key=lambda part: part["hidden"])
        what = f" {names_of([least], 1)}" if len(unclear) == 1 else f" its {parts_called(unclear)}"
    # A range is half as wide with four times as many samples.
    needed = least["n_samples"] * (least["hidden"] / least["tolerance"]) ** 2
    return Advice(
        f"Collect more samples before you rely on{what or ' it'}",
        f": about {count(float(f'{needed:.2g}'))} rule out what {count(least['n_samples'])} "
        "cannot.",
    )


def _about_declining(results: dict[str, Any]) -> Advice | None:
    selective, calibrated = _followed(results)
    promise = selective["promise"]
    if promise is None or not promise["kept"]:
        return None
    then = "Then decline" if calibrated else "Decline"
    found = " The threshold was found on calibrated samples left out." if calibrated else ""
    return Advice(
        f"{then} below a {calibrated}confidence of {threshold(promise['threshold'])}",
        f" to be wrong in at most {_rate(promise['risk'])} of the answers, with "
        f"{percent(LEVEL, 0)} certainty, instead of {percent(selective['error_rate'])}; "
        f"{percent(promise['coverage'], 0)} of the samples are answered then.{found}",
    )


def _about_labels(issues: dict[str, Any]) -> Advice:
    if issues["table"] is None:
        return Advice(
            "Labels: not judged", f". {issues['reason'][0].upper()}{issues['reason'][1:]}."
        )
    if not issues["table"]:
        return Advice("Labels: no suspects", f", judged by {issues['source']}.")
    low, high = issues["noise_rate_interval"]
    n = issues["n_issues"]
    return Advice(
        f"Check {count(n)} suspected label{'s' if n > 1 else ''}",
        f": judged by {issues['source']}, {percent(issues['noise_rate'])} of the labels are wrong "
        f"({interval({'low': 100 * low, 'high': 100 * high}, 1)}). Shown below.",
    )
