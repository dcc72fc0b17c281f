"""How results are shown: each module holds the views of one subject, and their JSON documents."""
