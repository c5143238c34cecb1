"""Sequential search of any game on one core: rules, kernel, driver; knows no Ray."""
