KIND = "reduce"
