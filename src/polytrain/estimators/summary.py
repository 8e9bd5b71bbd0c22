"""The summary of a fit: its error on left-out rows, the chosen settings and the most important columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any

from sklearn.utils.validation import check_is_fitted

from polytrain.choice import LITTLE
from polytrain.evaluation import metric_text
from polytrain.explain import feature_importances
from polytrain.explain.view import ModelView, read_model
from polytrain.learning.losses import get_loss
from polytrain.texts import html_table, listed, printable, shortened

__all__ = ["Summary", "SummaryMixin", "error_lines", "model_facts"]

# Largest number of bars, the least importance of a column with a bar, and the letters of a full bar.
_MOST_BARS, _LEAST_BAR, _BAR = 10, 0.005, 24
_KINDS = {"number": ("number", "numbers"), "date": ("date", "dates")}
# Colours are those of the page around it, light or dark.
_STYLE = (
    "<style>.polytrain-summary{font:14px/1.45 system-ui,sans-serif;max-width:46rem;overflow-wrap:anywhere}"
    ".polytrain-summary p{margin:.2rem 0}.polytrain-summary .main{font-size:1.25rem;font-weight:600}"
    ".polytrain-summary table{border-collapse:collapse;margin:.6rem 0;color:inherit;background:none}"
    ".polytrain-summary th,.polytrain-summary td{text-align:left;vertical-align:top;padding:.1rem .8rem .1rem 0;"
    "color:inherit;background:none;border:0}.polytrain-summary th{font-weight:600;white-space:nowrap}"
    ".polytrain-summary i{display:block;height:.8em;min-width:2px;margin-top:.3em;background:#2f86c9}"
    ".polytrain-summary .warning{border-left:4px solid #d9822b;padding-left:.6rem}</style>"
)


@dataclass(frozen=True, repr=False)
class Summary:
    """The summary of a fit; ``print`` and notebooks show it.

    Attributes
    ----------
    title : str
        Kind and size of the model.
    error : tuple of str
        The error, the rows it was measured on, other metrics, and errors of simple models on the same rows.
    facts : tuple of (str, str)
        The given and chosen settings, the kinds of the columns, and columns that were hardly needed.
    bars : tuple of (str, float)
        The most important columns, with their importances.
    warnings : tuple of str
    """

    title: str
    error: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    bars: tuple[tuple[str, float], ...]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, estimator: Any, view: ModelView | None = None) -> Summary:
        """Summarise a fitted estimator, perhaps with names of its own in a ``view``."""
        view = view or read_model(estimator)
        facts, n = model_facts(estimator), len(view.column_names)
        title = f"{facts['estimator']}: {n:,} column{'s' * (n > 1)}, {facts['parameters']:,} parameters"
        lines = *_settings(estimator, facts), *_column_facts(estimator, view)
        warned = tuple(map(printable, estimator.warnings_))
        return cls(title, error_lines(estimator), tuple(line for line in lines if line[1]), _importances(view), warned)

    def __str__(self) -> str:
        number, *details = self.error
        lines = [self.title, number, *(f"  {line}" for line in details)]
        lines += [f"{name:<14}{text}" for name, text in (*self.facts, *(("warning", line) for line in self.warnings))]
        if self.bars:
            lines.append("most important columns, with their share of the total importance:")
            names, largest = [shortened(name, 30) for name, _ in self.bars], self.bars[0][1]
            for name, (_, share) in zip(names, self.bars, strict=True):
                bar = "#" * max(round(_BAR * share / largest), 1)
                lines.append(f"  {name:<{max(map(len, names))}} {100 * share:5.1f} % {bar}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        lines = [("", self.title), ("main", self.error[0]), *(("", line) for line in self.error[1:])]
        lines += [("warning", line) for line in self.warnings]
        page = [f'<p class="{name}">{escape(text)}</p>' for name, text in lines]
        page.append(html_table(self.facts))
        if self.bars:
            page.append("<p>Most important columns, with their share of the total importance</p><table>")
        for name, share in self.bars:
            bar = f'<i style="width:{8 * share / self.bars[0][1]:.2f}rem"></i>'
            number = f'<td style="white-space:nowrap">{100 * share:.1f} %</td>'
            page.append(f"<tr><td>{escape(shortened(name))}</td><td>{bar}</td>{number}</tr>")
        return f'<div class="polytrain-summary">{_STYLE}{"".join(page)}{"</table>" * bool(self.bars)}</div>'


class SummaryMixin:
    """Gives estimators the method `summary`, and shows it in notebooks."""

    def summary(self) -> Summary:
        """Summarise the fit, as text and as HTML for notebooks.

        It begins with the error on left-out rows, in the usual metric: the share of wrong labels, or the root mean
        squared error in the target's unit (for other losses their deviance, or the absolute error). Then come the
        errors of simple models on the same rows, the settings, the most important columns, and warnings. Nothing is
        fitted; if no rows were left out, it says so.

        Returns
        -------
        Summary
            Print it, or display it in a notebook, which also shows it below the diagram of a fitted estimator.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from polytrain import TensorTrainClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> print(TensorTrainClassifier(random_state=0).fit(X, y).summary())
        TensorTrainClassifier: 4 columns, 324 parameters
        error 2.67 %
          on each of the 150 rows left out in turn; they also chose the settings
          area under the ROC curve 0.99..., log loss 0.07...
          for comparison, on the same rows: always the most frequent class 66.67 %
          without interactions, the mean loss during the search was not clearly higher
        chosen        basis smooth, bandwidth 0.354, alpha 1e-07, rank 2
        loss          squared
        columns       4 numbers
        most important columns, with their share of the total importance:
          petal length (cm)  60... % ########################
          petal width (cm)   3... % ############...
        ...
        """
        check_is_fitted(self, "model_")
        return Summary.of(self)

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram: Callable[[], str] = super()._repr_html_  # type: ignore[misc]  # there is none if texts are displayed
        return lambda: diagram() + self._summary_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._summary_html()
        return bundle

    def _summary_html(self) -> str:
        return self.summary()._repr_html_() if hasattr(self, "model_") else ""


def error_lines(estimator: Any) -> tuple[str, ...]:
    """Return the error with its rows, other metrics, and simple models on the same rows."""
    left_out, loss, chosen = estimator.left_out_, estimator.plan_.loss, estimator.choice_
    if left_out is None or not left_out.model:
        why = "the fit has kept no scores of left-out rows" if chosen.tried else "no rows were left out of this fit"
        return f"error not measured: {why}", "Measure it with score on rows of your own."
    (first, value), *others = left_out.model.items()
    n_targets = 1 if estimator.model_.one_output else estimator.model_.n_trains
    words = metric_text(first, value, loss) + " in the target's unit" * (first in ("rmse", "mae"))
    lines = [words + f", the mean over {n_targets} targets" * (n_targets > 1), f"on {printable(left_out.where)}"]
    if others:
        lines.append(", ".join(metric_text(name, figure, loss) for name, figure in others))
    constant = "the best constant" if estimator.model_.classes is None else "always the most frequent class"
    simple = {constant: left_out.constant, "a linear model": left_out.linear}
    known = [f"{name} {metric_text(first, figures[first])}" for name, figures in simple.items() if first in figures]
    if known:
        lines.append(f"for comparison, on the same rows: {', '.join(known)}")
    if chosen.linear_ratio is not None:
        ratio = f"up to {chosen.linear_ratio:.3g} times as high" if chosen.linear_ratio > 1.01 else "not clearly higher"
        lines.append(f"without interactions, the mean loss during the search was {ratio}")
    return tuple(lines)


def _settings(estimator: Any, facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Settings that were chosen, those that were given, and the loss."""
    values = {name: facts[name] for name in ("basis", "bandwidth", "alpha", "rank") if name in facts}
    texts = {k: f"{k} {value:.3g}" if isinstance(value, float) else f"{k} {value}" for k, value in values.items()}
    is_auto = {name: isinstance(value := getattr(estimator, name), str) and value == "auto" for name in texts}
    chosen, given = (", ".join(texts[name] for name in texts if is_auto[name] == wanted) for wanted in (True, False))
    return [("chosen", chosen), ("given", given), ("loss", get_loss(facts["loss"]).name)]


def _column_facts(estimator: Any, view: ModelView) -> list[tuple[str, str]]:
    """The kinds of the columns, and which columns were hardly needed."""
    names, maps, relevances = view.column_names, view.fitted.maps, estimator.choice_.relevances
    kinds = Counter(_KINDS.get(column.kind, ("category", "categories")) for column in view.columns.columns)
    understood = ", ".join(f"{count:,} {words[count > 1]}" for words, count in kinds.items())
    gaps = [names[k] for k, group in enumerate(view.groups) if any(maps[j].has_missing for j in group)]
    sizes = [1.0 if relevances is None else max(relevances[j] for j in group) for group in view.groups]
    few = [name for name, size in zip(names, sizes, strict=True) if size < LITTLE]
    return [("columns", understood), ("with gaps", listed(gaps)), ("hardly needed", listed(few))]


def _importances(view: ModelView) -> tuple[tuple[str, float], ...]:
    """The most important columns; empty if there are no rows or ranges to average over."""
    with suppress(ValueError):
        ranked = feature_importances(view).ranked()[:_MOST_BARS]
        return tuple((printable(name), share) for name, share in ranked if share >= _LEAST_BAR)
    return ()


def model_facts(estimator: Any) -> dict[str, Any]:
    """Return properties of a fitted estimator by name, in the order in which they are shown."""
    plan, maps, bandwidth = estimator.plan_, estimator.maps_, estimator.choice_.bandwidth
    is_polynomial = all(feature_map.powers is not None for feature_map in maps)
    facts: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "loss": plan.loss,
        **({"degree": max(maps.dims) - 1} if is_polynomial else {"functions": max(maps.dims)}),
        "rank": max(plan.ranks),
        "alpha": plan.alpha,
        **({} if bandwidth is None else {"bandwidth": bandwidth}),
        "basis": ", ".join(dict.fromkeys(feature_map.basis for feature_map in maps)),
        "features": estimator.model_.n_features,
        "parameters": estimator.n_parameters_,
        "sweeps": estimator.n_iter_,
        "stop_reason": estimator.stop_reason_,
    }
    if estimator.model_.classes is not None:
        facts["classes"] = [str(label) for label in estimator.classes_]
        facts["decision"] = estimator.decision_.name
    return facts
