"""The version of the package, where everything that writes files can read it."""

__all__ = ["__version__"]

__version__ = "0.2.0"
