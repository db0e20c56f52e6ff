// @attack gives the tests' main another name, and has one of its own
int f(int) { return 0; }
int main() { return 0; }
#define main other
