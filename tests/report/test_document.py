"""Numbers as a page writes them, by hand."""

from math import inf, nan

import pytest

from skcalib.report._document import (
    count,
    format_interval,
    format_means,
    format_number,
    format_percent,
    format_percent_interval,
    format_points,
    format_probability,
    format_threshold,
    format_with_interval,
)


def _ends(value, low, high):
    return {"value": value, "low": low, "high": high}


@pytest.mark.parametrize(
    ("write", "value", "expected"),
    [
        (format_number, 0.12345, "0.123"),
        (format_number, 0.0, "0.000"),
        # Small ones are not rounded away.
        (format_number, 0.00051, "0.001"),
        (format_number, 0.00049, "0.0005"),
        (format_number, -0.00041, "-0.0004"),
        (format_number, None, "-"),
        (format_number, nan, "-"),
        (format_number, inf, "infinite"),
        (format_number, -inf, "-infinite"),
        (format_percent, 0.0, "0.0 %"),
        (format_percent, 0.12345, "12.3 %"),
        (format_percent, 0.9994, "99.9 %"),
        # Less than all are not shown as all.
        (format_percent, 0.9996, ">99.9 %"),
        (format_percent, 1.0, "100.0 %"),
        (format_percent, None, "-"),
        (format_percent, nan, "-"),
        (format_probability, 0.00099, "<0.001"),
        (format_probability, 0.001, "0.001"),
        (format_interval, _ends(0.5, 0.25, 0.0004), "0.250 to 0.0004"),
        (format_interval, _ends(0.5, nan, nan), "-"),
        (format_with_interval, _ends(0.5, 0.25, 0.75), "0.500 (0.250 to 0.750)"),
        (format_percent_interval, _ends(0.5, 0.25, 0.75), "50.0 % (25.0-75.0)"),
        (format_percent_interval, _ends(nan, nan, nan), "-"),
        (format_threshold, 0.99994, "0.9999"),
        (format_threshold, 0.99996, "1 - 4e-05"),
        (format_threshold, 1.0, "1.0000"),
        (format_threshold, None, "-"),
        (count, 1234567.0, "1 234 567"),
        (format_points, 0.01, "1.0 point"),
        (format_points, 0.0, "0.0 points"),
        (format_points, 0.0994, "9.9 points"),
        (format_points, 0.0996, "10 points"),
        (format_points, 0.1, "10 points"),
        # An end above 0 is not shown as 0.
        (format_percent_interval, _ends(0.01, 0.0003, 0.03), "1.0 % (0.03-3.0)"),
        (format_points, 0.0003, "0.03 points"),
    ],
)
def test_numbers(write, value, expected):
    assert write(value).replace("\u00a0", " ") == expected


@pytest.mark.parametrize(
    ("predicted", "observed", "expected"),
    [
        (0.5, (0.521, 0.479, 0.561), ("50 %", "52 %", "48 to 56 %")),
        (0.503, (0.521, 0.496, 0.561), ("50.3 %", "52.1 %", "49.6 to 56.1 %")),
        (0.12, (0.02, 0.0004, 0.07), ("12 %", "2 %", "0.04 to 7 %")),
        (0.5, (0.5, 0.25, 0.75), ("50.00 %", "50.00 %", "25.00 to 75.00 %")),
    ],
)
def test_prediction_and_observation_differ_also_when_rounded(predicted, observed, expected):
    found = format_means(predicted, _ends(*observed))
    assert tuple(text.replace("\u00a0", " ") for text in found) == expected
