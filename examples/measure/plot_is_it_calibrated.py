"""
Is my classifier calibrated?
============================

Four classifiers of scikit-learn, with their default settings, say how sure they are about 2000
samples that they have not seen. A reliability diagram shows whether they are right as often as
they say.
"""

# %%
# Four models of the same data
# ----------------------------
import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from skcalib.metrics import calibration_error_interval, calibration_test
from skcalib.plots import ReliabilityDisplay

X, y = make_classification(
    4000, n_features=20, n_informative=4, n_redundant=8, class_sep=0.6, flip_y=0.1, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
models = {
    "Logistic regression": LogisticRegression(),
    "Naive Bayes": GaussianNB(),
    "Random forest": RandomForestClassifier(random_state=0),
    "Decision tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
}
for model in models.values():
    model.fit(X_train, y_train)

# %%
# Diagrams
# --------
# Points on the diagonal are right as often as they say; below it, the model is overconfident.
# The bars are intervals of the accuracy: one that reaches the diagonal may be chance. A dot is as
# large as its bin, and no line goes through bins of fewer than ten samples.
figure, axes = plt.subplots(2, 2, figsize=(8, 10.4), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items()):
    ReliabilityDisplay.from_predictions(y_test, model.predict_proba(X_test), ax=ax)
    ax.set_title(name)

# %%
# Numbers
# -------
# The error has an interval, and a test says whether it could be chance. The matrix of both
# columns is evaluated on the predicted class; ``predict_proba(X)[:, 1]`` alone would be evaluated
# on the positive class, and give other numbers.
for name, model in models.items():
    proba = model.predict_proba(X_test)
    low, high = calibration_error_interval(y_test, proba, random_state=0)
    result = calibration_test(y_test, proba, random_state=0)
    print(f"{name:20} ECE {result.statistic:.3f} [{low:.3f}, {high:.3f}], p = {result.pvalue:.3f}")

# %%
# **Learned:** a model can be accurate and unsure (the forest), or sure and wrong (naive Bayes
# counts the redundant features as independent witnesses; a tree believes its leaves). Look at the
# diagram, and at the interval of the error.
