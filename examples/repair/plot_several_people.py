"""
Several people, and a model
===========================

Thirty people label digits. Some of them are good, some guess. How many votes does a sample need,
and who can be trusted?
"""

# %%
# Votes of people of different skill
# ----------------------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from skcalib.labels import LabelIssueFinder

X, true = load_digits(return_X_y=True)
rng = np.random.default_rng(0)
skill = rng.beta(6, 2.5, 30)


def votes_of(n_votes):
    """Return votes of that many people on each sample, NaN for all others."""
    votes = np.full((len(true), len(skill)), np.nan)
    for row, label in enumerate(true):
        for who in rng.choice(len(skill), n_votes, replace=False):
            right = rng.uniform() < skill[who]
            votes[row, who] = label if right else (label + rng.integers(1, 10)) % 10
    return votes


# %%
# Majority, votes alone, votes and features
# -----------------------------------------
# A majority forgets who votes. Votes alone know the people, but nothing of the samples.
numbers, right = [2, 3, 5], {"majority": [], "votes alone": [], "votes and features": []}
for n_votes in numbers:
    votes = votes_of(n_votes)
    counts = np.stack([(votes == k).sum(axis=1) for k in range(10)], axis=1)
    # Ties are broken at random.
    majority = (counts + rng.uniform(0, 0.1, counts.shape)).argmax(axis=1)
    alone = LabelIssueFinder().fit(None, votes=votes)
    finder = LabelIssueFinder().fit(X, votes=votes)
    for name, label in zip(
        right, (majority, alone.issues_["label"], finder.issues_["label"]), strict=True
    ):
        right[name].append((label == true).mean())
    if n_votes == 3:
        table = finder.annotators_

figure, (left, middle) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for (name, values), style in zip(right.items(), [":o", "--s", "-D"], strict=True):
    left.plot(numbers, values, style, label=name)
left.set(xlabel="Votes per sample", ylabel="Fraction of right labels", xticks=numbers)
left.legend()
error = np.abs(np.stack([table["accuracy_low"], table["accuracy_high"]]) - table["accuracy"])
middle.errorbar(skill, table["accuracy"], yerr=error, fmt="o", markersize=4, linewidth=1)
ends = [0.3, 1.0]
middle.plot(ends, ends, linewidth=0.8, color=plt.rcParams["text.color"])
middle.set(xlabel="True accuracy of the annotator", ylabel="Estimated, three votes per sample")
plt.show()

# %%
# The model is one more opinion, and a good one here: with it, two votes are worth more than five
# without. Where people and the model err together, no vote shows it; checks do.
for row in np.sort(table, order="accuracy")[:3]:
    print(f"annotator {row['annotator']}: {row['accuracy']:.2f}, worst at {row['worst_class']}")
