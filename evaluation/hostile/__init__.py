"""Files that are made to do harm, and what reading them takes."""
