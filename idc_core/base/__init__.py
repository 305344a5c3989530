"""What all packages of the engine stand on: files, config, parameters and their ranges, registries, threads."""
