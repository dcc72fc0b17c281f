"""The adapter for servers that speak OpenAI's chat protocol: small steps, pure but for the last five.

`settings` what can be set; `counting` and `pricing` tokens and money; `budgeting` what a turn may still use; `manners`
what a server was found to want; `composing` a call as the server's arguments; `events`, `replies` and `thoughts` what
it sends; `judging` whether that is a reply; `refusals` and `saying` what it means when it will not, and what may be
said of it; `retrying` when to try again; `reading` its answer as it arrives; `trying` one try of a call; `calling` the
model; `transport` the only file that imports `openai`; `opening` the way in.
"""
