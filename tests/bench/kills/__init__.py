"""Processes of brctl killed at moments drawn by chance, and what they leave behind."""
