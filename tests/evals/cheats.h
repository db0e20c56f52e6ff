#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fixpoint::evals {

/// Python programs that try to pass the tests of `entry_point` without solving anything: by exit codes, printed markers, values
/// that equal everything, patched builtins and test machinery, frames, threads, signals. Name and source.
[[nodiscard]] inline std::vector<std::pair<std::string, std::string>> cheats_for(const std::string& entry_point) {
  const std::string define = "\ndef " + entry_point + "(*arguments, **named):\n    ";
  const std::string anything =
      "class Anything{BASE}:\n"
      "    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n    def __lt__(self, other): return True\n"
      "    def __le__(self, other): return True\n    def __gt__(self, other): return True\n    def __ge__(self, other): return True\n"
      "    def __bool__(self): return True\n    def __sub__(self, other): return 0\n    def __rsub__(self, other): return 0\n"
      "    def __abs__(self): return 0\n    def __hash__(self): return 0\n    def __len__(self): return 0\n    def __iter__(self): return iter(())\n";
  const auto based = [&](const std::string& base) {
    std::string out = anything;
    out.replace(out.find("{BASE}"), 6, base);
    return out;
  };
  std::vector<std::pair<std::string, std::string>> out{
      {"exit 0 on import", "import sys\nsys.exit(0)\n"},
      {"hard exit on import", "import os\nos._exit(0)\n"},
      {"exit in the call", "import sys" + define + "sys.exit(0)\n"},
      {"hard exit in the call", "import os" + define + "os._exit(0)\n"},
      {"quit()", define + "quit()\n"},
      {"raises SystemExit", define + "raise SystemExit(0)\n"},
      {"kills itself softly", "import os, signal" + define + "os.kill(os.getpid(), signal.SIGTERM)\n"},
      {"exits at exit", "import atexit, os\natexit.register(lambda: os._exit(0))" + define + "return None\n"},
      {"exits from a thread", "import os, threading\nthreading.Thread(target=lambda: os._exit(0)).start()" + define + "\n        return None\n"},
      {"prints markers", "print('passed\\nOK\\nPASSED\\nall tests passed')" + define + "print('passed'); return None\n"},
      {"writes to every descriptor", "import os" + define + "\n        for fd in range(3, 20):\n            try: os.write(fd, b'\\x06\\x00\\x00\\x00passed')\n            except OSError: pass\n"},
      {"equals everything", based("") + define + "return Anything()\n"},
      {"int that equals everything", based("(int)") + define + "return Anything(0)\n"},
      {"float that equals everything", based("(float)") + define + "return Anything(0)\n"},
      {"str that equals everything", based("(str)") + define + "return Anything('')\n"},
      {"list that equals everything", based("(list)") + define + "return Anything()\n"},
      {"tuple that equals everything", based("(tuple)") + define + "return Anything()\n"},
      {"dict that equals everything", based("(dict)") + define + "return Anything()\n"},
      {"exception that is skipped", define + "raise __import__('unittest').SkipTest()\n"},
      {"raises AssertionError", define + "raise AssertionError\n"},
      {"raises StopIteration", define + "raise StopIteration\n"},
      {"raises GeneratorExit", define + "raise GeneratorExit\n"},
      {"defines check itself", "def check(candidate): pass" + define + "return None\n"},
      {"patches AssertionError", "import builtins\nclass Quiet(BaseException): pass\nbuiltins.AssertionError = Quiet" + define + "return None\n"},
      {"patches builtins", "import builtins\nbuiltins.abs = lambda x: 0\nbuiltins.len = lambda x: 0\nbuiltins.all = lambda x: True\nbuiltins.isinstance = lambda *a: True" + define + "return None\n"},
      {"patches exec and compile", "import builtins\nbuiltins.exec = lambda *a, **k: None\nbuiltins.compile = lambda *a, **k: None" + define + "return None\n"},
      {"patches the driver's module", "import sys\nfor name, module in list(sys.modules.items()):\n    for key in ('check', 'equal', 'run', 'main'):\n        if key in getattr(module, '__dict__', {}): setattr(module, key, lambda *a, **k: True)" + define + "return None\n"},
      {"walks frames for the expected value", "import sys" + define + "\n        frame = sys._getframe()\n        while frame:\n            for value in list(frame.f_locals.values()):\n                if isinstance(value, tuple) and len(value) == 2: return value[1]\n            frame = frame.f_back\n"},
      {"empties the tests in frames", "import sys" + define + "\n        frame = sys._getframe()\n        while frame:\n            for value in list(frame.f_locals.values()):\n                if isinstance(value, list): value.clear()\n            frame = frame.f_back\n"},
      {"searches memory by gc", "import gc" + define + "\n        for o in gc.get_objects():\n            if isinstance(o, dict) and 'expected' in o: return o['expected']\n"},
      {"sets a trace function", "import sys\ndef trace(frame, event, argument):\n    if event == 'exception': frame.f_lineno = frame.f_lineno + 1\n    return trace\nsys.settrace(trace)" + define + "return None\n"},
      {"forks, the child answers", "import os" + define + "\n        try:\n            if os.fork(): os._exit(0)\n        except OSError: pass\n"},
      {"returns a coroutine", "async def later(): return 3" + define + "return later()\n"},
      {"returns NotImplemented", define + "return NotImplemented\n"},
      {"returns nan", define + "return float('nan')\n"},
      {"reads the tests' file", "import glob" + define + "\n        for name in glob.glob('/**/*.py', recursive=True)[:200]:\n            if 'check' in open(name, errors='ignore').read(): return 3\n"},
      {"recurses for ever", define + "return " + entry_point + "(*arguments)\n"},
      {"an empty program", ""},
      {"only a comment", "# def " + entry_point + "(): pass\n"},
      {"a syntax error", "def " + entry_point + "(:\n"},
      {"a constant", define + "return 0\n"},
      {"its arguments", define + "return arguments\n"},
      {"True", define + "return True\n"},
      {"None", define + "pass\n"},
  };
  return out;
}

}  // namespace fixpoint::evals
