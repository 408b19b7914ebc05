"""Every number that a verdict, an advice or a promise of the page depends on, and time.

How much of something a page shows is said where it is shown.
"""

# One level for the whole page: of every interval, and 1 minus that of every accusation. Of 100
# calibrated models about one is accused; at .95 it would be five.
LEVEL = 0.99
N_BINS = 15
# An error that does not matter, as most users see it: 5 points; a parameter of every report.
TOLERANCE = 0.05
# Where positives are rare, the tolerance is a fraction of what is said of them: a risk of 4 % may
# be off by 1 point, not by 5.
OF_RARE = 0.25
# An undecided page says with which probability an error of 3 points would have been found, or of
# the tolerance where this is less, and how many samples find it in nine of ten cases.
SOUGHT, FOUND = 0.03, 0.9
# Of the difference of two models that are as well calibrated, one is found with at most this
# probability, by the paired test or by the interval of the page's level.
OF_PAIRS = 0.05
# Error rates to allow; so many of those below the error rate of all samples are tried.
RISKS, N_RISKS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2), 4
# Standard deviations that a calibrator fitted to other samples may say more of a sample. Without
# it 24 of 238 thresholds of the populations with waves and votes (benchmarks/advice.py) are not
# kept, where one in a hundred may fail; with one deviation 1 of 230, with two 1 of 225.
SPREADS = 2.0
# Folds in which calibrators are judged.
N_FOLDS = 5

# Few and many.
# A group of fewer samples is tested on average alone, not at every probability; classes of fewer
# are named among the notes.
FEW = 30
# With fewer samples of a class, it is unknown what is odd in it; of a group, whether it is off.
FEWEST_TO_JUDGE = 10
# With fewer samples, a fold has not ten.
FEWEST_TO_REPAIR = N_FOLDS * FEWEST_TO_JUDGE
# Fraction of the samples whose probability is 0 or 1, from which on a note says so.
MANY_SATURATED = 0.05
# Standard errors from which on the samples of a page cannot be a random part of all; chance goes
# so far once in two million times.
FAR = 5.0

# Time.
# Of more than so many samples, what takes several passes is judged on a stratified part of them.
MANY_SAMPLES, N_SAMPLED = 100_000, 50_000
# Resamples of a test, and the numbers that those of a small p-value may draw.
N_RESAMPLES, MOST_DRAWS = 999, 200_000_000
# Resamples of what wrong labels do to the accuracy and the calibration error.
N_RESAMPLES_OF_LABELS = 200
# Numbers of samples times classes, above which one calibrator alone is tried.
MANY_NUMBERS = 1_000_000
# Covariances of more features take minutes, and more samples than most evaluations have.
MANY_FEATURES = 1000
