"""
An error that grows certain, batch by batch
===========================================

Predictions arrive in batches. After each of them: what is the calibration error, and how certain
is it?
"""

# %%
# Forty batches of 50 samples
# ---------------------------
# One model is calibrated, the other overconfident: its logits are 1.5 times too large. The
# accumulator keeps sums, not samples.
import matplotlib.pyplot as plt
import numpy as np

from skcalib.datasets import make_predictions
from skcalib.metrics import CalibrationAccumulator, expected_calibration_error

sizes = 50 * np.arange(1, 41)
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
ends = {}
for i, (name, temperature) in enumerate({"overconfident": 1.5, "calibrated": 1.0}.items()):
    y, proba, _ = make_predictions(2000, temperature=temperature, random_state=0)
    total, errors, intervals = CalibrationAccumulator(n_bins=15), [], []
    for stop in sizes:
        batch = slice(stop - 50, stop)
        total.update(y[batch], proba[batch])
        errors.append(total.result())
        intervals.append(total.interval(n_resamples=199, random_state=0))
    low, high = np.transpose(intervals)
    ends[name] = errors[-1], low[-1], high[-1]
    ax.plot(sizes, errors, marker="os"[i], markersize=4, color=f"C{i}", label=name)
    ax.fill_between(sizes, low, high, color=f"C{i}", alpha=0.2, linewidth=0)
    at_once = expected_calibration_error(y, proba)
    print(f"{name:13} {errors[-1]:.3f} ({low[-1]:.3f} to {high[-1]:.3f}), at once {at_once:.3f}")
ax.set(xlabel="Samples so far", ylabel="Expected calibration error", ylim=(0, 0.3))
ax.legend()
plt.show()

# %%
# **Learned:** after the first batches, the error is mostly chance, even of the calibrated model.
# The interval knows: it begins at 0 for the calibrated model all the time, and for the other one
# only for the first few hundred samples.
