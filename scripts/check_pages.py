"""Check that built pages load nothing from a network: no script, style, font, picture or frame of another host.

``python scripts/check_pages.py docs/_build/html`` names every such source with its file; links for readers are free.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

# What a browser fetches by itself when it shows a page.
_LOADED = {
    "audio": ("src",),
    "embed": ("src",),
    "iframe": ("src",),
    "img": ("src", "srcset"),
    "object": ("data",),
    "script": ("src",),
    "source": ("src", "srcset"),
    "video": ("src", "poster"),
}
_LOADED_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "manifest"}
_FOREIGN = re.compile(r"(?:^|[\s,])(?:https?:)?//", re.IGNORECASE)
_FOREIGN_STYLE = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//[^'\")\s]*", re.IGNORECASE)


class _Sources(HTMLParser):
    """Collects what a page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        names = _LOADED.get(tag, ())
        if tag == "link" and _LOADED_LINKS & set(values.get("rel", "").lower().split()):
            names = ("href",)
        self.foreign += [values[name] for name in names if _FOREIGN.search(values.get(name, ""))]
        self.foreign += _FOREIGN_STYLE.findall(values.get("style", ""))
        self._in_style = tag == "style"

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self.foreign += _FOREIGN_STYLE.findall(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False


def foreign_sources(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield file and source of everything that the pages and styles in a folder load from elsewhere."""
    for path in sorted(folder.rglob("*.html")):
        page = _Sources()
        page.feed(path.read_text(encoding="utf-8"))
        for source in page.foreign:
            yield path, source
    for path in sorted(folder.rglob("*.css")):
        for source in _FOREIGN_STYLE.findall(path.read_text(encoding="utf-8")):
            yield path, source


def main(folder: Path) -> int:
    """Print what is foreign; 1 if there is anything, or no page."""
    if not any(folder.rglob("*.html")):
        print(f"{folder}: no pages. Build them with make docs.", file=sys.stderr)
        return 1
    foreign = list(foreign_sources(folder))
    for path, source in foreign:
        print(f"{path.relative_to(folder)} loads {source}", file=sys.stderr)
    return int(bool(foreign))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
