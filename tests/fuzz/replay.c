/* Stands in for libFuzzer's main: runs every file of the corpora (or files) given, in no order. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned replayed;

static void replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    struct buffer bytes = {0};
    char piece[4096];
    size_t size;
    while ((size = fread(piece, 1, sizeof piece, file)) > 0)
        buffer_append(&bytes, piece, size);
    (void)fclose(file);
    /* Exactly as large as the input, so that a sanitizer sees the first byte too many. */
    uint8_t *exact = malloc(bytes.size > 0 ? bytes.size : 1);
    CHECK(exact != NULL);
    if (bytes.size > 0)
        memcpy(exact, bytes.data, bytes.size);
    (void)LLVMFuzzerTestOneInput(exact, bytes.size);
    free(exact);
    buffer_free(&bytes);
    replayed++;
}

static void replay(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
        replay_file(path);
        return;
    }
    DIR *directory = opendir(path);
    CHECK(directory != NULL);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        struct buffer name = {0};
        if (entry->d_name[0] == '.')
            continue;
        buffer_append_format(&name, "%s/%s", path, entry->d_name);
        replay(buffer_string(&name));
        buffer_free(&name);
    }
    (void)closedir(directory);
}

int main(int argument_count, char **arguments)
{
    for (int i = 1; i < argument_count; i++)
        replay(arguments[i]);
    (void)printf("%u inputs\n", replayed);
    return replayed > 0 ? 0 : 1;
}
