"""Largest relative error of every loss and its gradient against mpmath, in machine epsilons.

The reference of the tests (the formulas to the letter, up to 900 digits; its differences with a
step of 1e-20) on the batches of the tests. Values: hard and soft targets.
Gradients: hard targets, the largest error of a row relative to its largest entry. Below the
smallest normal number the error counts in units of that number; where a term is subtracted it is
relative to the cross-entropy.

    python -m tests.losses.accuracy
"""

import torch

from tests.losses.reference import (
    CASES,
    gradient_errors,
    logit_sets,
    relative_errors,
    soft_target,
)

COLUMNS = {
    "N(0, 9), K <= 20": ("N(0, 9)", "K = 2", "K = 1", "K = 20"),
    "lead 18-40": ("wide lead",),
    "+-50": ("+-50", "+-50 + noise"),
    "+-1000": ("+-1000", "+-1000 + noise"),
    "1000 + N(0, 9)": ("1000 + N(0, 9)",),
    "ties": ("ties",),
}


def worst_value(name, dtype, sets):
    errors = []
    for data in sets:
        logits, target = logit_sets(dtype)[data]
        errors += relative_errors(name, logits, target)
        if CASES[name].soft:
            errors += relative_errors(name, logits, soft_target(logits))
    return max(errors)


def worst_gradient(name, dtype, sets):
    # No derivative at ties; an hour of mpmath for the losses that take all rows together.
    sets = set(sets) - {"ties", "+-50", "+-1000"}
    if not CASES[name].row_wise:
        sets &= {"N(0, 9)", "K = 2"}
    errors = (max(gradient_errors(name, *logit_sets(dtype)[data])) for data in sets)
    return max(errors, default=float("nan"))


def main():
    torch.set_num_threads(1)
    for what, worst in (("values", worst_value), ("gradients", worst_gradient)):
        for dtype in (torch.float64, torch.float32):
            epsilon = torch.finfo(dtype).eps
            print(f"\n{what}, {dtype}, epsilon {epsilon:.2e}; errors in epsilon")
            print(f"{'':<22}", *(f"{column:>16}" for column in COLUMNS))
            for name in CASES:
                row = (worst(name, dtype, sets) / epsilon for sets in COLUMNS.values())
                print(f"{name:<22}", *(f"{value:16.1f}" for value in row), flush=True)


if __name__ == "__main__":
    main()
