"""The adapter for servers that speak OpenAI's chat protocol.

`model`: the protocol that the rest of the pipeline uses; `model_settings` and `usage`: settings, tokens and prices;
`chat_request`: a call as the server's arguments, adapted to its quirks; `server_connection`: HTTP, imports `openai`;
`model_reply`: parsing; `server_errors`: the meaning of errors; `server_load`: load; `model_client`: the adapter.
"""
