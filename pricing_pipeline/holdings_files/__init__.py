"""Files of holdings as brokers and portfolio programs write them: read as positions, without a database.

One module for each broker or tracker, one for files whose columns a person names, and one shared reader of text,
tables, numbers and histories. What a position is called here, and whether it can be held, is decided elsewhere
(demand/holding_imports.py).
"""
