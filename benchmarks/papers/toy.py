"""The toy of [GRA], Sec. 4.3: does the weight of a loss follow the true calibration error?

Five Gaussian classes in the plane with unit covariance, their means drawn uniformly from a square
(side 6, 10 or 20), so that the posterior is known; 10 000 samples a class. A perceptron is trained
by cross-entropy for five epochs. On as many new samples the weights of the losses, which see the
label, are correlated (Pearson) with the absolute difference of the probability of the label from
its posterior; every weight has its best exponent of six.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import softmax

from skcalib.losses import (
    cross_entropy_loss,
    dual_focal_weight,
    focal_weight,
    generalized_brier_weight,
)

N_CLASSES, N_EACH, N_EPOCHS = 5, 10_000, 5
HALF_SIDES = (3, 5, 10)
EXPONENTS = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)


def sample(means, rng):
    """Return points, labels and the posterior; equal priors, unit covariance."""
    y = np.repeat(np.arange(N_CLASSES), N_EACH)
    X = means[y] + rng.normal(size=(len(y), 2))
    squared = ((X[:, None] - means) ** 2).sum(axis=2)
    return X.astype(np.float32), y, softmax(-squared / 2, axis=1)


def correlations(half_side, seed):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    means = rng.uniform(-half_side, half_side, (N_CLASSES, 2))
    X, y, _ = map(torch.from_numpy, sample(means, rng))
    net = torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, N_CLASSES)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    for _ in range(N_EPOCHS):
        for batch in torch.randperm(len(y)).split(128):
            optimizer.zero_grad()
            cross_entropy_loss(net(X[batch]), y[batch]).backward()
            optimizer.step()
    X, y, posterior = sample(means, rng)
    with torch.no_grad():
        logits = net(torch.from_numpy(X))
    target, every = torch.from_numpy(y), np.arange(len(y))
    error = np.abs(logits.softmax(1).numpy()[every, y] - posterior[every, y])
    return {
        name: max(float(np.corrcoef(weight(logits, target, g).numpy(), error)[0, 1])
                  for g in EXPONENTS)
        for name, weight in WEIGHTS.items()
    }  # fmt: skip


WEIGHTS = {
    "focal": lambda z, y, g: focal_weight(z, y, gamma=g),
    "dual focal": lambda z, y, g: dual_focal_weight(z, y, gamma=g),
    "generalized Brier": lambda z, y, g: generalized_brier_weight(z, y, exponent=g),
}
