"""The experiments of the paper behind polytrain: digit data sets, their features, and the tables and figures.

The pipeline of the paper is images -> features -> tensor-train classifier -> decision. What learns and decides is
polytrain; this package has what comes before it, and the comparisons. Its command is ``polytrain reproduce``.
"""
