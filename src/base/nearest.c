/*
 * "Did you mean …?": the distance between two names is the number of letters to add, drop, change
 * or swap with a neighbour (optimal string alignment). Names here are short, so three rows on the
 * stack do.
 */
#include "base/nearest.h"

#include <string.h>

#define NAME_MAX_SIZE 48

static unsigned least_of(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

static unsigned distance_between(const char *a, size_t a_size, const char *b, size_t b_size)
{
    unsigned rows[3][NAME_MAX_SIZE + 1];
    for (unsigned j = 0; j <= b_size; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i + 2) % 3];
        const unsigned *two_above = rows[(i + 1) % 3];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_size; j++) {
            unsigned changed = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = least_of(above[j] + 1, row[j - 1] + 1, changed);
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && two_above[j - 2] + 1 < row[j])
                row[j] = two_above[j - 2] + 1;
        }
    }
    return rows[a_size % 3][b_size];
}

bool nearest_offer(struct nearest *nearest, const char *name)
{
    size_t written_size = strlen(nearest->written);
    size_t name_size = strlen(name);
    if (written_size == 0 || written_size > NAME_MAX_SIZE || name_size > NAME_MAX_SIZE)
        return false;
    unsigned distance = distance_between(nearest->written, written_size, name, name_size);
    /* The beginning of a name is a good guess too: "cust" for "customer". */
    if (written_size >= 3 && strncmp(name, nearest->written, written_size) == 0)
        distance = 1;
    unsigned limit = name_size <= 3 ? 1 : name_size <= 6 ? 2 : 3;
    if (distance > limit || (nearest->name != NULL && distance >= nearest->distance))
        return false;
    nearest->name = name;
    nearest->distance = distance;
    return true;
}
