"""The one door: what users give, checked, and what the data themselves show to be wrong."""
