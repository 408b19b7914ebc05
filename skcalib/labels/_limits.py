"""Every tuned number of the room, and what it decides.

Numbers of which a row of ``python -m benchmarks.ablations`` says what is lost without them stand
first; then how many samples are few, and what the finder may cost.
"""

# How labels go wrong.
# A matrix of flips and a matrix of confusions are drawn to a common rate and to the identity by so
# many samples a class.
SHRINKAGE = 5.0
# Standard deviation of the pooled log-odds, a priori. A fit that takes all doubt of the judges for
# flips makes them certain of everything; this keeps it from infinity, and costs half a sample.
LOG_ODDS = 4.0
# Part of the labels that tell nothing of the true class beyond what the judges believe: wrong ones
# of hard samples look like right ones, and no likelihood sees how many there are. Of 72 sets, and
# of 84 that chose nothing: log-losses of "is wrong" are .342 and .255 without, .259 and .178 with
# half of it, .244 and .162 with this, .236 and .151 with twice as much, which costs more on right
# labels (.003 and .002 without, .026 and .013 with this, .051 and .026 with twice as much).
HIDDEN = 0.1
# Standard errors by which flips between classes, or to near ones, have to make labels left out
# more likely than flips at a common rate and the judges' own confusions do: odds of three to one.
AHEAD = 0.674
# Samples per class at which the probabilities before all refits count as much as those after.
# CLINC150, 5 samples per class, calibration error after, and of the mean: 40 % random flips .101,
# .051; 20 % nearest-class flips .075, .048. With 20 samples, 40 % random: .006, .010.
WEIGHT_OF_FIRST = 5.0

# Checks.
# Before any check, standard deviations of intercept and logarithm of the slope around 0: those of
# the lines of 42 sets whose true labels are known (benchmarks.label_sets). On 105 other sets, log-
# losses of "is wrong" after 20 and 100 checks are .157 and .129; with 3 and 1 they are .165, .134.
INTERCEPT, LOG_SLOPE = 6.8, 0.64
# Squared residuals that may be missing among the checks: where the model errs on one sample in
# two hundred, most draws of a hundred show none. On 74 sets whose wrong labels are ranked well,
# intervals by 100 random checks hold in .96 of the draws, without this in .89.
# Informative draws allow for as many. On 49 other sets with one model's probabilities, their error
# of the rate is .82 of that of random ones, and .82 where half of a draw falls on all alike.
UNSEEN = 0.5
# So many drawn checks settle what the model alone leaves in doubt.
FEWEST_CHECKS = 50

# Votes.
# Votes of average accuracy that come before those of every annotator.
VOTES_OF_PRIOR = 5.0
# Votes left out tell how far people agree, not how far they are wrong together: the posterior is
# tempered once more by what a further vote is worth, as long as this is left of a vote. Log-losses
# without and with it, 4 000 pictures with 2, 3 and 5 real votes: .063, .051, .037 and .058, .049,
# .037 (four draws).
LEAST_LEFT = 0.5

# What is worth a doubt.
# The probability that there are wrong labels at all.
SURE = 0.9
# How often judges expect the given label, beyond which labels are wrong.
WEAK = 2 / 3
# Units of log-likelihood that judges who know anything gain over the class frequencies: those of
# noise gain 7 in 1 of 169 runs.
KNOWN = 7.0
# Standard errors of what never happens by chance: mean ranks of checks (2 000 random draws were
# off by 3.5 at most), twins.
STANDARD_ERRORS = 4.5
# Columns whose scales differ by more.
LARGEST_RATIO = 1e3

# How many are few.
FEW = 5  # wrong or right checks, issues, near twins
FEWEST_OF_A_CLASS = 10
N_NEIGHBORS = 10
NUMBERS_OF_NEIGHBORS = (5, 15, 40)
N_FOLDS = 5
N_TREES = 100
SOFT_MASS = 0.99  # of the labels that a sample is repeated with

# What it may cost, in numbers or products of numbers: some seconds each on two cores.
SOME_SAMPLES = 5000
BLOCK_ELEMENTS = 2**19  # also of the distances that enter the likelihood
KEPT_ELEMENTS = 2**24  # distances of more are computed again for every use
MOST_CLASSES_OF_A_MATRIX = 256
MOST_OF_REGRESSION = 2e8  # samples x features x classes
MOST_OF_NEIGHBORS = 2e10  # samples^2 x features
MOST_OF_FOREST = 1e6  # samples x classes x sqrt(features)
STEPS = 40
