"""Intervals of scores and the test of equal scores in ``compare_calibration``, by simulation.

``python -m benchmarks.score_test [--out FILE]``. The 95 % interval should hold the true score in
95 % of the draws. Of equally good models a p-value of .05 or less should be found in 5 % of them,
of unequal ones as often as possible. Beside them is the plain bootstrap, of samples or of groups.
benchmarks/score_test_results.json holds the table of the user guide.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import ndtr, ndtri, softmax

from benchmarks._tables import shown, simple_table, study
from skcalib.metrics import compare_calibration

# Of equal models, and of unequal ones.
N_DRAWS = (1000, 200)
N_RESAMPLES = 99
LEVEL = 0.05
NOISE = 0.5
# Samples that give the true scores.
MANY = 400_000
# Name, number of classes, log-odds that are added to the first class, samples, size of the groups,
# and the correlation of the normal variables behind the labels of a group. Samples of a group have
# the same probabilities.
SETTINGS = (
    ("two classes", 2, 0.0, 200, 1, 0.0),
    ("two classes, groups of four", 2, 0.0, 200, 4, 0.0),
    ("two classes, correlation .3", 2, 0.0, 200, 4, 0.3),
    ("two classes, each four times", 2, 0.0, 200, 4, 1.0),
    ("rare", 2, 4.5, 400, 1, 0.0),
    ("rare, groups of four", 2, 4.5, 400, 4, 0.0),
    ("rare, correlation .3", 2, 4.5, 400, 4, 0.3),
    ("rare, each four times", 2, 4.5, 400, 4, 1.0),
    ("ten classes", 10, 0.0, 200, 1, 0.0),
    ("ten classes, groups of four", 10, 0.0, 200, 4, 0.0),
    ("ten classes, each four times", 10, 0.0, 200, 4, 1.0),
)


def draw(
    rng: np.random.Generator,
    n_samples: int,
    n_classes: int,
    first: float,
    size: int,
    correlation: float,
    better: bool,
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return labels and two models: the truth in noise, which is halved in the second's `better`.

    Two draws of the same noise make equally good models, on average.
    """
    group = np.arange(n_samples) // size
    shape = group[-1] + 1, n_classes
    logits = 2 * rng.normal(size=shape)[group]
    logits[:, 0] += first
    true = softmax(logits, axis=1)
    shared, own = rng.normal(size=shape[0])[group], rng.normal(size=n_samples)
    u = ndtr(np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own)
    y = (true.cumsum(axis=1) < u[:, np.newaxis]).sum(axis=1).clip(max=n_classes - 1)
    sizes = {"first": NOISE, "second": NOISE / 2 if better else NOISE}
    noise = {name: times * rng.normal(size=shape)[group] for name, times in sizes.items()}
    return y, {name: softmax(logits + part, axis=1) for name, part in noise.items()}


def compute_losses(metric: str, y: np.ndarray, proba: np.ndarray) -> np.ndarray:
    """Return the losses of all samples, whose mean is the score, by its definition."""
    rows = np.arange(len(y))
    if metric == "log_loss":
        return -np.log(proba[rows, y])
    return np.square(proba - np.eye(proba.shape[1])[y]).sum(axis=1)


def bootstrap_errors(rng: np.random.Generator, losses: np.ndarray, size: int) -> np.ndarray:
    """Return the standard errors of means of losses (m, n), of groups drawn with replacement."""
    of_groups = losses.reshape(len(losses), -1, size).mean(axis=2)
    n_groups = of_groups.shape[1]
    drawn = rng.integers(n_groups, size=(N_RESAMPLES, n_groups))
    return of_groups[:, drawn].mean(axis=2).std(axis=1)


def measure(setting: tuple, metric: str) -> dict:
    """Return how often intervals hold the score and tests reject, ours and the bootstrap's."""
    name, n_classes, first, n_samples, size, correlation = setting
    groups = None if size == 1 else np.arange(n_samples) // size
    y, models = draw(np.random.default_rng(0), MANY, n_classes, first, size, 0.0, False)
    truth = compute_losses(metric, y, models["first"]).mean()
    quantile = ndtri(1 - LEVEL / 2)
    held, widths, rejected = np.zeros(2), np.zeros(2), np.zeros((2, 2))
    for better in (False, True):
        for trial in range(N_DRAWS[better]):
            rng = np.random.default_rng([trial, n_samples, n_classes])
            y, models = draw(rng, n_samples, n_classes, first, size, correlation, better)
            found = compare_calibration(
                y,
                models,
                metric=metric,
                labels=np.arange(n_classes),
                groups=groups,
                n_resamples=N_RESAMPLES,
                random_state=trial,
            )
            losses = np.array([compute_losses(metric, y, proba) for proba in models.values()])
            score, difference = losses[0], losses[1] - losses[0]
            errors = bootstrap_errors(rng, np.stack([score, difference]), size)
            rejected[int(better)] += (
                found["pvalue"][1] <= LEVEL,
                abs(difference.mean()) >= quantile * errors[1],
            )
            if not better:
                held += (
                    found["low"][0] <= truth <= found["high"][0],
                    abs(score.mean() - truth) <= quantile * errors[0],
                )
                widths += found["high"][0] - found["low"][0], 2 * quantile * errors[0]
    held, rejected = held / N_DRAWS[0], rejected / np.array(N_DRAWS)[:, np.newaxis]
    line = {"models": name, "samples": n_samples, "score": metric}
    line |= {"held": held[0], "held_plain": held[1], "width": widths[0] / widths[1]}
    line |= {"false_alarms": rejected[0, 0], "false_alarms_plain": rejected[0, 1]}
    return line | {"found": rejected[1, 0], "found_plain": rejected[1, 1]}


def rejections() -> Iterator[dict]:
    """Yield how intervals and tests of scores do, setting by setting."""
    for setting in SETTINGS:
        for metric in ("brier", "log_loss"):
            yield {
                key: float(value) if isinstance(value, np.floating) else value
                for key, value in measure(setting, metric).items()
            }


def guide_table(rows: list[dict]) -> str:
    head = ("models", "samples", "score", "held", "(B)", "width", "alarms", "(B)", "found", "(B)")
    return simple_table(
        head,
        [
            (
                row["models"],
                str(row["samples"]),
                row["score"],
                shown(row["held"], 2),
                shown(row["held_plain"], 2),
                shown(row["width"], 1),
                shown(row["false_alarms"], 3),
                shown(row["false_alarms_plain"], 3),
                shown(row["found"], 2),
                shown(row["found_plain"], 2),
            )
            for row in rows
        ],
    )


if __name__ == "__main__":
    study(__doc__, rejections)
