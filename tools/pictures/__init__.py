"""Draw what people see in Slack and Discord, from what the bot posts to the tests' fake servers (`make pictures`)."""
