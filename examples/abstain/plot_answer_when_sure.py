"""
Answer only when sure
=====================

A classifier that may decline some samples can keep the error rate of its answers below a limit.
Here the limit is 2 %, and it is kept on new samples, not only on those the threshold was chosen
on.
"""

# %%
# A classifier and a limit
# ------------------------
# The threshold on the confidence is tested on out-of-fold predictions of the training samples:
# with probability .9 the error rate of the answers to come is at most ``risk``.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skcalib.metrics import coverage_at_risk
from skcalib.plots import RiskCoverageDisplay
from skcalib.selection import SelectiveClassifier

X, y = load_digits(return_X_y=True)
X = X / 16
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
model = LogisticRegression(max_iter=300)
careful = SelectiveClassifier(model, risk=0.02, confidence_level=0.9).fit(X_train, y_train)

answered = careful.accept(X_test)
wrong = careful.predict(X_test)[answered] != y_test[answered]
print(f"all samples: {np.mean(careful.estimator_.predict(X_test) != y_test):.1%} wrong")
print(f"answers {answered.mean():.0%} of the samples, {wrong.mean():.1%} of them wrong")

# %%
# Risk against coverage
# ---------------------
proba = careful.predict_proba(X_test)
RiskCoverageDisplay.from_predictions(y_test, proba, threshold=careful.threshold_)
plt.show()

# %%
# Why not read the threshold off the curve?
# -----------------------------------------
# Because the curve was lucky where it was cut. Over 100 splits, a threshold that keeps 2 % on one
# half of the samples is applied to the other half.
rng = np.random.default_rng(0)
proba_all = LogisticRegression(max_iter=300).fit(X[:400], y[:400]).predict_proba(X[400:])
confidence, right = proba_all.max(axis=1), proba_all.argmax(axis=1) == y[400:]
rates = []
for _ in range(100):
    first = rng.permutation(len(right)) < len(right) // 2
    _, threshold = coverage_at_risk(
        y[400:][first], proba_all[first], risk=0.02, return_threshold=True
    )
    kept = ~first & (confidence >= threshold)
    rates.append(1 - right[kept].mean())
print(f"above 2 % in {np.mean(np.array(rates) > 0.02):.0%} of the splits")

# %%
# **Learned:** abstention buys accuracy, and the curve shows its price beforehand. Take the
# threshold from ``SelectiveClassifier``, which tests it; one read off the curve breaks its promise
# about half the time.
