"""Built pages load nothing from a network."""

import pytest

from scripts_as_modules import load_script


@pytest.fixture(scope="module")
def check_pages():
    return load_script("check_pages")


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
