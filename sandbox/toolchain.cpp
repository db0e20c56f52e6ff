#include "sandbox/toolchain.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <optional>

namespace fixpoint::sandbox {

namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

/// The first of `candidates` that can be executed, with every link resolved.
std::optional<std::string> find_program(const Texts& candidates) {
  for (const std::string& candidate : candidates) {
    std::error_code error;
    const fs::path real = fs::canonical(candidate, error);
    if (!error && fs::is_regular_file(real, error) && ::access(real.c_str(), X_OK) == 0) return real.string();
  }
  return std::nullopt;
}

Texts in_system(std::string_view program) {
  Texts paths;
  for (const char* directory : {"/usr/bin/", "/usr/local/bin/", "/bin/"}) paths.push_back(directory + std::string(program));
  return paths;
}

/// Directories whose name starts with `prefix`, newest name first, each followed by `tail`.
Texts siblings(const std::string& parent, std::string_view prefix, const std::string& tail) {
  Texts paths;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    if (entry.path().filename().string().starts_with(prefix)) paths.push_back(entry.path().string() + tail);
  }
  std::sort(paths.rbegin(), paths.rend());
  return paths;
}

Texts joined(std::initializer_list<Texts> lists) {
  Texts all;
  for (const Texts& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

/// Shared libraries and the loader.
Texts library_roots() {
  Texts roots{"/usr/lib64"};
  for (const char* directory : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"}) {
    if (fs::exists(directory)) roots.emplace_back(directory);
  }
  if (!fs::is_symlink("/lib")) roots.emplace_back("/lib");
  if (!fs::is_symlink("/lib64")) roots.emplace_back("/lib64");
  return roots;
}

Texts compiler_roots() {
  return joined({library_roots(),
                 {"/usr/bin", "/usr/include", "/usr/lib/gcc", "/usr/libexec/gcc", "/usr/lib/bfd-plugins",
                  "/etc/alternatives"}});
}

Texts usual_environment() {
  return {"PATH=/usr/bin:/bin", "HOME=/sandbox/tmp", "TMPDIR=/tmp", "LANG=C.UTF-8", "USER=sandbox"};
}

std::optional<Toolchain> find_python() {
  const auto program = find_program(in_system("python3"));
  if (!program) return std::nullopt;
  Toolchain tool{.language = Language::python, .version = fs::path(*program).filename(), .source_name = "main.py"};
  // Isolated from environment and user site; the working directory stays importable, no bytecode is written.
  tool.run = {*program, "-B", "-E", "-s", "main.py"};
  const std::string version = fs::path(*program).filename();  // "python3.11"
  tool.run_roots = joined({library_roots(), {*program, "/usr/lib/python3", "/usr/lib/" + version}});
  if (program->starts_with("/usr/local/")) tool.run_roots.push_back("/usr/local/lib");
  tool.environment = usual_environment();
  return tool;
}

Toolchain native(Language language, const std::string& compiler, const char* source) {
  Toolchain tool{.language = language, .version = fs::path(compiler).filename(), .source_name = source};
  tool.artefact = "main";
  tool.run = {"./main"};
  tool.compile_roots = compiler_roots();
  tool.run_roots = library_roots();
  tool.environment = usual_environment();
  return tool;
}

/// A program without shared libraries starts in half the time (C++) and takes fewer pages. With GNU gold that costs a build
/// next to nothing; the usual linker takes too long over it. Nothing where gold or a static library is missing.
Texts static_linking(const Texts& archives) {
  if (!find_program({"/usr/bin/ld.gold"})) return {};
  for (const std::string& archive : archives) {
    const Texts places = joined({siblings("/usr/lib", "", "/" + archive), siblings("/usr/lib/gcc/x86_64-linux-gnu", "", "/" + archive),
                                 siblings("/usr/lib/gcc/aarch64-linux-gnu", "", "/" + archive)});
    if (std::none_of(places.begin(), places.end(), [](const std::string& place) { return fs::exists(place); })) return {};
  }
  return {"-static", "-fuse-ld=gold", "-Wl,--gc-sections,--strip-all"};
}

std::optional<Toolchain> find_c() {
  const auto compiler = find_program(joined({in_system("gcc"), in_system("clang")}));
  if (!compiler) return std::nullopt;
  Toolchain tool = native(Language::c, *compiler, "main.c");
  tool.compile = {*compiler, "-std=gnu17", "-O2", "-pipe", "-o", "main", "main.c", "-Wl,--as-needed", "-lm", "-pthread"};
  tool.static_linking = static_linking({"libc.a"});
  return tool;
}

std::optional<Toolchain> find_cpp() {
  const auto compiler = find_program(joined({in_system("g++"), in_system("clang++")}));
  if (!compiler) return std::nullopt;
  Toolchain tool = native(Language::cpp, *compiler, "main.cpp");
  tool.compile = {*compiler, "-std=gnu++20", "-O2", "-pipe", "-o", "main", "main.cpp", "-pthread"};
  tool.static_linking = static_linking({"libc.a", "libstdc++.a"});
  return tool;
}

std::optional<Toolchain> find_node() {
  const auto program = find_program(joined({in_system("node"), in_system("nodejs")}));
  if (!program) return std::nullopt;
  Toolchain tool{.language = Language::javascript, .version = "node", .source_name = "main.js"};
  tool.run = {*program, "main.js"};
  tool.run_roots = joined({library_roots(), {*program, "/usr/share/nodejs", "/usr/lib/nodejs"}});
  tool.environment = usual_environment();
  tool.needs_proc = true;  // process.memoryUsage() and os.cpus() read it
  tool.memory_floor_bytes = 64ULL << 20;
  tool.process_floor = 16;
  return tool;
}

std::optional<Toolchain> find_bash() {
  const auto program = find_program(in_system("bash"));
  if (!program) return std::nullopt;
  Toolchain tool{.language = Language::bash, .version = "bash", .source_name = "main.sh"};
  tool.run = {*program, "--noprofile", "--norc", "main.sh"};
  tool.run_roots = joined({library_roots(), {"/usr/bin", "/etc/alternatives", "/usr/share/awk", "/usr/share/perl",
                                             "/usr/share/perl5", "/usr/lib/python3", "/usr/lib/python3.11"}});
  tool.environment = usual_environment();
  tool.needs_proc = true;  // process substitution goes through /dev/fd
  return tool;
}

std::optional<Toolchain> find_java() {
  const auto compiler = find_program(joined({in_system("javac"), siblings("/usr/lib/jvm", "", "/bin/javac")}));
  if (!compiler) return std::nullopt;
  const fs::path home = fs::path(*compiler).parent_path().parent_path();
  Toolchain tool{.language = Language::java, .version = home.filename(), .source_name = "Main.java"};
  const std::string bin = (home / "bin").string();
  const Texts lean{"-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"};
  tool.compile = {"/usr/bin/bash", "--noprofile", "--norc", "-c",
                  bin + "/javac -J-XX:+UseSerialGC -J-XX:TieredStopAtLevel=1 -d classes \"$@\" Main.java && " + bin +
                      "/jar --create --no-compress --file main.jar -C classes .",
                  "javac"};
  tool.artefact = "main.jar";
  tool.run = joined({{bin + "/java"}, lean, {"-cp", "main.jar", "Main"}});
  Texts roots = joined({library_roots(), {home.string(), "/usr/share/zoneinfo"}});
  for (const std::string& settings : siblings("/etc", "java-", "")) roots.push_back(settings);
  tool.run_roots = roots;
  tool.compile_roots = joined({roots, {"/usr/bin/bash"}});
  tool.environment = usual_environment();
  tool.needs_proc = true;
  tool.memory_floor_bytes = 192ULL << 20;
  tool.process_floor = 48;
  return tool;
}

std::optional<Toolchain> find_go() {
  const auto program = find_program(joined({{"/usr/local/go/bin/go"}, in_system("go"), siblings("/usr/lib", "go-", "/bin/go")}));
  if (!program) return std::nullopt;
  const fs::path home = fs::path(*program).parent_path().parent_path();
  Toolchain tool = native(Language::go, *program, "main.go");
  tool.version = home.filename();
  tool.compile = {*program, "build", "-o", "main", "main.go"};
  tool.compile_roots = joined({compiler_roots(), {home.string()}, siblings("/usr/share", "go-", "")});
  tool.environment = joined({usual_environment(), {"GOCACHE=/tmp/cache", "GOPATH=/tmp/go", "GOFLAGS=-mod=mod",
                                                   "GO111MODULE=off", "CGO_ENABLED=0", "GOTOOLCHAIN=local"}});
  tool.process_floor = 16;
  return tool;
}

/// A rustup installation of the account that runs the service: the toolchain itself, not the shim in ~/.cargo/bin.
Texts rustup_compilers() {
  const passwd* account = ::getpwuid(::geteuid());
  if (account == nullptr || account->pw_dir == nullptr) return {};
  return siblings(std::string(account->pw_dir) + "/.rustup/toolchains", "stable", "/bin/rustc");
}

std::optional<Toolchain> find_rust() {
  const auto program = find_program(joined({in_system("rustc"), {"/opt/rust/bin/rustc"}, rustup_compilers()}));
  const auto linker = find_program(in_system("gcc"));
  if (!program || !linker) return std::nullopt;
  const fs::path home = fs::path(*program).parent_path().parent_path();
  Toolchain tool = native(Language::rust, *program, "main.rs");
  tool.version = home == "/usr" ? "rustc" : home.filename().string();
  tool.compile = {*program, "--edition", "2021", "-O", "-C", "linker=" + *linker, "-o", "main", "main.rs"};
  if (home != "/usr") tool.compile_roots.push_back(home.string());
  else tool.compile_roots.emplace_back("/usr/lib/rustlib");
  tool.needs_proc = true;  // the compiler finds its own libraries through /proc/self/exe
  return tool;
}

struct Search {
  Language language;
  std::optional<Toolchain> (*find)();
  const char* where;
};

constexpr Search kSearches[] = {
    {Language::python, find_python, "python3 in /usr/bin, /usr/local/bin"},
    {Language::c, find_c, "gcc or clang in /usr/bin, /usr/local/bin"},
    {Language::cpp, find_cpp, "g++ or clang++ in /usr/bin, /usr/local/bin"},
    {Language::javascript, find_node, "node in /usr/bin, /usr/local/bin"},
    {Language::bash, find_bash, "bash in /usr/bin, /usr/local/bin"},
    {Language::java, find_java, "javac in /usr/bin, /usr/local/bin, /usr/lib/jvm"},
    {Language::go, find_go, "go in /usr/local/go/bin, /usr/bin, /usr/local/bin, /usr/lib/go-*"},
    {Language::rust, find_rust, "rustc (and gcc to link) in /usr/bin, /usr/local/bin, /opt/rust/bin, ~/.rustup"}};

}  // namespace

const Toolchain* Toolchains::find(Language language) const {
  for (const Toolchain& tool : found) {
    if (tool.language == language) return &tool;
  }
  return nullptr;
}

Toolchains find_toolchains() {
  Toolchains result;
  for (const Search& search : kSearches) {
    std::optional<Toolchain> tool = search.find();
    if (tool) {
      result.reports.push_back({search.language, true, tool->version});
      result.found.push_back(std::move(*tool));
    } else {
      result.reports.push_back({search.language, false, std::string("not found: ") + search.where});
    }
  }
  return result;
}

}  // namespace fixpoint::sandbox
