/* cli/table: plain tables for people. */
#include "cli/command.h"
#include "tests.h"

static const char *const headers[] = {"ID", "NAME", "KEYS", NULL};

static void expect_printed(struct table *table, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    table_print(&table, out);
    assert_null(table);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, expected);
    free(text);
}

TEST(columns_are_as_wide_as_their_widest_cell)
{
    struct table *table = table_create(headers);
    table_cell(table, "cus_1");
    table_cell(table, "A");
    table_cell(table, "12");
    table_cell(table, "c");
    table_cell(table, "Longer name");
    table_cell(table, "3");
    expect_printed(table, "ID     NAME         KEYS\n"
                          "cus_1  A            12\n"
                          "c      Longer name  3\n");
}

TEST(without_rows_only_the_header_is_printed)
{
    expect_printed(table_create(headers), "ID  NAME  KEYS\n");
}

TEST(characters_count_and_not_bytes)
{
    struct table *table = table_create(headers);
    table_cell(table, "x");
    table_cell(table, "Ça été");
    table_cell(table, "1");
    expect_printed(table, "ID  NAME    KEYS\n"
                          "x   Ça été  1\n");
}

TEST(what_could_move_a_cursor_is_a_question_mark)
{
    struct table *table = table_create(headers);
    table_cell(table, "a\033[2Jb");
    table_cell(table, "line\nline\x7F");
    table_cell(table, "\xC2\x9B"
                      "31m \xC2");
    expect_printed(table, "ID      NAME        KEYS\n"
                          "a?[2Jb  line?line?  ?31m ?\n");
}

static void expect_within(size_t room, const char *expected)
{
    static const char *const cells[] = {"cus_1", "Ça été à la plage", "12", "c", "Short", "3"};
    struct table *table = table_create(headers);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++)
        table_cell(table, cells[i]);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    table_print_within(&table, room, out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, expected);
    free(text);
}

TEST(the_widest_column_is_cut_where_the_line_does_not_fit)
{
    expect_within(30, "ID     NAME               KEYS\n"
                      "cus_1  Ça été à la plage  12\n"
                      "c      Short              3\n");
    expect_within(29, "ID     NAME              KEYS\n"
                      "cus_1  Ça été à la pla…  12\n"
                      "c      Short             3\n");
    expect_within(21, "ID     NAME      KEYS\n"
                      "cus_1  Ça été …  12\n"
                      "c      Short     3\n");
    expect_within(1, "ID     NAME      KEYS\n"
                     "cus_1  Ça été …  12\n"
                     "c      Short     3\n");
}

TEST(the_first_column_is_cut_last)
{
    for (size_t room = 30; room >= 20; room -= 10) {
        struct table *table = table_create(headers);
        table_cell(table, "cus_0123456789");
        table_cell(table, "A long name");
        table_cell(table, "1");
        char *text = NULL;
        size_t size = 0;
        FILE *out = open_memstream(&text, &size);
        assert_non_null(out);
        table_print_within(&table, room, out);
        assert_int_equal(fclose(out), 0);
        assert_string_equal(text, room == 30 ? "ID              NAME      KEYS\n"
                                               "cus_0123456789  A long …  1\n"
                                             : "ID        NAME      KEYS\n"
                                               "cus_012…  A long …  1\n");
        free(text);
    }
}
