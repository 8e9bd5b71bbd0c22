"""
Categories, missing values and dates
====================================

Real tables have numbers, texts, truth values, dates and empty cells. polytrain takes such a
frame directly. Boosting also takes categories and missing values, but dates must be split by
hand; a linear model needs encoded, imputed and scaled columns. The table is simulated, so the
true function is known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.metrics import mean_absolute_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from polytrain import TensorTrainRegressor
from polytrain.plotting import COLOURS, MARKERS, EffectsDisplay, clean_axes

# %%
# Bicycles that a shop lends per day. Rain hurts most in summer, weekends help only in parks,
# and the weather station sometimes loses a reading, more often in storms: a missing value is
# informative.


def lent_bicycles(count, seed):
    generator = np.random.default_rng(seed)
    days = generator.integers(0, 1095, size=count)
    day = pd.Timestamp("2022-01-01") + pd.to_timedelta(days, "D")
    places = ["station", "park", "campus", "harbour"]
    place = generator.choice(places, size=count, p=[0.4, 0.3, 0.2, 0.1])
    summer = np.sin(2 * np.pi * (day.day_of_year.to_numpy() - 100) / 365)
    warmth = 12 + 11 * summer + generator.normal(0, 4, size=count)
    rain = generator.exponential(3, size=count) * (generator.uniform(size=count) < 0.4)
    wind = generator.gamma(3, 4, size=count)
    weekend = day.day_of_week.to_numpy() >= 5
    base = pd.Series({"station": 60, "park": 35, "campus": 45, "harbour": 25})[place].to_numpy()
    lent = base + 2.2 * warmth - (2 + 2 * summer) * np.minimum(rain, 8) - 0.5 * wind
    lent += np.where(place == "park", 45, -15) * weekend + 8 * (day.year.to_numpy() - 2022)
    lent -= np.where((place == "campus") & day.month.isin([8, 9]), 30, 0)
    frame = pd.DataFrame(
        {"day": day, "place": place, "warmth": warmth, "rain": rain, "wind": wind}
    )
    frame = frame.round({"warmth": 1, "rain": 1})
    frame["helmets"] = generator.choice([True, False], size=count)
    frame.loc[generator.uniform(size=count) < 0.02 + 0.3 * (wind > 20), "wind"] = np.nan
    frame.loc[generator.uniform(size=count) < 0.05, "place"] = None
    return frame, lent + generator.normal(0, 6, size=count)


X, y = lent_bicycles(1500, seed=0)
X_test, y_test = lent_bicycles(1500, seed=1)
print(X.head(4).to_string(index=False))

# %%
# The preparation that the other models need:


def take_apart(frame):
    day = frame["day"]
    parts = frame.drop(columns="day").assign(place=frame["place"].astype("category"))
    parts["time"] = (day - pd.Timestamp("2022-01-01")).dt.days
    return parts.assign(month=day.dt.month, weekday=day.dt.day_of_week)


def encoded():
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore")
    return make_column_transformer(
        (numbers, make_column_selector(dtype_include=["number", "bool"])),
        (texts, make_column_selector(dtype_include="category")),
        (texts, ["month", "weekday"]),
    )


apart = FunctionTransformer(take_apart)
models = {
    "polytrain": TensorTrainRegressor(random_state=0),
    "boosting": make_pipeline(apart, HistGradientBoostingRegressor(random_state=0)),
    "ridge regression": make_pipeline(apart, encoded(), RidgeCV(np.logspace(-3, 3, 13))),
}
for name, model in models.items():
    error = mean_absolute_error(y_test, model.fit(X, y).predict(X_test))
    print(f"{name:17} mean absolute error {error:5.2f} bicycles")

# %%
# The noise alone has size 4.8, and unknown places add to the error. The learned effects can be
# plotted: the places have a bar for the unknown one, and missing wind has a point of its own.

EffectsDisplay.from_estimator(
    models["polytrain"], X, columns=["place", "warmth", "rain", "wind"], n_pairs=0
)
plt.show()

# %%
# The model includes interactions. Two weeks in June, warm and dry, at each place: weekends help
# in parks and hurt elsewhere.

days = pd.date_range("2024-06-03", periods=14)
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
for place, colour, marker in zip(
    ["station", "park", "campus", "harbour"], COLOURS, MARKERS, strict=False
):
    june = pd.DataFrame(
        {
            "day": days,
            "place": place,
            "warmth": 22.0,
            "rain": 0.0,
            "wind": 10.0,
            "helmets": True,
        }
    )
    ax.plot(
        days,
        models["polytrain"].predict(june),
        color=colour,
        marker=marker,
        markersize=4,
        label=place,
    )
ax.set_xticks(days, [f"{day:%a}" for day in days])
ax.set_ylabel("predicted bicycles per day")
ax.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.12))
clean_axes(ax)
plt.show()

# sphinx_gallery_thumbnail_number = 2
