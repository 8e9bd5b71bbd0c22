"""Pictures of a reproduction. matplotlib is imported on use; no global state is touched.

Losses differ in colour and marker (two colours that colour-blind readers tell apart), polytrain and the paper, or the
two starts, in the line and in the filling of the markers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from polytrain import plotting
from polytrain_paper.experiments.paper_tables import LOSS_NAMES, ModelSize

__all__ = ["have_matplotlib", "make_panels", "plot_ablation", "plot_convergence", "plot_errors", "widest_slice"]

Row = Mapping[str, Any]

COLOURS = {"squared": plotting.COLOURS[0], "logistic": plotting.COLOURS[1]}
MARKERS = {"squared": "o", "logistic": "s"}
AXES = {"d": "number of features d", "degree": "degree in each feature", "rank": "largest rank"}
# The circles are larger than the squares drawn over them, so that equal figures show both.
SIZES = {"squared": 9, "logistic": 5.5}
_SOLID: dict[str, Any] = {"linestyle": "-", "linewidth": 1.8}
_HOLLOW: dict[str, Any] = {"linestyle": "--", "linewidth": 1.3, "markerfacecolor": "white"}


def have_matplotlib() -> bool:
    """Whether pictures can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def make_panels(
    n_rows: int, n_columns: int, width: float, height: float, *, sharex: Any = False, sharey: Any = False
) -> tuple[Any, Any]:
    """Return a figure of its own, apart from pyplot, and its axes (n_rows, n_columns) over a pale grid."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False, sharex=sharex, sharey=sharey)
    for ax in axes.flat:
        ax.grid(True, which="major", color="0.9")
        ax.set_axisbelow(True)
        plotting.clean_axes(ax)
    return figure, axes


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=150)


def widest_slice(rows: Sequence[Row], axis: str) -> tuple[dict[str, int], list[Row]]:
    """Return the rows that differ in one of d, degree and rank only, as many as there are, and what they share.

    Among equally wide slices the one of the smallest models is taken.
    """
    others = [name for name in ModelSize._fields if name != axis]
    slices: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        slices.setdefault(tuple(row[name] for name in others), []).append(row)
    shared = min(slices, key=lambda fixed: (-len({row[axis] for row in slices[fixed]}), fixed))
    return dict(zip(others, shared, strict=True)), sorted(slices[shared], key=lambda row: row[axis])


def plot_errors(path: Path, rows: Sequence[Row], title: str) -> None:
    """Test and training error against d, degree and rank, beside the published ones."""
    figure, axes = make_panels(2, 3, 10.5, 6.4, sharey="row", sharex="col")
    for column, (axis, label) in enumerate(AXES.items()):
        shared, members = widest_slice(rows, axis)
        for line, part in enumerate(("test", "train")):
            ax = axes[line, column]
            for loss, name in LOSS_NAMES.items():
                _draw_series(ax, members, axis, loss, f"{part}_error", f"{name}, polytrain", _SOLID)
                _draw_series(ax, members, axis, loss, f"paper_{part}_error", f"{name}, paper", _HOLLOW)
            ax.set_xticks(sorted({row[axis] for row in members}))
            ax.margins(x=0.12)
        axes[0, column].set_title(", ".join(f"{name} = {value}" for name, value in shared.items()), fontsize="medium")
        axes[1, column].set_xlabel(label)
    for line, part in enumerate(("test error (%)", "training error (%)")):
        axes[line, 0].set_ylabel(part)
        axes[line, 0].set_ylim(0, 1.08 * axes[line, 0].get_ylim()[1])
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(title)
    _save(figure, path)


def _look(loss: str) -> dict[str, Any]:
    return {"color": COLOURS[loss], "marker": MARKERS[loss], "markersize": SIZES[loss]}


def _draw_series(
    ax: Any, rows: Sequence[Row], axis: str, loss: str, field: str, label: str, style: Mapping[str, Any]
) -> None:
    points = [(row[axis], 100 * row[field]) for row in rows if row["loss"] == loss and row[field] is not None]
    if points:
        ax.plot(*zip(*points, strict=True), label=label, clip_on=False, **_look(loss), **style)


def plot_convergence(path: Path, curves: Sequence[Row], title: str) -> None:
    """Objective after every core update, one panel per loss, from both starts."""
    losses = list(dict.fromkeys(curve["loss"] for curve in curves))
    figure, axes = make_panels(1, len(losses), 4.7 * len(losses) + 0.8, 4.4, sharey=True)
    for ax, loss in zip(axes[0], losses, strict=True):
        for curve in (curve for curve in curves if curve["loss"] == loss):
            per_sweep = curve["d"] - 1
            style = _SOLID if curve["init"] == "linear" else _HOLLOW
            label = "linear start" if curve["init"] == "linear" else "random start (the paper's)"
            objectives = curve["objectives"]
            ax.plot(objectives, markevery=per_sweep, label=label, **_look(loss), **style)
            ax.set_xticks(range(0, len(objectives), per_sweep))
        ax.set_yscale("log")
        ax.set_title(f"{LOSS_NAMES[loss]} ({loss} loss), alpha = {curve['alpha']:g}", fontsize="medium")
        ax.set_xlabel(f"core updates (a marker after each sweep of {per_sweep})")
        ax.legend(frameon=False)
    axes[0, 0].set_ylabel("objective: mean loss + regularisation")
    figure.suptitle(title)
    _save(figure, path)


def plot_ablation(path: Path, rows: Sequence[Row], title: str) -> None:
    """Test error of every size, from both starts, one panel per loss."""
    losses = list(dict.fromkeys(row["loss"] for row in rows))
    sizes = list(dict.fromkeys(ModelSize(row["d"], row["degree"], row["rank"]) for row in rows))
    figure, axes = make_panels(
        1, len(losses), 4.6 * len(losses) + 1.4, 0.5 * len(sizes) + 2.2, sharey=True, sharex=True
    )
    for ax, loss in zip(axes[0], losses, strict=True):
        errors = {
            (row["init"], ModelSize(row["d"], row["degree"], row["rank"])): 100 * row["test_error"]
            for row in rows
            if row["loss"] == loss
        }
        for place, size in enumerate(sizes):
            ends = [errors[init, size] for init in ("linear", "random")]
            ax.plot(ends, [place, place], color="0.75", linewidth=1.5, zorder=1)
        for init, style in (("linear", _SOLID), ("random", {**_HOLLOW, "markerfacecolor": "none"})):
            ax.plot(
                [errors[init, size] for size in sizes],
                range(len(sizes)),
                label=f"{init} start",
                **{**_look(loss), **style, "linestyle": "none", "markersize": 8},
            )
        ax.set_title(f"{LOSS_NAMES[loss]} ({loss} loss)", fontsize="medium")
        ax.set_xlabel("test error (%)")
        ax.set_yticks(range(len(sizes)), [f"degree {size.degree}, rank {size.rank}" for size in sizes])
        ax.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.2))  # below: dots may be anywhere
    axes[0, 0].invert_yaxis()
    axes[0, 0].set_xlim(left=0)
    figure.suptitle(title)
    _save(figure, path)
