"""Every tuned number of the room, and what it decides.

Rows of ``python -m benchmarks.ablations`` say what is lost without those of the stack, of the
prior shift and of the groups; numbers that spare time stand last.
"""

import numpy as np

# Maps.
# Ridge of the intercepts of a structured matrix or vector, a tenth of the paper's strength. With
# that, mean probabilities stay off the class frequencies: by .04 for every unit of an intercept,
# where 100 samples have two classes.
INTERCEPTS = 0.1

# The stack.
N_FOLDS = 5
# Of the prior: what the model as it is and the first map share, besides their part of one for all.
SAMPLES_OF_FIRST = 1.0
# Nats that a mixture has to gain until it is as likely as the model as it is.
PRICE = 1.0
# What has less weight leaves it to the first map, for speed: it hardly shows in a mixture.
LEAST_WEIGHT = 0.1

# Prior shift.
# The squared distance of mean probabilities from class frequencies, in units of these, of models
# that are off without any shift: benchmarks/prior_shift.py.
ERROR_OF_FREQUENCIES = 0.03
# Default pseudo-samples per class, with training scores and without: benchmarks/prior_shift.py.
STRENGTH, STRENGTH_OF_FREQUENCIES = 1.0, 5.0
# Standard errors that the certainty of new samples may differ by: docs/measured/calibrators.rst.
MOST_STANDARD_ERRORS = 4.0
# Level of the interval of every prior, and the quotient of its ends that a warning tells of.
LEVEL, WIDE = 0.95, 2
# Pseudo-samples per class of the interval.
WEAK = 0.5
# A calibrator's offset and slope are known at least this well before it sees a sample.
PRIOR_VARIANCE = 1.0

# Groups.
# Standard deviations, between groups, of the shifts in logits and of the slopes.
SPREADS = [
    (shift, slope) for shift in (0.0, 0.25, 0.5, 1.0) for slope in (0.0, 0.3) if shift or slope
]
# Fractions of the groups that differ at all, and how likely it is beforehand that none does.
FRACTIONS = np.array([0.1, 0.3, 1.0])
NONE_DIFFERS = 0.05
# Fewer samples cannot show how a group differs.
LEAST_SAMPLES = 10

# Time.
# With more samples a fifth of them judges the maps of a stack: few weights cost less than .0005.
SAMPLES_OF_ONE_SPLIT = 20_000
# A map of a stack takes too long where a pass over all samples has more numbers than this.
MOST_NUMBERS = 5 * 10**7
# With more classes a group has only a slope.
MOST_CLASSES_TO_SHIFT = 100
