/* The library that missing_dependency is linked with and that is not there later. */
int fake_gone(void);
int fake_gone(void) { return 7; }
