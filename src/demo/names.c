/* Invented names; any likeness to a club, person, course or animal is a coincidence. */
#include <stdio.h>

#include "demo/event.h"

static const struct {
    char letter;
    const char *words;
} lists[] = {
    {'p', "Aldermoor|Brackenvale|Castlemarch|Dunhollow|Eastmere|Fernwater|Grayhaven|Highmarsh|"
          "Ironmead|Jasperton|Kestrel Bay|Larkstone|Mallowfield|Norhaven|Oakmarch|Pinecross|"
          "Quarrydown|Redwater|Saltmere|Thornhollow|Umberford|Velmoor|Westmarch|Yarrowdale"},
    {'u', "United|City|Rovers|Athletic|Town|Wanderers|Albion|Harbour"},
    {'c', "Monsoons|Comets|Herons|Lanterns|Mariners|Foxes|Thunders|Kites"},
    {'f',
     "Ilan|Mara|Teo|Sunil|Nadia|Oskar|Priya|Lucan|Elise|Davor|Anika|Rohit|Wen|Tomas|Zara|Kofi"},
    {'s', "Bra|Cor|Del|Fen|Gar|Hal|Jor|Kel|Lan|Mor|Nar|Ost|Pel|Ran|Sel|Tor|Ul|Ven|Wes|Yar"},
    {'e', "by|dane|kin|low|mund|nell|osh|rick|san|tova|vek|wyn"},
    {'a', "Copper|Velvet|Silent|Rolling|Amber|Midnight|Paper|Second|Winter|Honest|Borrowed|Quiet|"
          "Golden|Crooked|Distant|Salted"},
    {'n', "Harbour|Lantern|Fiddle|Comet|Orchard|Postman|Biscuit|Meadow|Captain|Whisper|Ledger|"
          "Almanac|Compass|Thunder|Envelope|Parade"},
    {'h', "Ballyrow|Swift|Kilmarra|Droopy|Rapid|Coolagh|Savage|Jetty|Mossy|Tullymoor"},
    {'i', "Bolt|Ginger|Rocket|Duchess|Jack|Ember|Tango|Breeze|Sergeant|Pip"},
    {'y', "1100|1320|1540|1760|2200|2640"},
    {'m', "260|380|440|480|525"},
    {'F', "Northern Premier Division|Coastal League|Republic Cup|Second Division East"},
    {'C', "Island Short League|Continental Series|Provincial Shield"},
    {'T', "Kestrel Bay Open|Oakmarch Challenger|Saltmere Indoors"},
};

static struct text pick_word(struct chance *chance, char letter)
{
    size_t list = 0;
    while (lists[list].letter != letter)
        list++;
    uint32_t count = 1;
    for (const char *at = lists[list].words; *at != '\0'; at++)
        count += *at == '|';
    struct text rest = text_of(lists[list].words), word = text_cut(&rest, '|');
    for (uint32_t left = chance_below(chance, count); left > 0; left--)
        word = text_cut(&rest, '|');
    return word;
}

void name_make(struct chance *chance, const char *pattern, uint32_t number, char *out, size_t size)
{
    struct buffer name = {0};
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '@')
            buffer_append_text(&name, pick_word(chance, *++pattern));
        else if (*pattern == '#')
            buffer_append_u64(&name, number);
        else
            buffer_append_char(&name, *pattern);
    }
    (void)snprintf(out, size, "%s", buffer_string(&name));
    buffer_free(&name);
}
