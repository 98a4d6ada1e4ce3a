"""Text of others to data that remembers where each value stood: bounded, and every mistake with its line.

- `text`: a file to text, and text to a line of a message.
- `yaml_text`: YAML to a `document`, and back; each kind of file with bounds of its own.
- `document`: nested data with a mark for each value.
- `values`: values taken out of a document, with everything that is wrong collected.
- `xml_tree`: XML to a tree of elements.
"""
