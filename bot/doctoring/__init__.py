"""`footnote doctor`: whether all is well; with `--model`, how well the model that is set does its work.

For the first, `looking` looks at the home once, `registry` names the checks (`home_checks`, `store_checks`,
`settings_checks`, `server_checks`), `checks` runs them and says what a finding is, and `health` shows what was found.

For the second, it is the stages' own prompts and readers, tried on a model with cases whose answers are known.

`cases` reads them from `gold`; `kinds` says how each kind is asked, `judging` whether a reply is right; `ways` in which
manners; `examining` asks in one of these, `running` in all; `figures` counts; `advice` says which settings follow and
`settings_lines` writes them down; `report` and `document` are what people and programs get. Only
`examining` and `running` act, all else is pure.
"""
