"""The keys of a scenario: how each value is read, and what it means.

No file here imports ``annotations`` of the future: pydantic looks at the types of all keys at every start, and would
have to compile them from text first.
"""
