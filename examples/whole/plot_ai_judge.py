"""
An AI answers, and an AI judges
===============================

A language model answers the questions of customers and says how sure it is. May it answer alone?
And how good were last month's answers, of which a person has read a hundred?
"""

# %%
# Answers with a confidence
# -------------------------
# The answers are drawn, so the truth is known: the model knows more about some questions than
# about others, and is far too sure. There is a second sign besides its confidence. Each question
# was asked five times, and ``agree`` counts how many of the other four answers are the same.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression

from skcalib.metrics import calibration_error_interval, prediction_powered_interval
from skcalib.plots import ReliabilityDisplay, RiskCoverageDisplay
from skcalib.selection import SelectiveClassifier

rng = np.random.default_rng(0)


def ask(n):
    """Return the confidence and the agreement of n answers, and whether they are right."""
    known = rng.normal(1.2, 2.2, n)
    confidence = np.clip(5 * np.round(16 + known + rng.normal(0, 1, n)), 50, 100) / 100
    agree = rng.binomial(4, expit(known))
    return np.column_stack([confidence, agree]), rng.random(n) < expit(known)


X, right = ask(4000)  # questions with known answers
confidence = X[:, 0]
calibration_error = calibration_error_interval(right, confidence, random_state=0)
print(f"{confidence.mean():.0%} sure on average, {right.mean():.0%} right")
print("calibration error {:.2f} to {:.2f}".format(*calibration_error))

# %%
# Answer, or pass the question on to a person
# -------------------------------------------
# At most 10 % of the answers that customers see may be wrong. ``{True: 0.1}`` limits the error
# rate of shown answers. One half of the questions trains a classifier of right and wrong answers
# and sets its threshold; the other half tests it.
X_fit, X_test, right_fit, right_test = X[:2000], X[2000:], right[:2000], right[2000:]
careful = SelectiveClassifier(LogisticRegression(), risk={True: 0.1})
question = np.arange(2000)  # equal rows are different questions
careful.fit(X_fit, right_fit, groups=question)
shown = careful.accept(X_test)
error_rate, error_rate_of_all = np.mean(~right_test[shown]), np.mean(~right_test)
print(f"{shown.mean():.0%} are answered, and {error_rate:.1%} of these answers are wrong")
print(f"without abstention, {error_rate_of_all:.1%} would be")

# %%
# Left, the confidence that the model gives, and the probability that the classifier turns it
# into. Right, how many answers are wrong if only the surest ones are given.
chance = careful.predict_proba(X_test)[:, 1]
figure, axes = plt.subplots(1, 2, figsize=(10, 5.2), layout="constrained")
for name, p in (("as the model says", X_test[:, 0]), ("of the classifier", chance)):
    ReliabilityDisplay.from_predictions(right_test, p, name=name, ax=axes[0], histogram=False)
    RiskCoverageDisplay.from_predictions(
        np.ones(2000), right_test, confidence=p, name=name, ax=axes[1]
    )
axes[0].set(xlabel="Confidence", ylabel="Fraction of right answers")
axes[1].set(xlabel="Fraction answered", ylabel="Fraction of wrong answers")
plt.show()

# %%
# Last month: an AI judge, and a hundred checks
# ---------------------------------------------
# Nobody knows the right answers to last month's 6000 questions. Another language model, the judge,
# has read all of the answers, and lets four wrong ones out of ten pass. A person has read 100,
# drawn at random, without seeing the verdict of the judge. How many answers would pass if the
# person read them all?
_, good = ask(6000)
verdict = np.where(good, rng.random(6000) < 0.97, rng.random(6000) < 0.4)
checked = rng.choice(6000, 100, replace=False)
by_person = good[checked]

n_passed = int(by_person.sum())
checks_alone = binomtest(n_passed, 100).proportion_ci(method="wilson")
# The accuracy of a "model" that predicts "passes" for all answers is the pass rate.
both = prediction_powered_interval(by_person, np.ones(6000), verdict, checked=checked)
intervals = {"100 checks alone": tuple(checks_alone), "judge and checks": both}
print(f"judge alone       {verdict.mean():.1%}")
for name, (low, high) in intervals.items():
    print(f"{name:17} {low:.1%} to {high:.1%}")
print(f"in truth          {good.mean():.1%}")

# %%
# The judge alone is off by more than ten points, however many answers it reads. With the checks it
# helps: the interval is narrower than that of the checks alone.
figure, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
ax.plot(verdict.mean(), 2, "o", color="C1")
for row, (low, high) in enumerate(reversed(intervals.values())):
    ax.plot([low, high], [row, row], "|-", color="C0", linewidth=3, markersize=12)
ax.axvline(good.mean(), color=plt.rcParams["text.color"], linestyle=":", label="in truth")
ax.set_yticks(range(3), [*reversed(intervals), "judge alone"])
ax.xaxis.set_major_formatter("{x:.0%}")
ax.set(xlabel="Pass rate", ylim=(-0.6, 2.6))
ax.legend(loc="upper left")
plt.show()

# %%
# **Learned:** a confidence and a second sign of knowledge give a probability by which the model
# answers or declines. A judge that lets too much pass is still useful once a person has
# checked a hundred answers; without checks, its pass rate is a guess.
