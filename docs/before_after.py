"""Draw the picture of the landing page and the README: ``python docs/before_after.py``."""

from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split

from skcalib.plots import ReliabilityDisplay
from skcalib.posthoc import PostHocCalibratedClassifier

X, y = make_classification(
    n_samples=4000, n_informative=8, n_classes=4, class_sep=0.8, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
boosting = HistGradientBoostingClassifier(random_state=0)
models = {
    "Before": boosting.fit(X_train, y_train),
    "After": PostHocCalibratedClassifier(clone(boosting)).fit(X_train, y_train),
}

figure, axes = plt.subplots(1, 2, figsize=(8.4, 5.2), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ReliabilityDisplay.from_estimator(model, X_test, y_test, name=name, ax=ax)
    confidence = model.predict_proba(X_test).max(axis=1).mean()
    numbers = ax.get_title().partition("\n")[2]
    says = f"{name}: says {confidence:.0%}, is right {model.score(X_test, y_test):.0%}"
    ax.set_title(f"{says}\n{numbers}", fontsize="medium")
figure.savefig(
    Path(__file__).parent / "_static" / "before_after.png", dpi=144, bbox_inches="tight"
)
