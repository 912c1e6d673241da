"""One self-contained HTML page of sections, and the same as Markdown: no scripts, no network."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from forback.report.figures import Figure
from forback.report.tables import Table, markdown_table


@dataclass(frozen=True)
class Claim:
    """Something that was said elsewhere, what is found here, and whether the two agree."""

    said: str
    found: str
    agrees: bool | None  #: None: neither yes nor no

    @property
    def verdict(self) -> str:
        """In a word."""
        return {True: "yes", False: "no", None: "partly"}[self.agrees]


@dataclass(frozen=True)
class Section:
    """A chapter of the page: what was asked, what came out, how it compares."""

    intro: str
    comparison: str  #: a sentence or two of honest comparison
    claims: Sequence[Claim] = ()
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()


@dataclass(frozen=True)
class Chapter:
    """A section in its place: under a name and a title, with its figures drawn."""

    name: str
    title: str
    section: Section
    drawings: Sequence[str]  #: the SVG of each figure
    facts: Mapping[str, str] = field(default_factory=dict)  #: how it was made


STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #ffffff; --rule: #d0d4d9;
  --soft: #f3f5f7; --link: #0b62a8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8ea; --paper: #15181b;
  --rule: #3a4046; --soft: #1f2428; --link: #6cb6ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: break-word; }
a { color: var(--link); }
nav ul { padding-left: 1.2rem; columns: 2 18rem; }
section { border-top: 1px solid var(--rule); margin-top: 2.5rem; padding-top: 0.5rem; }
figure { margin: 1.2rem 0; }
figure svg { width: 100%; min-width: 36rem; height: auto; color: var(--ink); display: block; }
figcaption, .facts { font-size: 0.85rem; opacity: 0.85; }
.comparison { background: var(--soft); border-left: 4px solid var(--link); padding: 0.6rem 0.9rem; }
.scroll { overflow-x: auto; max-width: 100%; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 0.4rem 0 1rem; }
th, td { border-bottom: 1px solid var(--rule); padding: 0.25rem 0.6rem; text-align: left;
  vertical-align: top; white-space: nowrap; }
table.wordy td { white-space: normal; min-width: 4rem; }
summary { cursor: pointer; }
""".strip()


def html_page(title: str, preface: str, chapters: Sequence[Chapter]) -> str:
    """The whole page."""
    items = "\n".join(
        f'<li><a href="#{escape(one.name)}">{escape(one.title)}</a></li>' for one in chapters
    )
    body = "\n".join(_html_chapter(one) for one in chapters)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{STYLE}\n</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"<p>{_html(preface)}</p>\n<nav><ul>\n{items}\n</ul></nav>\n{body}\n</body>\n</html>\n"
    )


def _html(text: str) -> str:
    """Text as HTML; what is between backticks is code."""
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text))


def _html_chapter(chapter: Chapter) -> str:
    section, name = chapter.section, escape(chapter.name)
    parts = [
        f'<section id="{name}">',
        f"<h2>{escape(chapter.title)}</h2>",
        *(
            [f"<p><strong>{_html(chapter.facts['note'])}</strong></p>"]
            if "note" in chapter.facts
            else []
        ),
        f"<p>{_html(section.intro)}</p>",
        f'<p class="comparison">{_html(section.comparison)}</p>',
    ]
    if section.claims:
        rows = [[claim.said, claim.found, claim.verdict] for claim in section.claims]
        parts.append(_html_table(CLAIMS, rows))
    for figure, drawing in zip(section.figures, chapter.drawings, strict=True):
        caption, file = escape(figure.caption), escape(figure.name)
        links = f'<a href="{file}.png">PNG</a>, <a href="{file}.svg">SVG</a>'
        labelled = drawing.replace("<svg", f'<svg role="img" aria-label="{caption}"', 1)
        parts.append(
            f'<figure id="{name}-{file}">\n<div class="scroll">{labelled}</div>\n<figcaption>'
            f"{caption} ({links})</figcaption>\n</figure>"
        )
    for table in section.tables:
        shown = " open" if len(table.rows) <= SHORT else ""
        parts.append(
            f"<details{shown}><summary>{escape(table.title)}</summary>\n"
            f"{_html_table(table.header, table.rows)}</details>"
        )
    facts = "; ".join(f"{escape(key)}: {escape(text)}" for key, text in chapter.facts.items())
    parts.append(f'<p class="facts"><a href="{name}.csv">{name}.csv</a>; {facts}</p>\n</section>')
    return "\n".join(parts)


CLAIMS = ("The paper", "Here", "agrees")

#: A table of more rows is folded; one with a longer cell breaks its lines.
SHORT, WORDY = 24, 40


def _html_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    lines = [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    wordy = any(len(cell) > WORDY for row in rows for cell in row)
    body, mark = "\n".join(lines), ' class="wordy"' if wordy else ""
    return (
        f'<div class="scroll"><table{mark}>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def markdown_page(title: str, preface: str, chapters: Sequence[Chapter]) -> str:
    """The same for whoever reads files: figures as PNG, and no tables but that of the claims."""
    parts = [f"# {title}", preface]
    for chapter in chapters:
        section = chapter.section
        parts.append(f"## {chapter.title}")
        parts += [chapter.facts["note"]] if "note" in chapter.facts else []
        parts += [section.intro, f"**{section.comparison}**"]
        if section.claims:
            rows = [[one.said, one.found, one.verdict] for one in section.claims]
            parts.append(markdown_table(CLAIMS, rows))
        parts += [f"![{figure.caption}]({figure.name}.png)" for figure in section.figures]
        facts = "; ".join(f"{key}: {text}" for key, text in chapter.facts.items())
        parts.append(f"[{chapter.name}.csv]({chapter.name}.csv); {facts}")
    return "\n\n".join(parts) + "\n"
