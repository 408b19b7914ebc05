"""Shared descriptions of parameters are copied to where a docstring refers to them."""

from __future__ import annotations

import pytest

from skcalib.utils._output import fill_docstrings


def source(y_true, n_bins=15, *, groups=None, **options):
    """Describe.

    Parameters
    ----------
    y_true : array-like
        Labels.
    n_bins, groups : int or None, \
            default=15
        Something of two lines,
        and of two names.
    **options : dict
        The rest.

    Returns
    -------
    error : float
        Smaller = better.
    """


def taker(y_true, n_bins, *, groups="a", **options):
    """Take.

    Parameters
    ----------
    y_true, n_bins : of :func:`source`
    groups, **options : of :func:`source`

    Returns
    -------
    error : of :func:`source`
    """


class Holder:
    """Hold.

    Parameters
    ----------
    y_true : array-like
        Of the class.
    """

    __module__ = "skcalib.nowhere"

    def __init__(self, y_true=None):
        self.y_true = y_true

    def run(self, y_true):
        """Run.

        Parameters
        ----------
        y_true : of :meth:`again`
        """

    def again(self, y_true):
        """Run again.

        Parameters
        ----------
        y_true : of :class:`Holder`
        """

    run.__module__ = again.__module__ = "skcalib.nowhere"


def test_entries_are_copied_with_the_default_of_their_new_place():
    fill_docstrings({"__all__": ["taker"], "taker": taker, "source": source})
    assert (
        taker.__doc__
        == """Take.

    Parameters
    ----------
    y_true : array-like
        Labels.
    n_bins : int or None
        Something of two lines,
        and of two names.
    groups : int or None, default="a"
        Something of two lines,
        and of two names.
    **options : dict
        The rest.

    Returns
    -------
    error : float
        Smaller = better.
    """
    )


def test_methods_refer_to_one_another_and_to_their_class():
    fill_docstrings({"__all__": ["Holder"], "Holder": Holder})
    for method in (Holder.run, Holder.again):
        assert "        y_true : array-like\n            Of the class.\n" in method.__doc__


def test_what_is_described_nowhere_is_an_error():
    def lost(other):
        """Get lost.

        Parameters
        ----------
        other : of :func:`source`
        """

    with pytest.raises(ValueError, match="source must describe 'other'"):
        fill_docstrings({"__all__": ["lost"], "lost": lost, "source": source})
