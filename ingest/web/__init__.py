"""Reading from web servers, politely."""
