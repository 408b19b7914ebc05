"""Difficulty by distance to Gaussians fitted to the features: relative Mahalanobis distance."""

from ._mahalanobis import RelativeMahalanobisScorer, RMDScorer, gaussians_without

__all__ = ["RMDScorer", "RelativeMahalanobisScorer", "gaussians_without"]
