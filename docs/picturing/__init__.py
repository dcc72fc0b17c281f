"""Pictures of what people see: scenes at the tests' Slack and Discord, drawn from what the bot really posts there.

`make pictures` (or `python -m docs.picturing`) makes them again, into docs/pictures/. What both have in common is here;
a platform's own looks, and how people act there, are in the package of its name.
"""
