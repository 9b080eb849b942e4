#pragma once

/* Files that the build puts into the program (tools/embed_texts.py). */

/* Of dist/completion/. The word "@rows@" of each stands for the table of commands. */
extern const char completion_bash[];
extern const char completion_zsh[];
extern const char completion_fish[];

/* help/overview.txt. "@" stands for the commands without a group, then for the groups. */
extern const char help_overview[];
