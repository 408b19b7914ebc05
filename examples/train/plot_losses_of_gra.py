"""
Losses against a known posterior
================================

Where the true probabilities are known, which loss gives probabilities that are closest to them?

Equations and tables of [GRA] with their calls: :ref:`paper-gra`.
"""

# %%
# Five Gaussians in the plane
# ---------------------------
# As in Section 4.3 of "Uncertainty Weighted Gradients for Model Calibration" ([GRA], Eqs. 1 and
# 13): the densities give the posterior of every sample. The network and the number of samples are
# smaller here.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import multivariate_normal

from skcalib.nets import MLP, CalibratedNetClassifier

rng = np.random.default_rng(0)
means = rng.uniform(-2.0, 2.0, (5, 2))
label = np.repeat(np.arange(5), 400)
X = means[label] + rng.standard_normal((len(label), 2))
test_label = rng.integers(5, size=4000)
X_test = means[test_label] + rng.standard_normal((4000, 2))
density = np.column_stack([multivariate_normal(mean).pdf(X_test) for mean in means])
posterior = density / density.sum(axis=1, keepdims=True)

# %%
# Equations by their names
# ------------------------
losses = {
    "cross-entropy": "cross_entropy",
    "Brier (BL)": "brier",
    "FLSD-53": "sample_dependent_focal",
    "dual focal, Eq. 8": "dual_focal",
    "BSCE, Eq. 6": "bsce",
    "BSCE-GRA, Eq. 14": "bsce_gra",
}
distances = {}
for name, criterion in losses.items():
    distances[name] = []
    for seed in range(3):
        net = CalibratedNetClassifier(
            MLP, criterion=criterion, lr=0.01, max_epochs=15, random_state=seed, device="cpu"
        ).fit(X, label)
        differences = np.abs(net.predict_proba(X_test) - posterior).sum(axis=1) / 2
        distances[name].append(differences.mean())

figure, ax = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
for row, values in enumerate(distances.values()):
    ax.plot(values, [row] * len(values), "o", color="C0")
ax.set_yticks(range(len(losses)), losses)
ax.invert_yaxis()
ax.set_xlabel("Distance to the true posterior (total variation, mean)")

# %%
# **Learned:** cross-entropy and the Brier score are closest to the truth; their only minimum is
# the posterior. The other losses give confident samples less weight. With the parameters that the
# papers use on images, that leaves this small network two to four times as far from the truth,
# and too unsure. Search their parameters, by ``criterion__exponent`` and the like.
