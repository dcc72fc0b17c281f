"""The adapter for servers that speak OpenAI's chat protocol.

`model_settings` and `usage`: what can be set, tokens and money; `chat_request`: a call as the server's arguments, with
the quirks that the server was found to have; `response_reader` and `model_reply`: what it sends; `server_errors`: what
its errors mean, and what may be shown of them; `model_client`: the model; `model_transport`: imports `openai`.
"""
