// @attack passes descriptors out over its standard streams
// @expect held
#include "attack.h"
#include <sys/socket.h>
#include <sys/stat.h>

int main(void) {
  for (int fd = 0; fd < 3; ++fd) {
    struct stat seen;
    int root = open("/", O_RDONLY);
    char control[CMSG_SPACE(sizeof(int))] = {0};
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &root, sizeof root);
    if (fstat(fd, &seen) != 0) return broken("fstat");
    if (S_ISSOCK(seen.st_mode) || sendmsg(fd, &message, 0) >= 0) return escaped("a stream is a socket");
  }
  return held();
}
