// @attack takes memory until new throws, and goes on
// @expect memory_limit
// @expect(user) memory_limit | cpu_limit | signal
// @expect(no_cgroups) memory_limit | cpu_limit | signal
// @limits memory=64M
#include <new>
#include <vector>

int main() {
  std::vector<char*> all;
  for (;;) {
    char* block = new (std::nothrow) char[1 << 20];
    if (!block) continue;
    for (int i = 0; i < 1 << 20; i += 4096) block[i] = 1;
    all.push_back(block);
  }
}
