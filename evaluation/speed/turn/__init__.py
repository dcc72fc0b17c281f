"""One turn of a system, measured against a simulated server: how long, why so long, in how many rounds and tokens.

`tracing` notes what a turn does and what each step waited for; `path` finds which steps its end waited for; `rounds`
and `prompts` count; `corpus` is what is asked about; `measuring` runs turns; `table` and `timeline` say what came of
it, `picture` draws it; `command` is the command.
"""
