"""Sections of the report on acting: the validation table, and what an error costs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from ..metrics import cost_summary, decision_curve, validation_summary
from ..metrics._expected_cost import check_costs
from ..metrics._risk_model import Sample, estimate_smooth_residual, get_groups
from ..plots import DecisionCurveDisplay
from ..utils._labels import order_columns
from ..utils._proba import check_predictions
from ._constants import FEW, LEVEL, N_RESAMPLES
from ._data import ReportData, compute_mean, estimate_fraction
from ._document import (
    NONE,
    Picture,
    Section,
    Table,
    Text,
    format_interval,
    format_number,
    format_percent,
    format_percent_interval,
    in_sentence,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches of the smooth curve, and of the decision curve.
SMOOTH_SIZE, CURVE_SIZE = (4.2, 3.6), (4.6, 3.6)
# From rates below this on, axes of probabilities are logarithmic.
RARE = 0.05
# Most marks of a rug: more would be a bar.
N_RUG = 400


def check_acting(data: ReportData) -> ReportData:
    """Return the data with checked costs, and the probability from which on one acts."""
    costs, act_above = data.costs, data.act_above
    if costs is not None:
        costs = order_columns(costs, data.classes, name="costs")
        table = check_costs(costs, len(data.codes), len(data.classes))
        if table.ndim != 2:
            raise ValueError(
                "costs must have shape (n_decisions, n_classes) in a report, got one table for "
                "every sample; skcalib.metrics.cost_summary takes these."
            )
        data = replace(data, costs=table)
        if act_above is None and data.of_one_class:
            data = replace(data, act_above=_find_threshold(table))
    if act_above is None:
        return data
    if not data.of_one_class:
        raise ValueError(f"act_above must be None unless there are two classes, got {act_above}.")
    if isinstance(act_above, bool | str) or not 0 < act_above < 1:
        raise ValueError(f"act_above must be in (0, 1), got {act_above!r}.")
    return replace(data, act_above=float(act_above))


def _find_threshold(costs: NDArray[np.float64]) -> float | None:
    """Return the probability from which on the second of two decisions is cheaper."""
    if costs.shape != (2, 2):
        return None
    saved, paid = costs[0, 1] - costs[1, 1], costs[1, 0] - costs[0, 0]
    return float(paid / (paid + saved)) if saved > 0 and paid > 0 else None


def compute_validation(data: ReportData) -> dict[str, Any] | None:
    """Return the validation table of two classes, and a smooth curve; None for others."""
    sample = data.sample
    events = np.array([sample.weights @ sample.of_class(k) for k in range(len(data.classes))])
    if not data.of_one_class or not events.all() or len(sample.codes) < FEW:
        return None
    given = {**sample.predictions, "groups": sample.groups}
    table = validation_summary(
        **given, confidence_level=LEVEL, n_resamples=N_RESAMPLES, random_state=data.seed
    )
    return {
        "table": [
            {name: row[name] for name in ("statistic", "value", "low", "high", "ideal")}
            for row in table
        ],
        "curve": _compute_smooth(sample),
        "rate": float(events[1] / events.sum()),
    }


def _compute_smooth(data: ReportData) -> dict[str, Any]:
    """Return the smooth curve of outcomes over probabilities, its band, and marks of a rug."""
    predictions = check_predictions(
        data.predictions["y_true"], data.proba, data.weight, labels=np.arange(2)
    )
    sample = Sample.of(predictions, 1, get_groups(data.groups, len(data.codes)))
    smooth = estimate_smooth_residual(sample)
    half = norm.isf((1 - LEVEL) / 2) * np.sqrt(np.diag(smooth.covariance))
    rng = np.random.default_rng(data.seed)
    rug = {}
    for k in range(2):
        rows = np.flatnonzero(data.codes == k)
        rows = rng.choice(rows, N_RUG, replace=False) if len(rows) > N_RUG else rows
        rug[str(k)] = np.sort(data.proba[rows, 1].astype(np.float64))
    center = smooth.node + smooth.residual
    return {
        "proba": smooth.node,
        "observed": np.clip(center, 0, 1),
        "low": np.clip(center - half, 0, 1),
        "high": np.clip(center + half, 0, 1),
        "rug": rug,
    }


def compute_costs(data: ReportData) -> dict[str, Any] | None:
    """Return the decision curve, what acting is worth, and costs; None if neither was asked."""
    if data.costs is None and data.act_above is None:
        return None
    sample = data.sample
    found: dict[str, Any] = {"act_above": data.act_above, "rules": None, "curve": None}
    given: dict[str, Any] = {**sample.predictions, "groups": sample.groups}
    given["random_state"] = data.seed
    if data.costs is not None:
        table = cost_summary(**given, costs=data.costs, confidence_level=LEVEL)
        found["costs"] = data.costs
        found["rules"] = [dict(zip(_list_names(table), row)) for row in table.tolist()]
    if data.of_one_class:
        given["confidence_level"] = LEVEL
        curve = decision_curve(**given)
        found["curve"] = {name: curve[name] for name in _list_names(curve) if name != "model"}
    if data.act_above is not None:
        [row] = decision_curve(**given, thresholds=[data.act_above])
        acted, events = data.decided == 1, data.of_class(1)
        found["at"] = {
            **dict(zip(_list_names(row), row.tolist())),
            "fraction": compute_mean(acted.astype(np.float64), data.weights),
            "recall": estimate_fraction(acted, data.weights * events),
            "precision": estimate_fraction(events[acted], data.weights[acted]),
        }
    return found


def _list_names(table: Any) -> list[str]:
    return list(table.dtype.names)


def make_validation_section(results: dict[str, Any]) -> Section | None:
    """Return the section of the validation table; None unless there are two classes."""
    found = results["validation"]
    if found is None:
        return None
    rows = [
        [
            row["statistic"],
            format_number(row["value"]),
            format_interval(row),
            format_number(row["ideal"], 0),
        ]
        for row in found["table"]
    ]
    text = (
        "O/E ratio: how many occurred over how many were predicted; above 1, the probabilities "
        "are too low. Slope below 1: too extreme. ICI, E50, E90: mean, median and 90 % quantile "
        "of the distance from the smooth curve; chance makes them larger than 0. Ideal is what a "
        "calibrated model has; for the Brier scores and AUROC, a perfect one."
    )
    name = in_sentence(results["overview"]["classes"][1])
    caption = (
        f"Smooth curve of how often class {name} occurred (locally linear, two thirds of the "
        "samples) with 99 % intervals at every probability. Marks: samples of the class (above) "
        "and others (below)."
    )
    if found["rate"] < RARE:
        caption += " Both axes are logarithmic."
    curve, is_rare = found["curve"], found["rate"] < RARE
    picture = Picture(lambda ax: _draw_smooth(ax, curve, is_rare), SMOOTH_SIZE, caption)
    header = ["statistic", "value", "99 % interval", "ideal"]
    title = f"Level, slope and discrimination of the probability of class {name}"
    return Section(title, [Table(header, rows), Text(text, note=True)], [picture])


def _draw_smooth(ax: Axes, curve: dict[str, Any], is_rare: bool) -> None:
    """Draw the smooth curve with its band, the diagonal and a rug."""
    names = "proba", "observed", "low", "high"
    x, y, low, high = (np.array(curve[name]) for name in names)
    least = 0.0
    if is_rare:
        positive = x[x > 0]
        least = float(max(np.quantile(positive, 0.05), 1e-5)) if len(positive) else 1e-5
        ax.set(xscale="log", yscale="log")
    most = float(max(x.max(), high.max()))
    ax.plot([least, 1], [least, 1], color="gray", linestyle="--", linewidth=1)
    ax.fill_between(x, np.maximum(low, least), np.maximum(high, least), alpha=0.2)
    ax.plot(x, np.maximum(y, least))
    for k, place in (("0", 0.0), ("1", 0.97)):
        marks = np.array(curve["rug"][k])
        marks = np.maximum(marks, least) if is_rare else marks
        ax.vlines(
            marks, place, place + 0.03, transform=ax.get_xaxis_transform(), linewidth=0.5,
            color="black", alpha=0.4,
        )  # fmt: skip
    limits = (least, min(1.0, 1.3 * most)) if is_rare else (0.0, min(1.0, 1.05 * most))
    ax.set(xlim=limits, ylim=limits, xlabel="Predicted probability", ylabel="Observed fraction")


def make_costs_section(results: dict[str, Any]) -> Section | None:
    """Return the section on acting at a threshold or at costs; None if neither was asked."""
    found = results["costs"]
    if found is None:
        return None
    blocks: list[Any] = []
    if found["act_above"] is not None:
        blocks += _make_threshold_blocks(results)
    if found["rules"] is not None:
        blocks += _make_rule_blocks(found)
    pictures = []
    if found["curve"] is not None:
        curve = np.zeros(
            len(found["curve"]["threshold"]), [(name, float) for name in found["curve"]]
        )
        for name, values in found["curve"].items():
            curve[name] = values
        caption = (
            "Net benefit of acting from each probability on: right actions per sample, less false "
            "ones at their price. Dotted: what the probabilities promise. The model is worth "
            "acting on where its curve is above both reference lines; the band holds the whole "
            "curve, with 99 %."
        )
        display = DecisionCurveDisplay(curve)
        pictures = [Picture(lambda ax: display.plot(ax=ax, interval="band"), CURVE_SIZE, caption)]
    return Section("What an error costs", blocks, pictures)


def _make_threshold_blocks(results: dict[str, Any]) -> list[Any]:
    found = results["costs"]
    at, name = found["at"], in_sentence(results["overview"]["classes"][1])
    chance = found["act_above"]
    text = (
        f"Acting where the probability of class {name} is {format_number(chance, 4)} or more "
        f"means that a false action costs {format_number(chance / (1 - chance), 2)} times what a "
        "right one gains."
    )
    rows = [
        ["samples acted on", format_percent(at["fraction"]), NONE],
        [
            "recall: of the class, acted on",
            format_percent(at["recall"]["value"]),
            _format_ends(at["recall"]),
        ],
        [
            "precision: of the actions, right",
            format_percent(at["precision"]["value"]),
            _format_ends(at["precision"]),
        ],
        ["net benefit", format_number(at["net_benefit"]), format_interval(at)],
        ["net benefit that the probabilities promise", format_number(at["predicted"]), NONE],
        ["net benefit of acting on all", format_number(at["act_on_all"]), NONE],
        [
            "actions avoided per sample, compared with acting on all",
            format_number(at["interventions_avoided"]),
            NONE,
        ],
    ]
    better = at["low"] > max(0.0, at["act_on_all"])
    worse = at["high"] < max(0.0, at["act_on_all"])
    verdict = "The samples do not show whether the model is better than acting on all or on none."
    if better:
        verdict = "The model is better than acting on all and than acting on none."
    elif worse:
        other = "all" if at["act_on_all"] > 0 else "none"
        verdict = f"Acting on {other} is better than acting by the model."
    return [Text(text), Table(["", "value", "99 % interval"], rows), Text(verdict)]


def _format_ends(fraction: dict[str, Any]) -> str:
    text = format_percent_interval(fraction)
    return text[text.index("(") + 1 : -1] if "(" in text else NONE


def _make_rule_blocks(found: dict[str, Any]) -> list[Any]:
    rows = [
        [
            in_sentence(row["rule"]),
            format_number(row["cost"]),
            format_interval(row),
            format_number(row["predicted"]),
            format_interval({"low": row["difference_low"], "high": row["difference_high"]}),
        ]
        for row in found["rules"]
    ]
    note = (
        "Mean cost per sample, in the unit of the costs. The model takes the decision that is "
        "cheapest by its probabilities; recalibrated: the same after a logistic recalibration, "
        "out-of-fold. The last column is the cost minus that of the model: below 0, the rule is "
        "cheaper."
    )
    header = ["rule", "cost", "99 % interval", "as predicted", "less the model's"]
    return [Table(header, rows), Text(note, note=True)]
