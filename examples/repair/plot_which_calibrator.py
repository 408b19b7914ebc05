"""
Which calibrator for how many samples?
======================================

Calibrators differ in what they can repair and in how many samples they need for it. Ten of them
are fitted on 50 to 5000 samples of a model that is overconfident and likes some classes too much.
"""

# %%
# A model with two faults
# -----------------------
# Labels are drawn from known probabilities. The logits that the calibrators see are those
# probabilities made twice as sharp, plus a bonus for some classes.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import log_loss

from skcalib.datasets import make_predictions
from skcalib.posthoc import (
    BetaCalibration,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    HistogramBinning,
    IsotonicCalibration,
    MatrixScaling,
    StackedCalibration,
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
)

n_classes = 6
y, _, truth = make_predictions(16_000, n_classes=n_classes, random_state=0)
logits = 2.0 * np.log(truth) + np.linspace(-1, 1, n_classes)
y_fit, logits_fit = y[:6000], logits[:6000]
y_test, logits_test = y[6000:], logits[6000:]

calibrators = {
    "auto": StackedCalibration(),
    "temperature": TemperatureScaling(),
    "ensemble temperature": EnsembleTemperatureScaling(),
    "vector": VectorScaling(),
    "matrix": MatrixScaling(),
    "structured matrix": StructuredMatrixScaling(),
    "Dirichlet": DirichletCalibration(),
    "beta": BetaCalibration(),
    "isotonic": IsotonicCalibration(),
    "histogram": HistogramBinning(),
}

# %%
# Log-loss against the number of samples
# --------------------------------------
sizes = [50, 150, 500, 1500, 5000]
rng = np.random.default_rng(0)
draws = {n: [rng.choice(len(y_fit), n, replace=False) for _ in range(3)] for n in sizes}
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
for (name, calibrator), marker in zip(calibrators.items(), "*osDv^<>Pp"):
    losses = []
    for n in sizes:
        values = []
        for rows in draws[n]:
            fitted = calibrator.fit(logits_fit[rows], y_fit[rows])
            values.append(log_loss(y_test, fitted.predict_proba(logits_test)))
        losses.append(np.mean(values))
    ax.plot(sizes, losses, marker=marker, label=name)
raw = np.exp(logits_test - logits_test.max(axis=1, keepdims=True))
before = log_loss(y_test, raw / raw.sum(axis=1, keepdims=True))
color = plt.rcParams["text.color"]
ax.axhline(before, color=color, linestyle="--", label="not calibrated")
ax.axhline(log_loss(y_test, truth[6000:]), color=color, linestyle=":", label="true probabilities")
ax.set(xscale="log", ylim=(1.0, 1.4), xlabel="Samples to calibrate on", ylabel="Log-loss")
ax.legend(bbox_to_anchor=(1.02, 1), loc="upper left")

# %%
# **Learned:** a temperature needs 50 samples, and cannot repair a bonus for some classes however
# many there are. Vector scaling repairs both faults from a few hundred samples on; with 50 it does
# harm. Isotonic regression and histogram binning, class by class, need thousands. ``"auto"`` is
# near the best at every size.
