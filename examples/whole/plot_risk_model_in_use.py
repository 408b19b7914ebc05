"""
A risk model in use, from a file to an alarm
============================================

A hospital gets a risk model that was built elsewhere, and a CSV file of its own visits. Are the
risks right, and if not, what repairs them? From which risk on should one act? And once the model
is in use, who notices when it goes wrong?
"""

# %%
# A model from elsewhere
# ----------------------
# The data are drawn, so the truth is known. Elsewhere, events are about twice as frequent at the
# same age, pressure and lab value.
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.metrics import CalibrationMonitor, decision_curve, validation_summary
from skcalib.plots import DecisionCurveDisplay, MonitorDisplay, ReliabilityDisplay
from skcalib.posthoc import SigmoidCalibration

rng = np.random.default_rng(0)
files = TemporaryDirectory()
folder = Path(files.name)
FEATURES = ["age", "pressure", "lab"]


def draw_visits(n_patients, intercept):
    """Return visits of patients, some of whom come more than once."""
    patient = np.repeat(np.arange(n_patients), 1 + rng.poisson(0.5, n_patients))
    n = len(patient)
    visits = pd.DataFrame({"patient": patient, "age": rng.normal(62, 12, n_patients)[patient]})
    visits["pressure"] = rng.normal(130, 18, n_patients)[patient] + rng.normal(0, 8, n)
    visits["lab"] = rng.normal(1, 0.4, n_patients)[patient] + rng.normal(0, 0.2, n)
    score = 0.05 * (visits["age"] - 62) + 0.02 * (visits["pressure"] - 130)
    score += 2 * (visits["lab"] - 1) + intercept
    visits["event"] = (rng.random(n) < expit(score)).astype(int)
    return visits


elsewhere = draw_visits(5000, intercept=-1.6)
model = make_pipeline(StandardScaler(), LogisticRegression())
model = model.fit(elsewhere[FEATURES], elsewhere["event"])

# %%
# The file, and the validation table
# ----------------------------------
# The intervals allow for visits of one patient that are not independent.
draw_visits(3000, intercept=-2.4).to_csv(folder / "visits.csv", index=False)

visits = pd.read_csv(folder / "visits.csv")
visits["risk"] = model.predict_proba(visits[FEATURES])[:, 1]
print(f"{len(visits)} visits, {visits['event'].sum()} events")


def validate(visits, risk):
    """Return the validation table of some risks, one row per statistic."""
    groups = visits["patient"]
    table = validation_summary(visits["event"], risk, groups=groups, random_state=0, as_frame=True)
    return table.set_index("statistic")[["value", "low", "high", "ideal"]]


before = validate(visits, visits["risk"])
print(before.round(2))

# %%
# O/E is far below 1 and calibration in the large below 0: the risks are too high. The slope is
# right, so one number may be enough.
#
# Recalibration
# -------------
# A new intercept is fitted to half of the patients. Everything from here on is about the others.
first = visits["patient"] % 2 == 0
update = SigmoidCalibration(slope=False, input="proba")
half = visits[first]
update.fit(half["risk"], half["event"], groups=half["patient"])
print(f"intercept {update.intercept_[0]:.2f}, standard error {update.intercept_se_[0]:.2f}")

test = visits[~first].copy()
test["updated"] = update.predict_proba(test["risk"])[:, 1]
after = validate(test, test["updated"])
print(after.round(2))

# %%
# From which risk on to act
# -------------------------
# A missed event costs as much as nine treatments that nobody needed, so it pays to act from a risk
# of 1 / (1 + 9) = .1 on. At this threshold (gray line), the updated risks are worth more. Above
# .26, acting on the old ones does more harm than good.
threshold = 0.1
benefit = {}
for name in ("risk", "updated"):
    curve = decision_curve(
        test["event"], test[name], thresholds=[threshold], groups=test["patient"], random_state=0
    )
    benefit[name] = curve["net_benefit"][0]
    print(f"{name:8} {1000 * benefit[name]:.0f} events treated in 1000 visits, net of the costs")

figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
options = {"groups": test["patient"], "thresholds": np.arange(2, 51) / 100, "random_state": 0}
for name, column in (("from elsewhere", "risk"), ("updated", "updated")):
    ReliabilityDisplay.from_predictions(
        *(test["event"], test[column]),
        **{"strategy": "quantile", "n_bins": 8, "histogram": False},
        **{"name": name, "ax": axes[0]},
    )
    DecisionCurveDisplay.from_predictions(
        test["event"], test[column], name=name, ax=axes[1], predicted=False, **options
    )
axes[1].axvline(threshold, color="gray", linewidth=0.8)
plt.show()

# %%
# Into the hospital's own program
# -------------------------------
# The update is one formula. ``to_json`` writes it for programs without Python, and
# ``PostHocCalibrator.from_json`` reads it back; an ONNX file of model and update together takes
# ``import skcalib.onnx`` and ``skl2onnx.to_onnx``.
(folder / "update.json").write_text(update.to_json())

written = json.loads((folder / "update.json").read_text())["map"]
files.cleanup()
shift = written["intercept"][1] - written["intercept"][0]
by_formula = expit(written["coef"] * logit(test["risk"]) + shift)
print(f"greatest difference {np.abs(by_formula - test['updated']).max():.0e}")

# %%
# A month in use
# --------------
# Outcomes arrive every day. On the 19th, the laboratory gets a new device, which reads .4 higher.
# The model does not know. The monitor may be updated, and looked at, every day: if the risks were
# right, the chance of an alarm, ever, would be .01 at most. Its state is a line of text.
monitor = CalibrationMonitor(false_alarm_rate=0.01)
for day in range(1, 31):
    today = draw_visits(100, intercept=-2.4).drop_duplicates("patient")
    today["lab"] += 0.4 * (day >= 19)
    risk = update.predict_proba(model.predict_proba(today[FEATURES])[:, 1])[:, 1]
    monitor = CalibrationMonitor.from_json(monitor.to_json())
    monitor.update(today["event"], risk, name=f"March {day}")
    if monitor.alarm_:
        break
print(monitor.alarm_)

# %%
# Five days of wrong risks are enough. The alarm dates the change a day too early, which no test
# can rule out; it is right about what is wrong.
MonitorDisplay.from_monitor(monitor)
plt.show()

# %%
# **Learned:** the table says what is wrong and one number repairs it; the decision curve says what
# that is worth. What was right in February may be wrong in March: an alarm that is checked every
# day notices, and says since when.
