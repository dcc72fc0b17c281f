"""Read from web servers without burdening them."""
