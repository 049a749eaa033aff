"""What ``pyrometer run`` puts first on the program's path: one module, ``sitecustomize``."""
