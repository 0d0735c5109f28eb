"""The reference serving engine of the course, written to be read.

Importing the package is cheap: torch is loaded only by the modules that compute with it. `hardware`, `config`,
`arithmetic` and the two program exercises need the standard library alone, so they also run in a browser.
"""

__version__ = "0.1.0"
