#pragma once

/* Files of records/ that the build puts into the program (tools/embed_texts.py). */
extern const char record_currencies[]; /* currencies.txt: see currency.c */
extern const char record_countries[];  /* countries.txt: see country.c */
