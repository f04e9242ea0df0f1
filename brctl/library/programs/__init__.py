"""Programs of the site or of this machine, as brctl hears them."""
