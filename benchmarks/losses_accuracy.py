"""Largest relative error of every loss against mpmath, in units of the machine epsilon.

The reference of the tests (the formulas to the letter, up to 900 digits) on the batches of the
tests, hard and soft targets together. Below the smallest normal number the error counts in units
of that number; where a term is subtracted it is relative to the cross-entropy.

    python -m benchmarks.losses_accuracy
"""

import torch

from tests.losses.reference import CASES, HARD_ONLY, logit_sets, relative_errors, soft_target

COLUMNS = {
    "N(0, 9), K <= 4": ("N(0, 9)", "K = 2", "K = 1"),
    "lead 18-40": ("wide lead",),
    "+-50": ("+-50", "+-50 + noise"),
    "+-1000": ("+-1000", "+-1000 + noise"),
    "1000 + N(0, 9)": ("1000 + N(0, 9)",),
    "ties": ("ties",),
}


def worst(name, dtype, sets):
    errors = []
    for data in sets:
        logits, target = logit_sets(dtype)[data]
        errors += relative_errors(name, logits, target)
        if name not in HARD_ONLY:
            errors += relative_errors(name, logits, soft_target(logits))
    return max(errors) / torch.finfo(dtype).eps


def main():
    torch.set_num_threads(1)
    for dtype in (torch.float64, torch.float32):
        print(f"\n{dtype}, epsilon {torch.finfo(dtype).eps:.2e}; errors in epsilon")
        print(f"{'':<22}", *(f"{column:>16}" for column in COLUMNS))
        for name in CASES:
            row = (worst(name, dtype, sets) for sets in COLUMNS.values())
            print(f"{name:<22}", *(f"{value:16.1f}" for value in row), flush=True)


if __name__ == "__main__":
    main()
