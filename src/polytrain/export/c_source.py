"""Export fitted models as C99 source without dependencies, for small devices.

The file has tables of numbers and a few loops over them: the functions of each column, one matrix-vector product per
column, decide. The working memory is two vectors of the largest rank and the function values of one column. Maps and
decisions write their own C code.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from polytrain.columns import DateColumn
from polytrain.columns.scalars import text_of
from polytrain.export_writers import CWriter
from polytrain.models import FittedModel, fitted_model
from polytrain.version import __version__

_DTYPES = ("float64", "float32")
_KEYWORDS = (
    "auto|break|case|char|const|continue|default|do|double|else|enum|extern|float|for|goto|if|inline|int|long|main|"
    "register|restrict|return|short|signed|sizeof|static|struct|switch|typedef|union|unsigned|void|volatile|while"
)


def to_c(model: Any, name: str = "model", *, dtype: str = "float64") -> str:
    """Return the source of a C99 file that computes the predictions of a fitted model.

    The file needs no other file, allocates nothing and calls nothing, except for ``exp``, ``log`` and ``log1p`` of the
    standard mathematics library where the model has probabilities. It compiles without warnings.

    Parameters
    ----------
    model : TensorTrainClassifier, TensorTrainRegressor or FittedModel
        The fitted model.
    name : str, default="model"
        Prefix of the names of the functions.
    dtype : {"float64", "float32"}, default="float64"
        "float64" gives arithmetic in double, and numbers of 30 bits; "float32" gives float and 24 bits, for devices
        that have no double.

    Returns
    -------
    str
        Source with these functions, in terms of ``double`` (or ``float``):

        - classifiers: ``int NAME_predict(const double *x)`` returns the index of the class, and
          ``NAME_class_names`` are the labels as text; ``void NAME_scores(const double *x, double *scores)`` is the
          decision function, one number for two classes and one per class for more; unless the loss is "squared",
          ``void NAME_probabilities(const double *x, double *probabilities)``.
        - regressors: ``double NAME_predict(const double *x)``, or, for several outputs,
          ``void NAME_predict(const double *x, double *outputs)``.

        ``x`` holds the features. If the model was fitted from a frame with columns that are not numbers, these are
        ``model.model_.columns.encode(frame)``: categories by the number of their level, dates by their parts. A
        comment at the top of the file lists features that have names.

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
    fitted = fitted_model(model, "to_c")
    if not isinstance(name, str) or not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name) or re.fullmatch(_KEYWORDS, name):
        raise ValueError(f"name must be a C identifier, got {name!r}.")
    if dtype not in _DTYPES:
        raise ValueError(f"dtype must be one of {list(_DTYPES)}, got {dtype!r}.")
    if fitted.classes is not None and not fitted.one_output:
        raise ValueError(
            f"a classifier in C has one label per row, and this one has {fitted.n_trains} labels. Fit a model for each "
            "column of y, or use to_onnx."
        )
    writer, labels = CWriter(dtype), [] if fitted.classes is None else list(map(str, fitted.classes))
    score = "left[0] * size[t] + shift[t]" if fitted.rescales else "left[0]"
    score = f"EXP({score})" if fitted.link == "log" else score
    trains = _TRAINS.replace("SCORE", score).replace("LIMITS", _LIMITS if fitted.is_limited else "")
    pieces = [_tables(fitted, writer), _maps(fitted, writer), trains]
    if fitted.decision is None:
        pieces.append(_ONE_NUMBER if fitted.one_output else _SEVERAL_NUMBERS)
    else:
        pieces.append(fitted.decision.c_decision(writer, len(labels)))
        pieces.append(_CLASS.replace("CHOICE", fitted.decision.c_choice()))
        if fitted.has_probabilities:
            logs = fitted.decision.c_log_probabilities(writer, len(labels))
            pieces += [_LOG_SIGMOID] if "log_sigmoid" in logs else []
            pieces.append(_PROBABILITIES.replace("LOGS", logs))
    code = "\n".join(pieces)
    code = _declarations(fitted, code) + code
    words = {"NAME": name, r"\bREAL\b": writer.real}
    words |= {rf"\b{function.upper()}\b": function + writer.suffix for function in ("exp", "log1p")}
    for word, text in words.items():
        code = re.sub(word, text, code)
    # Names of the user must not be replaced: a class may be called REAL.
    if labels:
        names = ",\n    ".join(map(_c_string, labels))
        code += f"\nconst char *const {name}_class_names[{len(labels)}] = {{\n    {names}\n}};\n"
    return _features(fitted) + code


# In C code, REAL is the type of numbers, NAME the name of the model; other words in capitals stand for code.
_TRAINS = """/* The scores of all trains. */
static void evaluate_trains(const REAL *x, REAL *values)
{
    const int32_t *core = cores;
    const REAL *unit = core_units;
    for (int t = 0; t < N_TRAINS; t++) {
        const int *rank = ranks + t * (NAME_N_FEATURES + 1);
        REAL left[MAX_RANK] = {1}, next[MAX_RANK], phi[MAX_DIM];
        for (int k = 0; k < NAME_N_FEATURES; k++) {
            evaluate_map(x, k, phi);
            for (int i = 0; i < dims[k]; i++) phi[i] *= *unit++;
            for (int b = 0; b < MAX_RANK; b++) next[b] = 0;
            for (int a = 0; a < rank[k]; a++)
                for (int i = 0; i < dims[k]; i++) {
                    const REAL weight = left[a] * phi[i];
                    for (int b = 0; b < rank[k + 1]; b++) next[b] += weight * (REAL)*core++;
                }
            for (int b = 0; b < rank[k + 1]; b++) left[b] = next[b];
        }
        values[t] = SCORE;LIMITS
    }
}
"""
_LIMITS = """
        if (values[t] < lowest[t]) values[t] = lowest[t];
        if (values[t] > highest[t]) values[t] = highest[t];"""
_ONE_NUMBER = """REAL NAME_predict(const REAL *x)
{
    REAL value;
    evaluate_trains(x, &value);
    return value;
}
"""
_SEVERAL_NUMBERS = """void NAME_predict(const REAL *x, REAL *outputs)
{
    evaluate_trains(x, outputs);
}
"""
_CLASS = """void NAME_scores(const REAL *x, REAL *scores) /* NAME_N_SCORES numbers */
{
    REAL values[N_TRAINS];
    evaluate_trains(x, values);
    decide(values, scores);
}

int NAME_predict(const REAL *x) /* index into NAME_class_names */
{
    REAL scores[NAME_N_SCORES];
    NAME_scores(x, scores);
CHOICE
}
"""
_LOG_SIGMOID = """/* log(1 / (1 + exp(-z))) */
static REAL log_sigmoid(REAL z)
{
    return z < 0 ? z - LOG1P(EXP(z)) : -LOG1P(EXP(-z));
}
"""
_PROBABILITIES = """void NAME_probabilities(const REAL *x, REAL *probabilities) /* NAME_N_CLASSES numbers */
{
    REAL values[N_TRAINS];
    evaluate_trains(x, values);
LOGS
    REAL largest = probabilities[0], sum = 0;
    for (int c = 1; c < NAME_N_CLASSES; c++)
        if (probabilities[c] > largest) largest = probabilities[c];
    for (int c = 0; c < NAME_N_CLASSES; c++) {
        probabilities[c] = EXP(probabilities[c] - largest);
        sum += probabilities[c];
    }
    for (int c = 0; c < NAME_N_CLASSES; c++) probabilities[c] /= sum;
}
"""


def _c_string(text: str) -> str:
    """Write text as a C string of UTF-8: everything but plain characters as octal, so that no trigraph can appear."""
    plain = re.compile(rb"[A-Za-z0-9 _.,:;+*/()<>=&|!#%@^~-]")
    raw = text.encode("utf-8", "replace")
    return '"' + "".join(chr(byte) if plain.match(bytes([byte])) else f"\\{byte:03o}" for byte in raw) + '"'


# Meaning of features that are encoded: categories and the parts of dates.
_FEATURES = {
    "category": "number of a category, -1 for any other, NaN if missing",
    "time": "days since the start of 1970, in UTC, with a fraction; NaN if missing",
    "month": "1 to 12; NaN if missing",
    "weekday": "0 for Monday to 6; NaN if missing",
    "hour": "0 to 24, with a fraction; NaN if missing",
}


def _in_comment(line: str) -> str:
    """Write a line with names from a table: nothing in them may end the comment or join lines."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in line)
    return plain.replace("*/", "* /").replace("/*", "/ *") + " "


def _features(model: FittedModel) -> str:
    """Describe the contents of x in a comment, if the features have names."""
    if model.feature_names is None:
        return ""
    levels: list[Any] = [None] * model.n_features if model.columns is None else model.columns.levels
    every = () if model.columns is None else model.columns.columns
    kinds = [kind for column in every for kind in (column.parts if isinstance(column, DateColumn) else [""])]
    lines = ["/* The features that the functions below take; true and false are 1 and 0:"]
    for k, (name, feature_map) in enumerate(zip(model.feature_names, model.maps, strict=True)):
        number = "number; NaN if missing" if feature_map.takes_missing else "number"
        about = _FEATURES.get("category" if levels[k] is not None else kinds[k] if kinds else "", number)
        lines.append(f"   x[{k}]  {_in_comment(f'{name}: {about}')}")
        lines += [f"         {_in_comment(f'{j}: {text_of(level)}')}" for j, level in enumerate(levels[k] or ())]
    return "\n".join([*lines, "*/", ""])


def _declarations(model: FittedModel, code: str) -> str:
    """The head of the file, with a declaration of each function of the code that is not static."""
    lines = [
        f"/* {model.estimator_name} of {model.n_features} features, {model.n_parameters} coefficients.",
        f"   Written by polytrain {__version__}. C99. */",
        "",
        *(["#include <math.h>"] if model.link in ("log", "logit", "softmax") else []),
        "#include <stdint.h>",
        "",
        "/* Declarations, for a header of your own. x has NAME_N_FEATURES numbers. */",
        f"enum {{ NAME_N_FEATURES = {model.n_features} }};",
    ]
    if model.decision is not None and model.classes is not None:
        n_classes = len(model.classes)
        n_scores = n_classes if n_classes > 2 else 1
        lines.append(f"enum {{ NAME_N_CLASSES = {n_classes}, NAME_N_SCORES = {n_scores} }};")
        lines.append("extern const char *const NAME_class_names[NAME_N_CLASSES];")
    elif not model.one_output:
        lines.append(f"enum {{ NAME_N_OUTPUTS = {model.n_trains} }};")
    lines += [f"{head};{note}" for head, note in re.findall(r"^(\w+ NAME_\w+\(.*?\))(.*)$", code, re.MULTILINE)]
    return "\n".join([*lines, "", ""])


def _tables(model: FittedModel, writer: CWriter) -> str:
    trains, dims = model.cores, model.maps.dims
    ranks = [[1, *(core.shape[2] for core in cores)] for cores in trains]
    # Room for one step of a recurrence, so that compilers do not warn where all degrees are 1.
    cores = [writer.fixed_point(core) for train in trains for core in train]
    sizes = f"N_TRAINS = {len(trains)}, MAX_DIM = {max(*dims, 3)}, MAX_RANK = {max(map(max, ranks))}"
    lines = [
        f"enum {{ {sizes} }};",
        "/* Functions of each column; ranks of each train, one more than columns;",
        "   cores [left rank][function][right rank], column after column and train after train,",
        "   in a unit for every function. */",
        writer.integers("dims", dims),
        writer.integers("ranks", ranks),
        writer.integers("cores", np.concatenate([numbers.ravel() for numbers, _ in cores]), "int32_t"),
        writer.units("core_units", np.concatenate([units for _, units in cores])),
    ]
    if model.rescales:
        lines += [writer.table("size", model.size), writer.table("shift", model.shift)]
    if model.is_limited:
        lines += [writer.table("lowest", model.limits[0]), writer.table("highest", model.limits[1])]
    return "\n".join([*lines, ""])


def _maps(model: FittedModel, writer: CWriter) -> str:
    maps = model.maps
    # The kind of each column, and its index among the columns of that kind.
    places = {k: (g, i) for g, (_, columns) in enumerate(maps.groups) for i, k in enumerate(columns)}
    pieces = [kind.c_code(maps.members(columns), writer) for kind, columns in maps.groups]
    pieces += [
        writer.integers("map_kind", [places[k][0] for k in range(len(maps))]),
        writer.integers("map_index", [places[k][1] for k in range(len(maps))]),
        "/* The functions of column k. */\nstatic void evaluate_map(const REAL *x, int k, REAL *phi)\n{",
        "    switch (map_kind[k]) {",
    ]
    for g, (kind, _) in enumerate(maps.groups):
        pieces.append(f"    case {g}: {kind.kind}_values(x[k], map_index[k], phi); break;")
    return "\n".join([*pieces, "    }\n}\n"])
