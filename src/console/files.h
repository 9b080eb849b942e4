#pragma once

#include "base/text.h"

/* The files of the operator's console: those of console/, and docs/openapi.yaml for the developers
 * of customers. tools/embed_console.py makes the table at build. */
struct console_file {
    struct text path;
    const char *content_type;
    const char *tag; /* of the file's bytes, without quotes */
    size_t size;     /* of the file; gzipped it is less */
    const uint8_t *gzipped;
    size_t gzipped_size;
};

extern const struct console_file console_files[];
extern const size_t console_file_count;
