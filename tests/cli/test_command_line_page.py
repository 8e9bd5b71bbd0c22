"""The console sessions of the page run as shown."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from polytrain.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


def sessions():
    """Commands and what they print, in order."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            yield shlex.split(command), expected


@pytest.mark.skipif(not PAGE.exists(), reason="the pages are not part of this copy")
def test_sessions(tmp_path, monkeypatch, capfd):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    checker = doctest.OutputChecker()
    commands = 0
    for words, expected in sessions():
        if words[0] == "python":
            subprocess.run([sys.executable, *words[1:]], check=True)
            continue
        assert words[0] == "polytrain"
        code = main(words[1:])
        out, err = capfd.readouterr()
        assert code == (2 if "error:" in expected.split("\n")[0] else 0), err
        # In a terminal both streams are seen, talk before results.
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        assert checker.check_output(expected, err + out, flags), f"{shlex.join(words)}\n{err}{out}"
        commands += 1
    assert commands >= 8
