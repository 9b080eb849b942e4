/*
 * ISO 4217 list one as of 2026-01-01 (amendments up to 180) less what is not money to play with:
 * precious metals, bond units, SDRs, the testing code and "no currency". The table has groups of
 * one exponent, with codes in order for people. Withdrawn codes stay, because players of before go
 * on with them.
 */
#include "records/currency.h"

#include <stddef.h>
#include <string.h>

#include "records/player.h"

static const struct {
    uint8_t exponent;
    const char *codes; /* separated by one space */
} groups[] = {
    {0, "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"},
    {2,
     "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BOV BRL BSD BTN BWP BYN "
     "BZD CAD CDF CHE CHF CHW CNY COP COU CRC CUC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP "
     "GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK "
     "LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK "
     "NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP "
     "STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG "
     "YER ZAR ZMW ZWG"},
    {3, "BHD IQD JOD KWD LYD OMR TND"},
    {4, "CLF UYW"},
};

/* ANG became XCG on 2025-03-31, BGN became EUR on 2026-01-01, and CUC ended on 2021-01-01. */
bool currency_is_withdrawn(struct text code)
{
    return text_equals(code, TEXT("ANG")) || text_equals(code, TEXT("BGN")) ||
           text_equals(code, TEXT("CUC"));
}

bool currency_exponent(struct text code, uint8_t *exponent)
{
    if (code.size != 3)
        return false;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        const char *codes = groups[i].codes;
        for (size_t at = 0, size = strlen(codes); at < size; at += 4) {
            if (memcmp(codes + at, code.at, 3) == 0) {
                *exponent = groups[i].exponent;
                return true;
            }
        }
    }
    return false;
}

void currency_format(int64_t minor, unsigned exponent, char out[CURRENCY_AMOUNT_SIZE])
{
    char digits[20];
    size_t count = decimal_write(digits, minor < 0 ? 0 - (uint64_t)minor : (uint64_t)minor);
    CHECK(exponent <= CURRENCY_EXPONENT_MAX);
    if (minor < 0)
        *out++ = '-';
    if (count <= exponent)
        *out++ = '0';
    for (size_t left = count > exponent ? count : exponent; left > 0; left--) {
        if (left == exponent)
            *out++ = '.';
        *out++ = left > count ? '0' : digits[count - left];
    }
    *out = '\0';
}
