"""Warning categories of the package."""

from __future__ import annotations


class SkcalibWarning(UserWarning):
    """Base of every warning that skcalib raises on its own account.

    Examples
    --------
    >>> import warnings
    >>> from skcalib.utils import SkcalibWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", SkcalibWarning)
    """
