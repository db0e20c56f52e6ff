#pragma once

#include "attack_program.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fixpoint::sandbox::attacks {

// Things on this host that an attack that gets out would touch: a file with a secret, services on three kinds of sockets, names
// that programs try to leave behind. Made before the attacks, looked at afterwards.
class HostWitness {
 public:
  HostWitness();
  ~HostWitness();
  HostWitness(const HostWitness&) = delete;
  HostWitness& operator=(const HostWitness&) = delete;

  [[nodiscard]] Placeholders placeholders() const;
  [[nodiscard]] const std::string& secret() const { return secret_; }
  // What is not as it was; empty when all is.
  [[nodiscard]] std::vector<std::string> changes();

 private:
  std::string directory_, secret_, canary_, socket_path_, abstract_name_, host_name_;
  int tcp_ = -1, path_socket_ = -1, abstract_socket_ = -1, port_ = 0;
  std::size_t mounts_ = 0;
  std::vector<std::uint64_t> digests_;
};

}  // namespace fixpoint::sandbox::attacks
