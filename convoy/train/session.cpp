#include "convoy/train/session.h"

#include <torch/torch.h>

#include "convoy/params/arena_allocator.h"
#include "convoy/zoo/script_model.h"

namespace convoy::train {

Session::Session(const SessionOptions& options) : job_(comm::read_job_environment()) {
  params::use_shared_arena();
  torch::set_num_threads(options.threads);
  zoo::run_scripts_alike();
  if (job_.world_size > 1) store_ = comm::connect_store(job_, options.start_limit);
  if (!store_) store_ = std::make_unique<comm::MemoryStore>();
  group_ = comm::join_group(job_, *store_, options.group, options.transport);
}

}  // namespace convoy::train
