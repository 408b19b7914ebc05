"""
The hardest patches of two photographs
======================================

Patches of a temple and of a flower, labeled by the photograph they come from. Which are typical,
which could be from either, and which carry the wrong label? For a folder of images and a
pre-trained model, see :ref:`sphx_glr_auto_examples_difficulty_hardest_images.py`.

The score is Eq. 5 of [RMD], the picture as in its Figure 1: :ref:`paper-rmd`.
"""

# %%
# Cut two photographs into patches
# --------------------------------
# Ten of them get the other label.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images

from skcalib.datasets import flip_labels
from skcalib.labels import LabelIssueFinder
from skcalib.plots import HardestSamplesDisplay

size = 40
patches, names = [], []
for name, image in zip(["temple", "flower"], load_sample_images().images):
    height, width = (n // size * size for n in image.shape[:2])
    grid = image[:height, :width].reshape(height // size, size, width // size, size, 3)
    patches.append(grid.swapaxes(1, 2).reshape(-1, size, size, 3))
    names += [name] * len(patches[-1])
patches, names = np.concatenate(patches), np.array(names)
labels, flipped = flip_labels(names, fraction=10 / len(names), random_state=0)

# %%
# Features: colors and edges
# --------------------------
# Quantiles of every color and of the differences between neighboring pixels. A pre-trained model
# (:class:`~skcalib.embeddings.OpenClipEmbedder`) would do better.
gray = patches.mean(axis=3)
edges = np.abs(np.diff(gray, axis=1)).reshape(len(patches), -1)
colors = patches.reshape(len(patches), -1, 3) / 255
levels = [0.1, 0.5, 0.9]
features = np.column_stack(
    [np.hstack(np.quantile(colors, levels, axis=1)), np.quantile(edges, levels, axis=1).T]
)

# %%
# The most suspicious, and the least
# ----------------------------------
issues = LabelIssueFinder().fit(features, labels).issues_
HardestSamplesDisplay.from_predictions(
    patches, issues["margin"], labels=labels, suggested_labels=issues["suggested_label"]
)
plt.show()
most_suspicious = np.argsort(issues["p_label_correct"])[:10]
print(f"{flipped[most_suspicious].sum()} of the ten most suspicious labels are wrong")

# %%
# **Learned:** the ten most suspicious labels are those that were changed. The least suspicious
# patches show the sky, which only one of the photographs has.
