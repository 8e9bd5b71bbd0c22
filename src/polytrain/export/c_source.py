"""Fitted models as C99 source without dependencies, for devices where nothing else fits.

The file has tables of numbers and a few loops over them: scale, basis values, one matrix-vector product per feature,
decide. Nothing is allocated; the working memory is two vectors of the largest rank and the basis values of one feature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from polytrain.basis import get_basis
from polytrain.estimators import TensorTrainRegressor
from polytrain.estimators._base import TrainModel

__all__ = ["to_c"]

_TYPES: dict[str, tuple[str, str, Any]] = {"float64": ("double", "", np.float64), "float32": ("float", "f", np.float32)}
_KEYWORDS = re.compile(
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|main|"
    "register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while"
)


def to_c(model: Any, name: str = "model", *, dtype: str = "float64") -> str:
    """Return the source of a C99 file that predicts what a fitted model predicts.

    The file needs no other file, allocates nothing and calls nothing, except for ``exp``, ``log`` and ``log1p`` of the
    standard mathematics library where the model has probabilities. It compiles without warnings.

    Parameters
    ----------
    model : TensorTrainClassifier, TensorTrainClassifierCV or TensorTrainRegressor
        The fitted model.
    name : str, default="model"
        What the names of the functions begin with.
    dtype : {"float64", "float32"}, default="float64"
        "float64" gives tables and arithmetic in double, exact to the last digit of the model; "float32" gives float,
        for devices that have no double.

    Returns
    -------
    str
        Source with these functions, in terms of ``double`` (or ``float``):

        - classifiers: ``int NAME_predict(const double *x)`` returns the index of the class, and
          ``NAME_class_names`` are the labels as text; ``void NAME_scores(const double *x, double *scores)`` is the
          decision function, one number for two classes and one per class for more; with the logistic loss
          ``void NAME_probabilities(const double *x, double *probabilities)``.
        - regressors: ``double NAME_predict(const double *x)``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from polytrain import TensorTrainClassifier
    >>> from polytrain.export import to_c
    >>> X, y = load_iris(return_X_y=True)
    >>> source = to_c(TensorTrainClassifier(rank=2, random_state=0).fit(X, y), name="iris")
    >>> "int iris_predict(const double *x);" in source
    True
    """
    if not isinstance(model, TrainModel):
        raise TypeError(
            f"to_c needs a TensorTrainClassifier or TensorTrainRegressor, got {type(model).__name__}. Of a pipeline, "
            "pass the last step, and do what the other steps do before calling the C function."
        )
    check_is_fitted(model, "trains_")
    if not isinstance(name, str) or not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) or _KEYWORDS.fullmatch(name):
        raise ValueError(f"name must be an identifier of C, got {name!r}.")
    if dtype not in _TYPES:
        raise ValueError(f"dtype must be one of {list(_TYPES)}, got {dtype!r}.")
    return _Source(model, name, dtype).text()


def _wrapped(items: Iterable[str]) -> str:
    """Join items with commas in lines of about 100 characters."""
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) > 100:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join([*lines, line])


def _c_string(text: str) -> str:
    """Write text as a C string of UTF-8: everything but plain characters as octal, so that no trigraph can appear."""
    plain = re.compile(rb"[A-Za-z0-9 _.,:;+*/()<>=&|!#%@^~-]")
    raw = text.encode("utf-8", "replace")
    return '"' + "".join(chr(byte) if plain.match(bytes([byte])) else f"\\{byte:03o}" for byte in raw) + '"'


class _Source:
    """The pieces of the file for one model."""

    def __init__(self, model: Any, name: str, dtype: str) -> None:
        self._model, self._name = model, name
        self._real, self._suffix, self._dtype = _TYPES[dtype]
        self._trains = model._stack.unstack()
        self._is_regressor = isinstance(model, TensorTrainRegressor)
        self._n_trains = len(self._trains)
        self._n_classes = 0 if self._is_regressor else len(model.classes_)
        self._has_probabilities = not self._is_regressor and hasattr(model, "predict_proba")

    def text(self) -> str:
        """Return the whole file."""
        if self._is_regressor:
            code = [self._regression()]
        else:
            code = [self._decision(), self._prediction()]
            if self._has_probabilities:
                code.append(self._probabilities())
        parts = [self._opening(), self._tables(), self._chain(), *code]
        if not self._is_regressor:
            parts.append(self._class_names())
        return "\n".join(parts)

    def _fill(self, code: str) -> str:
        """Put the type and the name of the model into a piece of code."""
        return code.replace("REAL", self._real).replace("NAME", self._name)

    def _numbers(self, values: Any) -> list[str]:
        """Write numbers with all their digits: Python's shortest form for double, nine digits for float."""
        with np.errstate(over="ignore"):
            array = np.ravel(values).astype(self._dtype)
        if not np.isfinite(array).all():
            raise ValueError(f"some numbers of the model do not fit {self._real}; use dtype='float64'.")
        if not self._suffix:
            return [repr(value) for value in array.tolist()]
        return [f"{value:.8e}f" for value in array.tolist()]

    def _table(self, name: str, values: Any) -> str:
        numbers = self._numbers(values)
        return f"static const {self._real} {name}[{len(numbers)}] = {{\n{_wrapped(numbers)}\n}};"

    def _integers(self, name: str, values: Any) -> str:
        flat = np.ravel(values)
        return f"static const int {name}[{len(flat)}] = {{\n{_wrapped(map(str, flat.tolist()))}\n}};"

    def _opening(self) -> str:
        from polytrain import __version__

        model = self._model
        lines = [
            f"/* {type(model).__name__} of {model.n_features_in_} features, {model.n_parameters_} coefficients.",
            f"   Written by polytrain {__version__}. C99. */",
            "",
            *(["#include <math.h>", ""] if self._has_probabilities else []),
            "/* Declarations, for a header of your own. x has NAME_N_FEATURES numbers. */",
            f"enum {{ NAME_N_FEATURES = {model.n_features_in_} }};",
        ]
        if self._is_regressor:
            return self._fill("\n".join([*lines, "REAL NAME_predict(const REAL *x);", ""]))
        n_scores = 1 if self._n_classes == 2 else self._n_classes
        lines += [
            f"enum {{ NAME_N_CLASSES = {self._n_classes}, NAME_N_SCORES = {n_scores} }};",
            "extern const char *const NAME_class_names[NAME_N_CLASSES];",
            "void NAME_scores(const REAL *x, REAL *scores); /* NAME_N_SCORES numbers */",
            "int NAME_predict(const REAL *x); /* index into NAME_class_names */",
        ]
        if self._has_probabilities:
            lines.append("void NAME_probabilities(const REAL *x, REAL *probabilities); /* NAME_N_CLASSES numbers */")
        return self._fill("\n".join([*lines, ""]))

    def _tables(self) -> str:
        dims = [core.shape[1] for core in self._trains[0]]
        ranks = [[1, *(core.shape[2] for core in cores)] for cores in self._trains]
        basis = get_basis(self._model.plan_.basis)
        steps = [basis.recurrence(degree) for degree in range(2, max(max(dims), 3))]
        cores = np.concatenate([core.ravel() for train in self._trains for core in train])
        parts = [
            f"enum {{ N_TRAINS = {self._n_trains}, MAX_DIM = {max(dims)}, MAX_RANK = {max(map(max, ranks))} }};",
            "/* Basis functions of each feature; ranks of each train, one more than features;",
            "   cores [left rank][basis function][right rank], feature after feature and train after train. */",
            self._integers("dims", dims),
            self._integers("ranks", ranks),
            self._table("cores", cores),
            "/* phi[k] = step_a[k - 2] * x * phi[k - 1] - step_b[k - 2] * phi[k - 2] */",
            self._table("step_a", [a for a, _ in steps]),
            self._table("step_b", [b for _, b in steps]),
        ]
        if self._model.scale_ is not None:
            centre, factor = self._model.scale_.centre, self._model.scale_.factor
            named = {"low": self._model.scale_.low, "high": self._model.scale_.high, "centre": centre, "factor": factor}
            parts += ["/* Ranges of the features. */", *(self._table(key, values) for key, values in named.items())]
        return "\n".join([*parts, ""])

    def _chain(self) -> str:
        scaling = (
            "    REAL value = x[k];"
            if self._model.scale_ is None
            else """    REAL value = x[k];
    if (!(value >= low[k])) value = low[k];
    if (value > high[k]) value = high[k];
    value = (value - centre[k]) * factor[k];"""
        )
        return self._fill(f"""/* The basis functions of feature k. */
static void evaluate_basis(const REAL *x, int k, REAL *phi)
{{
{scaling}
    phi[0] = 1;
    phi[1] = value;
    for (int i = 2; i < dims[k]; i++)
        phi[i] = step_a[i - 2] * value * phi[i - 1] - step_b[i - 2] * phi[i - 2];
}}

/* The values of all trains. */
static void evaluate_trains(const REAL *x, REAL *values)
{{
    const REAL *core = cores;
    for (int t = 0; t < N_TRAINS; t++) {{
        const int *rank = ranks + t * (NAME_N_FEATURES + 1);
        REAL left[MAX_RANK] = {{1}}, next[MAX_RANK], phi[MAX_DIM];
        for (int k = 0; k < NAME_N_FEATURES; k++) {{
            evaluate_basis(x, k, phi);
            for (int b = 0; b < rank[k + 1]; b++) next[b] = 0;
            for (int a = 0; a < rank[k]; a++)
                for (int i = 0; i < dims[k]; i++) {{
                    const REAL weight = left[a] * phi[i];
                    for (int b = 0; b < rank[k + 1]; b++) next[b] += weight * *core++;
                }}
            for (int b = 0; b < rank[k + 1]; b++) left[b] = next[b];
        }}
        values[t] = left[0];
    }}
}}
""")

    def _regression(self) -> str:
        size, intercept = self._numbers([self._model._target_size, self._model.intercept_])
        return self._fill(f"""REAL NAME_predict(const REAL *x)
{{
    REAL value;
    evaluate_trains(x, &value);
    return value * {size} + {intercept};
}}
""")

    def _code_table(self) -> NDArray:
        return self._model.decision_.code(self._n_classes).astype(int)

    def _decision(self) -> str:
        """Write NAME_scores: the trains' values, or votes with the sums of the values as a tie-break."""
        name = self._model.decision_.name
        if self._n_classes == 2 or name == "one-vs-rest":
            return self._fill("void NAME_scores(const REAL *x, REAL *scores)\n{\n    evaluate_trains(x, scores);\n}\n")
        # A vote counts 1 (one-vs-one), or -1 where a bit differs (binary-code).
        vote = {
            "one-vs-one": "if (sign == (values[t] > 0 ? 1 : -1)) votes += 1;",
            "binary-code": "if (sign != (values[t] > 0 ? 1 : -1)) votes -= 1;",
        }[name]
        return self._fill(f"""/* What train t says about class c: 1 for, -1 against, 0 nothing. */
{self._integers("code", self._code_table())}

void NAME_scores(const REAL *x, REAL *scores)
{{
    REAL values[N_TRAINS];
    evaluate_trains(x, values);
    for (int c = 0; c < NAME_N_CLASSES; c++) {{
        REAL votes = 0, sum = 0;
        for (int t = 0; t < N_TRAINS; t++) {{
            const int sign = code[t * NAME_N_CLASSES + c];
            if (sign == 0) continue;
            {vote}
            sum += (REAL)sign * values[t];
        }}
        scores[c] = votes + sum / (3 * ((sum < 0 ? -sum : sum) + 1));
    }}
}}
""")

    def _class_names(self) -> str:
        names = [_c_string(str(label)) for label in self._model.classes_]
        lines = ",\n    ".join(names)
        return f"const char *const {self._name}_class_names[{len(names)}] = {{\n    {lines}\n}};\n"

    def _prediction(self) -> str:
        choice = (
            "    return scores[0] > 0;"
            if self._n_classes == 2
            else """    int best = 0;
    for (int c = 1; c < NAME_N_CLASSES; c++)
        if (scores[c] > scores[best]) best = c;
    return best;"""
        )
        return self._fill(f"""int NAME_predict(const REAL *x)
{{
    REAL scores[NAME_N_SCORES];
    NAME_scores(x, scores);
{choice}
}}
""")

    def _probabilities(self) -> str:
        exp, log1p = f"exp{self._suffix}", f"log1p{self._suffix}"
        log_sigmoid = f"""/* log(1 / (1 + exp(-z))) */
static REAL log_sigmoid(REAL z)
{{
    return z < 0 ? z - {log1p}({exp}(z)) : -{log1p}({exp}(-z));
}}

"""
        opening = """void NAME_probabilities(const REAL *x, REAL *probabilities)
{
    REAL values[N_TRAINS];
    evaluate_trains(x, values);
"""
        if self._n_classes == 2:
            return self._fill(f"""{log_sigmoid}{opening}    probabilities[0] = {exp}(log_sigmoid(-values[0]));
    probabilities[1] = {exp}(log_sigmoid(values[0]));
}}
""")
        logs = self._class_logs()
        return self._fill(f"""{log_sigmoid if "log_sigmoid" in logs else ""}{opening}{logs}
    REAL largest = probabilities[0], sum = 0;
    for (int c = 1; c < NAME_N_CLASSES; c++)
        if (probabilities[c] > largest) largest = probabilities[c];
    for (int c = 0; c < NAME_N_CLASSES; c++) {{
        probabilities[c] = {exp}(probabilities[c] - largest);
        sum += probabilities[c];
    }}
    for (int c = 0; c < NAME_N_CLASSES; c++) probabilities[c] /= sum;
}}
""")

    def _class_logs(self) -> str:
        """Write what puts the logarithm of every class, up to a constant, into ``probabilities``."""
        name, exp, log = self._model.decision_.name, f"exp{self._suffix}", f"log{self._suffix}"
        if name == "one-vs-rest":
            return "    for (int c = 0; c < NAME_N_CLASSES; c++) probabilities[c] = log_sigmoid(values[c]);"
        if name == "binary-code":
            return """    for (int c = 0; c < NAME_N_CLASSES; c++) {
        probabilities[c] = 0;
        for (int t = 0; t < N_TRAINS; t++)
            probabilities[c] += log_sigmoid((REAL)code[t * NAME_N_CLASSES + c] * values[t]);
    }"""
        # one-vs-one: -log(1 + sum of exp(-s)), with the largest exponent taken out
        return f"""    for (int c = 0; c < NAME_N_CLASSES; c++) {{
        REAL top = 0, sum_against;
        for (int t = 0; t < N_TRAINS; t++) {{
            const REAL against = -(REAL)code[t * NAME_N_CLASSES + c] * values[t];
            if (against > top) top = against;
        }}
        sum_against = {exp}(-top);
        for (int t = 0; t < N_TRAINS; t++)
            if (code[t * NAME_N_CLASSES + c] != 0)
                sum_against += {exp}(-(REAL)code[t * NAME_N_CLASSES + c] * values[t] - top);
        probabilities[c] = -top - {log}(sum_against);
    }}"""
