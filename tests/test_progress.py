"""Progress: a bar with tqdm, log lines without, and no trace left behind."""

import logging
import sys

import pytest

from polytrain.progress import SweepProgress, logger


def _record(sweep):
    return {"sweep": sweep, "objective": 0.5 / sweep, "loss": 0.25 / sweep, "seconds": 0.125}


def _watch(train, record, cores):
    return train, record["sweep"]


def _run(verbose, n_trains=2, sweeps=2, max_sweeps=3):
    with SweepProgress(n_trains, max_sweeps, verbose, _watch) as progress:
        for train in range(n_trains):
            for sweep in range(1, sweeps + 1):
                assert progress.sweep_done(train, _record(sweep), []) == (train, sweep)


def test_silent_by_default(capsys, caplog):
    _run(0)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
    assert caplog.records == []


def test_bar_on_stderr_that_ends_full(capsys, caplog):
    pytest.importorskip("tqdm")
    _run(1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "training" in captured.err
    assert "6/6" in captured.err  # sweeps that were not needed count as done
    assert "train 2/2" in captured.err
    assert caplog.records == []


def test_a_train_that_begins_anew_does_not_overfill_the_bar(capsys):
    pytest.importorskip("tqdm")
    with SweepProgress(1, 4, 1, _watch) as progress:
        for sweep in (1, 2, 3, 1, 2):
            progress.sweep_done(0, _record(sweep), [])
    err = capsys.readouterr().err
    assert "4/4" in err
    assert "5/4" not in err


@pytest.mark.parametrize(("verbose", "hide_tqdm"), [(1, True), (2, False), (2, True)])
def test_one_log_line_per_sweep(monkeypatch, caplog, verbose, hide_tqdm):
    if hide_tqdm:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    _run(verbose)
    assert [record.name for record in caplog.records] == ["polytrain"] * 4
    assert all(record.levelno == logging.INFO for record in caplog.records)
    assert caplog.messages[0] == "train 1 of 2, sweep 1: objective 0.5, loss 0.25, 0.12 s"
    assert caplog.messages[3].startswith("train 2 of 2, sweep 2: objective 0.25")


def test_lines_reach_stderr_where_logging_is_not_configured(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(logger, "propagate", False)
    assert not logger.hasHandlers()
    _run(1)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 4
    assert not logger.hasHandlers()


def test_logger_is_left_as_it_was(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    level, handlers = logger.level, list(logger.handlers)
    with pytest.raises(RuntimeError), SweepProgress(1, 1, 1, _watch) as progress:  # noqa: PT012
        progress.sweep_done(0, _record(1), [])
        raise RuntimeError
    assert logger.level == level
    assert logger.handlers == handlers


def test_fits_that_overlap_leave_the_log_as_it_was():
    before = logger.level, list(logger.handlers)
    one, other = SweepProgress(1, 1, 2, _watch), SweepProgress(1, 1, 2, _watch)
    one.__enter__()
    other.__enter__()
    one.__exit__(None, None, None)
    assert logger.isEnabledFor(logging.INFO)
    other.__exit__(None, None, None)
    assert (logger.level, list(logger.handlers)) == before
