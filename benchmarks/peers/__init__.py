"""Rivals, one file each, all with the same face: ``name``, ``fit(X, y)``, ``predict(X)``.

A class also lists, in ``candidates()``, the settings among which a benchmark may choose by validation on training rows.
"""
