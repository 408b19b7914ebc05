"""
Which class is miscalibrated, and for whom?
===========================================

One number for the whole model hides its classes, and groups of its users. A panel per class and a
line per group show them.
"""

# %%
# A model that cares about rare classes
# -------------------------------------
# ``class_weight="balanced"`` trains as if all classes were equally frequent.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skcalib.metrics import groupwise_calibration_error
from skcalib.plots import ClassReliabilityDisplay

X, y = make_classification(
    10_000,
    n_informative=6,
    n_classes=4,
    weights=[0.6, 0.25, 0.1, 0.05],
    class_sep=0.7,
    random_state=0,
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
model = LogisticRegression(class_weight="balanced").fit(X_train, y_train)
proba = model.predict_proba(X_test)

# %%
# Every class against the rest
# ----------------------------
# The class with the largest error comes first. Below the diagonal, its probability is too high.
ClassReliabilityDisplay.from_predictions(y_test, proba, n_columns=2)
plt.show()

# %%
# Groups
# ------
# Any column of labels makes groups; here, those to which the model answers a frequent or a rare
# class. The p-values are corrected for the number of groups.
by = np.where(proba.argmax(axis=1) < 2, "frequent", "rare")
table = groupwise_calibration_error(y_test, proba, by, random_state=0)
for group in table:
    print(
        f"{group['group']:8} {group['n_samples']:4} samples, error {group['error']:.3f} "
        f"[{group['low']:.3f}, {group['high']:.3f}], p = {group['pvalue']:.3f}"
    )

# %%
# **Learned:** balanced weights make the frequent class too improbable and the rare ones too
# probable. :class:`~skcalib.posthoc.VectorScaling` repairs it, class by class;
# :class:`~skcalib.posthoc.PriorShift` repairs it where nothing else is wrong.
