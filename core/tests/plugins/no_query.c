/* A library that is no plugin. */
__attribute__((visibility("default"))) int fake_number(void);
int fake_number(void) { return 7; }
