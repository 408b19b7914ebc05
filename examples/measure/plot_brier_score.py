"""
What is my Brier score made of?
===============================

A Brier score mixes two things: how well a model separates classes, and whether its probabilities
are right. A calibrator can only repair the second.

It is Eq. 3 of [GRA] with both exponents 2: :ref:`paper-gra`.
"""

# %%
# Eight models of the digits
# --------------------------
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from skcalib.metrics import score_decomposition
from skcalib.plots import DecompositionDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
models = {
    "logistic regression": LogisticRegression(max_iter=1000),
    "discriminant analysis": LinearDiscriminantAnalysis(),
    "naive Bayes, Gaussian": GaussianNB(),
    "naive Bayes, counts": MultinomialNB(),
    "nearest neighbors": KNeighborsClassifier(),
    "tree": DecisionTreeClassifier(min_samples_leaf=3, random_state=0),
    "forest": RandomForestClassifier(random_state=0),
    "extra trees": ExtraTreesClassifier(random_state=0),
}
parts = {
    name: score_decomposition(y_test, model.fit(X_train, y_train).predict_proba(X_test))
    for name, model in models.items()
}

# %%
# Score = miscalibration - discrimination + uncertainty
# -----------------------------------------------------
# The uncertainty is a property of the labels, the same for all models. Further up tells the
# classes apart better; further left is better calibrated. Models on one slanted line have the
# same score.
figure, ax = plt.subplots(figsize=(9, 6), layout="constrained")
for name, model in models.items():
    DecompositionDisplay.from_predictions(y_test, model.predict_proba(X_test), name=name, ax=ax)

# %%
for name, part in sorted(parts.items(), key=lambda item: item[1].score):
    print(
        f"{name:22} Brier {part.score:.3f} = {part.miscalibration:.3f} miscalibration "
        f"- {part.discrimination:.3f} discrimination + {part.uncertainty:.3f}"
    )

# %%
# **Learned:** of two models with the same score, the less calibrated one is the better choice if a
# calibrator follows: miscalibration can be repaired, missing discrimination cannot.
