"""Pure: a model's reply -> the values of a stage. One file a stage; `reading.py` holds what they share."""
