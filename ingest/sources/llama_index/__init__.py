"""Any reader of LlamaIndex."""
