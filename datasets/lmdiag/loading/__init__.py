"""The loading scripts of lmdiag: from the published source files to the rows of the data set.

`sources` finds and downloads the files; `lines` reads them; `diagnostics` and `agreement` make rows
of them; `directory` and `card` write what the Hub shows. The columns are those that the package
`lmdiag` declares; `lmdiag build` runs the scripts.
"""
