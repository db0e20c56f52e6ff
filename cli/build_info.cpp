#include "cli/build_info.h"

namespace fixpoint::cli {

std::string version() { return FIXPOINT_VERSION; }
std::string source_commit() { return FIXPOINT_COMMIT; }
std::string models_in_source() { return FIXPOINT_MODELS_SOURCE; }

}  // namespace fixpoint::cli
