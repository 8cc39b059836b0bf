"""Lists every field of the messages that a pipeline config can contain, from the descriptors of the
Object Detection API's protos.

  pip install "protobuf<3.21"
  pip download --no-deps tf-object-detection==0.0.3, then unpack the wheel into FOLDER
  python3 tests/golden/pipeline_fields.py FOLDER > tests/golden/pipeline_fields.json
"""
import importlib
import json
import os
import sys

os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"] = "python"
sys.path.insert(0, sys.argv[1])
pipeline = importlib.import_module("object_detection.protos.pipeline_pb2")
google = importlib.import_module("google.protobuf")

INTEGERS = (3, 4, 5, 13, 17)  # descriptor types: int64, uint64, int32, uint32, sint32
NAMES = {1: "number", 2: "number", 8: "bool", 9: "text", 14: "word"}


def kind(field):
    if field.message_type:
        return "message"
    name = "int" if field.type in INTEGERS else NAMES[field.type]
    return name + "s" if field.label == field.LABEL_REPEATED else name


messages = {}


def walk(message):
    """Adds a message and, once each, those of its fields."""
    if message.name in messages:
        return
    messages[message.name] = [
        [f.name, kind(f), f.message_type.name if f.message_type else ""] for f in message.fields
    ]
    for f in message.fields:
        if f.message_type:
            walk(f.message_type)


walk(pipeline.TrainEvalPipelineConfig.DESCRIPTOR)
print("{")
print(f' "made_by": "tf-object-detection 0.0.3, protobuf {google.__version__}",')
print(' "messages": {')
lines = [f"  {json.dumps(name)}: {json.dumps(fields)}" for name, fields in sorted(messages.items())]
print(",\n".join(lines))
print(" }\n}")
