"""The names by which course configurations load plugins, wherever the code behind them lives."""
