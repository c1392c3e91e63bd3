#include "convoy/train/model_sizes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "convoy/parallel/data/buckets.h"
#include "convoy/train/task.h"
#include "convoy/train/trainer.h"

namespace convoy::train {

void write_model_sizes(const RunRequest& request, const RunServices& services) {
  const Task task(request.recipe, services.files, request.directory, services.group);
  const auto model = make_model(request.recipe, task, services.models);
  nlohmann::ordered_json json = {{"parameters", nlohmann::ordered_json::array()},
                                 {"bucket_bytes", nlohmann::ordered_json::array()}};
  std::vector<std::int64_t> bytes;
  for (const params::NamedTensor& parameter : model->parameters()) {
    bytes.push_back(static_cast<std::int64_t>(parameter.tensor.nbytes()));
    json["parameters"].push_back({{"name", parameter.name}, {"bytes", bytes.back()}});
  }
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  for (const parallel::Bucket& bucket :
       parallel::make_buckets(order, bytes, request.recipe.parallel.known_bucket_bytes())) {
    json["bucket_bytes"].push_back(bucket.bytes);
  }
  write_atomic(services.files, request.directory + "/" + kModelSizesFile, json.dump() + "\n");
}

}  // namespace convoy::train
