// @attack spins
// @expect cpu_limit
// @limits cpu=300 wall=90000
int main(void) {
  for (volatile long i = 0;; ++i) {
  }
}
