"""A jury's judge under attack, with its defences and with each of them disabled."""
