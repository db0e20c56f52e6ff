// @attack is wrong, honestly
int f(int x) { return x; }
