"""The indexes over passages, disposable: dense (Chroma) and lexical (tantivy), and the embedders."""

import os

# Else onnxruntime tells Microsoft of each process that imports it, and keeps an id of the machine in its user's folder.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
