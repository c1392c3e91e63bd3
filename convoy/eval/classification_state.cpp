#include "convoy/eval/classification_state.h"

#include <nlohmann/json.hpp>

namespace convoy::eval {

LossSum in_batch_order(std::span<const LossSum> batches) {
  LossSum all;
  for (const LossSum& batch : batches) all.merge(batch);
  return all;
}

void ClassificationState::merge(const ClassificationState& other) {
  confusion.merge(other.confusion);
  loss.merge(other.loss);
}

nlohmann::ordered_json ClassificationState::to_json() const {
  nlohmann::ordered_json json = {{"samples", confusion.samples()},
                                 {"loss", loss.mean()},
                                 {"accuracy", confusion.accuracy()},
                                 {"macro_f1", confusion.macro_f1()},
                                 {"classes", nlohmann::ordered_json::array()},
                                 {"confusion", nlohmann::ordered_json::array()}};
  for (int i = 0; i < confusion.classes(); ++i) {
    const ClassRates rates = confusion.rates(i);
    json["classes"].push_back({{"class", i},
                               {"precision", rates.precision},
                               {"recall", rates.recall},
                               {"f1", rates.f1},
                               {"support", rates.support}});
    nlohmann::ordered_json row = nlohmann::ordered_json::array();
    for (int j = 0; j < confusion.classes(); ++j) row.push_back(confusion.count(i, j));
    json["confusion"].push_back(row);
  }
  return json;
}

}  // namespace convoy::eval
