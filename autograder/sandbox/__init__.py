"""Runs a program that nobody trusts, contained: no network, no files of the host, bounded time and memory."""
