"""`footnote evaluate injection`: what planted passages can make leave, with a model that does all that they say."""
