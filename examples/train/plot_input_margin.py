"""
How far is an input from the next class?
========================================

Are inputs near the boundary of a network those that it gets wrong?

The margin is that of Section 3.3 of [DEPTH]: :ref:`paper-depth`.
"""

# %%
# The input margin of every digit
# -------------------------------
# To first order, it is the length of the smallest step that changes the predicted class (Section
# 3.3 of "Deep Learning Through the Lens of Example Difficulty", [DEPTH]).
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skcalib.nets import MLP, CalibratedNetClassifier, adversarial_input_margin

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=500, random_state=0)
net = CalibratedNetClassifier(MLP, max_epochs=30, random_state=0, device="cpu")
margin = adversarial_input_margin(net.fit(X_train, y_train), X_test)
wrong = net.predict(X_test) != y_test

# %%
# Errors by margin
# ----------------
edges = np.quantile(margin, np.linspace(0, 1, 11))
part = np.clip(np.searchsorted(edges, margin, side="left") - 1, 0, 9)
rate = [wrong[part == k].mean() for k in range(10)]
figure, ax = plt.subplots(figsize=(6.0, 3.2), layout="constrained")
ax.bar(np.arange(1, 11), rate)
ax.set_xticks(np.arange(1, 11))
ax.set_xlabel("Tenth of the margins, smallest first")
ax.set_ylabel("Error rate")

# %%
# **Learned:** of the tenth of the digits with the smallest margins, more than a third are wrong;
# of the upper six tenths none. The margin needs no label and no second network: K - 1 backward
# passes give it for K classes.
