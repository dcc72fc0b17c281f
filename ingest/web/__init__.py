"""Read from web servers, politely."""
