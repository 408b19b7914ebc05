"""Every number that the page's tests, advice and thresholds depend on, and limits of time.

How many rows or samples a page shows stands in the module that shows them.
"""

# Level of every interval, and 1 minus the family-wise error rate of all tests of the page: of 100
# calibrated models, about one is called miscalibrated (at .95, five would be).
LEVEL = 0.99
N_BINS = 15
# Default of the parameter `tolerance`, the largest error that does not matter: 5 points.
TOLERANCE = 0.05
# If positives are rare, the tolerance is this fraction of their mean probability: a risk of 4 %
# may be off by 1 point, not by 5.
OF_RARE = 0.25
# An undecided page gives the power to find an error of 3 points (or of the tolerance, if less),
# and the number of samples that find it with probability .9.
SOUGHT, FOUND = 0.03, 0.9
# Probability of finding a difference between two equally calibrated models, by the paired test and
# the interval together.
OF_PAIRS = 0.05
# Below this probability, chance does not explain that a model is right in all samples: the labels
# are its predictions.
NO_CHANCE = 1e-3
# Error rates to try as limits, and how many of those below the overall error rate are tried.
RISKS, N_RISKS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2), 4
# Folds of cross-validated calibrators.
N_FOLDS = 5
# Few and many.
# With fewer samples, only the average of a group is tested, and not every range of probabilities;
# classes with fewer samples are listed in a note.
FEW = 30
# With fewer samples in a class, its labels are not assessed; in all groups of a column, the page
# advises to join them.
FEWEST_OF_PART = 10
# Ten samples per fold.
FEWEST_TO_CALIBRATE = N_FOLDS * FEWEST_OF_PART
# From this fraction of confidences of exactly 1, there is a note.
MANY_SATURATED = 0.05
# Standard errors by which a random part of all samples may differ from the accumulated sums;
# chance exceeds it once in two million times.
FAR = 5.0
# Time.
# With more samples, what takes several passes uses a stratified part of this size.
MANY_SAMPLES, N_SAMPLED = 100_000, 50_000
# Resamples of a test; most numbers to draw for a small p-value.
N_RESAMPLES, MOST_DRAWS = 999, 200_000_000
# Resamples of the intervals that allow for wrong labels.
N_RESAMPLES_OF_LABELS = 200
# Above this number of probabilities (samples x classes), only one calibrator is tried.
MANY_NUMBERS = 1_000_000
# With more features, labels are not assessed: covariances would take minutes, and more samples
# than most evaluations have.
MANY_FEATURES = 1000
