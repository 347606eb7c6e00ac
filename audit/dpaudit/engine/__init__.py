"""Audits of many runs and of single runs, replays of witnesses, and plans of audits."""
