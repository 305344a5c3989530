"""Networks and data of a person's own, entered in the registries: from files, setup files and a running program."""
