"""One template for each model call, and its worked examples as data beside it; `pipeline.prompting` renders them."""
