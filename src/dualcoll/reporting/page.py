"""The parts that HTML pages share: one file that needs no network, no server, no files beside it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from plotly.io import to_html
from plotly.offline import get_plotlyjs

__all__ = ["bars", "figure", "numbers", "page", "safe", "section", "table"]

_BUTTONS = ["toImage", "zoom2d", "pan2d", "resetScale2d"]  # none that would send the figure elsewhere

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #eef1f4; color: #1f2933; line-height: 1.5;
       font: 15px/1.5 Inter, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
main { max-width: 1320px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 0 0 12px; }
p { margin: 0 0 12px; max-width: 75ch; }
.muted { color: #56616d; }
section { background: #fff; border: 1px solid #dde3e8; border-radius: 10px; padding: 20px 24px; margin-top: 18px; }
.figure { overflow-x: auto; }
.numbers { display: grid; grid-template-columns: repeat(auto-fit, minmax(260px, 1fr)); gap: 12px; margin-top: 18px; }
.numbers div { background: #fff; border: 1px solid #dde3e8; border-radius: 10px; padding: 14px 18px; }
.numbers b { display: block; font-size: 23px; font-weight: 650; font-variant-numeric: tabular-nums; }
.numbers span { color: #56616d; font-size: 13px; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 5px 12px 5px 0; border-bottom: 1px solid #eef1f4;
         overflow-wrap: anywhere; }
th { font-weight: 600; white-space: nowrap; width: 7.5em; color: #56616d; }
.share { width: 12em; }
.after { margin: 14px 0 0; }
.track { display: inline-block; width: 68px; }
.bar { display: inline-block; height: 10px; border-radius: 2px; background: #8c0a1c; }
@media print { body { background: #fff; } section, .numbers div { break-inside: avoid; } }
"""


def page(title: str, parts: Sequence[str]) -> str:
    """A whole page of these parts."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n<style>{_STYLE}</style>\n<script>{get_plotlyjs()}</script>\n"
        "</head>\n<body>\n<main>\n" + "\n".join(parts) + "\n</main>\n</body>\n</html>\n"
    )


def safe(text: str) -> str:
    """Text without markup."""
    return html.escape(text, quote=True)


def section(title: str, *content: str) -> str:
    """A part with a heading."""
    return f"<section>\n<h2>{safe(title)}</h2>\n" + "\n".join(content) + "\n</section>"


def numbers(items: Sequence[tuple[str, str]]) -> str:
    """The numbers that matter most, as (label, value)."""
    cells = "".join(f"<div><b>{safe(value)}</b><span>{safe(label)}</span></div>" for label, value in items)
    return f'<div class="numbers">{cells}</div>'


def bars(rows: Sequence[tuple[float, str, str]]) -> str:
    """A table of bars: the part of a whole, its number, and what it is."""
    cells = "".join(
        f'<tr><td class="share"><span class="track">'
        f'<span class="bar" style="width:{max(2, round(60 * min(part, 1.0)))}px"></span></span>'
        f"{safe(number)}</td><td>{safe(text)}</td></tr>"
        for part, number, text in rows
    )
    return f"<table>{cells}</table>"


def table(lines: Sequence[tuple[str, str]]) -> str:
    """Lines as a table."""
    rows = "".join(f"<tr><th>{safe(label)}</th><td>{safe(text)}</td></tr>" for label, text in lines)
    return f"<table>{rows}</table>"


def figure(figure: Any) -> str:
    """A figure, without any button that would send it elsewhere."""
    config = {"displaylogo": False, "displayModeBar": "hover", "modeBarButtons": [_BUTTONS]}
    body = to_html(figure, config=config, include_plotlyjs=False, include_mathjax=False, full_html=False)
    return f'<div class="figure">{body}</div>'
