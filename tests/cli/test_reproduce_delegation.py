"""The command whose package may be missing."""

from importlib import import_module

import pytest

from polytrain.cli import main


@pytest.mark.parametrize("rest", [[], ["digits"], ["usps", "--rows", "paper", "--jobs", "2"], ["--help"], ["-x", "--"]])
def test_without_the_package_one_line_says_what_to_install(rest, capsys, monkeypatch):
    monkeypatch.setattr(import_module("polytrain.cli.main"), "find_spec", lambda name: None)
    assert main(["reproduce", *rest]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("polytrain: error: reproduce is part of a second package")
    assert "pip install polytrain-paper, or pip install ./paper in a clone" in err
    assert err.count("\n") == 1


def test_without_the_package_help_still_lists_the_command(capsys, monkeypatch):
    monkeypatch.setattr(import_module("polytrain.cli.main"), "find_spec", lambda name: None)
    assert main(["--help"]) == 0
    assert "reproduce" in capsys.readouterr().out


def test_with_the_package_its_options_are_here(capsys):
    pytest.importorskip("polytrain_paper")
    assert main(["reproduce", "--help"]) == 0
    assert "--ablation" in capsys.readouterr().out
