"""
Three annotators, from their votes to a model
=============================================

Three people have labeled images of digits, in one long file of who said what. Who agrees with
whom, and is that a good sign? Which label does each image get, what should be looked at again,
and is the model better for it?
"""

# %%
# A long file of votes
# --------------------
# The votes are drawn, so the truth is known. Ann is right nine times out of ten. Ben takes most
# 8s for a 1 and some 9s for a 3. Eve looks at two digits in five; for the others she writes down
# what Ben has written.
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skcalib.labels import (
    LabelCleaningClassifier,
    LabelIssueFinder,
    annotator_agreement,
    votes_from_long,
)
from skcalib.plots import HardestSamplesDisplay
from skcalib.report import LabelReviewPage

rng = np.random.default_rng(0)
digits = load_digits()
X, true = digits.data[:900] / 16, digits.target[:900]
X_test, y_test = digits.data[900:] / 16, digits.target[900:]
files = TemporaryDirectory()
folder = Path(files.name)


def err(labels, rate):
    """Return labels of which so many are replaced by another one."""
    other = (labels + rng.integers(1, 10, len(labels))) % 10
    return np.where(rng.random(len(labels)) < rate, other, labels)


ann = err(true, 0.12)
ben = err(true, 0.1)
ben = np.where((true == 8) & (rng.random(900) < 0.7), 1, ben)
eve = np.where(rng.random(900) < 0.4, err(true, 0.1), ben)
parts = []
for i, (who, votes) in enumerate({"ann": ann, "ben": ben, "eve": eve}.items()):
    seen = np.delete(np.arange(900), range(100 * i, 100 * i + 100))  # all but a hundred
    parts.append(pd.DataFrame({"image": seen, "annotator": who, "label": votes[seen]}))
pd.concat(parts).to_csv(folder / "votes.csv", index=False)

table = pd.read_csv(folder / "votes.csv")
print(table.sample(4, random_state=0).to_string(index=False))

# %%
# Who agrees with whom
# --------------------
votes = votes_from_long(table["image"], table["annotator"], table["label"], index=range(900))
agreement = annotator_agreement(votes)
print(f"alpha {agreement.alpha:.2f} ({agreement.alpha_low:.2f} to {agreement.alpha_high:.2f})")
pairs = pd.DataFrame(agreement.pairs)[["annotator", "other", "n_samples", "agreement", "kappa"]]
print(pairs.round(2))

# %%
# Ben and eve agree best: by counting alone, ann is the odd one out.
#
# A consensus that has seen the images
# ------------------------------------
# The finder weighs every annotator, and a model of the images breaks the ties.
finder = LabelIssueFinder().fit(X, votes=votes)
consensus = finder.issues_["label"]
wide = table.pivot(index="image", columns="annotator", values="label")
majority = wide.mode(axis=1)[0].to_numpy().astype(int)
right = {"majority": np.mean(majority == true), "consensus": np.mean(consensus == true)}
for name, rate in right.items():
    print(f"{name:9} right in {rate:.1%}")

# %%
# Who copies whom
# ---------------
# People who err independently seldom make the same mistake. So look at images on which two people
# differ from the consensus: of nine wrong digits, how often do they write the same one?
# (``finder.copying_pairs_`` names pairs who copy, but needs five annotators.)
same = {}
for a, b in (("ben", "eve"), ("ann", "eve"), ("ann", "ben")):
    voted = wide[[a, b]].dropna()
    both_wrong = voted[(voted[a] != consensus[voted.index]) & (voted[b] != consensus[voted.index])]
    same[f"{a}, {b}"] = np.mean(both_wrong[a] == both_wrong[b])
    print(f"{a} and {b}: {len(both_wrong)} images, the same digit in {same[f'{a}, {b}']:.0%}")

figure, axes = plt.subplots(1, 2, figsize=(9, 2.6), layout="constrained", sharey=True)
axes[0].barh(list(same), [agreement.pairs["agreement"][i] for i in (0, 1, 2)], color="C0")
axes[1].barh(list(same), list(same.values()), color="C1")
axes[1].axvline(1 / 9, color=plt.rcParams["text.color"], linestyle=":", label="by chance")
axes[0].set(xlabel="Same label, of all images", xlim=(0, 1))
axes[1].set(xlabel="Same label, where both are wrong", xlim=(0, 1))
axes[1].legend()
axes[0].invert_yaxis()
plt.show()

# %%
# What to look at again
# ---------------------
# A colleague gets the forty least certain images on one page, which needs nothing but a browser,
# and sends back ``checks.csv``. Here, the answers are the truth. Above each image are the
# consensus, the answer if it differs, and how uncertain the consensus is.
certainty = finder.label_proba_.max(axis=1)
rows = np.argsort(certainty)[:40]
page = LabelReviewPage.from_finder(finder, images=digits.images[:900], positions=rows)
page.save(folder / "review.html")
positions, answers = rows, true[rows]  # read_checks(folder / "checks.csv")

repaired = consensus.copy()
repaired[positions] = answers
right["consensus, 40 checked"] = np.mean(repaired == true)
print(f"{np.sum(consensus[rows] != answers)} of 40 changed: {np.mean(repaired == true):.1%} right")

HardestSamplesDisplay.from_predictions(
    digits.images[:900], 1 - certainty, labels=consensus, suggested_labels=true
)
plt.show()

# %%
# The model
# ---------
# The same classifier learns the majority, the repaired labels and, inside
# :class:`~skcalib.labels.LabelCleaningClassifier`, the probabilities of all classes by the votes.
model = LogisticRegression(C=0.1, max_iter=1000)
cleaning = LabelCleaningClassifier(model, FrozenEstimator(finder)).fit(X, consensus)
accuracy = {"soft labels of the votes": cleaning.score(X_test, y_test)}
for name, y in {"majority": majority, "consensus, 40 checked": repaired, "truth": true}.items():
    accuracy[name] = model.fit(X, y).score(X_test, y_test)
for name, value in accuracy.items():
    print(f"{name:25} {value:.1%} right on new images")
files.cleanup()

# %%
# **Learned:** agreement is not accuracy. Someone who copies agrees best, and shared mistakes show
# it. A model of the images knows whom to believe where people differ.
