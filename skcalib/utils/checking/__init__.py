"""Checks of what users pass: types, shapes and values, and the order of rows and columns."""
