"""
A risk model meets other patients
=================================

A hospital tries a risk model that was built elsewhere. Its patients come several times. Is the
model right for them, is it worth acting on, and what would repair it?
"""

# %%
# Visits of 420 patients
# ----------------------
# The data are drawn, so the truth is known: the model ranks the visits as well as it can, and its
# log-odds are too high by .7. Visits of a patient are alike beyond what the model knows.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

from skcalib.metrics import samples_for_validation, validation_summary
from skcalib.plots import DecisionCurveDisplay, ReliabilityDisplay
from skcalib.posthoc import SigmoidCalibration

rng = np.random.default_rng(1)
n_visits = 1 + rng.poisson(1.6, 420)
patient = np.repeat(np.arange(420), n_visits)
score = rng.normal(-2.2, 0.9, 420)[patient] + rng.normal(0, 0.5, len(patient))
hidden = rng.normal(0, 0.8, 420)[patient]
event = rng.random(len(patient)) < expit(score + hidden)
# With a normal part hidden, the log-odds of the visible part shrink (by about 1.13).
risk = expit(score / 1.13 + 0.7)
print(f"{len(patient)} visits, {event.sum()} events; the model says {risk.mean():.0%}")

# %%
# The validation table
# --------------------
# Intervals know that visits of a patient are not independent. The slope is right, the level is
# not.
table = validation_summary(event, risk, groups=patient, random_state=0)
for row in table:
    name, value, low, high, ideal, _ = row
    print(f"{name:25} {value:6.2f}  ({low:5.2f} to {high:5.2f})  ideal {ideal:.0f}")

# %%
# What acting on it is worth
# --------------------------
# The upper axis has the costs of errors for which each threshold is the right one. The model
# predicts a benefit that it does not deliver; above 30 %, acting on nobody is as good.
# Half of the patients update the intercept, as the table suggests; the curves are of the others.
first = patient < 210
update = SigmoidCalibration(slope=False, input="proba")
update.fit(risk[first], event[first], groups=patient[first])
shift, error = update.intercept_[0], update.intercept_se_[0]
print(f"intercept {shift:.2f}, standard error {error:.2f}")

test = ~first
updated = update.predict_proba(risk[test])[:, 1]
options = {"groups": patient[test], "thresholds": np.arange(1, 41) / 100, "random_state": 0}
figure, axes = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
ReliabilityDisplay.from_predictions(event[test], risk[test], kind="smooth", ax=axes[0])
DecisionCurveDisplay.from_predictions(
    event[test], risk[test], ax=axes[1], name="the model", **options
)
DecisionCurveDisplay.from_predictions(
    event[test], updated, ax=axes[1], name="updated", predicted=False, **options
)
plt.show()

# %%
# How many visits would have been enough?
# ---------------------------------------
# For the slope that is hardest to find, that of a model which is a little too sure, by numbers of
# independent visits.
for slope in (0.6, 0.7, 0.8):
    (row,) = samples_for_validation(
        expit(logit(risk) - 0.7), detect={"slope": slope}, n_simulations=100, random_state=0
    )
    print(f"a slope of {slope}: {row['n_samples']} visits, {row['n_events']:.0f} events")

# %%
# **Learned:** a table of nine numbers says what is wrong, the decision curve whether it matters,
# and one number repairs it. Pass ``groups``: twenty visits of one patient are not twenty patients.
