"""
Find and repair wrong labels
============================

A fifth of the labels of the digits is wrong. The finder says which, with a probability, and what
they should be.
"""

# %%
# Who is wrong?
# -------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skcalib.datasets import flip_labels
from skcalib.difficulty import KMeansPrototypeScorer, LossScorer
from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder
from skcalib.plots import HardestSamplesDisplay

# sphinx_gallery_thumbnail_number = 2
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.3, random_state=0)
noisy, flipped = flip_labels(y_train, fraction=0.2, random_state=0)
finder = LabelIssueFinder().fit(X_train, noisy)
issues = finder.issues_
print(f"estimated noise {finder.noise_rate_:.3f}, true noise {flipped.mean():.3f}")
found = issues["is_issue"]
print(f"precision {flipped[found].mean():.3f}, recall {found[flipped].mean():.3f}")

# %%
# Precision among the most suspicious
# -----------------------------------
# Beside the finder: the out-of-fold loss of a classifier, and the distance to prototypes.
scores = {
    "LabelIssueFinder": 1 - issues["p_label_correct"],
    "out-of-fold loss": LossScorer(LogisticRegression(max_iter=300), cv=5).fit_difficulty(
        X_train, noisy
    ),
    "k-means prototypes": KMeansPrototypeScorer(random_state=0).fit_difficulty(X_train, noisy),
}
figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
k = np.arange(1, 2 * flipped.sum())
for (name, score), style in zip(scores.items(), ["-", "--", ":"]):
    order = np.argsort(-score, kind="stable")
    ax.plot(k, np.cumsum(flipped[order])[: len(k)] / k, style, label=name)
ax.axvline(flipped.sum(), color=plt.rcParams["text.color"], linewidth=0.8)
ax.set(xlabel="Most suspicious samples", ylabel="Fraction with a wrong label", ylim=(0, 1.02))
ax.legend()

# %%
# Given label, suggested label
# ----------------------------
# The number is the margin: how much further away the given class is than the suggested one.
HardestSamplesDisplay.from_predictions(
    X_train.reshape(-1, 8, 8),
    issues["margin"],
    labels=issues["label"],
    suggested_labels=issues["suggested_label"],
)
plt.show()

# %%
# Train on what is left, or on what it should be
# ----------------------------------------------
model = LogisticRegression(max_iter=300)
print(f"as given:    {model.fit(X_train, noisy).score(X_test, y_test):.3f}")
for action in ["drop", "relabel", "soft"]:
    cleaned = LabelCleaningClassifier(clone(model), action=action).fit(X_train, noisy)
    print(f"{action + ':':12} {cleaned.score(X_test, y_test):.3f}")
print(f"true labels: {model.fit(X_train, y_train).score(X_test, y_test):.3f}")

# %%
# **Learned:** the most suspicious labels are wrong, their number is known without looking at them,
# and training on repaired labels recovers most of what they cost.
