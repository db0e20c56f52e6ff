// @attack sends signals to numbers that are host processes
// @expect held | signal
// @arguments $PID
#include "attack.h"
#include <signal.h>

int main(int argc, char** argv) {
  (void)argc;
  const int judge = atoi(argv[1]);
  if (getpid() != judge && kill(judge, 0) == 0) return escaped("it sees the judge");
  kill(judge, SIGKILL);
  return held();
}
