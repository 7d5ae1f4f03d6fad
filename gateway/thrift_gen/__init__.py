"""Generated from thrift_idl/ by `python thrift_idl/generate.py`; never edited."""
