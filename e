fuseline show: there is no such command. `fuseline --help` lists all.
