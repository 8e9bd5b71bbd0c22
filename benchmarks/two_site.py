"""Two-site updates, which find the ranks as they go, against the ladder of ranks: objective, held-out error, time.

    POLYTRAIN_DATA=FOLDER python -m benchmarks.two_site [--quick]
    python -m benchmarks.two_site --check        the prototype against brute force, no data needed

Both begin at the linear model and have the maps and the alpha that the default estimator has chosen on the training
rows (four fifths of a table). The ladder makes two one-way sweeps at each of the ranks 2, 4, 8 and 16, every rank from
the one below. A two-site sweep merges cores k and k + 1, minimises the squared loss over the merged core, and splits it
by an SVD: the bond gets the least rank, up to a cap, that leaves the objective within a tolerance. It solves by
conjugate gradients with four Kronecker factors as a preconditioner ("cg"), or exactly with an unknown per row ("rows").
Where the cap cuts off more than the tolerance, the core that is left behind gets a one-site update; an update that is
still worse than the old cores is refused, and these get it instead. So the objective never rises.

"ladder" is the package, which solves exactly where cores have more entries than there are rows; "ladder, prototype"
has the conjugate gradients of this script in every core, with as little care for speed as the two-site updates.

Times are seconds of the processor, on one BLAS thread and without those of the choice and of the linear model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from benchmarks import tabular
from benchmarks.report import Report, make_parser
from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.learning.dual import product_kernel, solve_dual
from polytrain.learning.gauge import fit_ranks, shift_left, shift_right
from polytrain.learning.problem import ProblemRows
from polytrain.learning.settings import Settings, Start
from polytrain.learning.trainer import learn_train
from polytrain.maps import MapList
from polytrain.tensor import TensorTrain, clip_ranks

NUMBERS, CLASSES = ("airfoil", "concrete"), ("phoneme", "banana", "spambase")
RANKS, RUNG_SWEEPS = (2, 4, 8, 16), 2
CAPS, N_SWEEPS = (8, 16), 4
#: What all cuts of a sweep together may add to the objective, relative.
TOLERANCE = 0.01
#: Up to so many rows, updates in the space of the rows are measured too.
FEW_ROWS = 1300
# Conjugate gradients end like those of the package: when the next step, extrapolated from the last two, would bring
# less than this part of what the update has brought so far.
CG_TOL, MAX_CG = 0.01, 12


# --- the prototype ----------------------------------------------------------------------------------------------------


class SiteRows:
    """All rows as one core, or two merged ones, sees them: the score of row j is left[:, j] @ core @ right[:, j].

    Either side is a product of factors, (size, N) each, such as an environment and the functions of a column. Weights
    are 1 / N.
    """

    def __init__(self, near: Sequence[NDArray], far: Sequence[NDArray], target: NDArray) -> None:
        self.near, self.far, self.target = near, far, target
        self.left, self.right = reduce(_spread, near), reduce(_spread, far)

    def scores(self, merged: NDArray) -> NDArray:
        return np.einsum("pj,pj->j", self.left, merged @ self.right)

    def adjoint(self, slopes: NDArray) -> NDArray:
        """Sum over rows of slope * left * right'."""
        return (self.left * (slopes / len(slopes))) @ self.right.T

    def objective(self, merged: NDArray, alpha: float) -> float:
        return float(np.mean(np.square(self.scores(merged) - self.target)) + 0.5 * alpha * np.vdot(merged, merged))

    def preconditioner(self, alpha: float) -> Callable[[NDArray], NDArray]:
        """Inverse of 2 F1 x F2 x F3 x F4 + alpha, with the second moments of all factors."""
        (near_sizes, near), (far_sizes, far) = self._moments(self.near), self._moments(self.far)
        spectrum = 2.0 * np.outer(near_sizes, far_sizes) + alpha
        return lambda core: near @ ((near.T @ core @ far) / spectrum) @ far.T

    def _moments(self, factors: Sequence[NDArray]) -> tuple[NDArray, NDArray]:
        """Eigenvalues and eigenvectors of the Kronecker product of the factors' second moments."""
        found = [eigh(factor @ factor.T / len(self.target), check_finite=False) for factor in factors]
        return reduce(np.kron, [sizes.clip(0.0) for sizes, _ in found]), reduce(np.kron, [turn for _, turn in found])


def _spread(one: NDArray, other: NDArray) -> NDArray:
    """Products of all pairs of rows of two matrices, (a, N) and (n, N) -> (a * n, N)."""
    return (one[:, None, :] * other).reshape(-1, one.shape[1])


def solve_cg(rows: SiteRows, merged: NDArray, alpha: float, tol: float = CG_TOL, most: int = MAX_CG) -> NDArray:
    """Improve a merged core by preconditioned conjugate gradients."""
    precondition = rows.preconditioner(alpha)
    residual = -2.0 * rows.adjoint(rows.scores(merged) - rows.target) - alpha * merged
    search = conjugate = precondition(residual)
    angle = float(np.vdot(residual, conjugate))
    total = gain = 0.0
    for _ in range(most):
        if angle <= 0.0:
            break
        image = 2.0 * rows.adjoint(rows.scores(search)) + alpha * search
        length = angle / float(np.vdot(search, image))
        merged = merged + length * search
        previous_gain, gain = gain, 0.5 * length * angle
        total += gain
        ratio = gain / previous_gain if previous_gain else 1.0
        if min(ratio, 1.0) * gain < tol * total:
            break
        residual = residual - length * image
        conjugate = precondition(residual)
        previous, angle = angle, float(np.vdot(residual, conjugate))
        search = conjugate + (angle / previous) * search
    return merged


def solve_rows(rows: SiteRows, merged: NDArray, alpha: float) -> NDArray:
    """The best merged core, with one unknown per row."""
    kernel = (rows.left.T @ rows.left) * (rows.right.T @ rows.right)
    n_rows = len(rows.target)
    coefficients = solve_dual(kernel, rows.target, np.full(n_rows, 1.0 / n_rows), alpha)
    return (rows.left * coefficients) @ rows.right.T


SOLVERS: dict[str, Callable[[SiteRows, NDArray, float], NDArray]] = {"cg": solve_cg, "rows": solve_rows}


def split(
    rows: SiteRows, merged: NDArray, alpha: float, cap: int, allowed: float
) -> tuple[NDArray, NDArray, NDArray, float]:
    """Cut a merged core to the least rank whose objective is no more than allowed, or to the best one up to the cap.

    Returns orthonormal directions on either side, singular values, and the objective.
    """
    near, sizes, far = np.linalg.svd(merged, full_matrices=False)
    most = max(1, min(cap, int(np.sum(sizes > 1e-14 * sizes[0]))))
    near, sizes, far = near[:, :most], sizes[:most], far[:most]
    # Scores at every rank, one row of the table each.
    scores = np.cumsum((sizes[:, None] * (near.T @ rows.left)) * (far @ rows.right), axis=0)
    losses = np.mean(np.square(scores - rows.target), axis=1)
    objectives = losses + 0.5 * alpha * np.cumsum(np.square(sizes))
    enough = np.flatnonzero(objectives <= allowed)
    rank = 1 + int(enough[0] if len(enough) else np.argmin(objectives))
    return near[:, :rank], sizes[:rank], far[:rank], float(objectives[rank - 1])


@dataclass(frozen=True)
class State:
    """A train after a sweep; `n_refused` of its updates were worse than the old cores once cut to the cap."""

    sweep: int
    objective: float
    cores: tuple[NDArray, ...]
    seconds: float
    n_refused: int = 0


@dataclass
class TwoSite:
    """Two-site sweeps over the cores of one train, for the squared loss.

    `values` has the functions of every column, (n, N) each. `update_done` is told the objective after every update.
    """

    values: Sequence[NDArray]
    target: NDArray
    alpha: float
    cap: int
    tolerance: float = TOLERANCE
    solver: str = "cg"
    update_done: Callable[[float], None] = lambda objective: None

    def sweeps(self, start: Sequence[NDArray], n_sweeps: int) -> Iterator[State]:
        """Go right and left in turn, from cores that are right-orthogonal from the second one on."""
        began = time.process_time()
        self._cores, d = list(start), len(start)
        nothing = np.ones((1, len(self.target)))
        self._lefts = [nothing] * d
        self._rights = [nothing] * d  # right of core k
        for k in range(d - 1, 0, -1):
            self._rights[k - 1] = self._extended_left(k)
        for sweep in range(1, n_sweeps + 1):
            to_right = sweep % 2 == 1
            self._n_refused = 0
            for k in range(d - 1) if to_right else range(d - 2, -1, -1):
                objective = self._update(k, to_right)
                self.update_done(objective)
            yield State(sweep, objective, tuple(self._cores), time.process_time() - began, self._n_refused)

    def _update(self, k: int, to_right: bool) -> float:
        one, other = self._cores[k], self._cores[k + 1]
        (a, n, rank), (_, m, b) = one.shape, other.shape
        rows = SiteRows((self._lefts[k], self.values[k]), (self.values[k + 1], self._rights[k + 1]), self.target)
        old = one.reshape(a * n, rank) @ other.reshape(rank, m * b)
        before = rows.objective(old, self.alpha)
        merged = SOLVERS[self.solver](rows, old, self.alpha)
        after = rows.objective(merged, self.alpha)
        allowed = min(before, after * (1.0 + self.tolerance / len(self.values)))
        near, sizes, far, objective = split(rows, merged, self.alpha, self.cap, allowed)
        if objective > allowed:
            near, sizes, far, objective = self._corrected(rows, near, sizes, far, to_right)
        if objective > before:
            self._n_refused += 1
            pieces = split(rows, old, self.alpha, rank, -np.inf)
            near, sizes, far, objective = self._corrected(rows, *pieces[:3], to_right)
        if to_right:
            far = sizes[:, None] * far
            self._lefts[k + 1] = near.T @ rows.left
        else:
            near = near * sizes
            self._rights[k] = far @ rows.right
        self._cores[k], self._cores[k + 1] = near.reshape(a, n, -1), far.reshape(-1, m, b)
        return objective

    def _corrected(
        self, rows: SiteRows, near: NDArray, sizes: NDArray, far: NDArray, to_right: bool
    ) -> tuple[NDArray, NDArray, NDArray, float]:
        """A one-site update, after a cut that matters, of the core that is left behind: an SVD knows no rows."""
        if to_right:
            own = SiteRows(rows.near, (far @ rows.right,), self.target)
            merged = solve_cg(own, near * sizes, self.alpha) @ far
        else:
            own = SiteRows((near.T @ rows.left,), rows.far, self.target)
            merged = near @ solve_cg(own, sizes[:, None] * far, self.alpha)
        return split(rows, merged, self.alpha, len(sizes), -np.inf)

    def _extended_left(self, k: int) -> NDArray:
        """What is right of core k - 1, from what is right of core k."""
        core = self._cores[k]
        return core.reshape(len(core), -1) @ _spread(self.values[k], self._rights[k])


def one_site_sweeps(
    values: Sequence[NDArray], target: NDArray, alpha: float, start: Sequence[NDArray], n_sweeps: int
) -> list[NDArray]:
    """Plain sweeps by conjugate gradients in every core, however few the rows are, to tell apart what gains what."""
    rng = np.random.default_rng(0)
    cores, last = list(start), len(start) - 1
    nothing = np.ones((1, len(target)))
    lefts, rights = [nothing] * len(cores), [nothing] * len(cores)
    for k in range(last, 0, -1):
        rights[k - 1] = cores[k].reshape(len(cores[k]), -1) @ _spread(values[k], rights[k])
    for sweep in range(n_sweeps):
        to_right = sweep % 2 == 0
        for k in range(last) if to_right else range(last, 0, -1):
            shape = cores[k].shape
            rows = SiteRows((lefts[k], values[k]), (rights[k],), target)
            core = solve_cg(rows, cores[k].reshape(-1, shape[2]), alpha).reshape(shape)
            if to_right:
                cores[k], cores[k + 1] = shift_right(core, cores[k + 1], rng)
                lefts[k + 1] = cores[k].reshape(-1, shape[2]).T @ rows.left
            else:
                cores[k], cores[k - 1] = shift_left(core, cores[k - 1], rng)
                rights[k - 1] = cores[k].reshape(shape[0], -1) @ _spread(values[k], rights[k])
    return cores


# --- the comparison ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A table with the maps and the alpha of the default estimator; targets have mean 0 and size 1, or are -1 and 1."""

    name: str
    maps: MapList
    chosen: str
    alpha: float
    columns: NDArray
    target: NDArray
    test_columns: NDArray
    test_target: NDArray
    size: float | None

    @classmethod
    def load(cls, name: str) -> Case:
        X, y = tabular.load(name)
        is_class = name in CLASSES
        parts = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y if is_class else None)
        train, test, y_train, y_test = parts
        estimator: Any = TensorTrainClassifier if is_class else TensorTrainRegressor
        fitted = estimator(random_state=0).fit(train, y_train)
        if is_class:
            size = None
            targets = [np.where(labels == fitted.classes_[1], 1.0, -1.0) for labels in (y_train, y_test)]
        else:
            size = float(np.std(y_train))
            targets = [(numbers - np.mean(y_train)) / size for numbers in (y_train, y_test)]
        choice, maps = fitted.choice_, fitted.maps_
        chosen = f"{choice.basis}, bandwidth {choice.bandwidth:.3g}, alpha {choice.alpha:.2g}, rank {choice.rank}"
        return cls(name, maps, chosen, choice.alpha, maps.place(train), targets[0], maps.place(test), targets[1], size)

    def values(self, columns: NDArray) -> list[NDArray]:
        return [feature_map.values(column) for feature_map, column in zip(self.maps, columns, strict=True)]

    def plan(self, rank: int, n_sweeps: int) -> Settings:
        ranks = clip_ranks(self.maps.dims, rank)
        return Settings("squared", ranks, self.alpha, "linear", "auto", n_sweeps, 0.0)

    def row(self, method: str, step: str, cores: Sequence[NDArray], seconds: float) -> dict:
        """One line of the table; the objective is found from the cores alone."""
        train = TensorTrain(cores)
        loss = np.mean(np.square(train.contract(self.values(self.columns)) - self.target))
        scores = train.contract(self.values(self.test_columns))
        if self.size is None:
            error = 100 * float(np.mean(np.where(scores > 0, 1.0, -1.0) != self.test_target))
        else:
            error = self.size * float(np.sqrt(np.mean(np.square(scores - self.test_target))))
        ranks = [core.shape[2] for core in cores[:-1]]
        return {
            "table": self.name,
            "method": method,
            "step": step,
            "objective": float(loss + 0.5 * self.alpha * train.inner(train)),
            "held-out error": error,
            "ranks": " ".join(map(str, ranks)) if len(ranks) <= 8 else f"{min(ranks)} to {max(ranks)}",
            "numbers": sum(core.size for core in cores),
            "seconds": seconds,
        }


def climb(case: Case, start: Sequence[NDArray], ranks: Sequence[int], prototype: bool) -> Iterator[dict]:
    """The ladder, rung by rung: as the package solves core problems, or by the prototype's conjugate gradients."""
    rows = ProblemRows.make(case.columns, case.target, np.ones(len(case.target)))
    values = case.values(case.columns)
    cores, seconds = start, 0.0
    for rank in ranks:
        plan = case.plan(rank, RUNG_SWEEPS)
        began = time.process_time()
        if prototype:
            wider = fit_ranks(cores, plan.ranks, np.random.default_rng(rank))
            cores = one_site_sweeps(values, case.target, case.alpha, wider, RUNG_SWEEPS)
        else:
            cores = learn_train(plan, case.maps, rows, Start(0, cores)).cores
        seconds += time.process_time() - began
        yield case.row("ladder, prototype" if prototype else "ladder", f"rank {rank}", cores, seconds)


def compare(case: Case, quick: bool, tolerance: float) -> list[dict]:
    """The linear model, the ladder's rungs, and every sweep of the two-site runs."""
    rows = ProblemRows.make(case.columns, case.target, np.ones(len(case.target)))
    start = learn_train(case.plan(2, 0), case.maps, rows, Start(0)).cores
    lines = [case.row("linear", "", start, 0.0)]
    for prototype in (False, True):
        lines += climb(case, start, RANKS[:3] if quick else RANKS, prototype)
    solvers = ("cg", "rows") if len(case.target) <= FEW_ROWS else ("cg",)
    for cap in CAPS[:1] if quick else CAPS:
        for solver in solvers:
            sweeper = TwoSite(case.values(case.columns), case.target, case.alpha, cap, tolerance, solver)
            for state in sweeper.sweeps(start, N_SWEEPS):
                refused = f", {state.n_refused} refused" if state.n_refused else ""
                step = f"sweep {state.sweep}{refused}"
                lines.append(case.row(f"two-site, {solver}, cap {cap}", step, state.cores, state.seconds))
    return lines


def at_equal_time(lines: Sequence[dict]) -> list[dict]:
    """Every two-site run beside both ladders' rungs of the rank of its cap, after the sweep that is nearest in time."""
    found = []
    for ladder in ("ladder", "ladder, prototype"):
        rungs = {line["step"]: line for line in lines if line["method"] == ladder}
        for method in dict.fromkeys(line["method"] for line in lines if line["method"].startswith("two-site")):
            rung = rungs[f"rank {method.split()[-1]}"]
            states = [line for line in lines if line["method"] == method]
            state = min(states, key=lambda line: abs(np.log(line["seconds"] / rung["seconds"])))
            found.append(
                {
                    "table": rung["table"],
                    "ladder": f"{ladder}, {rung['step']}",
                    "two-site": method.removeprefix("two-site, "),
                    "sweep": state["step"].split()[1].rstrip(","),
                    "time ratio": state["seconds"] / rung["seconds"],
                    "objective ratio": state["objective"] / rung["objective"],
                    "error ratio": state["held-out error"] / rung["held-out error"],
                }
            )
    return found


# --- checks -----------------------------------------------------------------------------------------------------------


def _difference(one: Any, other: Any) -> float:
    return float(np.max(np.abs(np.asarray(one) - other)) / np.max(np.abs(other)))


def check() -> None:
    """Print relative differences from brute force on tiny problems; raise an error where one is too large."""
    rng = np.random.default_rng(0)
    n_rows, dims, alpha = 60, (3, 4, 2, 3, 4), 1e-2
    values = [np.vstack([np.ones(n_rows), rng.standard_normal((n - 1, n_rows))]) for n in dims]
    target = rng.standard_normal(n_rows)

    def found(what: str, difference: float, most: float) -> None:
        print(f"{what}: {difference:.1e}")
        if not difference <= most:
            raise ArithmeticError(f"{what} should be at most {most:.1e}, got {difference:.1e}")

    factors = (rng.standard_normal((2, n_rows)), values[1], values[2], rng.standard_normal((3, n_rows)))
    rows = SiteRows(factors[:2], factors[2:], target)
    begin = rng.standard_normal((len(rows.left), len(rows.right)))
    matrix = np.einsum("aj,nj,mj,bj->janmb", *factors).reshape(n_rows, -1)
    hessian = 2 * matrix.T @ matrix / n_rows + alpha * np.eye(begin.size)
    best = np.linalg.solve(hessian, 2 * matrix.T @ target / n_rows)
    nearly = 2 * reduce(np.kron, [f @ f.T / n_rows for f in factors]) + alpha * np.eye(begin.size)
    found("scores of a merged core", _difference(rows.scores(begin).ravel(), matrix @ begin.ravel()), 1e-12)
    found("cg", _difference(solve_cg(rows, begin, alpha, 0.0, 500).ravel(), best), 1e-8)
    found("rows", _difference(solve_rows(rows, begin, alpha).ravel(), best), 1e-8)
    inverse = rows.preconditioner(alpha)(begin).ravel()
    found("preconditioner", _difference(inverse, np.linalg.solve(nearly, begin.ravel())), 1e-9)

    # Two columns have one bond: without a cut, one update is the exact solution of the kernel problem.
    start = fit_ranks([rng.standard_normal((1, 3, 2)), rng.standard_normal((2, 4, 1))], (1, 2, 1), rng)
    (state,) = TwoSite(values[:2], target, alpha, 16, 0.0, "rows").sweeps(start, 1)
    kernel = product_kernel(values[:2])
    scores = kernel @ solve_dual(kernel, target, np.full(n_rows, 1.0 / n_rows), alpha)
    found("two columns, against the kernel", _difference(TensorTrain(state.cores).contract(values[:2]), scores), 1e-9)

    for solver in SOLVERS:
        for cap in (2, 3, 16):
            ranks = clip_ranks(dims, 2)
            shapes = zip(ranks, dims, ranks[1:], strict=False)
            start = fit_ranks([rng.standard_normal(shape) for shape in shapes], ranks, rng)
            told = [np.inf]
            for state in TwoSite(values, target, alpha, cap, 1e-3, solver, told.append).sweeps(start, 6):
                dense = TensorTrain(state.cores).to_dense()
                fits = np.einsum("aj,bj,cj,dj,ej,abcde->j", *values, dense, optimize=True)
                brute = np.mean(np.square(fits - target)) + 0.5 * alpha * np.sum(np.square(dense))
                found(f"{solver}, cap {cap}, sweep {state.sweep}: objective", _difference(state.objective, brute), 1e-9)
            steps = np.diff(told[1:]) / told[-1]
            found(f"{solver}, cap {cap}: largest rise over {len(steps)} updates", max(0.0, float(steps.max())), 1e-9)
    print("all checks passed")


def main(argv: list[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--check", action="store_true", help="only compare the prototype with brute force")
    parser.add_argument("--only", nargs="+", choices=(*NUMBERS, *CLASSES), help="names of tables")
    parser.add_argument("--tolerance", type=float, default=TOLERANCE, help="what all cuts of a sweep may cost")
    arguments = parser.parse_args(argv)
    if arguments.check:
        check()
        return
    if not tabular.data_folder():
        print("two_site: skipped, POLYTRAIN_DATA is not set")
        return
    report = Report("two_site", arguments.quick)
    wanted = arguments.only or (("concrete", "banana") if arguments.quick else (*NUMBERS, *CLASSES))
    summary: list[dict] = []
    for name in wanted:
        with threadpool_limits(1):
            case = Case.load(name)
            lines = compare(case, arguments.quick, arguments.tolerance)
        shape = f"{len(case.target)} rows, {len(case.maps)} columns of up to {max(case.maps.dims)} functions"
        report.table(f"{name}: {shape}, {case.chosen}", lines, markdown=True)
        summary += at_equal_time(lines)
    report.table("two-site / ladder, at the rank of the cap and after about the same time", summary, markdown=True)
    report.finish()


if __name__ == "__main__":
    main()
