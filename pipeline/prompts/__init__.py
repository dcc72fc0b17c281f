"""One template for each model call with its worked examples, and the code that renders and sends them."""
