#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "agent/journal.h"
#include "agent/loop.h"
#include "agent/webhook.h"
#include "cli/input.h"
#include "engine/language_model.h"
#include "sandbox/sandbox.h"

namespace fixpoint::cli {

/// Who works for a loop, as the command line names them. A model is a file, a folder, or a server's address.
struct WorkerOptions {
  std::string model;
  std::string script;      ///< answers from a file instead of a model
  std::string specialist;
  std::string explainer;
  std::string key_file;    ///< else the environment's FIXPOINT_API_KEY, then OPENAI_API_KEY
  std::string specialist_key_file;  ///< else as for the model
  std::string explainer_key_file;   ///< else as for the model
  std::string ca_file;
  std::string journal;     ///< else FIXPOINT_JOURNAL, else below the user's state folder
  std::string webhook;
  std::string webhook_secret_file;  ///< else the environment's FIXPOINT_WEBHOOK_SECRET
  std::string kv_memory;
  std::string kv_type = "F16";
  std::string chat_template;  ///< of the model; of those that help, where their files name none that is known
  std::string device = "cpu";
  std::string weight_cache;  ///< as add_weight_cache_option sets it
  int threads = 0;
  std::string ladder;
  bool journal_sync = false;  ///< every event also survives a power cut

  void add_model_options(CLI::App& app);
  void add_journal_option(CLI::App& app);
  void add_webhook_options(CLI::App& app);  ///< part of the model options
  /// `--ladder`, for commands that begin sessions.
  void add_ladder_option(CLI::App& app);
  /// What was asked for; else branches, then whoever was named to help, then a person. Error: says what is wrong.
  [[nodiscard]] tl::expected<std::vector<agent::Rung>, std::string> rungs(bool with_specialist = true) const;
  /// The options above that another command needs to go on with the same session: " -m FILE --journal J".
  [[nodiscard]] std::string as_typed() const;
  /// The one that a look at its record needs.
  [[nodiscard]] std::string journal_as_typed() const;
};

/// Owns them. Destroyed in order: what uses something goes before it.
class Workers {
 public:
  enum class Needs : std::uint8_t { journal, checker, everything };
  /// Error: a message for a person. A journal that --journal names is made, unless the journal alone is needed.
  [[nodiscard]] static tl::expected<std::unique_ptr<Workers>, std::string> start(const WorkerOptions& options, Needs needs);

  [[nodiscard]] agent::Services services();
  [[nodiscard]] agent::Journal& journal() { return *journal_; }
  /// Where editors' conversations are kept: beside the journal.
  [[nodiscard]] std::filesystem::path conversations_file() const { return journal_file_.string() + ".conversations"; }
  /// Our own models behind the generators; null where a generator is something else.
  struct LocalModels {
    engine::LanguageModel* model = nullptr;
    engine::LanguageModel* specialist = nullptr;
    engine::LanguageModel* explainer = nullptr;
  };
  [[nodiscard]] LocalModels local_models() const { return local_; }
  /// Gives a hand-over's message a moment to go out.
  void finish();

 private:
  Workers() = default;
  [[nodiscard]] tl::expected<std::unique_ptr<agent::Generator>, std::string> open_model(const std::string& name,
                                                                                        const std::string& key_file,
                                                                                        const WorkerOptions& options,
                                                                                        engine::LanguageModel** local);

  std::vector<std::unique_ptr<engine::LanguageModel>> models_;
  LocalModels local_;
  std::unique_ptr<agent::Generator> model_, specialist_, explainer_;
  std::optional<sandbox::Sandbox> sandbox_;
  std::unique_ptr<agent::Checker> checker_;
  std::filesystem::path journal_file_;
  std::unique_ptr<agent::Journal> journal_;
  std::unique_ptr<agent::Webhook> webhook_;
};

/// Stops a loop on SIGINT or SIGTERM while it lives.
class InterruptStop {
 public:
  InterruptStop();
  ~InterruptStop();
  InterruptStop(const InterruptStop&) = delete;
  InterruptStop& operator=(const InterruptStop&) = delete;
  [[nodiscard]] std::stop_token token() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fixpoint::cli
