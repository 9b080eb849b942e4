#pragma once

#include "config/config.h"
#include "stores/odds.h"
#include "stores/platform.h"

/*
 * The options with which the stores of a configuration are opened. Each caller sets its own rest
 * (create, patient, a log, another time). The texts are the configuration's, which must outlive the
 * opening. Threads: any.
 */
static inline struct odds_store_options odds_store_configured(const struct config *config)
{
    return (struct odds_store_options){.uri = config->odds_store,
                                       .timeout_ms = config->odds_timeout_ms,
                                       .prefix = config->odds_prefix,
                                       .ask_ms = config->odds_ask_ms};
}

static inline struct platform_store_options platform_store_configured(const struct config *config)
{
    return (struct platform_store_options){.uri = config->platform_store,
                                           .timeout_ms = config->platform_timeout_ms};
}
