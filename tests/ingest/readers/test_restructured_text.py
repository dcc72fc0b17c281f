"""reStructuredText becomes headings and plain blocks, silently and safely."""

from datetime import UTC, datetime

from ingest.readers import restructured_text
from ingest.readers.parsed_document import Heading
from ingest.types import Block
from storage.types import PassageKind

PAGE = """
:date: 2024-05-06
:version: 3

Leave
=====

Ask *early*, see :ref:`the policy <leave>` and :func:`~people.ask`.

Numbers
-------

- thirty days
- ``five`` more

.. code-block:: python
   :linenos:

   days = 30

.. note:: Only in **May**.

.. toctree::

   other

===== =====
Plan  Price
===== =====
Basic 5
===== =====
"""


def test_restructured_text_becomes_headings_and_blocks():
    reading = restructured_text.read_restructured_text(PAGE)

    assert reading.items == (
        Heading(1, "Leave"),
        Block("Ask early, see the policy and ask."),
        Heading(2, "Numbers"),
        Block("- thirty days\n- five more"),
        Block("days = 30", PassageKind.CODE),
        Block("Note"),
        Block("Only in May."),
        Block("Plan: Basic; Price: 5", PassageKind.TABLE),
    )
    assert reading.date == datetime(2024, 5, 6, tzinfo=UTC)
    assert reading.revision == "3"


def test_other_files_are_not_included(tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("hidden")

    reading = restructured_text.read_restructured_text(
        f"Text.\n\n.. include:: {secret}\n\n.. csv-table::\n   :file: {secret}\n"
    )

    assert "hidden" not in str(reading)


def test_raw_markup_is_omitted():
    assert "alert" not in str(
        restructured_text.read_restructured_text("Text.\n\n.. raw:: html\n\n   <script>alert(1)</script>\n")
    )


def test_broken_page_is_read_quietly(capfd):
    reading = restructured_text.read_restructured_text(
        "Title\n==\n\n.. unknown:: x\n\n`unclosed |ref|_ :nope:`x`\n\nText.\n"
    )

    assert Block("Text.") in reading.items
    assert capfd.readouterr() == ("", "")
