"""The observer: records real calls of a module and infers from them what an export needs."""
