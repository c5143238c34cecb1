"""The report as one page: no network, no script; for a wide screen, a phone and paper, by day and by night."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from cluster.scaling.plots import INK
from cluster.scaling.tables import Table

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --paper: #ffffff; --pale: #59636e; --line: #d1d9e0; --warn: #fff3d6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --paper: #0f141a; --pale: #9aa5b1; --line: #333c47; --warn: #4a3a10; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; color: var(--ink); background: var(--paper);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.2rem; margin-top: 2rem; }
p, ul, dl { max-width: 46rem; } .pale, figcaption, .note { color: var(--pale); font-size: .875rem; }
.lead li { margin: .4rem 0; } .warning { background: var(--warn); padding: .6rem 1rem; border-radius: .4rem; }
.simulated { border: 2px dashed var(--pale); padding: 0 1rem 1rem; border-radius: .4rem; }
.wide { overflow-x: auto; margin: 1rem 0; background: linear-gradient(to left, var(--paper) 2rem, transparent) right
  / 2rem 100% no-repeat local, linear-gradient(to left, #8889, transparent) right / .6rem 100% no-repeat scroll; }
small { color: var(--pale); font-size: .75rem; } caption small { font-weight: normal; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { vertical-align: bottom; } th:first-child, td:first-child { text-align: left; }
thead th { white-space: normal; }
@media (max-width: 40rem) { body { padding: .75rem; } th, td { padding: .2rem .35rem; }
  td:first-child { white-space: normal; min-width: 6.5rem; } .simulated { padding: 0 .5rem .5rem; } }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; } figure svg { width: 100%; height: auto; max-width: 40rem; display: block; color: var(--ink); }
dt { font-weight: 600; } dd { margin: 0 0 .5rem 1rem; } code, pre { font-size: .85rem; }
pre { overflow-x: auto; border: 1px solid var(--line); padding: .6rem; border-radius: .4rem; }
@media print {
  :root { --ink: #000; --paper: #fff; --pale: #444; --line: #bbb; --warn: #eee; color-scheme: light; }
  body { max-width: none; padding: 0; font-size: 10.5pt; } table { font-size: 7pt; }
  small { font-size: 6pt; white-space: nowrap; } h2, caption { break-after: avoid; } .wide { overflow: visible; }
  th, td { padding: .15rem .3rem; white-space: normal; } figure, tr, .warning { break-inside: avoid; }
  pre { white-space: pre-wrap; } .plots { grid-template-columns: 1fr 1fr; }
}
"""


def page(title: str, parts: Iterable[str]) -> str:
    """Return the whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body><main>\n<h1>{escape(title)}</h1>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def heading(text: str) -> str:
    """Return a section's heading."""
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph, of a class of the style sheet."""
    return f'<p class="{kind}">{escape(text)}</p>' if kind else f"<p>{escape(text)}</p>"


def items(texts: Iterable[str], kind: str = "") -> str:
    """Return a list."""
    return f'<ul class="{kind}">' + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def terms(pairs: Iterable[tuple[str, str]]) -> str:
    """Return a list of terms and what they are."""
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in pairs) + "</dl>"


def block(text: str) -> str:
    """Return text as it stands, such as a command."""
    return f"<pre>{escape(text)}</pre>"


def box(parts: Iterable[str], kind: str) -> str:
    """Return parts in a box of a class of the style sheet."""
    return f'<section class="{kind}">' + "\n".join(parts) + "</section>"


def table(content: Table) -> str:
    """Return a table, which scrolls sideways where it is wider than the page."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in content.header)
    rows = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>\n" for row in content.rows)
    note = paragraph(content.note, "note") if content.note else ""
    return (
        f'<div class="wide"><table><caption>{escape(content.caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{rows}</tbody></table></div>{note}"
    )


def _cell(text: str) -> str:
    """Return a cell's text, an interval under its figure: tables stay narrow."""
    return re.sub(r"^(\S+) (\[.*\])$", r"\1<br><small>\2</small>", escape(text))


def plots(drawings: Iterable[tuple[str, str, str]]) -> str:
    """Return plots side by side, where there is room.

    Parameters
    ----------
    drawings
        Of each its short name, its SVG and its caption.
    """
    found = [
        f'<figure id="{escape(name)}">{_inline(name, svg, caption)}<figcaption>{escape(caption)}</figcaption></figure>'
        for name, svg, caption in drawings
    ]
    return '<div class="plots">' + "\n".join(found) + "</div>"


def _inline(name: str, svg: str, caption: str) -> str:
    """Return an SVG as an element of the page: in the page's ink, its names its own, its style kept to itself."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<style[^>]*>.*?</style>", "", body, flags=re.DOTALL)
    body = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", body, count=1)
    body = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", body, count=1)
    body = body.replace("<svg", f'<svg role="img" aria-label="{escape(caption)}" stroke-linejoin="round"', 1)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", body)
    return body.replace(INK, "currentColor").replace("font: 9px 'sans-serif'", "font: 9px sans-serif")
