"""An engine that speaks UCI: a graphical interface sees any number of workers as one program."""
