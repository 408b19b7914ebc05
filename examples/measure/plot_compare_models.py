"""
Which model is better calibrated?
=================================

Three models have seen the same patients. Their errors differ, but so would those of one model on
other patients. Which differences are real?
"""

# %%
# Three models of the breast cancers
# ----------------------------------
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.metrics import compare_calibration

X, y = load_breast_cancer(return_X_y=True)
models = {
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random forest": RandomForestClassifier(random_state=0),
    "naive Bayes": GaussianNB(),
}
proba = {}
for name, model in models.items():
    proba[name] = model.fit(X[::2], y[::2]).predict_proba(X[1::2])[:, 1]
table = compare_calibration(y[1::2], proba, random_state=0, as_frame=True)
print(table[["model", "error", "low", "high", "gain", "pvalue"]].round(3).to_string(index=False))

# %%
# Errors, and differences from the first model
# --------------------------------------------
# The models share their patients, so look at the interval of a difference (right), not at whether
# two intervals (left) overlap. The p-values are of a paired test: would recalibration gain more
# than it would for the first model?
figure, axes = plt.subplots(1, 2, figsize=(9, 2.8), sharey=True, layout="constrained")
for i, row in table.iterrows():
    axes[0].plot([row["low"], row["high"]], [i, i], color=f"C{i}", linewidth=3)
    axes[0].plot(row["error"], i, "osD"[i], color=f"C{i}", markersize=8)
    ends = row["difference_low"], row["difference_high"]
    axes[1].plot(ends, [i, i], color=f"C{i}", linewidth=3)
    if i:
        p = row["pvalue"]
        shown = f"p = {p:.2f}" if p >= 0.01 else "p < 0.01"
        axes[1].text(0.003, i - 0.12, shown, fontsize="small")
axes[1].axvline(0, color=plt.rcParams["text.color"], linestyle=":")
axes[0].set_yticks(range(3), table["model"])
axes[0].set_ylim(2.5, -0.5)
axes[0].set(xlabel="Calibration error, 95 % interval", xlim=(0, None))
axes[1].set(xlabel="Difference from logistic regression")
plt.show()

# %%
# **Learned:** compare models on the same samples. With 284 patients, an error is uncertain by .05,
# and so is a difference of two; the paired test is clear about naive Bayes.
