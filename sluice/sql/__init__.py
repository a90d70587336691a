"""SQL that means the same to the engines that scan: names, values, functions and people's own expressions."""
