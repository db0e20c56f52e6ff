// @attack makes the compiler instantiate without end
// @expect compile_error
template <int N>
struct Bomb {
  using Left = typename Bomb<N + 1>::Right;
  using Right = typename Bomb<N + 2>::Left;
};
Bomb<0>::Left bomb;
int main() {}
