"""The rebuildable indexes over passages, dense (Chroma) and lexical (tantivy), and the embedders."""

import os

# Otherwise onnxruntime reports each importing process to Microsoft, and stores a machine id in the user's folder.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
