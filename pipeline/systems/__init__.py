"""The systems: one file each, an async function from a conversation and a kit to a status."""
