"""
Is it difficulty?
=================

A score that calls itself difficulty should predict errors that it has not seen. The relative
Mahalanobis distance is put to the test: on a map, and against the errors of a classifier that does
not use it.

The score is Eq. 5 of [RMD], the curve its Figure 2: :ref:`paper-rmd`.
"""

# %%
# Difficulty of the digits
# ------------------------
# The scorer sees half of the digits; the other half are scored without their labels.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from skcalib.difficulty import RMDScorer, score_difficulty
from skcalib.plots import DifficultyDisplay, EmbeddingMapDisplay

# sphinx_gallery_thumbnail_number = 2
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=0.5, random_state=0)
scorer = make_pipeline(PCA(30, random_state=0), RMDScorer()).fit(X_train, y_train)
difficulty = score_difficulty(scorer, X_test)

# %%
# A map
# -----
# t-SNE puts samples with the same neighbors together. Hard samples lie between the groups and at
# their edges.
EmbeddingMapDisplay.from_predictions(X_test, difficulty, projection=TSNE(random_state=0))
plt.show()

# %%
# Error rate by difficulty
# ------------------------
classifier = KNeighborsClassifier().fit(X_train[:200], y_train[:200])
predicted = classifier.predict(X_test)
DifficultyDisplay.from_predictions(y_test, predicted, difficulty)
plt.show()
print(f"AUROC of the errors: {roc_auc_score(predicted != y_test, difficulty):.3f}")

# %%
# **Learned:** the hardest tenth holds a large part of the errors of another kind of classifier,
# trained on other samples. That makes the score useful: look at the hard samples, weigh them, or
# decline them.
