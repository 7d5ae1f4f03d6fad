"""The bound tree that all later phases share: its nodes, walks over them, types that meet, what a row of the catalogue is."""
