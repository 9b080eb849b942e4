#pragma once

/* Files of dist/completion/ that the build puts into the program (tools/embed_texts.py). The word
 * "@rows@" of each stands for the table of commands. */
extern const char completion_bash[];
extern const char completion_zsh[];
extern const char completion_fish[];
