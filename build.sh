#!/bin/bash
# builds this checkout's core, by rename
set -e
cd /work/wt/sampler/src/pyrometer/_native
inc=$(/work/main/.venv/bin/python -c "import sysconfig;print(sysconfig.get_path('include'))")
ext=$(/work/main/.venv/bin/python -c "import sysconfig;print(sysconfig.get_config_var('EXT_SUFFIX'))")
gcc -O2 -g -fPIC -shared -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -Wno-cast-function-type -I$inc core.c -o ../core.$$.so
mv ../core.$$.so core$ext
