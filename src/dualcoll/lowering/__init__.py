"""Schedules as files that runtimes execute: writers, and their readers and validators."""
