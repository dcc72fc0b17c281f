"""Pictures of what people see in Slack: scenes at the tests' Slack, drawn from the blocks that the bot posts there.

`make pictures` (or `python -m docs.picturing`) makes them again, into docs/pictures/.
"""
