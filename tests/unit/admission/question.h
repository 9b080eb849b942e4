#pragma once

#include <time.h>

#include "admission/admission.h"
#include "base/clock.h"
#include "stores/refresher.h"

/* Waits until the policies have been read, at most `most_ms`. */
static bool wait_until_ready(struct policies *policies, uint64_t most_ms)
{
    const uint64_t began_ms = clock_monotonic_ms();
    while (!refresher_is_ready(policies_refresher(policies)) &&
           clock_monotonic_ms() - began_ms < most_ms)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return refresher_is_ready(policies_refresher(policies));
}

/* What a request says about who asks; the second of two lines of a field is empty. */
struct admission_question {
    struct address peer;
    const struct text *forwarded; /* the X-Forwarded-For lines, in order */
    size_t forwarded_count;
    size_t authorization_count;
    struct text authorization;
    size_t api_key_count;
    struct text api_key;
    uint64_t now_mono_ms;
    int64_t now_wall_ms;
};

static void question_add(struct http_request *request, struct http_field_line *lines,
                         enum http_field field, struct text value)
{
    request->field_count[field]++;
    lines[request->line_count++] = (struct http_field_line){value, field};
}

static enum admission_denial question_judge(struct admission *admission,
                                            struct admission_memory *memory,
                                            const struct admission_question *question,
                                            const struct policy **policy, struct address *client)
{
    struct http_field_line lines[HTTP_FIELDS_MAX];
    struct admission_memory new_connection = {0};
    struct http_request request = {.peer = question->peer, .lines = lines};
    for (size_t i = 0; i < question->authorization_count; i++)
        question_add(&request, lines, HTTP_FIELD_AUTHORIZATION,
                     i == 0 ? question->authorization : TEXT(""));
    for (size_t i = 0; i < question->api_key_count; i++)
        question_add(&request, lines, HTTP_FIELD_X_API_KEY, i == 0 ? question->api_key : TEXT(""));
    for (size_t i = 0; i < question->forwarded_count; i++)
        question_add(&request, lines, HTTP_FIELD_X_FORWARDED_FOR, question->forwarded[i]);
    return admission_judge(admission, memory != NULL ? memory : &new_connection, &request,
                           question->now_mono_ms, question->now_wall_ms, policy, client);
}
