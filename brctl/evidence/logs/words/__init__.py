"""What words say where no rule knows a line: causes, unusual lines, near rules, components."""
