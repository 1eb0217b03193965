"""The table codec: converts what the engines refuse, or says what is wrong."""
