"""The chat platforms, one package each; `bot.settings.platform_registry` finds them."""
