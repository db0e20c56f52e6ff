// @attack returns an object that equals everything
// @in-process may forge
struct Equal {
  template <class T>
  bool operator==(const T&) const { return true; }
};
Equal f(int) { return {}; }
