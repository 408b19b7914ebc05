"""How often ``compare_calibration`` rejects that two models have equal scores, by simulation.

``python -m benchmarks.score_test [--out FILE]``. Of equally good models a p-value of .05 or less
should be found in 5 % of the draws, of unequal ones as often as possible.
benchmarks/score_test_results.json holds the table of the user guide.
"""

from collections.abc import Iterator

import numpy as np
from scipy.special import softmax

from benchmarks._tables import shown, simple_table, study
from skcalib.metrics import compare_calibration

# Of equal models, and of unequal ones.
N_DRAWS = (400, 100)
N_RESAMPLES = 99
LEVEL = 0.05
NOISE = 0.5
# Name, number of classes, log-odds that are added to the first class, samples, and the size of
# groups, whose samples have the same probabilities.
SETTINGS = (("two classes", 2, 0.0, 200, 1), ("groups of four", 2, 0.0, 200, 4))


def draw(
    rng: np.random.Generator, n_samples: int, n_classes: int, first: float, size: int, better: bool
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return labels and two models: the truth in noise, which is halved in the second's `better`.

    Two draws of the same noise make equally good models, on average.
    """
    group = np.arange(n_samples) // size
    shape = group[-1] + 1, n_classes
    logits = 2 * rng.normal(size=shape)[group]
    logits[:, 0] += first
    true = softmax(logits, axis=1)
    y = (true.cumsum(axis=1) < rng.random((n_samples, 1))).sum(axis=1).clip(max=n_classes - 1)
    sizes = {"first": NOISE, "second": NOISE / 2 if better else NOISE}
    noise = {name: times * rng.normal(size=shape)[group] for name, times in sizes.items()}
    return y, {name: softmax(logits + part, axis=1) for name, part in noise.items()}


def rejections() -> Iterator[dict]:
    """Yield how often equal scores are rejected, of equal and of unequal models."""
    for name, n_classes, first, n_samples, size in SETTINGS:
        groups = None if size == 1 else np.arange(n_samples) // size
        for metric in ("brier", "log_loss"):
            rejected = [0, 0]
            for better in (False, True):
                for trial in range(N_DRAWS[better]):
                    rng = np.random.default_rng([trial, n_samples, n_classes])
                    y, models = draw(rng, n_samples, n_classes, first, size, better)
                    options = {"n_resamples": N_RESAMPLES, "random_state": trial, "groups": groups}
                    found = compare_calibration(
                        y, models, metric=metric, labels=np.arange(n_classes), **options
                    )
                    rejected[better] += found["pvalue"][1] <= LEVEL
            alarms, power = (float(k / n) for k, n in zip(rejected, N_DRAWS))
            line = {"models": name, "samples": n_samples, "score": metric}
            yield line | {"false_alarms": alarms, "found": power}


def guide_table(rows: list[dict]) -> str:
    head = ("models", "samples", "score", "false alarms", "found")
    return simple_table(
        head,
        [
            (
                row["models"],
                str(row["samples"]),
                row["score"],
                shown(row["false_alarms"], 3),
                shown(row["found"], 2),
            )
            for row in rows
        ],
    )


if __name__ == "__main__":
    study(__doc__, rejections)
