KIND = "pool"
