"""
What each loss aims at
======================

Given data without end, cross-entropy leads to the true probabilities. Losses that weigh samples by
their confidence lead elsewhere, and their loss curves show why.

Weights of the loss and of its gradient are Eqs. 4 to 14 of [GRA]: :ref:`paper-gra`.
"""

# %%
# Loss and slope against the probability of the label
# ---------------------------------------------------
# Two classes, so that one probability says it all. The slope is the pull on the logit: a loss
# whose slope is small near 1 stops pushing samples that are already right.
import matplotlib.pyplot as plt
import numpy as np
import torch

from skcalib.losses import (
    BrierLoss,
    BSCEGRALoss,
    CrossEntropyLoss,
    EntropyRegularizedLoss,
    FocalLoss,
    LabelSmoothingLoss,
)

# sphinx_gallery_thumbnail_number = 2
losses = {
    "cross-entropy": CrossEntropyLoss(reduction="none"),
    "label smoothing .1": LabelSmoothingLoss(alpha=0.1, reduction="none"),
    "entropy .3": EntropyRegularizedLoss(alpha=0.3, reduction="none"),
    "focal 3": FocalLoss(gamma=3, reduction="none"),
    "Brier": BrierLoss(reduction="none"),
    "BSCE-GRA 4": BSCEGRALoss(exponent=4, reduction="none"),
}
p = np.linspace(0.01, 0.99, 99)
z = torch.tensor(np.log(p / (1 - p)), requires_grad=True)
label = torch.zeros(len(p), dtype=torch.long)

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for (name, loss), style in zip(losses.items(), ["-", "--", "-.", ":", "-", "--"]):
    value = loss(torch.stack([z, torch.zeros_like(z)], dim=1), label)
    (slope,) = torch.autograd.grad(value.sum(), z)
    axes[0].plot(p, value.detach(), style, label=name)
    axes[1].plot(p, slope, style, label=name)
axes[0].set(xlabel="Probability of the label", ylabel="Loss", ylim=(0, 4))
axes[1].set(xlabel="Probability of the label", ylabel="Slope against the logit of the label")
axes[0].legend()

# %%
# Where does training end?
# ------------------------
# A sample whose three classes have the true probabilities .7, .2 and .1: gradient descent on the
# expected loss finds the prediction at which each loss comes to rest.
truth = torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
ends = {}
for name, loss in losses.items():
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([logits], lr=0.5)
    for _ in range(3000):
        optimizer.zero_grad()
        (truth * loss(logits.expand(3, 3), torch.arange(3))).sum().backward()
        optimizer.step()
    ends[name] = torch.softmax(logits.detach(), 0).numpy()

figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
left = np.zeros(len(ends))
for k, hatch in enumerate(["", "//", ".."]):
    widths = np.array([end[k] for end in ends.values()])
    ax.barh(list(ends), widths, left=left, hatch=hatch, edgecolor="white", label=f"class {k}")
    left += widths
for edge in (0.7, 0.9):
    ax.axvline(edge, color=plt.rcParams["text.color"], linestyle=":")
ax.invert_yaxis()
ax.set(xlim=(0, 1), xlabel="Prediction at rest (dotted: the true probabilities)")
ax.legend(bbox_to_anchor=(1.02, 1), loc="upper left")

# %%
# **Learned:** cross-entropy and Brier are proper: they end at the truth. The others end less
# confident, which cures a net that memorizes and hurts one that does not. Check the temperature of
# plain cross-entropy first: below 1, leave them.
