"""The toy of [GRA], Sec. 4.3: does the weight of a loss follow the true calibration error?

Four Gaussian classes in the plane overlap, so that the posterior is known. A perceptron is trained
by cross-entropy on few samples; on new samples the weights of the losses, which see the label, are
correlated (Pearson) with the distance of the prediction from the posterior.
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

N_CLASSES, N_TRAIN, N_TEST = 4, 400, 4000


def sample(n, spread, rng):
    """Return points, labels and the posterior; equal priors, unit distance of the means."""
    corner = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    y = rng.integers(N_CLASSES, size=n)
    X = corner[y] + spread * rng.normal(size=(n, 2))
    squared = ((X[:, None] - corner) ** 2).sum(axis=2)
    return X.astype(np.float32), y, softmax(-squared / (2 * spread**2), axis=1)


def correlations(spread, seed, n_epochs=200):
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    X, y, _ = map(torch.from_numpy, sample(N_TRAIN, spread, rng))
    net = torch.nn.Sequential(
        torch.nn.Linear(2, 64), torch.nn.ReLU(), torch.nn.Linear(64, N_CLASSES)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(n_epochs):
        for batch in torch.randperm(N_TRAIN).split(100):
            optimizer.zero_grad()
            cross_entropy_loss(net(X[batch]), y[batch]).backward()
            optimizer.step()
    X, y, posterior = sample(N_TEST, spread, rng)
    with torch.no_grad():
        logits = net(torch.from_numpy(X))
    target, proba = torch.from_numpy(y), logits.softmax(1).numpy()
    error = np.linalg.norm(proba - posterior, axis=1)
    weights = {
        "focal": focal_weight(logits, target, gamma=1.0),
        "dual focal": dual_focal_weight(logits, target, gamma=1.0),
        "generalized Brier": generalized_brier_weight(logits, target, exponent=1),
        "generalized Brier, squared": generalized_brier_weight(logits, target, exponent=2),
    }
    return {
        "correlation": {n: float(np.corrcoef(w.numpy(), error)[0, 1]) for n, w in weights.items()}
    }
