"""Every page's advice, followed step by step with the page's own code, and every promise measured.

    python -m benchmarks.advice [--draws 1] [--out FILE]

A population says what a model states of every sample and what is true. From a test set of it the
report writes its page. A reader follows the steps in their order: runs the lines of code on other
held-out samples, and declines below the threshold, on new samples. What the page promised is
measured there from what is true, not from labels. Nothing in the report was chosen on these
populations.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit, softmax

from benchmarks._tables import simple_table, study
from skcalib.metrics import reliability_curve
from skcalib.report import CalibrationReport

N_NEW = 100_000
N_BINS = 15


class Samples(NamedTuple):
    """What a model says and what is true, (n, n_classes), the labels and a group of each."""

    stated: NDArray[np.float64]
    true: NDArray[np.float64]
    y: NDArray[np.intp]
    group: NDArray[np.intp]


Maps = Callable[[NDArray[np.float64], NDArray[np.intp]], NDArray[np.float64]]


def drawn(
    rng: np.random.Generator, n: int, n_classes: int, spread: float, lead: float, says: Maps
) -> Samples:
    """Return samples whose true logits are normal; `says` makes of them what the model says."""
    logits = rng.normal(0, spread, (n, n_classes))
    logits[:, 0] += lead
    group = rng.integers(4, size=n)
    true = softmax(logits, axis=1)
    y = (rng.uniform(size=(n, 1)) > np.cumsum(true, axis=1)[:, :-1]).sum(axis=1)
    return Samples(says(logits, group), true, y, group)


def sharpened(by: float) -> Maps:
    return lambda z, group: softmax(by * z, axis=1)


def leaning(towards: float) -> Maps:
    """Too much of the first class, by as much in log-odds."""
    return lambda z, group: softmax(z + towards * (np.arange(z.shape[1]) == 0), axis=1)


def wrong_for_a_group(by: float) -> Maps:
    return lambda z, group: softmax(z * np.where(group == 1, by, 1.0)[:, np.newaxis], axis=1)


def mixed_up(share: float) -> Maps:
    """The model separates the last two classes less well than it says."""

    def says(z: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
        proba = softmax(z, axis=1)
        moved = share * (proba[:, -1] - proba[:, -2])
        proba[:, -1] += np.clip(moved, -proba[:, -1], proba[:, -2])
        proba[:, -2] = np.maximum(1 - proba[:, :-2].sum(axis=1) - proba[:, -1], 0)
        return proba / proba.sum(axis=1, keepdims=True)

    return says


def votes(of: int) -> Maps:
    """Shares of few trees: exact zeros and ties."""

    def says(z: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
        rng = np.random.default_rng(len(z))
        return rng.multinomial(of, softmax(z, axis=1)) / of

    return says


def waved(z: NDArray[np.float64], group: NDArray[np.intp]) -> NDArray[np.float64]:
    proba = np.clip(softmax(z, axis=1)[:, 1], 1e-6, 1 - 1e-6)
    proba = expit(logit(proba) + 0.8 * np.sin(2 * logit(proba)))
    return np.stack([1 - proba, proba], axis=1)


# Name: samples of the test set, classes, spread and lead of the true logits, what the model says.
POPULATIONS: dict[str, tuple[int, int, float, float, Maps]] = {
    **{
        f"K = {k}, n = {n}, logits times {by}": (n, k, 2.0, 0.0, sharpened(by))
        for k, n, by in [
            (2, 600, 1.0), (2, 2000, 0.5), (2, 1500, 1.6), (2, 4000, 1.15), (3, 1000, 0.35),
            (3, 3000, 1.0), (3, 1500, 2.0), (5, 2000, 0.6), (5, 3000, 1.3), (10, 2000, 1.0),
            (10, 3000, 1.7), (10, 4000, 0.5),
        ]
    },
    **{
        f"K = {k}, n = {n}, rare, leaning {by}": (n, k, 1.5, 2.5, leaning(by))
        for k, n, by in [(2, 3000, -1.0), (2, 1000, 0.7), (3, 2000, -0.6), (6, 3000, 1.2)]
    },
    **{
        f"K = {k}, n = {n}, one group times {by}": (n, k, 2.0, 0.0, wrong_for_a_group(by))
        for k, n, by in [(2, 2000, 3.0), (2, 4000, -1.0), (3, 3000, 0.3), (4, 3000, 2.5)]
    },
    **{
        f"K = {k}, n = {n}, two mixed up by {by}": (n, k, 2.0, 0.0, mixed_up(by))
        for k, n, by in [(3, 3000, 0.6), (3, 1000, -0.5), (5, 4000, 0.8), (8, 3000, -0.7)]
    },
    **{
        f"K = {k}, n = {n}, votes of {of}": (n, k, 2.0, 0.0, votes(of))
        for k, n, of in [(2, 1000, 10), (3, 2000, 25), (6, 2000, 40)]
    },
    "K = 2, n = 2000, waved": (2000, 2, 2.0, 0.0, waved),
    "K = 2, n = 5000, waved": (5000, 2, 1.5, 0.5, waved),
    "K = 3, n = 2000, sure": (2000, 3, 6.0, 0.0, sharpened(0.7)),
}  # fmt: skip


def log_loss(stated: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    return float(-(true * np.log(np.maximum(stated, 2e-16))).sum(axis=1).mean())


def true_error(stated: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    """Return the expected calibration error of what the page judges, from what is true."""
    if stated.shape[1] == 2:
        said, is_so = stated[:, 1], true[:, 1]
    else:
        answer = stated.argmax(axis=1)[:, np.newaxis]
        said, is_so = (np.take_along_axis(p, answer, axis=1)[:, 0] for p in (stated, true))
    # Both outcomes of every sample, each as often as it occurs.
    cells = reliability_curve(
        np.repeat([1, 0], len(said)),
        np.clip(np.tile(said, 2), 0, 1),
        sample_weight=np.concatenate([is_so, 1 - is_so]),
        labels=[0, 1],
        n_bins=N_BINS,
    )
    some = cells.bin_weight > 0
    weight = cells.bin_weight[some] / cells.bin_weight.sum()
    return float(weight @ np.abs(cells.prob_pred[some] - cells.prob_true[some]))


def followed(page: dict[str, Any], held_out: Samples, new: Samples) -> NDArray[np.float64]:
    """Return the probabilities of new samples after the code of the page, or as they are."""
    code = page["calibrators"]["code"]
    if not code:
        return new.stated
    names: dict[str, Any] = {
        "proba_held_out": held_out.stated,
        "y_held_out": held_out.y,
        "proba_new": new.stated,
    }
    exec(code, names)
    return names["proba"]


def promises(
    page: dict[str, Any], before: Samples, proba: NDArray[np.float64]
) -> Iterator[tuple[str, float, float]]:
    """Yield what the page promises: its name, what is true of new samples, and the limit."""
    after = page["after_calibration"]
    overall, *parts = page["group_tests"]
    if overall["calibrated"] or overall["negligible"]:
        yield (
            "no larger error",
            true_error(before.stated, before.true),
            overall["max_undetected_error"],
        )
    if page["calibrators"]["best"]:
        limit = log_loss(before.stated, before.true)
        yield "calibrating lowers the log-loss", log_loss(proba, before.true), limit
    selective = page["selective"] if after is None else after["selective"]
    if selective["promise"] is not None and selective["promise"]["kept"]:
        promise = selective["promise"]
        answered = proba.max(axis=1) > promise["threshold"]
        right = np.take_along_axis(before.true, proba.argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
        yield "wrong at most", float(1 - right[answered].mean()), promise["risk"]
    accused = [(part, before.stated) for part in parts if part["significant"]]
    if after is not None:
        accused = [(part, proba) for part in after["group_tests"][1:] if part["significant"]]
    for part, stated in accused:
        # A part that is called off has an error: there is none that a limit of 0 would allow.
        yield "what is called off is right", -_error_of_part(part, stated, before), -0.002


def _error_of_part(part: dict[str, Any], stated: NDArray[np.float64], new: Samples) -> float:
    """Return the true error of a group or class, of its probability or of the answers."""
    if part["kind"] == "group":
        members = new.group == int(part["name"])
        return true_error(stated[members], new.true[members])
    answers, k = stated.argmax(axis=1) == part["code"], part["code"]
    of_answers = true_error(stated[answers], new.true[answers]) if answers.any() else 0.0
    columns = (np.stack([1 - p[:, k], p[:, k]], axis=1) for p in (stated, new.true))
    return max(of_answers, true_error(*columns))


def measured(name: str, seed: int, n_new: int = N_NEW) -> Iterator[dict[str, Any]]:
    """Yield every promise of the page of one population, and whether new samples keep it."""
    n, *population = POPULATIONS[name]
    rng = np.random.default_rng(seed)
    test, held_out, new = (drawn(rng, size, *population) for size in (n, n, n_new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = CalibrationReport.from_predictions(
            test.y, test.stated, labels=np.arange(test.true.shape[1]), by={"group": test.group}
        )
        page = report.results_
        proba = followed(page, held_out, new)
    for promise, value, limit in promises(page, new, proba):
        yield {
            "population": name,
            "seed": seed,
            "verdict": page["summary"]["kind"],
            "promise": promise,
            "value": value,
            "limit": limit,
            "kept": bool(value <= limit),
        }


def all_measured(draws: int = 1, seed: int = 0) -> Iterator[dict[str, Any]]:
    for k, name in enumerate(POPULATIONS):
        for draw in range(draws):
            yield from measured(name, seed + 1000 * k + draw)


def guide_table(lines: list[dict[str, Any]]) -> str:
    """Return the table of the user guide: how many promises of every kind were kept."""
    kinds = {
        "calibrating lowers the log-loss": "calibrating lowers the log-loss",
        "wrong at most": "so many answers are wrong at most, with 99 % certainty",
        "what is called off is right": "a group or class that is called off has an error",
        "no larger error": "no larger error could hide, with 99 % certainty",
    }
    rows = []
    for kind, text in kinds.items():
        kept = [line["kept"] for line in lines if line["promise"] == kind]
        rows.append((text, str(len(kept)), str(sum(kept))))
    return simple_table(("promise", "made", "kept"), rows)


if __name__ == "__main__":
    study(__doc__, all_measured, draws=1, seed=0)
