"""The loading scripts of lmdiag: from the published source files to the rows of the data set.

`sources` and `download` find the files; `lines` reads them; `diagnostics` and `agreement` make rows
of them; `columns` has the features; `builder` is the `datasets` builder; `directory` and `card`
write what the Hub shows. They need only `datasets`, not the `lmdiag` package, so that they also run
from a copy of the published data set.
"""
