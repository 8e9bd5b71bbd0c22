"""Built pages load nothing from a network."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "check_pages.py"
pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the scripts are not part of this copy")


@pytest.fixture(scope="module")
def check_pages():
    spec = importlib.util.spec_from_file_location("check_pages", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "loaded",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<script src="//cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="http://cdn.example/x.css">',
        '<link href="https://cdn.example" rel="preconnect">',
        '<img srcset="a.png, https://cdn.example/b.png 2x">',
        '<iframe src="https://example.org"></iframe>',
        "<style>@import 'https://cdn.example/x.css';</style>",
        '<p style="background: url(https://cdn.example/x.png)">',
    ],
)
def test_foreign_sources_are_found(check_pages, tmp_path, capsys, loaded):
    (tmp_path / "page.html").write_text(f"<html><head>{loaded}</head></html>")
    assert check_pages.main(tmp_path) == 1
    assert "page.html loads" in capsys.readouterr().err


def test_styles_are_read(check_pages, tmp_path, capsys):
    (tmp_path / "page.html").write_text("<p>text</p>")
    (tmp_path / "fonts.css").write_text("@font-face { src: url('https://cdn.example/font.woff2') }")
    assert check_pages.main(tmp_path) == 1
    assert "fonts.css loads" in capsys.readouterr().err


def test_links_and_own_files_are_free(check_pages, tmp_path):
    (tmp_path / "page.html").write_text(
        '<link rel="canonical" href="https://example.org"><script src="_static/x.js?v=1"></script>'
        '<a href="https://example.org">there</a><img src="data:image/png;base64,AA//"><code>url(https://x)</code>'
    )
    (tmp_path / "page.css").write_text("p { background: url('../a.png') }")
    assert check_pages.main(tmp_path) == 0


def test_an_empty_folder_is_a_mistake(check_pages, tmp_path, capsys):
    assert check_pages.main(tmp_path) == 1
    assert "make docs" in capsys.readouterr().err
