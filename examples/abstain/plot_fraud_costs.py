"""
Which payments to stop
======================

One payment of 200 is a fraud. The more probable class is never "fraud", and a threshold of .5
stops nothing. What to stop follows from probabilities that are right and from costs, which are
another for every payment: its amount.
"""

# %%
# Payments with amounts
# ---------------------
# Drawn, so that the truth is known. The classifier is trained with balanced class weights, as many
# are for rare classes: it ranks well, and its probabilities are far too high.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.metrics import cost_summary
from skcalib.plots import DecisionCurveDisplay
from skcalib.posthoc import PostHocCalibratedClassifier
from skcalib.selection import MinimumCostClassifier

rng = np.random.default_rng(0)
n = 30_000
amount = rng.lognormal(5, 1, n)
X = np.column_stack([rng.normal(size=(n, 5)), amount])
y = (rng.random(n) < expit(-8.5 + 2 * X[:, 0] + 1.5 * X[:, 1])).astype(int)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)
print(f"{y.mean():.2%} are frauds, of {amount[y == 1].mean():.0f} on average")


# %%
# Costs of every payment
# ----------------------
# To let a fraud pass costs its amount, to stop an honest payment 5. A person can look at it for
# 2, and is right.
def costs(X):
    table = np.zeros((len(X), 3, 2))  # pass, stop, ask; honest, fraud
    table[:, 0, 1] = X[:, -1]
    table[:, 1, 0] = 5
    table[:, 2] = 2
    return table


model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
decisions = ["pass", "stop", "ask"]
plain = MinimumCostClassifier(model, costs, decisions=decisions).fit(X_train, y_train)
calibrated = PostHocCalibratedClassifier(model, "sigmoid")
careful = MinimumCostClassifier(calibrated, costs, decisions=decisions).fit(X_train, y_train)
for name, clf in (("as it is", plain), ("calibrated", careful)):
    taken, count = np.unique(clf.predict(X_test), return_counts=True)
    shown = ", ".join(f"{decision} {k}" for decision, k in zip(taken, count))
    print(f"{name:11} costs {-clf.score(X_test, y_test):.3f} a payment: {shown}")

# %%
# Beside the costs that it predicts, and doing the same with all payments
# -----------------------------------------------------------------------
proba = plain.predict_proba(X_test)
table = cost_summary(y_test, proba, costs(X_test), decisions=decisions, random_state=0)
for row in table:
    print(
        f"{row['rule']:13} {row['cost']:.3f} ({row['low']:.3f} to {row['high']:.3f}), "
        f"predicted {row['predicted']:.3f}"
    )

# %%
# At all costs
# ------------
# For rare events the thresholds have a logarithmic axis. Above one half almost nothing is stopped,
# and the bands say little.
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
thresholds = np.geomspace(0.0005, 0.5, 60)
options = {"ax": ax, "random_state": 0, "predicted": False, "thresholds": thresholds}
DecisionCurveDisplay.from_predictions(y_test, proba, name="as it is", **options)
DecisionCurveDisplay.from_predictions(
    y_test, careful.predict_proba(X_test), name="calibrated", **options
)
plt.show()

# %%
# **Learned:** calibrate first, then let the costs decide. Where amounts differ, so do thresholds.
