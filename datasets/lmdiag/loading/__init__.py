"""The loading scripts of lmdiag: from the published source files to the rows of the data set.

`lines` reads text files and says where a line is wrong; `diagnostics` and `agreement` turn lines
into rows; `sources` finds or fetches the files; `columns` holds the features; `builder` is the
`datasets` builder class; `card` and `directory` write what the Hub shows. They need `datasets`
alone, not the `lmdiag` package, so that they run from a copy of the published data set too.
"""
