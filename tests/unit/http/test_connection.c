/* The HTTP layer over real sockets: order, deadlines, closing, limits. */
#include "one_client.h"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>

TEST_OF(client, a_connection_serves_request_after_request)
{
    SEND(client, GET("/a?b"));
    client_expect(client, "<GET /a ? b # >");
    SEND(client, GET("/count"));
    client_expect(client, "<2>");
    assert_true(client_has(client, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                                   "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
                                   "Content-Length: "));
    assert_true(client_has(client, "\r\nDate: "));
    assert_true(client_has(client, "\r\nX-Request-Id: "));
    assert_true(client_has(client, "\r\nX-Added: yes\r\n\r\n<2>"));
    assert_int_equal(loopback.outcomes, 2);
    assert_int_equal(loopback.incomplete, 0);
    client_close(client);
    WAIT_UNTIL(&loopback, loopback.server->connection_count == 0);
    *client = client_open(&loopback); /* what a connection remembers ends with it */
    SEND(client, GET("/count"));
    client_expect(client, "<1>");
}

TEST_OF(client, pipelined_requests_are_answered_in_order)
{
    SEND(client, GET("/1") "POST /2 HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc" GET("/later")
                     GET("/3") GET("/4"));
    WAIT_UNTIL(&loopback, loopback.waiting != NULL);
    assert_int_equal(loopback.handled, 3);
    reply_in_full(loopback.waiting);
    client_expect(client, "/4");
    const char *at = buffer_string(&client->received);
    const char *wanted[] = {"<GET /1", "<POST /2 ?  # abc>", "<GET /later", "<GET /3", "<GET /4"};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        assert_non_null(at = strstr(at, wanted[i]));
}

/* Sends one more request; was it taken as the one before once more? */
static bool repeats(struct client *client, const char *request)
{
    unsigned handled = loopback.handled;
    client_send(client, text_of(request));
    WAIT_UNTIL(&loopback, loopback.handled > handled);
    return loopback.repeated;
}

TEST_OF(client, only_the_request_before_is_repeated)
{
    const char *poll = "GET /count HTTP/1.1\r\n" HOST "If-None-Match: \"a\"\r\n\r\n";
    const char *tagged = "GET /count HTTP/1.1\r\n" HOST "If-None-Match: \"b\"\r\n\r\n";
    const char *body = "POST /x HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\na";
    assert_false(repeats(client, poll));
    assert_true(repeats(client, poll));
    assert_true(repeats(client, tagged)); /* another tag */
    assert_false(repeats(client, GET("/other")));
    assert_true(repeats(client, GET("/other")));
    assert_false(repeats(client, poll));
    assert_false(repeats(client, body)); /* it is not remembered, so `poll` still is */
    assert_false(repeats(client, poll));
    assert_true(repeats(client, poll));
    assert_false(repeats(client, body));
    assert_false(repeats(client, body));
}

TEST_OF(client, thousands_of_pipelined_requests_need_no_stack)
{
    enum { COUNT = 20000, PIECE = 2000 };
    struct buffer requests = {0};
    for (int i = 0; i < PIECE; i++)
        buffer_append_string(&requests, GET("/p"));
    for (unsigned answered = 0; answered < COUNT; answered += PIECE) {
        client_send(client, buffer_text(&requests));
        while (client_count(client, "<GET /p ?  # >") < PIECE && !client->ended)
            client_read(client);
        if (client->ended)
            fail_msg("ended (reset %d, incomplete %u) after: %s", client->reset,
                     loopback.incomplete,
                     buffer_string(&client->received) +
                         (client->received.size > 600 ? client->received.size - 600 : 0));
        buffer_clear(&client->received);
    }
    buffer_free(&requests);
    assert_int_equal(loopback.outcomes, COUNT);
}

TEST_OF(client, reading_ahead_is_bounded)
{
    enum { AHEAD = 64 * 1024 * 1024 };
    SEND(client, GET("/later"));
    WAIT_UNTIL(&loopback, loopback.waiting != NULL);
    char *flood = memory_alloc_zeroed(1, 65536);
    size_t taken = 0;
    for (int idle = 0; idle < 20 && taken < AHEAD;) {
        ssize_t sent = send(client->descriptor, flood, 65536, MSG_DONTWAIT | MSG_NOSIGNAL);
        taken += sent > 0 ? (size_t)sent : 0;
        idle = sent > 0 ? 0 : idle + 1;
        loopback_turn(&loopback, -1);
    }
    assert_true(taken < AHEAD); /* the kernel's buffers and HTTP_PIPELINE_MAX, no more */
    reply_in_full(loopback.waiting);
    client_expect(client, "bad_request");
    memory_free(flood);
}

TEST_OF(client, bytes_may_come_one_by_one)
{
    struct text bytes = TEXT("\r\n"
                             "POST /slow HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                             "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n" GET("/next"));
    for (size_t i = 0; i < bytes.size; i++) {
        assert_int_equal(send(client->descriptor, bytes.at + i, 1, 0), 1);
        loopback_turn(&loopback, -1);
    }
    client_expect(client, "<POST /slow ?  # abcdefg>");
    client_expect(client, "<GET /next");
}

TEST_OF(client, empty_lines_before_a_request_are_whole_or_refused)
{
    SEND(client, "\r");
    SEND(client, "\n" GET("/a") "\r\n" GET("/b"));
    client_expect(client, "<GET /b");
    SEND(client, "\r\n\r" GET("/c"));
    client_expect_end(client);
    assert_true(client_has(client, "HTTP/1.1 400 "));
    assert_int_equal(loopback.handled, 2);
}

TEST_OF(client, head_has_the_length_but_no_body)
{
    SEND(client, "HEAD /a HTTP/1.1\r\n" HOST "\r\n" GET("/b"));
    client_expect(client, "<GET /b ?  # >");
    assert_false(client_has(client, "<HEAD"));
    assert_true(client_has(client, "Content-Length: 15\r\n"));
}

TEST_OF(client, a_client_that_asks_is_told_to_continue)
{
    SEND(client, "POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    client_expect(client, "HTTP/1.1 100 Continue\r\n\r\n");
    SEND(client, "ab");
    client_expect(client, "# ab>");
    /* Not when the body has come already, nor when it will not be read. */
    SEND(client, "POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n\r\ncd");
    client_expect(client, "# cd>");
    SEND(client,
         "POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 20000\r\n\r\n");
    client_expect(client, "payload_too_large");
    client_expect_end(client);
    assert_int_equal(client_count(client, "100 Continue"), 1);
}

TEST_OF(client, a_refusal_is_a_document_and_the_end)
{
    SEND(client, "GET /secret HTTP/1.1\r\n\r\n" GET("/never"));
    client_expect_end(client);
    assert_true(client_has(client, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
                                   "X-Content-Type-Options: nosniff\r\n"));
    assert_true(client_has(client, "\r\nX-Request-Id: "));
    assert_true(client_has(client, "\r\nConnection: close\r\n\r\n{\"error\":\"bad_request\","));
    assert_false(client_has(client, "secret"));
    assert_int_equal(loopback.handled, 0);
    assert_int_equal(loopback.refused, 1);
    assert_int_equal(loopback.last_status, 400);
}

TEST_OF(client, a_refused_client_that_goes_on_sending_still_sees_the_answer)
{
    SEND(client, "POST / HTTP/1.1\r\n" HOST "Content-Length: 100000\r\n\r\n");
    char body[100000] = {0};
    client_send(client, (struct text){body, sizeof body});
    client_expect_end(client);
    assert_true(client_has(client, "413 Content Too Large"));
}

TEST_OF(client, connections_close_when_asked_to)
{
    SEND(client, "GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n");
    client_expect_end(client);
    assert_true(client_has(client, "\r\nConnection: close\r\n"));
    client_close(client);
    *client = client_open(&loopback);
    SEND(client, "GET / HTTP/1.0\r\n\r\n");
    client_expect_end(client);
    assert_true(client_has(client, "\r\nConnection: close\r\n"));
    client_close(client);
    *client = client_open(&loopback);
    SEND(client, "GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    client_expect(client, "\r\nConnection: keep-alive\r\n");
    SEND(client, GET("/2"));
    client_expect(client, "<GET /2");
}

TEST_OF(client, a_client_that_has_shut_its_side_gets_its_answers)
{
    SEND(client, GET("/later") GET("/last"));
    assert_int_equal(shutdown(client->descriptor, SHUT_WR), 0);
    WAIT_UNTIL(&loopback, loopback.waiting != NULL);
    for (int i = 0; i < 10; i++)
        loopback_turn(&loopback, -1);
    assert_int_equal(loopback.abandoned, 0);
    reply_in_full(loopback.waiting);
    client_expect_end(client);
    assert_true(client_has(client, "<GET /later") && client_has(client, "<GET /last"));
    client_close(client);
    *client = client_open(&loopback);
    SEND(client, "GET / HT");
    assert_int_equal(shutdown(client->descriptor, SHUT_WR), 0);
    client_expect_end(client);
    assert_true(client_has(client, "bad_request"));
}

TEST_OF(client, a_request_whose_client_resets_is_abandoned_at_once)
{
    SEND(client, GET("/later") GET("/never"));
    WAIT_UNTIL(&loopback, loopback.waiting != NULL);
    struct linger reset = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(setsockopt(client->descriptor, SOL_SOCKET, SO_LINGER, &reset, sizeof reset),
                     0);
    client_close(client);
    WAIT_UNTIL(&loopback, loopback.abandoned == 1);
    WAIT_UNTIL(&loopback, loopback.server->connection_count == 0);
    assert_int_equal(loopback.outcomes, 0);
    assert_int_equal(loopback.handled, 1);
}

TEST_WITH(a_request_that_does_not_arrive_in_time_is_told_so, open_loopback, close_loopback)
{
    struct client head = client_open(&loopback);
    struct client body = client_open(&loopback);
    SEND(&head, "GET / HTTP/1.1\r\n");
    SEND(&body, "POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nab");
    loopback_advance(&loopback, 900);
    client_read(&head);
    client_read(&body);
    assert_int_equal(head.received.size + body.received.size, 0);
    loopback_advance(&loopback, DEADLINE_MS - 900);
    client_expect_end(&head);
    client_expect_end(&body);
    assert_true(client_has(&head, "408 Request Timeout") && client_has(&head, "request_timeout"));
    assert_true(client_has(&body, "408 Request Timeout") && client_has(&body, "request_timeout"));
    client_close(&head);
    client_close(&body);
}

TEST_OF(client, a_slow_head_has_one_deadline_however_often_bytes_come)
{
    SEND(client, "GET / HTTP/1.1\r\nX: ");
    for (uint64_t passed_ms = 0; passed_ms < DEADLINE_MS; passed_ms += 20) {
        assert_false(passed_ms < 1000 && client->received.size > 0);
        (void)send(client->descriptor, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        client_read(client);
        loopback_advance(&loopback, 20);
    }
    client_expect(client, "request_timeout");
}

TEST_WITH(an_idle_connection_is_closed_without_a_word, open_loopback, close_loopback)
{
    struct client fresh = client_open(&loopback);
    struct client used = client_open(&loopback);
    SEND(&used, GET("/"));
    client_expect(&used, "<GET /");
    SEND(&used, "\r\n"); /* an empty line begins no request */
    size_t size = used.received.size;
    loopback_advance(&loopback, 900);
    client_read(&fresh);
    assert_false(fresh.ended);
    loopback_advance(&loopback, DEADLINE_MS - 900);
    client_expect_end(&fresh);
    client_expect_end(&used);
    assert_int_equal(fresh.received.size, 0);
    assert_int_equal(used.received.size, size);
    client_close(&fresh);
    client_close(&used);
}

TEST_OF(client, a_request_set_aside_has_no_deadline_here)
{
    SEND(client, GET("/later"));
    WAIT_UNTIL(&loopback, loopback.waiting != NULL);
    loopback_advance(&loopback, 60000);
    assert_non_null(loopback.waiting);
    reply_in_full(loopback.waiting);
    client_expect(client, "<GET /later");
}

TEST_OF(client, a_large_answer_arrives_whole)
{
    SEND(client, GET("/large") GET("/after"));
    while (client->received.size < LARGE_SIZE)
        client_read(client);
    client_expect(client, "<GET /after");
    char *body = strstr(client->received.data, "\r\n\r\n") + 4;
    for (size_t i = 0; i < LARGE_SIZE; i++)
        if (body[i] != 'x')
            fail_msg("byte %zu is wrong", i);
}

TEST_OF(client, a_reader_that_stops_is_dropped)
{
    SEND(client, GET("/large"));
    WAIT_UNTIL(&loopback, loopback.handled == 1);
    loopback_advance(&loopback, 900);
    assert_int_equal(loopback.server->connection_count, 1);
    loopback_advance(&loopback, DEADLINE_MS - 900);
    WAIT_UNTIL(&loopback, loopback.incomplete == 1);
    WAIT_UNTIL(&loopback, loopback.server->connection_count == 0);
}

TEST_OF(client, a_slow_reader_that_goes_on_reading_is_not)
{
    SEND(client, GET("/large"));
    /* Several times the deadline in all, for it takes 64 KiB at most each time. */
    while (client->received.size < LARGE_SIZE / 2) {
        client_read(client);
        loopback_advance(&loopback, 100);
    }
    assert_int_equal(loopback.incomplete, 0);
    while (client->received.size < LARGE_SIZE)
        client_read(client);
}

TEST_WITH(connections_over_the_limit_are_told_so, open_loopback, close_loopback)
{
    struct client clients[9];
    for (int i = 0; i < 9; i++)
        clients[i] = client_open(&loopback);
    client_expect_end(&clients[8]);
    assert_true(client_has(&clients[8], "503 Service Unavailable"));
    assert_true(client_has(&clients[8], "\"overloaded\""));
    assert_int_equal(loopback.events[HTTP_EVENT_REFUSED], 1);
    SEND(&clients[0], GET("/still"));
    client_expect(&clients[0], "<GET /still");
    for (int i = 0; i < 9; i++)
        client_close(&clients[i]);
}

TEST_WITH(without_descriptors_connections_are_turned_away_until_there_are_some, open_loopback,
          close_loopback)
{
    struct rlimit before;
    struct client first = client_open(&loopback);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int highest = dup(first.descriptor);
    struct client second = {.loopback = &loopback,
                            .descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    (void)close(highest);
    int spare = dup(first.descriptor); /* takes the lowest number that is free */
    struct rlimit none = {.rlim_cur = (rlim_t)spare + 1, .rlim_max = before.rlim_max};
    if ((rlim_t)second.descriptor >= none.rlim_cur)
        none.rlim_cur = (rlim_t)second.descriptor + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(loopback.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(second.descriptor, (struct sockaddr *)&address, sizeof address), 0);
    client_expect_end(&second);
    assert_int_equal(loopback.events[HTTP_EVENT_REFUSED], 1);
    SEND(&first, GET("/still"));
    client_expect(&first, "<GET /still");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    loopback_advance(&loopback, 500); /* it looks now and then */
    struct client third = client_open(&loopback);
    SEND(&third, GET("/again"));
    client_expect(&third, "<GET /again");
    (void)close(spare);
    client_close(&first);
    client_close(&second);
    client_close(&third);
}

TEST_WITH(draining_finishes_what_has_begun_and_nothing_else, open_loopback, close_loopback)
{
    struct client idle = client_open(&loopback);
    struct client busy = client_open(&loopback);
    struct client partial = client_open(&loopback);
    SEND(&idle, GET("/idle"));
    client_expect(&idle, "<GET /idle");
    SEND(&busy, GET("/later"));
    SEND(&partial, "GET /partial HTTP/1.1\r\n");
    WAIT_UNTIL(&loopback, loopback.waiting != NULL);
    http_server_drain(loopback.server, 0, on_drained);
    client_expect_end(&idle);
    SEND(&partial, HOST "\r\n");
    client_expect_end(&partial);
    assert_true(client_has(&partial, "Connection: close\r\n\r\n<GET /partial"));
    assert_false(loopback.drained);
    reply_in_full(loopback.waiting);
    client_expect_end(&busy);
    assert_true(client_has(&busy, "Connection: close\r\n\r\n<GET /later"));
    client_close(&idle);
    client_close(&busy);
    client_close(&partial);
    WAIT_UNTIL(&loopback, loopback.drained);
}

TEST_WITH(a_connection_still_in_the_queue_is_answered_when_draining, open_loopback, close_loopback)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(loopback.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct client client = {.loopback = &loopback};
    client.descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client.descriptor, (struct sockaddr *)&address, sizeof address), 0);
    http_server_drain(loopback.server, 0, on_drained); /* the loop has not turned since */
    SEND(&client, GET("/queued"));
    client_expect_end(&client);
    assert_true(client_has(&client, "Connection: close\r\n\r\n<GET /queued"));
    client_close(&client);
    WAIT_UNTIL(&loopback, loopback.drained);
}

static unsigned closed_asked_about; /* how often epoll was asked about a closed descriptor */

/* libuv comes here. A number that is closed may be another thread's by then. */
int epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event)
{
    int result = (int)syscall(SYS_epoll_ctl, epoll, operation, descriptor, event);
    closed_asked_about += result != 0 && errno == EBADF;
    return result;
}

TEST_WITH(epoll_is_not_asked_about_a_listener_that_is_closed, open_loopback, close_loopback)
{
    http_server_drain(loopback.server, 0, on_drained);
    WAIT_UNTIL(&loopback, loopback.drained);
    assert_int_equal(closed_asked_about, 0);
}

#define LONG_MS 60000 /* far longer than any test */

TEST_OF(client, an_idle_connection_gets_one_more_answer_when_draining)
{
    SEND(client, GET("/before"));
    client_expect(client, "<GET /before");
    http_server_drain(loopback.server, LONG_MS, on_drained);
    loopback_turn(&loopback, -1);
    SEND(client, GET("/last"));
    client_expect_end(client);
    assert_true(client_has(client, "Connection: close\r\n\r\n<GET /last"));
    client_close(client);
    WAIT_UNTIL(&loopback, loopback.drained);
}

TEST_OF(client, an_idle_connection_closes_when_its_grace_is_over)
{
    SEND(client, GET("/before"));
    client_expect(client, "<GET /before");
    http_server_drain(loopback.server, 300, on_drained);
    loopback_advance(&loopback, 299);
    client_read(client);
    assert_false(client->ended);
    loopback_advance(&loopback, DEADLINE_MS);
    client_expect_end(client);
    WAIT_UNTIL(&loopback, loopback.drained);
}

TEST_OF(client, what_was_sent_ahead_is_answered_when_draining)
{
    SEND(client, GET("/later"));
    WAIT_UNTIL(&loopback, loopback.waiting != NULL);
    http_server_drain(loopback.server, LONG_MS, on_drained);
    SEND(client, GET("/second") GET("/third"));
    loopback_turn(&loopback, -1);
    reply_in_full(loopback.waiting);
    client_expect_end(client);
    assert_true(client_has(client, "<GET /later"));
    assert_true(client_has(client, "<GET /second"));
    assert_true(client_has(client, "Connection: close\r\n\r\n<GET /third"));
    assert_false(client_has(client, "Connection: close\r\n\r\n<GET /second"));
    client_close(client);
    WAIT_UNTIL(&loopback, loopback.drained);
}

TEST_WITH(a_new_connection_is_answered_while_another_is_open, open_loopback, close_loopback)
{
    struct client busy = client_open(&loopback);
    SEND(&busy, GET("/later"));
    WAIT_UNTIL(&loopback, loopback.waiting != NULL);
    http_server_drain(loopback.server, LONG_MS, on_drained);
    struct client newcomer = client_open(&loopback);
    SEND(&newcomer, GET("/new"));
    client_expect_end(&newcomer);
    assert_true(client_has(&newcomer, "Connection: close\r\n\r\n<GET /new"));
    client_close(&newcomer);
    reply_in_full(loopback.waiting);
    client_expect_end(&busy);
    client_close(&busy);
    WAIT_UNTIL(&loopback, loopback.drained); /* long before its time: no one is left */
}

TEST_OF(client, aborting_abandons_what_is_left)
{
    SEND(client, GET("/later"));
    WAIT_UNTIL(&loopback, loopback.waiting != NULL);
    http_server_drain(loopback.server, 0, on_drained);
    loopback_turn(&loopback, -1);
    assert_false(loopback.drained);
    http_server_abort(loopback.server);
    assert_int_equal(loopback.abandoned, 1);
    WAIT_UNTIL(&loopback, loopback.drained);
}

TEST_WITH(a_second_listener_is_told_that_the_address_is_taken, open_loopback, close_loopback)
{
    struct error error;
    int descriptor;
    uint16_t bound = 0;
    assert_int_equal(http_listen("127.0.0.1", loopback.port, true, &descriptor, &bound, &error),
                     STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.text, "127.0.0.1:"));
    assert_non_null(strstr(error.text, "Address already in use"));
    int first;
    assert_int_equal(http_listen("::1", 0, true, &first, &bound, &error), STATUS_OK);
    assert_int_not_equal(bound, 0);
    assert_int_equal(http_listen("::1", 0, true, &descriptor, &bound, &error), STATUS_OK);
    (void)close(descriptor);
    uint16_t other = 0;
    assert_int_equal(http_listen("::1", bound, true, &descriptor, &other, &error),
                     STATUS_UNAVAILABLE);
    (void)close(first);
}
