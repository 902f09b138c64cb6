"""JSON's values as YAML: the layout, and that nothing plain can be taken for something else."""

from ha.console.yaml_text import as_yaml

DOCUMENT = {
    "apiVersion": "nnha/v1",
    "none": None,
    "count": 3,
    "on": "yes",
    "list": [{"a": 1, "b": [True, 0.5]}, [], "x: y"],
    "deep": {"empty": {}, "text": "line\nbreak ü"},
}

TEXT = """\
apiVersion: "nnha/v1"
none: null
count: 3
"on": "yes"
list:
  - a: 1
    b:
      - true
      - 0.5
  - []
  - "x: y"
deep:
  empty: {}
  text: "line\\nbreak ü"
"""


def test_objects_and_lists_are_blocks_and_scalars_are_json() -> None:
    assert as_yaml(DOCUMENT) == TEXT


def test_an_empty_document_is_an_empty_object() -> None:
    assert as_yaml({}) == "{}\n"
