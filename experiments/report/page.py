"""One Markdown page of sections: claims, figures, tables, and how they were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from experiments.report.figures import Figure
from forback.report.tables import Table, markdown_table


@dataclass(frozen=True)
class Claim:
    """Something that was said elsewhere, what is found here, and whether the two agree."""

    said: str
    found: str
    agrees: bool | None  #: None: neither yes nor no

    @property
    def verdict(self) -> str:
        """The verdict in a word: yes, no or partly."""
        return {True: "yes", False: "no", None: "partly"}[self.agrees]


def claims_table(title: str, claims: Sequence[Claim]) -> Table:
    """Put claims into a table."""
    rows = [[claim.said, claim.found, claim.verdict] for claim in claims]
    return Table(title, ["The paper", "Here", "agrees"], rows)


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
    """A section in its place: under a name and a title."""

    name: str
    title: str
    section: Section
    command: str  #: that makes it again
    facts: Mapping[str, str] = field(default_factory=dict)  #: how it was made


def markdown_page(title: str, preface: str, chapters: Sequence[Chapter]) -> str:
    """Write the whole page; tables are folded, since claims and figures come first."""
    parts = [f"# {title}", preface]
    for chapter in chapters:
        section = chapter.section
        parts.append(f"## {chapter.title}")
        parts += [chapter.facts["note"]] if "note" in chapter.facts else []
        parts += [section.intro, f"**{section.comparison}**"]
        if section.claims:
            parts.append(_markdown(claims_table("", section.claims)))
        parts += [f"![{figure.caption}]({figure.name}.png)" for figure in section.figures]
        for table in section.tables:
            parts += [f"<details><summary>{table.title}</summary>", _markdown(table), "</details>"]
        facts = "; ".join(f"{key}: {text}" for key, text in chapter.facts.items())
        parts.append(f"[{chapter.name}.csv]({chapter.name}.csv), by `{chapter.command}`; {facts}")
    return "\n\n".join(parts) + "\n"


def _markdown(table: Table) -> str:
    return markdown_table(table.header, table.rows)
