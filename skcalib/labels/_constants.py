"""Every tuned number of the package `labels`, and what it decides.

First come the numbers that have a row in ``python -m benchmarks.ablations``, which says what is
lost without them; then what counts as few samples, and how much the finder may compute.
"""

# How labels go wrong.
# Prior samples per class that draw the noise matrix to a uniform rate, and the matrix scaling to
# the identity.
SHRINKAGE = 5.0
# Prior standard deviation of the pooled log-odds. A fit that explains every mistake of the base
# models by wrong labels makes them certain; this keeps their weights finite, and costs half a
# sample.
LOG_ODDS = 4.0
# Fraction of labels that carry no information beyond the base models' predictions. Wrong labels of
# hard samples look like right ones, and no likelihood can count them. Log-loss of "is wrong" on
# the 72 sets that chose the value, and on 84 others: .342 and .255 with 0, .259 and .178 with half
# of it, .244 and .162 with it, .236 and .151 with twice as much. But twice as much costs more
# where all labels are right: .003 and .002 with 0, .026 and .013 with it, .051 and .026 with twice
# as much.
NONINFORMATIVE = 0.1
# Standard errors by which the log-likelihood of labels left out has to be higher with class- or
# confusion-dependent noise than with uniform noise and matrix scaling (see _noise_model): odds of
# three to one.
MIN_GAIN_Z = 0.674
# Samples per class at which the probabilities before and after refits count equally.
# Calibration error after refits, and of the average, on CLINC150: with 5 samples per class .101
# and .051 (40 % wrong at random), .075 and .048 (20 % wrong, to the nearest class); with 20
# samples per class .006 and .010 (40 % wrong at random).
FIRST_FIT_WEIGHT = 5.0
# Checks.
# Prior standard deviations of intercept and log slope of the line that corrects log-odds: those of
# 42 sets whose true labels are known (benchmarks.label_sets). On 105 other sets, the log-loss of
# "is wrong" after 20 and 100 checks is .157 and .129; with 3 and 1 instead it is .165 and .134.
INTERCEPT, LOG_SLOPE = 6.8, 0.64
# Squared residuals added to those of the checks: where the model errs on one sample in two
# hundred, most draws of a hundred show no error. On 74 sets whose wrong labels are ranked well,
# intervals from 100 random checks hold in .96 of the draws, without this in .89.
# Informative draws use it too. On 49 other sets with one model's probabilities, their error of the
# rate is .82 of that of random draws; so it is if half of each draw is random.
PSEUDO_RESIDUAL = 0.5
# From this many drawn checks on, the model's `caveats_` are dropped.
FEWEST_CHECKS = 50
# Votes.
# Prior votes, of average accuracy, for every annotator, if every sample has one vote.
VOTES_OF_PRIOR = 5.0
# Fraction of samples in which people err together, so that their votes say no more than their
# fractions. No vote shows it: it is a guess, from two public sets with gold labels. Log-loss with
# 0, .1, .2 and .3 there: .75, .55, .50, .47 (dogs) and .40, .30, .30, .31 (ducks), and on three
# others .23, .20, .21, .21 (products), .26, .20, .20, .21 (temporal order), .04, .03, .04, .04
# (word senses). With base models, most of it shows: pictures with 2 and 5 votes .066 and .040 with
# 0, .063 and .038 with .02, .063 and .040 with .1.
SHARED_ERRORS, SHARED_ERRORS_WITH_MODELS = 0.2, 0.02
# Standard errors by which full rows of confusion have to make votes left out more likely than the
# plain model of votes does: one in twenty by chance.
MIN_GAIN_OF_ROWS = 1.645
# When `caveats_` has a sentence.
# Below this probability that any label is wrong.
MIN_P_ANY_WRONG = 0.9
# Base models that predict fewer of the right labels than this are weak.
MIN_ACCURACY = 2 / 3
# Agreement beyond chance below this is slight (Landis and Koch, Biometrics 1977).
SLIGHT_ALPHA = 0.2
# Features are useless if the log-likelihood gains less than this over class frequencies: base
# models of pure noise gain 7 in 1 of 169 runs.
MIN_INFORMATION = 7.0
# Standard errors beyond which something is not chance: the mean rank of checks (off by at most 3.5
# in 2 000 random draws), the existence of near-duplicates.
STANDARD_ERRORS = 4.5
# Scales of columns may differ by this factor.
LARGEST_RATIO = 1e3
# How many samples count as few.
FEW = 5  # wrong or right checks, issues, near-duplicates
FEWEST_OF_A_CLASS = 10
N_NEIGHBORS = 10
NUMBERS_OF_NEIGHBORS = (5, 15, 40)
N_FOLDS = 5
N_TREES = 100
SOFT_LABEL_COVERAGE = 0.99  # probability of the labels with which a sample is repeated
# How much may be computed: each takes some seconds on two cores.
SOME_SAMPLES = 5000
BLOCK_ELEMENTS = 2**19  # also of the distances that enter the likelihood
KEPT_ELEMENTS = 2**24  # beyond, distances are computed again for every use
MOST_CLASSES_OF_A_MATRIX = 256
MOST_OF_REGRESSION = 2e8  # samples x features x classes
MOST_OF_NEIGHBORS = 2e10  # samples^2 x features
MOST_OF_FOREST = 1e6  # samples x classes x sqrt(features)
STEPS = 40
