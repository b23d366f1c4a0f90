module account-authz/bench/generator

go 1.26.0
