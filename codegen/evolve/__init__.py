"""Two models to changes, changes to findings: what a change means, for whom, and in which order."""
