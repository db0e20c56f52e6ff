#include "server/tenant_workers.h"

#include "agent/local_generator.h"
#include "engine/language_model.h"

namespace fixpoint::server {
namespace {

std::unique_ptr<agent::Generator> generator(engine::LanguageModel* model, const std::string& tenant) {
  if (model == nullptr || !model->chat_format()) return nullptr;
  return agent::make_local_generator(model->engine(), {.name = model->description(),
                                                       .format = *model->chat_format(),
                                                       .tenant = tenant,
                                                       .starts_programs = model->program_start_given()});
}

}  // namespace

agent::Services TenantWorkers::services(const std::string& tenant) {
  const std::scoped_lock lock(mutex_);
  const auto [found, fresh] = sets_.try_emplace(tenant);
  Set& set = found->second;
  if (fresh) set = {generator(models_.model, tenant), generator(models_.specialist, tenant), generator(models_.explainer, tenant)};
  agent::Services out = base_;
  if (set.model) out.model = set.model.get();
  if (set.specialist) out.specialist = set.specialist.get();
  if (set.explainer) out.explainer = set.explainer.get();
  return out;
}

}  // namespace fixpoint::server
