"""How the package talks to other estimators, libraries and readers."""
