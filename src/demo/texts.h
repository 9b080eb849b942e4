#pragma once

/* Files of demo/ that the build puts into the program (tools/embed_texts.py). */
extern const char demo_games[]; /* games.json: the casino's, as `croupier game import` reads them */
extern const char demo_screen[]; /* screen.txt: see commands/demo.c */
extern const char demo_tour[];   /* tour.txt: the same */
extern const char demo_page[];   /* wheel.html, wheel.css and wheel.js: the page's (casino.h) */
extern const char demo_page_style[];
extern const char demo_page_script[];
extern const char demo_cricket[]; /* cricket.json, …, names.json: see sports.h */
extern const char demo_football[];
extern const char demo_tennis[];
extern const char demo_horse_racing[];
extern const char demo_greyhound_racing[];
extern const char demo_names[];
