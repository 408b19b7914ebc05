"""
Everything on one page
======================

Before you hand a model to somebody else, write down what is known of its confidence: whether its
numbers can be believed, for which classes they cannot, when it should decline, what would help.
"""

# %%
# A model to evaluate, and samples it has not seen
# ------------------------------------------------
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skcalib.report import CalibrationReport

# sphinx_gallery_thumbnail_path = '_static/report.png'
digits = load_digits()
X, y, images = digits.data, digits.target, digits.images
model = make_pipeline(PCA(20, random_state=0), GaussianNB()).fit(X[::2], y[::2])
report = CalibrationReport.from_estimator(
    model, X[1::2], y[1::2], images=images[1::2], title="Digits, naive Bayes"
)

# %%
# Numbers for a program
# ---------------------
print(report)
off = [entry["name"] for entry in report.results_["group_tests"] if entry["significant"]]
print(off, report.results_["calibrators"]["best"])

# %%
# The page
# --------
# A notebook shows it like this; ``report.save("report.html")`` writes it to a file.
report

# %%
# **Learned:** this model says 96 % and is right 93 % of the time, and its answer "1" only 78 %.
# A calibrator halves the log-loss. Once calibrated, the model may decline about a third of the
# samples, and promise that at most 2 % of its answers are wrong.
