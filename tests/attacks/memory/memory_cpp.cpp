// @attack takes memory until new throws, and goes on
// @expect memory_limit
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
