"""The slow reference of leave-one-out residuals."""

import numpy as np


def refitted(kernel, targets, weights, alpha):
    """Residuals of every row by a kernel problem without it, one after the other."""
    residuals = np.empty_like(targets)
    for row in range(len(targets)):
        others = np.arange(len(targets)) != row
        matrix = kernel[np.ix_(others, others)] + np.diag(0.5 * alpha / weights[others])
        residuals[row] = targets[row] - kernel[row, others] @ np.linalg.solve(matrix, targets[others])
    return residuals
