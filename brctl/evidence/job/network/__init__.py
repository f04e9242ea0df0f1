"""Which node the network fails at, by what the kernels of all nodes say of their connections."""
