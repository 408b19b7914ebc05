"""Speed, as ratios to a bound timed in the same run, and the papers' tables."""
