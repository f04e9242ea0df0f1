"""Doctor --security: who could act as brctl, read its state or turn its answers, and how."""
