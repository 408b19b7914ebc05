"""
How far can an ECE be trusted?
==============================

The expected calibration error of a finite sample is biased: chance alone makes differences between
confidence and accuracy. Here the truth is known, so that the bias can be seen, and what helps
against it.
"""

# %%
# Two models whose calibration is known
# -------------------------------------
# :func:`~skcalib.datasets.make_predictions` draws labels from known probabilities and states
# these with a temperature: 1 is perfect, 1.3 is overconfident. The error on a million samples
# stands for the truth.
import matplotlib.pyplot as plt
import numpy as np

from skcalib.datasets import make_predictions
from skcalib.metrics import (
    calibration_error_interval,
    debiased_calibration_error,
    expected_calibration_error,
    smooth_calibration_error,
)

temperatures = {"calibrated": 1.0, "overconfident": 1.3}
sizes = [100, 300, 1000, 3000, 10_000, 30_000]
metrics = {
    "ECE, 15 bins": expected_calibration_error,
    "ECE, 100 bins": lambda y, p: expected_calibration_error(y, p, n_bins=100),
    "smooth error": smooth_calibration_error,
    "debiased L2 error": debiased_calibration_error,
}


def draw(n_samples, temperature, seed):
    """Labels and probabilities of one draw."""
    return make_predictions(n_samples, temperature=temperature, random_state=seed)[:2]


# %%
# The error against the number of samples
# ---------------------------------------
figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.8), sharey=True, layout="constrained")
for ax, (name, temperature) in zip(axes, temperatures.items()):
    for (metric_name, metric), marker in zip(metrics.items(), "osDv"):
        errors = [np.mean([metric(*draw(n, temperature, s)) for s in range(10)]) for n in sizes]
        ax.plot(sizes, errors, marker=marker, label=metric_name)
    truth = 0.0 if temperature == 1 else expected_calibration_error(*draw(10**6, temperature, 0))
    ax.axhline(truth, color=plt.rcParams["text.color"], linestyle=":", label="true ECE")
    ax.set(xscale="log", xlabel="Number of samples", title=f"A model that is {name}")
axes[0].set_ylabel("Mean error over ten draws")
axes[0].legend()


# %%
# How often does the interval contain the truth?
# ----------------------------------------------
# Of 40 intervals of 95 % each, at 1000 samples. The plain bootstrap takes the quantiles of the
# errors of resamples. It never contains the 0 of a calibrated model, since every resample adds
# the bias once more.
def plain_bootstrap(y, p):
    """The quantiles of the errors of samples drawn with replacement."""
    rng = np.random.default_rng(0)
    rows = rng.integers(len(y), size=(200, len(y)))
    return np.quantile([expected_calibration_error(y[r], p[r]) for r in rows], [0.025, 0.975])


def interval(y, p):
    """The interval of the package."""
    return calibration_error_interval(y, p, n_resamples=200, random_state=0)


for name, temperature in temperatures.items():
    truth = 0.0 if temperature == 1 else expected_calibration_error(*draw(10**6, temperature, 0))
    for method in (interval, plain_bootstrap):
        ends = np.array([method(*draw(1000, temperature, s)) for s in range(40)])
        inside = np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        print(f"{name:14} {method.__name__:16} contains the truth in {inside:.0%}")

# %%
# **Learned:** with a few hundred samples, an ECE of .05 is what a perfect model has. More bins
# make it worse. Give the interval with the error, or a metric that takes the bias out.
