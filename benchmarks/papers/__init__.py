"""The claims of four papers, measured: ``python -m benchmarks.papers rmd --data DIR``.

Sources: [RMD] Cui et al., NeurIPS 2023; [PRIO] Tata et al., 2022; [DEPTH] Baldock et al., NeurIPS
2021; [GRA] Lin et al., CVPR 2025. A study is one module with its settings, methods, runs and
claims, named in ``page.py``. ``runner.py`` keeps finished runs as lines of a file in ``--out``, so
that a second call goes on; ``results.py`` makes of them the JSON files of ``results/``, all in one
form; ``page.py`` makes of these the claims, plots and tables of ``docs/evidence``, and a test
compares the two.

Settings, fixed before the runs that are reported
-------------------------------------------------
- Texts: CLINC150, 150 intents. The student reads a bag of words (TF-IDF of the words of its
  training texts) through 64 ReLU units. Adam, learning rate .02, batches of 200; 20 epochs on 20
  samples a class (drawn anew for every seed), 12 epochs on all 100. Long enough to memorize, so
  that cross-entropy is overconfident: the fitted temperature is in every table. Validation 3000
  and test 4500 samples, whose labels are right. Out of distribution: 1000 out-of-scope queries.
- Images: CIFAR-10 at 16 x 16 pixels. The student is a ResNet-8 with max-pooling behind its first
  convolution. Adam, learning rate .01 with a cosine schedule, batches of 100, 10 epochs. All
  images are from the test split, which people have labeled once more (CIFAR-10H): 4000 to train
  and 2000 to validate, drawn anew for every seed from 6000, and 4000 to test. Difficulty comes
  from a ResNet-20 that learned the other 50000 images. It has seen none of these, but it learned
  the same ten classes from clean labels: a better guide than a network that was pre-trained on
  other images (the study "guides"). "By rotation": features of a ResNet-8 that learned, without
  labels, by how many quarter turns 20000 of those other images were turned. Out of distribution:
  500 enlarged digits and 500 windows of two photographs. Distance from human labels: the mean
  Kullback-Leibler divergence of predictions.
- Noise: U = uniform flips, 20 or 40 %. I = 20 % flips to the wrong class that an out-of-fold
  logistic regression on the words finds most probable, more often where it finds it probable: the
  noise does not come from the sentence embeddings that score the difficulty. For images that model
  reads the features of rotation.
- Weight decay: "with weight decay", cross-entropy chooses it out of .01, .03, .1, .3 (and 1 under
  noise), and every other method has the same and four candidates of its own, difficulty-aware
  regularization with alpha from .05. "Without": none, but in the row that names it.
- Budget: four candidates for every method that has a parameter, cross-entropy included (weight
  decay). Chosen on seed 100, which is not reported: "last epoch" by the log-loss on validation
  samples after the last epoch, "early stopping" by the lowest log-loss after temperature scaling
  over every other epoch, which is also where training stops. The candidates for images are other
  ones, whose range was set after a look at seed 100. Early stopping of [GRA], and of [RMD] on
  clean images, was added after the last epochs had been seen.
- Reported: means over seeds 0, 1, ... of everything anew (samples, noise, initial weights, order);
  differences are paired by seed; p-values of t-tests, corrected by Holm's method over all
  comparisons of one column of one table. The test samples are the same for all seeds: standard
  errors do not hold their sampling error.
- ECE: 15 bins of equal mass unless it says otherwise. Temperatures are fitted on validation data.
"""
