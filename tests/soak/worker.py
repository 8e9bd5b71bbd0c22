"""A process that fits, saves, loads and predicts at random, in several threads, until it is told to stop.

It knows what every fit must give: the same settings end with the same cores, whoever else computes, was interrupted or
was killed. What it counts goes to stdout as one line of JSON per second; a fault ends it with a traceback.
"""

import faulthandler
import hashlib
import json
import os
import random
import select
import signal
import sys
import threading
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV

import polytrain
from polytrain import TensorTrainClassifier, TensorTrainRegressor, config_context
from polytrain.cli import main as command

N_NAMES = 4


def rows_of(seed, n_rows, n_columns=4):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, n_columns))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(n_rows)


class Blocks:
    """A source that is read block by block."""

    def __init__(self, *arrays):
        self._arrays = arrays

    def __iter__(self):
        for start in range(0, len(self._arrays[0]), 5000):
            yield tuple(array[start : start + 5000] for array in self._arrays)


PAPER = {"basis": "power", "rank": 3, "alpha": 1e-3, "max_sweeps": 2, "random_state": 0}


def fit_shared_rows(n_jobs, folder):
    return TensorTrainRegressor(**PAPER, n_jobs=n_jobs).fit(*rows_of(0, 30_000))


def fit_many_trains(n_jobs, folder):
    X, y = rows_of(1, 30_000)
    return TensorTrainClassifier(loss="squared", **PAPER, n_jobs=n_jobs).fit(X, np.digitize(y, [-1, -0.3, 0.3, 1]))


def fit_defaults(n_jobs, folder):
    X, y = rows_of(2, 300)
    X[::7, 1] = np.nan
    return TensorTrainRegressor(random_state=0, n_jobs=n_jobs).fit(X, y)


def fit_classes(n_jobs, folder):
    X, y = rows_of(3, 250)
    return TensorTrainClassifier(random_state=0, n_jobs=n_jobs).fit(X, np.where(y > 0, "=yes", "no\x1b[1m"))


def fit_folds(n_jobs, folder):
    X, y = rows_of(4, 3000)
    model = TensorTrainClassifier(rank=2, basis="power", max_sweeps=1, random_state=0, n_jobs=n_jobs)
    return GridSearchCV(model, {"alpha": [1e-2, 1e-3]}, cv=3).fit(X, y > 0).best_estimator_


def fit_source(n_jobs, folder):
    with config_context(max_memory="1 MB"):
        return TensorTrainRegressor(**PAPER, n_jobs=n_jobs).fit(Blocks(*rows_of(5, 40_000)))


def fit_with_checkpoints(n_jobs, folder):
    place = folder / f"checkpoint-{random.randrange(N_NAMES)}-{os.getpid()}-{threading.get_ident()}"
    with config_context(checkpoint=place):
        return TensorTrainRegressor(**PAPER, n_jobs=n_jobs).fit(*rows_of(6, 20_000))


FITS = (fit_shared_rows, fit_many_trains, fit_defaults, fit_classes, fit_folds, fit_source, fit_with_checkpoints)


def digest(model):
    found = hashlib.sha256()
    for train in model.model_.cores:
        for core in train:
            found.update(core.tobytes())
    return found.hexdigest()


class Work:
    """What the threads of this process do, and how often."""

    def __init__(self, folder, expected):
        self.folder, self.expected = folder, expected
        self.counts, self.lock, self.stopped = Counter(), threading.Lock(), threading.Event()
        self.faults = []

    def count(self, what):
        with self.lock:
            self.counts[what] += 1

    def step(self, rng):
        fit = rng.choice(FITS)
        try:
            model = fit(rng.choice((1, 1, 2, 3)), self.folder)
        except RuntimeError as error:
            if "ended unexpectedly" not in str(error):
                raise
            self.count("fits that lost a helper and said so")
            return
        self.count("fits")
        with self.lock:
            known = self.expected.setdefault(fit.__name__, digest(model))
        if known != digest(model):
            raise AssertionError(f"{fit.__name__} gave other cores than before")
        self.use(model, self.folder / f"{fit.__name__}-{rng.randrange(N_NAMES)}.polytrain")

    def use(self, model, path):
        model.save(path)
        self.count("saves")
        same = polytrain.load(path)  # perhaps another process's, but never half of one
        self.count("loads")
        X, _ = rows_of(7, 500)
        loaded, saved = (each.model_.scores(each.model_.encode(X, each)) for each in (same, model))
        if not np.allclose(loaded, saved, rtol=0, atol=1e-5 * np.ptp(saved)):
            raise AssertionError(f"{path.name} predicts otherwise than what was saved")
        self.count("predictions")
        code = command(["info", str(path), "--json"])
        if code == 130:  # a command takes Ctrl-C for itself
            raise KeyboardInterrupt
        if code != 0:
            raise AssertionError(f"info failed on {path.name} with exit code {code}")
        self.count("commands")

    def run(self, seed):
        rng = random.Random(seed)
        while not self.stopped.is_set():
            try:
                self.step(rng)
            except KeyboardInterrupt:
                self.count("interruptions")
            except BaseException:
                self.faults.append(traceback.format_exc())
                self.stopped.set()


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def main():
    folder, n_threads, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    report = os.fdopen(os.dup(1), "w")
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # the commands' own output
    work = Work(folder, json.loads((folder / "expected.json").read_text()))
    threads = [threading.Thread(target=work.run, args=(seed + k,)) for k in range(1, n_threads)]
    for thread in threads:
        thread.start()

    def speak():
        while True:
            ended = work.stopped.wait(1.0)
            with work.lock:
                line = {"counts": dict(work.counts), "bytes": resident_bytes(), "expected": work.expected}
            print(json.dumps(line), file=report, flush=True)
            if ended:
                return
            if select.select([sys.stdin], [], [], 0)[0]:  # whoever started this has closed it
                work.stopped.set()

    speaker = threading.Thread(target=speak)
    speaker.start()
    while not work.stopped.is_set():  # Ctrl-C reaches the main thread, in whatever it does
        try:
            work.run(seed)
        except KeyboardInterrupt:
            work.count("interruptions")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for thread in (*threads, speaker):
        thread.join()
    for fault in work.faults:
        print(fault, file=sys.stderr)
    return 1 if work.faults else 0


if __name__ == "__main__":
    sys.exit(main())
