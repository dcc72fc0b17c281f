"""`footnote doctor --model`: the stages' own prompts and readers, tried on a model with cases whose answers are known.

`cases` reads them from `gold`; `kinds` says how each kind is asked, `judging` whether a reply is right; `ways` in which
manners; `examining` asks in one of these, `running` in all; `figures` counts; `advice` says which settings follow and
`settings_lines` writes them down; `report` and `document` are what people and programs get; `set_up` is what plain
`footnote doctor` looks at. Only `examining`, `running` and `set_up` act, all else is pure.
"""
