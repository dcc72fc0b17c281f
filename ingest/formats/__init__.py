"""How documents are read: one file a family of formats, each from bytes to a `Reading`.

Formats that mark up their text become HTML first (`markdown`, `restructured`, `word`, `epub`), so that one reader,
`tree`, decides for all of them what a paragraph, a list, a table row or a stretch of code is.
"""
