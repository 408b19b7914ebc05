"""Calls of other estimators and libraries; warnings, progress and docstrings."""
