"""
Why are these images hard?
==========================

A difficulty is a number without a reason. Descriptions of the images give one: which of them go
with the hard images of a class? Rank both within class, so that a description that only names a
hard class explains nothing, and correlate the ranks.
"""

# %%
# Difficulty, and descriptions
# ----------------------------
# What a digit looks like is measured from its pixels here: an array with a column for every
# description, larger where it fits better. The difficulty is that of scorers that have not seen
# the digit.
import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm, rankdata
from sklearn.datasets import load_digits

from skcalib.difficulty import RMDScorer, cross_val_difficulty

X, y = load_digits(return_X_y=True)
difficulty = cross_val_difficulty(RMDScorer(), X, y)

images = X.reshape(-1, 8, 8) / 16
ink = images.sum(axis=(1, 2))
center = (images.sum(axis=1) @ np.arange(8) / ink, images.sum(axis=2) @ np.arange(8) / ink)
descriptions = {
    "much ink": ink,
    "few gray pixels": -(images * (1 - images)).sum(axis=(1, 2)),
    "off center": np.hypot(center[0] - 3.5, center[1] - 3.5),
    "ink at the left and right edges": images[:, :, [0, -1]].sum(axis=(1, 2)),
    "a number drawn at random": np.random.default_rng(0).uniform(size=len(y)),
}

# %%
# The correlation within class
# ----------------------------
# The ranks of every class are centered, so the products of all classes add up to one correlation:
# with one class, Spearman's. Over permutations of the images within classes it has mean 0 and a
# known variance, which gives the p-value.


def correlation_within_class(description, difficulty, y):
    products, squares, variance = 0.0, np.zeros(2), 0.0
    for label in np.unique(y):
        rows = y == label
        n = np.count_nonzero(rows)
        if n < 2:  # a single image has no rank
            continue
        a, b = (rankdata(values[rows]) / n for values in (description, difficulty))
        a, b = a - a.mean(), b - b.mean()
        products += a @ b
        squares += a @ a, b @ b
        variance += (a @ a) * (b @ b) / (n - 1)
    return products / np.sqrt(squares.prod()), 2 * norm.sf(abs(products) / np.sqrt(variance))


found = {
    name: correlation_within_class(values, difficulty, y) for name, values in descriptions.items()
}
for name, (correlation, p_value) in found.items():
    print(f"{name:32} {correlation:6.2f}   p = {p_value:.1g}")

# %%
# What goes with hard digits
# --------------------------
names = sorted(found, key=lambda name: found[name][0])
fig, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
ax.barh(names, [found[name][0] for name in names], color="#0072B2")
ax.axvline(0, color=plt.rcParams["axes.edgecolor"], linewidth=plt.rcParams["axes.linewidth"])
ax.set_xlabel("rank correlation with difficulty, within class")
plt.show()

# %%
# **Learned:** digits that lie off center, or reach the left and right edges, are harder than
# others of their class. How gray the pixels are says nothing about it, and neither does a random
# number.
#
# With photos, a model of images and texts compares every image with every description in words.
# The rest stays the same::
#
#     from sklearn.preprocessing import normalize
#     from skcalib.embeddings import OpenClipEmbedder
#
#     embedder = OpenClipEmbedder("ViT-B-32", pretrained="openai")
#     features = embedder.transform(files)
#     difficulty = RMDScorer().fit(features, y).difficulty(features, y)
#     prompts = ["a photo", "a blurry photo", "a photo of several objects"]
#     similarity = normalize(features) @ normalize(embedder.encode_text(prompts)).T
#     for name, column in zip(prompts, similarity.T):
#         print(name, *correlation_within_class(column, difficulty, y))
#
# Include a neutral description ("a photo"), to which hard images may be less similar as well, and
# mind the number of descriptions when you read the p-values. A correlation is no cause, but a hint
# where to look.
