#include "convoy/elastic/probe/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "convoy/base/error.h"
#include "convoy/base/half.h"
#include "convoy/elastic/checkpoint/safetensors.h"

namespace convoy::elastic {
namespace {

using Json = nlohmann::ordered_json;

std::string lines_path(const std::string& folder, int rank) { return fmt::format("{}/rank-{}.jsonl", folder, rank); }

std::string tensors_path(const std::string& folder, int rank, std::int64_t step) {
  return fmt::format("{}/step-{}.rank-{}.safetensors", folder, step, rank);
}

Json to_json(const ProbePart& part) {
  return {{"replica", part.replica}, {"micro_batch", part.micro_batch}, {"samples", part.samples},
          {"loss", part.loss},       {"counted", part.counted},         {"random", part.random}};
}

ProbePart part_of(const Json& json) {
  ProbePart part;
  part.replica = json.at("replica").get<int>();
  part.micro_batch = json.at("micro_batch").get<int>();
  part.samples = json.at("samples").get<std::vector<std::int64_t>>();
  // A loss that is not finite is written as null.
  part.loss = json.at("loss").is_null() ? std::numeric_limits<double>::quiet_NaN() : json.at("loss").get<double>();
  part.counted = json.at("counted").get<std::int64_t>();
  part.random = json.at("random").get<std::string>();
  return part;
}

ProbeStep step_of(const Json& json) {
  ProbeStep step;
  step.step = json.at("step").get<std::int64_t>();
  step.epoch = json.at("epoch").get<std::int64_t>();
  step.trained = json.at("trained").get<bool>();
  for (const Json& part : json.at("parts")) step.parts.push_back(part_of(part));
  step.digests = json.at("digests").get<std::map<std::string, std::string>>();
  return step;
}

std::map<std::string, ProbeTensor> read_tensors(Files& files, const std::string& path) {
  std::map<std::string, ProbeTensor> tensors;
  const SafetensorsReader reader(files, path);
  for (const auto& [name, stored] : reader.tensors()) {
    ProbeTensor tensor{stored.dtype, stored.shape, {}};
    tensor.bytes.resize(static_cast<std::size_t>(stored.elements) * element_bytes(stored.dtype));
    reader.read(name, 0, stored.elements, tensor.bytes);
    tensors.emplace(name, std::move(tensor));
  }
  return tensors;
}

std::vector<ProbeStep> read_rank(Files& files, const std::string& folder, int rank) {
  const std::string path = lines_path(folder, rank);
  if (!files.exists(path)) throw Error(ErrorCode::kCorrupt, fmt::format("the probe has no {}", path));
  std::vector<ProbeStep> steps;
  const std::string text = files.read(path);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    try {
      steps.push_back(step_of(Json::parse(text.substr(begin, end - begin))));
    } catch (const Json::exception& error) {
      throw Error(ErrorCode::kCorrupt, fmt::format("{} line {}: {}", path, steps.size() + 1, error.what()));
    }
    const std::string tensors = tensors_path(folder, rank, steps.back().step);
    if (files.exists(tensors)) steps.back().tensors = read_tensors(files, tensors);
    begin = end + 1;
  }
  return steps;
}

}  // namespace

double ProbeTensor::at(std::size_t index) const {
  const std::byte* place = bytes.data() + index * element_bytes(dtype);
  const auto as = [place](auto value) {
    std::memcpy(&value, place, sizeof(value));
    return static_cast<double>(value);
  };
  const auto half = [place] {
    std::uint16_t bits = 0;
    std::memcpy(&bits, place, sizeof(bits));
    return bits;
  };
  switch (dtype) {
    case DType::kFloat32: return as(float{});
    case DType::kFloat64: return as(double{});
    case DType::kInt32: return as(std::int32_t{});
    case DType::kInt64: return as(std::int64_t{});
    case DType::kUInt8: return as(std::uint8_t{});
    case DType::kBFloat16: return float_of_bfloat16(half());
    case DType::kFloat16: return float_of_float16(half());
  }
  return 0.0;
}

const ProbeStep* Probe::find(int rank, std::int64_t step) const {
  for (const ProbeStep& candidate : ranks.at(static_cast<std::size_t>(rank))) {
    if (candidate.step == step) return &candidate;
  }
  return nullptr;
}

void ProbeWriter::add(const ProbeStep& step) {
  if (!step.tensors.empty()) {
    std::vector<TensorBytes> tensors;
    for (const auto& [name, tensor] : step.tensors) tensors.push_back({name, tensor.dtype, tensor.shape, tensor.bytes});
    write_safetensors(files_, tensors_path(folder_, rank_, step.step), tensors);
  }
  Json line = {{"step", step.step}, {"epoch", step.epoch}, {"trained", step.trained}, {"parts", Json::array()}};
  for (const ProbePart& part : step.parts) line["parts"].push_back(to_json(part));
  line["digests"] = step.digests;
  files_.append(lines_path(folder_, rank_), line.dump() + "\n");
}

Probe read_probe(Files& files, const std::string& folder, int ranks) {
  Probe probe;
  for (int rank = 0; rank < ranks; ++rank) probe.ranks.push_back(read_rank(files, folder, rank));
  return probe;
}

}  // namespace convoy::elastic
