"""AsciiDoc, LaTeX and subtitles become plain blocks."""

from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.readers import asciidoc, file_formats, latex, subtitles
from ingest.readers.parsed_document import Heading
from ingest.types import Block, UnreadableDocument
from storage.types import PassageKind

ASCIIDOC = """\
= Deployment Guide
Ann Smith
v1.2, 2024-03-05
:product: Footnote

Welcome to *{product}*. See https://example.com/docs[the docs] or <<install,Installing>>.

[[install]]
== Installing

. Download it
. Run `make install`
* a bullet
** deeper

NOTE: Keep _everything_. // kept
// a comment

.Ports
[cols="1,2", options="header"]
|===
|Port |Use

|443
|HTTPS with link:tls.adoc[TLS]
|===

[source,bash]
----
make test <1>
----

Term:: its definition
image::x.png[The architecture]
include::other.adoc[]
"""

LATEX = r"""
\documentclass[12pt]{article} \usepackage{graphicx}
\title{On \emph{Grounded} Answers} \date{3 March 2024}
\begin{document}
\section{Introduction}\label{sec:intro}
Answers\footnote{Not questions.} that cite~\cite{lee2020}. % a comment
Stra\ss e, na\"{\i}ve, \c{c}a and $E = mc^2$ cost 5\,\%---``quoted'', see Section~\ref{sec:x}.

\textbf{Bold \textit{text}} and \href{https://x.org}{the site}.
\begin{itemize}
  \item First
  \item Second:
  \begin{enumerate} \item one \item two \end{enumerate}
  \item[Term] described
\end{itemize}
\begin{tabular}{l|c} \hline City & Price \\ Graz & 120\,\& more \\ \hline \end{tabular}
\begin{verbatim}
$ ls % kept
\end{verbatim}
\subsection{Method} Text \verb|a_b| here.
\end{document}
"""


def test_asciidoc_becomes_headings_and_blocks():
    read = asciidoc.read_asciidoc(ASCIIDOC)

    assert read.items == (
        Heading(1, "Deployment Guide"),
        Block("Ann Smith"),
        Block("Welcome to Footnote. See the docs or Installing."),
        Heading(2, "Installing"),
        Block("1. Download it\n2. Run make install\n- a bullet\n  - deeper"),
        Block("NOTE: Keep everything. // kept"),
        Block("Ports:"),
        Block("Port: 443; Use: HTTPS with TLS", PassageKind.TABLE),
        Block("make test", PassageKind.CODE),
        Block("Term: its definition"),
        Block("The architecture"),
    )
    assert (read.date, read.revision) == (datetime(2024, 3, 5, tzinfo=UTC), "1.2")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r"\newcommand{\co}{Acme \textbf{Ltd}}\def\hq{Graz}We are \co{} of {\hq}.", ["We are Acme Ltd of Graz."]),
        (r"\newcommand{\co}{a \co b}\co", ["a b"]),
        (r"\newcommand{\two}[1]{<#1>}\two{x}", ["x"]),
        (
            r"\begin{tabular}{lrr}&\multicolumn{2}{c}{2024}\\City&Jan&Feb\\Graz&5&6\\\multicolumn{2}{l}{Both}&7\end{tabular}",
            ["City: Graz; 2024 Jan: 5; 2024 Feb: 6", "City: Both; 2024 Feb: 7"],
        ),
        (
            r"\begin{tabular}{ll} Item & Price \\ \multirow{2}{*}{Tea} & 2 \\ & 3 \end{tabular}",
            ["Item: Tea; Price: 2", "Price: 3"],
        ),
    ],
)
def test_latex_macros_and_spans_are_expanded(source, expected):
    assert [item.text for item in latex.read_latex(source).items] == expected


def test_latex_becomes_headings_and_blocks():
    read = latex.read_latex(LATEX)

    assert (read.title, read.date) == ("On Grounded Answers", datetime(2024, 3, 3, tzinfo=UTC))
    assert read.items == (
        Heading(3, "Introduction"),
        Block("Answers (Not questions.) that cite. Straße, naïve, ça and E = mc^2 cost 5 %—“quoted”, see Section […]."),
        Block("Bold text and the site."),
        Block("- First\n- Second:\n  1. one\n  2. two\n- Term: described"),
        Block("City: Graz; Price: 120 & more", PassageKind.TABLE),
        Block("$ ls % kept", PassageKind.CODE),
        Heading(4, "Method"),
        Block("Text a_b here."),
    )


VTT = """WEBVTT

NOTE made by hand

00:01.000 --> 00:03.000 align:start
<v Ann>Welcome to <i>us</i>.

00:03.500 --> 00:05.000
<v Ann>Ten &amp; more.

01:05.000 --> 01:06.000
<v Bob>Why?
"""
SRT = """1
00:00:01,000 --> 00:00:03,000
Ann: Welcome to <b>us</b>.
Ten & more.

2
00:01:05,000 --> 00:01:06,000
{\\an8}Bob: Why?"""


@pytest.mark.parametrize("text", [VTT, SRT])
def test_subtitles_become_paragraphs_by_speaker_and_pause(text):
    assert subtitles.read_subtitles(text).items == (Block("Ann: Welcome to us. Ten & more."), Block("Bob: Why?"))


def test_file_without_subtitles_is_refused():
    with pytest.raises(UnreadableDocument, match="no subtitles"):
        subtitles.read_subtitles("WEBVTT\n\nNOTE nothing")


MARKS = (
    r"\begin{itemize} \end{tabular} \item \verb| $ { } [ ] |=== ---- << image:: * _ = \" % a & ~ \footnote{ --> "
    "00:01.000 00:02.000"
)


@pytest.mark.parametrize("suffix", [".adoc", ".tex", ".srt"])
@given(st.lists(st.sampled_from([*MARKS.split(), " ", "\n", "\n\n"]), max_size=30))
def test_unclosed_marks_do_not_break_readers(suffix, parts):
    with suppress(UnreadableDocument):
        file_formats.load_formats()[suffix].read("".join(parts).encode())
