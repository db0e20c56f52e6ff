#include <mutex>

#include "agent/checker.h"

namespace fixpoint::agent {
namespace {

class ScriptedChecker final : public Checker {
 public:
  explicit ScriptedChecker(std::vector<tl::expected<Judgement, CheckError>> answers) : answers_(std::move(answers)) {}

  tl::expected<Judgement, CheckError> check(const CheckRequest& /*request*/, std::stop_token stop) override {
    const std::scoped_lock lock(mutex_);
    if (stop.stop_requested()) return tl::unexpected(CheckError{CheckError::Kind::cancelled, {}});
    if (answers_.empty()) return tl::unexpected(CheckError{CheckError::Kind::unsupported, "the script has no verdict"});
    const std::size_t at = next_ < answers_.size() ? next_++ : answers_.size() - 1;
    return answers_[at];
  }

 private:
  std::vector<tl::expected<Judgement, CheckError>> answers_;
  std::mutex mutex_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<Checker> make_scripted_checker(std::vector<tl::expected<Judgement, CheckError>> answers) {
  return std::make_unique<ScriptedChecker>(std::move(answers));
}

}  // namespace fixpoint::agent
