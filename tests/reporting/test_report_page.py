"""The report: what it says, and how it looks in a real browser."""

import re
from html import escape, unescape
from html.parser import HTMLParser
from itertools import product

import numpy as np
import pytest
from browser import BROWSER, DRIVER, open_browser
from sklearn.datasets import load_digits, load_iris

from polytrain.cli import main
from polytrain.plotting.style import shorten
from polytrain.texts import number_text, percent_text

SECTIONS = ["Errors", "Calibration", "Effects of columns", "Three rows", "Training", "Settings"]
NASTY = '<script>alert("1")</script>&'


FAST = ("--rank", "2", "--alpha", "1e-3", "--max-sweeps", "2")


def make_report(folder, name, table, *options):
    path = folder / f"{name}.csv"
    path.write_text(table)
    options = ["--folds", "0", "--quiet", *options]
    assert main(["fit", str(path), "--target", "-1", "--out", str(folder / f"{name}.polytrain"), *options]) == 0
    page = folder / f"{name}.html"
    assert main(["report", str(folder / f"{name}.polytrain"), str(path), "--out", str(page)]) == 0
    return page


def as_csv(rows, header=""):
    return header + "".join(",".join(map(str, row)) + "\n" for row in rows)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Two classes with hostile names and missing cells, also without settings; ten classes, three, and a number."""
    folder = tmp_path_factory.mktemp("reports")
    X, y = load_iris(return_X_y=True)
    quoted = NASTY.replace('"', '""')
    header = (
        f'"{quoted}",b,a column whose name is far longer than any screen of a phone could ever be wide,kind,"t""<i>"\n'
    )
    rows = [
        (
            "?" if k % 11 == 0 else row[0],
            row[1],
            row[2],
            f'"{quoted}"' if k % 3 else "plain",
            f'"{quoted}"' if label else "no",
        )
        for k, (row, label) in enumerate(zip(X.tolist(), y.tolist(), strict=True))
    ]
    digits, labels = load_digits(return_X_y=True)
    ten = [
        [*row, f"digit {label}"] for row, label in zip(digits[:300, 20:30].tolist(), labels[:300].tolist(), strict=True)
    ]
    many = [[*row, f"a class with a long name {k % 26}"] for k, row in enumerate(digits[:260, 20:24].tolist())]
    three = [[*row, label] for row, label in zip(X.tolist(), y.tolist(), strict=True)]
    return {
        "two": make_report(folder, "two", as_csv(rows, header), *FAST, "--loss", "logistic"),
        "ten": make_report(folder, "ten", as_csv(ten), *FAST, "--loss", "logistic"),
        "squared": make_report(folder, "squared", as_csv(three), *FAST, "--loss", "squared"),
        "number": make_report(
            folder, "number", as_csv(np.round(1e5 * X + np.arange(150)[:, None]), "a (m2),b,c,price (USD)\n"), *FAST
        ),
        "many": make_report(folder, "many", as_csv(many), *FAST[:4], "--max-sweeps", "1", "--loss", "logistic"),
        "default": make_report(folder, "default", as_csv(rows, header)),
    }  # fmt: skip


class Reader(HTMLParser):
    """Collects tags and checks that they nest."""

    VOID = ("meta", "link")

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def read(page):
    reader = Reader()
    reader.feed(page.read_text(encoding="utf-8"))
    assert not reader.open
    return reader


@pytest.mark.parametrize("name", ["two", "ten", "squared", "number", "many", "default"])
def test_sections_and_text_alternatives(pages, name):
    reader = read(pages[name])
    text = pages[name].read_text()
    assert [unescape(title) for title in re.findall("<h2[^>]*>(.*?)</h2>", text)] == SECTIONS
    assert ("Confusion matrix" in text) == ("Precision-recall" in text) == (name != "number")
    assert ("The worst rows" in text) == ("Residuals" in text) == (name == "number")
    pictures = [attributes for tag, attributes in reader.seen if tag == "svg"]
    assert len(pictures) >= 8
    for picture in pictures:
        assert picture["role"] == "img"
        assert len(picture["aria-label"]) > 30


@pytest.mark.parametrize("name", ["two", "ten", "squared", "number", "many", "default"])
def test_the_page_needs_nothing_else(pages, name):
    reader = read(pages[name])
    tags = {tag for tag, _ in reader.seen}
    assert not tags & {"script", "img", "iframe", "object", "embed", "i", "audio", "video", "base", "form"}
    for tag, attributes in reader.seen:
        assert attributes.get("href", "data:,").startswith(("data:", "#")), tag
        assert not any(key.startswith("on") or key == "src" for key in attributes), tag
    text = pages[name].read_text()
    assert not re.search(r"url\((?!#)", text)
    assert "@import" not in text
    assert "http:" not in text
    assert "https:" not in text


def test_names_from_the_table_are_text(pages):
    reader = read(pages["two"])
    text = "".join(reader.text)
    assert NASTY in text
    assert f"always {NASTY}" in text
    assert f"{shorten([NASTY])[0]} (" in text  # a level with its rows
    assert f"<title>{escape(NASTY, quote=False)}</title>" in pages["two"].read_text()


def test_figures_are_those_of_evaluate(pages, capsys):
    import json

    page = pages["two"]
    capsys.readouterr()
    assert main(["evaluate", str(page.with_suffix(".polytrain")), str(page.with_suffix(".csv")), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    text = page.read_text()
    error = percent_text(figures["error"]).replace(" ", "\N{NO-BREAK SPACE}")
    assert f"<dd>{error}</dd>" in text
    assert f"gets {error} of the rows wrong" in text
    assert f"<dt>area under the ROC curve</dt><dd>{number_text(figures['auc'])}</dd>" in text
    assert f"<dt>log loss</dt><dd>{number_text(figures['log_loss'])}</dd>" in text
    for row in figures["confusion"]:
        for count in row:
            assert f">{count}</td>" in text


def test_columns_and_choice(pages):
    text = pages["two"].read_text()
    assert "4 columns, 1 of them categories" in text
    lines = re.findall("<tr>.*?</tr>", text, re.DOTALL)
    told = [re.findall("<t[hd][^>]*>(.*?)</t[hd]>", line) for line in lines]
    (about_b,) = [line for line in told if line[:4] == ["b", "number", "", "none in training"]]
    assert re.fullmatch(r"[0-9.]+(, hardly needed)?", about_b[4])
    assert [line[1:4] for line in told if line and NASTY in unescape(line[0]) and "number" in line] == [
        ["number", "", "learned"]
    ]
    (kind,) = [line for line in told if line[:2] == ["kind", "category"]]
    assert unescape(kind[2]) == f"{NASTY}, plain"
    assert "All trials" in text


def test_squared_loss_says_that_it_has_no_probabilities(pages):
    assert "This model has no probabilities" in pages["squared"].read_text()


MISSING = "no Chromium with chromedriver is installed (apt-get install chromium chromium-driver)"


@pytest.fixture(scope="module")
def browser():
    with open_browser() as opened:
        yield opened


# Elements that are wider than the page and do not scroll, and pairs of lines of text in a picture that overlap.
TOO_WIDE = """
const width = document.documentElement.clientWidth;
return [...document.querySelectorAll('main *')].filter(
  e => !e.closest('.scroll table') && e.getBoundingClientRect().right > width + 1).map(e => e.outerHTML.slice(0, 100));
"""
OVERLAPS = """
const found = [];
for (const svg of document.querySelectorAll('svg')) {
  const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  for (const [i, [one, a]] of boxes.entries()) for (const [two, b] of boxes.slice(i + 1))
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
        Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3) found.push([one, two]);
}
return found;
"""
CONTRAST = """
const shade = c => { const [r, g, b] = c.match(/[0-9.]+/g).map(v => v / 255).map(
  v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const paper = shade(getComputedStyle(document.body).backgroundColor);
const ratio = e => { const s = getComputedStyle(e); const ink = shade(e.tagName === 'text' ? s.fill : s.color);
  return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05); };
return Math.min(...[...document.querySelectorAll('p, td, th, caption, summary, text, h1, h2')].map(ratio));
"""


# Pictures without a description that a screen reader finds, and headings that skip a level.
NAMELESS = """
const lacking = [...document.querySelectorAll('svg')].filter(svg => svg.getAttribute('role') !== 'img' ||
  svg.getAttribute('aria-label').length < 30);
const levels = [...document.querySelectorAll('h1, h2, h3')].map(h => +h.tagName[1]);
return [...lacking.map(svg => svg.outerHTML.slice(0, 100)),
  ...levels.filter((level, k) => level > (k ? levels[k - 1] : 0) + 1)];
"""


QUICK = (("two", 390, True), ("number", 1280, False))
LOOKS = [
    pytest.param(*look, marks=() if look in QUICK else pytest.mark.slow)
    for look in product(("two", "ten", "squared", "number", "many", "default"), (390, 1280), (False, True))
]


@pytest.mark.skipif(not (BROWSER and DRIVER), reason=MISSING)
@pytest.mark.parametrize(("name", "width", "dark"), LOOKS)
def test_in_a_browser(pages, browser, tmp_path, name, width, dark):
    browser.show(pages[name], width, dark=dark)
    assert browser.console() == []
    assert browser.run("return document.querySelectorAll('h2').length") == len(SECTIONS)
    assert browser.run(NAMELESS) == []
    assert (
        browser.run("document.querySelectorAll('details').forEach(d => d.open = true); return document.readyState")
        == "complete"
    )
    assert browser.run("return document.documentElement.scrollWidth") == width
    assert browser.run(TOO_WIDE) == []
    assert browser.run(OVERLAPS) == []
    assert browser.run(CONTRAST) > 4.5
    assert browser.run("return parseFloat(getComputedStyle(document.body).fontSize)") >= 16
    columns = browser.run("return getComputedStyle(document.querySelector('.grid')).gridTemplateColumns.split(' ')")
    assert len(columns) == (1 if width == 390 else 3)
    background = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    assert (
        browser.run("return performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length")
        == 0
    )
    browser.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 20_000
