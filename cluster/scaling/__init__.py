"""Scaling experiments: how much sooner more workers find the same answer, and where the rest of their time goes.

`plan` says what is run in which order, `runner` runs it, `results` keeps each run as a line that survives a crash,
`statistics` and `summary` say what the runs mean, `report` and its neighbours write it down.
"""
