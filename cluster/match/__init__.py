"""Games between engines: strength as a number with an interval, ours against any program that speaks UCI."""
