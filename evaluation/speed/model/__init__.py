"""A simulated model server: it speaks OpenAI's chat protocol at a pace that can be set, and counts.

It answers every prompt of ours so that a turn comes to its end, with text made from the prompt itself, and knows
nothing. Who sizes a deployment sets the pace of the server that is to be bought; benchmarks run it beside themselves.

`settings` what can be set; `recognising` what a prompt asks for; `replying` the reply; `lengths` how long it is;
`pacing` when each token is due; `prefixes` the cache of prompts; `protocol` what is taken and what is sent; `server`
the connections; `running` it in a process of its own; `command` as a command.
"""
