import hashlib

import pytest
from stand_ins import mnist_files, usps_files

from polytrain_paper.datasets import mnist, usps
from polytrain_paper.datasets._files import StandardFile


def declare(monkeypatch, module, contents):
    """Make the stand-ins the standard files of a loader."""
    files = tuple(
        StandardFile(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in contents.items()
    )
    monkeypatch.setattr(module, "FILES", files)
    return contents


@pytest.fixture
def mnist_contents(monkeypatch):
    return declare(monkeypatch, mnist, mnist_files())


@pytest.fixture
def usps_contents(monkeypatch):
    return declare(monkeypatch, usps, usps_files())
