"""Many workers on one search: splitter, executors (threads, Ray), session and command line."""
