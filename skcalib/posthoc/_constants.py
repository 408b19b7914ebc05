"""Every tuned number of the package `posthoc`, and what it decides.

``python -m benchmarks.ablations`` says what is lost without those of the stack, the prior shift
and the groups. Numbers that only save time come last.
"""

import numpy as np

# Maps.
# Ridge of the intercepts of a structured matrix or vector: a tenth of the paper's strength, with
# which mean probabilities miss the class frequencies (by .04 per unit of an intercept, with 100
# samples of two classes).
INTERCEPTS = 0.1
# The stack.
N_FOLDS = 5
# Prior samples that the unchanged model and the first map share, in addition to one shared by all.
SAMPLES_OF_FIRST = 1.0
# Nats that the mixture must gain to be as probable as the unchanged model, and every intercept but
# one at the end, to be as probable as 0.
PRICE = 1.0
# A map of less weight is dropped, for speed: it hardly changes the mixture.
LEAST_WEIGHT = 0.1
# Standard deviations of the intercepts at the end, to average over, beside none.
INTERCEPT_SPREADS = 0.3, 1.0, 3.0
# Prior shift.
# Average of sum_k (mean probability - class frequency)^2 / class frequency without any shift, from
# miscalibration alone: benchmarks/prior_shift.py.
ERROR_OF_FREQUENCIES = 0.03
# Default pseudo-samples per class, with training scores and without: benchmarks/prior_shift.py.
STRENGTH, STRENGTH_OF_FREQUENCIES = 1.0, 5.0
# Standard errors by which the mean confidence of new samples may differ from the expected one:
# docs/measured/calibrators.rst.
MOST_STANDARD_ERRORS = 4.0
# Level of the interval of every prior, and the ratio of its ends above which there is a warning.
LEVEL, WIDE = 0.95, 2
# Pseudo-samples per class in the likelihood that the interval is taken from.
WEAK = 0.5
# Prior variance of a calibrator's offset and slope.
PRIOR_VARIANCE = 1.0
# Groups.
# Standard deviations between groups of the shifts (in logits) and of the slopes, to average over.
SPREADS = [
    (shift, slope) for shift in (0.0, 0.25, 0.5, 1.0) for slope in (0.0, 0.3) if shift or slope
]
# Fractions of groups that differ at all, to average over; the prior probability that none does.
FRACTIONS = np.array([0.1, 0.3, 1.0])
NONE_DIFFERS = 0.05
# A group of fewer samples keeps the common map.
LEAST_SAMPLES = 10
# Time.
# With more samples, only one fold weighs the maps of a stack: that costs less than .0005.
SAMPLES_OF_ONE_SPLIT = 20_000
# Spreads of less posterior probability do not change the intercepts.
LEAST_POSTERIOR = 0.001
# A stack leaves out a map whose passes over the samples have more numbers than this.
MOST_NUMBERS = 5 * 10**7
# With more classes, a group has a slope and no shifts.
MOST_CLASSES_TO_SHIFT = 100
