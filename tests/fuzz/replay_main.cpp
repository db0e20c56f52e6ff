// Runs a fuzzer's code without libFuzzer: replay MUTATIONS [CORPUS…]
// On nothing, on every file of the corpus, and on MUTATIONS changed copies of them. The n-th mutation is a function of n and
// the corpus alone, so a failure comes again at the same number.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

/// What is being run, for the line that a crash leaves.
std::array<char, 512> current{};

void tell_and_die(int signal) {
  static_cast<void>(!write(STDERR_FILENO, current.data(), std::strlen(current.data())));
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(signal, &standard, nullptr);
  raise(signal);
}

/// Random numbers that are functions of (stream, counter).
class CounterRandom {
 public:
  explicit CounterRandom(std::uint64_t stream) : state_(stream * 0x9E3779B97F4A7C15U) {}
  /// In [0, bound); bound above 0.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }

 private:
  std::uint64_t next() {  // SplitMix64
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  std::uint64_t state_;
};

std::ptrdiff_t at(std::size_t index) { return static_cast<std::ptrdiff_t>(index); }

/// One small change: a bit, a byte, an interesting number, a piece removed, doubled or taken from `other`, an end cut off.
void change(Bytes& bytes, const Bytes& other, CounterRandom& random) {
  constexpr std::array<std::uint64_t, 8> kNumbers{0, 1, 0x7F, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, ~std::uint64_t{0}};
  using namespace std::string_view_literals;
  constexpr std::string_view kMarks = "\"\\{}[]:,\n\r \t\0-'`"sv;
  if (bytes.empty()) bytes.push_back(0);
  const std::size_t place = random.below(bytes.size());
  const std::size_t length = 1 + random.below(std::min<std::size_t>(bytes.size() - place, 32));
  const auto from = bytes.begin() + at(place);
  switch (random.below(8)) {
    case 0: bytes[place] ^= static_cast<std::uint8_t>(1U << random.below(8)); break;
    case 1: bytes[place] = static_cast<std::uint8_t>(random.below(256)); break;
    case 2: bytes[place] = static_cast<std::uint8_t>(kMarks[random.below(kMarks.size())]); break;
    case 3: {
      const std::uint64_t number = kNumbers[random.below(kNumbers.size())];
      std::memcpy(&bytes[place], &number, std::min<std::size_t>(bytes.size() - place, std::size_t{1} << random.below(4)));
      break;
    }
    case 4: bytes.erase(from, from + at(length)); break;
    case 5: {
      const Bytes piece(from, from + at(length));
      bytes.insert(from, piece.begin(), piece.end());
      break;
    }
    case 6: {
      if (other.empty()) break;
      const std::size_t there = random.below(other.size());
      const std::size_t taken = std::min<std::size_t>(other.size() - there, 1 + random.below(64));
      bytes.insert(from, other.begin() + at(there), other.begin() + at(there + taken));
      break;
    }
    default: bytes.resize(place); break;
  }
}

Bytes mutation(const std::vector<Bytes>& corpus, std::size_t number) {
  CounterRandom random(number + 1);
  Bytes bytes = corpus[number % corpus.size()];
  const Bytes& other = corpus[random.below(corpus.size())];
  for (std::size_t changes = 1 + random.below(4); changes > 0; --changes) change(bytes, other, random);
  return bytes;
}

/// A copy of exactly this size on the heap, so that a sanitizer sees a read past its end.
void run(const Bytes& bytes, const std::string& name) {
  std::snprintf(current.data(), current.size(), "replay: in %s\n", name.c_str());
  const Bytes exact(bytes);
  static_cast<void>(LLVMFuzzerTestOneInput(exact.data(), exact.size()));
}

std::vector<std::filesystem::path> files_of(std::span<char*> arguments) {
  std::vector<std::filesystem::path> files;
  for (const char* argument : arguments) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argument)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t mutations = 0;
  if (argc < 2 || std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), mutations).ec != std::errc()) {
    std::fprintf(stderr, "usage: replay MUTATIONS [CORPUS…]\n");
    return 2;
  }
  struct sigaction handler {};
  handler.sa_handler = tell_and_die;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) sigaction(signal, &handler, nullptr);

  std::vector<Bytes> corpus;
  for (const auto& file : files_of(std::span(argv + 2, static_cast<std::size_t>(argc - 2)))) {
    std::ifstream in(file, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    run(corpus.back(), file.string());
  }
  if (argc > 2 && corpus.empty()) {
    std::fprintf(stderr, "replay: the corpus is empty\n");
    return 1;
  }
  const std::size_t files = corpus.size();
  corpus.emplace_back();
  run(corpus.back(), "the empty input");
  for (std::size_t i = 0; i < mutations; ++i) run(mutation(corpus, i), "mutation " + std::to_string(i));
  std::printf("%zu files and %zu mutations\n", files, mutations);
  return 0;
}
