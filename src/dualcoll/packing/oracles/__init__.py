"""Cheapest columns under link prices, one file per kind of column."""
