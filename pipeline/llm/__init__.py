"""The adapter for servers that speak OpenAI's chat protocol: small steps, pure but for the last three.

`settings` what can be set; `counting` and `pricing` tokens and money; `budgeting` what a turn may still use; `manners`
what a server was found to want; `composing` a call as the server's arguments; `replies`, `events` and `thoughts` what
it sends; `refusals` what it means when it will not; `retrying` when to try again; `transport` the only file that
imports `openai`; `calling` the model; `opening` the way in.
"""
