"""
Calibrate inside a pipeline and a grid search
=============================================

A calibrator is part of a model like a scaler or a penalty: it is fitted out-of-fold inside
``fit``, and chosen by cross-validation.
"""

# %%
# The whole chain is one estimator
# --------------------------------
import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer

from skcalib.plots import ReliabilityDisplay
from skcalib.posthoc import (
    BetaCalibration,
    IsotonicCalibration,
    PostHocCalibratedClassifier,
    TemperatureScaling,
)

X, y = make_classification(
    4000, n_features=20, n_informative=4, n_redundant=8, class_sep=0.6, flip_y=0.1, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
bayes = GaussianNB()
chain = make_pipeline(PowerTransformer(), PostHocCalibratedClassifier(bayes))

# %%
# Which calibrator? Ask cross-validation
# --------------------------------------
# By the log-loss, a proper score: the calibration error alone would also praise a model that
# knows nothing and says so.
search = GridSearchCV(
    chain,
    {
        "posthoccalibratedclassifier__calibrator": [
            TemperatureScaling(),
            BetaCalibration(),
            IsotonicCalibration(),
        ]
    },
    scoring="neg_log_loss",
    cv=5,
).fit(X_train, y_train)
table = zip(search.cv_results_["params"], search.cv_results_["mean_test_score"])
for params, score in table:
    calibrator = params["posthoccalibratedclassifier__calibrator"]
    print(f"{type(calibrator).__name__:20} log-loss {-score:.3f}")

# %%
# Before and after
# ----------------
before = make_pipeline(PowerTransformer(), bayes).fit(X_train, y_train)
figure, axes = plt.subplots(1, 2, figsize=(8.4, 5.6), layout="constrained")
for ax, model, name in zip(axes, [before, search], ["naive Bayes", "with the calibrator found"]):
    ReliabilityDisplay.from_estimator(model, X_test, y_test, name="", ax=ax)
    ax.set_title(name)

# %%
# **Learned:** ``PostHocCalibratedClassifier`` around the classifier, inside the pipeline, keeps
# the calibrator away from samples that the classifier was trained on. A model trained elsewhere
# goes in as ``FrozenEstimator(model)``, with samples it has not seen.
