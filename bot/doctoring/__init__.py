"""`footnote doctor --model`: the stages' own prompts and readers, tried on a model with cases whose answers are known.

`cases` reads the gold cases from `gold`; `kinds` says how each kind is asked, `judging` whether a reply is right; `ways`
in which manners; `examining` asks; `figures` counts; `advice` says which settings follow, `settings_lines` writes them
down; `report` and `document` are what people and programs get. Only `examining` acts, all else is pure.
"""
