"""The adapter for servers that speak OpenAI's chat protocol.

`model_settings` and `usage`: what can be set, tokens and money; `chat_request`: a call as the server's arguments, with
the quirks that the server was found to have; `server_connection`: the way there and back, imports `openai`;
`model_reply`: what came back; `server_errors`: what errors mean, and what may be shown of them; `model_client`: the
model.
"""
