"""The rules of tools/check_style.py, one module each."""
