"""Draw the picture of the landing page and the README: ``python docs/before_after.py``.

One picture for light pages and one for dark ones, and the same for phones, one model above the
other. All numbers are computed here.
"""

from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.ticker import PercentFormatter
from scipy.stats import binomtest
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from skcalib.metrics import (
    calibration_error_interval,
    expected_calibration_error,
    reliability_curve,
)
from skcalib.posthoc import PostHocCalibratedClassifier

X, y = make_classification(
    n_samples=4000, n_informative=8, n_classes=4, class_sep=0.8, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
X_new, X_test, y_new, y_test = train_test_split(X_test, y_test, train_size=500, random_state=0)
model = HistGradientBoostingClassifier(random_state=0).fit(X_train, y_train)
MODELS = {
    "Before": model,
    "After": PostHocCalibratedClassifier(FrozenEstimator(model)).fit(X_new, y_new),
}


def draw(ax, name, model, color, gray):
    """Dots with 95 % intervals, sized by their counts, and the distance to the diagonal."""
    proba = model.predict_proba(X_test)
    curve = reliability_curve(y_test, proba, n_bins=10)
    many = curve.bin_weight >= 10
    x, accuracy, count = curve.prob_pred[many], curve.prob_true[many], curve.bin_weight[many]
    ends = [
        binomtest(round(a * n), round(n)).proportion_ci(method="wilson")
        for a, n in zip(accuracy, count, strict=True)
    ]
    ax.plot([0, 1], [0, 1], color=gray, linewidth=1)
    ax.fill_between(x, x, accuracy, color=color, alpha=0.25, linewidth=0)
    ax.vlines(x, *zip(*ends, strict=True), color=color)
    ax.scatter(x, accuracy, s=20 + count / 5, color=color, zorder=3)
    says, right = proba.max(axis=1).mean(), model.score(X_test, y_test)
    ax.set_title(
        f"{name}: says {100 * says:.0f} %, is right {100 * right:.0f} %\n",
        loc="left",
        fontweight="bold",
        fontsize=14,
    )
    error = 100 * expected_calibration_error(y_test, proba)
    low, high = calibration_error_interval(y_test, proba, random_state=0)
    ax.text(
        *(0, 1.03),
        f"calibration error {error:.1f} points, 95 % interval {100 * low:.1f} to {100 * high:.1f}",
        transform=ax.transAxes,
        color=gray,
    )
    left = f"at most {100 * high:.1f} points\nare left" if low == 0 else "too sure"
    ax.text(0.76, 0.42, left, color=color)
    ax.set(xlim=(0.25, 1.02), ylim=(0.25, 1.02), aspect="equal", xlabel="what the model says")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        axis.set_ticks([0.25, 0.5, 0.75, 1])
    ax.spines[["top", "right"]].set_visible(False)


def picture(path, shape, size, style, colors, gray):
    """Draw both models, side by side or one above the other."""
    with plt.style.context([style, {"font.size": 11}]):
        figure, axes = plt.subplots(*shape, figsize=size, layout="constrained")
        for ax, color, (name, model) in zip(axes, colors, MODELS.items(), strict=True):
            draw(ax, name, model, color, gray)
        for ax in axes[: shape[0]]:
            ax.set_ylabel("how often it is right")
        figure.savefig(path, dpi=144, transparent=style != "default")


static = Path(__file__).parent / "_static"
LIGHT = "default", ("#d55e00", "#009e73"), "#555555"
DARK = "dark_background", ("#ff9a4d", "#2fd6a3"), "#aaaaaa"
for end, shape, size in (("", (1, 2), (10, 5.2)), ("_phone", (2, 1), (5, 10.2))):
    picture(static / f"before_after{end}.png", shape, size, *LIGHT)
    picture(static / f"before_after{end}_dark.png", shape, size, *DARK)
